"""Polyak steps tend to 1/(2 g*): they know the margin without being told.

With Q = ||D||/C (the gradient per unit of its mass; Q^2 = g*^2 + ||b||^2 under full support) and every
p_i >= p_min > 0, G_i <= G_max, the step without its cap lies in

    exp(-G_max (1 - p_min))/(2 Q) <= (L - L*)/(2 ||grad L||) <= 1/(2 p_min Q).

As attention concentrates p_min tends to 1, and where the residual converges (Theorem C) b tends to 0 and Q to
g*: so the step tends to 1/(2 g*), E_t/t with it, and t^2 (1 - cos_t) to 2 g*^2 ||r*||^2.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import shifts
from theory.lemmas.gradient_size import MASS
from theory.notation import STATIC as L
from theory.notation import G, g, i
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume
from theory.proof.tactics import (
    exp_monotone,
    follows,
    product_nonnegative,
    weak,
)
from theory.proof.terms import exp, norm
from theory.theorems import loss, polyak
from theory.theorems.polyak import p_min, uncapped

REFERENCE = "our corollaries of Theorem C; the paper's Polyak step-size"
G_max = shifts.G_max
Q = norm(L.descent) / L.C
ratio = exp(G_max * (1 - p_min))
LOWER_CLAIM = 1 / (2 * ratio * Q) <= uncapped(L)
UPPER_CLAIM = uncapped(L) <= 1 / (2 * p_min * Q)


def mass_positive() -> Proved:
    """0 < C."""
    return co.MASS_POSITIVE.proved()


def slope_near_limit() -> Proved:
    """a_i <= ratio w_i: the slope grows by at most exp(G_i (1 - p_i)) as attention falls from 1."""
    low, high = co.MARGIN_SCORE, g(i) + G(i)
    gap = weak(co.at_sequence(nt.SCORE_GAPS))
    missing, bound = co.at_sequence(polyak.ATTENTION_AT_LEAST), co.at_sequence(shifts.GAPS_BOUNDED)
    spare = follows(0 <= 1 - p_min, missing, co.attention_at_most_one())
    largest = exp_monotone(follows(high - low <= G_max * (1 - p_min), (gap, missing), (spare, bound)))
    order = follows(low <= high, (gap, co.attention_at_most_one()))
    now, then = co.denominator_positive(low), co.denominator_positive(high)
    above = follows(
        1 + exp(high) <= exp(high - low) * (1 + exp(low)), exp_monotone(follows(0 <= high - low, order))
    )
    grown = follows(1 + exp(high) <= ratio * (1 + exp(low)), above, (now, largest))
    weight = product_nonnegative(
        co.pull(), product_nonnegative(kernel.inverse_positive(now), kernel.inverse_positive(then))
    )
    return follows(
        L.a(i) <= ratio * loss.limit_slope(),
        (weak(weight), grown), co.at_sequence(L.slope_is()), (G(i), co.factored(low)), nonzero=[now, then],
    )  # fmt: skip


def prove_lower() -> Proved:
    """C = sum a_i p_i (1 - p_i) <= ratio sum w_i (1 - p_i) <= ratio (L - L*)."""
    missing = loss.missing_nonnegative()
    full = product_nonnegative(weak(co.slope_positive()), product_nonnegative(missing, missing))
    each = follows(
        L.a(i) * L.p(i) * (1 - L.p(i)) <= ratio * loss.limit_slope() * (1 - L.p(i)),
        (missing, slope_near_limit()), full,
    )  # fmt: skip
    mass = follows(
        L.C <= ratio * loss.excess(L),
        MASS.proved(), kernel.sum_order(each, i, nt.SEQUENCES),
        (weak(kernel.exp_positive(G_max * (1 - p_min))), loss.prove_lower()),
    )  # fmt: skip
    size, some = assume(polyak.GRADIENT_NONZERO), mass_positive()
    inverses = product_nonnegative(
        kernel.inverse_positive(size), kernel.inverse_positive(kernel.exp_positive(G_max * (1 - p_min)))
    )
    return follows(LOWER_CLAIM, (weak(inverses), mass), nonzero=[size, some])


def prove_upper() -> Proved:
    """p_min (L - L*) <= C."""
    slack = follows(0 <= L.p(i) - p_min, co.at_sequence(polyak.ATTENTION_AT_LEAST))
    pull = product_nonnegative(weak(co.slope_positive()), loss.missing_nonnegative())
    each = follows(p_min * L.a(i) * (1 - L.p(i)) <= L.a(i) * L.p(i) * (1 - L.p(i)), (pull, slack))
    attention = assume(polyak.ATTENTION_BOUND_POSITIVE)
    mass = follows(
        p_min * loss.excess(L) <= L.C,
        (weak(attention), loss.prove_upper()), kernel.sum_order(each, i, nt.SEQUENCES), MASS.proved(),
    )  # fmt: skip
    size, some = assume(polyak.GRADIENT_NONZERO), mass_positive()
    inverses = product_nonnegative(kernel.inverse_positive(attention), kernel.inverse_positive(size))
    return follows(UPPER_CLAIM, (weak(inverses), mass), nonzero=[size, some, attention])


DEFINITIONS = {
    **{name: co.HYPOTHESES[name] for name in (*co.DEFINITIONS, "C", *co.EXISTS)},
    "gradient is not 0": polyak.GRADIENT_NONZERO,
    "p_min bounds the attention": polyak.ATTENTION_AT_LEAST,
}
LOWER = Theorem(
    key="polyak-limit-lower",
    title="A Polyak step is at least half the inverse of the gradient's norm per unit of mass, in the limit",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={**DEFINITIONS, "G_max bounds the score gaps": shifts.GAPS_BOUNDED},
    claim=LOWER_CLAIM,
    prove=prove_lower,
)
UPPER = Theorem(
    key="polyak-limit-upper",
    title="A Polyak step is at most half the inverse of the gradient's norm per unit of mass, in the limit",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={**DEFINITIONS, "p_min > 0": polyak.ATTENTION_BOUND_POSITIVE},
    claim=UPPER_CLAIM,
    prove=prove_upper,
)
PAGES = (LOWER, UPPER)
