"""Infeasible constraints: which sequences and tokens clash, and the proof as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Float

from numerics.errors import CertificationError, InfeasibleError
from numerics.maxmargin import exact
from numerics.maxmargin.certificate import FORMAT, VERSION, write_json
from numerics.maxmargin.integers import IntegerConstraints
from numerics.maxmargin.rounding import Rounded, rounded
from numerics.problem import Problem

_SHOWN = 6
_BITS = 64
_WEIGHT_BITS = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class InfeasibilityCertificate:
    """Positive weights w of some constraints, and what they prove, by kind.

    "infeasible": integers without common factor, sum w_k A_k = 0 exactly; so no W has <A_k, W> >= 1 for all
    k (Farkas). "spanned": the same conclusion with weights known as correctly rounded numbers: all
    constraints but the first span the whole space these tokens and queries allow, so that the first is a
    combination of them, and its coefficients are proved negative. "bound": integers; every W that satisfies
    the constraints has ||W||_F >= norm_at_least = sum w_k/||sum w_k A_k||_F.
    """

    kind: str
    problem_hash: str
    support: tuple[int, ...]
    constraints: tuple[tuple[int, int], ...]
    weights: tuple[int | Rounded, ...]
    norm_at_least: Rounded | None = None

    def to_json(self) -> dict[str, Any]:
        """Give the file's content."""
        rows = zip(self.support, self.constraints, self.weights, strict=True)
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "problem": self.problem_hash,
            "beta": [
                {"constraint": k, "sequence": i, "token": tau, "weight": w if isinstance(w, int) else list(w)}
                for k, (i, tau), w in rows
            ],
        }
        if self.kind != "infeasible":
            content["bits"] = _BITS
        if self.norm_at_least is not None:
            content["norm_at_least"] = list(self.norm_at_least)
        return content

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate as JSON, atomically; `numerics.maxmargin.checker` verifies it."""
        write_json(path, self.to_json())

    def beta(self, size: int) -> Float[np.ndarray, " N"]:
        """Give the weights as floats of sum 1, for all `size` constraints."""
        with ctx.workprec(2 * _BITS):
            balls = [arb(w) if isinstance(w, int) else w.ball for w in self.weights]
            total = sum(balls, arb(0))
            shares = [float((ball / total).mid()) for ball in balls]
        beta = np.zeros(size)
        beta[list(self.support)] = shares
        return beta


def proof(problem: Problem, found: exact.Farkas) -> InfeasibilityCertificate:
    """State exact weights as a certificate."""
    return _certificate("infeasible", problem, found.support, tuple(found.weights))


def spanned(problem: Problem, support: Sequence[int]) -> InfeasibilityCertificate | None:
    """Prove infeasibility in ball arithmetic from a minimal set of clashing constraints, if it is one.

    With as many independent constraints as the token differences and queries have dimensions together, one
    more is a combination of them; balls then decide the signs of its coefficients. This reaches sizes where
    rationals do not. None where the argument does not apply or the signs stay undecided.
    """
    first, *others = sorted(support)
    constraints = IntegerConstraints(problem)
    used = [first, *others]
    room = constraints.differences(used).rank() * constraints.query_rows(used).rank()
    if len(others) != room:
        return None
    K, column = constraints.gram(others, others), constraints.gram(others, [first])
    for precision in (2 * _BITS, 8 * _BITS):
        with ctx.workprec(precision):
            try:
                c = arb_mat(K).solve(arb_mat(column)).entries()
            except ZeroDivisionError:
                continue
            weights = [rounded(-x, _BITS) for x in c]
        if all(w is not None for w in weights):
            one = Rounded(1 << (_BITS - 1), 1 - _BITS)
            return _certificate("spanned", problem, used, (one, *(w for w in weights if w is not None)))
    return None


def bound(problem: Problem, beta: Float[np.ndarray, " N"]) -> InfeasibilityCertificate:
    """Prove ||W|| >= sum beta/||sum beta_k A_k|| for every feasible W, from any beta >= 0."""
    support = [int(k) for k in np.flatnonzero(beta > 2.0**-_WEIGHT_BITS * np.max(beta))]
    weights = [round(float(beta[k] / np.max(beta)) * 2**_WEIGHT_BITS) for k in support]
    shared = int(np.gcd.reduce(np.array(weights, dtype=object)))
    weights = [w // shared for w in weights]
    constraints = IntegerConstraints(problem)
    square = constraints.square(support, weights)
    if square == 0:
        return _certificate("infeasible", problem, support, tuple(weights))
    with ctx.workprec(4 * _BITS):
        value = rounded(sum(weights) / arb(square).sqrt() * arb(2) ** (-constraints.exponent), _BITS)
    if value is None:
        raise CertificationError("the bound lies between two roundings")
    return _certificate("bound", problem, support, tuple(weights), value)


def certify_infeasible(problem: Problem, beta: Float[np.ndarray, " N"]) -> InfeasibilityCertificate:
    """Prove infeasibility, given a guess of the clashing constraints (beta >= 0).

    The proof is exact while the guess has at most `exact.SIZE_LIMIT` constraints, else a lower bound on
    ||W||. Raises CertificationError when the constraints turn out to be feasible, be it only just.
    """
    guess = [int(k) for k in np.flatnonzero(beta > 0)]
    if len(guess) > exact.SIZE_LIMIT:
        return spanned(problem, guess) or bound(problem, beta)
    constraints = IntegerConstraints(problem)
    found = exact.farkas(constraints, guess, guess[int(np.argmax(beta[guess]))])
    outcome = found or exact.optimum(constraints, guess)
    if isinstance(outcome, exact.Optimum):
        raise CertificationError("not infeasible, only nearly so: exact arithmetic finds a solution")
    return proof(problem, outcome)


def infeasible_error(problem: Problem, certificate: InfeasibilityCertificate) -> InfeasibleError:
    """Build the error that carries a certificate."""
    beta = certificate.beta(problem.n_constraints)
    clash = describe(problem, beta)
    if certificate.norm_at_least is not None:
        bound = float(certificate.norm_at_least)
        clash = (
            clash.replace("cancel", "cancel in floats") + f"; proved for every W of norm below {bound:.6g}"
        )
    return InfeasibleError(clash, beta, certificate)


def describe(problem: Problem, beta: Float[np.ndarray, " N"]) -> str:
    """One line naming the clashing constraints of an infeasible problem.

    `beta` holds nonnegative weights of sum 1 with sum_k beta_k A_k = 0: no W can give all of these
    constraints a positive margin (Farkas).
    """
    zero = problem.constraint_sequence[(beta > 0) & (problem.constraint_norms == 0)]
    if zero.size:
        return f"infeasible: the query of sequence {zero[0]} is zero: no W can tell its tokens apart"
    pull = beta * problem.constraint_norms
    involved = np.flatnonzero((beta > 0) & (pull >= 1e-9 * np.max(pull)))
    involved = involved[np.argsort(-pull[involved], kind="stable")]
    sequences = problem.constraint_sequence[involved]
    names = [f"({i}, {tau})" for i, tau in zip(sequences, problem.constraint_token[involved], strict=True)]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return (
        f"infeasible: no W attends to every optimal token; the constraints of (sequence, token) {shown} "
        f"cancel with weights beta >= 0 (sum beta_k A_k = 0)"
    )


def _certificate(
    kind: str,
    problem: Problem,
    support: list[int],
    weights: tuple[int | Rounded, ...],
    norm: Rounded | None = None,
) -> InfeasibilityCertificate:
    i, tau = problem.constraint_sequence, problem.constraint_token
    return InfeasibilityCertificate(
        kind=kind,
        problem_hash=problem.hash,
        support=tuple(support),
        constraints=tuple((int(i[k]), int(tau[k])) for k in support),
        weights=weights,
        norm_at_least=norm,
    )
