"""The normal form keeps the value of every term, and cancels only what it may."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import fmpq

from tests.theory.concrete import Grammar, Model, UnknownError, equal, precision
from theory.proof.normal import canonical, cleared, is_zero, normal, polynomial_term
from theory.proof.terms import (
    as_real,
    below,
    diff,
    exp,
    finite,
    index,
    inner,
    inv,
    log,
    maximum,
    number,
    real,
    sqrt,
    symbol,
    total,
    vector,
    vtotal,
)

x, y, z = map(symbol, "xyz")
i, j, t = map(index, "ijt")
u, v = map(vector, "uv")
D = finite("D")


def f(i):
    return symbol("f", i)


def A(i):
    return vector("A", i)


def values(term, seed, models=3):
    """The term's values in some models, less those too near a point where a function jumps."""
    for number_ in range(models):
        model = Model((seed, number_))
        try:
            yield model, model.real(term)
        except UnknownError:
            continue


@pytest.mark.parametrize("seed", range(12))
def test_normal_form_keeps_the_value(seed):
    rng = random.Random(seed)
    tried = 0
    with precision():
        for round_ in range(60):
            term = Grammar(rng).term(4)
            form = canonical(term)
            for model, value in values(term, (seed, round_)):
                try:
                    assert equal(value, model.real(form)), (seed, round_, term, form)
                except UnknownError:
                    continue
                tried += 1
    print(f"seed {seed}: {tried} values")
    assert tried > 120


@pytest.mark.parametrize("seed", range(4))
def test_normal_form_is_the_same_for_rewritten_terms(seed):
    rng = random.Random(100 + seed)
    for _ in range(60):
        grammar = Grammar(rng)
        a, b, c = (grammar.term(3) for _ in range(3))
        assert is_zero((a + b) * c - (c * b + c * a)), (seed, a, b, c)
        assert is_zero((a - b) * (a + b) - (a**2 - b**2)), (seed, a, b)
        assert is_zero(exp(a + b) - exp(b) * exp(a)), (seed, a, b)
        if len(normal(a)) < 2 and len(normal(b)) < 2:  # the inverse of a sum is an atom
            assert is_zero(inv(a * b) - inv(b) * inv(a)), (seed, a, b)
        assert is_zero(inv(inv(a)) - a), (seed, a)
        assert canonical(canonical(a)) == canonical(a), (seed, a)


@pytest.mark.parametrize("seed", range(8))
def test_zero_under_conditions_is_zero_where_they_hold(seed):
    rng = random.Random(200 + seed)
    shown = tried = 0
    with precision():
        for round_ in range(80):
            grammar = Grammar(rng)
            a, b, r = grammar.term(2), grammar.term(2), grammar.term(1)
            nonzero = [q for q in (a, b, a * b, a + b) if rng.random() < 0.5]
            nonnegative = [q for q in (a, b, r) if rng.random() < 0.5]
            candidates = [
                a * b * inv(b) - a,
                sqrt(r) ** 2 - r,
                inv(a + b) * (a + b) - 1,
                inv(a * b) * a * b * r - r,
                sqrt(r) ** 3 * inv(b) - r * sqrt(r) * inv(b),
                inv(a) + inv(b) - (a + b) * inv(a * b),
                a * inv(a) * a - a,
                sqrt(b) * inv(sqrt(b)) - 1,
            ]
            term = sum((grammar.term(1) * q for q in rng.sample(candidates, 2)), real(0))
            zero = is_zero(term, nonzero, nonnegative)
            shown += zero
            for model, value in values(term, (seed, round_)):
                try:
                    if all(model.sign(model.real(q)) for q in nonzero) and all(
                        model.sign(model.real(q)) >= 0 for q in nonnegative
                    ):
                        tried += 1
                        assert not zero or equal(value, fmpq(0)), (seed, round_, term, nonzero, nonnegative)
                except UnknownError:
                    continue
    print(f"seed {seed}: {shown} shown, {tried} models")
    assert shown > 5
    assert tried > 60


def test_cleared_multiplies_every_term_by_the_same_factor():
    one, ratio = cleared([real(1), y / x + inv(x) ** 2], [x], [])
    assert polynomial_term(one) == canonical(x**2)
    assert polynomial_term(ratio) == canonical(y * x + 1)


@pytest.mark.parametrize(
    "term",
    [
        total(i, D, 2 * f(i) + x * f(i)) - (2 + x) * total(j, D, f(j)),
        total(i, below(t + 2), f(i)) - total(i, below(t), f(i)) - f(t) - f(t + 1),
        total(i, below(t), real(3)) - 3 * as_real(t),
        total(i, below(number(2)), f(i)) - f(number(0)) - f(number(1)),
        total(i, below(t), total(j, D, f(i) * f(j))) - total(j, D, f(j)) * total(i, below(t), f(i)),
        as_real(t + 3) - as_real(t) - 3,
        inner(x * u + 2 * v, v) - x * inner(v, u) - 2 * inner(v, v),
        inner(vtotal(i, D, f(i) * A(i)), u) - total(i, D, f(i) * inner(u, A(i))),
        inner(vtotal(i, D, A(i)), vtotal(i, D, A(i))) - total(i, D, total(j, D, inner(A(i), A(j)))),
        exp(x / 2) ** 2 - exp(x),
        exp(Fraction(1, 2) * x + y) * exp(-y) - exp(x * Fraction(1, 2)),
        exp(real(0)) - 1,
        inv(exp(x)) - exp(-x),
        inv(3 * x) - inv(x) / 3,
        inv(x - x),
        real(0) ** 0 - 1,
        log(x + y) - log(y + x),
        maximum(x + y, 0) - maximum(y + x, 0),
        diff(x, (x + 1) ** 2, y) - diff(z, z**2 + 2 * z + 1, y),
        diff(x, total(i, below(t + 1), x * f(i)), y) - diff(x, x * f(t) + total(i, below(t), x * f(i)), y),
        diff(x, inner(vtotal(i, D, A(i)), vtotal(j, D, A(j))) * x, y)
        - diff(z, z * total(i, D, total(j, D, inner(A(i), A(j)))), y),
    ],
    ids=lambda term: repr(term)[:60],
)
def test_identities(term):
    assert is_zero(term)
    assert dict(normal(term)) == {}


@pytest.mark.parametrize(
    "term",
    [
        x * inv(x) - 1,
        sqrt(x) ** 2 - x,
        sqrt(x**2) - x,
        exp(log(x)) - x,
        log(x * y) - log(x) - log(y),
        log(exp(x)) - x,
        total(i, D, real(1)) - 1,
        total(i, finite("J", number(0)), f(i)) - total(i, finite("J", number(1)), f(i)),
        total(i, D, f(i) ** 2) - total(i, D, f(i)) ** 2,
        inner(u, v) ** 2 - inner(u, u) * inner(v, v),
        inv(x + y) - inv(x) - inv(y),
        diff(x, x**2, y) - 2 * y,
        f(t) - f(t + 1),
        symbol("f") - f(t),
        maximum(x, y) - maximum(y, x),
    ],
    ids=repr,
)
def test_no_identities(term):
    assert not is_zero(term)


def test_only_what_is_named_is_cancelled():
    assert is_zero(x * inv(x) - 1, [x])
    assert is_zero(x * inv(x) - 1, [x * y])
    assert is_zero(inv(2 * x + 2 * y) * (x + y) - Fraction(1, 2), [x + y])
    assert not is_zero(x * inv(x) - 1, [y])
    assert not is_zero(x * inv(x) - 1, [x + y])
    assert not is_zero(x * inv(x) - 1, [real(0)])
    assert is_zero(sqrt(x) ** 2 - x, [], [x])
    assert not is_zero(sqrt(x) ** 2 - x, [x])
    assert not is_zero(sqrt(x) ** 2 - x, [], [2 * x])
    assert not is_zero(inv(sqrt(x)) * sqrt(x) - 1, [x])  # sqrt(x) is not shown to be nonzero
    assert is_zero(inv(sqrt(x)) * sqrt(x) - 1, [sqrt(x)])


def test_a_cached_form_cannot_be_changed():
    form = normal(x + y)
    with pytest.raises(TypeError):
        form[()] = Fraction(1)
    assert polynomial_term(normal(x + y)) == canonical(y + x)


def test_vectors_have_no_normal_form():
    with pytest.raises((ValueError, TypeError)):
        normal(u)
