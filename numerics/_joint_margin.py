"""The decoder's own max margin: u_mm = argmin { ||u|| : y_i <u, x_(i,o_i)> >= 1 } on the optimal tokens.

The linear support vector machine through the origin. It is the attention problem with tokens y_i x_(i,o_i)
and 0 and one common query e_1 (then <A_k, W> = <y_i x_(i,o_i), W e_1>), so the max-margin solver and its
certificates serve for it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from numerics.errors import CertificationError, InfeasibleError, InputError
from numerics.maxmargin import max_margin
from numerics.maxmargin.certificate import Certificate
from numerics.problem import Problem

_FEASIBLE = 1e-9  # least margin, in units of the largest row, that counts as separating


@dataclass(frozen=True, eq=False, kw_only=True)
class DecoderMargin:
    """The max-margin decoder of the optimal tokens, as floats: nothing is certified.

    weights (d,) is u_mm = sum_i dual_i y_i x_(i,o_i), dual (n,) >= 0, norm = ||u_mm||, margins (n,) the y_i
    <u_mm, x_(i,o_i)>; residual is max_i |min(dual_i/max dual, margins_i - 1)|, zero at the optimum.
    """

    weights: Float[np.ndarray, " d"]
    dual: Float[np.ndarray, " n"]
    norm: float
    margins: Float[np.ndarray, " n"]
    residual: float
    rows: Float[np.ndarray, "n d"] = field(repr=False)

    @property
    def margin(self) -> float:
        """1/||u_mm||, the largest margin a decoder of unit norm can have on the optimal tokens."""
        return 1.0 / self.norm

    def certify(self, bits: int = 64) -> Certificate:
        """Prove the solution from the stored floats; sequences with equal tokens count once.

        Raises CertificationError with the reason where the proof fails.
        """
        rows = np.unique(self.rows, axis=0)
        if not (rows @ self.weights > 0).all():
            raise CertificationError("the decoder does not separate the optimal tokens")
        return max_margin(_as_problem(rows, self.weights)).certify(bits)

    @classmethod
    def from_dual(cls, problem: Problem, dual: Float[np.ndarray, " n"]) -> DecoderMargin:
        """Build u_mm and what follows from it, for the optimal tokens of the problem."""
        rows = _rows(problem)
        weights = dual @ rows
        margins = rows @ weights
        residual = float(np.max(np.abs(np.minimum(dual / dual.max(), margins - 1.0))))
        for array in (weights, margins, dual, rows):
            array.setflags(write=False)
        norm = float(np.linalg.norm(weights))
        return cls(weights=weights, dual=dual, norm=norm, margins=margins, residual=residual, rows=rows)


def decoder_max_margin(problem: Problem) -> DecoderMargin:
    """Solve the decoder's max margin on the problem's optimal tokens o_i (those of its own decoder).

    Raises InfeasibleError, with the weights of the clashing sequences, when no decoder has a positive margin
    on all of them.
    """
    from scipy.optimize import nnls

    rows = _rows(problem)
    scale = float(np.max(np.linalg.norm(rows, axis=1)))
    if scale == 0.0:
        raise InfeasibleError("every optimal token is zero: no decoder separates them")
    unique, where = np.unique(rows, axis=0, return_index=True)
    flat = unique / scale
    if len(flat) < flat.shape[1]:
        flat = np.linalg.qr(flat.T)[1].T  # the same inner products in fewer coordinates
    # Lawson and Hanson's least-distance programme: a separating u from nonnegative least squares.
    system = np.vstack([flat.T, np.ones(len(flat))])
    goal = np.zeros(len(system))
    goal[-1] = 1.0
    try:
        alpha, _ = nnls(system, goal, maxiter=100 * len(flat) + 100)
    except RuntimeError as error:
        raise InputError(f"the decoder's max margin could not be solved: {error}") from None
    rest = system @ alpha - goal
    with np.errstate(divide="ignore", invalid="ignore"):
        u = -rest[:-1] / rest[-1]
        separates = bool(np.isfinite(u).all()) and float((flat @ u).min()) > _FEASIBLE
    if not separates:
        beta = np.zeros(problem.n)
        beta[where] = alpha / alpha.sum()
        raise InfeasibleError("no decoder has a positive margin on the optimal tokens of all sequences", beta)
    solution = max_margin(_as_problem(flat, u))
    dual = np.zeros(problem.n)
    dual[where] = solution.dual / scale**2
    return DecoderMargin.from_dual(problem, dual)


def _rows(problem: Problem) -> Float[np.ndarray, "n d"]:
    """y_i x_(i,o_i)."""
    return problem.labels[:, None] * problem.tokens[np.arange(problem.n), problem.optimal]


def _as_problem(rows: np.ndarray, separating: np.ndarray) -> Problem:
    """The attention problem whose constraints are <rows_i e_1', W> >= 1."""
    n, d = rows.shape
    queries = np.zeros((n, d))
    queries[:, 0] = 1.0
    return Problem(np.stack([rows, np.zeros_like(rows)], axis=1), queries, np.ones(n), separating)
