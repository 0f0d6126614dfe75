"""Figure 5, words: where attention looks in news headlines, before and after training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

from paper_figs import captions, style
from paper_figs.attention_digits import OPTIMAL, attention
from paper_figs.figures import Part, Workshop
from paper_figs.runs import Setting
from theory.assumptions import ASSUMPTIONS, check_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DATA = {
    "contextual": "bbc:business+tech,n=10,tokens=12",  # MiniLM's last layer, attention from [CLS]
    "input": "bbc:business+tech,n=10,tokens=12,layer=0,query=mean",  # [CLS] would be the same everywhere
}
SHADE = "#004488"
SIZE, PAD, JOINT = 8, 3.2, 1.3  # points: the font, the space around a word, and after a piece
JOINED = "·"  # stands before a piece that continues a word
EACH = 3  # articles shown of each category
COLUMNS = ("before", "after")


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the runs: normalized GD on the vectors of words, of the last layer and of the input embeddings."""
    steps = 60 if quick else 10_000
    return {
        name: Part(settings=[Setting(data=spec, rule="ngd", step=0.1, steps=steps, seed=0)], extra="language")
        for name, spec in DATA.items()
    }


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Collect a row for each WordPiece: the attention on it before and after training, and its score.

    `optimal` marks the optimal token, `hit` the articles whose most attended piece is that token in the end;
    `one_minus_p` (the largest), `rate` (the fitted sparsification rate: minus the slope of log max_i (1-p_i)
    against ||W_t|| over the last tenth of the norm), `margin` (g*, what the theorem allows it to be),
    `direction_gap` and `hypotheses` (those that hold) are of the whole run.
    """
    from numerics.datasets import parse
    from numerics.datasets.bbc import sentences

    setting = part.settings[0]
    options = parse(setting.data)[1]
    found = sentences(seed=setting.seed, **options)
    run = shop.runs_of(part)[0]
    problem = run.problem
    before, after = (attention(run, W) for W in (None, run.weights))
    last = run.history.iloc[-1]
    classes = str(options["classes"]).split("+")
    rows = [
        {
            "article": i,
            "category": classes[0 if problem.labels[i] > 0 else 1],
            "position": tau,
            "word": str(found.words[i, tau]),
            "score": problem.scores[i, tau],
            "before": before[i, tau],
            "after": after[i, tau],
            "optimal": tau == problem.optimal[i],
            "hit": after[i].argmax() == problem.optimal[i],
        }
        for i in range(problem.n)
        for tau in np.flatnonzero(problem.mask[i])
    ]
    frame = pd.DataFrame(rows)
    frame["one_minus_p"] = math.exp(last["log_attention_gap"])
    frame["rate"] = sparsification_rate(run.history)
    frame["margin"] = math.nan if run.target is None else run.target.margin
    frame["direction_gap"] = last["direction_gap"]
    frame["hypotheses"] = " ".join(
        name for name, check in check_all(run, tuple(ASSUMPTIONS)).items() if check.state == "holds"
    )
    return frame


def sparsification_rate(history: pd.DataFrame) -> float:
    """Minus the slope of log max_i (1 - p_i) against ||W_t||, where the norm is in its last tenth.

    The paper's sparsification: attention off the optimal token decays exponentially in the norm, at a rate
    that tends to the margin g* as the direction converges. NaN with fewer than two records there.
    """
    late = history[history["weight_norm"] >= 0.9 * history["weight_norm"].max()]
    if late["weight_norm"].nunique() < 2:
        return math.nan
    return float(-np.polyfit(late["weight_norm"], late["log_attention_gap"], 1)[0])


def draw(frame: pd.DataFrame) -> Figure:
    """Draw each article's pieces in a line, twice, shaded by attention, the optimal token outlined."""
    shown = [
        article
        for _, part in frame.groupby("category", sort=True)
        for article in list(part["article"].unique())[:EACH]
    ]
    with style.applied():
        figure = style.new_figure(style.DOUBLE, 0.42 * len(shown) + 0.55)
        axes = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        for ax, article in zip(axes, shown, strict=True):
            _strip(ax, frame[frame["article"] == article])
        figure.legend(
            handles=[
                Rectangle((0, 0), 1, 1, facecolor=SHADE, label="attention (darker: more)"),
                Rectangle((0, 0), 1, 1, fill=False, edgecolor=OPTIMAL, linewidth=1.4, label="optimal token"),
            ],
            loc="outside lower center",
            ncols=2,
            handlelength=1.6,
        )
    return figure


def _strip(ax: Axes, part: pd.DataFrame) -> None:
    """Two lines of boxes, one a piece; a dot joins the pieces of one word. Lengths are in points."""
    words = [str(word) for word in part["word"]]
    starts = [not word.startswith("##") for word in words]
    ends = [*starts[1:], True]
    shown = [word.replace("##", JOINED, 1) if word.startswith("##") else word for word in words]
    left = 0.0
    for tau, word in enumerate(shown):
        before, after = PAD * starts[tau], PAD if ends[tau] else JOINT
        width = before + _width(word) + after
        for line, column in enumerate(COLUMNS):
            opacity = float(np.sqrt(part[column].iloc[tau]))  # the root keeps uniform attention visible
            corner = (left, -line - 0.45)
            ax.add_patch(Rectangle(corner, width, 0.9, facecolor=SHADE, alpha=opacity, linewidth=0))
            if part["optimal"].iloc[tau]:
                outline: Any = {"fill": False, "edgecolor": OPTIMAL, "linewidth": 1.4, "zorder": 3}
                ax.add_patch(Rectangle(corner, width, 0.9, **outline))
            color = "white" if opacity > 0.6 else "black"
            place: Any = {"va": "center_baseline", "fontsize": SIZE, "zorder": 4, "parse_math": False}
            ax.text(left + before, -line, word, color=color, **place)
        left += width
    for line, column in enumerate(COLUMNS):
        ax.text(-3, -line, column, ha="right", va="center", fontsize=7, color="0.3")
    ax.text(-30, -0.5, part["category"].iloc[0], ha="right", va="center", fontsize=8)
    ax.set(xlim=(-70, max(72 * style.DOUBLE - 78, left)), ylim=(-1.5, 0.5), xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


def _width(text: str) -> float:
    """The width of a word in points."""
    font = FontProperties(family=style.PARAMETERS["font.serif"], size=SIZE)
    return float(TextPath((0, 0), text.replace("$", r"\$"), size=SIZE, prop=font).get_extents().x1)


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what is shown, how well attention found the optimal tokens, and what the data satisfy."""
    setting = part.settings[0]
    each = frame.drop_duplicates("article")
    first = frame.iloc[0]
    trained = captions.rules({setting.rule: setting.step})
    names = [f"({name})" for name in str(first["hypotheses"]).split()]
    number = captions.number
    layer = (
        "as the input embeddings of MiniLM give them, each by itself"
        if "layer=0" in setting.data
        else "as MiniLM's last layer gives them in context, a word's also telling of its neighbours"
    )
    return (
        f"Attention over the WordPieces of BBC news articles (a dot joins those of one word), with "
        f"vectors {layer} (data set {setting.data}, "
        f"{captions.seeds([setting.seed])}; {EACH} of {len(each) // 2} articles of each category), before "
        f"training ($W_0=0$) and after ${number(setting.steps)}$ steps of {trained}. In the end "
        f"{int(each['hit'].sum())} of {len(each)} articles attend most to their optimal token; the largest "
        f"$1-p_i$ is ${number(first['one_minus_p'], 2)}$, in the last tenth of the norm it falls like "
        f"$\\exp(-{number(first['rate'], 3)}\\,\\|W_t\\|)$ (the margin $g^*$ is "
        f"${number(first['margin'], 3)}$), and $1-\\cos(W_t,W_{{\\mathrm{{mm}}}})$ is "
        f"${number(first['direction_gap'], 2)}$. Of the assumptions on the data these hold: "
        f"{captions.listed(names)}."
    )
