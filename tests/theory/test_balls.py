"""Ball arithmetic: every enclosure holds the value, and no sign is claimed that a point refutes."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from tests.theory.concrete import Model, UnknownError, ball, precision
from theory.proof.balls import UndecidedError, enclose, holds_on_box
from theory.proof.terms import exp, inner, inv, lambertw, log, maximum, minimum, real, sqrt, symbol, vector

x, y = symbol("x"), symbol("y")


def side(rng):
    lo = Fraction(rng.randint(-6, 6), rng.randint(1, 3))
    return lo, lo + Fraction(rng.randint(0, 8), rng.randint(1, 4))


def plain(rng, depth):
    """A random term in x and y only."""
    if depth == 0:
        return rng.choice([x, y, real(Fraction(rng.randint(-3, 3), rng.randint(1, 3)))])
    a, b = plain(rng, depth - 1), plain(rng, rng.randint(0, depth - 1))
    make = [
        lambda: a + b, lambda: a * b, lambda: a - b, lambda: a ** rng.randint(0, 4), lambda: inv(a),
        lambda: exp(a), lambda: log(a), lambda: sqrt(a), lambda: lambertw(a),
        lambda: maximum(a, b), lambda: minimum(a, b),
    ]  # fmt: skip
    return rng.choice(make)()


def point(rng, sides):
    at = {}
    for name, (lo, hi) in sides.items():
        q = lo + (hi - lo) * Fraction(rng.randint(0, 16), 16)
        at[name] = lambda q=q: fmpq(q.numerator, q.denominator)
    return Model(0, sym=at)


@pytest.mark.parametrize("seed", range(10))
def test_enclosures_hold_the_values(seed):
    rng = random.Random(seed)
    tried = 0
    for _ in range(150):
        sides = {"x": side(rng), "y": side(rng)}
        term = plain(rng, rng.randint(1, 4))
        box = {}
        for name, (lo, hi) in sides.items():
            box[name] = arb(fmpq(lo.numerator, lo.denominator)).union(arb(fmpq(hi.numerator, hi.denominator)))
        try:
            held = enclose(term, box)
        except UndecidedError:
            continue
        assert held.is_finite()
        with precision():
            for _ in range(4):
                try:
                    value = ball(point(rng, sides).real(term))
                except UnknownError:
                    continue
                assert held.overlaps(value), (seed, term, sides)
                tried += 1
    print(f"seed {seed}: {tried} values")
    assert tried > 100


@pytest.mark.parametrize("seed", range(10))
def test_claimed_signs_hold_at_random_points(seed):
    rng = random.Random(1000 + seed)
    claimed = 0
    for _ in range(60):
        sides = {"x": side(rng), "y": side(rng)}
        term = plain(rng, rng.randint(1, 3)) - plain(rng, rng.randint(0, 2))
        strict = rng.random() < 0.5
        if not holds_on_box(term, sides, strict=strict, boxes=200):
            continue
        claimed += 1
        with precision():
            for _ in range(10):
                try:
                    value = point(rng, sides).real(term)
                except UnknownError:
                    continue
                assert not value < 0, (seed, term, sides)
                assert not (strict and value == 0), (seed, term, sides)
    print(f"seed {seed}: {claimed} claimed")
    assert claimed > 3


def test_strict_and_weak():
    unit = {"x": (Fraction(0), Fraction(1))}
    assert holds_on_box(x + 1, unit, strict=True)
    assert holds_on_box(real(0), unit, strict=False)
    assert not holds_on_box(real(0), unit, strict=True, boxes=100)
    assert not holds_on_box(x - 2, unit, strict=False)
    assert not holds_on_box(x - Fraction(1, 2), unit, strict=False, boxes=500)


def test_subdivision_decides_what_one_cell_does_not():
    term = x**2 - x + Fraction(26, 100)  # least at 1/2: 1/100
    sides = {"x": (Fraction(0), Fraction(1))}
    assert not holds_on_box(term, sides, strict=True, boxes=1)
    assert holds_on_box(term, sides, strict=True)


def test_boxes_that_touch_the_end_of_a_domain():
    unit = {"x": (Fraction(0), Fraction(1))}
    assert holds_on_box(2 - sqrt(x), unit, strict=True)
    assert holds_on_box(Fraction(568, 1000) - lambertw(x), unit, strict=True)  # W(1) = 0.5671...
    assert not holds_on_box(Fraction(567, 1000) - lambertw(x), unit, strict=True, boxes=500)
    assert not holds_on_box(1 - log(x), unit, strict=True, boxes=500)  # log(0) is unspecified
    for f in (sqrt, lambertw):
        assert not holds_on_box(2 - f(x), {"x": (Fraction(-1, 10**9), Fraction(1))}, strict=True, boxes=500)
        assert not holds_on_box(2 - f(x - Fraction(1, 10**9)), unit, strict=True, boxes=500)


def test_points_and_empty_boxes():
    assert holds_on_box(x, {"x": (Fraction(1, 3), Fraction(1, 3))}, strict=True)
    assert not holds_on_box(x - x, {"x": (Fraction(1, 3), Fraction(1, 3))}, strict=True)
    assert holds_on_box(real(1), {}, strict=True)
    assert not holds_on_box(real(-1), {}, strict=True)
    # sides the wrong way round: the hypotheses lo <= x <= hi contradict each other, and the hull is tried
    assert holds_on_box(x, {"x": (Fraction(2), Fraction(1))}, strict=True)
    assert not holds_on_box(x, {"x": (Fraction(1), Fraction(-1))}, strict=True, boxes=100)


@pytest.mark.parametrize(
    ("term", "lo", "hi"),
    [
        (inv(x), -1, 1), (inv(x), 0, 1), (log(x), 0, 1), (log(x), -1, 1), (sqrt(x), -1, 1),
        (lambertw(x), Fraction(-1, 3), 1), (lambertw(x), Fraction(-37, 100), Fraction(-36, 100)),
        (exp(exp(exp(exp(x)))), 5, 6), (inv(exp(exp(exp(exp(x))))), 5, 6),
    ],
    ids=repr,
)  # fmt: skip
def test_undefined_or_infinite_values_are_not_enclosed(term, lo, hi):
    def point_(q):
        q = Fraction(q)
        return arb(fmpq(q.numerator, q.denominator))

    with pytest.raises(UndecidedError):
        enclose(term, {"x": point_(lo).union(point_(hi))})
    for bound in (term - 10**9, term + 10**9, -term - 10**9, -term + 10**9):
        assert not holds_on_box(bound, {"x": (Fraction(lo), Fraction(hi))}, strict=False, boxes=50)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_ball_that_is_no_number_is_refused(value):
    with pytest.raises(UndecidedError, match="no finite enclosure"):
        enclose(x, {"x": arb(value)})
    with pytest.raises(UndecidedError, match="no finite enclosure"):
        enclose(maximum(x, 1), {"x": arb(value)})


def test_what_has_no_ball():
    for term in (y, symbol("f"), inner(vector("u"), vector("u"))):
        with pytest.raises(ValueError, match="knows nothing"):
            enclose(term, {"x": arb(1)})


def test_precision_is_restored_after_errors():
    before = ctx.prec
    with pytest.raises(ValueError, match="knows nothing"):
        holds_on_box(y, {"x": (Fraction(0), Fraction(1))}, strict=True)
    assert ctx.prec == before


def test_any_starting_precision_is_sound():
    with precision(4):
        assert holds_on_box(exp(x) - x, {"x": (Fraction(-1), Fraction(1))}, strict=True)
        assert not holds_on_box(exp(x) - x - 1, {"x": (Fraction(-1), Fraction(1))}, strict=True, boxes=500)
