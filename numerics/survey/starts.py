"""Starting points W_0 of a survey's runs, random and adversarial.

All lie in the span of the constraints: a part outside it neither moves nor is seen by any logit gap. All are
scaled so that the largest logit gap is 10 in absolute value: attention starts out at its corner, where the
gradient of the tokens it is on is e^-10 of its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem

LARGEST_GAP = 10.0

Start = Callable[[Problem, MaxMargin | None, np.ndarray, np.random.Generator], np.ndarray]


def random(
    problem: Problem, target: MaxMargin | None, gram: Float[np.ndarray, "N N"], rng: np.random.Generator
) -> Float[np.ndarray, "d d"]:
    """Gaussian entries, projected onto the span."""
    W = rng.standard_normal((problem.d, problem.d))
    return _with_gaps(problem, gram, problem.logit_gaps(W))


def opposite(
    problem: Problem, target: MaxMargin | None, gram: Float[np.ndarray, "N N"], rng: np.random.Generator
) -> Float[np.ndarray, "d d"]:
    """-W_mm; where there is none, minus the sum of the constraints."""
    W = problem.combine(np.ones(problem.n_constraints)) if target is None else target.weights
    return _scaled(problem, -W)


def decoy(
    problem: Problem, target: MaxMargin | None, gram: Float[np.ndarray, "N N"], rng: np.random.Generator
) -> Float[np.ndarray, "d d"]:
    """All attention on one wrong token a sequence: the one whose constraint has the most obtuse angle."""
    worst = (gram / np.sqrt(np.outer(gram.diagonal(), gram.diagonal()))).min(axis=1)
    gaps = np.zeros(problem.n_constraints)
    for i in range(problem.n):
        own = np.flatnonzero(problem.constraint_sequence == i)
        gaps[own[np.argmin(worst[own])]] = -1.0
    # Not along directions that the gaps hardly see: reaching them would take a huge W_0.
    return _with_gaps(problem, gram, gaps, smallest=0.01)


STARTS: Mapping[str, Start] = {"random": random, "opposite": opposite, "decoy": decoy}


def _with_gaps(
    problem: Problem, gram: np.ndarray, gaps: np.ndarray, *, smallest: float = 1e-10
) -> np.ndarray:
    """The W of least norm with these logit gaps, up to scale; with the nearest gaps where none has them.

    Eigenvalues of K below ``smallest`` times the largest count as zero.
    """
    return _scaled(problem, problem.combine(np.linalg.lstsq(gram, gaps, rcond=smallest)[0]))


def _scaled(problem: Problem, W: np.ndarray) -> np.ndarray:
    return W * (LARGEST_GAP / np.abs(problem.logit_gaps(W)).max())
