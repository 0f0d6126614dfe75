"""Exact algebra: the normal form of a real term, and equality in the fraction field of its atoms.

Part of the trusted base. A normal form is a polynomial over Q in *atoms*: symbols, function values, opaque
sums, inner products of vector symbols, derivatives, inverses. All rewriting below is valid for every value of
the symbols (functions are total, ``inv(0) = 0``):

* sums and products are expanded; sums over an index set are linear, and factors free of the index leave them;
* sums over the naturals below ``t + 1`` split off their last term; a sum of ones over those below t is t;
* inner products are bilinear and symmetric;
* exp(a + b) = exp(a) exp(b); powers of exp(monomial) have rational exponents;
* inv(x y) = inv(x) inv(y), inv(inv(x)) = x, inv(exp(x)) = exp(-x).

Cancelling x inv(x) and squaring sqrt(x) need proofs about x: see ``is_zero``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from theory.proof.terms import (
    Domain,
    Index,
    Node,
    Term,
    Vector,
    diff,
    free,
    open_binder,
    real,
    substitute,
    total,
)

Monomial = tuple[tuple[Term, Fraction], ...]  # atoms with exponents, sorted; negative or broken only for exp
Polynomial = MappingProxyType[Monomial, Fraction]
_Draft = dict[Monomial, Fraction]

ONE: Monomial = ()


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not (a and b):
        return a or b
    powers = dict(a)
    for atom, e in b:
        powers[atom] = powers.get(atom, Fraction(0)) + e
    return tuple(sorted(((x, e) for x, e in powers.items() if e), key=lambda pair: repr(pair[0])))


def _product(p: Iterable[tuple[Monomial, Fraction]], q: Polynomial | _Draft) -> _Draft:
    out: _Draft = {}
    for m1, c1 in p:
        for m2, c2 in q.items():
            m = _times(m1, m2)
            out[m] = out.get(m, Fraction(0)) + c1 * c2
    return {m: c for m, c in out.items() if c}


def _sum(parts: Iterable[Polynomial | _Draft]) -> _Draft:
    out: _Draft = {}
    for p in parts:
        for m, c in p.items():
            out[m] = out.get(m, Fraction(0)) + c
    return {m: c for m, c in out.items() if c}


def _power(p: Polynomial | _Draft, n: int) -> _Draft:
    out: _Draft = {ONE: Fraction(1)}
    for _ in range(n):
        out = _product(out.items(), p)
    return out


def _atom(t: Term, exponent: Fraction | int = 1) -> _Draft:
    return {((t, Fraction(exponent)),): Fraction(1)}


def _monomial_term(m: Monomial) -> Term:
    factors: list[Term] = []
    exponent: list[tuple[Term, Fraction]] = []
    for atom, e in m:
        if atom[:2] == ("fn", "exp"):
            exponent.append((atom[2], e))
        else:
            factors.append(atom if e == 1 else Term(("pow", atom, int(e))))
    if exponent:
        arg = [t if e == 1 else Term(("mul", real(e), t)) for t, e in exponent]
        factors.append(Term(("fn", "exp", arg[0] if len(arg) == 1 else Term(("add", *arg)))))
    if not factors:
        return real(1)
    return factors[0] if len(factors) == 1 else Term(("mul", *factors))


def polynomial_term(p: Polynomial | _Draft) -> Term:
    """The term that a normal form stands for; equal normal forms give the same tuple."""
    parts = []
    for m, c in sorted(p.items(), key=lambda pair: repr(pair[0])):
        t = _monomial_term(m)
        parts.append(real(c) if m == ONE else t if c == 1 else Term(("mul", real(c), t)))
    if not parts:
        return real(0)
    return parts[0] if len(parts) == 1 else Term(("add", *parts))


def canonical(t: Term) -> Term:
    """The term of the normal form of ``t``."""
    return polynomial_term(normal(t))


def monic(p: Polynomial) -> tuple[Fraction, Term]:
    """Leading coefficient, and the canonical term of p divided by it."""
    lead = p[min(p, key=repr)]
    return lead, polynomial_term({m: c / lead for m, c in p.items()})


def _inverse(p: Polynomial) -> _Draft:
    if not p:
        return {}  # inv(0) = 0
    if len(p) > 1:
        lead, rest = monic(p)
        return {((Term(("inv", rest)), Fraction(1)),): 1 / lead}
    ((m, c),) = p.items()
    out: _Draft = {ONE: 1 / c}
    for atom, e in m:
        if atom[:2] == ("fn", "exp"):
            out = _product(out.items(), _atom(atom, -e))
        elif atom[0] == "inv":
            out = _product(out.items(), _power(normal(atom[1]), int(e)))
        else:
            out = _product(out.items(), _atom(Term(("inv", atom)), e))
    return out


def _exponential(p: Polynomial) -> _Draft:
    out: _Draft = {ONE: Fraction(1)}
    for m, c in p.items():
        out = _product(out.items(), _atom(Term(("fn", "exp", _monomial_term(m))), c))
    return out


def _depth_name(t: Node) -> str:
    # A binder is opened under the first name that is not free in it, so that equal terms get equal names.
    taken = {name for _, name in free(t)}
    k = 0
    while f"~~{k}" in taken:
        k += 1
    return f"~~{k}"


def _finite_sum(t: Term) -> _Draft:
    dom: Domain = t[2]
    if dom[0] == "below":
        top: Index = dom[1]
        if top[2] > 0:  # the last term of the sum, split off
            before = Index(("ix", top[1], top[2] - 1))
            last = substitute(t[3], indices={t[1]: before})
            rest = Term(("sum", t[1], Domain(("below", before)), t[3]))
            return _sum([normal(rest), normal(last)])
        if not top[1]:
            return {}
    name = _depth_name(t)
    var = Index(("ix", (name,), 0))
    out: _Draft = {}
    for m, c in normal(open_binder(t, name)).items():
        inside = tuple((a, e) for a, e in m if ("ix", name) in free(a))
        outside = tuple((a, e) for a, e in m if ("ix", name) not in free(a))
        if not inside and dom[0] == "below":
            closed = normal(Term(("real", dom[1])))
        else:
            closed = MappingProxyType(_atom(total(var, dom, _monomial_term(inside))))
        out = _sum([out, _product([(outside, c)], closed)])
    return out


def _inner(u: Vector, v: Vector) -> _Draft:
    if u[0] == "vsym" and v[0] == "vsym":
        a, b = sorted((u, v), key=repr)
        return _atom(Term(("inner", a, b)))
    if u[0] == "vsym" or (v[0] != "vsym" and repr(v) < repr(u)):
        u, v = v, u
    if u[0] == "vadd":
        return _sum(_inner(w, v) for w in u[1:])
    if u[0] == "vscale":
        return _product(normal(u[1]).items(), _inner(u[2], v))
    # u is a vector sum: the sum of the inner products
    name = _depth_name(Term(("inner", u, v)))
    body = Term(("inner", open_binder(u, name), v))
    return dict(normal(total(Index(("ix", (name,), 0)), u[2], body)))


def _derivative(t: Term) -> _Draft:
    x = Term(("sym", _depth_name(t)))
    body = substitute(t[2], reals={t[1]: ((), x)})
    return _atom(diff(x, canonical(body), canonical(t[3])))


@lru_cache(maxsize=200_000)
def normal(t: Term) -> Polynomial:
    """The normal form of a term."""
    head = t[0]
    draft: _Draft
    if head == "num":
        draft = {ONE: Fraction(t[1])} if t[1] else {}
    elif head == "add":
        draft = _sum(normal(c) for c in t[1:])
    elif head == "mul":
        draft = {ONE: Fraction(1)}
        for c in t[1:]:
            draft = _product(draft.items(), normal(c))
    elif head == "pow":
        draft = _power(normal(t[1]), t[2])
    elif head == "inv":
        draft = _inverse(normal(t[1]))
    elif head == "real":
        ix: Index = t[1]
        names = [_atom(Term(("real", Index(("ix", (v,), 0))))) for v in ix[1]]
        draft = _sum([*names, {ONE: Fraction(ix[2])}])
    elif head == "sum":
        draft = _finite_sum(t)
    elif head == "inner":
        draft = _inner(t[1], t[2])
    elif t[:2] == ("fn", "exp"):
        draft = _exponential(normal(t[2]))
    elif head == "fn":
        draft = _atom(Term((head, t[1], *map(canonical, t[2:]))))
    elif head == "diff":
        draft = _derivative(t)
    elif head == "sym":
        draft = _atom(t)
    else:
        raise ValueError(f"not a real term: {t!r}")
    return MappingProxyType(draft)


def is_zero(t: Term, nonzero: Iterable[Term] = (), nonnegative: Iterable[Term] = ()) -> bool:
    """Whether t = 0 in the fraction field, given terms proved nonzero (may be cancelled) or nonnegative.

    A False means "not shown", never "shown nonzero".
    """
    return not cleared([t], nonzero, nonnegative)[0]


def cleared(terms: Sequence[Term], nonzero: Iterable[Term], nonnegative: Iterable[Term]) -> list[_Draft]:
    """The normal forms of the terms, all times one product of nonzero divisors that they hold.

    ``inv(b)`` is multiplied out only for b in ``nonzero`` (or a factor of one), ``sqrt(b)^2`` becomes b only
    for b in ``nonnegative``.
    """
    cancel: dict[Term, Polynomial] = {}
    for b in nonzero:
        p = normal(b)
        if len(p) > 1:
            rest = monic(p)[1]
            cancel[Term(("inv", rest))] = normal(rest)
        elif p:
            cancel |= {Term(("inv", atom)): normal(atom) for atom, _ in next(iter(p))}
    roots = {Term(("fn", "sqrt", canonical(b))): normal(b) for b in nonnegative}
    drafts = [_square_roots(normal(t), roots) for t in terms]
    while True:
        divisor = next((a for p in drafts for m in p for a, _ in m if a in cancel), None)
        if divisor is None:
            return drafts
        degree = max(int(dict(m).get(divisor, 0)) for p in drafts for m in p)
        lifted = []
        for draft in drafts:
            parts = []
            for m, c in draft.items():
                kept = tuple((a, e) for a, e in m if a != divisor)
                parts.append(
                    _product([(kept, c)], _power(cancel[divisor], degree - int(dict(m).get(divisor, 0))))
                )
            lifted.append(_square_roots(_sum(parts), roots))
        drafts = lifted


def _square_roots(p: Polynomial | _Draft, roots: dict[Term, Polynomial]) -> _Draft:
    out: _Draft = dict(p)
    while True:
        hit = next(((m, a, e) for m in out for a, e in m if a in roots and e >= 2), None)
        if hit is None:
            return out
        m, a, e = hit
        c = out.pop(m)
        rest = _times(tuple((b, k) for b, k in m if b != a), ((a, e % 2),) if e % 2 else ONE)
        out = _sum([out, _product([(rest, c)], _power(roots[a], int(e // 2)))])
