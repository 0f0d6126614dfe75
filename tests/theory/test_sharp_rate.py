"""The sharp rate: proved, with no stronger constant, true on runs and within a factor of them."""

import numpy as np
import pytest

from tests.theory.full_support import constants, full_support, state
from theory.evaluate import by_canonical, value
from theory.notation import M, R, margin, t
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, inner, norm
from theory.theorems import separator_gap, sharp_residual
from theory.theorems import sharp_rate as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


r, W, gap = norm(page.residual(page.W)), page.W, page.gap
STATIC = {
    "larger lower bound": ("LOWER_CLAIM", "prove_lower", r**2 / (Fraction(1999, 1000) * norm(W) ** 2) <= gap),
    "component below": ("LOWER_CLAIM", "prove_lower", r**2 / (2 * (margin * inner(W, M)) ** 2) <= gap),
    "smaller upper bound": (
        "UPPER_CLAIM",
        "prove_upper",
        gap <= r**2 / (Fraction(2001, 1000) * (margin * inner(W, M)) ** 2),
    ),
    "norm above": ("UPPER_CLAIM", "prove_upper", gap <= r**2 / (2 * norm(W) ** 2)),
}


@pytest.mark.parametrize("name", STATIC)
def test_the_static_bounds_are_the_best_of_their_kind(name, monkeypatch):
    place, prove, claim = STATIC[name]
    monkeypatch.setattr(page, place, claim)
    with pytest.raises(KernelError):
        getattr(page, prove)()


def changed(radius=page.sharp.BOUND, steady=page.steady, direct=page.direct, factor=2):
    return lambda length: radius**2 / (factor * page.maximum(direct(length), steady(length)) ** 2)


BOUNDS = {
    "larger factor": changed(factor=Fraction(2001, 1000)),
    "smaller residual": changed(radius=page.sharp.START),
    "no loss": changed(direct=lambda length: page.component(page.t0) + length),
    "faster": changed(steady=lambda length: page.component(page.t0) + 2 * margin * length / R),
    "without the margin": changed(steady=lambda length: page.component(page.t0) + length / R),
}


@pytest.fixture(scope="module")
def bounds():
    pages = (sharp_residual.EXPLICIT, separator_gap.EXPLICIT)
    return [page.specialize(p.proved(), t) for p in pages]


@pytest.mark.parametrize("name", BOUNDS)
def test_a_stronger_rate_is_not_proved(name, monkeypatch, bounds):
    monkeypatch.setattr(page, "bound", BOUNDS[name])
    with pytest.raises(KernelError):
        page.rate_from(*bounds, page.bound(page.travelled(page.t)))


@pytest.mark.parametrize("seed", range(6))
def test_it_holds_on_random_runs(seed):
    """From the first step at which the conditions on t0 are met, for random step lengths."""
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    e_max = rng.uniform(0.1, 0.9) * 2 * at.margin / at.radius**2
    fixed, start = constants(at, e_max), None
    condition = sharp_residual.for_equal_scores(sharp_residual.SMALL_DRIFT)[1]
    length = separator_gap.fallen_behind(t)
    b, path, worst = rng.normal(0, 1, len(at.K)), 0.0, []
    for step in range(3000):
        if start is None and at.height(b) > 0:
            begin = fixed | state(at, b, path, page.t0)
            if value(condition, by_canonical(begin)) <= 1:
                start = step, begin
        elif start is not None and step % 50 == 0:
            now = by_canonical(start[1] | state(at, b, path, page.t0 + t))
            cosine = at.height(b) / at.margin / at.size(b)
            residual = at.size(at.residual(b))
            gap = residual**2 / at.size(b) ** 2 / (1 + cosine)
            worst.append(gap / value(page.EQUAL_BOUND, now))
            lost = value(sharp_residual.for_equal_scores(separator_gap.LOST), now)
            assert -1e-9 <= value(length, now) <= lost
        e = e_max * rng.uniform(0.5, 1)
        b, _ = at.step(b, e)
        path += e
    print("observed/bound", worst[-1])
    assert start is not None
    assert max(worst) <= 1
    assert worst[-1] > 1e-3
