"""Verdicts: bounds held against runs; a broken bound is seen, an unmet hypothesis is never claimed over."""

import dataclasses
import math

import numpy as np
import pytest

import theory
from numerics import GradientDescent, NormalizedGD, Polyak, train
from numerics.datasets import load
from numerics.errors import InputError
from theory import catalog
from theory.proof.terms import real
from theory.verdict import ratios

RULES = {"ngd": NormalizedGD(0.1), "gd": GradientDescent(1.0), "polyak": Polyak()}


@pytest.mark.parametrize("rule", RULES)
def test_every_claimed_bound_holds_on_gaussian_data(rule: str) -> None:
    run = train(load("gaussian", seed=3), RULES[rule], steps=200, space="weight")
    verdicts = theory.check_all(run)
    assert {v.theorem for v in verdicts} == {k for k, p in theory.theorems().items() if p.rate}
    assert any(v.holds for v in verdicts)
    for v in verdicts:
        assert v.holds is not False, v
        assert "recorded" not in v.hypotheses, v
        if v.holds:
            assert v.worst_ratio <= 1 + 1e-9
            assert v.steps.shape == v.observed.shape == v.bound.shape


def test_unequal_scores_claim_nothing_that_needs_equal_ones() -> None:
    run = train(load("digits:3v5", seed=0), NormalizedGD(0.1), steps=50, space="weight")
    verdict = theory.check(run, "norm-growth")
    assert verdict.holds is None
    assert math.isnan(verdict.worst_ratio)
    assert verdict.hypotheses["E"].state == "fails"


@pytest.mark.parametrize("key", ["norm-growth", "path-lower", "sparsification"])
def test_a_corrupted_bound_is_violated(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(load("gaussian", seed=3), NormalizedGD(0.1), steps=500, space="weight")
    assert theory.check(run, key).holds
    page = theory.theorems()[key]
    assert page.rate is not None
    factor = real(10) if page.rate.sense == "lower" else 1 / real(10**6)
    broken = dataclasses.replace(page, rate=dataclasses.replace(page.rate, bound=factor * page.rate.bound))
    monkeypatch.setattr(catalog, "theorems", lambda: {key: broken})
    verdict = theory.check(run, key)
    assert verdict.holds is False
    assert verdict.worst_ratio > 1


def test_an_unknown_theorem_is_an_input_error() -> None:
    run = train(load("gaussian", seed=3), NormalizedGD(0.1), steps=2, space="weight")
    with pytest.raises(InputError, match="no theorem about runs"):
        theory.check(run, "no-such-theorem")
    with pytest.raises(InputError, match="no theorem about runs"):
        theory.check(run, "paper-global")


def test_ratios_count_how_far_an_inequality_is_used_up() -> None:
    small = np.array([1.0, 2.0, -1.0, -3.0, 0.0, 1.0, np.nan])
    large = np.array([2.0, 1.0, 1.0, -1.0, 0.0, 0.0, 1.0])
    out = ratios(small, large)
    assert out[:5] == pytest.approx([0.5, 2.0, 0.0, 1 / 3, 0.0])
    assert out[5] == np.inf
    assert np.isnan(out[6])
