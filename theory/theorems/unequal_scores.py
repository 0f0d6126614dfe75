"""Theorems B and C without equal scores: the same residual, rate and constant, with weights for each token.

Once attention is past its threshold, 2 Gam (T - 1) exp(-(g* v_t - R_B ||r_t||)) <= gam at every step (Gam and
gam the largest and the least score gap), the coefficients approach
w_k = sigma(-g_(i,o_i)) (g_(i,o_i) - g_(i,tau))/n, and everything proved for general shifts holds with

    c0 = (Gam + 1 + 2 Gam/gam)(T - 1).

The threshold is a fact to be checked on the run; W_0 is the iterate at the first step past it.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import shifts_unequal as su
from theory.lemmas.separator_correlation import in_i, in_tau
from theory.lemmas.shifts_unequal import Gam, gam
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import STATIC, T, i, layer, t, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import everywhere, follows, one_positive, product_nonnegative, restate, weak
from theory.proof.terms import Formula, Index, Term, exp, substitute
from theory.theorems import sharp_rate as rate
from theory.theorems import sharp_residual as sharp
from theory.theorems.direction import gap_to
from theory.theorems.residual import t0
from theory.theorems.sharp_residual import least_gap, size

REFERENCE = "our Theorems B and C, unequal scores"
C0 = (Gam + 1 + 2 * Gam / gam) * (T - 1)


def lo(t: Index) -> Term:
    """Lower end of the shifts at step t."""
    return -(1 + 2 * Gam / gam) * (T - 1) * exp(-least_gap(layer(t)))


PAST_THRESHOLD = nt.always(2 * Gam * ((T - 1) * exp(-least_gap(layer(t)))) <= gam)


def for_unequal_scores(node: Any) -> Any:
    """A formula or term with the limit weights and the constant c0 of unequal scores."""
    return substitute(node, reals={**su.LIMIT_SHARE, "c0": ((), C0), "L_b": ((), R_B**2)})


def at_iterate(page: Theorem) -> Proved:
    """A lemma on the shifts at W_t, with b = g* v - R_B ||r||."""
    gaps = co.for_each_constraint(sharp.gap_bounded())
    static = discharge(kernel.instantiate(page.proved(), reals={"b": least_gap(STATIC)}), gaps)
    families = {"m": (("i",), su.mean(i, layer(t)))}
    now = kernel.instantiate(nt.at_time(static, t), reals=families)
    drawn = [nt.at_all_times(STATIC.attention_is()), MEANS, COEFFICIENTS, PAST_THRESHOLD]
    return discharge(now, *(specialize(assume(f), t) for f in drawn))


MEANS, COEFFICIENTS = nt.always(su.mean_is(layer(t))), nt.always(su.coefficient_is(layer(t)))
"""The definitions at every step."""


def shift_bounds() -> list[Proved]:
    """The shifts at every W_t."""
    bounds = []
    for page, target in (
        (su.BELOW, lo(t) <= su.shift(layer(t))),
        (su.ABOVE, su.shift(layer(t)) <= lo(t) + C0 * exp(-least_gap(layer(t)))),
    ):
        now = everywhere(at_iterate(page), (i, in_i), (tau, in_tau))
        claim = follows(target, now, nonzero=[assume(su.SCORE_GAP_POSITIVE)])
        bounds.append(generalize(co.for_each_constraint(claim), t, nt.NATURALS))
    return bounds


def weights_positive() -> Proved:
    """0 < w_k."""
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    sigmoid = kernel.inverse_positive(co.denominator_positive(su.best))
    weight = product_nonnegative(product_nonnegative(su.gap_positive(), size), sigmoid)
    return co.for_each_constraint(restate(0 < su.LIMIT, weight))


def constant_nonnegative() -> Proved:
    """0 <= c0: there is a sequence with a score gap."""
    others = kernel.sum_order(weak(one_positive()), tau, nt.others(nt.i1))
    several = follows(0 <= T - 1, others, specialize(assume(nt.LENGTH_BOUND), nt.i1, co.some_i))
    at_one = (nt.i1, co.some_i), (nt.tau1, co.some_tau)
    low, high = (everywhere(assume(f), *at_one) for f in (su.SCORE_GAPS_LOWER, su.SCORE_GAPS_UPPER))
    positive = assume(su.SCORE_GAP_POSITIVE)
    largest = follows(0 <= Gam, low, high, positive)
    ratio = product_nonnegative(largest, weak(kernel.inverse_positive(positive)))
    return product_nonnegative(follows(0 <= Gam + 1 + 2 * Gam / gam, largest, ratio, one_positive()), several)


def with_unequal_scores(claim: Proved) -> Proved:
    """A claim for general shifts, for the layer with any scores past the threshold."""
    families = {**su.LIMIT_SHARE, "c0": C0, "lo": (("t",), lo(t))}
    claim = kernel.instantiate(sharp.anywhere(claim), reals=families)
    positive = generalize(at_iterate(su.POSITIVE), t, nt.NATURALS)
    return discharge(claim, *shift_bounds(), weights_positive(), positive, constant_nonnegative())


LAYER: dict[str, Formula] = {
    "p": nt.at_all_times(STATIC.attention_is()),
    "m": MEANS,
    "c": COEFFICIENTS,
    **without(su.HYPOTHESES, "p", "m", "c", "gaps are at least b", "attention is past its threshold"),
    "attention is past its threshold": PAST_THRESHOLD,
}


def hypotheses(general: dict[str, Formula]) -> dict[str, Formula]:
    """The hypotheses of a page for general shifts, for unequal scores."""
    kept = {
        name: for_unequal_scores(f) for name, f in general.items() if name not in (*sharp.GENERAL, "c0 >= 0")
    }
    return kept | LAYER


RESIDUAL = Theorem(
    key="unequal-sharp-residual",
    title="Past the threshold the residual is bounded for good, whatever the scores",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(sharp.EXPLICIT_HYPOTHESES),
    given=("attention is past its threshold",),
    claim=nt.always(size(t0 + t) <= for_unequal_scores(sharp.BOUND)),
    prove=lambda: with_unequal_scores(sharp.EXPLICIT.proved()),
)
RATE = Theorem(
    key="unequal-sharp-rate",
    title="Past the threshold the direction gap falls like the squared path length, whatever the scores",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(rate.RATE_HYPOTHESES),
    given=("attention is past its threshold",),
    claim=nt.always(gap_to(t0 + t) <= for_unequal_scores(rate.bound(rate.travelled(t)))),
    prove=lambda: with_unequal_scores(rate.RATE.proved()),
)
PAGES = (RESIDUAL, RATE)
