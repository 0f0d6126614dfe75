"""Data sets by name: `load("gaussian:n=10,d=600", seed=3)`, `load("digits:3v5")`, `load("mine.npz")`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from numerics.errors import InputError
from numerics.problem import Problem

__all__ = ["load", "names", "options", "parse"]

_NAMES = ("bbc", "digits", "gaussian")  # each is a function of its own name in a module of its own name


def names() -> tuple[str, ...]:
    """List the data sets known by name."""
    return _NAMES


def options(name: str) -> dict[str, Any]:
    """Give the options of a data set with their defaults (the seed is not among them)."""
    parameters = inspect.signature(_maker(name)).parameters.values()
    return {p.name: p.default for p in parameters if p.name != "seed"}


def load(spec: str, seed: int = 0, **overrides: Any) -> Problem:
    """Make the problem a specification names.

    `spec` is "NAME", or "NAME:part,part,..." where a part is "option=value" or a bare value for the first
    option ("digits:3v5,n=10"), or the path of an .npz file (see `Problem.load`; the seed plays no role
    then). Keyword arguments override the specification. Raises InputError for anything unknown or
    malformed.
    """
    name = spec.partition(":")[0]
    if name not in _NAMES:
        if os.path.exists(spec) or spec.endswith(".npz") or os.sep in spec:
            if overrides:
                raise InputError(f"{spec}: a problem file takes no options ({', '.join(overrides)})")
            return Problem.load(spec)
        raise InputError(f'unknown data set "{spec}": know {", ".join(_NAMES)}, or the path of an .npz file')
    known = options(name)
    unknown = sorted(set(overrides) - set(known))
    if unknown:
        raise InputError(f"{name} has no option {', '.join(unknown)}: its options are {', '.join(known)}")
    return _maker(name)(seed=seed, **(parse(spec)[1] | overrides))


def parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Split "NAME:part,part,..." into the name and the options it gives (not the defaults).

    Raises InputError for an unknown name or option, and for a value that is not of the option's type.
    """
    name, _, rest = spec.partition(":")
    known = options(name)
    given: dict[str, Any] = {}
    for position, part in enumerate(rest.split(",") if rest else []):
        key, equals, text = part.partition("=")
        if not equals:
            key, text = (next(iter(known)), part) if position == 0 else ("", part)
        key = key.strip()
        if key not in known or key in given:
            reason = "repeats an option" if key in given else f"its options are {', '.join(known)}"
            raise InputError(f'"{part}" in "{spec}" is not understood: {reason}')
        given[key] = _convert(spec, key, text.strip(), known[key])
    return name, given


def _maker(name: str) -> Callable[..., Problem]:
    if name not in _NAMES:
        raise InputError(f'unknown data set "{name}": know {", ".join(_NAMES)}')
    maker: Callable[..., Problem] = getattr(import_module(f"numerics.datasets.{name}"), name)
    return maker


def _convert(spec: str, key: str, text: str, default: Any) -> Any:
    """Read a value as the type of the option's default."""
    kind = type(default)
    try:
        if kind is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[
                text.lower()
            ]
        return kind(text)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise InputError(f'{key} in "{spec}" must be {wanted}, not "{text}"') from None
