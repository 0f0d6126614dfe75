"""`attnrates check`: the verdict table of recorded runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnrates._console import console, print_json, spinner
from numerics.errors import InputError
from paper_figs.verdicts import Row, check_folder, print_table, violated
from paper_figs.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

TOLD = 3  # how many of the runs that cannot be read are named


def check(
    folder: Path, *, json: bool, certified: bool = False, every: bool = False, own: Path | None = None
) -> int:
    """Print the verdicts on every run in `folder`; return 1 when a bound is violated, else 0.

    With `certified`, in ball arithmetic, and 0 only when every claimed bound is proved to hold. With `own`, a
    file of theorems: on the data that its function `observe` reads from `folder`, which may be any path.
    `every` theorem that claims nothing has a line of its own.

    Raises:
        InputError: there is nothing to check, or some run cannot be read; that once the others are checked.
    """
    if certified and own:
        raise InputError("--certified repeats runs of this package, not data of your own (--theory)")
    if certified:
        from attnrates._certified import check_certified

        return check_certified(folder, json=json, every=every)
    refused: list[InputError] = []
    if own:
        rows = check_own(folder, own)
    else:
        with spinner("checking") as watch:
            rows = check_folder(folder, refuse=refused.append, watch=watch)
    checked = len({row.run for row in rows})
    if rows and json:
        print_json([row.to_dict() for row in rows])
    elif rows:
        print_table(rows, console(), every=every)
    raise_refused(refused, checked)
    return int(violated(rows))


def raise_refused(refused: list[InputError], others: int) -> None:
    """Raise one InputError for the runs that cannot be read, if there are any."""
    if not refused:
        return
    if len(refused) == 1 and not others:
        raise refused[0]
    rest = {0: "", 1: ", the other one is checked"}.get(others, ", the others are checked")
    told = [*map(str, refused[:TOLD]), *([f"and {len(refused) - TOLD} more"] if len(refused) > TOLD else [])]
    raise InputError(
        f"{len(refused)} of {counted(len(refused) + others, 'run')} cannot be read{rest}: {'; '.join(told)}"
    )


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
    return [Row(data.absolute().name, hold(seen, page)) for page in pages]
