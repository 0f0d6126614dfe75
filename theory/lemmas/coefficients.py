"""Signs and sizes of the layer's quantities, from their definitions.

With G_i > 0 and n > 0: 0 < p_i <= 1, a_min <= a_i <= a_max, c_k > 0, and, given one constraint, C > 0, M is
not 0, R > 0 and the gradient is not 0. These pages discharge the hypotheses of the same names elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

from theory import notation as nt
from theory.lemmas.separator_correlation import LOWER, at_constraint, in_i
from theory.notation import STATIC as L
from theory.notation import A, G, M, R, a_max, a_min, g, i, i1, n, others, over, tau, tau1
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize, sum_order, term_of_sum
from theory.proof.tactics import (
    chain,
    equation,
    everywhere,
    exp_monotone,
    follows,
    inverse_order,
    norm_nonnegative,
    one_positive,
    product_nonnegative,
    weak,
    zero,
)
from theory.proof.terms import Formula, Term, eq, exp, inv, norm, total

REFERENCE = "the paper's gradient formula, section 2; definitions only"
some_i, some_tau = assume(nt.SOME_SEQUENCE), assume(nt.SOME_TOKEN)


def for_each_sequence(claim: Proved) -> Proved:
    """A claim about the generic sequence i, for every sequence."""
    return generalize(claim, i, nt.SEQUENCES)


def for_each_constraint(claim: Proved) -> Proved:
    """A claim about the generic constraint (i, tau), for every constraint."""
    return for_each_sequence(generalize(claim, tau, others(i)))


def at_sequence(formula: Formula) -> Proved:
    """A hypothesis about every sequence, at the generic sequence i."""
    return specialize(assume(formula), i, in_i)


def moved(claim: Proved, inside: Proved) -> Proved:
    """A claim about the generic sequence i, for another sequence, given that it is one."""
    return discharge(kernel.instantiate(claim, indices={"i": inside.conclusion[1]}), inside)


def one_of_all(claim: Proved, in_i1: Proved, in_tau1: Proved) -> Proved:
    """From 0 <= f at the generic constraint: f at one constraint is at most the sum over all of them."""
    f = claim.conclusion[2]
    within = sum_order(claim, tau, others(i))
    sequence = follows(0 <= total(tau, others(i), f), within)
    outer = term_of_sum(sequence, i, nt.SEQUENCES, in_i1)
    inner_sum = term_of_sum(moved(claim, in_i1), tau, others(in_i1.conclusion[1]), in_tau1)
    return chain(inner_sum, outer)


# --- attention ---------------------------------------------------------------------------------------------


def others_weight() -> Term:
    """s_i, the sum of exp(-mu) over the other tokens of sequence i."""
    return total(tau, others(i), exp(-L.gap(i, tau)))


def others_nonnegative() -> Proved:
    """0 <= s_i."""
    return follows(0 <= others_weight(), sum_order(weak(kernel.exp_positive(-L.gap(i, tau))), tau, others(i)))


def partition_positive() -> Proved:
    """0 < 1 + s_i."""
    return follows(0 < 1 + others_weight(), others_nonnegative(), one_positive())


def attention_positive() -> Proved:
    """0 < p_i at the generic sequence: the inverse of 1 + s_i >= 1."""
    inverse = kernel.inverse_positive(partition_positive())
    return follows(0 < L.p(i), inverse, at_sequence(L.attention_is()))


def attention_at_most_one() -> Proved:
    """p_i <= 1 at the generic sequence: p_i (1 + s_i) = 1."""
    partition = partition_positive()
    return follows(
        L.p(i) <= 1,
        (kernel.inverse_positive(partition), others_nonnegative()), at_sequence(L.attention_is()),
        nonzero=[partition],
    )  # fmt: skip


# --- slopes and coefficients -------------------------------------------------------------------------------

LOWER_SLOPE_BOUND = nt.each_sequence(a_min <= G(i) / (n * (1 + exp(g(i) + G(i)))))
UPPER_SLOPE_BOUND = nt.each_sequence(G(i) / (n * (1 + exp(g(i)))) <= a_max)
DATA_SIZE_POSITIVE = 0 < n


def pull() -> Proved:
    """0 < G_i/n."""
    size = kernel.inverse_positive(assume(DATA_SIZE_POSITIVE))
    return follows(0 < G(i) / n, (size, at_sequence(nt.SCORE_GAPS)))


def denominator_positive(score: Term) -> Proved:
    """0 < 1 + exp(score)."""
    return follows(0 < 1 + exp(score), kernel.exp_positive(score), one_positive())


def factored(score: Term) -> Proved:
    """1/(n (1 + exp(score))) = 1/n sigma(-score)."""
    size, denominator = assume(DATA_SIZE_POSITIVE), denominator_positive(score)
    target = eq(inv(n * (1 + exp(score))), inv(n) * inv(1 + exp(score)))
    return equation(target, nonzero=[size, denominator, product_nonnegative(size, denominator)])


def sigmoid_order(order: Proved) -> Proved:
    """From a <= b, sigma(-b) <= sigma(-a)."""
    a, b = order.conclusion[1:]
    denominators = follows(1 + exp(a) <= 1 + exp(b), exp_monotone(order))
    return inverse_order(denominators, denominator_positive(a))


MARGIN_SCORE = g(i) + G(i) * L.p(i)  # m_i under (E)


def slope_positive() -> Proved:
    """0 < a_i at the generic sequence."""
    sigmoid = kernel.inverse_positive(denominator_positive(MARGIN_SCORE))
    return follows(0 < L.a(i), (pull(), sigmoid), at_sequence(L.slope_is()), (G(i), factored(MARGIN_SCORE)))


def prove_slope_lower() -> Proved:
    """a_min <= a_i: m_i = g_i + G_i p_i is at most g_i + G_i."""
    gap = weak(at_sequence(nt.SCORE_GAPS))
    score = follows(MARGIN_SCORE <= g(i) + G(i), (gap, attention_at_most_one()))
    order = follows(
        G(i) / (n * (1 + exp(g(i) + G(i)))) <= L.a(i),
        (weak(pull()), sigmoid_order(score)), at_sequence(L.slope_is()),
        (G(i), factored(MARGIN_SCORE)), (G(i), factored(g(i) + G(i))),
    )  # fmt: skip
    return for_each_sequence(chain(at_sequence(LOWER_SLOPE_BOUND), order))


def prove_slope_upper() -> Proved:
    """a_i <= a_max: m_i = g_i + G_i p_i is at least g_i."""
    gap = weak(at_sequence(nt.SCORE_GAPS))
    score = follows(g(i) <= MARGIN_SCORE, (gap, weak(attention_positive())))
    order = follows(
        L.a(i) <= G(i) / (n * (1 + exp(g(i)))),
        (weak(pull()), sigmoid_order(score)), at_sequence(L.slope_is()),
        (G(i), factored(MARGIN_SCORE)), (G(i), factored(g(i))),
    )  # fmt: skip
    return for_each_sequence(chain(order, at_sequence(UPPER_SLOPE_BOUND)))


def coefficient_positive(slope: Proved) -> Proved:
    """0 < c_k at the generic constraint, from 0 < a_i."""
    square = product_nonnegative(attention_positive(), attention_positive())
    factor = product_nonnegative(square, kernel.exp_positive(-L.gap(i, tau)))
    return follows(0 < L.c(i, tau), (slope, factor), at_constraint(L.coefficient_is()))


def prove_coefficients_positive() -> Proved:
    """Each factor of c_k = a_i p_i^2 exp(-mu_k) is positive."""
    return for_each_constraint(coefficient_positive(slope_positive()))


def prove_coefficients_nonnegative() -> Proved:
    """The weak form, as the other lemmas state it."""
    return for_each_constraint(weak(coefficient_positive(slope_positive())))


# --- given one constraint ----------------------------------------------------------------------------------


def at_some(claim: Proved) -> Proved:
    """A universal claim about constraints, at the constraint (i1, tau1) that exists."""
    return everywhere(claim, (i1, some_i), (tau1, some_tau))


def prove_mass_positive() -> Proved:
    """0 < C: the sum is at least its term c_(i1,tau1) > 0."""
    whole = one_of_all(weak(coefficient_positive(slope_positive())), some_i, some_tau)
    return follows(0 < L.C, at_some(prove_coefficients_positive()), whole, assume(L.mass_is()))


def positive_factor(product: Proved, other: Proved, factor: Term) -> Proved:
    """From 1 <= other * factor and 0 <= other, 0 < factor: otherwise the product would be at most 0."""
    wrong = kernel.combine(zero() < zero(), [(1, one_positive()), (1, product), (other, assume(factor <= 0))])
    target = 0 < factor
    return kernel.cases(kernel.absurd(wrong, target), assume(target), factor, zero())


def separation() -> Proved:
    """1 <= ||A_k|| ||M|| at the constraint that exists."""
    a = A(i1, tau1)
    return follows(1 <= norm(a) * norm(M), at_some(assume(nt.SEPARABLE)), kernel.cauchy_schwarz(a, M))


def without_mass(claim: Proved) -> Proved:
    """A claim that does not speak of C, without the hypothesis that defines C: let C be that sum."""
    mass = over(L.c(i, tau))
    return discharge(kernel.instantiate(claim, reals={"C": mass}), equation(eq(mass, mass)))


def prove_solution_nonzero() -> Proved:
    """0 < ||M||: 1 <= <A_k, M> <= ||A_k|| ||M||."""
    return positive_factor(separation(), norm_nonnegative(A(i1, tau1)), norm(M))


def prove_bound_positive() -> Proved:
    """0 < R: 1 <= <A_k, M> <= R ||M||."""
    product = follows(1 <= norm(M) * R, separation(), (norm_nonnegative(M), at_some(assume(nt.NORM_BOUND))))
    return positive_factor(product, norm_nonnegative(M), R)


def prove_gradient_nonzero() -> Proved:
    """0 < ||D||: g* C <= ||D||, g* > 0 and C > 0."""
    nonnegative = prove_coefficients_nonnegative()
    lower = discharge(LOWER.proved(), nonnegative, prove_solution_nonzero())
    margin_positive = kernel.inverse_positive(prove_solution_nonzero())
    return without_mass(follows(0 < norm(L.descent), lower, (margin_positive, prove_mass_positive())))


HYPOTHESES = {
    "p": L.attention_is(),
    "a": L.slope_is(),
    "c": L.coefficient_is(),
    "(E)": nt.SCORE_GAPS,
    "n > 0": DATA_SIZE_POSITIVE,
    "C": L.mass_is(),
    "gradient": L.gradient_is(),
    "(S)": nt.SEPARABLE,
    "R bounds the constraints": nt.NORM_BOUND,
    "there is a sequence": nt.SOME_SEQUENCE,
    "with a constraint": nt.SOME_TOKEN,
    "a_min bounds the slopes": LOWER_SLOPE_BOUND,
    "a_max bounds the slopes": UPPER_SLOPE_BOUND,
}


def _page(key: str, title: str, claim: Formula, prove: Callable[[], Proved], *needs: str) -> Theorem:
    return Theorem(
        key=key,
        title=title,
        kind="lemma",
        reference=REFERENCE,
        statement=r"For every $W$: {claim}.",
        hypotheses={name: HYPOTHESES[name] for name in needs},
        claim=claim,
        prove=prove,
    )


DEFINITIONS = ("p", "a", "c", "(E)", "n > 0")
EXISTS = ("there is a sequence", "with a constraint")

ATTENTION_POSITIVE = _page(
    "attention-positive", "Attention on the optimal token is positive", nt.each_sequence(0 < L.p(i)),
    lambda: for_each_sequence(attention_positive()), "p",
)  # fmt: skip
ATTENTION_AT_MOST_ONE = _page(
    "attention-at-most-one", "Attention on the optimal token is at most 1", nt.each_sequence(L.p(i) <= 1),
    lambda: for_each_sequence(attention_at_most_one()), "p",
)  # fmt: skip
SLOPE_POSITIVE = _page(
    "slope-positive", "Every sequence pulls", nt.each_sequence(0 < L.a(i)),
    lambda: for_each_sequence(slope_positive()), "a", "(E)", "n > 0",
)  # fmt: skip
SLOPE_LOWER = _page(
    "slope-lower", "No sequence pulls less than with full attention", nt.SLOPE_LOWER,
    prove_slope_lower, "p", "a", "(E)", "n > 0", "a_min bounds the slopes",
)  # fmt: skip
SLOPE_UPPER = _page(
    "slope-upper", "No sequence pulls more than with no attention", nt.SLOPE_UPPER,
    prove_slope_upper, "p", "a", "(E)", "n > 0", "a_max bounds the slopes",
)  # fmt: skip
COEFFICIENTS_POSITIVE = _page(
    "coefficients-positive", "Every constraint pulls", nt.each(0 < L.c(i, tau)),
    prove_coefficients_positive, *DEFINITIONS,
)  # fmt: skip
COEFFICIENTS_NONNEGATIVE = _page(
    "coefficients-nonnegative", "No constraint pushes back", L.coefficients_nonnegative(),
    prove_coefficients_nonnegative, *DEFINITIONS,
)  # fmt: skip
MASS_POSITIVE = _page(
    "mass-positive", "The gradient's mass is positive", 0 < L.C,
    prove_mass_positive, *DEFINITIONS, "C", *EXISTS,
)  # fmt: skip
SOLUTION_NONZERO = _page(
    "solution-nonzero", "The max-margin solution is not 0", nt.SOLUTION_NONZERO,
    prove_solution_nonzero, "(S)", *EXISTS,
)  # fmt: skip
BOUND_POSITIVE = _page(
    "bound-positive", "The largest constraint is not 0", nt.R_POSITIVE,
    prove_bound_positive, "(S)", "R bounds the constraints", *EXISTS,
)  # fmt: skip
GRADIENT_NONZERO = _page(
    "gradient-nonzero", "The gradient never vanishes", 0 < norm(L.descent),
    prove_gradient_nonzero, *DEFINITIONS, "gradient", "(S)", *EXISTS,
)  # fmt: skip

PAGES = (
    ATTENTION_POSITIVE, ATTENTION_AT_MOST_ONE, SLOPE_POSITIVE, SLOPE_LOWER, SLOPE_UPPER,
    COEFFICIENTS_POSITIVE, COEFFICIENTS_NONNEGATIVE, MASS_POSITIVE, SOLUTION_NONZERO, BOUND_POSITIVE,
    GRADIENT_NONZERO,
)  # fmt: skip
