"""Printing: LaTeX that says what the term says, sympy that computes what the term computes."""

from fractions import Fraction

import pytest
import sympy

from theory import notation as nt
from theory.evaluate import log_value, value
from theory.latex import latex, to_sympy
from theory.proof.terms import Node, exp, forall, index, lambertw, log, maximum, norm, number, sqrt, symbol

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


def test_two_signs_cancel() -> None:
    assert latex(-1 * (-x) * y) == "x\\,y"
    assert latex(-1 * nt.layer(number(0)).W) == "-W_{0}"
    assert latex(2 * (-1 * nt.M)) == "2\\,\\left(-W_{\\mathrm{mm}}\\right)"
