"""The decoder's max margin: against cvxpy, by hand, certified, and refused where there is none."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from flint import arb, ctx

from numerics import InfeasibleError, Problem, decoder_max_margin
from numerics.datasets import load
from tests.numerics.oracles import random_problem


def by_cvxpy(problem: Problem) -> np.ndarray | None:
    """u_mm, None where there is none."""
    rows = problem.labels[:, None] * problem.tokens[np.arange(problem.n), problem.optimal]
    u = cp.Variable(problem.d)
    goal = cp.Problem(cp.Minimize(cp.sum_squares(u)), [rows @ u >= 1])
    goal.solve(solver="CLARABEL", tol_gap_abs=1e-12)
    return None if goal.status == "infeasible" else u.value


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "d"), [(3, 8), (9, 12), (12, 5), (30, 4)])
def test_it_is_the_support_vector_machine(seed: int, n: int, d: int) -> None:
    problem = random_problem(seed, n=n, T=3, d=d)
    expected = by_cvxpy(problem)
    if expected is None:
        with pytest.raises(InfeasibleError) as raised:
            decoder_max_margin(problem)
        rows = problem.labels[:, None] * problem.tokens[np.arange(problem.n), problem.optimal]
        assert np.linalg.norm(raised.value.beta @ rows) < 1e-9
        return
    found = decoder_max_margin(problem)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-6, atol=1e-7)
    assert found.residual < 1e-9
    assert (found.dual >= 0).all()
    assert found.margins.min() == pytest.approx(1.0, abs=1e-9)
    assert found.margin * found.norm == pytest.approx(1.0)
    assert found.dual.sum() == pytest.approx(found.norm**2)


def test_equal_tokens_count_once_and_the_answer_is_known() -> None:
    problem = load("gaussian:n=20,T=5,d=200,noise=0.25", 0)  # ten times mu_+, ten times mu_-, of norm 2
    found = decoder_max_margin(problem)
    expected = np.zeros(200)
    expected[:2] = 0.5, -0.5
    np.testing.assert_allclose(found.weights, expected, atol=1e-14)
    assert found.norm == pytest.approx(np.sqrt(0.5), rel=1e-14)
    assert found.dual.shape == (20,)
    certificate = found.certify()
    with ctx.workprec(128):
        assert certificate.norm.ball.contains(1 / arb(2).sqrt())
    assert len(certificate.constraints) == 2


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_units_do_not_matter(scale: float) -> None:
    problem = random_problem(1, n=6, T=3, d=8)
    scaled = Problem(scale * problem.tokens, problem.queries, problem.labels, problem.decoder, problem.mask)
    one, other = decoder_max_margin(problem), decoder_max_margin(scaled)
    np.testing.assert_allclose(other.weights * scale, one.weights, rtol=1e-9)


def test_no_margin_is_told_with_the_clashing_sequences() -> None:
    tokens = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]], [[0.0, 3.0], [0.0, 1.0]]])
    problem = Problem(tokens, np.ones((3, 2)), [1, -1, 1], [1.0, 0.75])
    assert problem.optimal.tolist() == [0, 0, 0]
    with pytest.raises(InfeasibleError, match="no decoder has a positive margin") as raised:
        decoder_max_margin(problem)
    beta = raised.value.beta
    rows = problem.labels[:, None] * problem.tokens[np.arange(3), problem.optimal]
    assert beta.min() >= 0
    assert beta.sum() == pytest.approx(1.0)
    assert np.linalg.norm(beta @ rows) < 1e-9


def test_zero_optimal_tokens_are_refused() -> None:
    tokens = np.array([[[0.0, 0.0], [-1.0, 0.0]]])
    with pytest.raises(InfeasibleError, match="zero"):
        decoder_max_margin(Problem(tokens, np.ones((1, 2)), [1], [1.0, 0.0]))
