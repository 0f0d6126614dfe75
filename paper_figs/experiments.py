"""The standard runs: what `attnrates reproduce` trains and holds against the theorems."""

from __future__ import annotations

from typing import NamedTuple

from paper_figs.runs import Decoder, Setting


class Experiment(NamedTuple):
    """One data set, its number of seeds, and the step of each rule (for Polyak the longest step allowed).

    The step of GD is the largest of 1, 10, 100, ... at which it still follows the gradient; a larger one
    jumps to saturated attention in its first step and stays in that direction, which is worse.
    """

    data: str
    seeds: int
    steps: dict[str, float]


DIGITS = ("3v5", 10)  # the two digits, and how many images of them
EXPERIMENTS = {
    "gaussian": Experiment("gaussian", 3, {"gd": 10.0, "ngd": 0.1, "polyak": 1.0}),
    # Ten images: with more, some sequence tends to lock onto a wrong token for good (equal scores fail here).
    "digits": Experiment(f"digits:{DIGITS[0]},n={DIGITS[1]}", 1, {"gd": 10.0, "ngd": 0.1, "polyak": 1.0}),
}


def standard(*, quick: bool = False) -> dict[str, list[Setting]]:
    """Give the runs by data set; `quick` shortens them and takes one seed, to try the pipeline."""
    return {
        name: [
            Setting(data=data, rule=rule, step=step, steps=60 if quick else 10_000, seed=seed)
            for seed in range(1 if quick else seeds)
            for rule, step in steps.items()
        ]
        for name, (data, seeds, steps) in EXPERIMENTS.items()
    }


def joint(*, quick: bool = False) -> dict[str, list[Setting]]:
    """Give the runs that train the decoder too: normalized GD where the signal is strong, and where weak."""
    from numerics.datasets.gaussian import STRONG_SIGNAL, WEAK_SIGNAL

    step, exponent = 0.3, 2 / 3
    return {
        name: [
            Setting(
                data=data,
                rule="ngd",
                step=step,
                exponent=exponent,
                steps=60 if quick else 10_000,
                space="gram",
                decoder=Decoder(rule="ngd", step=step, exponent=exponent),
            )
        ]
        for name, data in (("joint, strong signal", STRONG_SIGNAL), ("joint, weak signal", WEAK_SIGNAL))
    }
