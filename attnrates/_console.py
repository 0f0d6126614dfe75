"""Where the commands print: tables to stdout (plain and never truncated when piped), progress to stderr."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def console(*, stderr: bool = False) -> Console:
    """A console without markup, so that nothing in a file name or message is taken for formatting."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def print_json(value: Any) -> None:
    """Print standard JSON: what is not a finite number becomes null."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


@contextmanager
def spinner(phase: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done and for how long, on stderr if that is a terminal; yields how to add a name."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(phase, total=None)
        yield lambda name: bar.update(task, description=f"{phase} {name}")
