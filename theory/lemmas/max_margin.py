"""Optimality of the max-margin solution: no W of the same norm has a larger smallest logit gap.

From the optimality conditions of M (alpha_k >= 0, M = sum alpha_k A_k, sum alpha_k = ||M||^2): every common
lower bound b of the logit gaps of W satisfies b <= g* ||W||; in particular the smallest gap does.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas.separator_correlation import at_constraint, sum_constraints
from theory.notation import STATIC, M, alpha, i, margin, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence
from theory.proof.tactics import follows, norm_squared, product_nonnegative
from theory.proof.terms import inner, norm, symbol, vector

REFERENCE = "optimality conditions of the hard-margin problem (the paper's W_mm, section 2)"
W = STATIC.W
b = symbol("b")  # a common lower bound of the logit gaps
GAPS_AT_LEAST = nt.each(b <= STATIC.gap(i, tau))


def prove_optimality() -> Proved:
    """b sum alpha <= sum alpha_k <A_k, W> = <M, W> <= ||M|| ||W||, and sum alpha = ||M||^2."""
    weight, gap = at_constraint(nt.DUAL_NONNEGATIVE), at_constraint(GAPS_AT_LEAST)
    each = follows(b * alpha(i, tau) <= alpha(i, tau) * STATIC.gap(i, tau), (weight, gap))
    hole = vector("x")
    positive = assume(nt.SOLUTION_NONZERO)
    product = follows(
        b * norm(M) ** 2 <= norm(M) * norm(W),
        sum_constraints(each),
        congruence(assume(nt.DUAL_EXPANSION), inner(hole, W), hole),
        (b, assume(nt.DUAL_MASS)),
        (b, norm_squared(M)),
        kernel.cauchy_schwarz(M, W),
    )
    inverse = kernel.inverse_positive(positive)
    square = product_nonnegative(inverse, inverse)
    return follows(CLAIM, (square, product), nonzero=[positive])


CLAIM = b <= margin * norm(W)

OPTIMALITY = Theorem(
    key="max-margin-optimality",
    title="No weight matrix of the same norm has a larger smallest logit gap than the max-margin solution",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If every logit gap of $W$ is at least $b$: {claim}.",
    hypotheses={
        "alpha >= 0": nt.DUAL_NONNEGATIVE,
        "M is a combination of the constraints": nt.DUAL_EXPANSION,
        "complementary slackness": nt.DUAL_MASS,
        "M is not 0": nt.SOLUTION_NONZERO,
        "gaps are at least b": GAPS_AT_LEAST,
    },
    claim=CLAIM,
    prove=prove_optimality,
)
