"""Checkpoints: the state of an unfinished training call in one file, replaced atomically.

A checkpoint belongs to one call, told by `key`: the same problems, rules, initial values, steps, device and
source code. The state holds every number that changes along the run, so a resumed run repeats the
uninterrupted one bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from numerics._npz import read_arrays
from numerics.errors import InputError
from numerics.files import atomic_write

FORMAT = "attnrates-checkpoint"
_NAME = "checkpoint.npz"


def write(
    folder: str | os.PathLike[str], key: dict[str, Any], rows: np.ndarray, state: dict[str, np.ndarray]
) -> None:
    """Replace the folder's checkpoint by this state and the rows (recorded so far, B, columns)."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    content = {"rows": rows} | {f"state.{name}": value for name, value in state.items()}
    header = {"format": np.array(FORMAT), "key": np.array(_text(key)), "hash": np.array(_digest(content))}
    with atomic_write(Path(folder) / _NAME) as stream:
        np.savez(stream, allow_pickle=False, **(header | content))


def read(
    folder: str | os.PathLike[str], key: dict[str, Any]
) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
    """(rows, state) of the folder's checkpoint, None when there is none.

    Raises InputError when the file is damaged, no checkpoint, or another call's, naming what differs.
    """
    path = Path(folder) / _NAME
    for left in Path(folder).glob(f".{_NAME}.*.tmp"):  # by a call that was killed as it wrote
        left.unlink(missing_ok=True)
    if not path.exists():
        return None
    arrays = read_arrays(path)
    if str(arrays.pop("format", "")) != FORMAT or "key" not in arrays or "rows" not in arrays:
        raise InputError(f"{path}: is not a checkpoint")
    theirs, digest = str(arrays.pop("key")), str(arrays.pop("hash", ""))
    if digest != _digest(arrays):
        raise InputError(f"{path}: the content does not match its hash; the file was altered")
    if theirs != _text(key):
        other = json.loads(theirs)
        differing = [name for name in sorted(key) if other.get(name) != json.loads(_text(key))[name]]
        raise InputError(f"{path}: belongs to another training call; its {', '.join(differing)} differ")
    rows = arrays.pop("rows")
    return rows, {name.removeprefix("state."): value for name, value in arrays.items()}


def _text(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _digest(arrays: dict[str, np.ndarray]) -> str:
    total = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {value.shape} {value.dtype.str}\n".encode() + value.tobytes())
    return total.hexdigest()
