"""Joint training under full support: the pages prove, their constants on numbers, nothing stronger."""

import dataclasses

import numpy as np
import pytest

from numerics import max_margin
from numerics.datasets import load
from theory import joint_run
from theory import notation as nt
from theory.page import ProofError
from theory.proof.terms import Fraction, maximum, norm
from theory.theorems import joint_sharp as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


RESIDUALS = {
    "without the distance of the start": norm(page.r_star)
    + maximum(page.size(page.t0), page.D0 + page.e_max),
    "without the last step": norm(page.r_star) + maximum(page.size(page.t0) + norm(page.r_star), page.D0),
    "without r*": maximum(page.size(page.t0) + norm(page.r_star), page.D0 + page.e_max),
    "half": page.rho(page.t0) * Fraction(1, 2),
}


@pytest.mark.parametrize("bound", RESIDUALS)
def test_no_smaller_residual(bound):
    claim = nt.always(page.size(page.END) <= RESIDUALS[bound])
    with pytest.raises(ProofError):
        dataclasses.replace(page.RESIDUAL, key="smaller", claim=claim).proved()


def test_no_smaller_direction_gap():
    claim = nt.always(page.gap_to(page.END) <= page.BOUND * Fraction(1, 2))
    with pytest.raises(ProofError):
        dataclasses.replace(page.SHARP_RATE, key="smaller", claim=claim).proved()


@pytest.mark.parametrize("seed", range(4))
def test_the_balance_of_equal_weights(seed):
    """r* in the span, orthogonal to M, whose weights exp(-<A_k, r*>) add up along M; sig is a lower bound."""
    problem = load("gaussian:n=4,T=3,d=200,noise=0.25,orthogonal=false", seed=seed)
    target = max_margin(problem)
    length, least, sig = joint_run.equal_balance(problem, target)
    gram, shares = problem.gram(), target.dual / target.dual.sum()
    levels = -np.log(shares) + shares @ np.log(shares)
    b = np.linalg.solve(gram, levels)  # r* = sum b_k A_k
    assert b @ gram @ b == pytest.approx(length**2)
    assert target.dual @ gram @ b == pytest.approx(0, abs=1e-8 * target.norm**2)
    weights = np.exp(-gram @ b)
    pulled = weights / weights.sum() - shares
    assert pulled @ gram @ pulled == pytest.approx(0, abs=1e-16 * gram.max())
    assert (weights / weights.sum()).min() == pytest.approx(least)
    rng = np.random.default_rng(seed)
    for _ in range(50):
        x = rng.normal(size=len(b))
        x -= target.dual * (target.dual @ gram @ x) / target.norm**2  # orthogonal to M
        assert sig * (x @ gram @ x) <= shares @ (gram @ x) ** 2 * (1 + 1e-9)
