"""The pairs of constraints that break (N), by name: which tokens of which sequences pull apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from theory.assumptions import enclose

_UNIT = 2.0**-53


@dataclass(frozen=True)
class Pair:
    """Constraints k <= l with <A_k, A_l> at most -g*^2: each as (sequence, token) of the token it compares.

    ``product`` encloses <A_k, A_l>; ``certain`` is False where rounding leaves open on which side of -g*^2
    it lies.
    """

    first: tuple[int, int]
    second: tuple[int, int]
    product: tuple[float, float]
    certain: bool


def breaking_pairs(problem: Problem, target: MaxMargin | None) -> tuple[Pair, ...] | None:
    """All pairs of constraints that break (N), or may, the most obtuse first; empty where (N) holds.

    None where that is not known: no margin (infeasible, or an unusable solution), or a problem too large to
    enclose. The products are float64 with a rounding error bound, the margin a ball: nothing is left to luck.
    """
    balls = enclose(problem, target)
    if balls is None or not balls.feasible:
        return None
    level = -(balls.margin**2)
    low = np.nextafter(float(level.lower()), -np.inf)
    high = np.nextafter(float(level.upper()), np.inf)
    gram = problem.gram()
    error = _rounding(problem)
    rows, columns = np.nonzero(np.triu(gram - error <= high))
    found = [
        (float(gram[k, m] - error[k, m]), float(gram[k, m] + error[k, m]), int(k), int(m))
        for k, m in zip(rows, columns, strict=True)
    ]
    names = list(zip(problem.constraint_sequence.tolist(), problem.constraint_token.tolist(), strict=True))
    return tuple(
        Pair(names[k], names[m], (below, above), bool(above <= low)) for below, above, k, m in sorted(found)
    )


def _rounding(problem: Problem) -> Float[np.ndarray, "N N"]:
    """A bound on the rounding errors of ``problem.gram()``, whatever the order of summation.

    Differences are rounded once, inner products of d terms have relative error (d + 2) u in terms of absolute
    values, which Cauchy-Schwarz bounds by norms; what underflows adds 2^-1074 a term.
    """
    differences = np.linalg.norm(problem.differences, axis=1)
    queries = np.linalg.norm(problem.queries, axis=1)
    sizes = differences * queries[problem.constraint_sequence]
    underflow = problem.d * 2.0**-1074 * (2 + differences.max() ** 2 + queries.max() ** 2)
    return (2 * problem.d + 16) * _UNIT * 1.01 * np.outer(sizes, sizes) + underflow
