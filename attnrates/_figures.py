"""`attnrates figures`: the figures of the paper, from their saved data where nothing changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnrates._console import console
from paper_figs import figures as drawing
from paper_figs import runs

if TYPE_CHECKING:
    from pathlib import Path


def figures(*, only: str | None, out: Path, quick: bool) -> int:
    """Make the chosen figures in `out`, with their runs in its subfolder `runs`; print the files."""
    names = drawing.select(only)
    runs.writable(out)
    err = console(stderr=True)
    for name in names:
        made = drawing.make(
            name,
            out,
            out / "runs",
            quick=quick,
            say=lambda line: err.print(line, soft_wrap=True),
            err=err,
            strict=only is not None,
        )
        for path in made:
            print(path)
    return 0
