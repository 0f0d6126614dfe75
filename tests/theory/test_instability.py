"""Beyond the stability limit the balanced point repels: the pages prove, no more strongly; runs oscillate."""

import numpy as np
import pytest

from tests.theory.full_support import FullSupport, full_support
from theory.lemmas import residual_linear
from theory.proof.kernel import KernelError
from theory.proof.tactics import follows
from theory.proof.terms import Fraction, real
from theory.theorems import instability as page


@pytest.mark.parametrize("theorem", [*residual_linear.PAGES, *page.PAGES], ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_a_smaller_error_is_not_proved(monkeypatch):
    low, high = residual_linear.UPPER_CLAIM[1:]
    monkeypatch.setattr(residual_linear, "UPPER_CLAIM", low <= Fraction(999, 1000) * high)
    with pytest.raises(KernelError):
        residual_linear.prove_linear()


def test_a_smaller_tilt_is_not_proved(monkeypatch):
    low, high = residual_linear.TILT_CLAIM[1:]
    monkeypatch.setattr(residual_linear, "TILT_CLAIM", low <= Fraction(999, 1000) * high)
    with pytest.raises(KernelError):
        residual_linear.prove_tilt()


STRONGER = {"growth": Fraction(1001, 1000) * page.growth, "without the loss": page.h * page.lam}


@pytest.mark.parametrize("name", STRONGER)
def test_a_faster_growth_is_not_proved(name, monkeypatch):
    """Neither for the page's claim nor for the scalar step it rests on."""
    monkeypatch.setattr(page, "growth", STRONGER[name])
    stronger = page.growth * (page.size(page.t) - page.floor) <= page.size(page.t + 1) - page.floor
    with pytest.raises(KernelError):
        follows(stronger, page.prove_repels())


@pytest.mark.parametrize("name", ["smaller floor", "no error"])
def test_the_floor_is_needed(name, monkeypatch):
    """y* = h E/(h lam - 2): with less the pull's error may win."""
    least = page.floor * Fraction(999, 1000) if name == "smaller floor" else real(0)
    stronger = page.growth * (page.size(page.t) - least) <= page.size(page.t + 1) - least
    with pytest.raises(KernelError):
        follows(stronger, page.prove_repels(), page.error_nonnegative())


def spectrum(at: FullSupport) -> tuple[float, np.ndarray]:
    """lam and the coordinates (in the A_k) of its unit eigenvector."""
    share = np.sqrt(at.alpha / at.alpha.sum())
    values, vectors = np.linalg.eigh(share[:, None] * (at.K - at.margin**2) * share)
    b = at.residual(share * vectors[:, -1])
    return float(values[-1]), b / at.size(b)


@pytest.mark.parametrize("seed", range(6))
def test_a_run_near_the_balanced_point_is_driven_away_and_stays_bounded(seed):
    """Just above the limit: the distance grows by h lam - 1 a step, alternating; later it stays bounded.

    Just below it the same start converges.
    """
    print("seed", seed)
    at = full_support(seed)
    if len(at.K) < 2:
        pytest.skip("one constraint: nothing lies across M")
    lam, u = spectrum(at)
    limit = 2 * at.margin / lam
    for factor in (1.1, 0.9):
        b = (
            at.balanced
            + 1e-5 / at.radius * u
            + 60 / at.margin**2 * at.alpha / (at.alpha @ at.K @ at.alpha) ** 0.5
        )
        away = []
        for _ in range(4000):
            X = at.residual(b) - at.balanced
            away.append(float(X @ at.K @ u))
            b, _ = at.step(b, factor * limit)
        away = np.array(away)
        rate = 2 * factor - 1
        assert away[1:20] / away[:19] == pytest.approx(-rate, rel=1e-2)
        last = at.size(at.residual(b) - at.balanced)
        if factor > 1:
            assert last > 1e3 * abs(away[0])  # driven away
            assert np.abs(away[-2000:]).max() < 2 * np.abs(away[-4000:-2000]).max() + 1e-9  # but bounded
            assert np.sign(away[-1]) != np.sign(away[-2])  # and it oscillates
        else:
            assert last < 1e-3 * abs(away[0])


@pytest.mark.parametrize("seed", range(6))
def test_the_step_holds_on_random_states(seed):
    """The page's inequality at states near r*, with its own h, E and y*."""
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    if len(at.K) < 2:
        pytest.skip("one constraint: nothing lies across M")
    lam, u = spectrum(at)
    e, tried = 3 * at.margin / lam, 0
    for _ in range(200):
        b = at.balanced + 10.0 ** rng.uniform(-6, -2) / at.radius * (
            u + 0.3 * at.residual(rng.normal(size=len(u))) * at.radius
        )
        b = b + 50 * at.alpha
        X = at.residual(b) - at.balanced
        shifts = at.shifts(b)
        o = float(np.ptp(shifts))
        reach = o + 2 * at.radius * at.size(X)
        h = e / np.hypot(at.margin, at.radius * np.expm1(reach))
        wrong = at.radius * (o + np.exp(reach) * reach**2) / 2
        if h * lam <= 2:
            continue
        floor = h * wrong / (h * lam - 2)
        y = abs(float(X @ at.K @ u))
        if y < floor:
            continue
        after = at.step(b, e)[0]
        moved = abs(float((at.residual(after) - at.balanced) @ at.K @ u))
        assert moved - floor >= (h * lam - 1) * (y - floor) - 1e-12
        tried += 1
    assert tried > 10
