"""Plain gradient descent (e_t = eta ||grad L_t||), lower bound: its path length grows at least like log t.

From any step t0 on with every logit gap at least -g* ||W||,

    E_(t0+t) >= E_t0 + (1/g*) log(1 + g* b t),    b = eta g* a_min exp(-g* ||W_t0||)/T^2.

Near-acute data give such a t0, and t0 = 0 from W_0 = 0. Since ||grad L|| >= g* a_min exp(-g* ||W||)/T^2 and
||W_(t0+t)|| <= ||W_t0|| + E_(t0+t) - E_t0, a step adds at least g* b to exp(g* (E - E_t0)).
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import alignment
from theory.lemmas.definitions import NAMES, from_definitions
from theory.lemmas.gradient_size import LOWER as GRADIENT_LOWER
from theory.lemmas.gradient_size import gradient_least
from theory.notation import M, R, T, a_min, e, eta, layer, margin, path_length, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    chain,
    equation,
    exp_monotone,
    exp_tangent,
    follows,
    log_monotone,
    norm_nonnegative,
    one_positive,
    product_nonnegative,
    weak,
)
from theory.proof.terms import Index, Term, as_real, eq, exp, log, norm, number, symbol
from theory.theorems import alignment_time, normalized_gd
from theory.theorems.direction import at_step

REFERENCE = "our corollaries of Theorem A; the paper's comparison with plain gradient descent"
t0 = alignment_time.t0
ZERO = number(0)
RULE = nt.always(eq(e(t), eta * norm(layer(t).descent)))
STEP_NONNEGATIVE = 0 <= eta
GAPS_BOUNDED = nt.always(nt.gaps_bounded(layer(t0 + t)))
STARTS_AT_ZERO = eq(norm(layer(ZERO).W), 0)


GROWTH_FROM_ZERO = margin**2 * eta * a_min / T**2


def gained(start: Index, t: Index) -> Term:
    """E_(start+t) - E_start."""
    return path_length(start + t) - path_length(start)


def growth(lam: Term) -> Term:
    """g* b, what a step adds to exp(g* E) at least, from weights with g* ||W|| = lam on."""
    return GROWTH_FROM_ZERO * exp(-lam)


GROWTH = growth(nt.lam(layer(t0)))
LOWER_BOUND = log(1 + GROWTH_FROM_ZERO * as_real(t)) / margin


def lower_path(start: Index, growth: Term) -> Term:
    """The least path length t steps after ``start``."""
    return path_length(start) + log(1 + growth * as_real(t)) / margin


def the_step(at: Index) -> Proved:
    """e_t = eta ||D_t||."""
    return specialize(assume(RULE), at)


def prove_steps_nonnegative() -> Proved:
    """0 <= e_t, for every t."""
    each = follows(0 <= e(t), the_step(t), (assume(STEP_NONNEGATIVE), norm_nonnegative(layer(t).descent)))
    return generalize(each, t, nt.NATURALS)


def growth_nonnegative() -> Proved:
    """0 <= g* b."""
    g_star, low = kernel.inverse_positive(assume(nt.SOLUTION_NONZERO)), assume(nt.SLOPE_LOWER_POSITIVE)
    rate = product_nonnegative(product_nonnegative(g_star, g_star), low)
    rate = product_nonnegative(rate, kernel.exp_positive(-nt.lam(layer(t0))))
    length = kernel.square(1 / T)
    return follows(0 <= GROWTH, (product_nonnegative(assume(STEP_NONNEGATIVE), weak(rate)), length))


def prove_norm_since() -> Proved:
    """||W_(t0+t)|| <= ||W_t0|| + E_(t0+t) - E_t0, by induction over the steps."""
    claim = norm(layer(t0 + t).W) <= norm(layer(t0).W) + gained(t0, t)
    step = specialize(generalize(normalized_gd.step_lengthens(), t, nt.NATURALS), t0 + t)
    after = norm(layer(t0 + t + 1).W) <= norm(layer(t0).W) + gained(t0, t + 1)
    base = equation(norm(layer(t0).W) <= norm(layer(t0).W) + gained(t0, ZERO))
    return discharge(induction(base, follows(after, assume(claim), step), t), prove_steps_nonnegative())


def least_increase() -> Proved:
    """g* e exp(g* E) is at least its value at t0: the gradient shrinks at most like exp(-g* E)."""
    now, size = layer(t0 + t), margin * gained(t0, t)
    g_star = kernel.inverse_positive(assume(nt.SOLUTION_NONZERO))
    reach = follows(nt.lam(now) <= nt.lam(layer(t0)) + size, (g_star, specialize(prove_norm_since(), t)))
    shrink = exp_monotone(follows(-nt.lam(layer(t0)) - size <= -nt.lam(now), reach))
    gaps = specialize(assume(GAPS_BOUNDED), t)
    least = at_step(GRADIENT_LOWER.proved(), t0 + t, gaps)
    step = follows(
        eta * gradient_least(now) <= e(t0 + t), the_step(t0 + t), (assume(STEP_NONNEGATIVE), least)
    )
    positive = kernel.exp_positive(size)
    rate = product_nonnegative(assume(STEP_NONNEGATIVE), weak(assume(nt.SLOPE_LOWER_POSITIVE)))
    square = product_nonnegative(kernel.square(margin), kernel.square(1 / T))
    weight = product_nonnegative(product_nonnegative(rate, square), weak(positive))
    return follows(
        GROWTH <= margin * e(t0 + t) * exp(size),
        (product_nonnegative(g_star, positive), step), (weight, shrink),
    )  # fmt: skip


def prove_lower() -> Proved:
    """exp(g* (E_(t0+t) - E_t0)) >= 1 + g* b t by induction, as exp(g* e) >= 1 + g* e; then the logarithm."""
    size = margin * gained(t0, t)
    claim = 1 + GROWTH * as_real(t) <= exp(size)
    tangent = exp_tangent(margin * e(t0 + t))
    grown = follows(
        1 + GROWTH * as_real(t + 1) <= exp(margin * gained(t0, t + 1)),
        assume(claim), least_increase(), (kernel.exp_positive(size), tangent),
    )  # fmt: skip
    base = equation(1 + GROWTH * as_real(ZERO) <= exp(margin * gained(t0, ZERO)))
    always = specialize(induction(base, grown, t), t)
    steps = product_nonnegative(growth_nonnegative(), kernel.natural(t))
    positive = follows(0 < 1 + GROWTH * as_real(t), one_positive(), steps)
    solution = assume(nt.SOLUTION_NONZERO)
    length = follows(
        lower_path(t0, GROWTH) <= path_length(t0 + t),
        (norm_nonnegative(M), chain(log_monotone(always, positive), kernel.log_exp(size))),
        nonzero=[solution],
    )  # fmt: skip
    return from_definitions(generalize(length, t, nt.NATURALS))


def prove_lower_near_acute() -> Proved:
    """On near-acute data the gaps are bounded from the alignment time on."""
    gaps = discharge(alignment_time.ALIGNMENT_TIME.proved(), prove_steps_nonnegative())
    return from_definitions(discharge(LOWER.proved(), kernel.instantiate(gaps, indices={"s": t})))


def prove_lower_from_zero() -> Proved:
    """W_0 = 0 has no gaps to cover: t0 = 0."""
    start = norm(layer(ZERO).W)
    rest = specialize(kernel.instantiate(LOWER_NEAR_ACUTE.proved(), indices={"t0": ZERO}), t)
    still = assume(STARTS_AT_ZERO)
    hole = symbol("x")
    first = congruence(
        still, lower_path(ZERO, margin * eta * margin * a_min * exp(-margin * hole) / T**2), hole
    )
    covered = follows(
        (R + margin) * start / (margin**2 - nt.e0) <= nt.separator_path(ZERO),
        ((R + margin) / (margin**2 - nt.e0), still),
    )  # fmt: skip
    return discharge(generalize(follows(LOWER_BOUND <= path_length(t), rest, first), t, nt.NATURALS), covered)


RULES = {"gradient descent": RULE, "eta >= 0": STEP_NONNEGATIVE}
OPTIMAL = {
    name: alignment.HYPOTHESES[name]
    for name in ("alpha >= 0", "M is a combination of the constraints", "complementary slackness")
}
LOWER_HYPOTHESES = {
    **{name: NAMES[name] for name in NAMES if name != "a_max bounds the slopes"},
    **OPTIMAL,
    **RULES,
    "a_min > 0": nt.SLOPE_LOWER_POSITIVE,
    "T": nt.LENGTH_BOUND,
    "update": nt.update_is(),
}

ACUTE = {
    name: alignment_time.HYPOTHESES[name]
    for name in ("C", "R bounds the constraints", "(N)", "e0 < g*^2", "the path has covered the start's gaps")
}

LOWER = Theorem(
    key="gd-path-lower-from-gaps",
    title="The path length of gradient descent grows at least like log t while no gap is too negative",
    kind="corollary",
    reference=REFERENCE,
    statement=r"If from $t_0$ on the logit gaps are at least $-\gamma_\ast\|W\|$, for every $t$: {claim}.",
    hypotheses=LOWER_HYPOTHESES | {"logit gaps are at least -lam from t0 on": GAPS_BOUNDED},
    claim=nt.always(lower_path(t0, GROWTH) <= path_length(t0 + t)),
    prove=prove_lower,
)
LOWER_NEAR_ACUTE = Theorem(
    key="gd-path-lower-near-acute",
    title="On near-acute data the path length of gradient descent grows at least like log t",
    kind="corollary",
    reference=REFERENCE,
    statement=r"With $t_0$ such that "
    r"$S_{t_0} \ge (R + \gamma_\ast)\|W_0\|/(\gamma_\ast^2 - \epsilon_0)$, for every $t$: {claim}.",
    hypotheses=LOWER_HYPOTHESES | ACUTE,
    claim=LOWER.claim,
    prove=prove_lower_near_acute,
)
LOWER_FROM_ZERO = Theorem(
    key="gd-path-lower",
    title="From W_0 = 0 the path length of gradient descent grows at least like log t",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=LOWER_HYPOTHESES
    | without(ACUTE, "the path has covered the start's gaps")
    | {"W_0 is 0": STARTS_AT_ZERO},
    claim=nt.always(LOWER_BOUND <= path_length(t)),
    prove=prove_lower_from_zero,
    rate=Rate(
        observed=path_length(t),
        bound=LOWER_BOUND,
        sense="lower",
    ),
)
PAGES = (LOWER, LOWER_NEAR_ACUTE, LOWER_FROM_ZERO)
