"""The coefficients' limit form when some constraints do not support M, whatever the scores.

J_i are the tokens of the support, K_i the others: both take attention. c_k = p_i exp(-mu_k)
(m_i - g_(i,tau)) sigma(-m_i)/n, and w_k = sigma(-g_(i,o_i)) (g_(i,o_i) - g_(i,tau))/n is its limit weight.
Let every logit gap be at least b, all score gaps lie in [gam, Gam], gam > 0, and leak = (T - 1) exp(-b) with
2 Gam leak <= gam. Then for the tokens of the support and for the others c_k > 0 and

    -(1 + 2 Gam/gam) leak <= log(c_k/(w_k exp(-mu_k))) <= Gam leak.
"""

from __future__ import annotations

from dataclasses import dataclass

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import max_margin
from theory.lemmas import shifts_unequal as su
from theory.lemmas.separator_correlation import in_i, in_tau
from theory.lemmas.shifts_unequal import Gam, gam, half, mean
from theory.lemmas.support_step import in_rest, rest
from theory.notation import STATIC as L
from theory.notation import T, i, n, optimal_score, others, score, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, generalize, sum_order
from theory.proof.tactics import (
    everywhere,
    exp_monotone,
    follows,
    inverse_order,
    log_monotone,
    log_product,
    log_quotient,
    log_secant,
    log_tangent,
    one_positive,
    product_nonnegative,
    weak,
)
from theory.proof.terms import Domain, Formula, Term, eq, exp, forall, inv, log, real, total

REFERENCE = "our Theorem B, the extension without full support"
b = max_margin.b
leak = (T - 1) * exp(-b)
best, g_k = optimal_score(i), score(i, tau)


@dataclass(frozen=True)
class Part:
    """The tokens of the support, or the others: a domain of each sequence."""

    name: str
    domain: Domain
    inside: Proved

    def each(self, body: Formula) -> Formula:
        """``body`` for every constraint of this part."""
        return forall(i, nt.SEQUENCES, forall(tau, self.domain, body))

    def at(self, formula: Formula) -> Proved:
        """A hypothesis about every constraint of this part, at the generic one."""
        return self.at_claim(assume(formula))

    def at_claim(self, claim: Proved) -> Proved:
        """A claim about every constraint of this part, at the generic one."""
        return everywhere(claim, (i, in_i), (tau, self.inside))

    def for_each(self, claim: Proved) -> Proved:
        """A claim about the generic constraint of this part, for every one."""
        return generalize(generalize(claim, tau, self.domain), i, nt.SEQUENCES)


SUPPORT, REST = Part("support", others(i), in_tau), Part("rest", rest(i), in_rest)
PARTS = (SUPPORT, REST)


def both(body: Term) -> Term:
    """The sum of ``body`` over all the other tokens of sequence i, of the support and not."""
    return total(tau, others(i), body) + total(tau, rest(i), body)


def sum_both(claim_for: dict[str, Proved]) -> list[Proved]:
    """A claim about the generic constraint of each part, summed over the part of sequence i."""
    return [sum_order(claim_for[part.name], tau, part.domain) for part in PARTS]


def attention_is(at: nt.Layer) -> Formula:
    """Definition: p_i = 1/(1 + the sum of exp(-mu) over all the other tokens)."""
    return nt.each_sequence(eq(at.p(i), inv(1 + both(exp(-at.gap(i, tau))))))


def mean_is(at: nt.Layer) -> Formula:
    """Definition: m_i = p_i (g_(i,o_i) + the sum of exp(-mu) g over all the others)."""
    return nt.each_sequence(eq(mean(i, at), at.p(i) * (best + both(exp(-at.gap(i, tau)) * g_k))))


def coefficient_is(at: nt.Layer, part: Part) -> Formula:
    """Gradient formula: c_k = p_i exp(-mu_k) (m_i - g_(i,tau)) sigma(-m_i)/n."""
    m = mean(i, at)
    pull = at.p(i) * exp(-at.gap(i, tau)) * (m - g_k) / n / (1 + exp(m))
    return part.each(eq(at.c(i, tau), pull))


LENGTH_BOUND = nt.each_sequence(1 + both(real(1)) <= T)
GAPS = {part.name: part.each(b <= L.gap(i, tau)) for part in PARTS}
LOWER_GAPS = {part.name: part.each(gam <= best - g_k) for part in PARTS}
UPPER_GAPS = {part.name: part.each(best - g_k <= Gam) for part in PARTS}
THRESHOLD = 2 * Gam * leak <= gam
COMMON: dict[str, Formula] = {
    "p": attention_is(L),
    "m": mean_is(L),
    "n > 0": co.DATA_SIZE_POSITIVE,
    "T bounds the lengths": LENGTH_BOUND,
    **{f"gaps of the {part.name} are at least b": GAPS[part.name] for part in PARTS},
    **{f"score gaps of the {part.name} are at least gam": LOWER_GAPS[part.name] for part in PARTS},
    **{f"score gaps of the {part.name} are at most Gam": UPPER_GAPS[part.name] for part in PARTS},
    "gam > 0": su.SCORE_GAP_POSITIVE,
    "attention is past its threshold": THRESHOLD,
}
crowd = both(exp(-L.gap(i, tau)))


# --- one sequence ------------------------------------------------------------------------------------------


def decay() -> Proved:
    """0 <= exp(-mu_k)."""
    return weak(kernel.exp_positive(-L.gap(i, tau)))


def crowd_nonnegative() -> Proved:
    """0 <= s_i."""
    return follows(0 <= crowd, *sum_both(dict.fromkeys(("support", "rest"), decay())))


def partition_positive() -> Proved:
    """0 < 1 + s_i."""
    return follows(0 < 1 + crowd, crowd_nonnegative(), one_positive())


def crowd_bounded() -> Proved:
    """s_i <= (T - 1) exp(-b)."""
    each = {
        part.name: exp_monotone(follows(-L.gap(i, tau) <= -b, part.at(GAPS[part.name]))) for part in PARTS
    }
    length = co.at_sequence(LENGTH_BOUND)
    return follows(crowd <= leak, *sum_both(each), (weak(kernel.exp_positive(-b)), length))


def attention_positive() -> Proved:
    """0 < p_i."""
    inverse = kernel.inverse_positive(partition_positive())
    return follows(0 < L.p(i), inverse, co.at_sequence(attention_is(L)))


def attention_unit() -> Proved:
    """p_i (1 + s_i) = 1."""
    definition = (1 + crowd, co.at_sequence(attention_is(L)))
    return follows(eq(L.p(i) * (1 + crowd), 1), definition, nonzero=[partition_positive()])


def attention_at_most_one() -> Proved:
    """p_i <= 1."""
    return follows(L.p(i) <= 1, attention_unit(), (attention_positive(), crowd_nonnegative()))


def attention_logarithm() -> tuple[Proved, Proved]:
    """-s_i <= log p_i <= 0."""
    partition, positive, x = partition_positive(), attention_positive(), nt.symbol("x")
    whole = congruence(attention_unit(), log(x), x)
    split = log_product(positive, partition)
    low = follows(-crowd <= log(L.p(i)), log_tangent(partition), split, whole, kernel.log_exp(real(0)))
    return low, follows(log(L.p(i)) <= 0, log_tangent(positive), attention_at_most_one())


def missing_score() -> tuple[Proved, Proved]:
    """0 <= g_(i,o_i) - m_i <= Gam leak: it is p_i times the sum of exp(-mu) (g_(i,o_i) - g), and p_i <= 1."""
    pulled = both(exp(-L.gap(i, tau)) * (best - g_k))
    least, most = {}, {}
    for part in PARTS:
        gap = follows(0 <= best - g_k, part.at(LOWER_GAPS[part.name]), assume(su.SCORE_GAP_POSITIVE))
        least[part.name] = follows(0 <= exp(-L.gap(i, tau)) * (best - g_k), (decay(), gap))
        high = part.at(UPPER_GAPS[part.name])
        most[part.name] = follows(
            exp(-L.gap(i, tau)) * (best - g_k) <= Gam * exp(-L.gap(i, tau)), (decay(), high)
        )
    nonnegative = follows(0 <= pulled, *sum_both(least))
    missing = follows(
        eq(best - mean(i), L.p(i) * pulled), co.at_sequence(mean_is(L)), (best, attention_unit())
    )
    share = weak(attention_positive())
    return (
        follows(0 <= best - mean(i), missing, (share, nonnegative)),
        follows(
            best - mean(i) <= Gam * crowd, missing, (nonnegative, attention_at_most_one()), *sum_both(most)
        ),
    )


def missing_at_most(part: Part) -> Proved:
    """g_(i,o_i) - m_i <= Gam leak, at the generic constraint."""
    largest = follows(
        0 <= Gam,
        assume(su.SCORE_GAP_POSITIVE), part.at(LOWER_GAPS[part.name]), part.at(UPPER_GAPS[part.name]),
    )  # fmt: skip
    return follows(best - mean(i) <= Gam * leak, missing_score()[1], (largest, crowd_bounded()))


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


# --- one constraint ----------------------------------------------------------------------------------------


def half_gap(part: Part) -> Proved:
    """gam/2 <= m_i - g_(i,tau)."""
    low = part.at(LOWER_GAPS[part.name])
    return follows(half * gam <= mean(i) - g_k, low, missing_at_most(part), (half, assume(THRESHOLD)))


def pull_positive(part: Part) -> Proved:
    """0 < m_i - g_(i,tau)."""
    return follows(0 < mean(i) - g_k, half_gap(part), (half, assume(su.SCORE_GAP_POSITIVE)))


def gap_positive(part: Part) -> Proved:
    """0 < g_(i,o_i) - g_(i,tau)."""
    return follows(0 < best - g_k, part.at(LOWER_GAPS[part.name]), assume(su.SCORE_GAP_POSITIVE))


def weight_positive(part: Part) -> Proved:
    """0 < w_k."""
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    sigmoid = kernel.inverse_positive(co.denominator_positive(best))
    return follows(0 < su.LIMIT, product_nonnegative(product_nonnegative(gap_positive(part), size), sigmoid))


def prove_positive(part: Part) -> Proved:
    """Every factor of c_k is positive."""
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    sigmoid = kernel.inverse_positive(co.denominator_positive(mean(i)))
    attention = product_nonnegative(attention_positive(), kernel.exp_positive(-L.gap(i, tau)))
    pull = product_nonnegative(
        product_nonnegative(attention, pull_positive(part)), product_nonnegative(size, sigmoid)
    )
    return part.for_each(follows(0 < L.c(i, tau), pull, part.at(coefficient_is(L, part))))


def logarithms(part: Part) -> Proved:
    """shift_k = log p_i + log(m - g) - log(g_o - g) + log(1 + exp(g_o)) - log(1 + exp(m))."""
    m, hole = mean(i), nt.symbol("x")
    p, pull = attention_positive(), pull_positive(part)
    size, gap = assume(co.DATA_SIZE_POSITIVE), gap_positive(part)
    now, then = co.denominator_positive(m), co.denominator_positive(best)
    falls = kernel.exp_positive(-L.gap(i, tau))
    attention = product_nonnegative(p, falls)
    top = product_nonnegative(attention, pull)
    per_sample = product_nonnegative(top, kernel.inverse_positive(size))
    limit = product_nonnegative(gap, kernel.inverse_positive(size))
    whole = congruence(part.at(coefficient_is(L, part)), log(hole), hole)
    return follows(
        eq(
            su.shift(L),
            log(L.p(i)) + log(m - g_k) - log(best - g_k) + log(1 + exp(best)) - log(1 + exp(m)),
        ),
        whole, log_quotient(per_sample, now), log_quotient(top, size), log_product(attention, pull),
        log_product(p, falls), kernel.log_exp(-L.gap(i, tau)),
        log_quotient(limit, then), log_quotient(gap, size),
    )  # fmt: skip


LOWER = -(1 + 2 * Gam / gam) * leak <= su.shift(L)
UPPER = su.shift(L) <= Gam * leak


def prove_lower(part: Part) -> Proved:
    """The slope only helps; log p_i >= -leak; log(g_o - g) - log(m - g) <= (g_o - m)/(m - g)."""
    gap, threshold = pull_positive(part), assume(su.SCORE_GAP_POSITIVE)
    secant = log_secant(gap, gap_positive(part))
    steep = inverse_order(half_gap(part), follows(0 < half * gam, threshold))
    lost = weak(kernel.inverse_positive(gap))
    reach = follows(0 <= Gam * leak, missing_score()[0], missing_at_most(part))
    return part.for_each(
        follows(
            LOWER,
            logarithms(part), slope_logarithm()[0], attention_logarithm()[0], crowd_bounded(), secant,
            (lost, missing_at_most(part)), (reach, steep), nonzero=[gap, threshold],
        )
    )  # fmt: skip


def prove_upper(part: Part) -> Proved:
    """log p_i <= 0 and m <= g_o: only the slope hurts."""
    order = log_monotone(follows(mean(i) - g_k <= best - g_k, missing_score()[0]), pull_positive(part))
    return part.for_each(
        follows(
            UPPER,
            logarithms(part), slope_logarithm()[1], attention_logarithm()[1], order, missing_at_most(part),
        )
    )  # fmt: skip


def hypotheses(part: Part) -> dict[str, Formula]:
    """What a claim about the constraints of one part needs."""
    return {**COMMON, "c": coefficient_is(L, part)}


POSITIVE = Theorem(
    key="support-coefficients-positive",
    title="Past the threshold every constraint of the support pulls, whatever the scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support: {claim}.",
    hypotheses=hypotheses(SUPPORT),
    claim=SUPPORT.each(0 < L.c(i, tau)),
    prove=lambda: prove_positive(SUPPORT),
)
REST_POSITIVE = Theorem(
    key="support-rest-positive",
    title="Past the threshold every constraint off the support pulls, whatever the scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support: {claim}.",
    hypotheses=hypotheses(REST),
    claim=REST.each(0 < L.c(i, tau)),
    prove=lambda: prove_positive(REST),
)
BELOW = Theorem(
    key="support-shift-lower",
    title="The support's coefficients are at most exponentially below their limit form",
    kind="lemma",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support: {claim}.",
    hypotheses=hypotheses(SUPPORT),
    claim=SUPPORT.each(LOWER),
    prove=lambda: prove_lower(SUPPORT),
)
ABOVE = Theorem(
    key="support-shift-upper",
    title="The support's coefficients are at most exponentially above their limit form",
    kind="lemma",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support: {claim}.",
    hypotheses=hypotheses(SUPPORT),
    claim=SUPPORT.each(UPPER),
    prove=lambda: prove_upper(SUPPORT),
)
REST_ABOVE = Theorem(
    key="support-rest-shift-upper",
    title="The coefficients off the support are at most exponentially above their limit form",
    kind="lemma",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support: {claim}.",
    hypotheses=hypotheses(REST),
    claim=REST.each(UPPER),
    prove=lambda: prove_upper(REST),
)
PAGES = (POSITIVE, REST_POSITIVE, BELOW, ABOVE, REST_ABOVE)
