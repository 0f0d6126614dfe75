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
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from operator import is_
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn, TypeVar

FUNCTIONS = MappingProxyType({"exp": 1, "log": 1, "sqrt": 1, "lambertw": 1, "max": 2, "min": 2})
N = TypeVar("N", bound="Node")


def _refuse(trusted: object, *_: object) -> NoReturn:
    raise TypeError(f"{trusted!r} is trusted: it cannot be changed")


class _Open(type):
    pass


class Sealed(type, metaclass=_Open):
    """The class of the trusted base's classes, itself included: their attributes cannot be replaced."""

    __setattr__ = __delattr__ = _refuse


Sealed.__class__ = Sealed  # type: ignore[assignment]


class _SealedModule(ModuleType, metaclass=Sealed):
    __setattr__ = __delattr__ = _refuse


def seal(module: ModuleType) -> None:
    """From now on no name of the module can be replaced."""
    object.__setattr__(module, "__class__", _SealedModule)  # also when it is sealed already


class Node(tuple[Any, ...], metaclass=Sealed):
    """An immutable tuple ``(head, *children)``; use the constructors below, never this."""

    __slots__ = ()
    __setattr__ = __delattr__ = _refuse

    def __new__(cls, parts: Iterable[Any]) -> Any:
        """Check the shape.

        Raises:
            ValueError: no constructor builds such a node.
        """
        node = super().__new__(cls, parts)
        if not _fits(node):
            raise ValueError(f"malformed {cls.__name__}: {tuple(node)!r}")
        return node

    def __repr__(self) -> str:
        return _text(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("kernel terms are not pickled: build them anew")


class Index(Node):
    """A natural number: a sum of index variables and a constant, e.g. ``t0 + s + 1``."""

    __slots__ = ()

    def __add__(self, other: object) -> Index:
        if isinstance(other, int) and other >= 0:
            return Index(("ix", self[1], self[2] + other))
        if isinstance(other, Index):
            return Index(("ix", tuple(sorted(self[1] + other[1])), self[2] + other[2]))
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


# head: class of the node, classes of its children, class of any further children
_Signature = tuple[type["Node"], tuple[type, ...], type | None]
_SIGNATURES: Mapping[str, _Signature] = MappingProxyType({
    "num": (Term, (Fraction,), None),
    "sym": (Term, (str,), Index),
    "real": (Term, (Index,), None),
    "add": (Term, (Term,), Term),
    "mul": (Term, (Term,), Term),
    "pow": (Term, (Term, int), None),
    "inv": (Term, (Term,), None),
    "fn": (Term, (str, Term), Term),
    "sum": (Term, (str, Domain, Term), None),
    "inner": (Term, (Vector, Vector), None),
    "diff": (Term, (str, Term, Term), None),
    "vsym": (Vector, (str,), Index),
    "vadd": (Vector, (Vector,), Vector),
    "vscale": (Vector, (Term, Vector), None),
    "vsum": (Vector, (str, Domain, Vector), None),
    "ix": (Index, (tuple, int), None),
    "set": (Domain, (str,), Index),
    "below": (Domain, (Index,), None),
    "nat": (Domain, (), None),
    "le": (Formula, (Term, Term), None),
    "lt": (Formula, (Term, Term), None),
    "eq": (Formula, (Term, Term), None),
    "veq": (Formula, (Vector, Vector), None),
    "in": (Formula, (Index, Domain), None),
    "forall": (Formula, (str, Domain, Formula), None),
})  # fmt: skip
BINDERS = MappingProxyType({"sum": 3, "vsum": 3, "forall": 3, "diff": 2})  # where the body stands


def _fits(node: Node) -> bool:
    """Whether a node, of children that fit, is built as its head demands."""
    if not len(node) or type(node[0]) is not str or node[0] not in _SIGNATURES:
        return False
    cls, kinds, more = _SIGNATURES[node[0]]
    n = len(kinds) + 1
    if type(node) is not cls or len(node) < n or (more is None and len(node) > n):
        return False
    for c, kind in zip(node[1:n], kinds, strict=True):
        if type(c) is not kind:
            return False
    for c in node[n:]:
        if type(c) is not more:
            return False
    if node[0] == "pow":
        return node[2] >= 0
    if node[0] == "ix":
        names = node[1]
        return node[2] >= 0 and all(type(v) is str for v in names) and list(names) == sorted(names)
    if node[0] == "fn":
        return FUNCTIONS.get(node[1]) == len(node) - 2
    if node[0] in BINDERS:
        # infinite sums have no meaning here
        infinite = node[0] in ("sum", "vsum") and node[2] == ("nat",)
        return node[1] == f"#{_height(node[BINDERS[node[0]]]) + 1}" and not infinite
    return True


def _final(cls: type) -> NoReturn:
    raise TypeError(f"no further kinds of terms: {cls.__name__}")


type.__setattr__(Node, "__init_subclass__", classmethod(_final))
TermLike = Term | int | Fraction


def real(value: TermLike) -> Term:
    """Turn an exact number into a term; floats are refused, they are not exact."""
    if isinstance(value, Term):
        return value
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return Term(("num", Fraction(value)))
    raise TypeError(f"{value!r} is not an exact real: use int, Fraction or a term")


def _is_name(name: object) -> bool:
    # Internal names begin with ~ or #; a name that looks like another term would make a printed claim lie.
    return type(name) is str and name.rstrip("'").isidentifier()


def _name(name: str) -> str:
    if not _is_name(name):
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
    return Term(("diff", bound, _rename(body, "sym", x[1], bound), real(point)))


def _var(i: Index) -> str:
    if i[0] != "ix" or len(i[1]) != 1 or i[2] != 0:
        raise ValueError(f"{i} is not an index variable")
    name: str = i[1][0]
    return name


def _bind(cls: type[N], head: str, name: str, dom: Domain, body: Node) -> N:
    # A bound variable is named by the height of its binder, which renaming does not change: terms equal up to
    # bound names are equal as tuples, and an inner binder's name is never an outer one's.
    bound = f"#{_height(body) + 1}"
    return cls((head, bound, dom, _rename(body, "ix", name, bound)))


def _rename(node: N, kind: str, old: str, new: str) -> N:
    # Only for a free name, and to one that no binder in the node bears: no capture, and heights stay.
    if node[0] == "ix":
        names = tuple(sorted(new if kind == "ix" and v == old else v for v in node[1]))
        return node if names == node[1] else Index(("ix", names, node[2]))
    if node[0] == kind == "sym" and node[1] == old:
        if len(node) > 2:
            raise ValueError(f"{old} is used with indices and without")
        return Term(("sym", new))
    return _with_children(node, [_rename(c, kind, old, new) if isinstance(c, Node) else c for c in node[1:]])


def _with_children(node: N, children: list[Any]) -> N:
    if all(map(is_, children, node[1:])):
        return node
    return type(node)((node[0], *children))


@lru_cache(maxsize=200_000)
def _height(node: Node) -> int:
    return max((_height(c) for c in node[1:] if isinstance(c, Node)), default=0) + (node[0] in BINDERS)


_fresh = itertools.count()


def fresh() -> str:
    """A name that occurs nowhere else."""
    return f"~{next(_fresh)}"


def open_binder(node: Node, name: str) -> Any:
    """The body of a ``sum``, ``vsum`` or ``forall`` with its bound variable called ``name``."""
    return _rename(node[3], "ix", node[1], name)


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
            if indices.keys().isdisjoint(x[1]):
                return x
            parts = [indices.get(v) or Index(("ix", (v,), 0)) for v in x[1]]
            return sum(parts, start=Index(("ix", (), x[2])))
        if head in BINDERS and replaced.isdisjoint(free(x)):
            return x
        if head in ("sum", "vsum", "forall"):
            name = fresh()
            return _bind(type(x), head, name, go(x[2]), go(open_binder(x, name)))
        if head == "diff":
            name = fresh()
            return diff(Term(("sym", name)), go(_rename(x[2], "sym", x[1], name)), go(x[3]))
        args = [go(c) for c in x[1:]]
        families = {"sym": reals, "vsym": vectors}.get(head, {})
        if not families or x[1] not in families:
            return _with_children(x, args)
        parameters, body = families[x[1]]
        if len(parameters) != len(args) - 1:
            raise ValueError(f"{x[1]} takes {len(args) - 1} indices, its replacement {len(parameters)}")
        return substitute(body, indices=dict(zip(parameters, args[1:], strict=True)))

    kinds = {"sym": reals, "vsym": vectors, "ix": indices}
    replaced = {(kind, name) for kind, names in kinds.items() for name in names}
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


def closed(node: Node) -> bool:
    """Whether no internal name is free in a node, and no name looks like another term."""
    return all(_is_name(name) for _, name in free(node))


def genuine(node: Node) -> bool:
    """Whether a node is, all the way down, what the constructors build."""
    return _fits(node) and all(genuine(c) for c in node[1:] if isinstance(c, Node))


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
