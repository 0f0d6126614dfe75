"""Theorem B without full support, whatever the scores: explicit bounds on the residual and the direction gap.

The support's constraints have <A_k, M> = 1, the n_rest others <A_k, M> >= 1 + gamma, gamma > 0; ||A_k|| <= R.
With w_low <= w_k on the support, w_k <= w_top off it, and

    c0 = (Gam + 1 + 2 Gam/gam)(T - 1),    c1 = e n_rest w_top/w_low,    rho = 2 ||r*|| + ||r_t0||,
    drift = c0 sqrt((||M||^2/2 + e_max ||M||)/(4 kap)) exp(R rho - g* v_t0)
            + c1 R (||M||^2/gamma + e_max ||M||) exp(R rho - gamma g* v_t0),

let v_t0 >= 0, e R drift <= 1 and c0 exp(R r_max - g* v_t0) <= 1 with r_max = rho + e drift. Then for every t

    ||r_(t0+t)|| <= r_max,
    1 - cos(W_(t0+t), M) <= r_max^2/(2 (v_t0 + g* (E_(t0+t) - E_t0)/R)^2)    if v_t0 > 0.

Both conditions are decided at the one step t0 and hold once attention has settled. r* is any point balanced
over the support; the residual off the span of the support has a limit that depends on the run.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import residual_step as rs
from theory.lemmas import shifts_unequal as su
from theory.lemmas import support_shifts as sh
from theory.lemmas import support_step as ss
from theory.lemmas.residual_step import height, r_star, residual
from theory.lemmas.separator_correlation import sum_constraints
from theory.lemmas.shifts_unequal import Gam, gam
from theory.lemmas.support_shifts import REST, SUPPORT
from theory.lemmas.support_step import stray
from theory.notation import STATIC, A, M, R, T, alpha, e, i, layer, margin, over, path_length, s, t, tau
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    equation,
    everywhere,
    exp_monotone,
    exp_tangent,
    follows,
    max_above,
    max_at_most,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    restate,
    square_root_order,
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
    inner,
    log,
    maximum,
    norm,
    real,
    sqrt,
    substitute,
    symbol,
    vector,
)
from theory.theorems import residual as base
from theory.theorems import sharp_rate as rate
from theory.theorems import support_residual as sr
from theory.theorems.direction import gap_to
from theory.theorems.residual import kap, t0
from theory.theorems.support_residual import gamma, r_max, reach, room, size

REFERENCE = "our Theorem B, the extension without full support"
NOW = t0 + t
n_rest, w_low, w_top = symbol("n_rest"), symbol("w_low"), symbol("w_top")
one = real(1)
C0 = (Gam + 1 + 2 * Gam / gam) * (T - 1)
C1 = exp(one) * n_rest * w_top / w_low


def lo(t: Index) -> Term:
    """Lower end of the shifts at step t."""
    return -(1 + 2 * Gam / gam) * (T - 1) * exp(-least_gap(layer(t)))


def least_gap(now: nt.Layer) -> Term:
    """g* v - R ||r||, which no logit gap falls below."""
    return height(now.W) - R * norm(residual(now.W))


CONSTANTS: dict[str, Any] = {**su.LIMIT_SHARE, "c0": C0, "c1": C1, "lo": (("t",), lo(t))}
SHARES = {k: f if type(f) is tuple else ((), f) for k, f in CONSTANTS.items()}


def of_layer(node: Any) -> Any:
    """A formula or term with the constants of the layer."""
    return substitute(node, reals=SHARES)


def with_constants(claim: Proved) -> Proved:
    """A general claim, with the constants of the layer."""
    return kernel.instantiate(claim, reals=CONSTANTS)


REST_MARGIN = REST.each(1 + gamma <= inner(A(i, tau), M))
REST_COUNT = eq(n_rest, ss.over_rest(real(1)))
LEAST_WEIGHT, GREATEST_WEIGHT = SUPPORT.each(w_low <= su.LIMIT), REST.each(su.LIMIT <= w_top)
AHEAD = 0 <= inner(layer(t0).W, M)
PAST_THRESHOLD = C0 * exp(R * r_max - height(layer(t0).W)) <= 1
DEFINITIONS = {
    "p": nt.always(sh.attention_is(layer(t))),
    "m": nt.always(sh.mean_is(layer(t))),
    "c on the support": nt.always(sh.coefficient_is(layer(t), SUPPORT)),
    "c off the support": nt.always(sh.coefficient_is(layer(t), REST)),
}
LAYER: dict[str, Formula] = {
    **DEFINITIONS,
    **{
        name: f
        for name, f in sh.COMMON.items()
        if name not in ("p", "m", "attention is past its threshold") and not name.startswith("gaps of")
    },
    "R bounds the support": nt.NORM_BOUND,
    "the rest has larger margins": REST_MARGIN,
    "n_rest counts the rest": REST_COUNT,
    "w_low bounds the support's weights": LEAST_WEIGHT,
    "w_low > 0": 0 < w_low,
    "w_top bounds the rest's weights": GREATEST_WEIGHT,
    "w_top >= 0": 0 <= w_top,
    "alpha >= 0": nt.DUAL_NONNEGATIVE,
    "M is a combination of the constraints": nt.DUAL_EXPANSION,
    "complementary slackness": nt.DUAL_MASS,
    "W does not point away from M at t0": AHEAD,
}
GENERAL = (*sr.LAYER, "w > 0", "M satisfies the rest", "R >= 0", "c1 >= 0")


def hypotheses(threshold: Formula, *less: str) -> dict[str, Formula]:
    """The general hypotheses, those of the layer in place of what they prove."""
    kept = {k: of_layer(f) for k, f in sr.HYPOTHESES.items() if k not in (*GENERAL, *less)}
    return kept | LAYER | {"attention is past its threshold": threshold}


# --- signs -------------------------------------------------------------------------------------------------


@cache
def radius_nonnegative() -> Proved:
    """0 <= R."""
    longest = follows(0 <= R, norm_nonnegative(A(i, tau)), SUPPORT.at(nt.NORM_BOUND))
    some = kernel.instantiate(longest, indices={"tau": nt.tau1})
    return discharge(co.moved(some, co.some_i), co.some_tau)


def rest_ahead() -> Proved:
    """0 <= <A_k, M> off the support."""
    gap = weak(assume(0 < gamma))
    return REST.for_each(follows(0 <= inner(A(i, tau), M), REST.at(REST_MARGIN), gap, one_positive()))


@cache
def several_tokens() -> Proved:
    """0 <= T - 1."""
    ones = (kernel.sum_order(weak(one_positive()), tau, dom) for dom in (nt.others(nt.i1), ss.rest(nt.i1)))
    return follows(0 <= T - 1, *ones, specialize(assume(sh.LENGTH_BOUND), nt.i1, co.some_i))


@cache
def largest_gap_nonnegative() -> Proved:
    """0 <= Gam."""
    at_one = (nt.i1, co.some_i), (nt.tau1, co.some_tau)
    low, high = (everywhere(assume(f["support"]), *at_one) for f in (sh.LOWER_GAPS, sh.UPPER_GAPS))
    return follows(0 <= Gam, low, high, assume(su.SCORE_GAP_POSITIVE))


def ratio_nonnegative() -> Proved:
    """0 <= Gam/gam."""
    inverse = weak(kernel.inverse_positive(assume(su.SCORE_GAP_POSITIVE)))
    return product_nonnegative(largest_gap_nonnegative(), inverse)


@cache
def constant_nonnegative() -> Proved:
    """0 <= c0."""
    factor = follows(
        0 <= Gam + 1 + 2 * Gam / gam, largest_gap_nonnegative(), ratio_nonnegative(), one_positive()
    )
    return product_nonnegative(factor, several_tokens())


def count_nonnegative() -> Proved:
    """0 <= n_rest."""
    return follows(0 <= n_rest, ss.sum_rest(weak(one_positive())), assume(REST_COUNT))


def share_nonnegative() -> Proved:
    """0 <= n_rest w_top/w_low."""
    inverse = weak(kernel.inverse_positive(assume(0 < w_low)))
    return product_nonnegative(product_nonnegative(count_nonnegative(), assume(0 <= w_top)), inverse)


def rest_constant_nonnegative() -> Proved:
    """0 <= c1."""
    return follows(0 <= C1, (weak(kernel.exp_positive(one)), share_nonnegative()))


def weights_positive() -> Proved:
    """0 < w_k on the support."""
    return SUPPORT.for_each(sh.weight_positive(SUPPORT))


# --- the gaps ----------------------------------------------------------------------------------------------

W, r = STATIC.W, residual(STATIC.W)
UP = 0 <= height(W)


def split_gap() -> Proved:
    """-R ||r|| <= <A_k, r> on the support."""
    back = kernel.cauchy_schwarz(-1 * A(i, tau), r)
    return follows(
        -R * norm(r) <= inner(A(i, tau), r), back, (norm_nonnegative(r), SUPPORT.at(nt.NORM_BOUND))
    )


def support_gap() -> Proved:
    """g* v - R ||r|| <= mu_k on the support."""
    along = (height(W), SUPPORT.at(rs.FULL_SUPPORT))
    return follows(least_gap(STATIC) <= STATIC.gap(i, tau), split_gap(), along)


def rest_gap() -> Proved:
    """(1 + gamma) g* v - R ||r|| <= mu_k off the support, where v >= 0."""
    back = kernel.cauchy_schwarz(-1 * A(i, tau), r)
    return follows(
        (1 + gamma) * height(W) - R * norm(r) <= STATIC.gap(i, tau),
        back, (norm_nonnegative(r), REST.at(ss.REST_BOUND)), (assume(UP), REST.at(REST_MARGIN)),
    )  # fmt: skip


def rest_gap_least() -> Proved:
    """g* v - R ||r|| <= mu_k off the support, where v >= 0."""
    more = product_nonnegative(weak(assume(0 < gamma)), assume(UP))
    return follows(least_gap(STATIC) <= STATIC.gap(i, tau), rest_gap(), more)


@cache
def lemma(page: Theorem) -> Proved:
    """A lemma on the shifts, with b = g* v - R ||r||."""
    claim = kernel.instantiate(page.proved(), reals={"b": least_gap(STATIC)})
    gaps = SUPPORT.for_each(support_gap()), REST.for_each(rest_gap_least())
    return discharge(claim, *gaps)


# --- the rest pulls little ---------------------------------------------------------------------------------

leak = (T - 1) * exp(-least_gap(STATIC))


def rest_upper() -> Proved:
    """c_k <= w_top exp(Gam leak - (1 + gamma) g* v + R ||r||) off the support."""
    c = STATIC.c(i, tau)
    positive, weight = REST.at_claim(lemma(sh.REST_POSITIVE)), sh.weight_positive(REST)
    shift = REST.at_claim(lemma(sh.REST_ABOVE))
    exponent = Gam * leak - (1 + gamma) * height(W) + R * norm(r)
    grown = exp_monotone(follows(log(c) <= log(su.LIMIT) + exponent, shift, rest_gap()))
    size_ = kernel.exp_positive(exponent)
    return follows(
        c <= w_top * exp(exponent),
        grown, kernel.exp_log(positive), (exp(exponent), kernel.exp_log(weight)),
        (weak(size_), REST.at(GREATEST_WEIGHT)),
    )  # fmt: skip


def support_lower() -> Proved:
    """w_low exp(-(1 + 2 Gam/gam) leak - g* v) exp(-<A_k, r>) <= c_k on the support."""
    c = STATIC.c(i, tau)
    positive, weight = SUPPORT.at_claim(lemma(sh.POSITIVE)), sh.weight_positive(SUPPORT)
    shift = SUPPORT.at_claim(lemma(sh.BELOW))
    along = (height(W), SUPPORT.at(rs.FULL_SUPPORT))
    exponent = -(1 + 2 * Gam / gam) * leak - height(W) - inner(A(i, tau), r)
    grown = exp_monotone(follows(log(su.LIMIT) + exponent <= log(c), shift, along))
    size_ = kernel.exp_positive(exponent)
    return follows(
        w_low * exp(exponent) <= c,
        grown, kernel.exp_log(positive), (exp(exponent), kernel.exp_log(weight)),
        (weak(size_), SUPPORT.at(LEAST_WEIGHT)),
    )  # fmt: skip


def some_lag() -> Proved:
    """1 <= the sum of exp(-<A_k, r>) over the support: alpha_k/||M||^2 are weights, <A_k, r> has mean 0."""
    lag = inner(A(i, tau), r)
    dual = SUPPORT.at(nt.DUAL_NONNEGATIVE)
    solution, hole = rs.solution_nonzero(), vector("x")
    tangent = follows(alpha(i, tau) * (1 - lag) <= alpha(i, tau) * exp(-lag), (dual, exp_tangent(-lag)))
    mean = congruence(assume(nt.DUAL_EXPANSION), inner(hole, r), hole)
    unit = follows(eq(margin**2 * inner(M, M), 1), (margin**2, norm_squared(M)), nonzero=[solution])
    whole = kernel.instantiate(co.one_of_all(dual, co.some_i, co.some_tau), indices={"i1": i, "tau1": tau})
    most = follows(
        alpha(i, tau) * exp(-lag) <= inner(M, M) * exp(-lag),
        (weak(kernel.exp_positive(-lag)), whole), (exp(-lag), assume(nt.DUAL_MASS)),
    )  # fmt: skip
    square = kernel.square(margin)
    return follows(
        1 <= over(exp(-lag)),
        (square, sum_constraints(tangent)), (square, sum_constraints(most)), (margin**2, mean), unit,
        (margin**2, assume(nt.DUAL_MASS)), (over(exp(-lag)), unit), (margin**2 * inner(M, W), unit),
    )  # fmt: skip


def stray_little() -> Proved:
    """stray <= n_rest w_top/w_low exp(c0 exp(-(g* v - R ||r||))) exp(R ||r|| - gamma g* v) C."""
    exponent = Gam * leak - (1 + gamma) * height(W) + R * norm(r)
    slow = -(1 + 2 * Gam / gam) * leak - height(W)
    rest = follows(
        stray(STATIC) <= n_rest * w_top * exp(exponent),
        ss.sum_rest(rest_upper()), (w_top * exp(exponent), assume(REST_COUNT)),
    )  # fmt: skip
    least = product_nonnegative(weak(assume(0 < w_low)), weak(kernel.exp_positive(slow)))
    mass = follows(
        w_low * exp(slow) <= STATIC.C,
        sum_constraints(support_lower()), (least, some_lag()), assume(STATIC.mass_is()),
    )  # fmt: skip
    share = C0 * exp(-least_gap(STATIC)) + R * norm(r) - gamma * height(W)
    weight = product_nonnegative(share_nonnegative(), weak(kernel.exp_positive(share)))
    return follows(
        stray(STATIC) <= n_rest * w_top / w_low * exp(share) * STATIC.C,
        rest, (weight, mass), nonzero=[assume(0 < w_low), assume(su.SCORE_GAP_POSITIVE)],
    )  # fmt: skip


# --- past the threshold for good ---------------------------------------------------------------------------

POTENTIAL = of_layer(sr.potential(NOW))
BOTH = maximum(margin * (POTENTIAL - room), height(layer(t0).W) - height(layer(NOW).W)) <= 0
"""The residual is settled at t0 + t, and v no smaller than at t0."""


@cache
def settled_now() -> tuple[Proved, Proved]:
    """potential <= room and g* v_t0 <= g* v at the step t0 + t."""
    top, solution = max_above(*BOTH[1][2:]), rs.solution_nonzero()
    small = follows(margin * (POTENTIAL - room) <= 0, top[0], assume(BOTH))
    close = follows(POTENTIAL <= room, (weak(solution), small), nonzero=[solution])
    return close, follows(height(layer(t0).W) <= height(layer(NOW).W), top[1], assume(BOTH))


@cache
def signs() -> list[Proved]:
    """What the general claims assume of the constants."""
    return [
        radius_nonnegative(), rest_constant_nonnegative(), weights_positive(), rest_ahead(),
    ]  # fmt: skip


@cache
def size_now() -> Proved:
    """||r_(t0+t)|| <= r_max."""
    static = sr.residual_bounded(assume(sr.potential(t) <= room))
    moved = kernel.instantiate(with_constants(static), indices={"t": NOW})
    return discharge(moved, settled_now()[0], *signs())


@cache
def height_now() -> Proved:
    """0 <= g* v at the step t0 + t."""
    start = follows(0 <= height(layer(t0).W), (kernel.square(margin), assume(AHEAD)))
    return follows(0 <= height(layer(NOW).W), settled_now()[1], start)


@cache
def spread_now() -> Proved:
    """c0 exp(-(g* v - R ||r||)) <= 1 at the step t0 + t."""
    exponent = follows(
        -least_gap(layer(NOW)) <= R * r_max - height(layer(t0).W),
        (radius_nonnegative(), size_now()), settled_now()[1],
    )  # fmt: skip
    return follows(
        C0 * exp(-least_gap(layer(NOW))) <= 1,
        (constant_nonnegative(), exp_monotone(exponent)),
        assume(PAST_THRESHOLD),
    )


@cache
def threshold_now() -> Proved:
    """2 Gam (T - 1) exp(-(g* v - R ||r||)) <= gam at the step t0 + t."""
    crowd = (T - 1) * exp(-least_gap(layer(NOW)))
    positive = assume(su.SCORE_GAP_POSITIVE)
    some = product_nonnegative(several_tokens(), weak(kernel.exp_positive(-least_gap(layer(NOW)))))
    more = product_nonnegative(follows(0 <= Gam + 1, largest_gap_nonnegative(), one_positive()), some)
    return follows(
        2 * Gam * crowd <= gam, (weak(positive), spread_now()), (weak(positive), more), nonzero=[positive]
    )


def now(claim: Proved) -> Proved:
    """A claim about any W, at the step t0 + t."""
    moved = kernel.instantiate(
        nt.at_time(claim, NOW), reals={"m": (("i",), su.mean(i, layer(NOW)))}, vectors={"F": sr.whole(NOW)}
    )
    facts = [specialize(assume(f), NOW) for f in (*DEFINITIONS.values(), *sr.DEFINITIONS.values())]
    return discharge(moved, *facts, threshold_now(), height_now())


@cache
def facts_now() -> list[Proved]:
    """What the general claims assume of the layer at the step t0 + t."""
    positive, rest = now(lemma(sh.POSITIVE)), REST.at_claim(now(lemma(sh.REST_POSITIVE)))
    at, spread = layer(NOW), of_layer(sr.spread(NOW))
    low, high = (SUPPORT.at_claim(now(lemma(page))) for page in (sh.BELOW, sh.ABOVE))
    grown = exp_monotone(spread_now())
    share = of_layer(sr.share(NOW)) * at.C
    mass = discharge(now(rs.mass_positive()), positive)
    decay = weak(kernel.exp_positive(R * size(NOW) - gamma * height(at.W)))
    weight = product_nonnegative(product_nonnegative(share_nonnegative(), decay), mass)
    return [
        positive,
        REST.for_each(follows(0 <= at.c(i, tau), rest)),
        follows(stray(at) <= share, now(stray_little()), (weak(weight), grown)),
        SUPPORT.for_each(follows(of_layer(lo(NOW)) <= su.shift(at), low)),
        SUPPORT.for_each(follows(su.shift(at) <= of_layer(lo(NOW)) + spread, high)),
    ]


def prove_both() -> Proved:
    """By induction: past the threshold every coefficient is positive: v grows and the potential falls."""
    facts = [*facts_now(), size_now(), *signs()]

    def at_now(claim: Proved) -> Proved:
        return discharge(kernel.instantiate(with_constants(claim), indices={"t": NOW}), *facts)

    falls, grows, pace = map(at_now, (sr.potential_falls(), sr.component_grows(), sr.pace_nonnegative()))
    close, high = settled_now()
    scale = weak(base.margin_positive())
    low = follows(margin * (of_layer(sr.potential(NOW + 1)) - room) <= 0, (scale, falls), (scale, close))
    up = follows(
        height(layer(t0).W) - height(layer(NOW + 1).W) <= 0,
        high, (kernel.square(margin), grows), (kernel.square(margin), pace),
    )  # fmt: skip
    first = max_at_most(
        follows(margin * (of_layer(sr.potential(t0)) - room) <= 0, (scale, assume(of_layer(sr.SETTLED)))),
        equation(height(layer(t0).W) - height(layer(t0).W) <= 0),
    )
    return induction(first, max_at_most(low, up), t)


SETTLED = Theorem(
    key="support-settled",
    title="Without full support, past the threshold, a settled residual keeps its distance for good",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support, for every $t$: {claim}.",
    hypotheses=hypotheses(PAST_THRESHOLD),
    claim=nt.always(BOTH),
    prove=prove_both,
)

# --- explicit ----------------------------------------------------------------------------------------------

far = norm(r_star) + size(t0)  # at least ||r_t0 - r*||
START = norm(r_star) + far
shifted = C0 * sqrt(reach(real(2)) / (4 * kap)) * exp(R * START - height(layer(t0).W))
strayed = C1 * R * reach(gamma) * exp(R * START - gamma * height(layer(t0).W))
drift = shifted + strayed
BOUND = START + exp(one) * drift
SMALL_DRIFT = R * exp(one) * drift <= 1


def at_bound(node: Any) -> Any:
    """A formula with the explicit bound for r_max."""
    return substitute(node, reals={"r_max": ((), BOUND)})


def start_bounded() -> Proved:
    """||r_t0 - r*|| <= ||r*|| + ||r_t0||."""
    W0 = layer(t0).W
    return restate(norm(rs.apart(W0)) <= far, base.triangle(rs.apart(W0), residual(W0)))


def ratio_drift() -> Proved:
    """0 <= (||M||^2/2 + e_max ||M||)/(4 kap)."""
    inverse = kernel.inverse_positive(assume(base.STEPS_SHORT))
    return follows(
        0 <= reach(real(2)) / (4 * kap), (inverse, sr.reach_nonnegative(real(2), sr.two_positive()))
    )


def drift_nonnegative() -> tuple[Proved, Proved]:
    """0 <= both parts of the drift."""
    ratio = ratio_drift()
    root = product_nonnegative(constant_nonnegative(), kernel.sqrt_nonnegative(ratio))
    settled = product_nonnegative(root, weak(kernel.exp_positive(R * START - height(layer(t0).W))))
    mass = product_nonnegative(rest_constant_nonnegative(), radius_nonnegative())
    reached = product_nonnegative(mass, sr.reach_nonnegative(gamma, assume(0 < gamma)))
    decay = weak(kernel.exp_positive(R * START - gamma * height(layer(t0).W)))
    return restate(0 <= shifted, settled), restate(0 <= strayed, product_nonnegative(reached, decay))


def explicit_entry() -> Proved:
    """The residual has settled within rho + e drift: exp(R e drift) <= e bounds both tails."""
    euler, W0 = exp(one), layer(t0).W
    one_part, other = drift_nonnegative()
    twice = exp_monotone(follows(2 * R * euler * drift <= 2, assume(SMALL_DRIFT)))
    once = exp_monotone(follows(R * euler * drift <= 1, assume(SMALL_DRIFT)))
    square_part = at_bound(of_layer(sr.square_part(t0)))
    tail = at_bound(of_layer(sr.Gam)) * exp(-2 * height(W0))
    small = follows(
        tail <= (euler * shifted) ** 2, (kernel.square(shifted), twice), nonnegative=[ratio_drift()]
    )
    rest = at_bound(of_layer(sr.Y)) * exp(-gamma * height(W0))
    little = follows(rest <= euler * strayed, (other, once))
    size_, start = norm_nonnegative(rs.apart(W0)), start_bounded()
    whole = follows(0 <= far, size_, start)
    push = product_nonnegative(weak(kernel.exp_positive(one)), one_part)
    inside = discharge(with_constants(sr.square_part_nonnegative()), *signs())
    inside = kernel.instantiate(inside, reals={"r_max": BOUND}, indices={"t": t0})
    squares = follows(
        sqrt(square_part) ** 2 <= (far + euler * shifted) ** 2,
        small, (size_, start), (whole, start), norm_squared(rs.apart(W0)), (whole, push),
        nonnegative=[inside],
    )  # fmt: skip
    root = square_root_order(squares, follows(0 <= far + euler * shifted, whole, push))
    return follows(at_bound(of_layer(sr.SETTLED)), root, little)


def prove_residual() -> Proved:
    """The settled residual, with the explicit bound."""
    bounded = discharge(size_now(), specialize(SETTLED.proved(), t))
    claim = generalize(bounded, t, nt.NATURALS)
    return discharge(kernel.instantiate(claim, reals={"r_max": BOUND}), explicit_entry())


EXPLICIT = {
    **{k: f for k, f in hypotheses(at_bound(PAST_THRESHOLD)).items() if k != "the residual has settled"},
    "the drift is small": SMALL_DRIFT,
}
RESIDUAL = Theorem(
    key="support-sharp-residual",
    title="Without full support the residual is bounded for good once its drift is small",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support, for every $t$: {claim}.",
    hypotheses=EXPLICIT,
    claim=nt.always(size(NOW) <= BOUND),
    prove=prove_residual,
    rate=Rate(observed=size(NOW), bound=BOUND, sense="upper"),
)


# --- the rate ----------------------------------------------------------------------------------------------

AHEAD_AT_START = 0 < inner(layer(t0).W, M)


def steady(t: Index) -> Term:
    """v_t0 + g* (E_(t0+t) - E_t0)/R, which v reaches in t steps."""
    return margin * inner(layer(t0).W, M) + margin * (path_length(t0 + t) - path_length(t0)) / R


def component_steady() -> Proved:
    """v_t0 + g* (E_(t0+t) - E_t0)/R <= v_(t0+t): ||F|| <= R <F, M> in every step."""
    positive = assume(nt.R_POSITIVE)
    step, hole = specialize(assume(base.STEPS_NONNEGATIVE), t), vector("x")
    size_ = sr.gradient_positive()
    rest = REST.for_each(follows(1 <= inner(A(i, tau), M), REST.at(REST_MARGIN), weak(assume(0 < gamma))))
    upper = sr.at_step(discharge(ss.UPPER.proved(), rest))
    weight = product_nonnegative(
        product_nonnegative(step, weak(kernel.inverse_positive(size_))),
        weak(kernel.inverse_positive(positive)),
    )
    update = congruence(specialize(assume(sr.UPDATE), t), inner(hole, M), hole)
    F = sr.whole(t)
    pace = follows(e(t) / R <= e(t) / norm(F) * inner(F, M), (weight, upper), nonzero=[size_, positive])

    def ahead(k: Index) -> Term:
        return margin * inner(layer(k).W, M) - margin * path_length(k) / R

    each = follows(0 <= ahead(t + 1) - ahead(t), (weak(base.margin_positive()), pace), (margin, update))
    facts = [discharge(fact, specialize(SETTLED.proved(), t)) for fact in facts_now()[:2]]
    each = discharge(kernel.instantiate(each, indices={"t": NOW}), *facts, rest_ahead())
    each = kernel.instantiate(each, indices={"t": s})
    summed = kernel.sum_order(each, s, below(t))
    return follows(
        steady(t) <= margin * inner(layer(NOW).W, M), summed, telescoped(lambda k: ahead(t0 + k), t)
    )


def prove_rate() -> Proved:
    """The bounds of the residual and of the component in the static upper bound."""
    residual_ = specialize(RESIDUAL.proved(), t)
    entry = explicit_entry()
    v = discharge(kernel.instantiate(component_steady(), reals={"r_max": BOUND}), entry)
    radius = kernel.inverse_positive(assume(nt.R_POSITIVE))
    start = follows(0 < margin * inner(layer(t0).W, M), (base.margin_positive(), assume(AHEAD_AT_START)))
    some = kernel.sum_order(specialize(assume(base.STEPS_NONNEGATIVE), t0 + s), s, below(t))
    path = follows(
        0 <= path_length(NOW) - path_length(t0), some, telescoped(lambda k: path_length(t0 + k), t)
    )
    weight = product_nonnegative(base.margin_positive(), radius)
    low = follows(0 < steady(t), start, (weak(weight), path))
    high = follows(0 < margin * inner(layer(NOW).W, M), low, v)
    ahead = follows(
        0 < inner(layer(NOW).W, M), (rs.solution_nonzero(), high), nonzero=[rs.solution_nonzero()]
    )
    static = discharge(nt.at_time(rate.UPPER.proved(), NOW), ahead)
    quotient = kernel.instantiate(
        rate.quotients_ordered(),
        reals={"a": steady(t), "b": margin * inner(layer(NOW).W, M), "r": size(NOW), "y": BOUND},
    )
    quotient = discharge(quotient, low, v, norm_nonnegative(residual(layer(NOW).W)), residual_)
    claim = follows(gap_to(NOW) <= RATE_BOUND, static, quotient)
    return generalize(discharge(claim, weak(assume(AHEAD_AT_START))), t, nt.NATURALS)


RATE_BOUND = BOUND**2 / (2 * steady(t) ** 2)
RATE = Theorem(
    key="support-sharp-rate",
    title="Without full support the direction gap falls like one over the path squared",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support, for every $t$: {claim}.",
    hypotheses={
        **{k: f for k, f in EXPLICIT.items() if k != "W does not point away from M at t0"},
        "W has a component along M at t0": AHEAD_AT_START,
        "R > 0": nt.R_POSITIVE,
    },
    claim=nt.always(gap_to(NOW) <= RATE_BOUND),
    prove=prove_rate,
    rate=Rate(observed=gap_to(NOW), bound=RATE_BOUND, sense="upper"),
)
PAGES = (SETTLED, RESIDUAL, RATE)
