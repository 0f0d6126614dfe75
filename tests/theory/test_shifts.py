"""The shifts of equal scores: proved, true on random layers, not proved with smaller constants."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.lemmas import shifts as page
from theory.notation import STATIC as L
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


shift, leak = page.shift(L), page.leak


@pytest.mark.parametrize(
    ("prove", "claim"),
    [
        ("LOWER", Fraction(-1999, 1000) * leak <= shift),
        ("LOWER", -2 * exp(-page.b) <= shift),
        ("UPPER", shift <= Fraction(999, 1000) * page.G_max * leak),
        ("UPPER", shift <= page.G_max * leak - leak),
        ("UPPER", shift <= page.G_max * leak * exp(-page.b)),
    ],
)
def test_a_stronger_claim_is_not_proved(prove, claim, monkeypatch):
    monkeypatch.setattr(page, prove, claim)
    with pytest.raises(KernelError):
        getattr(page, f"prove_{prove.lower()}")()


@pytest.mark.parametrize("seed", range(5))
def test_it_holds_on_random_layers(seed):
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    T = 1 + int(np.bincount(at.sequence).max())
    for _ in range(200):
        b = at.alpha * rng.exponential(5) + rng.standard_normal(len(at.K)) * rng.exponential(2)
        bound = (T - 1) * np.exp(-(at.K @ b).min())
        shifts = at.shifts(b)
        assert -2 * bound - 1e-12 <= shifts.min()
        assert shifts.max() <= at.G.max() * bound + 1e-12
