r"""Figure 3: the distance in direction, 1 - cos(W_t, W_mm), its proved upper bounds, and its asymptote.

Theorem A(iii) bounds it a posteriori (through the recorded path) and a priori (through t alone), Theorems B
and C sharply from their own t0 on; the exact constant predicts t^2 (1 - cos) in the limit. The paper's rate
t^(-1/2) is that of ||W_t/||W_t|| - W_mm/||W_mm|| ||, whose square is 2 (1 - cos): here it is the slope -1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

import theory
from numerics.errors import AttnratesError
from paper_figs import captions, experiments, style
from paper_figs.figures import Part, Workshop
from paper_figs.runs import Setting, train
from theory.assumptions import check_all
from theory.predict import predict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numerics.run import Run

OBSERVED, ASYMPTOTE, GUIDE = "observed", "asymptote", "slope"
FEW = 20  # steps that show how long the first ones are, the longest
HIGHEST = 2.0  # 1 - cos is never more: a bound above says nothing
GUIDE_AT_START, GUIDE_SPAN = 1e-5, (0.05, 0.8)  # where there is room for the slope; shares of the last step


class Bound(NamedTuple):
    """A kind of bound: the theorems that give it, for one rule or another, and how it is drawn."""

    theorems: tuple[str, ...]
    label: str
    linestyle: Literal["-"] | tuple[float, tuple[float, ...]]


BOUNDS = {
    "a-priori": Bound(
        ("global-direction-apriori", "global-direction-polyak"), "a-priori bound", (0, (5, 1.5))
    ),
    "a-posteriori": Bound(("global-direction",), "a-posteriori bound", (0, (1, 1))),
    "sharp": Bound(("ngd-sharp-rate", "sharp-rate"), "sharp bound", "-"),
}


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the runs shown: each rule on seed 0 of the Gaussian data, long enough for the asymptote."""
    data, _, steps = experiments.EXPERIMENTS["gaussian"]
    return {
        "gaussian": Part(
            settings=[
                Setting(data=data, rule=rule, step=step, steps=20_000 if quick else 100_000, space="gram")
                for rule, step in steps.items()
            ]
        )
    }


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Collect every curve: rows of series, rule, step and value (1 - cos). What is not claimed has no row."""
    frames = []
    runs = shop.runs_of(part)
    for run in runs:
        seen = run.history[run.history["step"] > 0]
        steps = seen["step"].to_numpy()
        frames.append(_curve(OBSERVED, run, steps, seen["direction_gap"].to_numpy()))
        for series, bound in BOUNDS.items():
            for verdict in (theory.check(run, key) for key in bound.theorems):
                if verdict.holds is not None:
                    frames.append(_curve(series, run, verdict.steps, verdict.bound))
                    break
        constant = _constant(run)
        if constant is not None:
            frames.append(_curve(ASYMPTOTE, run, steps, constant / steps.astype(float) ** 2))
    ends = max(run.steps for run in runs) * np.array(GUIDE_SPAN)
    guide = pd.DataFrame(
        {"series": GUIDE, "rule": "", "step": ends, "value": GUIDE_AT_START * ends[0] / ends}
    )
    return pd.concat([*frames, guide], ignore_index=True)


def _curve(series: str, run: Run, steps: np.ndarray, values: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame({"series": series, "rule": run.rule.name, "step": steps, "value": values})
    return frame[np.isfinite(frame["value"]) & (frame["value"] > 0)]


def _constant(run: Run) -> float | None:
    """Return the predicted limit of t^2 (1 - cos), or None where none is predicted for rule or data."""
    try:
        constant = predict(run.problem, run.rule, run.init).constant
    except AttnratesError:
        return None
    return None if constant is None else float(constant.mid())


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the curves from the saved data alone."""
    curves = frame[frame["series"] != GUIDE]
    with style.applied():
        figure = style.new_figure(style.SINGLE, 3.9)
        ax = figure.subplots()
        for rule, part in curves.groupby("rule", sort=False):
            _rule(ax, style.RULES[str(rule)], part)
        _guide(ax, frame[frame["series"] == GUIDE])
        ax.set(xscale="log", yscale="log", xlabel="iteration $t$")
        ax.set_ylabel(r"$1-\cos(W_t,W_{\mathrm{mm}})$")
        ax.set_xlim(1, frame["step"].max())
        ax.set_ylim(curves["value"].min() / 2, HIGHEST)
        ax.yaxis.set_major_locator(LogLocator(numticks=8))
        figure.legend(handles=_legend(curves), loc="outside lower center", ncols=2)
    return figure


def _rule(ax: Axes, look: style.Look, part: pd.DataFrame) -> None:
    """Draw one rule's curves in its colour: the asymptote a pale band below its run, the bounds thin."""
    for series, curve in part.groupby("series", sort=False):
        if series == ASYMPTOTE:
            ax.plot(curve["step"], curve["value"], color=look.color, linewidth=4, alpha=0.3, zorder=1.5)
        elif series in BOUNDS:
            linestyle = BOUNDS[str(series)].linestyle
            ax.plot(curve["step"], curve["value"], color=look.color, linestyle=linestyle, linewidth=0.9)
        else:
            ax.plot(
                curve["step"],
                curve["value"],
                color=look.color,
                linestyle=look.linestyle,
                marker=look.marker,
                markevery=max(1, len(curve) // 10),
                zorder=3,
            )


def _guide(ax: Axes, guide: pd.DataFrame) -> None:
    """Draw the paper's rate as a slope."""
    steps, values = guide["step"].to_numpy(), guide["value"].to_numpy()
    ax.plot(steps, values, color="0.35", linewidth=0.8)
    ax.annotate(
        "paper: $t^{-1}$",
        (steps[1], values[0]),
        xytext=(0, 1),
        textcoords="offset points",
        ha="right",
        fontsize=7,
        color="0.35",
    )


def _legend(curves: pd.DataFrame) -> list[Line2D]:
    present = set(curves["series"])
    handles = [
        Line2D([], [], color=look.color, linestyle=look.linestyle, marker=look.marker, label=look.label)
        for look in (style.RULES[str(rule)] for rule in curves["rule"].unique())
    ]
    if ASYMPTOTE in present:
        handles.append(Line2D([], [], color="0.3", linewidth=4, alpha=0.3, label="predicted asymptote"))
    return handles + [
        Line2D([], [], color="0.3", linestyle=bound.linestyle, linewidth=0.9, label=bound.label)
        for series, bound in BOUNDS.items()
        if series in present
    ]


def _where(part: Part, frame: pd.DataFrame) -> str:
    """Say where bounds begin that do not do so at once, and for which rules there is no sharp one."""
    said = ""
    curves = {key: curve.set_index("step")["value"] for key, curve in frame.groupby(["series", "rule"])}
    sharp = [setting.rule for setting in part.settings if ("sharp", setting.rule) in curves]
    if sharp:
        starts = [
            f"$t={curves['sharp', rule].index[0]}$ on for {captions.RULE_NAMES[rule]}" for rule in sharp
        ]
        said += (
            f" The sharp bound is drawn from {captions.listed(starts)}, after the first recorded $t_0$ at "
            "which its condition on the start is met"
        )
        without = _long_steps(part, set(sharp))
        said += f"; {without}." if without else "."
    for setting in part.settings:
        bound = curves.get(("a-priori", setting.rule))
        if bound is not None and bound.iloc[0] > HIGHEST:
            low = bound.index[bound <= HIGHEST]
            until = f"until $t={low[0]}$" if len(low) else "throughout"
            said += (
                f" The a-priori bound of {captions.RULE_NAMES[setting.rule]} is above ${HIGHEST:g}$, and the "
                f"panel, {until}."
            )
    return said


def _long_steps(part: Part, sharp: set[str]) -> str:
    """Say which rules lack a sharp bound because their steps are longer than it allows."""
    long, limit = [], 0.0
    for setting in part.settings:
        if setting.rule not in sharp:
            run = train(replace(setting, steps=FEW), problem=setting.problem())
            check = check_all(run, ("short steps",))["short steps"]
            if check.state == "fails" and check.value is not None:
                long.append(captions.RULE_NAMES[setting.rule])
                limit = check.value[0]
    if not long:
        return ""
    have = "has" if len(long) == 1 else "have"
    return (
        f"{captions.listed(long)} {have} none, since it needs steps below "
        f"$2g^*/R_B^2={captions.number(limit, 3)}$, with $R_B$ the largest part of a constraint across "
        r"$W_{\mathrm{mm}}$"
    )


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what the curves are, with the predicted constants."""
    first = part.settings[0]
    steps = captions.rules({setting.rule: setting.step for setting in part.settings})
    asymptotes = frame[frame["series"] == ASYMPTOTE].groupby("rule", sort=False).last()
    constants = [
        f"${captions.number(row.value * row.step**2, 6)}/t^2$ for {captions.RULE_NAMES[str(rule)]}"
        for rule, row in asymptotes.iterrows()
    ]
    predicted = f" The predicted asymptotes (pale) are {captions.listed(constants)}." if constants else ""
    return (
        f"Distance in direction to the max-margin solution on "
        f"{captions.data_set(first, margin=True)}, {captions.seeds([first.seed])}, from $W_0=0$: "
        f"{steps}, and the upper bounds proved for them: a posteriori (global-direction, through the "
        f"recorded path), a priori (through $t$ alone) and sharp.{_where(part, frame)}{predicted} The "
        "straight line has the slope of the paper's rate, $t^{-1/2}$ for "
        r"$\|W_t/\|W_t\|-W_{\mathrm{mm}}/\|W_{\mathrm{mm}}\|\|=\sqrt{2(1-\cos)}$."
    )
