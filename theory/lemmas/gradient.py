"""The gradient formula, for any number of sequences of any length.

With logits b = <X, W>, X = x z', the layer's loss is L(W) = (1/n) sum_i log(1 + exp(-m_i)), where m_i is the
mean of the scores of sequence i under softmax(b). For every direction H, with A_k = X_(i,o_i) - X_(i,tau),

    -<grad L(W), H> = sum_i sum_tau phi_(i,tau) (m_i - g_(i,tau)) <A_k, H>/(n (1 + exp(m_i))),

over the non-optimal tokens. If these have equal scores, the coefficient of A_k is c_k = a_i p_i^2 exp(-mu_k).
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas.coefficients import (
    DATA_SIZE_POSITIVE,
    MARGIN_SCORE,
    at_sequence,
    denominator_positive,
    factored,
    for_each_sequence,
    others_weight,
)
from theory.lemmas.coefficients import partition_positive as partition_by_gaps_positive
from theory.lemmas.separator_correlation import along, at_constraint, sum_constraints
from theory.notation import STATIC as L
from theory.notation import A, G, g, i, n, optimal_score, optimal_token, others, over, score, tau, token
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, congruence, derivative, sum_order
from theory.proof.tactics import equation, follows, product_nonnegative, weak
from theory.proof.terms import Index, Term, Vector, diff, eq, exp, inner, inv, real, symbol, total, vector

REFERENCE = "the paper's gradient of the loss, section 2; here without cancellation between the tokens"
H = vector("H")  # any direction
x = symbol("x")


def partition(W: Vector) -> Term:
    """Z_i, the softmax's denominator: the sum of exp(<X, W>) over all tokens of sequence i."""
    return exp(inner(optimal_token(i), W)) + total(tau, others(i), exp(inner(token(i, tau), W)))


def scores_weighted(W: Vector) -> Term:
    """The sum of exp(<X, W>) times the score over all tokens of sequence i."""
    best = exp(inner(optimal_token(i), W)) * optimal_score(i)
    return best + total(tau, others(i), exp(inner(token(i, tau), W)) * score(i, tau))


def attention(W: Vector) -> Term:
    """phi_(i,tau) on a non-optimal token."""
    return exp(inner(token(i, tau), W)) / partition(W)


def mean_score(W: Vector) -> Term:
    """m_i, the mean of the scores under the attention."""
    return scores_weighted(W) / partition(W)


def loss(W: Vector) -> Term:
    """L(W) = (1/n) sum_i log(1 + exp(-m_i))."""
    return total(i, nt.SEQUENCES, nt.logistic(mean_score(W))) / n


SLOPE = diff(x, loss(L.W + x * H), 0)  # the derivative of the loss at W along H


def partition_positive(W: Vector) -> Proved:
    """0 < Z_i."""
    best = kernel.exp_positive(inner(optimal_token(i), W))
    rest = sum_order(weak(kernel.exp_positive(inner(token(i, tau), W))), tau, others(i))
    return follows(0 < partition(W), best, rest)


def loss_derivative() -> Proved:
    """The chain rule: SLOPE = what the kernel's calculus says; no Z_i and no 1 + exp(-m_i) vanishes."""
    W = L.W + real(0) * H
    regular = [partition_positive(W), denominator_positive(-mean_score(W))]
    return derivative(x, loss(L.W + x * H), real(0), [for_each_sequence(c) for c in regular])


def mean_score_slope(W: Vector) -> Term:
    """The derivative of m_i along H, by the quotient rule."""
    Z, best = partition(W), exp(inner(optimal_token(i), W)) * inner(optimal_token(i), H)
    rest = exp(inner(token(i, tau), W)) * inner(token(i, tau), H)
    partition_slope = best + total(tau, others(i), rest)
    weighted_slope = best * optimal_score(i) + total(tau, others(i), rest * score(i, tau))
    return weighted_slope / Z - mean_score(W) * partition_slope / Z


def difference(i: Index, tau: Index) -> Vector:
    """A_k = X_(i,o_i) - X_(i,tau), as a term."""
    return optimal_token(i) - token(i, tau)


def coefficient(W: Vector) -> Term:
    """n times the coefficient of A_k in the negative gradient: sigma(-m_i) phi_(i,tau) (m_i - g_(i,tau))."""
    m = mean_score(W)
    return attention(W) * (m - score(i, tau)) / (1 + exp(m))


GENERAL = eq(SLOPE, -over(coefficient(L.W) * inner(difference(i, tau), H)) / n)


def prove_general() -> Proved:
    """m_i moves by sum phi (m_i - g) <A_k, H>, as phi sums to 1; the loss by -sigma(-m_i) of that."""
    W, m = L.W, mean_score(L.W)
    Z = partition_positive(W)
    moved = total(tau, others(i), attention(W) * (m - score(i, tau)) * inner(difference(i, tau), H))
    quotient = equation(eq(mean_score_slope(W), moved), nonzero=[Z])
    up, down = denominator_positive(m), denominator_positive(-m)
    sigmoid = equation(eq(exp(-m) / (1 + exp(-m)), 1 / (1 + exp(m))), nonzero=[up, down])
    one = follows(
        eq(exp(-m) / (1 + exp(-m)) * mean_score_slope(W), moved / (1 + exp(m))),
        (1 / (1 + exp(m)), quotient), (mean_score_slope(W), sigmoid),
    )  # fmt: skip
    return follows(GENERAL, loss_derivative(), (1 / n, sum_order(one, i, nt.SEQUENCES)))


# --- attention by logit gaps -------------------------------------------------------------------------------


def gap_is() -> Proved:
    """exp(-mu_k) = exp(b_(i,tau)) exp(-b_(i,o_i)) at the generic constraint."""
    hole, number = vector("v"), symbol("y")
    mu = congruence(at_constraint(nt.CONSTRAINT_IS), inner(hole, L.W), hole)
    weight = congruence(mu, exp(-number), number)
    return follows(eq(exp(-L.gap(i, tau)), exp(inner(token(i, tau), L.W) - best_logit())), weight)


def best_logit() -> Term:
    """b_(i,o_i)."""
    return inner(optimal_token(i), L.W)


SOFTMAX = eq(exp(best_logit()) / partition(L.W), inv(1 + others_weight()))


def softmax() -> Proved:
    """exp(b_o)/Z = 1/(1 + sum exp(-mu)) at the generic sequence: divide by exp(b_o)."""
    Z, crowd = partition_positive(L.W), partition_by_gaps_positive()
    summed = sum_order(gap_is(), tau, others(i))
    weight = exp(best_logit()) / (partition(L.W) * (1 + others_weight()))
    return follows(SOFTMAX, (weight, summed), nonzero=[Z, crowd, product_nonnegative(Z, crowd)])


def attention_is_softmax() -> Proved:
    """p_i = exp(b_o)/Z at the generic sequence."""
    return follows(eq(L.p(i), exp(best_logit()) / partition(L.W)), softmax(), at_sequence(L.attention_is()))


def mean_score_is() -> Proved:
    """m_i = g_i + G_i p_i at the generic sequence, under (E)."""
    weight = exp(inner(token(i, tau), L.W))
    each = follows(eq(weight * score(i, tau), weight * g(i)), (weight, at_constraint(nt.SCORES_EQUAL)))
    Z = partition(L.W)
    return follows(
        eq(mean_score(L.W), MARGIN_SCORE),
        (inv(Z), sum_order(each, tau, others(i))),
        (exp(best_logit()) / Z, at_sequence(nt.SCORE_GAP_IS)), (G(i), attention_is_softmax()),
        nonzero=[partition_positive(L.W)],
    )  # fmt: skip


def coefficient_is() -> Proved:
    """sigma(-m_i) phi_(i,tau) (m_i - g_(i,tau))/n = c_k at the generic constraint, under (E)."""
    W, mu, p, Z = L.W, L.gap(i, tau), L.p(i), partition(L.W)
    attended = follows(
        eq(attention(W), p * exp(-mu)),
        (exp(best_logit()) / Z, gap_is()), (exp(-mu), attention_is_softmax()),
    )  # fmt: skip
    lead = follows(
        eq(mean_score(W) - score(i, tau), G(i) * p), mean_score_is(), at_constraint(nt.SCORES_EQUAL)
    )
    number = symbol("y")
    sigmoid = congruence(mean_score_is(), inv(1 + exp(number)), number)
    product = follows(
        eq(coefficient(W), p * exp(-mu) * (G(i) * p) / (1 + exp(MARGIN_SCORE))),
        ((mean_score(W) - score(i, tau)) / (1 + exp(mean_score(W))), attended),
        (p * exp(-mu) / (1 + exp(mean_score(W))), lead),
        (p * exp(-mu) * (G(i) * p), sigmoid),
    )  # fmt: skip
    scale = p**2 * exp(-mu)
    return follows(
        eq(coefficient(W) / n, L.c(i, tau)),
        (1 / n, product), at_constraint(L.coefficient_is()), (scale, at_sequence(L.slope_is())),
        (scale * G(i), factored(MARGIN_SCORE)),
    )  # fmt: skip


EQUAL_SCORES = eq(SLOPE, -inner(L.descent, H))


def prove_equal_scores() -> Proved:
    """Term by term, the general formula is sum c_k <A_k, H> = <D, H>."""
    hole = vector("v")
    direction = congruence(at_constraint(nt.CONSTRAINT_IS), inner(hole, H), hole)
    reach = inner(difference(i, tau), H)
    each = follows(
        eq(coefficient(L.W) * reach / n, L.c(i, tau) * inner(A(i, tau), H)),
        (reach, coefficient_is()), (L.c(i, tau), direction),
    )  # fmt: skip
    return follows(EQUAL_SCORES, prove_general(), sum_constraints(each), along(H))


LOSS_IS = eq(loss(L.W), nt.loss(L))


def prove_loss() -> Proved:
    """Each m_i is g_i + G_i p_i."""
    number = symbol("y")
    each = congruence(mean_score_is(), nt.logistic(number), number)
    return follows(LOSS_IS, (1 / n, sum_order(each, i, nt.SEQUENCES)))


DEFINITIONS = {
    "A": nt.CONSTRAINT_IS,
    "p": L.attention_is(),
    "equal scores, (E)": nt.SCORES_EQUAL,
    "G": nt.SCORE_GAP_IS,
}

GRADIENT = Theorem(
    key="gradient-formula",
    title="The gradient of the loss, without cancellation",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$ and every direction $H$: {claim}.",
    hypotheses={},
    claim=GENERAL,
    prove=prove_general,
)
SOFTMAX_BY_GAPS = Theorem(
    key="softmax-by-gaps",
    title="The attention on the optimal token, by logit gaps",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={"A": nt.CONSTRAINT_IS},
    claim=nt.each_sequence(SOFTMAX),
    prove=lambda: for_each_sequence(softmax()),
)
LOSS = Theorem(
    key="loss-equal-scores",
    title="The loss, when the non-optimal tokens have equal scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=DEFINITIONS,
    claim=LOSS_IS,
    prove=prove_loss,
)
GRADIENT_EQUAL_SCORES = Theorem(
    key="gradient-equal-scores",
    title="The gradient of the loss, when the non-optimal tokens have equal scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"$(-\nabla\mathcal{L})$ is the negative gradient: for every $W$ and every direction "
    r"$H$, {claim}.",
    hypotheses={
        **DEFINITIONS,
        "a": L.slope_is(),
        "c": L.coefficient_is(),
        "gradient": L.gradient_is(),
        "n > 0": DATA_SIZE_POSITIVE,
    },
    claim=EQUAL_SCORES,
    prove=prove_equal_scores,
)

PAGES = (GRADIENT, SOFTMAX_BY_GAPS, LOSS, GRADIENT_EQUAL_SCORES)
