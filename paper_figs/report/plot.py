"""A small plot of observed against bound, as SVG inside the page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from theory import Verdict

WIDTH, HEIGHT, MARGIN = 320, 150, 34
MOST = 160  # points a curve: more are not seen


def plot(verdict: Verdict) -> str:
    """Draw both curves against the step, logarithmic where all is positive; nothing of fewer than 3 steps."""
    steps, observed, bound = (
        np.asarray(array, dtype=float) for array in (verdict.steps, verdict.observed, verdict.bound)
    )
    used = np.isfinite(observed) & np.isfinite(bound) & (steps > 0)
    positive = used & (observed > 0) & (bound > 0)
    log = bool(positive.sum() >= 0.5 * used.sum())
    used = positive if log else used
    if used.sum() < 3:
        return ""
    take = np.flatnonzero(used)
    take = take[np.unique(np.linspace(0, len(take) - 1, MOST).round().astype(int))]
    x = np.log10(steps[take])
    curves = {
        name: np.log10(y[take]) if log else y[take] for name, y in (("bound", bound), ("seen", observed))
    }
    low = min(curve.min() for curve in curves.values())
    high = max(curve.max() for curve in curves.values())
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 1, high + 1
    across = MARGIN + (x - x[0]) / max(x[-1] - x[0], 1e-9) * (WIDTH - MARGIN - 8)
    down = {name: 8 + (high - y) / (high - low) * (HEIGHT - 28) for name, y in curves.items()}
    lines = "".join(f'<polyline class="{name}" points="{_points(across, y)}"/>' for name, y in down.items())
    labels = (
        f'<text x="{MARGIN - 3}" y="14" text-anchor="end">{_tick(high, log)}</text>'
        f'<text x="{MARGIN - 3}" y="{HEIGHT - 20}" text-anchor="end">{_tick(low, log)}</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 6}">t={steps[take[0]]:.0f}</text>'
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end">t={steps[take[-1]]:.0f}</text>'
    )
    title = escape(f"observed and bound of {verdict.theorem} against the step", quote=True)
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
        f'<rect x="{MARGIN}" y="8" width="{WIDTH - MARGIN - 8}" height="{HEIGHT - 28}"/>{lines}{labels}</svg>'
    )


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _tick(value: float, log: bool) -> str:
    return f"{10.0**value if log else value:.2g}"
