"""The loss theorem: proved, not provable when strengthened, and true on random layers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.theory.instances import cosine, instance, weights
from theory.notation import STATIC as L
from theory.notation import G, a_max, g, i, n
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import exp
from theory.theorems import loss as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_twice_the_lower_slope_is_not_provable(monkeypatch):
    monkeypatch.setattr(page, "limit_slope", lambda: 2 * G(i) / n / (1 + exp(g(i) + G(i))))
    with pytest.raises(KernelError):
        page.prove_lower()


def test_the_present_slope_is_no_lower_bound(monkeypatch):
    monkeypatch.setattr(page, "limit_slope", lambda: G(i) / n / (1 + exp(g(i) + G(i) * L.p(i))))
    with pytest.raises(KernelError):
        page.prove_lower()


@pytest.mark.parametrize("slope", [page.slope(page.real(1)), page.slope(L.p(i)) / 2], ids=["at 1", "half"])
def test_a_smaller_upper_slope_is_not_provable(monkeypatch, slope):
    monkeypatch.setattr(page, "slope", lambda p: slope)
    with pytest.raises(KernelError):
        page.prove_upper()


def test_half_the_bound_is_not_provable(monkeypatch):
    monkeypatch.setattr(page, "excess_bound", lambda now: a_max * page.weighted(page.real(1)) / 2)
    with pytest.raises(KernelError):
        page.prove_static()


def test_another_claim_is_refused():
    wrong = dataclasses.replace(page.UPPER, key="changed", claim=2 * page.excess(L) <= page.weighted(L.a(i)))
    with pytest.raises(ProofError, match="the page says"):
        wrong.proved()


@pytest.mark.parametrize("seed", range(40))
def test_true_on_random_layers(seed):
    print("seed", seed)
    at = instance(seed)
    W = weights(at, seed)
    p, size = at.attention(W), at.problem.n
    excess, missing = at.excess(W), 1 - p
    w, largest = at.slopes(np.ones(size)), at.slopes(np.zeros(size)).max()
    slack = 1e-12 * (1 + at.loss(p))
    assert w @ missing <= excess + slack
    assert excess <= at.slopes(p) @ missing + slack
    assert excess <= largest * missing.sum() + slack
    forced = np.linalg.norm(W) * (at.margin - at.R * np.sqrt(2 * max(0.0, 1 - cosine(at, W))))
    assert excess <= size * largest * (at.problem.T - 1) * np.exp(min(-forced, 700)) + slack
