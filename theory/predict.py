"""What Theorem C predicts of a run before it is trained: the residual's limit and the rate's exact constant.

Enclosures in ball arithmetic from the problem's floats as exact numbers; scores need not be equal. S are
the constraints of margin exactly 1, the support of M: the certified max-margin solution tells which they are,
and all of them must pull in balance. The balanced point r* lies in the span of S orthogonal to M and solves

    sum_S w_k exp(-<A_k, r>) A_k = Phi g*^2 M,    w_k = sigma(-g_(i,o_i)) (g_(i,o_i) - g_(i,tau))/n.

For linearly independent A_k it is <A_k, r> = log(w_k/alpha_k) - const, where K alpha = 1 on S. For
dependent ones (repeated tokens, more constraints than dimensions) a Newton iterate is proved to lie next to
the one solution by Krawczyk's operator: existence, uniqueness and the enclosure come from the same test.
Positive weights that balance are positive multipliers of M, so nothing need be known of alpha beforehand.

Off the support a run's residual has a limit of its own, which no formula gives: it is read off a late
iterate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Bool, Float

from numerics.errors import CertificationError, InputError
from numerics.problem import Problem
from numerics.steps import Rule

PRECISIONS = (128, 256, 512, 1024, 2048)
RELATIVE = 2.0**-50  # what every stated enclosure's radius is below, relatively
SIZE_LIMIT = 1_000  # constraints; beyond, the linear systems in balls take minutes


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Enclosures (balls) of the constants of a run; None where there is no such constant.

    support (N,): the constraints of margin 1; gap: the least margin of the others, less 1 (None when there
    are none, full support). balanced is ||r*||. residual is the limit of ||W_t - v_t M^||: ||r*|| and, at a
    right angle to it, the part of the run's own limit that the support does not see; None without full
    support unless a late iterate is given. margin is g*; path_constant the limit of E_t^2 (1 - cos_t),
    residual^2/2. step is the limit of the step length e_t (the step size of normalized gradient descent,
    1/(2 g*) or the cap for Polyak, None for plain gradient descent and for decaying step sizes), constant the
    limit of t^2 (1 - cos_t), residual^2/(2 step^2). stable_below: r* is a stable limit exactly for steps
    below it, 2 g*/greatest_variance; proved_below: the residual converges to r* from any start for steps
    below it, 2 g*/R_B^2. least_variance, greatest_variance: the extreme eigenvalues sig and lam on the span
    of S orthogonal to M of the covariance of the A_k under the balanced weights, Theorem C's spectral
    constants (None when M alone spans it); least_weight: the smallest balanced weight q_k/Phi.
    """

    support: Bool[np.ndarray, " N"]
    gap: arb | None
    balanced: arb
    residual: arb | None
    margin: arb
    path_constant: arb | None
    step: arb | None
    constant: arb | None
    stable_below: arb
    proved_below: arb
    least_variance: arb | None
    greatest_variance: arb | None
    least_weight: arb


def predict(
    problem: Problem,
    rule: Any,
    init: Float[np.ndarray, "d d"] | None = None,
    *,
    late: Float[np.ndarray, "d d"] | None = None,
) -> Prediction:
    """Predict the limit of a run with `rule` (numerics.steps) from W_0 = `init` (None: zero).

    The part of W_0 that no constraint sees never moves; it belongs to the limit of the residual. Without full
    support the part that only the other constraints see moves by a finite length: `late`, an iterate of the
    run that has come to rest there, then stands for the limit.

    Raises:
        InputError: no constraint, too many, or one of margin 1 that has no positive multiplier.
        CertificationError: 2048 bits do not suffice, or the max-margin solution is not certified.
    """
    N = problem.n_constraints
    if not 0 < N <= SIZE_LIMIT:
        raise InputError(f"a prediction needs between 1 and {SIZE_LIMIT} constraints, not {N}")
    face = _face(problem)
    unseen, known = (init, bool(face.support.all())) if late is None else (late, True)
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            try:
                found = _predict(problem, rule, face, unseen, known=known)
            except ZeroDivisionError:
                continue
        if found is not None:
            return found
    reason = "the enclosures stay too wide"
    if len(face.basis) < len(face.members):
        reason += ", or some constraint of margin 1 has multiplier 0 and nothing balances"
    raise CertificationError(f"no prediction at {PRECISIONS[-1]} bits: {reason}")


@dataclass(frozen=True)
class _Face:
    """The constraints of margin 1, and a basis of their span (both as positions among all constraints)."""

    support: np.ndarray
    members: np.ndarray
    basis: np.ndarray


def _face(problem: Problem) -> _Face:
    """The support of M, proved, with a basis of its span.

    Raises:
        InputError: infeasible constraints, or one of margin 1 whose multiplier is 0.
        CertificationError: the max-margin solution is not certified.
    """
    every = np.ones(problem.n_constraints, dtype=bool)
    if _multipliers_positive(problem):
        members = np.arange(problem.n_constraints)
        return _Face(every, members, members)
    from numerics.maxmargin import max_margin

    certificate = max_margin(problem).certify(128)
    support = np.array([status != "inactive" for status in certificate.status])
    members = np.flatnonzero(support)
    if certificate.independent:
        for k in members:
            if certificate.status[k] != "support":
                i, tau = certificate.constraints[k]
                reason = f"the constraint of sequence {i}, token {tau} has margin 1 and multiplier 0"
                raise InputError(f"{reason}: the residual has no limit of this form")
        return _Face(support, members, members)
    return _Face(support, members, _basis(problem, members))


def _multipliers_positive(problem: Problem) -> bool:
    """Whether K alpha = 1 has a solution that balls prove positive: full support, constraints independent."""
    with ctx.workprec(PRECISIONS[0]):
        try:
            alpha = _gram(problem).solve(arb_mat(problem.n_constraints, 1, [1] * problem.n_constraints))
        except ZeroDivisionError:
            return False
        return all(a > 0 for a in alpha.entries())


def _basis(problem: Problem, members: np.ndarray) -> np.ndarray:
    """Positions of linearly independent constraints that span the support: the rank is exact."""
    from scipy.linalg import qr

    from numerics.maxmargin.integers import IntegerConstraints

    constraints = IntegerConstraints(problem)
    rank = int(constraints.gram(members.tolist(), members.tolist()).rank())
    order = qr(problem.gram()[np.ix_(members, members)], mode="r", pivoting=True)[-1]
    basis = np.sort(members[order[:rank]])
    if int(constraints.gram(basis.tolist(), basis.tolist()).rank()) < rank:
        raise CertificationError("no basis of the support was found: it is too nearly dependent")
    return basis


def _predict(
    problem: Problem, rule: Any, face: _Face, unseen: np.ndarray | None, known: bool
) -> Prediction | None:
    K = _gram(problem)
    B, S = face.basis.tolist(), face.members.tolist()
    K_B = arb_mat([[K[k, m] for m in B] for k in B])
    K_SB = arb_mat([[K[k, m] for m in B] for k in S])
    w = limit_weights(problem)
    M = K_B.solve(arb_mat(len(B), 1, [1] * len(B)))  # M in the basis; its margins on S are exactly 1
    square = sum(M.entries(), arb(0))  # ||M||^2
    margin = 1 / square.sqrt()
    solved = _balance(K_B, K_SB, [w[k] for k in S])
    if solved is None:
        return None
    # <A_k, r* + z M> = log(w_k/alpha_k) for multipliers alpha_k > 0; the part along M is a constant.
    coordinates, alpha = solved
    shift = sum(coordinates.entries(), arb(0)) / square
    r = coordinates - shift * M
    squared = (r.transpose() * K_B * r)[0, 0]
    balanced = _root(squared)
    off = [k for k in range(problem.n_constraints) if not face.support[k]]
    margins = [sum((K[k, m] * y for m, y in zip(B, M.entries(), strict=True)), arb(0)) - 1 for k in off]
    gap = _least(margins) if margins else None
    if gap is not None and not gap > 0:
        return None
    whole = squared if known else None
    if known and unseen is not None and np.any(unseen):
        whole = squared + _unseen(problem, K_B, B, unseen)
    radius = _greatest([K[k, k] for k in S]) - margin**2
    share = [a / square for a in alpha]
    step = _step_limit(rule, margin)
    alone = len(B) == 1  # then nothing lies across M, and no step is too long
    least, greatest = (None, None) if alone else _spectrum(K_B, K_SB, share)
    found = Prediction(
        support=face.support,
        gap=gap,
        balanced=balanced,
        residual=None if whole is None else _root(whole),
        margin=margin,
        path_constant=None if whole is None else whole / 2,
        step=step,
        constant=None if step is None or whole is None else whole / (2 * step**2),
        stable_below=arb.pos_inf() if greatest is None else 2 * margin / greatest,
        proved_below=arb.pos_inf() if alone else 2 * margin / radius,
        least_variance=least,
        greatest_variance=greatest,
        least_weight=_least(share),
    )
    return found if _narrow(balanced) and _narrow(margin) else None


def _root(squared: arb) -> arb:
    return squared.sqrt() if squared > 0 else arb(0).union(squared.abs_upper().sqrt())


# --- the balanced point ------------------------------------------------------------------------------------


def _balance(K_B: arb_mat, K_SB: arb_mat, w: list[arb]) -> tuple[arb_mat, list[arb]] | None:
    """x and alpha_k = w_k exp(-(K_SB x)_k) > 0 with sum_k alpha_k A_k of margin 1 on the basis.

    Independent constraints: alpha solves a linear system. Else x minimizes a strictly convex function.
    """
    n, N = K_B.nrows(), K_SB.nrows()
    if n == N:
        alpha = K_B.solve(arb_mat(n, 1, [1] * n)).entries()
        if not all(a > 0 for a in alpha):
            return None
        logs = [(x / a).log() for x, a in zip(w, alpha, strict=True)]
        return K_B.solve(arb_mat(n, 1, logs)), alpha
    x = _newton(K_B, K_SB, w)
    return None if x is None else _krawczyk(K_SB, w, x)


def _multipliers(K_SB: arb_mat, w: list[arb], x: arb_mat) -> list[arb]:
    """w_k exp(-<A_k, z>) at z = sum x_b A_b."""
    return [a * (-b).exp() for a, b in zip(w, (K_SB * x).entries(), strict=True)]


def _imbalance(K_SB: arb_mat, alpha: list[arb]) -> arb_mat:
    """Margins of sum alpha_k A_k on the basis, less 1."""
    images = K_SB.transpose() * arb_mat(len(alpha), 1, alpha)
    return arb_mat([[x - 1] for x in images.entries()])


def _hessian(K_SB: arb_mat, alpha: list[arb]) -> arb_mat:
    """The derivative of minus the imbalance: sum alpha_k K_kb K_kc."""
    n, N = K_SB.ncols(), K_SB.nrows()
    scaled = arb_mat([[alpha[k] * K_SB[k, m] for m in range(n)] for k in range(N)])
    return K_SB.transpose() * scaled


def _midpoint(A: arb_mat) -> arb_mat:
    return arb_mat([[A[k, m].mid() for m in range(A.ncols())] for k in range(A.nrows())])


def _newton(K_B: arb_mat, K_SB: arb_mat, w: list[arb]) -> arb_mat | None:
    """Damped Newton steps on sum_k w_k exp(-<A_k, z>) + <z, M>, from floats on; midpoints only."""
    gram = np.array([[float(K_SB[k, m].mid()) for m in range(K_SB.ncols())] for k in range(K_SB.nrows())])
    logs = np.array([float(x.log().mid()) for x in w])
    x = np.linalg.lstsq(gram, logs, rcond=None)[0]

    def value(x: np.ndarray) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(logs - gram @ x).sum() + x.sum())

    for _ in range(500):
        with np.errstate(over="ignore"):
            alpha = np.exp(logs - gram @ x)
        if not np.all(np.isfinite(alpha)):
            return None
        slope = 1 - gram.T @ alpha
        move = np.linalg.lstsq(gram.T @ (alpha[:, None] * gram), -slope, rcond=None)[0]
        length, here = 1.0, value(x)
        while value(x + length * move) > here + 1e-4 * length * float(slope @ move) and length > 1e-12:
            length /= 2
        x = x + length * move
        if not np.all(np.isfinite(x)):
            return None
        if np.abs(move).max() <= 1e-9 * (1 + np.abs(x).max()):
            break
    point = arb_mat([[float(y)] for y in x])
    for _ in range(2 + ctx.prec.bit_length()):
        alpha = _multipliers(K_SB, w, point)
        point = _midpoint(point + _hessian(K_SB, alpha).solve(_imbalance(K_SB, alpha)))
    return point


def _krawczyk(K_SB: arb_mat, w: list[arb], x: arb_mat) -> tuple[arb_mat, list[arb]] | None:
    """The one balanced point in a box around x: x + H^-1 f(x) + (1 - H^-1 H(box))(box - x) lies inside it."""
    n = K_SB.ncols()
    at = _multipliers(K_SB, w, x)
    inverse = _midpoint(_midpoint(_hessian(K_SB, at)).inv())
    move = inverse * _imbalance(K_SB, at)
    size = max((y.abs_upper() for y in move.entries()), key=float)
    radius = 4 * size + arb(2) ** (-ctx.prec // 2)
    around = arb_mat([[arb(0, radius.upper())] for _ in range(n)])
    box = x + around
    spread = _hessian(K_SB, _multipliers(K_SB, w, box))
    one = arb_mat([[int(k == m) for m in range(n)] for k in range(n)])
    image = move + (one - inverse * spread) * around
    if not all(y.abs_upper() < radius.lower() for y in image.entries()):
        return None
    inside = x + image
    return inside, _multipliers(K_SB, w, inside)


def _narrow(x: arb) -> bool:
    """Narrow enough to state: relatively, or so close to 0 that it may be 0."""
    return bool(x.rad() <= RELATIVE * x.abs_lower()) or bool(x.abs_upper() < 1e-25)


def _step_limit(rule: Any, margin: arb) -> arb | None:
    """The limit of the rule's step length; None where another optimizer decides on it."""
    if not isinstance(rule, Rule):
        return None
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


def limit_weights(problem: Problem) -> list[arb]:
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


def _unseen(problem: Problem, K_B: arb_mat, basis: list[int], init: np.ndarray) -> arb:
    """The squared norm of the part of a matrix orthogonal to the span of the support."""
    differences, queries = _differences(problem)
    moved = differences * arb_mat(np.asarray(init, dtype=float).tolist())
    d = problem.d
    gaps = [sum((moved[k, j] * queries[k, j] for j in range(d)), arb(0)) for k in basis]
    coordinates = K_B.solve(arb_mat(len(basis), 1, gaps)).entries()
    total = sum((arb(float(x)) ** 2 for x in np.ravel(init)), arb(0))
    return total - sum((b * x for b, x in zip(coordinates, gaps, strict=True)), arb(0))


def _greatest(balls: list[arb]) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = out.max(x)
    return out


def _least(balls: list[arb]) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = out.min(x)
    return out


def _spectrum(K_B: arb_mat, K_SB: arb_mat, share: list[arb]) -> tuple[arb, arb]:
    """The extreme eigenvalues of the covariance of the A_k, k in S, on their span orthogonal to M.

    For x = sum y_b A_b orthogonal to M (sum y = 0) the variance of the <A_k, x> is y' V y and ||x||^2 is
    y' K_B y. A Rayleigh quotient bounds an eigenvalue from one side, a Cholesky factorization from the other;
    adding a multiple of 1 1' makes nothing of what is not orthogonal to M.
    """
    n = K_B.nrows()
    mean = (K_SB.transpose() * arb_mat(len(share), 1, share)).entries()
    second = _hessian(K_SB, share)
    V = [[second[k, m] - mean[k] * mean[m] for m in range(n)] for k in range(n)]
    G = [[K_B[k, m] for m in range(n)] for k in range(n)]
    from scipy.linalg import eigh, null_space

    free = null_space(np.ones((1, n)))
    v, g = (np.array([[float(x.mid()) for x in row] for row in rows]) for rows in (V, G))
    try:
        values, vectors = eigh(free.T @ v @ free, free.T @ g @ free)
    except np.linalg.LinAlgError:  # in floats the span has lost a dimension
        raise ZeroDivisionError("the spectrum is beyond floats") from None
    quotients = [_quotient(V, G, free @ vectors[:, j]) for j in (0, -1)]
    weight = arb(float(np.trace(v) + values[-1] * np.trace(g)))

    def definite(sign: int, bound: arb) -> bool:
        rows = [[sign * (V[k][m] - bound * G[k][m]) + weight for m in range(n)] for k in range(n)]
        return _positive_definite(rows)

    for exponent in range(-40, 0, 4):
        away = arb(2) ** exponent
        low, high = quotients[0] * (1 - away), quotients[1] * (1 + away)
        if definite(1, low.lower()) and definite(-1, high.upper()):
            return low.union(quotients[0]), high.union(quotients[1])
    raise ZeroDivisionError("the spectrum is not yet enclosed")


def _quotient(V: list[list[arb]], G: list[list[arb]], y: np.ndarray) -> arb:
    """y' V y/y' G y for the part of y that sums to 0."""
    x = [arb(float(z)) for z in y]
    mean = sum(x, arb(0)) / len(x)
    x = [z - mean for z in x]
    forms = [
        sum((a * b * c for a, row in zip(x, A, strict=True) for b, c in zip(row, x, strict=True)), arb(0))
        for A in (V, G)
    ]
    return forms[0] / forms[1]


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
