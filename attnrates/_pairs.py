"""`attnrates check --pairs`: the pairs of constraints that break (N), and the tokens chosen instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnrates._check import raise_refused
from attnrates._console import print_json, spinner
from paper_figs import runs
from paper_figs.wording import counted, printable

if TYPE_CHECKING:
    from pathlib import Path

    from numerics.errors import InputError
    from numerics.run import Run


LISTED = 20
LEGEND = (
    "(i, t): the constraint A_k = (optimal token - token t) (query)' of sequence i, counted from 0; "
    "g*: the margin"
)


def pairs(folder: Path, *, json: bool, every: bool = False) -> int:
    """List, for every run in `folder`, the pairs that break (N), and the wrong tokens that it ends on.

    The most obtuse pairs come first; on the terminal there are at most `LISTED`, unless `every` is wanted.

    Raises:
        InputError: there is no run, or some cannot be read; that once the others are listed.
    """
    refused: list[InputError] = []
    with spinner("reading") as watch:
        found = []
        for name, run in runs.each(folder, refused.append):
            watch(name)
            found.append((name, _of(run)))
    if json and found:
        print_json([{"run": name} | answer for name, answer in found])
    elif not json:
        for name, answer in found:
            _print(name, answer, every=every)
        if any(answer["pairs"] for _, answer in found):
            print(f"\n{LEGEND}")
    raise_refused(refused, len(found))
    return 0


def _of(run: Run) -> dict[str, Any]:
    from theory.obtuse import breaking_pairs

    problem = run.problem if run.joint is None else run.joint.reference
    broken = breaking_pairs(problem, run.target)
    gaps = problem.logit_gaps(run.weights)
    wrong = []
    for i in range(problem.n):
        own = np.flatnonzero(problem.constraint_sequence == i)
        if own.size and gaps[own].min() <= 0:
            wrong.append([i, int(problem.constraint_token[own[np.argmin(gaps[own])]])])
    return {
        "pairs": None
        if broken is None
        else [
            {"first": pair.first, "second": pair.second, "product": pair.product, "certain": pair.certain}
            for pair in broken
        ],
        "chosen_instead": wrong,
    }


def _print(name: str, answer: dict[str, Any], *, every: bool) -> None:
    broken, wrong = answer["pairs"], answer["chosen_instead"]
    print(printable(name))
    if broken is None:
        print("  (N) is unknown or fails: there is no margin, or the problem is too large to enclose")
    elif not broken:
        print("  (N) holds: no pair of constraints breaks it")
    else:
        number = counted(len(broken), "pair of constraints has", "pairs of constraints have")
        print(f"  (N): {number} <A_k, A_l> <= -g*^2, as (sequence, token)")
    listed = broken or []
    for pair in listed if every else listed[:LISTED]:
        low, high = pair["product"]
        doubt = "" if pair["certain"] else ", within rounding of -g*^2"
        print(f"  {pair['first']} and {pair['second']}: <A_k, A_l> in [{low:.6g}, {high:.6g}]{doubt}")
    if len(listed) > LISTED and not every:
        print(f"  and {len(listed) - LISTED} more, which --all lists")
    if wrong:
        print("  chosen instead of the optimal token: " + ", ".join(f"({i}, {k})" for i, k in wrong))
