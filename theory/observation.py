"""Anything that was observed, to be held against a page of one's own: numbers for the terms of its rate.

The runs of this package are read by `theory.observables`. An Observation is for everything else: another
model, another algorithm, numbers from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int

from numerics.errors import InputError
from theory.assumptions import Check
from theory.evaluate import by_canonical
from theory.page import Theorem
from theory.proof.terms import Formula, Term


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was seen of a page's terms at some steps, and of its hypotheses.

    Attributes:
        steps: the steps, increasing.
        values: term -> its value, a number or one a step. Everything in the rate that is not named here is
            computed from what is (sums of products, quotients, exp, log, ...): numbers, and the bound itself
            where it is composed, cannot be named. Values are real numbers from the rate's first step on.
        checks: hypothesis (its formula, or its name on the page) -> whether it was met: a Check, or a bool.
            A definition, such as the update rule of the algorithm that was run, is met: say True.
        logs: term -> logarithm of its value, for terms that may underflow.

    Raises:
        InputError: no steps, steps that do not increase, a value of another length or of something that is no
            term, a check that is neither a Check nor a bool.
    """

    steps: Int[np.ndarray, " rows"]
    values: Mapping[Term, Any]
    checks: Mapping[Formula | str, Check | bool]
    logs: Mapping[Term, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the lengths."""
        steps = _numbers("steps", self.steps)
        if steps.ndim != 1 or not len(steps):
            raise InputError("an observation needs at least one step")
        if not (np.diff(steps) > 0).all() or not np.isfinite(steps).all():
            raise InputError("the steps of an observation must increase")
        for kind, table in (("values", self.values), ("logs", self.logs)):
            for term, value in table.items():
                if type(term) is not Term or term[0] == "num":
                    raise InputError(f"{kind} of {term!r}: is no term that could be observed")
                shape = _numbers(f"{kind} of {term!r}", value).shape
                if shape not in {(), steps.shape}:
                    raise InputError(f"{kind} of {term!r}: shape {shape} is neither () nor {steps.shape}")
        for name, said in self.checks.items():
            if not isinstance(said, Check | bool | np.bool_):  # a word would count as true
                raise InputError(f"the check of {name!r} must be a Check or a bool, not {said!r}")

    def of(self, page: Theorem) -> dict[str, Check]:
        """Give the check of each hypothesis of a page; unknown where nothing is said of it."""
        found = {}
        for name, formula in page.hypotheses.items():
            said = self.checks.get(formula, self.checks.get(name))
            if said is None:
                said = Check("unknown", "the observation says nothing of it")
            elif not isinstance(said, Check):
                said = Check("holds" if said else "fails", "as the observation says")
            found[name] = said
        return found

    def numbers(self, first: int) -> tuple[dict[Term, Any], dict[Term, Any]]:
        """Give the values and logarithms from row `first` on.

        Raises:
            InputError: a value is no real number there (a logarithm may be minus infinity: of 0).
        """
        values, logs = (
            {
                term: np.asarray(value, dtype=float)[... if np.ndim(value) == 0 else slice(first, None)]
                for term, value in table.items()
            }
            for table in (self.values, self.logs)
        )
        for kind, table in (("values", values), ("logs", logs)):
            for term, value in table.items():
                real = np.isfinite(value) | (np.isneginf(value) if kind == "logs" else False)
                if not real.all():
                    row = int(np.argmin(real))
                    at = f" at step {np.asarray(self.steps)[first:][row]}" if value.ndim else ""
                    raise InputError(f"{kind} of {term!r}: {np.ravel(value)[row]} is no real number{at}")
        return by_canonical(values), by_canonical(logs)


def _numbers(name: str, value: Any) -> np.ndarray:
    """Read numbers. Raises InputError naming what is none."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array.astype(float)
        if array.dtype.kind == "O":  # whole numbers beyond 64 bits, fractions
            return np.array([float(x) for x in array.ravel()]).reshape(array.shape)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InputError(f"{name}: not numbers: {error}") from None
    raise InputError(f"{name}: not numbers but {array.dtype}")
