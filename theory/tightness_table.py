"""How tight the bounds are on runs: observed over bound, by theorem and by decade of t."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from theory import catalog
from theory.verdict import Verdict, ratios


@dataclass(frozen=True)
class Row:
    """One theorem over the steps of one decade, 10^decade <= t < 10^(decade + 1); t = 0 is not among them.

    median and worst are of observed/bound (bound/observed for a lower bound, so that at most 1 is a bound
    kept) over all recorded steps of all runs; steps counts them and runs the runs they are from.
    """

    theorem: str
    decade: int
    median: float
    worst: float
    steps: int
    runs: int


def tabulate(verdicts: Iterable[Verdict]) -> list[Row]:
    """Tabulate claimed bounds, tightest theorem first, its decades in order.

    Steps at which a side is no normal float (attention gaps underflow) are left out.
    """
    found: dict[tuple[str, int], list[np.ndarray]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.holds is None:
            continue
        ratio = _ratio(verdict)
        decades = np.floor(np.log10(np.maximum(verdict.steps, 1))).astype(int)
        decades = np.where(verdict.steps > 0, decades, -1)
        for decade in np.unique(decades[decades >= 0]):
            here = ratio[decades == decade]
            if np.isfinite(here).any():
                found[verdict.theorem, int(decade)].append(here[np.isfinite(here)])
    rows = [
        Row(
            theorem,
            decade,
            float(np.median(np.concatenate(each))),
            float(max(part.max() for part in each)),
            sum(part.size for part in each),
            len(each),
        )
        for (theorem, decade), each in found.items()
    ]
    worst: dict[str, float] = defaultdict(float)
    for row in rows:
        worst[row.theorem] = max(worst[row.theorem], round(row.worst, 9))
    return sorted(rows, key=lambda row: (-worst[row.theorem], row.theorem, row.decade))


def _ratio(verdict: Verdict) -> Float[np.ndarray, " rows"]:
    rate = catalog.theorems()[verdict.theorem].rate
    assert rate is not None
    sides = (verdict.observed, verdict.bound)
    small, large = sides if rate.sense == "upper" else sides[::-1]
    tiny = np.finfo(float).tiny
    normal = (np.abs(small) >= tiny) & (np.abs(large) >= tiny)
    return np.where(normal, ratios(small, large), np.nan)
