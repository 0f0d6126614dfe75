"""The cancellation-free layer against autograd where floats suffice and mpmath where they do not."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from numerics import Problem, max_margin
from numerics.attention import Scores, Slots, gradient_direction, landscape, read
from numerics.datasets import load
from tests.numerics.oracles import Exact, autograd_gradient, autograd_loss, random_problem, relative_error

SEEDS = range(6)


def _at_gap(problem: Problem, gap: float, seed: int) -> np.ndarray:
    """A W whose smallest logit gap is `gap`: along the max-margin direction plus a perturbation."""
    rng = np.random.default_rng(1000 + seed)
    bend = problem.combine(rng.standard_normal(problem.n_constraints))
    W = max_margin(problem).weights
    W = W + 0.1 * np.linalg.norm(W) * bend / np.linalg.norm(bend)
    lowest = problem.logit_gaps(W).min()
    assert lowest > 0
    return W * gap / lowest


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ragged", [False, True])
def test_gradient_is_autograds_with_unequal_scores_and_masks(seed: int, ragged: bool) -> None:
    print("seed", seed)
    problem = random_problem(seed, ragged=ragged)
    W = np.random.default_rng(seed).standard_normal((problem.d, problem.d))
    direction, log_norm = gradient_direction(problem, W)
    expected = -autograd_gradient(problem, W)
    observed = direction * np.exp(log_norm)
    assert np.linalg.norm(observed - expected) <= 1e-12 * np.linalg.norm(expected)
    view = landscape(problem, W)
    assert np.any(view.signs < 0), "the seeds are chosen so that coefficients of both signs are tried"
    assert view.loss == pytest.approx(float(autograd_loss(problem, torch.tensor(W))), rel=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_keeps_its_digits_where_autograd_loses_them(seed: int) -> None:
    print("seed", seed)
    problem = load("gaussian:n=4,T=4,d=12", seed)
    W = _at_gap(problem, 60.0, seed)
    exact, norm = Exact(problem, W).direction()
    direction, log_norm = gradient_direction(problem, W)
    assert relative_error(direction, exact) < 1e-12
    assert log_norm == pytest.approx(float(mpmath.log(norm)), rel=1e-13)
    textbook = -autograd_gradient(problem, W)
    size = np.linalg.norm(textbook)
    assert size == 0 or relative_error(textbook / size, exact) > 1e-12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gap", [1.0, 60.0, 800.0])
def test_gradient_with_unequal_scores_and_masks_against_mpmath(seed: int, gap: float) -> None:
    print("seed", seed)
    problem = random_problem(seed, n=2, T=4, d=10)
    W = _at_gap(problem, gap, seed)
    exact, norm = Exact(problem, W).direction()
    direction, log_norm = gradient_direction(problem, W)
    assert relative_error(direction, exact) < 1e-12 * max(
        1.0, gap / 60
    )  # logits themselves round at gap * eps
    assert log_norm == pytest.approx(float(mpmath.log(norm)), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [-300.0, -30.0, 0.01, 1.0, 40.0, 300.0])
def test_excess_loss_is_the_difference_of_the_losses(seed: int, scale: float) -> None:
    print("seed", seed)
    problem = random_problem(seed, n=3, T=4, d=10)
    W = _at_gap(problem, 1.0, seed) * scale
    exact = Exact(problem, W, digits=50 + int(10 * abs(scale)))
    expected = float(mpmath.log(exact.excess))
    assert float(exact.log_excess) == pytest.approx(expected, rel=1e-14, abs=1e-15)
    assert landscape(problem, W).log_excess_loss == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [-1e4, 0.01, 40.0, 1e3, 1e6])
def test_excess_loss_and_attention_gap_at_any_scale(seed: int, scale: float) -> None:
    print("seed", seed)
    problem = random_problem(seed, n=3, T=4, d=10)
    W = _at_gap(problem, 1.0, seed) * scale
    exact = Exact(problem, W)
    view = landscape(problem, W)
    assert view.log_excess_loss == pytest.approx(float(exact.log_excess), rel=1e-10, abs=1e-13)
    for observed, expected in zip(view.log_leak, exact.log_leak, strict=True):
        assert observed == pytest.approx(float(expected), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("seed", range(3))
def test_coefficients_survive_attention_on_a_wrong_token(seed: int) -> None:
    """Far on the wrong side p_i underflows; each coefficient still has its digits, in logarithms."""
    print("seed", seed)
    problem = load("gaussian:n=3,T=4,d=10", seed)
    W = _at_gap(problem, 1.0, seed) * -900.0
    exact = Exact(problem, W)
    view = landscape(problem, W)
    for observed, sign, expected in zip(view.log_coefficients, view.signs, exact.coefficients, strict=True):
        assert sign == mpmath.sign(expected) == 1
        assert observed == pytest.approx(float(mpmath.log(expected)), rel=1e-12)
    assert view.log_coefficients.max() < -745, "the textbook form gives zero here"


def test_a_common_shift_changes_nothing_but_the_scale() -> None:
    problem = random_problem(3, ragged=False)
    mu = np.random.default_rng(0).uniform(0.5, 9.0, problem.n_constraints)
    slots = Slots.of(problem)
    scores = Scores.of(*slots.scores(problem))
    plain = read(torch.from_numpy(slots.pad(mu)), scores)
    shifted = read(
        torch.from_numpy(slots.pad(mu - 2.5)), scores, shift=torch.tensor(2.5, dtype=torch.float64)
    )
    torch.testing.assert_close(shifted.log_coefficient - 2.5, plain.log_coefficient, rtol=1e-13, atol=0)
    torch.testing.assert_close(shifted.log_excess, plain.log_excess, rtol=1e-13, atol=0)
    torch.testing.assert_close(shifted.log_leak, plain.log_leak, rtol=1e-13, atol=0)


def test_single_token_sequences_have_full_attention_and_no_say() -> None:
    tokens = np.random.default_rng(1).standard_normal((2, 3, 4))
    mask = np.array([[True, True, True], [True, False, False]])
    problem = Problem(tokens, None, [1, -1], [1.0, 0.5, -1.0, 0.25], mask)
    view = landscape(problem, np.eye(4))
    assert view.log_leak[1] == -np.inf
    expected = -autograd_gradient(problem, np.eye(4))
    direction, log_norm = gradient_direction(problem, np.eye(4))
    np.testing.assert_allclose(direction * np.exp(log_norm), expected, rtol=1e-12, atol=1e-15)
