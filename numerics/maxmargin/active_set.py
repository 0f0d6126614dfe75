"""A dual active-set method for max margin: bulk exchanges, made safe by Goldfarb-Idnani steps.

The dual, max b'a - a'Ka/2 over a >= 0, is solved on growing sets P of constraints whose equations K_PP a =
b_P have a positive solution. Every accepted change raises the dual value, so no set comes back and the
method ends. Bulk exchanges add many violated constraints at once; where one fails to raise the value
(degenerate or dependent constraints), fewer are added, down to a single one, for which the step of Goldfarb
and Idnani (1983) always works: it either raises the value or shows that the constraints are infeasible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf, dpstrf

from numerics.errors import AttnratesError
from numerics.maxmargin.gram import UnitConstraints

_DEPENDENT = 1e-12  # squared distance of a unit constraint from a span below which floats call it dependent
_VIOLATED = 1e-14  # violation, in units of ||V||, at rounding level
_ROUNDS = 200  # of conjugate gradients before a factorization is the better way
_FACTOR_LIMIT = (
    24_000  # constraints in a Cholesky factorization at most (4.3 GiB, and as much for the factor)
)

Progress = Callable[[int, int, float], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Ray:
    """Weights beta >= 0 of scaled constraints whose combination vanishes in floats: infeasible, it seems."""

    support: Int[np.ndarray, " p"]
    weights: Float[np.ndarray, " p"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Solved:
    """The support (ascending), its multipliers, and a solver of K_PP x = rhs for refinement."""

    support: Int[np.ndarray, " p"]
    multipliers: Float[np.ndarray, " p"]
    solve: Callable[[np.ndarray], np.ndarray]


class StalledError(AttnratesError):
    """Rounding stopped the method: too ill-conditioned for float64. It stood at these multipliers."""

    def __init__(
        self, message: str, support: Int[np.ndarray, " p"], multipliers: Float[np.ndarray, " p"]
    ) -> None:
        """Keep where the method stood."""
        super().__init__(message)
        self.support = support
        self.multipliers = multipliers


def solve_units(
    units: UnitConstraints, progress: Progress | None = None, *, bulk: bool = True
) -> Solved | Ray:
    """Maximise the dual. Progress is called with (step, |P|, largest violation). Raises StalledError.

    Without `bulk` exchanges it is the method of Goldfarb and Idnani alone.
    """
    b = units.targets
    P, a = np.empty(0, dtype=np.intp), np.empty(0)
    solver: Callable[[np.ndarray], np.ndarray] = lambda rhs: rhs  # noqa: E731  (nothing to solve yet)
    value, batch = 0.0, min(units.size, units.rank_bound)
    for step in range(50 * units.size + 100):
        violation = b - (units.apply(P, a) if P.size else 0.0)
        violation[P] = -np.inf
        worst = float(violation.max(initial=-np.inf))
        if progress:
            progress(step, P.size, worst)
        length = np.sqrt(max(2 * value, 0.0))
        violated = np.flatnonzero(violation > _VIOLATED * max(length, float(b.max())) * np.sqrt(units.size))
        if violated.size == 0:
            return Solved(support=P, multipliers=a, solve=solver)
        if bulk and batch > 1 and violated.size > 1:
            if batch < violated.size:
                violated = violated[np.argsort(-violation[violated], kind="stable")[:batch]]
            trial = _positive_subset(units, np.union1d(P, violated))
            gain = 0.5 * float(b[trial.support] @ trial.multipliers) if trial else -np.inf
            if trial and gain > value * (1 + 1e-14):
                P, a, solver, value = trial.support, trial.multipliers, trial.solve, gain
                batch = min(2 * batch, units.size)
            else:
                batch = max(1, min(batch, violated.size) // 4)
            continue
        outcome = _single_step(units, P, a, int(np.argmax(violation)))
        if isinstance(outcome, Ray):
            return outcome
        gain = 0.5 * float(b[outcome.support] @ outcome.multipliers)
        if not gain > value * (1 + 1e-15):
            raise StalledError(f"the dual value stopped rising at violation {worst:.1e}", P, a)
        P, a, solver, value = outcome.support, outcome.multipliers, outcome.solve, gain
        batch = 2
    raise StalledError("the active-set method did not end", P, a)


def _positive_subset(units: UnitConstraints, S: Int[np.ndarray, " s"]) -> Solved | None:
    """A subset of S whose equations have a positive solution: drop dependent, then nonpositive ones."""
    while S.size:
        direct = units.dense or S.size <= UnitConstraints.DENSE_LIMIT
        if not direct:
            solver = _conjugate_gradients(units, S)
            a = solver(units.targets[S])
            direct = not np.isfinite(a).all() and S.size <= _FACTOR_LIMIT
        if direct:
            keep, solver = _factor(units.block(S, S))
            S = S[keep]
            a = solver(units.targets[S])
        if not np.isfinite(a).all():
            return None
        if (a > 0).all():
            return Solved(support=S, multipliers=a, solve=solver)
        S = S[a > 0]
    return None


def _factor(K: Float[np.ndarray, "s s"]) -> tuple[Int[np.ndarray, " r"], Callable[[np.ndarray], np.ndarray]]:
    """Positions of an independent subset (all, as a rule), ascending, and a solver for its equations."""
    size = len(K)
    keep = np.arange(size)
    factor, info = dpotrf(K, lower=1, clean=0)
    if info != 0 or np.min(np.diag(factor)) ** 2 < _DEPENDENT:
        _, order, rank, _ = dpstrf(K, tol=_DEPENDENT, lower=1)
        keep = np.sort(order[:rank] - 1)
        factor, info = dpotrf(K[np.ix_(keep, keep)], lower=1, clean=0)
        if info != 0:
            return keep, lambda rhs: np.full_like(rhs, np.nan)
    return keep, lambda rhs: cho_solve((factor, True), rhs, check_finite=False)


def _single_step(
    units: UnitConstraints, P: Int[np.ndarray, " p"], a: Float[np.ndarray, " p"], t: int
) -> Solved | Ray:
    """Make constraint t active, dropping others as their multipliers reach zero (Goldfarb-Idnani)."""
    new = 0.0
    column = np.array([t])
    while True:
        k = units.block(P, column)[:, 0]
        keep, solver = _factor(units.block(P, P)) if P.size else (P, lambda rhs: rhs)
        if keep.size < P.size:
            raise StalledError("the active constraints became dependent", P, a)
        direction = solver(k)
        distance = 1.0 - float(k @ direction)  # squared distance of constraint t from the span of P
        violation = float(units.targets[t]) - float(k @ a) - new
        limits = np.where(direction > 0, a / np.where(direction > 0, direction, 1.0), np.inf)
        to_drop = float(limits.min(initial=np.inf))
        dependent = distance <= _DEPENDENT or P.size >= units.rank_bound
        to_meet = np.inf if dependent else violation / distance
        if not np.isfinite(min(to_drop, to_meet)):
            return Ray(support=np.append(P, t), weights=np.append(np.maximum(-direction, 0.0), 1.0))
        length = min(to_drop, to_meet)
        a = a - length * direction
        new += length
        if to_meet <= to_drop:
            order = np.argsort(np.append(P, t))
            P, a = np.append(P, t)[order], np.append(a, new)[order]
            break
        stay = np.arange(P.size) != int(np.argmin(limits))
        P, a = P[stay], a[stay]
    again = _positive_subset(units, P)
    if again is None:
        raise StalledError("no positive multipliers after a step", P, a)
    return again


def _conjugate_gradients(
    units: UnitConstraints, S: Int[np.ndarray, " s"]
) -> Callable[[np.ndarray], np.ndarray]:
    """A solver of K_SS x = rhs without forming K_SS, preconditioned by the blocks of single sequences.

    Answers NaN where the system is singular or too ill-conditioned to converge.
    """
    groups = units.groups(S)
    blocks = [np.linalg.inv(units.block(S[g], S[g]) + 1e-10 * np.eye(g.size)) for g in groups]

    def precondition(r: np.ndarray) -> np.ndarray:
        return np.concatenate([inverse @ r[g] for g, inverse in zip(groups, blocks, strict=True)])

    def solver(rhs: np.ndarray) -> np.ndarray:
        x = np.zeros_like(rhs)
        r = rhs.copy()
        z = precondition(r)
        p, rz = z, float(r @ z)
        goal = 1e-13 * float(np.linalg.norm(rhs))
        for _ in range(_ROUNDS):
            if np.linalg.norm(r) <= goal:
                return x
            Kp = units.apply(S, p)[S]
            curvature = float(p @ Kp)
            if curvature <= 0:
                break
            x = x + (rz / curvature) * p
            r = r - (rz / curvature) * Kp
            z = precondition(r)
            rz, old = float(r @ z), rz
            p = z + (rz / old) * p
        return np.full_like(rhs, np.nan)

    return solver
