"""Where the commands print: tables to stdout (plain and never truncated when piped), progress to stderr."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from numerics.progress import phase
from paper_figs.wording import printable


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
def spinner(name: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done and for how long, if stderr is a terminal; yields how to say at what."""
    with phase(name, show=console(stderr=True).is_terminal) as say:
        yield lambda item: say(f" {printable(item)}")
