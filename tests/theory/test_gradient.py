"""The gradient formula: proved, not provable when changed, and equal to a 40-digit numerical derivative."""

from __future__ import annotations

import dataclasses
import math

import mpmath
import numpy as np
import pytest

from theory import notation as nt
from theory.lemmas import gradient as page
from theory.notation import STATIC as L
from theory.notation import G, g, i, n, over, score, tau
from theory.page import ProofError
from theory.proof.kernel import KernelError
from theory.proof.terms import eq, exp, inner, open_binder, total


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


W = L.W
m, phi, reach = page.mean_score(W), page.attention(W), inner(page.difference(i, tau), page.H)
WRONG = {
    "sign": eq(page.SLOPE, over(phi * (m - score(i, tau)) / (1 + exp(m)) * reach) / n),
    "sign of the score": eq(page.SLOPE, -over(phi * (m + score(i, tau)) / (1 + exp(m)) * reach) / n),
    "sigmoid of m": eq(page.SLOPE, -over(phi * (m - score(i, tau)) / (1 + exp(-m)) * reach) / n),
    "attention squared": eq(page.SLOPE, -over(phi**2 * (m - score(i, tau)) / (1 + exp(m)) * reach) / n),
    "no 1/n": eq(page.SLOPE, -over(phi * (m - score(i, tau)) / (1 + exp(m)) * reach)),
    "gap from the optimal score": eq(
        page.SLOPE, -over(phi * (nt.optimal_score(i) - score(i, tau)) / (1 + exp(m)) * reach) / n
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_gradient_is_not_proved(name, monkeypatch):
    with pytest.raises(ProofError):
        dataclasses.replace(page.GRADIENT, claim=WRONG[name]).proved()
    monkeypatch.setattr(page, "GENERAL", WRONG[name])
    with pytest.raises(KernelError):
        page.prove_general()


OTHER_DEFINITIONS = {
    "one power of p": ("coefficient_is", nt.each(eq(L.c(i, tau), L.a(i) * L.p(i) * exp(-L.gap(i, tau))))),
    "gap upside down": (
        "coefficient_is",
        nt.each(eq(L.c(i, tau), L.a(i) * L.p(i) ** 2 * exp(L.gap(i, tau)))),
    ),
    "slope at no attention": ("slope_is", nt.each_sequence(eq(L.a(i), G(i) / (n * (1 + exp(g(i))))))),
    "slope without gap": (
        "slope_is",
        nt.each_sequence(eq(L.a(i), 1 / (n * (1 + exp(g(i) + G(i) * L.p(i)))))),
    ),
    "attention forgets the optimal token": (
        "attention_is",
        nt.each_sequence(eq(L.p(i), 1 / total(tau, nt.others(i), exp(-L.gap(i, tau))))),
    ),
}


@pytest.mark.parametrize("name", OTHER_DEFINITIONS)
def test_other_coefficients_are_not_the_gradient(name, monkeypatch):
    method, formula = OTHER_DEFINITIONS[name]
    monkeypatch.setattr(nt.Layer, method, lambda self: formula)
    with pytest.raises(KernelError):
        page.prove_equal_scores()


class Model:
    """Numbers for every symbol, to 40 digits: sequences of the given lengths (each with an optimal token)."""

    def __init__(self, seed, lengths, scale):
        self.rng = np.random.default_rng(seed)
        self.lengths, self.scale = lengths, scale
        self.known: dict[tuple, object] = {("sym", "n"): mpmath.mpf(len(lengths))}

    def number(self, term, at):
        head, *rest = term
        if head == "num":
            return mpmath.mpf(rest[0].numerator) / rest[0].denominator
        if head == "sym":
            return self.draw(term, at, None)
        if head == "add":
            return mpmath.fsum(self.number(c, at) for c in rest)
        if head == "mul":
            return mpmath.fprod(self.number(c, at) for c in rest)
        if head == "pow":
            return self.number(rest[0], at) ** rest[1]
        if head == "inv":
            return 1 / self.number(rest[0], at)
        if head == "fn":
            return getattr(mpmath, rest[0])(self.number(rest[1], at))
        if head == "sum":
            name, domain, _ = rest
            size = len(self.lengths) if domain[1] == "I" else self.lengths[at[domain[2][1][0]]] - 1
            body = open_binder(term, f"{name}'")
            return mpmath.fsum(self.number(body, {**at, f"{name}'": k}) for k in range(size))
        if head == "inner":
            return mpmath.fdot(*(self.vector(v, at) for v in rest))
        assert head == "diff"
        x, body, point = rest

        def function(value):
            self.known["sym", x] = value
            return self.number(body, at)

        return mpmath.diff(function, self.number(point, at))

    def vector(self, v, at):
        head, *rest = v
        if head == "vsym":
            return self.draw(v, at, 6)
        if head == "vadd":
            return [mpmath.fsum(parts) for parts in zip(*(self.vector(c, at) for c in rest), strict=True)]
        assert head == "vscale"
        return [self.number(rest[0], at) * c for c in self.vector(rest[1], at)]

    def draw(self, symbol, at, size):
        key = (*symbol[:2], *(at[k[1][0]] for k in symbol[2:]))
        if key not in self.known:
            value = self.rng.normal(0, self.scale, size or 1)
            self.known[key] = [mpmath.mpf(x) for x in value] if size else mpmath.mpf(value[0])
        return self.known[key]


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("lengths", [(1,), (2,), (5,), (2, 4, 1, 3)], ids=str)
def test_it_is_the_numerical_derivative(lengths, scale):
    seed = 1
    print(f"seed {seed}")
    with mpmath.workdps(40):
        model = Model(seed, lengths, scale)
        slope, formula = (model.number(side, {}) for side in page.GENERAL[1:])
        assert abs(slope - formula) <= mpmath.mpf(10) ** -15 * max(1, abs(formula))
    assert math.isfinite(formula)
    assert (formula != 0) == (max(lengths) > 1)
