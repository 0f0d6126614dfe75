"""Figure 7: why the log domain. The usual autograd loop loses the direction once attention saturates.

One run of normalized GD, four times: the loop that everybody writes (softmax, autograd, W a matrix) in
float32 and float64, this package's engine in float64, and ball arithmetic, which encloses the exact run. In
float64 1 - p rounds to 0 once a logit gap passes 37 (float32: 17), and the gradient's direction is rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullLocator

from numerics.maxmargin.solution import MaxMargin
from paper_figs import captions, style
from paper_figs.figures import Part, Workshop
from paper_figs.runs import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numerics.problem import Problem

BALLS, OURS, FLOAT64, FLOAT32 = "ball arithmetic", "ours, float64", "autograd, float64", "autograd, float32"
LOOKS: dict[str, dict[str, Any]] = {
    BALLS: {"color": "0.75", "linewidth": 4, "zorder": 1.5},
    OURS: {"color": "#004488", "linestyle": "-", "marker": "o"},
    FLOAT64: {"color": "#117733", "linestyle": "--", "marker": "s"},
    FLOAT32: {"color": "#AA4499", "linestyle": "-.", "marker": "^"},
}
ROUNDS_TO_ONE = {FLOAT32: 24, FLOAT64: 53}  # bits: 1 - p is lost below 2^-bits


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the run: Gaussian data small enough for ball arithmetic in seconds."""
    setting = Setting(
        data="gaussian:n=4,T=3", rule="ngd", step=0.1, steps=300 if quick else 3_000, space="gram"
    )
    return {"gaussian": Part(settings=[setting])}


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Compute each curve: rows of series, step, distance (1 - cos) and error (relative, against the balls).

    `logit_gap` is the smallest logit gap of the exact run at that step; the error of the balls is their
    relative radius.
    """
    from numerics.certified import certify

    run = shop.runs_of(part)[0]
    shop.say("repeating the run in ball arithmetic")
    balls = certify(run)
    exact = balls.balls["direction_gap"]
    gaps = np.array([float(ball.mid()) for ball in balls.balls["min_logit_gap"]])
    middle = np.array([float(ball.mid()) for ball in exact])
    radius = np.array([float(ball.rad()) for ball in exact])
    steps = run.history["step"].to_numpy()
    assert run.target is not None
    curves = {
        BALLS: (middle, radius),
        OURS: _with_error(run.history["direction_gap"].to_numpy(), exact),
    }
    step = part.settings[0].step
    assert step is not None
    for name, kind in ((FLOAT64, np.float64), (FLOAT32, np.float32)):
        shop.say(f"training with {name}")
        gap = autograd(run.problem, run.target, step=step, steps=steps, kind=kind)
        curves[name] = _with_error(gap, exact)
    frames = [
        pd.DataFrame(
            {"series": name, "step": steps, "distance": gap, "error": error / middle, "logit_gap": gaps}
        )
        for name, (gap, error) in curves.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    return frame[frame["step"] > 0].reset_index(drop=True)


def _with_error(gap: np.ndarray, exact: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the gap and its distance from the balls' midpoints, computed without cancellation."""
    from flint import arb

    error = [
        abs(float((arb(value) - ball.mid()).mid())) if np.isfinite(value) else np.nan
        for value, ball in zip(gap.tolist(), exact, strict=True)
    ]
    return gap, np.array(error)


def autograd(
    problem: Problem, target: MaxMargin, *, step: float, steps: np.ndarray, kind: type
) -> np.ndarray:
    """Train as a notebook does, in this precision; return 1 - cos(W_t, W_mm) at the given steps.

    Only the training is in this precision: the distance is then computed from W in float64, by the residual.
    NaN from where the gradient is not a number.
    """
    import torch

    dtype = torch.float32 if kind is np.float32 else torch.float64
    tokens, queries, labels, decoder = (
        torch.tensor(array, dtype=dtype)
        for array in (problem.tokens, problem.queries, problem.labels, problem.decoder)
    )
    W = torch.zeros(problem.d, problem.d, dtype=dtype, requires_grad=True)
    gaps = np.full(len(steps), np.nan)
    wanted = {int(t): row for row, t in enumerate(steps)}
    for t in range(int(steps[-1]) + 1):
        if t in wanted:
            gaps[wanted[t]] = _gap(W.detach().numpy().astype(np.float64), target.direction)
        logits = torch.einsum("ntd,nd->nt", tokens, queries @ W.T)
        outputs = torch.einsum("nt,ntd,d->n", torch.softmax(logits, dim=1), tokens, decoder)
        loss = torch.nn.functional.softplus(-labels * outputs).mean()
        (gradient,) = torch.autograd.grad(loss, W)
        norm = gradient.norm()
        if not norm > 0:  # nothing is left of the gradient: the loop divides by zero
            break
        with torch.no_grad():
            W -= step * gradient / norm
    return gaps


def _gap(W: np.ndarray, direction: np.ndarray) -> float:
    size = float(np.linalg.norm(W))
    if not (np.isfinite(size) and size > 0):
        return float("nan")
    along = float(np.sum(W * direction))
    across = float(np.linalg.norm(W - along * direction))
    return across**2 / (size * (size + along)) if along > 0 else 1 - along / size


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the distance and its error from the saved data alone."""
    with style.applied():
        figure = style.new_figure(style.DOUBLE, 2.7)
        left, right = figure.subplots(1, 2, sharex=True)
        for name, curve in frame.groupby("series", sort=False):
            look = dict(LOOKS[str(name)])
            every = {} if name == BALLS else {"markevery": (1, max(1, len(curve) // 10))}
            left.plot(curve["step"], curve["distance"], label=str(name), **look, **every)
            if name != BALLS:
                right.plot(curve["step"], curve["error"].clip(lower=1e-17), **look, **every)
        for ax, title, label in (
            (left, "(a) direction", r"$1-\cos(W_t,W_{\mathrm{mm}})$"),
            (right, "(b) error of the direction", "relative error of $1-\\cos$"),
        ):
            _saturation(ax, frame, named=ax is left)  # in the right one the names would cross the curves
            ax.set(xscale="log", yscale="log", xlabel="iteration $t$", ylabel=label)
            ax.set_title(title, loc="left")
            ax.set_xlim(1, frame["step"].max())
            ax.yaxis.set_major_locator(LogLocator(numticks=8))
            ax.yaxis.set_minor_locator(NullLocator())
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def _saturation(ax: Axes, frame: pd.DataFrame, *, named: bool) -> None:
    """Mark where the largest attention that is still below 1 has rounded to 1, in either precision."""
    for name, step in saturation(frame).items():
        color = LOOKS[name]["color"]
        ax.axvline(step, color=color, linewidth=0.8, linestyle=":", zorder=1)
        if not named:
            continue
        ax.annotate(
            f"$1-p<2^{{-{ROUNDS_TO_ONE[name]}}}$",
            (step, 0),
            xycoords=("data", "axes fraction"),
            xytext=(-2, 3),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="bottom",
            fontsize=7,
            color=color,
        )


def saturation(frame: pd.DataFrame) -> dict[str, int]:
    """Give the first recorded step at which every 1 - p is below the precision, for each autograd series."""
    exact = frame[frame["series"] == BALLS]
    found = {}
    for name, bits in ROUNDS_TO_ONE.items():
        beyond = exact[exact["logit_gap"] > bits * np.log(2)]
        if len(beyond):
            found[name] = int(beyond["step"].iloc[0])
    return found


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what was run, and how far each computation ends from the truth."""
    setting = part.settings[0]
    assert setting.step is not None
    last = frame[frame["step"] == frame["step"].max()].set_index("series")
    said = []
    for name in (OURS, FLOAT64, FLOAT32):
        error = last["error"].get(name, np.nan)
        said.append(
            f"{name}: ${captions.number(error, 2)}$"
            if np.isfinite(error)
            else f"{name}: not a number by then"
        )
    where = captions.listed(
        f"$t={step}$ ({name.split(', ')[1]})" for name, step in sorted(saturation(frame).items())
    )
    return (
        f"Why the log domain: normalized GD ($\\eta={captions.number(setting.step)}$, "
        f"${captions.number(setting.steps)}$ steps from $W_0=0$) on "
        f"{captions.data_set(setting, margin=True)}, {captions.seeds([setting.seed])}, "
        f"trained by the usual autograd loop in two precisions, by this "
        "package, and in ball arithmetic, which encloses the exact run. (a) The distance in direction; (b) "
        f"its relative error against the balls, at the end {captions.listed(said)}. Dotted: every $1-p_i$ is "
        f"below the rounding of 1 from {where} on."
    )
