"""Theorem C: its pages prove, with no stronger constant; contraction and convergence on runs."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.notation import margin
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction
from theory.theorems import limit as page

NOW, mu, beta, kap = page.NOW, page.mu, page.beta, page.kap


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


h, before, noise = page.pace(NOW), page.distance(NOW), page.spread(NOW) ** 2
CONTRACTIONS = {
    "faster": (1 - Fraction(1001, 1000) * mu * h) * before + h * noise / kap,
    "without the decay": (1 - kap * page.sig / 4 * h) * before + h * noise / kap,
    "less disturbance": (1 - mu * h) * before + Fraction(999, 1000) * h * noise / kap,
    "no disturbance": (1 - mu * h) * before,
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_a_stronger_contraction_is_not_proved(name, monkeypatch):
    monkeypatch.setattr(page, "CONTRACTION", page.distance(NOW + 1) <= CONTRACTIONS[name])
    with pytest.raises(KernelError):
        page.contraction()


LIMITS = {
    "no disturbance": page.distance(page.t0),
    "less disturbance": page.distance(page.t0) + Fraction(999, 1000) * page.P / kap / (mu - beta),
    "half the start": page.distance(page.t0) / 2 + page.P / kap / (mu - beta),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_smaller_reach_is_not_proved(name, monkeypatch):
    page.prove_linear()
    monkeypatch.setattr(page, "REACH", LIMITS[name])
    with pytest.raises(KernelError):
        page.prove_linear()


@pytest.mark.parametrize("slow", [beta <= Fraction(21, 10) * margin**2, beta <= margin])
def test_the_rate_is_limited_by_the_disturbance(slow, monkeypatch):
    monkeypatch.setattr(page, "BETA_SLOW", slow)
    with pytest.raises(KernelError):
        page.prove_linear()


@pytest.mark.parametrize("seed", range(5))
def test_it_holds_on_random_runs(seed):
    """Both claims, from the first step at which the residual has settled for r_max = ||r*|| + d + 1/R_B."""
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    length, radius, star = 1 / at.margin, at.radius, at.size(at.balanced)
    e_max = rng.uniform(0.2, 0.9) * 2 * at.margin / radius**2
    slack = 2 - e_max * radius**2 / at.margin
    c0 = (at.G.max() + 2) * int(np.bincount(at.sequence).max())
    constraints = np.linalg.cholesky(at.K)
    across = constraints - at.margin**2 * (at.alpha @ constraints)
    values = np.linalg.eigvalsh((at.alpha[:, None] / at.alpha.sum() * across).T @ across)
    sig = values[values > 1e-12 * values.max()].min()
    b, start = at.balanced + rng.normal(0, 0.1, len(at.K)) / radius, None
    for _ in range(3000):
        distance, height = at.size(at.residual(b) - at.balanced), at.height(b)
        if start is None:
            r_max = star + distance + 0.5 / radius
            gam = c0**2 * np.exp(2 * radius * r_max) * (length**2 / 2 + e_max * length) / (4 * slack)
            if distance**2 + gam * np.exp(-2 * height) <= (r_max - star) ** 2:
                lam = c0 * np.exp(radius * r_max - height) + 2 * radius * (r_max - star)
                mu = slack * np.exp(-lam) * sig / 4
                beta = min(mu / 2, 2 * at.margin**2)
                power = c0**2 * np.exp(2 * radius * r_max - 2 * height)
                start = height, distance**2 + power / slack / (mu - beta)
        if start is not None:
            gained = (height - start[0]) / at.margin**2
            assert distance**2 <= start[1] * np.exp(-beta * gained) * (1 + 1e-9)
            spread = c0 * np.exp(radius * at.size(at.residual(b)) - height)
        b, h = at.step(b, e_max * rng.uniform(0.5, 1))
        after = at.size(at.residual(b) - at.balanced)
        if start is not None:
            assert after**2 <= (1 - mu * h) * distance**2 + h * spread**2 / slack + 1e-12
    assert start is not None
