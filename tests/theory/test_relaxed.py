"""What stands in for equal scores on a run, against the coefficients of the gradient itself."""

import numpy as np
import pytest

from numerics import NormalizedGD, max_margin, train
from numerics.datasets import load
from numerics.datasets.gaussian import gaussian
from numerics.problem import Problem
from theory import assumptions
from theory.relaxed import attention_room, relaxed, shift_gap


def layer(problem, W):
    """p_i, and every coefficient c_k of -grad L, from the general formula."""
    logits = np.einsum("ntd,de,ne->nt", problem.tokens, W, problem.queries)
    logits = np.where(problem.mask, logits, -np.inf)
    phi = np.exp(logits - logits.max(axis=1, keepdims=True))
    phi /= phi.sum(axis=1, keepdims=True)
    scores = np.where(problem.mask, problem.scores, 0.0)
    mean = (phi * scores).sum(axis=1)
    i, tau = problem.constraint_sequence, problem.constraint_token
    pull = phi[i, tau] * (mean[i] - scores[i, tau]) / (1 + np.exp(mean[i])) / problem.n
    return phi[np.arange(problem.n), problem.optimal], pull


@pytest.fixture(scope="module")
def digits():
    problem = load("digits:3v5", seed=0, n=8)
    return train(problem, NormalizedGD(step=0.1), steps=400, record="all")


def test_digits_meet_the_conditions_from_a_step_on(digits):
    found = relaxed(digits)
    assert assumptions.equal_scores(digits.problem).state == "fails"
    steps = {name: found[name].from_step for name in ("chosen", "pull", "threshold")}
    assert 0 < steps["chosen"] <= steps["pull"] <= steps["threshold"] < 400
    assert "identity" not in found, "digits have no full support"


def test_the_steps_are_those_of_the_gradient_itself(digits):
    problem, found = digits.problem, relaxed(digits)

    def at(step):
        return layer(problem, train(problem, NormalizedGD(step=0.1), steps=step, record=[0]).weights)

    gaps, spread = problem.score_gaps, []
    for i in range(problem.n):
        own = gaps[problem.constraint_sequence == i]
        spread.append((own.max() - own.min()) / own.max())  # beta/(G + beta)
    spread = np.array(spread)
    first = found["pull"].from_step
    p, pull = at(first)
    assert (p > spread).all()
    assert (pull > 0).all()
    # what is recorded is the least p_i, so the step is where that passes the largest of the thresholds
    assert p.min() > spread.max()
    assert at(first - 1)[0].min() <= spread.max()
    for step in (first + 50, 400):
        assert (at(step)[1] > 0).all()
    p, _ = at(found["chosen"].from_step - 1)
    assert digits.recorded["min_logit_gap"][found["chosen"].from_step - 1] <= 0
    last = digits.recorded["min_logit_gap"][found["threshold"].from_step :]
    leak = (problem.T - 1) * np.exp(-last)
    assert (2 * gaps.max() * leak <= gaps.min() * (1 + 1e-12)).all()


def test_not_every_constraint_pulls_before(digits):
    """Otherwise the condition would be idle: at W = 0 some constraints of digits pull the wrong way."""
    assert (layer(digits.problem, np.zeros((digits.problem.d,) * 2))[1] < 0).any()


@pytest.mark.parametrize("seed", range(4))
def test_the_threshold_is_sharp(seed):
    """At p_i = beta/(G + beta) with all else on the worst token, the next best one's pull is zero."""
    rng = np.random.default_rng(seed)
    print("seed", seed)
    gap, spread = rng.uniform(0.1, 2, 2)
    tokens = np.array([[[gap, 1.0, 0], [0, 0, 1.0], [-spread, 0, 0]]])
    problem = Problem(tokens, np.array([[0.0, 1, 1]]), [1], [1.0, 0, 0])
    assert attention_room(problem) == pytest.approx(np.log(gap / (gap + spread)))
    assert shift_gap(problem) == pytest.approx(np.log(4 * (gap + spread) / gap))
    p = spread / (gap + spread)
    mean = p * gap + (1 - p) * -spread
    assert mean == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_under_full_support_the_gradient_sees_the_solution(seed):
    """Whatever the scores and the weights."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    problem = gaussian(seed=seed, n=3, T=4, d=60, noise=0.3, orthogonal=False)
    target = max_margin(problem)
    run = train(problem, NormalizedGD(step=0.1), steps=5, target=target)
    assert relaxed(run)["identity"].from_step == 0
    for size in (0.0, 1.0, 10.0):
        _, pull = layer(problem, size * rng.standard_normal((60, 60)))
        assert pull @ problem.logit_gaps(target.weights) > 0


def test_equal_scores_meet_all_of_it_at_once():
    run = train(gaussian(n=3, T=3, d=40), NormalizedGD(step=0.1), steps=3)
    assert relaxed(run)["pull"].from_step == 0
    assert relaxed(run)["chosen"].from_step == 1, "at W = 0 all logits are equal"
    assert relaxed(run)["threshold"].from_step is None
