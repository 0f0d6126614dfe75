"""Theorem A(iii), a priori: normalized gradient descent converges in direction at the rate log t/t.

On near-acute data, with W_0 = 0 and e_t = eta > 0, for every t >= 1

    1 - cos(W_t, M) <= R/(g* eta t) [ eta + Lam/g* log((g*^2 eta t/R + Lam)/(g* eta + Lam))
                                      + eta R/(2 g*) log(1 + 2 g*^2 eta (t - 1)/(g*^2 eta + 2 R Lam)) ],

so 1 - cos is O(log t/t) and the distance ||W_t/||W_t|| - M/||M|| ||, the root of 2 (1 - cos)
(``direction-distance``), is O(sqrt(log t/t)). No smallness of eta is needed, and no decrease of the loss.

Proof. The bound by the step lengths, at E_t = eta t. Each term of its harmonic sum is at most the integral of
1/x around it, and the integrals join up.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import log_bounds
from theory.lemmas.definitions import from_definitions
from theory.notation import Lam, R, e, eta, margin, s, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    equation,
    follows,
    log_quotient,
    one_positive,
    product_nonnegative,
    restate,
    telescoped,
    weak,
    zero,
)
from theory.proof.terms import Index, Term, as_real, below, eq, log, symbol
from theory.theorems import direction, direction_path, normalized_gd
from theory.theorems.alignment_time import margin_positive
from theory.theorems.direction import gap_to, half
from theory.theorems.direction_path import (
    HYPOTHESES,
    REFERENCE,
    bound,
    cost,
    curvature,
    end,
    first,
    guaranteed,
    guaranteed_size,
    now,
)

STEP_POSITIVE = 0 < eta
ENDS = eta * (as_real(t) + 1)  # E_(t+1)
RATIO = 1 + 2 * margin**2 * eta * as_real(t) / (margin**2 * eta + 2 * R * Lam)
HARMONIC = eta * R / (2 * margin) * log(RATIO)


def path_is(at: Index) -> Proved:
    """E_t = eta t."""
    return specialize(normalized_gd.prove_path(), at)


def between(at: Index) -> Term:
    """x + Lam/g* half a step after t: the ends of the integrals that bound the harmonic sum."""
    return guaranteed(eta * (as_real(at) + half)) + Lam / margin


def between_positive(at: Index) -> Proved:
    """0 < g* eta (t + 1/2)/R + Lam/g*."""
    step = product_nonnegative(margin_positive(), assume(STEP_POSITIVE))
    rate = product_nonnegative(step, kernel.inverse_positive(assume(nt.R_POSITIVE)))
    share = follows(0 <= Lam / margin, (direction.constant_nonnegative(), assume(nt.SOLUTION_NONZERO)))
    return follows(0 < between(at), rate, (weak(rate), kernel.natural(at)), share)


def harmonic() -> Proved:
    """The curvature at e_t = eta: each term is at most the integral around it; the integrals join up."""
    hole, rule = symbol("x"), assume(normalized_gd.RULE)
    width = guaranteed(eta * half)
    centre = guaranteed(eta * as_real(now)) + Lam / margin
    term = congruence(path_is(now), eta**2 / (guaranteed(hole) + Lam / margin), hole)
    paces = congruence(specialize(rule, now), hole**2 / (guaranteed_size(now) + Lam / margin), hole)
    midpoint = kernel.instantiate(log_bounds.MIDPOINT.proved(), reals={"h": width, "y": centre})
    rate = product_nonnegative(margin_positive(), kernel.inverse_positive(assume(nt.R_POSITIVE)))
    midpoint = discharge(
        midpoint,
        follows(0 <= width, (weak(assume(STEP_POSITIVE)), rate)),
        restate(width < centre, between_positive(s)),
    )
    logs = log(between(now)) - log(between(s))
    scale = product_nonnegative(assume(STEP_POSITIVE), assume(nt.R_POSITIVE))
    scale = product_nonnegative(scale, assume(nt.SOLUTION_NONZERO))
    solution, positive = assume(nt.SOLUTION_NONZERO), assume(nt.R_POSITIVE)
    each = follows(
        cost(guaranteed_size) <= eta * R / margin * logs, term, paces, (scale, midpoint),
        nonzero=[solution, positive],
    )  # fmt: skip
    summed = kernel.sum_order(each, s, below(t))
    joined = telescoped(lambda k: log(between(k)), t)
    quotient = log_quotient(between_positive(t), between_positive(first))
    squared = product_nonnegative(
        product_nonnegative(margin_positive(), margin_positive()), assume(STEP_POSITIVE)
    )
    constant = product_nonnegative(direction.constant_nonnegative(), weak(positive))
    whole = follows(0 < margin**2 * eta + 2 * R * Lam, squared, constant)
    spread = equation(
        eq(between(t) / between(first), RATIO),
        nonzero=[between_positive(first), whole, solution, positive],
    )
    ratio = congruence(spread, log(hole), hole)
    return follows(
        curvature(guaranteed_size) <= HARMONIC,
        summed, *((eta * R / margin, equal) for equal in (joined, quotient, ratio)),
    )  # fmt: skip


def prove_ngd() -> Proved:
    """The bound at e_t = eta, E_t = eta t, with the harmonic sum for the curvature."""
    rule, step, hole = assume(normalized_gd.RULE), assume(STEP_POSITIVE), symbol("x")
    flat = curvature(guaranteed_size)
    length = congruence(path_is(end), bound(hole, e(first), flat), hole)
    start = congruence(specialize(rule, first), bound(ENDS, hole, flat), hole)
    rate = product_nonnegative(margin_positive(), kernel.inverse_positive(assume(nt.R_POSITIVE)))
    later = follows(0 < as_real(t) + 1, kernel.natural(t), one_positive())
    far = follows(0 < guaranteed(ENDS), (rate, product_nonnegative(step, later)))
    bounded = follows(
        gap_to(end) <= bound(ENDS, eta, HARMONIC),
        specialize(direction_path.PATH.proved(), t),
        length, start, (kernel.inverse_positive(far), harmonic()),
    )  # fmt: skip
    constant = discharge(normalized_gd.with_constant_steps(bounded), weak(step))
    first_step = follows(zero() < e(first), step, specialize(rule, first))
    return generalize(from_definitions(discharge(constant, first_step)), t, nt.NATURALS)


NGD = Theorem(
    key="global-direction-apriori",
    title="From zero, normalized gradient descent converges in direction at the rate log t/t",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}. The distance of the directions is $O(\sqrt{\log t/t})$.",
    hypotheses={
        **without(HYPOTHESES, "steps are nonnegative", "e_0 > 0"),
        "normalized gradient descent": normalized_gd.RULE,
        "eta > 0": STEP_POSITIVE,
    },
    claim=nt.always(gap_to(end) <= bound(ENDS, eta, HARMONIC)),
    prove=prove_ngd,
    rate=Rate(
        observed=gap_to(end), bound=bound(ENDS, eta, HARMONIC), sense="upper", needs=("S", "O", "E", "N"),
        from_step=1,
    ),
)  # fmt: skip
