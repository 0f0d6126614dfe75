"""A small checker of max-margin certificates: no code of the solver, no trust in any number of the file.

It reads the problem's floats as exact rationals, forms the integers it needs anew, and accepts a
certificate only if every number in it is the one correct number: `python -m numerics.maxmargin.checker
PROBLEM.npz CERTIFICATE` exits with 0 when it holds, 1 when it does not, 2 when a file cannot be read.

Why this suffices. (optimal) If A_P, the constraints of positive multiplier alpha, satisfy <A_k, M> = 1 with
M = sum alpha_k A_k, and all other margins are at least 1, then M is the solution: these are the KKT
conditions of a convex problem. (infeasible) If sum w_k A_k = 0 with w >= 0 not all zero, then no W has all
<A_k, W> >= 1. (spanned) Constraints lie in a space of dimension rank(their differences) rank(their
queries); if all but the first are that many and independent, the first is a combination of them, here with
negative coefficients. (bound) If W has all margins at least 1, then sum w_k <= <sum w_k A_k, W> <= ||sum
w_k A_k|| ||W||.
"""

from __future__ import annotations

import os
import sys
from math import gcd
from typing import Any

from flint import arb, arb_mat, ctx, fmpq, fmpz_mat

from numerics.errors import CertificationError, InputError
from numerics.files import read_json
from numerics.problem import Problem

_PRECISION_LIMIT = 4096


def check(problem: Problem, content: Any) -> str:
    """Verify a certificate's parsed content against a problem; give its kind.

    Raises CertificationError with the first thing that is wrong, or that could not be decided.
    """
    kinds = {
        "optimal": _check_optimal,
        "infeasible": _check_infeasible,
        "spanned": _check_spanned,
        "bound": _check_bound,
    }
    _demand(isinstance(content, dict), "not a certificate")
    kind = content.get("kind")
    _demand(isinstance(kind, str) and kind in kinds, f"unknown kind {kind!r}")
    _demand(content.get("format") == "attnrates-maxmargin-certificate", "unknown format")
    _demand(_is_integer(content.get("version")) and content["version"] == 1, "unknown version")
    _demand(content.get("problem") == problem.hash, "the certificate is for another problem")
    kinds[kind](problem, content)
    return str(kind)


def _check_optimal(problem: Problem, content: dict[str, Any]) -> None:
    own = {"bits", "norm", "margin", "independent", "full_support", "constraints"}
    _demand(set(content) == own | {"format", "version", "kind", "problem"}, "wrong fields")
    bits, rows = content["bits"], content["constraints"]
    _demand(_is_integer(bits) and 8 <= bits <= 1024, "bits out of range")
    _demand(
        isinstance(rows, list) and len(rows) == problem.n_constraints, "not one entry for each constraint"
    )
    for k, row in enumerate(rows):
        _demand(
            isinstance(row, dict) and set(row) == {"sequence", "token", "status", "dual", "margin"},
            "wrong row",
        )
        _demand_constraint(problem, k, row)
        _demand(row["status"] in ("support", "active", "inactive"), f"constraint {k}: unknown status")
        if row["status"] != "support":
            _demand(_pair(row["dual"]) == (0, 0), f"constraint {k}: a multiplier off the support is not zero")
        if row["status"] != "inactive":
            _demand(
                _pair(row["margin"]) == (1 << (bits - 1), 1 - bits), f"constraint {k}: its margin is not 1"
            )
    support = [k for k, row in enumerate(rows) if row["status"] == "support"]
    ties = [k for k, row in enumerate(rows) if row["status"] == "active"]
    inactive = [k for k, row in enumerate(rows) if row["status"] == "inactive"]
    _demand(bool(support), "no constraint has a positive multiplier")

    integers = _Integers(problem)
    K = integers.gram(support, support)
    independent, full = _check_ties(integers, K, support, ties, bool(inactive))
    _demand(content["independent"] is independent, "independence of the active constraints is misstated")
    _demand(content["full_support"] == full, "full support is misstated")
    others = integers.gram(inactive, support) if inactive else None
    precision = bits + 64
    while True:
        with ctx.workprec(precision):
            try:
                y = arb_mat(K).solve(arb_mat(len(support), 1, [1] * len(support)))
                unit = arb(2) ** (-2 * integers.exponent)
                alpha = [y[j, 0] * unit for j in range(len(support))]
                norm = sum(alpha, arb(0)).sqrt()
                mu = (arb_mat(others) * y).entries() if others is not None else []
                claims = [
                    (x, rows[k]["dual"], f"multiplier {k}") for k, x in zip(support, alpha, strict=True)
                ]
                claims += [(x, rows[k]["margin"], f"margin {k}") for k, x in zip(inactive, mu, strict=True)]
                claims += [(norm, content["norm"], "norm"), (1 / norm, content["margin"], "g*")]
                undecided = [name for x, stated, name in claims if not _rounds_to(x, stated, bits, name)]
                undecided += [
                    f"margin {k}" for k, x in zip(inactive, mu, strict=True) if not _above_one(x, k)
                ]
            except ZeroDivisionError:
                undecided = ["the support's independence"]
        if not undecided:
            return
        precision *= 2
        _demand(precision <= _PRECISION_LIMIT, f"not decided at {_PRECISION_LIMIT} bits: {undecided[0]}")


def _check_ties(
    integers: _Integers, K: fmpz_mat, support: list[int], ties: list[int], inactive: bool
) -> tuple[bool, str]:
    """Prove the margins of exactly 1 off the support; give the facts (independent, full support)."""
    if not ties:
        return True, "fails" if inactive else "holds"
    p = len(support)
    cross = integers.gram(support, ties)
    _demand(K.rank() == p, "the support is dependent")
    y = K.solve(fmpz_mat(p, 1, [1] * p))
    C = K.solve(cross)
    spanned = []
    for j, k in enumerate(ties):
        _demand(sum((cross[i, j] * y[i, 0] for i in range(p)), fmpq(0)) == 1, f"margin {k} is not exactly 1")
        own = integers.gram([k], [k])[0, 0]
        spanned.append(sum((cross[i, j] * C[i, j] for i in range(p)), fmpq(0)) == own)
    active = support + ties
    independent = integers.gram(active, active).rank() == len(active)
    if inactive or independent:
        return independent, "fails"
    return False, "holds" if all(spanned) else "unknown"


def _check_infeasible(problem: Problem, content: dict[str, Any]) -> None:
    _demand(set(content) == {"format", "version", "kind", "problem", "beta"}, "wrong fields")
    support, weights = _beta(problem, content["beta"])
    _positive_integers(weights)
    _demand(_square(problem, support, weights)[0] == 0, "the constraints do not cancel")


def _check_spanned(problem: Problem, content: dict[str, Any]) -> None:
    _demand(set(content) == {"format", "version", "kind", "problem", "bits", "beta"}, "wrong fields")
    bits = content["bits"]
    _demand(_is_integer(bits) and 8 <= bits <= 1024, "bits out of range")
    support, weights = _beta(problem, content["beta"])
    pairs = [_pair(weight) for weight in weights]
    _demand(pairs[0] == (1 << (bits - 1), 1 - bits), "the first weight is not 1")
    first, others = support[0], support[1:]
    integers = _Integers(problem)
    differences, queries = integers.factors(support)
    _demand(differences.rank() * queries.rank() == len(others), "the constraints need not span their space")
    K, column = integers.gram(others, others), integers.gram(others, [first])
    precision = bits + 64
    while True:
        with ctx.workprec(precision):
            try:
                c = arb_mat(K).solve(arb_mat(column)).entries()
                claims = zip(c, pairs[1:], others, strict=True)
                undecided = [k for x, w, k in claims if not _rounds_to(-x, list(w), bits, f"weight {k}")]
            except ZeroDivisionError:
                undecided = others
        if not undecided:
            return
        precision *= 2
        _demand(precision <= _PRECISION_LIMIT, f"not decided at {_PRECISION_LIMIT} bits")


def _check_bound(problem: Problem, content: dict[str, Any]) -> None:
    own = {"bits", "norm_at_least", "beta"}
    _demand(set(content) == own | {"format", "version", "kind", "problem"}, "wrong fields")
    bits = content["bits"]
    _demand(_is_integer(bits) and 8 <= bits <= 1024, "bits out of range")
    support, weights = _beta(problem, content["beta"])
    _positive_integers(weights)
    square, exponent = _square(problem, support, weights)
    _demand(square > 0, "the combination vanishes: this is a case of infeasibility")
    with ctx.workprec(2 * bits + 128):
        bound = sum(weights) / arb(square).sqrt() * arb(2) ** (-exponent)
        _demand(_rounds_to(bound, content["norm_at_least"], bits, "norm_at_least"), "the bound is undecided")


def _beta(problem: Problem, entries: Any) -> tuple[list[int], list[Any]]:
    _demand(isinstance(entries, list) and bool(entries), "no weights")
    support: list[int] = []
    weights: list[Any] = []
    for entry in entries:
        fields = {"constraint", "sequence", "token", "weight"}
        _demand(isinstance(entry, dict) and set(entry) == fields, "a weight has wrong fields")
        k, weight = entry["constraint"], entry["weight"]
        _demand(_is_integer(k) and 0 <= k < problem.n_constraints, "no such constraint")
        _demand_constraint(problem, k, entry)
        _demand(not support or support[-1] < k, "the constraints are not in ascending order")
        support.append(k)
        weights.append(weight)
    return support, weights


def _positive_integers(weights: list[Any]) -> None:
    _demand(all(_is_integer(w) and w > 0 for w in weights), "a weight is not a positive integer")
    _demand(gcd(*weights) == 1, "the weights have a common factor")


def _square(problem: Problem, support: list[int], weights: list[int]) -> tuple[Any, int]:
    """(s, e) with ||sum w_k A_k||^2 = s 4^e exactly."""
    integers = _Integers(problem)
    column = fmpz_mat(len(weights), 1, weights)
    return (column.transpose() * integers.gram(support, support) * column)[0, 0], integers.exponent


class _Integers:
    """A_k = 2^exponent times integers, from the problem's floats."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        scale = [
            max((float(x).as_integer_ratio()[1] for x in array.flat), default=1)
            for array in (problem.tokens, problem.queries)
        ]
        self._token_scale, self._query_scale = scale
        self.exponent = -(scale[0].bit_length() - 1) - (scale[1].bit_length() - 1)

    def gram(self, rows: list[int], columns: list[int]) -> fmpz_mat:
        """4^-exponent <A_k, A_l>."""
        d1, z1 = self.factors(rows)
        d2, z2 = self.factors(columns)
        tokens, queries = d1 * d2.transpose(), z1 * z2.transpose()
        products = [a * b for a, b in zip(tokens.entries(), queries.entries(), strict=True)]
        return fmpz_mat(len(rows), len(columns), products)

    def factors(self, which: list[int]) -> tuple[fmpz_mat, fmpz_mat]:
        """Integer differences and queries, one row for each of these constraints."""
        p = self.problem
        differences, queries = [], []
        for k in which:
            i = p.constraint_sequence[k]
            best = _scaled(p.tokens[i, p.optimal[i]], self._token_scale)
            other = _scaled(p.tokens[i, p.constraint_token[k]], self._token_scale)
            differences.append([a - b for a, b in zip(best, other, strict=True)])
            queries.append(_scaled(p.queries[i], self._query_scale))
        return fmpz_mat(differences), fmpz_mat(queries)


def _scaled(row: Any, scale: int) -> list[int]:
    ratios = (float(x).as_integer_ratio() for x in row)
    return [numerator * (scale // denominator) for numerator, denominator in ratios]


def _rounds_to(x: arb, stated: Any, bits: int, name: str) -> bool:
    """True if x surely rounds to the stated number, False if undecided; an error if it surely does not."""
    mantissa, exponent = _pair(stated)
    _demand(mantissa.bit_length() == bits and mantissa > 0, f"{name}: not a positive number of {bits} bits")
    quarter = 1 if mantissa == 1 << (bits - 1) else 2  # the spacing halves below a power of two
    low, high = arb((4 * mantissa - quarter, exponent - 2)), arb((4 * mantissa + 2, exponent - 2))
    _demand(not (x < low or x > high), f"{name} is not the stated number")
    return bool(x > low) and bool(x < high)


def _above_one(x: arb, k: int) -> bool:
    _demand(not x < 1, f"the margin of constraint {k} is below 1")
    return bool(x > 1)


def _pair(value: Any) -> tuple[int, int]:
    _demand(
        isinstance(value, list) and len(value) == 2 and all(map(_is_integer, value)), "not a rounded number"
    )
    _demand(abs(value[1]) <= 1 << 20, "an exponent out of range")
    return value[0], value[1]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _demand_constraint(problem: Problem, k: int, row: dict[str, Any]) -> None:
    true = [int(problem.constraint_sequence[k]), int(problem.constraint_token[k])]
    stated = [row["sequence"], row["token"]]
    _demand(
        all(map(_is_integer, stated)) and stated == true, f"constraint {k} is not that sequence and token"
    )


def _demand(holds: bool, reason: str) -> None:
    if not holds:
        raise CertificationError(f"certificate rejected: {reason}")


def check_file(problem: str | os.PathLike[str], certificate: str | os.PathLike[str]) -> str:
    """Verify a certificate file against a problem file. Raises InputError for unreadable files."""
    return check(Problem.load(problem), read_json(certificate))


def main(arguments: list[str]) -> int:
    """Run `python -m numerics.maxmargin.checker PROBLEM.npz CERTIFICATE.json`."""
    if len(arguments) != 2:
        print("usage: python -m numerics.maxmargin.checker PROBLEM.npz CERTIFICATE.json", file=sys.stderr)
        return 2
    try:
        print(f"verified: {check_file(*arguments)}")
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except CertificationError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
