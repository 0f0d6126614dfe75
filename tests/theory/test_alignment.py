"""The alignment lemma: proved, not provable when strengthened, true on random layers and nearly tight."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.theory.instances import instance, weights
from theory import notation as nt
from theory.evaluate import by_canonical, value
from theory.lemmas import alignment, max_margin
from theory.notation import STATIC as L
from theory.notation import M, N, T, a_max, a_min, kappa, margin
from theory.page import ProofError
from theory.proof.kernel import KernelError, assume
from theory.proof.terms import Fraction, eq, exp, inner, lambertw, log, norm, real

PAGES = (*alignment.PAGES, max_margin.OPTIMALITY)
E = exp(real(-1))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(page):
    assert page.proved().conclusion == page.claim
    assert page.status == "proved"


def claim(Lam, part=1, scale=1):
    """The lemma's claim with Lam in some places, times a factor."""
    slack = Lam if part == 1 else part * Lam
    left = nt.lam(L) / (nt.lam(L) + slack) * (inner(L.descent, L.W) / norm(L.W))
    return (left if scale == 1 else scale * left) <= margin * inner(L.descent, M)


def replace_constant(monkeypatch, Lam, statement=None, height=1):
    """Let the page's own proof run with another constant."""
    B = alignment.lam + Lam
    monkeypatch.setattr(alignment, "Lam", Lam)
    monkeypatch.setattr(alignment, "B", B)
    monkeypatch.setattr(alignment, "h", height * a_max * exp(-B - 1))
    monkeypatch.setattr(alignment, "PRODUCT", inner(L.descent, L.W) <= B * inner(L.descent, M))
    monkeypatch.setattr(alignment, "CLAIM", claim(Lam) if statement is None else statement)


def try_to_prove(monkeypatch, Lam, statement=None, height=1):
    """Run the proof with another constant, which is given everything a Lambert W of its argument has."""
    replace_constant(monkeypatch, Lam, statement, height)
    argument = Lam[2]
    facts = assume(Lam >= 0), assume(eq(Lam * exp(Lam), argument))
    monkeypatch.setattr(alignment, "constant_is", lambda: facts)
    return alignment.prove_alignment()


def test_the_trial_proves_the_true_constant(monkeypatch):
    assert try_to_prove(monkeypatch, nt.Lam).conclusion == alignment.ALIGNMENT.claim


STRONGER_CONSTANTS = {
    "T for T^2": (N - 1) * kappa * T * E,
    "N - 2 for N - 1": (N - 2) * kappa * T**2 * E,
    "half of it": Fraction(1, 2) * (N - 1) * kappa * T**2 * E,
    "exp(-2) for exp(-1)": (N - 1) * kappa * T**2 * exp(real(-2)),
    "no kappa": (N - 1) * T**2 * E,
    "kappa inverted": (N - 1) * a_min / a_max * T**2 * E,
    "T - 1 for T": (N - 1) * kappa * (T - 1) ** 2 * E,
}


@pytest.mark.parametrize("name", STRONGER_CONSTANTS)
def test_a_smaller_constant_is_not_proved(name, monkeypatch):
    with pytest.raises(KernelError):
        try_to_prove(monkeypatch, lambertw(STRONGER_CONSTANTS[name]))


def test_a_logarithm_does_not_replace_lambert_w(monkeypatch):
    constant = log((N - 1) * kappa * T**2 * E)
    with pytest.raises(ProofError):
        dataclasses.replace(alignment.ALIGNMENT, claim=claim(constant)).proved()
    replace_constant(monkeypatch, constant)
    with pytest.raises(KernelError):
        alignment.prove_alignment()


STRONGER_CLAIMS = {
    "half of Lam in the denominator": claim(nt.Lam, part=Fraction(1, 2)),
    "no Lam": claim(nt.Lam, part=0),
    "1% more": claim(nt.Lam, scale=Fraction(101, 100)),
}


@pytest.mark.parametrize("name", STRONGER_CLAIMS)
def test_a_stronger_claim_is_not_proved(name, monkeypatch):
    with pytest.raises(ProofError):
        dataclasses.replace(alignment.ALIGNMENT, claim=STRONGER_CLAIMS[name]).proved()
    with pytest.raises(KernelError):
        try_to_prove(monkeypatch, nt.Lam, STRONGER_CLAIMS[name])


@pytest.mark.parametrize("factor", [nt.lam(L), nt.lam(L) + nt.Lam / 2, Fraction(99, 100) * alignment.B])
def test_no_smaller_factor_is_proved_in_the_product_form(factor, monkeypatch):
    monkeypatch.setattr(alignment, "PRODUCT", inner(L.descent, L.W) <= factor * inner(L.descent, M))
    with pytest.raises(KernelError):
        alignment.prove_product()


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(99, 100)])
def test_no_lower_cap_on_a_share_is_proved(factor, monkeypatch):
    with pytest.raises(KernelError):
        try_to_prove(monkeypatch, nt.Lam, height=factor)


@pytest.mark.parametrize("power", [0, 2])
def test_no_other_power_of_the_margin_bounds_the_least_gap(power, monkeypatch):
    wrong = max_margin.b <= margin**power * norm(L.W)
    monkeypatch.setattr(max_margin, "CLAIM", wrong)
    with pytest.raises(KernelError):
        max_margin.prove_optimality()


def terms_of(at, W):
    """The values of the claim's terms on a layer."""
    k = at.problem.constraint_sequence
    low, high = (at.G / (1 + np.exp(at.g + at.G * p)) / at.problem.n for p in (1, 0))
    D, size = at.descent(W), np.linalg.norm(W)
    return by_canonical(
        {
            inner(M, M): np.sum(at.M**2),
            inner(L.W, L.W): size**2,
            inner(L.descent, L.W): np.sum(D * W),
            inner(L.descent, M): np.sum(D * at.M),
            N: len(k),
            T: int(at.problem.lengths.max()),
            a_min: low.min(),
            a_max: high.max(),
        }
    )


@pytest.mark.parametrize("seed", range(12))
def test_it_holds_on_random_layers(seed):
    print(f"seed {seed}")
    at = instance(seed)
    rng = np.random.default_rng(seed)
    checked = 0
    for trial in range(60):
        W = weights(at, 1000 * seed + trial)
        if trial % 2:  # spread the gaps around lam, where the lemma is tightest
            spread = at.problem.combine(rng.standard_normal(at.problem.n_constraints))
            W = W + 10 ** rng.uniform(-2, 0) * np.linalg.norm(W) * spread / np.linalg.norm(spread)
        lam = at.margin * np.linalg.norm(W)
        W = W * min(1, 300 / max(lam, 1))  # exp(-mu) must not overflow
        if not np.any(W) or at.problem.logit_gaps(W).min() < -at.margin * np.linalg.norm(W):
            continue
        values = terms_of(at, W)
        for page in alignment.PAGES:
            left, right = (value(side, values) for side in page.claim[1:])
            assert left <= right + 1e-12 * abs(right)
        checked += 1
    assert checked
