"""Max margin: optimality conditions, agreement of the solvers, batches, determinism, and bad input."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from numerics import max_margin
from numerics.datasets import load
from numerics.errors import InfeasibleError, InputError
from numerics.maxmargin import SOLVERS, active_set, gram, max_margins
from numerics.problem import Problem

CVXPY = ("cvxpy-primal", "cvxpy-dual")
TOLERANCE = {"active-set": 1e-13, "exact": 1e-13, "cvxpy-primal": 1e-7, "cvxpy-dual": 1e-7}


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
    assert solution.residual < tolerance


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("solver", TOLERANCE)
def test_solvers_meet_the_optimality_conditions(solver: str, seed: int) -> None:
    p = draw(seed)
    solution = max_margin(p, solver=solver)
    assert solution.solver == solver
    assert_optimal(p, solution, TOLERANCE[solver])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spec", ["gaussian:d=60", "digits:3v5,n=10"])
def test_primal_and_dual_agree(spec: str, seed: int) -> None:
    p = load(spec, seed)
    primal, dual = (max_margin(p, solver=solver) for solver in CVXPY)
    np.testing.assert_allclose(primal.weights, dual.weights, atol=1e-6 * primal.norm)
    np.testing.assert_array_equal(primal.support, dual.support)


def random_feasible(count: int) -> list[tuple[int, Problem]]:
    """The first `count` feasible problems of varied shape, by seed; feasible by the reference's word."""
    found: list[tuple[int, Problem]] = []
    seed = 0
    while len(found) < count:
        rng = np.random.default_rng([seed, 1])
        n, T, d = (int(rng.integers(low, high)) for low, high in ((1, 9), (2, 6), (4, 14)))
        p = draw(seed, n, T, d)
        try:
            max_margin(p, solver="cvxpy-dual")
        except InfeasibleError:
            pass
        else:
            found.append((seed, p))
        seed += 1
    return found


def test_agrees_with_cvxpy_on_200_problems_and_is_more_accurate() -> None:
    for seed, p in random_feasible(200):
        ours, reference = max_margin(p), max_margin(p, solver="cvxpy-dual")
        error = np.linalg.norm(ours.weights - reference.weights) / ours.norm
        assert error < 1e-6, f"seed {seed}: weights differ by {error:.1e}"
        assert ours.residual <= 1e-12, f"seed {seed}: residual {ours.residual:.1e}"
        assert ours.residual <= reference.residual + 1e-15, f"seed {seed}"


@pytest.mark.parametrize("solver", TOLERANCE)
def test_one_constraint_has_a_closed_form(solver: str) -> None:
    p = Problem([[[3.0, 1.0], [1.0, 0.0]]], [[0.0, 2.0]], [1], [1.0, 0.0])
    solution = max_margin(p, solver=solver)
    A = np.outer([2.0, 1.0], [0.0, 2.0])
    np.testing.assert_allclose(solution.weights, A / 20, atol=1e-9)
    np.testing.assert_allclose(solution.dual, [1 / 20], rtol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_single_steps_alone_reach_the_same_solution(seed: int) -> None:
    p = draw(seed, 6, 5, 7)
    bulk = max_margin(p)
    units = gram.UnitConstraints(p)
    steps: list[tuple[int, int, float]] = []
    single = active_set.solve_units(units, lambda *state: steps.append(state), bulk=False)
    np.testing.assert_array_equal(single.support, np.flatnonzero(bulk.support))
    dual = np.zeros(p.n_constraints)
    dual[single.support] = single.multipliers
    np.testing.assert_allclose(units.dual(dual), bulk.dual, rtol=1e-9)
    assert len(steps) > single.support.size
    assert all(worst > 0 for _, _, worst in steps[:-1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ragged", [False, True])
def test_matrix_free_products_equal_the_gram_matrix(seed: int, ragged: bool) -> None:
    p = (
        draw(seed, 7, 5, 4 + seed)
        if ragged
        else load(f"gaussian:n=6,T=4,d={20 + seed},orthogonal=false", seed)
    )
    dense, free = gram.UnitConstraints(p, dense=True), gram.UnitConstraints(p, dense=False)
    norms = p.constraint_norms
    K = p.gram() / np.outer(norms, norms)
    rng = np.random.default_rng(seed)
    S = np.sort(rng.choice(p.n_constraints, p.n_constraints // 2, replace=False))
    a = rng.standard_normal(S.size)
    for units in (dense, free):
        np.testing.assert_allclose(units.apply(S, a), K[:, S] @ a, atol=1e-13)
        np.testing.assert_allclose(units.block(S, S[:2]), K[np.ix_(S, S[:2])], atol=1e-14)
        np.testing.assert_allclose(units.norms, norms, rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spec", ["gaussian:n=30,T=6,d=300", "digits:3v5"])
def test_conjugate_gradients_reach_the_same_solution(spec: str, seed: int, monkeypatch) -> None:
    p = load(spec, seed)
    dense = max_margin(p)
    monkeypatch.setattr(gram.UnitConstraints, "DENSE_LIMIT", 40)
    free = max_margin(p)
    np.testing.assert_array_equal(free.support, dense.support)
    np.testing.assert_allclose(free.weights, dense.weights, atol=1e-12 * dense.norm)
    assert free.residual < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_factorization_takes_over_from_conjugate_gradients(seed: int, monkeypatch) -> None:
    p = draw(seed, 30, 6, 12)
    dense = max_margin(p)
    monkeypatch.setattr(gram.UnitConstraints, "DENSE_LIMIT", 20)
    monkeypatch.setattr(active_set, "_ROUNDS", 3)
    free = max_margin(p)
    np.testing.assert_array_equal(free.support, dense.support)
    np.testing.assert_allclose(free.weights, dense.weights, atol=1e-11 * dense.norm)


def test_the_solution_does_not_depend_on_padding_or_the_run() -> None:
    p = draw(0)
    first, again = max_margin(p), max_margin(p)
    assert first.weights.tobytes() == again.weights.tobytes()
    assert first.dual.tobytes() == again.dual.tobytes()
    padded = Problem(
        np.pad(p.tokens, ((0, 0), (0, 3), (0, 0)), constant_values=np.nan),
        p.queries,
        p.labels,
        p.decoder,
        np.pad(p.mask, ((0, 0), (0, 3))),
    )
    np.testing.assert_array_equal(max_margin(padded).weights, first.weights)


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_keep_order_and_report_infeasible_ones(workers: int) -> None:
    problems = [draw(seed) for seed in range(6)]
    problems.insert(2, draw(0, n=20, T=5, d=3))
    results = max_margins(problems, workers=workers)
    assert isinstance(results[2], InfeasibleError)
    for p, result in zip(problems, results, strict=True):
        if not isinstance(result, InfeasibleError):
            assert result.dual.tobytes() == max_margin(p).dual.tobytes()


def test_batches_do_not_hide_bad_input() -> None:
    with pytest.raises(InputError, match="N = 0"):
        max_margins([draw(0), Problem([[[1.0]]], None, [1], [1.0])])


def test_progress_goes_to_stderr(capsys) -> None:
    p = load("digits:3v5")
    assert max_margin(p, progress=True).dual.tobytes() == max_margin(p).dual.tobytes()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", TOLERANCE)
def test_crowded_problems_are_infeasible(solver: str, seed: int) -> None:
    p = draw(seed, n=20, T=5, d=3)
    with pytest.raises(InfeasibleError, match="sequence, token") as caught:
        max_margin(p, solver=solver)
    beta = caught.value.beta
    assert (beta >= 0).all()
    assert abs(beta.sum() - 1) < 1e-12
    tolerance = 1e-6 if solver in CVXPY else 1e-14
    assert np.linalg.norm(p.combine(beta)) < tolerance * p.constraint_norms.max()


@pytest.mark.parametrize("solver", TOLERANCE)
def test_zero_query_is_the_stated_reason(solver: str) -> None:
    tokens = np.random.default_rng(0).standard_normal((3, 3, 4))
    queries = np.ones((3, 4))
    queries[1] = 0.0
    with pytest.raises(InfeasibleError, match="query of sequence 1 is zero"):
        max_margin(Problem(tokens, queries, [1, 1, -1], np.ones(4)), solver=solver)
    with pytest.raises(InfeasibleError, match="query of sequence 0 is zero"):
        max_margin(Problem(tokens, queries * 0, [1, 1, -1], np.ones(4)), solver=solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_to_separate_is_an_input_error(solver: str) -> None:
    with pytest.raises(InputError, match="N = 0"):
        max_margin(Problem([[[1.0]]], None, [1], [1.0]), solver=solver)


def test_unknown_solver_is_an_input_error() -> None:
    with pytest.raises(InputError, match='unknown solver "magic"'):
        max_margin(load("gaussian"), solver="magic")


@pytest.mark.parametrize("solver", SOLVERS)
def test_numbers_too_small_for_floats_are_an_input_error(solver: str) -> None:
    p = draw(0)
    for scale in (1e-80, 1e-100, 1e-300):
        with pytest.raises(InputError, match="so small"):
            max_margin(
                Problem(p.tokens * scale, p.queries * scale, p.labels, p.decoder, p.mask), solver=solver
            )


@pytest.mark.soak
def test_twenty_thousand_constraints_within_memory_and_precision() -> None:
    import resource

    p = load("gaussian:n=2000,T=11,d=4096")
    assert p.n_constraints == 20_000
    solution = max_margin(p)
    unit = 2**20 if sys.platform == "linux" else 2**30
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(f"peak memory {peak:.2f} GiB, residual {solution.residual:.1e}")
    assert peak < 20
    assert solution.residual < 1e-12
