"""Joint training under full support: the identity, on numbers and through the kernel; nothing stronger."""

import numpy as np
import pytest

from theory.proof.kernel import KernelError
from theory.proof.terms import inner
from theory.theorems import joint_full_support as page


@pytest.mark.parametrize("theorem", page.PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


@pytest.mark.parametrize("seed", range(5))
def test_the_identity_on_numbers(seed):
    """sum over the other tokens of phi (m - g) is p (g_o - m), for any scores."""
    rng = np.random.default_rng(seed)
    gaps, scores = rng.normal(size=4), rng.normal(size=5)
    weights = np.append(1.0, np.exp(-gaps))
    phi = weights / weights.sum()
    m = phi @ scores
    assert (phi[1:] * (m - scores[1:])).sum() == pytest.approx(phi[0] * (scores[0] - m))


def test_scores_above_break_the_sign():
    """Without the condition on the scores only the identity is left."""
    with pytest.raises(KernelError):
        page.follows(inner(page.L.descent, page.M) >= 0, page.prove_identity())


def test_no_faster_growth():
    claim = page.specialize(page.NEVER_FALLS.proved(), page.t)
    with pytest.raises(KernelError):
        page.follows(2 * page.component(page.t0) <= page.component(page.t0 + page.t), claim)
