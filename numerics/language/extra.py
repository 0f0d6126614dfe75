"""The optional packages behind the language commands: found, or named in one line."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from numerics.errors import InputError

INSTALL = "pip install '.[language]'"


def require(purpose: str, *packages: str) -> None:
    """Raise InputError, telling what to install, unless all of these packages can be imported."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise InputError(f"{purpose} needs {', '.join(missing)}: install the extra, {INSTALL}")


def package_folder(purpose: str, package: str, inside: str) -> Path:
    """Find a data folder inside a package without importing it.

    Raises InputError when the package is missing, or lacks the folder.
    """
    require(purpose, package)
    spec = find_spec(package)
    assert spec is not None
    for root in spec.submodule_search_locations or []:
        folder = Path(root) / inside
        if folder.is_dir():
            return folder
    raise InputError(f"{purpose}: the installed package {package} has no folder {inside}")
