"""Signs and sizes of the coefficients: proved, not provable when strengthened, true on random layers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.theory.instances import instance, weights
from theory import notation as nt
from theory.lemmas import coefficients as page
from theory.notation import STATIC as L
from theory.notation import G, M, R, a_max, a_min, g, i, n, tau
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, norm, real


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


STRONGER = {
    "attention above 0": (page.ATTENTION_POSITIVE, nt.each_sequence(real(Fraction(1, 100)) < L.p(i))),
    "attention below 1": (page.ATTENTION_AT_MOST_ONE, nt.each_sequence(L.p(i) < 1)),
    "half the attention": (page.ATTENTION_AT_MOST_ONE, nt.each_sequence(2 * L.p(i) <= 1)),
    "lower slope": (page.SLOPE_LOWER, nt.each_sequence(a_min < L.a(i))),
    "upper slope": (page.SLOPE_UPPER, nt.each_sequence(L.a(i) < a_max)),
    "coefficients above 1": (page.COEFFICIENTS_POSITIVE, nt.each(L.c(i, tau) > 1)),
    "mass above 1": (page.MASS_POSITIVE, L.C > 1),
    "solution longer than 1": (page.SOLUTION_NONZERO, norm(M) > 1),
    "R above 1": (page.BOUND_POSITIVE, R > 1),
    "gradient longer than 1": (page.GRADIENT_NONZERO, norm(L.descent) > 1),
}


@pytest.mark.parametrize("name", STRONGER)
def test_a_stronger_claim_is_not_proved(name):
    theorem, claim = STRONGER[name]
    with pytest.raises(ProofError):
        dataclasses.replace(theorem, claim=claim).proved()


WEAKER = {
    "full attention and no gap": ("LOWER_SLOPE_BOUND", a_min <= G(i) / (n * (1 + exp(g(i))))),
    "half the gap": ("LOWER_SLOPE_BOUND", a_min <= G(i) / (n * (1 + exp(g(i) + G(i) / 2)))),
    "twice the slope": ("LOWER_SLOPE_BOUND", a_min <= 2 * G(i) / (n * (1 + exp(g(i) + G(i))))),
    "no attention, but the gap": ("UPPER_SLOPE_BOUND", G(i) / (n * (1 + exp(g(i) + G(i)))) <= a_max),
    "half the slope": ("UPPER_SLOPE_BOUND", G(i) / (2 * n * (1 + exp(g(i)))) <= a_max),
}


@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_bound_on_the_data_does_not_bound_the_slopes(name, monkeypatch):
    hypothesis, body = WEAKER[name]
    monkeypatch.setattr(page, hypothesis, nt.each_sequence(body))
    prove = page.prove_slope_lower if hypothesis == "LOWER_SLOPE_BOUND" else page.prove_slope_upper
    with pytest.raises(KernelError):
        prove()


@pytest.mark.parametrize("seed", range(20))
def test_slopes_lie_between_their_bounds_on_random_layers(seed):
    print(f"seed {seed}")
    at = instance(seed)
    p = at.attention(weights(at, seed))
    low, high = (at.G / (1 + np.exp(at.g + at.G * q)) / at.problem.n for q in (1, 0))
    slopes = at.slopes(p)
    assert np.all((p > 0) & (p <= 1))
    assert np.all((low <= slopes * (1 + 1e-14)) & (slopes <= high * (1 + 1e-14)))
