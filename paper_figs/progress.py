"""What is being done, for how long and how far, told on stderr: a spinner on a terminal, else plain lines."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

BESIDE = 12  # characters of a terminal's line for the spinner and the time
EVERY = 20.0  # seconds between the lines where there is no terminal


class _Phase:
    """One phase. Of those begun within one another only the innermost is told; it may be `hidden`, too."""

    def __init__(self, name: str, total: int | None, console: Console) -> None:
        self.name, self.total, self.console = name, total, console
        self.item, self.done, self.begun = "", -1, time.monotonic()
        self.hidden = False
        self._bar: Progress | None = None

    def __str__(self) -> str:
        done = max(self.done, 0)
        return self.name + (f" {done} of {self.total}" if self.total is not None else "")

    def step(self, item: str = "") -> None:
        """Begin the next item."""
        self.done, self.item = self.done + 1, item
        if self._bar:
            self._bar.update(self._bar.task_ids[0], description=self._description())

    def line(self) -> None:
        """Say how far it is, in a plain line."""
        if not self.hidden:
            self._print(f"{self}, {time.monotonic() - self.begun:.0f} s")

    def show(self) -> None:
        """Show the spinner, with the time since the beginning of the phase."""
        if not self.console.is_terminal or self.hidden:
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._bar = Progress(
            *columns, console=self.console, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._bar.add_task(self._description(), total=None)
        self._bar.tasks[0].start_time = self.begun
        self._bar.start()

    def hide(self) -> None:
        """Take the spinner away, so that something else can be printed."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def begin(self) -> None:
        """Show the spinner, or say in a plain line that the phase begins."""
        if self.console.is_terminal:
            self.show()
        else:
            self._print(str(self))

    def _description(self) -> str:
        return f"{self} {self.item}".strip()[: max(1, self.console.width - BESIDE)]

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


_open: list[_Phase] = []


@contextmanager
def phase(name: str, console: Console, *, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Tell of a phase until the block ends: its name, the time elapsed, how many items of `total` are done.

    Yields a function to be called with each item's name before it is begun. On a terminal the console shows
    a spinner; else a line when the phase begins, and one every 20 seconds. A phase within another takes its
    place.
    """
    own = _Phase(name, total, console)
    with hidden():
        _open.append(own)
        own.begin()
        ended = Event()
        ticker = Thread(target=_tick, args=(own, ended), daemon=True)
        if not console.is_terminal:
            ticker.start()
        try:
            yield own.step
        finally:
            ended.set()
            if ticker.is_alive():
                ticker.join()
            own.hide()
            _open.remove(own)


@contextmanager
def hidden() -> Iterator[None]:
    """Say nothing of the current phase within the block, where something else is printed or shown."""
    outer = _open[-1] if _open else None
    if outer is None or outer.hidden:
        yield
        return
    outer.hidden = True
    outer.hide()
    try:
        yield
    finally:
        outer.hidden = False
        outer.show()


@contextmanager
def bar_of_its_own(console: Console) -> Iterator[bool]:
    """Make room for what shows a bar itself, if the console is a terminal; yields whether it shall."""
    if not console.is_terminal:
        yield False
        return
    with hidden():
        yield True


def _tick(own: _Phase, ended: Event) -> None:
    while not ended.wait(EVERY):
        own.line()
