"""Checkpoints: the state of an unfinished training call in one file, replaced atomically.

A checkpoint belongs to one call, told by `key`: the same problems, rules, initial values, steps, engine,
device and source code. The state holds every number that changes along the run, so a resumed run repeats the
uninterrupted one bit for bit. Two calls at once in one folder would remove each other's files: the folder is
claimed by a lock, which the system takes back from a process that dies.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from numerics._npz import read_arrays
from numerics.errors import InputError
from numerics.files import atomic_write

try:
    import fcntl
except ImportError:  # Windows: calls are not kept apart
    fcntl = None  # type: ignore[assignment]

FORMAT = "attnrates-checkpoint"
_NAME = "checkpoint.npz"
_WORDS = {  # of the parts of a key, but "training"
    "problems": "data",
    "rules": "step-size rule",
    "decoder rules": "decoder rule",
    "initial values": "initial values",
    "targets": "max-margin solutions",
    "recorded steps": "number of steps or recorded steps",
    "space": "space",
    "device": "device",
    "dtype": "dtype",
    "engine": "engine",
    "source code": "version of the code",
}
_SHOWN = ("rules", "decoder rules", "space", "device", "dtype", "engine")
_LONGEST = 200


@contextlib.contextmanager
def claimed(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Make the folder, and keep other calls out of it until the block ends or the process does.

    Raises InputError when it cannot be made or written to, or when another call trains into it now.
    """
    name = os.fspath(folder)
    try:
        os.makedirs(name, exist_ok=True)
        if not os.access(name, os.W_OK | os.X_OK):
            raise InputError(f"{name}: cannot hold a checkpoint (not writable)")
        handle = None if fcntl is None else os.open(name, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{name}: cannot hold a checkpoint ({error.strerror or error})") from None
    try:
        if handle is not None:
            _lock(handle, name)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle: int, name: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"{name}: another training call is writing its checkpoints there now") from None
    except OSError:
        pass  # a file system without locks


def write(
    folder: str | os.PathLike[str], key: dict[str, Any], rows: np.ndarray, state: dict[str, np.ndarray]
) -> None:
    """Replace the checkpoint in a claimed folder by this state and the rows (recorded so far, B, columns)."""
    content = {"rows": rows} | {f"state.{name}": value for name, value in state.items()}
    header = {"format": np.array(FORMAT), "key": np.array(_text(key)), "hash": np.array(_digest(content))}
    path = Path(folder) / _NAME
    try:
        with atomic_write(path) as stream:
            np.savez(stream, allow_pickle=False, **(header | content))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def read(
    folder: str | os.PathLike[str], key: dict[str, Any]
) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
    """(rows, state) of a claimed folder's checkpoint, None when there is none.

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
        raise InputError(
            f"{path}: belongs to another training call: {_differences(json.loads(theirs), key)}; repeat that "
            "call with its own arguments to resume it, or name another folder to begin anew"
        )
    rows = arrays.pop("rows")
    return rows, {name.removeprefix("state."): value for name, value in arrays.items()}


def _differences(theirs: dict[str, Any], key: dict[str, Any]) -> str:
    """What differs between two calls, with both values where they are short enough to say."""
    ours = json.loads(_text(key))
    if theirs.get("training") != ours.get("training"):
        return "one of the two trains the decoder too"
    told = []
    for name, words in _WORDS.items():
        if theirs.get(name) == ours.get(name):
            continue
        there, here = _value(theirs.get(name)), _value(ours.get(name))
        shown = f" ({there} there, {here} here)" if name in _SHOWN and len(there + here) < _LONGEST else ""
        told.append(words + shown)
    return f"other {' and '.join(told)}"


def _value(value: Any) -> str:
    """Rules as name and numbers, anything else as it is."""
    if isinstance(value, list):
        return "; ".join(dict.fromkeys(map(_value, value)))
    if isinstance(value, dict):
        numbers = [f"{k}={_value(v)}" for k, v in value.items() if v and k != "name"]
        return " ".join([str(value.get("name", "")), *numbers]).strip()
    return str(value)


def _text(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def _digest(arrays: dict[str, np.ndarray]) -> str:
    total = hashlib.sha256()
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {value.shape} {value.dtype.str}\n".encode() + value.tobytes())
    return total.hexdigest()
