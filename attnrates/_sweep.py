"""`attnrates sweep`: a grid of runs in parallel, into one Parquet data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from attnrates._console import console
from attnrates.sweep import grid as grids
from attnrates.sweep.cluster import connect, outcomes
from attnrates.sweep.store import Store
from numerics.errors import InputError
from paper_figs import runs

if TYPE_CHECKING:
    from pathlib import Path


def sweep(grid_file: Path, *, out: Path, scheduler: str | None, workers: int | None) -> int:
    """Run the cells of a grid file that are not in `out` yet; 1 when a bound is violated, else 0.

    Raises InputError for a bad grid, a folder that holds something else, or, once every other cell is
    finished, when cells could not be run.
    """
    if scheduler is not None and workers is not None:
        raise InputError("--workers is for this machine; a cluster at --scheduler has its own")
    grid = grids.read(grid_file)
    for name in {cell.setting.data: cell for cell in grid.cells}.values():
        name.setting.problem()  # an unknown data set is told before anything starts
    runs.writable(out)
    store = Store(out)
    missing = [cell for cell in grid.cells if not store.finished(cell, check=grid.check)]
    say = console(stderr=True)
    say.print(f"{len(grid.cells)} cells, {len(grid.cells) - len(missing)} finished before")
    violated, refused = 0, []
    if missing:
        columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with (
            connect(scheduler, workers) as client,
            Progress(*columns, console=say, disable=not say.is_terminal) as progress,
        ):
            bar = progress.add_task("cells", total=len(grid.cells), completed=len(grid.cells) - len(missing))
            for number, (cell, outcome) in enumerate(outcomes(client, missing, check=grid.check), start=1):
                store.add(cell, outcome)
                violated += outcome.violated
                if outcome.error is not None:
                    refused.append(f"{cell.setting.name}: {outcome.error}")
                progress.advance(bar)
                if not say.is_terminal and number % max(1, len(missing) // 20) == 0:
                    say.print(f"{number} of {len(missing)} cells")
    print(out / "history")
    if grid.check:
        print(out / "verdicts")
        violated = _violated(out / "verdicts")
        say.print(f"{violated} bounds violated" if violated else "no bound is violated")
    if refused:
        raise InputError(
            f"{len(refused)} of {len(grid.cells)} cells cannot be run, the others are finished; "
            f"the first is {refused[0]} (all: {out / 'refused'})"
        )
    return int(violated > 0)


def _violated(folder: Path) -> int:
    """Count the violated bounds of all cells."""
    from pyarrow import dataset

    if not folder.is_dir():
        return 0
    table = dataset.dataset(folder, format="parquet", partitioning="hive")
    return int(table.count_rows(filter=~dataset.field("holds")))
