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
            computed from what is (sums of products, quotients, exp, log, ...).
        checks: hypothesis (its formula, or its name on the page) -> whether it was met: a Check, or a bool.
            A definition, such as the update rule of the algorithm that was run, is met: say True.
        logs: term -> logarithm of its value, for terms that may underflow.

    Raises:
        InputError: no steps, steps that do not increase, or a value of another length.
    """

    steps: Int[np.ndarray, " rows"]
    values: Mapping[Term, Any]
    checks: Mapping[Formula | str, Check | bool]
    logs: Mapping[Term, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the lengths."""
        steps = np.asarray(self.steps)
        if steps.ndim != 1 or not len(steps):
            raise InputError("an observation needs at least one step")
        if (np.diff(steps) <= 0).any():
            raise InputError("the steps of an observation must increase")
        for kind, table in (("values", self.values), ("logs", self.logs)):
            for term, value in table.items():
                shape = np.shape(value)
                if shape not in {(), steps.shape}:
                    raise InputError(f"{kind} of {term!r}: shape {shape} is neither () nor {steps.shape}")

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
        """Give the values and logarithms from row `first` on."""
        values, logs = (
            {
                term: value if np.ndim(value) == 0 else np.asarray(value)[first:]
                for term, value in table.items()
            }
            for table in (self.values, self.logs)
        )
        return by_canonical(values), by_canonical(logs)
