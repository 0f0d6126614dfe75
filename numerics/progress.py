"""What is being done and for how long, shown on stderr to whoever waits at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def phase(name: str, *, show: bool) -> Iterator[Callable[[str], None]]:
    """Show a spinner with a phase's name and the time elapsed until the block ends, if `show`.

    Yields a function that says more of the present state after the name.
    """
    if not show:
        yield lambda _state: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda state: bar.update(task, description=f"{name}{state}")
