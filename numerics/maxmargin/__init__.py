"""The max-margin target W_mm of the implicit-bias theorems: solved, and told apart from infeasible."""

from __future__ import annotations

from numerics.errors import InputError
from numerics.maxmargin.solution import MaxMargin, kkt_residual
from numerics.problem import Problem

__all__ = ["MaxMargin", "kkt_residual", "max_margin"]


def max_margin(problem: Problem, *, solver: str = "cvxpy") -> MaxMargin:
    """Solve min ||W||_F subject to <A_k, W> >= 1 for every non-optimal token.

    Solvers: "cvxpy" (the primal for d <= 30, else the dual), "cvxpy-primal", "cvxpy-dual". Raises
    InfeasibleError, with the clashing constraints, when no W satisfies all; InputError when there is no
    constraint at all or the solver is unknown.
    """
    if problem.n_constraints == 0:
        raise InputError("max margin: every sequence has one token, so there is no constraint (N = 0)")
    formulations = {"cvxpy": "auto", "cvxpy-primal": "primal", "cvxpy-dual": "dual"}
    if solver not in formulations:
        raise InputError(f'max margin: unknown solver "{solver}", know {", ".join(formulations)}')
    from numerics.maxmargin.reference import solve

    return solve(problem, formulations[solver])
