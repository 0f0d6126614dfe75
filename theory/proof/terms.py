"""The kernel's language: real terms, vectors, indices, domains and formulas.

Part of the trusted base. Every node is an immutable tuple ``(head, *children)``; equality is structural, and
because bound variables are named by their height (below) it is equality up to renaming of bound variables.

Semantics. Every term denotes a real number for *every* assignment of reals, vectors and naturals to its free
symbols: functions are total, ``inv(0) = 0``, and ``log``, ``sqrt``, ``lambertw`` take some unspecified real
value outside their usual domain. So substitution is always sound; what a function means inside its domain
is said by rules and axioms that ask for a proof that the argument lies there.

Vectors live in one real inner-product space. Indices are naturals. ``Domain`` is a named finite set of
naturals, possibly depending on indices (the non-optimal tokens of sequence i), or all naturals below an
index, or all naturals.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn, Self, TypeVar

FUNCTIONS = {"exp": 1, "log": 1, "sqrt": 1, "lambertw": 1, "max": 2, "min": 2}
N = TypeVar("N", bound="Node")
BINDERS = ("sum", "vsum", "forall", "diff")


class Node(tuple[Any, ...]):
    """An immutable tuple ``(head, *children)``; use the constructors below, never this."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _text(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("kernel terms are not pickled: build them anew")


class Index(Node):
    """A natural number: a sum of index variables and a constant, e.g. ``t0 + s + 1``."""

    __slots__ = ()

    def __add__(self, other: object) -> Self:
        if isinstance(other, int) and other >= 0:
            return type(self)(("ix", self[1], self[2] + other))
        if isinstance(other, Index):
            return type(self)(("ix", tuple(sorted(self[1] + other[1])), self[2] + other[2]))
        return NotImplemented


class Domain(Node):
    """A finite set of indices, or all naturals."""

    __slots__ = ()


class Term(Node):
    """A real number."""

    __slots__ = ()

    def __add__(self, other: TermLike) -> Term:  # type: ignore[override]
        return Term(("add", self, real(other)))

    def __radd__(self, other: TermLike) -> Term:
        return Term(("add", real(other), self))

    def __neg__(self) -> Term:
        return Term(("mul", real(-1), self))

    def __sub__(self, other: TermLike) -> Term:
        return Term(("add", self, -real(other)))

    def __rsub__(self, other: TermLike) -> Term:
        return Term(("add", real(other), -self))

    def __mul__(self, other: TermLike) -> Term:  # type: ignore[override]
        if isinstance(other, Vector):
            return NotImplemented
        return Term(("mul", self, real(other)))

    def __rmul__(self, other: TermLike) -> Term:  # type: ignore[override]
        return Term(("mul", real(other), self))

    def __truediv__(self, other: TermLike) -> Term:
        return Term(("mul", self, inv(real(other))))

    def __rtruediv__(self, other: TermLike) -> Term:
        return Term(("mul", real(other), inv(self)))

    def __pow__(self, power: int) -> Term:
        if not isinstance(power, int) or isinstance(power, bool):
            raise TypeError(f"powers are integers, not {power!r}; write sqrt, exp or log")
        return Term(("pow", self, power)) if power >= 0 else inv(Term(("pow", self, -power)))

    def __le__(self, other: TermLike) -> Formula:  # type: ignore[override]
        return Formula(("le", self, real(other)))

    def __lt__(self, other: TermLike) -> Formula:  # type: ignore[override]
        return Formula(("lt", self, real(other)))

    def __ge__(self, other: TermLike) -> Formula:  # type: ignore[override]
        return Formula(("le", real(other), self))

    def __gt__(self, other: TermLike) -> Formula:  # type: ignore[override]
        return Formula(("lt", real(other), self))


class Vector(Node):
    """An element of the inner-product space (for us: a d x d matrix)."""

    __slots__ = ()

    def __add__(self, other: Vector) -> Vector:  # type: ignore[override]
        return Vector(("vadd", self, other))

    def __sub__(self, other: Vector) -> Vector:
        return Vector(("vadd", self, -1 * other))

    def __rmul__(self, scale: TermLike) -> Vector:  # type: ignore[override]
        return Vector(("vscale", real(scale), self))


class Formula(Node):
    """A statement: ``le``, ``lt``, ``eq``, ``veq``, ``in`` or ``forall``."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError(f"a formula has no truth value in Python (chained comparison?): {self}")


TermLike = Term | int | Fraction


def real(value: TermLike) -> Term:
    """Turn an exact number into a term; floats are refused, they are not exact."""
    if isinstance(value, Term):
        return value
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return Term(("num", Fraction(value)))
    raise TypeError(f"{value!r} is not an exact real: use int, Fraction or a term")


def _name(name: str) -> str:
    if not (isinstance(name, str) and name and name[0] not in "#~"):
        raise ValueError(f"{name!r} is not a symbol name")
    return name


def index(name: str) -> Index:
    """An index variable."""
    return Index(("ix", (_name(name),), 0))


def number(value: int) -> Index:
    """A constant index."""
    return Index(("ix", (), value))


def symbol(name: str, *indices: Index) -> Term:
    """A real symbol, or a family of them applied to indices."""
    return Term(("sym", _name(name), *indices))


def vector(name: str, *indices: Index) -> Vector:
    """A vector symbol, or a family of them applied to indices."""
    return Vector(("vsym", _name(name), *indices))


def finite(name: str, *indices: Index) -> Domain:
    """A named finite set."""
    return Domain(("set", _name(name), *indices))


def below(top: Index) -> Domain:
    """The naturals smaller than ``top``."""
    return Domain(("below", top))


NATURALS = Domain(("nat",))


def inv(t: TermLike) -> Term:
    """The total inverse: ``inv(0) = 0``."""
    return Term(("inv", real(t)))


def exp(t: TermLike) -> Term:
    """The exponential."""
    return Term(("fn", "exp", real(t)))


def log(t: TermLike) -> Term:
    """The natural logarithm (unspecified outside t > 0)."""
    return Term(("fn", "log", real(t)))


def sqrt(t: TermLike) -> Term:
    """The square root (unspecified outside t >= 0)."""
    return Term(("fn", "sqrt", real(t)))


def lambertw(t: TermLike) -> Term:
    """The principal branch of the Lambert W function (unspecified outside t >= 0)."""
    return Term(("fn", "lambertw", real(t)))


def maximum(a: TermLike, b: TermLike) -> Term:
    """The larger of two reals."""
    return Term(("fn", "max", real(a), real(b)))


def minimum(a: TermLike, b: TermLike) -> Term:
    """The smaller of two reals."""
    return Term(("fn", "min", real(a), real(b)))


def as_real(t: Index) -> Term:
    """A natural number as a real."""
    return Term(("real", t))


def inner(u: Vector, v: Vector) -> Term:
    """The inner product."""
    return Term(("inner", u, v))


def norm(u: Vector) -> Term:
    """The norm, sqrt of the inner product of u with itself."""
    return sqrt(inner(u, u))


def eq(a: TermLike, b: TermLike) -> Formula:
    """The formula a = b."""
    return Formula(("eq", real(a), real(b)))


def veq(u: Vector, v: Vector) -> Formula:
    """The formula u = v between vectors."""
    return Formula(("veq", u, v))


def member(i: Index, dom: Domain) -> Formula:
    """The formula: i is an element of dom."""
    return Formula(("in", i, dom))


def total(var: Index, dom: Domain, body: TermLike) -> Term:
    """The sum of ``body`` over ``var`` in ``dom``."""
    return _bind(Term, "sum", _var(var), dom, real(body))


def vtotal(var: Index, dom: Domain, body: Vector) -> Vector:
    """The sum of the vectors ``body`` over ``var`` in ``dom``."""
    return _bind(Vector, "vsum", _var(var), dom, body)


def forall(var: Index, dom: Domain, body: Formula) -> Formula:
    """The formula: ``body`` for every ``var`` in ``dom``."""
    return _bind(Formula, "forall", _var(var), dom, body)


def diff(x: Term, body: Term, point: TermLike) -> Term:
    """The derivative of ``x -> body`` at ``point``."""
    if x[0] != "sym" or len(x) != 2:
        raise ValueError(f"cannot differentiate by {x}: it is not a plain real symbol")
    bound = f"#{_height(body) + 1}"
    return Term(("diff", bound, substitute(body, reals={x[1]: ((), Term(("sym", bound)))}), real(point)))


def _var(i: Index) -> str:
    if i[0] != "ix" or len(i[1]) != 1 or i[2] != 0:
        raise ValueError(f"{i} is not an index variable")
    name: str = i[1][0]
    return name


def _bind(cls: type[N], head: str, name: str, dom: Domain, body: Node) -> N:
    # A bound variable is named by the height of its binder, which renaming does not change: terms equal up to
    # bound names are equal as tuples, and an inner binder's name is never an outer one's.
    bound = f"#{_height(body) + 1}"
    return cls((head, bound, dom, substitute(body, indices={name: Index(("ix", (bound,), 0))})))


@lru_cache(maxsize=200_000)
def _height(node: Node) -> int:
    inner_height = max((_height(c) for c in node[1:] if isinstance(c, Node)), default=0)
    return inner_height + (node[0] in BINDERS)


_fresh = itertools.count()


def fresh() -> str:
    """A name that occurs nowhere else."""
    return f"~{next(_fresh)}"


def open_binder(node: Node, name: str) -> Any:
    """The body of a ``sum``, ``vsum`` or ``forall`` with its bound variable called ``name``."""
    return substitute(node[3], indices={node[1]: Index(("ix", (name,), 0))})


Family = tuple[tuple[str, ...], Node]  # parameters (index variables) and the body they occur in


def substitute(
    node: N,
    *,
    reals: Mapping[str, Family] | None = None,
    vectors: Mapping[str, Family] | None = None,
    indices: Mapping[str, Index] | None = None,
) -> N:
    """Replace symbols, families of symbols and index variables at once, avoiding capture."""
    reals, vectors, indices = reals or {}, vectors or {}, indices or {}

    def go(x: Any) -> Any:
        if not isinstance(x, Node):
            return x
        head = x[0]
        if head == "ix":
            out = Index(("ix", (), x[2]))
            for v in x[1]:
                out = out + indices.get(v, Index(("ix", (v,), 0)))
            return out
        if head in ("sym", "vsym"):
            family = (reals if head == "sym" else vectors).get(x[1])
            args = [go(c) for c in x[2:]]
            if family is None:
                return type(x)((head, x[1], *args))
            parameters, body = family
            if len(parameters) != len(args):
                raise ValueError(f"{x[1]} takes {len(args)} indices, its replacement {len(parameters)}")
            return substitute(body, indices=dict(zip(parameters, args, strict=True))) if args else body
        if head in ("sum", "vsum", "forall"):
            name = fresh()
            return _bind(type(x), head, name, go(x[2]), go(open_binder(x, name)))
        if head == "diff":
            name = fresh()
            opened = substitute(x[2], reals={x[1]: ((), Term(("sym", name)))})
            return diff(Term(("sym", name)), go(opened), go(x[3]))
        return type(x)((head, *(go(c) for c in x[1:])))

    if not (reals or vectors or indices):
        return node
    result: N = go(node)
    return result


@lru_cache(maxsize=200_000)
def free(node: Node) -> frozenset[tuple[str, str]]:
    """The free names of a node, as pairs (kind, name); kind is ``ix``, ``sym``, ``vsym`` or ``set``."""
    head = node[0]
    if head == "ix":
        return frozenset(("ix", v) for v in node[1])
    below_names: Iterable[frozenset[tuple[str, str]]] = (free(c) for c in node[1:] if isinstance(c, Node))
    out = frozenset[tuple[str, str]]().union(*below_names)
    if head in ("sym", "vsym", "set"):
        return out | {(head, node[1])}
    if head in ("sum", "vsum", "forall"):
        return (free(node[3]) - {("ix", node[1])}) | free(node[2])
    if head == "diff":
        return (free(node[2]) - {("sym", node[1])}) | free(node[3])
    return out


_SHAPES: dict[str, tuple[type[Node], Callable[[tuple[Any, ...]], bool]]] = {
    "num": (Term, lambda c: len(c) == 1 and type(c[0]) is Fraction),
    "sym": (Term, lambda c: type(c[0]) is str and all(type(x) is Index for x in c[1:])),
    "real": (Term, lambda c: len(c) == 1 and type(c[0]) is Index),
    "add": (Term, lambda c: len(c) >= 1 and all(type(x) is Term for x in c)),
    "mul": (Term, lambda c: len(c) >= 1 and all(type(x) is Term for x in c)),
    "pow": (Term, lambda c: len(c) == 2 and type(c[0]) is Term and type(c[1]) is int and c[1] >= 0),
    "inv": (Term, lambda c: len(c) == 1 and type(c[0]) is Term),
    "fn": (Term, lambda c: FUNCTIONS.get(c[0]) == len(c) - 1 and all(type(x) is Term for x in c[1:])),
    "sum": (Term, lambda c: len(c) == 3 and type(c[1]) is Domain and type(c[2]) is Term),
    "inner": (Term, lambda c: len(c) == 2 and all(type(x) is Vector for x in c)),
    "diff": (Term, lambda c: len(c) == 3 and type(c[1]) is Term and type(c[2]) is Term),
    "vsym": (Vector, lambda c: type(c[0]) is str and all(type(x) is Index for x in c[1:])),
    "vadd": (Vector, lambda c: len(c) >= 1 and all(type(x) is Vector for x in c)),
    "vscale": (Vector, lambda c: len(c) == 2 and type(c[0]) is Term and type(c[1]) is Vector),
    "vsum": (Vector, lambda c: len(c) == 3 and type(c[1]) is Domain and type(c[2]) is Vector),
    "ix": (Index, lambda c: len(c) == 2 and c[0] == tuple(sorted(c[0])) and type(c[1]) is int and c[1] >= 0),
    "set": (Domain, lambda c: type(c[0]) is str and all(type(x) is Index for x in c[1:])),
    "below": (Domain, lambda c: len(c) == 1 and type(c[0]) is Index),
    "nat": (Domain, lambda c: c == ()),
    "le": (Formula, lambda c: len(c) == 2 and all(type(x) is Term for x in c)),
    "lt": (Formula, lambda c: len(c) == 2 and all(type(x) is Term for x in c)),
    "eq": (Formula, lambda c: len(c) == 2 and all(type(x) is Term for x in c)),
    "veq": (Formula, lambda c: len(c) == 2 and all(type(x) is Vector for x in c)),
    "in": (Formula, lambda c: len(c) == 2 and type(c[0]) is Index and type(c[1]) is Domain),
    "forall": (Formula, lambda c: len(c) == 3 and type(c[1]) is Domain and type(c[2]) is Formula),
}


@lru_cache(maxsize=200_000, typed=True)  # typed: tuples of different node classes compare equal
def _shape_ok(node: Node) -> bool:
    kind, shape = _SHAPES.get(node[0] if len(node) else "", (Node, lambda _: False))
    if type(node) is not kind or not shape(tuple(node[1:])):
        return False
    if node[0] in BINDERS:
        body = node[2] if node[0] == "diff" else node[3]
        if node[1] != f"#{_height(body) + 1}":
            return False
        if node[0] in ("sum", "vsum") and node[2] == NATURALS:
            return False  # infinite sums have no meaning here
    return all(_shape_ok(c) for c in node[1:] if isinstance(c, Node))


def well_formed(formula: Node) -> bool:
    """Whether a formula is built as the constructors build it, with no bound or internal name left free."""
    return (
        type(formula) is Formula
        and _shape_ok(formula)
        and not any(name[0] in "#~" for _, name in free(formula))
    )


@lru_cache(maxsize=200_000)
def _text(node: Node) -> str:
    head, rest = node[0], node[1:]
    if head == "num":
        return str(rest[0])
    if head in ("sym", "vsym", "set"):
        return rest[0] + (f"[{','.join(map(repr, rest[1:]))}]" if len(rest) > 1 else "")
    if head == "ix":
        return "+".join((*rest[0], *([str(rest[1])] if rest[1] or not rest[0] else [])))
    if head == "fn":
        return f"{rest[0]}({', '.join(map(repr, rest[1:]))})"
    if head in ("sum", "vsum", "forall"):
        return f"{head}({rest[0]} in {rest[1]!r}: {rest[2]!r})"
    infix = {"le": "<=", "lt": "<", "eq": "=", "veq": "=", "in": "in", "add": "+", "vadd": "+", "mul": "*"}
    if head in infix:
        return "(" + f" {infix[head]} ".join(map(repr, rest)) + ")"
    return f"{head}({', '.join(map(repr, rest))})"
