"""Theorems B and C without equal scores: the same residual, rate and constant, with weights for each token.

Let Gam and gam be the largest and the least score gap. Once attention is past its threshold at t0,

    2 Gam (T - 1) exp(R_B r_max - g* v_t0) <= gam,

and the residual has settled within r_max, both hold for good: every coefficient is positive from t0 on, v_t
grows, and the coefficients approach w_k = sigma(-g_(i,o_i)) (g_(i,o_i) - g_(i,tau))/n. Everything proved for
general shifts then holds from t0 on, with

    c0 = (Gam + 1 + 2 Gam/gam)(T - 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import residual_step as rs
from theory.lemmas import shifts_unequal as su
from theory.lemmas.residual_step import height, r_star
from theory.lemmas.separator_correlation import in_i, in_tau
from theory.lemmas.shifts_unequal import Gam, gam
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import STATIC, T, e, i, layer, margin, path_length, s, t, tau
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    equation,
    everywhere,
    exp_monotone,
    follows,
    max_above,
    max_at_most,
    one_positive,
    product_nonnegative,
    restate,
    telescoped,
    weak,
)
from theory.proof.terms import (
    Formula,
    Index,
    Term,
    below,
    eq,
    exp,
    maximum,
    norm,
    number,
    substitute,
    symbol,
    total,
)
from theory.theorems import exact_constant as exact
from theory.theorems import limit as lim
from theory.theorems import residual as base
from theory.theorems import sharp_rate as rate
from theory.theorems import sharp_residual as sharp
from theory.theorems.direction import gap_to
from theory.theorems.residual import t0
from theory.theorems.sharp_residual import least_gap, r_max, size

NOW = t0 + t

REFERENCE = "our Theorems B and C, unequal scores"
C0 = (Gam + 1 + 2 * Gam / gam) * (T - 1)


def lo(t: Index) -> Term:
    """Lower end of the shifts at step t."""
    return -(1 + 2 * Gam / gam) * (T - 1) * exp(-least_gap(layer(t)))


def for_unequal_scores(node: Any) -> Any:
    """A formula or term with the limit weights and the constants c0 and L_b of unequal scores."""
    return substitute(node, reals={**su.LIMIT_SHARE, "c0": ((), C0), "L_b": ((), R_B**2)})


def with_weights(claim: Proved) -> Proved:
    """A claim for general shifts, with those of unequal scores put in."""
    families = {**su.LIMIT_SHARE, "c0": C0, "lo": (("t",), lo(t)), "L_b": R_B**2}
    return kernel.instantiate(claim, reals=families)


MEANS, COEFFICIENTS = nt.always(su.mean_is(layer(t))), nt.always(su.coefficient_is(layer(t)))
PAST_THRESHOLD = 2 * Gam * ((T - 1) * exp(R_B * r_max - height(layer(t0).W))) <= gam

# --- one step past the threshold ---------------------------------------------------------------------------


def several_tokens() -> Proved:
    """0 <= T - 1."""
    others = kernel.sum_order(weak(one_positive()), tau, nt.others(nt.i1))
    return follows(0 <= T - 1, others, specialize(assume(nt.LENGTH_BOUND), nt.i1, co.some_i))


def largest_gap_nonnegative() -> Proved:
    """0 <= Gam."""
    at_one = (nt.i1, co.some_i), (nt.tau1, co.some_tau)
    low, high = (everywhere(assume(f), *at_one) for f in (su.SCORE_GAPS_LOWER, su.SCORE_GAPS_UPPER))
    return follows(0 <= Gam, low, high, assume(su.SCORE_GAP_POSITIVE))


def constant_nonnegative() -> Proved:
    """0 <= c0."""
    largest = largest_gap_nonnegative()
    ratio = product_nonnegative(largest, weak(kernel.inverse_positive(assume(su.SCORE_GAP_POSITIVE))))
    factor = follows(0 <= Gam + 1 + 2 * Gam / gam, largest, ratio, one_positive())
    return product_nonnegative(factor, several_tokens())


def weights_positive() -> Proved:
    """0 < w_k."""
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    sigmoid = kernel.inverse_positive(co.denominator_positive(su.best))
    weight = product_nonnegative(product_nonnegative(su.gap_positive(), size), sigmoid)
    return co.for_each_constraint(restate(0 < su.LIMIT, weight))


def potential(t: Index) -> Term:
    """The potential of Theorem B for unequal scores."""
    return for_unequal_scores(sharp.potential(t))


room = (r_max - norm(r_star)) ** 2
BOTH = maximum(margin**2 * (potential(NOW) - room), height(layer(t0).W) - height(layer(NOW).W)) <= 0
"""The residual is settled at t0 + t, and v no smaller than at t0."""


def settled_now() -> tuple[Proved, Proved]:
    """potential <= room and g* v_t0 <= g* v at the step t0 + t."""
    top = max_above(*BOTH[1][2:])
    solution = rs.solution_nonzero()
    square = product_nonnegative(weak(solution), weak(solution))
    small = follows(margin**2 * (potential(NOW) - room) <= 0, top[0], assume(BOTH))
    close = follows(potential(NOW) <= room, (square, small), nonzero=[solution])
    return close, follows(height(layer(t0).W) <= height(layer(NOW).W), top[1], assume(BOTH))


def size_now() -> Proved:
    """||r_(t0+t)|| <= r_max."""
    static = sharp.residual_bounded(assume(sharp.potential(t) <= room))
    return discharge(kernel.instantiate(with_weights(static), indices={"t": NOW}), settled_now()[0])


def past_threshold_now() -> Proved:
    """2 Gam (T - 1) exp(-(g* v - R_B ||r||)) <= gam at the step t0 + t."""
    exponent = R_B * r_max - height(layer(t0).W)
    gap = follows(
        -least_gap(layer(NOW)) <= exponent, (sharp.radius_nonnegative(), size_now()), settled_now()[1]
    )
    weight = product_nonnegative(largest_gap_nonnegative(), several_tokens())
    claim = 2 * Gam * ((T - 1) * exp(-least_gap(layer(NOW)))) <= gam
    return follows(claim, (weight, exp_monotone(gap)), assume(PAST_THRESHOLD))


def lemma_now(page: Theorem) -> Proved:
    """A lemma on the shifts at the step t0 + t, with b = g* v - R_B ||r||."""
    gaps = co.for_each_constraint(sharp.gap_bounded())
    static = discharge(kernel.instantiate(page.proved(), reals={"b": least_gap(STATIC)}), gaps)
    now = kernel.instantiate(nt.at_time(static, NOW), reals={"m": (("i",), su.mean(i, layer(NOW)))})
    drawn = [nt.at_all_times(STATIC.attention_is()), MEANS, COEFFICIENTS]
    return discharge(now, *(specialize(assume(f), NOW) for f in drawn), past_threshold_now())


def facts_now() -> list[Proved]:
    """c > 0 and the shifts' bounds at the step t0 + t."""
    facts = [lemma_now(su.POSITIVE)]
    for page, target in (
        (su.BELOW, lo(NOW) <= su.shift(layer(NOW))),
        (su.ABOVE, su.shift(layer(NOW)) <= lo(NOW) + C0 * exp(-least_gap(layer(NOW)))),
    ):
        now = everywhere(lemma_now(page), (i, in_i), (tau, in_tau))
        claim = follows(target, now, nonzero=[assume(su.SCORE_GAP_POSITIVE)])
        facts.append(co.for_each_constraint(claim))
    return facts


def prove_both() -> Proved:
    """By induction: past the threshold the coefficients are positive: v grows and the potential falls."""
    facts = facts_now()

    def now(claim: Proved) -> Proved:
        moved = kernel.instantiate(with_weights(claim), indices={"t": NOW})
        return discharge(moved, *facts, size_now(), weights_positive())

    falls = discharge(now(sharp.potential_falls()), now(base.at_step(rs.TILT.proved())), kernel.square(R_B))
    scale = kernel.square(margin)
    low = follows(margin**2 * (potential(NOW + 1) - room) <= 0, (scale, falls), (scale, settled_now()[0]))
    grows, pace_ = now(base.component_grows()), now(base.pace_nonnegative())
    high = follows(
        height(layer(t0).W) - height(layer(NOW + 1).W) <= 0,
        settled_now()[1], (margin**2, grows), (kernel.square(margin), pace_),
    )  # fmt: skip
    first = max_at_most(
        follows(margin**2 * (potential(t0) - room) <= 0, (scale, assume(for_unequal_scores(sharp.SETTLED)))),
        equation(height(layer(t0).W) - height(layer(t0).W) <= 0),
    )
    return induction(first, max_at_most(low, high), t)


# --- general claims, with time counted from t0 -------------------------------------------------------------


def in_time(claim: Proved) -> Proved:
    """A claim about the run, for the run from t0 on (its step 0), with the shifts of unequal scores."""
    reals: dict[str, Any] = {
        "c": (("t", "i", "tau"), layer(NOW).c(i, tau)),
        "C": (("t",), layer(NOW).C),
        "e": (("t",), e(NOW)),
        "lo": (("t",), lo(NOW)),
        **su.LIMIT_SHARE,
        "c0": C0,
        "L_b": R_B**2,
    }
    vectors = {"W": (("t",), layer(NOW).W), "D": (("t",), layer(NOW).descent)}
    return kernel.instantiate(claim, reals=reals, vectors=vectors, indices={"t0": number(0)})


def facts() -> list[Proved]:
    """What a general claim assumes of every step, for the steps from t0 on."""
    local = facts_now()
    tilt = kernel.instantiate(with_weights(base.at_step(rs.TILT.proved())), indices={"t": NOW})
    local.append(discharge(tilt, local[0], weights_positive()))
    settled = specialize(SETTLED.proved(), t)
    out = [generalize(discharge(fact, settled), t, nt.NATURALS) for fact in local]
    for name in ("gradient", "C", "update", "steps are nonnegative", "steps are at most e_max"):
        out.append(generalize(specialize(assume(base.HYPOTHESES[name]), NOW), t, nt.NATURALS))
    return [*out, weights_positive(), constant_nonnegative(), kernel.square(R_B)]


def explicit(claim: Proved) -> Proved:
    """A claim about the residual settled within r_max, with the explicit r_max of Theorem B."""
    entry = [with_weights(proof) for proof in sharp.explicit_entry()]
    claim = kernel.instantiate(claim, reals={"r_max": for_unequal_scores(sharp.BOUND)})
    return discharge(discharge(claim, *entry), constant_nonnegative())


def with_unequal_scores(claim: Proved) -> Proved:
    """A claim for general shifts, for the layer with any scores past the threshold."""
    return explicit(discharge(in_time(claim), *facts()))


def prove_residual() -> Proved:
    """The explicit bound."""
    return with_unequal_scores(sharp.EXPLICIT.proved())


def own_path() -> Proved:
    """The length of the path of the run from t0 on is E_(t0+t) - E_t0."""
    own = total(s, below(t), e(t0 + s)) - total(s, below(number(0)), e(t0 + s))
    return follows(eq(own, rate.travelled(t)), telescoped(lambda k: path_length(t0 + k), t))


def in_path(claim: Proved, left: Callable[[Term], Term], right: Callable[[Term], Term]) -> Proved:
    """A claim left <= right about the path of the run from t0 on, in terms of E_(t0+t) - E_t0."""
    hole, path, length = symbol("x"), own_path(), rate.travelled(t)
    small, large = (kernel.congruence(path, for_unequal_scores(f(hole)), hole) for f in (left, right))
    target = for_unequal_scores(left(length)) <= for_unequal_scores(right(length))
    return kernel.combine(target, [(1, claim), (-1, small), (1, large)])


def prove_rate() -> Proved:
    """The rate, in the length of the path since t0."""
    own = specialize(with_unequal_scores(rate.RATE.proved()), t)
    return generalize(in_path(own, lambda _: gap_to(NOW), rate.bound), t, nt.NATURALS)


def with_variance(claim: Proved) -> Proved:
    """A claim of Theorem C, for the run from t0 on: the variance is bounded there as at every step."""
    variance = generalize(specialize(assume(for_unequal_scores(lim.VARIANCE_BOUNDED)), NOW), t, nt.NATURALS)
    return discharge(in_time(claim), *facts(), variance)


def prove_exact(page: Theorem, sides: Callable[[Term], Formula]) -> Proved:
    """The exact constant, in the length of the path since t0."""
    hole = symbol("x")
    kept = kernel.congruence(own_path(), for_unequal_scores(exact.low(hole)), hole)
    condition = kernel.combine(
        for_unequal_scores(OWN_KEPT), [(1, assume(for_unequal_scores(exact.KEPT))), (-1, kept)]
    )
    claim = discharge(with_variance(page.proved()), condition)
    return in_path(claim, lambda length: sides(length)[1], lambda length: sides(length)[2])


OWN_KEPT = 0 < exact.low(total(s, below(t), e(t0 + s)) - total(s, below(number(0)), e(t0 + s)))


LAYER: dict[str, Formula] = {
    "p": nt.at_all_times(STATIC.attention_is()),
    "m": MEANS,
    "c": COEFFICIENTS,
    **without(su.HYPOTHESES, "p", "m", "c", "gaps are at least b", "attention is past its threshold"),
}


def hypotheses(general: dict[str, Formula], threshold: Formula) -> dict[str, Formula]:
    """The hypotheses of a page for general shifts, for unequal scores."""
    kept = {
        name: for_unequal_scores(f) for name, f in general.items() if name not in (*sharp.GENERAL, "c0 >= 0")
    }
    return kept | LAYER | {"attention is past its threshold": threshold}


def at_bound(node: Any) -> Any:
    """A formula with the explicit bound for r_max."""
    return substitute(node, reals={"r_max": ((), for_unequal_scores(sharp.BOUND))})


SETTLED = Theorem(
    key="unequal-settled",
    title="Past the threshold a settled residual keeps its distance, and attention stays past the threshold",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(sharp.HYPOTHESES, PAST_THRESHOLD),
    claim=nt.always(BOTH),
    prove=prove_both,
)
RESIDUAL = Theorem(
    key="unequal-sharp-residual",
    title="Past the threshold the residual is bounded for good, whatever the scores",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(sharp.EXPLICIT_HYPOTHESES, at_bound(PAST_THRESHOLD)),
    claim=nt.always(size(NOW) <= for_unequal_scores(sharp.BOUND)),
    prove=prove_residual,
    rate=Rate(observed=size(NOW), bound=for_unequal_scores(sharp.BOUND), sense="upper"),
)
RATE_BOUND = for_unequal_scores(rate.bound(rate.travelled(t)))
RATE = Theorem(
    key="unequal-sharp-rate",
    title="Past the threshold the direction gap falls like one over the path squared, whatever the scores",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(rate.RATE_HYPOTHESES, at_bound(PAST_THRESHOLD)),
    claim=nt.always(gap_to(NOW) <= RATE_BOUND),
    prove=prove_rate,
    rate=Rate(observed=gap_to(NOW), bound=RATE_BOUND, sense="upper"),
)
LINEAR = Theorem(
    key="unequal-converges",
    title="Past the threshold the residual converges to the balanced point, whatever the scores",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(lim.LINEAR_HYPOTHESES, PAST_THRESHOLD),
    claim=for_unequal_scores(lim.LINEAR.claim),
    prove=lambda: with_variance(lim.LINEAR.proved()),
)
UPPER = Theorem(
    key="unequal-exact-constant-upper",
    title="The exact constant from above, whatever the scores",
    kind="theorem",
    reference=REFERENCE,
    statement=exact.EXACT_UPPER.statement,
    hypotheses=hypotheses(dict(exact.EXACT_UPPER.hypotheses), PAST_THRESHOLD),
    claim=for_unequal_scores(exact.EXACT_UPPER.claim),
    prove=lambda: prove_exact(exact.EXACT_UPPER, exact.upper_claim),
)
LOWER = Theorem(
    key="unequal-exact-constant-lower",
    title="The exact constant from below, whatever the scores",
    kind="theorem",
    reference=REFERENCE,
    statement=exact.EXACT_LOWER.statement,
    hypotheses=hypotheses(dict(exact.EXACT_LOWER.hypotheses), PAST_THRESHOLD),
    claim=for_unequal_scores(exact.EXACT_LOWER.claim),
    prove=lambda: prove_exact(exact.EXACT_LOWER, exact.lower_claim),
)
PAGES = (SETTLED, RESIDUAL, RATE, LINEAR, UPPER, LOWER)
