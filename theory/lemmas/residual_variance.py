"""The disorder is at least a variance of the residual's distance from balance.

Under full support, with X = r - r*, q the weights balanced at r* (summing to Phi), the shifts in an interval
of length o and ||A_k - g*^2 M|| <= R_B:

    J >= exp(-(o + 2 R_B ||X||)) ( sum q_k/Phi <A_k - g*^2 M, X>^2 / 2 - o^2/4 ),

and, if every q_k/Phi is at least q_min > 0,

    sum q_k/Phi <A_k - g*^2 M, X>^2 <= (J + o - log q_min)^2 (1/q_min - 1).
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import disorder as di
from theory.lemmas import residual_step as rs
from theory.lemmas.residual_step import Phi, X, height, q, q_k, shift
from theory.lemmas.separator_correlation import at_constraint, sum_constraints
from theory.lemmas.symmetric_divergence import R_B, o
from theory.notation import STATIC as L
from theory.notation import A, M, i, margin, over, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge
from theory.proof.tactics import follows, norm_nonnegative
from theory.proof.terms import Fraction, Term, Vector, eq, exp, inner, log, norm

REFERENCE = "our Theorem C, the contraction"
across = A(i, tau) - margin**2 * M


def variance(x: Vector) -> Term:
    """The variance of the <A_k, x> under the balanced weights."""
    return over(q(i, tau) / Phi * inner(across, x) ** 2)


CLAIM = exp(-(o + 2 * (R_B * norm(X)))) * (Fraction(1, 2) * variance(X) - o**2 / 4) <= rs.disorder(L)


def reach(x: Vector) -> tuple[Proved, Proved]:
    """-R_B ||x|| <= <A_k - g*^2 M, x> <= R_B ||x||."""
    size = norm_nonnegative(x), at_constraint(rs.RADIUS)
    up, down = kernel.cauchy_schwarz(across, x), kernel.cauchy_schwarz(-1 * across, x)
    low = follows(-(R_B * norm(x)) <= inner(across, x), down, size)
    return low, follows(inner(across, x) <= R_B * norm(x), up, size)


def close(claim: Proved, *, bounded: bool = True) -> Proved:
    """A claim of ``disorder`` for c_k/C and q_k/Phi, with y_k = <A_k - g*^2 M, r - r*>."""
    at = ("i", "tau")
    offset = log(Phi) - log(L.C) - height(L.W) - margin**2 * inner(M, X)
    y = inner(across, X)
    claim = kernel.instantiate(
        claim,
        reals={
            "pi": (at, L.c(i, tau) / L.C), "q": (at, q_k / Phi), "x": (at, shift(L)), "y": (at, y),
            "m": offset, "Y": R_B * norm(X),
        },
        vectors={"B": (at, across)},
    )  # fmt: skip
    logs = log(L.c(i, tau) / L.C) - log(q_k / Phi)
    phi = rs.phi_positive()
    centred = follows(eq(over(q_k / Phi * y), 0), (1 / Phi, rs.balanced(X)), nonzero=[phi])
    facts = [follows(eq(logs, shift(L) - y + offset), rs.logarithms()), *(reach(X) if bounded else ())]
    return discharge(claim, *rs.distributions(), *map(co.for_each_constraint, facts), centred)


def prove_variance() -> Proved:
    """The divergence of the coefficients from their limits is at least a variance."""
    return close(di.VARIANCE_BELOW.proved())


VARIANCE = Theorem(
    key="residual-variance",
    title="The disorder is at least a variance of the distance from balance",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={name: f for name, f in rs.HYPOTHESES.items() if name not in ("h >= 0", "l > 0", "gradient")},
    claim=CLAIM,
    prove=prove_variance,
)
q_min = di.q_min
LEAST_WEIGHT, LEAST_POSITIVE = nt.each(q_min <= q_k / Phi), di.LEAST_POSITIVE
FAR_CLAIM = variance(X) <= (rs.disorder(L) + o - log(q_min)) ** 2 * (1 / q_min - 1)


def prove_far() -> Proved:
    """The divergence grows with the standard deviation."""
    return close(di.VARIANCE_ABOVE.proved(), bounded=False)


FAR = Theorem(
    key="residual-far",
    title="The disorder grows with the distance from balance",
    kind="lemma",
    reference="our Theorem B for steps of any length",
    statement=r"For every $W$: {claim}.",
    hypotheses={
        **{
            name: f
            for name, f in VARIANCE.hypotheses.items()
            if name != "R_B bounds the constraints across M"
        },
        "q_min bounds the balanced weights": LEAST_WEIGHT,
        "q_min > 0": LEAST_POSITIVE,
    },
    claim=FAR_CLAIM,
    prove=prove_far,
)
# --- the tilt near balance ---------------------------------------------------------------------------------

lam = di.lam
b = rs.tilt(L)
SPREAD_BOUNDED = variance(b) <= lam * inner(b, b)
TILT_CLAIM = inner(b, b) <= Fraction(1, 2) * (1 + exp(o + 2 * (R_B * norm(X)))) * lam * rs.disorder(L)


def prove_tilt() -> Proved:
    """b is the difference of the means of A_k - g*^2 M under c_k/C and q_k/Phi."""
    claim = close(di.TILT_LOCAL.proved())
    difference: Vector = claim.conclusion[1][1]
    each = rs.same_as_tilt(difference, across)
    square = follows(
        eq(q_k / Phi * inner(across, difference) ** 2, q_k / Phi * inner(across, b) ** 2),
        (q_k / Phi * (inner(across, difference) + inner(across, b)), each),
    )
    ends = rs.same_as_tilt(difference, difference), rs.same_as_tilt(difference, b)
    spread = follows(
        variance(difference) <= lam * inner(difference, difference),
        sum_constraints(square), assume(SPREAD_BOUNDED), *((lam, end) for end in ends),
    )  # fmt: skip
    return follows(TILT_CLAIM, discharge(claim, spread), *ends)


TILT = Theorem(
    key="residual-tilt-local",
    title="Near balance the gradient's part across the solution is bounded by the constraints' spread",
    kind="lemma",
    reference="our Theorem C, the local stability limit",
    statement=r"For every $W$: {claim}.",
    hypotheses={
        **VARIANCE.hypotheses,
        "gradient": L.gradient_is(),
        "lam bounds the spread": SPREAD_BOUNDED,
        "lam > 0": di.SPREAD_POSITIVE,
    },
    claim=TILT_CLAIM,
    prove=prove_tilt,
)
PAGES = (VARIANCE, FAR, TILT)
