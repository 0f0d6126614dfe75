"""One cell measured: which assumptions its problems meet, and where its runs end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from numerics.maxmargin import max_margin, max_margins
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.steps import NormalizedGD
from numerics.survey.cell import Cell, draw
from numerics.survey.starts import STARTS

CLOSE = 0.01
"""A run has reached W_mm when all its optimal tokens are chosen and 1 - cos(W, W_mm) is below this."""
PATIENCE = 10  # a run that is on its way, or surely not stuck, is given so many times the steps
_ROUNDING = 1e-9  # relative; what floats cannot tell apart counts as (N) failing


@dataclass(frozen=True)
class Limit:
    """Where a run ended.

    ``reached``: at W_mm. ``undecided``: every optimal token is chosen, or the problem is near-acute, but
    W_mm is not reached yet. Otherwise the run is stuck: ``chosen`` lists its wrong (sequence, token), and
    ``gap`` is 1 - cos between W and the max-margin solution of the sequences that are right (nan: there are
    none, or every sequence is right).
    """

    reached: bool
    undecided: bool
    chosen: tuple[tuple[int, int], ...] = ()
    gap: float = float("nan")


@dataclass(frozen=True)
class Outcome:
    """One problem: (S), (N), (F) as floats see them, the pairs of constraints that break (N), its limits.

    A pair is ((sequence, token), (sequence, token)); the most obtuse comes first. ``limits`` has one entry a
    start.
    """

    separable: bool
    near_acute: bool
    full_support: bool
    pairs: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    limits: dict[str, Limit] = field(default_factory=dict)


def measure(cell: Cell, starts: Sequence[str] = tuple(STARTS), *, block: int = 200) -> list[Outcome]:
    """Draw a cell's problems, decide the assumptions, and run normalized GD on each from every start.

    The step is 1/R, R the largest ||A_k||, so that no logit gap moves by more than 1 a step. ``block``
    problems are held in memory at once. Without starts nothing is trained.
    """
    out: list[Outcome] = []
    for first in range(0, cell.problems, block):
        numbers = range(first, min(first + block, cell.problems))
        out += _measured(cell, numbers, starts)
    return out


def _measured(cell: Cell, numbers: range, starts: Sequence[str]) -> list[Outcome]:
    problems = [draw(cell, j) for j in numbers]
    targets = [found if isinstance(found, MaxMargin) else None for found in max_margins(problems)]
    grams = [problem.gram() for problem in problems]
    broken = [_broken(gram, target) for gram, target in zip(grams, targets, strict=True)]
    acute = [t is not None and not b.any() for t, b in zip(targets, broken, strict=True)]
    limits: list[dict[str, Limit]] = [{} for _ in problems]
    for name in starts:
        inits = [
            STARTS[name](p, t, g, cell.generator(j, name))
            for j, p, t, g in zip(numbers, problems, targets, grams, strict=True)
        ]
        for j, limit in enumerate(_limits(problems, targets, inits, acute, cell.steps)):
            limits[j][name] = limit
    return [
        Outcome(
            separable=target is not None,
            near_acute=near,
            full_support=target is not None and bool((target.dual > 0).all()),
            pairs=() if target is None else _pairs(problem, gram, pairs),
            limits=limit,
        )
        for problem, target, gram, pairs, near, limit in zip(
            problems, targets, grams, broken, acute, limits, strict=True
        )
    ]


def _broken(gram: Float[np.ndarray, "N N"], target: MaxMargin | None) -> Bool[np.ndarray, "N N"]:
    """Which pairs have <A_k, A_l> <= -g*^2."""
    if target is None:
        return np.zeros_like(gram, dtype=bool)
    return gram <= -(1 - _ROUNDING) / target.norm**2


def _pairs(
    problem: Problem, gram: np.ndarray, broken: np.ndarray
) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    rows, columns = np.nonzero(np.triu(broken))
    order = np.argsort(gram[rows, columns], kind="stable")
    names = list(zip(problem.constraint_sequence.tolist(), problem.constraint_token.tolist(), strict=True))
    return tuple((names[k], names[m]) for k, m in zip(rows[order], columns[order], strict=True))


def _limits(
    problems: list[Problem],
    targets: list[MaxMargin | None],
    inits: list[np.ndarray],
    acute: list[bool],
    steps: int,
) -> list[Limit]:
    """The limits of one run a problem; runs that are not decided in `steps` steps are run longer."""
    limits = _trained(problems, targets, inits, acute, steps)
    open_ = [j for j, limit in enumerate(limits) if limit.undecided]
    if open_:
        longer = _trained(
            [problems[j] for j in open_],
            [targets[j] for j in open_],
            [inits[j] for j in open_],
            [acute[j] for j in open_],
            PATIENCE * steps,
        )
        for j, limit in zip(open_, longer, strict=True):
            limits[j] = limit
    return limits


def _trained(
    problems: list[Problem],
    targets: list[MaxMargin | None],
    inits: list[np.ndarray],
    acute: list[bool],
    steps: int,
) -> list[Limit]:
    from numerics.training import train_batch

    rules = [NormalizedGD(step=1 / float(problem.constraint_norms.max())) for problem in problems]
    out: list[Limit | None] = [None] * len(problems)
    for feasible in (True, False):  # an infeasible problem has no target to be given, or to look for
        own = [j for j, target in enumerate(targets) if (target is not None) == feasible]
        if own:
            runs = train_batch(
                [problems[j] for j in own],
                [rules[j] for j in own],
                steps=steps,
                inits=[inits[j] for j in own],
                targets=[targets[j] for j in own],
                record=[0, steps],
                device="cpu",
            )
            for j, run in zip(own, runs, strict=True):
                out[j] = _limit(problems[j], run.weights, float(run.recorded["direction_gap"][-1]), acute[j])
    return [limit for limit in out if limit is not None]


def _limit(problem: Problem, W: np.ndarray, direction_gap: float, acute: bool) -> Limit:
    gaps = problem.logit_gaps(W)
    wrong = []
    for i in range(problem.n):
        own = np.flatnonzero(problem.constraint_sequence == i)
        least = own[np.argmin(gaps[own])]
        if gaps[least] <= 0:
            wrong.append((i, int(problem.constraint_token[least])))
    if not wrong:
        reached = direction_gap < CLOSE
        return Limit(reached, not reached)
    if acute:
        return Limit(False, True, tuple(wrong))
    right = np.setdiff1d(np.arange(problem.n), [i for i, _ in wrong])
    gap = float("nan")
    if right.size:
        part = Problem(problem.tokens[right], problem.queries[right], problem.labels[right], problem.decoder)
        target = max_margin(part)
        cosine = float(np.sum(W * target.weights)) / (float(np.linalg.norm(W)) * target.norm)
        gap = 1 - cosine
    return Limit(False, False, tuple(wrong), gap)
