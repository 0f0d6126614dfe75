"""Near the balanced point a step's pull on the residual is linear: minus the constraints' covariance.

Full support, X = r - r*, p_k = q_k/Phi the balanced weights, B_k = A_k - g*^2 M with ||B_k|| <= R_B, and the
shifts in an interval of length o. Let u be a unit eigenvector, sum p_k <B_k, u> B_k = lam u. With
L = o + 2 R_B ||X||:

    | <b, u> + lam <X, u> | <= R_B (o + exp(L) L^2)/2,        ||b|| <= R_B (exp(L) - 1).

For log(c_k/C) - log p_k = z_k lies in [-L, L], and 0 <= exp(z) - 1 - z <= exp(L) z^2/2 there.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import disorder as di
from theory.lemmas import residual_step as rs
from theory.lemmas import residual_variance as rv
from theory.lemmas.residual_step import Phi, X, height, q_k, shift
from theory.lemmas.residual_variance import across
from theory.lemmas.separator_correlation import along, at_constraint, sum_constraints
from theory.lemmas.symmetric_divergence import R_B, lo, o
from theory.notation import STATIC as L_
from theory.notation import M, i, margin, others, over, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge
from theory.proof.tactics import (
    exp_monotone,
    exp_tangent,
    follows,
    log_monotone,
    log_product,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    weak,
    zero,
)
from theory.proof.terms import Fraction, eq, exp, inner, log, norm, symbol, vector, vtotal

REFERENCE = "our Theorem C, beyond the stability limit"
half = Fraction(1, 2)
u, lam = vector("u"), di.lam
p_k, pi_k = q_k / Phi, L_.c(i, tau) / L_.C
L = o + 2 * (R_B * norm(X))
b = rs.tilt(L_)
w = inner(across, u)
EXCESS = vtotal(i, nt.SEQUENCES, vtotal(tau, others(i), (p_k * w) * across)) - lam * u
EIGENVECTOR = eq(inner(EXCESS, EXCESS), 0)
UNIT = eq(norm(u), 1)
error = R_B * (o + exp(L) * L**2) / 2


def exp_quadratic() -> tuple[Proved, Proved]:
    """0 <= exp(z) - 1 - z <= exp(l) z^2/2 for -l <= z <= l."""
    z, bound, y = symbol("z"), symbol("l"), symbol("y")
    low, high = assume(-bound <= z), assume(z <= bound)
    tangent = exp_tangent(z)
    body = half * exp(bound) * y**2 - exp(y) + 1 + y
    slope = exp(bound) * y - exp(y) + 1
    nonnegative = follows(0 <= bound, low, high)
    # y >= 0: exp(y) - 1 <= y exp(y) <= y exp(l).  y <= 0: exp(y) - 1 >= y >= y exp(l).
    up, down = assume(zero() <= y), assume(y <= zero())
    inside = exp_monotone(follows(y <= bound, assume(y <= z), high))
    steep = follows(0 <= slope, (weak(kernel.exp_positive(y)), exp_tangent(-y)), (up, inside))
    at_least_one = exp_monotone(follows(zero() <= bound, nonnegative))
    back = follows(0 <= -y, down)
    flat = follows(slope <= 0, exp_tangent(y), (back, at_least_one))
    right = kernel.monotone(steep, assume(zero() <= z), y, body)
    left = kernel.monotone(flat, weak(assume(z < zero())), y, body)
    target = exp(z) - 1 - z <= half * exp(bound) * z**2
    above = kernel.cases(follows(target, right), follows(target, left), zero(), z)
    return follows(0 <= exp(z) - 1 - z, tangent), above


def range_of_logarithms() -> tuple[Proved, Proved]:
    """-L <= log(c_k/C) - log p_k <= L, at the generic constraint."""
    pulls, limits = (discharge(at_constraint(f.conclusion), f) for f in rs.distributions()[:2])
    out = []
    for ratio, top in ((di.least_ratio(), limits), (di.greatest_ratio(), pulls)):
        claim = at_close(ratio)
        decay = kernel.exp_positive(-L)
        grown = log_monotone(claim, product_nonnegative(decay, top))
        out.append((grown, log_product(decay, top), kernel.log_exp(-L)))
    z = log(pi_k) - log(p_k)
    return follows(-L <= z, *out[0]), follows(z <= L, *out[1])


def at_close(claim: Proved) -> Proved:
    """A claim of ``disorder`` about the generic constraint, for c_k/C and q_k/Phi."""
    return rv.close(claim)


def quadratic() -> tuple[Proved, Proved]:
    """0 <= c_k/C - p_k (1 + z_k) <= p_k exp(L) L^2/2, at the generic constraint."""
    pulls, limits = (discharge(at_constraint(f.conclusion), f) for f in rs.distributions()[:2])
    z = log(pi_k) - log(p_k)
    low, high = range_of_logarithms()
    below, above = (
        discharge(kernel.instantiate(c, reals={"z": z, "l": L}), low, high) for c in exp_quadratic()
    )
    same = follows(eq(p_k * exp(z), pi_k), kernel.exp_log(pulls), (-exp(z), kernel.exp_log(limits)))
    spread = product_nonnegative(follows(0 <= L - z, high), follows(0 <= L + z, low))
    growth = product_nonnegative(weak(limits), weak(kernel.exp_positive(L)))
    rest = pi_k - p_k * (1 + z)
    return (
        follows(0 <= rest, (weak(limits), below), same),
        follows(rest <= half * p_k * exp(L) * L**2, (weak(limits), above), same, (growth, spread)),
    )


def reach() -> tuple[Proved, Proved]:
    """-R_B <= <B_k, u> <= R_B."""
    unit = assume(UNIT)
    low, high = rv.reach(u)
    return follows(-R_B <= w, low, (R_B, unit)), follows(w <= R_B, high, (R_B, unit))


OFFSET = lo + half * o + log(Phi) - log(L_.C) - height(L_.W)


def each_term() -> tuple[Proved, Proved]:
    """|(c_k/C - p_k) <B_k, u> - p_k <B_k, u> (const - <A_k, X>)| <= p_k R_B (o + exp(L) L^2)/2."""
    least, most = quadratic()
    limits = discharge(at_constraint(rs.distributions()[1].conclusion), rs.distributions()[1])
    short, long = reach()
    down, up = follows(0 <= R_B + w, short), follows(0 <= R_B - w, long)
    centred = shift(L_) - lo - half * o
    bottom = follows(0 <= half * o + centred, at_constraint(rs.SHIFT_LOWER))
    top = follows(0 <= half * o - centred, at_constraint(rs.SHIFT_UPPER))
    linear = (p_k * w, rs.logarithms())
    term = (pi_k - p_k) * w
    straight = p_k * w * (OFFSET - inner(rs.A(i, tau), X))
    weight = weak(limits)
    pairs = {
        1: (product_nonnegative(up, bottom), product_nonnegative(down, top)),
        -1: (product_nonnegative(up, top), product_nonnegative(down, bottom)),
    }
    radius = radius_nonnegative()
    highest = follows(
        term <= straight + p_k * error,
        linear, *((weight, pair) for pair in pairs[1]), (up, least), (radius, most),
    )  # fmt: skip
    lowest = follows(
        straight - p_k * error <= term,
        linear, *((weight, pair) for pair in pairs[-1]), (down, least), (radius, most),
    )  # fmt: skip
    return lowest, highest


def radius_nonnegative() -> Proved:
    """0 <= R_B."""
    low, high = reach()
    return follows(0 <= R_B, low, high)


def prove_linear() -> tuple[Proved, Proved]:
    """Sum over the constraints: p balances, and u is an eigenvector."""
    mass, phi = rs.mass_positive(), rs.phi_positive()
    unit = rs.distributions()[3]
    centred = follows(eq(over(p_k * w), 0), (1 / Phi, rs.balanced(u)), nonzero=[phi])
    pulled = follows(
        eq(over(pi_k * w), inner(b, u)),
        (1 / L_.C, along(u)), (inner(M, u) * margin**2 / L_.C, assume(L_.mass_is())), nonzero=[mass],
    )  # fmt: skip
    eigen = rs.vanishing(assume(EIGENVECTOR), X)
    low, high = (
        follows(
            target, sum_constraints(claim), centred, pulled, eigen, (error, unit),
            (OFFSET - margin**2 * inner(M, X), centred),
        )
        for claim, target in zip(each_term(), (LOWER_CLAIM, UPPER_CLAIM), strict=True)
    )  # fmt: skip
    return low, high


LOWER_CLAIM = -error <= inner(b, u) + lam * inner(X, u)
UPPER_CLAIM = inner(b, u) + lam * inner(X, u) <= error
TILT_CLAIM = norm(b) <= R_B * (exp(L) - 1)


def prove_tilt() -> Proved:
    """||b||^2 = sum (c_k/C - p_k) <B_k, b>; |c_k/C - p_k| <= p_k (exp(L) - 1), as exp(-L) + exp(L) >= 2."""
    mass, phi = rs.mass_positive(), rs.phi_positive()
    limits = discharge(at_constraint(rs.distributions()[1].conclusion), rs.distributions()[1])
    least, most = at_close(di.least_ratio()), at_close(di.greatest_ratio())
    grown, decay = kernel.exp_positive(L), kernel.exp_positive(-L)
    high = follows(pi_k - p_k <= p_k * (exp(L) - 1), (grown, most))
    square = kernel.square(exp(L) - 1)
    weight = product_nonnegative(limits, decay)
    low = follows(-p_k * (exp(L) - 1) <= pi_k - p_k, least, (weight, square))
    short, long = rv.reach(b)
    y = inner(across, b)
    product = follows(
        (pi_k - p_k) * y <= p_k * (exp(L) - 1) * (R_B * norm(b)),
        (follows(0 <= p_k * (exp(L) - 1) - (pi_k - p_k), high), follows(0 <= R_B * norm(b) + y, short)),
        (follows(0 <= p_k * (exp(L) - 1) + (pi_k - p_k), low), follows(0 <= R_B * norm(b) - y, long)),
    )  # fmt: skip
    centred = follows(eq(over(p_k * y), 0), (1 / Phi, rs.balanced(b)), nonzero=[phi])
    pulled = follows(
        eq(over(pi_k * y), inner(b, b)),
        (1 / L_.C, along(b)), (inner(M, b) * margin**2 / L_.C, assume(L_.mass_is())), nonzero=[mass],
    )  # fmt: skip
    reach_ = (exp(L) - 1) * R_B * norm(b)
    squared = follows(
        norm(b) ** 2 <= R_B * (exp(L) - 1) * norm(b),
        sum_constraints(product), centred, pulled, norm_squared(b), (reach_, rs.distributions()[3]),
    )  # fmt: skip
    size = assume(zero() < norm(b))
    long_ = follows(TILT_CLAIM, (kernel.inverse_positive(size), squared), nonzero=[size])
    radius = follows(0 <= R_B, norm_nonnegative(across), at_constraint(rs.RADIUS))
    spread = follows(0 <= o, at_constraint(rs.SHIFT_LOWER), at_constraint(rs.SHIFT_UPPER))
    range_ = follows(0 <= L, spread, (radius, norm_nonnegative(X)))
    at_least_one = follows(0 <= exp(L) - 1, exp_tangent(L), range_)
    nothing = product_nonnegative(radius, at_least_one)
    short_ = generic(follows(TILT_CLAIM, assume(norm(b) <= 0), nothing))
    return kernel.cases(short_, generic(long_), norm(b), zero())


def generic(claim: Proved) -> Proved:
    """A claim that no constraint occurs in, from its proof at the generic one: there is one."""
    moved = kernel.instantiate(claim, indices={"tau": nt.tau1})
    return discharge(rs.co.moved(moved, rs.co.some_i), rs.co.some_tau)


BALANCE = {name: f for name, f in rs.HYPOTHESES.items() if name not in ("h >= 0", "l > 0")}
HYPOTHESES = {**BALANCE, "u is an eigenvector of the covariance": EIGENVECTOR, "u is a unit vector": UNIT}
LOWER = Theorem(
    key="residual-linear-lower",
    title="Near balance the pull along an eigenvector is at least the linear one, up to second order",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=LOWER_CLAIM,
    prove=lambda: prove_linear()[0],
)
UPPER = Theorem(
    key="residual-linear-upper",
    title="Near balance the pull along an eigenvector is at most the linear one, up to second order",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=UPPER_CLAIM,
    prove=lambda: prove_linear()[1],
)
TILT = Theorem(
    key="residual-tilt-near",
    title="Near balance the gradient's part across the solution is small",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=BALANCE,
    claim=TILT_CLAIM,
    prove=prove_tilt,
)
PAGES = (LOWER, UPPER, TILT)
