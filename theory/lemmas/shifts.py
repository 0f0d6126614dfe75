"""Under equal non-optimal scores the coefficients reach their limit form exponentially fast in the gaps.

c_k = a_i p_i^2 exp(-mu_k), and w_i = G_i sigma(-g_i - G_i)/n is a_i p_i^2 at full attention. If every logit
gap is at least b and G_i <= G_max, then with shift_k = log(c_k/(w_i exp(-mu_k)))

    -2 (T - 1) exp(-b) <= shift_k <= G_max (T - 1) exp(-b).
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import max_margin
from theory.lemmas import residual_step as rs
from theory.lemmas.separator_correlation import at_constraint
from theory.notation import STATIC as L
from theory.notation import G, T, g, i, n, others, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, congruence, sum_order
from theory.proof.tactics import (
    exp_monotone,
    follows,
    log_monotone,
    log_product,
    log_quotient,
    log_tangent,
    product_nonnegative,
    weak,
)
from theory.proof.terms import Formula, Term, eq, exp, log, real, substitute, symbol
from theory.theorems.loss import limit_slope

REFERENCE = "our Theorem B, equal scores"
G_max = symbol("G_max")
b = max_margin.b
GAPS_BOUNDED = nt.each_sequence(G(i) <= G_max)
leak = (T - 1) * exp(-b)
LIMIT_SHARE = {"w": (("i", "tau"), limit_slope())}


def shift(now: nt.Layer) -> Term:
    """log(c_k/(w_i exp(-mu_k)))."""
    return substitute(rs.shift(now), reals=LIMIT_SHARE)


LOWER, UPPER = -2 * leak <= shift(L), shift(L) <= G_max * leak  # at the generic constraint


def crowd_bounded() -> Proved:
    """s_i <= (T - 1) exp(-b)."""
    gap = at_constraint(max_margin.GAPS_AT_LEAST)
    each = exp_monotone(follows(-L.gap(i, tau) <= -b, gap))
    return follows(
        co.others_weight() <= leak,
        sum_order(each, tau, others(i)),
        (weak(kernel.exp_positive(-b)), co.at_sequence(nt.LENGTH_BOUND)),
    )


def attention_logarithm() -> tuple[Proved, Proved]:
    """-s_i <= log p_i <= 0, as p_i (1 + s_i) = 1."""
    s, p = co.others_weight(), L.p(i)
    partition, positive = co.partition_positive(), co.attention_positive()
    unit = follows(eq(p * (1 + s), 1), (1 + s, co.at_sequence(L.attention_is())), nonzero=[partition])
    hole = symbol("x")
    no_loss = congruence(unit, log(hole), hole)
    one = kernel.log_exp(real(0))  # log 1 = 0
    split = log_product(positive, partition)
    low = follows(-s <= log(p), log_tangent(partition), split, no_loss, one)
    high = follows(log(p) <= 0, log_tangent(positive), co.attention_at_most_one())
    return low, high


def missing_attention() -> Proved:
    """1 - p_i <= s_i: p_i (1 + s_i) = 1."""
    s, partition = co.others_weight(), co.partition_positive()
    return follows(
        1 - L.p(i) <= s,
        (kernel.inverse_positive(partition), kernel.square(s)), co.at_sequence(L.attention_is()),
        nonzero=[partition],
    )  # fmt: skip


def slope_logarithm() -> tuple[Proved, Proved]:
    """0 <= log a_i - log w_i <= G_i (1 - p_i): log(1 + exp) grows, with slope at most 1."""
    low, high = co.MARGIN_SCORE, g(i) + G(i)
    gap = weak(co.at_sequence(nt.SCORE_GAPS))
    order = follows(low <= high, (gap, co.attention_at_most_one()))
    at_low, at_high = co.denominator_positive(low), co.denominator_positive(high)
    hole = symbol("x")
    slope = follows(
        eq(L.a(i), G(i) / n / (1 + exp(low))), co.at_sequence(L.slope_is()), (G(i), co.factored(low))
    )
    parts = (
        congruence(slope, log(hole), hole),
        log_quotient(co.pull(), at_low), log_quotient(co.pull(), at_high),
    )  # fmt: skip
    difference = log(L.a(i)) - log(limit_slope())
    grows = log_monotone(follows(1 + exp(low) <= 1 + exp(high), exp_monotone(order)), at_low)
    above = follows(
        1 + exp(high) <= exp(high - low) * (1 + exp(low)),
        exp_monotone(follows(0 <= high - low, order)),
    )
    bounded = log_monotone(above, at_high)
    split = (log_product(kernel.exp_positive(high - low), at_low), kernel.log_exp(high - low))
    return (
        follows(0 <= difference, grows, *parts),
        follows(difference <= G(i) * (1 - L.p(i)), bounded, *split, *parts),
    )


def coefficient_logarithm() -> Proved:
    """log c_k = log a_i + 2 log p_i - mu_k."""
    p, decay = co.attention_positive(), kernel.exp_positive(-L.gap(i, tau))
    slope = co.slope_positive()
    hole = symbol("x")
    square = product_nonnegative(p, p)
    whole = product_nonnegative(slope, square)
    definition = follows(
        eq(L.c(i, tau), L.a(i) * (L.p(i) * L.p(i)) * exp(-L.gap(i, tau))), at_constraint(L.coefficient_is())
    )
    return follows(
        eq(log(L.c(i, tau)), log(L.a(i)) + 2 * log(L.p(i)) - L.gap(i, tau)),
        congruence(definition, log(hole), hole),
        log_product(whole, decay), log_product(slope, square), log_product(p, p),
        kernel.log_exp(-L.gap(i, tau)),
    )  # fmt: skip


def prove_lower() -> Proved:
    """The slope only helps; twice log p_i >= -s_i."""
    claim = follows(
        LOWER,
        slope_logarithm()[0], attention_logarithm()[0], coefficient_logarithm(), crowd_bounded(),
    )  # fmt: skip
    return co.for_each_constraint(claim)


def prove_upper() -> Proved:
    """The attention only helps; G_i (1 - p_i) <= G_max s_i."""
    gap, bound = weak(co.at_sequence(nt.SCORE_GAPS)), co.at_sequence(GAPS_BOUNDED)
    largest = follows(0 <= G_max, gap, bound)
    missing = follows(G(i) * (1 - L.p(i)) <= G(i) * co.others_weight(), (gap, missing_attention()))
    claim = follows(
        UPPER,
        slope_logarithm()[1], attention_logarithm()[1], coefficient_logarithm(), missing,
        (co.others_nonnegative(), bound), (largest, crowd_bounded()),
    )  # fmt: skip
    return co.for_each_constraint(claim)


HYPOTHESES: dict[str, Formula] = {
    **{name: co.HYPOTHESES[name] for name in co.DEFINITIONS},
    "T bounds the lengths": nt.LENGTH_BOUND,
    "gaps are at least b": max_margin.GAPS_AT_LEAST,
    "G_max bounds the score gaps": GAPS_BOUNDED,
}
BELOW = Theorem(
    key="shift-lower",
    title="The coefficients are at most exponentially below their limit form",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $b$: {claim}.",
    hypotheses=without(HYPOTHESES, "G_max bounds the score gaps"),
    claim=nt.each(LOWER),
    prove=prove_lower,
)
ABOVE = Theorem(
    key="shift-upper",
    title="The coefficients are at most exponentially above their limit form",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $b$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.each(UPPER),
    prove=prove_upper,
)
PAGES = (BELOW, ABOVE)
