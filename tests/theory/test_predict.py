"""Predictions are enclosures of the closed form, and trained runs tend to them."""

import numpy as np
import pytest
from flint import arb

from numerics import Problem
from numerics.errors import CertificationError, InputError
from numerics.steps import GradientDescent, NormalizedGD, Polyak
from numerics.training import train
from theory.predict import predict

STEPS = 1_000_000


def problem(seed: int, equal: bool = True) -> Problem:
    """A random problem with full support; non-optimal scores equal within each sequence, or not."""
    rng = np.random.default_rng(seed)
    while True:
        n, T = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        d = int(rng.integers(4 * n * T, 12 * n * T))
        tokens, queries = (
            rng.standard_normal((n, T, d)) / np.sqrt(d),
            rng.standard_normal((n, d)) / np.sqrt(d),
        )
        labels = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        g, G = rng.normal(0, 1, n), rng.exponential(1.5, n) + 0.05
        below = 0.0 if equal else rng.exponential(1, (n, T))
        tokens[:, :, 0] = labels[:, None] * (g[:, None] - below)
        tokens[:, -1, 0] = labels * (g + G)
        found = Problem(tokens, queries, labels, np.eye(d)[0])
        if np.linalg.solve(found.gram(), np.ones(found.n_constraints)).min() > 0:
            return found


def closed_form(at: Problem) -> dict[str, float]:
    """The same constants in floats."""
    K = at.gram()
    alpha = np.linalg.solve(K, np.ones(len(K)))
    best = at.scores[np.arange(at.n), at.optimal][at.constraint_sequence]
    x = np.log(at.score_gaps / (1 + np.exp(best)) / at.n / alpha)
    x -= alpha @ x / alpha.sum()
    share = np.sqrt(alpha / alpha.sum())
    across = share[:, None] * (K - 1 / alpha.sum()) * share
    margin = alpha.sum() ** -0.5
    return {
        "residual": float(np.sqrt(x @ np.linalg.solve(K, x))),
        "margin": float(margin),
        "stable_below": float(2 * margin / np.linalg.eigvalsh(across)[-1]),
        "proved_below": float(2 * margin / (np.diag(K).max() - margin**2)),
    }


@pytest.mark.parametrize("seed", range(10))
def test_the_enclosures_are_narrow_and_hold_the_closed_form(seed):
    print("seed", seed)
    at = problem(seed, equal=seed % 2 == 0)
    found = predict(at, NormalizedGD(0.5))
    for name, value in closed_form(at).items():
        ball = getattr(found, name)
        assert float(ball.mid()) == pytest.approx(value, rel=1e-9)
        assert float(ball.rad()) < 1e-9 * value
    assert found.constant.overlaps(2 * found.residual**2)
    assert found.path_constant.overlaps(found.residual**2 / 2)
    assert not found.proved_below > found.stable_below


def rules(at: Problem) -> list:
    limit = predict(at, NormalizedGD(1.0))
    proved, stable = float(limit.proved_below.mid()), float(limit.stable_below.mid())
    return [NormalizedGD(0.9 * proved), NormalizedGD(0.5 * stable), NormalizedGD(0.9 * stable), Polyak()]


SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 50))]


@pytest.mark.parametrize("seed", SEEDS)
def test_runs_tend_to_the_predicted_constant(seed):
    """Equal and unequal scores, three step sizes and Polyak; the error is of the order 1/t."""
    print("seed", seed)
    at = problem(seed, equal=seed % 2 == 0)
    for rule in rules(at):
        run = train(at, rule, steps=STEPS, record=[STEPS])
        found = predict(at, rule)
        observed = STEPS**2 * run.history["direction_gap"].iloc[-1]
        print(rule, "observed", observed, "predicted", found.constant)
        assert observed == pytest.approx(float(found.constant.mid()), rel=1e-4)
        assert run.history["residual_norm"].iloc[-1] == pytest.approx(float(found.residual.mid()), rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_limit_is_stable_exactly_below_the_stated_step(seed):
    print("seed", seed)
    at = problem(seed)
    found = predict(at, NormalizedGD(1.0))
    stable, residual = float(found.stable_below.mid()), float(found.residual.mid())
    for factor, settles in ((0.97, True), (1.03, False)):
        run = train(at, NormalizedGD(factor * stable), steps=20_000, record=[19_999, 20_000])
        last = run.history["residual_norm"].to_numpy()[-2:]
        assert np.allclose(last, residual, rtol=1e-6) == settles


def test_a_start_that_no_constraint_sees_stays_in_the_residual():
    at, rng = problem(0), np.random.default_rng(0)
    init = rng.standard_normal((at.d, at.d)) / at.d
    rule = NormalizedGD(0.3)
    run = train(at, rule, steps=50_000, init=init, record=[50_000])
    found = predict(at, rule, init)
    assert found.residual > predict(at, rule).residual
    assert run.history["residual_norm"].iloc[-1] == pytest.approx(float(found.residual.mid()), rel=1e-8)


def test_plain_gradient_descent_has_a_path_constant_only():
    found = predict(problem(0), GradientDescent(1.0))
    assert found.step is None
    assert found.constant is None
    assert found.path_constant > 0
    assert predict(problem(0), NormalizedGD(1.0, exponent=0.5)).constant is None


def test_a_cap_is_the_limit_of_polyak_steps_when_it_is_lower():
    at = problem(0)
    free = predict(at, Polyak()).step
    assert free.overlaps(1 / (2 * predict(at, Polyak()).margin))
    assert predict(at, Polyak(cap=0.01)).step == arb(0.01)


def test_an_inactive_constraint_is_named():
    rng = np.random.default_rng(1)
    tokens = rng.standard_normal((1, 3, 6))
    tokens[0, :, 0] = [1.0, 0.0, 0.0]
    tokens[0, 2] = tokens[0, 0] + 9 * (tokens[0, 1] - tokens[0, 0])
    tokens[0, 2, 0] = 0.0
    at = Problem(tokens, rng.standard_normal((1, 6)), np.ones(1), np.eye(6)[0])
    with pytest.raises(InputError, match="token 2"):
        predict(at, Polyak())


def test_dependent_constraints_are_refused():
    rng = np.random.default_rng(2)
    tokens = rng.standard_normal((1, 3, 6))
    tokens[0, :, 0] = [1.0, 0.0, 0.0]
    tokens[0, 2] = tokens[0, 1]
    at = Problem(tokens, rng.standard_normal((1, 6)), np.ones(1), np.eye(6)[0])
    with pytest.raises(CertificationError, match="dependent"):
        predict(at, Polyak())


def test_one_constraint_has_no_residual():
    rng = np.random.default_rng(3)
    tokens = rng.standard_normal((1, 2, 4))
    tokens[0, :, 0] = [1.0, 0.0]
    found = predict(Problem(tokens, rng.standard_normal((1, 4)), np.ones(1), np.eye(4)[0]), NormalizedGD(1.0))
    assert found.residual.abs_upper() < 1e-12
    assert found.constant.abs_upper() < 1e-24
    assert found.stable_below > 1e300
