"""From what a Gram-space loop keeps at a recorded step to the recorded columns; shared by its engines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from numerics._gram_geometry import Geometry, Start
from numerics._record import MEASURED

# A run's scalar state; each compensated sum is followed by its compensation.
SHIFT, TARGET, SQUARE, PATH, SEPARATOR, CURVATURE = 0, 2, 4, 6, 8, 10
SCALARS = 12
# What a loop keeps of a recorded step, beside the residual's coefficients.
ROW_PATH, ROW_SEPARATOR, ROW_CURVATURE, ROW_LENGTH, ROW_TARGET = 0, 1, 2, 3, 4
ROW_LEAK, ROW_LEAKED, ROW_EXCESS, ROW_GAP, ROW_GRADIENT = 5, 6, 7, 8, 9
ROWS = 10


class Book:
    """The runs' geometries and starts, and what turns their kept rows into columns and their ends into b."""

    def __init__(self, geometries: Sequence[Geometry], runs: int, inits: Sequence[np.ndarray | None]) -> None:
        """`geometries` has one entry a run, or one for all."""
        self.geometries = list(geometries)
        self.which = np.arange(runs) if len(geometries) > 1 else np.zeros(runs, dtype=np.int64)
        known: dict[tuple[int, int], Start] = {}
        self.starts = []
        for j, init in zip(self.which.tolist(), inits, strict=True):
            key = (j, id(init))
            if key not in known:
                known[key] = geometries[j].begin(init)
            self.starts.append(known[key])

    def scalars(self) -> Float[np.ndarray, "B S"]:
        """The scalar state of every run at its start."""
        out = np.zeros((len(self.starts), SCALARS))
        out[:, TARGET] = [start.component for start in self.starts]
        out[:, SQUARE] = [start.square for start in self.starts]
        return out

    def gaps(self) -> Float[np.ndarray, "B N"]:
        """The logit gaps of every run at its start."""
        return np.stack([start.gaps for start in self.starts])

    def columns(
        self, rows: Float[np.ndarray, "B R rows"], rho: Float[np.ndarray, "B R N"]
    ) -> Float[np.ndarray, "R B columns"]:
        """The measured columns of R recorded steps."""
        runs, count, N = rho.shape
        outside = np.array([start.outside for start in self.starts])
        residual = np.empty((runs, count))
        with np.errstate(invalid="ignore", over="ignore"):  # an overflow is reported by the driver
            for b, geometry in enumerate(self.geometries):  # one of each run, or one for all
                own = slice(None) if len(self.geometries) == 1 else slice(b, b + 1)
                starts = [start.residual for start in self.starts[own]]
                if all(start is starts[0] for start in starts):
                    starts = starts[:1]
                norms = geometry.residual_norms(
                    rho[own].reshape(-1, N), np.stack(starts), np.repeat(outside[own], count)
                )
                residual[own] = norms.reshape(residual[own].shape)
            has_target = np.array([geometry.has_target for geometry in self.geometries])[self.which][:, None]
            component = rows[..., ROW_TARGET]
            values = {
                "path_length": rows[..., ROW_PATH],
                "separator_path": rows[..., ROW_SEPARATOR],
                "curvature_sum": rows[..., ROW_CURVATURE],
                "step_length": rows[..., ROW_LENGTH],
                "weight_norm": np.where(has_target, np.hypot(component, residual), residual),
                "target_component": np.where(has_target, component, np.nan),
                "residual_norm": np.where(has_target, residual, np.nan),
                "log_attention_gap": rows[..., ROW_LEAK],
                "log_total_attention_gap": rows[..., ROW_LEAKED],
                "log_excess_loss": rows[..., ROW_EXCESS],
                "min_logit_gap": rows[..., ROW_GAP],
                "log_gradient_norm": rows[..., ROW_GRADIENT],
            }
        return np.stack([values[name] for name in MEASURED], axis=-1).transpose(1, 0, 2)

    def coefficients(
        self, scalars: Float[np.ndarray, "B S"], rho: Float[np.ndarray, "B N"]
    ) -> list[dict[str, np.ndarray]]:
        """For every run b with W = W_0 + sum_k b_k A_k, in the problem's order."""
        component = scalars[:, TARGET] + scalars[:, TARGET + 1]
        out = []
        for b, start in enumerate(self.starts):
            geometry = self.geometries[self.which[b]]
            moved = rho[b] + (component[b] - start.component) * geometry.dual
            out.append({"coefficients": geometry.restore_order(moved)})
        return out
