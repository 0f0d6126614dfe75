"""Up to the stability limit: its pages prove, with no smaller bound on the tilt; runs below it converge."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.lemmas import residual_variance
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp
from theory.theorems import local_stability as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


@pytest.mark.parametrize(
    "smaller",
    [
        page.lam,
        Fraction(499, 1000) * (1 + exp(page.Lam)) * page.lam,
        page.half * (1 + exp(page.Lam / 2)) * page.lam,
        exp(page.Lam) * page.lam / 2,
    ],
)
def test_a_smaller_tilt_is_not_proved(smaller, monkeypatch):
    close = page.assume(page.potential(page.NOW) <= page.room)
    page.smooth(close)
    monkeypatch.setattr(page, "L_LOCAL", smaller)
    with pytest.raises(KernelError):
        page.smooth(close)


def test_the_lemma_on_the_tilt_has_no_smaller_constant(monkeypatch):
    claim = page.inner(residual_variance.b, residual_variance.b) <= page.lam * page.disorder(page.nt.STATIC)
    monkeypatch.setattr(residual_variance, "TILT_CLAIM", claim)
    with pytest.raises(KernelError):
        residual_variance.prove_tilt()


def test_no_radius_limits_the_step():
    """The condition on the step speaks of lam, not of R_B^2."""
    short = page.LINEAR.hypotheses["steps are short"]
    assert short == page.local(page.base.SHORT)
    assert page.base.STEPS_SHORT not in page.LINEAR.proved().hypotheses


@pytest.mark.parametrize("seed", range(5))
def test_steps_between_the_two_limits_converge_from_near_the_balanced_point(seed):
    """Steps that Theorem B's global form does not cover; every hypothesis is met at the start."""
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    radius, star, length = at.radius, at.size(at.balanced), 1 / at.margin
    share = at.alpha / at.alpha.sum()
    constraints = np.linalg.cholesky(at.K)
    across = constraints - at.margin**2 * (at.alpha @ constraints)
    lam = np.linalg.eigvalsh((share[:, None] * across).T @ across)[-1]
    eta = 0.8 * 2 * at.margin / lam
    c0 = (at.G.max() + 2) * int(np.bincount(at.sequence).max())
    b = at.balanced + rng.normal(0, 1e-3, len(at.K)) / radius
    b += 40 * length**2 * at.alpha - at.height(b) * at.alpha
    distance, height = at.size(at.residual(b) - at.balanced), at.height(b)
    r_max = star + 1.1 * distance + 1e-9
    Lam = c0 * np.exp(radius * r_max - height) + 2 * radius * (r_max - star)
    smooth = (1 + np.exp(Lam)) / 2 * lam
    slack = 2 - eta * smooth / at.margin
    assert slack > 0
    tail = c0**2 * np.exp(2 * radius * r_max - 2 * height) * (length**2 / 2 + eta * length) / (4 * slack)
    assert distance**2 + tail <= (r_max - star) ** 2
    print("step", eta, "global limit", 2 * at.margin / radius**2)
    for _ in range(3000):
        b, _ = at.step(b, eta)
        assert at.size(at.residual(b) - at.balanced) <= r_max - star + 1e-12
    assert at.size(at.residual(b) - at.balanced) < 1e-2 * distance + 1e-9
