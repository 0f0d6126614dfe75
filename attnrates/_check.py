"""`attnrates check`: the verdict table of recorded runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnrates._console import console, print_json
from numerics.errors import InputError
from paper_figs.verdicts import Row, check_folder, print_table, violated

if TYPE_CHECKING:
    from pathlib import Path


def check(folder: Path, *, json: bool, certified: bool = False, own: Path | None = None) -> int:
    """Print the verdicts on every run in `folder`; return 1 when a bound is violated, else 0.

    With `certified`, in ball arithmetic, and 0 only when every claimed bound is proved to hold. With `own`, a
    file of theorems: on the data that its function `observe` reads from `folder`, which may be any path.
    """
    if certified and own:
        raise InputError("--certified repeats runs of this package; data of your own it cannot (--theory)")
    if certified:
        from attnrates._certified import check_certified

        return check_certified(folder, json=json)
    rows = check_own(folder, own) if own else check_folder(folder)
    if json:
        print_json([row.to_dict() for row in rows])
    else:
        print_table(rows, console())
    return int(violated(rows))


def check_own(data: Path, own: Path) -> list[Row]:
    """Hold the data at a path against the theorems of a file of one's own, as its `observe` reads them.

    Raises:
        InputError: no data, a file that does not run or has no `observe`, or no theorem in it that makes a
            claim on runs.
    """
    from theory import check as hold
    from theory.own import load

    if not data.exists():
        raise InputError(f"{data}: does not exist")
    file = load(own)
    pages = [page for page in file.pages if page.rate]
    if not pages:
        raise InputError(f"{own}: no theorem in it makes a claim on runs (has a rate)")
    seen = file.observe(data)
    return [Row(data.name, hold(seen, page)) for page in pages]
