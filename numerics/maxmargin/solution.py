"""The max-margin solution as a value, and its distance from the optimality conditions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from numerics.maxmargin.certificate import Certificate, certify
from numerics.problem import Problem


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxMargin:
    """M = argmin { ||W||_F : <A_k, W> >= 1 for all k } with its multipliers, as floats: nothing is certified.

    weights (d, d) is M = sum_k dual_k A_k; dual (N,) the multipliers alpha >= 0, whose sum is ||M||^2; norm
    = ||M||_F; margins (N,) the <A_k, M>; support (N,) the constraints with alpha_k > 0; residual the
    relative KKT residual of `kkt_residual`; solver says which method made it, problem_hash for which
    problem.
    """

    weights: Float[np.ndarray, "d d"]
    dual: Float[np.ndarray, " N"]
    norm: float
    margins: Float[np.ndarray, " N"]
    support: Bool[np.ndarray, " N"]
    residual: float
    solver: str
    problem_hash: str
    problem: Problem = field(repr=False)

    @property
    def margin(self) -> float:
        """g* = 1/||M||, the largest margin a W of unit norm can have."""
        return 1.0 / self.norm

    @property
    def direction(self) -> Float[np.ndarray, "d d"]:
        """M/||M||."""
        return self.weights / self.norm

    def certify(self, bits: int = 64) -> Certificate:
        """Prove the solution from the problem's floats as exact rationals; see `certificate.certify`.

        Every number of the certificate is stated to `bits` bits, with half a unit of the last as its error.
        Raises CertificationError with the reason where the proof fails.
        """
        return certify(self.problem, self.dual, bits)

    @classmethod
    def from_dual(
        cls,
        problem: Problem,
        dual: Float[np.ndarray, " N"],
        solver: str,
        weights: Float[np.ndarray, "d d"] | None = None,
    ) -> MaxMargin:
        """Build M = sum_k dual_k A_k (or take a better rounded one) and everything that follows from it."""
        if weights is None:
            weights = problem.combine(dual)
        margins = problem.logit_gaps(weights)
        for array in (weights, margins, dual):
            array.setflags(write=False)
        return cls(
            weights=weights,
            dual=dual,
            norm=float(np.linalg.norm(weights)),
            margins=margins,
            support=dual > 0,
            residual=kkt_residual(problem, dual, margins),
            solver=solver,
            problem_hash=problem.hash,
            problem=problem,
        )


def kkt_residual(problem: Problem, dual: Float[np.ndarray, " N"], margins: Float[np.ndarray, " N"]) -> float:
    """max_k |min(alpha_k ||A_k|| / max_l alpha_l ||A_l||, <A_k, M> - 1)|: zero exactly at the optimum.

    Both arguments are free of units: the margins' target is 1, and the multipliers are compared with the
    largest once each counts with its constraint's norm. Stationarity, M = sum_k alpha_k A_k, holds by
    construction.
    """
    pull = dual * problem.constraint_norms
    return float(np.max(np.abs(np.minimum(pull / np.max(np.abs(pull)), margins - 1.0))))
