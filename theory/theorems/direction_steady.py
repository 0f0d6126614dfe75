"""Theorem A(iii), a priori: with steps of bounded length the direction converges at the rate log t/t.

On near-acute data, with W_0 = 0 and 0 < e_min <= e_t <= e_max, for every t >= 1 and x_t = g* e_min t/R

    1 - cos(W_t, M) <= [ e_max + Lam/g* log((g* x_t + Lam)/(g* e_max + Lam))
                         + e_max^2 R/(2 g* e_min) log(1 + 2 g*^2 e_min (t - 1)/(g*^2 e_min + 2 R Lam)) ]/x_t.

So 1 - cos is O(log t/t) and the distance ||W_t/||W_t|| - M/||M|| ||, the root of 2 (1 - cos)
(``direction-distance``), is O(sqrt(log t/t)). No step need be small, and the loss need not decrease.

Proof. The bound by the step lengths falls with the path length, here E_t >= e_min t, and grows with the first
step. Each term of its harmonic sum is at most the integral of 1/x around it, and the integrals join up.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import log_bounds
from theory.lemmas.definitions import from_definitions
from theory.notation import Lam, R, e, margin, path_length, s, t
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    equation,
    follows,
    inverse_order,
    log_quotient,
    one_positive,
    product_nonnegative,
    restate,
    telescoped,
    weak,
)
from theory.proof.terms import Index, Term, as_real, below, eq, log, real, symbol
from theory.theorems import direction, direction_path
from theory.theorems.alignment_time import margin_positive
from theory.theorems.direction import gap_to, half
from theory.theorems.direction_path import (
    HYPOTHESES,
    REFERENCE,
    cost,
    curvature,
    end,
    first,
    guaranteed,
    guaranteed_size,
    now,
)

e_min, e_max = symbol("e_min"), symbol("e_max")
LEAST_POSITIVE = 0 < e_min
LEAST_STEP, GREATEST_STEP = nt.always(e_min <= e(t)), nt.always(e(t) <= e_max)
RATIO = 1 + 2 * margin**2 * e_min * as_real(t) / (margin**2 * e_min + 2 * R * Lam)
HARMONIC = e_max**2 * R / (2 * margin * e_min) * log(RATIO)
BOUND = direction_path.bound(e_min * (as_real(t) + 1), e_max, HARMONIC)


# --- the path ----------------------------------------------------------------------------------------------


def path_at_least(at: Index) -> Proved:
    """e_min t <= E_t."""
    summed = kernel.sum_order(specialize(assume(LEAST_STEP), s), s, below(t))
    return kernel.instantiate(follows(e_min * as_real(t) <= path_length(t), summed), indices={"t": at})


def pace_positive() -> Proved:
    """0 < g*/R."""
    return product_nonnegative(margin_positive(), kernel.inverse_positive(assume(nt.R_POSITIVE)))


def steady(at: Term) -> Term:
    """g* e_min t/R."""
    return guaranteed(e_min * at)


def steady_positive() -> Proved:
    """0 < g* e_min (t + 1)/R."""
    later = follows(0 < as_real(t) + 1, kernel.natural(t), one_positive())
    path = product_nonnegative(assume(LEAST_POSITIVE), later)
    return follows(0 < steady(as_real(t) + 1), (pace_positive(), path))


# --- the curvature -----------------------------------------------------------------------------------------


def between(at: Index) -> Term:
    """x + Lam/g* half a step after t: the ends of the integrals that bound the harmonic sum."""
    return steady(as_real(at) + half) + Lam / margin


def between_positive(at: Index) -> Proved:
    """0 < g* e_min (t + 1/2)/R + Lam/g*."""
    rate = product_nonnegative(pace_positive(), assume(LEAST_POSITIVE))
    return follows(
        0 < between(at), rate, (weak(rate), kernel.natural(at)), direction_path.share_nonnegative()
    )


def step_cost() -> Proved:
    """e_s^2/(x_s + Lam/g*) <= e_max^2 R/(g* e_min) (the integral of 1/x around its place)."""
    least, greatest = (specialize(assume(f), now) for f in (LEAST_STEP, GREATEST_STEP))
    solution, positive, low = assume(nt.SOLUTION_NONZERO), assume(nt.R_POSITIVE), assume(LEAST_POSITIVE)
    centre = steady(as_real(s) + 1) + Lam / margin
    away = follows(0 < centre, between_positive(s), (half, product_nonnegative(pace_positive(), low)))
    length = guaranteed_size(now) + Lam / margin
    order = inverse_order(follows(centre <= length, (weak(pace_positive()), path_at_least(now))), away)
    sum_positive = follows(0 <= e_max + e(now), least, greatest, (2, weak(low)))
    squares = follows(e(now) ** 2 <= e_max**2, (sum_positive, greatest))
    midpoint = kernel.instantiate(log_bounds.MIDPOINT.proved(), reals={"h": steady(real(half)), "y": centre})
    midpoint = discharge(
        midpoint,
        follows(0 <= steady(real(half)), (weak(low), pace_positive())),
        restate(steady(real(half)) < centre, between_positive(s)),
    )
    scale = product_nonnegative(product_nonnegative(positive, solution), kernel.inverse_positive(low))
    scale = product_nonnegative(kernel.square(e_max), weak(scale))
    logs = log(between(now)) - log(between(s))
    return follows(
        cost(guaranteed_size) <= e_max**2 * R / (margin * e_min) * logs,
        (kernel.square(e(now)), order), (weak(kernel.inverse_positive(away)), squares), (scale, midpoint),
        nonzero=[solution, positive, low],
    )  # fmt: skip


def harmonic() -> Proved:
    """The curvature is at most the integrals, which join up to a logarithm."""
    hole = symbol("x")
    summed = kernel.sum_order(step_cost(), s, below(t))
    joined = telescoped(lambda k: log(between(k)), t)
    quotient = log_quotient(between_positive(t), between_positive(first))
    solution, positive, low = assume(nt.SOLUTION_NONZERO), assume(nt.R_POSITIVE), assume(LEAST_POSITIVE)
    squared = product_nonnegative(product_nonnegative(margin_positive(), margin_positive()), low)
    constant = product_nonnegative(direction.constant_nonnegative(), weak(positive))
    whole = follows(0 < margin**2 * e_min + 2 * R * Lam, squared, constant)
    spread = equation(
        eq(between(t) / between(first), RATIO),
        nonzero=[between_positive(first), whole, solution, positive],
    )
    ratio = congruence(spread, log(hole), hole)
    front = e_max**2 * R / (margin * e_min)
    return follows(
        curvature(guaranteed_size) <= HARMONIC,
        summed, *((front, equal) for equal in (joined, quotient, ratio)),
    )  # fmt: skip


def prove_steady() -> Proved:
    """The harmonic sum for the curvature, the longest step for the first, e_min t for the path length."""
    low = assume(LEAST_POSITIVE)
    least, greatest = (specialize(assume(f), first) for f in (LEAST_STEP, GREATEST_STEP))
    first_step = follows(0 < e(first), low, least)
    path = discharge(specialize(direction_path.PATH.proved(), t), first_step)
    curved = harmonic()
    some = follows(0 <= HARMONIC, curved, discharge(direction_path.guaranteed_curvature()[1], first_step))
    far = discharge(direction_path.guaranteed_positive(t), first_step)
    constants = (margin_positive(), direction.constant_nonnegative())
    values = {"m": margin, "l": Lam, "k": HARMONIC}
    grows = discharge(
        kernel.instantiate(
            log_bounds.GROWS.proved(),
            reals=values | {"x": guaranteed_size(end), "a": e(first), "b": e_max},
        ),
        *constants, first_step, greatest, far,
    )  # fmt: skip
    falls = discharge(
        kernel.instantiate(
            log_bounds.FALLS.proved(),
            reals=values | {"u": guaranteed_size(end), "x": steady(as_real(t) + 1), "a": e_max},
        ),
        *constants, some, steady_positive(),
        follows(0 < e_max, first_step, greatest),
        follows(steady(as_real(t) + 1) <= guaranteed_size(end), (weak(pace_positive()), path_at_least(end))),
    )  # fmt: skip
    shrink = kernel.inverse_positive(far)
    bounded = follows(gap_to(end) <= BOUND, path, (shrink, curved), (shrink, grows), falls)
    steps = follows(0 <= e(t), low, specialize(assume(LEAST_STEP), t))
    return generalize(from_definitions(discharge(bounded, generalize(steps, t, nt.NATURALS))), t, nt.NATURALS)


STEADY = Theorem(
    key="global-direction-steady",
    title="From zero, with steps between two bounds, the direction converges at the rate log t/t",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}. The distance of the directions is $O(\sqrt{\log t/t})$.",
    hypotheses={
        **without(HYPOTHESES, "steps are nonnegative", "e_0 > 0"),
        "e_min > 0": LEAST_POSITIVE,
        "steps are at least e_min": LEAST_STEP,
        "steps are at most e_max": GREATEST_STEP,
    },
    claim=nt.always(gap_to(end) <= BOUND),
    prove=prove_steady,
)
