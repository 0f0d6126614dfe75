"""Max margin: optimality conditions, agreement of the solvers, infeasible and degenerate problems."""

from __future__ import annotations

import numpy as np
import pytest

from numerics import max_margin
from numerics.datasets import load
from numerics.errors import InfeasibleError, InputError
from numerics.problem import Problem

CVXPY = ("cvxpy-primal", "cvxpy-dual")


def draw(seed: int, n: int = 4, T: int = 4, d: int = 8) -> Problem:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, T + 1, size=n)
    return Problem(
        rng.standard_normal((n, T, d)),
        rng.standard_normal((n, d)),
        rng.choice([-1.0, 1.0], size=n),
        rng.standard_normal(d),
        np.arange(T) < lengths[:, None],
    )


def assert_optimal(p: Problem, solution, tolerance: float) -> None:
    """The KKT conditions from their definition, with explicit d x d matrices."""
    i, tau = p.constraint_sequence, p.constraint_token
    x = p.tokens
    A = np.einsum("ka,kb->kab", x[i, p.optimal[i]] - x[i, tau], p.queries[i])
    M, alpha = solution.weights, solution.dual
    margins = np.tensordot(A, M, 2)
    assert (alpha >= 0).all()
    assert margins.min() > 1 - tolerance
    np.testing.assert_allclose(M, np.tensordot(alpha, A, 1), atol=1e-12 * np.abs(M).max())
    np.testing.assert_allclose(alpha.sum(), (M**2).sum(), rtol=10 * tolerance)
    np.testing.assert_allclose(alpha @ (margins - 1), 0.0, atol=10 * tolerance * alpha.sum())
    np.testing.assert_allclose(solution.margins, margins, atol=1e-12 * np.abs(margins).max())
    np.testing.assert_allclose(solution.norm, np.linalg.norm(M), rtol=1e-14)
    np.testing.assert_allclose(solution.margin * solution.norm, 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(solution.direction), 1.0, rtol=1e-14)
    assert (solution.support == (alpha > 0)).all()
    assert solution.problem_hash == p.hash


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", CVXPY)
def test_reference_meets_the_optimality_conditions(solver: str, seed: int) -> None:
    p = draw(seed)
    solution = max_margin(p, solver=solver)
    assert solution.solver == solver
    assert_optimal(p, solution, 1e-7)
    assert solution.residual < 1e-7


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spec", ["gaussian:d=60", "digits:3v5,n=10"])
def test_primal_and_dual_agree(spec: str, seed: int) -> None:
    p = load(spec, seed)
    primal, dual = (max_margin(p, solver=solver) for solver in CVXPY)
    np.testing.assert_allclose(primal.weights, dual.weights, atol=1e-6 * primal.norm)
    np.testing.assert_array_equal(primal.support, dual.support)


@pytest.mark.parametrize("solver", CVXPY)
def test_one_constraint_has_a_closed_form(solver: str) -> None:
    p = Problem([[[3.0, 1.0], [1.0, 0.0]]], [[0.0, 2.0]], [1], [1.0, 0.0])
    solution = max_margin(p, solver=solver)
    A = np.outer([2.0, 1.0], [0.0, 2.0])
    np.testing.assert_allclose(solution.weights, A / 20, atol=1e-9)
    np.testing.assert_allclose(solution.dual, [1 / 20], rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", CVXPY)
def test_reference_calls_crowded_problems_infeasible(solver: str, seed: int) -> None:
    p = draw(seed, n=20, T=5, d=3)
    with pytest.raises(InfeasibleError, match="sequence, token") as caught:
        max_margin(p, solver=solver)
    beta = caught.value.beta
    assert (beta >= 0).all()
    assert abs(beta.sum() - 1) < 1e-12
    assert np.linalg.norm(p.combine(beta)) < 1e-6 * p.constraint_norms.max()


@pytest.mark.parametrize("solver", CVXPY)
def test_zero_query_is_the_stated_reason(solver: str) -> None:
    tokens = np.random.default_rng(0).standard_normal((3, 3, 4))
    queries = np.ones((3, 4))
    queries[1] = 0.0
    with pytest.raises(InfeasibleError, match="query of sequence 1 is zero"):
        max_margin(Problem(tokens, queries, [1, 1, -1], np.ones(4)), solver=solver)
    with pytest.raises(InfeasibleError, match="query of sequence 0 is zero"):
        max_margin(Problem(tokens, queries * 0, [1, 1, -1], np.ones(4)), solver=solver)


def test_nothing_to_separate_is_an_input_error() -> None:
    with pytest.raises(InputError, match="N = 0"):
        max_margin(Problem([[[1.0]]], None, [1], [1.0]))


def test_unknown_solver_is_an_input_error() -> None:
    with pytest.raises(InputError, match='unknown solver "magic"'):
        max_margin(load("gaussian"), solver="magic")
