"""Verdicts: bounds held against runs; a broken bound is seen, an unmet hypothesis is never claimed over."""

import dataclasses
import math

import numpy as np
import pytest

import theory
from numerics import GradientDescent, NormalizedGD, Polyak, train
from numerics.datasets import load
from numerics.errors import InputError
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from theory import catalog, notation
from theory.hypotheses import checks
from theory.proof.terms import Term, exp, free, real
from theory.verdict import ratios

RULES = {"ngd": NormalizedGD(0.1), "gd": GradientDescent(1.0), "polyak": Polyak()}


@pytest.mark.parametrize("rule", RULES)
def test_every_claimed_bound_holds_on_gaussian_data(rule: str) -> None:
    run = train(load("gaussian", seed=3), RULES[rule], steps=200, space="weight")
    verdicts = theory.check_all(run)
    assert {v.theorem for v in verdicts} == {k for k, p in theory.theorems().items() if p.rate}
    assert any(v.holds for v in verdicts)
    for v in verdicts:
        assert v.holds is not False, v
        assert "recorded" not in v.hypotheses, v
        if v.holds:
            assert v.worst_ratio <= 1 + 1e-9
            assert v.steps.shape == v.observed.shape == v.bound.shape


def test_unequal_scores_claim_nothing_that_needs_equal_ones() -> None:
    run = train(load("digits:3v5", seed=0), NormalizedGD(0.1), steps=50, space="weight")
    verdict = theory.check(run, "norm-growth")
    assert verdict.holds is None
    assert math.isnan(verdict.worst_ratio)
    assert verdict.hypotheses["E"].state == "fails"


@pytest.mark.parametrize("key", ["norm-growth", "path-lower", "sparsification"])
def test_a_corrupted_bound_is_violated(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(load("gaussian", seed=3), NormalizedGD(0.1), steps=500, space="weight")
    assert theory.check(run, key).holds
    page = theory.theorems()[key]
    assert page.rate is not None
    factor = real(10) if page.rate.sense == "lower" else 1 / real(10**6)
    broken = dataclasses.replace(page, rate=dataclasses.replace(page.rate, bound=factor * page.rate.bound))
    monkeypatch.setattr(catalog, "theorems", lambda: {key: broken})
    verdict = theory.check(run, key)
    assert verdict.holds is False
    assert verdict.worst_ratio > 1


def test_an_unknown_theorem_is_an_input_error() -> None:
    run = train(load("gaussian", seed=3), NormalizedGD(0.1), steps=2, space="weight")
    with pytest.raises(InputError, match="no theorem about runs"):
        theory.check(run, "no-such-theorem")
    with pytest.raises(InputError, match="no theorem about runs"):
        theory.check(run, "paper-global")


def test_ratios_count_how_far_an_inequality_is_used_up() -> None:
    small = np.array([1.0, 2.0, -1.0, -3.0, 0.0, 1.0, np.nan])
    large = np.array([2.0, 1.0, 1.0, -1.0, 0.0, 0.0, 1.0])
    out = ratios(small, large)
    assert out[:5] == pytest.approx([0.5, 2.0, 0.0, 1 / 3, 0.0])
    assert out[5] == np.inf
    assert np.isnan(out[6])


def test_a_solution_that_is_not_max_margin_voids_every_verdict_that_speaks_of_it() -> None:
    problem = load("gaussian", seed=3)
    honest = train(problem, NormalizedGD(0.1), steps=20)
    assert honest.target is not None
    for scale in (0.2, 5.0, np.linspace(0.5, 2, problem.n_constraints)):  # too short, too long, crooked
        target = MaxMargin.from_dual(problem, honest.target.dual * scale, "by hand")
        verdicts = theory.check_all(train(problem, NormalizedGD(0.1), steps=20, target=target))
        for v in verdicts:
            assert v.holds is None or "S" not in v.hypotheses, v
        assert any(
            v.hypotheses.get("S") and "not the max-margin" in v.hypotheses["S"].detail for v in verdicts
        )


def test_pages_that_speak_of_a_solution_ask_that_it_is_the_recorded_one() -> None:
    for page in theory.theorems().values():
        if page.rate and page.claim is not None:
            names = free(page.claim).union(*map(free, page.hypotheses.values()))
            assert ("vsym", "M") not in names or "S" in checks(page), page.key
            assert ("vsym", "u_mm") not in names or "decoder separable" in checks(page), page.key


def test_another_optimizer_is_held_to_no_page_about_steps_along_the_gradient() -> None:
    torch = pytest.importorskip("torch")
    run = train(
        load("gaussian", seed=3),
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.1),
        steps=20,
        space="weight",
    )
    verdicts = {v.theorem: v for v in theory.check_all(run)}
    assert verdicts["loss"].holds  # about any W
    for key, page in theory.theorems().items():
        if page.rate and notation.update_is() in page.hypotheses.values():
            assert verdicts[key].holds is None
            assert verdicts[key].hypotheses["gradient steps"].state == "fails"


def test_single_precision_breaks_no_bound_by_rounding() -> None:
    run = train(load("gaussian", seed=0), NormalizedGD(0.1), steps=500, space="weight", dtype="float32")
    verdict = theory.check(run, "norm-upper")  # an equality at the first steps
    assert verdict.holds is None
    assert "rounding" in verdict.hypotheses["recorded"].detail


@pytest.mark.parametrize("shift", [-1000.0, 1000.0])
def test_scores_beyond_the_range_of_exp_break_no_bound(shift: float) -> None:
    given = load("gaussian", seed=3)
    unit = given.decoder / (given.decoder @ given.decoder)
    tokens = given.tokens + given.labels[:, None, None] * shift * unit
    problem = Problem(tokens, given.queries, given.labels, given.decoder)
    verdicts = theory.check_all(train(problem, NormalizedGD(0.1), steps=50))
    assert not [v for v in verdicts if v.holds is False]


def test_what_floats_cannot_hold_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    run = train(load("gaussian", seed=3), NormalizedGD(0.1), steps=20)
    page = theory.theorems()["norm-growth"]
    assert page.rate is not None
    for factor, holds in ((exp(real(10**4)), False), (exp(real(10**4)) - exp(real(10**4)), None)):
        rate = dataclasses.replace(page.rate, bound=Term(("add", factor, page.rate.bound)))
        broken = dataclasses.replace(page, rate=rate)
        monkeypatch.setattr(catalog, "theorems", lambda broken=broken: {"norm-growth": broken})
        verdict = theory.check(run, "norm-growth")
        assert verdict.holds is holds
    assert "beyond floats" in verdict.hypotheses["recorded"].detail


def test_one_constraint_and_a_long_first_step_break_no_bound() -> None:
    """Both sides are rounding: W lies along W_mm."""
    problem = Problem(
        np.array([[[1.0, 0.3], [0.0, 2.1]]]), np.array([[0.7, 0.2]]), np.array([1.0]), np.eye(2)[0]
    )
    for init in (None, np.array([[0.1, -0.2], [0.3, 0.05]])):
        run = train(problem, GradientDescent(1e5), steps=5, init=init, space="weight")
        assert theory.check(run, "global-direction").holds is not False


def test_polyak_steps_at_logits_beyond_float_are_not_judged() -> None:
    problem = Problem(
        np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[1.0, 0.0]]), np.array([1.0]), np.eye(2)[0]
    )
    run = train(problem, Polyak(), steps=3, init=np.array([[-60.0, 0.0], [60.0, 0.0]]))
    verdict = theory.check(run, "polyak-step-upper-direction")
    assert verdict.holds is None
