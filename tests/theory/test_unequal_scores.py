"""Unequal scores: the pages prove, with no smaller constant; the shifts hold on random layers."""

import numpy as np
import pytest

from tests.theory.test_predict import problem
from theory.lemmas import shifts_unequal as lemma
from theory.notation import STATIC as L
from theory.notation import T
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction
from theory.theorems import unequal_scores as page

Gam, gam, leak = lemma.Gam, lemma.gam, lemma.leak


@pytest.mark.parametrize("theorem", [*lemma.PAGES, *page.PAGES], ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


@pytest.mark.parametrize(
    ("place", "claim"),
    [
        ("LOWER", -(1 + Fraction(19, 10) * Gam / gam) * leak <= lemma.shift(L)),
        ("LOWER", -2 * Gam / gam * leak <= lemma.shift(L)),
        ("UPPER", lemma.shift(L) <= Fraction(999, 1000) * Gam * leak),
        ("UPPER", lemma.shift(L) <= gam * leak),
    ],
)
def test_a_smaller_shift_is_not_proved(place, claim, monkeypatch):
    monkeypatch.setattr(lemma, place, claim)
    with pytest.raises(KernelError):
        getattr(lemma, f"prove_{place.lower()}")()


@pytest.mark.parametrize("c0", [(Gam + 2 * Gam / gam) * (T - 1), (Gam + 1 + Gam / gam) * (T - 1)])
def test_a_smaller_constant_does_not_cover_the_shifts(c0, monkeypatch):
    page.facts_now()
    monkeypatch.setattr(page, "C0", c0)
    with pytest.raises(KernelError):
        page.facts_now()


def test_a_laxer_threshold_is_not_kept(monkeypatch):
    page.past_threshold_now()
    gap = page.R_B * page.r_max - page.height(page.layer(page.t0).W)
    monkeypatch.setattr(page, "PAST_THRESHOLD", Gam * ((T - 1) * page.exp(gap)) <= gam)
    with pytest.raises(KernelError):
        page.past_threshold_now()


@pytest.mark.parametrize("seed", range(6))
def test_the_shifts_hold_on_random_layers(seed):
    print("seed", seed)
    at, rng = problem(seed, equal=False), np.random.default_rng(seed)
    K, sequence = at.gram(), at.constraint_sequence
    alpha = np.linalg.solve(K, np.ones(len(K)))
    best = at.scores[np.arange(at.n), at.optimal]
    other = best[sequence] - at.score_gaps
    w = at.score_gaps / (1 + np.exp(best[sequence])) / at.n
    smallest, largest = at.score_gaps.min(), at.score_gaps.max()
    tried = 0
    for _ in range(400):
        mu = K @ (alpha * rng.exponential(15) + rng.standard_normal(len(K)) * 0.3)
        bound = (at.T - 1) * np.exp(-mu.min())
        if 2 * largest * bound > smallest:
            continue
        tried += 1
        weights = np.bincount(sequence, np.exp(-mu), minlength=at.n)
        p = 1 / (1 + weights)
        mean = p * (best + np.bincount(sequence, np.exp(-mu) * other, minlength=at.n))
        c = p[sequence] * np.exp(-mu) * (mean[sequence] - other) / at.n / (1 + np.exp(mean[sequence]))
        shift = np.log(c / w) + mu
        assert shift.min() >= -(1 + 2 * largest / smallest) * bound - 1e-9
        assert shift.max() <= largest * bound + 1e-9
    assert tried > 20
