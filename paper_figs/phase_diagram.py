"""Figure 4: which Gaussian problems are feasible, near-acute, fully supported, and where runs reach W_mm.

Shares of simulated problems over the dimension d, against the number of sequences n and against the ratio of
signal to noise, with the dimension from which on the theorem guarantees (S) and (N) drawn over them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal as Plain
from matplotlib.patheffects import Stroke
from matplotlib.ticker import LogLocator, NullLocator

from numerics.survey import Cell, dimension, survey
from paper_figs import captions, style
from paper_figs.figures import Part, Workshop
from theory import gaussian

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

SIGNAL, DELTA = 2.0, 0.01
AXES = {"n": "sequences $n$", "ratio": r"signal to noise $s/\sigma$"}
PANELS = {
    "infeasible": "infeasible",
    "not_acute": "feasible, not near-acute",
    "near_acute": "near-acute",
    "full_support": "full support",
    "random": r"reach $W_{\mathrm{mm}}$, random $W_0$",
    "adversarial": r"reach $W_{\mathrm{mm}}$, adversarial $W_0$",
}
COLORS = "cividis"  # even steps of lightness, for colour-blind readers and greyscale print
CURVE = "#CC3311"


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the two planes: d against n at one ratio of signal to noise, and against that ratio at one n."""
    dimensions = [4, 64, 1024, 16384] if quick else [2**k for k in range(2, 17)]
    common = {
        "d": dimensions,
        "T": 4,
        "problems": 10 if quick else 50,
        "curve": 50 if quick else 500,
        "steps": 2000,
        "seed": 0,
    }
    return {
        "sequences": Part(
            options=common
            | {"axis": "n", "values": [2, 5, 12] if quick else [2, 3, 4, 6, 9, 13, 20], "ratio": 20.0}
        ),
        "signal": Part(
            options=common
            | {"axis": "ratio", "values": [1.0, 8.0, 64.0] if quick else [2.0**k for k in range(7)], "n": 8}
        ),
    }


def cells(part: Part) -> list[Cell]:
    """List the cells of a part, row by row."""
    return [_cell(part, value, d) for value in part.options["values"] for d in part.options["d"]]


def _cell(part: Part, value: float, d: int, **others: Any) -> Cell:
    """Give one cell. Only the ratio of signal to noise matters: scaling both scales every constraint."""
    options = part.options
    where = {name: options.get(name) for name in AXES} | {options["axis"]: value}
    kept = {name: options[name] for name in ("T", "problems", "steps", "seed")} | others
    return Cell(n=where["n"], d=d, signal=SIGNAL, noise=SIGNAL / where["ratio"], **kept)


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Count everything drawn: a row a cell, with the exact interval of each share.

    `theorem` is the dimension from which on (S) and (N) hold with probability at least 0.99, `simulated` that
    from which on, up to it, 99% of simulated problems have them; both belong to the cell's row.
    """
    options = part.options
    shop.folder.mkdir(parents=True, exist_ok=True)
    path = shop.folder / f"survey-{options['axis']}.csv"
    with shop.bar_of_its_own() as shall:
        found = survey(cells(part), path, progress=shall)
    rows = []
    for value in options["values"]:
        first = _cell(part, value, options["d"][0], problems=options["curve"])
        claimed = gaussian.smallest_dimension(
            first.n, first.T, signal=first.signal, noise=first.noise, delta=DELTA, query=first.query
        )
        enough = dimension(replace(first, d=claimed), 1 - DELTA)
        shop.say(f"{options['axis']} = {value}: proved from d = {claimed} on, simulated {enough}")
        rows.append({options["axis"]: value, "theorem": claimed, "simulated": enough})
    curves = pd.DataFrame(rows).set_index(options["axis"])
    frame = pd.DataFrame([tally.to_dict() for tally in found])
    frame["ratio"] = frame["signal"] / frame["noise"]
    frame["infeasible"] = frame["problems"] - frame["separable"]
    frame["not_acute"] = frame["separable"] - frame["near_acute"]
    frame["adversarial"] = frame[["opposite", "decoy"]].min(axis=1)
    nearest = curves.index.to_numpy()
    row_of = [nearest[np.argmin(np.abs(nearest - x))] for x in frame[options["axis"]]]
    for name in ("theorem", "simulated"):
        frame[name] = curves.loc[row_of, name].to_numpy()
    frame["axis"] = options["axis"]
    return frame


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the six panels from the saved data alone."""
    axis = str(frame["axis"].iloc[0])
    with style.applied():
        figure = style.new_figure(style.SINGLE, 4.5)
        axes = figure.subplots(3, 2, sharex=True, sharey=True)
        for letter, (column, title), ax in zip("abcdef", PANELS.items(), axes.flat, strict=True):
            mesh = _shares(ax, frame, axis, column)
            _curves(ax, frame, axis, [name for name in LINES if column in SHOWN[name]])
            ax.set_title(f"({letter}) {title}", loc="left", fontsize=7, pad=3)
        for ax in axes[-1]:
            ax.set_xlabel("dimension $d$")
        for ax in axes[:, 0]:
            ax.set_ylabel(AXES[axis])
        bar = figure.colorbar(mesh, ax=axes, location="bottom", aspect=40, pad=0.02, shrink=0.9)
        bar.set_label("share of problems (a to d), of runs (e, f)")
        bar.outline.set_linewidth(0.6)
        figure.legend(handles=_legend(), loc="outside lower center", ncols=1, handlelength=2.4)
    return figure


def _shares(ax: Axes, frame: pd.DataFrame, axis: str, column: str) -> QuadMesh:
    table = (frame[column] / frame["problems"]).to_numpy()
    xs, ys = np.unique(frame["d"]), np.unique(frame[axis])
    order = np.lexsort((frame["d"], frame[axis]))
    mesh = ax.pcolormesh(
        _edges(xs),
        _edges(ys),
        table[order].reshape(len(ys), len(xs)),
        cmap=COLORS,
        norm=Normalize(0, 1),
        rasterized=False,
        edgecolors="face",
        linewidth=0.1,
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(visible=False)
    ax.xaxis.set_major_locator(LogLocator(10))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_yticks(ys, [f"{y:g}" for y in ys])
    ax.yaxis.set_minor_locator(NullLocator())
    return mesh


def _edges(values: np.ndarray) -> np.ndarray:
    """Give the ends of the cells around these values, half way on a logarithmic axis."""
    logs = np.log(values.astype(float))
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp([2 * logs[0] - middle[0], *middle, 2 * logs[-1] - middle[-1]])


LINES: dict[str, dict[str, Any]] = {
    "theorem": {
        "linestyle": "-",
        "marker": "o",
        "label": r"proved: (S), (N) with probability 0.99 from here",
    },
    "simulated": {"linestyle": "--", "marker": "s", "label": "simulated: 99% have (S), (N) from here"},
}


SHOWN = {"theorem": tuple(PANELS), "simulated": ("not_acute", "near_acute")}


def _curves(ax: Axes, frame: pd.DataFrame, axis: str, names: list[str]) -> None:
    limits = ax.get_xlim(), ax.get_ylim()
    rows = frame.groupby(axis)[list(LINES)].first()
    for name in names:
        outlined = [Stroke(linewidth=2.6, foreground="white"), Plain()]
        ax.plot(rows[name], rows.index, color=CURVE, markersize=2, path_effects=outlined, **LINES[name])
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])


def _legend() -> list[Line2D]:
    return [Line2D([], [], color=CURVE, markersize=2, **look) for look in LINES.values()]


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what is counted, by how much the theorem is conservative, and where the other runs end."""
    first, axis = cells(part)[0], str(part.options["axis"])
    ratio = captions.number(part.options.get("ratio", 0.0))
    fixed = rf"$s/\sigma={ratio}$" if axis == "n" else f"$n={first.n}$"
    rows = frame.groupby(axis)[list(LINES)].first()
    times = [captions.number(x, 2) for x in sorted(rows["theorem"] / rows["simulated"])]
    widest = captions.number(float((frame["near_acute_high"] - frame["near_acute_low"]).max()), 2)
    stuck, wrong, pairs = (int(frame[name].sum()) for name in ("stuck", "wrong", "wrong_in_pair"))
    undecided = int(frame["undecided"].sum())
    return (
        f"Gaussian data, $T={first.T}$ tokens, {fixed}, queries the first tokens: shares of {first.problems} "
        f"problems a cell ({captions.seeds([first.seed])}), each within an exact 99% interval of width at "
        f"most ${widest}$. Runs: normalized GD with step $1/R$, {first.steps} steps (where undecided up to a "
        "hundred times as many), from a Gaussian $W_0$ and, the worse counted, from two adversarial ones, "
        r"$W_0\propto -W_{\mathrm{mm}}$ and all attention on wrong tokens, each with a largest logit gap of "
        r"10; $W_{\mathrm{mm}}$ is reached at $1-\cos<0.01$. Solid: from this dimension on (S) and (N) are "
        f"proved to hold with probability at least 0.99; it is ${times[0]}$ to ${times[-1]}$ times that of "
        f"the simulation (dashed, {part.options['curve']} problems each). Of the runs from Gaussian starts "
        f"{stuck} are stuck on feasible problems, at the max-margin solution of the sequences that are on "
        f"their optimal token; {wrong} sequences are on a wrong one, {pairs} of them in a pair that breaks "
        f"(N) with one that is not. Of all runs {undecided} on feasible problems are undecided."
    )
