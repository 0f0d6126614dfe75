"""From which dimension on simulated problems are feasible and near-acute, to hold the theorem against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from numerics.errors import InputError
from numerics.maxmargin import max_margins
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.survey.cell import Cell, draw

_ROUNDING = 1e-9  # relative; what floats cannot tell apart counts as failing
_SMALLEST, _FARTHEST = 3, 1 << 30


def near_acute(problem: Problem) -> bool:
    """Whether (S) and (N) hold, as floats see it.

    With beta = K^(-1) 1 all logit gaps of W = sum beta_k A_k are 1, so g*^2 >= 1/||W||^2 = 1/sum(beta), with
    equality where beta >= 0. Only where that does not decide is the max-margin problem solved.
    """
    gram = problem.gram()
    beta = _equal_gaps(gram)
    if beta is not None:
        shown = bool(gram.min() > -(1 - _ROUNDING) / beta.sum())
        if shown or beta.min() >= 0:
            return shown
    (target,) = max_margins([problem])
    return isinstance(target, MaxMargin) and bool(gram.min() > -(1 - _ROUNDING) / target.norm**2)


def _equal_gaps(gram: Float[np.ndarray, "N N"]) -> Float[np.ndarray, " N"] | None:
    try:
        beta = np.linalg.solve(gram, np.ones(len(gram)))
    except np.linalg.LinAlgError:
        return None
    return beta if np.abs(gram @ beta - 1).max() < _ROUNDING and beta.sum() > 0 else None


def count(cell: Cell, step: Callable[[], None] = lambda: None) -> int:
    """How many of the cell's problems have (S) and (N); `step` is called after each."""
    found = 0
    for j in range(cell.problems):
        found += near_acute(draw(cell, j))
        step()
    return found


def dimension(cell: Cell, share: float, step: Callable[[], None] = lambda: None) -> int:
    """From which d on, up to the cell's own, at least this share of the cell's problems has (S) and (N).

    Looked for downwards in steps of about 1.4, which also passes over a share that does not grow all the way,
    then by bisection to 2 percent. A cell's own d that does not suffice is doubled first. Raises InputError
    for a share outside (0, 1], and when no dimension up to 2^30 suffices.
    """
    if not 0 < share <= 1:
        raise InputError(f"a share must lie in (0, 1], and is {share}")
    spare = int((1 - share) * cell.problems + _ROUNDING)

    def enough(d: int) -> bool:
        there, failures = replace(cell, d=d), 0
        for j in range(cell.problems):
            failures += not near_acute(draw(there, j))
            step()
            if failures > spare:
                return False
        return True

    high = cell.d
    while not enough(high):
        if high >= _FARTHEST:
            raise InputError(f"no dimension up to {_FARTHEST} suffices for {cell}")
        high *= 2
    low = _SMALLEST - 1
    while high > _SMALLEST:
        before = max(_SMALLEST, int(high / 2**0.5))
        if not enough(before):
            low = before
            break
        high = before
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
