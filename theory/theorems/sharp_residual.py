"""Theorem B, settled form: once the attention has settled, the residual is bounded for good.

As in Theorem B, with shifts in intervals of length c0 exp(R_B ||r_t|| - g* v_t): every logit gap is at least
g* v_t - R_B ||r_t|| and the shifts are exponentially small in the gaps. If at t0, for some r_max >= ||r*||,

    ||r_t0 - r*||^2 + Gam exp(-2 g* v_t0) <= (r_max - ||r*||)^2,
    Gam = c0^2 exp(2 R_B r_max) (||M||^2/2 + e_max ||M||)/(4 kap),

then ||r_(t0+t)|| <= r_max for every t; the left side never grows. All of it is decided at the one step t0.
The second term falls exponentially with g* v_t0. Explicitly: let rho = 2 ||r*|| + ||r_t0|| and

    drift = c0 sqrt((||M||^2/2 + e_max ||M||)/(4 kap)) exp(R_B rho - g* v_t0).

If e R_B drift <= 1 then ||r_(t0+t)|| <= rho + e drift for every t.
Under equal non-optimal scores c0 = (G_max + 2)(T - 1).
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import residual_step as rs
from theory.lemmas import shifts
from theory.lemmas.residual_step import L_b, apart, height, r_star, residual, shift
from theory.lemmas.separator_correlation import in_i, in_tau
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import STATIC, A, M, T, i, layer, margin, t, tau
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    everywhere,
    exp_monotone,
    exp_tangent,
    follows,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    restate,
    square_root_order,
    weak,
)
from theory.proof.terms import Formula, Index, Term, eq, exp, inner, norm, real, sqrt, substitute, symbol
from theory.theorems import residual as base
from theory.theorems.residual import distance, e_max, lo, pace, t0

REFERENCE = "our Theorem B; beyond the paper's finite-time rate"
r_max, c0 = symbol("r_max"), symbol("c0")
kap = base.slack(L_b)


def size(t: Index) -> Term:
    """||r_t||."""
    return norm(residual(layer(t).W))


def least_gap(now: nt.Layer) -> Term:
    """g* v - R_B ||r||, which no logit gap falls below."""
    return height(now.W) - R_B * norm(residual(now.W))


def spread(t: Index) -> Term:
    """Length of the interval of the shifts at step t."""
    return c0 * exp(-least_gap(layer(t)))


reach = norm(M) ** 2 / 2 + e_max * norm(M)
Gam = c0**2 * exp(2 * R_B * r_max) * reach / (4 * kap)


def potential(t: Index) -> Term:
    """d_t^2 + Gam exp(-2 g* v_t)."""
    return distance(t) + Gam * exp(-2 * height(layer(t).W))


SHIFT_LOWER = nt.always(nt.each(lo(t) <= shift(layer(t))))
SHIFT_UPPER = nt.always(nt.each(shift(layer(t)) <= lo(t) + spread(t)))
ROOM = norm(r_star) <= r_max
SETTLED = potential(t0) <= (r_max - norm(r_star)) ** 2
SMOOTH = nt.always(base.smooth(t0 + t))
HYPOTHESES = {
    **without(base.HYPOTHESES, *base.SHIFTS, "steps are short"),
    "steps are short": base.SHORT,
    "L_b >= 0": base.SMOOTHNESS_NONNEGATIVE,
    "L_b bounds the tilt": SMOOTH,
    "the shifts are at least lo": SHIFT_LOWER,
    "the shifts are exponentially small in the gaps": SHIFT_UPPER,
    "r_max is at least ||r*||": ROOM,
    "the residual has settled": SETTLED,
}


def radius_nonnegative() -> Proved:
    """0 <= R_B."""
    longest = follows(0 <= R_B, norm_nonnegative(A(i, tau) - margin**2 * M), rs.at_constraint(rs.RADIUS))
    some = kernel.instantiate(longest, indices={"tau": nt.tau1})
    return discharge(co.moved(some, co.some_i), co.some_tau)


def residual_bounded(close: Proved) -> Proved:
    """From d_t^2 + ... <= (r_max - ||r*||)^2, ||r_t|| <= r_max."""
    at = apart(layer(t).W)
    room = follows(0 <= r_max - norm(r_star), assume(ROOM))
    squares = follows(
        norm(at) ** 2 <= (r_max - norm(r_star)) ** 2, close, tail_nonnegative(), norm_squared(at)
    )
    return follows(
        size(t) <= r_max, base.triangle(residual(layer(t).W), r_star), square_root_order(squares, room)
    )


def scale_positive() -> Proved:
    """0 <= ||M||^2/2 + e_max ||M||."""
    steps = specialize(assume(base.STEPS_NONNEGATIVE), t), specialize(assume(base.STEPS_BOUNDED), t)
    largest = follows(0 <= e_max, *steps)
    length = norm_nonnegative(M)
    return follows(0 <= reach, product_nonnegative(length, length), product_nonnegative(largest, length))


def factor_nonnegative() -> Proved:
    """0 <= c0^2 exp(2 R_B r_max)/(4 kap)."""
    inverse = weak(kernel.inverse_positive(assume(base.SHORT)))
    square = product_nonnegative(kernel.square(c0), weak(kernel.exp_positive(2 * R_B * r_max)))
    return follows(0 <= c0**2 * exp(2 * R_B * r_max) / (4 * kap), (inverse, square))


def tail_nonnegative() -> Proved:
    """0 <= Gam exp(-2 g* v_t)."""
    decay = weak(kernel.exp_positive(-2 * height(layer(t).W)))
    product = product_nonnegative(product_nonnegative(factor_nonnegative(), scale_positive()), decay)
    return follows(0 <= Gam * exp(-2 * height(layer(t).W)), product)


def decay_pays() -> Proved:
    """h_t exp(-2 g* v_t) <= (||M||^2/2 + e_max ||M||)(exp(-2 g* v_t) - exp(-2 g* v_(t+1))): with x the growth
    of 2 g* v in the step, x <= (1 + x)(1 - exp(-x))."""
    solution, h = rs.solution_nonzero(), pace(t)
    x = 2 * margin**2 * h
    before, after = exp(-2 * height(layer(t).W)), exp(-2 * height(layer(t + 1).W))
    hole = symbol("x")
    moved = congruence(base.component_grows(), exp(-2 * margin**2 * hole), hole)
    tangent = follows((1 + x) * exp(-x) <= 1, (weak(kernel.exp_positive(-x)), exp_tangent(x)))
    grows = follows(0 <= x, (kernel.square(margin), base.pace_nonnegative()))
    fall = follows(0 <= 1 - exp(-x), exp_monotone(follows(-x <= 0, grows)))
    length = product_nonnegative(norm_nonnegative(M), norm_nonnegative(M))
    paid = follows(
        h <= reach * (1 - exp(-x)), (length, tangent), (fall, base.pace_bounded()), nonzero=[solution]
    )
    decay = weak(kernel.exp_positive(-2 * height(layer(t).W)))
    return follows(h * before <= reach * (before - after), (decay, paid), (reach, moved))


def disturbance_bounded() -> Proved:
    """o_t^2 <= c0^2 exp(2 R_B r_max) exp(-2 g* v_t), if ||r_t|| <= r_max."""
    W = layer(t).W
    bounded = assume(size(t) <= r_max)
    gap = follows(
        -2 * least_gap(layer(t)) <= 2 * R_B * r_max - 2 * height(W), (radius_nonnegative(), bounded)
    )
    return follows(
        spread(t) ** 2 <= c0**2 * exp(2 * R_B * r_max) * exp(-2 * height(W)),
        (kernel.square(c0), exp_monotone(gap)),
    )


def potential_falls() -> Proved:
    """If ||r_t|| <= r_max the step's disturbance is no more than the tail it leaves behind."""
    step = kernel.instantiate(base.one_step(), reals={"o": (("t",), spread(t))})
    positive = assume(base.SHORT)
    weight = product_nonnegative(weak(kernel.inverse_positive(positive)), base.pace_nonnegative())
    return follows(
        potential(t + 1) <= potential(t),
        step, (weight, disturbance_bounded()), (factor_nonnegative(), decay_pays()),
        nonzero=[positive],
    )  # fmt: skip


def with_shifts(claim: Proved) -> Proved:
    """c > 0 and the shifts at W_t are those assumed for every t."""
    return discharge(base.drawn(claim), *(specialize(assume(f), t) for f in (SHIFT_LOWER, SHIFT_UPPER)))


def from_start(claim: Proved, step: Index = t) -> Proved:
    """A claim about the step t, for t0 + ``step``, where the tilt is bounded."""
    return discharge(kernel.instantiate(claim, indices={"t": t0 + step}), specialize(assume(SMOOTH), step))


def prove_potential() -> Proved:
    """By induction: as long as the potential is at most (r_max - ||r*||)^2 the residual is at most r_max."""
    room = (r_max - norm(r_star)) ** 2
    fallen = with_shifts(discharge(potential_falls(), residual_bounded(assume(potential(t) <= room))))
    grown = follows(potential(t + 1) <= room, fallen, assume(potential(t) <= room))
    return induction(assume(SETTLED), from_start(grown), t)


def prove_settled() -> Proved:
    """The residual at a bounded potential."""
    close = specialize(POTENTIAL.proved(), t)
    bounded = kernel.instantiate(
        residual_bounded(assume(potential(t) <= (r_max - norm(r_star)) ** 2)), indices={"t": t0 + t}
    )
    return generalize(discharge(bounded, close), t, nt.NATURALS)


POTENTIAL = Theorem(
    key="settled-distance",
    title="A settled residual keeps its distance from the balanced one",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(potential(t0 + t) <= (r_max - norm(r_star)) ** 2),
    prove=prove_potential,
)
BOUNDED = Theorem(
    key="settled-residual",
    title="A settled residual is bounded for good",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(size(t0 + t) <= r_max),
    prove=prove_settled,
)


# --- an explicit bound -------------------------------------------------------------------------------------

# What the settled attention may still move the residual, were it bounded by 2 ||r*|| + ||r_t0||.
far = norm(r_star) + size(t0)  # at least ||r_t0 - r*||
START = norm(r_star) + far
drift = c0 * sqrt(reach / (4 * kap)) * exp(R_B * START - height(layer(t0).W))
one = real(1)
BOUND = START + exp(one) * drift
SMALL_DRIFT = R_B * exp(one) * drift <= 1
C0_NONNEGATIVE = 0 <= c0


def with_bound(formula: Formula) -> Formula:
    """A formula with the explicit bound for r_max."""
    return substitute(formula, reals={"r_max": ((), BOUND)})


def ratio_nonnegative() -> Proved:
    """0 <= (||M||^2/2 + e_max ||M||)/(4 kap)."""
    inverse = kernel.inverse_positive(assume(base.SHORT))
    return follows(0 <= reach / (4 * kap), (inverse, scale_positive()))


def push_nonnegative() -> Proved:
    """0 <= e drift."""
    decay = weak(kernel.exp_positive(R_B * START - height(layer(t0).W)))
    root = kernel.sqrt_nonnegative(ratio_nonnegative())
    nonnegative = product_nonnegative(product_nonnegative(assume(C0_NONNEGATIVE), root), decay)
    return product_nonnegative(weak(kernel.exp_positive(one)), restate(0 <= drift, nonnegative))


def tail_bounded() -> Proved:
    """Gam exp(-2 g* v_t0) = drift^2 exp(2 R_B e drift) <= (e drift)^2."""
    euler = exp(one)
    grown = exp_monotone(follows(2 * R_B * euler * drift <= 2, assume(SMALL_DRIFT)))
    gam = substitute(Gam, reals={"r_max": ((), BOUND)})
    return follows(
        gam * exp(-2 * height(layer(t0).W)) <= (euler * drift) ** 2,
        (kernel.square(drift), grown), nonnegative=[ratio_nonnegative()],
    )  # fmt: skip


def start_bounded() -> Proved:
    """||r_t0 - r*||^2 <= (||r*|| + ||r_t0||)^2."""
    W = layer(t0).W
    lengths = norm_nonnegative(r_star), norm_nonnegative(residual(W)), norm_nonnegative(apart(W))
    split = base.triangle(apart(W), residual(W))
    both = follows(0 <= far, *lengths[:2])
    return follows(distance(t0) <= far**2, norm_squared(apart(W)), (lengths[2], split), (both, split))


def explicit_entry() -> tuple[Proved, Proved]:
    """r_max = 2 ||r*|| + ||r_t0|| + e drift is at least ||r*||, and the residual has settled within it."""
    star, length = norm_nonnegative(r_star), norm_nonnegative(residual(layer(t0).W))
    push, apart_ = push_nonnegative(), follows(0 <= far, star, length)
    entry = follows(with_bound(SETTLED), start_bounded(), tail_bounded(), (apart_, push))
    return entry, follows(norm(r_star) <= BOUND, apart_, push)


def with_explicit_bound(claim: Proved) -> Proved:
    """A claim about a settled residual, with r_max = 2 ||r*|| + ||r_t0|| + e drift."""
    return discharge(kernel.instantiate(claim, reals={"r_max": BOUND}), *explicit_entry())


def prove_explicit() -> Proved:
    """A settled residual, with the explicit bound."""
    return with_explicit_bound(BOUNDED.proved())


EXPLICIT_HYPOTHESES = {
    **without(HYPOTHESES, "r_max is at least ||r*||", "the residual has settled"),
    "c0 >= 0": C0_NONNEGATIVE,
    "the drift is small": SMALL_DRIFT,
}
EXPLICIT = Theorem(
    key="explicit-residual",
    title="Once the drift is small the residual is bounded for good",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=EXPLICIT_HYPOTHESES,
    claim=nt.always(size(t0 + t) <= BOUND),
    prove=prove_explicit,
)

# --- equal non-optimal scores ------------------------------------------------------------------------------

EQUAL_C0 = (shifts.G_max + 2) * (T - 1)


def for_equal_scores(node: Any) -> Any:
    """A formula or term with the limit weights and the constant c0 of equal scores."""
    return substitute(node, reals={**shifts.LIMIT_SHARE, "c0": ((), EQUAL_C0), "L_b": ((), R_B**2)})


def anywhere(claim: Proved) -> Proved:
    """A claim for any L_b, for L_b = R_B^2, which bounds the tilt everywhere."""
    claim = kernel.instantiate(claim, reals={"L_b": R_B**2})
    tilt = kernel.instantiate(base.drawn(base.at_step(rs.TILT.proved())), indices={"t": t0 + t})
    return discharge(claim, generalize(tilt, t, nt.NATURALS), kernel.square(R_B))


def gap_bounded() -> Proved:
    """g* v - R_B ||r|| <= mu_k: <A_k, W> = g* v + <A_k - g*^2 M, r>, at the generic constraint."""
    across, r = A(i, tau) - margin**2 * M, residual(STATIC.W)
    unit = follows(
        eq(margin**2 * inner(M, M), 1), (margin**2, norm_squared(M)), nonzero=[rs.solution_nonzero()]
    )
    back = follows(-norm(across) * norm(r) <= inner(across, r), kernel.cauchy_schwarz(-1 * across, r))
    return follows(
        least_gap(STATIC) <= STATIC.gap(i, tau),
        back, (norm_nonnegative(r), rs.at_constraint(rs.RADIUS)),
        (height(STATIC.W), rs.at_constraint(rs.FULL_SUPPORT)), (height(STATIC.W), unit),
    )  # fmt: skip


def equal_lo(t: Index) -> Term:
    """Lower end of the shifts of equal scores at step t."""
    return -2 * (T - 1) * exp(-least_gap(layer(t)))


def equal_shift_bounds() -> list[Proved]:
    """The shifts of equal scores at every W_t: the lemma on them, with b = g* v - R_B ||r||."""
    gaps = co.for_each_constraint(gap_bounded())
    bounds = []
    for page, target in (
        (shifts.BELOW, equal_lo(t) <= shifts.shift(layer(t))),
        (shifts.ABOVE, shifts.shift(layer(t)) <= equal_lo(t) + EQUAL_C0 * exp(-least_gap(layer(t)))),
    ):
        static = discharge(kernel.instantiate(page.proved(), reals={"b": least_gap(STATIC)}), gaps)
        now = everywhere(nt.from_all_times(static, t), (i, in_i), (tau, in_tau))
        bounds.append(generalize(co.for_each_constraint(restate(target, now)), t, nt.NATURALS))
    return bounds


def weights_positive() -> Proved:
    """0 < w_i."""
    denominator = kernel.inverse_positive(co.denominator_positive(shifts.g(i) + shifts.G(i)))
    return co.for_each_constraint(follows(0 < shifts.limit_slope(), (co.pull(), denominator)))


def with_equal_scores(claim: Proved) -> Proved:
    """A claim of this page for the layer with equal non-optimal scores, from the layer's definitions."""
    claim = kernel.instantiate(
        anywhere(claim), reals={**shifts.LIMIT_SHARE, "c0": EQUAL_C0, "lo": (("t",), equal_lo(t))}
    )
    positive = generalize(nt.from_all_times(co.COEFFICIENTS_POSITIVE.proved(), t), t, nt.NATURALS)
    return discharge(claim, *equal_shift_bounds(), weights_positive(), positive)


def constant_nonnegative() -> Proved:
    """0 <= (G_max + 2)(T - 1): there is a sequence, with a positive score gap."""
    i1 = nt.i1
    gap, bound = (specialize(assume(f), i1, co.some_i) for f in (nt.SCORE_GAPS, shifts.GAPS_BOUNDED))
    others = kernel.sum_order(weak(one_positive()), tau, nt.others(i1))
    several = follows(0 <= T - 1, others, specialize(assume(nt.LENGTH_BOUND), i1, co.some_i))
    return product_nonnegative(follows(0 <= shifts.G_max + 2, gap, bound, one_positive()), several)


def prove_sharp() -> Proved:
    """The explicit bound, with the shifts of equal scores."""
    return discharge(with_equal_scores(EXPLICIT.proved()), constant_nonnegative())


LAYER = {
    **{name: nt.at_all_times(co.HYPOTHESES[name]) for name in ("p", "a", "c")},
    **{name: co.HYPOTHESES[name] for name in ("(E)", "n > 0")},
    "T bounds the lengths": nt.LENGTH_BOUND,
    "G_max bounds the score gaps": shifts.GAPS_BOUNDED,
}
GENERAL = (
    "c > 0", "w > 0", "the shifts are at least lo", "the shifts are exponentially small in the gaps",
    "L_b >= 0", "L_b bounds the tilt",
)  # fmt: skip

EQUAL_HYPOTHESES = {
    **{name: for_equal_scores(f) for name, f in without(EXPLICIT_HYPOTHESES, *GENERAL, "c0 >= 0").items()},
    **LAYER,
}

SHARP = Theorem(
    key="sharp-residual",
    title="Under equal scores the residual is bounded for good once its drift is small",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={
        **{
            name: for_equal_scores(f) for name, f in without(EXPLICIT_HYPOTHESES, *GENERAL, "c0 >= 0").items()
        },
        **LAYER,
    },
    claim=nt.always(size(t0 + t) <= for_equal_scores(BOUND)),
    prove=prove_sharp,
    rate=Rate(observed=size(t0 + t), bound=for_equal_scores(BOUND), sense="upper"),
)
PAGES = (POTENTIAL, BOUNDED, EXPLICIT, SHARP)
