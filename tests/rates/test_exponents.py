"""Fitted exponents with confidence intervals, and fitted constants, against what the theorems say.

In every interval the spread is over twenty seeds. The gap is 1 - cos = ||r||^2/(u (u + v)), where r tends to
a constant and so does v less its growth along the path: log gap has slope -2 in log t up to terms of the
order 1/t, which the fit takes along.
"""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from numerics import GradientDescent, NormalizedGD, Polyak, Run
from numerics.datasets import load
from numerics.steps import Rule
from numerics.training import train_batch
from theory.predict import predict

SEEDS = range(20)
STEPS = 100_000
FIT_FROM = 1e4
RULES: dict[str, Rule] = {"ngd": NormalizedGD(0.1), "polyak": Polyak(), "gd": GradientDescent(2.0)}
PRESETS = {
    "gaussian": "gaussian",
    "gaussian-own-query": "gaussian:query=own",
    "gaussian-two-tokens": "gaussian:n=3,T=2,d=100",
}


@cache
def runs(preset: str, rule: str) -> tuple[Run, ...]:
    problems = [load(PRESETS[preset], seed=seed) for seed in SEEDS]
    return tuple(train_batch(problems, RULES[rule], steps=STEPS, seeds=list(SEEDS)))


def exponent(run: Run, column: str, against: str) -> float:
    """Slope of log column in log ``against`` over the last decade, beside a term in 1/``against``."""
    h = run.history[run.history["step"] >= FIT_FROM]
    x, y = h[against].to_numpy(), np.log(h[column].to_numpy())
    columns = np.column_stack([np.ones(len(x)), np.log(x), x[0] / x])
    return float(np.linalg.lstsq(columns, y, rcond=None)[0][1])


def interval(values: list[float]) -> tuple[float, float]:
    """99% t-interval for the mean over the seeds."""
    mean, error = np.mean(values), stats.sem(values)
    half = error * stats.t.ppf(0.995, len(values) - 1)
    return float(mean - half), float(mean + half)


@pytest.mark.parametrize("rule", ["ngd", "polyak"])
@pytest.mark.parametrize("preset", PRESETS)
def test_the_direction_gap_falls_like_one_over_t_squared(preset: str, rule: str) -> None:
    lo, hi = interval([exponent(r, "direction_gap", "step") for r in runs(preset, rule)])
    print(f"{preset}, {rule}: direction gap ~ t^[{lo:.6f}, {hi:.6f}], seeds {SEEDS}")
    assert -2 - 1e-3 < lo <= hi < -2 + 1e-3


@pytest.mark.parametrize("preset", PRESETS)
def test_gradient_descent_falls_like_one_over_log_t_squared(preset: str) -> None:
    # v grows like log(t)/g*, so the exponent against v tends to -2: slowly, as r converges along the path,
    # which is log t long. Each decade is nearer to it than the one before; against t it tends to 0.
    def slopes(against: str, first: float) -> list[float]:
        rows = [r.history[(r.history["step"] >= first) & (r.history["step"] <= 10 * first)] for r in made]
        return [stats.linregress(np.log(h[against]), np.log(h["direction_gap"])).slope for h in rows]

    made = runs(preset, "gd")
    last, before = slopes("target_component", FIT_FROM), slopes("target_component", FIT_FROM / 10)
    nearer = interval([abs(a + 2) - abs(b + 2) for a, b in zip(before, last, strict=True)])
    against_v, against_t = interval(last), interval(slopes("step", FIT_FROM))
    print(
        f"{preset}: direction gap ~ v^{against_v}, nearer to -2 by {nearer}, ~ t^{against_t}, seeds {SEEDS}"
    )
    assert nearer[0] > 0
    assert -2.3 < against_v[0] <= against_v[1] < -1.7
    assert against_t[0] > -0.5


@pytest.mark.parametrize("preset", PRESETS)
def test_the_path_of_gradient_descent_grows_like_log_t_over_the_margin(preset: str) -> None:
    slopes = []
    for run in runs(preset, "gd"):
        h = run.history[run.history["step"] >= FIT_FROM]
        fit = stats.linregress(np.log(h["step"]), h["path_length"])
        assert fit.rvalue > 0.9999
        assert run.target is not None
        slopes.append(fit.slope * run.target.margin)
    lo, hi = interval(slopes)
    print(f"{preset}: g* dE/dlog t in [{lo:.5f}, {hi:.5f}], seeds {SEEDS}")
    assert 1 - 0.02 < lo <= hi < 1 + 0.02


@pytest.mark.parametrize("rule", ["ngd", "polyak"])
@pytest.mark.parametrize("preset", PRESETS)
def test_path_and_norm_grow_linearly(preset: str, rule: str) -> None:
    for column in ("path_length", "weight_norm"):
        lo, hi = interval([exponent(r, column, "step") for r in runs(preset, rule)])
        print(f"{preset}, {rule}: {column} ~ t^[{lo:.6f}, {hi:.6f}], seeds {SEEDS}")
        assert 1 - 1e-3 < lo <= hi < 1 + 1e-3


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("preset", PRESETS)
def test_the_predicted_constant_is_observed(preset: str, rule: str) -> None:
    """2 v^2 (1 - cos) tends to ||r*||^2 for every rule, t^2 (1 - cos) to the rule's own constant."""
    claimed = 0
    for seed, run in zip(SEEDS, runs(preset, rule), strict=True):
        found = predict(run.problem, run.rule)
        if found.residual is None:
            continue  # not every constraint is active: the limit is the run's own
        claimed += 1
        last = run.history.iloc[-1]
        t = last["step"]
        # Linear in t for the rules with long steps; GD has come as far as log t.
        near = 1e-3 if rule != "gd" else 0.1
        by_path = 2 * last["target_component"] ** 2 * last["direction_gap"]
        assert by_path == pytest.approx(float(found.residual.mid()) ** 2, rel=near), f"seed {seed}"
        if found.constant is not None:
            assert t**2 * last["direction_gap"] == pytest.approx(float(found.constant.mid()), rel=1e-3)
    print(f"{preset}, {rule}: {claimed} of {len(SEEDS)} seeds have every constraint active")
    assert claimed


@pytest.mark.parametrize("preset", PRESETS)
def test_log_attention_gap_is_linear_in_t_for_normalized_gd(preset: str) -> None:
    for run in runs(preset, "ngd"):
        h = run.history[run.history["step"] >= 1e3]
        fit = stats.linregress(h["step"], h["log_attention_gap"])
        assert fit.rvalue < -1 + 1e-9
        assert run.target is not None
        assert fit.slope == pytest.approx(-0.1 * run.target.margin, rel=1e-3)
