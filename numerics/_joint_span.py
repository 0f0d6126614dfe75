"""Norms in W_0 + span{A_k}, from vectors in rotated bases: nothing cancels, whatever d."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from numerics.problem import Problem

_BLOCK = 1 << 22  # numbers in a temporary (32 MiB)


@dataclass(frozen=True, eq=False)
class Span:
    """The constraints of a problem in orthonormal bases of what the differences and the queries span.

    differences (N, a) and queries (n, b); left (d, a) and right (d, b) are the bases.
    """

    problem: Problem
    differences: Float[np.ndarray, "N a"]
    queries: Float[np.ndarray, "n b"]
    left: Float[np.ndarray, "d a"]
    right: Float[np.ndarray, "d b"]

    @classmethod
    def of(cls, problem: Problem) -> Span:
        """Rotate by thin QR factorizations, which change no inner product."""
        left, differences = np.linalg.qr(problem.differences.T)
        right, queries = np.linalg.qr(problem.queries.T)
        return cls(problem, differences.T.copy(), queries.T.copy(), left, right)

    def combine(self, coefficients: Float[np.ndarray, "rows N"]) -> Float[np.ndarray, "rows a b"]:
        """sum_k c_k A_k in the rotated bases, for every row."""
        rows, n = len(coefficients), self.problem.n
        sums = np.zeros((rows, n, self.differences.shape[1]))
        start = np.searchsorted(self.problem.constraint_sequence, np.arange(n + 1))
        for i in range(n):
            own = slice(start[i], start[i + 1])
            sums[:, i] = coefficients[:, own] @ self.differences[own]
        return np.asarray(sums.transpose(0, 2, 1) @ self.queries)

    def norms(
        self, coefficients: Float[np.ndarray, "rows N"], offset: Float[np.ndarray, "d d"] | None
    ) -> Float[np.ndarray, " rows"]:
        """||offset + sum_k c_k A_k||_F for every row; None stands for no offset."""
        inside, outside = 0.0, 0.0
        if offset is not None:
            inside = self.left.T @ offset @ self.right
            outside = float(np.linalg.norm(offset - self.left @ inside @ self.right.T))
        sizes = self.differences.shape[1] * max(self.queries.shape)
        step = max(1, _BLOCK // sizes)
        parts = [
            np.linalg.norm(self.combine(coefficients[first : first + step]) + inside, axis=(1, 2))
            for first in range(0, len(coefficients), step)
        ]
        return np.hypot(np.concatenate(parts), outside)
