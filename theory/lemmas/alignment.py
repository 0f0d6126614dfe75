"""Lemma 2 (alignment): the negative gradient is at least as well aligned with M as with W, up to a factor.

With lam = g* ||W||, every logit gap at least -lam, and Lam = LambertW((N - 1) kappa T^2/e):

    <-grad L, W> <= (lam + Lam) <-grad L, M>;    for W not 0, (1 - eps) <-grad L, W^> <= <-grad L, M^>

with eps = Lam/(lam + Lam); W^ and M^ are the directions of W and M.

kappa = a_max/a_min, N is the number of constraints, T the length of the longest sequence. Proof, with
B = lam + Lam and f_k = c_k (mu_k - B): no f_k exceeds h = a_max exp(-B - 1); at the least gap k0, f_k0 is at
most -Lam a_min exp(-lam)/T^2; Lam is chosen such that (N - 1) h is the opposite of that. So sum f_k <= 0.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import max_margin
from theory.lemmas.separator_correlation import CORRELATION, along, at_constraint
from theory.notation import STATIC as L
from theory.notation import Lam, M, N, T, a_max, a_min, i, i1, kappa, margin, others, over, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, specialize, sum_order
from theory.proof.tactics import (
    everywhere,
    exp_monotone,
    exp_tangent,
    follows,
    norm_nonnegative,
    one_positive,
    product_nonnegative,
    restate,
    weak,
)
from theory.proof.terms import Fraction, exp, index, inner, member, norm, real, total

REFERENCE = "our Lemma 2; the paper's alignment of the gradient with W_mm, with its Lambert-W constant"
lam = nt.lam(L)
B = lam + Lam
h = a_max * exp(-B - 1)
i0, tau0 = index("i0"), index("tau0")  # the constraint of least gap
in_i0, in_tau0 = assume(member(i0, nt.SEQUENCES)), assume(member(tau0, others(i0)))
mu0 = L.gap(i0, tau0)
crowd = total(tau, others(i0), exp(-L.gap(i0, tau)))  # s_i0
LEAST = nt.each(L.gap(i0, tau0) <= L.gap(i, tau))


def share(i: nt.Index, tau: nt.Index) -> nt.Term:
    """f_k = c_k (mu_k - B), what constraint k adds to <-grad L, W> - B C."""
    return L.c(i, tau) * (L.gap(i, tau) - B)


def scaled_norm_nonnegative() -> Proved:
    """0 <= lam."""
    inverse = kernel.inverse_positive(assume(nt.SOLUTION_NONZERO))
    return product_nonnegative(weak(inverse), norm_nonnegative(L.W))


def constant_is() -> tuple[Proved, Proved]:
    """0 <= Lam and Lam exp(Lam) = (N - 1) kappa T^2/e: there is a constraint, so N >= 1."""
    one = co.one_of_all(weak(one_positive()), co.some_i, co.some_tau)
    count = follows(0 <= N - 1, one, assume(nt.COUNT_IS))
    ratio = follows(
        0 <= kappa, (largest_slope_nonnegative(), kernel.inverse_positive(assume(nt.SLOPE_LOWER_POSITIVE)))
    )
    square = product_nonnegative(kernel.square(T), kernel.exp_positive(real(-1)))
    argument = product_nonnegative(product_nonnegative(count, ratio), square)
    argument = restate(0 <= Lam[2], argument)
    return kernel.lambert_w_nonnegative(argument), kernel.lambert_w(argument)


def largest_slope_nonnegative() -> Proved:
    """0 <= a_max: 0 < a_min <= a_i <= a_max for the sequence i1."""
    low, high = (specialize(assume(f), i1, co.some_i) for f in (nt.SLOPE_LOWER, nt.SLOPE_UPPER))
    return weak(follows(0 < a_max, assume(nt.SLOPE_LOWER_POSITIVE), low, high))


def slope_positive() -> Proved:
    """0 < a_i at the generic sequence."""
    return follows(0 < L.a(i), assume(nt.SLOPE_LOWER_POSITIVE), co.at_sequence(nt.SLOPE_LOWER))


def term_bounded() -> Proved:
    """f_k <= h at the generic constraint: x exp(-x) <= exp(-1) at x = mu_k - B, unless f_k <= 0 anyway."""
    mu, c, p, a = L.gap(i, tau), L.c(i, tau), L.p(i), L.a(i)
    target = share(i, tau) <= h
    size = product_nonnegative(largest_slope_nonnegative(), kernel.exp_positive(-B - 1))
    near = follows(target, (weak(co.coefficient_positive(slope_positive())), assume(mu <= B)), size)
    at_most_one = co.attention_at_most_one()
    square = follows(p**2 <= 1, at_most_one, (weak(co.attention_positive()), at_most_one))
    decay = kernel.exp_positive(-mu)
    pulled = weak(product_nonnegative(slope_positive(), decay))
    without_attention = follows(c <= a * exp(-mu), at_constraint(L.coefficient_is()), (pulled, square))
    largest = follows(c <= a_max * exp(-mu), without_attention, (weak(decay), co.at_sequence(nt.SLOPE_UPPER)))
    height = product_nonnegative(largest_slope_nonnegative(), decay)
    beyond = assume(B < mu)
    far = follows(target, (weak(beyond), largest), (height, exp_tangent(mu - B - 1)))
    return kernel.cases(near, far, mu, B)


def least_gap_at_most_lam() -> Proved:
    """mu_k0 <= lam: the least gap is a common lower bound of the gaps."""
    return kernel.instantiate(max_margin.OPTIMALITY.proved(), reals={"b": L.gap(i0, tau0)})


def crowd_bounded() -> Proved:
    """1 + s_i0 <= 1 + (T - 1) exp(-mu_k0): k0 is the least of the gaps, and i0 has at most T tokens."""
    others_of_i0 = assume(member(tau, others(i0)))
    gap = everywhere(assume(LEAST), (i0, in_i0), (tau, others_of_i0))
    each = exp_monotone(follows(-L.gap(i0, tau) <= -mu0, gap))
    length = specialize(assume(nt.LENGTH_BOUND), i0, in_i0)
    return follows(
        1 + crowd <= 1 + (T - 1) * exp(-mu0),
        sum_order(each, tau, others(i0)), (weak(kernel.exp_positive(-mu0)), length),
    )  # fmt: skip


def several_tokens() -> Proved:
    """0 <= T - 1."""
    nobody = sum_order(weak(one_positive()), tau, others(i0))
    return follows(0 <= T - 1, nobody, specialize(assume(nt.LENGTH_BOUND), i0, in_i0))


def attention_bounded() -> Proved:
    """exp(-lam/2) <= T p_i0 exp(-mu_k0/2): exp(mu/2) + (T - 1) exp(-mu/2) <= T exp(lam/2), |mu| <= lam."""
    half = Fraction(1, 2)
    low = everywhere(assume(nt.gaps_bounded(L)), (i0, in_i0), (tau0, in_tau0))
    up = exp_monotone(follows(half * mu0 <= half * lam, least_gap_at_most_lam()))
    down = exp_monotone(follows(-half * mu0 <= half * lam, low))
    spread = follows(
        (1 + crowd) * exp(half * mu0) <= T * exp(half * lam),
        (weak(kernel.exp_positive(half * mu0)), crowd_bounded()), up, (several_tokens(), down),
    )  # fmt: skip
    positive = co.moved(co.attention_positive(), in_i0)
    weight = product_nonnegative(positive, kernel.exp_positive(-half * (mu0 + lam)))
    denominator = co.moved(co.partition_positive(), in_i0)
    return follows(
        exp(-half * lam) <= T * L.p(i0) * exp(-half * mu0),
        (weak(weight), spread),
        (exp(-half * lam) * (1 + crowd), specialize(assume(L.attention_is()), i0, in_i0)),
        nonzero=[denominator],
    )  # fmt: skip


def least_coefficient_bounded() -> Proved:
    """a_min exp(-lam) <= T^2 c_k0: the square of the bound on the attention, times a_i0 >= a_min."""
    root, reach = exp(-Fraction(1, 2) * lam), T * L.p(i0) * exp(-Fraction(1, 2) * mu0)
    bounded = attention_bounded()
    positive = kernel.exp_positive(-Fraction(1, 2) * lam)
    together = weak(follows(0 < root + reach, positive, bounded))
    square = follows(root**2 <= reach**2, (together, bounded))
    low = specialize(assume(nt.SLOPE_LOWER), i0, in_i0)
    return follows(
        a_min * exp(-lam) <= T**2 * L.c(i0, tau0),
        (weak(assume(nt.SLOPE_LOWER_POSITIVE)), square),
        (kernel.square(reach), low),
        (T**2, everywhere(assume(L.coefficient_is()), (i0, in_i0), (tau0, in_tau0))),
    )  # fmt: skip


def least_share_bounded() -> Proved:
    """f_k0 <= -(N - 1) h: mu_k0 - B <= -Lam, and Lam a_min exp(-lam)/T^2 = (N - 1) h by the choice of Lam."""
    length = follows(0 < T, several_tokens(), one_positive())
    shrink = kernel.inverse_positive(length)
    constant, choice = constant_is()
    weight = product_nonnegative(product_nonnegative(weak(shrink), weak(shrink)), constant)
    least = kernel.instantiate(weak(co.coefficient_positive(slope_positive())), indices={"tau": tau0})
    return follows(
        share(i0, tau0) <= -(N - 1) * h,
        (discharge(co.moved(least, in_i0), in_tau0), least_gap_at_most_lam()),
        (weight, least_coefficient_bounded()),
        (a_min * exp(-B) / T**2, choice),
        nonzero=[length, assume(nt.SLOPE_LOWER_POSITIVE)],
    )


def shares_at_most_zero() -> Proved:
    """sum f_k <= 0: all but one are at most h, and f_k0 makes up for them."""
    spare = follows(0 <= h - share(i, tau), term_bounded())
    return follows(
        over(share(i, tau)) <= 0,
        co.one_of_all(spare, in_i0, in_tau0),
        least_share_bounded(),
        (h, assume(nt.COUNT_IS)),
    )


PRODUCT = inner(L.descent, L.W) <= B * inner(L.descent, M)


def prove_product() -> Proved:
    """<-grad L, W> - B C = sum f_k <= 0, and C <= <-grad L, M>."""
    binders = [(i0, nt.SEQUENCES), (tau0, others(i0))]
    shares = kernel.least(shares_at_most_zero(), binders, mu0, [co.some_i, co.some_tau])
    nonnegative = follows(0 <= B, scaled_norm_nonnegative(), constant_is()[0])
    coefficients = co.for_each_constraint(weak(co.coefficient_positive(slope_positive())))
    correlation = discharge(CORRELATION.proved(), coefficients)
    reach = follows(PRODUCT, shares, along(L.W), (B, assume(L.mass_is())), (nonnegative, correlation))
    return discharge(co.without_mass(reach), co.SOLUTION_NONZERO.proved())


CLAIM = lam / (lam + Lam) * (inner(L.descent, L.W) / norm(L.W)) <= margin * inner(L.descent, M)


def prove_alignment() -> Proved:
    """The product form, times g*/B."""
    solution, weights = co.SOLUTION_NONZERO.proved(), assume(nt.WEIGHTS_NONZERO)
    inverse = kernel.inverse_positive(solution)
    positive = follows(0 < B, (inverse, weights), constant_is()[0])
    weight = weak(product_nonnegative(inverse, kernel.inverse_positive(positive)))
    return follows(CLAIM, (weight, prove_product()), nonzero=[positive, solution, weights])


HYPOTHESES = {
    "(S)": nt.SEPARABLE,
    "alpha >= 0": nt.DUAL_NONNEGATIVE,
    "M is a combination of the constraints": nt.DUAL_EXPANSION,
    "complementary slackness": nt.DUAL_MASS,
    "W is not 0": nt.WEIGHTS_NONZERO,
    "logit gaps are at least -lam": nt.gaps_bounded(L),
    "p": L.attention_is(),
    "c": L.coefficient_is(),
    "gradient": L.gradient_is(),
    "a_min": nt.SLOPE_LOWER,
    "a_max": nt.SLOPE_UPPER,
    "a_min > 0": nt.SLOPE_LOWER_POSITIVE,
    "N": nt.COUNT_IS,
    "T": nt.LENGTH_BOUND,
    "there is a sequence": nt.SOME_SEQUENCE,
    "with a constraint": nt.SOME_TOKEN,
}

ALIGNMENT_PRODUCT = Theorem(
    key="alignment-product",
    title="Along the weights the negative gradient goes no further than along the max-margin solution",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $-\gamma_\ast\,\|W\|$: {claim}.",
    hypotheses=without(HYPOTHESES, "W is not 0"),
    claim=PRODUCT,
    prove=prove_product,
)
ALIGNMENT = Theorem(
    key="alignment",
    title="The negative gradient is nearly as well aligned with the max-margin solution as with the weights",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If $W \ne 0$ and every logit gap of $W$ is at least $-\gamma_\ast\,\|W\|$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=CLAIM,
    prove=prove_alignment,
)

PAGES = (ALIGNMENT_PRODUCT, ALIGNMENT)
