"""The divergence as a variance: proved, true on random distributions, not proved with better constants."""

import numpy as np
import pytest

from theory.lemmas import disorder as page
from theory.lemmas import residual_variance
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, inner

L, o, J, lam, half = page.L, page.o, page.J, page.lam, Fraction(1, 2)


@pytest.mark.parametrize("theorem", [*page.PAGES, *residual_variance.PAGES], ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


square = inner(page.DIFFERENCE, page.DIFFERENCE)
STRONGER = {
    "more variance": ("VARIANCE_CLAIM", exp(-L) * (Fraction(501, 1000) * page.VARIANCE - o**2 / 4) <= J),
    "narrower interval": ("VARIANCE_CLAIM", exp(-L) * (half * page.VARIANCE - o**2 / 5) <= J),
    "no decay": ("VARIANCE_CLAIM", half * page.VARIANCE - o**2 / 4 <= J),
    "smaller range": ("VARIANCE_CLAIM", exp(-page.Y) * (half * page.VARIANCE - o**2 / 4) <= J),
    "no growth": ("TILT_CLAIM", square <= lam * J),
    "smaller spread": ("TILT_CLAIM", square <= Fraction(499, 1000) * (1 + exp(L)) * lam * J),
}


@pytest.mark.parametrize("name", STRONGER)
def test_a_stronger_claim_is_not_proved(name, monkeypatch):
    place, claim = STRONGER[name]
    monkeypatch.setattr(page, place, claim)
    with pytest.raises(KernelError):
        {"VARIANCE_CLAIM": page.prove_variance, "TILT_CLAIM": page.prove_tilt}[place]()


@pytest.mark.parametrize("seed", range(3))
def test_it_holds_on_random_distributions(seed):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(300):
        n, d = rng.integers(2, 8, 2)
        q = rng.dirichlet(np.ones(n))
        y, x = rng.standard_normal(n) * rng.exponential(), rng.standard_normal(n) * rng.exponential(0.3)
        y -= q @ y
        pi = q * np.exp(x - y)
        pi /= pi.sum()
        o, span = np.ptp(x), np.ptp(x) + 2 * np.abs(y).max()
        J = np.sum((pi - q) * np.log(pi / q))
        assert np.exp(-span) * (q @ y**2 / 2 - o**2 / 4) <= J + 1e-12
        B = rng.standard_normal((n, d))
        lam = np.linalg.eigvalsh((q[:, None] * B).T @ B).max()
        assert np.sum(((pi - q) @ B) ** 2) <= (1 + np.exp(span)) / 2 * lam * J * (1 + 1e-9) + 1e-15
