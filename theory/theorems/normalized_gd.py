"""Normalized gradient descent (e_t = eta): its path length is eta t, so the weights grow linearly.

For every step-size rule ||W_t|| <= ||W_0|| + E_t (the triangle inequality along the path). For normalized
gradient descent E_t = eta t, hence with norm growth

    g* eta t/R - ||W_0|| <= ||W_t|| <= ||W_0|| + eta t.
"""

from __future__ import annotations

from collections.abc import Sequence

from theory import notation as nt
from theory.notation import R, e, eta, layer, margin, path_length, s, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    equation,
    follows,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    square_root_order,
    zero,
)
from theory.proof.terms import Term, as_real, below, eq, inner, inv, norm, number, symbol, vector
from theory.theorems import norm_growth

REFERENCE = "our corollaries of Theorem A(i); the paper's normalized gradient descent"
START, NOW, NEXT = layer(number(0)).W, layer(t), layer(t + 1)
RULE = nt.always(eq(e(t), eta))
STEP_NONNEGATIVE = 0 <= eta


# --- every rule --------------------------------------------------------------------------------------------


def squared_step(*premises: Proved | tuple[Term | Proved, Proved], **side: Sequence[Proved]) -> Proved:
    """||W_(t+1)||^2 <= (||W_t|| + e_t)^2, from the square of the update and the premises."""
    hole = vector("x")
    square = congruence(specialize(assume(nt.update_is()), t), inner(hole, hole), hole)
    return follows(
        norm(NEXT.W) ** 2 <= (norm(NOW.W) + e(t)) ** 2,
        square, norm_squared(NEXT.W), norm_squared(NOW.W), *premises, **side,
    )  # fmt: skip


def step_lengthens() -> Proved:
    """||W_(t+1)|| <= ||W_t|| + e_t: Cauchy-Schwarz; where the gradient vanishes W does not move."""
    W, D = NOW.W, NOW.descent
    pace = specialize(assume(nt.STEPS_NONNEGATIVE), t)
    size = assume(zero() < norm(D))
    factor = follows(0 <= e(t) / norm(D), (pace, kernel.inverse_positive(size)))
    moving = squared_step(
        (factor, kernel.cauchy_schwarz(W, D)), nonzero=[size], nonnegative=[kernel.inner_nonnegative(D)]
    )
    vanishing = kernel.antisymmetry(assume(norm(D) <= zero()), norm_nonnegative(D))
    hole = symbol("x")
    flat = congruence(vanishing, inv(hole), hole)  # 1/0 = 0: the update adds 0
    change = 2 * e(t) * inner(W, D) + e(t) ** 2 * inv(norm(D)) * inner(D, D)
    resting = squared_step(
        (change, flat), product_nonnegative(norm_nonnegative(W), pace), product_nonnegative(pace, pace)
    )
    reach = follows(0 <= norm(W) + e(t), norm_nonnegative(W), pace)
    return square_root_order(kernel.cases(resting, moving, norm(D), zero()), reach)


def prove_norm_upper() -> Proved:
    """||W_t|| <= ||W_0|| + E_t, by induction over the steps."""
    claim = norm(NOW.W) <= norm(START) + path_length(t)
    grown = follows(norm(NEXT.W) <= norm(START) + path_length(t + 1), assume(claim), step_lengthens())
    base = equation(norm(START) <= norm(START) + path_length(number(0)))
    return induction(base, grown, t)


# --- normalized gradient descent ---------------------------------------------------------------------------


def path() -> Proved:
    """E_t = eta t: a sum of t equal terms."""
    summed = kernel.sum_order(specialize(assume(RULE), s), s, below(t))
    return follows(eq(path_length(t), eta * as_real(t)), summed)


def prove_path() -> Proved:
    """E_t = eta t, for every t."""
    return generalize(path(), t, nt.NATURALS)


def with_constant_steps(claim: Proved) -> Proved:
    """The steps are nonnegative because eta is."""
    each = follows(0 <= e(t), assume(STEP_NONNEGATIVE), specialize(assume(RULE), t))
    return discharge(claim, generalize(each, t, nt.NATURALS))


def prove_lower() -> Proved:
    """Norm growth at E_t = eta t."""
    growth = specialize(norm_growth.NORM_GROWTH.proved(), t)
    bound = follows(LOWER_BOUND <= norm(NOW.W), growth, (margin / R, path()))
    return generalize(with_constant_steps(bound), t, nt.NATURALS)


def prove_upper() -> Proved:
    """The triangle inequality at E_t = eta t."""
    bound = follows(norm(NOW.W) <= UPPER_BOUND, specialize(NORM_UPPER.proved(), t), path())
    return generalize(with_constant_steps(bound), t, nt.NATURALS)


LOWER_BOUND = margin * eta * as_real(t) / R - norm(START)
UPPER_BOUND = norm(START) + eta * as_real(t)
CONSTANT_STEPS = {"normalized gradient descent": RULE, "eta >= 0": STEP_NONNEGATIVE}

NORM_UPPER = Theorem(
    key="norm-upper",
    title="The weight norm grows at most like the path length",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={"steps are nonnegative": nt.STEPS_NONNEGATIVE, "update": nt.update_is()},
    claim=nt.always(norm(NOW.W) <= norm(START) + path_length(t)),
    prove=prove_norm_upper,
    rate=Rate(observed=norm(NOW.W), bound=norm(START) + path_length(t), sense="upper"),
)
PATH = Theorem(
    key="ngd-path",
    title="The path length of normalized gradient descent is the step size times the number of steps",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={"normalized gradient descent": RULE},
    claim=nt.always(eq(path_length(t), eta * as_real(t))),
    prove=prove_path,
)
LOWER = Theorem(
    key="ngd-norm-lower",
    title="Under normalized gradient descent the weight norm grows at least linearly",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(norm_growth.HYPOTHESES, "steps are nonnegative") | CONSTANT_STEPS,
    claim=nt.always(LOWER_BOUND <= norm(NOW.W)),
    prove=prove_lower,
    rate=Rate(observed=norm(NOW.W), bound=LOWER_BOUND, sense="lower"),
)
UPPER = Theorem(
    key="ngd-norm-upper",
    title="Under normalized gradient descent the weight norm grows at most linearly",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={"update": nt.update_is()} | CONSTANT_STEPS,
    claim=nt.always(norm(NOW.W) <= UPPER_BOUND),
    prove=prove_upper,
    rate=Rate(observed=norm(NOW.W), bound=UPPER_BOUND, sense="upper"),
)
PAGES = (NORM_UPPER, PATH, LOWER, UPPER)
