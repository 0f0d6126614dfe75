"""Many small problems at once: how often data are feasible, near-acute, fully supported, and how often runs
reach W_mm, with exact binomial intervals. Floats decide here; the theorems' checks decide rigorously."""

from __future__ import annotations

from numerics.survey.cell import Cell, draw
from numerics.survey.intervals import interval
from numerics.survey.outcome import Limit, Outcome, measure
from numerics.survey.starts import STARTS
from numerics.survey.table import CONFIDENCE, SHARES, Tally, survey, tally
from numerics.survey.threshold import count, dimension, near_acute

__all__ = [
    "CONFIDENCE",
    "SHARES",
    "STARTS",
    "Cell",
    "Limit",
    "Outcome",
    "Tally",
    "count",
    "dimension",
    "draw",
    "interval",
    "measure",
    "near_acute",
    "survey",
    "tally",
]
