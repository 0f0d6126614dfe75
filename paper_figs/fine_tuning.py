"""Figure 6: fine-tuning a transformer with SGD, normalized SGD, stochastic Polyak and Adam."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from numerics.errors import InputError
from paper_figs import captions, style
from paper_figs.figures import Part, Workshop

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CODE = ("numerics", "paper_figs")
DATA = "bbc:business+tech"
SEEDS = 3
LOOKS = {  # the stochastic rules look like their full-batch versions in the other figures
    "sgd": style.Look("SGD", style.RULES["gd"].color, "--", "s"),
    "nsgd": style.Look("normalized SGD", style.RULES["ngd"].color, "-", "o"),
    "sps": style.Look("stochastic Polyak", style.RULES["polyak"].color, "-.", "^"),
    "adam": style.Look("Adam", "0.25", "-", "D"),
}
PANELS = (("train_loss", "training loss"), ("test_accuracy", "test accuracy"))


def parts(*, quick: bool = False) -> dict[str, Part]:
    """Give the comparison: the defaults of `attnrates finetune`."""
    from numerics.language.experiment import GRIDS, QUICK, QUICK_GRIDS
    from numerics.language.finetune import Settings

    chosen = Settings(**QUICK) if quick else Settings()
    grids = QUICK_GRIDS if quick else GRIDS
    options = {
        "data": DATA,
        "seeds": 1 if quick else SEEDS,
        "settings": asdict(chosen),
        "grids": {name: list(grid) for name, grid in grids.items()},
    }
    return {"bbc": Part(options=options, extra="language")}


def data(part: Part, shop: Workshop) -> pd.DataFrame:
    """Collect a row for each optimizer, seed and measured step: losses and accuracies, the tuned step size.

    `at_edge` marks optimizers whose tuned step size is an end of its grid. Finished runs are kept in the
    folder, so that an interrupted figure goes on.
    """
    from numerics.language import experiment
    from numerics.language.encoder import Encoder
    from numerics.language.finetune import Settings, Task, choose_device
    from numerics.language.texts import load_texts

    options = part.options
    texts = load_texts(options["data"])
    task = Task(texts, Encoder(), Settings(**options["settings"]), choose_device("auto"))
    key = hashlib.sha256(json.dumps(dict(options), sort_keys=True).encode()).hexdigest()[:12]
    found = experiment.compare(
        task,
        texts,
        shop.folder / f"finetune-{key}",
        seeds=options["seeds"],
        grids={name: tuple(grid) for name, grid in options["grids"].items()},
        say=shop.say,
    )
    for line in experiment.notes(found):
        shop.say(line)
    chosen = found.tuning[found.tuning["chosen"]]
    return found.history.merge(chosen[["optimizer", "at_edge"]], on="optimizer", how="left")


def draw(frame: pd.DataFrame) -> Figure:
    """Draw training loss and test accuracy: the mean over the seeds, and a band from least to most."""
    if not np.isfinite(frame["train_loss"]).any():
        raise InputError("every fine-tuning run diverged: there is nothing to draw")
    with style.applied():
        figure = style.new_figure(style.DOUBLE, 2.4)
        axes = figure.subplots(1, len(PANELS))
        for letter, (column, title), ax in zip("ab", PANELS, axes, strict=True):
            for name, part in frame.groupby("optimizer", sort=False):
                _curve(ax, LOOKS[str(name)], part, column)
            ax.set_title(f"({letter}) {title}", loc="left")
            ax.set_xlabel("step")
            ax.set_xlim(0, frame["step"].max())
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0].set_yscale("log")
        handles, _ = axes[0].get_legend_handles_labels()
        figure.legend(handles=handles, loc="outside lower center", ncols=len(LOOKS))
    return figure


def _curve(ax: Axes, look: style.Look, part: pd.DataFrame, column: str) -> None:
    by_step = part.replace(np.inf, np.nan).groupby("step")[column]
    mean = by_step.mean()
    ax.fill_between(mean.index, by_step.min(), by_step.max(), color=look.color, alpha=0.15, linewidth=0)
    ax.plot(
        mean.index,
        mean,
        color=look.color,
        linestyle=look.linestyle,
        marker=look.marker,
        label=look.label,
        clip_on=False,  # the last marker stands on the frame
    )


def caption(part: Part, frame: pd.DataFrame) -> str:
    """Say what was trained on what, how the step sizes were tuned and what came out."""
    options, settings = part.options, part.options["settings"]
    first, second = str(options["data"]).partition(":")[2].split("+")
    last = frame[frame["step"] == frame["step"].max()]
    results = []
    for name, rows in last.groupby("optimizer", sort=False):
        edge = ", an end of its grid" if rows["at_edge"].any() else ""
        results.append(
            f"{LOOKS[str(name)].label} ${captions.number(rows['step_size'].iloc[0])}${edge} (training loss "
            f"${captions.number(rows['train_loss'].mean(), 2)}$, test accuracy "
            f"${100 * rows['test_accuracy'].mean():.1f}\\%$)"
        )
    points = captions.listed(map(str, sorted({len(grid) for grid in options["grids"].values()})))
    frozen = settings["frozen_layers"]
    extent = f"all but the lowest {frozen} layers" if frozen else "all layers"
    return (
        f"Fine-tuning MiniLM ({extent}) to tell BBC news on {first} from news on {second}: the first "
        f"{settings['length']} tokens of {settings['train']} training and {settings['test']} test articles, "
        f"batches of {settings['batch']}, no dropout. Lines are means over {captions.seeds(frame['seed'])}, "
        f"bands run from the least to the most. Each optimizer had {points} step sizes to choose from, a "
        f"factor of about 3 apart, and {settings['steps']} steps for each; that of lowest loss on "
        f"{settings['validation']} validation articles was taken, with a seed of its own. Tuned step sizes "
        f"(for stochastic Polyak the longest allowed) and the state after {settings['steps']} steps: "
        f"{captions.listed(results)}."
    )
