"""A recorded run held against a theorem: are its hypotheses met, and is the bound?"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from numerics.errors import InputError
from numerics.run import Run
from theory import catalog, joint_run
from theory.assumptions import Check, check_all
from theory.evaluate import canonical, log_value, value
from theory.hypotheses import START, about_start, checks, chooses_start, since
from theory.notation import t
from theory.observables import direction_gap, observe
from theory.observation import Observation
from theory.page import Rate, Theorem, says_what_it_proves
from theory.proof.terms import Index, Node, Term, number

TOLERANCE = 1e-9
"""A float run may break an inequality that is an equality by rounding: this much, relatively, is not held
against it. Certified runs need none. Where rounding may do more (see ``_rounding``), nothing is claimed."""
SINGLE = 1e-3
"""What rounding may do, relatively, to a run in single precision."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of ``check``.

    Attributes:
        theorem: the theorem's key.
        holds: True or False where every hypothesis holds; None where the bound is not claimed.
        worst_ratio: the largest observed/bound over the recorded steps (bound/observed for a lower bound, so
            that at most 1 is a bound kept); nan where not claimed.
        worst_step: the step at which it occurs.
        hypotheses: name -> Check.
        steps, observed, bound: one entry a recorded step that the statement speaks of.
    """

    theorem: str
    holds: bool | None
    worst_ratio: float
    worst_step: int | None
    hypotheses: dict[str, Check]
    steps: Int[np.ndarray, " rows"] = field(repr=False)
    observed: Float[np.ndarray, " rows"] = field(repr=False)
    bound: Float[np.ndarray, " rows"] = field(repr=False)

    def _repr_html_(self) -> str:
        """A small table for notebooks; everything in it is escaped."""
        outcome = {True: "holds", False: "VIOLATED", None: "not claimed"}[self.holds]
        at = "" if self.worst_step is None else f" at step {self.worst_step}"
        rows = {"outcome": outcome}
        if self.holds is not None:
            rows["worst ratio"] = f"{float(self.worst_ratio):.6g}{at}"
        rows |= {name: f"{check.state}: {check.detail}" for name, check in self.hypotheses.items()}
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in rows.items()
        )
        return f"<table><caption>{escape(self.theorem)}</caption>{cells}</table>"


def ratios(small: Any, large: Any) -> Float[np.ndarray, " rows"]:
    """How far each inequality small <= large is used up: at most 1 where it holds, 1 at equality.

    For large > 0 it is max(small, 0)/large; where both are negative, large/small; 0 <= 0 uses up nothing.
    """
    small, large = np.broadcast_arrays(np.asarray(small, dtype=float), np.asarray(large, dtype=float))
    out = np.full(small.shape, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(large > 0, np.maximum(small, 0) / large, out)
        out = np.where((large <= 0) & (small < 0), large / small, out)
        out = np.where((large == 0) & (small == 0), 0.0, out)
    return np.where(np.isnan(small) | np.isnan(large), np.nan, out)


class _Reading:
    """A run with what several pages ask of it: each check and each set of values is computed once."""

    def __init__(self, run: Run) -> None:
        self.given, self.run = run, joint_run.on_reference(run)
        self._checks: dict[str, Check] = {}
        self._values: dict[Any, tuple[dict[Term, Any], dict[Term, Any]]] = {}

    def checks(self, names: tuple[str, ...]) -> dict[str, Check]:
        """The checks of these names; when the run is of the wrong kind, that one alone."""
        kind = "joint" if "joint" in names else "fixed decoder"
        if joint_run.is_joint(self.run) != (kind == "joint"):
            return {kind: joint_run.CONDITIONS[kind](self.given)}
        own = {n: joint_run.CONDITIONS[n](self.given) for n in names if n in joint_run.CONDITIONS}
        missing = tuple(n for n in names if n not in self._checks and n not in own)
        self._checks |= own | check_all(self.run, missing)
        return {n: self._checks[n] for n in names}

    def observe(
        self, start: int, base: Index | None, *, running: bool = True
    ) -> tuple[dict[Term, Any], dict[Term, Any]]:
        key = (start, base, running)
        if key not in self._values:
            self._values[key] = observe(self.run, start, base, running=running)
        return self._values[key]


def _rounding(run: Run, rate: Rate) -> Float[np.ndarray, " rows"]:
    """How much, relatively, rounding may do to the inequality at each recorded row.

    The gradient's coefficients and Polyak's step are exponentials of logarithms of the gradient's size: they
    are known to 2^-52 times those. A distance of W from the direction of W_mm is known to the rounding of W.
    """
    single = run.manifest.get("dtype") == "float32"
    unit = 2.0**-22 if single else 2.0**-51
    history = run.recorded
    logs = np.abs(history["log_gradient_norm"])
    out = np.maximum(SINGLE if single else TOLERANCE, unit * np.where(np.isfinite(logs), logs, 0.0))
    if canonical(rate.observed) in (canonical(direction_gap(t)), canonical(direction_gap(START + t))):
        noise = unit * (history["step"] + 1.0)
        out = np.where(history["direction_gap"] <= noise**2, np.inf, out)
    return np.asarray(out, dtype=float)


def _evaluate(reading: _Reading, page: Theorem) -> tuple[np.ndarray, ...]:
    """Steps, observed, bound, ratio and what rounding may do to it, at each step."""
    run, rate = reading.run, page.rate
    assert rate is not None
    recorded = run.history["step"].to_numpy()
    start = _start(reading, page) if _based(page) else int(np.searchsorted(recorded, rate.from_step))
    shift = _shift(rate.observed)
    base = START if _based(page) else number(shift) if shift else None
    values, logs = reading.observe(start, base)
    steps = recorded[start:]
    observed, bound, ratio = _sides(rate, values, logs, steps.shape)
    after = int(_based(page))  # at t0 itself the statement is an identity
    if after >= len(steps):
        raise KeyError("no step is recorded after t0")
    slack = _rounding(run, rate)[start:]
    return steps[after:], observed[after:], bound[after:], ratio[after:], slack[after:]


def _sides(
    rate: Rate, values: dict[Term, Any], logs: dict[Term, Any], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed, bound and how much of the bound is used up.

    Raises:
        KeyError: a term has no value.
    """
    observed = np.broadcast_to(value(rate.observed, values), shape).astype(float)
    bound = np.broadcast_to(value(rate.bound, values), shape).astype(float)
    small, large = (rate.observed, rate.bound) if rate.sense == "upper" else (rate.bound, rate.observed)
    if rate.small_numbers:  # far along the run both sides underflow: compare logarithms
        ratio = np.exp(log_value(small, values, logs) - log_value(large, values, logs))
    else:
        ratio = ratios(*((observed, bound) if rate.sense == "upper" else (bound, observed)))
    return observed, bound, np.broadcast_to(ratio, shape)


def _shift(term: Node) -> int:
    """1 where a page speaks of the step t + 1 (so that t may start at 0), and so on."""
    here = [x[2] for x in _indices(term) if x[1] == ("t",)]
    return min(here, default=0)


def _indices(node: Node) -> list[Node]:
    if node[0] == "ix":
        return [node]
    return [x for c in node[1:] if isinstance(c, Node) for x in _indices(c)]


def _based(page: Theorem) -> bool:
    """Whether the page speaks of the steps from some t0 on."""
    return any(about_start(f) for f in page.hypotheses.values())


def _start(reading: _Reading, page: Theorem) -> int:
    """The first recorded row that meets the page's conditions on t0; see ``_sharpest`` for joint training.

    Raises:
        KeyError: no recorded step meets them.
    """
    values, _ = reading.observe(0, START, running=False)
    met = np.ones(len(reading.run.history), dtype=bool)
    for formula in filter(chooses_start, page.hypotheses.values()):
        from_here = since(formula)
        if from_here is not None:
            met &= from_here(reading.given)
            continue
        low, high = (value(side, values) for side in formula[1:])
        met &= np.broadcast_to(low < high if formula[0] == "lt" else low <= high, met.shape)
    if not met.any():
        raise KeyError("no recorded step meets the conditions on t0")
    rows = np.flatnonzero(met)
    if any(since(f) is not None for f in page.hypotheses.values()):
        return _sharpest(reading, page, rows)
    return int(rows[0])


CANDIDATES = 16


def _sharpest(reading: _Reading, page: Theorem, rows: Int[np.ndarray, " starts"]) -> int:
    """The start whose bound is best at the last step, where the constants are those of the steps since.

    Of a run of T steps, a t0 after both sqrt(T) and the first possible one is not considered: the bound is
    to speak of most of the run.
    """
    rate = page.rate
    assert rate is not None
    steps = reading.run.history["step"].to_numpy()
    early = rows[steps[rows] <= max(float(steps[rows[0]]), float(steps[-1]) ** 0.5)]
    some = early[np.unique(np.linspace(0, len(early) - 1, CANDIDATES).astype(int))]

    def at_end(row: int) -> float:
        values, logs = reading.observe(row, START)
        bound = log_value(rate.bound, values, logs) if rate.small_numbers else value(rate.bound, values)
        last = float(np.ravel(bound)[-1])
        loose = np.inf if np.isnan(last) else last
        return loose if rate.sense == "upper" else -loose

    return int(min(some.tolist(), key=at_end))


def _unclaimed(key: str, hypotheses: dict[str, Check]) -> Verdict:
    none = np.array([])
    return Verdict(key, None, float("nan"), None, hypotheses, none.astype(int), none, none)


def check(run: Run | Observation, theorem: str | Theorem) -> Verdict:
    """Hold a run against a theorem, given by its key, or an observation against any page, of one's own too.

    Raises:
        InputError: no theorem of that key, or one that says nothing of runs, or a run against a page that is
            none of this package's (how its terms are read off, only an Observation says), or a rate that is
            not its page's claim. The page is not proved here: ``Theorem.proved`` does that.
    """
    if isinstance(run, Observation):
        return _check_observation(run, theorem)
    key = theorem if isinstance(theorem, str) else theorem.key
    if isinstance(theorem, Theorem) and catalog.theorems().get(key) != theorem:
        raise InputError(f"{key} is a page of your own: hold an Observation against it, not a Run")
    return _check(_Reading(run), key)


def _check_observation(seen: Observation, theorem: str | Theorem) -> Verdict:
    page = theorem if isinstance(theorem, Theorem) else catalog.theorems().get(theorem)
    if page is None or page.rate is None:
        raise InputError(f"{getattr(page, 'key', theorem)!r} is no theorem that makes a claim on runs")
    if not says_what_it_proves(page):
        raise InputError(f"{page.key}: the rate is not the page's claim")
    composed = page.rate.bound[0] in ("add", "mul", "pow", "inv", "fn")
    if composed and {canonical(page.rate.bound)} & {canonical(t) for t in (*seen.values, *seen.logs)}:
        raise InputError(f"{page.key}: the bound is computed from its parts: observe those, not the bound")
    hypotheses = seen.of(page)
    if any(c.state != "holds" for c in hypotheses.values()):
        return _unclaimed(page.key, hypotheses)
    first = int(np.searchsorted(seen.steps, page.rate.from_step))
    steps = np.asarray(seen.steps)[first:]
    try:
        observed, bound, ratio = _sides(page.rate, *seen.numbers(first), steps.shape)
        if not len(steps):
            raise KeyError(f"no step is recorded from {page.rate.from_step} on")
    except KeyError as missing:
        hypotheses["recorded"] = Check("unknown", str(missing.args[0]))
        return _unclaimed(page.key, hypotheses)
    return _verdict(page.key, hypotheses, steps, observed, bound, ratio)


def _check(reading: _Reading, key: str) -> Verdict:
    page = catalog.theorems().get(key)
    if page is None or page.rate is None:
        known = ", ".join(k for k, p in catalog.theorems().items() if p.rate)
        raise InputError(f"no theorem about runs is called {key!r}; there are: {known}")
    hypotheses = reading.checks(checks(page))
    if any(c.state != "holds" for c in hypotheses.values()):
        return _unclaimed(key, hypotheses)
    try:
        steps, observed, bound, ratio, slack = _evaluate(reading, page)
    except KeyError as missing:
        hypotheses["recorded"] = Check("unknown", str(missing.args[0]))
        return _unclaimed(key, hypotheses)
    return _verdict(key, hypotheses, steps, observed, bound, ratio, slack)


def _verdict(
    key: str,
    hypotheses: dict[str, Check],
    steps: np.ndarray,
    observed: np.ndarray,
    bound: np.ndarray,
    ratio: np.ndarray,
    slack: np.ndarray | float = TOLERANCE,
) -> Verdict:
    slack = np.broadcast_to(slack, ratio.shape)
    if not (ratio > 1 + slack).any():  # nothing is broken; is all known?
        for unclear, reason in (
            (np.isnan(ratio), "a side of the inequality is beyond floats"),
            (ratio > 1 + TOLERANCE, "the sides differ by no more than rounding"),
        ):
            if unclear.any():
                first = int(steps[np.argmax(unclear)])
                hypotheses = hypotheses | {"recorded": Check("unknown", f"at step {first} {reason}")}
                return _unclaimed(key, hypotheses)
    worst = int(np.argmax(np.where(np.isnan(ratio), -np.inf, ratio)))
    holds = bool(ratio[worst] <= 1 + TOLERANCE)
    return Verdict(key, holds, float(ratio[worst]), int(steps[worst]), hypotheses, steps, observed, bound)


def check_run(run: Run) -> list[Verdict]:
    """Hold a run against every theorem that says something of runs."""
    reading = _Reading(run)
    return [_check(reading, key) for key, page in catalog.theorems().items() if page.rate]
