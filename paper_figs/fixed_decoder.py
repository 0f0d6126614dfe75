"""Figure 1: training W with a fixed decoder, four panels, each with its theorem's bound where claimed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

import theory
from paper_figs import captions, experiments, style
from paper_figs.figures import Part, Workshop

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numerics.run import Run

FLOOR, CEILING = -20.0, 1.0  # powers of ten shown: below the floor curves leave the panel, GD stays readable


class Panel(NamedTuple):
    """One quantity against the iteration, and the theorem that bounds it."""

    column: str
    title: str
    theorem: str
    log: bool  # whether the column holds base-10 logarithms


PANELS = (
    Panel("log10_excess_loss", r"training loss, $L(W_t)-L^*$", "loss-decay", True),
    Panel("weight_norm", r"norm, $\|W_t\|_F$", "norm-growth", False),
    Panel(
        "log10_attention_gap",
        r"attention off the optimal token, $1-\mathrm{min}_i\,p_i$",
        "sparsification",
        True,
    ),
    Panel("log10_direction_gap", r"direction, $1-\cos(W_t,W_{\mathrm{mm}})$", "global-direction", True),
)


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the runs shown, by part of the figure: seed 0 of each data set."""
    return {
        data: Part(settings=[setting for setting in runs if setting.seed == 0])
        for data, runs in experiments.standard(quick=quick).items()
    }


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Collect what is drawn: a row for each rule and step, with each panel's value and bound (or none)."""
    frames = []
    for run in shop.runs_of(part):
        history = run.history
        frame = pd.DataFrame({"rule": run.rule.name, "step": history["step"]})
        frame["log10_excess_loss"] = history["log_excess_loss"] / math.log(10)
        frame["weight_norm"] = history["weight_norm"]
        frame["log10_attention_gap"] = history["log_attention_gap"] / math.log(10)
        with np.errstate(divide="ignore"):
            frame["log10_direction_gap"] = np.log10(history["direction_gap"])
        for panel in PANELS:
            frame[f"bound_{panel.column}"] = _bound(run, panel, history["step"].to_numpy())
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _bound(run: Run, panel: Panel, steps: np.ndarray) -> np.ndarray:
    """Return the theorem's bound at these steps on the panel's scale; no number where it is not claimed."""
    bound = np.full(len(steps), np.nan)
    verdict = theory.check(run, panel.theorem)
    if verdict.holds is not None:
        bound[np.searchsorted(steps, verdict.steps)] = verdict.bound
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(bound) if panel.log else bound


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the four panels from the saved data alone."""
    with style.applied():
        figure = style.new_figure(style.DOUBLE, 4.3)
        axes = figure.subplots(2, 2, sharex=True)
        for letter, panel, ax in zip("abcd", PANELS, axes.flat, strict=True):
            for rule, part in frame.groupby("rule", sort=False):
                _curves(ax, panel, style.RULES[str(rule)], part)
            ax.set_xscale("log")
            ax.set_xlim(1, frame["step"].max())
            ax.set_title(f"({letter}) {panel.title}", loc="left")
            if not panel.log:
                ax.set_yscale("log")
                continue
            lowest, highest = ax.get_ylim()
            ax.set_ylim(max(lowest, FLOOR), min(highest, CEILING))
            ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: rf"$10^{{{value:.0f}}}$"))
        for ax in axes[1]:
            ax.set_xlabel("iteration $t$")
        figure.legend(handles=_legend(frame), loc="outside lower center", ncols=4)
    return figure


def _curves(ax: Axes, panel: Panel, look: style.Look, part: pd.DataFrame) -> None:
    """Draw the run as a marked line in its rule's look, its bound dotted in the same colour."""
    column, bound = panel.column, f"bound_{panel.column}"
    shown = part[(part["step"] > 0) & np.isfinite(part[column])]
    ax.plot(
        shown["step"],
        shown[column],
        color=look.color,
        linestyle=look.linestyle,
        marker=look.marker,
        markevery=max(1, len(shown) // 10),
    )
    claimed = part[(part["step"] > 0) & np.isfinite(part[bound])]
    ax.plot(claimed["step"], claimed[bound], color=look.color, linestyle=":", linewidth=1.0)


def _legend(frame: pd.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look.color, linestyle=look.linestyle, marker=look.marker, label=look.label)
        for look in (style.RULES[str(rule)] for rule in frame["rule"].unique())
    ]
    if frame[[f"bound_{panel.column}" for panel in PANELS]].notna().any(axis=None):
        handles.append(
            Line2D([], [], color="0.3", linestyle=":", linewidth=1.0, label="proved bound, same colour")
        )
    return handles


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what the four panels show, on which data and how trained."""
    first = part.settings[0]
    steps = captions.rules({setting.rule: setting.step for setting in part.settings})
    bounds = [panel for panel in PANELS if frame[f"bound_{panel.column}"].notna().any()]
    theorems = captions.listed(panel.theorem for panel in bounds) if bounds else ""
    dotted = (
        f"Dotted, where its hypotheses hold: the bound proved in {theorems}."
        if bounds
        else "No bound is claimed: a hypothesis of each theorem fails on these data."
    )
    return (
        f"Training $W$ with a fixed decoder on {captions.data_set(first, margin=True)}, "
        f"{captions.seeds([first.seed])}, from $W_0=0$, ${captions.number(first.steps)}$ steps of "
        f"{steps}: (a) the training loss less its "
        "infimum, (b) the norm of the weights, (c) the attention off the optimal token, at its largest, "
        rf"(d) the distance in direction to the max-margin solution $W_{{\mathrm{{mm}}}}$. {dotted}"
    )
