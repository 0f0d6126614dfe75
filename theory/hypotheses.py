"""What must be checked on a problem or a run before a page's bound is claimed: hypothesis formula -> checks.

The map goes by the formula itself, so that no page can forget to name an assumption. Definitions (p, a, c, N,
the optimality conditions that define M, constants that the evaluator computes as they are defined) ask for
no check; a formula that is not listed here is an error, not a formality.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from theory import joint_run, support_run
from theory import notation as nt
from theory.page import Theorem
from theory.proof.terms import Formula, eq, free, index, norm, number, real, substitute, total

Checks = tuple[str, ...]


@cache
def _known() -> dict[Formula, Checks]:
    from theory.lemmas import coefficients, residual_step, shifts, shifts_unequal
    from theory.theorems import (
        alignment_time,
        explicit_limit,
        gradient_descent,
        normalized_gd,
        polyak,
        residual,
        sharp_residual,
        unequal_scores,
    )

    L, equal = nt.STATIC, ("O", "E")
    definitions = [
        nt.at_all_times(L.attention_is()),
        nt.at_all_times(L.mass_is()),
        nt.COUNT_IS,
        nt.LENGTH_BOUND,
        nt.NORM_BOUND,
        nt.SLOPE_LOWER_POSITIVE,
        nt.DESCENT_NONZERO,
        nt.STEPS_NONNEGATIVE,
        nt.R_POSITIVE,
        nt.SOME_SEQUENCE,
        nt.SOME_TOKEN,
        0 < nt.n,
        0 < nt.eta,
        0 <= nt.eta,
        eq(nt.n, total(nt.i, nt.SEQUENCES, real(1))),
        coefficients.LOWER_SLOPE_BOUND,
        coefficients.UPPER_SLOPE_BOUND,
        polyak.SLOPE_RATIO,
        polyak.RATIO_POSITIVE,
        0 <= polyak.e_max,
        residual_step.RADIUS,
        unequal_scores.MEANS,
        shifts_unequal.SCORE_GAPS_LOWER,
        shifts_unequal.SCORE_GAPS_UPPER,
        nt.each_sequence(nt.G(nt.i) <= shifts.G_max),
    ]
    known: dict[Formula, Checks] = dict.fromkeys(definitions, ())
    known |= {
        nt.SEPARABLE: ("S",),
        nt.SOLUTION_NONZERO: ("S",),
        nt.DUAL_NONNEGATIVE: ("S",),
        nt.DUAL_EXPANSION: ("S",),
        nt.DUAL_MASS: ("S",),
        nt.SCORE_GAPS: ("O",),
        nt.update_is(): ("gradient steps",),
        nt.at_all_times(L.slope_is()): equal,
        nt.at_all_times(L.coefficient_is()): equal,
        # A sum of c_k A_k whatever the scores; which c_k, is said by the formula of the coefficients.
        nt.at_all_times(L.gradient_is()): ("O",),
        nt.at_all_times(L.coefficients_nonnegative()): equal,
        alignment_time.NEAR_ACUTE: ("N",),
        nt.e0 < nt.margin**2: ("N",),
        eq(norm(nt.layer(number(0)).W), real(0)): ("zero start",),
        normalized_gd.RULE: ("ngd",),
        gradient_descent.RULE: ("gd",),
        polyak.RULE: ("polyak",),
        0 < polyak.e_max: ("cap",),
        residual_step.FULL_SUPPORT: ("S", "F"),
        sharp_residual.for_equal_scores(residual_step.STATIONARY): ("F", "balance"),
        unequal_scores.for_unequal_scores(residual_step.STATIONARY): ("F", "balance"),
        # A run from 0 stays in the constraints' span, where the least eigenvalue of the problem bounds it.
        unequal_scores.for_unequal_scores(explicit_limit.VARIANCE_BOUNDED): ("F", "balance", "zero start"),
        0 < explicit_limit.sig: (),
        explicit_limit.sig <= residual_step.R_B**2: (),
        unequal_scores.COEFFICIENTS: ("O",),
        shifts_unequal.SCORE_GAP_POSITIVE: ("O",),
        residual.STEPS_BOUNDED: ("bounded steps",),
        residual.STEPS_SHORT: ("short steps",),
        substitute(residual.STEPS_SHORT, reals={"e_max": ((), nt.eta)}): ("short steps",),
    }
    return known


def checks(page: Theorem) -> Checks:
    """The names of the checks that a page's hypotheses ask for, each once.

    Raises:
        KeyError: a hypothesis that the map does not know.
    """
    names: dict[str, None] = {}
    for name, formula in page.hypotheses.items():
        if formula in _since() or formula in _known_joint():
            names |= dict.fromkeys(("joint", "settled tokens", *_known_joint().get(formula, ())))
            continue
        if support_run.about(page) and formula in support_run.checks(page):
            names |= dict.fromkeys(support_run.checks(page)[formula])
            continue
        if about_start(formula):
            continue  # met by choosing t0: see theory.verdict
        if formula not in _known():
            raise KeyError(f"{page.key}: no check is known for the hypothesis {name}: {formula!r}")
        names |= dict.fromkeys(_known()[formula])
    order = ["S", "O", "E", "N", "F"]
    return tuple(sorted(names, key=lambda n: (order.index(n) if n in order else len(order), n)))


START = index("t0")


def about_start(formula: Formula) -> bool:
    """Whether a hypothesis is a condition on the start step t0, from which on the page speaks."""
    return ("ix", "t0") in free(formula)


# Joint training --------------------------------------------------------------------------------------------

Mask = Callable[[Any], Any]


def _always_met(run: Any) -> bool:
    """For definitions, and what the recorded sums say by themselves."""
    return True


@cache
def _since() -> dict[Formula, Mask]:
    """Hypotheses about every step from t0 on: formula -> which recorded steps of a run can be t0."""
    from theory.theorems import (
        joint_decoder_direction,
        joint_direction,
        joint_full_support,
        joint_loss,
        joint_schedule,
        joint_sharp,
    )

    modules = (
        joint_direction,
        joint_full_support,
        joint_loss,
        joint_schedule,
        joint_sharp,
        joint_decoder_direction,
    )
    masks: dict[str, Mask] = {
        "gradient is not 0": joint_run.scores_apart,
        "c >= 0": joint_run.weights_positive,
        "the smallest weight is positive": joint_run.weights_positive,
        "no token scores above the optimal one": joint_run.tokens_kept,
        "the optimal token scores at least the mean": joint_run.tokens_kept,
        "attention on other tokens is at most eps": joint_run.tokens_kept,
    }
    return {
        formula: masks.get(name, _always_met)
        for module in modules
        for page in module.PAGES
        for name, formula in page.hypotheses.items()
        if about_start(formula) and formula[0] == "forall"
    }


@cache
def _known_joint() -> dict[Formula, Checks]:
    """Hypotheses of the joint pages alone, that speak of no step."""
    from theory.lemmas import joint_decoder, joint_power_sum
    from theory.theorems import (
        joint_decoder_direction,
        joint_loss,
        joint_schedule,
        joint_sharp,
        residual_any_step,
    )

    sharp = joint_sharp.RESIDUAL.hypotheses
    exponents = (joint_power_sum.BELOW_ONE, joint_power_sum.ABOVE_HALF)
    return {
        joint_schedule.SCHEDULE: ("schedule",),
        joint_schedule.DECODER_SCHEDULE: ("decoder schedule",),
        joint_schedule.DECODER_STEP_POSITIVE: (),
        sharp["r* balances the limit weights"]: ("S", "F", "independent"),
        sharp["q_min bounds the balanced weights"]: ("F", "independent"),
        sharp["sig bounds the variance"]: ("F", "independent", "zero start"),
        sharp["steps are at most e_max"]: ("longest step",),
        residual_any_step.HYPOTHESES["q_min > 0"]: (),
        residual_any_step.HYPOTHESES["sig > 0"]: (),
        joint_schedule.SMALL_LEAKS: (),
        **dict.fromkeys(exponents, ("schedule",)),
        **dict.fromkeys(map(joint_schedule.of_decoder, exponents), ("decoder schedule",)),
        joint_decoder.SEPARABLE: ("decoder separable",),
        **dict.fromkeys(joint_decoder_direction.DUAL.values(), ("decoder separable",)),
        joint_decoder_direction.GOOD: (),
        joint_decoder.TOKENS_BOUNDED: (),
        joint_decoder.GAPS_BOUNDED: (),
        joint_loss.PACE_POSITIVE: (),
        joint_loss.WIDE: (),
    }


def since(formula: Formula) -> Mask | None:
    """Which recorded steps meet a hypothesis about every step from t0 on; None for other hypotheses."""
    return _since().get(formula)


def chooses_start(formula: Formula) -> bool:
    """Whether a hypothesis is met by choosing t0: it speaks of it, or of constants of the steps since."""
    from theory.theorems import joint_decoder_direction, joint_loss, joint_schedule

    constants = (
        joint_decoder_direction.GOOD,
        joint_loss.PACE_POSITIVE,
        joint_loss.WIDE,
        joint_schedule.SMALL_LEAKS,
    )
    return about_start(formula) or formula in constants
