"""Under full support the weights never fall back along the max-margin solution, whatever the scores.

With m_i the mean of the scores of sequence i under the attention, p_i the attention on the token o_i and g_i
its score, the negative gradient in W satisfies, where every constraint is active (<A_k, M> = 1 for all k),

    <-grad L, M> = (1/n) sum_i sigma(-m_i) p_i (g_i - m_i),

with no condition on the other scores. Where no token scores above o_i, this is not negative: in joint
training <W_t, M^> never falls once the decoder scores these tokens best, even while some c_k are negative.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import residual_step as rs
from theory.lemmas import shifts_unequal as su
from theory.lemmas.joint_layer import REFERENCE, t0
from theory.lemmas.separator_correlation import along, at_constraint
from theory.notation import STATIC as L
from theory.notation import A, M, e, i, layer, margin, n, others, t, tau
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import (
    Proved,
    assume,
    congruence,
    discharge,
    induction,
    specialize,
    sum_order,
)
from theory.proof.tactics import equation, follows, product_nonnegative, weak
from theory.proof.terms import (
    Formula,
    Index,
    eq,
    exp,
    inner,
    inv,
    norm,
    number,
    substitute,
    symbol,
    total,
    vector,
)
from theory.theorems.joint_direction import component

best, g_k, m = su.best, su.g_k, su.mean(i)
SCORES_BELOW = nt.each(g_k <= best)
PULL = L.p(i) * (best - m) / n / (1 + exp(m))
IDENTITY = eq(inner(L.descent, M), total(i, nt.SEQUENCES, PULL))


def prove_identity() -> Proved:
    """sum phi (m - g) over the other tokens is p (g_o - m), as phi sums to 1 and phi g to m."""
    p, decay = L.p(i), exp(-L.gap(i, tau))
    partition = co.partition_positive()
    unit = follows(
        eq(p * (1 + co.others_weight()), 1), (1 + co.others_weight(), co.at_sequence(L.attention_is())),
        nonzero=[partition],
    )  # fmt: skip
    sigmoid = inv(n) * inv(1 + exp(m))
    each = follows(
        eq(L.c(i, tau) * inner(A(i, tau), M), p * decay * (m - g_k) * sigmoid),
        (inner(A(i, tau), M), at_constraint(su.coefficient_is(L))),
        (p * decay * (m - g_k) * sigmoid, at_constraint(rs.FULL_SUPPORT)),
    )
    within = sum_order(each, tau, others(i))
    sequence = follows(
        eq(total(tau, others(i), L.c(i, tau) * inner(A(i, tau), M)), PULL),
        within, (m * sigmoid, unit), (sigmoid, co.at_sequence(su.mean_is(L))),
    )  # fmt: skip
    return follows(IDENTITY, along(M), sum_order(sequence, i, nt.SEQUENCES))


def prove_nonnegative() -> Proved:
    """The mean of scores that are at most g_o is at most g_o."""
    p, decay = L.p(i), kernel.exp_positive(-L.gap(i, tau))
    spare = follows(0 <= best - g_k, at_constraint(SCORES_BELOW))
    lost = sum_order(product_nonnegative(weak(decay), spare), tau, others(i))
    partition = co.partition_positive()
    unit = follows(
        eq(p * (1 + co.others_weight()), 1), (1 + co.others_weight(), co.at_sequence(L.attention_is())),
        nonzero=[partition],
    )  # fmt: skip
    share = weak(co.attention_positive())
    above = follows(0 <= best - m, (share, lost), (best, unit), co.at_sequence(su.mean_is(L)))
    sigmoid = product_nonnegative(
        kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE)),
        kernel.inverse_positive(co.denominator_positive(m)),
    )
    each = product_nonnegative(product_nonnegative(share, above), weak(sigmoid))
    each = follows(0 <= PULL, each)
    return follows(0 <= inner(L.descent, M), prove_identity(), sum_order(each, i, nt.SEQUENCES))


# --- along a run -------------------------------------------------------------------------------------------


def families(at: Index) -> dict[str, Any]:
    """The layer and its scores at W_t and u_t."""
    moved = nt._time_families(at)
    scores = {
        "gs": (("i", "tau"), symbol("gs", at, i, tau)),
        "go": (("i",), symbol("go", at, i)),
        "m": (("i",), symbol("m", at, i)),
    }
    return {"reals": moved["reals"] | scores, "vectors": moved["vectors"]}


def since(formula: Formula) -> Formula:
    """A hypothesis about the layer at any W and u, for every step from t0 on."""
    return nt.always(substitute(formula, **families(t0 + t)))


DESCENT_NONZERO = nt.always(0 < norm(layer(t0 + t).descent))
STEPS_NONNEGATIVE = nt.always(0 <= e(t0 + t))
UPDATE = substitute(
    nt.update_is(),
    reals={"e": (("t",), e(t0 + t))},
    vectors={"W": (("t",), layer(t0 + t).W), "D": (("t",), layer(t0 + t).descent)},
)


def prove_never_falls() -> Proved:
    """By induction: a step adds e <D, M>/||D||."""
    static = prove_nonnegative()
    now = kernel.instantiate(static, **families(t0 + t))
    timed = [f for f in static.hypotheses if f not in (rs.FULL_SUPPORT, co.DATA_SIZE_POSITIVE)]
    now = discharge(now, *(specialize(assume(since(f)), t) for f in timed))
    hole = vector("x")
    step = congruence(specialize(assume(UPDATE), t), inner(hole, M), hole)
    inverse = kernel.inverse_positive(specialize(assume(DESCENT_NONZERO), t))
    pace = follows(
        0 <= e(t0 + t) / norm(layer(t0 + t).descent), (specialize(assume(STEPS_NONNEGATIVE), t), inverse)
    )
    claim = component(t0) <= component(t0 + t)
    solution = weak(kernel.inverse_positive(rs.solution_nonzero()))
    pulled = product_nonnegative(pace, now)
    grown = follows(component(t0) <= component(t0 + t + 1), assume(claim), (margin, step), (solution, pulled))
    base = equation(component(t0) <= component(t0 + number(0)))
    return induction(base, grown, t)


STATIC_HYPOTHESES = {
    "(F)": rs.FULL_SUPPORT,
    "p": L.attention_is(),
    "m": su.mean_is(L),
    "c": su.coefficient_is(L),
    "gradient": L.gradient_is(),
}
CORRELATION = Theorem(
    key="full-support-correlation",
    title="Under full support the gradient's part along the max-margin solution, whatever the scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$ and every decoder: {claim}.",
    hypotheses=STATIC_HYPOTHESES,
    claim=IDENTITY,
    prove=prove_identity,
)
NONNEGATIVE = Theorem(
    key="full-support-separator",
    title="Under full support no step leads away from the max-margin solution of the tokens that score best",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$ and every decoder: {claim}.",
    hypotheses=STATIC_HYPOTHESES
    | {"no token scores above the optimal one": SCORES_BELOW, "n > 0": co.DATA_SIZE_POSITIVE},
    claim=0 <= inner(L.descent, M),
    prove=prove_nonnegative,
)
NEVER_FALLS = Theorem(
    key="joint-never-falls",
    title="In joint training under full support the weights never fall back along the max-margin solution",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If from $t_0$ on no token scores above the optimal ones: for every $t$, {claim}.",
    hypotheses={
        "(F)": rs.FULL_SUPPORT,
        "there is a sequence": nt.SOME_SEQUENCE,
        "with a constraint": nt.SOME_TOKEN,
        "n > 0": co.DATA_SIZE_POSITIVE,
        "no token scores above the optimal one": since(SCORES_BELOW),
        **{name: since(f) for name, f in without(STATIC_HYPOTHESES, "(F)").items()},
        "gradient is not 0": DESCENT_NONZERO,
        "steps are nonnegative": STEPS_NONNEGATIVE,
        "update": UPDATE,
    },
    claim=nt.always(component(t0) <= component(t0 + t)),
    prove=prove_never_falls,
    rate=Rate(observed=component(t0 + t), bound=component(t0), sense="lower"),
)
PAGES = (CORRELATION, NONNEGATIVE, NEVER_FALLS)
