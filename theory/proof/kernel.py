"""The kernel: the only place where a proved claim comes into being.

A ``Proved`` is a token whose claim ``hypotheses |- conclusion`` is kept by this module; it can be made by the
rules below and in no other way. A claim is *valid* if its conclusion is true whenever its hypotheses are, for
all values of the free symbols (see ``theory.proof.terms`` for what terms mean). Each rule below says in one
line why it keeps claims valid. Finding proofs, and all comfort, live outside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

from theory.proof import balls
from theory.proof.calculus import differentiate
from theory.proof.normal import is_zero
from theory.proof.terms import (
    NATURALS,
    Domain,
    Family,
    Formula,
    Index,
    Term,
    Vector,
    as_real,
    diff,
    exp,
    forall,
    free,
    inner,
    lambertw,
    log,
    norm,
    number,
    open_binder,
    real,
    sqrt,
    substitute,
    total,
    well_formed,
)


class KernelError(Exception):
    """A rule was applied where it does not apply; nothing was proved."""


class Fact(NamedTuple):
    """What the kernel keeps of a proved claim."""

    hypotheses: frozenset[Formula]
    conclusion: Formula


_PLAIN = frozenset({Term, Vector, Index, Domain, Formula, int, bool, str, Fraction, type(None)})


class _Record(NamedTuple):
    fact: Fact
    rule: str
    premises: tuple[Proved, ...]
    axioms: frozenset[str]


class _Sealed(type):
    def __setattr__(cls, name: str, value: object) -> NoReturn:
        raise TypeError("the kernel's classes cannot be changed")

    __delattr__ = __setattr__  # type: ignore[assignment]


def _build() -> tuple[type[Any], Callable[..., Any]]:
    records: WeakKeyDictionary[Any, _Record] = WeakKeyDictionary()

    def look(token: Any) -> _Record:
        try:
            return records[token]
        except (KeyError, TypeError):
            raise KernelError("this claim was not made by the kernel") from None

    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError("a Proved is made by the kernel's rules only")

    class Proved(metaclass=_Sealed):
        """A proved claim: ``hypotheses |- conclusion``, its rule and its premises."""

        __slots__ = ("__weakref__",)
        __new__ = __init_subclass__ = __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = refuse
        __setattr__ = __delattr__ = refuse

        hypotheses = property(lambda self: look(self).fact.hypotheses)
        conclusion = property(lambda self: look(self).fact.conclusion)
        rule = property(lambda self: look(self).rule)
        premises = property(lambda self: look(self).premises)
        axioms = property(lambda self: look(self).axioms)

        def __repr__(self) -> str:
            return f"{', '.join(sorted(map(repr, self.hypotheses)))} |- {self.conclusion!r}"

    def rule(function: Callable[..., Fact], axiom: str | None = None) -> Callable[..., Any]:
        @functools.wraps(function)
        def apply(*args: Any, **options: Any) -> Any:
            premises: list[Any] = []

            def open_(x: Any) -> Any:
                if type(x) is Proved:
                    premises.append(x)
                    return look(x).fact
                if type(x) in (list, tuple):
                    return tuple(map(open_, x))
                if type(x) is dict:
                    return {k: open_(v) for k, v in x.items()}
                if type(x) not in _PLAIN:  # a Fact, or a container that could hide one
                    raise KernelError(f"{function.__name__}: not made by the kernel: {type(x).__name__}")
                return x

            try:
                fact = function(*map(open_, args), **{k: open_(v) for k, v in options.items()})
            except (ValueError, TypeError, AttributeError, IndexError) as error:
                raise KernelError(f"{function.__name__}: {error}") from error
            if not (well_formed(fact.conclusion) and all(map(well_formed, fact.hypotheses))):
                raise KernelError(f"{function.__name__}: malformed formula in {fact!r}")
            used = frozenset([axiom] if axiom else []).union(*(look(p).axioms for p in premises))
            token = object.__new__(Proved)
            records[token] = _Record(fact, function.__name__, tuple(premises), used)
            return token

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
AXIOMS: dict[str, str] = {}


def _axiom(function: Callable[..., Fact]) -> Callable[..., Proved]:
    AXIOMS[function.__name__] = " ".join((function.__doc__ or "").split())
    return _rule(function, function.__name__)


def _need(condition: object, message: str) -> None:
    if not condition:
        raise KernelError(message)


def _claim(conclusion: Formula, *sources: Fact) -> Fact:
    return Fact(frozenset[Formula]().union(*(s.hypotheses for s in sources)), conclusion)


def _sides(fact: Fact, *heads: str) -> tuple[Term, Term]:
    _need(fact.conclusion[0] in heads, f"expected {'/'.join(heads)}, got {fact.conclusion!r}")
    return fact.conclusion[1], fact.conclusion[2]


def _le(a: Term, b: Term) -> Formula:
    return Formula(("le", a, b))


def _sub(a: Term, b: Term) -> Term:
    return Term(("add", a, Term(("mul", real(-1), b))))


def _not_free(name: str, *formulas: Formula | Domain) -> None:
    for f in formulas:
        _need(("ix", name) not in free(f), f"index {name} is free in {f!r}")


def _variable(i: Index) -> str:
    _need(type(i) is Index and len(i[1]) == 1 and i[2] == 0, f"{i!r} is not an index variable")
    name: str = i[1][0]
    return name


# --- logic -------------------------------------------------------------------------------------------------


@_rule
def assume(formula: Formula) -> Fact:
    """h |- h."""
    return Fact(frozenset([formula]), formula)


@_rule
def discharge(claim: Fact, *proofs: Fact) -> Fact:
    """Replace hypotheses by what proves them (cut)."""
    hypotheses = claim.hypotheses - {p.conclusion for p in proofs}
    return Fact(hypotheses.union(*(p.hypotheses for p in proofs)), claim.conclusion)


@_rule
def generalize(claim: Fact, var: Index, dom: Domain) -> Fact:
    """From G, i in D |- f infer G |- for all i in D: f; i not free in G."""
    name = _variable(var)
    hypotheses = claim.hypotheses - {Formula(("in", var, dom))}
    _not_free(name, *hypotheses, dom)
    return Fact(hypotheses, forall(var, dom, claim.conclusion))


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

    def family(x: Any) -> Family:
        return x if type(x) is tuple else ((), x)

    r = {k: family(v) for k, v in (reals or {}).items()}
    v = {k: family(x) for k, x in (vectors or {}).items()}
    ok = all(isinstance(b, Term) for _, b in r.values()) and all(isinstance(b, Vector) for _, b in v.values())
    _need(ok and all(isinstance(i, Index) for i in (indices or {}).values()), "replacement of the wrong kind")

    def apply(f: Formula) -> Formula:
        return substitute(f, reals=r, vectors=v, indices=indices)

    return Fact(frozenset(map(apply, claim.hypotheses)), apply(claim.conclusion))


@_rule
def cases(low: Fact, high: Fact, a: Term, b: Term) -> Fact:
    """From G, a <= b |- f and G', b < a |- f infer G, G' |- f."""
    _need(low.conclusion == high.conclusion, "the two cases prove different claims")
    left = low.hypotheses - {_le(a, b)}
    return Fact(left | (high.hypotheses - {Formula(("lt", b, a))}), low.conclusion)


@_rule
def absurd(claim: Fact, conclusion: Formula) -> Fact:
    """From a < a infer anything."""
    a, b = _sides(claim, "lt")
    _need(is_zero(_sub(a, b)), f"{claim.conclusion!r} is not absurd")
    return _claim(conclusion, claim)


@_rule
def induction(base: Fact, step: Fact, var: Index) -> Fact:
    """From f(0) and, for t not free elsewhere, f(t) |- f(t + 1) infer: for all naturals t: f(t)."""
    name = _variable(var)
    ends = [f for f in step.hypotheses if substitute(f, indices={name: var + 1}) == step.conclusion]
    _need(ends, "the step's conclusion is not an assumption of it at t + 1")
    _need(base.conclusion == substitute(ends[0], indices={name: number(0)}), "the base is another claim")
    rest = step.hypotheses - {ends[0]}
    _not_free(name, *rest)
    return Fact(base.hypotheses | rest, forall(var, NATURALS, ends[0]))


@_rule
def congruence(equal: Fact, template: Term, hole: Term | Vector) -> Fact:
    """From a = b infer t(a) = t(b), for a real or vector symbol ``hole`` of the template t."""
    _need(hole[0] in ("sym", "vsym") and len(hole) == 2, f"{hole!r} is not a plain symbol")
    _need(equal.conclusion[0] == ("eq" if hole[0] == "sym" else "veq"), "not an equation of that kind")
    kind = "reals" if hole[0] == "sym" else "vectors"
    ends: Any = [substitute(template, **{kind: {hole[1]: ((), x)}}) for x in equal.conclusion[1:]]  # type: ignore[arg-type]
    return _claim(Formula(("eq", *ends)), equal)


@_rule
def least(claim: Fact, binders: Sequence[tuple[Index, Domain]], f: Term, witness: Sequence[Fact]) -> Fact:
    """A finite nonempty family has a least member: drop "f at j is least, j in D" for j not free elsewhere.

    ``binders`` are the nested indices of the family, the later domains may depend on the earlier; ``witness``
    proves that one choice of indices lies in the domains.
    """
    names = [_variable(v) for v, _ in binders]
    _need(all(d[0] in ("set", "below") for _, d in binders), "only finite families have a least member")
    _need(len(set(names)) == len(names), "an index is bound twice")
    for k, (_, d) in enumerate(binders):
        for n in names[k:]:
            _not_free(n, d)
    inside = {Formula(("in", v, d)) for v, d in binders}
    rename = {n: Index(("ix", (f"~{n}",), 0)) for n in names}
    least_of = _le(f, substitute(f, indices=rename))
    for v, d in reversed(binders):
        least_of = forall(rename[_variable(v)], substitute(d, indices=rename), least_of)
    rest = claim.hypotheses - inside - {least_of}
    for n in names:
        _not_free(n, claim.conclusion, *rest)
    _need(len(witness) == len(binders), "one witness for each index")
    at: dict[str, Index] = {}
    for n, (_, d), w in zip(names, binders, witness, strict=True):
        _need(w.conclusion[0] == "in" and w.conclusion[2] == substitute(d, indices=at), "witness elsewhere")
        at[n] = w.conclusion[1]
    return _claim(claim.conclusion, Fact(rest, claim.conclusion), *witness)


# --- algebra and order -------------------------------------------------------------------------------------


def _signed(x: Any) -> tuple[Term, bool, tuple[Fact, ...]]:
    """A multiplier proved nonnegative: its term, whether it is positive, and the proofs."""
    if isinstance(x, Fact):
        a, b = _sides(x, "le", "lt")
        return _sub(b, a), x.conclusion[0] == "lt", (x,)
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
    remainder = _sub(target[2], target[1])
    used: list[Fact] = []
    strict = False
    for multiplier, e in parts:
        if e.conclusion[0] == "eq":
            m = multiplier if isinstance(multiplier, Term) else real(multiplier)
            proofs: tuple[Fact, ...] = ()
            a, b = e.conclusion[1:]
        else:
            _need(target[0] != "eq", "an equation does not follow from inequalities")
            a, b = _sides(e, "le", "lt")
            m, positive, proofs = _signed(multiplier)
            strict = strict or (positive and e.conclusion[0] == "lt")
        remainder = _sub(remainder, Term(("mul", m, _sub(b, a))))
        used += [e, *proofs]
    _need(target[0] != "lt" or strict, "a strict conclusion needs a strict part")
    cancel = [_sub(b, a) for a, b in (_sides(z, "lt") for z in nonzero)]
    roots = [_sub(b, a) for a, b in (_sides(z, "le", "lt") for z in nonnegative)]
    _need(is_zero(remainder, cancel, roots), f"the combination does not add up to {target!r}")
    return _claim(target, *used, *nonzero, *nonnegative)


@_rule
def square(t: Term) -> Fact:
    """0 <= t^2."""
    return Fact(frozenset(), _le(real(0), t**2))


@_rule
def antisymmetry(low: Fact, high: Fact) -> Fact:
    """From a <= b and b <= a infer a = b."""
    a, b = _sides(low, "le")
    _need(_sides(high, "le") == (b, a), "the two claims do not bound each other")
    return _claim(Formula(("eq", a, b)), low, high)


@_rule
def inverse_positive(claim: Fact) -> Fact:
    """From 0 < b infer 0 < inv(b)."""
    a, b = _sides(claim, "lt")
    _need(a == real(0), "expected 0 < b")
    return _claim(Formula(("lt", a, Term(("inv", b)))), claim)


@_rule
def sum_order(claim: Fact, var: Index, dom: Domain) -> Fact:
    """From G, i in D |- f <= g (or =) infer G |- sum f <= sum g (or =) over the finite D; i not free in G."""
    a, b = _sides(claim, "le", "eq")
    rest = claim.hypotheses - {Formula(("in", var, dom))}
    _not_free(_variable(var), *rest, dom)
    return Fact(rest, Formula((claim.conclusion[0], total(var, dom, a), total(var, dom, b))))


@_rule
def term_of_sum(claim: Fact, var: Index, dom: Domain, member: Fact) -> Fact:
    """From G, i in D |- 0 <= f(i) and j in D infer f(j) <= sum of f over D; i not free in G."""
    a, f = _sides(claim, "le")
    _need(a == real(0), "expected 0 <= f")
    _need(member.conclusion[0] == "in" and member.conclusion[2] == dom, "expected j in D")
    name = _variable(var)
    rest = claim.hypotheses - {Formula(("in", var, dom))}
    _not_free(name, *rest, dom)
    at = substitute(f, indices={name: member.conclusion[1]})
    return _claim(_le(at, total(var, dom, f)), Fact(rest, claim.conclusion), member)


@_rule
def natural(i: Index) -> Fact:
    """A natural number is nonnegative as a real."""
    return Fact(frozenset(), _le(real(0), as_real(i)))


# --- calculus ----------------------------------------------------------------------------------------------


def _meets(conditions: Sequence[Any], proofs: Sequence[Fact], at: Mapping[str, Any]) -> None:
    """Every condition of a derivative is among the proofs' conclusions."""
    for c in conditions:
        if type(c) is Formula:
            wanted = [substitute(c, reals=at)]
        else:
            b = substitute(c[1], reals=at)
            wanted = [Formula(("lt", real(0), b)), Formula(("lt", b, real(0)))]
        _need(any(p.conclusion in wanted for p in proofs), f"derivative needs {wanted[0]!r}")


@_rule
def derivative(x: Term, body: Term, point: Term, conditions: Sequence[Fact] = ()) -> Fact:
    """The derivative of x -> body at a point where its inverses, logs and roots are regular."""
    slope, needs = differentiate(body, x)
    at = {x[1]: ((), point)}
    _meets(needs, conditions, at)
    return _claim(Formula(("eq", diff(x, body, point), substitute(slope, reals=at))), *conditions)


@_rule
def monotone(sign: Fact, order: Fact, x: Term, body: Term, conditions: Sequence[Fact] = ()) -> Fact:
    """From 0 <= (or <, or with >= the mirror) body'(x) on a <= x <= b, and a <= b: order of body(a), body(b).

    ``sign`` proves ``0 <= slope`` or ``slope <= 0`` where slope is the derivative, under hypotheses
    that may include a <= x and x <= b; so do ``conditions``. (Mean value theorem.)
    """
    a, b = _sides(order, "le", "lt")
    inside = {_le(a, x), _le(x, b)}
    slope, needs = differentiate(body, x)
    _meets(needs, conditions, {})
    lo, hi = _sides(sign, "le", "lt")
    growing = lo == real(0)
    _need(growing or hi == real(0), "expected the sign of the derivative")
    _need(is_zero(_sub(hi if growing else lo, slope)), f"the derivative is {slope!r}")
    rest = _claim(sign.conclusion, sign, *conditions).hypotheses - inside
    for f in (*rest, order.conclusion):
        _need(("sym", x[1]) not in free(f), f"{x!r} is free in {f!r}")
    ends = [substitute(body, reals={x[1]: ((), p)}) for p in ((a, b) if growing else (b, a))]
    return _claim(_le(ends[0], ends[1]), Fact(rest, sign.conclusion), order)


@_rule
def on_box(target: Formula, box: Mapping[str, tuple[Fraction, Fraction]], boxes: int = 20_000) -> Fact:
    """A strict or weak inequality for all points of a bounded box, by ball arithmetic with subdivision."""
    _need(target[0] in ("le", "lt"), "expected an inequality")
    sides = {n: (Fraction(lo), Fraction(hi)) for n, (lo, hi) in box.items()}
    ok = balls.holds_on_box(_sub(target[2], target[1]), sides, strict=target[0] == "lt", boxes=boxes)
    _need(ok, f"ball arithmetic did not decide {target!r}")
    x = {n: Term(("sym", n)) for n in sides}
    walls = [f for n, (lo, hi) in sides.items() for f in (_le(real(lo), x[n]), _le(x[n], real(hi)))]
    return Fact(frozenset(walls), target)


# --- axioms ------------------------------------------------------------------------------------------------


@_axiom
def exp_positive(t: Term) -> Fact:
    """0 < exp(t) for every real t."""
    return Fact(frozenset(), Formula(("lt", real(0), exp(t))))


@_axiom
def log_exp(t: Term) -> Fact:
    """log(exp(t)) = t for every real t."""
    return Fact(frozenset(), Formula(("eq", log(exp(t)), t)))


@_axiom
def exp_log(positive: Fact) -> Fact:
    """exp(log(b)) = b whenever 0 < b."""
    a, b = _sides(positive, "lt")
    _need(a == real(0), "expected 0 < b")
    return _claim(Formula(("eq", exp(log(b)), b)), positive)


@_axiom
def sqrt_nonnegative(nonnegative: Fact) -> Fact:
    """0 <= sqrt(b) whenever 0 <= b."""
    a, b = _sides(nonnegative, "le", "lt")
    _need(a == real(0), "expected 0 <= b")
    return _claim(_le(a, sqrt(b)), nonnegative)


@_axiom
def lambert_w(nonnegative: Fact) -> Fact:
    """W(x) exp(W(x)) = x whenever 0 <= x, for the principal branch W."""
    a, x = _sides(nonnegative, "le", "lt")
    _need(a == real(0), "expected 0 <= x")
    return _claim(Formula(("eq", lambertw(x) * exp(lambertw(x)), x)), nonnegative)


@_axiom
def lambert_w_nonnegative(nonnegative: Fact) -> Fact:
    """0 <= W(x) whenever 0 <= x, for the principal branch W."""
    a, x = _sides(nonnegative, "le", "lt")
    _need(a == real(0), "expected 0 <= x")
    return _claim(_le(a, lambertw(x)), nonnegative)


@_axiom
def max_is(order: Fact) -> Fact:
    """max(a, b) = b whenever a <= b."""
    a, b = _sides(order, "le", "lt")
    return _claim(Formula(("eq", Term(("fn", "max", a, b)), b)), order)


@_axiom
def max_commutes(a: Term, b: Term) -> Fact:
    """max(a, b) = max(b, a)."""
    return Fact(frozenset(), Formula(("eq", Term(("fn", "max", a, b)), Term(("fn", "max", b, a)))))


@_axiom
def min_is_minus_max(a: Term, b: Term) -> Fact:
    """min(a, b) = a + b - max(a, b)."""
    right = _sub(Term(("add", a, b)), Term(("fn", "max", a, b)))
    return Fact(frozenset(), Formula(("eq", Term(("fn", "min", a, b)), right)))


@_axiom
def inner_nonnegative(u: Vector) -> Fact:
    """0 <= <u, u> for every vector u."""
    return Fact(frozenset(), _le(real(0), inner(u, u)))


@_axiom
def cauchy_schwarz(u: Vector, v: Vector) -> Fact:
    """<u, v> <= ||u|| ||v|| for all vectors u, v."""
    return Fact(frozenset(), _le(inner(u, v), Term(("mul", norm(u), norm(v)))))


if not TYPE_CHECKING:
    del _rule, _axiom, _build  # nothing is left that could make a claim by hand


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
