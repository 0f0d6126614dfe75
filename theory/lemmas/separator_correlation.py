"""Lemma 1 (separator correlation): the negative gradient sees the max-margin solution.

For any W with c_k >= 0: <-grad L, M> >= C, g* C <= ||grad L|| <= R C, where C is the sum of the c_k.
"""

from __future__ import annotations

from theory import notation as nt
from theory.notation import STATIC, A, M, R, i, margin, others, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, combine, congruence, sum_order
from theory.proof.tactics import everywhere, follows, norm_nonnegative, norm_squared, zero
from theory.proof.terms import Formula, Vector, inner, member, norm, vector

REFERENCE = "our Lemma 1; the paper's gradient correlation lemma with every constant explicit"
L = STATIC
in_i, in_tau = assume(member(i, nt.SEQUENCES)), assume(member(tau, others(i)))


def at_constraint(formula: Formula) -> Proved:
    """A hypothesis about every constraint, at the generic constraint (i, tau)."""
    return everywhere(assume(formula), (i, in_i), (tau, in_tau))


def sum_constraints(claim: Proved) -> Proved:
    """A claim about the generic constraint, summed over all constraints."""
    return sum_order(sum_order(claim, tau, others(i)), i, nt.SEQUENCES)


def along(v: Vector) -> Proved:
    """<D, v> = sum c_k <A_k, v>."""
    hole = vector("x")
    return congruence(assume(L.gradient_is()), inner(hole, v), hole)


def prove_correlation() -> Proved:
    """<D, M> >= C: each c_k <A_k, M> >= c_k."""
    c, feasible = at_constraint(L.coefficients_nonnegative()), at_constraint(nt.SEPARABLE)
    each = combine(L.c(i, tau) <= L.c(i, tau) * inner(A(i, tau), M), [(c, feasible)])
    return follows(L.C <= inner(L.descent, M), sum_constraints(each), assume(L.mass_is()), along(M))


def prove_lower() -> Proved:
    """g* C <= ||D||: Cauchy-Schwarz against M, divided by ||M||."""
    positive = assume(nt.SOLUTION_NONZERO)
    upper = follows(
        L.C <= norm(L.descent) * norm(M), prove_correlation(), kernel.cauchy_schwarz(L.descent, M)
    )
    inverse = kernel.inverse_positive(positive)
    return follows(margin * L.C <= norm(L.descent), (inverse, upper), nonzero=[positive])


def prove_upper() -> Proved:
    """||D|| <= R C: ||D||^2 = sum c_k <A_k, D> <= R C ||D||; divide by ||D|| unless it is 0."""
    D, c = L.descent, at_constraint(L.coefficients_nonnegative())
    length = norm_nonnegative(D)
    reach = follows(
        inner(A(i, tau), D) <= R * norm(D),
        kernel.cauchy_schwarz(A(i, tau), D),
        (length, at_constraint(nt.NORM_BOUND)),
    )
    each = combine(L.c(i, tau) * inner(A(i, tau), D) <= R * norm(D) * L.c(i, tau), [(c, reach)])
    squared = follows(
        norm(D) ** 2 <= R * norm(D) * L.C,
        sum_constraints(each), along(D), (R * norm(D), assume(L.mass_is())), norm_squared(D),
    )  # fmt: skip
    target = norm(D) <= R * L.C
    size = assume(zero() < norm(D))
    long = follows(target, (kernel.inverse_positive(size), squared), nonzero=[size])
    mass = sum_constraints(combine(zero() <= R * L.c(i, tau), [(norm_is_bounded(), c)]))
    short = follows(target, assume(norm(D) <= 0), mass, (R, assume(L.mass_is())))
    return kernel.cases(short, long, norm(D), zero())


def norm_is_bounded() -> Proved:
    """0 <= R, at a generic constraint."""
    return follows(0 <= R, norm_nonnegative(A(i, tau)), at_constraint(nt.NORM_BOUND))


HYPOTHESES = {
    "(S)": nt.SEPARABLE,
    "M is not 0": nt.SOLUTION_NONZERO,
    "R bounds the constraints": nt.NORM_BOUND,
    "c >= 0": L.coefficients_nonnegative(),
    "gradient": L.gradient_is(),
    "C": L.mass_is(),
}

CORRELATION = Theorem(
    key="separator-correlation",
    title="The negative gradient sees the max-margin solution",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every W: {claim}.",
    hypotheses=without(HYPOTHESES, "M is not 0", "R bounds the constraints"),
    claim=L.C <= inner(L.descent, M),
    prove=prove_correlation,
)
LOWER = Theorem(
    key="gradient-lower",
    title="The gradient's norm is at least the margin times its mass",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every W: {claim}.",
    hypotheses=without(HYPOTHESES, "R bounds the constraints"),
    claim=margin * L.C <= norm(L.descent),
    prove=prove_lower,
)
UPPER = Theorem(
    key="gradient-upper",
    title="The gradient's norm is at most the largest constraint times its mass",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every W: {claim}.",
    hypotheses=without(HYPOTHESES, "(S)", "M is not 0"),
    claim=norm(L.descent) <= R * L.C,
    prove=prove_upper,
)
