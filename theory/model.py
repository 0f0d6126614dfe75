"""Kernel formulas in a concrete finite model: True, False or undecided, never a guess.

A model gives every symbol a value: exact rationals where they stay rational, balls of ``python-flint`` behind
exp, log, sqrt and Lambert W. Sets are finite, vectors are tuples of numbers. A hypothesis of the form
``s[i, ...] = term`` (p, a, c, the gradient, the update, a step-size rule) *defines* its symbol: the symbol's
value is that term's, so the hypothesis holds by construction. A bound such as ``||A_k|| <= R`` on a plain
symbol can be made tight: R is then the upper end of the largest norm's ball.

"For every t" is checked for t = 0, ..., horizon: a True says nothing of later steps, a False is final.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, ctx, fmpq

from theory.proof.calculus import differentiate
from theory.proof.normal import normal, polynomial_term
from theory.proof.terms import (
    Domain,
    Formula,
    Index,
    Node,
    Term,
    Vector,
    forall,
    free,
    open_binder,
    substitute,
)

Number = Any  # fmpq (exact) or arb (a ball)
Env = Mapping[str, int]  # index variable -> natural
BITS = 160


class UndecidedError(Exception):
    """A ball holds a point where the term is unspecified, or a value is not available."""


class BeyondHorizonError(UndecidedError):
    """A step later than the simulated ones."""


@contextlib.contextmanager
def precision(bits: int = BITS) -> Iterator[None]:
    """Ball arithmetic with this many bits inside the block."""
    previous, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = previous


def exact(q: Fraction | int) -> fmpq:
    """A rational for flint."""
    q = Fraction(q)
    return fmpq(q.numerator, q.denominator)


def is_exact(x: Number) -> bool:
    """Whether a number is an exact rational."""
    return isinstance(x, fmpq)


def sign_known(x: Number) -> int | None:
    """The sign, or None when the ball does not tell."""
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0 if x == 0 else None


def approximate(x: Number) -> float:
    """A float near the number, for reports and searches; nothing is decided by it."""
    if is_exact(x):
        try:
            return float(Fraction(int(x.p), int(x.q)))
        except OverflowError:
            return math.inf if x > 0 else -math.inf
    return float(x.mid())


# --- functions ---------------------------------------------------------------------------------------------


def _inverse(x: Number) -> Number:
    sign = sign_known(x)
    if sign is None:
        raise UndecidedError("a divisor may vanish")
    return x if sign == 0 else 1 / x


def _root(x: Number) -> Number:
    if is_exact(x) and x >= 0:
        p, q = int(x.p), int(x.q)
        if math.isqrt(p) ** 2 == p and math.isqrt(q) ** 2 == q:
            return fmpq(math.isqrt(p), math.isqrt(q))
        return arb(x).sqrt()
    if not x >= 0:
        raise UndecidedError("a square root of what may be negative")
    return x.sqrt()


def _logarithm(x: Number) -> Number:
    if not x > 0:
        raise UndecidedError("a logarithm of what may be nonpositive")
    return fmpq(0) if x == 1 else arb(x).log()


def _lambert(x: Number) -> Number:
    if not x >= 0:
        raise UndecidedError("Lambert W of what may be negative")
    return fmpq(0) if x == 0 else arb(x).lambertw()


def _exponential(x: Number) -> Number:
    if is_exact(x) and x == 0:
        return fmpq(1)
    ball = arb(x).exp()
    if not ball.is_finite():
        raise UndecidedError("an exponential too large to enclose")
    return ball


def _larger(x: Number, y: Number) -> Number:
    return max(x, y) if is_exact(x) and is_exact(y) else arb(x).max(arb(y))


def _smaller(x: Number, y: Number) -> Number:
    return min(x, y) if is_exact(x) and is_exact(y) else arb(x).min(arb(y))


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "exp": _exponential,
    "log": _logarithm,
    "sqrt": _root,
    "lambertw": _lambert,
    "max": _larger,
    "min": _smaller,
}


# --- definitions -------------------------------------------------------------------------------------------


def _match(pattern: Sequence[Index], at: tuple[int, ...]) -> dict[str, int] | None:
    """The index values under which the pattern is ``at``."""
    if len(at) != len(pattern):
        return None
    env: dict[str, int] = {}
    for ix, value in zip(pattern, at, strict=True):
        rest = value - ix[2]
        if rest < 0 or (not ix[1] and rest) or (ix[1] and env.setdefault(ix[1][0], rest) != rest):
            return None
    return env


@dataclass(frozen=True)
class Definition:
    """``name[pattern] = body``: the value of a family wherever the pattern matches."""

    name: str
    pattern: tuple[Index, ...]
    body: Node


@dataclass(frozen=True)
class Bound:
    """A family bounded by terms: ``name[pattern] >= body`` (side +1) or ``<= body`` (side -1).

    ``body`` is the term as both sides of an inequality, under the quantifiers that do not index the family.
    """

    name: str
    pattern: tuple[Index, ...]
    side: int
    body: Formula


def _opened(formula: Formula) -> tuple[Formula, dict[str, Domain]]:
    """The body under the universal quantifiers, and the opened names with their domains, outermost first."""
    binders: dict[str, Domain] = {}
    while formula[0] == "forall":
        name = f"@{len(binders)}"
        binders[name] = formula[2]
        formula = open_binder(formula, name)
    return formula, binders


@lru_cache(maxsize=4096)
def definition(formula: Formula) -> Definition | None:
    """The definition that a hypothesis is, if it is one: a symbol at distinct indices equals a term."""
    body, binders = _opened(formula)
    if body[0] not in ("eq", "veq"):
        return None
    for left, right in ((body[1], body[2]), (body[2], body[1])):
        if left[0] not in ("sym", "vsym"):
            continue
        pattern = left[2:]
        if _distinct(pattern, binders) and {v for ix in pattern for v in ix[1]} == set(binders):
            return Definition(left[1], pattern, right)
    return None


def _distinct(pattern: Sequence[Index], names: Iterable[str]) -> bool:
    """Whether a pattern's indices are different ones of these variables, each perhaps shifted."""
    used = [v for ix in pattern for v in ix[1]]
    return len(set(used)) == len(used) and set(used) <= set(names) and all(len(ix[1]) <= 1 for ix in pattern)


@lru_cache(maxsize=4096)
def tight_bounds(formula: Formula) -> tuple[Bound, ...]:
    """The real symbols that an inequality bounds.

    Only bounds that are linear in the symbol; what multiplies it is taken to be positive (a guide for making
    models: the hypothesis is checked in the model that results).
    """
    body, binders = _opened(formula)
    if body[0] != "le":
        return ()
    slack = normal(body[2] - body[1])
    out = []
    for monomial, factor in slack.items():
        for symbol, power in monomial:
            if symbol[0] != "sym" or power != 1 or not _distinct(symbol[2:], binders):
                continue
            term = polynomial_term({m: -c / factor for m, c in slack.items() if m != monomial})
            others = tuple(pair for pair in monomial if pair[0] != symbol)
            if others:
                term = term / polynomial_term({others: Fraction(1)})
            names = free(term)
            if ("sym", symbol[1]) in names or not any(kind != "ix" for kind, _ in names):
                continue
            both = Formula(("le", term, term))
            fixed = {v for ix in symbol[2:] for v in ix[1]}
            for name, dom in reversed(binders.items()):
                if name not in fixed:
                    both = forall(Index(("ix", (name,), 0)), dom, both)
            out.append(Bound(symbol[1], symbol[2:], 1 if factor > 0 else -1, both))
    return tuple(out)


# --- the model ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """One instance of an (in)equality: both sides, and the values of the quantified indices."""

    head: str
    small: Number
    large: Number
    at: tuple[int, ...]

    @property
    def state(self) -> bool | None:
        """Whether it holds: True, False, or None when the balls do not tell."""
        a, b = self.small, self.large
        if self.head == "le":
            return True if a <= b else False if a > b else None
        if self.head == "lt":
            return True if a < b else False if a >= b else None
        return True if is_exact(a) and is_exact(b) and a == b else False if a < b or a > b else None

    @property
    def ratio(self) -> float:
        """1 - (large - small)/max(|large|, |small|): the small/large ratio for positive sides.

        1 at equality, above 1 where the inequality fails; for two negative sides large/small; negative when
        small < 0 < large. nan when both sides are 0.
        """
        size = _larger(abs(self.small), abs(self.large))
        if not size > 0:
            return math.nan
        slack = (self.large - self.small) / size
        # Sides that the balls cannot tell apart count as equal only where the balls are narrow.
        wide = not is_exact(slack) and slack.rad() > 1e-9
        return math.nan if wide else 1 - approximate(slack)


class Model:
    """Values for symbols, sets and free indices; evaluates terms and formulas.

    Args:
        sets: the elements of a named finite set at index values.
        real: the value of a real symbol that no hypothesis defines or bounds.
        vector: the same for vector symbols.
        hypotheses: those that define symbols are taken as definitions.
        tighten: real symbols to be set by the tight side of a hypothesis that bounds them.
        indices: values of free index variables.
        horizon: the last step t that is looked at; W_t beyond it is not available.
    """

    def __init__(  # noqa: D107 (the class says it)
        self,
        *,
        sets: Callable[[str, tuple[int, ...]], Sequence[int]],
        real: Callable[[str, tuple[int, ...]], Number],
        vector: Callable[[str, tuple[int, ...]], tuple[Number, ...]],
        hypotheses: Iterable[Formula] = (),
        tighten: Iterable[str] = (),
        indices: Mapping[str, int] | None = None,
        horizon: int = 6,
    ) -> None:
        self.sets, self.horizon = sets, horizon
        self.indices = dict(indices or {})
        self._real, self._vector = real, vector
        self._definitions: dict[tuple[str, str], list[Definition]] = {}
        self._constructed: set[Formula] = set()
        self._bounds: dict[str, list[Bound]] = {}
        self._values: dict[tuple[Any, ...], Any] = {}
        self._memo: dict[tuple[Any, ...], Any] = {}
        wanted = set(tighten)
        for formula in hypotheses:
            found = definition(formula)
            if found is not None:
                kind = "sym" if isinstance(found.body, Term) else "vsym"
                known = self._definitions.setdefault((kind, found.name), [])
                # A second equation for the same symbol is checked, not assumed.
                if all(len(other.pattern) != len(found.pattern) for other in known):
                    known.append(found)
                    self._constructed.add(formula)
            for bound in tight_bounds(formula):
                if bound.name in wanted:
                    self._bounds.setdefault(bound.name, []).append(bound)

    # values of symbols

    def symbol(self, kind: str, name: str, at: tuple[int, ...]) -> Any:
        """The value of a real (``sym``) or vector (``vsym``) symbol at index values."""
        key = (kind, name, at)
        if key not in self._values:
            if kind == "vsym" and name == "W" and len(at) == 1 and at[0] > self.horizon:
                raise BeyondHorizonError(f"W at step {at[0]}")
            self._values[key] = None  # guards against circular definitions
            try:
                self._values[key] = self._resolve(kind, name, at)
            except BaseException:
                del self._values[key]
                raise
        value = self._values[key]
        if value is None:
            raise UndecidedError(f"circular definition of {name}")
        return value

    def _resolve(self, kind: str, name: str, at: tuple[int, ...]) -> Any:
        for rule in self._definitions.get((kind, name), ()):
            env = _match(rule.pattern, at)
            if env is not None:
                return evaluate(rule.body, self, {**self.indices, **env})
        if kind == "vsym":
            return self._vector(name, at)
        if name in self._bounds:
            with contextlib.suppress(UndecidedError):
                return self._tight(name, at)
        return self._real(name, at)

    def _tight(self, name: str, at: tuple[int, ...]) -> Number:
        bounds = self._bounds[name]
        side = bounds[0].side
        ends: list[Number] = []
        for bound in bounds:
            env = _match(bound.pattern, at)
            if bound.side != side or env is None:
                continue
            for pair in self.sides(bound.body, env):
                x = pair.small
                ends.append(x if is_exact(x) else x.upper() if side > 0 else x.lower())
        if not ends:
            raise UndecidedError(f"nothing bounds {name} here")
        out = ends[0]
        for x in ends[1:]:  # all ends are points, so comparing them is exact
            if (x > out) if side > 0 else (x < out):
                out = x
        return out

    # evaluation

    def term(self, t: Term | Vector, at: Env | None = None) -> Any:
        """The value of a term or vector.

        Raises:
            UndecidedError: it has none that could be enclosed.
        """
        return evaluate(t, self, {**self.indices, **(at or {})})

    def elements(self, dom: Domain, env: Env) -> Iterable[int]:
        """The elements of a domain; the naturals are cut at the horizon."""
        if dom[0] == "nat":
            return range(self.horizon + 1)
        if dom[0] == "below":
            return range(_index(dom[1], env))
        return self.sets(dom[1], tuple(_index(i, env) for i in dom[2:]))

    def sides(self, formula: Formula, at: Env | None = None) -> Iterator[Side]:
        """Every instance of the (in)equality under a formula's quantifiers, up to the horizon.

        Raises:
            UndecidedError: one of them cannot be evaluated (a ball may leave a function's domain).
        """
        yield from self._sides(formula, {**self.indices, **(at or {})}, ())

    def _sides(self, formula: Formula, env: dict[str, int], at: tuple[int, ...]) -> Iterator[Side]:
        head = formula[0]
        if head == "forall":
            for v in self.elements(formula[2], env):
                try:
                    yield from self._sides(formula[3], {**env, formula[1]: v}, (*at, v))
                except BeyondHorizonError:
                    if formula[2][0] == "nat":
                        return
                    raise
        elif head == "veq":
            u, v = evaluate(formula[1], self, env), evaluate(formula[2], self, env)
            for x, y in zip(u, v, strict=True):
                yield Side("eq", x, y, at)
        elif head == "in":
            inside = _index(formula[1], env) in self.elements(formula[2], env)
            yield Side("le", fmpq(0 if inside else 1), fmpq(0), at)
        else:
            yield Side(head, evaluate(formula[1], self, env), evaluate(formula[2], self, env), at)

    def holds(self, formula: Formula) -> bool | None:
        """Whether the formula is true in this model; None when ball arithmetic does not tell."""
        if formula in self._constructed:
            return True
        answer: bool | None = True
        try:
            for side in self.sides(formula):
                state = side.state
                if state is False:
                    return False
                answer = answer if state else None
        except UndecidedError:
            return None
        return answer

    def by_construction(self, formula: Formula) -> bool:
        """Whether the formula serves as a definition here."""
        return formula in self._constructed


def _index(ix: Index, env: Env) -> int:
    out: int = ix[2]
    for v in ix[1]:
        out += env[v]
    return out


# --- compiled evaluation -----------------------------------------------------------------------------------

Code = Callable[[Model, Env], Any]
_REMEMBERED = ("inner", "sum", "vsum", "vadd", "fn", "diff")


def evaluate(node: Node, model: Model, env: Env) -> Any:
    """The value of a term (a number) or a vector (a tuple of numbers)."""
    return _code(node)(model, env)


@lru_cache(maxsize=100_000)
def _code(node: Node) -> Code:
    plain = _compile(node)
    if node[0] not in _REMEMBERED:
        return plain
    names = tuple(sorted(name for kind, name in free(node) if kind == "ix"))

    def remembered(model: Model, env: Env) -> Any:
        key = (plain, tuple(env[v] for v in names))
        found = model._memo.get(key)
        if found is None:
            found = model._memo[key] = plain(model, env)
        return found

    return remembered


def _compile(node: Node) -> Code:
    head = node[0]
    if head == "num":
        q = exact(node[1])
        return lambda model, env: q
    if head == "real":
        return lambda model, env: fmpq(_index(node[1], env))
    if head in ("sym", "vsym"):
        name, ixs = node[1], node[2:]
        return lambda model, env: model.symbol(head, name, tuple(_index(i, env) for i in ixs))
    if head == "add":
        parts = [_code(c) for c in node[1:]]
        return lambda model, env: sum((f(model, env) for f in parts), start=fmpq(0))
    if head == "mul":
        parts = [_code(c) for c in node[1:]]
        return lambda model, env: _product(f(model, env) for f in parts)
    if head == "pow" and node[2] % 2 == 0 and _under_root(node[1]) is not None:  # g*^2 stays exact
        inside, half = _code(_under_root(node[1]) or node[1]), node[2] // 2
        inverted = node[1][0] == "inv"
        return lambda model, env: _even_power(inside(model, env), half, inverted)
    if head == "pow":
        base, power = _code(node[1]), node[2]
        return lambda model, env: base(model, env) ** power
    if head == "inv":
        base = _code(node[1])
        return lambda model, env: _inverse(base(model, env))
    if head == "fn":
        function, args = _FUNCTIONS[node[1]], [_code(c) for c in node[2:]]
        return lambda model, env: function(*(f(model, env) for f in args))
    if head == "inner":
        left, right = _code(node[1]), _code(node[2])
        if node[1] == node[2]:  # a square is not negative, whatever its ball
            return lambda model, env: sum((x**2 for x in left(model, env)), start=fmpq(0))
        return lambda model, env: _dot(left(model, env), right(model, env))
    if head in ("sum", "vsum"):
        name, dom, body = node[1], node[2], _code(node[3])
        add = _vector_sum if head == "vsum" else lambda xs: sum(xs, start=fmpq(0))
        return lambda model, env: add([body(model, {**env, name: v}) for v in model.elements(dom, env)])
    if head == "vadd":
        parts = [_code(c) for c in node[1:]]
        return lambda model, env: _vector_sum([f(model, env) for f in parts])
    if head == "vscale":
        scalar, vec = _code(node[1]), _code(node[2])
        return lambda model, env: _scaled(scalar(model, env), vec(model, env))
    if head == "diff":
        # The conditions of the derivative are those under which its value can be computed at all.
        slope, _ = differentiate(node[2], Term(("sym", node[1])))
        return _code(substitute(slope, reals={node[1]: ((), node[3])}))
    raise ValueError(f"no value for {node!r}")


def _under_root(node: Node) -> Node | None:
    """x for sqrt(x) and 1/sqrt(x)."""
    if node[0] == "inv":
        node = node[1]
    return node[2] if node[:2] == ("fn", "sqrt") else None


def _even_power(x: Number, half: int, inverted: bool) -> Number:
    if not x >= 0:
        raise UndecidedError("a square root of what may be negative")
    return (_inverse(x) if inverted else x) ** half


def _product(factors: Iterable[Number]) -> Number:
    out = fmpq(1)
    for x in factors:
        out = out * x
    return out


def _dot(u: Sequence[Number], v: Sequence[Number]) -> Number:
    if not u or not v:  # the empty vector sum is 0
        return fmpq(0)
    return sum((x * y for x, y in zip(u, v, strict=True)), start=fmpq(0))


def _vector_sum(vectors: Sequence[tuple[Number, ...]]) -> tuple[Number, ...]:
    present = [v for v in vectors if v]
    if not present:
        return ()
    return tuple(sum(xs, start=fmpq(0)) for xs in zip(*present, strict=True))


def _scaled(scalar: Number, v: tuple[Number, ...]) -> tuple[Number, ...]:
    return tuple(scalar * x for x in v)
