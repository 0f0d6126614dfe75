"""The entropy lemmas prove, hold on random numbers, and are not proved with smaller constants."""

import numpy as np
import pytest

from theory.lemmas import symmetric_divergence as page
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, inner

almost = Fraction(999, 1000)
ell, o = page.ell, page.o


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


square, J = inner(page.DIFFERENCE, page.DIFFERENCE), page.J
numbers = page.over((page.p_k - page.q_k) * page.x(page.i, page.tau))
VECTORS, NUMBERS = ("prove_vectors", "VECTORS_CLAIM"), ("prove_numbers", "NUMBERS_CLAIM")
STRONGER = {
    "smaller radius": (*VECTORS, square <= almost * page.R_B**2 * J),
    "radius to the first power": (*VECTORS, square <= page.R_B * J),
    "strict": (*VECTORS, square < page.R_B**2 * J),
    "less divergence": (*NUMBERS, numbers <= almost * ell * J / 2 + o**2 / (8 * ell)),
    "smaller interval": (*NUMBERS, numbers <= ell * J / 2 + almost * o**2 / (8 * ell)),
    "no interval": (*NUMBERS, numbers <= ell * J / 2),
}


@pytest.mark.parametrize("name", STRONGER)
def test_a_stronger_claim_is_not_proved(name, monkeypatch):
    prove, place, claim = STRONGER[name]
    monkeypatch.setattr(page, place, claim)
    with pytest.raises(KernelError):
        getattr(page, prove)()


@pytest.mark.parametrize("seed", range(3))
def test_it_holds_on_random_distributions(seed):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(300):
        n, d = rng.integers(2, 8, 2)
        pi, q = (rng.dirichlet(np.full(n, 0.3)) + 1e-12 for _ in range(2))
        pi, q = pi / pi.sum(), q / q.sum()
        B, x = rng.standard_normal((n, d)), rng.standard_normal(n)
        J = np.sum((pi - q) * np.log(pi / q))
        weight = 10 ** rng.uniform(-2, 2)
        assert np.linalg.norm((pi - q) @ B) ** 2 <= np.max(np.sum(B**2, 1)) * J * (1 + 1e-9) + 1e-15
        assert (pi - q) @ x <= weight * J / 2 + np.ptp(x) ** 2 / (8 * weight) + 1e-12
