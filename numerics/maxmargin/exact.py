"""Max margin in exact arithmetic: floats are dyadic rationals, hence so are Gram matrix and solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import fmpq, fmpz, fmpz_mat

from numerics.errors import CertificationError
from numerics.problem import Problem

SIZE_LIMIT = (
    400  # constraints in an exact linear system; beyond, numerators grow past what is worth waiting for
)


class ExactConstraints:
    """The constraints as integers: A_k = 2^exponent D_k Z_i', and K_kl = 4^exponent gram_kl.

    Nothing is rounded: the differences x_(i,o_i) - x_(i,tau) are taken in integers, not in floats.
    """

    def __init__(self, problem: Problem) -> None:
        """Find the powers of two that make tokens and queries integers."""
        self.problem = problem
        self.size = problem.n_constraints
        self._token_exponent = _lowest_bit(problem.tokens)
        self._query_exponent = _lowest_bit(problem.queries)
        self.exponent = self._token_exponent + self._query_exponent

    def differences(self, constraints: Sequence[int]) -> fmpz_mat:
        """Integer token differences, one row for each of these constraints."""
        p, index = self.problem, np.asarray(constraints, dtype=np.intp)
        i = p.constraint_sequence[index]
        best = _integers(p.tokens[i, p.optimal[i]], self._token_exponent)
        other = _integers(p.tokens[i, p.constraint_token[index]], self._token_exponent)
        return fmpz_mat(
            [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(best, other, strict=True)]
        )

    def query_rows(self, constraints: Sequence[int]) -> fmpz_mat:
        """Integer queries, one row for each of these constraints."""
        return self._queries(self.problem.constraint_sequence[np.asarray(constraints)])

    def square(self, support: Sequence[int], weights: Sequence[int]) -> fmpz:
        """4^-exponent ||sum_k w_k A_k||^2."""
        column = fmpz_mat(len(weights), 1, list(weights))
        return (column.transpose() * self.gram(support, support) * column)[0, 0]

    def _queries(self, sequences: np.ndarray) -> fmpz_mat:
        return fmpz_mat(_integers(self.problem.queries[sequences], self._query_exponent))

    def gram(self, rows: Sequence[int], columns: Sequence[int]) -> fmpz_mat:
        """4^-exponent <A_k, A_l>, integers."""
        tokens = self.differences(rows) * self.differences(columns).transpose()
        sequence = self.problem.constraint_sequence
        i, row = np.unique(sequence[np.asarray(rows)], return_inverse=True)
        j, column = np.unique(sequence[np.asarray(columns)], return_inverse=True)
        queries = (self._queries(i) * self._queries(j).transpose()).tolist()
        entries = [
            [x * queries[a][b] for x, b in zip(line, column.tolist(), strict=True)]
            for line, a in zip(tokens.tolist(), row.tolist(), strict=True)
        ]
        return fmpz_mat(entries)


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactOptimum:
    """The exact solution: gram[support, support] values = 1, values > 0, all margins at least 1."""

    support: list[int]
    values: list[fmpq]


@dataclass(frozen=True, eq=False, kw_only=True)
class Farkas:
    """Positive integers w without common factor, sum_k w_k A_k = 0 exactly: there is no feasible W."""

    support: list[int]
    weights: list[int]


def solve_system(K: fmpz_mat, rhs: fmpz_mat) -> list[list[fmpq]]:
    """Columns of the exact solution of K X = rhs. Raises ZeroDivisionError when K is singular."""
    X = K.solve(rhs)
    return [[X[i, j] for i in range(X.nrows())] for j in range(X.ncols())]


def independent_subset(K: fmpz_mat) -> list[int]:
    """Positions of the first maximal independent set among the vectors of a Gram matrix."""
    reduced, _, rank = K.rref()
    return [next(j for j in range(reduced.ncols()) if reduced[i, j] != 0) for i in range(rank)]


def margins(constraints: ExactConstraints, rows: Sequence[int], optimum: ExactOptimum) -> list[fmpq]:
    """<A_k, M> for these constraints, exactly."""
    if not rows or not optimum.support:
        return [fmpq(0)] * len(rows)
    numerators, denominator = _common(optimum.values)
    column = fmpz_mat(len(numerators), 1, numerators)
    product = constraints.gram(rows, optimum.support) * column
    return [fmpq(product[k, 0], denominator) for k in range(len(rows))]


def farkas(constraints: ExactConstraints, support: Sequence[int], last: int) -> Farkas | None:
    """Infeasibility by expressing -A_last as a nonnegative combination of A_support, if there is one."""
    _limit(len(support))
    P = [k for k in support if k != last]
    if P:
        P = [P[j] for j in independent_subset(constraints.gram(P, P))]
    k = constraints.gram([last], [last])
    if not P:
        return Farkas(support=[last], weights=[1]) if k[0, 0] == 0 else None
    column = constraints.gram(P, [last])
    (c,) = solve_system(constraints.gram(P, P), column)
    distance = fmpq(k[0, 0]) - sum((column[j, 0] * c[j] for j in range(len(P))), fmpq(0))
    if distance != 0 or any(value > 0 for value in c):
        return None
    return _as_farkas(P, c, last)


def optimum(constraints: ExactConstraints, start: Sequence[int]) -> ExactOptimum | Farkas:
    """Run the active-set method of Goldfarb and Idnani in rationals, from a guess of the support.

    Always ends, with the optimum or with a proof of infeasibility. Raises CertificationError when the
    systems exceed SIZE_LIMIT.
    """
    everything = list(range(constraints.size))
    P, values = _positive_start(constraints, list(start))
    norms = np.maximum(constraints.problem.constraint_norms, np.finfo(float).tiny)
    while True:
        mu = margins(constraints, everything, ExactOptimum(support=P, values=values))
        missed = [(float(mu[k] - 1) / float(norms[k]), k) for k in everything if mu[k] < 1]
        if not missed:
            return ExactOptimum(support=P, values=values)
        outcome = _exact_step(constraints, P, values, min(missed)[1])
        if isinstance(outcome, Farkas):
            return outcome
        P, values = outcome.support, outcome.values


def _exact_step(
    constraints: ExactConstraints, P: list[int], values: list[fmpq], t: int
) -> ExactOptimum | Farkas:
    new = fmpq(0)
    own = fmpq(constraints.gram([t], [t])[0, 0])
    while True:
        _limit(len(P))
        column = constraints.gram(P, [t]) if P else None
        k = [fmpq(column[j, 0]) for j in range(len(P))] if column is not None else []
        (c,) = solve_system(constraints.gram(P, P), column) if column is not None else ([],)
        distance = own - sum((k[j] * c[j] for j in range(len(P))), fmpq(0))
        missing = 1 - sum((k[j] * values[j] for j in range(len(P))), fmpq(0)) - new * own
        limits = [(values[j] / c[j], j) for j in range(len(P)) if c[j] > 0]
        to_drop = min(limits, default=None)
        if distance == 0 and to_drop is None:
            return _as_farkas(P, c, t)
        meets = distance != 0 and (to_drop is None or missing / distance <= to_drop[0])
        length = missing / distance if meets or to_drop is None else to_drop[0]
        values = [value - length * c[j] for j, value in enumerate(values)]
        new += length
        if meets or to_drop is None:
            kept = [(q, value) for q, value in [*zip(P, values, strict=True), (t, new)] if value > 0]
            kept.sort(key=lambda pair: pair[0])
            return ExactOptimum(support=[q for q, _ in kept], values=[value for _, value in kept])
        P = [q for j, q in enumerate(P) if j != to_drop[1]]
        values = [value for j, value in enumerate(values) if j != to_drop[1]]


def _positive_start(constraints: ExactConstraints, P: list[int]) -> tuple[list[int], list[fmpq]]:
    """An independent subset whose equations have a positive solution."""
    P = sorted(P)
    while P:
        _limit(len(P))
        K = constraints.gram(P, P)
        keep = independent_subset(K)
        if len(keep) < len(P):
            P = [P[j] for j in keep]
            K = constraints.gram(P, P)
        (values,) = solve_system(K, fmpz_mat(len(P), 1, [1] * len(P)))
        if all(value > 0 for value in values):
            return P, values
        P = [q for q, value in zip(P, values, strict=True) if value > 0]
    return [], []


def _as_farkas(P: list[int], c: list[fmpq], t: int) -> Farkas:
    pairs = sorted([(q, -value) for q, value in zip(P, c, strict=True) if value != 0] + [(t, fmpq(1))])
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


def _limit(size: int) -> None:
    if size > SIZE_LIMIT:
        raise CertificationError(
            f"an exact linear system of {size} equations is needed to decide; the limit is {SIZE_LIMIT}"
        )


def _lowest_bit(X: np.ndarray) -> int:
    """The largest e such that every entry is an integer times 2^e."""
    mantissas, exponents = _split(X[X != 0])
    if mantissas.size == 0:
        return 0
    trailing = np.log2((mantissas & -mantissas).astype(float)).astype(np.int64)
    return int((exponents + trailing).min())


def _split(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    fractions, exponents = np.frexp(X)
    return np.ldexp(fractions, 53).astype(np.int64), exponents.astype(np.int64) - 53


def _integers(X: np.ndarray, exponent: int) -> list[list[int]]:
    """X 2^-exponent, exactly, as Python integers."""
    mantissas, exponents = _split(X)
    shifts = exponents - exponent
    up = np.maximum(shifts, 0).tolist()
    down = (
        np.maximum(-shifts, 0).clip(max=63).tolist()
    )  # the bits shifted out are zeros; zero itself stays zero
    return [
        [(m >> low) << high for m, low, high in zip(row, lows, highs, strict=True)]
        for row, lows, highs in zip(mantissas.tolist(), down, up, strict=True)
    ]
