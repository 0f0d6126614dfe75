"""Joint training, the decoder: the pages prove, and no stronger bound has their proof."""

import dataclasses

import pytest

from theory import notation as nt
from theory.lemmas import joint_decoder as jd
from theory.lemmas import joint_loss as jo
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, log, real
from theory.theorems import joint_loss as page

PAGES = (*jo.PAGES, *jd.PAGES, *page.PAGES)


@pytest.mark.parametrize("theorem", PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_no_page_speaks_of_w():
    """The decoder's theorems hold whatever the weights do: neither W nor its steps occur in them."""
    for theorem in page.PAGES:
        said = repr([*theorem.hypotheses.values(), theorem.claim])
        assert "W[" not in said
        assert "e[" not in said.replace("phi[", "").replace("inverse[", "")


def smooth_with(last):
    first = log(jo.over(nt.logistic(jo.m))) - jo.over(jo.b * jo.slope(jo.m)) / jo.over(nt.logistic(jo.m))
    return log(jo.over(nt.logistic(jo.m + jo.b))) <= first + last


def test_the_varied_claim_is_the_page_s():
    assert smooth_with(jo.r**2 / 2) == jo.SMOOTH_CLAIM


@pytest.mark.parametrize("last", [jo.r**2 * Fraction(499, 1000), jo.r / 2, real(0)], ids=str)
def test_no_smaller_curvature(last, monkeypatch):
    monkeypatch.setattr(jo, "SMOOTH_CLAIM", smooth_with(last))
    with pytest.raises(KernelError):
        jo.prove_smooth()


def test_no_larger_share(monkeypatch):
    monkeypatch.setattr(jo, "SHARE_CLAIM", nt.logistic(jo.m_) <= jo.slope(jo.m_))
    with pytest.raises(KernelError):
        jo.prove_share()


def test_no_smaller_factor(monkeypatch):
    monkeypatch.setattr(jo, "FACTOR_CLAIM", nt.logistic(jo.m_ - jo.y) <= (1 + jo.y) * nt.logistic(jo.m_))
    with pytest.raises(KernelError):
        jo.prove_factor()


RATES = {
    "one leak of attention": nt.decoder_margin - jd.eps * nt.R_d - (1 - exp(-jd.leak)) * nt.R_o,
    "half the leak of scores": nt.decoder_margin
    - 2 * jd.eps * nt.R_d
    - Fraction(1, 2) * (1 - exp(-jd.leak)) * nt.R_o,
    "no leak": nt.decoder_margin,
}


@pytest.mark.parametrize("rate", RATES)
def test_no_faster_descent(rate, monkeypatch):
    stronger = RATES[rate] * jd.mass * nt.norm(jd.S.descent) <= jd.OPTIMAL_PULL
    monkeypatch.setattr(jd, "DESCENT_CLAIM", stronger)
    with pytest.raises(KernelError):
        jd.prove_descent()


EXPONENTS = {
    "half the curvature": -page.PACE * page.travelled(page.t)
    + Fraction(1, 4) * nt.R_o**2 * page.squares(page.t),
    "twice the pace": -2 * page.PACE * page.travelled(page.t) + page.half * nt.R_o**2 * page.squares(page.t),
    "no curvature": -page.PACE * page.travelled(page.t),
    "no share": -page.RATE * page.travelled(page.t) + page.half * nt.R_o**2 * page.squares(page.t),
}


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_no_faster_decay(exponent):
    start = page.at(page.t0).optimal_loss()
    body = page.at(page.END).optimal_loss() <= start * exp(EXPONENTS[exponent])
    with pytest.raises(KernelError):
        page.follows(body, page.specialize(page.OPTIMAL.proved(), page.t))


@pytest.mark.parametrize("name", ["the leaks are small", "u_mm separates the optimal tokens", "update of u"])
def test_no_hypothesis_is_idle(name):
    fewer = {k: f for k, f in page.LOSS.hypotheses.items() if k != name}
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(page.LOSS, key="fewer", hypotheses=fewer).proved()
