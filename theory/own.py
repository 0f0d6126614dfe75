"""Theorems of one's own: a Python file outside this package, with pages and how to read their terms off data.

The file is a program and runs as one, with the rights of whoever asks for it. It holds `Theorem` objects at
its top level and, to be held against data, a function `observe(path) -> Observation`. A dict `SYMBOLS` may
say what its symbols stand for, for readers: no check looks at it.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from numerics.errors import InputError
from theory import catalog
from theory.legend import kinds_of
from theory.observation import Observation
from theory.page import Theorem, forget_proofs


@dataclass(frozen=True)
class OwnTheory:
    """What a file of one's own defines.

    Attributes:
        path: the file.
        pages: its theorems, in the order of the file.
        reader: its `observe`, or None.
        words: what the symbols of its pages stand for, by kernel name: its dict `SYMBOLS`, or empty.
    """

    path: Path
    pages: tuple[Theorem, ...]
    reader: Callable[[Path], Observation] | None
    words: Mapping[str, str] = field(default_factory=dict)

    def observe(self, data: Path) -> Observation:
        """Read observed data with the file's own function.

        Raises:
            InputError: the file has no `observe`, or it fails, or gives no Observation.
        """
        if self.reader is None:
            raise InputError(f"{self.path}: defines no function observe(path), which reads observed data")
        try:
            seen = self.reader(data)
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a user's function may fail in any way, or exit
            raise InputError(
                f"{self.path}: observe({str(data)!r}) fails, {_where(error, self.path)}"
            ) from error
        if not isinstance(seen, Observation):
            raise InputError(f"{self.path}: observe gives a {type(seen).__name__}, not an Observation")
        return seen


def load(path: Path) -> OwnTheory:
    """Run a file of one's own and collect its pages.

    Raises:
        InputError: no such file, a file that does not run, no page in it, two pages of one key, a key that a
            page of this package has, a page that is of a subclass of Theorem, which could say anything of
            itself, a name that stands for two things, or `SYMBOLS` that are no names with words.
    """
    if not path.is_file():
        raise InputError(f"{path}: is no file")
    name = f"attnrates_own_{path.stem}_{abs(hash(path.resolve()))}"
    spec = spec_from_file_location(name, path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise InputError(f"{path}: is no Python file (.py)")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling of classes look the module up
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        sys.modules.pop(name, None)
        raise
    except BaseException as error:  # a user's file may fail in any way; an exit must not pass for a proof
        sys.modules.pop(name, None)
        raise InputError(f"{path}: does not run, {_where(error, path)}") from error
    pages: dict[str, Theorem] = {}
    known = catalog.theorems()
    for page in vars(module).values():
        if not isinstance(page, Theorem) or known.get(page.key) is page:
            continue  # a page of this package that the file draws on
        if type(page) is not Theorem:
            raise InputError(f"{path}: {page.key} is a {type(page).__name__}, not a Theorem itself")
        if page.key in known:
            raise InputError(f"{path}: {page.key} is the key of a page of this package; choose another")
        twice = [name for name, count in Counter(name for _, name in kinds_of(page)).items() if count > 1]
        if twice:  # they would be printed alike
            raise InputError(
                f"{path}: {page.key}: {twice[0]} is the name of two things, a number and a vector, say, "
                "or an index: choose two names"
            )
        if pages.setdefault(page.key, page) is not page:
            raise InputError(f"{path}: two pages are called {page.key}")
    if not pages:
        raise InputError(f"{path}: defines no Theorem at its top level")
    forget_proofs(*pages.values())  # they are judged by what they say now
    reader: Any = getattr(module, "observe", None)
    words = getattr(module, "SYMBOLS", {})
    if type(words) is not dict or not all(map(_words, words.items())):
        raise InputError(f"{path}: SYMBOLS must be a dict of names and words, all of them printable text")
    return OwnTheory(path, tuple(pages.values()), reader if callable(reader) else None, dict(words))


def _words(item: tuple[Any, Any]) -> bool:
    """Whether an item of `SYMBOLS` is a name with words, both of which can be printed."""
    return all(type(part) is str and part.isprintable() for part in item)


def _where(error: BaseException, path: Path) -> str:
    """Say what went wrong, and in which line of the file."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{type(error).__name__}: {' '.join(str(error).split())}"
