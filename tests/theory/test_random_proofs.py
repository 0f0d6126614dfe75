# ruff: noqa: SIM300 -- claims are written the way round that the kernel has them
"""Random derivations: whatever the rules are made to prove must hold in every concrete model tried.

Rules are applied to random claims with few names, so that indices, domains and symbols clash often; most
applications are refused. Each claim that comes out is evaluated in random models where its hypotheses hold.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tests.theory.concrete import Grammar, Model, UnknownError, precision
from theory.catalog import theorems
from theory.proof import kernel
from theory.proof.calculus import differentiate
from theory.proof.kernel import KernelError, Proved
from theory.proof.normal import canonical
from theory.proof.terms import (
    NATURALS,
    Formula,
    Index,
    as_real,
    below,
    eq,
    finite,
    forall,
    index,
    inv,
    member,
    number,
    real,
    sqrt,
    substitute,
    symbol,
    total,
    vector,
    veq,
)

NAMES = "ijk"


class Prover:
    """A pool of claims that grows by random rules."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.grammar = Grammar(self.rng, functions=("exp", "log", "sqrt", "max"))
        self.pool: list[Proved] = [kernel.square(symbol("x"))]

    # random material

    def index(self) -> Index:
        return index(self.rng.choice(NAMES))

    def shifted(self) -> Index:
        return self.rng.choice(
            [self.index, lambda: self.index() + 1, lambda: number(self.rng.randint(0, 2))]
        )()

    def domain(self, *, all_=True):
        makers = [lambda: finite("D"), lambda: finite("J", self.shifted()), lambda: below(self.shifted())]
        return self.rng.choice([*makers, lambda: NATURALS] if all_ else makers)()

    def term(self):
        rng = self.rng
        atoms = [
            lambda: symbol(rng.choice("xy")),
            lambda: symbol("f", self.shifted()),
            lambda: symbol("g", self.shifted(), self.index()),
            lambda: real(Fraction(rng.randint(-2, 2))),
            lambda: as_real(self.shifted()),
            lambda: total(self.index(), self.domain(all_=False), self.term()),
            lambda: self.term() + self.term(),
            lambda: self.term() * self.term(),
            lambda: inv(self.term()),
            lambda: sqrt(self.term()),
        ]
        weights = [4, 6, 3, 3, 2, 2, 2, 2, 1, 1]
        return rng.choices(atoms, weights)[0]()

    def formula(self) -> Formula:
        a, b = self.term(), self.term()
        return self.rng.choices(
            [
                lambda: a <= b,
                lambda: a < b,
                lambda: eq(a, b),
                lambda: member(self.shifted(), self.domain()),
                lambda: forall(self.index(), self.domain(), self.formula()),
                lambda: veq(vector("u"), self.grammar.vector(1, tuple(NAMES))),
            ],
            [3, 3, 3, 2, 4, 1],
        )[0]()

    def order(self) -> Formula:
        return self.rng.choice([self.term() <= self.term(), eq(self.term(), self.term())])

    def claim(self, *heads) -> Proved:
        fitting = [c for c in self.pool if c.conclusion[0] in heads] if heads else self.pool
        return self.rng.choice(fitting[-40:] or self.pool)

    def bound(self, claim, *, all_=True):
        """An index and a domain: mostly those of a hypothesis "i in D" of the claim."""
        inside = [h for h in claim.hypotheses if h[0] == "in" and len(h[1][1]) == 1 and h[1][2] == 0]
        if inside and self.rng.random() < 0.8:
            h = self.rng.choice(sorted(inside, key=repr))
            return h[1], h[2]
        return self.index(), self.domain(all_=all_)

    # rules

    def assume(self):
        return kernel.assume(self.formula())

    def inhabited(self):
        """A universal hypothesis at a generic element, ready to be summed or generalized."""
        i, dom = self.index(), self.domain()
        f = kernel.assume(forall(i, dom, self.rng.choice([self.formula, self.order])()))
        inside = () if dom == NATURALS else (kernel.assume(member(i, dom)),)
        return kernel.specialize(f, i, *inside)

    def identity(self):
        return kernel.combine(self.term() <= self.term())

    def combine(self):
        p, q = self.claim("le", "lt", "eq"), self.claim("le", "lt", "eq")
        (a, b), (c, d) = p.conclusion[1:], q.conclusion[1:]
        if p.conclusion[0] == q.conclusion[0] == "eq":
            m = self.term()
            return kernel.combine(eq(a * m + c, b * m + d), [(m, p), (1, q)])
        strict = "lt" in (p.conclusion[0], q.conclusion[0])
        total_ = Formula(("lt" if strict else "le", a + c, b + d))
        if self.rng.random() < 0.5:
            return kernel.combine(total_, [(1, p), (1, q)])
        both = p.conclusion[0] == q.conclusion[0] == "lt"
        product = (b - a) * (d - c)
        return kernel.combine(0 < product if both else 0 <= product, [(p, q)])

    def normalize(self):
        p = self.claim("le", "lt", "eq")
        head, a, b = p.conclusion
        return kernel.combine(Formula((head, canonical(a), canonical(b))), [(1, p)])

    def cancel(self):
        a, p = self.term(), self.claim("lt")
        b = p.conclusion[2] - p.conclusion[1]
        return kernel.combine(eq(a * b * inv(b), a), nonzero=[p])

    def root(self):
        p = self.claim("lt", "le")
        b = p.conclusion[2] - p.conclusion[1]
        return kernel.combine(eq(sqrt(b) ** 3, b * sqrt(b)), nonnegative=[p])

    def generalize(self):
        claim = self.claim()
        return kernel.generalize(claim, *self.bound(claim))

    def specialize(self):
        p = self.claim("forall")
        at = self.shifted()
        if p.conclusion[0] == "forall" and p.conclusion[2] != NATURALS:
            return kernel.specialize(p, at, kernel.assume(member(at, p.conclusion[2])))
        return kernel.specialize(p, at)

    def instantiate(self):
        rng = self.rng
        options = {
            "reals": {"x": self.term(), "f": ((rng.choice(NAMES),), self.term())},
            "vectors": {"u": self.grammar.vector(2, tuple(NAMES))},
            "indices": {rng.choice(NAMES): self.shifted()},
        }
        kept = {k: v for k, v in options.items() if rng.random() < 0.6}
        return kernel.instantiate(self.claim(), **kept)

    def discharge(self):
        p = self.claim()
        chosen = [h for h in sorted(p.hypotheses, key=repr) if self.rng.random() < 0.7]
        proofs = [c for c in self.pool if c.conclusion in chosen][:3]
        return kernel.discharge(p, *proofs)

    def cases(self):
        a, b = self.term(), self.term()
        p = self.claim()
        low = kernel.discharge(p)
        if self.rng.random() < 0.7:
            orders = sorted((h for h in p.hypotheses if h[0] in ("le", "lt")), key=repr)
            if orders:
                h = self.rng.choice(orders)
                a, b = h[1:] if h[0] == "le" else (h[2], h[1])
        other = [c for c in self.pool if c.conclusion == p.conclusion]
        return kernel.cases(low, self.rng.choice(other), a, b)

    def absurd(self):
        return kernel.absurd(self.claim("lt"), self.formula())

    def induction(self):
        i = self.index()
        step = self.claim()
        if self.rng.random() < 0.7:  # a step that has a chance: f(t) |- f(t + 1) from "f does not fall"
            f, g = symbol("f", i), symbol("f", i + 1)
            rise = kernel.specialize(kernel.assume(forall(i, NATURALS, f <= g)), i)
            x = self.term()
            step = kernel.combine(x <= g, [(1, kernel.assume(x <= f)), (1, rise)])
        hypothesis = self.rng.choice(sorted(step.hypotheses, key=repr))
        base = kernel.assume(substitute(hypothesis, indices={i[1][0]: number(0)}))
        return kernel.induction(base, step, i)

    def congruence(self):
        p = self.claim("eq", "veq")
        template = self.grammar.term(2, tuple(NAMES)) if self.rng.random() < 0.5 else self.term()
        hole = symbol("x") if p.conclusion[0] == "eq" else vector("u")
        return kernel.congruence(p, template, hole)

    def least(self):
        i, j = self.index(), self.index()
        family = [(i, self.domain(all_=False)), (j, self.domain(all_=False))][: self.rng.randint(1, 2)]
        f = self.rng.choice([symbol("f", i), symbol("g", i, j), self.term()])
        rename = {v[1][0]: index(v[1][0] + "'") for v, _ in family}
        least, low = f <= substitute(f, indices=rename), symbol("x") <= f
        for v, d in reversed(family):
            least = forall(rename[v[1][0]], substitute(d, indices=rename), least)
            low = forall(v, d, low)
        least, low = kernel.assume(least), kernel.assume(low)
        witness, at = [], {}
        for v, d in family:
            w = self.shifted()
            witness.append(kernel.assume(member(w, substitute(d, indices=at))))
            at[v[1][0]] = w
            least = kernel.specialize(least, w, kernel.assume(member(w, least.conclusion[2])))
            low = kernel.specialize(low, v, kernel.assume(member(v, low.conclusion[2])))
        here = kernel.combine(symbol("x") <= least.conclusion[2], [(1, least), (1, low)])
        claim = self.rng.choice([lambda: here, self.claim, lambda: self.vacuous(family)])()
        return kernel.least(claim, family, f, witness)

    def vacuous(self, family):
        """A contradiction from the membership of the indices in their domains, where they do not meet."""
        claims = []
        for v, d in family:
            sign = self.rng.choice([lambda t: t < 0, lambda t: 0 < t])
            h = kernel.assume(forall(v, d, sign(symbol("f", v))))
            claims.append(kernel.specialize(h, v, kernel.assume(member(v, h.conclusion[2]))))
        parts = [(1, c) for c in claims]
        return kernel.absurd(kernel.combine(real(0) < 0, parts), real(1) < 0)

    def sum_order(self):
        claim = self.claim("le", "eq")
        return kernel.sum_order(claim, *self.bound(claim, all_=False))

    def term_of_sum(self):
        i, dom = self.bound(self.claim("le"), all_=False)
        at = self.shifted()
        inside = kernel.assume(member(at, dom))
        positive = self.claim("le")
        if self.rng.random() < 0.7:
            h = kernel.assume(forall(i, dom, 0 <= self.term()))
            positive = kernel.specialize(h, i, kernel.assume(member(i, h.conclusion[2])))
        return kernel.term_of_sum(positive, i, dom, inside)

    def monotone(self):
        x, body = symbol("x"), self.grammar.term(2, tuple(NAMES))
        slope, needs = differentiate(body, x)
        conditions = [
            kernel.assume(c if type(c) is Formula else self.rng.choice([0 < c[1], c[1] < 0])) for c in needs
        ]
        a, b = self.rng.choice(
            [(symbol("y"), symbol("y") + 1), (real(0), real(1)), (self.term(), self.term())]
        )
        order = kernel.combine(a <= b, [(1, kernel.assume(a <= b))])
        sign = kernel.assume(0 <= slope) if self.rng.random() < 0.5 else kernel.square(self.term())
        steady = kernel.combine(0 <= slope, [(1, sign)])
        return kernel.monotone(steady, order, x, body, conditions)

    def axiom(self):
        rng = self.rng
        t, positive = self.term(), self.claim("lt", "le")
        u, v = (self.grammar.vector(2, tuple(NAMES)) for _ in range(2))
        return rng.choice(
            [
                lambda: kernel.exp_positive(t),
                lambda: kernel.log_exp(t),
                lambda: kernel.exp_log(positive),
                lambda: kernel.sqrt_nonnegative(positive),
                lambda: kernel.lambert_w(positive),
                lambda: kernel.lambert_w_nonnegative(positive),
                lambda: kernel.max_is(positive),
                lambda: kernel.max_commutes(t, self.term()),
                lambda: kernel.min_is_minus_max(t, self.term()),
                lambda: kernel.inner_nonnegative(u),
                lambda: kernel.cauchy_schwarz(u, v),
                lambda: kernel.natural(self.shifted()),
                lambda: kernel.inverse_positive(positive),
                lambda: kernel.square(t),
                lambda: kernel.antisymmetry(positive, self.claim("le")),
            ]
        )()

    RULES = (
        "assume",
        "inhabited",
        "identity",
        "combine",
        "normalize",
        "cancel",
        "root",
        "generalize",
        "specialize",
        "instantiate",
        "discharge",
        "cases",
        "absurd",
        "induction",
        "congruence",
        "least",
        "sum_order",
        "term_of_sum",
        "monotone",
        "axiom",
    )

    def step(self) -> Proved | None:
        try:
            claim = getattr(self, self.rng.choice(self.RULES))()
        except (KernelError, ValueError, TypeError, IndexError, RecursionError):
            return None
        if len(repr(claim)) < 900 and len(claim.hypotheses) < 5:
            self.pool.append(claim)
        return claim


def held_in(claim: Proved, seed, models) -> int:
    """In how many models the hypotheses hold; the conclusion must hold in each."""
    held = 0
    for number_ in range(models):
        model = Model((seed, number_), horizon=7)
        try:
            if all(map(model.holds, claim.hypotheses)):
                held += 1
                assert model.holds(claim.conclusion), (
                    f"seed {seed}, model {number_}: {claim!r} by {claim.rule}"
                )
        except UnknownError:
            continue
    return held


def run(seed, steps, models):
    prover = Prover(seed)
    proved: dict[str, int] = {}
    tested = 0
    with precision():
        for n in range(steps):
            claim = prover.step()
            if claim is not None:
                held = held_in(claim, (seed, n), models)
                tested += held > 0
                proved[claim.rule] = proved.get(claim.rule, 0) + 1
    return proved, tested


@pytest.mark.parametrize("seed", range(12))
def test_random_derivations_are_true_in_models(seed):
    proved, tested = run(seed, steps=250, models=5)
    print(f"seed {seed}: {tested} claims tested, {dict(sorted(proved.items()))}")
    assert tested > 40


def test_random_derivations_reach_every_rule():
    reached: dict[str, int] = {}
    for seed in range(4):
        for rule, times in run(1000 + seed, steps=300, models=3)[0].items():
            reached[rule] = reached.get(rule, 0) + times
    print(reached)
    for rule in (
        "assume",
        "discharge",
        "generalize",
        "specialize",
        "instantiate",
        "cases",
        "induction",
        "least",
        "congruence",
        "combine",
        "square",
        "sum_order",
        "term_of_sum",
        "natural",
        "monotone",
    ):
        assert reached.get(rule, 0) > 0, rule


@pytest.mark.parametrize("seed", range(3))
def test_inferences_of_the_pages_are_true_in_models(seed):
    """Steps of real proofs, drawn at random, in models that know nothing of attention layers."""
    rng = random.Random(seed)
    pages = [page for page in theorems().values() if page.prove is not None]
    tried = held = 0
    with precision():
        for page in rng.sample(pages, 6):
            claims = list(kernel.ancestry(page.proved()))
            for n, claim in enumerate(rng.sample(claims, min(40, len(claims)))):
                tried += 1
                held += held_in(claim, (seed, page.key, n), models=4) > 0
    print(f"seed {seed}: {tried} inferences, {held} of them with a model of their hypotheses")
    assert held > tried / 5
