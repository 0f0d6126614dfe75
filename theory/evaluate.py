"""Numbers for kernel terms: the very expression that is proved, evaluated on a run. Floats, not enclosures.

``values`` maps subterms (for instance the norm of W_t) to arrays, one entry a recorded step; everything else
is computed from them. ``log_value`` evaluates a positive term in the log domain, so that exp(-10^6) is no 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import lambertw

from theory.proof import normal
from theory.proof.terms import Term

ROUNDING = 2.0**-48
"""What rounding may do to a quotient near 1 whose parts are sums of a few numbers of one sign."""
canonical = lru_cache(maxsize=100_000)(normal.canonical)  # a bound is evaluated on many runs

Values = Mapping[Term, Any]  # canonical subterm -> float, array over the recorded steps, or a call for it


def by_canonical(values: Values) -> dict[Term, Any]:
    """Key the values by the canonical form of their terms."""
    return {canonical(t): v for t, v in values.items()}


def value(t: Term, values: Values) -> Any:
    """The value of a term.

    Raises:
        KeyError: a symbol of the term has no value.
    """
    found = _look(t, values)
    if found is not None:
        return found
    head = t[0]
    if head == "num":
        return float(t[1])
    if head == "add":
        terms = [value(c, values) for c in t[1:]]
        with np.errstate(invalid="ignore"):  # inf - inf, beyond floats, is nan
            return sum(terms)
    if head == "mul":
        factors = np.broadcast_arrays(*(value(c, values) for c in t[1:]))
        with np.errstate(over="ignore", invalid="ignore"):  # 0 * inf, beyond floats, is nan
            return np.prod(factors, axis=0)
    if head == "pow":
        with np.errstate(over="ignore"):
            return np.asarray(value(t[1], values), dtype=float) ** t[2]
    if head == "inv":
        with np.errstate(divide="ignore"):
            return np.divide(1.0, value(t[1], values))
    if head == "fn":
        if t[1] == "log" and t[2][0] == "mul":
            return _log_product(t[2], values)
        args = [value(c, values) for c in t[2:]]
        with np.errstate(divide="ignore", over="ignore"):
            return _FUNCTIONS[t[1]](*args)
    raise KeyError(f"no value for {t!r}")


def log_value(t: Term, values: Values, logs: Values) -> Any:
    """The logarithm of a positive term; ``logs`` gives logarithms of subterms that may underflow."""
    found = _look(t, logs)
    if found is not None:
        return found
    if _look(t, values) is None:
        if t[0] == "mul":
            return sum(log_value(c, values, logs) for c in t[1:])
        if t[0] == "pow":
            return t[2] * log_value(t[1], values, logs)
        if t[0] == "inv":
            return -log_value(t[1], values, logs)
        if t[:2] == ("fn", "exp"):
            return value(t[2], values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(value(t, values))


def _log_product(t: Term, values: Values) -> Any:
    """The logarithm of a product; of a quotient near 1 by what is left when 1 is taken off.

    In log((x + c)/(y + c)) a large c hides x - y from floats: there the two cancel as expressions first. The
    outcome is taken only where it is the quotient less 1 to within rounding: as expressions other terms may
    cancel so badly that it is worse than what it replaces.
    """
    plain = np.asarray(value(t, values), dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(plain)
    under = [factor[1] for factor in t[1:] if factor[0] == "inv"]
    if len(under) != 1 or not (np.abs(plain - 1) < 0.5).any():
        return logs
    over = math.prod(factor for factor in t[1:] if factor[0] != "inv")
    try:
        difference = value(canonical(over - under[0]), values)
    except KeyError:  # a composite was observed, its parts were not
        return logs
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = difference / value(under[0], values)
        return np.where(np.abs(excess - (plain - 1)) <= ROUNDING, np.log1p(excess), logs)


def _look(t: Term, values: Values) -> Any:
    found = values.get(t)
    if found is None and t[0] != "num":
        found = values.get(canonical(t))
    return found() if callable(found) else found


_FUNCTIONS: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "lambertw": lambda x: lambertw(x).real,
    "max": np.maximum,
    "min": np.minimum,
}
