"""How far a run in exact arithmetic may be from the trajectory that is computed, bounded step by step.

Balls that are pushed through the step map widen by several bits a step, because interval arithmetic forgets
how its numbers depend on each other. Here the computed trajectory is exact points, and only a bound on the
distance to the run is carried along: with J_t the derivative of step t anywhere between the two (mean value),

    distance_(t+1) <= ||J_t|| distance_t + local rounding,

in the coordinates y = P b of the coefficients b (W = W_0 + sum_k b_k A_k), P'P close to K, so that ||y|| is
close to the norm of the weights, in which J_t is close to symmetric. Products of up to `BLOCK` derivatives
are formed before norms are taken, since a run that settles on a cycle has contracting products of expanding
steps. y is split in two: the *drift* (along M, and across every active constraint), along which J_t tends to
the identity, and the rest, along which it contracts. Products are floats; each is held with a proved bound
on everything that rounding and the distance itself may add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx

from numerics._ball_layer import ExactProblem, Look
from numerics.maxmargin.solution import MaxMargin

BLOCK = 16
GROWTH = 1e5  # a block ends when its errors may have grown this much
UNIT = 2.0**-52
SETUP_BITS = 256
_SLACK = 1 + 1e-10  # covers the rounding of the norms of float arrays, at most 1e-12 relatively


class StepShape(NamedTuple):
    """A step at all points within the distance: e_t, ||grad L||, -grad L's gaps K c, and how e_t depends.

    powers is (p, q) of e_t ~ ||grad L||^p (L - L*)^q, (0, 0) at the cap.
    """

    length: arb
    norm: arb
    pull: list[arb]
    powers: tuple[float, float]


class _Approximate(NamedTuple):
    """A float array, the norm of a bound on its error, and a bound on the norm of what it stands for."""

    value: np.ndarray
    error: float
    size: float


@dataclass(eq=False)
class Deviation:
    """A bound on the distance, updated by `advance`.

    Within a block, P (b - b~) = C y + z with |y_drift| <= drift, |y_rest| <= rest and ||z|| <= added, where y
    is the value at the block's first step.
    """

    gram: _Approximate  # K P^-1
    coordinates: _Approximate  # P
    columns: list[arb]  # norms of the columns of P
    reach: list[arb]  # |mu_k - mu~_k| <= reach_k ||y||
    stretch: arb  # ||W - W~|| <= stretch ||y||
    same: np.ndarray  # 1 where two constraints belong to one sequence
    settled: int  # how many coordinates are not drift: the first ones
    rest: arb
    drift: arb
    added: arb
    product: np.ndarray
    size: int = 0
    growth: float = 1.0

    @classmethod
    def of(cls, exact: ExactProblem, gram: np.ndarray, target: MaxMargin | None) -> Deviation:
        """Choose P from the floats of K and the target; whatever they are, the bounds are proved."""
        P, settled = _coordinates(gram, target)
        N = len(P)
        with ctx.workprec(max(ctx.prec, SETUP_BITS)):
            exact_P = arb_mat(P.tolist())
            K = (exact_P.transpose().solve(exact.gram)).transpose()  # K P^-1
            square = exact_P.transpose().solve(K)  # (P^-1)' K P^-1
            stretch = max(_row_sums(square), key=lambda x: x.mid()).sqrt().abs_upper()
            reach = [_norm(row) for row in K.tolist()]
            columns = [_norm(row) for row in exact_P.transpose().tolist()]
            near, error = floats(K.entries())
        zero = arb(0)
        return cls(
            gram=_approximate(near.reshape(N, N), error),
            coordinates=_approximate(P, np.zeros(1)),
            columns=columns,
            reach=reach,
            stretch=stretch,
            same=np.equal.outer(exact.rows, exact.rows).astype(float),
            settled=settled,
            rest=zero,
            drift=zero,
            added=zero,
            product=np.eye(N),
        )

    @property
    def distance(self) -> arb:
        """A bound on ||y|| now."""
        start = self.rest + self.drift
        if start.is_zero():
            return self.added
        return (arb(_crude_norm(self.product)) * start + self.added).abs_upper()

    def local(self, factor: arb, coefficients: list[arb]) -> arb:
        """A bound on ||P (f c - f~ c~)||, f~ and c~ the midpoints of the balls f and c."""
        own, others = arb(0), arb(0)
        for c, column in zip(coefficients, self.columns, strict=True):
            own += abs(c.mid()) * column
            others += c.rad() * column
        return (abs(factor) * others + factor.rad() * own).abs_upper()

    def advance(self, look: Look, shape: StepShape, local: arb) -> bool:
        """Take the step: look and shape enclose all points within the distance. False: no bound."""
        if (self.rest + self.drift).is_zero() and self.added.is_zero():
            self.added = local
            return True
        J, error = self._derivative(look, shape)
        if not (np.isfinite(J).all() and np.isfinite(error)):
            return False
        size = _crude_norm(J) + error
        following = J @ self.product
        before = np.linalg.norm(self.product)
        rounding = (error + (len(J) + 2) * UNIT * np.linalg.norm(J)) * before * _SLACK
        start = self.rest + self.drift
        self.added = (arb(size) * self.added + arb(rounding) * start + local).abs_upper()
        self.product, self.size, self.growth = following, self.size + 1, self.growth * size
        if self.size == BLOCK or self.growth > GROWTH:
            self._close()
        return True

    def _close(self) -> None:
        """End the block: bound its product by norms."""
        r, C = self.settled, self.product
        rest = arb(_norm_bound(C[:r, :r])) * self.rest + arb(_frobenius(C[:r, r:])) * self.drift
        drift = arb(_frobenius(C[r:, :r])) * self.rest + arb(_norm_bound(C[r:, r:])) * self.drift
        self.rest = (rest + self.added).abs_upper() if r else arb(0)
        self.drift = (drift + self.added).abs_upper() if r < len(C) else arb(0)
        self.added, self.product, self.size, self.growth = arb(0), np.eye(len(C)), 0, 1.0

    def _derivative(self, look: Look, shape: StepShape) -> tuple[np.ndarray, float]:
        """(J, a bound on ||J - derivative||) of the step in the coordinates y.

        b+ = b + f c(mu), mu = mu_0 + K b, so J = I + P (f Dc + c (grad f)') K P^-1. Per sequence
        Dc = -diag(c) + c (phi - sigma(m) q)' + (c/(g - l)) q', q = phi (g - l), l = g_o - m; and
        grad log f = (p - 1) grad log ||grad L|| + q grad log(L - L*), with grad (L - L*) = -c.
        """
        inverse = 1 / shape.norm
        c = _vector([x * inverse for x in look.coefficients])
        w = _vector([x * inverse for x in look.weighted_odds()])
        y = _vector([x * inverse for x in shape.pull])
        phi, q = _vector(look.attention()), _vector(look.leaning())
        sigma = _vector(look.slopes_left())
        e, ratio = _vector([shape.length]), _vector([shape.norm / look.excess])
        p, power = shape.powers
        x = phi.value - sigma.value * q.value
        B = self.same * (np.outer(c.value, x) + np.outer(w.value, q.value)) - np.diag(c.value)
        h = (p - 1) * (B.T @ y.value) - power * ratio.value[0] * c.value
        Z = e.value[0] * (B + np.outer(c.value, h))
        # The same formulas for sizes and errors; a block-diagonal u v' has Frobenius norm <= |u| |v|.
        x_size, x_error = phi.size + q.size, phi.error + q.error + sigma.error * q.size
        B_size = c.size * (1 + x_size) + w.size * q.size
        B_error = c.error * (1 + x_size) + c.size * x_error + w.error * q.size + w.size * q.error
        h_size = abs(p - 1) * B_size * y.size + abs(power) * ratio.size * c.size
        h_error = abs(p - 1) * (B_error * y.size + B_size * y.error)
        h_error += abs(power) * (ratio.error * c.size + ratio.size * c.error)
        Z_size = e.size * (B_size + c.size * h_size)
        Z_error = e.error * (B_size + c.size * h_size)
        Z_error += e.size * (B_error + c.error * h_size + c.size * h_error)
        N = len(B)
        Z_error += (N + 20) * 2 * UNIT * Z_size  # rounding of B, h and Z
        P, K = self.coordinates, self.gram
        J = P.value @ (Z @ K.value)
        error = P.size * (Z_error * K.size + Z_size * K.error + 2 * (N + 2) * UNIT * Z_size * K.size)
        J[np.diag_indices(N)] += 1.0
        return J, float((error + UNIT * (np.sqrt(N) + P.size * Z_size * K.size)) * _SLACK)


def floats(balls: list[arb]) -> tuple[np.ndarray, np.ndarray]:
    """(floats near the balls' midpoints, bounds on their distance from any point of the ball)."""
    near = np.array([float(x.mid()) for x in balls])
    radii = np.array([float(x.rad()) for x in balls])
    return near, radii * _SLACK + np.abs(near) * UNIT + 1e-300


def _vector(balls: list[arb]) -> _Approximate:
    return _approximate(*floats(balls))


def _approximate(value: np.ndarray, errors: np.ndarray) -> _Approximate:
    error = float(np.linalg.norm(errors)) * _SLACK
    return _Approximate(value, error, float(np.linalg.norm(value)) * _SLACK + error)


def _coordinates(gram: np.ndarray, target: MaxMargin | None) -> tuple[np.ndarray, int]:
    """(P with P'P near K, its rows that are not drift first; how many those are)."""
    values, vectors = np.linalg.eigh(gram)
    root = (vectors * np.sqrt(np.maximum(values, 0) + 1e-16 * values[-1])) @ vectors.T
    if target is None:
        return root, len(root)
    along = root @ target.dual
    along /= np.linalg.norm(along)
    active = root[:, target.support]
    basis, sizes, _ = np.linalg.svd(active - np.outer(along, along @ active), full_matrices=True)
    return basis.T @ root, int((sizes > 1e-8 * np.linalg.norm(root, 2)).sum())


def _norm(row: list[arb]) -> arb:
    return sum((x * x for x in row), arb(0)).sqrt().abs_upper()


def _row_sums(matrix: arb_mat) -> list[arb]:
    return [sum((abs(x) for x in row), arb(0)).abs_upper() for row in matrix.tolist()]


def _crude_norm(C: np.ndarray) -> float:
    """A bound on the spectral norm: the root of the largest column sum times the largest row sum."""
    size = np.abs(C)
    return float(np.sqrt(size.sum(0).max() * size.sum(1).max()) * _SLACK)


def _frobenius(C: np.ndarray) -> float:
    return float(np.linalg.norm(C) * _SLACK + 1e-300)


def _norm_bound(C: np.ndarray) -> float:
    """A bound on the spectral norm, close to it.

    With V near the eigenvectors of G = C'C and ||V'V - I|| <= w < 1, ||G|| <= ||V'GV||/(1 - w), and V'GV is
    its diagonal up to little. Every float product AB is off by at most (n + 2) 2^-53 ||A|| ||B|| (Frobenius).
    """
    if not C.size:
        return 0.0
    n = len(C)
    unit: Any = (n + 2) * UNIT
    G = C.T @ C
    V = np.linalg.eigh(G)[1]
    D = V.T @ (G @ V)
    w = np.linalg.norm(V.T @ V - np.eye(n)) + unit * np.linalg.norm(V) ** 2
    if not w < 0.5:
        return _frobenius(C)
    across = np.linalg.norm(D - np.diag(np.diag(D)))
    error = 2 * unit * np.linalg.norm(V) ** 2 * np.linalg.norm(G)
    square = (np.abs(np.diag(D)).max() + (across + error) * _SLACK) / (1 - w * _SLACK)
    return float(np.sqrt(square + unit * np.linalg.norm(C) ** 2 * _SLACK) * (1 + 1e-14) + 1e-300)
