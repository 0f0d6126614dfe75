"""`attnrates sweep`: a grid of runs in parallel, into one Parquet data set."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from attnrates._console import console
from attnrates.sweep import grid as grids
from attnrates.sweep.cluster import connect, outcomes
from attnrates.sweep.store import DamagedError, Store
from numerics.errors import InputError
from paper_figs import runs
from paper_figs.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

FIRST, EVERY = 10.0, 60.0  # seconds to the first line of progress, and between two


def sweep(
    grid_file: Path, *, out: Path, scheduler: str | None, workers: int | None, wait: float = 300.0
) -> int:
    """Run the cells of a grid file that are not in `out` yet; 1 when a bound is violated, else 0.

    `wait` is for how many seconds a cluster without workers is waited for. Cells of an earlier grid stay in
    the folder and are not counted. Raises InputError for a bad grid, a folder that holds something else, or,
    once every other cell is finished, when cells could not be run.
    """
    if scheduler is not None and workers is not None:
        raise InputError("--workers is for this machine; a cluster at --scheduler has its own")
    grid = grids.read(grid_file)
    hashes: dict[str, str | None] = {}
    for setting in {cell.setting.data: cell.setting for cell in grid.cells}.values():
        problem = setting.problem()  # an unknown data set is told before anything starts
        hashes[setting.data] = problem.hash if setting.is_file else None
    runs.writable(out)
    store = Store(out)
    say = console(stderr=True)
    missing, damaged, violated = _missing(store, grid, hashes)
    others = store.others(grid.cells)
    refused = []
    with connect(scheduler, workers) if missing else nullcontext() as client:
        store.begin()
        say.print(f"{counted(len(grid.cells), 'cell')}, {len(grid.cells) - len(missing)} finished before")
        if others:
            cells = counted(others, "other cell")
            note = f"{cells} in {out}, not in this grid: left as {'it is' if others == 1 else 'they are'}"
            say.print(note, soft_wrap=True)
        if damaged:
            cells = counted(len(damaged), "cell is", "cells are")
            say.print(f"{cells} run anew; the first: {damaged[0]}", soft_wrap=True)
        if client is not None:
            with _Progress(say, len(grid.cells), len(missing)) as progress:
                done = outcomes(client, missing, check=grid.check, patience=wait, tell=say.print)
                for cell, outcome in done:
                    store.add(cell, outcome)
                    violated += outcome.violated
                    if outcome.error is not None:
                        refused.append(f"{cell.setting.name}: {outcome.error}")
                    progress.advance()
    print(out / "history")
    if grid.check:
        print(out / "verdicts")
        say.print(f"{counted(violated, 'bound')} violated" if violated else "no bound is violated")
    if refused:
        raise InputError(
            f"{len(refused)} of {counted(len(grid.cells), 'cell')} cannot be run, the others are finished; "
            f"the first is {refused[0]} (all: {out / 'refused'})"
        )
    return int(violated > 0)


def _missing(
    store: Store, grid: grids.Grid, hashes: dict[str, str | None]
) -> tuple[list[grids.Cell], list[DamagedError], int]:
    """Give the cells to run, why those among them that were finished are, and the others' violated bounds."""
    if not (store.folder / "history").is_dir():
        return list(grid.cells), [], 0
    missing, damaged, violated = [], [], 0
    for cell in grid.cells:
        if not store.finished(cell, check=grid.check):
            missing.append(cell)
            continue
        try:
            known = hashes[cell.setting.data]
            violated += store.violated(cell, check=grid.check, problem_hash=known)
        except DamagedError as error:
            missing.append(cell)
            damaged.append(error)
    return missing, damaged, violated


class _Progress:
    """A bar on a terminal; elsewhere a line now and then, with the time left at the pace so far."""

    def __init__(self, say: Console, total: int, missing: int) -> None:
        columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=say, disable=not say.is_terminal)
        self.task = self.bar.add_task("cells", total=total, completed=total - missing)
        self.say, self.missing, self.number = say, missing, 0
        self.began = time.monotonic()
        self.told = self.began - EVERY + FIRST

    def __enter__(self) -> _Progress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def advance(self) -> None:
        """Count a cell."""
        self.number += 1
        self.bar.advance(self.task)
        now = time.monotonic()
        if self.say.is_terminal or (now - self.told < EVERY and self.number < self.missing):
            return
        self.told = now
        left = (now - self.began) / self.number * (self.missing - self.number)
        self.say.print(f"{self.number} of {self.missing} cells, about {duration(left)} left")


def duration(seconds: float) -> str:
    """Say a time in one unit, rounded up."""
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds > 2 * length:
            return f"{math.ceil(seconds / length)} {unit}"
    return f"{math.ceil(seconds)} s"
