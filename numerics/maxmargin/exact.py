"""Max margin beyond floats: the same active-set method in rationals, or in numbers of many bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb_mat, ctx, fmpq, fmpz, fmpz_mat

from numerics.errors import CertificationError
from numerics.maxmargin.integers import IntegerConstraints

SIZE_LIMIT = 400  # equations in a rational system; beyond, numerators grow past what is worth waiting for
_SLACK = fmpq(1, fmpz(2) ** 64)  # of a margin that should be 1, in long floats; rationals leave none
LONG_SIZE_LIMIT = 1500  # equations in a system of long floats


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """Rational numbers (bits None, every comparison exact), or floats of `bits` bits held as rationals."""

    bits: int | None = None

    @property
    def limit(self) -> int:
        """The largest system to be solved."""
        return SIZE_LIMIT if self.bits is None else LONG_SIZE_LIMIT

    @property
    def zero(self) -> fmpq:
        """What counts as zero, relative."""
        return fmpq(0) if self.bits is None else fmpq(1, fmpz(2) ** (self.bits // 2))

    def solve(self, K: fmpz_mat, rhs: fmpz_mat) -> list[list[fmpq]]:
        """Columns of the solution of K X = rhs. Raises ZeroDivisionError when K is singular."""
        if K.nrows() > self.limit:
            raise CertificationError(
                f"a linear system of {K.nrows()} equations is needed to decide; the limit is {self.limit}"
            )
        if self.bits is None:
            X = K.solve(rhs)
            return [[X[i, j] for i in range(X.nrows())] for j in range(X.ncols())]
        with ctx.workprec(self.bits):
            Y = arb_mat(K).solve(arb_mat(rhs), algorithm="approx")
            if not all(y.is_finite() for y in Y.entries()):
                raise ZeroDivisionError("singular to working precision")
            return [[Y[i, j].mid().fmpq() for i in range(Y.nrows())] for j in range(Y.ncols())]


RATIONAL = Arithmetic()
LONG = Arithmetic(bits=512)


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimum:
    """The solution: gram[support, support] values = 1, values > 0, all margins at least 1."""

    support: list[int]
    values: list[fmpq]


@dataclass(frozen=True, eq=False, kw_only=True)
class Farkas:
    """Positive integers w without common factor, sum_k w_k A_k = 0: there is no feasible W.

    Exactly so from rational arithmetic; from long floats up to their rounding, a guess to be proved.
    """

    support: list[int]
    weights: list[int]


def independent_subset(K: fmpz_mat) -> list[int]:
    """Positions of the first maximal independent set among the vectors of a Gram matrix."""
    reduced, _, rank = K.rref()
    return [next(j for j in range(reduced.ncols()) if reduced[i, j] != 0) for i in range(rank)]


def margins(constraints: IntegerConstraints, rows: Sequence[int], optimum: Optimum) -> list[fmpq]:
    """<A_k, M> for these constraints."""
    if not rows or not optimum.support:
        return [fmpq(0)] * len(rows)
    numerators, denominator = _common(optimum.values)
    column = fmpz_mat(len(numerators), 1, numerators)
    product = constraints.gram(rows, optimum.support) * column
    return [fmpq(product[k, 0], denominator) for k in range(len(rows))]


def farkas(constraints: IntegerConstraints, support: Sequence[int], last: int) -> Farkas | None:
    """Infeasibility, exactly, by -A_last as a nonnegative combination of A_support, if it is one.

    Raises CertificationError when the system exceeds SIZE_LIMIT.
    """
    P = [k for k in support if k != last]
    if P:
        P = [P[j] for j in independent_subset(constraints.gram(P, P))]
    own = constraints.gram([last], [last])[0, 0]
    if not P:
        return Farkas(support=[last], weights=[1]) if own == 0 else None
    column = constraints.gram(P, [last])
    (c,) = RATIONAL.solve(constraints.gram(P, P), column)
    distance = fmpq(own) - sum((column[j, 0] * c[j] for j in range(len(P))), fmpq(0))
    if distance != 0 or any(value > 0 for value in c):
        return None
    return _as_farkas(P, c, last)


def optimum(
    constraints: IntegerConstraints, start: Sequence[int], arithmetic: Arithmetic = RATIONAL
) -> Optimum | Farkas:
    """Run the active-set method of Goldfarb and Idnani from a guess of the support.

    In rationals it always ends, with the optimum or a proof of infeasibility. Raises CertificationError
    when the systems exceed the arithmetic's limit, or long floats do not suffice.
    """
    try:
        return _optimum(constraints, start, arithmetic)
    except ZeroDivisionError:
        raise CertificationError(f"{arithmetic.bits} bits do not suffice to decide") from None


def _optimum(
    constraints: IntegerConstraints, start: Sequence[int], arithmetic: Arithmetic
) -> Optimum | Farkas:
    everything = list(range(constraints.size))
    norms = np.maximum(constraints.problem.constraint_norms, np.finfo(float).tiny)
    state = _positive_start(constraints, list(start), arithmetic)
    value = fmpq(0)
    while True:
        mu = margins(constraints, everything, state)
        missed = [(float(mu[k] - 1) / norms[k], k) for k in everything if mu[k] < 1 - arithmetic.zero]
        if not missed:
            if any(abs(mu[k] - 1) > _SLACK for k in state.support) or min(mu, default=fmpq(1)) < 1 - _SLACK:
                raise ZeroDivisionError  # long floats too short for this problem
            return state
        outcome = _step(constraints, state, min(missed)[1], arithmetic)
        if isinstance(outcome, Farkas):
            return outcome
        state, before, value = outcome, value, sum(outcome.values, fmpq(0))
        if not value > before:  # in rationals it rises at every step
            raise ZeroDivisionError


def _step(
    constraints: IntegerConstraints, state: Optimum, t: int, arithmetic: Arithmetic
) -> Optimum | Farkas:
    """Make constraint t active, dropping others as their multipliers reach zero."""
    P, values, new = state.support, state.values, fmpq(0)
    own = fmpq(constraints.gram([t], [t])[0, 0])
    while True:
        column = constraints.gram(P, [t]) if P else None
        k = [fmpq(column[j, 0]) for j in range(len(P))] if column is not None else []
        (c,) = arithmetic.solve(constraints.gram(P, P), column) if column is not None else ([],)
        distance = own - sum((k[j] * c[j] for j in range(len(P))), fmpq(0))
        missing = 1 - sum((k[j] * values[j] for j in range(len(P))), fmpq(0)) - new * own
        limits = [(values[j] / c[j], j) for j in range(len(P)) if c[j] > arithmetic.zero]
        to_drop = min(limits, default=None)
        dependent = distance <= arithmetic.zero * own
        if to_drop is None:
            if dependent:
                return _as_farkas(P, c, t)
            meets, length = True, missing / distance
        else:
            meets = not dependent and missing / distance <= to_drop[0]
            length = missing / distance if meets else to_drop[0]
        values = [value - length * c[j] for j, value in enumerate(values)]
        new += length
        if meets:
            pairs = sorted([*zip(P, values, strict=True), (t, new)], key=lambda pair: pair[0])
            kept = [(q, value) for q, value in pairs if value > 0]
            return Optimum(support=[q for q, _ in kept], values=[value for _, value in kept])
        assert to_drop is not None
        P = [q for j, q in enumerate(P) if j != to_drop[1]]
        values = [value for j, value in enumerate(values) if j != to_drop[1]]


def _positive_start(constraints: IntegerConstraints, P: list[int], arithmetic: Arithmetic) -> Optimum:
    """An independent subset whose equations have a positive solution."""
    P = sorted(P)
    while P:
        K = constraints.gram(P, P)
        if arithmetic.bits is None and len(P) <= arithmetic.limit:
            keep = independent_subset(K)
            if len(keep) < len(P):
                P = [P[j] for j in keep]
                K = constraints.gram(P, P)
        (values,) = arithmetic.solve(K, fmpz_mat(len(P), 1, [1] * len(P)))
        if all(value > 0 for value in values):
            return Optimum(support=P, values=values)
        P = [q for q, value in zip(P, values, strict=True) if value > 0]
    return Optimum(support=[], values=[])


def _as_farkas(P: list[int], c: list[fmpq], t: int) -> Farkas:
    pairs = sorted([(q, -value) for q, value in zip(P, c, strict=True) if value < 0] + [(t, fmpq(1))])
    numerators, _ = _common([value for _, value in pairs])
    shared = fmpz(0)
    for value in numerators:
        shared = shared.gcd(value)
    return Farkas(support=[q for q, _ in pairs], weights=[int(value // shared) for value in numerators])


def _common(values: list[fmpq]) -> tuple[list[fmpz], fmpz]:
    """Numerators over the least common denominator."""
    denominator = fmpz(1)
    for value in values:
        denominator = denominator.lcm(value.q)
    return [value.p * (denominator // value.q) for value in values], denominator
