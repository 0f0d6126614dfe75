"""Unequal scores: once attention is past a threshold the coefficients have a limit form of their own.

The general coefficient is c_k = sigma(-m_i) phi_k (m_i - g_(i,tau))/n with phi_k = p_i exp(-mu_k); its limit
weight is w_k = sigma(-g_(i,o_i)) (g_(i,o_i) - g_(i,tau))/n. Let every logit gap be at least b, all score gaps
lie in [gam, Gam], gam > 0, and leak = (T - 1) exp(-b) with 2 Gam leak <= gam. Then c_k > 0 and

    -(1 + 2 Gam/gam) leak <= log(c_k/(w_k exp(-mu_k))) <= Gam leak.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import max_margin
from theory.lemmas import residual_step as rs
from theory.lemmas.separator_correlation import at_constraint
from theory.lemmas.shifts import attention_logarithm, crowd_bounded, leak
from theory.notation import STATIC as L
from theory.notation import i, n, optimal_score, others, score, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, sum_order
from theory.proof.tactics import (
    exp_monotone,
    follows,
    inverse_order,
    log_monotone,
    log_product,
    log_quotient,
    log_secant,
    product_nonnegative,
    weak,
)
from theory.proof.terms import Fraction, Index, Term, eq, exp, log, substitute, symbol, total

REFERENCE = "our Theorem B, unequal scores"
half = Fraction(1, 2)
gam, Gam = symbol("gam"), symbol("Gam")
best, g_k = optimal_score(i), score(i, tau)


def mean(i: Index, at: nt.Layer = L) -> Term:
    """m_i, the mean of the scores under the attention."""
    return symbol("m", *at._ix(), i)


def mean_is(at: nt.Layer) -> nt.Formula:
    """Definition: m_i = p_i (g_(i,o_i) + the sum of exp(-mu) g over the others)."""
    weighted = total(tau, others(i), exp(-at.gap(i, tau)) * g_k)
    return nt.each_sequence(eq(mean(i, at), at.p(i) * (best + weighted)))


def coefficient_is(at: nt.Layer) -> nt.Formula:
    """Gradient formula: c_k = p_i exp(-mu_k) (m_i - g_(i,tau)) sigma(-m_i)/n."""
    m = mean(i, at)
    pull = at.p(i) * exp(-at.gap(i, tau)) * (m - g_k) / n / (1 + exp(m))
    return nt.each(eq(at.c(i, tau), pull))


LIMIT = (best - g_k) / n / (1 + exp(best))
LIMIT_SHARE = {"w": (("i", "tau"), LIMIT)}
SCORE_GAPS_LOWER, SCORE_GAPS_UPPER = nt.each(gam <= best - g_k), nt.each(best - g_k <= Gam)
SCORE_GAP_POSITIVE = 0 < gam
THRESHOLD = 2 * Gam * leak <= gam
HYPOTHESES = {
    "p": L.attention_is(),
    "m": mean_is(L),
    "c": coefficient_is(L),
    "n > 0": co.DATA_SIZE_POSITIVE,
    "T bounds the lengths": nt.LENGTH_BOUND,
    "gaps are at least b": max_margin.GAPS_AT_LEAST,
    "score gaps are at least gam": SCORE_GAPS_LOWER,
    "score gaps are at most Gam": SCORE_GAPS_UPPER,
    "gam > 0": SCORE_GAP_POSITIVE,
    "attention is past its threshold": THRESHOLD,
}


def shift(now: nt.Layer) -> Term:
    """log(c_k/(w_k exp(-mu_k)))."""
    return substitute(rs.shift(now), reals=LIMIT_SHARE)


LOWER = -(1 + 2 * Gam / gam) * leak <= shift(L)
UPPER = shift(L) <= Gam * leak


def missing_score() -> tuple[Proved, Proved]:
    """0 <= g_(i,o_i) - m_i <= Gam leak: it is p_i times the sum of exp(-mu) (g_(i,o_i) - g), and p_i <= 1."""
    decay = weak(kernel.exp_positive(-L.gap(i, tau)))
    low = at_constraint(SCORE_GAPS_LOWER)
    pulled = total(tau, others(i), exp(-L.gap(i, tau)) * (best - g_k))
    positive = follows(0 <= best - g_k, low, assume(SCORE_GAP_POSITIVE))
    least = sum_order(follows(0 <= exp(-L.gap(i, tau)) * (best - g_k), (decay, positive)), tau, others(i))
    partition, attention = co.partition_positive(), co.at_sequence(L.attention_is())
    unit = follows(
        eq(L.p(i) * (1 + co.others_weight()), 1), (1 + co.others_weight(), attention), nonzero=[partition]
    )
    missing = follows(eq(best - mean(i), L.p(i) * pulled), co.at_sequence(mean_is(L)), (best, unit))
    share, at_most_one = weak(co.attention_positive()), co.attention_at_most_one()
    nonnegative = follows(0 <= pulled, least)
    return (
        follows(0 <= best - mean(i), missing, (share, nonnegative)),
        follows(best - mean(i) <= pulled, missing, (nonnegative, at_most_one)),
    )


def missing_at_most() -> Proved:
    """g_(i,o_i) - m_i <= Gam leak, at the generic constraint."""
    decay, high = weak(kernel.exp_positive(-L.gap(i, tau))), at_constraint(SCORE_GAPS_UPPER)
    each = follows(exp(-L.gap(i, tau)) * (best - g_k) <= Gam * exp(-L.gap(i, tau)), (decay, high))
    summed = sum_order(each, tau, others(i))
    largest = follows(0 <= Gam, assume(SCORE_GAP_POSITIVE), at_constraint(SCORE_GAPS_LOWER), high)
    return follows(best - mean(i) <= Gam * leak, missing_score()[1], summed, (largest, crowd_bounded()))


def half_gap() -> Proved:
    """gam/2 <= m_i - g_(i,tau)."""
    low = at_constraint(SCORE_GAPS_LOWER)
    return follows(half * gam <= mean(i) - g_k, low, missing_at_most(), (half, assume(THRESHOLD)))


def pull_positive() -> Proved:
    """0 < m_i - g_(i,tau)."""
    return follows(0 < mean(i) - g_k, half_gap(), (half, assume(SCORE_GAP_POSITIVE)))


def gap_positive() -> Proved:
    """0 < g_(i,o_i) - g_(i,tau)."""
    return follows(0 < best - g_k, at_constraint(SCORE_GAPS_LOWER), assume(SCORE_GAP_POSITIVE))


def prove_positive() -> Proved:
    """Every factor of c_k is positive."""
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    sigmoid = kernel.inverse_positive(co.denominator_positive(mean(i)))
    attention = product_nonnegative(co.attention_positive(), kernel.exp_positive(-L.gap(i, tau)))
    pull = product_nonnegative(
        product_nonnegative(attention, pull_positive()), product_nonnegative(size, sigmoid)
    )
    return co.for_each_constraint(follows(0 < L.c(i, tau), pull, at_constraint(coefficient_is(L))))


def logarithms() -> Proved:
    """shift_k = log p_i + log(m - g) - log(g_o - g) + log(1 + exp(g_o)) - log(1 + exp(m))."""
    m, hole = mean(i), symbol("x")
    p, decay, pull = co.attention_positive(), kernel.exp_positive(-L.gap(i, tau)), pull_positive()
    size, gap = assume(co.DATA_SIZE_POSITIVE), gap_positive()
    now, then = co.denominator_positive(m), co.denominator_positive(best)
    attention = product_nonnegative(p, decay)
    top = product_nonnegative(attention, pull)
    per_sample = product_nonnegative(top, kernel.inverse_positive(size))
    limit = product_nonnegative(gap, kernel.inverse_positive(size))
    whole = congruence(at_constraint(coefficient_is(L)), log(hole), hole)
    return follows(
        eq(
            shift(L),
            log(L.p(i)) + log(m - g_k) - log(best - g_k) + log(1 + exp(best)) - log(1 + exp(m)),
        ),
        whole, log_quotient(per_sample, now), log_quotient(top, size), log_product(attention, pull),
        log_product(p, decay), kernel.log_exp(-L.gap(i, tau)),
        log_quotient(limit, then), log_quotient(gap, size),
    )  # fmt: skip


def slope_logarithm() -> tuple[Proved, Proved]:
    """0 <= log(1 + exp(g_o)) - log(1 + exp(m)) <= g_o - m: log(1 + exp) grows, with slope at most 1."""
    m = mean(i)
    order = follows(m <= best, missing_score()[0])
    now, then = co.denominator_positive(m), co.denominator_positive(best)
    grows = log_monotone(follows(1 + exp(m) <= 1 + exp(best), exp_monotone(order)), now)
    lifted = kernel.exp_positive(best - m)
    above = follows(
        1 + exp(best) <= exp(best - m) * (1 + exp(m)), exp_monotone(follows(0 <= best - m, order))
    )
    bounded = log_monotone(above, then)
    return (
        follows(0 <= log(1 + exp(best)) - log(1 + exp(m)), grows),
        follows(
            log(1 + exp(best)) - log(1 + exp(m)) <= best - m,
            bounded, log_product(lifted, now), kernel.log_exp(best - m),
        ),
    )  # fmt: skip


def prove_lower() -> Proved:
    """The slope only helps; log p_i >= -leak; log(g_o - g) - log(m - g) <= (g_o - m)/(m - g)."""
    gap, threshold = pull_positive(), assume(SCORE_GAP_POSITIVE)
    secant = log_secant(gap, gap_positive())
    halved = follows(0 < half * gam, threshold)
    steep = inverse_order(half_gap(), halved)
    lost = weak(kernel.inverse_positive(gap))
    reach = follows(0 <= Gam * leak, missing_score()[0], missing_at_most())
    return co.for_each_constraint(
        follows(
            LOWER,
            logarithms(), slope_logarithm()[0], attention_logarithm()[0], crowd_bounded(), secant,
            (lost, missing_at_most()), (reach, steep), nonzero=[gap, threshold],
        )
    )  # fmt: skip


def prove_upper() -> Proved:
    """log p_i <= 0 and m <= g_o: only the slope hurts."""
    order = log_monotone(follows(mean(i) - g_k <= best - g_k, missing_score()[0]), pull_positive())
    return co.for_each_constraint(
        follows(UPPER, logarithms(), slope_logarithm()[1], attention_logarithm()[1], order, missing_at_most())
    )


POSITIVE = Theorem(
    key="unequal-coefficients-positive",
    title="Past the threshold every constraint pulls, whatever the scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $b$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.each(0 < L.c(i, tau)),
    prove=prove_positive,
)
BELOW = Theorem(
    key="unequal-shift-lower",
    title="Past the threshold the coefficients are at most exponentially below their limit form",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $b$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.each(LOWER),
    prove=prove_lower,
)
ABOVE = Theorem(
    key="unequal-shift-upper",
    title="Past the threshold the coefficients are at most exponentially above their limit form",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $b$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.each(UPPER),
    prove=prove_upper,
)
PAGES = (POSITIVE, BELOW, ABOVE)
