"""The exact constant: its pages prove, with no stronger claim; runs tend to it."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, norm
from theory.theorems import exact_constant as page

r, v, gap, star, eps = page.r, page.v, page.gap, norm(page.r_star), page.EPS


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


STATIC = {
    "above": ("SANDWICH_UPPER", "prove_sandwich_upper", 2 * v**2 * gap <= Fraction(999, 1000) * r**2),
    "below": ("SANDWICH_LOWER", "prove_sandwich_lower", r**2 <= 2 * v**2 * gap),
    "nearly below": (
        "SANDWICH_LOWER",
        "prove_sandwich_lower",
        r**2 * (1 - r**2 / (2 * v**2)) <= 2 * v**2 * gap,
    ),
}


@pytest.mark.parametrize("name", STATIC)
def test_a_stronger_sandwich_is_not_proved(name, monkeypatch):
    place, prove, claim = STATIC[name]
    monkeypatch.setattr(page, place, claim)
    with pytest.raises(KernelError):
        getattr(page, prove)()


@pytest.mark.parametrize("seed", range(5))
def test_runs_of_normalized_gradient_descent_tend_to_it(seed):
    """t^2 (1 - cos) at t = 4000 is ||r*||^2/(2 eta^2), to the order 1/t."""
    print("seed", seed)
    at = full_support(seed)
    eta, b = at.margin / at.radius**2, np.zeros(len(at.K))
    for _ in range(4000):
        b, _ = at.step(b, eta)
    size, total = at.size(at.residual(b)), at.size(b)
    observed = 4000**2 * size**2 / total / (total + at.height(b) / at.margin)
    predicted = at.size(at.balanced) ** 2 / (2 * eta**2)
    print("observed", observed, "predicted", predicted)
    assert observed == pytest.approx(predicted, rel=50 / (4000 * eta))
