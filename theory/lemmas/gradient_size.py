"""The size of the gradient, by the norm of the weights and by the smallest logit gap.

||grad L|| >= g* a_min exp(-g* ||W||)/T^2 where every logit gap is at least -g* ||W||, and
||grad L|| <= R N a_max exp(-b) where every logit gap is at least b: near a solution the gradient is
exponentially small, which is what makes plain gradient descent slow. Anywhere, ||grad L|| <= R n a_max/4.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import alignment, max_margin
from theory.lemmas import coefficients as co
from theory.lemmas import separator_correlation as lemma1
from theory.notation import STATIC as L
from theory.notation import N, R, T, a_max, a_min, i, margin, n, others, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, sum_order
from theory.proof.tactics import exp_monotone, follows, one_positive, product_nonnegative, weak
from theory.proof.terms import Fraction, Term, eq, exp, norm, real, total

REFERENCE = "our Lemmas 1 and 2"
b = max_margin.b


def gradient_least(now: nt.Layer) -> Term:
    """g* a_min exp(-lam)/T^2, the least norm of the gradient at weights of this norm."""
    return margin * a_min * exp(-nt.lam(now)) / T**2


def gradient_cap() -> Term:
    """R n a_max/4, the greatest norm of the gradient anywhere."""
    return R * n * a_max / 4


def gradient_greatest(gap: Term) -> Term:
    """R N a_max exp(-gap), the greatest norm of the gradient at a smallest logit gap."""
    return R * N * a_max * exp(-gap)


def sequence_mass() -> Proved:
    """sum over tau of c_(i,tau) = a_i p_i (1 - p_i), as p_i s_i = 1 - p_i."""
    coefficient = lemma1.at_constraint(L.coefficient_is())
    summed = sum_order(coefficient, tau, others(i))
    partition, attention = co.partition_positive(), co.at_sequence(L.attention_is())
    weight = 1 + co.others_weight()
    split = follows(eq(L.p(i) * weight, 1), (weight, attention), nonzero=[partition])
    return follows(
        eq(total(tau, others(i), L.c(i, tau)), L.a(i) * L.p(i) * (1 - L.p(i))),
        summed, (L.a(i) * L.p(i), split),
    )  # fmt: skip


def prove_mass() -> Proved:
    """C = sum a_i p_i (1 - p_i)."""
    target = eq(L.C, total(i, nt.SEQUENCES, L.a(i) * L.p(i) * (1 - L.p(i))))
    return follows(target, assume(L.mass_is()), sum_order(sequence_mass(), i, nt.SEQUENCES))


def coefficient_nonnegative() -> Proved:
    """0 <= c_k at the generic constraint."""
    return weak(co.coefficient_positive(alignment.slope_positive()))


def prove_lower() -> Proved:
    """||D|| >= g* C >= g* c_k0 at the least gap k0, and a_min exp(-lam) <= T^2 c_k0."""
    one = co.one_of_all(coefficient_nonnegative(), alignment.in_i0, alignment.in_tau0)
    nonnegative = co.for_each_constraint(coefficient_nonnegative())
    lower = discharge(lemma1.LOWER.proved(), nonnegative)
    length = follows(0 < T, alignment.several_tokens(), one_positive())
    inverse = kernel.inverse_positive(length)
    g_star = kernel.inverse_positive(assume(nt.SOLUTION_NONZERO))
    weight = product_nonnegative(g_star, product_nonnegative(inverse, inverse))
    claim = follows(
        gradient_least(L) <= norm(L.descent),
        lower, (g_star, one), (margin, assume(L.mass_is())),
        (weak(weight), alignment.least_coefficient_bounded()),
        nonzero=[length],
    )  # fmt: skip
    binders = [(alignment.i0, nt.SEQUENCES), (alignment.tau0, nt.others(alignment.i0))]
    some = kernel.least(claim, binders, alignment.mu0, [co.some_i, co.some_tau])
    return co.without_mass(some)


def prove_upper() -> Proved:
    """||D|| <= R C, and each c_k = a_i p_i^2 exp(-mu_k) <= a_max exp(-b)."""
    gap = exp_monotone(follows(-L.gap(i, tau) <= -b, lemma1.at_constraint(max_margin.GAPS_AT_LEAST)))
    attention = co.attention_at_most_one()
    square = follows(L.p(i) ** 2 <= 1, attention, (weak(co.attention_positive()), attention))
    pulled = weak(product_nonnegative(co.slope_positive(), kernel.exp_positive(-L.gap(i, tau))))
    each = follows(
        L.c(i, tau) <= a_max * exp(-b),
        lemma1.at_constraint(L.coefficient_is()), (pulled, square), (weak(co.slope_positive()), gap),
        (weak(kernel.exp_positive(-b)), co.at_sequence(nt.SLOPE_UPPER)),
    )  # fmt: skip
    mass = follows(
        L.C <= N * a_max * exp(-b),
        lemma1.sum_constraints(each), assume(L.mass_is()), (a_max * exp(-b), assume(nt.COUNT_IS)),
    )  # fmt: skip
    upper = discharge(lemma1.UPPER.proved(), co.COEFFICIENTS_NONNEGATIVE.proved())
    return co.without_mass(
        follows(norm(L.descent) <= gradient_greatest(b), upper, (weak(assume(nt.R_POSITIVE)), mass))
    )


def prove_bounded() -> Proved:
    """||D|| <= R C, and each a_i p_i (1 - p_i) <= a_max/4."""
    p, slope = L.p(i), co.at_sequence(nt.SLOPE_UPPER)
    spare = product_nonnegative(
        weak(co.attention_positive()), follows(0 <= 1 - p, co.attention_at_most_one())
    )
    largest = follows(0 <= a_max, slope, co.slope_positive())
    each = follows(
        L.a(i) * p * (1 - p) <= a_max / 4, (spare, slope), (largest, kernel.square(p - Fraction(1, 2)))
    )
    summed = sum_order(each, i, nt.SEQUENCES)
    mass = follows(L.C <= n * a_max / 4, MASS.proved(), summed, (a_max, assume(SAMPLES_COUNTED)))
    upper = discharge(lemma1.UPPER.proved(), co.COEFFICIENTS_NONNEGATIVE.proved())
    radius = weak(assume(nt.R_POSITIVE))
    return co.without_mass(follows(norm(L.descent) <= gradient_cap(), upper, (radius, mass)))


SAMPLES_COUNTED = eq(n, total(i, nt.SEQUENCES, real(1)))
LOWER = Theorem(
    key="gradient-least",
    title="The gradient is at least exponentially small in the norm of the weights",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $-\gamma_\ast\,\|W\|$: {claim}.",
    hypotheses={
        **{
            name: alignment.HYPOTHESES[name]
            for name in alignment.HYPOTHESES
            if name not in ("W is not 0", "a_max", "N")
        },
        "M is not 0": nt.SOLUTION_NONZERO,
    },
    claim=gradient_least(L) <= norm(L.descent),
    prove=prove_lower,
)
UPPER = Theorem(
    key="gradient-greatest",
    title="The gradient is exponentially small in the smallest logit gap",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $b$: {claim}.",
    hypotheses={
        **{name: co.HYPOTHESES[name] for name in (*co.DEFINITIONS, "gradient", "R bounds the constraints")},
        "R > 0": nt.R_POSITIVE,
        "N": nt.COUNT_IS,
        "a_max": nt.SLOPE_UPPER,
        "gaps are at least b": max_margin.GAPS_AT_LEAST,
    },
    claim=norm(L.descent) <= gradient_greatest(b),
    prove=prove_upper,
)
MASS = Theorem(
    key="gradient-mass",
    title="The gradient's mass, sequence by sequence",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={name: co.HYPOTHESES[name] for name in ("p", "c", "C")},
    claim=eq(L.C, total(i, nt.SEQUENCES, L.a(i) * L.p(i) * (1 - L.p(i)))),
    prove=prove_mass,
)
BOUNDED = Theorem(
    key="gradient-bounded",
    title="The gradient is bounded",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={
        **{name: co.HYPOTHESES[name] for name in (*co.DEFINITIONS, "gradient", "R bounds the constraints")},
        "R > 0": nt.R_POSITIVE,
        "a_max": nt.SLOPE_UPPER,
        "n counts the sequences": SAMPLES_COUNTED,
    },
    claim=norm(L.descent) <= gradient_cap(),
    prove=prove_bounded,
)
PAGES = (LOWER, UPPER, MASS, BOUNDED)
