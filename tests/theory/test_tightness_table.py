"""The tightness table: ratios by theorem and decade, from verdicts."""

import numpy as np
import pytest

import theory
from numerics import NormalizedGD, train
from numerics.datasets import load
from tests.benchmarks.bench_tightness import rows
from theory.tightness_table import tabulate
from theory.verdict import Verdict


def verdict(key: str, steps: list[int], observed: list[float], bound: list[float]) -> Verdict:
    return Verdict(key, True, 1.0, 0, {}, np.array(steps), np.array(observed), np.array(bound))


def test_ratios_are_sorted_by_decade_and_by_sense() -> None:
    upper = verdict(
        "global-direction", [0, 1, 9, 10, 99, 100], [9.0, 1, 2, 3, 4, 0.0], [1.0, 4, 4, 4, 4, 1e-320]
    )
    lower = verdict("norm-growth", [1, 2], [4.0, 4.0], [1.0, 2.0])
    none = np.array([])
    unclaimed = Verdict("norm-growth", None, np.nan, None, {}, none.astype(int), none, none)
    table = tabulate([upper, lower, unclaimed, upper])
    assert [(x.theorem, x.decade, x.median, x.worst, x.steps, x.runs) for x in table] == [
        ("global-direction", 0, 0.375, 0.5, 4, 2),  # the sides at 100 are no floats of full precision
        ("global-direction", 1, 0.875, 1.0, 4, 2),
        ("norm-growth", 0, 0.375, 0.5, 2, 1),
    ]


def test_the_worst_of_a_run_is_the_verdicts() -> None:
    run = train(load("gaussian:n=3,T=2,d=100", seed=1), NormalizedGD(0.1), steps=200, space="gram")
    verdicts = [v for v in theory.check_all(run) if v.holds is not None]
    table = tabulate(verdicts)
    assert {x.theorem for x in table} == {v.theorem for v in verdicts}
    for v in verdicts:
        if v.worst_step:
            worst = max(x.worst for x in table if x.theorem == v.theorem)
            assert worst == pytest.approx(v.worst_ratio, rel=1e-9)
    lines = rows(table)
    assert len(lines) == len(verdicts)
    assert all(line["ratio"] <= 1 + 1e-9 for line in lines)
    assert "10^2" in lines[0]["detail"]
