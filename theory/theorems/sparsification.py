"""Theorem A(iv) (sparsification): attention concentrates on the optimal token at a rate.

For every W, with u = ||W||, g* the margin and cos the cosine of the angle between W and the max-margin
solution, every logit gap is at least u (g* - R sqrt(2 (1 - cos))), hence every optimal token has

    1 - p_i <= (T - 1) exp(-u (g* - R sqrt(2 (1 - cos)))).

Once 1 - cos <= (1 - theta)^2 g*^2/(2 R^2), every logit gap is at least theta g* u.
Only separability enters: no condition on the scores, on the initial weights or on the step-size rule. At
W = 0 it says 1 - p_i <= T - 1.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas.separator_correlation import at_constraint, in_i, in_tau
from theory.notation import STATIC as L
from theory.notation import A, M, R, T, i, layer, margin, others, t, tau
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge
from theory.proof.tactics import (
    chain,
    equation,
    everywhere,
    exp_monotone,
    follows,
    norm_nonnegative,
    one_positive,
    product_nonnegative,
    square_root_order,
    weak,
    zero,
)
from theory.proof.terms import Formula, Term, eq, exp, inner, inv, norm, sqrt, symbol

REFERENCE = "our Theorem A(iv); the paper's attention sparsification with every constant explicit"


def guaranteed_gap(now: nt.Layer) -> Term:
    """The least logit gap that the norm and the direction of W leave possible."""
    return norm(now.W) * (margin - R * sqrt(2 * (1 - nt.cosine(now))))


def attention_gap_bound(now: nt.Layer) -> Term:
    """The bound on 1 - p_i."""
    return (T - 1) * exp(-guaranteed_gap(now))


theta = symbol("theta")  # a share of the margin
THETA_AT_MOST_ONE = theta <= 1


def settled_distance() -> Term:
    """The largest 1 - cos that leaves every logit gap theta of the margin."""
    return (1 - theta) ** 2 * margin**2 / (2 * R**2)


def settled(now: nt.Layer) -> Formula:
    """The direction is close enough to that of M for every logit gap to be at least theta g* ||W||."""
    return 1 - nt.cosine(now) <= settled_distance()


GAP_CLAIM = nt.each(guaranteed_gap(L) <= L.gap(i, tau))
LEAK_BOUNDED = nt.each_sequence(1 - L.p(i) <= attention_gap_bound(L))


def directions_apart(weights: Proved) -> Proved:
    """||M/||M|| - W/||W|| || = sqrt(2 (1 - cos)) when W is not 0."""
    apart = margin * M - inv(norm(L.W)) * L.W
    squared = equation(
        eq(inner(apart, apart), 2 * (1 - nt.cosine(L))),
        nonzero=[weights, assume(nt.SOLUTION_NONZERO)],
        nonnegative=[kernel.inner_nonnegative(L.W), kernel.inner_nonnegative(M)],
    )
    hole = symbol("x")
    return kernel.congruence(squared, sqrt(hole), hole)


def cosine_at_most_one() -> Proved:
    """cos <= 1: Cauchy-Schwarz, or 0 <= 1 at W = 0."""
    target = nt.cosine(L) <= 1
    weights, solution = assume(zero() < norm(L.W)), assume(nt.SOLUTION_NONZERO)
    inverse = kernel.inverse_positive(product_nonnegative(weights, solution))
    regular = follows(target, (inverse, kernel.cauchy_schwarz(L.W, M)), nonzero=[weights, solution])
    hole = symbol("x")
    nothing = kernel.antisymmetry(assume(norm(L.W) <= zero()), norm_nonnegative(L.W))
    flat = kernel.congruence(nothing, inv(hole), hole)  # 1/0 = 0
    at_zero = follows(target, one_positive(), (inner(L.W, M) / norm(M), flat))
    return kernel.cases(at_zero, regular, norm(L.W), zero())


def gap_of_nonzero() -> Proved:
    """mu_k/u = <A_k, M>/||M|| - <A_k, M/||M|| - W/u> >= g* - R ||M/||M|| - W/u||."""
    weights = assume(zero() < norm(L.W))
    apart = margin * M - inv(norm(L.W)) * L.W
    scaled = follows(
        margin - R * norm(apart) <= L.gap(i, tau) / norm(L.W),
        (kernel.inverse_positive(assume(nt.SOLUTION_NONZERO)), at_constraint(nt.SEPARABLE)),
        kernel.cauchy_schwarz(A(i, tau), apart),
        (norm_nonnegative(apart), at_constraint(nt.NORM_BOUND)),
    )
    return follows(
        guaranteed_gap(L) <= L.gap(i, tau),
        (weights, scaled), (R * norm(L.W), directions_apart(weights)),
        nonzero=[weights],
    )  # fmt: skip


def gap_of_zero() -> Proved:
    """At W = 0 the gap is 0."""
    small = assume(norm(L.W) <= zero())
    nothing = kernel.antisymmetry(small, norm_nonnegative(L.W))
    at_most = follows(
        0 <= L.gap(i, tau) + norm(A(i, tau)) * norm(L.W), kernel.cauchy_schwarz(-1 * A(i, tau), L.W)
    )
    return follows(
        guaranteed_gap(L) <= L.gap(i, tau),
        at_most, (norm(A(i, tau)), nothing), (margin - R * sqrt(2 * (1 - nt.cosine(L))), nothing),
    )  # fmt: skip


def least_gap() -> Proved:
    """Every logit gap is at least u (g* - R sqrt(2 (1 - cos))), at the generic constraint."""
    return kernel.cases(gap_of_zero(), gap_of_nonzero(), norm(L.W), zero())


def prove_gap() -> Proved:
    """W = 0 is immediate; otherwise W/u is close to M/||M||, whose gaps are at least g*."""
    return co.for_each_constraint(least_gap())


def prove_separated() -> Proved:
    """g* - R sqrt(2 (1 - cos)) >= theta g*, in the gap that norm and direction force."""
    radius = assume(nt.R_POSITIVE)
    root, far = sqrt(2 * (1 - nt.cosine(L))), (1 - theta) * margin / R
    apart = follows(0 <= 2 * (1 - nt.cosine(L)), cosine_at_most_one())
    squares = follows(root**2 <= far**2, (2, assume(settled(L))), nonnegative=[apart])
    inverses = product_nonnegative(
        kernel.inverse_positive(assume(nt.SOLUTION_NONZERO)), kernel.inverse_positive(radius)
    )
    reach = product_nonnegative(follows(0 <= 1 - theta, assume(THETA_AT_MOST_ONE)), weak(inverses))
    close = square_root_order(squares, follows(0 <= far, reach))
    weight = product_nonnegative(weak(radius), norm_nonnegative(L.W))
    gap = at_constraint(GAP_CLAIM)
    each = follows(theta * nt.lam(L) <= L.gap(i, tau), gap, (weight, close), nonzero=[radius])
    return discharge(co.for_each_constraint(each), GAP.proved())


def others_at_most() -> Proved:
    """s_i <= (T - 1) exp(-gap), a sum over at most T - 1 tokens."""
    gap = everywhere(prove_gap(), (i, in_i), (tau, in_tau))
    each = exp_monotone(follows(-L.gap(i, tau) <= -guaranteed_gap(L), gap))
    summed = kernel.sum_order(each, tau, others(i))
    few = co.at_sequence(nt.LENGTH_BOUND)
    return follows(
        co.others_weight() <= attention_gap_bound(L),
        summed, (weak(kernel.exp_positive(-guaranteed_gap(L))), few),
    )  # fmt: skip


def prove_static() -> Proved:
    """1 - p_i <= s_i."""
    s = co.others_weight()
    denominator = follows(0 < 1 + s, co.others_nonnegative(), one_positive())
    leaked = follows(
        1 - L.p(i) <= s,
        (kernel.inverse_positive(denominator), kernel.square(s)), co.at_sequence(L.attention_is()),
        nonzero=[denominator],
    )  # fmt: skip
    claim = chain(leaked, others_at_most())
    return co.for_each_sequence(claim)


def prove_iterates() -> Proved:
    """The static statement at W_t."""
    return kernel.generalize(nt.from_all_times(STATIC.proved(), t), t, nt.NATURALS)


HYPOTHESES = {
    "(S)": nt.SEPARABLE,
    "M is not 0": nt.SOLUTION_NONZERO,
    "R bounds the constraints": nt.NORM_BOUND,
}
NOW = layer(t)

GAP = Theorem(
    key="least-gap",
    title="The norm and the direction of the weights force every logit gap",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=GAP_CLAIM,
    prove=prove_gap,
)
SEPARATED = Theorem(
    key="direction-separates",
    title="Once the direction has settled every logit gap grows with the norm of the weights",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If $1 - \cos \le (1 - \theta)^2 \gamma_\ast^2/(2 R^2)$: {claim}.",
    hypotheses=HYPOTHESES
    | {"R > 0": nt.R_POSITIVE, "theta <= 1": THETA_AT_MOST_ONE, "the direction has settled": settled(L)},
    claim=nt.each(theta * nt.lam(L) <= L.gap(i, tau)),
    prove=prove_separated,
)
STATIC = Theorem(
    key="sparsification-static",
    title="Attention is concentrated where the weights are large and well aligned",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={**HYPOTHESES, "p": L.attention_is(), "T bounds the lengths": nt.LENGTH_BOUND},
    claim=LEAK_BOUNDED,
    prove=prove_static,
)
SPARSIFICATION = Theorem(
    key="sparsification",
    title="Attention concentrates on the optimal token",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={
        **HYPOTHESES,
        "p": nt.at_all_times(L.attention_is()),
        "T bounds the lengths": nt.LENGTH_BOUND,
    },
    claim=nt.always(nt.each_sequence(1 - NOW.p(i) <= attention_gap_bound(NOW))),
    prove=prove_iterates,
    rate=Rate(observed=1 - NOW.p(i), bound=attention_gap_bound(NOW), sense="upper", small_numbers=True),
)
PAGES = (GAP, SEPARATED, STATIC, SPARSIFICATION)
