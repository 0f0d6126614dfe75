"""Printing: LaTeX that says what the term says, sympy that computes what the term computes."""

import math
from fractions import Fraction

import pytest
import sympy

from theory import notation as nt
from theory.evaluate import canonical, log_value, value
from theory.latex import Notation, latex, to_sympy
from theory.proof.terms import (
    Node,
    Term,
    diff,
    eq,
    exp,
    finite,
    forall,
    index,
    lambertw,
    log,
    maximum,
    norm,
    number,
    real,
    sqrt,
    symbol,
    total,
    vector,
)

x, y, z = symbol("x"), symbol("y"), symbol("z")


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (x - y * z, "x-y\\,z"),
        (-(x + y) / z, "-\\frac{x+y}{z}"),
        ((x + y) ** 2, "\\left(x+y\\right)^{2}"),
        (x / 2, "\\frac{x}{2}"),
        (Fraction(1, 2) * x, "\\tfrac{1}{2}\\,x"),
        (exp(-x), "e^{-x}"),
        (nt.margin * nt.R, "\\gamma_\\ast\\,R"),
        (nt.path_length(nt.t), "E_{t}"),
        (norm(nt.layer(number(0)).W), "\\left\\|W_{0}\\right\\|"),
        (x <= y, "x \\le y"),
    ],
)
def test_latex(term: Node, expected: str) -> None:
    assert latex(term) == expected


def test_nested_indices_get_different_letters() -> None:
    k = index("k")
    text = latex(forall(k, nt.NATURALS, symbol("a", k) <= nt.path_length(k)))
    assert "for all" in text
    assert "E_{t}" in text


@pytest.mark.parametrize("at", [0.3, 1.0, 7.5])
def test_sympy_and_the_evaluator_agree(at: float) -> None:
    term = lambertw(x**2 / 3 + 1) * exp(-x) + sqrt(x + 2) * log(1 + x) - maximum(x, 2) / (x + 1)
    theirs = to_sympy(term).subs(sympy.Symbol("x", real=True), sympy.Rational(at)).evalf(30)
    assert value(term, {x: at}) == pytest.approx(float(theirs), rel=1e-13)


def test_logarithms_do_not_underflow() -> None:
    term = (nt.T - 1) * exp(-x) / y
    assert log_value(term, {nt.T: 5.0, x: 1e6, y: 2.0}, {}) == pytest.approx(-1e6 + 0.6931471805599453)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(KeyError, match="no value for x"):
        value(x + 1, {})


def test_the_logarithm_of_a_quotient_near_one_keeps_its_digits() -> None:
    """In floats (x + c)/(y + c) is exactly 1 here."""
    quotient = log((x + z) / (y + z))
    tiny = {x: 3e-20, y: 1e-20, z: 500.0}
    assert value(quotient, tiny) == pytest.approx(2e-20 / 500, rel=1e-12)
    assert value(quotient, {x: 3.0, y: 1.0, z: 0.0}) == pytest.approx(1.0986122886681098, rel=1e-15)
    assert value(log(x * y), {x: 1e-8, y: 1e8}) == pytest.approx(0.0, abs=1e-15)
    square = log((x - y) ** 2 / z)  # expanded, its terms cancel worse
    assert value(square, {x: 1e8 + 1, y: 1e8, z: 0.9}) == pytest.approx(-math.log(0.9), rel=1e-12)
    seen = {canonical(x + y): 1.1, z: 1.0}  # the sum is observed, its terms are not
    assert value(log((x + y) / z), seen) == pytest.approx(math.log(1.1), rel=1e-12)


def test_two_signs_cancel() -> None:
    assert latex(-1 * (-x) * y) == "x\\,y"
    assert latex(-1 * nt.layer(number(0)).W) == "-W_{0}"
    assert latex(2 * (-1 * nt.M)) == "2\\,\\left(-W_{\\mathrm{mm}}\\right)"


def test_what_is_printed_is_read_as_what_is_proved() -> None:
    """A sum ends before a factor behind it; no bound letter is one that is free; powers of powers."""
    i, j = index("i"), index("j")
    plain = Notation()
    whole = total(j, finite("I"), symbol("a", j))
    assert latex(eq(whole * symbol("c", i), symbol("c", i) * whole), plain) == (
        r"\left(\sum_{k\in I} a_{k}\right)\,c_{i} = c_{i}\,\sum_{k\in I} a_{k}"
    )
    assert latex((whole * x) / (whole * y), plain).count(r"\left(\sum") == 2
    assert latex(whole * vector("v"), plain) == r"\left(\sum_{i\in I} a_{i}\right)\,v"
    assert latex((2 * whole) * vector("v"), plain) == r"\left(2\,\sum_{i\in I} a_{i}\right)\,v"
    assert latex(exp(x) ** 2) == r"\left(e^{x}\right)^{2}"
    assert latex(Term(("mul", Term(("pow", Term(("num", Fraction(2, 3))), 2)), x))) == (
        r"\left(\tfrac{2}{3}\right)^{2}\,x"
    )
    assert latex(diff(y, y * x, real(0))) == r"\frac{d}{dy}\Big|_{y=0} \left[y\,x\right]"
