"""Joint training: observed meets bound, on runs of both regimes; each kind of run is told what it is not.

Strong signal: the layer finds the signal tokens. Weak signal: the decoder fits noise, and the theorems hold
of the noise tokens that it picks, from the step on from which it keeps to them; the check says so.
"""

import dataclasses
from functools import cache

import numpy as np
import pytest

import theory
from numerics import NormalizedGD, Polyak, Run, train
from numerics.certified import certify
from numerics.datasets import load
from numerics.errors import CertificationError
from numerics.joint import train_joint
from theory import catalog, joint_run
from theory.hypotheses import checks
from theory.proof.terms import Fraction, real

SEEDS = range(10)
STEPS = 3000
STEP = NormalizedGD(1.0, exponent=2 / 3)
DATA = {
    "strong": "gaussian:n=8,T=4,d=60,noise=0.2,orthogonal=false",
    "full support": "gaussian:n=4,T=3,d=200,noise=0.25,orthogonal=false",
    "weak": "gaussian:n=8,T=5,d=200,noise=1.0,orthogonal=false",
}
JOINT = [key for key, page in theory.theorems().items() if page.rate and "joint" in checks(page)]


@cache
def joint(regime: str, seed: int, rule: str = "ngd") -> Run:
    """One run, W and the decoder from zero."""
    rules = {"ngd": STEP, "polyak": Polyak(cap=1.0)}
    return train_joint(load(DATA[regime], seed=seed), rules[rule], rules[rule], steps=STEPS, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", ["ngd", "polyak"])
@pytest.mark.parametrize("regime", DATA)
def test_no_bound_is_ever_broken(regime: str, rule: str, seed: int) -> None:
    for verdict in theory.check_all(joint(regime, seed, rule)):
        assert verdict.holds is not False, f"seed {seed}: {verdict}"
        if verdict.holds:
            assert verdict.theorem in JOINT
            assert not np.isnan(verdict.bound).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_with_strong_signal_every_bound_is_claimed(seed: int) -> None:
    run = joint("strong", seed)
    verdicts = {key: theory.check(run, key) for key in JOINT}
    unclaimed = {key: v.hypotheses for key, v in verdicts.items() if not v.holds}
    unmet = {name for c in unclaimed.values() for name, check in c.items() if check.state != "holds"}
    assert unmet <= {"F"}, f"seed {seed}: {unclaimed}"
    assert joint_run.regime(run) == (run.problem.n, run.problem.n)
    settled = verdicts["joint-loss"].hypotheses["settled tokens"]
    assert settled.state == "holds"
    assert settled.detail.endswith("are the signal tokens")


def test_with_strong_signal_the_loss_bound_says_something() -> None:
    """The proved decay is nearly the observed one: in the exponent, within 5% and, as a power law, 15%."""
    for key, share in (("joint-loss", 0.95), ("joint-loss-schedule", 0.95), ("joint-loss-rate", 0.85)):
        verdict = theory.check(joint("strong", 0), key)
        assert verdict.holds
        assert verdict.steps[-1] == STEPS
        assert np.log(verdict.bound[-1]) < share * np.log(verdict.observed[-1]) < -30


def test_a_start_is_chosen_that_leaves_most_of_the_run() -> None:
    for key in JOINT:
        verdict = theory.check(joint("full support", 0), key)
        assert verdict.steps[0] <= 2 * STEPS**0.5


def test_weak_signal_is_told_apart() -> None:
    runs = [joint("weak", seed) for seed in SEEDS]
    fits = [run for run in runs if joint_run.regime(run)[0] < run.problem.n]
    assert len(fits) > len(runs) / 2
    for run in fits:
        assert "noise tokens" in theory.check(run, "joint-separator").hypotheses["settled tokens"].detail


@pytest.mark.parametrize("seed", [0])
def test_a_fixed_decoder_is_told_it_is_no_joint_run(seed: int) -> None:
    run = train(load(DATA["strong"], seed=seed), STEP, steps=50)
    for key in JOINT:
        verdict = theory.check(run, key)
        assert verdict.holds is None
        assert list(verdict.hypotheses) == ["joint"]
        assert "the decoder is fixed" in verdict.hypotheses["joint"].detail


def test_a_joint_run_is_told_that_its_decoder_moves() -> None:
    for verdict in theory.check_all(joint("strong", 0)):
        if verdict.theorem not in JOINT:
            assert verdict.holds is None
            assert "the decoder moves" in verdict.hypotheses["fixed decoder"].detail


def test_another_rule_is_no_schedule() -> None:
    verdict = theory.check(joint("strong", 0, "polyak"), "joint-loss-schedule")
    assert verdict.holds is None
    assert verdict.hypotheses["decoder schedule"].state == "fails"


def test_a_run_too_short_to_settle_claims_nothing() -> None:
    run = train_joint(load(DATA["strong"], seed=0), STEP, STEP, steps=2)
    verdict = theory.check(run, "joint-loss-rate")
    assert verdict.holds is None
    assert verdict.hypotheses["recorded"].state == "unknown"


def test_the_constants_are_extremes_over_every_step() -> None:
    run = joint("strong", 0)
    every = train_joint(run.problem, STEP, STEP, steps=60, record="all").history
    few = train_joint(run.problem, STEP, STEP, steps=60, record=[0, 7, 20, 60])
    tails = joint_run.tail(few, "log_weight_ratio")
    for row, step in enumerate([0, 7, 20, 60]):
        assert tails[row] == pytest.approx(every["log_weight_ratio"].to_numpy()[step:].max(), rel=1e-12)


@pytest.mark.parametrize("key", JOINT)
def test_a_corrupted_constant_is_seen(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upper bound divided, a lower one multiplied, to twice what the run leaves it: it must break."""
    page = theory.theorems()[key]
    assert page.rate is not None
    run = joint("full support" if "F" in checks(page) else "strong", 0)
    before = theory.check(run, key)
    assert before.holds
    factor = real(Fraction(before.worst_ratio / 2).limit_denominator(10**12))
    bound = page.rate.bound * factor if page.rate.sense == "upper" else page.rate.bound / factor
    if before.worst_ratio == 0:  # the lower bound is what W_t0 = 0 has
        assert key == "joint-never-falls"
        bound = 2 * page.rate.observed
    broken = dataclasses.replace(page, rate=dataclasses.replace(page.rate, bound=bound))
    monkeypatch.setattr(catalog, "theorems", lambda: {key: broken})
    assert theory.check(run, key).holds is False


def test_joint_training_is_not_certified_as_something_else() -> None:
    with pytest.raises(CertificationError, match="fixed decoder"):
        certify(joint("strong", 0))
