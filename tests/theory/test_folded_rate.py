"""The sharp rate in one constant: the pages prove, no smaller constant does; it holds on runs."""

import numpy as np
import pytest

from numerics.datasets import load
from numerics.steps import NormalizedGD
from numerics.training import train
from theory.predict import predict
from theory.proof.kernel import KernelError
from theory.proof.tactics import follows
from theory.proof.terms import Fraction
from theory.theorems import folded_rate as page
from theory.verdict import check


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_a_smaller_constant_is_not_proved():
    claim = page.folded()
    small, large = claim.conclusion[1:]
    with pytest.raises(KernelError):
        follows(small <= Fraction(999, 1000) * large, claim)


@pytest.fixture(scope="module")
def runs():
    """Twenty-one random problems with full support, half the largest proved step."""
    found = []
    for seed in range(21):
        problem = load("gaussian:n=4,T=3,d=100", seed)
        limit = predict(problem, NormalizedGD(1.0))
        if limit.support.all():
            rule = NormalizedGD(0.5 * float(limit.proved_below.mid()))
            found.append(train(problem, rule, steps=100_000))
    return found


KEYS = [theorem.key for theorem in page.PAGES]


@pytest.mark.parametrize("key", KEYS)
def test_it_holds_on_runs(runs, key):
    verdicts = [check(run, key) for run in runs]
    assert all(verdict.holds for verdict in verdicts)
    used = np.median([verdict.worst_ratio for verdict in verdicts])
    print(key, "median of observed/bound", used)
    assert used > 1e-3


@pytest.mark.parametrize("key", ["sharp-residual", "unequal-sharp-residual", "support-sharp-residual"])
def test_the_bound_on_the_residual_is_within_ten_of_it(runs, key):
    """The median, over random problems with full support, of the last observed residual over its bound."""
    verdicts = [check(run, key) for run in runs]
    assert len(verdicts) > 15
    tight = np.median([verdict.observed[-1] / verdict.bound[-1] for verdict in verdicts])
    print(key, "median of observed/bound", tight)
    assert 0.1 < tight <= 1
