"""Symbolic derivatives against difference quotients in 600 bits, where their conditions hold."""

from __future__ import annotations

import random

import pytest
from flint import arb, fmpq

from tests.theory.concrete import Grammar, Model, UnknownError, ball, precision
from theory.proof.calculus import differentiate
from theory.proof.terms import Formula, index, symbol, vector

x = symbol("x")
STEP = fmpq(1, 2**100)


def met(model, condition):
    if type(condition) is Formula:
        return model.holds(condition)
    return model.sign(model.real(condition[1])) != 0


@pytest.mark.parametrize("seed", range(10))
def test_derivatives_match_difference_quotients(seed):
    rng = random.Random(seed)
    tried = varying = 0
    for round_ in range(80):
        term = Grammar(rng, functions=("exp", "log", "sqrt", "lambertw")).term(4)
        slope, conditions = differentiate(term, x)
        model = Model((seed, round_))
        with precision(600):
            try:
                here = model.real(x)
                if not all(met(model, c) for c in conditions):
                    continue
                right, left = (model.bind(sym={"x": lambda q=q: q}) for q in (here + STEP, here - STEP))
                quotient = ball(right.real(term) - left.real(term)) / (2 * ball(STEP))
                error = abs(quotient - ball(model.real(slope))) / (1 + abs(quotient))
            except UnknownError:
                continue
            if not error.is_finite() or error.rad() > arb(2) ** -60:
                continue  # values so large that 600 bits do not resolve the quotient
            assert error < arb(2) ** -50, (seed, round_, term, slope)
            tried += 1
            varying += not ball(quotient).contains(0)
    print(f"seed {seed}: {tried} quotients, {varying} of them not 0")
    assert tried > 40
    assert varying > 3


def test_a_plain_symbol_is_needed():
    for other in (symbol("f", index("i")), x + 1, vector("x"), index("x")):
        with pytest.raises((ValueError, TypeError)):
            differentiate(x, other)
    with pytest.raises(ValueError, match="does not differentiate"):
        differentiate(symbol("x", index("i")), x)  # the family x(i) is not x
