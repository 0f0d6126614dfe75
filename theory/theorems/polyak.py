"""Polyak steps, e_t = min((L_t - L*)/(2 ||grad L_t||), e_max): bounded below, so the path grows linearly.

Let rho bound the ratio of the extreme slopes of every sequence, sigma(-g_i) <= rho sigma(-g_i - G_i). Then

    min(1/(2 R rho), e_max) <= e_t,    and    e_t <= 1/(2 g* p)   where every p_i >= p > 0;

in terms of the weights, e_t <= (1 + (T - 1) exp(-||W|| (g* - R sqrt(2 (1 - cos)))))/(2 g*), at last 1/(2 g*).

No step size is tuned: the excess loss and the gradient's norm are both of the order of the missing attention,
L - L* >= sum w_i (1 - p_i) and ||grad L|| <= R sum a_i p_i (1 - p_i), and a_i <= rho w_i (upper: mirrored).
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import separator_correlation as lemma1
from theory.lemmas.gradient_size import MASS
from theory.notation import STATIC as L
from theory.notation import G, R, e, g, i, layer, margin, n, path_length, s, t
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize, sum_order
from theory.proof.tactics import (
    at_most_min,
    chain,
    follows,
    inverse_order,
    min_below,
    one_positive,
    product_nonnegative,
    weak,
)
from theory.proof.terms import Term, as_real, below, eq, exp, minimum, norm, number, symbol
from theory.theorems import loss, norm_growth, sparsification

REFERENCE = "our corollaries of Theorem A; the paper's Polyak step-size"
rho, e_max, p_min = symbol("rho"), symbol("e_max"), symbol("p_min")

LARGEST_SLOPE = G(i) / n / (1 + exp(g(i)))
SLOPE_RATIO = nt.each_sequence(LARGEST_SLOPE <= rho * loss.limit_slope())
RATIO_POSITIVE = 0 < rho
ATTENTION_AT_LEAST = nt.each_sequence(p_min <= L.p(i))
ATTENTION_BOUND_POSITIVE = 0 < p_min


def uncapped(now: nt.Layer) -> Term:
    """The Polyak step without its cap."""
    return loss.excess(now) / (2 * norm(now.descent))


# --- lower bound -------------------------------------------------------------------------------------------


def slope_at_most_ratio() -> Proved:
    """a_i <= G_i sigma(-g_i)/n <= rho w_i."""
    order = loss.slope_order(weak(co.attention_positive()))
    return follows(
        L.a(i) <= rho * loss.limit_slope(),
        (loss.per_sample(), order), co.at_sequence(SLOPE_RATIO),
        co.at_sequence(L.slope_is()), (G(i), co.factored(loss.score(L.p(i)))),
    )  # fmt: skip


def prove_gradient_upper() -> Proved:
    """||D|| <= R C, and a_i p_i (1 - p_i) <= a_i (1 - p_i) <= rho w_i (1 - p_i), rho times the loss's."""
    missing = loss.missing_nonnegative()
    full = product_nonnegative(weak(co.slope_positive()), product_nonnegative(missing, missing))
    each = follows(
        L.a(i) * L.p(i) * (1 - L.p(i)) <= rho * loss.limit_slope() * (1 - L.p(i)),
        (missing, slope_at_most_ratio()), full,
    )  # fmt: skip
    ratio = weak(assume(RATIO_POSITIVE))
    mass = follows(
        L.C <= rho * loss.excess(L),
        MASS.proved(), sum_order(each, i, nt.SEQUENCES), (ratio, loss.prove_lower()),
    )  # fmt: skip
    reach = follows(
        norm(L.descent) <= R * rho * loss.excess(L),
        lemma1.UPPER.proved(), (weak(assume(nt.R_POSITIVE)), mass),
    )  # fmt: skip
    return discharge(reach, co.COEFFICIENTS_NONNEGATIVE.proved())


def prove_uncapped_lower() -> Proved:
    """Divide by 2 R rho ||D||."""
    size, radius, ratio = assume(GRADIENT_NONZERO), assume(nt.R_POSITIVE), assume(RATIO_POSITIVE)
    divisors = product_nonnegative(product_nonnegative(radius, ratio), size)
    return follows(
        1 / (2 * R * rho) <= uncapped(L),
        (weak(kernel.inverse_positive(divisors)), prove_gradient_upper()),
        nonzero=[size, radius, ratio],
    )  # fmt: skip


def capped(bound: Proved) -> Proved:
    """From a <= b, min(a, e_max) <= min(b, e_max)."""
    a, b = bound.conclusion[1:]
    low, cap = min_below(a, e_max)
    return at_most_min(follows(minimum(a, e_max) <= b, low, bound), cap)


def the_step() -> Proved:
    """e_t is the smaller of the Polyak step and the cap."""
    return specialize(assume(RULE), t)


def prove_step_lower() -> Proved:
    """The static bound at W_t, both sides capped."""
    bound = nt.from_all_times(capped(prove_uncapped_lower()), t)
    return generalize(follows(LEAST_STEP <= e(t), bound, the_step()), t, nt.NATURALS)


# --- upper bound -------------------------------------------------------------------------------------------


def prove_uncapped_upper() -> Proved:
    """L - L* <= sum a_i (1 - p_i) <= C/p_min, and g* C <= ||D||."""
    slack = follows(0 <= L.p(i) - p_min, co.at_sequence(ATTENTION_AT_LEAST))
    pull = product_nonnegative(weak(co.slope_positive()), loss.missing_nonnegative())
    each = follows(p_min * L.a(i) * (1 - L.p(i)) <= L.a(i) * L.p(i) * (1 - L.p(i)), (pull, slack))
    attention, solution = assume(ATTENTION_BOUND_POSITIVE), assume(nt.SOLUTION_NONZERO)
    mass = follows(
        p_min * loss.excess(L) <= L.C,
        (weak(attention), loss.prove_upper()), sum_order(each, i, nt.SEQUENCES), MASS.proved(),
    )  # fmt: skip
    inverse = weak(kernel.inverse_positive(solution))
    lower = discharge(lemma1.LOWER.proved(), co.COEFFICIENTS_NONNEGATIVE.proved())
    reach = follows(margin * p_min * loss.excess(L) <= norm(L.descent), (inverse, mass), lower)
    size = assume(GRADIENT_NONZERO)
    inverses = product_nonnegative(
        solution, product_nonnegative(kernel.inverse_positive(attention), kernel.inverse_positive(size))
    )
    return follows(
        uncapped(L) <= 1 / (2 * margin * p_min), (weak(inverses), reach), nonzero=[size, attention, solution]
    )


def prove_step_upper() -> Proved:
    """The step is at most the uncapped one."""
    bound = nt.from_all_times(prove_uncapped_upper(), t)
    below_step = min_below(uncapped(NOW), e_max)[0]
    return generalize(follows(e(t) <= GREATEST_STEP, below_step, bound, the_step()), t, nt.NATURALS)


def prove_step_upper_direction() -> Proved:
    """p_i = 1/(1 + s_i), and the norm and the direction of W bound s_i: that is p_min at W_t."""
    leak = sparsification.attention_gap_bound(L)
    others, crowd = co.others_nonnegative(), sparsification.others_at_most()
    room = follows(0 < 1 + leak, one_positive(), others, crowd)
    order = inverse_order(follows(1 + co.others_weight() <= 1 + leak, crowd), co.partition_positive())
    least = co.for_each_sequence(follows(1 / (1 + leak) <= L.p(i), order, co.at_sequence(L.attention_is())))
    some = co.moved(kernel.inverse_positive(room), co.some_i)
    some = follows(0 < 1 / (1 + leak), some)
    bound = kernel.instantiate(UNCAPPED_UPPER.proved(), reals={"p_min": 1 / (1 + leak)})
    bound = nt.from_all_times(discharge(bound, least, some), t)
    below_step = min_below(uncapped(NOW), e_max)[0]
    return generalize(follows(e(t) <= SETTLED_STEP, below_step, bound, the_step()), t, nt.NATURALS)


# --- path length and norm ----------------------------------------------------------------------------------


def prove_path() -> Proved:
    """E_t is a sum of t steps, each at least the least one."""
    summed = sum_order(specialize(STEP_LOWER.proved(), s), s, below(t))
    return generalize(follows(as_real(t) * LEAST_STEP <= path_length(t), summed), t, nt.NATURALS)


def prove_norm() -> Proved:
    """Norm growth along that path; the steps are nonnegative because the least one is."""
    R_rho = product_nonnegative(assume(nt.R_POSITIVE), assume(RATIO_POSITIVE))
    least = at_most_min(
        follows(0 <= 1 / (2 * R * rho), kernel.inverse_positive(R_rho)), assume(CAP_NONNEGATIVE)
    )
    steps = generalize(chain(least, specialize(STEP_LOWER.proved(), t)), t, nt.NATURALS)
    rate = product_nonnegative(
        kernel.inverse_positive(assume(nt.SOLUTION_NONZERO)), kernel.inverse_positive(assume(nt.R_POSITIVE))
    )
    grown = follows(
        NORM_BOUND <= norm(NOW.W),
        specialize(norm_growth.NORM_GROWTH.proved(), t), (weak(rate), specialize(PATH.proved(), t)),
    )  # fmt: skip
    signs = generalize(nt.from_all_times(co.COEFFICIENTS_NONNEGATIVE.proved(), t), t, nt.NATURALS)
    return generalize(discharge(grown, steps, signs), t, nt.NATURALS)


NOW, START = layer(t), layer(number(0)).W
GRADIENT_NONZERO = 0 < norm(L.descent)
CAP_NONNEGATIVE = 0 <= e_max
RULE = nt.always(eq(e(t), minimum(uncapped(NOW), e_max)))
LEAST_STEP = minimum(1 / (2 * R * rho), e_max)
GREATEST_STEP = 1 / (2 * margin * p_min)
SETTLED_STEP = (1 + sparsification.attention_gap_bound(NOW)) / (2 * margin)
NORM_BOUND = margin * as_real(t) * LEAST_STEP / R - norm(START)

LAYER = {
    "p": L.attention_is(),
    "a": L.slope_is(),
    "c": L.coefficient_is(),
    "C": L.mass_is(),
    "gradient": L.gradient_is(),
    "gradient is not 0": GRADIENT_NONZERO,
}
DATA = {"(E)": nt.SCORE_GAPS, "n > 0": co.DATA_SIZE_POSITIVE}
FROM_BELOW = {
    **DATA,
    "R bounds the constraints": nt.NORM_BOUND,
    "R > 0": nt.R_POSITIVE,
    "rho bounds the ratio of slopes": SLOPE_RATIO,
    "rho > 0": RATIO_POSITIVE,
}
FROM_ABOVE = {
    **DATA,
    "(S)": nt.SEPARABLE,
    "M is not 0": nt.SOLUTION_NONZERO,
    "p_min > 0": ATTENTION_BOUND_POSITIVE,
}
ALONG = {name: nt.at_all_times(formula) for name, formula in LAYER.items()} | {"Polyak's rule": RULE}

UNCAPPED_LOWER = Theorem(
    key="polyak-uncapped-lower",
    title="The excess loss is at least a multiple of the gradient's norm",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=LAYER | FROM_BELOW,
    claim=1 / (2 * R * rho) <= uncapped(L),
    prove=prove_uncapped_lower,
)
UNCAPPED_UPPER = Theorem(
    key="polyak-uncapped-upper",
    title="The excess loss is at most a multiple of the gradient's norm",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=LAYER | FROM_ABOVE | {"p_min bounds the attention": ATTENTION_AT_LEAST},
    claim=uncapped(L) <= GREATEST_STEP,
    prove=prove_uncapped_upper,
)
STEP_LOWER = Theorem(
    key="polyak-step-lower",
    title="Polyak steps are bounded below",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=ALONG | FROM_BELOW,
    claim=nt.always(LEAST_STEP <= e(t)),
    prove=prove_step_lower,
    rate=Rate(observed=e(t), bound=LEAST_STEP, sense="lower"),
)
STEP_UPPER = Theorem(
    key="polyak-step-upper",
    title="Polyak steps are bounded above, with no step size to choose",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=ALONG | FROM_ABOVE | {"p_min bounds the attention": nt.at_all_times(ATTENTION_AT_LEAST)},
    claim=nt.always(e(t) <= GREATEST_STEP),
    prove=prove_step_upper,
)
STEP_UPPER_DIRECTION = Theorem(
    key="polyak-step-upper-direction",
    title="Polyak steps are at most 1/(2 g*), up to a factor that tends to 1 as attention concentrates",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=ALONG
    | DATA
    | sparsification.HYPOTHESES
    | {"T bounds the lengths": nt.LENGTH_BOUND, "there is a sequence": nt.SOME_SEQUENCE},
    claim=nt.always(e(t) <= SETTLED_STEP),
    prove=prove_step_upper_direction,
    rate=Rate(observed=e(t), bound=SETTLED_STEP, sense="upper"),
)
PATH = Theorem(
    key="polyak-path",
    title="The path length of Polyak steps grows at least linearly",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=ALONG | FROM_BELOW,
    claim=nt.always(as_real(t) * LEAST_STEP <= path_length(t)),
    prove=prove_path,
    rate=Rate(observed=path_length(t), bound=as_real(t) * LEAST_STEP, sense="lower"),
)
NORM = Theorem(
    key="polyak-norm-lower",
    title="Under Polyak steps the weight norm grows at least linearly",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=ALONG
    | FROM_BELOW
    | {
        "(S)": nt.SEPARABLE,
        "M is not 0": nt.SOLUTION_NONZERO,
        "e_max >= 0": CAP_NONNEGATIVE,
        "update": nt.update_is(),
    },
    claim=nt.always(NORM_BOUND <= norm(NOW.W)),
    prove=prove_norm,
    rate=Rate(observed=norm(NOW.W), bound=NORM_BOUND, sense="lower"),
)
PAGES = (UNCAPPED_LOWER, UNCAPPED_UPPER, STEP_LOWER, STEP_UPPER, STEP_UPPER_DIRECTION, PATH, NORM)
