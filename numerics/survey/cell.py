"""A cell of a survey: one size and scale of Gaussian data, drawn in few coordinates whatever d is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from numerics._room import require
from numerics.errors import InputError
from numerics.problem import Problem

SIGNAL_DIRECTIONS = 2
FARTHEST = 10**15  # sizes and steps
LARGEST = 1_000_000  # problems of a cell


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`problems` problems of the data set "gaussian" with these options, and runs of `steps` steps on each.

    The law is the data set's with noise orthogonal to the signals, hence equal non-optimal scores. Problem
    j of a cell is the same in every survey that has the cell, whatever `problems` is.

    Raises:
        InputError: a size or scale out of range, more than a million problems, or one that memory does not
            hold.
    """

    n: int
    T: int
    d: int
    signal: float = 2.0
    noise: float = 0.1
    query: str = "first"
    problems: int = 100
    steps: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, least in (("n", 1), ("T", 2), ("d", 3), ("problems", 1), ("steps", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"a survey needs a whole number {name} >= {least}, not {value!r}")
        for name in ("n", "T", "d", "steps"):
            if getattr(self, name) > FARTHEST:
                raise InputError(f"a survey takes {name} up to 10^15")
        if self.problems > LARGEST:
            raise InputError(f"a survey takes at most {LARGEST} problems a cell, not {self.problems}")
        vectors = self.n * self.T + SIGNAL_DIRECTIONS
        size = 8 * 4 * vectors * min(self.d, vectors) + 8 * 3 * vectors**2
        require(f"a problem with n={self.n}, T={self.T}, d={self.d}", size)
        for name in ("signal", "noise"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"a survey needs a positive {name}, not {value!r}")
        if self.query not in {"first", "own"}:
            raise InputError(f'a survey needs query "first" or "own", not "{self.query}"')

    def generator(self, j: int, purpose: str) -> np.random.Generator:
        """Random numbers of problem j for a purpose, independent of all others'."""
        law = (self.n, self.T, self.d, float(self.signal), float(self.noise), self.query, self.seed)
        digest = hashlib.sha256(repr((law, j, purpose)).encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def draw(cell: Cell, j: int) -> Problem:
    """Draw problem j of a cell, in the coordinates of what its tokens and queries span.

    The noise is Z = L Q with L lower triangular (Bartlett's decomposition of the Wishart matrix Z Z') and Q
    orthogonal; L has the same inner products as Z, and all that is measured depends on those alone. So the
    cost is that of the number of vectors, not of d. The signals take the first two coordinates, labels
    alternate, and the signal is each sequence's last token: by exchangeability, no restriction.
    """
    rng = cell.generator(j, "problem")
    n, m = cell.n, cell.T - 1
    own = cell.query == "own"
    rows = cell.noise * _triangle(rng, n * m + (n if own else 0), cell.d - SIGNAL_DIRECTIONS)
    noise = np.pad(rows, ((0, 0), (SIGNAL_DIRECTIONS, 0)))
    labels = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    tokens = np.zeros((n, cell.T, noise.shape[1]))
    tokens[:, :m] = noise[: n * m].reshape(n, m, -1)
    tokens[np.arange(n), m, np.where(labels > 0, 0, 1)] = cell.signal
    decoder = np.zeros(noise.shape[1])
    decoder[:SIGNAL_DIRECTIONS] = 1 / cell.signal, -1 / cell.signal
    return Problem(tokens, noise[n * m :] if own else None, labels, decoder)


def _triangle(rng: np.random.Generator, vectors: int, dimensions: int) -> Float[np.ndarray, "v c"]:
    """Vectors with the inner products of standard Gaussian ones in that many dimensions."""
    if dimensions <= vectors:
        return rng.standard_normal((vectors, dimensions))
    lower = np.tril(rng.standard_normal((vectors, vectors)), -1)
    lower[np.diag_indices(vectors)] = np.sqrt(rng.chisquare(dimensions - np.arange(vectors)))
    return lower
