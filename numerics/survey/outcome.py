"""One cell measured: which assumptions its problems meet, and where its runs end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from numerics.errors import AttnratesError
from numerics.maxmargin import max_margin, max_margins
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.steps import NormalizedGD
from numerics.survey.cell import SIGNAL_DIRECTIONS, Cell, draw
from numerics.survey.starts import STARTS

CLOSE = 0.01
"""A run has reached a max-margin solution when 1 - cos between W and it is below this."""
PATIENCE = (10, 100)  # a run that is undecided is run anew for so many times the steps
_HELD = 1 << 26  # numbers in memory
_ROUNDING = 1e-9  # relative; what floats cannot tell apart counts as (N) failing


@dataclass(frozen=True)
class Limit:
    """Where a run ended.

    ``reached``: at W_mm, every optimal token chosen. ``stuck``: at the max-margin solution of the sequences
    that are right, while the others are beaten by more than its margin, so that their pull is exponentially
    smaller; never on a near-acute problem, whose runs all reach W_mm. Neither: undecided. ``wrong`` lists the
    (sequence, token) that are chosen instead of an optimal token.

    Behind each of them is a pair that breaks (N). Let M' = sum alpha_k A_k be that solution, g' >= g* its
    margin: sum alpha_k = 1/g'^2, and <A_l, M'> <= -1 for a wrong token's constraint l, so that some
    <A_k, A_l> <= -g'^2 <= -g*^2 with k a constraint of a sequence that is right.
    """

    reached: bool
    stuck: bool
    wrong: tuple[tuple[int, int], ...] = ()

    @property
    def undecided(self) -> bool:
        """Whether the run is not over."""
        return not (self.reached or self.stuck)


@dataclass(frozen=True)
class Outcome:
    """One problem: (S), (N), (F) as floats see them, the pairs of constraints that break (N), its limits.

    A pair is ((sequence, token), (sequence, token)); the most obtuse comes first. ``limits`` has one entry a
    start, and none where (S) fails: there is no W_mm to reach.
    """

    separable: bool
    near_acute: bool
    full_support: bool
    pairs: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    limits: dict[str, Limit] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Trained:
    """A problem with a max-margin solution, and its place among those drawn."""

    place: int
    problem: Problem
    target: MaxMargin
    gram: Float[np.ndarray, "N N"]
    near_acute: bool


def measure(cell: Cell, starts: Sequence[str] = tuple(STARTS), *, block: int | None = None) -> list[Outcome]:
    """Draw a cell's problems, decide the assumptions, and run normalized GD on each from every start.

    The step is 1/R, R the largest ||A_k||, so that no logit gap moves by more than 1 a step. ``block``
    problems are held in memory at once (default: what fits half a gigabyte, 200 at most). Without starts
    nothing is trained.
    """
    constraints, vectors = cell.n * (cell.T - 1), cell.n * cell.T + SIGNAL_DIRECTIONS
    numbers_each = 3 * constraints**2 + 2 * min(cell.d, vectors) ** 2
    size = block or max(1, min(200, _HELD // numbers_each))
    out: list[Outcome] = []
    for first in range(0, cell.problems, size):
        numbers = range(first, min(first + size, cell.problems))
        out += _measured(cell, numbers, starts)
    return out


def _measured(cell: Cell, numbers: range, starts: Sequence[str]) -> list[Outcome]:
    problems = [draw(cell, j) for j in numbers]
    targets = [found if isinstance(found, MaxMargin) else None for found in max_margins(problems)]
    grams = [problem.gram() for problem in problems]
    broken = [_broken(gram, target) for gram, target in zip(grams, targets, strict=True)]
    acute = [t is not None and not b.any() for t, b in zip(targets, broken, strict=True)]
    limits: list[dict[str, Limit]] = [{} for _ in problems]
    trained = [
        _Trained(k, problem, target, gram, near)
        for k, (problem, target, gram, near) in enumerate(zip(problems, targets, grams, acute, strict=True))
        if target is not None
    ]
    for name in starts:
        inits = [
            STARTS[name](x.problem, x.target, x.gram, cell.generator(numbers[x.place], name)) for x in trained
        ]
        for x, limit in zip(trained, _limits(trained, inits, cell.steps), strict=True):
            limits[x.place][name] = limit
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


def _limits(trained: Sequence[_Trained], inits: Sequence[np.ndarray], steps: int) -> list[Limit]:
    """The limits of one run a problem; runs that are not decided in `steps` steps are run longer."""
    limits = [Limit(False, False)] * len(trained)
    for times in (1, *PATIENCE):
        open_ = [k for k, limit in enumerate(limits) if limit.undecided]
        if not open_:
            break
        found = _ends([trained[k] for k in open_], [inits[k] for k in open_], times * steps)
        for k, limit in zip(open_, found, strict=True):
            limits[k] = limit
    return limits


def _ends(trained: Sequence[_Trained], inits: Sequence[np.ndarray], steps: int) -> list[Limit]:
    from numerics.training import train_batch

    runs = train_batch(
        [x.problem for x in trained],
        [NormalizedGD(step=1 / float(x.problem.constraint_norms.max())) for x in trained],
        steps=steps,
        inits=inits,
        targets=[x.target for x in trained],
        record=[0, steps],
        device="cpu",
    )
    return [
        _limit(x.problem, run.weights, float(run.recorded["direction_gap"][-1]), x.near_acute)
        for x, run in zip(trained, runs, strict=True)
    ]


def _limit(problem: Problem, W: np.ndarray, direction_gap: float, acute: bool) -> Limit:
    gaps = problem.logit_gaps(W)
    least = np.array([_least(problem, gaps, i) for i in range(problem.n)])
    astray = np.flatnonzero(gaps[least] <= 0)
    wrong = tuple((int(i), int(problem.constraint_token[least[i]])) for i in astray)
    if not wrong:
        return Limit(direction_gap < CLOSE, False)
    right = np.setdiff1d(np.arange(problem.n), astray)
    if acute or not right.size or gaps[least[astray]].max() >= -gaps[least[right]].min():
        return Limit(False, False, wrong)
    part = Problem(problem.tokens[right], problem.queries[right], problem.labels[right], problem.decoder)
    try:
        target = max_margin(part)
    except AttnratesError:  # so ill-conditioned that W has not settled either
        return Limit(False, False, wrong)
    cosine = float(np.sum(W * target.weights)) / (float(np.linalg.norm(W)) * target.norm)
    return Limit(False, 1 - cosine < CLOSE, wrong)


def _least(problem: Problem, gaps: np.ndarray, i: int) -> int:
    """The constraint of sequence i with the smallest logit gap."""
    own = np.flatnonzero(problem.constraint_sequence == i)
    return int(own[np.argmin(gaps[own])])
