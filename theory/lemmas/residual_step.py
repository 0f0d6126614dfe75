"""One step of the residual: towards the point r* where the limit weights balance.

W = v M^ + r with r orthogonal to M. Under full support (<A_k, M> = 1 for every k) a step in the direction of
the negative gradient D = sum c_k A_k moves the residual by h b, where b = D/C - g*^2 M, C = sum c_k. Let r*
balance fixed weights w_k > 0: with q_k = w_k exp(-<A_k, r*>) and Phi = sum q_k,

    sum q_k A_k - Phi g*^2 M = 0     (r* is stationary for sum w_k exp(-<A_k, r>) over the r orthogonal to M),

and let log(c_k/(w_k exp(-mu_k))) lie in an interval of length o. With J the symmetric divergence of c_k/C and
q_k/Phi, if ||b||^2 <= L_b J, then for every l > 0 and h >= 0

    ||r + h b - r*||^2 <= ||r - r*||^2 - h (2 - h L_b - l) J + h o^2/(4 l).

Always L_b = R_B^2 will do, where ||A_k - g*^2 M|| <= R_B.
"""

from __future__ import annotations

from functools import cache

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import symmetric_divergence as sd
from theory.lemmas.separator_correlation import along, at_constraint, sum_constraints
from theory.lemmas.symmetric_divergence import R_B, divergence, ell, lo, o
from theory.notation import STATIC as L
from theory.notation import A, M, i, margin, others, over, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge
from theory.proof.tactics import (
    equation,
    follows,
    log_product,
    log_quotient,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    square_root_order,
    weak,
    zero,
)
from theory.proof.terms import (
    Formula,
    Index,
    Term,
    Vector,
    eq,
    exp,
    inner,
    log,
    norm,
    symbol,
    vector,
    vtotal,
)

REFERENCE = "our Theorem B: descent on the log-sum-exp of the residual"
r_star = vector("r_star")
h = symbol("h")
L_b = symbol("L_b")  # how much of the gradient across M a unit of disorder makes


def w(i: Index, tau: Index) -> Term:
    """Weight of a constraint in the limit."""
    return symbol("w", i, tau)


def q(i: Index, tau: Index) -> Term:
    """Weight of a constraint in the limit at the residual r*."""
    return w(i, tau) * exp(-inner(A(i, tau), r_star))


def height(W: Vector) -> Term:
    """v g*, the common part of the logit gaps of W."""
    return margin**2 * inner(W, M)


def residual(W: Vector) -> Vector:
    """r, the part of W orthogonal to M."""
    return W - height(W) * M


def apart(W: Vector) -> Vector:
    """r - r*."""
    return residual(W) - r_star


def tilt(now: nt.Layer) -> Vector:
    """b, the part of D/C orthogonal to M."""
    return (1 / now.C) * now.descent - margin**2 * M


def disorder(now: nt.Layer) -> Term:
    """J, the symmetric divergence of the gradient's coefficients and their limits."""
    return divergence(now.c(i, tau) / now.C, q(i, tau) / Phi)


def shift(now: nt.Layer) -> Term:
    """The logarithm of c_k/(w_k exp(-mu_k)): how far coefficient k is from its limit form."""
    return log(now.c(i, tau)) - log(w(i, tau)) + now.gap(i, tau)


Phi = over(q(i, tau))
FULL_SUPPORT = nt.each(eq(inner(A(i, tau), M), 1))
IMBALANCE = vtotal(i, nt.SEQUENCES, vtotal(tau, others(i), q(i, tau) * A(i, tau))) - (Phi * margin**2) * M
STATIONARY = eq(inner(IMBALANCE, IMBALANCE), 0)
RADIUS = nt.each(norm(A(i, tau) - margin**2 * M) <= R_B)
LIMIT_WEIGHTS_POSITIVE = nt.each(0 < w(i, tau))
COEFFICIENTS_POSITIVE = nt.each(0 < L.c(i, tau))
SHIFT_LOWER, SHIFT_UPPER = nt.each(lo <= shift(L)), nt.each(shift(L) <= lo + o)

HYPOTHESES: dict[str, Formula] = {
    "(F)": FULL_SUPPORT,
    "r* balances the limit weights": STATIONARY,
    "w > 0": LIMIT_WEIGHTS_POSITIVE,
    "R_B bounds the constraints across M": RADIUS,
    "c > 0": COEFFICIENTS_POSITIVE,
    "the shifts are at least lo": SHIFT_LOWER,
    "the shifts are at most lo + o": SHIFT_UPPER,
    "gradient": L.gradient_is(),
    "C": L.mass_is(),
    "there is a sequence": nt.SOME_SEQUENCE,
    "with a constraint": nt.SOME_TOKEN,
    "h >= 0": 0 <= h,
    "l > 0": 0 < ell,
}

X = apart(L.W)
c_k, q_k = L.c(i, tau), q(i, tau)


# --- signs -------------------------------------------------------------------------------------------------


@cache
def separable() -> Proved:
    """(F) contains (S)."""
    return co.for_each_constraint(follows(1 <= inner(A(i, tau), M), at_constraint(FULL_SUPPORT)))


@cache
def solution_nonzero() -> Proved:
    """0 < ||M||."""
    return discharge(co.SOLUTION_NONZERO.proved(), separable())


def limit_positive() -> Proved:
    """0 < q_k at the generic constraint."""
    decay = kernel.exp_positive(-inner(A(i, tau), r_star))
    return product_nonnegative(at_constraint(LIMIT_WEIGHTS_POSITIVE), decay)


def sum_positive(term: Proved) -> Proved:
    """From 0 < f at the generic constraint, 0 < sum f."""
    whole = co.one_of_all(weak(term), co.some_i, co.some_tau)
    one = discharge(co.moved(kernel.instantiate(term, indices={"tau": nt.tau1}), co.some_i), co.some_tau)
    return follows(0 < whole.conclusion[2], one, whole)


@cache
def mass_positive() -> Proved:
    """0 < C."""
    return follows(0 < L.C, sum_positive(at_constraint(COEFFICIENTS_POSITIVE)), assume(L.mass_is()))


@cache
def phi_positive() -> Proved:
    """0 < Phi."""
    return sum_positive(limit_positive())


# --- the two sums ------------------------------------------------------------------------------------------


def vanishing(zero_square: Proved, z: Vector) -> Proved:
    """From <v, v> = 0, <v, z> = 0: Cauchy-Schwarz on both sides."""
    v: Vector = zero_square.conclusion[1][1]
    squares = follows(norm(v) ** 2 <= zero() ** 2, norm_squared(v), zero_square)
    nothing = kernel.antisymmetry(square_root_order(squares, equation(zero() <= 0)), norm_nonnegative(v))
    high = follows(inner(v, z) <= 0, kernel.cauchy_schwarz(v, z), (norm(z), nothing))
    low = follows(0 <= inner(v, z), kernel.cauchy_schwarz(v, -1 * z), (norm(z), nothing))
    return kernel.antisymmetry(high, low)


def balanced(z: Vector) -> Proved:
    """sum q_k <A_k, z> = Phi g*^2 <M, z>."""
    weights = vtotal(i, nt.SEQUENCES, vtotal(tau, others(i), q(i, tau) * A(i, tau)))
    target = eq(inner(weights, z), Phi * margin**2 * inner(M, z))
    return follows(target, vanishing(assume(STATIONARY), z))


def correlation() -> Proved:
    """<D, M> = C: the sum of c_k <A_k, M> where each <A_k, M> = 1."""
    each = follows(eq(c_k * inner(A(i, tau), M), c_k), (c_k, at_constraint(FULL_SUPPORT)))
    target = eq(inner(L.descent, M), L.C)
    return follows(target, along(M), sum_constraints(each), assume(L.mass_is()))


def prove_square() -> Proved:
    """D/C = g*^2 M + b with b orthogonal to M, as <D, M> = C under full support."""
    solution, mass = solution_nonzero(), mass_positive()
    unit = follows(eq(margin**2 * inner(M, M), 1), (margin**2, norm_squared(M)), nonzero=[solution])
    return follows(
        SQUARE_CLAIM,
        (1 / L.C**2, norm_squared(L.descent)), (2 * margin**2 / L.C, correlation()),
        (margin**2, unit), nonzero=[mass],
    )  # fmt: skip


SQUARE_CLAIM = eq((norm(L.descent) / L.C) ** 2, margin**2 + inner(tilt(L), tilt(L)))


def logarithms() -> Proved:
    """log(c_k/C) - log(q_k/Phi) = shift_k - <A_k, r - r*> + a constant."""
    c, weight = at_constraint(COEFFICIENTS_POSITIVE), at_constraint(LIMIT_WEIGHTS_POSITIVE)
    exponent = -inner(A(i, tau), r_star)
    constant = log(Phi) - log(L.C) - height(L.W)
    return follows(
        eq(log(c_k / L.C) - log(q_k / Phi), shift(L) - inner(A(i, tau), X) + constant),
        log_quotient(c, mass_positive()), log_quotient(limit_positive(), phi_positive()),
        log_product(weight, kernel.exp_positive(exponent)), kernel.log_exp(exponent),
        (height(L.W), at_constraint(FULL_SUPPORT)),
    )  # fmt: skip


def mean_shift() -> Term:
    """The sum of (c_k/C - q_k/Phi) times the shifts."""
    return over((c_k / L.C - q_k / Phi) * shift(L))


def prove_inward() -> Proved:
    """<b, r - r*> = -J + sum (c_k/C - q_k/Phi) shift_k: both weights sum to 1, and q balances."""
    each = follows(
        eq(
            (c_k / L.C - q_k / Phi) * (log(c_k / L.C) - log(q_k / Phi)),
            (c_k / L.C - q_k / Phi) * (shift(L) - inner(A(i, tau), X) + log(Phi) - log(L.C) - height(L.W)),
        ),
        (c_k / L.C - q_k / Phi, logarithms()),
    )
    mass, phi = mass_positive(), phi_positive()
    constant = log(Phi) - log(L.C) - height(L.W)
    return follows(
        eq(inner(tilt(L), X), mean_shift() - disorder(L)),
        sum_constraints(each), (1 / L.C, along(X)), (1 / Phi, balanced(X)),
        (constant / L.C, assume(L.mass_is())),
        nonzero=[mass, phi],
    )  # fmt: skip


def distributions() -> list[Proved]:
    """c_k/C and q_k/Phi are positive and sum to 1."""
    mass, phi = mass_positive(), phi_positive()
    by_mass, by_phi = kernel.inverse_positive(mass), kernel.inverse_positive(phi)
    pulls = follows(0 < c_k / L.C, (by_mass, at_constraint(COEFFICIENTS_POSITIVE)))
    limits = follows(0 < q_k / Phi, (by_phi, limit_positive()))
    return [
        co.for_each_constraint(pulls),
        co.for_each_constraint(limits),
        follows(eq(over(c_k / L.C), 1), (-1 / L.C, assume(L.mass_is())), nonzero=[mass]),
        equation(eq(over(q_k / Phi), 1), nonzero=[phi]),
    ]


def of_distributions(claim: Proved) -> Proved:
    """A claim of ``symmetric_divergence`` about c_k/C and q_k/Phi."""
    at = ("i", "tau")
    families = {"pi": (at, c_k / L.C), "q": (at, q_k / Phi), "x": (at, shift(L))}
    vectors = {"B": (at, A(i, tau) - margin**2 * M)}
    return discharge(kernel.instantiate(claim, reals=families, vectors=vectors), *distributions())


def prove_tilt() -> Proved:
    """b = sum (c_k/C - q_k/Phi)(A_k - g*^2 M), a difference of means of vectors no longer than R_B."""
    bound = of_distributions(sd.VECTORS.proved())
    difference: Vector = bound.conclusion[1][1]
    ends = same_as_tilt(difference, difference), same_as_tilt(difference, tilt(L))
    return follows(TILT_CLAIM, bound, *ends)


def same_as_tilt(difference: Vector, z: Vector) -> Proved:
    """<sum (c_k/C - q_k/Phi)(A_k - g*^2 M), z> = <b, z>."""
    return follows(
        eq(inner(difference, z), inner(tilt(L), z)),
        (1 / L.C, along(z)), (1 / Phi, balanced(z)), (inner(M, z) * margin**2 / L.C, assume(L.mass_is())),
        nonzero=[mass_positive(), phi_positive()],
    )  # fmt: skip


def prove_step() -> Proved:
    """Expand the square: the cross term is -J plus the mean shift, and ||b||^2 <= L_b J."""
    pace, positive = assume(HYPOTHESES["h >= 0"]), assume(HYPOTHESES["l > 0"])
    numbers = of_distributions(sd.NUMBERS.proved())
    return follows(
        STEP_CLAIM,
        (2 * h, prove_inward()), (product_nonnegative(pace, pace), assume(SMOOTH)), (pace, numbers),
        nonzero=[positive],
    )  # fmt: skip


SMOOTH = inner(tilt(L), tilt(L)) <= L_b * disorder(L)
TILT_CLAIM = inner(tilt(L), tilt(L)) <= R_B**2 * disorder(L)
MOVED = X + h * tilt(L)
STEP_CLAIM = inner(MOVED, MOVED) <= (
    inner(X, X) - h * (2 - h * L_b - ell) * disorder(L) + h * o**2 / (4 * ell)
)
BALANCE = without(
    HYPOTHESES, "h >= 0", "l > 0", "the shifts are at least lo", "the shifts are at most lo + o"
)

INWARD = Theorem(
    key="residual-inward",
    title="The gradient points from the residual towards the balanced one, up to the shifts",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=without(BALANCE, "R_B bounds the constraints across M"),
    claim=eq(inner(tilt(L), X), mean_shift() - disorder(L)),
    prove=prove_inward,
)
TILT = Theorem(
    key="residual-tilt",
    title="The part of the gradient across the max-margin solution is small where the disorder is",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=without(BALANCE, "(F)"),
    claim=TILT_CLAIM,
    prove=prove_tilt,
)
STEP = Theorem(
    key="residual-step",
    title="One step of the residual towards the balanced one",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$, $h \ge 0$ and $l > 0$: {claim}.",
    hypotheses=without(HYPOTHESES, "R_B bounds the constraints across M")
    | {"the tilt is at most L_b times the disorder": SMOOTH},
    claim=STEP_CLAIM,
    prove=prove_step,
)
SQUARE = Theorem(
    key="gradient-per-mass",
    title="The gradient's norm per unit of its mass is the margin, but for its part across the solution",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={
        name: HYPOTHESES[name]
        for name in ("(F)", "gradient", "C", "c > 0", "there is a sequence", "with a constraint")
    },
    claim=SQUARE_CLAIM,
    prove=prove_square,
)
PAGES = (INWARD, TILT, STEP, SQUARE)
