"""The logarithmic mean: proved, sharp in its constant, true on random numbers."""

import numpy as np
import pytest

from theory.lemmas import log_mean as page
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, log

a, b = page.a, page.b


def test_the_page_proves():
    assert page.LOG_MEAN.proved().conclusion == page.CLAIM
    assert page.LOG_MEAN.status == "proved"


@pytest.mark.parametrize("factor", [Fraction(2001, 1000), 3])
def test_a_larger_constant_is_not_proved(factor, monkeypatch):
    claim = factor * (a - b) ** 2 / (a + b) <= (a - b) * (log(a) - log(b))
    monkeypatch.setattr(page, "CLAIM", claim)
    with pytest.raises(KernelError):
        page.prove_log_mean()


def test_the_constant_is_the_best_possible():
    x = 1 + 1e-3
    assert (x - 1) * np.log(x) < 2.001 * (x - 1) ** 2 / (x + 1)


@pytest.mark.parametrize("seed", range(3))
def test_it_holds_on_random_numbers(seed):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    x, y = 10 ** rng.uniform(-6, 6, (2, 10_000))
    assert np.all(2 * (x - y) ** 2 / (x + y) <= (x - y) * np.log(x / y) * (1 + 1e-12))
