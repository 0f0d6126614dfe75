"""Theorem A(i) (norm growth): any step-size rule, any initial W_0.

<W_t, M> >= <W_0, M> + S_t,    E_t/R <= S_t <= E_t/g*,    ||W_t|| >= g* E_t/R - ||W_0||.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import separator_correlation as lemma1
from theory.notation import M, R, e, layer, margin, path_length, s, separator_path, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, generalize, induction, specialize
from theory.proof.tactics import equation, everywhere, follows, norm_nonnegative, restate
from theory.proof.terms import below, inner, norm, number, vector

REFERENCE = "our Theorem A(i); the paper's norm-growth step, for every rule at once"
START = layer(number(0)).W
NOW, NEXT = layer(t), layer(t + 1)


def prove_separator() -> Proved:
    """<W_t, M> >= <W_0, M> + S_t, by induction: a step adds e_t <D_t, M>/||D_t|| >= e_t C_t/||D_t||."""
    claim = inner(START, M) + separator_path(t) <= inner(NOW.W, M)
    hole = vector("x")
    step = congruence(specialize(assume(nt.update_is()), t), inner(hole, M), hole)
    correlation = nt.from_all_times(lemma1.CORRELATION.proved(), t)
    length = kernel.inverse_positive(specialize(assume(nt.DESCENT_NONZERO), t))
    pace = follows(0 <= e(t) / norm(NOW.descent), (specialize(assume(nt.STEPS_NONNEGATIVE), t), length))
    grown = follows(
        inner(START, M) + separator_path(t + 1) <= inner(NEXT.W, M), assume(claim), step, (pace, correlation)
    )
    zero = number(0)
    base = equation(inner(START, M) + separator_path(zero) <= inner(START, M))
    return induction(base, grown, t)


def prove_path_lower() -> Proved:
    """E_t/R <= S_t: each ||D_s|| <= R C_s."""
    now = layer(s)
    positive, size = assume(nt.R_POSITIVE), specialize(assume(nt.DESCENT_NONZERO), s)
    upper = nt.from_all_times(lemma1.UPPER.proved(), s)
    pace = follows(
        0 <= e(s) / R, (specialize(assume(nt.STEPS_NONNEGATIVE), s), kernel.inverse_positive(positive))
    )
    weight = follows(0 <= e(s) / (R * norm(now.descent)), (pace, kernel.inverse_positive(size)))
    each = follows(e(s) / R <= e(s) * now.C / norm(now.descent), (weight, upper), nonzero=[positive, size])
    summed = kernel.sum_order(each, s, below(t))
    return generalize(restate(path_length(t) / R <= separator_path(t), summed), t, nt.NATURALS)


def prove_path_upper() -> Proved:
    """S_t <= E_t/g*: each g* C_s <= ||D_s||."""
    now = layer(s)
    size, solution = specialize(assume(nt.DESCENT_NONZERO), s), assume(nt.SOLUTION_NONZERO)
    lower = nt.from_all_times(lemma1.LOWER.proved(), s)
    pace = follows(
        0 <= e(s) / norm(now.descent),
        (specialize(assume(nt.STEPS_NONNEGATIVE), s), kernel.inverse_positive(size)),
    )
    weight = follows(0 <= norm(M) * (e(s) / norm(now.descent)), (norm_nonnegative(M), pace))
    each = follows(
        e(s) * now.C / norm(now.descent) <= e(s) * norm(M), (weight, lower), nonzero=[size, solution]
    )
    summed = kernel.sum_order(each, s, below(t))
    target = separator_path(t) <= path_length(t) / margin
    return generalize(restate(target, summed), t, nt.NATURALS)


def prove_norm() -> Proved:
    """||W_t|| >= g* E_t/R - ||W_0||: Cauchy-Schwarz at both ends of <W_t, M> >= <W_0, M> + E_t/R."""
    solution = assume(nt.SOLUTION_NONZERO)
    product = follows(
        path_length(t) / R - norm(START) * norm(M) <= norm(NOW.W) * norm(M),
        everywhere(prove_separator(), t),
        everywhere(prove_path_lower(), t),
        kernel.cauchy_schwarz(NOW.W, M),
        restate(-1 * inner(START, M) <= norm(START) * norm(M), kernel.cauchy_schwarz(-1 * START, M)),
    )
    inverse = kernel.inverse_positive(solution)
    bound = margin * path_length(t) / R - norm(START)
    return generalize(follows(bound <= norm(NOW.W), (inverse, product), nonzero=[solution]), t, nt.NATURALS)


HYPOTHESES = {
    "(S)": nt.SEPARABLE,
    "M is not 0": nt.SOLUTION_NONZERO,
    "R bounds the constraints": nt.NORM_BOUND,
    "R > 0": nt.R_POSITIVE,
    "c >= 0": nt.at_all_times(nt.STATIC.coefficients_nonnegative()),
    "gradient": nt.at_all_times(nt.STATIC.gradient_is()),
    "C": nt.at_all_times(nt.STATIC.mass_is()),
    "gradient is not 0": nt.DESCENT_NONZERO,
    "steps are nonnegative": nt.STEPS_NONNEGATIVE,
    "update": nt.update_is(),
}

SEPARATOR = Theorem(
    key="separator-growth",
    title="The iterates grow along the max-margin solution",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(HYPOTHESES, "R > 0", "M is not 0", "R bounds the constraints"),
    claim=nt.always(inner(START, M) + separator_path(t) <= inner(NOW.W, M)),
    prove=prove_separator,
    rate=Rate(
        observed=inner(NOW.W, M),
        bound=inner(START, M) + separator_path(t),
        sense="lower",
        from_step=1,
    ),
)
PATH_LOWER = Theorem(
    key="path-lower",
    title="The separator path is at least the path length over R",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(HYPOTHESES, "M is not 0", "update", "(S)"),
    claim=nt.always(path_length(t) / R <= separator_path(t)),
    prove=prove_path_lower,
    rate=Rate(observed=separator_path(t), bound=path_length(t) / R, sense="lower", from_step=1),
)
PATH_UPPER = Theorem(
    key="path-upper",
    title="The separator path is at most the path length over the margin",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(HYPOTHESES, "R > 0", "R bounds the constraints", "update"),
    claim=nt.always(separator_path(t) <= path_length(t) / margin),
    prove=prove_path_upper,
    rate=Rate(observed=separator_path(t), bound=path_length(t) / margin, sense="upper", from_step=1),
)
NORM_GROWTH = Theorem(
    key="norm-growth",
    title="The weight norm grows at least like the path length",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(margin * path_length(t) / R - norm(START) <= norm(NOW.W)),
    prove=prove_norm,
    rate=Rate(
        observed=norm(NOW.W),
        bound=margin * path_length(t) / R - norm(START),
        sense="lower",
        from_step=1,
    ),
)
