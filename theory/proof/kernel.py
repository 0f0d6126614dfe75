"""The kernel: the only place where a proved claim comes into being.

A ``Proved`` is a token whose claim ``hypotheses |- conclusion`` is kept by this module; it can be made by the
rules below and in no other way. A claim is *valid* if its conclusion is true whenever its hypotheses are, for
all values of the free symbols (see ``theory.proof.terms`` for what terms mean). Each rule below says in one
line why it keeps claims valid. Finding proofs, and all comfort, live outside.

What is guarded against: making, copying, pickling, subclassing or changing a ``Proved``; passing a rule
anything else in its place; malformed terms; replacing a name of the trusted modules or an attribute of their
classes. What Python cannot prevent: code in the same process that reaches under the language, by closure
cells and ``__code__``, ``__dict__`` of a module, ``object.__setattr__`` and ``type.__setattr__``,
``tuple.__new__`` (a node that skips the checks can spoil a cache), ``gc`` or ``ctypes``, or that replaces
parts of the standard library (``fractions``, ``weakref``) or of ``flint``. The kernel protects against error
and against cheating by accident, not against malice.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from theory.proof import balls, calculus, normal, terms
from theory.proof.calculus import differentiate
from theory.proof.normal import is_zero
from theory.proof.terms import (
    NATURALS,
    Domain,
    Family,
    Formula,
    Index,
    Node,
    Sealed,
    Term,
    Vector,
    as_real,
    closed,
    diff,
    eq,
    exp,
    forall,
    free,
    genuine,
    inner,
    inv,
    lambertw,
    log,
    maximum,
    member,
    minimum,
    norm,
    number,
    open_binder,
    real,
    seal,
    sqrt,
    substitute,
    symbol,
    total,
)


class KernelError(Exception):
    """A rule was applied where it does not apply; nothing was proved."""


class Fact(tuple[Any, ...], metaclass=Sealed):
    """What the kernel keeps of a proved claim: a pair (hypotheses, conclusion)."""

    __slots__ = ()
    hypotheses: frozenset[Formula] = property(lambda self: self[0])  # type: ignore[assignment]
    conclusion: Formula = property(lambda self: self[1])  # type: ignore[assignment]


_NODES = (Term, Vector, Index, Domain, Formula)
_PLAIN = (int, bool, str, Fraction, type(None))


def _build() -> tuple[type[Any], Callable[..., Any]]:
    records: WeakKeyDictionary[Any, tuple[Fact, str, tuple[Any, ...], frozenset[str]]] = WeakKeyDictionary()

    def look(token: Any, part: int) -> Any:
        try:
            return records[token][part]
        except (KeyError, TypeError):
            raise KernelError("this claim was not made by the kernel") from None

    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError("a Proved is made by the kernel's rules only")

    class Proved(metaclass=Sealed):
        """A proved claim: ``hypotheses |- conclusion``, its rule and its premises."""

        __slots__ = ("__weakref__",)
        __new__ = __init_subclass__ = __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse
        __setattr__ = __delattr__ = refuse

        hypotheses = property(lambda self: look(self, 0).hypotheses)
        conclusion = property(lambda self: look(self, 0).conclusion)
        rule = property(lambda self: look(self, 1))
        premises = property(lambda self: look(self, 2))
        axioms = property(lambda self: look(self, 3))

        def __repr__(self) -> str:
            return f"{', '.join(sorted(map(repr, self.hypotheses)))} |- {self.conclusion!r}"

    def rule(function: Callable[..., Fact], axiom: str | None = None) -> Callable[..., Any]:
        name = function.__name__

        @functools.wraps(function)
        def apply(*args: Any, **options: Any) -> Any:
            premises: list[Any] = []

            def open_(x: Any) -> Any:
                # Types are compared by identity: a foreign type may claim to equal any other.
                kind = type(x)
                if kind is Proved:
                    premises.append(x)
                    return look(x, 0)
                if kind is list or kind is tuple:
                    return tuple(map(open_, x))
                if kind is dict and all(type(k) is str for k in x):
                    return {k: open_(v) for k, v in x.items()}
                if any(kind is k for k in _PLAIN):
                    return x
                if any(kind is k for k in _NODES) and genuine(x) and closed(x):
                    return x
                raise KernelError(f"{name}: not made by the kernel: {kind.__name__}")

            try:
                fact = function(*map(open_, args), **{k: open_(v) for k, v in options.items()})
            except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
                raise KernelError(f"{name}: {error}") from error
            if not all(type(f) is Formula and closed(f) for f in (fact.conclusion, *fact.hypotheses)):
                raise KernelError(f"{name}: malformed formula in {fact!r}")
            used = frozenset([axiom] if axiom else []).union(*(look(p, 3) for p in premises))
            token = object.__new__(Proved)
            records[token] = (fact, name, tuple(premises), used)
            return token

        del apply.__wrapped__  # the bare rule stays inside
        return apply

    return Proved, rule


if TYPE_CHECKING:

    class Proved:
        """A proved claim; see ``_build``."""

        hypotheses: frozenset[Formula]
        conclusion: Formula
        rule: str
        premises: tuple[Proved, ...]
        axioms: frozenset[str]

    def _rule(function: Callable[..., Fact], axiom: str | None = None) -> Callable[..., Proved]: ...

else:
    Proved, _rule = _build()
_axioms: dict[str, str] = {}
AXIOMS: Mapping[str, str] = MappingProxyType(_axioms)


def _axiom(function: Callable[..., Fact]) -> Callable[..., Proved]:
    _axioms[function.__name__] = " ".join((function.__doc__ or "").split())
    return _rule(function, function.__name__)


def _need(condition: object, message: str) -> None:
    if not condition:
        raise KernelError(message)


def _claim(conclusion: Formula, *sources: Fact) -> Fact:
    return Fact((frozenset[Formula]().union(*(s.hypotheses for s in sources)), conclusion))


def _sides(fact: Fact, *heads: str) -> tuple[Term, Term]:
    _need(fact.conclusion[0] in heads, f"expected {'/'.join(heads)}, got {fact.conclusion!r}")
    return fact.conclusion[1], fact.conclusion[2]


def _nonnegative(fact: Fact, *heads: str) -> Term:
    a, b = _sides(fact, *heads)
    _need(a == real(0), f"expected {'0 < b' if heads == ('lt',) else '0 <= b'}, got {fact.conclusion!r}")
    return b


def _variable(v: Node) -> tuple[str, str]:
    """Kind and name of an index variable or a plain symbol."""
    if v[0] == "ix":
        _need(len(v[1]) == 1 and v[2] == 0, f"{v!r} is not an index variable")
        return "ix", v[1][0]
    _need(v[0] in ("sym", "vsym") and len(v) == 2, f"{v!r} is not a plain symbol")
    return v[0], v[1]


def _not_free(v: Node, *nodes: Node) -> None:
    for f in nodes:
        _need(_variable(v) not in free(f), f"{v!r} is free in {f!r}")


def _release(claim: Fact, var: Index, dom: Domain) -> Fact:
    """The claim without the hypothesis "var in dom"; var may be free neither in another one nor in dom."""
    rest = claim.hypotheses - {member(var, dom)}
    _not_free(var, dom, *rest)
    return Fact((rest, claim.conclusion))


# --- logic -------------------------------------------------------------------------------------------------


@_rule
def assume(formula: Formula) -> Fact:
    """h |- h."""
    return Fact((frozenset([formula]), formula))


@_rule
def discharge(claim: Fact, *proofs: Fact) -> Fact:
    """Replace hypotheses by what proves them (cut)."""
    left = Fact((claim.hypotheses - {p.conclusion for p in proofs}, claim.conclusion))
    return _claim(claim.conclusion, left, *proofs)


@_rule
def generalize(claim: Fact, var: Index, dom: Domain) -> Fact:
    """From G, i in D |- f infer G |- for all i in D: f; i not free in G or D."""
    return _claim(forall(var, dom, claim.conclusion), _release(claim, var, dom))


@_rule
def specialize(claim: Fact, at: Index, member: Fact | None = None) -> Fact:
    """From "for all i in D: f" and "j in D" infer f at j; every index is a natural."""
    _need(claim.conclusion[0] == "forall", "not a universal claim")
    dom = claim.conclusion[2]
    if dom != NATURALS:
        _need(member is not None and member.conclusion == ("in", at, dom), f"not shown: {at!r} in {dom!r}")
    body = open_binder(claim.conclusion, "~at")
    return _claim(substitute(body, indices={"~at": at}), claim, *([member] if member else []))


@_rule
def instantiate(
    claim: Fact,
    *,
    reals: Mapping[str, Family | Term] | None = None,
    vectors: Mapping[str, Family | Vector] | None = None,
    indices: Mapping[str, Index] | None = None,
) -> Fact:
    """Substitute for free symbols in hypotheses and conclusion; functions are total, so always sound."""

    def families(given: Mapping[str, Any] | None, kind: type) -> dict[str, Family]:
        out = {k: x if type(x) is tuple else ((), x) for k, x in (given or {}).items()}
        _need(all(type(body) is kind for _, body in out.values()), "replacement of the wrong kind")
        return out

    r, v = families(reals, Term), families(vectors, Vector)
    _need(all(type(i) is Index for i in (indices or {}).values()), "replacement of the wrong kind")

    def apply(f: Formula) -> Formula:
        return substitute(f, reals=r, vectors=v, indices=indices)

    return Fact((frozenset(map(apply, claim.hypotheses)), apply(claim.conclusion)))


@_rule
def cases(low: Fact, high: Fact, a: Term, b: Term) -> Fact:
    """From G, a <= b |- f and G', b < a |- f infer G, G' |- f."""
    _need(low.conclusion == high.conclusion, "the two cases prove different claims")
    return Fact(((low.hypotheses - {a <= b}) | (high.hypotheses - {b < a}), low.conclusion))


@_rule
def absurd(claim: Fact, conclusion: Formula) -> Fact:
    """From a < a infer anything."""
    a, b = _sides(claim, "lt")
    _need(is_zero(a - b), f"{claim.conclusion!r} is not absurd")
    return _claim(conclusion, claim)


@_rule
def induction(base: Fact, step: Fact, var: Index) -> Fact:
    """From f(0) and, for t not free elsewhere, f(t) |- f(t + 1) infer: for all naturals t: f(t)."""
    _, name = _variable(var)
    ends = [f for f in step.hypotheses if substitute(f, indices={name: var + 1}) == step.conclusion]
    _need(ends, "the step's conclusion is not an assumption of it at t + 1")
    _need(base.conclusion == substitute(ends[0], indices={name: number(0)}), "the base is another claim")
    rest = step.hypotheses - {ends[0]}
    _not_free(var, *rest)
    return Fact((base.hypotheses | rest, forall(var, NATURALS, ends[0])))


@_rule
def congruence(equal: Fact, template: Term, hole: Term | Vector) -> Fact:
    """From a = b infer t(a) = t(b), for a real or vector symbol ``hole`` of the template t."""
    kind, name = _variable(hole)
    _need(equal.conclusion[0] == {"sym": "eq", "vsym": "veq"}.get(kind), "not an equation of that kind")
    heads = {"sym": "reals", "vsym": "vectors"}
    ends: Any = [substitute(template, **{heads[kind]: {name: ((), x)}}) for x in equal.conclusion[1:]]  # type: ignore[arg-type]
    return _claim(Formula(("eq", *ends)), equal)


@_rule
def least(claim: Fact, binders: Sequence[tuple[Index, Domain]], f: Term, witness: Sequence[Fact]) -> Fact:
    """A finite nonempty family has a least member: drop "f at j is least, j in D" for j not free elsewhere.

    ``binders`` are the nested indices of the family, the later domains may depend on the earlier; ``witness``
    proves that one choice of indices lies in the domains.
    """
    names = [_variable(v)[1] for v, _ in binders]
    _need(len(set(names)) == len(names), "the indices of the family are not distinct")
    _need(all(d[0] in ("set", "below") for _, d in binders), "only finite families have a least member")
    rename = {n: Index(("ix", (f"~{n}",), 0)) for n in names}
    least_of = f <= substitute(f, indices=rename)
    for n, (_, d) in reversed(list(zip(names, binders, strict=True))):
        least_of = forall(rename[n], substitute(d, indices=rename), least_of)
    rest = claim.hypotheses - {member(v, d) for v, d in binders} - {least_of}
    for k, (v, _) in enumerate(binders):
        _not_free(v, claim.conclusion, *rest, *(d for _, d in binders[: k + 1]))
    at: dict[str, Index] = {}
    for n, (_, d), w in zip(names, binders, witness, strict=True):
        _need(w.conclusion[0] == "in" and w.conclusion[2] == substitute(d, indices=at), "witness elsewhere")
        at[n] = w.conclusion[1]
    return _claim(claim.conclusion, Fact((rest, claim.conclusion)), *witness)


# --- algebra and order -------------------------------------------------------------------------------------


def _signed(x: Any) -> tuple[Term, bool, tuple[Fact, ...]]:
    """A multiplier proved nonnegative: its term, whether it is positive, and the proofs."""
    if type(x) is Fact:
        a, b = _sides(x, "le", "lt")
        return b - a, x.conclusion[0] == "lt", (x,)
    q = Fraction(x)
    _need(q >= 0, f"multiplier {q} is negative")
    return real(q), q > 0, ()


@_rule
def combine(
    target: Formula, parts: Sequence[tuple[Any, Any]] = (), *, nonzero: Any = (), nonnegative: Any = ()
) -> Fact:
    """Conclude ``target`` because (its right - left) = sum of m_j e_j exactly, in the fraction field.

    Each part is (m_j, claim): e_j is the claim's right - left. For e_j from <= or <, m_j is a nonnegative
    number or a claim whose right - left is m_j. For e_j from =, m_j is any term or number. A target = takes
    only = parts; a target < needs one part with m_j > 0 and e_j > 0. ``nonzero`` are claims 0 < b or b < 0
    that allow cancelling inv(b); ``nonnegative`` claims 0 <= b or 0 < b allow sqrt(b)^2 = b.
    """
    _need(target[0] in ("le", "lt", "eq"), f"not an (in)equality of reals: {target!r}")
    remainder = target[2] - target[1]
    used: list[Fact] = []
    strict = False
    for multiplier, e in parts:
        a, b = _sides(e, "le", "lt", "eq")
        if e.conclusion[0] == "eq":
            m = real(multiplier)
            used.append(e)
        else:
            _need(target[0] != "eq", "an equation does not follow from inequalities")
            m, positive, proofs = _signed(multiplier)
            strict = strict or (positive and e.conclusion[0] == "lt")
            used += [e, *proofs]
        remainder -= m * (b - a)
    _need(target[0] != "lt" or strict, "a strict conclusion needs a strict part")
    cancel = [b - a for a, b in (_sides(z, "lt") for z in nonzero)]
    roots = [b - a for a, b in (_sides(z, "le", "lt") for z in nonnegative)]
    _need(is_zero(remainder, cancel, roots), f"the combination does not add up to {target!r}")
    return _claim(target, *used, *nonzero, *nonnegative)


@_rule
def square(t: Term) -> Fact:
    """0 <= t^2."""
    return _claim(real(0) <= t**2)


@_rule
def antisymmetry(low: Fact, high: Fact) -> Fact:
    """From a <= b and b <= a infer a = b."""
    a, b = _sides(low, "le")
    _need(_sides(high, "le") == (b, a), "the two claims do not bound each other")
    return _claim(eq(a, b), low, high)


@_rule
def inverse_positive(claim: Fact) -> Fact:
    """From 0 < b infer 0 < inv(b)."""
    return _claim(real(0) < inv(_nonnegative(claim, "lt")), claim)


@_rule
def sum_order(claim: Fact, var: Index, dom: Domain) -> Fact:
    """From G, i in D |- f <= g (or =) infer G |- sum of f <= (=) sum of g over D; i not free in G or D."""
    a, b = _sides(claim, "le", "eq")
    conclusion = Formula((claim.conclusion[0], total(var, dom, a), total(var, dom, b)))
    return _claim(conclusion, _release(claim, var, dom))


@_rule
def term_of_sum(claim: Fact, var: Index, dom: Domain, member: Fact) -> Fact:
    """From G, i in D |- 0 <= f(i) and j in D infer f(j) <= sum of f over D; i not free in G or D."""
    f = _nonnegative(claim, "le")
    _need(member.conclusion[0] == "in" and member.conclusion[2] == dom, "expected j in D")
    at = substitute(f, indices={_variable(var)[1]: member.conclusion[1]})
    return _claim(at <= total(var, dom, f), _release(claim, var, dom), member)


@_rule
def natural(i: Index) -> Fact:
    """A natural number is nonnegative as a real."""
    return _claim(real(0) <= as_real(i))


# --- calculus ----------------------------------------------------------------------------------------------


def _meets(conditions: Sequence[Any], proofs: Sequence[Fact], at: Mapping[str, Any]) -> None:
    """Every condition of a derivative is among the proofs' conclusions."""
    for c in conditions:
        if type(c) is Formula:
            wanted = [substitute(c, reals=at)]
        else:
            b = substitute(c[1], reals=at)
            wanted = [real(0) < b, b < real(0)]
        _need(any(p.conclusion in wanted for p in proofs), f"derivative needs {wanted[0]!r}")


@_rule
def derivative(x: Term, body: Term, point: Term, conditions: Sequence[Fact] = ()) -> Fact:
    """The derivative of x -> body at a point where its inverses, logs and roots are regular."""
    slope, needs = differentiate(body, x)
    at = {x[1]: ((), point)}
    _meets(needs, conditions, at)
    return _claim(eq(diff(x, body, point), substitute(slope, reals=at)), *conditions)


@_rule
def monotone(sign: Fact, order: Fact, x: Term, body: Term, conditions: Sequence[Fact] = ()) -> Fact:
    """From 0 <= (or <, or with >= the mirror) body'(x) on a <= x <= b, and a <= b: order of body(a), body(b).

    ``sign`` proves ``0 <= slope`` or ``slope <= 0`` where slope is the derivative, under hypotheses
    that may include a <= x and x <= b; so do ``conditions``. (Mean value theorem.)
    """
    a, b = _sides(order, "le", "lt")
    slope, needs = differentiate(body, x)
    _meets(needs, conditions, {})
    lo, hi = _sides(sign, "le", "lt")
    growing = lo == real(0)
    _need(growing or hi == real(0), "expected the sign of the derivative")
    _need(is_zero((hi if growing else lo) - slope), f"the derivative is {slope!r}")
    rest = _claim(sign.conclusion, sign, *conditions).hypotheses - {a <= x, x <= b}
    _not_free(x, order.conclusion, *rest)
    at_a, at_b = (substitute(body, reals={x[1]: ((), p)}) for p in (a, b))
    return _claim(at_a <= at_b if growing else at_b <= at_a, Fact((rest, sign.conclusion)), order)


@_rule
def on_box(target: Formula, box: Mapping[str, tuple[Fraction, Fraction]], boxes: int = 20_000) -> Fact:
    """A strict or weak inequality for all points of a bounded box, by ball arithmetic with subdivision."""
    _need(target[0] in ("le", "lt"), "expected an inequality")
    sides = {n: (Fraction(lo), Fraction(hi)) for n, (lo, hi) in box.items()}
    ok = balls.holds_on_box(target[2] - target[1], sides, strict=target[0] == "lt", boxes=boxes)
    _need(ok, f"ball arithmetic did not decide {target!r}")
    walls = [f for n, (lo, hi) in sides.items() for f in (real(lo) <= symbol(n), symbol(n) <= real(hi))]
    return Fact((frozenset(walls), target))


# --- axioms ------------------------------------------------------------------------------------------------


@_axiom
def exp_positive(t: Term) -> Fact:
    """0 < exp(t) for every real t."""
    return _claim(real(0) < exp(t))


@_axiom
def log_exp(t: Term) -> Fact:
    """log(exp(t)) = t for every real t."""
    return _claim(eq(log(exp(t)), t))


@_axiom
def exp_log(positive: Fact) -> Fact:
    """exp(log(b)) = b whenever 0 < b."""
    b = _nonnegative(positive, "lt")
    return _claim(eq(exp(log(b)), b), positive)


@_axiom
def sqrt_nonnegative(nonnegative: Fact) -> Fact:
    """0 <= sqrt(b) whenever 0 <= b."""
    return _claim(real(0) <= sqrt(_nonnegative(nonnegative, "le", "lt")), nonnegative)


@_axiom
def lambert_w(nonnegative: Fact) -> Fact:
    """W(x) exp(W(x)) = x whenever 0 <= x, for the principal branch W."""
    x = _nonnegative(nonnegative, "le", "lt")
    return _claim(eq(lambertw(x) * exp(lambertw(x)), x), nonnegative)


@_axiom
def lambert_w_nonnegative(nonnegative: Fact) -> Fact:
    """0 <= W(x) whenever 0 <= x, for the principal branch W."""
    return _claim(real(0) <= lambertw(_nonnegative(nonnegative, "le", "lt")), nonnegative)


@_axiom
def max_is(order: Fact) -> Fact:
    """max(a, b) = b whenever a <= b."""
    a, b = _sides(order, "le", "lt")
    return _claim(eq(maximum(a, b), b), order)


@_axiom
def max_commutes(a: Term, b: Term) -> Fact:
    """max(a, b) = max(b, a)."""
    return _claim(eq(maximum(a, b), maximum(b, a)))


@_axiom
def min_is_minus_max(a: Term, b: Term) -> Fact:
    """min(a, b) = a + b - max(a, b)."""
    return _claim(eq(minimum(a, b), a + b - maximum(a, b)))


@_axiom
def inner_nonnegative(u: Vector) -> Fact:
    """0 <= <u, u> for every vector u."""
    return _claim(real(0) <= inner(u, u))


@_axiom
def cauchy_schwarz(u: Vector, v: Vector) -> Fact:
    """<u, v> <= ||u|| ||v|| for all vectors u, v."""
    return _claim(inner(u, v) <= norm(u) * norm(v))


if not TYPE_CHECKING:
    del _rule, _axiom, _build, _axioms  # nothing is left that could make a claim by hand


def ancestry(claim: Proved) -> Iterator[Proved]:
    """Every claim that a proved claim rests on, itself last, each once."""
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(claim, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((p, False) for p in node.premises)


for _module in (terms, normal, calculus, balls, sys.modules[__name__]):
    seal(_module)
