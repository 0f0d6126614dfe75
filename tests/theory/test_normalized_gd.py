"""Normalized gradient descent: proved, not provable when strengthened, and true on random runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.theory.instances import instance, weights
from theory.notation import R, eta, margin, path_length, t
from theory.page import ProofError, without
from theory.proof.kernel import KernelError
from theory.proof.terms import as_real, norm
from theory.theorems import normalized_gd as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


@pytest.mark.parametrize(
    "stronger",
    [
        2 * margin * eta * as_real(t) / R - norm(page.START),
        margin * eta * as_real(t + 1) / R - norm(page.START),
        margin * eta * as_real(t) / R,
        eta * as_real(t) / R - norm(page.START),
    ],
    ids=["twice", "a step more", "no start", "no margin"],
)
def test_a_larger_lower_bound_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(page, "LOWER_BOUND", stronger)
    with pytest.raises(KernelError):
        page.prove_lower()


@pytest.mark.parametrize(
    "stronger", [norm(page.START) + eta * as_real(t) / 2, eta * as_real(t)], ids=["half", "no start"]
)
def test_a_smaller_upper_bound_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(page, "UPPER_BOUND", stronger)
    with pytest.raises(KernelError):
        page.prove_upper()


def test_another_claim_or_fewer_hypotheses_are_refused():
    half = page.nt.always(norm(page.NOW.W) <= norm(page.START) + path_length(t) / 2)
    with pytest.raises(ProofError, match="the page says"):
        dataclasses.replace(page.NORM_UPPER, key="changed", claim=half).proved()
    fewer = without(page.UPPER.hypotheses, "eta >= 0")
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(page.UPPER, key="fewer", hypotheses=fewer).proved()


@pytest.mark.parametrize("seed", range(20))
def test_true_on_random_runs(seed):
    print("seed", seed)
    at = instance(seed)
    W = start = weights(at, seed)
    step = 10 ** np.random.default_rng(seed).uniform(-2, 0.5)
    for k in range(30):
        size = np.linalg.norm(W)
        slack = 1e-9 * (size + np.linalg.norm(start))
        assert at.margin * step * k / at.R - np.linalg.norm(start) <= size + slack
        assert size <= np.linalg.norm(start) + step * k + slack
        W = W + step * at.direction(W)
