"""Comfort around the kernel: nothing here is trusted, everything here ends in kernel rules.

``follows`` looks for the multipliers of ``combine`` by linear programming. ``save_certificates`` writes what
was found to ``certificates.json``, from where it is replayed: verifying then needs no search, and gives the
same proof on every machine.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from numerics.errors import InputError
from theory.proof import kernel
from theory.proof.kernel import KernelError, Proved, assume, combine
from theory.proof.normal import Monomial, cleared
from theory.proof.terms import (
    Formula,
    Index,
    Node,
    Term,
    TermLike,
    Vector,
    below,
    eq,
    exp,
    free,
    index,
    inner,
    inv,
    log,
    maximum,
    minimum,
    norm,
    number,
    real,
    symbol,
    total,
)

STORE = Path(__file__).with_name("certificates.json")
Multiplier = int | Fraction | Term | Proved


# --- small steps -------------------------------------------------------------------------------------------


def zero() -> Term:
    """The term 0."""
    return real(0)


def weak(claim: Proved) -> Proved:
    """From a < b or a = b, a <= b."""
    a, b = claim.conclusion[1:]
    return combine(a <= b, [(1, claim)])


def equation(
    target: Formula, *, nonzero: Sequence[Proved] = (), nonnegative: Sequence[Proved] = ()
) -> Proved:
    """An identity, by exact algebra."""
    return combine(target, [], nonzero=list(nonzero), nonnegative=list(nonnegative))


def chain(*claims: Proved) -> Proved:
    """From a <= b, b <= c, ... the claim a <= c; strict if one link is, an equation if all are."""
    a, b = claims[0].conclusion[1], claims[-1].conclusion[2]
    heads = {c.conclusion[0] for c in claims}
    head = "lt" if "lt" in heads else "le" if "le" in heads else "eq"
    return combine(Formula((head, a, b)), [(1, c) for c in claims])


def restate(target: Formula, claim: Proved, **side: Any) -> Proved:
    """The same inequality written differently (equal by exact algebra)."""
    return combine(target, [(1, claim)], **side)


def scale(by: Proved | int | Fraction, claim: Proved) -> Proved:
    """From a <= b and 0 <= m, m a <= m b; ``by`` is a number or the claim 0 <= m (0 < m)."""
    m: Term = by.conclusion[2] if isinstance(by, Proved) else real(by)
    a, b = claim.conclusion[1:]
    strict = claim.conclusion[0] == "lt" and (not isinstance(by, Proved) or by.conclusion[0] == "lt")
    return combine(m * a < m * b if strict else m * a <= m * b, [(by, claim)])


def product_nonnegative(p: Proved, q: Proved) -> Proved:
    """From 0 <= a and 0 <= b, 0 <= a b; strict if both are."""
    a, b = p.conclusion[2], q.conclusion[2]
    strict = p.conclusion[0] == q.conclusion[0] == "lt"
    return combine(0 < a * b if strict else 0 <= a * b, [(p, q)])


def inverse_order(order: Proved, positive: Proved) -> Proved:
    """From 0 < a and a <= b, inv(b) <= inv(a)."""
    a, b = order.conclusion[1:]
    b_positive = combine(0 < b, [(1, positive), (1, order)])
    both = product_nonnegative(kernel.inverse_positive(positive), kernel.inverse_positive(b_positive))
    return combine(inv(b) <= inv(a), [(weak(both), order)], nonzero=[positive, b_positive])


def everywhere(claim: Proved, *at: Index | tuple[Index, Proved | None]) -> Proved:
    """Specialize nested universal claims in turn; an index may come with the proof that it lies there."""
    for step in at:
        i, inside = step if type(step) is tuple and isinstance(step[0], Index) else (step, None)
        claim = kernel.specialize(claim, i, inside)
    return claim


# --- norms -------------------------------------------------------------------------------------------------


def norm_nonnegative(u: Vector) -> Proved:
    """0 <= ||u||."""
    return kernel.sqrt_nonnegative(kernel.inner_nonnegative(u))


def norm_squared(u: Vector) -> Proved:
    """||u||^2 = <u, u>."""
    return combine(eq(norm(u) ** 2, inner(u, u)), [], nonnegative=[kernel.inner_nonnegative(u)])


def square_root_order(squares: Proved, nonnegative: Proved) -> Proved:
    """From x^2 <= y^2 (both written with ``** 2``) and 0 <= y, x <= y."""
    x, y = squares.conclusion[1][1], squares.conclusion[2][1]
    low = assume(x <= y)
    high = assume(y < x)
    # y < x with 0 <= y gives y^2 < x^2: (x - y)(x + y) > 0.
    sum_positive = combine(0 < x + y, [(1, high), (2, nonnegative)])
    strict = combine(y**2 < x**2, [(sum_positive, high)])
    contradiction = combine(zero() < zero(), [(1, strict), (1, squares)])
    return kernel.cases(low, kernel.absurd(contradiction, x <= y), x, y)


# --- exponentials and logarithms ---------------------------------------------------------------------------


def unused(*nodes: Node | Proved, stem: str = "x") -> str:
    """The first of x', x'', ... that is free in none of the terms, claims and hypotheses."""
    parts = [f for n in nodes for f in ((n.conclusion, *n.hypotheses) if isinstance(n, Proved) else (n,))]
    taken = {name for f in parts for _, name in free(f)}
    return next(name for k in itertools.count(1) if (name := stem + "'" * k) not in taken)


def exp_monotone(order: Proved) -> Proved:
    """From a <= b, exp(a) <= exp(b)."""
    x = symbol(unused(order))
    return kernel.monotone(weak(kernel.exp_positive(x)), order, x, exp(x))


def log_monotone(order: Proved, positive: Proved) -> Proved:
    """From 0 < a and a <= b, log(a) <= log(b)."""
    a = order.conclusion[1]
    x = symbol(unused(order, positive))
    x_positive = combine(0 < x, [(1, positive), (1, assume(a <= x))])
    slope = weak(kernel.inverse_positive(x_positive))
    return kernel.monotone(slope, order, x, log(x), [x_positive])


def exp_tangent(t: TermLike) -> Proved:
    """1 + t <= exp(t)."""
    t = real(t)
    x = symbol(unused(t))
    one = combine(exp(zero()) <= real(1))
    body = exp(x) - 1 - x
    slope = exp(x) - 1
    target = 1 + t <= exp(t)
    up = kernel.monotone(
        restate(0 <= slope, chain(combine(real(1) <= exp(zero())), exp_monotone(assume(zero() <= x)))),
        assume(zero() <= t), x, body,
    )  # fmt: skip
    down = kernel.monotone(
        restate(slope <= 0, chain(exp_monotone(assume(x <= zero())), one)),
        weak(assume(t < zero())), x, body,
    )  # fmt: skip
    return kernel.cases(restate(target, up), restate(target, down), zero(), t)


def log_tangent(positive: Proved) -> Proved:
    """From 0 < b, log(b) <= b - 1."""
    b = positive.conclusion[2]
    return combine(log(b) <= b - 1, [(1, exp_tangent(log(b))), (1, kernel.exp_log(positive))])


def log_product(p: Proved, q: Proved) -> Proved:
    """From 0 < a and 0 < b, log(a b) = log(a) + log(b)."""
    a, b = p.conclusion[2], q.conclusion[2]
    hole = symbol(unused(a, b))
    joined = combine(
        eq(exp(log(a) + log(b)), a * b), [(exp(log(b)), kernel.exp_log(p)), (a, kernel.exp_log(q))]
    )
    same = kernel.congruence(joined, log(hole), hole)
    return combine(eq(log(a * b), log(a) + log(b)), [(-1, same), (1, kernel.log_exp(log(a) + log(b)))])


def max_of(order: Proved) -> Proved:
    """From a <= b, max(a, b) = b (alias of the axiom, for symmetry with ``min_of``)."""
    return kernel.max_is(order)


def min_of(order: Proved) -> Proved:
    """From a <= b, min(a, b) = a."""
    a, b = order.conclusion[1:]
    return combine(eq(minimum(a, b), a), [(1, kernel.min_is_minus_max(a, b)), (-1, kernel.max_is(order))])


def min_below(a: TermLike, b: TermLike) -> tuple[Proved, Proved]:
    """min(a, b) <= a and min(a, b) <= b."""
    top_a, top_b = max_above(a, b)
    a, b = real(a), real(b)
    split = kernel.min_is_minus_max(a, b)
    return (
        combine(minimum(a, b) <= a, [(1, split), (1, top_b)]),
        combine(minimum(a, b) <= b, [(1, split), (1, top_a)]),
    )


def max_above(a: TermLike, b: TermLike) -> tuple[Proved, Proved]:
    """a <= max(a, b) and b <= max(a, b)."""
    a, b = real(a), real(b)
    m = maximum(a, b)
    low, high = assume(a <= b), weak(assume(b < a))
    is_b = kernel.max_is(low)
    is_a = combine(Formula(("eq", m, a)), [(1, kernel.max_commutes(a, b)), (1, kernel.max_is(high))])
    a_low = combine(a <= m, [(1, low), (-1, is_b)])
    a_high = combine(a <= m, [(-1, is_a)])
    b_low = combine(b <= m, [(-1, is_b)])
    b_high = combine(b <= m, [(1, high), (-1, is_a)])
    return kernel.cases(a_low, a_high, a, b), kernel.cases(b_low, b_high, a, b)


# --- search ------------------------------------------------------------------------------------------------


def _multipliers(
    wanted: dict[Monomial, Fraction], given: list[dict[Monomial, Fraction]], free: list[bool]
) -> list[Fraction] | None:
    """Exact lambda with sum lambda_j given_j = wanted, lambda_j >= 0 unless free; None when there is none."""
    import numpy as np
    from flint import fmpq, fmpq_mat
    from scipy.optimize import linprog

    rows = sorted({m for p in [wanted, *given] for m in p}, key=repr)
    a = np.array([[float(p.get(m, 0)) for p in given] for m in rows])
    b = np.array([float(wanted.get(m, 0)) for m in rows])
    if not rows:
        return [Fraction(0)] * len(given)
    bounds = [(None, None) if f else (0, None) for f in free]
    if not given:
        return None
    found = linprog(np.ones(len(given)), A_eq=a, b_eq=b, bounds=bounds, method="highs-ds")
    if found.status != 0 or found.x is None:
        return None
    support = [j for j, x in enumerate(found.x) if abs(x) > 1e-9]

    def q(x: Fraction) -> fmpq:
        return fmpq(x.numerator, x.denominator)

    mat = fmpq_mat(
        [[q(given[j].get(m, Fraction(0))) for j in support] + [q(wanted.get(m, Fraction(0)))] for m in rows]
    )
    reduced, rank = mat.rref()
    out = [Fraction(0)] * len(given)
    for r in range(rank):
        lead = next(c for c in range(len(support) + 1) if reduced[r, c] != 0)
        if lead == len(support):
            return None
        value = reduced[r, len(support)]
        out[support[lead]] = Fraction(int(value.p), int(value.q))
    return out if all(f or x >= 0 for x, f in zip(out, free, strict=True)) else None


class _Certificates:
    """The stored multipliers, by a digest of the question they answer."""

    def __init__(self) -> None:
        self.search = False  # find anew what is stored
        self.found: dict[str, list[str]] = {}  # every question asked, with its answer
        self.stored: dict[str, list[str]] | None = None

    def load(self) -> dict[str, list[str]]:
        if self.stored is None:
            try:
                stored = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
            except ValueError as error:
                raise InputError(f"{STORE}: not JSON ({error}); write it anew with --search") from None
            rows = stored.values() if type(stored) is dict else [None]
            if not all(type(row) is list and all(type(x) is str for x in row) for row in rows):
                raise InputError(f"{STORE}: not a table of multipliers; write it anew with --search")
            self.stored = stored
        return self.stored


CERTIFICATES = _Certificates()


def save_certificates() -> Path:
    """Write the multipliers of every question asked in this process, in place of the stored ones.

    Raises:
        OSError: the folder cannot be written; the old file is then as it was.
    """
    table = dict(sorted(CERTIFICATES.found.items()))
    text = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items()) + "\n}\n"
    partial = STORE.with_suffix(f".{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, STORE)
    finally:
        partial.unlink(missing_ok=True)
    CERTIFICATES.stored = table
    return STORE


def digest_of(*question: object) -> str:
    """The name under which the answer to a question is stored; the same on every machine."""
    return hashlib.sha256(repr(question).encode()).hexdigest()[:20]


def follows(
    target: Formula,
    *premises: Proved | tuple[Multiplier, Proved],
    nonzero: Sequence[Proved] = (),
    nonnegative: Sequence[Proved] = (),
) -> Proved:
    """Prove ``target`` as a combination of the premises, finding rational factors by linear programming.

    A premise may be a pair (multiplier, claim) for a product; the factor found multiplies the pair. Factors
    stored for this very question are used as they are, unless a search was asked for.

    Raises:
        KernelError: no combination exists (or none was found); the message lists the premises. Or the stored
            factors do not prove the target: they are not searched for anew unasked.
    """
    pairs: list[tuple[Multiplier, Proved]] = [p if isinstance(p, tuple) else (1, p) for p in premises]
    asked = [(m.conclusion if isinstance(m, Proved) else m, e.conclusion) for m, e in pairs]
    digest = digest_of(target, asked, [z.conclusion for z in nonzero], [z.conclusion for z in nonnegative])
    known = None if CERTIFICATES.search else CERTIFICATES.load().get(digest)
    replayed = known is not None
    if known is None:
        terms = []
        for m, e in pairs:
            factor = m.conclusion[2] - m.conclusion[1] if isinstance(m, Proved) else real(m)
            terms.append(factor * (e.conclusion[2] - e.conclusion[1]))
        regular = [z.conclusion[2] - z.conclusion[1] for z in nonzero]
        squares = [z.conclusion[2] - z.conclusion[1] for z in nonnegative]
        wanted, *given = cleared([target[2] - target[1], *terms], regular, squares)
        factors = _multipliers(wanted, given, [e.conclusion[0] == "eq" for _, e in pairs])
        if factors is None:
            listing = "".join(f"\n  {e.conclusion!r}" for _, e in pairs)
            raise KernelError(f"no combination found for {target!r} from{listing}")
        known = [str(x) for x in factors]
    try:
        claim = _combined(target, known, pairs, nonzero, nonnegative)
    except (KernelError, ValueError, ArithmeticError) as error:
        if not replayed:
            raise
        message = f"the stored factors do not prove {target!r} ({error}); find them anew with --search"
        raise KernelError(message) from error
    CERTIFICATES.found[digest] = known
    return claim


def _combined(
    target: Formula,
    factors: Sequence[str],
    pairs: Sequence[tuple[Multiplier, Proved]],
    nonzero: Sequence[Proved],
    nonnegative: Sequence[Proved],
) -> Proved:
    parts: list[tuple[Any, Proved]] = []
    for x, (m, e) in zip(map(Fraction, factors), pairs, strict=True):
        if not x:
            continue
        if isinstance(m, Proved):
            a, b = m.conclusion[1:]
            scaled = x * (b - a)
            if e.conclusion[0] == "eq":
                parts.append((scaled, e))
            else:
                strict = m.conclusion[0] == "lt"
                parts.append((combine(0 < scaled if strict else 0 <= scaled, [(x, m)]), e))
        else:
            parts.append((m * x if isinstance(m, Term) else Fraction(m) * x, e))
    return combine(target, parts, nonzero=list(nonzero), nonnegative=list(nonnegative))


# --- numbers -----------------------------------------------------------------------------------------------


def one_positive() -> Proved:
    """0 < 1."""
    return combine(0 < real(1), [(1, kernel.exp_positive(zero()))])


# --- logarithms of quotients, telescoping sums -------------------------------------------------------------


def log_quotient(p: Proved, q: Proved) -> Proved:
    """From 0 < a and 0 < b, log(a/b) = log(a) - log(b)."""
    a, b = p.conclusion[2], q.conclusion[2]
    hole = symbol(unused(a, b))
    ratio = product_nonnegative(p, kernel.inverse_positive(q))
    whole = kernel.congruence(equation(eq(a / b * b, a), nonzero=[q]), log(hole), hole)
    split = log_product(ratio, q)
    return combine(eq(log(a / b), log(a) - log(b)), [(-1, split), (1, whole)])


def log_secant(p: Proved, q: Proved) -> Proved:
    """From 0 < a and 0 < b, log(b) - log(a) <= (b - a)/a."""
    a, b = p.conclusion[2], q.conclusion[2]
    ratio = product_nonnegative(q, kernel.inverse_positive(p))
    above = log_tangent(ratio)
    split = log_quotient(q, p)
    return combine(log(b) - log(a) <= (b - a) / a, [(1, above), (-1, split)], nonzero=[p])


def min_positive(p: Proved, q: Proved) -> Proved:
    """From 0 < a and 0 < b, 0 < min(a, b): a b/(a + b) is positive and at most both."""
    a, b = p.conclusion[2], q.conclusion[2]
    both = combine(0 < a + b, [(1, p), (1, q)])
    least = a * b / (a + b)
    inverse = kernel.inverse_positive(both)
    positive = product_nonnegative(product_nonnegative(p, q), inverse)
    below_a = combine(least <= a, [(weak(product_nonnegative(weak(p), weak(inverse))), p)], nonzero=[both])
    below_b = combine(least <= b, [(weak(product_nonnegative(weak(q), weak(inverse))), q)], nonzero=[both])
    return combine(0 < minimum(a, b), [(1, positive), (1, at_most_min(below_a, below_b))])


def telescoped(f: Callable[[Index], Term], t: Index) -> Proved:
    """The sum of f(s + 1) - f(s) over s < t is f(t) - f(0), by induction over t."""
    s = index(unused(f(t), t, stem="s"))
    k = index(unused(f(t), t, stem="k"))

    def claim(k: Index) -> Formula:
        return eq(total(s, below(k), f(s + 1) - f(s)), f(k) - f(number(0)))

    step = restate(claim(k + 1), assume(claim(k)))
    return kernel.specialize(kernel.induction(equation(claim(number(0))), step, k), t)


# --- minima ------------------------------------------------------------------------------------------------


def at_most_min(p: Proved, q: Proved) -> Proved:
    """From c <= a and c <= b, c <= min(a, b)."""
    c, a = p.conclusion[1:]
    b = q.conclusion[2]
    target = c <= minimum(a, b)
    low = combine(target, [(1, p), (-1, min_of(assume(a <= b)))])
    swapped = kernel.max_is(weak(assume(b < a)))
    least = combine(
        eq(minimum(a, b), b),
        [(1, kernel.min_is_minus_max(a, b)), (-1, kernel.max_commutes(a, b)), (-1, swapped)],
    )
    return kernel.cases(low, combine(target, [(1, q), (-1, least)]), a, b)


def max_at_most(p: Proved, q: Proved) -> Proved:
    """From a <= c and b <= c, max(a, b) <= c."""
    a, c = p.conclusion[1:]
    b = q.conclusion[1]
    target = maximum(a, b) <= c
    low = combine(target, [(1, q), (1, kernel.max_is(assume(a <= b)))])
    swapped = kernel.max_is(weak(assume(b < a)))
    high = combine(target, [(1, p), (1, kernel.max_commutes(a, b)), (1, swapped)])
    return kernel.cases(low, high, a, b)
