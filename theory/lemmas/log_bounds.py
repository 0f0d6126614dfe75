"""Three inequalities about logarithms, for the direction theorem in terms of the path length alone.

*The bound falls with the norm.* For m, a > 0 and l, k >= 0 and B(u) = a + l/m log((m u + l)/(m a + l)) + k,
the quotient B(u)/u decreases in u > 0: a guaranteed norm may stand for the norm.

*The bound grows with the first step a.* So a longest step may stand for the first.

*Midpoint.* 2 h/y <= log(y + h) - log(y - h) for 0 <= h < y: a term of a harmonic sum is at most the integral
of 1/x around it, that function being convex.
"""

from __future__ import annotations

from theory.lemmas.potential import ell, m, u, x
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume
from theory.proof.tactics import follows, log_quotient, log_secant, product_nonnegative, restate, weak, zero
from theory.proof.terms import Term, log, symbol

REFERENCE = "our Theorem A(iii), the a-priori form"
a, b, k, y, h = (symbol(name) for name in "abkyh")


def bracket(size: Term, first: Term, rest: Term, m: Term, ell: Term) -> Term:
    """a + l/m log((m u + l)/(m a + l)) + k, at norm ``size``, first step a = ``first`` and k = ``rest``."""
    return first + ell / m * log((m * size + ell) / (m * first + ell)) + rest


FALLS_HYPOTHESES = {
    "m > 0": 0 < m,
    "l >= 0": 0 <= ell,
    "a > 0": 0 < a,
    "k >= 0": 0 <= k,
    "x > 0": 0 < x,
    "x <= u": x <= u,
}
FALLS_CLAIM = bracket(u, a, k, m, ell) / u <= bracket(x, a, k, m, ell) / x


def prove_falls() -> Proved:
    """Secants of log at m x + l: x B(u) <= u B(x) because (u - x) (k + m x a/(m x + l)) >= 0."""
    margin, constant, first, rest, low, order = map(assume, FALLS_HYPOTHESES.values())
    high = follows(0 < u, low, order)

    def argument(size: Term, positive: Proved) -> Proved:
        return follows(0 < m * size + ell, (margin, positive), constant)

    at_a, at_x, at_u = argument(a, first), argument(x, low), argument(u, high)
    factor = product_nonnegative(constant, kernel.inverse_positive(margin))
    apart = follows(0 <= u - x, order)
    slack = product_nonnegative(
        product_nonnegative(product_nonnegative(margin, low), first), kernel.inverse_positive(at_x)
    )
    crossed = follows(
        x * bracket(u, a, k, m, ell) <= u * bracket(x, a, k, m, ell),
        (product_nonnegative(factor, weak(low)), log_secant(at_x, at_u)),
        (product_nonnegative(factor, apart), log_secant(at_x, at_a)),
        (apart, rest), (weak(slack), apart),
        (ell / m * x, log_quotient(at_u, at_a)), (ell / m * u, log_quotient(at_x, at_a)),
        nonzero=[margin, at_x],
    )  # fmt: skip
    shrink = product_nonnegative(kernel.inverse_positive(low), kernel.inverse_positive(high))
    return follows(FALLS_CLAIM, (shrink, crossed), nonzero=[low, high])


GROWS_HYPOTHESES = {"m > 0": 0 < m, "l >= 0": 0 <= ell, "a > 0": 0 < a, "a <= b": a <= b, "x > 0": 0 < x}
GROWS_CLAIM = bracket(x, a, k, m, ell) <= bracket(x, b, k, m, ell)


def prove_grows() -> Proved:
    """l/m (log(m b + l) - log(m a + l)) <= l (b - a)/(m a + l) <= b - a, by the secant at m a + l."""
    margin, constant, first, order, low = map(assume, GROWS_HYPOTHESES.values())
    longer = follows(0 < b, first, order)
    at_a, at_b, at_x = (
        follows(0 < m * size + ell, (margin, positive), constant)
        for size, positive in ((a, first), (b, longer), (x, low))
    )
    factor = product_nonnegative(constant, kernel.inverse_positive(margin))
    slack = product_nonnegative(product_nonnegative(margin, first), kernel.inverse_positive(at_a))
    return follows(
        GROWS_CLAIM,
        (factor, log_secant(at_a, at_b)), (weak(slack), follows(0 <= b - a, order)),
        (ell / m, log_quotient(at_x, at_a)), (ell / m, log_quotient(at_x, at_b)),
        nonzero=[margin, at_a],
    )  # fmt: skip


MIDPOINT_HYPOTHESES = {"h >= 0": 0 <= h, "h < y": h < y}
MIDPOINT_CLAIM = 2 * h / y <= log(y + h) - log(y - h)


def prove_midpoint() -> Proved:
    """In h the difference starts at 0 and its slope is 2 h^2/(y (y^2 - h^2)) >= 0."""
    start, top = assume(zero() <= x), assume(x <= h)
    inside = assume(MIDPOINT_HYPOTHESES["h < y"])
    right, left = follows(0 < y + x, start, top, inside), follows(0 < y - x, start, top, inside)
    middle = follows(0 < y, start, top, inside)
    inverses = product_nonnegative(
        product_nonnegative(kernel.inverse_positive(right), kernel.inverse_positive(left)),
        kernel.inverse_positive(middle),
    )
    slope = 1 / (y + x) + 1 / (y - x) - 2 / y
    grows = follows(0 <= slope, (weak(inverses), kernel.square(x)), nonzero=[right, left, middle])
    body = log(y + x) - log(y - x) - 2 * x / y
    moved = kernel.monotone(grows, assume(MIDPOINT_HYPOTHESES["h >= 0"]), x, body, [right, left])
    return restate(MIDPOINT_CLAIM, moved)


FALLS = Theorem(
    key="bracket-falls",
    title="The direction bound falls with the norm",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=FALLS_HYPOTHESES,
    claim=FALLS_CLAIM,
    prove=prove_falls,
)
GROWS = Theorem(
    key="bracket-grows",
    title="The direction bound grows with the first step",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=GROWS_HYPOTHESES,
    claim=GROWS_CLAIM,
    prove=prove_grows,
)
MIDPOINT = Theorem(
    key="log-midpoint",
    title="A harmonic term is at most the integral around it",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=MIDPOINT_HYPOTHESES,
    claim=MIDPOINT_CLAIM,
    prove=prove_midpoint,
)
PAGES = (FALLS, GROWS, MIDPOINT)
