"""The sharp rate: 1 - cos(W_t, M) is r_t^2/(2 v_t^2) up to higher order, and so falls like 1/E_t^2.

With W = v M^ + r, r orthogonal to M, and u = ||W||:

    ||r||^2/(2 u^2) <= 1 - cos(W, M),    1 - cos(W, M) <= ||r||^2/(2 v^2) for v > 0.

Under the settled residual of Theorem B (equal scores, any rule with e_t <= e_max < 2 g*/R_B^2), with the
bounds rho of the residual and K of the length by which v falls behind the path,

    1 - cos(W_(t0+t), M) <= rho^2/(2 (v_t0 + E_(t0+t) - E_t0 - K)^2)    where the bracket is positive,
    1 - cos(W_(t0+t), M) <= rho^2/(2 (v_t0 + g* (E_(t0+t) - E_t0)/R)^2)   for v_t0 > 0.

For normalized gradient descent E_t = eta t: the direction gap is O(1/t^2), the distance of the directions
O(1/t).
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas import separator_correlation as lemma1
from theory.lemmas.residual_step import residual
from theory.notation import STATIC, M, R, e, eta, layer, margin, path_length, s, t
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import (
    follows,
    inverse_order,
    max_above,
    max_at_most,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    telescoped,
    weak,
    zero,
)
from theory.proof.terms import (
    Index,
    Term,
    Vector,
    as_real,
    below,
    eq,
    inner,
    maximum,
    norm,
    substitute,
    symbol,
)
from theory.theorems import normalized_gd as ngd
from theory.theorems import residual as base
from theory.theorems import separator_gap as sg
from theory.theorems import sharp_residual as sharp
from theory.theorems.direction import gap_to
from theory.theorems.residual import t0
from theory.theorems.separator_gap import LOST, component

REFERENCE = "our Theorems B and C, beyond the paper's finite-time rate"
W = STATIC.W
gap = 1 - nt.cosine(STATIC)
AHEAD = 0 < inner(W, M)


def pythagoras() -> Proved:
    """||r||^2 = ||W||^2 (1 - cos^2)."""
    weights, solution = assume(nt.WEIGHTS_NONZERO), assume(nt.SOLUTION_NONZERO)
    r = residual(W)
    return follows(
        eq(norm(r) ** 2, norm(W) ** 2 * (1 - nt.cosine(STATIC) ** 2)),
        norm_squared(r), norm_squared(W), (margin**4 * inner(W, M) ** 2, norm_squared(M)),
        nonzero=[weights, solution],
    )  # fmt: skip


LOWER_CLAIM = norm(residual(W)) ** 2 / (2 * norm(W) ** 2) <= gap
UPPER_CLAIM = gap <= norm(residual(W)) ** 2 / (2 * (margin * inner(W, M)) ** 2)


def prove_lower() -> Proved:
    """1 - c >= (1 - c^2)/2, as (1 - c)^2 >= 0."""
    weights = assume(nt.WEIGHTS_NONZERO)
    return follows(LOWER_CLAIM, kernel.square(gap), (1 / norm(W) ** 2, pythagoras()), nonzero=[weights])


def nonzero(u: Vector, v: Vector) -> Proved:
    """0 < ||u||, where 0 < <W, M> <= ||u|| ||v||."""
    ahead, bound = assume(AHEAD), kernel.cauchy_schwarz(W, M)
    none = assume(norm(u) <= 0)
    wrong = kernel.combine(zero() < zero(), [(1, ahead), (1, bound), (norm_nonnegative(v), none)])
    return kernel.cases(kernel.absurd(wrong, 0 < norm(u)), assume(0 < norm(u)), norm(u), zero())


def prove_upper() -> Proved:
    """1 - c <= (1 - c^2)/(2 c^2) for c > 0, as (1 - c)^2 (1 + 2 c) >= 0."""
    ahead, weights, solution = assume(AHEAD), nonzero(W, M), nonzero(M, W)
    inverse = kernel.inverse_positive(ahead)
    lengths = product_nonnegative(weights, solution)
    by_cosine = product_nonnegative(inverse, lengths)  # 1/c
    weight = follows(
        0 < by_cosine.conclusion[2] ** 2 + 2 * by_cosine.conclusion[2], by_cosine, (by_cosine, by_cosine)
    )
    square = discharge(pythagoras(), weights, solution)
    return follows(
        UPPER_CLAIM, (weak(weight), kernel.square(gap)), (1 / (margin * inner(W, M)) ** 2, square),
        nonzero=[ahead, weights, solution],
    )  # fmt: skip


LOWER = Theorem(
    key="direction-gap-lower",
    title="The direction gap is at least the squared residual over twice the squared norm",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W \ne 0$: {claim}.",
    hypotheses={"W is not 0": nt.WEIGHTS_NONZERO, "M is not 0": nt.SOLUTION_NONZERO},
    claim=LOWER_CLAIM,
    prove=prove_lower,
)
UPPER = Theorem(
    key="direction-gap-upper",
    title="The direction gap is at most the squared residual over twice the squared component",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If $\langle W, W_{\mathrm{mm}}\rangle > 0$: {claim}.",
    hypotheses={"W has a component along M": AHEAD},
    claim=UPPER_CLAIM,
    prove=prove_upper,
)


# --- the rate ----------------------------------------------------------------------------------------------

AHEAD_AT_START = 0 < inner(layer(t0).W, M)


def travelled(t: Index) -> Term:
    """E_(t0+t) - E_t0."""
    return path_length(t0 + t) - path_length(t0)


def steady(length: Term) -> Term:
    """v_t0 + g* length/R, which v reaches after any path of that length."""
    return component(t0) + margin * length / R


def direct(length: Term) -> Term:
    """v_t0 + length - K, which a settled residual lets v reach."""
    return component(t0) + length - LOST


def reached(length: Term) -> Term:
    """A lower bound on v after a path of that length since t0."""
    return maximum(direct(length), steady(length))


def bound(length: Term) -> Term:
    """rho^2/(2 v^2)."""
    return sharp.BOUND**2 / (2 * reached(length) ** 2)


def component_steady() -> Proved:
    """v_t0 + g* (E_(t0+t) - E_t0)/R <= v_(t0+t): ||D|| <= R C in every step."""
    positive = assume(nt.R_POSITIVE)
    nonnegative = rs.co.for_each_constraint(weak(rs.at_constraint(rs.COEFFICIENTS_POSITIVE)))
    upper = base.at_step(discharge(lemma1.UPPER.proved(), nonnegative))
    size = base.gradient_positive()
    step = specialize(assume(base.STEPS_NONNEGATIVE), t)
    weight = product_nonnegative(
        product_nonnegative(step, kernel.inverse_positive(size)), weak(kernel.inverse_positive(positive))
    )
    pace = follows(e(t) / R <= base.pace(t), (weight, upper), nonzero=[size, positive])

    def ahead(k: Index) -> Term:
        return component(k) - margin * path_length(k) / R

    each = follows(
        0 <= ahead(t + 1) - ahead(t), (weak(base.margin_positive()), pace), (margin, base.component_grows())
    )
    each = kernel.instantiate(base.drawn(each), indices={"t": t0 + s})
    summed = kernel.sum_order(each, s, below(t))
    return follows(steady(travelled(t)) <= component(t0 + t), summed, telescoped(lambda k: ahead(t0 + k), t))


def rate_from(residual_bounded: Proved, kept_up: Proved, claimed: Term) -> Proved:
    """Both lower bounds on v, and the bound on ||r||, in the static upper bound."""
    end, length, size = layer(t0 + t).W, travelled(t), residual_bounded.conclusion[2]
    slow = component_steady()
    fast = follows(direct(length) <= component(t0 + t), kept_up)
    v = max_at_most(fast, slow)
    start = follows(0 < component(t0), (base.margin_positive(), assume(AHEAD_AT_START)))
    radius = kernel.inverse_positive(assume(nt.R_POSITIVE))
    some = kernel.sum_order(specialize(assume(base.STEPS_NONNEGATIVE), t0 + s), s, below(t))
    path = follows(0 <= length, some, telescoped(lambda k: path_length(t0 + k), t))
    weight = product_nonnegative(base.margin_positive(), radius)
    least = follows(0 < steady(length), start, (weak(weight), path))
    low = follows(0 < reached(length), least, max_above(direct(length), steady(length))[1])
    high = follows(0 < component(t0 + t), low, v)
    ahead = follows(0 < inner(end, M), (rs.solution_nonzero(), high), nonzero=[rs.solution_nonzero()])
    static = discharge(nt.at_time(UPPER.proved(), t0 + t), ahead)
    quotient = kernel.instantiate(
        quotients_ordered(),
        reals={"a": reached(length), "b": component(t0 + t), "r": norm(residual(end)), "y": size},
    )
    quotient = discharge(quotient, low, v, norm_nonnegative(residual(end)), residual_bounded)
    return follows(gap_to(t0 + t) <= claimed, static, quotient)


def quotients_ordered() -> Proved:
    """From 0 < a <= b and 0 <= r <= y, r^2/(2 b^2) <= y^2/(2 a^2)."""
    a, b, r, y = map(symbol, "abry")
    positive, order, low, high = assume(0 < a), assume(a <= b), assume(0 <= r), assume(r <= y)
    top = follows(0 < b, positive, order)
    ratio = follows(
        r / b <= y / a,
        (low, inverse_order(order, positive)), (kernel.inverse_positive(positive), high),
    )  # fmt: skip
    nonnegative = product_nonnegative(low, weak(kernel.inverse_positive(top)))
    both = follows(0 <= r / b + y / a, (2, nonnegative), ratio)
    return follows(r**2 / (2 * b**2) <= y**2 / (2 * a**2), (both, ratio))


def prove_rate() -> Proved:
    """The explicit bounds of the residual and of the component."""
    size, kept_up = (specialize(page.proved(), t) for page in (sharp.EXPLICIT, sg.EXPLICIT))
    return generalize(rate_from(size, kept_up, bound(travelled(t))), t, nt.NATURALS)


def prove_equal() -> Proved:
    """With the shifts of equal scores."""
    return discharge(sharp.with_equal_scores(RATE.proved()), sharp.constant_nonnegative())


RATE_HYPOTHESES = {
    **sharp.EXPLICIT_HYPOTHESES,
    "R bounds the constraints": nt.NORM_BOUND,
    "R > 0": nt.R_POSITIVE,
    "W has a component along M at t0": AHEAD_AT_START,
}
RATE = Theorem(
    key="general-sharp-rate",
    title="Once the drift is small the direction gap falls like one over the path squared",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=RATE_HYPOTHESES,
    claim=nt.always(gap_to(t0 + t) <= bound(travelled(t))),
    prove=prove_rate,
)
EQUAL_HYPOTHESES = {
    **sharp.EQUAL_HYPOTHESES,
    **{name: f for name, f in RATE_HYPOTHESES.items() if name not in sharp.EXPLICIT_HYPOTHESES},
}
EQUAL_BOUND = sharp.for_equal_scores(bound(travelled(t)))
SHARP_RATE = Theorem(
    key="sharp-rate",
    title="The direction gap falls like one over the path squared",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=EQUAL_HYPOTHESES,
    claim=nt.always(gap_to(t0 + t) <= EQUAL_BOUND),
    prove=prove_equal,
    rate=Rate(observed=gap_to(t0 + t), bound=EQUAL_BOUND, sense="upper"),
)

# --- normalized gradient descent ---------------------------------------------------------------------------


def with_constant_step(node: Any) -> Any:
    """A formula or term with e_max = eta."""
    return substitute(node, reals={"e_max": ((), eta)})


def path_of_constant_steps() -> Proved:
    """E_(t0+t) - E_t0 = eta t."""
    each = specialize(assume(ngd.RULE), t0 + s)
    summed = kernel.sum_order(each, s, below(t))
    return follows(eq(travelled(t), eta * as_real(t)), summed, telescoped(lambda k: path_length(t0 + k), t))


def prove_ngd() -> Proved:
    """E_(t0+t) - E_t0 = eta t in the rate."""
    rate = kernel.instantiate(SHARP_RATE.proved(), reals={"e_max": eta})
    now, hole = specialize(rate, t), symbol("x")
    same = kernel.congruence(
        path_of_constant_steps(), with_constant_step(sharp.for_equal_scores(bound(hole))), hole
    )
    at_most = follows(0 <= eta - e(t), specialize(assume(ngd.RULE), t))
    steps = generalize(follows(e(t) <= eta, at_most), t, nt.NATURALS)
    claim = generalize(follows(gap_to(t0 + t) <= NGD_BOUND, now, same), t, nt.NATURALS)
    return ngd.with_constant_steps(discharge(claim, steps))


NGD_BOUND = with_constant_step(sharp.for_equal_scores(bound(eta * as_real(t))))
NGD_RATE = Theorem(
    key="ngd-sharp-rate",
    title="Under normalized gradient descent the direction gap is of the order 1/t^2",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={
        **{
            name: with_constant_step(f)
            for name, f in EQUAL_HYPOTHESES.items()
            if name not in ("steps are nonnegative", "steps are at most e_max")
        },
        **ngd.CONSTANT_STEPS,
    },
    claim=nt.always(gap_to(t0 + t) <= NGD_BOUND),
    prove=prove_ngd,
    rate=Rate(observed=gap_to(t0 + t), bound=NGD_BOUND, sense="upper"),
)
PAGES = (LOWER, UPPER, RATE, SHARP_RATE, NGD_RATE)
