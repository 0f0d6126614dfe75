"""`attnrates finetune`: optimizers compared on a transformer, their step sizes tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from attnrates._console import console
from numerics.language.extra import require
from paper_figs import runs

if TYPE_CHECKING:
    from pathlib import Path

    from numerics.language.experiment import Comparison


def finetune(
    *,
    out: Path,
    data: str,
    model: Path | None,
    quick: bool,
    seeds: int | None,
    device: str,
    sizes: dict[str, int],
) -> int:
    """Tune and run every optimizer, keep everything in `out`, print a table; all input is checked first."""
    runs.writable(out)
    require("fine-tuning", "transformers")
    from numerics.language import experiment
    from numerics.language.encoder import Encoder
    from numerics.language.finetune import Settings, Task, choose_device
    from numerics.language.texts import load_texts

    where = choose_device(device)
    settings = Settings(**((experiment.QUICK if quick else {}) | sizes))
    grids = experiment.QUICK_GRIDS if quick else experiment.GRIDS
    seeds = seeds or (1 if quick else 3)
    texts = load_texts(data)
    task = Task(texts, Encoder(model), settings, where)
    err = console(stderr=True)
    columns = (TextColumn("fine-tuning"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        work = bar.add_task("", total=experiment.steps_in_all(task, seeds=seeds, grids=grids))
        found = experiment.compare(
            task,
            texts,
            out,
            seeds=seeds,
            grids=grids,
            tick=lambda steps: bar.advance(work, steps),
            say=lambda line: err.print(line, soft_wrap=True),
        )
    for line in experiment.notes(found):
        err.print(line, soft_wrap=True)
    console().print(_table(found))
    print(out / "history.csv")
    return 0


def _table(found: Comparison) -> Table:
    """The last measurements of each optimizer: means over the seeds, and the range of the accuracies."""
    table = Table("optimizer", "step size", "training loss", "test loss", "test accuracy", box=None)
    last = found.history[found.history["step"] == found.history["step"].max()]
    for name, rows in last.groupby("optimizer", sort=False):
        accuracy = rows["test_accuracy"]
        table.add_row(
            str(name),
            f"{found.step_sizes[str(name)]:g}",
            f"{rows['train_loss'].mean():.4g}",
            f"{rows['test_loss'].mean():.4g}",
            f"{accuracy.mean():.3f} ({accuracy.min():.3f}-{accuracy.max():.3f})",
        )
    return table
