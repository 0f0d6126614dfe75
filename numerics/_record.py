"""What a run records: the columns, and the grid of steps at which they are taken."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int

from numerics.errors import InputError

# What the engines fill in themselves; `finish` derives the rest.
MEASURED = (
    "path_length",
    "separator_path",
    "curvature_sum",
    "step_length",
    "weight_norm",
    "target_component",
    "residual_norm",
    "log_attention_gap",
    "log_excess_loss",
    "min_logit_gap",
    "log_gradient_norm",
)
COLUMNS = (
    "step",
    "path_length",
    "separator_path",
    "curvature_sum",
    "step_length",
    "weight_norm",
    "target_component",
    "residual_norm",
    "direction_gap",
    "log_attention_gap",
    "log_excess_loss",
    "loss",
    "min_logit_gap",
    "log_gradient_norm",
)
_DENSE = 20  # every step up to here
_PER_DECADE = 40


def record_steps(record: str | Iterable[int], steps: int) -> Int[np.ndarray, " rows"]:
    """The recorded steps, ascending, 0 and `steps` among them.

    "log": every step up to 20, then 40 a decade; "all": every step; otherwise the listed steps. Raises
    InputError for another word or a step outside 0..steps.
    """
    if isinstance(record, str):
        if record == "all":
            return np.arange(steps + 1)
        if record != "log":
            raise InputError(f"record must be 'log', 'all' or a list of steps, not {record!r}")
        count = math.ceil(_PER_DECADE * math.log10(max(steps, 1))) + 1
        grid = np.round(10.0 ** (np.arange(count) / _PER_DECADE)).astype(np.int64)
        chosen = np.concatenate([np.arange(_DENSE + 1), grid])
        chosen = chosen[chosen <= steps]
    else:
        listed = list(record)
        if not all(isinstance(t, int | np.integer) and 0 <= t <= steps for t in listed):
            raise InputError(f"record lists a step that is not an integer from 0 to {steps}")
        chosen = np.array(listed, dtype=np.int64)
    return np.unique(np.concatenate([chosen, [0, steps]])).astype(np.int64)


def finish(steps: np.ndarray, measured: np.ndarray, optimal_loss: float) -> dict[str, np.ndarray]:
    """All columns of one run from its measured ones (rows, len(MEASURED)).

    The direction gap 1 - cos is formed from the residual r = W - v M^ (no cancellation):
    r^2/(u (u + v)) for v > 0 and (u - v)/u otherwise.
    """
    out: dict[str, np.ndarray] = {"step": steps.astype(np.int64)}
    out |= {name: np.ascontiguousarray(measured[:, j]) for j, name in enumerate(MEASURED)}
    u, v, r = out["weight_norm"], out["target_component"], out["residual_norm"]
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = r / u * (r / (u + v))
        out["direction_gap"] = np.where(u > 0, np.where(v > 0, ahead, (u - v) / u), np.nan)
    out["loss"] = optimal_loss + np.exp(out["log_excess_loss"])
    return {name: out[name] for name in COLUMNS}
