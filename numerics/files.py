"""Files: written atomically, and read with bounds, whatever stands in the place of what was expected."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

from numerics.errors import InputError

TEXT_LIMIT = 1 << 28  # bytes of a text file


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a binary file that replaces `path` when the block ends well, and vanishes when it raises.

    The temporary file lies in the same folder, so that the final rename never crosses a file system. Raises
    InputError when a folder, a device or a pipe stands there, which must not be replaced.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise InputError(f"{target}: is not a regular file; not replaced")
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp makes private files; a result is an ordinary file
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_bytes(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """Read a whole file of at most `limit` bytes.

    Raises InputError, naming the file, when it is missing, larger, or no regular file: a pipe or a device
    could block for ever or never end.
    """
    name = os.fspath(path)
    try:
        kind = os.stat(path)
        if stat.S_ISDIR(kind.st_mode):
            raise InputError(f"{name}: is a directory, not a file")
        if not stat.S_ISREG(kind.st_mode):
            raise InputError(f"{name}: is not a regular file")
        with open(path, "rb") as stream:
            content = stream.read(min(limit, kind.st_size) + 1)  # as much is allocated before it is read
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: is not a path ({error})") from None
    if max(len(content), kind.st_size) > limit:
        raise InputError(f"{name}: has {kind.st_size} bytes; at most {limit} are read")
    return content


def read_json(path: str | os.PathLike[str], *, limit: int = TEXT_LIMIT) -> Any:
    """Read a JSON file in UTF-8, whose objects must not name a key twice and whose numbers are finite.

    Raises InputError naming the file.
    """
    content = read_bytes(path, limit=limit)
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_constant)
    except RecursionError:
        raise InputError(f"{os.fspath(path)}: is not JSON that can be read (nested too deeply)") from None
    except ValueError as error:
        raise InputError(f"{os.fspath(path)}: is not JSON ({error})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} stands twice in one object")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")
