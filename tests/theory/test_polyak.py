"""Polyak steps: proved, not provable when strengthened, and true on random layers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.theory.instances import Instance, cosine, instance, weights
from theory.notation import STATIC as L
from theory.notation import G, R, g, i, margin, n
from theory.page import ProofError, without
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, minimum, norm
from theory.theorems import polyak as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_a_shorter_rule_has_no_such_least_step(monkeypatch):
    shorter = page.loss.excess(L) / (3 * norm(L.descent))
    monkeypatch.setattr(page, "uncapped", lambda now: shorter)
    with pytest.raises(KernelError):
        page.prove_uncapped_lower()


@pytest.mark.parametrize(
    "stronger",
    [
        minimum(1 / (R * page.rho), page.e_max),
        minimum(1 / (2 * R), page.e_max),
        1 / (2 * R * page.rho),
        page.e_max,
    ],
    ids=["no 2", "no rho", "no cap", "the cap"],
)
def test_a_larger_least_step_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(page, "LEAST_STEP", stronger)
    with pytest.raises(KernelError):
        page.prove_step_lower()


@pytest.mark.parametrize(
    "stronger",
    [1 / (2 * margin), 1 / (3 * margin * page.p_min), 1 / (2 * R * page.p_min)],
    ids=["p = 1", "3", "R for g*"],
)
def test_a_smaller_greatest_step_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(page, "GREATEST_STEP", stronger)
    with pytest.raises(KernelError):
        page.prove_step_upper()


@pytest.mark.parametrize("factor", [Fraction(1, 2), margin], ids=["half", "no g*"])
def test_a_smaller_settled_step_is_not_provable(monkeypatch, factor):
    monkeypatch.setattr(page, "SETTLED_STEP", factor * page.SETTLED_STEP)
    with pytest.raises(KernelError):
        page.prove_step_upper_direction()


def test_a_settled_step_has_missing_attention(monkeypatch):
    monkeypatch.setattr(page, "SETTLED_STEP", 1 / (2 * margin))
    with pytest.raises(KernelError):
        page.prove_step_upper_direction()


def test_the_ratio_of_slopes_needs_the_largest_slope(monkeypatch):
    weaker = page.nt.each_sequence(
        G(i) / n / (1 + exp(g(i) + G(i) / 2)) <= page.rho * page.loss.limit_slope()
    )
    monkeypatch.setattr(page, "SLOPE_RATIO", weaker)
    with pytest.raises(KernelError):
        page.prove_uncapped_lower()


def test_another_claim_or_fewer_hypotheses_are_refused():
    wrong = dataclasses.replace(page.MASS, key="changed", claim=page.eq(L.C, page.loss.weighted(L.a(i))))
    with pytest.raises(ProofError, match="the page says"):
        wrong.proved()
    fewer = without(page.NORM.hypotheses, "e_max >= 0")
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(page.NORM, key="fewer", hypotheses=fewer).proved()


def _ratio(at: Instance) -> float:
    return float(np.max((1 + np.exp(at.g + at.G)) / (1 + np.exp(at.g))))


@pytest.mark.parametrize("seed", range(40))
def test_true_on_random_layers(seed):
    print("seed", seed)
    at = instance(seed)
    W = weights(at, seed)
    p = at.attention(W)
    if p.max() > 1 - 1e-6:  # the excess loss would be a difference of equal floats
        W = W / np.linalg.norm(W) * 5 / at.R
        p = at.attention(W)
    size = np.linalg.norm(at.descent(W))
    step = at.excess(W) / (2 * size)
    assert 1 / (2 * at.R * _ratio(at)) <= step * (1 + 1e-6)
    assert step <= (1 + 1e-6) / (2 * at.margin * p.min())
    forced = np.linalg.norm(W) * (at.margin - at.R * np.sqrt(2 * max(0.0, 1 - cosine(at, W))))
    assert step <= (1 + (at.problem.T - 1) * np.exp(min(-forced, 700))) / (2 * at.margin) * (1 + 1e-6)
