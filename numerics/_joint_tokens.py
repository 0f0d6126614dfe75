"""A problem's tokens in one row after the other, padding left out: what the joint engines share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from numerics.problem import Problem


@dataclass(frozen=True, eq=False)
class Tokens:
    """M tokens in order of sequence.

    start (n+1,) is the first token of each sequence; sequence and place (M,) say where a token stands;
    rows (M, d) the tokens, centred (M, d) the same less their sequence's mean, which changes no softmax.
    """

    problem: Problem
    start: Int[np.ndarray, " n1"]
    sequence: Int[np.ndarray, " M"]
    place: Int[np.ndarray, " M"]
    rows: Float[np.ndarray, "M d"]
    centred: Float[np.ndarray, "M d"]

    @classmethod
    def of(cls, problem: Problem) -> Tokens:
        """Lay the tokens out."""
        sequence, place = np.nonzero(problem.mask)
        rows = problem.tokens[sequence, place]
        means = problem.tokens.sum(axis=1) / problem.lengths[:, None]
        start = np.searchsorted(sequence, np.arange(problem.n + 1))
        return cls(problem, start, sequence, place, rows, rows - means[sequence])

    def pairs(self) -> Float[np.ndarray, "M M"]:
        """The Gram matrix of the x_(i,tau) z_i', the tokens centred."""
        K = self.centred @ self.centred.T
        Z = self.problem.queries @ self.problem.queries.T
        for i in range(self.problem.n):
            own = slice(self.start[i], self.start[i + 1])
            K[own] *= Z[i, self.sequence]
        return K

    def logits(self, W: Float[np.ndarray, "d d"] | None) -> Float[np.ndarray, " M"]:
        """The centred logits at W, zero where W is None."""
        if W is None:
            return np.zeros(len(self.rows))
        towards = self.problem.queries @ W.T
        return np.einsum("md,md->m", self.centred, towards[self.sequence])

    def scores(self, u: Float[np.ndarray, " d"] | None) -> Float[np.ndarray, " M"]:
        """u'x, zero where u is None."""
        return np.zeros(len(self.rows)) if u is None else self.rows @ u

    def spread(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Values (..., M) as (..., n, T), `fill` at padding."""
        out = np.full((*values.shape[:-1], self.problem.n, self.problem.T), fill, dtype=values.dtype)
        out[..., self.sequence, self.place] = values
        return out
