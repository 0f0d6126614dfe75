"""The path runs along the max-margin direction but for a finite length: 0 <= E_t - v_t <= const.

With v_t = <W_t, M^> and the settled residual of Theorem B, for every t

    0 <= (E_(t0+t) - E_t0) - (v_(t0+t) - v_t0) <= L_b/(kap g*) (||r_t0 - r*||^2 + 2 Gam exp(-2 g* v_t0)).

A step of length e moves v by e g*/Q with Q = ||D||/C = sqrt(g*^2 + ||b||^2), so it loses at most
h ||b||^2/(2 g*) <= h L_b J/(2 g*), and the descent of ||r - r*||^2 pays for the sum of the h J.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas.residual_step import L_b, disorder, height
from theory.notation import M, e, layer, margin, path_length, s, t
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import (
    follows,
    norm_nonnegative,
    product_nonnegative,
    telescoped,
    weak,
)
from theory.proof.terms import Fraction, Index, Term, below, exp, inner, norm
from theory.theorems import residual as base
from theory.theorems import sharp_residual as sharp
from theory.theorems.residual import distance, pace, t0
from theory.theorems.sharp_residual import Gam, kap, spread

REFERENCE = "our Theorem C, the component along the max-margin solution"
half = Fraction(1, 2)


def component(t: Index) -> Term:
    """v_t = <W_t, M^>."""
    return margin * inner(layer(t).W, M)


def behind(t: Index) -> Term:
    """How far the component along M is behind the path length: E_t - v_t."""
    return path_length(t) - component(t)


def tail_after(t: Index) -> Term:
    """d_t^2 + 2 Gam exp(-2 g* v_t)."""
    return distance(t) + 2 * Gam * exp(-2 * height(layer(t).W))


def store(t: Index) -> Term:
    """What the steps from t on may still lose."""
    return L_b / kap * norm(M) * tail_after(t)


def loss() -> Proved:
    """e_t - g* h_t <= h_t ||b_t||^2/(2 g*): Q - g* <= (Q^2 - g*^2)/(2 g*)."""
    now, solution = layer(t), rs.solution_nonzero()
    D, b = now.descent, rs.tilt(now)
    mass, gradient = base.mass_positive(), base.gradient_positive()
    Q = norm(D) / now.C
    square = base.at_step(rs.SQUARE.proved())
    weight = product_nonnegative(base.pace_nonnegative(), weak(solution))
    return follows(
        e(t) - margin * pace(t) <= half * norm(M) * pace(t) * inner(b, b),
        (weight, kernel.square(Q - margin)), (norm(M) * pace(t), square),
        nonzero=[mass, gradient, solution],
    )  # fmt: skip


def falls_by_disorder() -> Proved:
    """(kap/2) h_t J_t <= (d_t^2 + 2 Gam exp(-2 g* v_t)) - the same at t + 1, if ||r_t|| <= r_max."""
    descent = kernel.instantiate(base.descent(), reals={"o": (("t",), spread(t))})
    short = assume(base.SHORT)
    pays = product_nonnegative(weak(kernel.inverse_positive(short)), base.pace_nonnegative())
    return follows(
        half * kap * pace(t) * disorder(layer(t)) <= tail_after(t) - tail_after(t + 1),
        descent, (pays, sharp.disturbance_bounded()), (sharp.factor_nonnegative(), sharp.decay_pays()),
        nonzero=[short],
    )  # fmt: skip


def scale_nonnegative() -> Proved:
    """0 <= L_b/(kap g*)."""
    inverse = weak(kernel.inverse_positive(assume(base.SHORT)))
    return product_nonnegative(
        product_nonnegative(assume(base.SMOOTHNESS_NONNEGATIVE), inverse), norm_nonnegative(M)
    )


def step_behind() -> Proved:
    """(E - v) + store never grows."""
    solution, short = rs.solution_nonzero(), assume(base.SHORT)
    weight = product_nonnegative(base.pace_nonnegative(), weak(solution))
    tilt = assume(base.smooth(t))
    return follows(
        behind(t + 1) - behind(t) <= store(t) - store(t + 1),
        loss(), (margin, base.component_grows()), (weight, tilt), (scale_nonnegative(), falls_by_disorder()),
        nonzero=[short],
    )  # fmt: skip


# --- all steps ---------------------------------------------------------------------------------------------


def fallen_behind(t: Index) -> Term:
    """How much the component along M has fallen behind the path length since t0, in t steps."""
    return path_length(t0 + t) - path_length(t0) - (component(t0 + t) - component(t0))


def summed(claim: Proved) -> Proved:
    """A claim about the step from W_t, summed over the steps since t0."""
    return kernel.sum_order(kernel.instantiate(base.drawn(claim), indices={"t": t0 + s}), s, below(t))


def prove_ahead() -> Proved:
    """v grows by at most the step's length: g* h <= e."""
    solution = rs.solution_nonzero()
    inverse = weak(kernel.inverse_positive(solution))
    each = follows(
        0 <= behind(t + 1) - behind(t),
        (margin, base.component_grows()), (inverse, base.pace_upper()), nonzero=[solution],
    )  # fmt: skip
    ends = telescoped(lambda k: behind(t0 + k), t)
    return generalize(follows(0 <= fallen_behind(t), summed(each), ends), t, nt.NATURALS)


def store_nonnegative() -> Proved:
    """0 <= store."""
    near = kernel.inner_nonnegative(rs.apart(layer(t).W))
    tail = follows(0 <= tail_after(t), near, sharp.tail_nonnegative())
    return follows(0 <= store(t), (scale_nonnegative(), tail))


def prove_behind() -> Proved:
    """The store at t0 pays for all that is lost."""
    settled = sharp.BOUNDED.proved()
    last = kernel.instantiate(store_nonnegative(), indices={"t": t0 + t})
    each = sharp.with_shifts(step_behind())
    each = discharge(sharp.from_start(each, s), specialize(settled, s))
    lost = telescoped(lambda k: behind(t0 + k), t), telescoped(lambda k: store(t0 + k), t)
    claim = fallen_behind(t) <= store(t0)
    return generalize(follows(claim, kernel.sum_order(each, s, below(t)), *lost, last), t, nt.NATURALS)


AHEAD = Theorem(
    key="separator-ahead",
    title="The component along the max-margin direction grows no faster than the path",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={
        name: base.HYPOTHESES[name]
        for name in (
            "(F)", "there is a sequence", "with a constraint", "c > 0", "gradient", "C", "update",
            "steps are nonnegative",
        )
    },
    claim=nt.always(0 <= fallen_behind(t)),
    prove=prove_ahead,
)  # fmt: skip
BEHIND = Theorem(
    key="separator-behind",
    title="The component along the max-margin direction falls behind the path by a finite length only",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=sharp.HYPOTHESES,
    claim=nt.always(fallen_behind(t) <= store(t0)),
    prove=prove_behind,
)

# --- explicit, equal scores --------------------------------------------------------------------------------

LOST = L_b / kap * norm(M) * (sharp.far**2 + 2 * (exp(sharp.one) * sharp.drift) ** 2)


def prove_explicit() -> Proved:
    """The settled residual's explicit bound, and 2 Gam exp(-2 g* v) <= 2 (e drift)^2."""
    scale = scale_nonnegative()
    behind_ = sharp.with_explicit_bound(BEHIND.proved())
    each = follows(
        fallen_behind(t) <= LOST,
        specialize(behind_, t), (scale, sharp.start_bounded()), (scale, sharp.tail_bounded()),
    )  # fmt: skip
    return generalize(each, t, nt.NATURALS)


def prove_equal() -> Proved:
    """With the shifts of equal scores."""
    return discharge(sharp.with_equal_scores(EXPLICIT.proved()), sharp.constant_nonnegative())


EXPLICIT = Theorem(
    key="separator-behind-explicit",
    title="Once the drift is small the component along the max-margin direction keeps up with the path",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=sharp.EXPLICIT_HYPOTHESES,
    claim=nt.always(fallen_behind(t) <= LOST),
    prove=prove_explicit,
)
EQUAL = Theorem(
    key="separator-keeps-up",
    title="Under equal scores the component along the max-margin direction keeps up with the path",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=sharp.EQUAL_HYPOTHESES,
    claim=nt.always(fallen_behind(t) <= sharp.for_equal_scores(LOST)),
    prove=prove_equal,
    rate=Rate(observed=fallen_behind(t), bound=sharp.for_equal_scores(LOST), sense="upper"),
)
PAGES = (AHEAD, BEHIND, EXPLICIT, EQUAL)
