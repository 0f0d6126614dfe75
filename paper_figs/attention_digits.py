"""Figure 5, digits: where attention looks in each image, before and after training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle
from scipy.special import softmax

from numerics.datasets.digits import images
from paper_figs import captions, experiments, style
from paper_figs.figures import Part, Workshop
from theory.assumptions import ASSUMPTIONS, check_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numerics.run import Run

RULE = "ngd"
COLUMNS = ("before", "after")
OPTIMAL = "#DDAA33"
EACH = 5  # images shown of each digit


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the run: normalized GD on the standard digits."""
    settings = [s for s in experiments.standard(quick=quick)["digits"] if s.rule == RULE]
    classes, n = experiments.DIGITS
    return {"digits": Part(settings=settings, options={"classes": classes, "n": n})}


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Collect a row for each pixel: its ink, and the share of attention on its patch before and after.

    `optimal` marks the pixels of the optimal token, `hit` the images whose most attended patch is that token
    in the end; `one_minus_p`, `direction_gap` and `hypotheses` (those that hold) are of the whole run.
    """
    run = shop.runs_of(part)[0]
    classes, n = part.options["classes"], part.options["n"]
    ink = images(classes, seed=run.seed or 0, n=n)
    before, after = (attention(run, W) for W in (None, run.weights))
    side = math.isqrt(run.problem.T)
    patch = ink.shape[1] // side
    row, column = np.divmod(np.arange(ink[0].size), ink.shape[1])
    owner = (row // patch) * side + column // patch
    last = run.history.iloc[-1]
    frames = [
        pd.DataFrame(
            {
                "image": i,
                "digit": classes.split("v")[0 if run.problem.labels[i] > 0 else 1],
                "row": row,
                "column": column,
                "ink": picture.ravel(),
                "before": before[i][owner],
                "after": after[i][owner],
                "optimal": owner == run.problem.optimal[i],
                "hit": after[i].argmax() == run.problem.optimal[i],
            }
        )
        for i, picture in enumerate(ink)
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame["one_minus_p"] = math.exp(last["log_attention_gap"])
    frame["direction_gap"] = last["direction_gap"]
    frame["hypotheses"] = " ".join(_holding(run))
    return frame


def attention(run: Run, W: np.ndarray | None) -> np.ndarray:
    """Give the attention (n, T) that W pays to each token; None is W = 0, uniform over the tokens."""
    problem = run.problem
    logits = np.zeros((problem.n, problem.T))
    if W is not None:
        logits = np.einsum("ntd,de,ne->nt", problem.tokens, W, problem.queries)
    return softmax(np.where(problem.mask, logits, -np.inf), axis=1)


def _holding(run: Run) -> list[str]:
    """List the hypotheses about the data, (S) to (F), that hold for this problem."""
    return [name for name, check in check_all(run, tuple(ASSUMPTIONS)).items() if check.state == "holds"]


def draw(frame: pd.DataFrame) -> Figure:
    """Draw each image twice, ink in grey under attention in blue, the optimal patch outlined."""
    shown = [
        image
        for _, part in frame.groupby("digit", sort=True)
        for image in list(part["image"].unique())[:EACH]
    ]
    with style.applied():
        figure = style.new_figure(style.DOUBLE, 1.75)
        axes = figure.subplots(len(COLUMNS), len(shown), squeeze=False)
        for place, image in enumerate(shown):
            part = frame[frame["image"] == image]
            axes[0, place].set_title(f"digit {part['digit'].iloc[0]}", fontsize=7, pad=2)
            for height, column in enumerate(COLUMNS):
                _picture(axes[height, place], part, column)
        for height, column in enumerate(COLUMNS):
            axes[height, 0].set_ylabel(column)
        figure.legend(
            handles=[
                Rectangle((0, 0), 1, 1, facecolor="#004488", label="attention (darker: more)"),
                Rectangle((0, 0), 1, 1, fill=False, edgecolor=OPTIMAL, linewidth=1.4, label="optimal token"),
            ],
            loc="outside lower center",
            ncols=2,
            handlelength=1.6,
        )
    return figure


def _picture(ax: Axes, part: pd.DataFrame, column: str) -> None:
    side = part["row"].max() + 1
    ink = part["ink"].to_numpy().reshape(side, side)
    weight = part[column].to_numpy().reshape(side, side)
    ax.imshow(ink, cmap="Greys", vmin=0, vmax=32)
    shade = np.zeros((side, side, 4))
    shade[..., :3] = (0.0, 0x44 / 255, 0x88 / 255)
    shade[..., 3] = np.sqrt(weight)  # the root keeps uniform attention visible
    ax.imshow(shade)
    best = part[part["optimal"]]
    top, left = best["row"].min(), best["column"].min()
    width = best["column"].max() - left + 1
    ax.add_patch(
        Rectangle((left - 0.5, top - 0.5), width, width, fill=False, edgecolor=OPTIMAL, linewidth=1.4)
    )
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what is shown, how well attention found the optimal tokens, and what the data satisfy."""
    setting = part.settings[0]
    each = frame.drop_duplicates("image")
    first = frame.iloc[0]
    trained = captions.rules({setting.rule: setting.step})
    return (
        "Attention over the patches of handwritten digits of "
        f"{captions.data_set(setting, margin=True)}, {captions.seeds([setting.seed])}, before training "
        "(blank ones are no tokens; $W_0=0$) and after "
        f"${captions.number(setting.steps)}$ steps of {trained}. In the end {int(each['hit'].sum())} of "
        f"{len(each)} images attend most to their optimal token; the largest $1-p_i$ is "
        f"${captions.number(first['one_minus_p'], 2)}$ and $1-\\cos(W_t,W_{{\\mathrm{{mm}}}})$ is "
        f"${captions.number(first['direction_gap'], 2)}$. Of the assumptions on the data these hold: "
        f"{captions.listed(f'({name})' for name in str(first['hypotheses']).split())}."
    )
