"""Every page of the theory, in reading order."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from theory import lemmas
from theory import theorems as theorem_pages
from theory.page import Theorem


@functools.cache
def theorems() -> Mapping[str, Theorem]:
    """Key -> page: the lemmas, the theorems, the paper's claims; found in the folders of those names."""
    found: dict[str, Theorem] = {}
    for room in (lemmas, theorem_pages):
        for module in pkgutil.iter_modules(room.__path__):
            for page in vars(importlib.import_module(f"{room.__name__}.{module.name}")).values():
                if isinstance(page, Theorem) and found.setdefault(page.key, page) is not page:
                    raise ValueError(f"two pages are called {page.key}")
    return MappingProxyType(found)
