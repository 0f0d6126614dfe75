"""One step when some constraints do not support the max-margin solution: their pull is a small stray one.

Without full support let J_i be the tokens whose constraints support M, <A_k, M> = 1, and K_i the others;
there <A_k, M> >= 0 (at least 1 by (S)), c_k >= 0 and ||A_k|| <= R. With D = sum c_k A_k and C = sum c_k over
the support and stray = sum_K c_k, the negative gradient is F = D + sum_K c_k A_k, and

    C <= <F, M>,    g* C <= ||F||,    ||F - D|| <= R stray.

So a step of length e along F moves the residual by h b, as if the support were alone, h = e C/||F||, but for
a vector no longer than (e/||F||) R stray.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas.separator_correlation import along, at_constraint, in_i, sum_constraints
from theory.notation import STATIC as L
from theory.notation import A, M, R, i, margin, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, sum_order
from theory.proof.tactics import (
    everywhere,
    follows,
    norm_nonnegative,
    norm_squared,
    weak,
    zero,
)
from theory.proof.terms import (
    Domain,
    Formula,
    Index,
    Term,
    Vector,
    finite,
    forall,
    inner,
    member,
    norm,
    total,
    vector,
    veq,
    vtotal,
)

REFERENCE = "our Theorem B without full support"
F = vector("F")


def rest(i: Index) -> Domain:
    """The tokens of sequence i whose constraints do not support the max-margin solution."""
    return finite("K", i)


def each_of_rest(body: Formula) -> Formula:
    """``body`` for every constraint off the support."""
    return forall(i, nt.SEQUENCES, forall(tau, rest(i), body))


def over_rest(body: Term) -> Term:
    """The sum of ``body`` over the constraints off the support."""
    return total(i, nt.SEQUENCES, total(tau, rest(i), body))


in_rest = assume(member(tau, rest(i)))


def at_rest(formula: Formula) -> Proved:
    """A hypothesis about every constraint off the support, at the generic one."""
    return everywhere(assume(formula), (i, in_i), (tau, in_rest))


def sum_rest(claim: Proved) -> Proved:
    """A claim about the generic constraint off the support, summed over all of them."""
    return sum_order(sum_order(claim, tau, rest(i)), i, nt.SEQUENCES)


def stray(now: nt.Layer) -> Term:
    """The sum of the coefficients off the support."""
    return over_rest(now.c(i, tau))


def whole_pull_is(now: nt.Layer, whole: Vector) -> Formula:
    """The negative gradient: the support's pull and that of the rest."""
    body = vtotal(i, nt.SEQUENCES, vtotal(tau, rest(i), now.c(i, tau) * A(i, tau)))
    return veq(whole, now.descent + body)


def rest_nonnegative(now: nt.Layer) -> Formula:
    """c_k >= 0 off the support."""
    return each_of_rest(0 <= now.c(i, tau))


REST_AHEAD = each_of_rest(0 <= inner(A(i, tau), M))
REST_BOUND = each_of_rest(norm(A(i, tau)) <= R)
HYPOTHESES: dict[str, Formula] = {
    **{
        name: rs.HYPOTHESES[name]
        for name in ("(F)", "c > 0", "gradient", "C", "there is a sequence", "with a constraint")
    },
    "M satisfies the rest": REST_AHEAD,
    "the rest pulls": rest_nonnegative(L),
    "negative gradient": whole_pull_is(L, F),
    "R bounds the rest": REST_BOUND,
}
c_k = L.c(i, tau)


def whole_along(v: Vector) -> Proved:
    """<F, v> = <D, v> + sum_K c_k <A_k, v>."""
    hole = vector("x")
    return congruence(assume(HYPOTHESES["negative gradient"]), inner(hole, v), hole)


def stray_nonnegative() -> Proved:
    """0 <= sum_K c_k."""
    return follows(0 <= stray(L), sum_rest(at_rest(rest_nonnegative(L))))


def correlation() -> Proved:
    """C <= <F, M>: the support pulls C along M, the rest does not pull back."""
    each = follows(0 <= c_k * inner(A(i, tau), M), (at_rest(rest_nonnegative(L)), at_rest(REST_AHEAD)))
    return follows(L.C <= inner(F, M), whole_along(M), rs.correlation(), sum_rest(each))


def prove_lower() -> Proved:
    """g* C <= ||F||, by Cauchy-Schwarz against M."""
    positive = rs.solution_nonzero()
    upper = follows(L.C <= norm(F) * norm(M), correlation(), kernel.cauchy_schwarz(F, M))
    return follows(LOWER_CLAIM, (kernel.inverse_positive(positive), upper), nonzero=[positive])


def prove_stray() -> Proved:
    """||F - D||^2 = sum_K c_k <A_k, F - D> <= R stray ||F - D||."""
    N = F - L.descent
    length = norm_nonnegative(N)
    reach = follows(
        inner(A(i, tau), N) <= R * norm(N),
        kernel.cauchy_schwarz(A(i, tau), N), (length, at_rest(REST_BOUND)),
    )  # fmt: skip
    each = follows(c_k * inner(A(i, tau), N) <= R * norm(N) * c_k, (at_rest(rest_nonnegative(L)), reach))
    squared = follows(norm(N) ** 2 <= R * norm(N) * stray(L), sum_rest(each), whole_along(N), norm_squared(N))
    size = assume(zero() < norm(N))
    long = follows(STRAY_CLAIM, (kernel.inverse_positive(size), squared), nonzero=[size])
    longest = follows(0 <= R, norm_nonnegative(A(i, tau)), at_rest(REST_BOUND))
    mass = sum_rest(follows(0 <= R * c_k, (longest, at_rest(rest_nonnegative(L)))))
    short = follows(STRAY_CLAIM, assume(norm(N) <= 0), mass)
    return kernel.cases(short, long, norm(N), zero())


def prove_upper() -> Proved:
    """||F||^2 = sum c_k <A_k, F> <= R ||F|| sum c_k over all constraints, and <F, M> >= that sum."""
    length = norm_nonnegative(F)
    reach = [
        follows(inner(A(i, tau), F) <= R * norm(F), kernel.cauchy_schwarz(A(i, tau), F), (length, bound))
        for bound in (at_constraint(nt.NORM_BOUND), at_rest(REST_BOUND))
    ]
    pulls = weak(at_constraint(rs.COEFFICIENTS_POSITIVE)), at_rest(rest_nonnegative(L))
    each = [
        follows(c_k * inner(A(i, tau), F) <= R * norm(F) * c_k, (pull, bound))
        for pull, bound in zip(pulls, reach, strict=True)
    ]
    margins = follows(c_k <= c_k * inner(A(i, tau), M), (pulls[1], at_rest(REST_SEPARABLE)))
    longest = follows(0 <= R, norm_nonnegative(A(i, tau)), at_constraint(nt.NORM_BOUND))
    longest = rs.co.moved(kernel.instantiate(longest, indices={"tau": nt.tau1}), rs.co.some_i)
    longest = kernel.discharge(longest, rs.co.some_tau)
    mass = follows(L.C + stray(L) <= inner(F, M), whole_along(M), rs.correlation(), sum_rest(margins))
    squared = follows(
        norm(F) ** 2 <= R * norm(F) * (L.C + stray(L)),
        sum_constraints(each[0]), sum_rest(each[1]), whole_along(F), along(F), norm_squared(F),
        (R * norm(F), assume(L.mass_is())),
    )  # fmt: skip
    size = assume(zero() < norm(F))
    by_size = follows(
        norm(F) <= R * (L.C + stray(L)), (kernel.inverse_positive(size), squared), nonzero=[size]
    )
    long = follows(UPPER_CLAIM, by_size, (longest, mass))
    total_ = follows(0 <= R * (L.C + stray(L)), (longest, rs.mass_positive()), (longest, stray_nonnegative()))
    short = follows(UPPER_CLAIM, assume(norm(F) <= 0), total_, (longest, mass))
    return kernel.cases(short, long, norm(F), zero())


REST_SEPARABLE = each_of_rest(1 <= inner(A(i, tau), M))
UPPER_CLAIM = norm(F) <= R * inner(F, M)
LOWER_CLAIM = margin * L.C <= norm(F)
STRAY_CLAIM = norm(F - L.descent) <= R * stray(L)
CORRELATION = Theorem(
    key="support-correlation",
    title="The negative gradient sees the max-margin solution at least as the support does",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={
        name: f
        for name, f in HYPOTHESES.items()
        if name not in ("c > 0", "there is a sequence", "with a constraint", "R bounds the rest")
    },
    claim=L.C <= inner(F, M),
    prove=correlation,
)
LOWER = Theorem(
    key="support-gradient-lower",
    title="The gradient's norm is at least the margin times the support's mass",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={name: f for name, f in HYPOTHESES.items() if name not in ("c > 0", "R bounds the rest")},
    claim=LOWER_CLAIM,
    prove=prove_lower,
)
STRAY = Theorem(
    key="support-stray",
    title="The pull of the constraints off the support is at most their mass times their length",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={
        name: HYPOTHESES[name] for name in ("the rest pulls", "negative gradient", "R bounds the rest")
    },
    claim=STRAY_CLAIM,
    prove=prove_stray,
)
UPPER = Theorem(
    key="support-gradient-upper",
    title="The gradient's norm is at most the largest constraint times its pull along M",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={
        **{name: f for name, f in HYPOTHESES.items() if name != "M satisfies the rest"},
        "(S) on the rest": REST_SEPARABLE,
        "R bounds the constraints": nt.NORM_BOUND,
    },
    claim=UPPER_CLAIM,
    prove=prove_upper,
)
PAGES = (CORRELATION, LOWER, STRAY, UPPER)
