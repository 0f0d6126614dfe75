"""Independent implementations to hold the numerics against: textbook autograd, and mpmath at 50 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import torch

from numerics.problem import Problem

DIGITS = 50


def random_problem(seed: int, *, n: int = 4, T: int = 5, d: int = 12, ragged: bool = True) -> Problem:
    """Tokens, queries, decoder all Gaussian: unequal scores, coefficients of either sign; ragged by mask."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, T + 1, size=n) if ragged else np.full(n, T)
    lengths[0] = T
    return Problem(
        rng.standard_normal((n, T, d)) / d**0.25,
        rng.standard_normal((n, d)) / d**0.25,
        rng.choice([-1.0, 1.0], size=n),
        rng.standard_normal(d),
        np.arange(T) < lengths[:, None],
    )


def autograd_loss(problem: Problem, W: torch.Tensor) -> torch.Tensor:
    """The textbook loss: softmax of X W z, dot with the scores, logistic loss, in float64."""
    tokens, queries = torch.tensor(problem.tokens), torch.tensor(problem.queries)
    mask = torch.tensor(problem.mask)
    logits = torch.einsum("ntd,de,ne->nt", tokens, W, queries).masked_fill(~mask, -torch.inf)
    attention = torch.softmax(logits, dim=1)
    outputs = torch.einsum("nt,ntd,d->n", attention, tokens, torch.tensor(problem.decoder))
    return torch.log1p(torch.exp(-torch.tensor(problem.labels) * outputs)).mean()


def autograd_gradient(problem: Problem, W: np.ndarray) -> np.ndarray:
    """Grad L by torch's autograd through the textbook loss."""
    point = torch.tensor(W, requires_grad=True)
    autograd_loss(problem, point).backward()
    assert point.grad is not None
    return point.grad.numpy()


def autograd_ngd(problem: Problem, W: np.ndarray, step: float, steps: int) -> np.ndarray:
    """The textbook loop: autograd, normalize, step."""
    for _ in range(steps):
        gradient = autograd_gradient(problem, W)
        W = W - step * gradient / np.linalg.norm(gradient)
    return W


class Exact:
    """Loss, gradient and attention of a problem at W by mpmath; float inputs are taken as exact.

    `excess` is the plain difference of losses: `digits` must exceed the leak's decimal exponent where it is
    wanted. `log_excess` forms it from the leak and needs no more digits than usual.
    """

    def __init__(self, problem: Problem, W: np.ndarray, digits: int = DIGITS) -> None:
        self.problem = problem
        with mpmath.workdps(digits):
            W_ = mpmath.matrix(W.tolist())
            u = mpmath.matrix(problem.decoder.tolist())
            self.excess = mpmath.mpf(0)
            from_leak = []
            self.log_leak = []
            self.coefficients = []
            for i in range(problem.n):
                valid = np.flatnonzero(problem.mask[i])
                x = [mpmath.matrix(problem.tokens[i, tau].tolist()) for tau in valid]
                z = mpmath.matrix(problem.queries[i].tolist())
                direction = W_ * z
                logits = [_dot(row, direction) for row in x]
                scores = [int(problem.labels[i]) * _dot(row, u) for row in x]
                o = max(range(len(x)), key=lambda j, scores=scores: scores[j])
                weights = [mpmath.exp(a - logits[o]) for a in logits]
                total = mpmath.fsum(weights)
                phi = [w / total for w in weights]
                margin = mpmath.fsum(p * g for p, g in zip(phi, scores, strict=True))
                sigma = 1 / (1 + mpmath.exp(margin))
                self.excess += _softplus(-margin) - _softplus(-scores[o])
                loss = mpmath.fsum(p * (scores[o] - g) for p, g in zip(phi, scores, strict=True))
                from_leak.append(mpmath.log1p(mpmath.expm1(loss) / (1 + mpmath.exp(scores[o]))))
                leak = mpmath.fsum(p for j, p in enumerate(phi) if j != o)
                self.log_leak.append(mpmath.log(leak) if leak else mpmath.ninf)
                self.coefficients += [
                    sigma / problem.n * phi[j] * (margin - scores[j]) for j in range(len(x)) if j != o
                ]
            self.excess /= problem.n
            self.log_excess = mpmath.log(mpmath.fsum(from_leak) / problem.n)

    def direction(self) -> tuple[mpmath.matrix, mpmath.mpf]:
        """(-grad L/||grad L||, ||grad L||)."""
        p = self.problem
        with mpmath.workdps(DIGITS):
            total = mpmath.zeros(p.d, p.d)
            for c, i, tau in zip(self.coefficients, p.constraint_sequence, p.constraint_token, strict=True):
                difference = mpmath.matrix(p.tokens[i, p.optimal[i]].tolist()) - mpmath.matrix(
                    p.tokens[i, tau].tolist()
                )
                total += c * difference * mpmath.matrix(p.queries[i].tolist()).T
            norm = mpmath.sqrt(mpmath.fsum(v**2 for v in total))
            return total / norm, norm


def relative_error(observed: np.ndarray, exact: mpmath.matrix) -> float:
    """Frobenius distance over the norm of the exact matrix, the difference taken in high precision."""
    with mpmath.workdps(DIGITS):
        rows, columns = observed.shape
        gap = [mpmath.mpf(float(observed[i, j])) - exact[i, j] for i in range(rows) for j in range(columns)]
        size = mpmath.sqrt(mpmath.fsum(v**2 for v in exact))
        return float(mpmath.sqrt(mpmath.fsum(v**2 for v in gap)) / size)


def _dot(a: mpmath.matrix, b: mpmath.matrix) -> mpmath.mpf:
    return mpmath.fdot(zip(a, b, strict=True))


def _softplus(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.log1p(mpmath.exp(x))
