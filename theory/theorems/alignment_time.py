"""Theorem A(ii) (alignment time): on near-acute data the alignment lemma applies from an explicit time on.

Under (N), <A_k, A_l> >= -e0 for all constraints with e0 < g*^2, and for any step-size rule:

    <A_k, W_t> >= <A_k, W_0> - e0 S_t                                             at every t,
    <A_k, W_t> >= -g* ||W_t||        at every t from the first with S_t >= (R + g*) ||W_0||/(g*^2 - e0) on,
    W_t is not 0                     at every t from the first with S_t > ||W_0||/g* on.

Both times are 0 or 1 when W_0 = 0.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas.separator_correlation import along, at_constraint, sum_constraints
from theory.notation import (
    STATIC,
    A,
    M,
    R,
    e,
    e0,
    i,
    j,
    layer,
    margin,
    others,
    rho,
    s,
    separator_path,
    t,
    tau,
)
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, combine, congruence, generalize, induction, specialize
from theory.proof.tactics import (
    equation,
    everywhere,
    follows,
    product_nonnegative,
    restate,
    weak,
    zero,
)
from theory.proof.terms import Formula, Index, forall, index, inner, member, norm, number, vector
from theory.theorems import norm_growth

REFERENCE = "our Theorem A(ii)"
START = norm_growth.START
t0 = index("t0")  # a time from which on the claims hold
NEAR_ACUTE = nt.each(forall(j, nt.SEQUENCES, forall(rho, others(j), -e0 <= inner(A(i, tau), A(j, rho)))))
ACUTE_BOUND = e0 < margin**2
PATH_ALIGNS = (R + margin) * norm(START) / (margin**2 - e0) <= separator_path(t0)
PATH_LEAVES_START = norm(START) < margin * separator_path(t0)


def pace(at: Index) -> Proved:
    """0 <= e_t/||D_t||."""
    length = kernel.inverse_positive(specialize(assume(nt.DESCENT_NONZERO), at))
    return follows(
        0 <= e(at) / norm(layer(at).descent), (specialize(assume(nt.STEPS_NONNEGATIVE), at), length)
    )


def prove_path_grows() -> Proved:
    """S_t <= S_(t+s), by induction over s: a step adds e C/||D||, and C is a sum of c_k >= 0."""
    c = at_constraint(STATIC.coefficients_nonnegative())
    mass = follows(0 <= STATIC.C, sum_constraints(c), assume(STATIC.mass_is()))
    claim = separator_path(t) <= separator_path(t + s)
    added = product_nonnegative(pace(t + s), nt.from_all_times(mass, t + s))
    grown = follows(separator_path(t) <= separator_path(t + s + 1), assume(claim), added)
    base = equation(separator_path(t) <= separator_path(t + number(0)))
    return generalize(induction(base, grown, s), t, nt.NATURALS)


def prove_gradient_near_acute() -> Proved:
    """<A_k, D> >= -e0 C: D is the sum of the c_l A_l, and each <A_k, A_l> >= -e0."""
    in_j, in_rho = assume(member(j, nt.SEQUENCES)), assume(member(rho, others(j)))
    acute = everywhere(at_constraint(NEAR_ACUTE), (j, in_j), (rho, in_rho))
    c = everywhere(assume(STATIC.coefficients_nonnegative()), (j, in_j), (rho, in_rho))
    each = combine(-e0 * STATIC.c(j, rho) <= STATIC.c(j, rho) * inner(A(i, tau), A(j, rho)), [(c, acute)])
    summed = kernel.sum_order(kernel.sum_order(each, rho, others(j)), j, nt.SEQUENCES)
    claim = -e0 * STATIC.C <= inner(A(i, tau), STATIC.descent)
    return at_every_constraint(follows(claim, summed, (-e0, assume(STATIC.mass_is())), along(A(i, tau))))


def at_every_constraint(claim: Proved) -> Proved:
    """A claim about the generic constraint (i, tau), for every one."""
    return generalize(generalize(claim, tau, others(i)), i, nt.SEQUENCES)


def prove_gaps() -> Proved:
    """<A_k, W_t> >= <A_k, W_0> - e0 S_t, by induction: a step adds e_t <A_k, D_t>/||D_t||."""

    def lower(at: Index) -> Formula:
        return inner(A(i, tau), START) - e0 * separator_path(at) <= layer(at).gap(i, tau)

    hole = vector("x")
    step = congruence(specialize(assume(nt.update_is()), t), inner(A(i, tau), hole), hole)
    pull = at_step_constraint(nt.from_all_times(prove_gradient_near_acute(), t))
    grown = follows(lower(t + 1), assume(lower(t)), step, (pace(t), pull))
    base = equation(lower(number(0)))
    always = specialize(induction(base, grown, t), t)
    return generalize(at_every_constraint(always), t, nt.NATURALS)


def at_step_constraint(claim: Proved) -> Proved:
    """A claim about every constraint, at the generic constraint (i, tau)."""
    return everywhere(claim, (i, assume(member(i, nt.SEQUENCES))), (tau, assume(member(tau, others(i)))))


def margin_positive() -> Proved:
    """0 < g*."""
    return kernel.inverse_positive(assume(nt.SOLUTION_NONZERO))


def prove_reach() -> Proved:
    """g* S_t - ||W_0|| <= ||W_t||: Cauchy-Schwarz at both ends of <W_t, M> >= <W_0, M> + S_t."""
    solution = assume(nt.SOLUTION_NONZERO)
    product = follows(
        separator_path(t) - norm(START) * norm(M) <= norm(layer(t).W) * norm(M),
        everywhere(norm_growth.SEPARATOR.proved(), t),
        kernel.cauchy_schwarz(layer(t).W, M),
        restate(-1 * inner(START, M) <= norm(START) * norm(M), kernel.cauchy_schwarz(-1 * START, M)),
    )
    claim = margin * separator_path(t) - norm(START) <= norm(layer(t).W)
    return generalize(follows(claim, (margin_positive(), product), nonzero=[solution]), t, nt.NATURALS)


def since_t0() -> Proved:
    """S_t0 <= S_(t0+s)."""
    return everywhere(PATH_GROWS.proved(), t0, s)


def prove_alignment_time() -> Proved:
    """g*^2 S - g* ||W_0|| >= R ||W_0|| + e0 S at the first such time and later: the gap's loss is covered."""
    at = t0 + s
    acute = follows(0 < margin**2 - e0, assume(ACUTE_BOUND))
    covered = follows(
        (R + margin) * norm(START) <= (margin**2 - e0) * separator_path(at),
        (acute, assume(PATH_ALIGNS)), (acute, since_t0()), nonzero=[acute],
    )  # fmt: skip
    from_start = kernel.cauchy_schwarz(-1 * A(i, tau), START)
    size = (kernel.sqrt_nonnegative(kernel.inner_nonnegative(START)), at_constraint(nt.NORM_BOUND))
    gap = at_step_constraint(everywhere(GAPS.proved(), at))
    reach = (margin_positive(), everywhere(REACH.proved(), at))
    claim = -nt.lam(layer(at)) <= layer(at).gap(i, tau)
    return generalize(
        at_every_constraint(follows(claim, gap, from_start, size, reach, covered)), s, nt.NATURALS
    )


def prove_nonzero() -> Proved:
    """||W_t|| >= g* S_t - ||W_0|| > 0 once S_t has passed ||W_0||/g*."""
    reach = everywhere(REACH.proved(), t0 + s)
    later = (weak(margin_positive()), since_t0())
    claim = zero() < norm(layer(t0 + s).W)
    return generalize(follows(claim, reach, assume(PATH_LEAVES_START), later), s, nt.NATURALS)


HYPOTHESES = {
    **without(norm_growth.HYPOTHESES, "R > 0"),
    "(N)": NEAR_ACUTE,
    "e0 < g*^2": ACUTE_BOUND,
    "the path has covered the start's gaps": PATH_ALIGNS,
    "the path has left the start": PATH_LEAVES_START,
}
_STATIC = {
    "(N)": NEAR_ACUTE,
    "c >= 0": STATIC.coefficients_nonnegative(),
    "gradient": STATIC.gradient_is(),
    "C": STATIC.mass_is(),
}
_TIMES = ("the path has covered the start's gaps", "the path has left the start")

PATH_GROWS = Theorem(
    key="separator-path-grows",
    title="The separator path never shrinks",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $t$ and $s$: {claim}; what holds once $S_t$ is large keeps holding.",
    hypotheses={
        name: HYPOTHESES[name] for name in ("c >= 0", "C", "gradient is not 0", "steps are nonnegative")
    },
    claim=nt.always(nt.always(separator_path(t) <= separator_path(t + s), s)),
    prove=prove_path_grows,
)
GRADIENT_NEAR_ACUTE = Theorem(
    key="gradient-near-acute",
    title="On near-acute data a gradient step closes no logit gap by more than e0 times its mass",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every W: {claim}.",
    hypotheses=_STATIC,
    claim=nt.each(-e0 * STATIC.C <= inner(A(i, tau), STATIC.descent)),
    prove=prove_gradient_near_acute,
)
GAPS = Theorem(
    key="logit-gaps",
    title="On near-acute data the logit gaps fall at most by e0 times the separator path",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(HYPOTHESES, "(S)", "M is not 0", "R bounds the constraints", "e0 < g*^2", *_TIMES),
    claim=nt.always(nt.each(inner(A(i, tau), START) - e0 * separator_path(t) <= layer(t).gap(i, tau))),
    prove=prove_gaps,
)
REACH = Theorem(
    key="norm-reach",
    title="The weight norm grows at least like the separator path",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(HYPOTHESES, "R bounds the constraints", "(N)", "e0 < g*^2", *_TIMES),
    claim=nt.always(margin * separator_path(t) - norm(START) <= norm(layer(t).W)),
    prove=prove_reach,
    rate=Rate(
        observed=norm(layer(t).W),
        bound=margin * separator_path(t) - norm(START),
        sense="lower",
    ),
)
ALIGNMENT_TIME = Theorem(
    key="alignment-time",
    title="The alignment lemma applies once the separator path has covered the start's gaps",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $t_0$ such that "
    r"$S_{t_0} \ge (R + \gamma_\ast)\|W_0\|/(\gamma_\ast^2 - \epsilon_0)$: {claim}.",
    hypotheses=without(HYPOTHESES, "the path has left the start"),
    claim=nt.always(nt.gaps_bounded(layer(t0 + s)), s),
    prove=prove_alignment_time,
)
NONZERO = Theorem(
    key="weights-leave-zero",
    title="The iterates stay away from zero once the separator path has left the start",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $t_0$ such that $S_{t_0} > \|W_0\|/\gamma_\ast$: {claim}.",
    hypotheses=without(
        HYPOTHESES, "R bounds the constraints", "(N)", "e0 < g*^2", "the path has covered the start's gaps"
    ),
    claim=nt.always(zero() < norm(layer(t0 + s).W), s),
    prove=prove_nonzero,
)
PAGES = (PATH_GROWS, GRADIENT_NEAR_ACUTE, GAPS, REACH, ALIGNMENT_TIME, NONZERO)
