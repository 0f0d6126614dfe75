"""What Theorem C predicts of a run before it is trained: the residual's limit and the rate's exact constant.

Enclosures in ball arithmetic from the problem's floats as exact numbers. Under full support with linearly
independent constraints the balanced point solves <A_k, r> = log(w_k/alpha_k) - const, where K alpha = 1 and
w_k = sigma(-g_(i,o_i)) (g_(i,o_i) - g_(i,tau))/n; scores need not be equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Float

from numerics.errors import CertificationError, InputError
from numerics.problem import Problem

PRECISIONS = (128, 256, 512, 1024, 2048)
RELATIVE = 2.0**-50  # what every stated enclosure's radius is below, relatively
SIZE_LIMIT = 1_000  # constraints; beyond, the linear systems in balls take minutes


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Enclosures (balls) of the constants of a run; None where there is no such constant.

    residual is ||r*||, the limit of ||W_t - v_t M^||; margin is g*; path_constant the limit of
    E_t^2 (1 - cos_t), ||r*||^2/2. step is the limit of the step length e_t (the step size of normalized
    gradient descent, 1/(2 g*) or the cap for Polyak, None for plain gradient descent and for decaying step
    sizes), constant the limit of t^2 (1 - cos_t), ||r*||^2/(2 step^2). stable_below: r* is a stable limit
    exactly for steps below it, 2 g*/lambda_max; proved_below: the residual converges to r* from any start
    for steps below it, 2 g*/R_B^2.
    """

    residual: arb
    margin: arb
    path_constant: arb
    step: arb | None
    constant: arb | None
    stable_below: arb
    proved_below: arb


def predict(problem: Problem, rule: Any, init: Float[np.ndarray, "d d"] | None = None) -> Prediction:
    """Predict the limit of a run with `rule` (numerics.steps) from W_0 = `init` (None: zero).

    The part of W_0 that no constraint sees never moves; it belongs to the limit of the residual.

    Raises:
        InputError: no constraint, too many, or one that has no positive multiplier.
        CertificationError: the constraints are linearly dependent, or 2048 bits do not suffice.
    """
    N = problem.n_constraints
    if not 0 < N <= SIZE_LIMIT:
        raise InputError(f"a prediction needs between 1 and {SIZE_LIMIT} constraints, not {N}")
    reason = "the constraints are linearly dependent, or nearly so"
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            try:
                found = _predict(problem, rule, init)
            except ZeroDivisionError:
                continue
        if found is not None:
            return found
        reason = "the enclosures stay too wide"
    raise CertificationError(f"no prediction at {PRECISIONS[-1]} bits: {reason}")


def _predict(problem: Problem, rule: Any, init: np.ndarray | None) -> Prediction | None:
    K = _gram(problem)
    N = problem.n_constraints
    alpha = K.solve(arb_mat(N, 1, [1] * N)).entries()
    if any(a <= 0 for a in alpha):
        k = next(k for k, a in enumerate(alpha) if a <= 0)
        i, tau = problem.constraint_sequence[k], problem.constraint_token[k]
        raise InputError(f"no full support: the constraint of sequence {i}, token {tau} is not active")
    if not all(a > 0 for a in alpha):
        return None
    square = sum(alpha, arb(0))  # ||M||^2
    margin = 1 / square.sqrt()
    w = _limit_weights(problem)
    gaps = [(x / a).log() for x, a in zip(w, alpha, strict=True)]
    shift = sum((a * x for a, x in zip(alpha, gaps, strict=True)), arb(0)) / square
    gaps = [x - shift for x in gaps]
    coordinates = K.solve(arb_mat(N, 1, gaps)).entries()
    squared = sum((b * x for b, x in zip(coordinates, gaps, strict=True)), arb(0))
    if init is not None and np.any(init):
        squared += _unseen(problem, K, init)
    residual = squared.sqrt() if squared > 0 else arb(0).union(squared.abs_upper().sqrt())
    radius = _greatest([K[k, k] for k in range(N)]) - margin**2
    share = [(a / square).sqrt() for a in alpha]
    across = [[share[k] * (K[k, m] - margin**2) * share[m] for m in range(N)] for k in range(N)]
    step = _step_limit(rule, margin)
    alone = N == 1  # then nothing lies across M, and no step is too long
    found = Prediction(
        residual=residual,
        margin=margin,
        path_constant=squared / 2,
        step=step,
        constant=None if step is None else squared / (2 * step**2),
        stable_below=arb.pos_inf() if alone else 2 * margin / _largest_eigenvalue(across),
        proved_below=arb.pos_inf() if alone else 2 * margin / radius,
    )
    return found if _narrow(residual) and _narrow(margin) else None


def _narrow(x: arb) -> bool:
    """Narrow enough to state: relatively, or so close to 0 that it may be 0."""
    return bool(x.rad() <= RELATIVE * x.abs_lower()) or bool(x.abs_upper() < 1e-25)


def _step_limit(rule: Any, margin: arb) -> arb | None:
    """The limit of the rule's step length."""
    law = rule.law
    if law.exponent or rule.name not in ("ngd", "polyak"):
        return None
    if rule.name == "ngd":
        return arb(law.scale)
    polyak = 1 / (2 * margin)
    return polyak if law.cap == float("inf") else polyak.min(arb(law.cap))


# --- the problem in balls ----------------------------------------------------------------------------------


def _differences(problem: Problem) -> tuple[arb_mat, arb_mat]:
    """x_(i,o_i) - x_(i,tau) and z_i as rows, one a constraint, from the floats as exact numbers."""
    sequence = problem.constraint_sequence
    best = problem.tokens[np.arange(problem.n), problem.optimal][sequence]
    other = problem.tokens[sequence, problem.constraint_token]
    return arb_mat(best.tolist()) - arb_mat(other.tolist()), arb_mat(problem.queries[sequence].tolist())


def _gram(problem: Problem) -> arb_mat:
    """K, enclosed."""
    differences, queries = _differences(problem)
    tokens, pairs = differences * differences.transpose(), queries * queries.transpose()
    N = problem.n_constraints
    return arb_mat([[tokens[k, m] * pairs[k, m] for m in range(N)] for k in range(N)])


def _limit_weights(problem: Problem) -> list[arb]:
    """w_k = sigma(-g_(i,o_i)) (g_(i,o_i) - g_(i,tau))/n, enclosed."""
    used = np.flatnonzero(problem.decoder)
    column = arb_mat(len(used), 1, problem.decoder[used].tolist())
    sequence = problem.constraint_sequence
    best = arb_mat(problem.tokens[np.arange(problem.n), problem.optimal][:, used].tolist()) * column
    other = arb_mat(problem.tokens[sequence, problem.constraint_token][:, used].tolist()) * column
    out = []
    for k, i in enumerate(sequence.tolist()):
        label = arb(float(problem.labels[i]))
        score, gap = label * best[i, 0], label * (best[i, 0] - other[k, 0])
        if not gap > 0:
            raise ZeroDivisionError("a score gap is not yet told from 0")
        out.append(gap / (1 + score.exp()) / problem.n)
    return out


def _unseen(problem: Problem, K: arb_mat, init: np.ndarray) -> arb:
    """The squared norm of the part of W_0 orthogonal to every constraint."""
    differences, queries = _differences(problem)
    moved = differences * arb_mat(np.asarray(init, dtype=float).tolist())
    N, d = problem.n_constraints, problem.d
    gaps = [sum((moved[k, j] * queries[k, j] for j in range(d)), arb(0)) for k in range(N)]
    coordinates = K.solve(arb_mat(N, 1, gaps)).entries()
    total = sum((arb(float(x)) ** 2 for x in np.ravel(init)), arb(0))
    return total - sum((b * x for b, x in zip(coordinates, gaps, strict=True)), arb(0))


def _greatest(balls: list[arb]) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = out.max(x)
    return out


def _largest_eigenvalue(S: list[list[arb]]) -> arb:
    """The largest eigenvalue of a positive semidefinite matrix: a Rayleigh quotient below, a Cholesky
    factorization of (bound - S) above."""
    N = len(S)
    values, vectors = np.linalg.eigh(np.array([[float(x.mid()) for x in row] for row in S]))
    v = [arb(float(x)) for x in vectors[:, -1]]
    image = [sum((x * y for x, y in zip(row, v, strict=True)), arb(0)) for row in S]
    length = sum((x * x for x in v), arb(0))
    low = (sum((x * y for x, y in zip(image, v, strict=True)), arb(0)) / length).max(arb(0))
    scale = max(float(values[-1]), 1e-300)
    for exponent in range(-44, 0, 4):
        bound = arb(scale) * (1 + arb(2) ** exponent)
        if _positive_definite([[bound * (k == m) - S[k][m] for m in range(N)] for k in range(N)]):
            return low.union(bound)
    raise ZeroDivisionError("the largest eigenvalue is not yet enclosed")


def _positive_definite(A: list[list[arb]]) -> bool:
    """Whether Cholesky's method in balls proves a symmetric matrix positive definite."""
    N = len(A)
    L: list[list[arb]] = [[arb(0)] * N for _ in range(N)]
    for k in range(N):
        pivot = A[k][k] - sum((x * x for x in L[k][:k]), arb(0))
        if not pivot > 0:
            return False
        root = pivot.sqrt()
        for m in range(k, N):
            crossed = sum((x * y for x, y in zip(L[m][:k], L[k][:k], strict=True)), arb(0))
            L[m][k] = (A[m][k] - crossed) / root
    return True
