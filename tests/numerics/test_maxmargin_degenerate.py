"""Degenerate inputs: duplicates, collinear queries, dependent constraints, extreme scales, and more."""

from __future__ import annotations

import json

import numpy as np
import pytest

from numerics import max_margin
from numerics.errors import InfeasibleError
from numerics.maxmargin import checker
from numerics.problem import Problem

SEEDS = range(4)


def draw(seed: int, n: int = 6, T: int = 4, d: int = 8) -> Problem:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    return Problem(
        rng.standard_normal((n, T, d)),
        rng.standard_normal((n, d)),
        rng.choice([-1.0, 1.0], size=n),
        rng.standard_normal(d),
    )


def with_queries(p: Problem, queries: np.ndarray) -> Problem:
    return Problem(p.tokens, queries, p.labels, p.decoder)


def stack(p: Problem, q: Problem) -> Problem:
    pairs = ((p.tokens, q.tokens), (p.queries, q.queries), (p.labels, q.labels))
    return Problem(*(np.concatenate(pair) for pair in pairs), p.decoder)


def solved(p: Problem):
    """Solve, certify, check the certificate, and compare."""
    solution = max_margin(p)
    proved = solution.certify()
    assert checker.check(p, json.loads(json.dumps(proved.to_json()))) == "optimal"
    np.testing.assert_allclose(solution.norm, float(proved.norm), rtol=1e-11)
    np.testing.assert_allclose(solution.dual.sum(), float(proved.norm) ** 2, rtol=1e-10)
    inactive = np.array([status == "inactive" for status in proved.status])
    assert (solution.dual[inactive] == 0).all()
    return solution, proved


@pytest.mark.parametrize("seed", SEEDS)
def test_duplicate_tokens_change_nothing_but_the_dual(seed: int) -> None:
    p = draw(seed)
    plain, _ = solved(p)
    twice = np.concatenate([p.tokens, p.tokens], axis=1)
    for i in range(p.n):  # the optimal token must stay unique: its copy becomes a copy of another token
        other = (p.optimal[i] + 1) % p.T
        twice[i, p.T + p.optimal[i]] = p.tokens[i, other]
    doubled, proved = solved(Problem(twice, p.queries, p.labels, p.decoder))
    np.testing.assert_allclose(doubled.weights, plain.weights, atol=1e-13 * plain.norm)
    assert not proved.independent  # the dual is not unique, M is
    assert "active" in proved.status


@pytest.mark.parametrize("seed", SEEDS)
def test_duplicate_sequences_change_nothing_but_the_dual(seed: int) -> None:
    p = draw(seed)
    plain, _ = solved(p)
    doubled, proved = solved(stack(p, p))
    np.testing.assert_allclose(doubled.weights, plain.weights, atol=1e-13 * plain.norm)
    np.testing.assert_allclose(
        doubled.dual.reshape(2, -1).sum(axis=0), plain.dual, atol=1e-11 * plain.dual.max()
    )
    assert not proved.independent


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shorter_copy_of_a_query_dominates(seed: int) -> None:
    p = draw(seed)
    plain, _ = solved(p)
    scaled, _ = solved(stack(p, with_queries(p, 2 * p.queries)))
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-13 * plain.norm)
    assert not scaled.support[p.n_constraints :].any()


@pytest.mark.parametrize("seed", SEEDS)
def test_collinear_queries_give_a_rank_one_solution(seed: int) -> None:
    p = draw(seed)
    rng = np.random.default_rng(seed)
    z = rng.integers(-3, 4, size=p.d).astype(float)
    queries = rng.integers(1, 5, size=(p.n, 1)) * z
    collinear = Problem(p.tokens, queries, np.ones(p.n), p.decoder)  # of one label, so that u z' is feasible
    solution, _ = solved(collinear)
    singular = np.linalg.svd(solution.weights, compute_uv=False)
    assert singular[1] < 1e-12 * singular[0]
    across = solution.weights - np.outer(solution.weights @ z, z) / (z @ z)
    np.testing.assert_allclose(across, 0.0, atol=1e-12 * solution.norm)


@pytest.mark.parametrize("seed", SEEDS)
def test_opposite_queries_on_the_same_tokens_clash(seed: int) -> None:
    p = draw(seed)
    with pytest.raises(InfeasibleError, match=r"\(\d+, \d+\), \(\d+, \d+\)") as caught:
        max_margin(stack(p, with_queries(p, -2 * p.queries)))
    proved = caught.value.certificate
    assert sorted(proved.weights) == [1, 2]
    (i, tau), (j, other) = proved.constraints
    assert (j, other) == (i + p.n, tau)
    assert f"({i}, {tau})" in str(caught.value)


def test_zero_query_is_infeasible_with_a_proof() -> None:
    p = draw(0)
    queries = np.array(p.queries)
    queries[3] = 0.0
    zero = with_queries(p, queries)
    with pytest.raises(InfeasibleError, match="query of sequence 3 is zero") as caught:
        max_margin(zero)
    assert checker.check(zero, json.loads(json.dumps(caught.value.certificate.to_json()))) == "infeasible"


@pytest.mark.parametrize("seed", SEEDS)
def test_more_constraints_than_dimensions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = Problem(
        rng.standard_normal((4, 40, 3)),
        np.abs(rng.standard_normal((4, 3))),
        np.ones(4),
        rng.standard_normal(3),
    )
    assert p.n_constraints > 9  # the Gram matrix has rank at most 9
    solution, proved = solved(p)
    assert 1 <= solution.support.sum() <= 9
    assert proved.full_support == "fails"


@pytest.mark.parametrize("seed", SEEDS)
def test_one_constraint(seed: int) -> None:
    p = draw(seed, n=1, T=2)
    solution, proved = solved(p)
    A = np.outer(p.differences[0], p.queries[0])
    np.testing.assert_allclose(solution.weights, A / (A**2).sum(), rtol=1e-13)
    assert (proved.independent, proved.full_support) == (True, "holds")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
def test_units_do_not_matter(scale: float, seed: int) -> None:
    p = draw(seed)
    plain = max_margin(p)
    for q in (with_queries(p, p.queries * scale), Problem(p.tokens * scale, p.queries, p.labels, p.decoder)):
        scaled, _ = solved(q)
        np.testing.assert_allclose(scaled.weights * scale, plain.weights, atol=1e-12 * plain.norm)
        np.testing.assert_array_equal(scaled.support, plain.support)
        assert scaled.residual < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("of", ["sequences", "queries", "tokens"])
def test_scales_from_1e_minus_8_to_1e8_in_one_problem(of: str, seed: int) -> None:
    p = draw(seed)
    rng = np.random.default_rng(seed)
    tokens, queries = np.array(p.tokens), np.array(p.queries)
    spread = 10.0 ** np.linspace(-8, 8, p.n)
    if of == "sequences":
        tokens *= spread[:, None, None]
    elif of == "queries":
        queries *= spread[:, None]
    else:
        tokens *= 10.0 ** rng.uniform(-8, 8, size=(p.n, p.T, 1))
    solution, _ = solved(Problem(tokens, queries, p.labels, p.decoder))
    # A float W carries the margins of the largest constraints to no better than this.
    ratio = solution.norm * solution.problem.constraint_norms.max()
    assert solution.residual <= 1e-12 + 8 * np.finfo(float).eps * ratio


@pytest.mark.parametrize("seed", range(2))
def test_thousands_of_inactive_constraints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, T, d = 20, 151, 20
    tokens = rng.standard_normal((n, T, d))
    u, y = rng.standard_normal(d), rng.choice([-1.0, 1.0], size=n)
    best = np.argmax((tokens @ u) * y[:, None], axis=1)
    tokens[np.arange(n), best] *= 20  # far ahead of all others
    p = Problem(tokens, rng.standard_normal((n, d)), y, u)
    solution = max_margin(p)
    proved = solution.certify()
    assert p.n_constraints == 3000
    assert proved.status.count("inactive") > 2800
    assert solution.residual < 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_integer_grids_with_many_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(-1, 2, size=(5, 6, 3)).astype(float)
    tokens[:, 0] = 2.0
    p = Problem(tokens, rng.integers(1, 3, size=(5, 3)).astype(float), np.ones(5), [1.0, 0.7, 0.3])
    _, proved = solved(p)
    assert proved.status.count("support") < p.n_constraints
