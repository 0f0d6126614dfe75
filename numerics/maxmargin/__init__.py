"""The max-margin target W_mm of the implicit-bias theorems: solved, certified, or proved infeasible."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from numerics.errors import InfeasibleError, InputError
from numerics.maxmargin.solution import MaxMargin, kkt_residual
from numerics.problem import Problem
from numerics.progress import phase

__all__ = ["SOLVERS", "MaxMargin", "kkt_residual", "max_margin", "max_margins"]

_SMALLEST = 1e-140  # ||A_k|| from which ||M||^2 and the Gram matrix stay within the range of floats
SOLVERS = ("active-set", "exact", "cvxpy", "cvxpy-primal", "cvxpy-dual")


def max_margin(problem: Problem, *, solver: str = "active-set", progress: bool = False) -> MaxMargin:
    """Solve min ||W||_F subject to <A_k, W> >= 1 for every non-optimal token.

    Solvers: "active-set", a dual method to rounding error, which turns to exact arithmetic where floats
    cannot decide; "exact", rational arithmetic throughout (small problems); and as an independent reference
    "cvxpy" (the primal for d <= 30, else the dual), "cvxpy-primal" and "cvxpy-dual". All are deterministic.
    `progress` shows the active-set method's state and the time elapsed on stderr.

    Raises InfeasibleError, with the clashing constraints and, from the first two solvers, a certificate,
    when no W satisfies all; InputError when there is no constraint at all or the solver is unknown;
    AttnratesError when the problem is too ill-conditioned to solve.
    """
    if problem.n_constraints == 0:
        raise InputError("max margin: every sequence has one token, so there is no constraint (N = 0)")
    if solver not in SOLVERS:
        raise InputError(f'max margin: unknown solver "{solver}", know {", ".join(SOLVERS)}')
    _refuse_trivial(problem)
    if solver.startswith("cvxpy"):
        from numerics.maxmargin import reference

        return reference.solve(problem, solver.removeprefix("cvxpy").removeprefix("-") or "auto")
    from numerics.maxmargin import fast

    if solver == "exact":
        return fast.solve_exactly(problem)
    with phase("max margin", show=progress) as say:
        return fast.solve(
            problem,
            lambda step, size, worst: say(
                f": step {step}, support {size} of {problem.n_constraints}, violation {worst:.1e}"
            ),
        )


def _refuse_trivial(problem: Problem) -> None:
    """Zero constraints are infeasible, and tiny ones out of range, whatever the solver."""
    from numerics.maxmargin import exact, infeasible

    zero = (problem.queries == 0).all(axis=1)[problem.constraint_sequence]  # A_k = 0 through nothing else
    if zero.any():
        found = exact.Farkas(support=[int(zero.argmax())], weights=[1])
        raise infeasible.infeasible_error(problem, infeasible.proof(problem, found))
    if problem.constraint_norms.min() < _SMALLEST:
        raise InputError("max margin: tokens or queries are so small that ||M||^2 overflows")


def max_margins(
    problems: Iterable[Problem], *, solver: str = "active-set", workers: int = 1
) -> list[MaxMargin | InfeasibleError]:
    """Solve many problems, in order; an infeasible one gives its InfeasibleError instead of raising it.

    `workers` threads share the work; the results do not depend on their number.
    """

    def one(problem: Problem) -> MaxMargin | InfeasibleError:
        try:
            return max_margin(problem, solver=solver)
        except InfeasibleError as error:
            return error

    if workers == 1:
        return [one(problem) for problem in problems]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, problems))
