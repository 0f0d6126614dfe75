"""Infeasible constraints: which sequences and tokens clash."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from numerics.problem import Problem

_SHOWN = 6


def describe(problem: Problem, beta: Float[np.ndarray, " N"]) -> str:
    """One line naming the clashing constraints of an infeasible problem.

    `beta` holds nonnegative weights of sum 1 with sum_k beta_k A_k = 0: no W can give all of these
    constraints a positive margin (Farkas).
    """
    involved = np.flatnonzero(beta > 1e-6 * np.max(beta))
    involved = involved[np.argsort(-beta[involved], kind="stable")]
    sequences = problem.constraint_sequence[involved]
    without_query = [int(i) for i in np.unique(sequences) if not problem.queries[i].any()]
    if without_query:
        return (
            f"infeasible: the query of sequence {without_query[0]} is zero, so no W can tell its tokens apart"
        )
    names = [f"({i}, {tau})" for i, tau in zip(sequences, problem.constraint_token[involved], strict=True)]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return (
        f"infeasible: no W attends to every optimal token; the constraints of (sequence, token) {shown} "
        f"cancel with weights beta >= 0 (sum beta_k A_k = 0)"
    )
