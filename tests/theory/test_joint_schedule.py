"""Joint training with steps eta (t + 1)^(-a): the pages prove, and no stronger bound has their proof."""

import math

import pytest

from theory import notation as nt
from theory.lemmas import joint_power_sum as ps
from theory.notation import R_o
from theory.proof.kernel import KernelError, assume
from theory.proof.terms import Fraction, as_real, exp
from theory.theorems import joint_schedule as page


@pytest.mark.parametrize("theorem", [*ps.PAGES, *page.PAGES], ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


@pytest.mark.parametrize("a", [0.51, 2 / 3, 0.9])
@pytest.mark.parametrize("t0", [1, 4, 100])
@pytest.mark.parametrize("t", [0, 1, 7, 1000])
def test_the_sums_lie_between_their_bounds(a, t0, t):
    b, q = 1 - a, 2 * a - 1
    path = sum((t0 + s + 1) ** -a for s in range(t))
    squares = sum((t0 + s + 1) ** (-2 * a) for s in range(t))
    assert ((t0 + t + 1) ** b - (t0 + 1) ** b) / b <= path + 1e-12
    assert path <= ((t0 + t) ** b - t0**b) / b + 1e-12
    assert squares <= t0**-q / q


def test_at_two_thirds_the_path_is_three_cube_roots():
    eta, t = 0.7, 10**6
    path = sum(eta * (s + 1) ** (-2 / 3) for s in range(t))
    assert path == pytest.approx(3 * eta * math.cbrt(t), rel=2e-2)


NOW = as_real(ps.s) + 1


@pytest.mark.parametrize(
    ("step", "stronger"),
    [
        (ps.step_lower, ps.power(NOW + 1, ps.b) - ps.power(NOW, ps.b) <= ps.b * ps.power(NOW + 1, -ps.a)),
        (ps.step_upper, ps.b * ps.power(NOW, -ps.a) <= ps.power(NOW + 1, ps.b) - ps.power(NOW, ps.b)),
        (ps.step_square, ps.q * ps.power(NOW, -2 * ps.a) <= ps.power(NOW, -ps.q) - ps.power(NOW + 1, -ps.q)),
    ],
    ids=["lower", "upper", "square"],
)
def test_no_sharper_step(step, stronger):
    claim = step(assume(NOW > 0))
    with pytest.raises(KernelError):
        ps.follows(stronger, claim)


EXPONENTS = {
    "a larger share": -Fraction(10, 9) * page.RATE * page.DECODER_SHORTEST
    + page.half * R_o**2 * page.DECODER_SQUARES,
    "no squares": -page.RATE * page.DECODER_SHORTEST,
    "a longer path": -page.RATE * page.DECODER_SHORTEST * 2 + page.half * R_o**2 * page.DECODER_SQUARES,
}


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_no_faster_decay(exponent):
    start = page.jl.at(page.t0).optimal_loss()
    body = page.jl.at(page.t0 + page.t).loss() <= start * exp(page.leak + EXPONENTS[exponent])
    with pytest.raises(KernelError):
        page.follows(body, page.specialize(page.LOSS_RATE.proved(), page.t))


def test_the_direction_needs_its_logarithm():
    numerator = page.jd.lag(page.t0) + page.SQUARES / (
        2 * (page.jd.component(page.t0) + page.Lam / nt.margin)
    )
    body = page.gap_to(page.t0 + page.t) <= numerator / page.DENOMINATOR
    with pytest.raises(KernelError):
        page.follows(body, page.specialize(page.DIRECTION.proved(), page.t))
