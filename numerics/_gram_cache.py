"""Keep numba's cache on disk true to the source of all compiled files.

numba compiles a function anew when its own file changes, but what it calls from other files is compiled into
it: after a change there the lanes, say, would go on with the old logarithms. So a stamp beside the cache
names the source of all compiled files, and where it is another one the package's entries are dropped.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numerics.files import atomic_write

_COMPILED = ("_gram_*", "_joint_*")  # the files with compiled functions, and the names of their entries
_STAMP = "numerics-compiled.sha256"


def drop_stale(function: Any) -> None:
    """Drop the cached code of older sources from where numba keeps that of a compiled function."""
    where = function.stats.cache_path
    if where is None:
        return
    stamp, now = Path(where) / _STAMP, _digest()
    try:
        if stamp.exists() and stamp.read_text(encoding="ascii", errors="replace") == now:
            return
        for pattern in _COMPILED:
            for entry in Path(where).glob(f"{pattern}.nb[ic]"):
                entry.unlink(missing_ok=True)
        with atomic_write(stamp) as stream:
            stream.write(now.encode("ascii"))
    except OSError:
        pass  # nobody may write here: numba keeps nothing here either


def _digest() -> str:
    folder = Path(__file__).parent
    files = sorted(path for pattern in _COMPILED for path in folder.glob(f"{pattern}.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
