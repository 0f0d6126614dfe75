"""Theorem B for steps of any length: proved, not with smaller constants, true far beyond the stable steps."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.lemmas import disorder
from theory.notation import margin
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, log, maximum, sqrt
from theory.theorems import residual_any_step as page

almost, q_min, o_max = Fraction(999, 1000), page.q_min, page.o_max
root = sqrt((1 / q_min - 1) / page.sig)


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


THRESHOLDS = {
    "shorter steps": almost * page.e_max * page.R_B**2 / margin + o_max**2 / 4,
    "no shifts": page.e_max * page.R_B**2 / margin,
    "smaller shifts": page.e_max * page.R_B**2 / margin + o_max**2 / 5,
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_smaller_threshold_does_not_stop_the_residual(name, monkeypatch):
    monkeypatch.setattr(page, "J0", THRESHOLDS[name])
    with pytest.raises(KernelError):
        page.falls_where_disordered()


DISTANCES = {
    "less": almost * page.D0,
    "no weight": (page.J0 + o_max) * root,
    "no shifts": (page.J0 - log(q_min)) * root,
    "no root": page.Z0 * (1 / q_min - 1) / page.sig,
}


@pytest.mark.parametrize("name", DISTANCES)
def test_a_smaller_distance_is_not_proved(name, monkeypatch):
    monkeypatch.setattr(page, "D0", DISTANCES[name])
    with pytest.raises(KernelError):
        page.close_where_calm()


def test_a_step_may_leave_the_calm_region(monkeypatch):
    monkeypatch.setattr(page, "BOUND", maximum(page.far(page.t0), page.D0))
    with pytest.raises(KernelError):
        page.prove_bounded()


@pytest.mark.parametrize("factor", [almost, 0])
def test_the_divergence_does_not_grow_faster(factor, monkeypatch):
    claim = factor * disorder.Z**2 * (1 / q_min - 1) >= disorder.VARIANCE
    monkeypatch.setattr(disorder, "FAR_CLAIM", claim)
    with pytest.raises(KernelError):
        disorder.prove_far()


@pytest.mark.parametrize("seed", range(6))
def test_it_holds_on_runs_with_steps_of_any_length(seed):
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    e_max = 10 ** rng.uniform(-0.5, 1.5)
    share = at.alpha / at.alpha.sum()
    constraints = np.linalg.cholesky(at.K)
    across = constraints - at.margin**2 * (at.alpha @ constraints)
    values = np.linalg.eigvalsh((share[:, None] * across).T @ across)
    sig = values[values > 1e-12 * values.max()].min()
    b = at.alpha * 3 + rng.normal(0, 0.3, len(at.K))
    start, spreads, distances = at.size(at.residual(b) - at.balanced), [], []
    for _ in range(1000):
        spreads.append(np.ptp(at.shifts(b)))
        distances.append(at.size(at.residual(b) - at.balanced))
        b, _ = at.step(b, e_max * rng.uniform(0.9, 1))
    o = max(spreads)
    threshold = e_max * at.radius**2 / at.margin + o**2 / 4
    reach = (threshold + o - np.log(share.min())) * np.sqrt((1 / share.min() - 1) / sig)
    print("observed", max(distances), "bound", max(start, reach + e_max))
    assert max(distances) <= max(start, reach + e_max)
