"""Joint training, the decoder's direction: the pages prove, and no stronger bound has their proof."""

import dataclasses

import pytest

from theory import notation as nt
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, inner, lambertw, real
from theory.theorems import joint_decoder_direction as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


CONSTANTS = {
    "n - 2": lambertw(2 * (page.n - 2) * exp(real(-1))),
    "the exponential loss's": lambertw((page.n - 1) * exp(real(-1))),
    "none": real(0),
}


@pytest.mark.parametrize("constant", CONSTANTS)
def test_no_smaller_constant_aligns(constant, monkeypatch):
    smaller = CONSTANTS[constant]
    bound = nt.decoder_margin * page.norm(page.S.u) + smaller
    monkeypatch.setattr(page, "Lam", smaller)
    monkeypatch.setattr(page, "B", bound)
    monkeypatch.setattr(page, "HEIGHT", exp(-bound - 1))
    aligned = page.theta * inner(page.S.descent, page.S.u) <= bound * inner(page.S.descent, page.U)
    monkeypatch.setattr(page, "ALIGNED", aligned)
    with pytest.raises((KernelError, IndexError, TypeError)):
        page.prove_alignment()


def test_the_leak_cannot_be_dropped(monkeypatch):
    monkeypatch.setattr(
        page, "ALIGNED", inner(page.S.descent, page.S.u) <= page.B * inner(page.S.descent, page.U)
    )
    with pytest.raises(KernelError):
        page.prove_alignment()


BOUNDS = {
    "no leak": page.BOUND - (1 - page.theta),
    "half the curvature": page.BOUND - Fraction(1, 2) * page.RECORDED / page.size(page.END),
    "no start": page.BOUND - page.theta * page.size(page.t0) / page.size(page.END),
    "no logarithm": page.BOUND - page.turned(page.t0, page.END) / page.size(page.END),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_stronger_claim_is_refused(bound):
    claim = nt.always(page.gap(page.END) <= BOUNDS[bound])
    with pytest.raises(ProofError):
        dataclasses.replace(page.DIRECTION, key="stronger", claim=claim).proved()
