"""Joint training on Gaussian data: fitted exponents with confidence intervals, in both regimes.

Steps 0.3 (t+1)^(-2/3) for W and u. The path lengths are then 0.9 (t^(1/3) - O(1)), about 40 at the end, so
that exponents against t are seen above their limits by some percent: 3 for the path length itself over the
last decade of 10^5 steps, up to 10 with the offsets of the quantities' own (2 at 10^6 steps). Against the
path length the first part is gone.
"""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from numerics import NormalizedGD, Run
from numerics.datasets import load
from numerics.datasets.gaussian import STRONG_SIGNAL, WEAK_SIGNAL
from numerics.joint import train_joint_batch

SEEDS = range(10)
STEPS = 100_000
RULE = NormalizedGD(0.3, exponent=2 / 3)
LAST = STEPS / 10  # the last decade


@cache
def runs(data: str) -> tuple[Run, ...]:
    problems = [load(data, seed=seed) for seed in SEEDS]
    return tuple(train_joint_batch(problems, RULE, RULE, steps=STEPS, seeds=list(SEEDS)))


def quantity(run: Run, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(steps, path lengths of W and of u, the quantity) over the last decade."""
    h = run.history[run.history["step"] >= LAST]
    columns = {
        "loss": -h["log_loss"],
        "attention": -h["log_attention_gap"],
        "direction": h["direction_gap"],
        "alignment": h["decoder_direction_gap"],
        "margin": 1 - h["decoder_margin_share"],
    }
    names = ("step", "path_length", "decoder_path_length")
    return (*(h[key].to_numpy(float) for key in names), columns[name].to_numpy())


def interval(data: str, name: str, against: int) -> tuple[float, float]:
    """99% t-interval over the seeds for the exponent against t (0), E_t (1) or the decoder's path (2)."""
    values = []
    for run in runs(data):
        measured = quantity(run, name)
        values.append(float(stats.linregress(np.log(measured[against]), np.log(measured[-1])).slope))
    mean, half = np.mean(values), stats.sem(values) * stats.t.ppf(0.995, len(values) - 1)
    return float(mean - half), float(mean + half)


@pytest.mark.parametrize("seed", SEEDS)
def test_w_is_aligned_and_the_loss_is_a_stretched_exponential(seed: int) -> None:
    run = runs(STRONG_SIGNAL)[seed]
    h = run.history[run.history["step"] >= LAST]
    rate = -h["log_loss"] / np.cbrt(h["step"])
    print(f"seed {seed}: 1-cos {h['direction_gap'].iloc[-1]:.3g}, rate {rate.min():.4f} to {rate.max():.4f}")
    assert h["direction_gap"].iloc[-1] < 2e-4
    assert rate.max() / rate.min() - 1 < 0.05


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_other_steps_show_it_as_well(step: float) -> None:
    rule = NormalizedGD(step, exponent=2 / 3)
    h = train_joint_batch(load(STRONG_SIGNAL, 0), rule, rule, steps=STEPS)[0].history
    h = h[h["step"] >= LAST]
    rate = -h["log_loss"] / np.cbrt(h["step"])
    assert h["direction_gap"].iloc[-1] < 2e-4
    assert rate.max() / rate.min() - 1 < 0.05


CLAIMED = [  # the quantity, what it is a power of (see interval), the exponent
    ("loss", 0, 1 / 3),
    ("loss", 2, 1),
    ("attention", 0, 1 / 3),
    ("attention", 1, 1),
    ("direction", 0, -2 / 3),
    ("direction", 1, -2),
    ("alignment", 0, -2 / 3),
    ("alignment", 2, -2),
]


@pytest.mark.parametrize("data", [STRONG_SIGNAL, WEAK_SIGNAL], ids=["strong", "weak"])
@pytest.mark.parametrize(("name", "against", "exponent"), CLAIMED)
def test_exponents(data: str, name: str, against: int, exponent: float) -> None:
    lo, hi = interval(data, name, against)
    variable = ("t", "E", "F")[against]
    print(f"{data}: {name} ~ {variable}^[{lo:.4f}, {hi:.4f}], expected {exponent:.4f}, seeds {SEEDS}")
    closer, further = (0.97, 1.07) if against else (0.99, 1.12)
    low, high = sorted((closer * exponent, further * exponent))
    assert low < lo <= hi < high


@pytest.mark.parametrize("factor", [0.85, 1.15])
@pytest.mark.parametrize(("name", "against", "exponent"), CLAIMED)
def test_a_corrupted_exponent_is_seen(name: str, against: int, exponent: float, factor: float) -> None:
    with pytest.raises(AssertionError):
        test_exponents(STRONG_SIGNAL, name, against, factor * exponent)


def test_the_decoder_s_margin_tends_to_the_largest() -> None:
    # The sequences of a label share their signal token, so that the share is the angle's cosine.
    lo, hi = interval(STRONG_SIGNAL, "margin", 0)
    print(f"1 - margin/max margin ~ t^[{lo:.4f}, {hi:.4f}], seeds {SEEDS}")
    assert -0.72 < lo <= hi < -0.66
    # With noise tokens the margins differ between sequences, and the share is first order in the angle.
    lo, hi = interval(WEAK_SIGNAL, "margin", 0)
    print(f"weak signal: 1 - margin/max margin ~ t^[{lo:.4f}, {hi:.4f}], seeds {SEEDS}")
    assert -0.40 < lo <= hi < -0.30
    for data in (STRONG_SIGNAL, WEAK_SIGNAL):
        for run in runs(data):
            assert 0.99 < run.history["decoder_margin_share"].iloc[-1] <= 1 + 1e-12


@pytest.mark.parametrize(("data", "found"), [(STRONG_SIGNAL, 20), (WEAK_SIGNAL, 0)], ids=["strong", "weak"])
def test_the_signal_decides_which_tokens_become_optimal(data: str, found: int) -> None:
    for seed, run in zip(SEEDS, runs(data), strict=True):
        last = run.history.iloc[-1]
        assert last["optimal_data"] == found, seed
        assert last["optimal_reference"] == run.problem.n
        assert last["optimal_since"] < 100, seed
        assert last["log_attention_gap"] < -50  # either way attention concentrates
        assert last["direction_gap"] < 2e-4  # and W aligns with the W_mm of the tokens found
