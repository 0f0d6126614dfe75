"""The constraints of a problem as integers: floats are dyadic rationals, so nothing need be rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import fmpz, fmpz_mat

from numerics.problem import Problem


class IntegerConstraints:
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
    # Only zeros are shifted out: of trailing bits, or of zero itself, whose exponent means nothing.
    down = np.maximum(-shifts, 0).clip(max=63).tolist()
    return [
        [(m >> low) << high for m, low, high in zip(row, lows, highs, strict=True)]
        for row, lows, highs in zip(mantissas.tolist(), down, up, strict=True)
    ]
