"""The assumption checks are rigorous: right where exact arithmetic can tell, Unknown where it cannot."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from flint import arb

from numerics import NormalizedGD, Problem, max_margin, train
from numerics.datasets import load
from theory import assumptions
from theory.assumptions import check_all, enclose, equal_scores, full_support, near_acute, separable


def small(seed: int, n: int = 3, T: int = 3, d: int = 6) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(
        rng.standard_normal((n, T, d)), None, np.where(rng.random(n) < 0.5, -1.0, 1.0), rng.standard_normal(d)
    )


def exact_gram(problem: Problem) -> list[list[Fraction]]:
    def dot(a: np.ndarray, b: list[Fraction]) -> Fraction:
        return sum((Fraction(float(x)) * y for x, y in zip(a, b, strict=True)), start=Fraction(0))

    best = problem.tokens[np.arange(problem.n), problem.optimal]
    rows = []
    for i, k in zip(problem.constraint_sequence, problem.constraint_token, strict=True):
        difference = [
            Fraction(float(a)) - Fraction(float(b))
            for a, b in zip(best[i], problem.tokens[i, k], strict=True)
        ]
        rows.append((difference, [Fraction(float(z)) for z in problem.queries[i]]))
    return [
        [
            sum(x * y for x, y in zip(a, b, strict=True)) * sum(x * y for x, y in zip(p, q, strict=True))
            for b, q in rows
        ]
        for a, p in rows
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_enclosures_hold_the_exact_values(seed: int) -> None:
    problem = small(seed)
    try:
        target = max_margin(problem)
    except ValueError:
        target = None
    balls = enclose(problem, target)
    assert balls is not None
    gram = exact_gram(problem)
    least = min(min(row) for row in gram)
    assert balls.smallest_product.contains(arb(least.numerator) / arb(least.denominator))
    square = max(gram[k][k] for k in range(len(gram)))
    assert (balls.radius**2).contains(arb(square.numerator) / arb(square.denominator))
    if target is not None:
        lo, hi = float(balls.margin.lower()), float(balls.margin.upper())
        assert lo <= target.margin * (1 + 1e-9)
        assert hi >= target.margin * (1 - 1e-9)
        assert hi - lo < 1e-4 * hi


def test_equal_scores_are_decided_exactly() -> None:
    problem = load("gaussian", seed=1)
    assert equal_scores(problem).state == "holds"
    # The smallest change of one score that a float can carry is seen.
    tokens = problem.tokens.copy()
    i, k = int(problem.constraint_sequence[0]), int(problem.constraint_token[0])
    axis = int(np.flatnonzero(problem.decoder)[0])
    tokens[i, k, axis] = np.nextafter(0.0, 1.0) * 2**60
    moved = Problem(tokens, problem.queries, problem.labels, problem.decoder)
    assert equal_scores(moved).state == "fails"


def test_digits_scores_are_unequal_and_said_to_be() -> None:
    check = equal_scores(load("digits:3v5", seed=0))
    assert check.state == "fails"
    assert "sequence" in check.detail


def test_two_token_sequences_have_equal_scores() -> None:
    assert equal_scores(small(0, T=2)).state == "holds"


@pytest.mark.parametrize("seed", range(3))
def test_the_gaussian_default_is_separable_and_near_acute(seed: int) -> None:
    problem = load("gaussian", seed=seed)
    target = max_margin(problem)
    assert separable(problem, target).state == "holds"
    assert near_acute(problem, target).state == "holds"


def test_obtuse_constraints_fail_near_acuteness_and_are_named() -> None:
    # Two sequences whose constraints have Gram entry -0.9 and norm 1: g*^2 = (1 - 0.9)/2.
    a, b = np.array([1.0, 0.0]), np.array([-0.9, np.sqrt(1 - 0.81)])
    tokens = np.zeros((2, 2, 4))
    tokens[0, 1, :2], tokens[1, 1, :2] = a, b
    tokens[:, 1, 2], tokens[:, 0, 3] = 1e-3, 1e-3
    queries = np.array([[0.0, 0.0, 0.0, 1.0]] * 2)
    problem = Problem(tokens, queries, np.ones(2), np.array([0.0, 0.0, 1.0, 0.0]))
    target = max_margin(problem)
    check = near_acute(problem, target)
    assert check.state == "fails"
    assert "(sequence, token) (0, 0) and (1, 0)" in check.detail


def test_an_inactive_constraint_fails_full_support() -> None:
    tokens = np.zeros((1, 3, 3))
    tokens[0, 0] = [1.0, 0.0, 0.0]
    tokens[0, 2] = [-3.0, 0.1, 0.0]
    problem = Problem(tokens, np.array([[0.0, 0.0, 1.0]]), np.ones(1), np.array([1.0, 0.0, 0.0]))
    assert full_support(problem, max_margin(problem)).state == "fails"


def test_active_without_a_multiplier_is_not_full_support() -> None:
    # M = (1, 0) for the constraints (1, 0) and (1, 1): both active, the second with multiplier 0.
    tokens = np.array([[[2.0, 2.0, 0.0], [1.0, 2.0, 0.0], [1.0, 1.0, 0.0]]])
    problem = Problem(tokens, np.array([[0.0, 0.0, 1.0]]), np.ones(1), np.array([1.0, 1.0, 0.0]))
    target = max_margin(problem)
    assert target.margins == pytest.approx([1, 1])
    assert full_support(problem, target).state == "fails"


def test_a_dependent_active_constraint_can_share_the_multipliers() -> None:
    # (1, 1) is the mean of (2, 0) and (0, 2): all three are active, and all multipliers can be positive.
    tokens = np.array([[[2.0, 2.0, 0.0], [0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [1.0, 1.0, 0.0]]])
    problem = Problem(tokens, np.array([[0.0, 0.0, 1.0]]), np.ones(1), np.array([1.0, 1.0, 0.0]))
    assert full_support(problem, max_margin(problem)).state == "holds"


@pytest.mark.parametrize("answer", ["holds", "fails", "unknown"])
def test_full_support_repeats_what_the_certificate_says(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load("gaussian", seed=0)
    target = max_margin(problem)
    monkeypatch.setattr(type(target), "certify", lambda self: SimpleNamespace(full_support=answer))
    assert full_support(problem, target).state == answer


def test_without_a_solution_nothing_is_claimed() -> None:
    problem = small(0)
    assert separable(problem, None).state != "holds"
    assert near_acute(problem, None).state != "holds"
    assert full_support(problem, None).state != "holds"


def test_a_wrong_solution_is_not_believed() -> None:
    problem = load("gaussian", seed=0)
    target = max_margin(problem)
    from dataclasses import replace

    wrong = replace(target, dual=-np.asarray(target.dual))
    assert separable(problem, wrong).state == "unknown"


def test_too_large_a_problem_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load("gaussian", seed=7)
    monkeypatch.setattr(assumptions, "WORK_LIMIT", 10)
    assert separable(problem, max_margin(problem)).state == "unknown"


def test_conditions_of_a_run() -> None:
    problem = load("gaussian", seed=0)
    run = train(problem, NormalizedGD(0.1), steps=3, space="weight")
    states = {k: c.state for k, c in check_all(run, ("ngd", "gd", "polyak", "zero start")).items()}
    assert states == {"ngd": "holds", "gd": "fails", "polyak": "fails", "zero start": "holds"}
    decaying = train(problem, NormalizedGD(0.1, exponent=0.5), steps=3, space="weight")
    assert check_all(decaying, ("ngd",))["ngd"].state == "fails"
    moved = train(problem, NormalizedGD(0.1), steps=3, space="weight", init=np.eye(problem.d))
    assert check_all(moved, ("zero start",))["zero start"].state == "fails"
