"""Assertions for anyone's tests: a theorem is proved, its bound holds on a run, values stay within a bound.

The same three functions are fixtures of the pytest plugin that this package installs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from numerics.run import Run
    from theory import Observation, Theorem, Verdict

ROWS, COLUMNS = 10, 60
"""The size of the plot in a failure message, in characters."""


def assert_proved(theorem: str | Theorem) -> None:
    """Fail unless every step of a theorem's proof passes the kernel, from its stated hypotheses alone.

    A theorem is given as the object itself or by its key. Raises AssertionError, with the reason; InputError
    for an unknown key.
    """
    __tracebackhide__ = True
    page = _page(theorem)
    if page.prove is None:
        raise AssertionError(f"{page.key} is claimed: it has no proof")
    try:
        page.proved()
    except Exception as error:
        raise AssertionError(f"{page.key} is not proved: {type(error).__name__}: {error}") from error


def assert_rate(run: Run | Observation, theorem: str | Theorem, *, allow_unclaimed: bool = False) -> Verdict:
    """Fail unless a theorem's hypotheses hold on a run and its bound holds at every recorded step.

    `run` is a Run, or an Observation of anything else; `theorem` a Theorem or a key of this package. A bound
    that is not claimed, because a hypothesis fails or is unknown, is a failure too, unless `allow_unclaimed`.
    Returns the verdict. Raises AssertionError with the first violation, the values at that step and a plot.
    """
    __tracebackhide__ = True
    import theory

    page = _page(theorem)
    verdict = theory.check(run, page if not isinstance(theorem, str) else theorem)
    if verdict.holds is None:
        if allow_unclaimed:
            return verdict
        reasons = [
            f"  {name} {'fails' if check.state == 'fails' else 'is unknown'}: {check.detail}"
            for name, check in verdict.hypotheses.items()
            if check.state != "holds"
        ]
        raise AssertionError("\n".join([f"{page.key} claims nothing on this run:", *reasons]))
    if not verdict.holds:
        assert page.rate is not None
        raise AssertionError(
            _violation(
                f"{page.key} is violated: {page.title}",
                verdict.steps,
                verdict.observed,
                verdict.bound,
                page.rate.sense,
                constants=_constants(run, page),
            )
        )
    return verdict


def assert_bound(
    values: ArrayLike,
    bound: ArrayLike,
    *,
    steps: ArrayLike | None = None,
    sense: Literal["upper", "lower"] = "upper",
    tolerance: float = 0.0,
) -> None:
    """Fail unless values stay at or below a bound (`sense="lower"`: at or above), each step.

    `bound` is one number or one a step; `steps` default to 0, 1, ...; `tolerance` is relative to the bound.
    Raises AssertionError with the first violation and a plot; InputError for empty or ill-matched arrays.
    """
    __tracebackhide__ = True
    from numerics.errors import InputError

    observed = np.asarray(values, dtype=float)
    if observed.ndim != 1 or not len(observed):
        raise InputError(f"values must be a sequence of numbers, not of shape {observed.shape}")
    limit = np.asarray(bound, dtype=float)
    if limit.shape not in {(), observed.shape}:
        raise InputError(f"bound of shape {limit.shape} does not fit values of shape {observed.shape}")
    limit = np.broadcast_to(limit, observed.shape)
    at = np.arange(len(observed)) if steps is None else np.asarray(steps)
    if at.shape != observed.shape:
        raise InputError(f"steps of shape {at.shape} do not fit values of shape {observed.shape}")
    if not (np.isfinite(tolerance) and tolerance >= 0):
        raise InputError(f"tolerance must be a nonnegative number, not {tolerance}")
    room = tolerance * np.abs(limit)
    kept = observed <= limit + room if sense == "upper" else observed >= limit - room
    if not kept.all():
        raise AssertionError(
            _violation("the bound is violated", at, observed, limit, sense, bad=~kept, constants={})
        )


def _page(theorem: str | Theorem) -> Theorem:
    import theory
    from numerics.errors import InputError

    if not isinstance(theorem, str):
        return theorem
    page = theory.theorems().get(theorem)
    if page is None:
        raise InputError(f"no theorem is called {theorem!r}; `attnrates verify` lists them")
    return page


def _constants(run: Any, page: Theorem) -> dict[str, float]:
    """Give the constants of the bound by name."""
    from theory.constants import in_bound
    from theory.observables import constants

    return in_bound(run.values if hasattr(run, "values") else constants(run), page.bound)


def _violation(
    title: str,
    steps: Any,
    observed: Any,
    bound: Any,
    sense: str,
    *,
    constants: dict[str, float],
    bad: Any = None,
) -> str:
    relation = ">" if sense == "upper" else "<"
    if bad is None:
        bad = observed > bound if sense == "upper" else observed < bound
        bad |= ~(np.isfinite(observed) & np.isfinite(bound))
    first = int(np.argmax(bad))
    lines = [
        title,
        f"  first at step {steps[first]}: observed {observed[first]:.6g} {relation} bound {bound[first]:.6g}",
        f"  at {int(np.sum(bad))} of {len(steps)} steps in all",
    ]
    lines += [f"  {name} = {value:.6g}" for name, value in constants.items()]
    return "\n".join([*lines, *plot(steps, observed, bound)])


def plot(steps: ArrayLike, observed: ArrayLike, bound: ArrayLike) -> list[str]:
    """Draw observed (o) and bound (-) against the step in text; X where the two fall together.

    Both axes are logarithmic where all is positive. Nothing is drawn of what is not finite.
    """
    x, y, z = (np.asarray(array, dtype=float) for array in (steps, observed, bound))
    used = np.isfinite(y) & np.isfinite(z)
    x, y, z = x[used], y[used], z[used]
    if len(x) < 2 or x[0] == x[-1]:
        return []
    log_y = bool((y > 0).all() and (z > 0).all())
    log_x = bool((x > 0).all())
    if log_y:
        y, z = np.log10(y), np.log10(z)
    if log_x:
        x = np.log10(x)
    low, high = min(y.min(), z.min()), max(y.max(), z.max())
    high = high if high > low else low + 1
    column = np.round((x - x.min()) / (x.max() - x.min()) * (COLUMNS - 1)).astype(int)
    canvas = [[" "] * COLUMNS for _ in range(ROWS)]
    for series, mark in ((z, "-"), (y, "o")):
        row = np.round((high - series) / (high - low) * (ROWS - 1)).astype(int)
        for r, c in zip(row, column, strict=True):
            canvas[r][c] = "X" if canvas[r][c] not in {" ", mark} else mark
    labels = [_label(high, log_y), *[""] * (ROWS - 2), _label(low, log_y)]
    ends = f"{_label(x.min(), log_x)} ... {_label(x.max(), log_x)}"
    return [
        "  observed o, bound -, both X",
        *(f"  {label:>9} |{''.join(line).rstrip()}" for label, line in zip(labels, canvas, strict=True)),
        f"  {'step':>9} |{ends:>{COLUMNS}}",
    ]


def _label(value: float, log: bool) -> str:
    return f"{10.0**value if log else value:.3g}"
