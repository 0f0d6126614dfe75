"""Random attention layers under (E), in plain numpy: what the proved statements are tried on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numerics import Problem, max_margin


@dataclass(frozen=True)
class Instance:
    """A problem with equal non-optimal scores, its max-margin solution and the constants of the theorems."""

    problem: Problem
    M: np.ndarray
    g: np.ndarray
    G: np.ndarray
    R: float

    @property
    def margin(self) -> float:
        return float(1 / np.linalg.norm(self.M))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the constraints of each sequence."""
        return np.bincount(self.problem.constraint_sequence, weights=values, minlength=self.problem.n)

    def attention(self, W: np.ndarray) -> np.ndarray:
        """p_i."""
        return 1 / (1 + self.sums(np.exp(-self.problem.logit_gaps(W))))

    def slopes(self, p: np.ndarray) -> np.ndarray:
        """a_i."""
        return self.G / (1 + np.exp(self.g + self.G * p)) / self.problem.n

    def descent(self, W: np.ndarray) -> np.ndarray:
        """The negative gradient."""
        p = self.attention(W)
        k = self.problem.constraint_sequence
        return self.problem.combine((self.slopes(p) * p**2)[k] * np.exp(-self.problem.logit_gaps(W)))

    def direction(self, W: np.ndarray) -> np.ndarray:
        """The negative gradient over its norm, from logarithms of the coefficients: safe at large gaps."""
        mu, k = self.problem.logit_gaps(W), self.problem.constraint_sequence
        log_p = np.array([-np.logaddexp.reduce([0.0, *-mu[k == i]]) for i in range(self.problem.n)])
        log_c = (np.log(self.slopes(np.exp(log_p))) + 2 * log_p)[k] - mu
        D = self.problem.combine(np.exp(log_c - log_c.max()))
        return D / np.linalg.norm(D)

    def loss(self, p: np.ndarray) -> float:
        """L at the attentions p."""
        return float(np.mean(np.logaddexp(0, -(self.g + self.G * p))))

    def excess(self, W: np.ndarray) -> float:
        """L - L*."""
        return self.loss(self.attention(W)) - self.loss(np.ones(self.problem.n))


def instance(seed: int, sizes: tuple[int, int] | None = None) -> Instance:
    """Random sizes (n, T), scales and scores; the optimal token of each sequence is its last."""
    rng = np.random.default_rng(seed)
    n, T = sizes or (int(rng.integers(1, 5)), int(rng.integers(2, 6)))
    d = n * T + int(rng.integers(2, 10))
    tokens = rng.standard_normal((n, T, d))
    g, G = rng.normal(0, 2, n), rng.exponential(2, n) + 0.01
    labels = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    tokens[:, :, 0] = (labels * g)[:, None]
    tokens[:, -1, 0] += labels * G
    queries = rng.standard_normal((n, d)) * rng.exponential(1)
    problem = Problem(tokens, queries, labels, np.eye(d)[0])
    gaps = problem.score_gaps.reshape(n, T - 1)
    assert np.ptp(gaps, axis=1).max() < 1e-12, "assumption (E)"
    R = float(problem.constraint_norms.max())
    return Instance(problem, max_margin(problem).weights, g, G, R)


def weights(at: Instance, seed: int) -> np.ndarray:
    """A random W: anything between a random direction and the max-margin one, of any norm."""
    rng = np.random.default_rng(10_000 + seed)
    d = at.problem.d
    W = rng.standard_normal((d, d)) * 10 ** rng.uniform(-4, 0) + at.M * at.margin
    return 10 ** rng.uniform(-2, 1.5) * at.margin * W if seed % 7 else np.zeros((d, d))


def cosine(at: Instance, W: np.ndarray) -> float:
    """cos between W and M; 0 at W = 0, as in the kernel."""
    size = np.linalg.norm(W) * np.linalg.norm(at.M)
    return float(np.sum(W * at.M) / size) if size else 0.0
