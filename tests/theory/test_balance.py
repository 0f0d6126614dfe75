"""The balanced point: its equation, its closed form, its uniqueness; the origin."""

import numpy as np
import pytest

from tests.theory.full_support import full_support
from theory.notation import alpha, i, tau
from theory.proof.kernel import KernelError
from theory.proof.terms import eq, inner, log
from theory.theorems import balance as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_another_closed_form_does_not_balance(monkeypatch):
    logs = log(page.w(i, tau)) + log(alpha(i, tau)) - page.k0
    wrong = page.nt.each(eq(inner(page.A(i, tau), page.r_star), logs))
    monkeypatch.setattr(page, "LOGARITHMS", wrong)
    with pytest.raises(KernelError):
        page.prove_closed_form()


def test_two_balanced_points_need_not_agree_along_the_solution(monkeypatch):
    monkeypatch.setattr(page, "UNIQUE_CLAIM_AT", eq(inner(page.A(i, tau), page.apart), 0))
    with pytest.raises(KernelError):
        page.prove_unique()


@pytest.mark.parametrize("seed", range(5))
def test_the_closed_form_balances_and_runs_converge_to_it(seed):
    print("seed", seed)
    at, rng = full_support(seed), np.random.default_rng(seed)
    q = at.w * np.exp(-at.K @ at.balanced)
    imbalance = q - q.sum() * at.margin**2 * at.alpha
    assert at.size(imbalance) < 1e-9 * q.sum()
    assert abs(at.height(at.balanced)) < 1e-9
    b = rng.normal(0, 1, len(at.K))
    for _ in range(6000):
        b, _ = at.step(b, at.margin / at.radius**2)
    assert at.size(at.residual(b) - at.balanced) < 1e-6 * (1 + at.size(at.balanced))
