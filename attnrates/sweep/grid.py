"""The grid file: what a sweep runs, as TOML, and the cells it names.

data = ["gaussian:n=4,T=3", "digits:3v5,n=10"]     # data sets, or .npz files
seeds = 20                                         # seeds 0 to 19, or a list
steps = 1000
space = "gram"                                     # or "weight"; the default is gram
check = true                                       # hold every run against every theorem; the default

[[rules]]
rule = "ngd"
step = [0.05, 0.1]                                 # a number or a list
exponent = 0.0                                     # step (t+1)^(-exponent), gd and ngd only

[[rules]]
rule = "polyak"                                    # step: the longest step allowed; without it, no limit
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from numerics.errors import InputError
from numerics.files import TEXT_LIMIT, read_bytes
from paper_figs.runs import Setting

LARGEST = 1_000_000  # cells
KNOWN = {"data", "seeds", "steps", "space", "check", "rules"}
KNOWN_RULE = {"rule", "step", "exponent"}


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    setting: Setting

    @property
    def key(self) -> str:
        """Its name in the data set: a hash of all that determines it but the code."""
        content = json.dumps(asdict(self.setting), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Grid:
    """A grid file's content: its cells, and whether each run is checked against the theorems."""

    cells: tuple[Cell, ...]
    check: bool


def read(path: Path) -> Grid:
    """Read a grid file.

    Raises:
        InputError: it cannot be read, is no TOML, or an entry is missing, unknown or out of range; the file
            and the entry are named.
    """
    try:
        content = tomllib.loads(read_bytes(path, limit=TEXT_LIMIT).decode("utf-8"))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from None
    try:
        return _grid(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _grid(content: dict[str, Any]) -> Grid:
    _only(content, KNOWN, "the grid")
    data = [_text(value, "data") for value in _list(content, "data")]
    steps = _count(content.get("steps"), "steps")
    space = content.get("space", "gram")
    if space not in ("gram", "weight"):
        raise InputError(f'space must be "gram" or "weight", not {space!r}')
    check = content.get("check", True)
    if not isinstance(check, bool):
        raise InputError(f"check must be true or false, not {check!r}")
    seeds = _seeds(content.get("seeds", 1))
    rules = content.get("rules")
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, dict) for rule in rules):
        raise InputError("rules must be given as one or more tables [[rules]]")
    kinds = [kind for number, rule in enumerate(rules, start=1) for kind in _rule(rule, number)]
    size = len(data) * len(seeds) * len(kinds)
    if size > LARGEST:
        raise InputError(f"the grid has {size} cells; at most {LARGEST} are run")
    cells = [
        Cell(Setting(data=name, seed=seed, steps=steps, space=space, **kind))
        for name, kind, seed in product(data, kinds, seeds)
    ]
    for cell in cells:
        cell.setting.step_rule()
        if cell.setting.is_file and len(seeds) > 1:
            raise InputError(f"data: {cell.setting.data} is a file, one problem: give it one seed")
    unique = {cell.key: cell for cell in cells}
    return Grid(tuple(unique.values()), check)


def _rule(table: dict[str, Any], number: int) -> list[dict[str, Any]]:
    where = f"rules[{number}]"
    _only(table, KNOWN_RULE, where)
    rule = _text(table.get("rule"), f"{where}.rule")
    steps: list[float | None] = [None]
    if "step" in table:
        steps = [_number(value, f"{where}.step") for value in _list(table, "step", where)]
    exponents = [0.0]
    if "exponent" in table:
        exponents = [_number(value, f"{where}.exponent") for value in _list(table, "exponent", where)]
    kinds: list[dict[str, Any]] = [
        {"rule": rule, "step": s, "exponent": a} for s, a in product(steps, exponents)
    ]
    for kind in kinds:
        try:
            Setting(data="", steps=1, **kind).step_rule()
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return kinds


def _only(table: dict[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise InputError(f"{where} has no entry {unknown[0]!r}; there are {', '.join(sorted(known))}")


def _list(table: dict[str, Any], name: str, where: str = "") -> list[Any]:
    value = table.get(name)
    values = value if isinstance(value, list) else [value]
    if not values or value is None:
        raise InputError(f"{where + '.' if where else ''}{name} is missing or empty")
    return values


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InputError(f"{name} must be text, not {value!r}")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, not {value!r}")
    return number


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
        raise InputError(f"{name} must be a whole number from 1 to 10^9, not {value!r}")
    return value


def _seeds(value: Any) -> list[int]:
    if isinstance(value, list):
        if not value or not all(type(seed) is int and 0 <= seed < 2**32 for seed in value):
            raise InputError(f"seeds must be whole numbers from 0 to 2^32 - 1, not {value!r}")
        return list(dict.fromkeys(value))
    count = _count(value, "seeds")
    if count > LARGEST:
        raise InputError(f"seeds: {count} are too many; at most {LARGEST}")
    return list(range(count))
