"""What code produced a result: a hash of this project's own source files."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


@cache
def source_hash(*packages: str) -> str:
    """SHA-256 (hex) of the names and contents of all source and data files of these packages."""
    digest = hashlib.sha256()
    for package in packages:
        for name, content in sorted(_files(files(package), package)):
            digest.update(f"\n{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _files(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        name = f"{prefix}/{entry.name}"
        if entry.is_dir():
            found += _files(entry, name) if entry.name != "__pycache__" else []
        elif not entry.name.endswith((".pyc", ".so")):
            found.append((name, entry.read_bytes()))
    return found
