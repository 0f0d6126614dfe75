"""Sparsification: proved, not provable when strengthened, and true on random layers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.theory.instances import cosine, instance, weights
from theory import notation as nt
from theory.notation import R, T, margin
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import exp, norm, sqrt
from theory.theorems import sparsification as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def _gap(factor=1, inside=2, weight=1):
    return lambda now: norm(now.W) * (weight * margin - factor * R * sqrt(inside * (1 - nt.cosine(now))))


@pytest.mark.parametrize(
    "stronger",
    [_gap(factor=0), _gap(inside=1), _gap(weight=2), lambda now: margin * norm(now.W)],
    ids=["no R", "sqrt(1 - cos)", "2 g*", "no direction"],
)
def test_a_larger_gap_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(page, "guaranteed_gap", stronger)
    with pytest.raises(KernelError):
        page.prove_gap()


@pytest.mark.parametrize(
    "stronger",
    [
        lambda now: (T - 2) * exp(-page.guaranteed_gap(now)),
        lambda now: exp(-page.guaranteed_gap(now)),
        lambda now: (T - 1) * exp(-2 * page.guaranteed_gap(now)),
    ],
    ids=["T - 2", "1", "twice the gap"],
)
def test_a_smaller_leak_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(page, "attention_gap_bound", stronger)
    with pytest.raises(KernelError):
        page.prove_static()


def test_another_claim_or_fewer_hypotheses_are_refused():
    with pytest.raises(ProofError, match="the page says"):
        dataclasses.replace(page.STATIC, key="changed", claim=page.GAP.claim).proved()
    fewer = {k: v for k, v in page.STATIC.hypotheses.items() if k != "(S)"}
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(page.STATIC, key="fewer", hypotheses=fewer).proved()


@pytest.mark.parametrize("seed", range(40))
def test_true_on_random_layers(seed):
    print("seed", seed)
    at = instance(seed)
    W = weights(at, seed)
    forced = np.linalg.norm(W) * (at.margin - at.R * np.sqrt(2 * max(0.0, 1 - cosine(at, W))))
    assert at.problem.logit_gaps(W).min() >= forced - 1e-9 * np.linalg.norm(W) * at.R
    assert np.all(1 - at.attention(W) <= (at.problem.T - 1) * np.exp(min(-forced, 700)) + 1e-12)
