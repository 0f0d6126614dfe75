"""A survey: many cells, one row a cell, kept in a CSV file that an interrupted survey goes on from."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from numerics.errors import InputError
from numerics.files import TEXT_LIMIT, atomic_write, read_bytes
from numerics.run import source_hash
from numerics.survey.cell import Cell
from numerics.survey.intervals import interval
from numerics.survey.outcome import Limit, Outcome, measure
from numerics.survey.starts import STARTS

SHARES = ("separable", "near_acute", "full_support", *STARTS)
CONFIDENCE = 0.99


@dataclass(frozen=True, kw_only=True)
class Tally:
    """A cell's counts, each out of its `problems` unless said otherwise.

    separable, near_acute, full_support: problems with (S), with (S) and (N), with (F).
    random, opposite, decoy: runs from that start that reach W_mm.
    undecided: runs of all starts, on problems with (S), that have neither reached it nor are stuck.
    acute_unreached: runs of all starts on problems with (N) that have not reached it.
    stuck: runs from the random start, on problems with (S), that are stuck where some sequences are right.
    wrong: sequences on a wrong token in these, in total; wrong_in_pair: those whose wrong token's constraint
    makes a pair that breaks (N) with a constraint of a sequence that is right.
    """

    cell: Cell
    separable: int
    near_acute: int
    full_support: int
    random: int
    opposite: int
    decoy: int
    undecided: int
    acute_unreached: int
    stuck: int
    wrong: int
    wrong_in_pair: int

    def interval(self, name: str) -> tuple[float, float]:
        """The exact interval, at the confidence 0.99, of the share that a count of `SHARES` estimates."""
        return interval(getattr(self, name), self.cell.problems, CONFIDENCE)

    def to_dict(self) -> dict[str, Any]:
        """One flat row: the cell, the counts, and the ends of the intervals, NAME_low and NAME_high."""
        counts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "cell"}
        ends = [(name, self.interval(name)) for name in SHARES]
        low = {f"{name}_low": end for name, (end, _) in ends}
        high = {f"{name}_high": end for name, (_, end) in ends}
        return asdict(self.cell) | counts | {key: (low | high)[key] for key in _ENDS}


_COUNTS = tuple(f.name for f in fields(Tally) if f.name != "cell")
_CELL = tuple(f.name for f in fields(Cell))
_ENDS = tuple(f"{name}_{end}" for name in SHARES for end in ("low", "high"))


def tally(cell: Cell, outcomes: Sequence[Outcome]) -> Tally:
    """Count a cell's outcomes."""
    limits = {name: [o.limits[name] for o in outcomes if name in o.limits] for name in STARTS}
    stuck = [
        (o, limit) for o in outcomes if o.separable and (limit := o.limits.get("random")) and limit.stuck
    ]
    return Tally(
        cell=cell,
        separable=sum(o.separable for o in outcomes),
        near_acute=sum(o.near_acute for o in outcomes),
        full_support=sum(o.full_support for o in outcomes),
        **{name: sum(limit.reached for limit in found) for name, found in limits.items()},
        undecided=sum(limit.undecided for found in limits.values() for limit in found),
        acute_unreached=sum(
            not limit.reached for o in outcomes if o.near_acute for limit in o.limits.values()
        ),
        stuck=len(stuck),
        wrong=sum(len(limit.wrong) for _, limit in stuck),
        wrong_in_pair=sum(_dragged(o, limit) for o, limit in stuck),
    )


def _dragged(outcome: Outcome, limit: Limit) -> int:
    """How many wrong tokens clash with a sequence that is right."""
    sequences = {i for i, _ in limit.wrong}
    ends = (pair for a, b in outcome.pairs for pair in ((a, b), (b, a)))
    clashing = {wrong for wrong, other in ends if other[0] not in sequences}
    return sum(token in clashing for token in limit.wrong)


def survey(
    cells: Iterable[Cell], path: str | os.PathLike[str] | None = None, *, progress: bool = False
) -> list[Tally]:
    """Measure every cell, in order.

    `path` is a CSV file of earlier results: rows of the same cells, computed by the same code, are taken
    from it, every new row is added at once (the file is replaced atomically), and rows of other cells stay.
    `progress` draws a bar on stderr. Raises InputError for a file that is not a survey's.
    """
    wanted = list(cells)
    known = {} if path is None else _read(Path(path))
    code = source_hash("**/*.py")
    out = []
    with _bar(len(wanted), progress) as advance:
        for cell in wanted:
            key = _key(cell, code)
            if key not in known:
                known[key] = tally(cell, measure(cell))
                if path is not None:
                    _write(Path(path), known)
            out.append(known[key])
            advance(f"n={cell.n} T={cell.T} d={cell.d}")
    return out


def _key(cell: Cell, code: str) -> str:
    return hashlib.sha256(repr((asdict(cell), code)).encode()).hexdigest()


def _write(path: Path, known: dict[str, Tally]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, ("key", *_CELL, *_COUNTS, *_ENDS), lineterminator="\n")
    writer.writeheader()
    writer.writerows({"key": key} | found.to_dict() for key, found in known.items())
    with atomic_write(path) as stream:
        stream.write(text.getvalue().encode())


def _read(path: Path) -> dict[str, Tally]:
    if not path.exists():
        return {}
    try:
        text = read_bytes(path, limit=TEXT_LIMIT).decode("utf-8")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        if reader.fieldnames != ["key", *_CELL, *_COUNTS, *_ENDS]:
            raise InputError(f"{path}: is not a survey's table; not overwritten")
        return {row["key"]: _tally(row) for row in reader}
    except (UnicodeDecodeError, csv.Error, TypeError, ValueError) as error:
        if isinstance(error, InputError) and str(error).startswith(f"{path}: "):
            raise
        raise InputError(f"{path}: is damaged ({error}); delete it to begin anew") from None


def _tally(row: dict[str, str]) -> Tally:
    kinds: dict[str, Any] = dict.fromkeys(_CELL, int) | {"signal": float, "noise": float, "query": str}
    cell = Cell(**{name: kinds[name](row[name]) for name in _CELL})
    found = Tally(cell=cell, **{name: int(row[name]) for name in _COUNTS})
    written = found.to_dict()
    if any(row[name] != str(written[name]) for name in _ENDS):
        raise ValueError(f"the intervals of n={cell.n}, T={cell.T}, d={cell.d} are not those of its counts")
    return found


@contextlib.contextmanager
def _bar(total: int, progress: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function to call after each cell; it draws a bar on stderr when asked for."""
    if not progress:
        yield lambda _text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("survey", total=total)
        yield lambda text: bar.update(task, advance=1, description=f"survey {text}")
