"""Theorem A(iii): its pages prove, and its proof fails for every stronger bound."""

import pytest

from theory.lemmas import potential
from theory.notation import Lam, e, margin
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, log
from theory.theorems import alignment_time
from theory.theorems import direction as page

END, NOW, START, size = page.END, page.NOW, page.START, page.size


@pytest.mark.parametrize(
    "theorem", [potential.CONCAVE, page.FROM_GAPS, page.GLOBAL], ids=lambda theorem: theorem.key
)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_no_page_needs_a_step_size():
    assert not {"eta", "e_max"} & set(page.GLOBAL.hypotheses)


def bound_with(start=None, factor=None, inside=Lam, curvature=page.SHARP, over=None):
    """The bound with one part changed."""
    start = size(START) - page.component(START) if start is None else start
    factor = Lam / margin if factor is None else factor
    turned = factor * log((margin * size(END) + inside) / (margin * size(START) + inside))
    return (start + turned + curvature) / (size(END) if over is None else over)


def sharp_with(factor, weight):
    return page.total(page.s, page.below(page.t), factor * e(NOW) ** 2 / weight)


HALF, LENGTH = Fraction(1, 2), size(NOW) + Lam / margin
STRONGER = {
    "half the start": bound_with(start=HALF * (size(START) - page.component(START))),
    "no start": bound_with(start=0),
    "margin squared on the start": bound_with(start=size(START) - margin * page.component(START)),
    "half of Lam outside the log": bound_with(factor=HALF * Lam / margin),
    "Lam without the margin": bound_with(factor=Lam),
    "half of Lam inside the log": bound_with(inside=HALF * Lam),
    "no logarithm": bound_with(factor=Lam - Lam),
    "an eighth of the curvature": bound_with(curvature=sharp_with(Fraction(1, 8), LENGTH)),
    "a little less curvature": bound_with(curvature=sharp_with(Fraction(499, 1000), LENGTH)),
    "twice Lam in the curvature": bound_with(curvature=sharp_with(HALF, LENGTH + Lam / margin)),
    "Lam without the margin in the curvature": bound_with(curvature=sharp_with(HALF, size(NOW) + 2 * Lam)),
    "the later norm in the curvature": bound_with(curvature=sharp_with(HALF, size(NOW + 1) + Lam / margin)),
    "step cubed": bound_with(curvature=sharp_with(HALF, LENGTH) - sharp_with(HALF * e(NOW), LENGTH)),
    "no curvature": bound_with(curvature=0 * LENGTH),
    "twice the norm": bound_with(over=2 * size(END)),
}


def test_the_page_states_the_bound_that_is_varied():
    """The variations below change the page's own bound: with no change it is proved."""
    assert page.bound(page.SHARP) == bound_with()


@pytest.fixture(scope="module")
def step():
    return page.one_step()


@pytest.mark.parametrize("name", STRONGER)
def test_a_stronger_bound_is_not_proved(name, monkeypatch, step):
    monkeypatch.setattr(page, "one_step", lambda: step)  # the same for every bound
    page.prove_from_gaps()
    monkeypatch.setattr(page, "bound", lambda _: STRONGER[name])
    with pytest.raises(KernelError):
        page.prove_from_gaps()


@pytest.mark.parametrize("factor", [Fraction(1, 8), Fraction(499, 1000), 0])
def test_the_recorded_curvature_is_not_less(factor, monkeypatch):
    page.prove_global()
    monkeypatch.setattr(page, "RECORDED", sharp_with(factor, size(NOW)))
    with pytest.raises(KernelError):
        page.prove_global()


@pytest.mark.parametrize("name", ["PATH_ALIGNS", "PATH_LEAVES_START", "NEAR_ACUTE", "ACUTE_BOUND"])
def test_the_global_page_needs_its_assumptions(name):
    assert getattr(alignment_time, name) in page.GLOBAL.proved().hypotheses


u, v, m, ell = potential.u, potential.v, potential.m, potential.ell


@pytest.mark.parametrize(
    "rate",
    [
        m * (v**2 - u**2) / (Fraction(21, 10) * (m * u + ell)),
        m * (v**2 - u**2) / (2 * (m * v + ell)),
        m * (v**2 - u**2) / (2 * (m * u + 2 * ell)),
        m**2 * (v**2 - u**2) / (2 * (m * u + ell)),
    ],
)
def test_the_potential_has_no_smaller_slope(rate, monkeypatch):
    claim = potential.psi(v, m, ell) - potential.psi(u, m, ell) <= rate
    monkeypatch.setattr(potential, "CONCAVE_CLAIM", claim)
    with pytest.raises(KernelError):
        potential.prove_concave()
