"""Theorem A(v) (loss): the excess loss is, up to constants, the attention missing from the optimal tokens.

Under equal non-optimal scores L = (1/n) sum log(1 + exp(-m_i)) with m_i = g_i + G_i p_i, and its infimum L*
is the same at p_i = 1. With a_i = G_i sigma(-m_i)/n, the slope at the present attention, and w_i its value at
full attention,

    sum w_i (1 - p_i) <= L - L* <= sum a_i (1 - p_i) <= a_max sum (1 - p_i),    0 <= L - L*.

The slope of a sequence's loss in p_i shrinks as p_i grows, so between p_i and 1 it lies between a_i and w_i.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas.gradient_size import SAMPLES_COUNTED
from theory.notation import STATIC as L
from theory.notation import G, a_max, g, i, layer, n, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, sum_order
from theory.proof.tactics import equation, follows, weak
from theory.proof.terms import Term, eq, exp, real, symbol, total
from theory.theorems import sparsification

REFERENCE = "our Theorem A(v); the paper's loss as a function of the attention"
x = symbol("x")  # any attention between the present one and 1


def excess(now: nt.Layer) -> Term:
    """L - L* at a layer."""
    return nt.loss(now) - nt.least_loss()


def excess_bound(now: nt.Layer) -> Term:
    """The bound on L - L*."""
    return a_max * total(i, nt.SEQUENCES, 1 - now.p(i))


def score(p: Term) -> Term:
    """The margin g_i + G_i p of sequence i at attention p."""
    return g(i) + G(i) * p


def slope(p: Term) -> Term:
    """n times the decrease of the loss in p: G_i sigma(-m)."""
    return G(i) / (1 + exp(score(p)))


def limit_slope(i: nt.Index = i) -> Term:
    """w_i = G_i sigma(-g_i - G_i)/n, the slope at full attention."""
    return G(i) / n / (1 + exp(g(i) + G(i)))


def gap_positive() -> Proved:
    """0 < G_i."""
    return co.at_sequence(nt.SCORE_GAPS)


def slope_order(order: Proved) -> Proved:
    """From p <= q, the slope at q is at most that at p."""
    p, q = order.conclusion[1:]
    scores = follows(score(p) <= score(q), (weak(gap_positive()), order))
    return follows(slope(q) <= slope(p), (weak(gap_positive()), co.sigmoid_order(scores)))


def above_line(steepness: Term, sign: Proved) -> Proved:
    """The loss plus ``steepness`` times x is monotone on [p_i, 1], by the sign of its derivative."""
    body = nt.logistic(score(x)) + steepness * x
    return kernel.monotone(sign, co.attention_at_most_one(), x, body, [co.denominator_positive(-score(x))])


def derivative(steepness: Term) -> Term:
    """The derivative of the loss plus ``steepness`` times x, as the kernel computes it."""
    return -G(i) * exp(-score(x)) / (1 + exp(-score(x))) + steepness


def sigmoid_two_ways() -> Proved:
    """exp(-m)/(1 + exp(-m)) = 1/(1 + exp(m))."""
    target = eq(exp(-score(x)) / (1 + exp(-score(x))), 1 / (1 + exp(score(x))))
    return equation(target, nonzero=[co.denominator_positive(score(x)), co.denominator_positive(-score(x))])


def excess_of(p: Term) -> Term:
    """The loss of sequence i at attention p less that at full attention, times n."""
    return nt.logistic(score(p)) - nt.logistic(score(real(1)))


def sequence_below() -> Proved:
    """The loss of sequence i exceeds its infimum by at most n a_i (1 - p_i)."""
    present = slope(L.p(i))
    sign = follows(
        0 <= derivative(present),
        slope_order(assume(L.p(i) <= x)), (-G(i), sigmoid_two_ways()),
    )  # fmt: skip
    rise = above_line(present, sign)
    return follows(excess_of(L.p(i)) <= present * (1 - L.p(i)), rise)


def sequence_above() -> Proved:
    """The loss of sequence i exceeds its infimum by at least n w_i (1 - p_i)."""
    limit = slope(real(1))
    sign = follows(derivative(limit) <= 0, slope_order(assume(x <= 1)), (-G(i), sigmoid_two_ways()))
    fall = above_line(limit, sign)
    return follows(limit * (1 - L.p(i)) <= excess_of(L.p(i)), fall)


def per_sample() -> Proved:
    """0 < 1/n."""
    return kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))


def weighted(weight: Term) -> Term:
    """The sum over the sequences of ``weight`` times the attention missing from the optimal token."""
    return total(i, nt.SEQUENCES, weight * (1 - L.p(i)))


def prove_upper() -> Proved:
    """Each sequence's loss divided by n, with a_i in place of its definition, summed."""
    each = follows(
        excess_of(L.p(i)) / n <= L.a(i) * (1 - L.p(i)),
        (per_sample(), sequence_below()), (1 - L.p(i), co.at_sequence(L.slope_is())),
        (G(i) * (1 - L.p(i)), co.factored(score(L.p(i)))),
    )  # fmt: skip
    return follows(excess(L) <= weighted(L.a(i)), sum_order(each, i, nt.SEQUENCES))


def prove_lower() -> Proved:
    """Each sequence's loss divided by n, summed."""
    each = follows(limit_slope() * (1 - L.p(i)) <= excess_of(L.p(i)) / n, (per_sample(), sequence_above()))
    return follows(weighted(limit_slope()) <= excess(L), sum_order(each, i, nt.SEQUENCES))


def missing_nonnegative() -> Proved:
    """0 <= 1 - p_i."""
    return follows(0 <= 1 - L.p(i), co.attention_at_most_one())


def prove_nonnegative() -> Proved:
    """0 <= w_i (1 - p_i), summed."""
    limit = follows(
        0 < limit_slope(), (co.pull(), kernel.inverse_positive(co.denominator_positive(score(real(1)))))
    )
    each = follows(0 <= limit_slope() * (1 - L.p(i)), (weak(limit), missing_nonnegative()))
    return follows(0 <= excess(L), sum_order(each, i, nt.SEQUENCES), prove_lower())


def prove_static() -> Proved:
    """a_i <= a_max, term by term."""
    bound = co.at_sequence(nt.SLOPE_UPPER)
    each = follows(L.a(i) * (1 - L.p(i)) <= a_max * (1 - L.p(i)), (missing_nonnegative(), bound))
    simple = follows(excess(L) <= excess_bound(L), prove_upper(), sum_order(each, i, nt.SEQUENCES))
    return discharge(simple, co.SLOPE_UPPER.proved())


def prove_decay() -> Proved:
    """Each 1 - p_i by its own bound, with 0 < a_i <= a_max for the sign; n equal terms."""
    leak = co.at_sequence(sparsification.LEAK_BOUNDED)
    slope = discharge(co.at_sequence(nt.SLOPE_UPPER), co.SLOPE_UPPER.proved())
    largest = follows(0 <= a_max, slope, co.slope_positive())
    each = follows(a_max * (1 - L.p(i)) <= a_max * sparsification.attention_gap_bound(L), (largest, leak))
    total_leak = follows(
        excess(L) <= n * a_max * sparsification.attention_gap_bound(L),
        STATIC.proved(), sum_order(each, i, nt.SEQUENCES),
        (a_max * sparsification.attention_gap_bound(L), assume(SAMPLES_COUNTED)),
    )  # fmt: skip
    return kernel.generalize(
        nt.from_all_times(discharge(total_leak, sparsification.STATIC.proved()), t), t, nt.NATURALS
    )


def prove_iterates() -> Proved:
    """The static statement at W_t."""
    return kernel.generalize(nt.from_all_times(STATIC.proved(), t), t, nt.NATURALS)


HYPOTHESES = {
    "(E)": nt.SCORE_GAPS,
    "n > 0": co.DATA_SIZE_POSITIVE,
    "p": L.attention_is(),
    "a": L.slope_is(),
    "a_max bounds the slopes": co.UPPER_SLOPE_BOUND,
}
NOW = layer(t)


LOWER = Theorem(
    key="loss-lower",
    title="The excess loss is at least the missing attention at the slopes of full attention",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=without(HYPOTHESES, "a", "a_max bounds the slopes"),
    claim=weighted(limit_slope()) <= excess(L),
    prove=prove_lower,
)
NONNEGATIVE = Theorem(
    key="loss-nonnegative",
    title="No weights do better than full attention on the optimal tokens",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=without(HYPOTHESES, "a", "a_max bounds the slopes"),
    claim=0 <= excess(L),
    prove=prove_nonnegative,
)
UPPER = Theorem(
    key="loss-upper",
    title="The excess loss is at most the missing attention at the present slopes",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=without(HYPOTHESES, "a_max bounds the slopes"),
    claim=excess(L) <= weighted(L.a(i)),
    prove=prove_upper,
)
STATIC = Theorem(
    key="loss-static",
    title="The excess loss is at most the missing attention at the largest slope",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=excess(L) <= excess_bound(L),
    prove=prove_static,
)
LOSS = Theorem(
    key="loss",
    title="The excess loss decays with the missing attention",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={
        **HYPOTHESES,
        "p": nt.at_all_times(L.attention_is()),
        "a": nt.at_all_times(L.slope_is()),
    },
    claim=nt.always(excess(NOW) <= excess_bound(NOW)),
    prove=prove_iterates,
    rate=Rate(observed=excess(NOW), bound=excess_bound(NOW), sense="upper", small_numbers=True),
)
DECAY = Theorem(
    key="loss-decay",
    title="The excess loss decays exponentially in the weight norm, less what the direction misses",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={
        **LOSS.hypotheses,
        **sparsification.SPARSIFICATION.hypotheses,
        "n counts the sequences": SAMPLES_COUNTED,
    },
    claim=nt.always(excess(NOW) <= n * a_max * sparsification.attention_gap_bound(NOW)),
    prove=prove_decay,
    rate=Rate(
        observed=excess(NOW),
        bound=n * a_max * sparsification.attention_gap_bound(NOW),
        sense="upper",
        small_numbers=True,
    ),
)
PAGES = (LOWER, NONNEGATIVE, UPPER, STATIC, LOSS, DECAY)
