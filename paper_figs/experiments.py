"""The standard runs: what `attnrates reproduce` trains and the fixed-decoder figure shows."""

from __future__ import annotations

from paper_figs.runs import Setting

RULE_STEPS = {"gd": 1.0, "ngd": 0.1, "polyak": None}


def standard(*, quick: bool = False) -> dict[str, list[Setting]]:
    """Runs by data set: three seeds of Gaussian data and one draw of digits, each under GD, NGD and Polyak.

    `quick` shortens them, to try the pipeline.
    """
    steps = 60 if quick else 3000
    seeds = {"gaussian": 1 if quick else 3, "digits:3v5": 1}
    return {
        data: [
            Setting(data=data, rule=rule, step=step, steps=steps, seed=seed)
            for seed in range(count)
            for rule, step in RULE_STEPS.items()
        ]
        for data, count in seeds.items()
    }
