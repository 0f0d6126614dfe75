"""The kernel's semantics, written anew for the tests: every term in a concrete model, and random terms.

A model fixes, from a seed, a value for every symbol: small rationals (often 0), vectors of two rationals,
subsets of {0, ..., 3}. Functions are total: inv(0) = 0, and log, sqrt and lambertw take arbitrary values
outside their domains. Values are rationals, or balls of 200 bits once a function is not rational.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
from fractions import Fraction

from flint import arb, ctx, fmpq

from theory.proof import terms as tm
from theory.proof.terms import Domain, Term, Vector, exp, finite, index, inner, inv, log, sqrt, symbol, vector


class UnknownError(Exception):
    """A ball is not a number: the model cannot tell whether it is 0."""


@contextlib.contextmanager
def precision(bits=200):
    with ctx.workprec(bits):
        yield


def number(q):
    return fmpq(q.numerator, q.denominator)


def ball(x):
    return x if isinstance(x, arb) else arb(x)


class Model:
    """A value for every symbol; ``bind`` overrides some."""

    def __init__(self, seed, sym=None, vsym=None, ix=None, horizon=4):
        self.seed, self.sym, self.vsym, self.ix, self.horizon = seed, sym or {}, vsym or {}, ix or {}, horizon

    def draw(self, *key):
        digest = hashlib.sha256(repr((self.seed, *key)).encode()).digest()
        return random.Random(digest)

    def bind(self, sym=None, vsym=None, ix=None):
        return Model(
            self.seed,
            {**self.sym, **(sym or {})},
            {**self.vsym, **(vsym or {})},
            {**self.ix, **(ix or {})},
            self.horizon,
        )

    def rational(self, *key):
        rng = self.draw(*key)
        return fmpq(0) if rng.random() < 0.2 else fmpq(rng.randint(-4, 4), rng.randint(1, 3))

    def index(self, i):
        return i[2] + sum(self.ix[v] if v in self.ix else self.draw("ix", v).randint(0, 3) for v in i[1])

    def domain(self, dom):
        if dom[0] == "below":
            return range(self.index(dom[1]))
        at = tuple(self.index(i) for i in dom[2:])
        return [k for k in range(4) if self.draw("set", dom[1], at, k).random() < 0.5]

    def spread(self, t):
        return [self.bind(ix={t[1]: k}) for k in self.domain(t[2])]

    def vector(self, v):
        head = v[0]
        if head == "vsym":
            at = tuple(self.index(i) for i in v[2:])
            if v[1] in self.vsym:
                return self.vsym[v[1]](*at)
            return [self.rational("vsym", v[1], at, c) for c in range(2)]
        if head == "vscale":
            return [self.real(v[1]) * x for x in self.vector(v[2])]
        parts = (
            [self.vector(u) for u in v[1:]] if head == "vadd" else [m.vector(v[3]) for m in self.spread(v)]
        )
        return [sum(xs, fmpq(0)) for xs in zip(*parts, strict=True)] if parts else [fmpq(0)] * 2

    def real(self, t):
        head = t[0]
        if head == "num":
            return number(t[1])
        if head == "sym":
            at = tuple(self.index(i) for i in t[2:])
            return self.sym[t[1]](*at) if t[1] in self.sym else self.rational("sym", t[1], at)
        if head == "real":
            return fmpq(self.index(t[1]))
        if head == "add":
            return sum((self.real(c) for c in t[1:]), fmpq(0))
        if head == "mul":
            out = fmpq(1)
            for c in t[1:]:
                out *= self.real(c)
            return out
        if head == "pow":
            out = fmpq(1)
            for _ in range(t[2]):
                out *= self.real(t[1])
            return out
        if head == "inv":
            x = self.real(t[1])
            return fmpq(0) if self.sign(x) == 0 else 1 / x
        if head == "sum":
            return sum((m.real(t[3]) for m in self.spread(t)), fmpq(0))
        if head == "inner":
            return sum((x * y for x, y in zip(self.vector(t[1]), self.vector(t[2]), strict=True)), fmpq(0))
        if head != "fn":
            raise UnknownError(f"no value for {t}")
        return self.function(t[1], *(self.real(c) for c in t[2:]))

    def function(self, name, x, y=None):
        if name == "exp":
            return ball(x).exp()
        if name in ("max", "min"):
            larger, smaller = (x, y) if self.sign(x - y) >= 0 else (y, x)
            return larger if name == "max" else smaller
        sign = self.sign(x)
        if name == "sqrt":
            return 5 + x if sign < 0 else fmpq(0) if sign == 0 else ball(x).sqrt()
        if name == "log":
            return ball(x).log() if sign > 0 else 7 - 2 * x
        return fmpq(0) if sign == 0 else ball(x).lambertw() if sign > 0 else x * x - 3

    @staticmethod
    def sign(x):
        """-1, 0 or 1.

        A ball that meets 0 is not decided, unless it is no larger than rounding: then the two sides of an
        identity may have met there, and the model is not to be used.
        """
        if x == 0:
            return 0
        if x > 0:
            return 1
        if x < 0:
            return -1
        raise UnknownError(f"{x} may be 0")

    def holds(self, f):
        """Whether a formula holds; universal claims over all naturals are tried below the horizon."""
        if f[0] == "forall":
            dom = range(self.horizon) if f[2] == tm.NATURALS else self.domain(f[2])
            return all(self.bind(ix={f[1]: k}).holds(f[3]) for k in dom)
        if f[0] == "in":
            return f[2] == tm.NATURALS or self.index(f[1]) in self.domain(f[2])
        if f[0] == "veq":
            return all(equal(x, y) for x, y in zip(self.vector(f[1]), self.vector(f[2]), strict=True))
        a, b = self.real(f[1]), self.real(f[2])
        if f[0] == "eq":
            return equal(a, b)
        return self.sign(b - a) >= (1 if f[0] == "lt" else 0)


def equal(a, b):
    """Whether two values agree: exactly for rationals, for balls in all but the last digits."""
    if not (isinstance(a, arb) or isinstance(b, arb)):
        return a == b
    a, b = ball(a), ball(b)
    if not (a.is_finite() and b.is_finite()):
        raise UnknownError("a value is out of range")
    size = 1 + abs(a) + abs(b)
    if (a - b).contains(0):
        if (a - b).rad() > size.mid() * arb(2) ** -80:
            raise UnknownError("too much cancellation")
        return True
    return False


class Grammar:
    """Random terms over a few names; ``functions`` says which may occur."""

    def __init__(self, rng, functions=("exp", "log", "sqrt", "lambertw", "max", "min"), inverses=True):
        self.rng, self.functions, self.inverses = rng, functions, inverses

    def pick_index(self, scope):
        i = index(self.rng.choice(["k", "l", *scope]))
        return i + self.rng.choice([0, 0, 0, 1, 2])

    def domain(self, scope) -> Domain:
        roll = self.rng.random()
        if roll < 0.4:
            return tm.below(self.pick_index(scope))
        return finite("D") if roll < 0.7 else finite("J", self.pick_index(scope))

    def vector(self, depth, scope=()) -> Vector:
        roll = self.rng.random()
        if depth == 0 or roll < 0.3:
            return vector("u") if self.rng.random() < 0.5 else vector("w", self.pick_index(scope))
        if roll < 0.55:
            return self.vector(depth - 1, scope) + self.vector(depth - 1, scope)
        if roll < 0.8:
            return self.term(depth - 1, scope) * self.vector(depth - 1, scope)
        name = f"i{len(scope)}"
        return tm.vtotal(index(name), self.domain(scope), self.vector(depth - 1, (*scope, name)))

    def term(self, depth, scope=()) -> Term:
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            leaves = [
                lambda: tm.real(Fraction(rng.randint(-3, 3), rng.randint(1, 2))),
                lambda: symbol(rng.choice("xy")),
                lambda: symbol("f", self.pick_index(scope)),
                lambda: tm.as_real(self.pick_index(scope)),
            ]
            return rng.choice(leaves)()
        deeper = depth - 1

        def sub(s=scope) -> Term:
            return self.term(deeper, s)

        name = f"i{len(scope)}"
        kinds = [
            lambda: sub() + sub(),
            lambda: sub() * sub(),
            lambda: sub() - sub(),
            lambda: sub() ** rng.randint(0, 3),
            lambda: tm.total(index(name), self.domain(scope), sub((*scope, name))),
            lambda: inner(self.vector(deeper, scope), self.vector(deeper, scope)),
        ]
        if self.inverses:
            kinds.append(lambda: inv(sub()))
        unary = {"exp": exp, "log": log, "sqrt": sqrt, "lambertw": tm.lambertw}
        kinds += [lambda f=f: unary[f](sub()) for f in self.functions if f in unary]
        kinds += [
            lambda f=f: f(sub(), sub())
            for n, f in (("max", tm.maximum), ("min", tm.minimum))
            if n in self.functions
        ]
        return rng.choice(kinds)()
