"""A run repeated in ball arithmetic: rigorous enclosures of every column of its history.

From the exact floats of the problem, of W_0 and of the step-size rule, in the coordinates of the span of the
constraints (section 2 of the paper): W_t = W_0 + sum_k b_k A_k, -grad L = sum_k c_k A_k, and

    mu_(t+1) = mu_t + (e_t/||grad L||) K c,    b_(t+1) = b_t + (e_t/||grad L||) c.

Scores may be unequal and sequences of different length. What is enclosed is the run in exact arithmetic, not
the float run: their distance is the float engine's own error (`CertifiedRun.float_error`). The trajectory is
computed at exact points, and the run's distance from it is bounded step by step by the derivative of the step
(`numerics._ball_deviation`). So the precision does not grow with the number of steps, unless the run itself
is chaotic: then a rounding error doubles every few steps, and no float run follows the exact one for long.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Float, Int

from numerics._ball_deviation import Deviation, StepShape
from numerics._ball_layer import ExactProblem, Look, dot, logit_gaps, look_at, step_length
from numerics._record import COLUMNS
from numerics.errors import CertificationError, InputError
from numerics.maxmargin.certificate import LARGEST_BITS, Certificate
from numerics.run import Run
from numerics.steps import NormalizedGD, Rule

START_BITS = 192
MAX_BITS = 16_384
RADIUS = 1e-20
"""The default target: radius over the scale of its column (`CertifiedRun.scale`)."""
FLOAT_ERROR = 1e-9
"""The float engine's stated error: a recorded number lies within its enclosure plus this, on the scale of its
column. The verdicts on float runs allow bounds the same slack."""
SIZE_LIMIT = 1_000  # constraints
LONGEST_STEP = 1e300
ENCLOSED = COLUMNS[1:]
TARGET_COLUMNS = ("target_component", "residual_norm", "direction_gap")
_NAN = arb.nan()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CertifiedRun:
    """Enclosures of a run's history, made by `certify`.

    bits is the precision that sufficed, tried all that were used; balls maps each column of `Run.history`
    but "step" to one ball a recorded step (NaN where the column has no value: a direction at W = 0, or the
    columns named in `missing`, with the reason). separator_excess encloses sum e_s <-grad L_s/||grad L_s||,
    M> - S_t, that is <W_t, M> - <W_0, M> - S_t: exactly 0 when every constraint is proved active.
    certificate is the proof of the max-margin solution, None where there is none; norm and margin enclose
    ||M|| and g* at the run's precision (NaN without a certificate).
    """

    run: Run
    bits: int
    tried: tuple[int, ...]
    seconds: float
    steps: Int[np.ndarray, " rows"]
    balls: Mapping[str, tuple[arb, ...]] = field(repr=False)
    separator_excess: tuple[arb, ...] = field(repr=False)
    missing: Mapping[str, str]
    certificate: Certificate | None
    norm: arb
    margin: arb

    def bounds(self, column: str) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
        """(lower, upper) of a column as floats, rounded outward."""
        pairs = [outward(ball) for ball in self.balls[column]]
        return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])

    @cached_property
    def float_error(self) -> dict[str, float]:
        """Column -> the largest |recorded - midpoint| over the column's scale: the engine's own error."""
        return {name: max(self._errors(name), default=math.nan) for name in self._compared()}

    @property
    def radius(self) -> float:
        """The largest radius over the scale of its column."""
        widths = [
            _quotient(ball.rad(), scale)
            for name in ENCLOSED
            if name not in self.missing
            for ball, scale in zip(self.balls[name], self.scale(name), strict=True)
            if not ball.is_nan()
        ]
        return max(widths, default=math.nan)

    def outside(self, error: float = FLOAT_ERROR) -> list[tuple[str, int]]:
        """(column, step) of each recorded number that is not within its enclosure plus the stated error."""
        found = []
        for name in self._compared():
            values = self.run.recorded[name]
            for row, (ball, scale) in enumerate(zip(self.balls[name], self.scale(name), strict=True)):
                value = float(values[row])
                if ball.is_nan() and math.isnan(value):
                    continue
                room = ball + arb(0, arb(error) * scale)
                if not (math.isfinite(value) and ball.is_finite() and arb(value) in room):
                    found.append((name, int(self.steps[row])))
        return found

    def scale(self, column: str) -> list[arb]:
        """What an error in the column is measured by, one a recorded step.

        The number itself, where it is positive by its nature; but at least 10^-6 of ||W_t|| for the residual
        and 10^-12 for the direction gap, which vanish. At least 1 for a logarithm; and the step length of
        GD and Polyak, the exponential of logarithms as large as log ||grad||, by e_t max(1, |log ||grad|||),
        which is the same.
        ||W_t|| for <W_t, M^>, R ||W_t|| for a logit gap, and for the separator path at least E_t/R, its
        least under equal scores.
        """
        names = dict.fromkeys((column, "weight_norm", "path_length", "log_gradient_norm"))
        rows = zip(*(self.balls[name] for name in names), strict=True)
        return [_scale(column, dict(zip(names, row, strict=True)), self.run) for row in rows]

    def _compared(self) -> list[str]:
        return [name for name in ENCLOSED if name not in self.missing and name in self.run.recorded]

    def _errors(self, column: str) -> Iterator[float]:
        pairs = zip(self.run.recorded[column], self.balls[column], self.scale(column), strict=True)
        for recorded, ball, scale in pairs:
            if not ball.is_nan():
                value = float(recorded)
                yield _quotient(abs(arb(value) - ball.mid()), scale) if math.isfinite(value) else math.inf

    def __repr__(self) -> str:
        """The run, the precision and the largest radius in one line."""
        return f"CertifiedRun({self.run!r}, bits={self.bits}, radius={self.radius:.1e})"


def outward(ball: arb) -> tuple[float, float]:
    """Floats (lower, upper) around a ball."""
    if ball.is_nan():
        return math.nan, math.nan
    low, high = float(ball.lower()), float(ball.upper())
    if ball.is_exact() and arb(low) == ball:
        return low, high
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def _quotient(error: arb, scale: arb) -> float:
    if error.is_zero():
        return 0.0
    return math.inf if scale.is_zero() else float((error / scale).upper())


def _scale(column: str, row: Mapping[str, arb], run: Run) -> arb:
    """See `CertifiedRun.scale`; `row` holds the column and what it may be measured by."""
    size, u = abs(arb(row[column].mid())), row["weight_norm"].mid()
    if column == "step_length" and not isinstance(run.rule, NormalizedGD):
        logs = abs(arb(row["log_gradient_norm"].mid()))
        return (size * logs.max(arb(1))).mid() if logs.is_finite() else size
    if column.startswith("log_"):
        return size.max(arb(1)).mid()
    R = float(run.problem.constraint_norms.max())
    floor = {
        "target_component": u,
        "residual_norm": u * 1e-6,
        "direction_gap": arb(1e-12),
        "min_logit_gap": u * R,
        "separator_path": row["path_length"].mid() / R,
    }
    return size.max(floor.get(column, arb(0))).mid()


def certify(
    run: Run,
    *,
    bits: int | None = None,
    max_bits: int = MAX_BITS,
    radius: float = RADIUS,
    progress: bool = False,
) -> CertifiedRun:
    """Repeat a run in ball arithmetic and enclose every column at every recorded step.

    Starts with `bits` of precision (192 when None) and raises them until every radius is below `radius` on
    the scale of its column (`CertifiedRun.scale`). The columns of the target are about the true
    max-margin solution, by its certificate; where it cannot be certified they are NaN, with the reason.

    Raises InputError when the run is not by one of the step-size rules, is larger than 1000 constraints, or
    its recorded steps are not steps of it; CertificationError when the decoder was trained too, when
    `max_bits` do not suffice, or when a step is longer than 1e300, as Polyak's may be without a cap where
    attention is stuck at a wrong token.
    """
    precision = START_BITS if bits is None else bits
    if not 32 <= precision <= max_bits:
        raise InputError(f"bits must lie between 32 and max_bits = {max_bits}, not {precision}")
    if not 0 < radius < 1:
        raise InputError(f"radius must lie between 0 and 1, not {radius}")
    problem, steps = run.problem, _recorded_steps(run)
    if run.joint is not None:
        raise CertificationError("joint training is not certified: the certified engine has a fixed decoder")
    if not isinstance(run.rule, Rule):
        raise InputError(f"only runs of a step-size rule can be certified, not {run.rule!r}")
    if not 0 < problem.n_constraints <= SIZE_LIMIT:
        raise InputError(
            f"a certified run needs between 1 and {SIZE_LIMIT} constraints, not {problem.n_constraints}"
        )
    began, tried = time.perf_counter(), []
    while True:
        tried.append(precision)
        with ctx.workprec(precision), _bar(progress, run.steps, precision) as advance:
            certificate, reason = _target(run, precision)
            try:
                rows, target = _repeat(run, steps, certificate, precision, radius, advance)
            except _TooWideError as wide:
                if precision >= max_bits:
                    raise CertificationError(
                        f"not certified at {precision} bits: {wide} (at most {max_bits} bits were allowed)"
                    ) from None
                precision = min(wide.needed, max_bits)
                continue
        return CertifiedRun(
            run=run,
            bits=precision,
            tried=tuple(tried),
            seconds=time.perf_counter() - began,
            steps=steps,
            balls={name: tuple(row[name] for row in rows) for name in ENCLOSED},
            separator_excess=tuple(row["separator_excess"] for row in rows),
            missing=dict.fromkeys(TARGET_COLUMNS, reason) if certificate is None else {},
            certificate=certificate,
            norm=_NAN if target is None else target.norm,
            margin=_NAN if target is None else target.margin,
        )


class _TooWideError(Exception):
    """The balls are too wide at this precision; `needed` estimates how many bits would do."""

    def __init__(self, reason: str, needed: int) -> None:
        super().__init__(reason)
        self.needed = needed


def _recorded_steps(run: Run) -> np.ndarray:
    steps = np.asarray(run.recorded["step"])
    whole = steps.size > 0 and steps.dtype.kind in "iu" and bool((np.diff(steps) > 0).all())
    if not whole or steps[0] < 0 or steps[-1] > run.steps:
        raise InputError(f"the recorded steps must ascend within 0..{run.steps}")
    return steps.astype(np.int64)


def _target(run: Run, precision: int) -> tuple[Certificate | None, str]:
    """(the certified max-margin solution, why there is none)."""
    if run.target is None:
        return None, "the run has no max-margin solution (its constraints are infeasible)"
    try:
        return run.target.certify(bits=min(precision, LARGEST_BITS)), ""
    except CertificationError as error:
        return None, f"the max-margin solution is not certified: {error}"


@contextmanager
def _bar(show: bool, steps: int, precision: int) -> Iterator[Any]:
    if not show:
        yield lambda t: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"certifying at {precision} bits", total=max(steps, 1))
        yield lambda t: bar.update(task, completed=t)


# --- the run in balls --------------------------------------------------------------------------------------


def _repeat(
    run: Run, steps: np.ndarray, certificate: Certificate | None, bits: int, radius: float, advance: Any
) -> tuple[list[dict[str, arb]], _Target | None]:
    """All rows of the run at one precision, and the target they are about. Raises _TooWideError."""
    problem, law = run.problem, run.rule.law
    exact = ExactProblem.of(problem)
    N, R = problem.n_constraints, exact.norms
    mu = [arb(0)] * N  # of the computed trajectory, W~_t = W_0 + sum_s f~_s sum_k c~_k A_k, as is `square`
    square = arb(0)
    if run.init is not None and np.any(run.init):
        mu = logit_gaps(problem, run.init)
        square = sum((arb(float(x)) ** 2 for x in np.ravel(run.init)), arb(0))
    target = None if certificate is None else _Target.of(certificate, exact.gram)
    deviation = Deviation.of(exact, problem.gram(), run.target)
    path, separator, curvature, excess_sum = arb(0), arb(0), arb(0), arb(0)
    wanted, rows = set(steps.tolist()), []
    for t in range(int(steps[-1]) + 1):
        look = look_at(exact, mu)
        mid = [x.mid() for x in look.coefficients]
        pull = (exact.gram * arb_mat(N, 1, mid)).entries()
        slope = dot(mid, pull)  # ||sum_k c~_k A_k||^2
        if not (slope > 0 and look.excess > 0):
            raise _TooWideError(f"the gradient's norm cannot be told from 0 at step {t}", 2 * bits)
        root = slope.sqrt()
        norm = root + arb(0, _moved(look, mid, R))
        _, factor, _ = step_length(law, t, norm, look.excess)
        # The run itself: everything at any point within the distance of the computed one.
        away = deviation.distance
        wide_mu = [x + arb(0, away * reach) for x, reach in zip(mu, deviation.reach, strict=True)]
        seen = look_at(exact, wide_mu)
        moved = _moved(seen, mid, R)
        wide_norm = root + arb(0, moved)
        far = arb(0, away * deviation.stretch)
        if not (square > 0 or square.is_zero()):
            raise _TooWideError(f"the weight norm cannot be told from 0 at step {t}", 2 * bits)
        u = square.sqrt() + far
        if not (wide_norm > 0 and seen.excess > 0 and (u > 0 or u.is_zero())):
            raise _TooWideError(f"the run cannot be told from a stationary point at step {t}", 2 * bits)
        length, wide_factor, powers = step_length(law, t, wide_norm, seen.excess)
        if length > LONGEST_STEP:
            raise CertificationError(f"step {t} is longer than {LONGEST_STEP:g}: give the rule a cap")
        if t in wanted:
            row = {
                "path_length": path,
                "separator_path": separator,
                "curvature_sum": curvature,
                "step_length": length,
                "weight_norm": u,
                **_towards(target, mu, square, far),
                "log_attention_gap": _extreme(seen.leaks, arb.max).log(),
                "log_total_attention_gap": sum(seen.leaks, arb(0)).log(),
                "log_excess_loss": seen.excess.log(),
                "loss": exact.optimal_loss + seen.excess,
                "min_logit_gap": _extreme(wide_mu, arb.min),
                "log_gradient_norm": wide_norm.log(),
                "separator_excess": _NAN if target is None else excess_sum,
            }
            _check_width(row, run, radius, certificate is not None, bits, t)
            rows.append(row)
            advance(t)
        c = seen.coefficients
        path += length
        separator += wide_factor * sum(c, arb(0))
        if target is not None:
            excess_sum += wide_factor * sum((x * c[k] for k, x in target.beyond), arb(0))
        if not square.is_zero():
            curvature += length**2 / u
        around = [x + arb(0, moved * r) for x, r in zip(pull, R, strict=True)]
        shape = StepShape(length, wide_norm, around, powers)
        if not deviation.advance(seen, shape, deviation.local(factor, look.coefficients)):
            raise _TooWideError(f"the distance to the run cannot be bounded at step {t}", 2 * bits)
        f = factor.mid()
        square += f * (2 * dot(mid, mu) + f * slope)
        mu = [x + f * z for x, z in zip(mu, pull, strict=True)]
    return rows, target


def _moved(look: Look, mid: list[arb], R: tuple[arb, ...]) -> arb:
    """A bound on ||grad L - (-sum_k c~_k A_k)||."""
    gaps = ((x - m).abs_upper() * r for x, m, r in zip(look.coefficients, mid, R, strict=True))
    return sum(gaps, arb(0)).abs_upper()


@dataclass(frozen=True, eq=False)
class _Target:
    """The max-margin solution in balls: multipliers, ||M||, g*, and (k, <A_k, M> - 1) where that is not 0."""

    dual: list[arb]
    norm: arb
    margin: arb
    beyond: list[tuple[int, arb]]

    @classmethod
    def of(cls, certificate: Certificate, gram: arb_mat) -> _Target:
        """Solve K alpha = 1 on the support that is proved, at the working precision.

        The certificate states its numbers to 1024 bits at most, fewer than a long run needs.
        """
        members = [k for k, status in enumerate(certificate.status) if status == "support"]
        dual = [x.ball for x in certificate.dual]
        square = arb_mat([[gram[k, m] for m in members] for k in members])
        with suppress(ZeroDivisionError):  # nearly singular at this precision: the stated numbers are better
            found = square.solve(arb_mat(len(members), 1, [1] * len(members))).entries()
            for k, alpha in zip(members, found, strict=True):
                dual[k] = alpha
        norm = sum((dual[k] for k in members), arb(0)).sqrt()  # sum alpha = ||M||^2
        beyond = [
            (k, sum((gram[k, m] * dual[m] for m in members), arb(-1)))
            for k, status in enumerate(certificate.status)
            if status == "inactive"
        ]
        return cls(dual, norm, 1 / norm, beyond)


def _towards(target: _Target | None, mu: list[arb], square: arb, far: arb) -> dict[str, arb]:
    """The columns about the max-margin direction, at any W within `far` of the computed one."""
    if target is None:
        return dict.fromkeys(TARGET_COLUMNS, _NAN)
    v = dot(target.dual, mu) * target.margin
    rest = (square - v**2).nonnegative_part().sqrt() + far
    v, u = v + far, square.sqrt() + far
    gap = _NAN
    if not square.is_zero():
        gap = rest**2 / (u * (u + v)) if v > 0 else 1 - v / u
    return {"target_component": v, "residual_norm": rest.nonnegative_part(), "direction_gap": gap}


def _extreme(balls: list[arb], pick: Any) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = pick(out, x)
    return out


def _check_width(row: dict[str, arb], run: Run, radius: float, target: bool, bits: int, t: int) -> None:
    """Raise _TooWideError for the widest ball of the row that misses the radius."""
    widest, name = arb(0), ""
    for column in ENCLOSED:
        ball = row[column]
        if column in TARGET_COLUMNS and (
            not target or (column == "direction_gap" and row["weight_norm"].is_zero())
        ):
            continue
        scale = _scale(column, row, run)
        if not ball.is_finite() or (scale.is_zero() and not ball.rad().is_zero()):
            raise _TooWideError(f"{column} is not bounded at step {t}", 2 * bits)
        if ball.rad() > radius * scale and ball.rad() / scale > widest:
            widest, name = (ball.rad() / scale).mid(), column
    if name:
        lacking = math.ceil(float((widest / radius).log())) / math.log(2)
        needed = 64 * math.ceil((bits + lacking + 32) / 64)
        raise _TooWideError(f"the radius of {name} misses {radius:g} at step {t}", needed)
