r"""Figure 2: W and the decoder trained together, in the two regimes of Gaussian data.

With normalized GD and steps eta (t+1)^(-2/3) the loss decays like exp(-c t^(1/3)), the paper's claim: a
straight line in (a). A strong signal makes the signal tokens the optimal ones; under a weak signal the layer
fits noise tokens, and aligns with their W_mm as it would with the signal's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

import theory
from numerics.datasets.gaussian import STRONG_SIGNAL, WEAK_SIGNAL
from paper_figs import captions, style
from paper_figs.figures import Part, Workshop
from paper_figs.runs import Decoder, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numerics.run import Run

DATA = {"strong-signal": STRONG_SIGNAL, "weak-signal": WEAK_SIGNAL}
# For W and the decoder alike: step (the longest one allowed, for Polyak) and exponent of its decay.
RULES: dict[str, tuple[float, float]] = {"gd": (1.0, 0.0), "ngd": (0.3, 2 / 3), "polyak": (1.0, 0.0)}
BOUNDS = {"loss": ("joint-loss-rate", "joint-loss"), "direction_gap": ("joint-direction",)}
OTHERS_LEAVE = 1.35  # (a) shows so many times the last value of normalized GD: a faster rule leaves the panel
MARGIN, ALIGNMENT = "margin_gap", "decoder_direction_gap"
BAND: Any = {"linewidth": 4, "alpha": 0.3, "zorder": 1.5}  # how (d) shows the decoder's direction


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the runs: every rule, for W and the decoder alike, on seed 0 of the data of each regime."""
    return {
        name: Part(
            settings=[
                Setting(
                    data=data,
                    rule=rule,
                    step=step,
                    exponent=exponent,
                    steps=3_000 if quick else 100_000,
                    space="gram",
                    decoder=Decoder(rule=rule, step=step, exponent=exponent),
                )
                for rule, (step, exponent) in RULES.items()
            ]
        )
        for name, data in DATA.items()
    }


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Collect what is drawn, a row for each rule and step.

    minus_log_loss, direction_gap, log_attention_gap, margin_gap (1 - the decoder's margin over its largest)
    and decoder_direction_gap, the number of sequences whose optimal token is the data's own, and the proved
    bounds on the first two where they are claimed (else none).
    """
    frames = []
    for run in shop.runs_of(part):
        history = run.history
        frame = pd.DataFrame({"rule": run.rule.name, "step": history["step"]})
        frame["minus_log_loss"] = -history["log_loss"]
        frame["log_attention_gap"] = history["log_attention_gap"]
        frame["direction_gap"] = history["direction_gap"]
        frame[MARGIN] = 1 - history["decoder_margin_share"]
        frame[ALIGNMENT] = history["decoder_direction_gap"]
        frame["optimal_data"] = history["optimal_data"]
        frame["sequences"] = run.problem.n
        with np.errstate(divide="ignore"):
            frame["bound_minus_log_loss"] = -np.log(_bound(run, "loss"))
        frame["bound_direction_gap"] = _bound(run, "direction_gap")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _bound(run: Run, name: str) -> np.ndarray:
    """Return the best of the proved bounds at every recorded step, no number where none is claimed."""
    steps = run.history["step"].to_numpy()
    best = np.full(len(steps), np.nan)
    for verdict in (theory.check(run, key) for key in BOUNDS[name]):
        if verdict.holds is not None:
            at = np.searchsorted(steps, verdict.steps)
            best[at] = np.fmin(best[at], np.where(verdict.bound > 0, verdict.bound, np.nan))
    return best


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the four panels from the saved data alone."""
    frame = frame[frame["step"] > 0]
    with style.applied():
        figure = style.new_figure(style.DOUBLE, 4.4)
        (loss, direction), (attention, decoder) = figure.subplots(2, 2)
        for rule, part in frame.groupby("rule", sort=False):
            look = style.RULES[str(rule)]
            root = np.cbrt(part["step"])
            _curve(loss, look, root, part["minus_log_loss"])
            _bound_curve(loss, look, root, part["bound_minus_log_loss"])
            _curve(direction, look, part["step"], part["direction_gap"])
            _bound_curve(direction, look, part["step"], part["bound_direction_gap"])
            _curve(attention, look, part["step"], -part["log_attention_gap"])
            _curve(decoder, look, part["step"], part[MARGIN].clip(lower=1e-16))
            # Wider and pale, below the other: seen where both go the same way, as under a strong signal.
            decoder.plot(part["step"], part[ALIGNMENT], color=look.color, **BAND)
        last = frame.loc[frame["rule"] == "ngd", "minus_log_loss"].iloc[-1]
        loss.set(xlim=(1, root.max()), ylim=(0, OTHERS_LEAVE * last))
        loss.set(xlabel="$t^{1/3}$", ylabel=r"$-\log L(W_t,u_t)$")
        lowest = 0.1 * frame.loc[frame["direction_gap"] > 0, "direction_gap"].min()
        _guide(direction, lowest)
        direction.set(ylim=(lowest, 2.0), ylabel=r"$1-\cos(W_t,W_{\mathrm{mm}})$")
        attention.set(ylabel=r"$-\log\,\mathrm{max}_i(1-p_i)$")
        decoder.set(ylabel="distance of the decoder")
        for ax in (direction, attention, decoder):
            ax.set(xscale="log", yscale="log", xlabel="iteration $t$", xlim=(1, frame["step"].max()))
            ax.yaxis.set_major_locator(LogLocator(numticks=7))
            ax.yaxis.set_minor_locator(NullLocator())
        titles = (
            "loss",
            "direction of $W$",
            "attention on the optimal tokens",
            "margin and direction of $u$",
        )
        for letter, title, ax in zip("abcd", titles, (loss, direction, attention, decoder), strict=True):
            ax.set_title(f"({letter}) {title}", loc="left")
        attention.text(0.03, 0.93, _found(frame), transform=attention.transAxes, va="top", fontsize=7)
        figure.legend(handles=_legend(frame), loc="outside lower center", ncols=3)
    return figure


def _curve(ax: Axes, look: style.Look, x: Any, y: Any) -> None:
    every = max(1, len(x) // 10)
    ax.plot(x, y, color=look.color, linestyle=look.linestyle, marker=look.marker, markevery=every)


def _bound_curve(ax: Axes, look: style.Look, x: Any, y: Any) -> None:
    ax.plot(x, y, color=look.color, linestyle=":", linewidth=1.0)


def _guide(ax: Axes, lowest: float) -> None:
    """Draw the slope of one over the squared path of normalized GD, where no run is so early."""
    steps = np.array([2.0, 40.0])
    values = lowest * (2 / lowest) ** 0.25 * (steps / steps[0]) ** (-2 / 3)
    ax.plot(steps, values, color="0.35", linewidth=0.8)
    ax.annotate(
        "$t^{-2/3}$",
        (steps[0], values[0]),
        xytext=(2, 2),
        textcoords="offset points",
        ha="left",
        va="bottom",
        fontsize=7,
        color="0.35",
    )


def _found(frame: pd.DataFrame) -> str:
    """Which tokens the runs settle on."""
    last = frame.groupby("rule", sort=False).last()
    found, total = last["optimal_data"].unique(), int(last["sequences"].iloc[0])
    counts = " to ".join(f"{value:.0f}" for value in sorted(found))
    return f"signal token found in {counts} of {total} sequences"


def _legend(frame: pd.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], color=look.color, linestyle=look.linestyle, marker=look.marker, label=look.label)
        for look in (style.RULES[str(rule)] for rule in frame["rule"].unique())
    ]
    if frame[["bound_minus_log_loss", "bound_direction_gap"]].notna().any(axis=None):
        handles.append(Line2D([], [], color="0.3", linestyle=":", label="(a), (b): proved bound"))
    solid = Line2D([], [], color="0.3", linewidth=0.9, label=r"(d): $1-$ margin of $u$ / largest margin")
    band = Line2D([], [], color="0.3", **BAND, label=r"(d): $1-\cos(u_t,u_{\mathrm{mm}})$")
    return [*handles, solid, band]


def _dotted(frame: pd.DataFrame) -> str:
    """Name the theorems whose bounds are shown."""
    claimed = [
        f"({letter}) {' and '.join(BOUNDS[name])}"
        for letter, name, column in (
            ("a", "loss", "bound_minus_log_loss"),
            ("b", "direction_gap", "bound_direction_gap"),
        )
        if frame[column].notna().any()
    ]
    if not claimed:
        return ""
    return (
        " Dotted in (a) and (b), where claimed and from their own $t_0$ on: the best bound of "
        f"{captions.listed(claimed)}."
    )


def _vacuous(frame: pd.DataFrame) -> str:
    """Say why the bound on the loss under Polyak becomes vacuous, where it does."""
    bound = frame.loc[frame["rule"] == "polyak"].set_index("step")["bound_minus_log_loss"].dropna()
    if bound.empty or not (bound.iloc[0] > 0 and bound.min() <= 0):
        return ""
    return (
        f" That on the loss under Polyak says nothing from $t={bound.index[bound <= 0][0]}$ on, below $0$: "
        "a term of it grows with the sum of the squared steps of $u$, which without decay outgrows the gain."
    )


def rate(frame: pd.DataFrame) -> tuple[float, float]:
    """Give the least and the largest -log L/t^(1/3) of normalized GD over the last decade."""
    run = frame[(frame["rule"] == "ngd") & (frame["step"] >= frame["step"].max() / 10)]
    values = run["minus_log_loss"] / np.cbrt(run["step"])
    return float(values.min()), float(values.max())


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what was run, and what came of it."""
    first = part.settings[0]
    steps = {setting.rule: setting.step for setting in part.settings}
    low, high = rate(frame)
    last = frame[(frame["rule"] == "ngd") & (frame["step"] == frame["step"].max())].iloc[0]
    return (
        "Joint training of $W$ and the decoder $u$, from zero, on "
        f"{captions.data_set(first)}, {captions.seeds([first.seed])}, "
        f"${captions.number(first.steps)}$ steps, both by "
        f"{captions.rules(steps)}; the steps of normalized GD decay like $(t+1)^{{-2/3}}$. (a) The loss: for "
        f"normalized GD $-\\log L/t^{{1/3}}$ stays between ${captions.number(low, 3)}$ and "
        f"${captions.number(high, 3)}$ over the last decade; Polyak, whose steps do not decay, leaves the "
        "panel. (b) The distance of $W$ in direction from the max-margin solution of the tokens that are "
        f"optimal in the end, ${captions.number(last['direction_gap'], 2)}$ for normalized GD; the grey line "
        "has the slope of $t^{-2/3}$, one over the square of the path that it has gone. (c) The "
        f"attention off these tokens: the {_found(frame)}. (d) The decoder: how far its margin on them is "
        "below the largest (lines), and the distance in direction from its own max margin (pale bands)."
        f"{_dotted(frame)}{_vacuous(frame)}"
    )
