"""The decoder's gradient is nearly that of the optimal tokens alone, whose loss no attention enters.

Sequence i is seen as y_i X_i' phi_i = x_i - sum_tau phi_(i,tau) d_(i,tau), with x_i = y_i x_(i,o_i) and
d_(i,tau) = y_i (x_(i,o_i) - x_(i,tau)) for the other tokens; m_i = <y_i X_i' phi_i, u>, g_i = <x_i, u>. Let

    1 - p_i <= eps,    0 <= g_i - m_i <= lambda,    ||x_i|| <= R_o,    ||d_(i,tau)|| <= R_d,

gamma = 1/||u_mm|| the margin of the x_i, and S = (1/n) sum sigma(-m_i). Then

    (gamma - eps R_d) S <= <-grad_u L, u_mm^>,    ||grad_u L|| <= (R_o + eps R_d) S,
    <-grad L0, d> >= (gamma - 2 eps R_d - (1 - exp(-lambda)) R_o) S,    d = -grad_u L/||grad_u L||,

L0(u) = (1/n) sum log(1 + exp(-g_i)), a function of the decoder alone: it falls whatever W does.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import joint_loss as jo
from theory.lemmas.joint_layer import REFERENCE
from theory.lemmas.joint_loss import slope
from theory.lemmas.separator_correlation import at_constraint
from theory.notation import DecoderState, R_d, R_o, U, decoder_margin, feature, feature_gap, i, n, others, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, derivative, discharge, sum_order
from theory.proof.tactics import (
    exp_monotone,
    follows,
    inverse_order,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    weak,
    zero,
)
from theory.proof.terms import (
    Formula,
    Vector,
    diff,
    eq,
    exp,
    inner,
    norm,
    real,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)

S = DecoderState()
eps, leak = symbol("eps"), symbol("leak")
mass = total(i, nt.SEQUENCES, slope(S.mean_score(i))) / n

SEPARABLE = nt.each_sequence(1 <= inner(feature(i), U))
TOKENS_BOUNDED = nt.each_sequence(norm(feature(i)) <= R_o)
GAPS_BOUNDED = nt.each(norm(feature_gap(i, tau)) <= R_d)


def gradient_is(now: DecoderState) -> Formula:
    """The negative gradient in u: the mean of sigma(-m_i) y_i X_i' phi_i."""
    body = (slope(now.mean_score(i)) / n) * now.attended(i)
    return veq(now.descent, vtotal(i, nt.SEQUENCES, body))


def attention_nonnegative(now: DecoderState) -> Formula:
    """phi >= 0."""
    return nt.each(0 <= now.phi(i, tau))


def attention_bounded(now: DecoderState) -> Formula:
    """1 - p_i <= eps."""
    return nt.each_sequence(now.missing(i) <= eps)


def leak_nonnegative(now: DecoderState) -> Formula:
    """m_i <= g_i: the optimal token scores at least the mean."""
    return nt.each_sequence(now.mean_score(i) <= now.optimal_score(i))


def leak_bounded(now: DecoderState) -> Formula:
    """g_i - m_i <= lambda."""
    return nt.each_sequence(now.optimal_score(i) - now.mean_score(i) <= leak)


DATA = {
    "u_mm separates the optimal tokens": SEPARABLE,
    "R_o bounds the optimal tokens": TOKENS_BOUNDED,
    "R_d bounds the differences of tokens": GAPS_BOUNDED,
    "n > 0": co.DATA_SIZE_POSITIVE,
    "there is a sequence": nt.SOME_SEQUENCE,
}
STATE = {
    "gradient in u": gradient_is(S),
    "attention is nonnegative": attention_nonnegative(S),
    "attention on other tokens is at most eps": attention_bounded(S),
    "the optimal token scores at least the mean": leak_nonnegative(S),
    "scores lose at most lambda": leak_bounded(S),
}
HYPOTHESES = DATA | STATE


def at_sequence(name: str) -> Proved:
    """A hypothesis about every sequence, at the generic one."""
    return co.at_sequence(HYPOTHESES[name])


def along(v: Vector) -> Proved:
    """<D, v> = (1/n) sum sigma(-m_i) <y_i X_i' phi_i, v>."""
    hole = vector("x")
    return congruence(assume(STATE["gradient in u"]), inner(hole, v), hole)


def separator_nonzero() -> Proved:
    """0 < ||u_mm||: otherwise 1 <= <x_i, u_mm> would be at most 0."""
    none = (norm_nonnegative(feature(i)), assume(norm(U) <= 0))
    reach = at_sequence("u_mm separates the optimal tokens")
    wrong = follows(real(1) <= 0, reach, kernel.cauchy_schwarz(feature(i), U), none)
    wrong = kernel.combine(zero() < zero(), [(1, one_positive()), (1, wrong)])
    positive = kernel.cases(kernel.absurd(wrong, 0 < norm(U)), assume(0 < norm(U)), norm(U), zero())
    return co.moved(positive, co.some_i)


def share(i: nt.Index) -> Proved:
    """0 < sigma(-m_i)/n at the generic sequence."""
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    return follows(0 < slope(S.mean_score(i)) / n, (size, jo.slope_positive(S.mean_score(i))))


def lost(v: Vector) -> Proved:
    """sum phi <d, v> <= eps R_d ||v|| at the generic sequence."""
    length = norm_nonnegative(v)
    reach = follows(
        inner(feature_gap(i, tau), v) <= R_d * norm(v),
        kernel.cauchy_schwarz(feature_gap(i, tau), v), (length, at_constraint(GAPS_BOUNDED)),
    )  # fmt: skip
    each = follows(
        S.phi(i, tau) * inner(feature_gap(i, tau), v) <= R_d * norm(v) * S.phi(i, tau),
        (at_constraint(STATE["attention is nonnegative"]), reach),
    )
    summed = sum_order(each, tau, others(i))
    radius = product_nonnegative(radius_nonnegative(), length)
    return follows(
        total(tau, others(i), S.phi(i, tau) * inner(feature_gap(i, tau), v)) <= eps * R_d * norm(v),
        summed, (radius, at_sequence("attention on other tokens is at most eps")),
    )  # fmt: skip


def radius_nonnegative() -> Proved:
    """0 <= R_d."""
    some = discharge(
        co.moved(kernel.instantiate(at_constraint(GAPS_BOUNDED), indices={"tau": nt.tau1}), co.some_i),
        co.some_tau,
    )
    return follows(0 <= R_d, norm_nonnegative(feature_gap(nt.i1, nt.tau1)), some)


def over(claim: Proved) -> Proved:
    """A claim about the generic sequence, summed."""
    return sum_order(claim, i, nt.SEQUENCES)


# --- the gradient sees u_mm --------------------------------------------------------------------------------


def prove_sees() -> Proved:
    """<y_i X_i' phi_i, u_mm> >= 1 - eps R_d ||u_mm||, divided by ||u_mm||."""
    weight = share(i)
    seen = follows(
        1 - eps * R_d * norm(U) <= inner(S.attended(i), U),
        at_sequence("u_mm separates the optimal tokens"), lost(U),
    )  # fmt: skip
    each = follows(
        slope(S.mean_score(i)) / n * (1 - eps * R_d * norm(U))
        <= slope(S.mean_score(i)) / n * inner(S.attended(i), U),
        (weak(weight), seen),
    )
    solution = separator_nonzero()
    inverse = kernel.inverse_positive(solution)
    product = follows(mass * (1 - eps * R_d * norm(U)) <= inner(S.descent, U), over(each), along(U))
    return follows(SEES_CLAIM, (inverse, product), nonzero=[solution])


SEES_CLAIM = (decoder_margin - eps * R_d) * mass <= decoder_margin * inner(S.descent, U)


def length_at_least() -> Proved:
    """(gamma - eps R_d) S <= ||D||."""
    solution = separator_nonzero()
    inverse = kernel.inverse_positive(solution)
    reach = (inverse, kernel.cauchy_schwarz(S.descent, U))
    target = (decoder_margin - eps * R_d) * mass <= norm(S.descent)
    return follows(target, prove_sees(), reach, nonzero=[solution])


def prove_length() -> Proved:
    """||D||^2 = (1/n) sum sigma(-m_i) <y_i X_i' phi_i, D> <= (R_o + eps R_d) S ||D||."""
    D, weight = S.descent, share(i)
    length = norm_nonnegative(D)
    seen = follows(
        inner(S.attended(i), D) <= (R_o + eps * R_d) * norm(D),
        kernel.cauchy_schwarz(feature(i), D), (length, at_sequence("R_o bounds the optimal tokens")),
        opposite(D),
    )  # fmt: skip
    each = follows(
        slope(S.mean_score(i)) / n * inner(S.attended(i), D)
        <= slope(S.mean_score(i)) / n * ((R_o + eps * R_d) * norm(D)),
        (weak(weight), seen),
    )
    squared = follows(
        norm(D) ** 2 <= (R_o + eps * R_d) * mass * norm(D), over(each), along(D), norm_squared(D)
    )
    size = assume(zero() < norm(D))
    long = follows(LENGTH_CLAIM, (kernel.inverse_positive(size), squared), nonzero=[size])
    some = weak(sum_of_shares())
    reach = follows(0 <= R_o + eps * R_d, reach_nonnegative())
    short = follows(LENGTH_CLAIM, assume(norm(D) <= 0), (reach, some))
    return kernel.cases(short, long, norm(D), zero())


def opposite(v: Vector) -> Proved:
    """-sum phi <d, v> <= eps R_d ||v|| at the generic sequence."""
    pulled = total(tau, others(i), S.phi(i, tau) * inner(feature_gap(i, tau), v))
    return follows(-pulled <= eps * R_d * norm(v), lost(-1 * v))


def reach_nonnegative() -> Proved:
    """0 <= R_o + eps R_d."""
    token = follows(0 <= R_o, norm_nonnegative(feature(i)), at_sequence("R_o bounds the optimal tokens"))
    some = sum_order(at_constraint(STATE["attention is nonnegative"]), tau, others(i))
    share_ = follows(0 <= eps, some, at_sequence("attention on other tokens is at most eps"))
    claim = follows(0 <= R_o + eps * R_d, token, (radius_nonnegative(), share_))
    return co.moved(claim, co.some_i)


def sum_of_shares() -> Proved:
    """0 < S."""
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    return follows(0 < mass, (size, jo.sum_positive(jo.slope_positive(S.mean_score(i)))))


LENGTH_CLAIM = norm(S.descent) <= (R_o + eps * R_d) * mass

# --- the gradient descends the loss of the optimal tokens --------------------------------------------------


def optimal_slope() -> tuple[Proved, Proved]:
    """exp(-lambda) sigma(-m_i) <= sigma(-g_i) <= sigma(-m_i)."""
    g, m = S.optimal_score(i), S.mean_score(i)
    low, high = (at_sequence(name) for name in list(STATE)[3:])
    below = inverse_order(follows(1 + exp(m) <= 1 + exp(g), exp_monotone(low)), co.denominator_positive(m))
    nonnegative = follows(0 <= leak, low, high)
    wide = exp_monotone(follows(g <= m + leak, high))
    decay = follows(exp(-leak) <= 1, exp_monotone(follows(-leak <= zero(), nonnegative)))
    both = product_nonnegative(jo.slope_positive(m), jo.slope_positive(g))
    above = follows(
        exp(-leak) * slope(m) <= slope(g),
        (weak(both), decay), (weak(product_nonnegative(both, kernel.exp_positive(-leak))), wide),
        nonzero=[co.denominator_positive(m), co.denominator_positive(g)],
    )  # fmt: skip
    return above, below


OPTIMAL_PULL = total(i, nt.SEQUENCES, slope(S.optimal_score(i)) * inner(feature(i), S.descent)) / n
RATE = decoder_margin - 2 * eps * R_d - (1 - exp(-leak)) * R_o


def prove_descent() -> Proved:
    """<-grad L0, D> >= ||D||^2 - ||D|| ((1 - exp(-lambda)) R_o + eps R_d) S; ||D|| from below."""
    D, g, m = S.descent, S.optimal_score(i), S.mean_score(i)
    length = norm_nonnegative(D)
    reach = follows(
        inner(feature(i), D) <= R_o * norm(D),
        kernel.cauchy_schwarz(feature(i), D), (length, at_sequence("R_o bounds the optimal tokens")),
    )  # fmt: skip
    above, below = optimal_slope()
    spare = follows(0 <= slope(m) - slope(g), below)
    radius = product_nonnegative(
        follows(0 <= R_o, norm_nonnegative(feature(i)), at_sequence("R_o bounds the optimal tokens")), length
    )
    back = opposite(D)
    each = follows(
        slope(m) * inner(S.attended(i), D)
        - slope(m) * (((1 - exp(-leak)) * R_o + eps * R_d) * norm(D))
        <= slope(g) * inner(feature(i), D),
        (spare, reach), (radius, above), (weak(jo.slope_positive(m)), back),
    )  # fmt: skip
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    pulled = follows(
        norm(D) ** 2 - ((1 - exp(-leak)) * R_o + eps * R_d) * norm(D) * mass <= OPTIMAL_PULL,
        (size, over(each)), along(D), norm_squared(D),
    )  # fmt: skip
    return follows(DESCENT_CLAIM, pulled, (length, length_at_least()))


DESCENT_CLAIM = RATE * mass * norm(S.descent) <= OPTIMAL_PULL

# --- the gradient formula ----------------------------------------------------------------------------------

H, x = vector("H"), symbol("x")  # any direction
MOVED = nt.logistic(inner(S.attended(i), S.u + x * H))
SLOPE = diff(x, total(i, nt.SEQUENCES, MOVED) / n, 0)  # the derivative of the loss at u along H


def prove_gradient() -> Proved:
    """The chain rule, sequence by sequence."""
    m = S.mean_score(i)
    here = inner(S.attended(i), S.u + real(0) * H)
    chain_rule = derivative(
        x, total(i, nt.SEQUENCES, MOVED) / n, real(0),
        [co.for_each_sequence(co.denominator_positive(-here))],
    )  # fmt: skip
    each = follows(
        eq(exp(-m) / (1 + exp(-m)) * inner(S.attended(i), H), slope(m) * inner(S.attended(i), H)),
        (inner(S.attended(i), H), jo.slope_forms(m)),
    )
    return follows(GRADIENT_CLAIM, chain_rule, (1 / n, over(each)), along(H))


GRADIENT_CLAIM = eq(SLOPE, -inner(S.descent, H))

GRADIENT = Theorem(
    key="decoder-gradient",
    title="The gradient in the decoder",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $u$ and every direction $H$: {claim}.",
    hypotheses={"gradient in u": gradient_is(S)},
    claim=GRADIENT_CLAIM,
    prove=prove_gradient,
)
SEES = Theorem(
    key="decoder-separator",
    title="The decoder's gradient sees its max-margin solution, less what the attention leaks",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $u$ and attention: {claim}.",
    hypotheses=without(
        HYPOTHESES,
        "R_o bounds the optimal tokens",
        "the optimal token scores at least the mean",
        "scores lose at most lambda",
    )
    | {"with a constraint": nt.SOME_TOKEN},
    claim=SEES_CLAIM,
    prove=prove_sees,
)
LENGTH = Theorem(
    key="decoder-gradient-upper",
    title="The decoder's gradient is at most its mass times the longest token, and what the attention leaks",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $u$ and attention: {claim}.",
    hypotheses=without(
        HYPOTHESES,
        "u_mm separates the optimal tokens",
        "the optimal token scores at least the mean",
        "scores lose at most lambda",
    )
    | {"with a constraint": nt.SOME_TOKEN},
    claim=LENGTH_CLAIM,
    prove=prove_length,
)
DESCENT = Theorem(
    key="decoder-descent",
    title="The decoder's gradient descends the loss of the optimal tokens",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $u$ and attention: {claim}.",
    hypotheses=HYPOTHESES | {"with a constraint": nt.SOME_TOKEN},
    claim=DESCENT_CLAIM,
    prove=prove_descent,
)
PAGES = (GRADIENT, SEES, LENGTH, DESCENT)
