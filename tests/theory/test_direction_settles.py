"""When the direction settles, and what it means for gradient descent: proved, not provable when stronger."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import lambertw

from tests.theory.instances import Instance, cosine, instance
from theory.lemmas import gradient_size
from theory.notation import Lam, R, margin
from theory.page import ProofError, without
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, log
from theory.theorems import direction_settles as page
from theory.theorems import gradient_descent_global as slower

PAGES = (*page.PAGES, *slower.PAGES)


@pytest.mark.parametrize("theorem", PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


@pytest.mark.parametrize("factor", [0, Fraction(1, 2)], ids=["nothing", "half"])
def test_a_cheaper_step_is_not_provable(monkeypatch, factor):
    low, high = page.COST_CLAIM[1:]
    monkeypatch.setattr(page, "COST_CLAIM", low <= factor * high)
    with pytest.raises(KernelError):
        page.prove_cost()


def test_a_step_costs_more_than_the_secant(monkeypatch):
    v, step, most, c = page.v, page.step, page.most, page.c
    monkeypatch.setattr(page, "COST_CLAIM", step**2 / v <= most / c * (log(v + c * step) - log(v)))
    with pytest.raises(KernelError):
        page.prove_cost()


def test_the_quotient_does_not_fall_faster(monkeypatch):
    d, u, x = page.d, page.u, page.x
    monkeypatch.setattr(page, "FALLS_CLAIM", log(1 + u / d) / u**2 <= log(1 + x / d) / x**2 / 2)
    with pytest.raises(KernelError):
        page.prove_falls()


@pytest.mark.parametrize(
    "weight",
    [Lam / margin, page.e_max * R * page.SPREAD / (2 * margin), Lam / margin + page.e_max * R / (2 * margin)],
    ids=["no curvature", "no constant", "no spread"],
)
def test_a_smaller_weight_is_not_provable(monkeypatch, weight):
    monkeypatch.setattr(page, "WEIGHT", weight)
    with pytest.raises(KernelError):
        page.prove_direction()


def test_a_shorter_path_does_not_settle_the_direction(monkeypatch):
    low, high = page.SETTLED[1:]
    monkeypatch.setattr(page, "SETTLED", low <= 2 * high)
    with pytest.raises(KernelError):
        page.prove_settles()


def test_a_smaller_cap_does_not_bound_the_gradient(monkeypatch):
    cap = gradient_size.gradient_cap
    monkeypatch.setattr(gradient_size, "gradient_cap", lambda: cap() / 2)
    with pytest.raises(KernelError):
        gradient_size.prove_bounded()


def test_fewer_hypotheses_are_refused():
    fewer = without(slower.UPPER.hypotheses, "the path is long enough")
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(slower.UPPER, key="fewer", hypotheses=fewer).proved()


# --- random runs -------------------------------------------------------------------------------------------


def _near_acute(at: Instance) -> bool:
    return -float(at.problem.gram().min()) < 0.99 * at.margin**2


NEAR_ACUTE = [seed for seed in range(60) if _near_acute(instance(seed))]


def _constant(at: Instance) -> float:
    slopes = at.slopes(np.zeros(at.problem.n)).max() / at.slopes(np.ones(at.problem.n)).min()
    argument = (len(at.problem.differences) - 1) * slopes * at.problem.T**2 / np.e
    return float(lambertw(argument).real)


def _settling(at: Instance, path: float, first: float, largest: float) -> float:
    g, constant = at.margin, _constant(at)
    weight = constant / g + largest * at.R * (1 + largest / first) / (2 * g)
    return (first + weight * np.log1p(g**2 * path / (g**2 * first + at.R * constant))) * at.R / (g * path)


def test_some_instances_are_near_acute():
    assert len(NEAR_ACUTE) >= 10


@pytest.mark.parametrize("seed", NEAR_ACUTE[:20])
def test_the_path_length_bounds_the_direction(seed):
    print("seed", seed)
    at, rng = instance(seed), np.random.default_rng(seed)
    steps = 10 ** rng.uniform(-2, 0.5, 200) / at.R
    W, path = np.zeros_like(at.M), 0.0
    for length in steps:
        W = W + length * at.direction(W)
        path += length
        assert 1 - cosine(at, W) <= _settling(at, path, steps[0], steps.max()) + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_gradient_descent_is_slow_once_settled(seed):
    """One constraint: with more, the path length that the theorem asks for takes exponentially many steps."""
    print("seed", seed)
    at, theta = instance(seed, (1, 2)), 0.05
    g, slope = at.margin, at.slopes(np.zeros(1)).max()
    step = 0.1 / (at.R**2 * slope)
    largest = step * at.R * slope / 4
    W, path = np.zeros_like(at.M), [0.0]
    states, lengths = [W], []
    for _ in range(2000):
        D = at.descent(W)
        lengths.append(step * float(np.linalg.norm(D)))
        W = W + step * D
        path.append(path[-1] + lengths[-1])
        states.append(W)
    assert max(lengths) <= largest * (1 + 1e-9)
    limit = (1 - theta) ** 2 * g**2 / (2 * at.R**2)
    settled = [_settling(at, E, lengths[0], largest) <= limit for E in path[1:]]
    assert any(settled), "the hypothesis is met"
    start = 1 + settled.index(True)
    rate, component = theta * g**2 / at.R, float(np.sum(states[start] * at.M))
    x = theta * g**2 * step * slope * np.exp(-theta * g**2 * component)
    later = np.arange(len(path) - start)
    assert np.all(np.array(path[start:]) <= path[start] + np.log1p(np.expm1(x) * later) / rate + 1e-9)
