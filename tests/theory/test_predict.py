"""Predictions are enclosures of the closed form, and trained runs tend to them."""

import numpy as np
import pytest
from flint import arb

from numerics import Problem
from numerics.datasets import load
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


def test_an_inactive_constraint_leaves_the_limit_to_the_run():
    rng = np.random.default_rng(1)
    tokens = rng.standard_normal((1, 3, 6))
    tokens[0, :, 0] = [1.0, 0.0, 0.0]
    tokens[0, 2] = tokens[0, 0] + 9 * (tokens[0, 1] - tokens[0, 0])
    tokens[0, 2, 0] = 0.0
    at = Problem(tokens, rng.standard_normal((1, 6)), np.ones(1), np.eye(6)[0])
    found = predict(at, Polyak())
    assert found.support.tolist() == [True, False]
    assert found.gap > 1
    assert found.residual is None
    assert found.constant is None
    assert found.stable_below > 1e300  # M alone spans the support


def test_a_constraint_of_margin_1_without_a_multiplier_is_named():
    """A_2 = A_1 + (something orthogonal to M): its margin is 1 and its multiplier 0."""
    tokens = np.zeros((1, 3, 3))
    tokens[0, 0, 0], tokens[0, 2, 1] = 1.0, 1.0
    at = Problem(tokens, np.eye(3)[:1], np.ones(1), np.eye(3)[0])
    with pytest.raises(InputError, match="token 2 has margin 1 and multiplier 0"):
        predict(at, Polyak())


def test_dependent_constraints_that_nothing_balances_are_refused():
    """A repeated token and one of margin 1 that cannot pull: multipliers are not unique, none is positive."""
    tokens = np.zeros((1, 4, 3))
    tokens[0, 0, 0], tokens[0, 3, 1] = 1.0, -1.0
    at = Problem(tokens, np.eye(3)[:1], np.ones(1), np.eye(3)[0])
    with pytest.raises(CertificationError, match="nothing balances"):
        predict(at, Polyak())


def dependent(seed: int) -> Problem:
    """A repeated token, and one on the segment between two others: five directions for seven constraints."""
    rng = np.random.default_rng(seed)
    while True:
        tokens = np.round(rng.standard_normal((3, 4, 30)) * 2**10) / 2**12
        queries = rng.standard_normal((3, 30)) / np.sqrt(30)
        tokens[0, 2] = tokens[0, 1]
        tokens[1, 2] = (tokens[1, 0] + tokens[1, 1]) / 2
        tokens[:, :, 0], tokens[:, 3, 0] = 0, rng.exponential(1, 3) + 0.5
        at = Problem(tokens, queries, np.ones(3), np.eye(30)[0])
        found = predict(at, NormalizedGD(1.0))
        if found.support.all():
            return at


@pytest.mark.parametrize("seed", range(3))
def test_dependent_constraints_are_predicted_and_observed(seed):
    print("seed", seed)
    at = dependent(seed)
    assert np.linalg.matrix_rank(at.gram()) < at.n_constraints
    rule = NormalizedGD(0.7 * float(predict(at, NormalizedGD(1.0)).stable_below.mid()))
    found = predict(at, rule)
    assert found.residual.rad() < 1e-12
    run = train(at, rule, steps=STEPS, record=[STEPS])
    observed = STEPS**2 * run.history["direction_gap"].iloc[-1]
    print("observed", observed, "predicted", found.constant)
    assert observed == pytest.approx(float(found.constant.mid()), rel=1e-4)
    assert run.history["residual_norm"].iloc[-1] == pytest.approx(float(found.residual.mid()), rel=1e-8)


def test_the_balanced_point_of_a_repeated_token_is_that_of_the_sum_of_their_weights():
    """The enclosure of Krawczyk's method against the closed form of the merged problem."""
    at = dependent(1)
    found = predict(at, NormalizedGD(1.0))
    K, scores = at.gram(), at.scores[np.arange(at.n), at.optimal][at.constraint_sequence]
    w = at.score_gaps / (1 + np.exp(scores)) / at.n
    x = np.zeros(at.n_constraints)
    for _ in range(200):  # Newton's method in floats on the strictly convex function, in the values <A_k, z>
        alpha = w * np.exp(-K @ x)
        x += np.linalg.lstsq(K @ (alpha[:, None] * K), K @ alpha - 1, rcond=None)[0]
    z = x - (x.sum() * float(found.margin.mid()) ** 2) * np.linalg.lstsq(K, np.ones(len(K)), rcond=None)[0]
    assert np.sqrt(z @ K @ z) == pytest.approx(float(found.balanced.mid()), rel=1e-7)


@pytest.mark.parametrize(("spec", "seed"), [("digits:3v5,n=8", 1), ("gaussian:n=5,T=4,d=6", 1)])
def test_without_full_support_the_constant_follows_from_the_run_s_own_limit(spec, seed):
    """Digits, and Gaussian data in few dimensions: the support's part is predicted, the rest observed."""
    at = load(spec, seed)
    before = predict(at, NormalizedGD(1.0))
    assert not before.support.all()
    rule = NormalizedGD(0.7 * float(before.stable_below.mid()))
    run = train(at, rule, steps=STEPS, record=[STEPS])
    found = predict(at, rule, late=run.weights)
    observed = STEPS**2 * run.history["direction_gap"].iloc[-1]
    print("observed", observed, "predicted", found.constant)
    assert observed == pytest.approx(float(found.constant.mid()), rel=1e-4)
    # The part in the span of the support is the predicted one, and it is not all.
    inside = at.combine(_coordinates(at, found.support, run.weights))
    weights = run.target.weights
    inside = inside - (inside * weights).sum() / (weights * weights).sum() * weights
    assert np.linalg.norm(inside) == pytest.approx(float(found.balanced.mid()), rel=1e-4)
    assert found.residual > 1.05 * found.balanced


def _coordinates(at: Problem, support: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Of the projection of W to the span of the support."""
    out = np.zeros(at.n_constraints)
    K = at.gram()[np.ix_(support, support)]
    out[support] = np.linalg.solve(K, at.logit_gaps(W)[support])
    return out


@pytest.mark.parametrize("seed", range(6))
def test_the_spectral_constants_are_the_eigenvalues(seed):
    print("seed", seed)
    at = problem(seed, equal=False)
    found = predict(at, NormalizedGD(1.0))
    K = at.gram()
    alpha = np.linalg.solve(K, np.ones(len(K)))
    share = np.sqrt(alpha / alpha.sum())
    values = np.linalg.eigvalsh(share[:, None] * (K - 1 / alpha.sum()) * share)
    assert float(found.least_variance.mid()) == pytest.approx(values[1], rel=1e-6)
    assert float(found.greatest_variance.mid()) == pytest.approx(values[-1], rel=1e-6)
    assert float(found.least_weight.mid()) == pytest.approx(alpha.min() / alpha.sum(), rel=1e-9)


def test_one_constraint_has_no_residual():
    rng = np.random.default_rng(3)
    tokens = rng.standard_normal((1, 2, 4))
    tokens[0, :, 0] = [1.0, 0.0]
    found = predict(Problem(tokens, rng.standard_normal((1, 4)), np.ones(1), np.eye(4)[0]), NormalizedGD(1.0))
    assert found.residual.abs_upper() < 1e-12
    assert found.constant.abs_upper() < 1e-24
    assert found.stable_below > 1e300
