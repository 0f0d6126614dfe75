"""When the direction has settled: an explicit path length, after which it stays within any given distance.

On near-acute data, from W_0 = 0 with steps e_t <= e_max, let

    F(E) = [ e_0 + K log(1 + g*^2 E/(g*^2 e_0 + R Lam)) ] R/(g* E),
    K = Lam/g* + e_max R (1 + e_max/e_0)/(2 g*).

Then 1 - cos(W_t, M) <= F(E_t) for every t >= 1, and F falls to 0: once F(E_t1) is at most
(1 - theta)^2 g*^2/(2 R^2), every logit gap is at least theta g* ||W|| for good.

Proof. In the direction theorem from zero, e_s^2/(x_s + Lam/g*) is at most a multiple of the growth of
log(g* x_s + Lam) over the step, and the logarithms join up. log(1 + u)/u falls.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas.definitions import from_definitions, without_mass
from theory.notation import Lam, M, R, e, layer, margin, path_length, s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize, sum_order
from theory.proof.tactics import (
    chain,
    equation,
    follows,
    inverse_order,
    log_monotone,
    log_quotient,
    log_secant,
    norm_nonnegative,
    one_positive,
    product_nonnegative,
    restate,
    telescoped,
    weak,
    zero,
)
from theory.proof.terms import Index, Term, below, eq, index, log, norm, symbol
from theory.theorems import direction, direction_path, sparsification
from theory.theorems.alignment_time import margin_positive
from theory.theorems.direction import gap_to
from theory.theorems.direction_path import (
    FIRST_STEP,
    cost,
    curvature,
    end,
    first,
    guaranteed,
    guaranteed_positive,
    guaranteed_size,
    now,
    one,
    path_covers_first,
)
from theory.theorems.polyak import e_max

REFERENCE = "our Theorem A(iii), from a path length on"
v, step, most, least, c = symbol("v"), symbol("e"), symbol("e_max"), symbol("f"), symbol("c")
x, u, d = symbol("x"), symbol("u"), symbol("d")
near, far = symbol("E"), symbol("E'")  # two path lengths
STEPS_BOUNDED = nt.always(e(t) <= e_max)

# --- two facts about the logarithm -------------------------------------------------------------------------

COST_HYPOTHESES = {
    "c > 0": 0 < c,
    "f > 0": 0 < least,
    "e >= 0": 0 <= step,
    "e <= e_max": step <= most,
    "c f <= v": c * least <= v,
}
COST_CLAIM = step**2 / v <= most * (1 + most / least) / c * (log(v + c * step) - log(v))


def prove_cost() -> Proved:
    """log(v + c e) - log(v) >= c e/(v + c e) by the secant, and v + c e <= (1 + e_max/f) v."""
    rate, floor, nonnegative, bounded, start = map(assume, COST_HYPOTHESES.values())
    low = follows(0 < v, (rate, floor), start)
    high = follows(0 < v + c * step, low, (weak(rate), nonnegative))
    secant = log_secant(high, low)
    cap = follows(0 <= most, nonnegative, bounded)
    share = product_nonnegative(cap, weak(kernel.inverse_positive(floor)))
    wide = follows(
        v + c * step <= (1 + most / least) * v, (share, start), (weak(rate), bounded), nonzero=[floor]
    )
    inverses = product_nonnegative(kernel.inverse_positive(low), kernel.inverse_positive(high))
    stretched = follows(1 / v <= (1 + most / least) / (v + c * step), (inverses, wide), nonzero=[low, high])
    factor = product_nonnegative(cap, follows(0 <= 1 + most / least, share, one_positive()))
    scale = product_nonnegative(factor, weak(kernel.inverse_positive(rate)))
    return follows(
        COST_CLAIM,
        (weak(product_nonnegative(nonnegative, weak(kernel.inverse_positive(low)))), bounded),
        (product_nonnegative(cap, nonnegative), stretched), (scale, secant),
        nonzero=[rate, high],
    )  # fmt: skip


FALLS_HYPOTHESES = {"d > 0": 0 < d, "x > 0": 0 < x, "x <= u": x <= u}
FALLS_CLAIM = log(1 + u / d) / u <= log(1 + x / d) / x


def prove_falls() -> Proved:
    """x log(1 + u/d) <= u log(1 + x/d): secants of log from 1 + x/d to 1 + u/d and to 1."""
    scale, low, order = map(assume, FALLS_HYPOTHESES.values())
    high = follows(0 < u, low, order)
    inverse = kernel.inverse_positive(scale)
    at_x = follows(0 < 1 + x / d, one_positive(), (inverse, low))
    at_u = follows(0 < 1 + u / d, one_positive(), (inverse, high))
    apart = follows(0 <= u - x, order)
    crossed = follows(
        x * log(1 + u / d) <= u * log(1 + x / d),
        (weak(low), log_secant(at_x, at_u)), (apart, log_secant(at_x, one_positive())),
        (u - x, kernel.log_exp(zero())),
        nonzero=[scale, at_x],
    )  # fmt: skip
    shrink = product_nonnegative(kernel.inverse_positive(low), kernel.inverse_positive(high))
    return follows(FALLS_CLAIM, (shrink, crossed), nonzero=[low, high])


# --- the direction by the path length ----------------------------------------------------------------------

SPREAD = 1 + e_max / e(first)
WEIGHT = Lam / margin + e_max * R * SPREAD / (2 * margin)  # K
LEVEL = margin**2 * e(first) + R * Lam


def turned(path: Term) -> Term:
    """log(1 + g*^2 E/(g*^2 e_0 + R Lam))."""
    return log(1 + margin**2 * path / LEVEL)


def settling(path: Term) -> Term:
    """F(E)."""
    return (e(first) + WEIGHT * turned(path)) / guaranteed(path)


def threshold(at: Index) -> Term:
    """g* x_t + Lam."""
    return margin * guaranteed_size(at) + Lam


def rate_positive() -> Proved:
    """0 < g*^2/R."""
    square = product_nonnegative(margin_positive(), margin_positive())
    inverse = kernel.inverse_positive(assume(nt.R_POSITIVE))
    return restate(0 < margin**2 / R, product_nonnegative(square, inverse))


def threshold_positive(at: Index) -> Proved:
    """0 < g* x_(t+1) + Lam."""
    reach = product_nonnegative(margin_positive(), guaranteed_positive(at))
    return follows(0 < threshold(at + 1), reach, direction.constant_nonnegative())


def step_cost() -> Proved:
    """What the step s + 1 costs, by the growth of log(g* x + Lam)."""
    rate = rate_positive()
    reals = {"v": threshold(now), "e": e(now), "e_max": e_max, "f": e(first), "c": margin**2 / R}
    cost_of = kernel.instantiate(COST.proved(), reals=reals)
    start = follows(
        margin**2 / R * e(first) <= threshold(now),
        (weak(rate), specialize(path_covers_first(), s)), direction.constant_nonnegative(),
    )  # fmt: skip
    steps = specialize(assume(nt.STEPS_NONNEGATIVE), now), specialize(assume(STEPS_BOUNDED), now)
    cost_of = discharge(cost_of, rate, assume(FIRST_STEP), *steps, start)
    solution, size = assume(nt.SOLUTION_NONZERO), threshold_positive(s)
    share = follows(0 < guaranteed_size(now) + Lam / margin, (solution, size), nonzero=[solution])
    growth = log(threshold(now + 1)) - log(threshold(now))
    return follows(
        cost(guaranteed_size) <= e_max * R * SPREAD / margin * growth,
        (weak(margin_positive()), cost_of), nonzero=[size, share, solution, assume(nt.R_POSITIVE)],
    )  # fmt: skip


def margin_at_most_radius() -> Proved:
    """g* <= R, as 1 <= <A_k, M> <= R ||M||."""
    reach = follows(
        1 <= R * norm(M), co.separation(), (norm_nonnegative(M), co.at_some(assume(nt.NORM_BOUND)))
    )
    return follows(margin <= R, (margin_positive(), reach), nonzero=[assume(nt.SOLUTION_NONZERO)])


def logarithms_join() -> Proved:
    """log(g* x_t + Lam) - log(g* x_1 + Lam) <= log(1 + g*^2 E_t/(g*^2 e_0 + R Lam))."""
    path = path_length(end)
    base, more = threshold_positive(first), threshold_positive(t)
    top = follows(
        threshold(end) <= threshold(end) + margin**2 / R * e(first),
        (weak(rate_positive()), weak(assume(FIRST_STEP))),
    )  # fmt: skip
    whole = chain(more, top)
    level = level_positive()
    solution, radius = assume(nt.SOLUTION_NONZERO), assume(nt.R_POSITIVE)
    hole = symbol("x")
    ratio = equation(
        eq(whole.conclusion[2] / base.conclusion[2], 1 + margin**2 * path / LEVEL),
        nonzero=[level, base, radius, solution],
    )
    same = congruence(ratio, log(hole), hole)
    return follows(
        log(threshold(end)) - log(threshold(one)) <= turned(path),
        log_monotone(top, more), log_quotient(whole, base), same,
    )  # fmt: skip


def level_positive() -> Proved:
    """0 < g*^2 e_0 + R Lam."""
    square = product_nonnegative(margin_positive(), margin_positive())
    first_part = product_nonnegative(square, assume(FIRST_STEP))
    return follows(0 < LEVEL, first_part, (assume(nt.R_POSITIVE), direction.constant_nonnegative()))


def cap_nonnegative() -> Proved:
    """0 <= e_max."""
    return follows(0 <= e_max, weak(assume(FIRST_STEP)), specialize(assume(STEPS_BOUNDED), first))


def spread_positive() -> Proved:
    """0 <= 1 + e_max/e_0."""
    ratio = (cap_nonnegative(), kernel.inverse_positive(assume(FIRST_STEP)))
    return follows(0 <= SPREAD, ratio, one_positive())


def curvature_at_most() -> Proved:
    """1/2 sum e_s^2/(x_s + Lam/g*) is at most a multiple of the joint logarithm."""
    solution = assume(nt.SOLUTION_NONZERO)
    summed = sum_order(step_cost(), s, below(t))
    joined = telescoped(lambda k: log(threshold(k + 1)), t)
    spread = spread_positive()
    scale = product_nonnegative(product_nonnegative(cap_nonnegative(), weak(assume(nt.R_POSITIVE))), spread)
    scale = product_nonnegative(scale, weak(solution))
    return follows(
        curvature(guaranteed_size) <= e_max * R * SPREAD / (2 * margin) * turned(path_length(end)),
        summed, (e_max * R * SPREAD / margin, joined), (scale, logarithms_join()),
    )  # fmt: skip


def prove_direction() -> Proved:
    """Both logarithms of the direction theorem from zero are at most the one of F."""
    solution, path = assume(nt.SOLUTION_NONZERO), path_length(end)
    start = margin * e(first) + Lam
    step = product_nonnegative(margin_positive(), assume(FIRST_STEP))
    start_positive = follows(0 < start, step, direction.constant_nonnegative())
    radius = assume(nt.R_POSITIVE)
    factor = weak(product_nonnegative(step, kernel.inverse_positive(radius)))
    later = follows(threshold(one) <= start, (factor, margin_at_most_radius()), nonzero=[radius])
    share = product_nonnegative(direction.constant_nonnegative(), weak(solution))
    quotient = log_quotient(threshold_positive(t), start_positive)
    reach = kernel.inverse_positive(guaranteed_positive(t))
    bracket = follows(
        direction_path.bound(path, e(first), curvature(guaranteed_size)) * guaranteed(path)
        <= e(first) + WEIGHT * turned(path),
        curvature_at_most(), (Lam / margin, quotient),
        (share, log_monotone(later, threshold_positive(first))), (share, logarithms_join()),
        nonzero=[guaranteed_positive(t)],
    )  # fmt: skip
    claim = follows(
        gap_to(end) <= settling(path),
        specialize(direction_path.PATH.proved(), t), (reach, bracket), nonzero=[guaranteed_positive(t)],
    )  # fmt: skip
    return without_mass(from_definitions(generalize(claim, t, nt.NATURALS)))


# --- for good ----------------------------------------------------------------------------------------------


def path_grows() -> Proved:
    """E_(t1+1) <= E_(t1+1+t), by induction."""
    claim = path_length(t1 + 1) <= path_length(t1 + 1 + t)
    step = specialize(assume(nt.STEPS_NONNEGATIVE), t1 + 1 + t)
    grown = follows(path_length(t1 + 1) <= path_length(t1 + 1 + t + 1), assume(claim), step)
    return kernel.induction(equation(path_length(t1 + 1) <= path_length(t1 + 1 + first)), grown, t)


def settling_falls() -> Proved:
    """F falls: both e_0/E and log(1 + E)/E do."""
    low, grows = assume(0 < near), assume(near <= far)
    high = follows(0 < far, low, grows)
    square = product_nonnegative(margin_positive(), margin_positive())
    falls = kernel.instantiate(
        FALLS.proved(), reals={"u": margin**2 * far, "x": margin**2 * near, "d": LEVEL}
    )
    falls = discharge(
        falls, level_positive(),
        restate(0 < margin**2 * near, product_nonnegative(square, low)),
        follows(margin**2 * near <= margin**2 * far, (weak(square), grows)),
    )  # fmt: skip
    solution, radius = assume(nt.SOLUTION_NONZERO), assume(nt.R_POSITIVE)
    scale = weak(product_nonnegative(radius, solution))
    share = product_nonnegative(direction.constant_nonnegative(), weak(solution))
    spread = product_nonnegative(product_nonnegative(cap_nonnegative(), weak(radius)), spread_positive())
    weight = follows(0 <= WEIGHT, share, (spread, solution))
    weight = product_nonnegative(product_nonnegative(scale, weight), weak(square))
    start = product_nonnegative(scale, weak(assume(FIRST_STEP)))
    return follows(
        settling(far) <= settling(near),
        (weight, falls), (start, inverse_order(grows, low)), nonzero=[solution, low, high],
    )  # fmt: skip


def prove_settles() -> Proved:
    """1 - cos is at most F at the path length so far, and F falls."""
    bounded = specialize(prove_direction(), t1 + t)
    falls = kernel.instantiate(
        settling_falls(), reals={"E": path_length(t1 + 1), "E'": path_length(t1 + 1 + t)}
    )
    start = follows(0 < path_length(t1 + 1), assume(FIRST_STEP), specialize(path_covers_first(), t1))
    falls = discharge(falls, start, specialize(path_grows(), t))
    claim = follows(sparsification.settled(layer(t1 + 1 + t)), bounded, falls, assume(SETTLED))
    return without_mass(from_definitions(generalize(claim, t, nt.NATURALS)))


t1 = index("t1")
SETTLED = settling(path_length(t1 + 1)) <= sparsification.settled_distance()
HYPOTHESES = direction_path.HYPOTHESES | {"steps are at most e_max": STEPS_BOUNDED}

COST = Theorem(
    key="step-cost",
    title="The cost of a step, by the growth of a logarithm over it",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=COST_HYPOTHESES,
    claim=COST_CLAIM,
    prove=prove_cost,
)
FALLS = Theorem(
    key="log-quotient-falls",
    title="The logarithm of 1 + u over u falls",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=FALLS_HYPOTHESES,
    claim=FALLS_CLAIM,
    prove=prove_falls,
)
DIRECTION = Theorem(
    key="direction-by-path",
    title="With steps of bounded length the direction is bounded by the path length alone",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$, at the step $t + 1$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(gap_to(end) <= settling(path_length(end))),
    prove=prove_direction,
)
SETTLES = Theorem(
    key="direction-settles",
    title="After an explicit path length the direction has settled for good",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $t_1$ such that F is small enough at $E_{t_1+1}$: {claim}.",
    hypotheses=HYPOTHESES | {"the path is long enough": SETTLED},
    claim=nt.always(sparsification.settled(layer(t1 + 1 + t))),
    prove=prove_settles,
)
PAGES = (COST, FALLS, DIRECTION, SETTLES)
