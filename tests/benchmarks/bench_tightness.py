"""Tightness: observed over bound, by theorem and by decade of t, over rules and seeds of the presets.

The ratio is the worst over all runs and steps; at most 1 is a bound kept.
"""

from __future__ import annotations

from typing import Any

import theory
from numerics.datasets import load
from numerics.steps import GradientDescent, NormalizedGD, Polyak
from numerics.training import train
from theory.tightness_table import Row, tabulate
from theory.verdict import Verdict

RULES = (GradientDescent(2.0), NormalizedGD(0.1), Polyak(cap=1.0))
DATA = ("gaussian", "gaussian:query=own", "gaussian:n=3,T=2,d=100", "digits:3v5,n=10")


def run(quick: bool = False) -> list[dict[str, Any]]:
    """One row a theorem; its detail gives the median and the worst ratio of each decade of t."""
    seeds, steps = (range(2), 1_000) if quick else (range(20), 10_000)
    verdicts: list[Verdict] = []
    for data in DATA:
        for seed in seeds:
            problem = load(data, seed=seed)
            target = None
            for rule in RULES:
                made = train(problem, rule, steps=steps, target=target, space="gram", seed=seed)
                target = made.target
                verdicts += theory.check_all(made)
    return rows(tabulate(verdicts))


def rows(table: list[Row]) -> list[dict[str, Any]]:
    """One row a theorem."""
    by_theorem: dict[str, list[Row]] = {}
    for row in table:
        by_theorem.setdefault(row.theorem, []).append(row)
    return [
        {
            "name": theorem,
            "baseline": "its bound",
            "ratio": max(row.worst for row in each),
            "detail": "median, worst by decade of t: "
            + "; ".join(f"10^{row.decade} {row.median:.2g}, {row.worst:.2g}" for row in each)
            + f" ({max(row.runs for row in each)} runs)",
        }
        for theorem, each in by_theorem.items()
    ]


if __name__ == "__main__":
    for line in run(quick=True):
        print(f"{line['name']}: {line['ratio']:.3g}; {line['detail']}")
