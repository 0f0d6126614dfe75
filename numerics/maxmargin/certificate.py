"""Certificates: what is proved about a max-margin problem, as a file that a separate checker re-verifies."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq, fmpz_mat

from numerics.errors import CertificationError
from numerics.files import atomic_write
from numerics.maxmargin import exact
from numerics.maxmargin.integers import IntegerConstraints
from numerics.maxmargin.rounding import ZERO, Rounded, rounded
from numerics.problem import Problem

FORMAT = "attnrates-maxmargin-certificate"
VERSION = 1
PRECISION_LIMIT = 4096  # bits of working precision
LARGEST_BITS = 1024  # bits of a stated number


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """The exact solution for the stored floats, every number correctly rounded to `bits` bits.

    status (N,): "support" (multiplier proved positive, margin exactly 1), "active" (margin exactly 1,
    multiplier zero here) or "inactive" (margin proved above 1). dual, margins (N,), norm = ||M|| and margin
    = g* = 1/||M|| are `Rounded`; their `.ball` are rigorous enclosures. M itself is unique always; the dual
    is proved unique when `independent`: the A_k of margin 1 are linearly independent. full_support answers
    whether some optimal dual has every alpha_k > 0, assumption (F): "holds", "fails" or "unknown".
    """

    problem_hash: str
    bits: int
    constraints: tuple[tuple[int, int], ...]
    status: tuple[str, ...]
    dual: tuple[Rounded, ...]
    margins: tuple[Rounded, ...]
    norm: Rounded
    margin: Rounded
    independent: bool
    full_support: str

    def to_json(self) -> dict[str, Any]:
        """Give the file's content."""
        rows = zip(self.constraints, self.status, self.dual, self.margins, strict=True)
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": "optimal",
            "problem": self.problem_hash,
            "bits": self.bits,
            "norm": list(self.norm),
            "margin": list(self.margin),
            "independent": self.independent,
            "full_support": self.full_support,
            "constraints": [
                {"sequence": i, "token": tau, "status": status, "dual": list(alpha), "margin": list(mu)}
                for (i, tau), status, alpha, mu in rows
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate as JSON, atomically; `numerics.maxmargin.checker` verifies it."""
        write_json(path, self.to_json())


def write_json(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write a certificate file."""
    with atomic_write(path) as stream:
        stream.write((json.dumps(content, indent=1) + "\n").encode())


def certify(problem: Problem, dual: np.ndarray, bits: int = 64) -> Certificate:
    """Prove the solution with the support of `dual`, correcting that support where exact arithmetic can.

    On the support the equations <A_k, M> = 1 are solved in ball arithmetic, from the floats as exact
    rationals; positive multipliers there and margins above 1 elsewhere are the KKT conditions, hence the
    optimum. Precision doubles up to PRECISION_LIMIT. What balls cannot decide (margins of exactly 1 off the
    support, zero multipliers, dependent constraints) is decided in rationals while the systems are small.
    Raises CertificationError with the reason where neither decides.
    """
    if not 8 <= bits <= LARGEST_BITS:
        raise CertificationError(f"bits must lie between 8 and {LARGEST_BITS}, not {bits}")
    constraints = IntegerConstraints(problem)
    support = [int(k) for k in np.flatnonzero(dual > 0)]
    proved = _by_balls(constraints, support, bits) if support else None
    if proved:
        return proved
    with contextlib.suppress(CertificationError):
        better = exact.optimum(constraints, support, exact.LONG)
        if isinstance(better, exact.Optimum) and better.support != support:
            support = better.support
            proved = _by_balls(constraints, support, bits)
    if proved:
        return proved
    outcome = exact.optimum(constraints, support)
    if isinstance(outcome, exact.Farkas):
        raise CertificationError("the problem is infeasible: there is no solution to certify")
    return _by_rationals(constraints, outcome, bits)


def _by_balls(constraints: IntegerConstraints, support: list[int], bits: int) -> Certificate | None:
    """Certify by ball arithmetic; None where exact arithmetic should decide (and is affordable)."""
    N = constraints.size
    members = set(support)
    rest = [k for k in range(N) if k not in members]
    K = constraints.gram(support, support)
    others = constraints.gram(rest, support) if rest else None
    small = len(support) <= exact.SIZE_LIMIT
    precision, reason = bits + 64, ""
    while precision <= PRECISION_LIMIT:
        with ctx.workprec(precision):
            reason = "the multipliers of the support cannot be enclosed"
            try:
                y = arb_mat(K).solve(arb_mat(len(support), 1, [1] * len(support)))
            except ZeroDivisionError:
                y = None
            if y is not None:
                values = dict(zip(support, y.entries(), strict=True))
                mu = (arb_mat(others) * y).entries() if others is not None else []
                if all(value > 0 for value in values.values()) and all(m > 1 for m in mu):
                    found = _assemble(constraints, values, mu, rest, [], bits)
                    if found is not None:
                        return found
                    precision, reason = 2 * precision, "a number lies between two roundings"
                    continue
                reason = _doubt(constraints, values, dict(zip(rest, mu, strict=True)))
                if any(value < 0 for value in values.values()) or any(m < 1 for m in mu):
                    break
        if small:
            break
        precision *= 2
    if small:
        return None
    raise CertificationError(f"not certified at {min(precision, PRECISION_LIMIT)} bits: {reason}")


def _by_rationals(constraints: IntegerConstraints, optimum: exact.Optimum, bits: int) -> Certificate:
    """Certify an exact optimum, ties included."""
    support = optimum.support
    rest = [k for k in range(constraints.size) if k not in set(support)]
    mu = exact.margins(constraints, rest, optimum)
    ties = [k for k, m in zip(rest, mu, strict=True) if m == 1]
    off = [(k, m) for k, m in zip(rest, mu, strict=True) if m != 1]
    precision = bits + 64
    while precision <= PRECISION_LIMIT:
        with ctx.workprec(precision):
            values = {k: arb(v) for k, v in zip(support, optimum.values, strict=True)}
            found = _assemble(constraints, values, [arb(m) for _, m in off], [k for k, _ in off], ties, bits)
        if found is not None:
            return found
        precision *= 2
    raise CertificationError("a number lies exactly between two roundings; ask for other bits")


def _assemble(
    constraints: IntegerConstraints,
    values: dict[int, arb],
    margins: list[arb],
    inactive: list[int],
    ties: list[int],
    bits: int,
) -> Certificate | None:
    """Round every number, or None where a ball is too wide for it."""
    problem = constraints.problem
    unit = arb(2) ** (-2 * constraints.exponent)  # alpha = unit times the solution of the integer system
    total = sum(values.values(), arb(0)) * unit  # sum alpha = ||M||^2
    one = Rounded(1 << (bits - 1), 1 - bits)
    dual: list[Rounded | None] = [ZERO] * constraints.size
    mu: list[Rounded | None] = [one] * constraints.size
    status = ["active"] * constraints.size
    for k, value in values.items():
        dual[k], status[k] = rounded(value * unit, bits), "support"
    for k, m in zip(inactive, margins, strict=True):
        mu[k], status[k] = rounded(m, bits), "inactive"
    norm, margin = rounded(total.sqrt(), bits), rounded(1 / total.sqrt(), bits)
    duals, mus = [x for x in dual if x is not None], [x for x in mu if x is not None]
    if norm is None or margin is None or len(duals) < constraints.size or len(mus) < constraints.size:
        return None
    independent, full = active_set_facts(constraints.gram, list(values), ties, len(inactive))
    pairs = zip(problem.constraint_sequence.tolist(), problem.constraint_token.tolist(), strict=True)
    return Certificate(
        problem_hash=problem.hash,
        bits=bits,
        constraints=tuple(pairs),
        status=tuple(status),
        dual=tuple(duals),
        margins=tuple(mus),
        norm=norm,
        margin=margin,
        independent=independent,
        full_support=full,
    )


def active_set_facts(
    gram: Callable[[list[int], list[int]], fmpz_mat], support: list[int], ties: list[int], inactive: int
) -> tuple[bool, str]:
    """(independent, full_support) of an optimum whose support is independent.

    A tie whose A_t is a combination of the support's can take a positive multiplier from it; so full
    support holds when every tie can, and fails when a constraint is inactive or the dual with its zero is
    unique.
    """
    if not ties:
        return True, "fails" if inactive else "holds"
    active = support + ties
    K = gram(active, active)
    independent = K.rank() == len(active)
    if inactive or independent:
        return independent, "fails"
    p = len(support)
    Kp = fmpz_mat([[K[i, j] for j in range(p)] for i in range(p)])
    cross = fmpz_mat([[K[i, p + t] for t in range(len(ties))] for i in range(p)])
    C = Kp.solve(cross)
    for t in range(len(ties)):
        projected = sum((fmpq(cross[i, t]) * C[i, t] for i in range(p)), fmpq(0))
        if projected != K[p + t, p + t]:
            return False, "unknown"
    return False, "holds"


def _doubt(constraints: IntegerConstraints, values: dict[int, arb], margins: dict[int, arb]) -> str:
    """What keeps balls from proving the KKT conditions, naming the first constraint in question."""

    def name(k: int) -> str:
        return f"({constraints.problem.constraint_sequence[k]}, {constraints.problem.constraint_token[k]})"

    for k, value in values.items():
        if not value > 0:
            return f"the multiplier of {name(k)} {'is negative' if value < 0 else 'cannot be told from 0'}"
    for k, m in margins.items():
        if not m > 1:
            return f"the margin of {name(k)} {'is below 1' if m < 1 else 'cannot be told from 1'}"
    return ""
