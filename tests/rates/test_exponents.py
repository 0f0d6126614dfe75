"""Fitted exponents with confidence intervals, against what the theorems say."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from numerics import GradientDescent, NormalizedGD, Polyak, Run
from numerics.datasets import load
from numerics.training import train_batch

SEEDS = range(10)


@cache
def runs(rule: str, steps: int) -> tuple[Run, ...]:
    chosen = {"ngd": NormalizedGD(0.1), "polyak": Polyak(), "gd": GradientDescent(2.0)}[rule]
    problems = [load("gaussian", seed=seed) for seed in SEEDS]
    return tuple(train_batch(problems, chosen, steps=steps, seeds=list(SEEDS)))


def exponent(run: Run, column: str, against: str, last: float) -> float:
    """Slope of log column against log ``against`` over the last part of the run."""
    h = run.history[run.history["step"] >= last]
    return float(stats.linregress(np.log(h[against]), np.log(h[column])).slope)


def interval(values: list[float]) -> tuple[float, float]:
    """99% t-interval for the mean over the seeds."""
    mean, error = np.mean(values), stats.sem(values)
    half = error * stats.t.ppf(0.995, len(values) - 1)
    return float(mean - half), float(mean + half)


@pytest.mark.parametrize("rule", ["ngd", "polyak"])
def test_the_direction_gap_falls_like_one_over_t_squared(rule: str) -> None:
    lo, hi = interval([exponent(r, "direction_gap", "step", 3e4) for r in runs(rule, 100_000)])
    print(f"{rule}: direction gap ~ t^[{lo:.4f}, {hi:.4f}], seeds {SEEDS}")
    assert -2.01 < lo <= hi < -1.98


def test_gradient_descent_falls_like_one_over_log_t_squared() -> None:
    # E_t ~ log t, so 1 - cos ~ 1/E_t^2: the exponent against the path length is -2, against t nearly 0.
    against_path = interval([exponent(r, "direction_gap", "path_length", 3e4) for r in runs("gd", 100_000)])
    against_t = interval([exponent(r, "direction_gap", "step", 3e4) for r in runs("gd", 100_000)])
    print(f"gd: direction gap ~ E^{against_path}, ~ t^{against_t}, seeds {SEEDS}")
    assert -2.3 < against_path[0] <= against_path[1] < -1.7
    assert against_t[0] > -0.5


@pytest.mark.parametrize(("rule", "slope"), [("ngd", 1.0), ("polyak", 1.0)])
def test_path_and_norm_grow_linearly(rule: str, slope: float) -> None:
    for column in ("path_length", "weight_norm"):
        lo, hi = interval([exponent(r, column, "step", 3e4) for r in runs(rule, 100_000)])
        assert slope - 1e-3 < lo <= hi < slope + 1e-3


def test_the_path_of_gradient_descent_grows_like_log_t() -> None:
    for run in runs("gd", 100_000):
        h = run.history[run.history["step"] >= 1e3]
        fit = stats.linregress(np.log(h["step"]), h["path_length"])
        assert fit.rvalue > 0.9999


def test_log_attention_gap_is_linear_in_t_for_normalized_gd() -> None:
    for run in runs("ngd", 100_000):
        h = run.history[run.history["step"] >= 1e3]
        fit = stats.linregress(h["step"], h["log_attention_gap"])
        assert fit.rvalue < -1 + 1e-9
        assert run.target is not None
        assert fit.slope == pytest.approx(-0.1 * run.target.margin, rel=1e-3)
