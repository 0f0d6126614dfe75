"""The pairs that break (N), against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from numerics import InfeasibleError, max_margin
from numerics.datasets.gaussian import gaussian
from numerics.problem import Problem
from theory import assumptions
from theory.obtuse import breaking_pairs


def exact_gram(problem):
    """<A_k, A_l> as fractions, from the tokens themselves."""

    def dot(a, b):
        return sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)), Fraction(0))

    rows = []
    for i, tau in zip(problem.constraint_sequence, problem.constraint_token, strict=True):
        best, other = problem.tokens[i, problem.optimal[i]], problem.tokens[i, tau]
        rows.append([Fraction(float(a)) - Fraction(float(b)) for a, b in zip(best, other, strict=True)])
    z = [[Fraction(float(x)) for x in row] for row in problem.queries]
    where = problem.constraint_sequence
    inner = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows]
    return [[inner[k][m] * dot(z[where[k]], z[where[m]]) for m in range(len(rows))] for k in range(len(rows))]


@pytest.mark.parametrize("seed", range(6))
def test_the_pairs_are_those_of_exact_arithmetic(seed):
    print("seed", seed)
    problem = gaussian(seed=seed, n=4, T=3, d=6 + 4 * seed, noise=0.4)
    target = max_margin(problem)
    found = breaking_pairs(problem, target)
    gram = exact_gram(problem)
    level = -1 / target.norm**2
    names = list(zip(problem.constraint_sequence.tolist(), problem.constraint_token.tolist(), strict=True))
    expected = {
        (names[k], names[m]): gram[k][m]
        for k in range(len(names))
        for m in range(k, len(names))
        if gram[k][m] <= level
    }
    assert {(pair.first, pair.second) for pair in found} == set(expected)
    for pair in found:
        low, high = pair.product
        assert Fraction(low) <= expected[pair.first, pair.second] <= Fraction(high)
        assert high - low < 1e-10
        assert pair.certain
    assert [pair.product for pair in found] == sorted(pair.product for pair in found)
    state = assumptions.near_acute(problem, target)
    assert state.state == ("fails" if found else "holds")
    if found:
        assert f"({found[0].first[0]}, {found[0].first[1]})" in state.detail
        assert f"({found[0].second[0]}, {found[0].second[1]})" in state.detail


def test_both_outcomes_occur_above():
    outcomes = []
    for seed in range(6):
        problem = gaussian(seed=seed, n=4, T=3, d=6 + 4 * seed, noise=0.4)
        outcomes.append(bool(breaking_pairs(problem, max_margin(problem))))
    assert set(outcomes) == {True, False}


def test_rounding_errors_stay_within_the_bound():
    """Also with large common parts, where the differences lose digits, and tiny entries."""
    rng = np.random.default_rng(0)
    print("seed", 0)
    from theory.obtuse import _rounding

    for scale in (1.0, 1e-150, 1e6):
        tokens = rng.standard_normal((3, 3, 5)) * scale + rng.choice([0.0, 1e3], 5) * scale
        problem = Problem(tokens, rng.standard_normal((3, 5)), [1, -1, 1], rng.standard_normal(5))
        exact, error = exact_gram(problem), _rounding(problem)
        for k, row in enumerate(problem.gram()):
            for m, value in enumerate(row):
                assert abs(Fraction(float(value)) - exact[k][m]) <= Fraction(float(error[k, m]))


def test_unknown_without_a_margin():
    tokens = np.array([[[0.0, 1, 0], [0, 0, 1]], [[0, 0, 1], [0, 1, 0]]])
    problem = Problem(tokens, np.ones((2, 3)), [1, -1], [0, 1, -1])
    with pytest.raises(InfeasibleError):
        max_margin(problem)
    assert breaking_pairs(problem, None) is None


def test_a_pair_at_the_edge_is_listed_and_not_called_certain():
    """Differences (1, 1, 1) and (1, -1, -1): their product is -1 and g*^2 = 1, so (N) just fails."""
    tokens = np.array([[[1.0, 0, 0], [0, -1, -1], [0, 1, 1]]])
    problem = Problem(tokens, np.array([[1.0, 0, 0]]), [1], [1.0, 0, 0])
    target = max_margin(problem)
    (pair,) = breaking_pairs(problem, target)
    assert (pair.first, pair.second) == ((0, 1), (0, 2))
    assert pair.product[0] <= -1 <= pair.product[1]
    assert not pair.certain
    assert assumptions.near_acute(problem, target).state != "holds"
