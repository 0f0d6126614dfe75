"""Gradient descent's path length: both sides proved, not provable when strengthened, true on random runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.theory.instances import Instance, cosine, instance, weights
from theory.lemmas import gradient_size as size_page
from theory.notation import R, T, a_max, a_min, eta, margin, path_length, t
from theory.page import ProofError, without
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, as_real, exp, inner, log
from theory.theorems import gradient_descent as lower
from theory.theorems import gradient_descent_upper as upper
from theory.theorems import sparsification

PAGES = (*size_page.PAGES, *lower.PAGES, *upper.PAGES)


@pytest.mark.parametrize("theorem", PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


# --- strengthened ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stronger",
    [
        lambda now: margin * a_min * exp(-lower.nt.lam(now)) / T,
        lambda now: margin * a_min * exp(-lower.nt.lam(now) / 2) / T**2,
        lambda now: 2 * margin * a_min * exp(-lower.nt.lam(now)) / T**2,
        lambda now: margin * a_max * exp(-lower.nt.lam(now)) / T**2,
    ],
    ids=["T for T^2", "half the exponent", "twice", "a_max"],
)
def test_a_larger_gradient_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(size_page, "gradient_least", stronger)
    with pytest.raises(KernelError):
        size_page.prove_lower()


@pytest.mark.parametrize(
    "stronger",
    [
        lambda gap: R * size_page.N * a_max * exp(-2 * gap),
        lambda gap: R * (size_page.N - 1) * a_max * exp(-gap),
        lambda gap: R / 2 * size_page.N * a_max * exp(-gap),
        lambda gap: R * size_page.N * a_min * exp(-gap),
    ],
    ids=["twice the exponent", "N - 1", "R/2", "a_min"],
)
def test_a_smaller_gradient_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(size_page, "gradient_greatest", stronger)
    with pytest.raises(KernelError):
        size_page.prove_upper()


@pytest.mark.parametrize(
    "factor", [2, T, 1 / margin, exp(lower.nt.lam(lower.layer(lower.t0)))], ids=["2", "T", "1/g*", "no start"]
)
def test_a_faster_growth_is_not_provable(monkeypatch, factor):
    monkeypatch.setattr(lower, "GROWTH", factor * lower.GROWTH)
    with pytest.raises(KernelError):
        lower.prove_lower()


@pytest.mark.parametrize(
    "stronger",
    [
        log(1 + lower.GROWTH_FROM_ZERO * as_real(t + 1)) / margin,
        2 * log(1 + lower.GROWTH_FROM_ZERO * as_real(t)) / margin,
        lower.GROWTH_FROM_ZERO * as_real(t) / margin,
    ],
    ids=["a step more", "twice", "no log"],
)
def test_a_longer_path_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(lower, "LOWER_BOUND", stronger)
    with pytest.raises(KernelError):
        lower.prove_lower_from_zero()


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("FIRST_STEP", Fraction(1, 2)),
        ("FIRST_STEP", exp(-inner(upper.layer(upper.t1).W, upper.M))),
        ("LOGIT_RATE", 2),
        ("LOGIT_RATE", 1 / margin),
    ],
    ids=["half the first step", "a larger start", "twice the rate", "g* for g*^2"],
)
def test_a_slower_growth_is_not_provable(monkeypatch, name, factor):
    monkeypatch.setattr(upper, name, factor * getattr(upper, name))
    with pytest.raises(KernelError):
        upper.prove_exponential()


def test_fewer_steps_are_not_provable(monkeypatch):
    monkeypatch.setattr(upper, "grown_at_most", lambda t: 1 + (exp(upper.FIRST_STEP) - 1) * as_real(t) / 2)
    with pytest.raises(KernelError):
        upper.prove_exponential()


@pytest.mark.parametrize("power", [1, 0], ids=["1 - theta", "1"])
def test_a_looser_direction_does_not_separate(monkeypatch, power):
    theta = sparsification.theta
    monkeypatch.setattr(
        sparsification,
        "settled",
        lambda now: 1 - lower.nt.cosine(now) <= (1 - theta) ** power * margin**2 / (2 * R**2),
    )
    with pytest.raises(KernelError):
        sparsification.prove_separated()


def test_another_claim_or_fewer_hypotheses_are_refused():
    linear = lower.nt.always(lower.LOWER_BOUND + eta * as_real(t) <= path_length(t))
    with pytest.raises(ProofError, match="the page says"):
        dataclasses.replace(lower.LOWER_FROM_ZERO, key="changed", claim=linear).proved()
    fewer = without(upper.UPPER.hypotheses, "theta > 0")
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(upper.UPPER, key="fewer", hypotheses=fewer).proved()


# --- random runs -------------------------------------------------------------------------------------------


def _run(at: Instance, W: np.ndarray, step: float, steps: int) -> tuple[list[np.ndarray], np.ndarray]:
    visited, path = [W], [0.0]
    for _ in range(steps):
        D = at.descent(W)
        W = W + step * D
        visited.append(W)
        path.append(path[-1] + step * float(np.linalg.norm(D)))
    return visited, np.array(path)


def _from(good: np.ndarray) -> int | None:
    """The first index from which all entries are True."""
    bad = np.flatnonzero(~good)
    first = int(bad[-1]) + 1 if len(bad) else 0
    return first if first < len(good) else None


@pytest.mark.parametrize("seed", range(24))
def test_true_on_random_runs(seed):
    print("seed", seed)
    at, rng = instance(seed), np.random.default_rng(500 + seed)
    start = np.zeros_like(at.M) if seed % 3 == 0 else rng.uniform(0, 3) * at.margin * weights(at, seed + 1)
    start = start / max(1.0, np.linalg.norm(start) * at.R / 3)
    step = 10 ** rng.uniform(-1, 1) / at.R**2
    visited, path = _run(at, start, step, 400)
    norms = np.array([np.linalg.norm(W) for W in visited])
    gaps = np.array([at.problem.logit_gaps(W).min() for W in visited])
    g, slopes, N = (
        at.margin,
        (at.slopes(np.ones(at.problem.n)), at.slopes(np.zeros(at.problem.n))),
        len(at.problem.differences),
    )
    since = np.arange(len(path))
    first = _from(gaps >= -g * norms)
    if first is not None:
        b = step * g * slopes[0].min() * np.exp(-g * norms[first]) / at.problem.T**2
        grown = path[first] + np.log1p(g * b * (since[first:] - first)) / g
        assert np.all(grown <= path[first:] * (1 + 1e-9) + 1e-12)
    for theta in (0.1, 0.5, 0.9):
        first = _from(gaps >= theta * g * norms)
        if first is None:
            continue
        rate = theta * g**2 / at.R
        component = np.sum(visited[first] * at.M)
        x = theta * g**2 * step * N * slopes[1].max() * np.exp(-theta * g**2 * component)
        with np.errstate(over="ignore"):
            most = path[first] + np.log1p(np.expm1(x) * (since[first:] - first)) / rate
        assert np.all(path[first:] <= most * (1 + 1e-9) + 1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_a_settled_direction_separates(seed):
    print("seed", seed)
    at, rng = instance(seed), np.random.default_rng(seed)
    bend = at.problem.combine(rng.standard_normal(at.problem.n_constraints))
    theta = rng.uniform(-0.5, 0.99)
    allowed = (1 - theta) ** 2 * at.margin**2 / (2 * at.R**2)
    low, high = 0.0, 1.0  # the largest bend that keeps the direction settled
    for _ in range(60):
        middle = (low + high) / 2
        W = at.M * at.margin + middle * 4 * bend / np.linalg.norm(bend)
        low, high = (middle, high) if 1 - cosine(at, W) <= allowed else (low, middle)
    W = at.M * at.margin + low * 4 * bend / np.linalg.norm(bend)
    assert at.problem.logit_gaps(W).min() >= theta * at.margin * np.linalg.norm(W) * (1 - 1e-9) - 1e-12
