"""Theorem C (the limit of the residual): r_t converges to the balanced point r*, linearly in the path.

As in Theorem B's settled form, and let sig bound the variance below at every step,
sum q_k/Phi <A_k - g*^2 M, r_t - r*>^2 >= sig ||r_t - r*||^2 (the smallest eigenvalue on the span; at most
L_b). With Lam = c0 exp(R_B r_max - g* v_t0) + 2 R_B (r_max - ||r*||) and mu = kap exp(-Lam) sig/4,

    ||r_(t+1) - r*||^2 <= (1 - mu h_t) ||r_t - r*||^2 + h_t o_t^2/kap          for t >= t0, and

    ||r_(t0+t) - r*||^2 <= ( ||r_t0 - r*||^2 + P/(kap (mu - beta)) ) exp(-beta <W_(t0+t) - W_t0, M>)

for every beta < mu, beta <= 2 g*^2, where P = c0^2 exp(2 R_B r_max - 2 g* v_t0).
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas import residual_variance as rv
from theory.lemmas.residual_step import L_b, apart, disorder, height, r_star
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import M, layer, margin, s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    exp_monotone,
    exp_tangent,
    follows,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    square_root_order,
    telescoped,
    weak,
)
from theory.proof.terms import Fraction, Index, Term, below, exp, inner, norm, number, symbol
from theory.theorems import residual as base
from theory.theorems import sharp_residual as sharp
from theory.theorems.residual import distance, pace, t0
from theory.theorems.sharp_residual import c0, kap, r_max, spread

REFERENCE = "our Theorem C, the contraction to the limit"
half = Fraction(1, 2)
sig, beta = symbol("sig"), symbol("beta")
Lam = c0 * exp(R_B * r_max - height(layer(t0).W)) + 2 * R_B * (r_max - norm(r_star))
mu = kap * exp(-Lam) * sig / 4


def gained(t: Index) -> Term:
    """<W_(t0+t) - W_t0, M>."""
    return inner(layer(t0 + t).W, M) - inner(layer(t0).W, M)


VARIANCE_BOUNDED = nt.always(sig * distance(t) <= rv.variance(apart(layer(t).W)))
HYPOTHESES = {
    **sharp.HYPOTHESES,
    "c0 >= 0": sharp.C0_NONNEGATIVE,
    "sig bounds the variance": VARIANCE_BOUNDED,
    "sig >= 0": 0 <= sig,
    "sig <= L_b": sig <= L_b,
}
NOW = t0 + t


def at_now(claim: Proved) -> Proved:
    """A claim about the step t, for t0 + t."""
    return kernel.instantiate(base.drawn(claim), indices={"t": NOW})


# --- the contraction ---------------------------------------------------------------------------------------


def gained_nonnegative() -> Proved:
    """0 <= <W_(t0+t) - W_t0, M>."""
    each = follows(
        0 <= inner(layer(t + 1).W, M) - inner(layer(t).W, M), base.component_grows(), base.pace_nonnegative()
    )
    each = kernel.instantiate(base.drawn(each), indices={"t": t0 + s})
    summed = kernel.sum_order(each, s, below(t))
    return follows(0 <= gained(t), summed, telescoped(lambda k: inner(layer(t0 + k).W, M), t))


def close() -> Proved:
    """The potential of Theorem B at the step t0 + t."""
    return specialize(sharp.POTENTIAL.proved(), t)


def near(close: Proved) -> Proved:
    """||r_(t0+t) - r*|| <= r_max - ||r*||, from the potential."""
    at, bound = apart(layer(NOW).W), r_max - norm(r_star)
    squares = follows(norm(at) ** 2 <= bound**2, close, at_now(sharp.tail_nonnegative()), norm_squared(at))
    return square_root_order(squares, follows(0 <= bound, assume(sharp.ROOM)))


def settled(close: Proved) -> Proved:
    """||r_(t0+t)|| <= r_max, from the potential."""
    room = (r_max - norm(r_star)) ** 2
    return discharge(at_now(sharp.residual_bounded(assume(sharp.potential(t) <= room))), close)


def span(t: Index) -> Term:
    """o_t + 2 R_B ||r_t - r*||, the range of the logarithms of c_k/q_k."""
    return spread(t) + 2 * (R_B * norm(apart(layer(t).W)))


def range_nonnegative() -> Proved:
    """0 <= o_t + 2 R_B ||r_t - r*||."""
    return follows(
        0 <= span(t),
        (assume(sharp.C0_NONNEGATIVE), kernel.exp_positive(-sharp.least_gap(layer(t)))),
        (sharp.radius_nonnegative(), norm_nonnegative(apart(layer(t).W))),
    )


def range_bounded(close: Proved) -> Proved:
    """o + 2 R_B ||r - r*|| <= Lam at the step t0 + t."""
    exponent = R_B * r_max - height(layer(t0).W)
    smaller = exp_monotone(
        follows(
            -sharp.least_gap(layer(NOW)) <= exponent,
            (sharp.radius_nonnegative(), settled(close)), (kernel.square(margin), gained_nonnegative()),
        )
    )  # fmt: skip
    return follows(
        span(NOW) <= Lam,
        (assume(sharp.C0_NONNEGATIVE), smaller), (sharp.radius_nonnegative(), near(close)),
    )  # fmt: skip


def disorder_bounded() -> Proved:
    """exp(-Lam) sig d^2/2 - o^2/4 <= J at the step t0 + t."""
    X = apart(layer(NOW).W)
    size_ = span(NOW)
    variance = kernel.instantiate(base.at_step(rv.VARIANCE.proved()), reals={"o": (("t",), spread(t))})
    variance = at_now(sharp.with_shifts(variance))
    decay = exp_monotone(follows(-Lam <= -size_, range_bounded(close())))
    nonnegative = at_now(range_nonnegative())
    at_most_one = exp_monotone(follows(-size_ <= 0, nonnegative))
    least = specialize(assume(VARIANCE_BOUNDED), NOW)
    spread_out = product_nonnegative(assume(0 <= sig), kernel.inner_nonnegative(X))
    return follows(
        half * exp(-Lam) * sig * distance(NOW) - spread(NOW) ** 2 / 4 <= disorder(layer(NOW)),
        variance, (weak(kernel.exp_positive(-size_)), least),
        (spread_out, decay), (kernel.square(spread(NOW)), at_most_one),
    )  # fmt: skip


def slack_at_most_two() -> Proved:
    """kap <= 2."""
    solution = rs.solution_nonzero()
    largest = follows(
        0 <= base.e_max,
        specialize(assume(base.STEPS_NONNEGATIVE), t),
        specialize(assume(base.STEPS_BOUNDED), t),
    )
    weight = product_nonnegative(assume(base.SMOOTHNESS_NONNEGATIVE), weak(solution))
    return follows(kap <= 2, (weight, largest), nonzero=[solution])


CONTRACTION = distance(NOW + 1) <= (1 - mu * pace(NOW)) * distance(NOW) + pace(NOW) * spread(NOW) ** 2 / kap


def contraction() -> Proved:
    """The descent by kap/2 h J, with J >= exp(-Lam) sig d^2/2 - o^2/4; kap^2 <= 4."""
    short = assume(base.SHORT)
    descent = kernel.instantiate(base.descent(), reals={"o": (("t",), spread(t))})
    descent = sharp.from_start(sharp.with_shifts(descent))
    pace_ = at_now(base.pace_nonnegative())
    weight = product_nonnegative(weak(short), pace_)
    disturbance = product_nonnegative(
        product_nonnegative(pace_, kernel.square(spread(NOW))), weak(kernel.inverse_positive(short))
    )
    two = slack_at_most_two()
    square = follows(kap**2 <= 4, (weak(short), two), two)
    return follows(CONTRACTION, descent, (weight, disorder_bounded()), (disturbance, square), nonzero=[short])


def prove_contraction() -> Proved:
    """Every step from t0 on."""
    return generalize(contraction(), t, nt.NATURALS)


# --- linear convergence ------------------------------------------------------------------------------------

P = c0**2 * exp(2 * R_B * r_max - 2 * height(layer(t0).W))
REACH = distance(t0) + P / kap / (mu - beta)
BETA_SMALL, BETA_SLOW = beta < mu, beta <= 2 * margin**2


def one_contraction() -> Proved:
    """(1 - m h) d + h w/k <= Y E exp(-b h) if d <= Y E, w <= P E and Y = D + P/k/(m - b), m h <= 1, b < m."""
    m, h, d, w, k, E, D, p, b = map(symbol, "mhdwkEDpb")
    Y = D + p / k / (m - b)
    facts = [0 <= h, m * h <= 1, d <= Y * E, w <= p * E, 0 < k, 0 < E, 0 <= D, 0 <= p, b < m]
    pace_, small, now, noise, positive, size_, start, power, order = map(assume, facts)
    room = follows(0 < m - b, order)
    inverse = kernel.inverse_positive(room)
    share = product_nonnegative(
        product_nonnegative(power, weak(kernel.inverse_positive(positive))), weak(inverse)
    )
    whole = follows(0 <= Y, start, share)
    left = follows(0 <= 1 - m * h, small)
    fall = product_nonnegative(whole, weak(size_))
    weight = product_nonnegative(pace_, weak(kernel.inverse_positive(positive)))
    slack = product_nonnegative(
        product_nonnegative(pace_, weak(size_)), product_nonnegative(start, weak(room))
    )
    return follows(
        (1 - m * h) * d + h * w / k <= Y * E * exp(-b * h),
        (left, now), (weight, noise), slack, (fall, exp_tangent(-b * h)), nonzero=[positive, room],
    )  # fmt: skip


def rate_small() -> Proved:
    """mu h <= 1: kap L_b h <= kap (2 - kap) <= 1."""
    short, pace_ = assume(base.SHORT), at_now(base.pace_nonnegative())
    weight = product_nonnegative(weak(short), pace_)
    range_ = range_bounded(close())
    decay = exp_monotone(follows(-Lam <= 0, range_, at_now(range_nonnegative())))
    factor = product_nonnegative(weight, assume(0 <= sig))
    bounded = product_nonnegative(weak(short), assume(base.SMOOTHNESS_NONNEGATIVE))
    return follows(
        mu * pace(NOW) <= 1,
        (factor, decay), (weight, assume(HYPOTHESES["sig <= L_b"])), (bounded, at_now(base.pace_bounded())),
        kernel.square(kap - 1), one_positive(), nonzero=[rs.solution_nonzero()],
    )  # fmt: skip


def disturbance_decays() -> Proved:
    """o^2 <= P exp(-beta <W_(t0+t) - W_t0, M>)."""
    exponent = 2 * R_B * r_max - 2 * height(layer(t0).W) - beta * gained(t)
    slow = follows(0 <= 2 * margin**2 - beta, assume(BETA_SLOW))
    ordered = exp_monotone(
        follows(
            -2 * sharp.least_gap(layer(NOW)) <= exponent,
            (sharp.radius_nonnegative(), settled(close())), (slow, gained_nonnegative()),
        )
    )  # fmt: skip
    return follows(spread(NOW) ** 2 <= P * exp(-beta * gained(t)), (kernel.square(c0), ordered))


def prove_linear() -> Proved:
    """By induction over the contraction."""
    claim = distance(NOW) <= REACH * exp(-beta * gained(t))
    decay = exp(-beta * gained(t))
    power = follows(
        0 <= P, (kernel.square(c0), kernel.exp_positive(2 * R_B * r_max - 2 * height(layer(t0).W)))
    )
    start = kernel.inner_nonnegative(apart(layer(t0).W))
    general = kernel.instantiate(
        one_contraction(),
        reals={
            "m": mu, "h": pace(NOW), "d": distance(NOW), "w": spread(NOW) ** 2, "k": kap, "E": decay,
            "D": distance(t0), "p": P, "b": beta,
        },
    )  # fmt: skip
    short = assume(base.SHORT)
    step = discharge(
        general, at_now(base.pace_nonnegative()), rate_small(), assume(claim), disturbance_decays(), short,
        kernel.exp_positive(-beta * gained(t)), start, power, assume(BETA_SMALL),
    )  # fmt: skip
    hole = symbol("x")
    moved = congruence(at_now(base.component_grows()), exp(-beta * (hole - inner(layer(t0).W, M))), hole)
    grown = follows(
        distance(NOW + 1) <= REACH * exp(-beta * gained(t + 1)), contraction(), step, (REACH, moved)
    )
    room = kernel.inverse_positive(follows(0 < mu - beta, assume(BETA_SMALL)))
    share = product_nonnegative(product_nonnegative(power, weak(kernel.inverse_positive(short))), weak(room))
    first = follows(distance(t0 + number(0)) <= REACH * exp(-beta * gained(number(0))), share)
    return induction(first, grown, t)


CONTRACTS = Theorem(
    key="residual-contracts",
    title="Every step brings the residual closer to the balanced point, up to its disturbance",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={name: f for name, f in HYPOTHESES.items() if name != "sig <= L_b"},
    claim=nt.always(CONTRACTION),
    prove=prove_contraction,
)
LINEAR_HYPOTHESES = {**HYPOTHESES, "beta < mu": BETA_SMALL, "beta <= 2 g*^2": BETA_SLOW}
LINEAR = Theorem(
    key="residual-converges",
    title="The residual converges to the balanced point, linearly in the path",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=LINEAR_HYPOTHESES,
    claim=nt.always(distance(NOW) <= REACH * exp(-beta * gained(t))),
    prove=prove_linear,
)
PAGES = (CONTRACTS, LINEAR)
