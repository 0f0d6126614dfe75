"""Theorem C from one step on: its pages prove, no faster; it holds on runs and closes in on the limit."""

import dataclasses

import numpy as np
import pytest

from numerics.datasets import load
from numerics.steps import NormalizedGD
from numerics.training import train
from theory import support_run
from theory.predict import predict
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction
from theory.theorems import explicit_limit as page
from theory.verdict import check


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


STRONGER = {
    "REACH": page.far**2 + Fraction(999, 1000) * page.at_bound(page.lim.P) / page.kap / (page.mu - page.beta),
    "beta": Fraction(1001, 1000) * page.beta,
}


@pytest.mark.parametrize("name", STRONGER)
def test_a_faster_approach_is_not_proved(name, monkeypatch):
    page.near()
    monkeypatch.setattr(page, name, STRONGER[name])
    with pytest.raises(KernelError):
        page.near()


KEY = "unequal-explicit-limit-rate"


@pytest.mark.parametrize("seed", range(4))
def test_it_holds_on_runs_and_has_the_exact_constant(seed):
    """In the end the bound is the observed gap: observed/bound tends to 1 like 1/t."""
    print("seed", seed)
    problem = load("gaussian:n=3,T=2,d=100", seed)
    limit = predict(problem, NormalizedGD(1.0))
    run = train(problem, NormalizedGD(0.5 * float(limit.proved_below.mid())), steps=100_000)
    verdict = check(run, KEY)
    print(verdict.worst_ratio)
    assert verdict.holds
    assert verdict.observed[-1] / verdict.bound[-1] > 0.99


def test_a_run_from_elsewhere_may_leave_the_span_and_is_not_claimed():
    problem = load("gaussian:n=3,T=2,d=100", 0)
    init = np.random.default_rng(0).standard_normal((problem.d, problem.d)) / problem.d
    run = train(problem, NormalizedGD(0.1), steps=1000, init=init)
    verdict = check(run, KEY)
    assert verdict.holds is None
    assert verdict.hypotheses["zero start"].state == "fails"


def test_a_wrong_limit_is_caught(monkeypatch):
    """With nine tenths of the balanced point's length the bound is broken in the end."""
    problem = load("gaussian:n=3,T=2,d=100", 1)
    run = train(problem, NormalizedGD(0.1), steps=100_000)
    real = support_run.constants(problem)
    wrong = dataclasses.replace(real, balanced=real.balanced * 9 / 10)
    monkeypatch.setattr(support_run, "constants", lambda _: wrong)
    verdict = check(run, KEY)
    print(verdict.worst_ratio)
    assert verdict.holds is False
