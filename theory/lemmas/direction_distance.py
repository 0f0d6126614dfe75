"""The distance of two directions and their cosine: ||W/||W|| - M/||M|| ||^2 = 2 (1 - cos(W, M))."""

from __future__ import annotations

from theory import notation as nt
from theory.notation import STATIC, M, margin
from theory.page import Theorem
from theory.proof.kernel import Proved, assume
from theory.proof.tactics import follows, norm_squared
from theory.proof.terms import eq, inner, norm

W = STATIC.W
APART = 1 / norm(W) * W - margin * M
CLAIM = eq(norm(APART) ** 2, 2 * (1 - inner(W, M) / (norm(W) * norm(M))))


def prove_distance() -> Proved:
    """Expand the square; both directions have norm 1."""
    return follows(
        CLAIM, norm_squared(APART), (1 / norm(W) ** 2, norm_squared(W)), (margin**2, norm_squared(M)),
        nonzero=[assume(nt.WEIGHTS_NONZERO), assume(nt.SOLUTION_NONZERO)],
    )  # fmt: skip


DISTANCE = Theorem(
    key="direction-distance",
    title="The squared distance of the directions is twice the cosine's distance to 1",
    kind="lemma",
    reference="our Theorem A(iii), in the paper's terms",
    statement=r"{claim}.",
    hypotheses={"W is not 0": nt.WEIGHTS_NONZERO, "M is not 0": nt.SOLUTION_NONZERO},
    claim=CLAIM,
    prove=prove_distance,
)
