"""The component along M keeps up with the path: proved, with no stronger constant, true on runs."""

import pytest

from theory.notation import M
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, norm
from theory.theorems import separator_gap as page
from theory.theorems import sharp_residual as sharp


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


L_b, kap, t0 = page.L_b, page.kap, page.t0
tail = page.Gam * exp(-2 * page.height(page.layer(t0).W))
STORES = {
    "less": Fraction(999, 1000) * page.store(t0),
    "no tail": L_b / kap * norm(M) * page.distance(t0),
    "half the tail": L_b / kap * norm(M) * (page.distance(t0) + tail),
    "half the start": L_b / kap * norm(M) * (page.distance(t0) / 2 + 2 * tail),
    "without the margin": L_b / kap * page.tail_after(t0),
}


@pytest.mark.parametrize("name", STORES)
def test_a_smaller_store_does_not_pay(name, monkeypatch):
    page.prove_behind()
    step = page.step_behind()
    store = page.store
    monkeypatch.setattr(page, "step_behind", lambda: step)
    monkeypatch.setattr(page, "store", lambda at: STORES[name] if at == t0 else store(at))
    with pytest.raises(KernelError):
        page.prove_behind()


far, push = sharp.far, exp(sharp.one) * sharp.drift
LENGTHS = {
    "half the drift": L_b / kap * norm(M) * (far**2 + push**2),
    "no drift": L_b / kap * norm(M) * far**2,
    "nearer start": L_b / kap * norm(M) * (norm(page.rs.r_star) ** 2 + 2 * push**2),
    "less": Fraction(999, 1000) * page.LOST,
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_shorter_explicit_length_is_not_proved(name, monkeypatch):
    page.prove_explicit()
    monkeypatch.setattr(page, "LOST", LENGTHS[name])
    with pytest.raises(KernelError):
        page.prove_explicit()
