"""A sweep on disk: Parquet files that pandas, polars and DuckDB open as one table, written by one process.

    DIR/sweep.json                          the code that makes the cells
    DIR/history/rule=ngd/KEY.parquet        a cell's history
    DIR/verdicts/rule=ngd/KEY.parquet       its verdicts
    DIR/refused/KEY.json                    a cell that cannot be run, and why

Every file appears whole or not at all. A cell is finished when its history is there: it is written last.
What was damaged since is found by its digest.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnrates.sweep import cell as work
from attnrates.sweep.grid import Cell
from numerics.errors import InputError
from numerics.files import atomic_write

FORMAT = "attnrates-sweep"
OLD = 3600.0  # seconds: no write takes so long, a temporary file of that age is left from a crash


class DamagedError(InputError):
    """A file of a finished cell is not what was written."""


class Store:
    """The folder of a sweep. Raises InputError when it holds something else or a sweep by other code."""

    def __init__(self, folder: Path) -> None:
        """Look at the folder, and tidy the sweep that it holds; `begin` makes it."""
        self.folder = folder
        self.note = folder / "sweep.json"
        self.wanted = {"format": FORMAT, "code": work.code()}
        if self.note.exists():
            known = self._read_note()
            if known.get("format") != FORMAT:
                raise InputError(f"{self.note}: is no sweep's note; choose another folder")
            if known.get("code") != self.wanted["code"]:
                raise InputError(
                    f"{folder}: was made by other code, whose cells would be mixed; choose another folder"
                )
            self._tidy()
        elif folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: is not empty and holds no sweep; choose another folder")

    def begin(self) -> None:
        """Make the folder with its note, unless it is there. Raises OSError when it cannot be written."""
        if not self.note.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(self.note, json.dumps(self.wanted, indent=2).encode())

    def _read_note(self) -> dict[str, str]:
        try:
            known = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{self.note}: cannot be read: {error}") from None
        return known if isinstance(known, dict) else {}

    def _tidy(self) -> None:
        """Remove what a write that was killed has left."""
        for path in self.folder.rglob(".*.tmp"):
            if time.time() - path.stat().st_mtime > OLD:
                path.unlink(missing_ok=True)

    def history(self, cell: Cell) -> Path:
        """Where a cell's history is."""
        return self.folder / "history" / f"rule={cell.setting.rule}" / f"{cell.key}.parquet"

    def verdicts(self, cell: Cell) -> Path:
        """Where a cell's verdicts are."""
        return self.folder / "verdicts" / f"rule={cell.setting.rule}" / f"{cell.key}.parquet"

    def finished(self, cell: Cell, *, check: bool) -> bool:
        """Whether a cell need not be run again: it is there, with its verdicts where they are wanted."""
        return self.history(cell).is_file() and (not check or self.verdicts(cell).is_file())

    def violated(self, cell: Cell, *, check: bool, problem_hash: str | None = None) -> int:
        """Read a finished cell whole; give the number of its violated bounds (0 without `check`).

        Raises DamagedError when a file is not that of this cell and code, is not as it was written, or was
        made of another problem than the one whose hash is given.
        """
        paths = [self.history(cell), *([self.verdicts(cell)] if check else [])]
        for path in paths:
            table, about = _read(path)
            if about.get("setting") != asdict(cell.setting) or about.get("code") != self.wanted["code"]:
                raise DamagedError(f"{path}: is not the file of its cell")
            if problem_hash is not None and about.get("problem") != problem_hash:
                raise DamagedError(f"{path}: was made of other data than {cell.setting.data} holds now")
        return sum(holds is False for holds in table["holds"].to_pylist()) if check else 0

    def others(self, cells: Iterable[Cell]) -> int:
        """Count the histories in the folder that are of no cell among these."""
        found = [path.stem for path in (self.folder / "history").rglob("*.parquet")]
        keys = {cell.key for cell in cells} if found else set()
        return sum(key not in keys for key in found)

    def add(self, cell: Cell, outcome: work.Outcome) -> None:
        """Write what a cell gave. Raises OSError when it cannot be written; nothing is left behind then."""
        if outcome.error is not None:
            note = {"setting": asdict(cell.setting), "error": outcome.error}
            _write(self.folder / "refused" / f"{cell.key}.json", json.dumps(note, indent=2).encode())
            return
        assert outcome.history is not None
        if outcome.verdicts is not None:
            _write(self.verdicts(cell), outcome.verdicts)
        _write(self.history(cell), outcome.history)
        (self.folder / "refused" / f"{cell.key}.json").unlink(missing_ok=True)


def _read(path: Path) -> tuple[Any, dict[str, Any]]:
    """Read a whole Parquet file of a cell: its table, and where it comes from. Raises DamagedError."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        content = pa.BufferReader(path.read_bytes())
        table = parquet.ParquetFile(content, page_checksum_verification=True).read(use_threads=False)
        about = json.loads((table.schema.metadata or {})[b"attnrates"])
        about = {**about, "problem": about["manifest"]["problem_hash"]}
        whole = about["digest"] == work.digest(table)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise DamagedError(f"{path}: is damaged ({reason})") from None
    if not whole:
        raise DamagedError(f"{path}: is damaged (its values are not those that were written)")
    return table, about


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())  # after a power failure too, a file that is there is whole
