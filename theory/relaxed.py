"""What stands in for (E) on a run with unequal scores: weaker conditions, and from which step on they hold.

With G_i the gap between the best score and the next, and beta_i the spread of the others, every coefficient
of -grad L = sum_k c_k A_k is positive once p_i > beta_i/(G_i + beta_i) in every sequence; under (F) the
gradient sees the max-margin solution, <-grad L, M> > 0, whatever the scores. These are read off the recorded
floats, at the recorded steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numerics.problem import Problem
from numerics.run import Run
from theory.assumptions import full_support


@dataclass(frozen=True)
class Relaxed:
    """A weaker condition: what it says, and the first recorded step from which on it holds at all others.

    ``from_step`` is None where it does not hold at the last recorded step, or is not known to.
    """

    says: str
    from_step: int | None


def relaxed(run: Run) -> dict[str, Relaxed]:
    """The conditions that stand in for (E), each with the step from which on the run meets it.

    Empty for a joint run, whose pages have conditions of their own: its scores move.
    """
    if run.joint is not None:
        return {}
    steps = run.recorded["step"]
    gaps, leak = run.recorded["min_logit_gap"], run.recorded["log_attention_gap"]
    problem = run.problem
    room, share = attention_room(problem), shift_gap(problem)
    found = {
        "chosen": Relaxed("every optimal token has the largest logit", _since(steps, gaps > 0)),
        "pull": Relaxed(
            "every constraint pulls the right way: p_i > beta_i/(G_i + beta_i), "
            f"met where 1 - p_i < {np.exp(room):.4g}",
            _since(steps, leak < room),
        ),
        "threshold": Relaxed(
            f"the coefficients have their limit form up to shifts: every logit gap is at least {share:.4g}",
            _since(steps, gaps >= share),
        ),
    }
    if full_support(problem, run.target).state == "holds":
        says = "<-grad L, W_mm> > 0 by full support (F), whatever the scores"
        found["identity"] = Relaxed(says, int(steps[0]))
    return found


def attention_room(problem: Problem) -> float:
    """log of the 1 - p below which p > beta_i/(G_i + beta_i) in every sequence: of the least G/(G + beta)."""
    rooms = [0.0]
    for i in range(problem.n):
        gaps = problem.score_gaps[problem.constraint_sequence == i]
        if gaps.size:
            rooms.append(float(np.log(gaps.min()) - np.log(gaps.max())))  # G + beta is the largest gap
    return min(rooms)


def shift_gap(problem: Problem) -> float:
    """The logit gap b from which on 2 Gam (T - 1) exp(-b) <= gam, Gam and gam the extreme score gaps."""
    gaps = problem.score_gaps
    return float(np.log(2 * (problem.T - 1)) + np.log(gaps.max()) - np.log(gaps.min()))


def _since(steps: np.ndarray, met: np.ndarray) -> int | None:
    broken = np.flatnonzero(~met)
    if not broken.size:
        return int(steps[0])
    return int(steps[broken[-1] + 1]) if broken[-1] + 1 < len(steps) else None
