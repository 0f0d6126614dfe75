"""Theorem A(ii): its pages prove, and fail once a claim is strengthened or a hypothesis weakened."""

import dataclasses

import pytest

from theory import notation as nt
from theory.notation import A, R, e0, i, layer, margin, s, separator_path, t, tau
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, inner, norm, real
from theory.theorems import alignment_time as page

NOW, START, t0 = layer(t), page.START, page.t0


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda p: p.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


STRONGER = [
    (page.PATH_GROWS, nt.always(nt.always(separator_path(t) < separator_path(t + s), s))),
    (page.GAPS, nt.always(nt.each(inner(A(i, tau), START) <= NOW.gap(i, tau)))),
    (page.REACH, nt.always(margin * separator_path(t) <= norm(NOW.W))),
    (page.REACH, nt.always(2 * margin * separator_path(t) - norm(START) <= norm(NOW.W))),
    (page.ALIGNMENT_TIME, nt.always(nt.each(real(0) <= layer(t0 + s).gap(i, tau)), s)),
    (page.ALIGNMENT_TIME, nt.always(nt.gaps_bounded(layer(s)), s)),
    (page.NONZERO, nt.always(real(0) < norm(layer(s).W), s)),
]


@pytest.mark.parametrize("case", range(len(STRONGER)))
def test_a_stronger_claim_is_not_proved(case):
    theorem, claim = STRONGER[case]
    with pytest.raises(ProofError):
        dataclasses.replace(theorem, claim=claim).proved()


def path_reaches(time):
    return time <= separator_path(t0)


WEAKER_HYPOTHESES = {
    "no margin in the time": ("PATH_ALIGNS", path_reaches(R * norm(START) / (margin**2 - e0))),
    "R halved": ("PATH_ALIGNS", path_reaches((R / 2 + margin) * norm(START) / (margin**2 - e0))),
    "margin less": (
        "PATH_ALIGNS",
        path_reaches((R + margin * Fraction(9, 10)) * norm(START) / (margin**2 - e0)),
    ),
    "margin squared": ("PATH_ALIGNS", path_reaches((R + margin**2) * norm(START) / (margin**2 - e0))),
    "no e0": ("PATH_ALIGNS", path_reaches((R + margin) * norm(START) / margin**2)),
    "sign of e0": ("PATH_ALIGNS", path_reaches((R + margin) * norm(START) / (margin**2 + e0))),
    "less acute than allowed": ("ACUTE_BOUND", e0 < 2 * margin**2),
    "e0 may reach the margin": ("ACUTE_BOUND", e0 <= margin**2),
}


@pytest.mark.parametrize("name", WEAKER_HYPOTHESES)
def test_a_weaker_hypothesis_does_not_serve(name, monkeypatch):
    symbol, formula = WEAKER_HYPOTHESES[name]
    page.prove_alignment_time()
    monkeypatch.setattr(page, symbol, formula)
    with pytest.raises(KernelError):
        page.prove_alignment_time()


@pytest.mark.parametrize(
    "formula",
    [norm(START) <= margin * separator_path(t0), norm(START) < 2 * margin * separator_path(t0)],
    ids=["not strict", "half as far"],
)
def test_the_start_must_be_left(formula, monkeypatch):
    monkeypatch.setattr(page, "PATH_LEAVES_START", formula)
    with pytest.raises(KernelError):
        page.prove_nonzero()
