"""Random problems with full support and runs on them, in coordinates W = sum b_k A_k, in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from theory import notation as nt
from theory.lemmas.residual_step import residual
from theory.proof.terms import Index, Term, inner, norm, symbol, vector


@dataclass(frozen=True)
class FullSupport:
    """n sequences of T tokens, equal non-optimal scores g, gaps G; K is the constraints' Gram matrix."""

    sequence: np.ndarray
    K: np.ndarray
    g: np.ndarray
    G: np.ndarray

    @cached_property
    def alpha(self) -> np.ndarray:
        """Multipliers of M: K alpha = 1."""
        return np.linalg.solve(self.K, np.ones(len(self.K)))

    @property
    def margin(self) -> float:
        """g*."""
        return float(self.alpha.sum() ** -0.5)

    @property
    def radius(self) -> float:
        """R_B, the largest norm of a constraint across M."""
        return float(np.sqrt(np.diag(self.K).max() - self.margin**2))

    @property
    def w(self) -> np.ndarray:
        """Limit weights."""
        return (self.G / (1 + np.exp(self.g + self.G)) / len(self.G))[self.sequence]

    @cached_property
    def balanced(self) -> np.ndarray:
        """Coordinates of r*: <A_k, r*> = log(w_k/alpha_k) - const, sum alpha_k <A_k, r*> = 0."""
        x = np.log(self.w / self.alpha)
        return np.linalg.solve(self.K, x - self.alpha @ x / self.alpha.sum())

    def size(self, b: np.ndarray) -> float:
        """The norm of sum b_k A_k."""
        return float(np.sqrt(max(b @ self.K @ b, 0.0)))

    def height(self, b: np.ndarray) -> float:
        """g* v."""
        return float(self.alpha @ self.K @ b) * self.margin**2

    def residual(self, b: np.ndarray) -> np.ndarray:
        """Coordinates of the part orthogonal to M."""
        return b - self.height(b) * self.alpha

    def coefficients(self, b: np.ndarray) -> np.ndarray:
        """log c_k."""
        mu = self.K @ b
        log_p = np.array([-np.logaddexp.reduce([0.0, *-mu[self.sequence == i]]) for i in range(len(self.G))])
        slope = self.G / (1 + np.exp(self.g + self.G * np.exp(log_p))) / len(self.G)
        return (np.log(slope) + 2 * log_p)[self.sequence] - mu

    def shifts(self, b: np.ndarray) -> np.ndarray:
        """log(c_k/(w_k exp(-mu_k)))."""
        return self.coefficients(b) - np.log(self.w) + self.K @ b

    def step(self, b: np.ndarray, e: float) -> tuple[np.ndarray, float]:
        """The next point of a step of length e, and h = e C/||D||."""
        log_c = self.coefficients(b)
        c = np.exp(log_c - log_c.max())
        pace = e / self.size(c)
        return b + pace * c, pace * float(c.sum())


def full_support(seed: int) -> FullSupport:
    """A random problem whose constraints are all active; sizes and scores random too."""
    rng = np.random.default_rng(seed)
    while True:
        n, T = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        d = int(rng.integers(2 * n * T, 20 * n * T))
        tokens = rng.standard_normal((n, T, d)) / np.sqrt(d)
        queries = rng.standard_normal((n, d)) / np.sqrt(d)
        sequence = np.repeat(np.arange(n), T - 1)
        differences = (tokens[:, -1:] - tokens[:, :-1]).reshape(-1, d)
        K = (differences @ differences.T) * (queries @ queries.T)[sequence][:, sequence]
        problem = FullSupport(sequence, K, rng.normal(0, 1, n), rng.exponential(1.5, n) + 0.05)
        if problem.alpha.min() > 0:
            return problem


def constants(at: FullSupport, e_max: float) -> dict[Term, float]:
    """The values of the constants in Theorem B's bounds."""
    length = 1 / at.margin
    return {
        inner(nt.M, nt.M): length**2,
        norm(nt.M): length,
        nt.R: float(np.sqrt(np.diag(at.K).max())),
        nt.T: 1 + int(np.bincount(at.sequence).max()),
        symbol("R_B"): at.radius,
        symbol("e_max"): e_max,
        symbol("G_max"): float(at.G.max()),
        norm(vector("r_star")): at.size(at.balanced),
    }


def state(at: FullSupport, b: np.ndarray, path: float, t: Index) -> dict[Term, float]:
    """The values of what the bounds say of W_t."""
    W = nt.layer(t).W
    return {
        norm(residual(W)): at.size(at.residual(b)),
        inner(W, nt.M): at.height(b) / at.margin**2,
        norm(W): at.size(b),
        nt.path_length(t): path,
    }
