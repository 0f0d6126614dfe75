"""Figure 8: how tight each theorem is: observed over bound, for every theorem about runs and every rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

import theory
from paper_figs import captions, experiments, joint_training, style
from paper_figs.figures import Part, Workshop
from paper_figs.runs import Decoder, Setting
from theory.verdict import Verdict, ratios

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW, APART = 0.17, 0.26  # inches a theorem; the distance of its rules in rows
LOOSEST = 1e-9  # shown; what is looser leaves the panel (a loss below its bound by hundreds of digits)


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the runs measured: each rule on many seeds of Gaussian data, the decoder fixed or trained too.

    As long as float64 holds both sides of every bound; attention underflows soon after.
    """
    data, _, steps = experiments.EXPERIMENTS["gaussian"]
    length = 300 if quick else 1_000
    return {
        "gaussian": Part(
            settings=[
                Setting(data=data, rule=rule, step=step, steps=length, seed=seed, space="gram")
                for seed in range(3 if quick else 20)
                for rule, step in steps.items()
            ]
        ),
        "joint": Part(
            settings=[
                Setting(
                    data=data,
                    rule=rule,
                    step=step,
                    exponent=exponent,
                    steps=length,
                    seed=seed,
                    space="gram",
                    decoder=Decoder(rule=rule, step=step, exponent=exponent),
                )
                for data in joint_training.DATA.values()
                for seed in range(2 if quick else 10)
                for rule, (step, exponent) in joint_training.RULES.items()
            ]
        ),
    }


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Measure every theorem and rule: worst, median and final observed/bound over recorded steps and seeds.

    For a lower bound the ratio is bound/observed, so that at most 1 is a bound kept. `worst` is the largest
    over all seeds and steps, `median` that of all of them together, `final` the median over the seeds of the
    last step; `seeds` counts the runs on which the bound is claimed. The tightest theorem comes first.
    """
    found: dict[tuple[str, str], list[tuple[Verdict, np.ndarray]]] = {}
    runs = shop.runs_of(part)
    # A loss far below its bound overflows; what does is not taken.
    with shop.phase("checking", len(runs)) as step, np.errstate(over="ignore"):
        for setting, run in zip(part.settings, runs, strict=True):
            step(setting.name)
            for verdict in theory.check_all(run):
                if verdict.holds is not None:
                    found.setdefault((verdict.theorem, run.rule.name), []).append((verdict, _used(verdict)))
    rows = [
        {
            "theorem": theorem,
            "rule": rule,
            "seeds": len(each),
            "worst": max(verdict.worst_ratio for verdict, _ in each),
            "median": np.median(np.concatenate([ratio for _, ratio in each])),
            "final": np.median([ratio[-1] for _, ratio in each]),
        }
        for (theorem, rule), each in found.items()
    ]
    frame = pd.DataFrame(rows, columns=["theorem", "rule", "seeds", "worst", "median", "final"])
    tightest = frame.groupby("theorem")["worst"].transform("max").round(6)
    order = frame.assign(tightest=tightest, place=frame["rule"].map(list(style.RULES).index))
    order = order.sort_values(["tightest", "theorem", "place"], ascending=[False, True, True])
    return order.drop(columns=["tightest", "place"]).reset_index(drop=True)


def _used(verdict: Verdict) -> np.ndarray:
    """Return the ratio at each recorded step, from the numbers as float64 holds them."""
    rate = theory.theorems()[verdict.theorem].rate
    assert rate is not None
    if rate.sense == "upper":
        return ratios(verdict.observed, verdict.bound)
    return ratios(verdict.bound, verdict.observed)


def draw(frame: pd.DataFrame) -> Figure:
    """Draw a row for each theorem from the saved data alone, the worst ratio of all rules written out."""
    theorems = list(frame["theorem"].unique())
    with style.applied():
        figure = style.new_figure(style.SINGLE, 1.0 + ROW * len(theorems))
        ax = figure.subplots()
        for place, theorem in enumerate(theorems):
            part = frame[frame["theorem"] == theorem]
            for number, row in enumerate(part.itertuples()):
                _dots(ax, place + APART * (number - (len(part) - 1) / 2), row)
        ax.axvline(1, color="0.3", linewidth=0.8, zorder=1)
        ax.set_xscale("log")
        ax.set_xlim(max(LOOSEST, ax.get_xlim()[0]), 2.5)
        ax.set_yticks(range(len(theorems)), theorems)
        ax.set_ylim(len(theorems) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0, labelsize=6)
        ax.set_xlabel("observed / bound")
        worst = frame.groupby("theorem")["worst"].max()
        numbers = ax.secondary_yaxis("right")
        numbers.set_yticks(range(len(theorems)), [_short(worst[theorem]) for theorem in theorems])
        numbers.tick_params(length=0, labelsize=6)
        numbers.spines["right"].set_visible(False)
        ax.set_title("worst", loc="right", fontsize=6, x=1.02, ha="left", pad=2)
        figure.legend(handles=_legend(frame), loc="outside lower center", ncols=3, handlelength=1.8)
    return figure


def _short(ratio: float) -> str:
    """Write three digits, small numbers two with a power of ten."""
    if ratio >= 1e-3:
        return f"{ratio:#.3g}"
    mantissa, exponent = f"{ratio:.1e}".split("e")
    return rf"${mantissa}\cdot10^{{{int(exponent)}}}$"


def _dots(ax: Axes, height: float, row: Any) -> None:
    """Draw one rule: a line over its three ratios, and a mark at each."""
    look = style.RULES[str(row.rule)]
    three = [row.final, row.median, row.worst]
    ax.plot([min(three), max(three)], [height] * 2, color=look.color, linewidth=0.8, zorder=2)
    ax.plot([row.worst], [height], color=look.color, marker="|", markersize=4, zorder=3)
    ax.plot([row.median], [height], color=look.color, marker=look.marker, markersize=2.6, zorder=4)
    ax.plot(
        [row.final],
        [height],
        color=look.color,
        marker=look.marker,
        markersize=2.6,
        markerfacecolor="white",
        markeredgewidth=0.6,
        zorder=3,
    )


def _legend(frame: pd.DataFrame) -> list[Line2D]:
    rules = [look for rule, look in style.RULES.items() if rule in set(frame["rule"])]
    grey: Any = {"color": "0.3", "linestyle": "none", "markersize": 3}
    return [
        *(Line2D([], [], color=x.color, marker=x.marker, linestyle="none", label=x.label) for x in rules),
        Line2D([], [], marker="|", label="worst", **grey),
        Line2D([], [], marker="o", label="median", **grey),
        Line2D([], [], marker="o", markerfacecolor="white", label="final step", **grey),
    ]


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what the marks are, on which runs, and how tight the tightest theorem is."""
    first = part.settings[0]
    steps = captions.rules({setting.rule: setting.step for setting in part.settings})
    data = captions.listed(captions.data_set(x) for x in {x.data: x for x in part.settings}.values())
    joint = ""
    if first.decoder is not None:
        steps += ", those of normalized GD times $(t+1)^{-2/3}$, for $W$ and the decoder alike, from zero"
        joint = " in joint training"
    worst = frame.groupby("theorem")["worst"].max()
    least = float(frame[["median", "final"]].to_numpy().min())
    loose = f" Ratios below ${captions.number(LOOSEST)}$ leave the panel." if least < LOOSEST else ""
    seeds = captions.seeds(setting.seed for setting in part.settings)
    return (
        f"Tightness of the {len(worst)} theorems about runs{joint}: observed over bound (for lower bounds, "
        f"bound over observed), so that at most 1 is a bound kept, on {data}, {seeds}, "
        f"${captions.number(first.steps)}$ steps of {steps}. A line joins the worst, the median and the "
        "final ratio over all steps and seeds; on the right the worst. At its tightest step the "
        f"bound is within a factor 10 of what is observed for {int((worst > 0.1).sum())} of them.{loose}"
    )
