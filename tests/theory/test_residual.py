"""Theorem B: its pages prove, with no stronger constant, and hold on runs of any step lengths."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction
from theory.theorems import residual as page

start, disturbance, kap = page.distance(page.t0), page.disturbance(page.t), page.kap


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


STRONGER = {
    "less disturbance": start + disturbance / (Fraction(4001, 1000) * kap),
    "no disturbance": start,
    "half the start": Fraction(1, 2) * start + disturbance / (4 * kap),
    "more slack": start + disturbance / (4 * (kap + 1)),
}


@pytest.mark.parametrize("name", STRONGER)
def test_a_stronger_bound_is_not_proved(name, monkeypatch):
    page.prove_distance()
    monkeypatch.setattr(page, "END", STRONGER[name])
    with pytest.raises(KernelError):
        page.prove_distance()


@pytest.mark.parametrize("name", ["(F)", "steps are short", "r* balances the limit weights", "update"])
def test_it_needs_its_hypotheses(name):
    assert page.HYPOTHESES[name] in page.DISTANCE.proved().hypotheses


@pytest.mark.parametrize("seed", range(6))
def test_it_holds_on_random_runs(seed):
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    e_max = rng.uniform(0.1, 0.99) * 2 * at.margin / at.radius**2
    slack = 2 - e_max * at.radius**2 / at.margin
    b = rng.normal(0, 2, len(at.K))
    bound = at.size(at.residual(b) - at.balanced) ** 2
    for _ in range(300):
        spread = np.ptp(at.shifts(b))
        b, h = at.step(b, e_max * rng.uniform())
        bound += h * spread**2 / (4 * slack)
        distance = at.size(at.residual(b) - at.balanced)
        assert distance**2 <= bound * (1 + 1e-9)
        assert at.size(at.residual(b)) <= at.size(at.balanced) + np.sqrt(bound) + 1e-9
