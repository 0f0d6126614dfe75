"""What a run records: the columns, and the grid of steps at which they are taken."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Int

from numerics import _room
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
    "log_total_attention_gap",
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
    "log_total_attention_gap",
    "log_excess_loss",
    "loss",
    "min_logit_gap",
    "log_gradient_norm",
)
LARGEST = 1 << 53
_DENSE = 20  # every step up to here
_PER_DECADE = 40


def record_steps(record: str | Iterable[int], steps: int) -> Int[np.ndarray, " rows"]:
    """The recorded steps, ascending, 0 and `steps` among them.

    "log": every step up to 20, then 40 a decade; "all": every step; otherwise the listed steps. Raises
    InputError for another word, a step outside 0..steps, more than 2^53 steps (which floats cannot count),
    and more rows than memory holds.
    """
    if steps > LARGEST:
        raise InputError(
            f"steps must be at most 2^53, not {steps:.3g}" if steps < 1e300 else "too many steps"
        )
    if isinstance(record, str):
        if record == "all":
            _room.require(f"recording {steps + 1} steps", 2 * 8 * len(COLUMNS) * (steps + 1))
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


def finish(
    steps: Int[np.ndarray, " rows"],
    measured: Float[np.ndarray, "rows B columns"],
    optimal_loss: Float[np.ndarray, " B"],
) -> list[dict[str, np.ndarray]]:
    """All columns of every run from the measured ones.

    The direction gap 1 - cos is formed from the residual r = W - v M^ (no cancellation):
    r^2/(u (u + v)) for v > 0 and (u - v)/u otherwise.
    """
    columns = dict(zip(MEASURED, np.ascontiguousarray(measured.transpose(2, 1, 0)), strict=True))
    u, v, r = columns["weight_norm"], columns["target_component"], columns["residual_norm"]
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = r / u * (r / (u + v))
        columns["direction_gap"] = np.where(u > 0, np.where(v > 0, ahead, (u - v) / u), np.nan)
    columns["loss"] = optimal_loss[:, None] + np.exp(columns["log_excess_loss"])
    return [
        {"step": steps} | {name: columns[name][b] for name in COLUMNS[1:]} for b in range(measured.shape[1])
    ]
