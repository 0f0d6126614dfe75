"""Certified verdicts: proved, disproved or open, and never one of them for another."""

import dataclasses
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from flint import arb

import theory
from attnrates.cli import run as command
from numerics import GradientDescent, NormalizedGD, Polyak, certify, train
from numerics.certified import CertifiedRun
from numerics.datasets import load
from numerics.errors import InputError
from theory import catalog, certified_verdict
from theory.certified_verdict import check_certified, check_certified_run, decide
from theory.notation import t
from theory.observables import observe
from theory.proof.terms import number, real

RULES = {"gd": GradientDescent(2.0), "ngd": NormalizedGD(0.1), "polyak": Polyak(cap=1.0)}
PRESETS = {
    "gaussian": "gaussian",
    "gaussian-own-query": "gaussian:query=own",
    "gaussian-two-tokens": "gaussian:n=3,T=2,d=100",
    "digits": "digits:3v5,n=10",
}


@cache
def certified(preset: str, rule: str, seed: int = 1, steps: int = 40) -> CertifiedRun:
    """A certified run from zero."""
    return certify(train(load(PRESETS[preset], seed=seed), RULES[rule], steps=steps, space="gram", seed=seed))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("preset", [*PRESETS, "digits-twenty"])
def test_every_claimed_bound_is_proved_on_the_presets_for_a_thousand_steps(
    preset: str, rule: str, seed: int
) -> None:
    print("seed", seed)
    spec = PRESETS.get(preset, "digits:3v5")
    run = train(load(spec, seed=seed), RULES[rule], steps=1000, space="gram", seed=seed)
    found, verdicts = decide(run)
    outcomes = {v.theorem: v.outcome for v in verdicts}
    assert set(outcomes.values()) <= {"holds", "not claimed"}, outcomes
    assert "holds" in outcomes.values()
    assert found.radius < 1e-20
    assert found.outside() == []


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_claimed_bound_is_proved_on_the_presets(preset: str, rule: str) -> None:
    found = check_certified_run(certified(preset, rule))
    outcomes = {v.theorem: v.outcome for v in found}
    assert set(outcomes.values()) <= {"holds", "not claimed"}, outcomes
    floats = {v.theorem: v for v in theory.check_all(certified(preset, rule).run)}
    assert outcomes.keys() == floats.keys()
    for v in found:
        if v.outcome == "holds":
            assert floats[v.theorem].holds
            assert set(v.decided) == {"holds"}
            assert v.open_width == 0
            assert v.worst is None or abs(v.worst[1][1] - floats[v.theorem].worst_ratio) < 1e-6
    assert sum(outcome == "holds" for outcome in outcomes.values()) >= (2 if preset == "digits" else 9)


def test_a_random_start_is_proved_too() -> None:
    problem = load("gaussian:n=3,T=2,d=60", seed=2)
    init = np.random.default_rng(2).standard_normal((60, 60))
    run = train(problem, NormalizedGD(0.2), steps=80, init=3 * init / np.linalg.norm(init), space="gram")
    outcomes = {v.theorem: v.outcome for v in decide(run)[1]}
    assert set(outcomes.values()) <= {"holds", "not claimed"}, outcomes
    assert outcomes["norm-growth"] == "holds"


@pytest.mark.parametrize(
    "key", ["norm-growth", "path-lower", "sparsification", "separator-growth", "global-direction"]
)
def test_a_corrupted_bound_is_disproved(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = theory.theorems()[key]
    assert page.rate is not None
    factor = real(10) if page.rate.sense == "lower" else 1 / real(10**6)
    broken = dataclasses.replace(page, rate=dataclasses.replace(page.rate, bound=factor * page.rate.bound))
    monkeypatch.setattr(catalog, "theorems", lambda: {key: broken})
    verdict = check_certified(certified("gaussian", "ngd", steps=300), key)
    assert verdict.outcome == "fails"
    assert verdict.worst is not None
    assert verdict.worst[1][0] > 1


def test_an_equality_is_decided_by_algebra_or_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    run = certified("gaussian", "ngd")  # full support: <W_t, M> = <W_0, M> + S_t
    verdict = check_certified(run, "separator-growth")
    assert verdict.outcome == "holds"
    assert verdict.identities == len(verdict.steps) > 0
    monkeypatch.setattr(certified_verdict._Reading, "_identities", lambda *_: {})
    verdict = check_certified(run, "separator-growth")
    assert verdict.outcome == "tight"
    assert "undecided" in verdict.decided
    assert 0 < verdict.open_width < 1e-15


def test_the_least_violation_of_an_equality_is_disproved() -> None:
    run = certified("gaussian", "ngd")
    nudged = tuple(ball - arb(1e-30) for ball in run.separator_excess)
    assert (
        check_certified(dataclasses.replace(run, separator_excess=nudged), "separator-growth").outcome
        == "fails"
    )


def test_wide_enclosures_decide_nothing() -> None:
    run = certified("gaussian", "ngd")
    wide = {name: tuple(ball * arb(1, 0.9) for ball in column) for name, column in run.balls.items()}
    outcomes = {v.theorem: v.outcome for v in check_certified_run(dataclasses.replace(run, balls=wide))}
    assert "fails" not in outcomes.values()
    assert outcomes["norm-growth"] == outcomes["path-lower"] == "undecided"


def test_an_open_comparison_raises_the_precision() -> None:
    run = train(load(PRESETS["gaussian-two-tokens"], seed=1), Polyak(1.0), steps=500, space="gram")
    first = certify(run)
    key = "polyak-step-upper-direction"  # the sides approach each other like exp(-||W_t||)
    assert check_certified(first, key).outcome == "tight"
    final, verdicts = decide(run)
    assert final.bits > first.bits
    assert {v.theorem: v.outcome for v in verdicts}[key] == "holds"
    capped, verdicts = decide(run, max_bits=first.bits)
    assert capped.bits == first.bits
    assert {v.theorem: v.outcome for v in verdicts}[key] == "tight"


@pytest.mark.parametrize("base", [None, number(1), certified_verdict.START])
def test_balls_and_floats_speak_of_the_same_terms(base: theory.proof.terms.Index | None) -> None:
    run = certified("gaussian", "ngd")
    reading = certified_verdict._Reading(run)
    here = t if base is None else base + t
    start = 3
    floats, _ = observe(run.run, start, base)
    begin = 0 if base is None else base[2] if not base[1] else int(run.steps[start])
    balls = reading.values(10, here, begin, base, start)
    assert set(floats) <= set(balls)
    for term in floats:
        value = floats[term]
        value = value() if callable(value) else value
        value = float(np.broadcast_to(value, len(run.steps) - start)[10 - start])
        ball = balls[term]
        ball = ball() if callable(ball) else ball
        assert abs(arb(value) - ball).mid() <= 1e-9 * max(1e-12, abs(value)), term


def test_hypotheses_are_not_claimed_over() -> None:
    verdict = check_certified(certified("digits", "ngd"), "norm-growth")
    assert verdict.outcome == "not claimed"
    assert verdict.hypotheses["E"].state == "fails"
    bare = certify(dataclasses.replace(certified("gaussian", "ngd").run, target=None))
    outcomes = {v.theorem: v.outcome for v in check_certified_run(bare)}
    assert outcomes["separator-growth"] == "not claimed"
    with pytest.raises(InputError, match="no theorem about runs"):
        check_certified(bare, "no-such-theorem")


def test_check_certified_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = certified("gaussian-two-tokens", "ngd").run
    good.save(tmp_path / "good")
    assert command(["check", str(tmp_path), "--certified", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["certified"]
    assert not found["outside"]
    assert found["radius"] < 1e-20
    assert max(found["float_error"].values()) < 1e-9
    outcomes = {v["outcome"] for v in found["verdicts"]}
    assert {"holds"} <= outcomes <= {"holds", "not claimed"}
    stored = json.loads((tmp_path / "certified.json").read_text())
    assert [x["float_error"] for x in stored] == [found["float_error"]]
    assert command(["check", str(tmp_path / "good"), "--certified"]) == 0
    assert (tmp_path / "good.certified.json").exists()
    printed = capsys.readouterr().out
    assert "norm-growth" in printed
    assert f"largest error of the float run {max(found['float_error'].values()):.1e}" in printed
    recorded = dict(good.recorded) | {"weight_norm": good.recorded["weight_norm"] * (1 + 1e-8)}
    dataclasses.replace(good, recorded=recorded).save(tmp_path / "good")
    assert command(["check", str(tmp_path), "--certified"]) == 1
    assert "off by more than" in capsys.readouterr().out
