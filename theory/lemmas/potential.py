"""The potential of the direction theorem.

psi(u) = u - l/m log(m u + l), for m > 0 and l >= 0, is a concave function of u^2 with slope m/(2 (m u + l)):

    psi(v) - psi(u) <= m (v^2 - u^2)/(2 (m u + l)).

In the theorem u is a norm of the weights, m the margin and l the Lambert-W constant of the alignment lemma.
What the lemma says of one step is the right side, so the gains along the separator add up to psi.
"""

from __future__ import annotations

from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume
from theory.proof.tactics import follows, product_nonnegative, restate, weak, zero
from theory.proof.terms import Formula, Term, log, symbol

REFERENCE = "our Theorem A(iii), the potential argument"
u, v, m, ell = symbol("u"), symbol("v"), symbol("m"), symbol("l")
x = symbol("x")  # between u and v


def psi(u: Term, m: Term, ell: Term) -> Term:
    """u - l/m log(m u + l)."""
    return u - ell / m * log(m * u + ell)


HYPOTHESES = {
    "m > 0": 0 < m,
    "l >= 0": 0 <= ell,
    "u >= 0": 0 <= u,
    "v >= 0": 0 <= v,
    "m u + l > 0": 0 < m * u + ell,
}
CONCAVE_CLAIM = psi(v, m, ell) - psi(u, m, ell) <= m * (v**2 - u**2) / (2 * (m * u + ell))


def prove_concave() -> Proved:
    """psi(x) - m x^2/(2 (m u + l)) grows up to x = u and falls from there."""
    positive, at_u = assume(0 < m), assume(HYPOTHESES["m u + l > 0"])
    some = assume(0 < ell)
    body = psi(x, m, ell) - m * x**2 / (2 * (m * u + ell))
    slope = 1 - ell / m * (m / (m * x + ell)) - m * x / (m * u + ell)

    def side(least: Formula, order: Proved, sign: Formula, between: Proved) -> Proved:
        ends = assume(HYPOTHESES["u >= 0"]), assume(HYPOTHESES["v >= 0"])
        x_nonnegative = follows(0 <= x, *ends, assume(least))
        at_x = follows(0 < m * x + ell, some, (positive, x_nonnegative))
        inverses = product_nonnegative(kernel.inverse_positive(at_x), kernel.inverse_positive(at_u))
        weight = product_nonnegative(product_nonnegative(kernel.square(m), x_nonnegative), weak(inverses))
        signed = follows(sign, (weight, between), nonzero=[positive, at_x, at_u])
        moved = kernel.monotone(signed, order, x, body, [at_x])
        return restate(CONCAVE_CLAIM, moved, nonzero=[at_u])

    below = side(v <= x, weak(assume(v < u)), 0 <= slope, assume(x <= u))
    above = side(u <= x, assume(u <= v), slope <= 0, assume(u <= x))
    return kernel.cases(without_constant(), kernel.cases(above, below, u, v), ell, zero())


def without_constant() -> Proved:
    """At l = 0, psi(u) = u: u (v - u) <= (v^2 - u^2)/2."""
    none = kernel.antisymmetry(assume(ell <= zero()), assume(HYPOTHESES["l >= 0"]))
    at_u = assume(HYPOTHESES["m u + l > 0"])
    weight = product_nonnegative(weak(assume(0 < m)), weak(kernel.inverse_positive(at_u)))
    return follows(
        CONCAVE_CLAIM, (weight, kernel.square(v - u)),
        ((v - u) / (m * u + ell), none), ((log(m * v + ell) - log(m * u + ell)) / m, none),
        nonzero=[at_u, assume(0 < m)],
    )  # fmt: skip


CONCAVE = Theorem(
    key="potential-concave",
    title="The potential is concave in the squared norm",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=HYPOTHESES,
    claim=CONCAVE_CLAIM,
    prove=prove_concave,
)
