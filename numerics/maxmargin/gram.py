"""The constraints scaled to unit length: their Gram matrix stored, by blocks, or merely applied."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from numerics.problem import Problem

_BLOCK = 1 << 22  # numbers in a temporary block (32 MiB)


class UnitConstraints:
    """A_k/||A_k|| = d_k q_i' with unit d_k and q_i, and the targets b_k = min_l ||A_l||/||A_k|| in (0, 1].

    With V = M min_l ||A_l|| the constraints read <A_k/||A_k||, V> >= b_k, whatever the units of the data.
    The Gram matrix, K_kl = (d_k'd_l)(q_i'q_j), has a unit diagonal. It is stored when `dense` (default: up
    to `DENSE_LIMIT` constraints); otherwise products with it cost O(N d + n min(n, d) d) and no N x N
    memory.
    """

    DENSE_LIMIT = 8192

    def __init__(self, problem: Problem, dense: bool | None = None) -> None:
        """Scale the differences and queries; every query must be nonzero."""
        self.problem = problem
        self.sequence = problem.constraint_sequence
        self.size = problem.n_constraints
        self.rank_bound = problem.d * min(problem.n, problem.d)  # of K
        self.dense = self.size <= self.DENSE_LIMIT if dense is None else dense
        lengths, self.rows = _unit_rows(problem.differences)
        query_lengths, self.queries = _unit_rows(problem.queries)
        self.norms = lengths * query_lengths[self.sequence]
        smallest = float(self.norms.min())
        self.targets = smallest / self.norms
        self._to_dual = 1.0 / (smallest * self.norms)

    @cached_property
    def _matrix(self) -> Float[np.ndarray, "N N"]:
        K = self.rows @ self.rows.T
        Z = self.queries @ self.queries.T
        step = max(1, _BLOCK // self.size)
        for start in range(0, self.size, step):
            K[start : start + step] *= Z[self.sequence[start : start + step]][:, self.sequence]
        return K

    @cached_property
    def _query_gram(self) -> Float[np.ndarray, "n n"]:
        return self.queries @ self.queries.T

    def dual(self, a: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Multipliers of the original constraints from those of the scaled ones."""
        return a * self._to_dual

    def block(self, rows: Int[np.ndarray, " a"], columns: Int[np.ndarray, " b"]) -> Float[np.ndarray, "a b"]:
        """A submatrix of K."""
        if self.dense:
            return self._matrix[np.ix_(rows, columns)]
        block = self.rows[rows] @ self.rows[columns].T
        i, j = self.sequence[rows], self.sequence[columns]
        if self.problem.n <= 4096:
            block *= self._query_gram[np.ix_(i, j)]
        else:
            block *= self.queries[i] @ self.queries[j].T
        return block

    def apply(self, support: Int[np.ndarray, " p"], a: Float[np.ndarray, " p"]) -> Float[np.ndarray, " N"]:
        """K[:, support] a: the margins of V = sum a_k A_k/||A_k||."""
        if self.dense:
            if support.size == self.size:
                return self._matrix @ _scatter(self.size, support, a)
            return self._matrix[:, support] @ a
        full = _scatter(self.size, support, a)
        n, d = self.queries.shape
        sums = np.zeros((n, d))
        per = self.size // n
        even = self.size == n * per and bool((np.bincount(self.sequence, minlength=n) == per).all())
        stacked = self.rows.reshape(n, per, d) if even else None
        starts = np.searchsorted(self.sequence, np.arange(n + 1))
        if stacked is not None:
            np.matmul(full.reshape(n, 1, per), stacked, out=sums[:, None, :])
        else:
            for i in range(n):
                part = slice(starts[i], starts[i + 1])
                sums[i] = full[part] @ self.rows[part]
        mixed = self._query_gram @ sums if n <= d else self.queries @ (self.queries.T @ sums)
        if stacked is not None:
            return np.matmul(stacked, mixed[:, :, None]).ravel()
        out = np.empty(self.size)
        for i in range(n):
            part = slice(starts[i], starts[i + 1])
            out[part] = self.rows[part] @ mixed[i]
        return out

    def groups(self, support: Int[np.ndarray, " p"]) -> list[Int[np.ndarray, " m"]]:
        """Positions in `support` (ascending) that belong to one sequence, sequence by sequence."""
        return np.split(np.arange(support.size), np.flatnonzero(np.diff(self.sequence[support])) + 1)


def _unit_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Norms and unit rows, free of underflow: the largest entry is divided out first; zero rows stay."""
    largest = np.maximum(X.max(axis=1), -X.min(axis=1))
    safe = np.where(largest > 0, largest, 1.0)
    unit = X / safe[:, None]
    lengths = np.sqrt(np.einsum("kd,kd->k", unit, unit))
    unit /= np.where(largest > 0, lengths, 1.0)[:, None]
    return lengths * largest, unit


def _scatter(size: int, support: np.ndarray, a: np.ndarray) -> np.ndarray:
    full = np.zeros(size)
    full[support] = a
    return full
