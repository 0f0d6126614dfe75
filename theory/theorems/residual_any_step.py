"""Theorem B for steps of any length: the residual stays bounded, and may oscillate.

Any rule with e_t <= e_max, however long, and shifts in intervals of length o at every step. Let every
balanced weight q_k/Phi be at least q_min > 0, let sig > 0 bound the variance below as in Theorem C, and

    J0 = e_max R_B^2/g* + o^2/4,    D0 = (J0 + o - log q_min) sqrt((1/q_min - 1)/sig).

Then ||r_(t0+t) - r*|| <= max(||r_t0 - r*||, D0 + e_max) for every t. For where the disorder is at least J0
the distance does not grow; where it is less the distance is at most D0, and one step adds at most e_max.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas import residual_variance as rv
from theory.lemmas import separator_correlation as lemma1
from theory.lemmas import symmetric_divergence as sd
from theory.lemmas.residual_step import apart, disorder, tilt
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import STATIC, M, e, i, layer, margin, t, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, induction, specialize
from theory.proof.tactics import (
    everywhere,
    follows,
    log_tangent,
    max_above,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    square_root_order,
    weak,
)
from theory.proof.terms import Index, Term, eq, inner, log, maximum, norm, real, sqrt, symbol, vector
from theory.theorems import residual as base
from theory.theorems.limit import sig
from theory.theorems.residual import distance, e_max, lo, pace, t0

REFERENCE = "our Theorem B; bounded oscillation beyond the stable step sizes"
o_max, q_min = symbol("o_max"), rv.q_min
J0 = e_max * R_B**2 / margin + o_max**2 / 4
Z0 = J0 + o_max - log(q_min)
D0 = Z0 * sqrt((1 / q_min - 1) / sig)
SHIFT_UPPER = nt.always(nt.each(rs.shift(layer(t)) <= lo(t) + o_max))
VARIANCE_BOUNDED = nt.always(sig * distance(t) <= rv.variance(apart(layer(t).W)))
HYPOTHESES = {
    **without(base.HYPOTHESES, "steps are short", "the shifts are at most lo + o"),
    "the shifts are at most lo + o_max": SHIFT_UPPER,
    "q_min bounds the balanced weights": rv.LEAST_WEIGHT,
    "q_min > 0": rv.LEAST_POSITIVE,
    "sig bounds the variance": VARIANCE_BOUNDED,
    "sig > 0": 0 < sig,
}


def far(t: Index) -> Term:
    """||r_t - r*||."""
    return norm(apart(layer(t).W))


def at_step(claim: Proved) -> Proved:
    """A claim about any W, at W_t, with the shifts assumed for every t."""
    now = kernel.instantiate(base.at_step(claim), reals={"o": (("t",), o_max)})
    return discharge(
        now, specialize(assume(base.HYPOTHESES[base.SHIFTS[0]]), t), specialize(assume(SHIFT_UPPER), t)
    )


def tilt_bounded() -> Proved:
    """||b||^2 <= R_B^2: b is a mean of the A_k - g*^2 M."""
    b, mass = tilt(STATIC), rs.mass_positive()
    share = follows(
        0 <= STATIC.c(i, tau) / STATIC.C,
        rs.at_constraint(rs.COEFFICIENTS_POSITIVE),
        (kernel.inverse_positive(mass), rs.at_constraint(rs.COEFFICIENTS_POSITIVE)),
    )
    each = follows(
        STATIC.c(i, tau) / STATIC.C * inner(rv.across, b) <= R_B * norm(b) * (STATIC.c(i, tau) / STATIC.C),
        (share, rv.reach(b)[1]),
    )
    unit = rs.distributions()[2]
    mean = follows(
        norm(b) ** 2 <= R_B * norm(b),
        lemma1.sum_constraints(each), (1 / STATIC.C, lemma1.along(b)), (R_B * norm(b), unit),
        (margin**2 * inner(M, b), unit), norm_squared(b), nonzero=[mass],
    )  # fmt: skip
    return follows(norm(b) ** 2 <= R_B**2, kernel.square(R_B - norm(b)), (2, mean))


def step_limited() -> Proved:
    """||r_(t+1) - r*|| <= ||r_t - r*|| + e_max: a step of length e moves the residual by at most e."""
    now, hole = layer(t), vector("x")
    D, size = now.descent, base.gradient_positive()
    pull = e(t) / norm(D)
    update = congruence(
        specialize(assume(nt.update_is()), t),
        inner(apart(hole) - apart(now.W), apart(hole) - apart(now.W)),
        hole,
    )
    moved = apart(layer(t + 1).W) - apart(now.W)
    solution = rs.solution_nonzero()
    unit = follows(eq(margin**2 * inner(M, M), 1), (margin**2, norm_squared(M)), nonzero=[solution])
    pace_ = specialize(assume(base.STEPS_NONNEGATIVE), t)
    squares = follows(
        norm(moved) ** 2 <= e(t) ** 2,
        norm_squared(moved), update, (pull**2, norm_squared(D)),
        (pull**2 * margin**2 * inner(D, M) ** 2, unit),
        kernel.square(pull * margin * inner(D, M)), nonzero=[size],
    )  # fmt: skip
    short = square_root_order(squares, pace_)
    split = base.triangle(apart(layer(t + 1).W), apart(now.W))
    return follows(far(t + 1) <= far(t) + e_max, split, short, specialize(assume(base.STEPS_BOUNDED), t))


def interval_nonnegative() -> Proved:
    """0 <= o."""
    low, high = base.HYPOTHESES[base.SHIFTS[0]], SHIFT_UPPER
    at = (nt.i1, rs.co.some_i), (nt.tau1, rs.co.some_tau)
    low_, high_ = (everywhere(assume(f), t, *at) for f in (low, high))
    return follows(0 <= o_max, low_, high_)


def least_weight_at_most_one() -> Proved:
    """q_min <= 1: it is at most one of weights that sum to 1."""
    weights = rs.distributions()[1]
    share = discharge(rs.at_constraint(weights.conclusion), weights)
    one = rs.co.one_of_all(weak(share), rs.co.some_i, rs.co.some_tau)
    least = everywhere(assume(rv.LEAST_WEIGHT), (nt.i1, rs.co.some_i), (nt.tau1, rs.co.some_tau))
    return follows(q_min <= 1, one, rs.distributions()[3], least)


def close_where_calm() -> Proved:
    """J < J0 makes ||r_t - r*|| <= D0."""
    J = disorder(layer(t))
    calm = weak(assume(J < J0))
    least = assume(rv.LEAST_POSITIVE)
    at_most_one = least_weight_at_most_one()
    logarithm = follows(log(q_min) <= 0, log_tangent(least), at_most_one)
    Z = J + o_max - log(q_min)
    nonnegative = follows(0 <= Z, base.disorder_nonnegative(), interval_nonnegative(), logarithm)
    below = follows(Z <= Z0, calm)
    top = follows(0 <= Z0, nonnegative, below)
    squares = follows(Z**2 <= Z0**2, (nonnegative, below), (top, below))
    spare = follows(0 <= 1 / q_min - 1, (kernel.inverse_positive(least), at_most_one), nonzero=[least])
    positive = assume(0 < sig)
    inverse = weak(kernel.inverse_positive(positive))
    variance = at_step(rv.FAR.proved())
    bounded = specialize(assume(VARIANCE_BOUNDED), t)
    ratio = follows(0 <= (1 / q_min - 1) / sig, (spare, inverse))
    order = follows(
        far(t) ** 2 <= D0**2,
        norm_squared(apart(layer(t).W)), (inverse, bounded), (inverse, variance), (ratio, squares),
        nonzero=[positive], nonnegative=[ratio],
    )  # fmt: skip
    return square_root_order(order, product_nonnegative(top, kernel.sqrt_nonnegative(ratio)))


def falls_where_disordered() -> Proved:
    """J >= J0 makes ||r_(t+1) - r*|| <= ||r_t - r*||: 2 <b, r - r*> <= -J + o^2/4, h <= e_max/g*."""
    now = layer(t)
    inward, tilted = at_step(rs.INWARD.proved()), base.at_step(tilt_bounded())
    numbers = at_step(kernel.instantiate(rs.of_distributions(sd.NUMBERS.proved()), reals={"l": real(1)}))
    numbers = discharge(numbers, one_positive())
    pace_, solution = base.pace_nonnegative(), rs.solution_nonzero()
    b, square = tilt(now), product_nonnegative(pace_, pace_)
    reach = product_nonnegative(pace_, kernel.square(R_B))
    squares = follows(
        far(t + 1) ** 2 <= far(t) ** 2,
        norm_squared(apart(layer(t + 1).W)), norm_squared(apart(now.W)), base.moved_by_step(),
        (2 * pace(t), inward), (pace_, numbers), (square, tilted), (pace(t) ** 2, norm_squared(b)),
        (reach, base.pace_bounded()), (pace_, assume(J0 <= disorder(now))), nonzero=[solution],
    )  # fmt: skip
    return square_root_order(squares, norm_nonnegative(apart(now.W)))


BOUND = maximum(far(t0), D0 + e_max)


def prove_bounded() -> Proved:
    """By induction, in the two cases of the disorder."""
    claim = far(t) <= BOUND
    J = disorder(layer(t))
    target = far(t + 1) <= BOUND
    calm = follows(target, step_limited(), close_where_calm(), max_above(far(t0), D0 + e_max)[1])
    disordered = follows(target, falls_where_disordered(), assume(claim))
    grown = kernel.instantiate(base.drawn(kernel.cases(disordered, calm, J0, J)), indices={"t": t0 + t})
    return induction(max_above(far(t0), D0 + e_max)[0], grown, t)


BOUNDED = Theorem(
    key="residual-any-step",
    title="The residual stays bounded under steps of any length",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(far(t0 + t) <= BOUND),
    prove=prove_bounded,
)
PAGES = (BOUNDED,)
