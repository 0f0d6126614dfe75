"""Max margin through cvxpy: the formulations everybody writes first, kept as the independent reference."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float

from numerics.errors import AttnratesError, InfeasibleError
from numerics.maxmargin.infeasible import describe
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem

_PRIMAL_LIMIT = 900  # entries of the d x d variable up to which "cvxpy" takes the primal
_TOLERANCE = 1e-7  # g*/max ||A_k|| below which the reference calls a problem infeasible
_SUPPORT = 1e-6  # share of the largest multiplier below which the reference calls one zero


def solve(problem: Problem, formulation: str = "auto") -> MaxMargin:
    """Solve by cvxpy and Clarabel, to about seven digits.

    `formulation` is "primal" (a d x d variable, one linear constraint per token), "dual" (the shortest
    vector sum_k beta_k A_k with beta in the simplex, through a factor of the N x N Gram matrix; g* is its
    length), or "auto", the primal when d <= 30. Raises InfeasibleError when the solver finds the primal
    infeasible or g* is below 1e-7 max_k ||A_k||, which is what its accuracy can tell from zero.
    """
    if formulation == "auto":
        formulation = "primal" if problem.d**2 <= _PRIMAL_LIMIT else "dual"
    scale = float(np.max(problem.constraint_norms))
    dual = _primal(problem, scale) if formulation == "primal" else None
    if dual is None:
        beta, margin = _dual(problem, scale)
        if margin <= _TOLERANCE:
            raise InfeasibleError(describe(problem, beta), beta)
        dual = beta / (margin * scale) ** 2
    pull = dual * problem.constraint_norms
    return MaxMargin.from_dual(
        problem, np.where(pull > _SUPPORT * pull.max(), dual, 0.0), f"cvxpy-{formulation}"
    )


def _primal(problem: Problem, scale: float) -> Float[np.ndarray, " N"] | None:
    """Multipliers of the primal, or None where the solver calls it infeasible."""
    import cvxpy as cp

    V = cp.Variable((problem.d, problem.d))  # V = scale W
    queries = problem.queries[problem.constraint_sequence]
    margins = cp.sum(cp.multiply(problem.differences / scale, queries @ V.T), axis=1)
    constraint = margins >= 1
    model = cp.Problem(cp.Minimize(cp.sum_squares(V) / 2), [constraint])
    _run(model)
    if model.status in {cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE}:
        return None
    return np.maximum(np.asarray(constraint.dual_value), 0.0) / scale**2


def _dual(problem: Problem, scale: float) -> tuple[Float[np.ndarray, " N"], float]:
    """(beta, min ||sum_k beta_k A_k|| / scale) over the simplex."""
    import cvxpy as cp

    values, vectors = np.linalg.eigh(problem.gram() / scale**2)
    factor = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    beta = cp.Variable(problem.n_constraints, nonneg=True)
    # The norm, not its square: a square would lose half of the digits near infeasibility.
    model = cp.Problem(cp.Minimize(cp.norm(factor @ beta, 2)), [cp.sum(beta) == 1])
    _run(model)
    weights = np.maximum(np.asarray(beta.value), 0.0)
    weights /= weights.sum()
    margin = float(np.linalg.norm(factor @ weights))
    if margin > _TOLERANCE:  # far from zero the square is the smooth problem, and gives the better digits
        alpha = cp.Variable(problem.n_constraints, nonneg=True)
        _run(cp.Problem(cp.Minimize(cp.sum_squares((factor / margin) @ alpha) / 2 - cp.sum(alpha))))
        weights = np.maximum(np.asarray(alpha.value), 0.0)
        weights /= weights.sum()
    return weights, float(np.linalg.norm(factor @ weights))


def _run(model: object) -> None:
    import cvxpy as cp

    assert isinstance(model, cp.Problem)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the residual says how much
            model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    except cp.SolverError as error:
        raise AttnratesError(f"cvxpy could not solve the max-margin problem: {error}") from None
    known = {cp.OPTIMAL, cp.OPTIMAL_INACCURATE, cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE}
    if model.status not in known:
        raise AttnratesError(f"cvxpy could not solve the max-margin problem: status {model.status}")
