"""What the pages without full support ask of a problem: its certified support, and the constants by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from flint import arb

from numerics.errors import AttnratesError
from numerics.problem import Problem
from numerics.run import Run
from theory.assumptions import Check
from theory.page import Theorem
from theory.proof.terms import Formula, Term, free, norm, symbol, vector

DEFINITIONS = frozenset(
    {
        "there is a sequence",
        "with a constraint",
        "w > 0",
        "R_B bounds the constraints across M",
        "steps are nonnegative",
        "gradient",
        "C",
        "negative gradient",
        "p",
        "m",
        "c on the support",
        "c off the support",
        "n > 0",
        "T bounds the lengths",
        "score gaps of the support are at least gam",
        "score gaps of the support are at most Gam",
        "score gaps of the rest are at least gam",
        "score gaps of the rest are at most Gam",
        "R bounds the support",
        "R bounds the rest",
        "R > 0",
        "n_rest counts the rest",
        "w_low bounds the support's weights",
        "w_low > 0",
        "w_top bounds the rest's weights",
        "w_top >= 0",
    }
)
"""Hypotheses that hold by the constants' definitions, once the support is known."""
ASKED: dict[str, tuple[str, ...]] = {
    "(F)": ("S", "support"),
    "the rest has larger margins": ("S", "support"),
    "gamma > 0": ("S", "support"),
    "r* balances the limit weights": ("S", "support", "balance"),
    "alpha >= 0": ("S",),
    "M is a combination of the constraints": ("S",),
    "complementary slackness": ("S",),
    "gam > 0": ("O",),
    "update": ("gradient steps",),
    "steps are at most e_max": ("bounded steps",),
    "steps are short": ("short steps",),
}


def about(page: Theorem) -> bool:
    """Whether a page tells the constraints of the support from the others."""
    return any(("set", "K") in free(f) for f in page.hypotheses.values())


@cache
def checks(page: Theorem) -> dict[Formula, tuple[str, ...]]:
    """Hypotheses of such a page -> the checks they ask for; those about t0 are left out."""
    known = dict.fromkeys(DEFINITIONS, ()) | ASKED
    return {f: known[name] for name, f in page.hypotheses.items() if name in known}


@dataclass(frozen=True)
class Constants:
    """Balls around what the pages call n_rest, gamma, w_low, w_top, ||r*|| and lam_min."""

    rest: int
    gap: arb
    least_weight: arb
    greatest_rest_weight: arb
    balanced: arb
    least_variance: arb | None


@lru_cache(maxsize=64)
def constants(problem: Problem) -> Constants:
    """The constants of a problem.

    Raises:
        AttnratesError: the support is not certified, or has no balanced point.
    """
    from numerics.steps import NormalizedGD
    from theory.predict import limit_weights, predict

    found = predict(problem, NormalizedGD(1.0))
    weights = limit_weights(problem)
    inside = [x for x, here in zip(weights, found.support, strict=True) if here]
    outside = [x for x, here in zip(weights, found.support, strict=True) if not here]
    least, greatest = inside[0], arb(0)
    for x in inside:
        least = least.min(x)
    for x in outside:
        greatest = greatest.max(x)
    # Where every constraint supports M any gap will do for the others: there are none.
    gap = arb(1) if found.gap is None else found.gap
    return Constants(len(outside), gap, least, greatest, found.balanced, found.least_variance)


def check(run: Run) -> Check:
    """The support of M is certified: margins of exactly 1 that balance, all other margins larger."""
    try:
        found = constants(run.problem)
    except AttnratesError as error:
        return Check("unknown", str(error))
    inside = run.problem.n_constraints - found.rest
    if not found.rest:
        return Check("holds", "every constraint supports M")
    low, high = float(found.gap.lower()), float(found.gap.upper())
    return Check(
        "holds", f"{inside} constraints support M, the others' margins exceed 1 by {low:.4g}", (low, high)
    )


def _variance(found: Constants) -> arb:
    if found.least_variance is None:
        raise KeyError("nothing lies across M: the residual has no direction to converge in")
    return found.least_variance


def values(problem: Problem, *, balls: bool) -> dict[Term, Callable[[], Any]]:
    """Term -> its value, in balls or as a float (the side that keeps the bound), computed when asked for.

    Raises (when called):
        AttnratesError: see ``constants``.
    """

    def of(pick: Callable[[Constants], arb], upper: bool) -> Callable[[], Any]:
        def number() -> Any:
            ball = pick(constants(problem))
            return ball if balls else float(ball.upper() if upper else ball.lower())

        return number

    return {
        symbol("n_rest"): of(lambda c: arb(c.rest), True),
        symbol("gamma"): of(lambda c: c.gap, False),
        symbol("w_low"): of(lambda c: c.least_weight, False),
        symbol("w_top"): of(lambda c: c.greatest_rest_weight, True),
        norm(vector("r_star")): of(lambda c: c.balanced, True),
        symbol("lam_min"): of(_variance, False),
    }
