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
    Whether the theorem is proved is another question: `assert_proved`. Returns the verdict. Raises
    AssertionError with the first violation, the values at that step and a plot.
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
    A value or bound that is not a number (NaN) is a violation. Raises AssertionError with the first violation
    and a plot; InputError for empty or ill-matched arrays, or what is no array of numbers.
    """
    __tracebackhide__ = True
    from numerics.errors import InputError

    if sense not in ("upper", "lower"):
        raise InputError(f'sense must be "upper" or "lower", not {sense!r}')
    observed = _numbers("values", values)
    if observed.ndim != 1 or not len(observed):
        raise InputError(f"values must be a sequence of numbers, not of shape {observed.shape}")
    limit = _numbers("bound", bound)
    if limit.shape not in {(), observed.shape}:
        raise InputError(f"bound of shape {limit.shape} does not fit values of shape {observed.shape}")
    limit = np.broadcast_to(limit, observed.shape)
    at = np.arange(len(observed)) if steps is None else _steps(steps)
    if at.shape != observed.shape:
        raise InputError(f"steps of shape {at.shape} do not fit values of shape {observed.shape}")
    if not (isinstance(tolerance, int | float) and np.isfinite(tolerance) and tolerance >= 0):
        raise InputError(f"tolerance must be a nonnegative number, not {tolerance!r}")
    with np.errstate(over="ignore"):
        room = tolerance * np.abs(limit) if tolerance else 0.0  # 0 times an infinite bound is no number
        kept = observed <= limit + room if sense == "upper" else observed >= limit - room
    if not kept.all():
        raise AssertionError(
            _violation("the bound is violated", at, observed, limit, sense, bad=~kept, constants={})
        )


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Read real numbers. Raises InputError naming what is none."""
    from numerics.errors import InputError

    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            return array.astype(float)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InputError(f"{name} must be real numbers: {error}") from None
    raise InputError(f"{name} must be real numbers, not {array.dtype}")


def _steps(steps: ArrayLike) -> np.ndarray:
    """Read steps, kept as given, for they are printed. Raises InputError for what is no finite number."""
    from numerics.errors import InputError

    if not np.isfinite(_numbers("steps", steps)).all():
        raise InputError("steps must be finite")
    return np.asarray(steps)


def _page(theorem: str | Theorem) -> Theorem:
    import theory
    from numerics.errors import InputError

    if type(theorem) is theory.Theorem:
        return theorem
    if not isinstance(theorem, str):  # a subclass could say anything of itself
        raise InputError(f"a theorem is a Theorem itself or a key, not a {type(theorem).__name__}")
    page = theory.theorems().get(theorem)
    if page is None:
        raise InputError(f"no theorem is called {theorem!r}; `attnrates verify` lists them")
    return page


def _constants(run: Any, page: Theorem) -> dict[str, float]:
    """Give the constants of the bound by name, as text."""
    from theory.constants import in_bound
    from theory.legend import notation_of
    from theory.observables import constants

    known = run.values if hasattr(run, "values") else constants(run)
    found = in_bound(known, page.bound, notation_of(page))
    return {_as_text(name): value for name, value in found.items()}


def _as_text(latex: str) -> str:
    from theory.plain import from_latex

    try:
        return from_latex(latex)
    except (ValueError, IndexError):  # a name of one's own page, which may be any LaTeX
        return latex


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
    if len(x) < 2 or x.min() == x.max():
        return []
    canvas = np.full((ROWS, COLUMNS), " ")
    top, bottom = max(y.max(), z.max()), min(y.min(), z.min())
    column = _places(x, x.min(), x.max(), COLUMNS)
    for series, mark in ((z, "-"), (y, "o")):
        row = ROWS - 1 - _places(series, bottom, top, ROWS)
        seen = np.zeros(canvas.shape, dtype=bool)
        seen[row, column] = True
        canvas[seen] = np.where(canvas[seen] == " ", mark, "X")
    labels = [f"{top:.3g}", *[""] * (ROWS - 2), f"{bottom:.3g}"]
    ends = f"{x.min():.3g} ... {x.max():.3g}"
    return [
        "  observed o, bound -, both X",
        *(f"  {label:>9} |{''.join(line).rstrip()}" for label, line in zip(labels, canvas, strict=True)),
        f"  {'step':>9} |{ends:>{COLUMNS}}",
    ]


def _places(values: np.ndarray, low: float, high: float, count: int) -> np.ndarray:
    """Give the cell of each value on an axis from low to high, logarithmic where all is positive."""
    if low > 0:
        values, low, high = np.log10(values), np.log10(low), np.log10(high)
    span = high / 2 - low / 2  # halves do not overflow
    share = (values / 2 - low / 2) / span if span > 0 else np.ones(len(values))
    return np.clip(np.round(share * (count - 1)), 0, count - 1).astype(int)
