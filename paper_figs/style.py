"""One look for every figure: sizes, fonts, and a colour, line and marker for each step-size rule.

Colours are Paul Tol's high-contrast scheme: distinct for colour-blind readers and in greyscale print. Line
style and marker tell the rules apart without any colour.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from numerics.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SINGLE = 3.25  # inches, one column
DOUBLE = 6.75  # inches, both columns
PNG_DPI = 300


@dataclass(frozen=True)
class Look:
    """How a step-size rule is drawn, everywhere."""

    label: str
    color: str
    linestyle: Literal["-", "--", "-."]
    marker: str


RULES = {
    "gd": Look("GD", "#DDAA33", "--", "s"),
    "ngd": Look("normalized GD", "#004488", "-", "o"),
    "polyak": Look("Polyak", "#BB5566", "-.", "^"),
}

PARAMETERS: Any = {
    "font.family": "serif",
    "font.serif": ["STIXGeneral"],
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.handlelength": 3.0,  # long enough for a dash on either side of the marker
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # TrueType, embedded: editable and accepted by publishers
    "ps.fonttype": 42,
    "svg.fonttype": "path",
}


@contextmanager
def applied() -> Iterator[None]:
    """Apply the style within the block only."""
    with mpl.rc_context(PARAMETERS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of this size in inches, free of any global or interactive state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write STEM.pdf (vector, embedded fonts) and STEM.png, without time stamps; return the two paths."""
    paths = []
    for suffix, metadata in ((".pdf", {"CreationDate": None}), (".png", {"Software": None})):
        path = stem.with_name(stem.name + suffix)
        with atomic_write(path) as stream, applied():
            figure.savefig(stream, format=suffix[1:], dpi=PNG_DPI, metadata=metadata)
        paths.append(path)
    return paths
