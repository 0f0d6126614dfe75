"""A problem as Gram space sees it: the Gram matrix or its two small factors, and exact norms in the span.

Every iterate is W_0 + sum_k b_k A_k. Differences and queries are first rotated into orthonormal bases of what
they span (two thin QR factorizations, once), which changes no inner product: afterwards nothing depends on
the dimension d of the tokens, and norms of combinations are computed from vectors, not from quadratic forms
whose terms cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from numerics._gram_residual import residual_norms
from numerics._gram_vectors import WIDTH
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem

_BLOCK = 1 << 23  # numbers in a temporary (64 MiB)


@dataclass(frozen=True, eq=False)
class Geometry:
    """Constraints in order of sequence and, within a sequence, of falling score.

    order (N,) maps to the problem's own order: constraint k here is order[k] there. start (n+1,) the first
    constraint of each sequence; sequence (N,); gap (N,) the score gaps; best (n,). differences (N, a) and
    queries (n, b) in the rotated bases, which are left (d, a) and right (d, b), None standing for the
    identity. dual (N,) = alpha_k/||M||, so that M^ = sum_k dual_k A_k, and along (N,) = <A_k, M^>; zero
    without a target. direction (b, a) is M^ in the rotated bases, transposed.
    """

    problem: Problem
    order: Int[np.ndarray, " N"]
    start: Int[np.ndarray, " n1"]
    sequence: Int[np.ndarray, " N"]
    gap: Float[np.ndarray, " N"]
    best: Float[np.ndarray, " n"]
    differences: Float[np.ndarray, "N a"]
    queries: Float[np.ndarray, "n b"]
    left: Float[np.ndarray, "d a"] | None
    right: Float[np.ndarray, "d b"] | None
    dual: Float[np.ndarray, " N"]
    along: Float[np.ndarray, " N"]
    direction: Float[np.ndarray, "b a"]
    has_target: bool

    @classmethod
    def of(cls, problem: Problem, target: MaxMargin | None) -> Geometry:
        """Sort, rotate, and express the target."""
        order = np.lexsort((problem.score_gaps, problem.constraint_sequence))
        sequence = problem.constraint_sequence[order]
        differences, left = _rotate(problem.differences[order])
        queries, right = _rotate(problem.queries)
        start = np.searchsorted(sequence, np.arange(problem.n + 1))
        along = np.zeros(order.size)
        dual = np.zeros(order.size)
        direction = np.zeros((queries.shape[1], differences.shape[1]))
        if target is not None:
            pulls = _by_sequence(target.dual[order][None], differences, start)[:, 0]
            direction = queries.T @ pulls
            norm = np.linalg.norm(direction)
            dual, direction = target.dual[order] / norm, direction / norm
            along = np.einsum("ka,ka->k", differences, (queries @ direction)[sequence])
        return cls(
            problem,
            order,
            start,
            sequence,
            problem.score_gaps[order],
            problem.scores[np.arange(problem.n), problem.optimal],
            differences,
            queries,
            left,
            right,
            dual,
            along,
            direction,
            target is not None,
        )

    def gram(self, out: Float[np.ndarray, "N N"] | None = None) -> Float[np.ndarray, "N N"]:
        """K in this order, from the rotated factors; into `out` where given."""
        K = np.empty((len(self.gap), len(self.gap))) if out is None else out
        np.matmul(self.differences, self.differences.T, out=K)
        Z = self.queries @ self.queries.T
        rows = max(1, _BLOCK // len(K))
        for first in range(0, len(K), rows):
            part = self.sequence[first : first + rows]
            K[first : first + rows] *= Z[part][:, self.sequence]
        return K

    def begin(self, init: Float[np.ndarray, "d d"] | None) -> Start:
        """What a run from W_0 = init (None: zero) starts with."""
        if init is None:
            zero = np.zeros_like(self.direction)
            return Start(np.zeros(len(self.gap)), 0.0, 0.0, zero, 0.0)
        gaps = self.problem.logit_gaps(init)[self.order]
        component = float(self.dual @ gaps)
        inner = init if self.left is None else self.left.T @ init
        inner = (inner if self.right is None else inner @ self.right).T
        back = inner.T if self.left is None else self.left @ inner.T
        back = back if self.right is None else back @ self.right.T
        outside = float(np.linalg.norm(init - back))
        return Start(gaps, component, float(np.sum(init**2)), inner - component * self.direction, outside)

    def residual_norms(
        self, rho: Float[np.ndarray, "rows N"], starts: Float[np.ndarray, "m b a"], outside: np.ndarray
    ) -> Float[np.ndarray, " rows"]:
        """||r|| of r = (part outside the span) + starts + sum_k rho_k A_k, for every row.

        The rows belong to the m starts in equal portions, one after the other; outside are the norms of the
        part outside, one for all rows or one a row. A row's bits do not depend on the others.
        """
        norms = np.empty((len(starts), len(rho) // len(starts)))
        residual_norms(
            np.ascontiguousarray(rho).reshape(*norms.shape, len(self.gap)),
            np.ascontiguousarray(starts),
            np.ascontiguousarray(self.differences.T),
            np.ascontiguousarray(self.queries.T),
            self.start,
            norms,
            np.zeros((len(self.gap), WIDTH)),
            np.zeros((len(self.queries), WIDTH)),
        )
        return np.hypot(norms.reshape(-1), outside)

    def restore_order(self, coefficients: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Coefficients in the problem's own order."""
        out = np.empty_like(coefficients)
        out[self.order] = coefficients
        return out


@dataclass(frozen=True, eq=False)
class Start:
    """The start of a run: gaps (N,) mu at W_0; component v_0; square ||W_0||^2.

    residual (b, a) is W_0 - v_0 M^ within the rotated bases, transposed; outside the norm of the rest.
    """

    gaps: Float[np.ndarray, " N"]
    component: float
    square: float
    residual: Float[np.ndarray, "b a"]
    outside: float


def _rotate(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(rows in an orthonormal basis of their span, the basis); unchanged, None where that saves nothing."""
    if rows.shape[0] >= rows.shape[1]:
        return np.ascontiguousarray(rows), None
    basis, triangle = np.linalg.qr(rows.T)
    return np.ascontiguousarray(triangle.T), basis


def _by_sequence(c: np.ndarray, differences: np.ndarray, start: np.ndarray) -> np.ndarray:
    """For every sequence and row of c (rows, N) the combination of its differences, (n, rows, a)."""
    out = np.zeros((len(start) - 1, len(c), differences.shape[1]))
    for i in range(len(start) - 1):
        own = slice(start[i], start[i + 1])
        np.matmul(c[:, own], differences[own], out=out[i])
    return out
