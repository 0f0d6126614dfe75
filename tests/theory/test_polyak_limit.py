"""Polyak's step in the limit: proved, with no sharper constant; steps of trained runs tend to 1/(2 g*)."""

import pytest

from numerics.steps import Polyak
from numerics.training import train
from tests.theory.test_predict import problem
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp
from theory.theorems import polyak_limit as page

almost, Q, step = Fraction(999, 1000), page.Q, page.uncapped(page.L)


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


STRONGER = {
    "longer": ("LOWER_CLAIM", 1 / (2 * almost * page.ratio * Q) <= step),
    "no loss of attention": ("LOWER_CLAIM", step >= 1 / (2 * Q)),
    "half the score gap": ("LOWER_CLAIM", 1 / (2 * exp(page.G_max * (1 - page.p_min) / 2) * Q) <= step),
    "shorter": ("UPPER_CLAIM", step <= almost / (2 * page.p_min * Q)),
    "full attention": ("UPPER_CLAIM", step <= 1 / (2 * Q)),
}


@pytest.mark.parametrize("name", STRONGER)
def test_a_sharper_step_is_not_proved(name, monkeypatch):
    place, claim = STRONGER[name]
    monkeypatch.setattr(page, place, claim)
    with pytest.raises(KernelError):
        {"LOWER_CLAIM": page.prove_lower, "UPPER_CLAIM": page.prove_upper}[place]()


@pytest.mark.parametrize("seed", range(0, 8, 2))
def test_the_steps_of_a_run_tend_to_half_the_inverse_margin(seed):
    print("seed", seed)
    run = train(problem(seed), Polyak(), steps=2_000, record=[2_000])
    assert run.history["step_length"].iloc[-1] == pytest.approx(1 / (2 * run.target.margin), rel=1e-9)
