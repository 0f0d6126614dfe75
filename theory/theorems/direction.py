"""Theorem A(iii) (global direction): under any step-size rule the iterates turn to the max-margin solution.

With u_t = ||W_t||, Lam of the alignment lemma, and any start t0 from which that lemma applies:

    1 - cos(W_(t0+t), M) <= [ u_t0 (1 - cos(W_t0, M)) + Lam/g* log((g* u_(t0+t) + Lam)/(g* u_t0 + Lam))
                              + 1/2 sum_(s<t) e_(t0+s)^2/(u_(t0+s) + Lam/g*) ] / u_(t0+t).

Proof. One step gains e <D, M^>/||D|| along the separator, by the alignment lemma at least
g*/(g* u + Lam) e <D, W>/||D||, which is g*/(g* u + Lam) (u_+^2 - u^2 - e^2)/2. The potential
psi(u) = u - Lam/g* log(g* u + Lam) is concave in u^2 with slope g*/(2 (g* u + Lam)), so that is at least
psi(u_+) - psi(u) - e^2/(2 (u + Lam/g*)). Sum over the steps.

Two pages: from the logit gaps of the steps themselves (what a run shows), and from near-acute data. The
second drops Lam/g* from the last sum, so that a run need record no more than the sum of e_s^2/u_s.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import alignment, potential
from theory.lemmas.definitions import NAMES, from_definitions
from theory.lemmas.potential import psi
from theory.notation import Lam, M, e, layer, margin, s, t
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    follows,
    inverse_order,
    log_quotient,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    telescoped,
    weak,
    zero,
)
from theory.proof.terms import (
    Fraction,
    Index,
    Term,
    below,
    eq,
    forall,
    inner,
    log,
    member,
    norm,
    total,
    vector,
)
from theory.theorems import alignment_time
from theory.theorems.alignment_time import margin_positive, pace, t0

REFERENCE = "our Theorem A(iii); the paper's directional convergence, for every step-size rule at once"
half = Fraction(1, 2)
START, END, NOW = t0, t0 + t, t0 + s

GAPS_SO_FAR = forall(s, below(t), nt.gaps_bounded(layer(NOW)))
NONZERO_SO_FAR = forall(s, below(t), 0 < norm(layer(NOW).W))
END_NONZERO = 0 < norm(layer(END).W)
on_the_way = assume(member(s, below(t)))


def size(at: Index) -> Term:
    """u_t = ||W_t||."""
    return norm(layer(at).W)


def component(at: Index) -> Term:
    """v_t = <W_t, M^>."""
    return inner(layer(at).W, M) * margin


def gap_to(at: Index) -> Term:
    """1 - cos(W_t, M)."""
    W = layer(at).W
    return 1 - inner(W, M) / (norm(W) * norm(M))


def bound(curvature: Term) -> Term:
    """The right side of the theorem, for a bound on what the steps' lengths cost."""
    turned = Lam / margin * log((margin * size(END) + Lam) / (margin * size(START) + Lam))
    return (size(START) - component(START) + turned + curvature) / size(END)


def curved(weight: Term) -> Term:
    """1/2 sum e_s^2/weight_s over the steps s on the way."""
    return half * total(s, below(t), e(NOW) ** 2 / weight)


# --- one step ----------------------------------------------------------------------------------------------


def at_step(claim: Proved, at: Index, *proofs: Proved) -> Proved:
    """A claim about any W, at W_t; hypotheses about W are those proved, or drawn from the ones for all t."""
    now = discharge(nt.at_time(claim, at), *proofs)
    drawn = (specialize(assume(nt.at_all_times(f)), at) for f in claim.hypotheses)
    return discharge(now, *(d for d in drawn if d.conclusion in now.hypotheses - claim.hypotheses))


def constant_nonnegative() -> Proved:
    """0 <= Lam."""
    return nt.from_all_times(alignment.constant_is()[0], START)


def denominator_positive(at: Index, nonzero: Proved) -> Proved:
    """0 < g* u + Lam."""
    return follows(0 < margin * size(at) + Lam, (margin_positive(), nonzero), constant_nonnegative())


def nonzero_now() -> Proved:
    """0 < u_s at the step s on the way."""
    return specialize(assume(NONZERO_SO_FAR), s, on_the_way)


def turn() -> Proved:
    """e <D, W>/||D|| = (u_+^2 - u^2 - e^2)/2: the square of the update."""
    now, then, hole = layer(NOW), layer(NOW + 1), vector("x")
    update = specialize(assume(nt.update_is()), NOW)
    length = specialize(assume(nt.DESCENT_NONZERO), NOW)
    pull = e(NOW) / norm(now.descent)
    return follows(
        eq(pull * inner(now.descent, now.W), half * (size(NOW + 1) ** 2 - size(NOW) ** 2 - e(NOW) ** 2)),
        congruence(update, inner(hole, hole), hole),
        norm_squared(then.W), norm_squared(now.W), (pull**2, norm_squared(now.descent)),
        nonzero=[length],
    )  # fmt: skip


def gain(aligned: Proved) -> Proved:
    """g*/(g* u + Lam) (u_+^2 - u^2 - e^2)/2 <= <W_+ - W, M^>: the alignment lemma along the step."""
    hole = vector("x")
    update = congruence(specialize(assume(nt.update_is()), NOW), inner(hole, M), hole)
    nonzero = nonzero_now()
    positive = denominator_positive(NOW, nonzero)
    rate = margin / (margin * size(NOW) + Lam)
    turned = half * (size(NOW + 1) ** 2 - size(NOW) ** 2 - e(NOW) ** 2)
    return follows(
        rate * turned <= component(NOW + 1) - component(NOW),
        (pace(NOW), aligned), (rate, turn()), (margin, update),
        nonzero=[nonzero, positive],
    )  # fmt: skip


def progress(at: Index) -> Term:
    """psi(u_t) - v_t."""
    return psi(size(at), margin, Lam) - component(at)


def one_step() -> Proved:
    """psi(u_+) - v_+ <= psi(u) - v + e^2/(2 (u + Lam/g*)), from the logit gaps of the step."""
    nonzero = nonzero_now()
    aligned = at_step(
        alignment.ALIGNMENT.proved(), NOW, nonzero, specialize(assume(GAPS_SO_FAR), s, on_the_way)
    )
    positive = denominator_positive(NOW, nonzero)
    concave = kernel.instantiate(
        potential.CONCAVE.proved(),
        reals={"u": size(NOW), "v": size(NOW + 1), "m": margin, "l": Lam},
    )
    sizes = (norm_nonnegative(layer(at).W) for at in (NOW, NOW + 1))
    concave = discharge(concave, margin_positive(), constant_nonnegative(), *sizes, positive)
    solution = assume(nt.SOLUTION_NONZERO)
    scaled = follows(0 < size(NOW) + Lam / margin, (solution, positive), nonzero=[solution])
    return follows(
        progress(NOW + 1) - progress(NOW) <= half * (e(NOW) ** 2 / (size(NOW) + Lam / margin)),
        concave, gain(aligned),
        nonzero=[positive, scaled, solution],
    )  # fmt: skip


# --- all steps ---------------------------------------------------------------------------------------------


def logs_differ() -> Proved:
    """Lam log(b/a) = Lam (log b - log a) for a, b = g* u + Lam at both ends: positive unless Lam = 0."""
    a, b = (margin * size(at) + Lam for at in (START, END))
    claim = eq(Lam * log(b / a), Lam * (log(b) - log(a)))
    some = assume(0 < Lam)
    ends = [
        follows(0 < margin * size(at) + Lam, some, (weak(margin_positive()), norm_nonnegative(layer(at).W)))
        for at in (START, END)
    ]
    split = follows(claim, (Lam, log_quotient(ends[1], ends[0])))
    none = kernel.antisymmetry(assume(Lam <= zero()), constant_nonnegative())
    return kernel.cases(follows(claim, (log(b / a) - log(b) + log(a), none)), split, Lam, zero())


def prove_from_gaps() -> Proved:
    """The steps add up to psi(u_t0+t) - v_t0+t <= psi(u_t0) - v_t0 + the curvature; divide by u_(t0+t)."""
    summed = kernel.sum_order(one_step(), s, below(t))
    ends = telescoped(lambda k: progress(t0 + k), t)
    last, solution = assume(END_NONZERO), assume(nt.SOLUTION_NONZERO)
    far = follows(
        size(END) - component(END) <= size(END) * bound(SHARP),
        summed, ends, (1 / margin, logs_differ()),
        nonzero=[last],
    )  # fmt: skip
    claim = gap_to(END) <= bound(SHARP)
    return from_definitions(follows(claim, (kernel.inverse_positive(last), far), nonzero=[last, solution]))


def prove_global() -> Proved:
    """Near-acute data keep the gaps at every step since t0, and the iterates away from zero."""
    gaps = generalize(specialize(alignment_time.ALIGNMENT_TIME.proved(), s), s, below(t))
    nonzero = specialize(alignment_time.NONZERO.proved(), s)
    last = specialize(alignment_time.NONZERO.proved(), t)
    sharp = discharge(FROM_GAPS.proved(), gaps, generalize(nonzero, s, below(t)), last)
    solution = assume(nt.SOLUTION_NONZERO)
    extra = product_nonnegative(constant_nonnegative(), solution)
    order = inverse_order(follows(size(NOW) <= size(NOW) + Lam / margin, extra), nonzero)
    each = follows(
        e(NOW) ** 2 / (size(NOW) + Lam / margin) <= e(NOW) ** 2 / size(NOW), (kernel.square(e(NOW)), order)
    )
    looser = kernel.sum_order(each, s, below(t))
    claim = gap_to(END) <= bound(RECORDED)
    looser = follows(claim, sharp, (kernel.inverse_positive(last), looser))
    return from_definitions(generalize(looser, t, nt.NATURALS))


SHARP = curved(size(NOW) + Lam / margin)
RECORDED = curved(size(NOW))

HYPOTHESES = {
    **{name: NAMES[name] for name in NAMES},
    **{
        name: alignment.HYPOTHESES[name]
        for name in (
            "alpha >= 0",
            "M is a combination of the constraints",
            "complementary slackness",
            "a_min > 0",
            "N",
            "T",
        )
    },
    "update": nt.update_is(),
    "steps are nonnegative": nt.STEPS_NONNEGATIVE,
}

FROM_GAPS = Theorem(
    key="direction-from-gaps",
    title="The iterates turn towards the max-margin solution while no logit gap is too negative",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If from $t_0$ on the logit gaps are at least $-\gamma_\ast\|W\|$ before the step "
    r"$t_0 + t$: {claim}.",
    hypotheses={
        **HYPOTHESES,
        "logit gaps are at least -lam on the way": GAPS_SO_FAR,
        "W is not 0 on the way": NONZERO_SO_FAR,
        "W is not 0 at the end": END_NONZERO,
    },
    claim=gap_to(END) <= bound(SHARP),
    prove=prove_from_gaps,
)
GLOBAL = Theorem(
    key="global-direction",
    title="On near-acute data the iterates turn towards the max-margin solution from any start",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If $S_{t_0} \ge (R + \gamma_\ast)\|W_0\|/(\gamma_\ast^2 - \epsilon_0)$ and "
    r"$S_{t_0} > \|W_0\|/\gamma_\ast$: "
    r"for every $t$, {claim}.",
    hypotheses={
        **HYPOTHESES,
        **{
            name: alignment_time.HYPOTHESES[name]
            for name in (
                "C",
                "R bounds the constraints",
                "(N)",
                "e0 < g*^2",
                "the path has covered the start's gaps",
                "the path has left the start",
            )
        },
    },
    claim=nt.always(gap_to(END) <= bound(RECORDED)),
    prove=prove_global,
    rate=Rate(observed=gap_to(END), bound=bound(RECORDED), sense="upper"),
)
