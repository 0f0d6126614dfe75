"""`attnrates check`: the verdict table of recorded runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnrates._console import console, print_json
from paper_figs.verdicts import check_folder, print_table, violated

if TYPE_CHECKING:
    from pathlib import Path


def check(folder: Path, *, json: bool, certified: bool = False) -> int:
    """Print the verdicts on every run in `folder`; return 1 when a bound is violated, else 0.

    With `certified`, in ball arithmetic, and 0 only when every claimed bound is proved to hold.
    """
    if certified:
        from attnrates._certified import check_certified

        return check_certified(folder, json=json)
    rows = check_folder(folder)
    if json:
        print_json([row.to_dict() for row in rows])
    else:
        print_table(rows, console())
    return int(violated(rows))
