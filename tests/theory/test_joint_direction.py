"""Joint training, the weights: the pages prove, and no stronger bound has their proof."""

import dataclasses

import pytest

from theory import notation as nt
from theory.lemmas import joint_alignment as ja
from theory.lemmas import joint_layer as jl
from theory.notation import N, R, kappa_run, margin
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, inner, lambertw, real
from theory.theorems import joint_direction as page

LEMMAS = (*jl.PAGES, *ja.PAGES)


@pytest.mark.parametrize("theorem", [*LEMMAS, *page.PAGES], ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_no_page_asks_for_equal_scores_or_a_fixed_decoder():
    for theorem in page.PAGES:
        assert not {"(E)", "a_min", "a_max", "G", "g"} & set(theorem.hypotheses)


def constant(count=N - 1, ratio=kappa_run, shift=-1):
    return lambertw(count * ratio * exp(real(shift)))


@pytest.mark.parametrize(
    "smaller",
    [
        constant(count=N - 2),
        constant(ratio=real(1)),
        constant(shift=-2),
        constant() * Fraction(1, 2),
        real(0),
    ],
    ids=["N - 2", "no ratio", "e^2", "half", "none"],
)
def test_no_smaller_constant_aligns(smaller, monkeypatch):
    monkeypatch.setattr(ja, "Lam", smaller)
    monkeypatch.setattr(ja, "B", margin * nt.norm(ja.L.W) + smaller)
    monkeypatch.setattr(ja, "HEIGHT", kappa_run * nt.omega_min() * exp(-ja.B - 1))
    monkeypatch.setattr(ja, "CLAIM", inner(ja.L.descent, ja.L.W) <= ja.B * inner(ja.L.descent, nt.M))
    with pytest.raises((KernelError, IndexError, TypeError)):
        ja.prove_alignment()


STRONGER = {
    page.SEPARATOR: page.component(page.t0) + 2 * margin * page.separated(page.t) <= page.component(page.END),
    page.COMPONENT: page.component(page.t0) + margin * page.travelled(page.t) <= page.component(page.END),
    page.SHARP: page.gap_to(page.END) <= page.SHARP_BOUND * Fraction(999, 1000),
    page.DIRECTION: page.gap_to(page.END) <= page.SHARP_BOUND,
    page.PATH: page.gap_to(page.END) <= page.PATH_BOUND * (margin / R),
}


@pytest.mark.parametrize("theorem", STRONGER, ids=lambda theorem: theorem.key)
def test_a_stronger_claim_is_refused(theorem):
    with pytest.raises(ProofError):
        dataclasses.replace(theorem, key="stronger", claim=nt.always(STRONGER[theorem])).proved()


@pytest.mark.parametrize(
    "name", ["the smallest weight is positive", "W has a component along M at t0", "(S)"]
)
def test_no_hypothesis_is_idle(name):
    fewer = {k: f for k, f in page.PATH.hypotheses.items() if k != name}
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(page.PATH, key="fewer", hypotheses=fewer).proved()


def test_a_factor_short_of_the_curvature_has_no_proof(monkeypatch):
    monkeypatch.setattr(page, "half", Fraction(499, 1000))
    with pytest.raises(KernelError):
        page.one_step()


def test_the_logarithm_cannot_be_dropped():
    end = page.component(page.t0) + margin * page.travelled(page.t) / R
    claim = nt.always(page.gap_to(page.END) <= (page.lag(page.t0) + page.START_COST) / end)
    shorter = dataclasses.replace(page.PATH, key="shorter", claim=claim)
    with pytest.raises(ProofError):
        shorter.proved()
