"""Theorem B in settled form: its pages prove, with no stronger constant, and hold on runs."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.notation import T
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, norm
from theory.theorems import sharp_residual as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


almost, kap, R_B, r_max = Fraction(999, 1000), page.kap, page.R_B, page.r_max
WEAKER_TAILS = {
    "less": almost * page.Gam,
    "no step length": page.c0**2 * exp(2 * R_B * r_max) * (norm(page.M) ** 2 / 2) / (4 * kap),
    "half the squared norm": page.Gam - page.c0**2 * exp(2 * R_B * r_max) * norm(page.M) ** 2 / (16 * kap),
    "more slack": page.c0**2 * exp(2 * R_B * r_max) * page.reach / (Fraction(4001, 1000) * kap),
    "smaller residual": page.c0**2 * exp(R_B * r_max) * page.reach / (4 * kap),
    "c0": page.Gam / page.c0,
}


@pytest.mark.parametrize("name", WEAKER_TAILS)
def test_a_smaller_tail_does_not_pay(name, monkeypatch):
    page.potential_falls()
    monkeypatch.setattr(page, "Gam", WEAKER_TAILS[name])
    with pytest.raises(KernelError):
        page.prove_potential()


@pytest.mark.parametrize(
    "bound",
    [
        page.START + page.drift,
        page.START + almost * exp(page.real(1)) * page.drift,
        page.START,
        page.START - norm(page.r_star) + exp(page.real(1)) * page.drift,
    ],
)
def test_a_smaller_bound_is_not_proved(bound, monkeypatch):
    page.prove_explicit()
    monkeypatch.setattr(page, "BOUND", bound)
    with pytest.raises(KernelError):
        page.prove_explicit()


@pytest.mark.parametrize("c0", [(page.shifts.G_max + 1) * (T - 1), (page.shifts.G_max + 2) * (T - 2)])
def test_a_smaller_constant_does_not_cover_equal_scores(c0, monkeypatch):
    page.prove_sharp()
    monkeypatch.setattr(page, "EQUAL_C0", c0)
    with pytest.raises(KernelError):
        page.prove_sharp()


@pytest.mark.parametrize("seed", range(6))
def test_it_holds_on_random_runs_and_is_within_ten_of_them(seed):
    """Random step lengths; the bound starts at the first step at which the drift is small."""
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    length, radius, star = 1 / at.margin, at.radius, at.size(at.balanced)
    e_max = rng.uniform(0.1, 0.9) * 2 * at.margin / radius**2
    c0 = (at.G.max() + 2) * int(np.bincount(at.sequence).max())
    root = np.sqrt((length**2 / 2 + e_max * length) / 4 / (2 - e_max * radius**2 / at.margin))
    b, bound, ratios = rng.normal(0, 1, len(at.K)), np.inf, []
    for _ in range(4000):
        b, _ = at.step(b, e_max * rng.uniform(0.5, 1))
        size = at.size(at.residual(b))
        start = 2 * star + size
        drift = c0 * root * np.exp(radius * start - at.height(b))
        if bound == np.inf and np.e * radius * drift <= 1:
            bound = start + np.e * drift
        ratios.append(size / bound)
    assert bound < np.inf
    assert max(ratios) <= 1 + 1e-9
    assert ratios[-1] > 0.1
