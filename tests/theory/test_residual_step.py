"""One step of the residual: proved, true on random steps, and not proved with smaller constants."""

import numpy as np
import pytest

from theory.lemmas import residual_step as page
from theory.notation import STATIC as L
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, inner

almost = Fraction(999, 1000)
start, end = inner(page.X, page.X), inner(page.MOVED, page.MOVED)
J, h, ell, o, L_b = page.disorder(L), page.h, page.ell, page.o, page.L_b


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


STRONGER = {
    "more descent": start - h * (Fraction(2001, 1000) - h * L_b - ell) * J + h * o**2 / (4 * ell),
    "shorter radius": start - h * (2 - almost * h * L_b - ell) * J + h * o**2 / (4 * ell),
    "less of l": start - h * (2 - h * L_b - almost * ell) * J + h * o**2 / (4 * ell),
    "smaller shifts": start - h * (2 - h * L_b - ell) * J + almost * h * o**2 / (4 * ell),
    "no shifts": start - h * (2 - h * L_b - ell) * J,
    "half the start": Fraction(1, 2) * start - h * (2 - h * L_b - ell) * J + h * o**2 / (4 * ell),
}


@pytest.mark.parametrize("name", STRONGER)
def test_a_stronger_step_is_not_proved(name, monkeypatch):
    monkeypatch.setattr(page, "STEP_CLAIM", end <= STRONGER[name])
    with pytest.raises(KernelError):
        page.prove_step()


@pytest.mark.parametrize("seed", range(4))
def test_it_holds_on_random_steps(seed):
    """Constraints A_k = g*^2 M + B_k with sum q_k B_k = 0, any coefficients, any point."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        N, d = rng.integers(2, 7, 2)
        limit = rng.dirichlet(np.ones(N))
        B = rng.standard_normal((N, d))
        B -= limit @ B
        r_star, r = rng.standard_normal((2, d))
        w = limit * np.exp(B @ r_star)
        shift = rng.normal(0, rng.exponential(), N)
        c = w * np.exp(shift - B @ r)
        pi, spread = c / c.sum(), np.ptp(shift)
        b, J = pi @ B, np.sum((pi - limit) * np.log(pi / limit))
        h, ell = rng.exponential(2, 2)
        radius = np.max(np.sum(B**2, 1))
        before, after = np.sum((r - r_star) ** 2), np.sum((r + h * b - r_star) ** 2)
        assert after <= before - h * (2 - h * radius - ell) * J + h * spread**2 / (4 * ell) + 1e-9 * (
            1 + after
        )
