"""What is slow to compute, kept by content: arrays in a cache folder under the hash of what made them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from numerics._npz import read_arrays
from numerics.errors import InputError
from numerics.files import atomic_write


def cache_folder() -> Path:
    """Name the folder: $ATTNRATES_CACHE, else attnrates in $XDG_CACHE_HOME or ~/.cache."""
    own = os.environ.get("ATTNRATES_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnrates"


def cached(key: dict[str, Any], make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the arrays that `make` makes, from the cache where it made them for this very key before.

    `key` is JSON and must determine the result. No pickle is read or written. A damaged file is made anew,
    and a cache folder that cannot be written is done without.
    """
    text = json.dumps(key, sort_keys=True)
    path = cache_folder() / f"{hashlib.sha256(text.encode()).hexdigest()}.npz"
    with contextlib.suppress(InputError):
        arrays = read_arrays(path)
        digest = arrays.pop("digest", None)
        if digest is not None and str(digest) == _digest(text, arrays):
            return arrays
    arrays = make()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as stream:
            np.savez(stream, allow_pickle=False, digest=np.array(_digest(text, arrays)), **arrays)
    return arrays


def _digest(key: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(key.encode())
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {value.dtype.str} {value.shape}".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
