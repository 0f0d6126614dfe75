"""Polynomial inequalities by sums of squares: found by semidefinite programming, checked in exact rationals.

Outside the trusted base. To prove 0 <= p from premises 0 <= g_j, ``sum_of_squares`` looks for
p = sum_i d_i q_i^2 + sum_j g_j sum_i d_ij q_ij^2 with rational d >= 0 and polynomials q. What the solver
gives in floats is rounded, corrected exactly, and split into squares by an exact LDL' decomposition; the
kernel sees squares, products with the premises, and an identity (rules ``square`` and ``combine``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from theory.proof import kernel
from theory.proof.kernel import KernelError, Proved, combine
from theory.proof.normal import Monomial, normal, polynomial_term
from theory.proof.tactics import CERTIFICATES, digest_of, one_positive
from theory.proof.terms import Formula, Term, real

Poly = dict[Monomial, Fraction]
Square = tuple[int, Fraction, Term]  # which premise (0: none), its weight d, the polynomial q
DENOMINATORS = (1, 2, 3, 4, 6, 12, 60, 1 << 10, 1 << 16, 1 << 24)


@dataclass(frozen=True)
class _Block:
    """One Gram matrix: entry (r, c) multiplies ``factor * basis[r] * basis[c]``."""

    factor: Poly
    basis: tuple[Monomial, ...]

    def products(self) -> dict[tuple[int, int], Poly]:
        cells = itertools.combinations_with_replacement(range(len(self.basis)), 2)
        return {(r, c): _times(self.factor, _monomial(self.basis[r], self.basis[c])) for r, c in cells}


def sum_of_squares(target: Formula, *premises: Proved, degree: int | None = None) -> Proved:
    """Prove a polynomial inequality, its atoms taken as variables, from the premises 0 <= g_j (or a <= b).

    ``degree`` bounds the degree of every product (default: that of right - left and the premises, rounded up
    to even). For a strict target a positive constant is split off. The squares found are stored and replayed
    like the factors of ``follows``.

    Raises:
        KernelError: there is no such sum of squares, or rounding destroyed it.
    """
    digest = digest_of("squares", target, [p.conclusion for p in premises], degree)
    known = None if CERTIFICATES.search else CERTIFICATES.load().get(digest)
    gap = target[2] - target[1]
    given = [p.conclusion[2] - p.conclusion[1] for p in premises]
    if known is None:
        known = _search(gap, given, degree, strict=target[0] == "lt")
        if known is None:
            raise KernelError(f"no sum of squares found for {target!r}")
        claim = _checked(target, known, gap, given, premises)
    else:
        try:
            claim = _checked(target, known, gap, given, premises)
        except (KernelError, ValueError, ArithmeticError, LookupError) as error:
            message = f"the stored squares do not prove {target!r} ({error}); find them anew with --search"
            raise KernelError(message) from error
    CERTIFICATES.found[digest] = known
    return claim


def _variables(gap: Term, given: Sequence[Term]) -> list[Term]:
    powers = {pair for t in (gap, *given) for m in normal(t) for pair in m}
    if any(e.denominator != 1 or e < 0 for _, e in powers):
        raise KernelError("sums of squares are of polynomials: no broken or negative powers")
    return sorted({atom for atom, _ in powers}, key=repr)


def _checked(
    target: Formula, known: Sequence[str], gap: Term, given: Sequence[Term], premises: Sequence[Proved]
) -> Proved:
    """Squares written as "premise weight coefficient*exponents ..." to a proved target."""
    atoms = _variables(gap, given)
    parts: list[tuple[Any, Proved]] = []
    for line in known:
        which, weight, *terms = line.split()
        if not terms:  # the constant of a strict target
            parts.append((Fraction(weight), one_positive()))
            continue
        q = real(0)
        for coefficient, exponents in (term.split("*") for term in terms):
            t: Term = real(Fraction(coefficient))
            for atom, e in zip(atoms, map(int, exponents.split(",")), strict=True):
                t = t * atom**e if e else t
            q = q + t
        squared = kernel.square(polynomial_term(normal(q)))
        if int(which):
            scaled = combine(0 <= Fraction(weight) * squared.conclusion[2], [(Fraction(weight), squared)])
            parts.append((scaled, premises[int(which) - 1]))
        else:
            parts.append((Fraction(weight), squared))
    return combine(target, parts)


# --- search ------------------------------------------------------------------------------------------------


def _monomial(*factors: Iterable[tuple[Term, Fraction]]) -> Monomial:
    powers: dict[Term, Fraction] = {}
    for atom, e in itertools.chain(*factors):
        powers[atom] = powers.get(atom, Fraction(0)) + e
    return tuple(sorted(powers.items(), key=lambda pair: repr(pair[0])))


def _times(p: Mapping[Monomial, Fraction], m: Monomial) -> Poly:
    return {_monomial(k, m): c for k, c in p.items()}


def _degree(p: Mapping[Monomial, Fraction]) -> int:
    return max((int(sum(e for _, e in m)) for m in p), default=0)


def _search(gap: Term, given: Sequence[Term], degree: int | None, *, strict: bool) -> list[str] | None:
    atoms = _variables(gap, given)
    wanted = dict(normal(gap))
    factors: list[Poly] = [{(): Fraction(1)}, *(dict(normal(g)) for g in given)]
    highest = degree if degree is not None else max(map(_degree, [wanted, *factors]))
    blocks = []
    for factor in factors:
        half = max(0, (highest + 1) // 2 - (_degree(factor) + 1) // 2)
        basis = tuple(
            _monomial([(a, Fraction(e)) for a, e in zip(atoms, exponents, strict=True) if e])
            for exponents in itertools.product(range(half + 1), repeat=len(atoms))
            if sum(exponents) <= half
        )
        blocks.append(_Block(factor, basis))
    floats = _solve(wanted, blocks, strict=strict)
    if floats is None:
        return None
    for denominator in DENOMINATORS:
        found = _round(wanted, blocks, floats, denominator, strict=strict)
        if found is not None:
            return [_line(square, atoms) for square in found]
    return None


def _solve(wanted: Poly, blocks: Sequence[_Block], *, strict: bool) -> tuple[list[Any], float] | None:
    """Gram matrices in floats, as far inside the cone as they go, and the constant split off."""
    import cvxpy as cp
    import numpy as np

    grams = [cp.Variable((len(b.basis),) * 2, PSD=True) for b in blocks]
    constant = cp.Variable(nonneg=True)
    sums: dict[Monomial, Any] = {(): constant if strict else 0}
    for gram, block in zip(grams, blocks, strict=True):
        for (r, c), product in block.products().items():
            for m, factor in product.items():
                sums[m] = sums.get(m, 0) + (1 if r == c else 2) * float(factor) * gram[r, c]
    if not sums.keys() >= wanted.keys():
        return None
    inside = cp.Variable()
    constraints = [value == float(wanted.get(m, 0)) for m, value in sums.items()]
    constraints += [grams[0] >> inside * np.eye(len(blocks[0].basis)), inside <= 1, constant <= 1]
    problem = cp.Problem(cp.Maximize(inside + (constant if strict else 0)), constraints)
    try:
        problem.solve(solver=cp.CLARABEL)
    except cp.SolverError:
        return None
    if problem.status not in ("optimal", "optimal_inaccurate") or (inside.value or 0) < -1e-6:
        return None
    return [g.value for g in grams], float(constant.value) if strict else 0.0


def _round(
    wanted: Poly, blocks: Sequence[_Block], floats: tuple[list[Any], float], denominator: int, *, strict: bool
) -> list[Square] | None:
    """Exact squares near the float solution, or None when rounding leaves the cone."""
    matrices, constant = floats
    split = Fraction(int(constant / 2 * denominator), denominator) if strict else Fraction(0)
    if strict and split <= 0:
        return None
    exact = [
        {cell: Fraction(round(float(g[cell]) * denominator), denominator) for cell in b.products()}
        for g, b in zip(matrices, blocks, strict=True)
    ]
    rest = dict(wanted)
    rest[()] = rest.get((), Fraction(0)) - split
    for values, block in zip(exact, blocks, strict=True):
        for (r, c), product in block.products().items():
            for m, factor in product.items():
                rest[m] = rest.get(m, Fraction(0)) - (1 if r == c else 2) * factor * values[r, c]
    # what rounding left over goes into the first block, spread evenly over the cells of each monomial
    places: dict[Monomial, list[tuple[int, int]]] = {}
    for cell, product in blocks[0].products().items():
        places.setdefault(next(iter(product)), []).append(cell)
    for m, left in rest.items():
        if left and m not in places:
            return None
        weight = sum(1 if r == c else 2 for r, c in places.get(m, []))
        for cell in places.get(m, []):
            exact[0][cell] += left / weight
    found: list[Square] = [(0, split, real(0))] if strict else []
    for which, (values, block) in enumerate(zip(exact, blocks, strict=True)):
        squares = _ldl(values, block.basis)
        if squares is None:
            return None
        found += [(which, d, q) for d, q in squares]
    return found


def _ldl(
    values: Mapping[tuple[int, int], Fraction], basis: Sequence[Monomial]
) -> list[tuple[Fraction, Term]] | None:
    """sum_rc values[r, c] b_r b_c as sum of d q^2 with d > 0; None when it is not nonnegative definite."""
    n = len(basis)
    a = [[values[min(r, c), max(r, c)] for c in range(n)] for r in range(n)]
    squares = []
    for k in range(n):
        pivot = a[k][k]
        if pivot < 0 or (pivot == 0 and any(a[k])):
            return None
        if pivot:
            row = [x / pivot for x in a[k]]
            squares.append((pivot, polynomial_term({basis[c]: x for c, x in enumerate(row) if x})))
            a = [[a[r][c] - pivot * row[r] * row[c] for c in range(n)] for r in range(n)]
    return squares


def _line(square: Square, atoms: Sequence[Term]) -> str:
    which, weight, q = square
    terms = []
    for m, c in normal(q).items():
        powers = dict(m)
        terms.append(f"{c}*{','.join(str(int(powers.get(a, 0))) for a in atoms)}")
    return " ".join([str(which), str(weight), *terms])
