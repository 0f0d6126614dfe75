"""Theorem C beyond the stability limit: steps above 2 g*/lam drive the residual away from the balanced point.

lam is an eigenvalue of the constraints' covariance sum p_k B_k B_k' under the balanced weights p_k, u a unit
eigenvector, and y_t = <r_t - r*, u>. While the run is near r*, that is o + 2 R_B ||r_t - r*|| <= Lam with
shifts in intervals of length o, let e_t >= e_min and

    h = e_min/sqrt(g*^2 + R_B^2 (exp(Lam) - 1)^2),    E = R_B (o + exp(Lam) Lam^2)/2,    y* = h E/(h lam - 2).

If h lam > 2 (which is e_min > 2 g*/lam up to higher order in Lam), then at every step with |y_t| >= y*

    |y_(t+1)| - y* >= (h lam - 1) (|y_t| - y*):

r* repels along u, by a factor above 1 a step, from one side to the other. So a run that stays near for ever
has

    2 R_B (|y_t| - y*) <= (Lam - o) exp(-s log(h lam - 1))    for every s,

hence |y_t| <= y*, which is of second order in the distance: the residual can converge to r* only along the
stable directions. It stays bounded all the same (residual-any-step): it oscillates.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import residual_linear as rl
from theory.lemmas import residual_step as rs
from theory.lemmas.residual_linear import EIGENVECTOR, UNIT, lam, u
from theory.lemmas.residual_step import apart, tilt
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import M, e, layer, margin, t
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    equation,
    exp_monotone,
    follows,
    max_above,
    max_at_most,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    square_root_order,
    weak,
)
from theory.proof.terms import (
    Formula,
    Index,
    Term,
    as_real,
    eq,
    exp,
    inner,
    log,
    maximum,
    norm,
    number,
    real,
    sqrt,
    symbol,
)
from theory.theorems import residual as base
from theory.theorems import residual_any_step as any_step
from theory.theorems.residual import pace, t0
from theory.theorems.residual_any_step import far, o_max

REFERENCE = "our Theorem C, beyond the stability limit"
NOW = t0 + t
e_min, Lam = symbol("e_min"), symbol("Lam")
reach = R_B * (exp(Lam) - 1)
h = e_min / sqrt(margin**2 + reach**2)
E = R_B * (o_max + exp(Lam) * Lam**2) / 2
floor = h * E / (h * lam - 2)
growth = h * lam - 1


def along(t: Index) -> Term:
    """y_t = <r_t - r*, u>."""
    return inner(apart(layer(t).W), u)


def size(t: Index) -> Term:
    """|y_t|."""
    return maximum(along(t), -along(t))


NEAR = nt.always(o_max + 2 * (R_B * far(NOW)) <= Lam)
NEAR_NOW = o_max + 2 * (R_B * far(t)) <= Lam
STEPS_LONG = nt.always(e_min <= e(t))
LONG = 2 < h * lam
HYPOTHESES: dict[str, Formula] = {
    **without(
        any_step.HYPOTHESES,
        "q_min bounds the balanced weights",
        "q_min > 0",
        "sig bounds the variance",
        "sig > 0",
        "steps are at most e_max",
        "steps are nonnegative",
    ),
    "u is an eigenvector of the covariance": EIGENVECTOR,
    "u is a unit vector": UNIT,
    "steps are at least e_min": STEPS_LONG,
    "e_min > 0": 0 < e_min,
    "steps are beyond the stability limit": LONG,
}


def at_step(claim: Proved) -> Proved:
    """A claim about any W, at W_t, with the shifts and the signs assumed for every t."""
    return base.drawn(any_step.at_step(claim))


def range_bounds() -> tuple[Proved, Proved]:
    """exp(L) <= exp(Lam), and L^2 <= Lam^2, at the step t."""
    near = assume(NEAR_NOW)
    L = near.conclusion[1]
    nonnegative = follows(
        0 <= L, any_step.interval_nonnegative(), (radius_nonnegative(), norm_nonnegative(apart(layer(t).W)))
    )
    largest = follows(0 <= Lam, nonnegative, near)
    grown = exp_monotone(near)
    squares = follows(L**2 <= Lam**2, (nonnegative, near), (largest, near))
    return grown, squares


def radius_nonnegative() -> Proved:
    """0 <= R_B."""
    across = rl.across
    return rl.generic(follows(0 <= R_B, norm_nonnegative(across), rl.at_constraint(rs.RADIUS)))


def error_bounded() -> Proved:
    """R_B (o + exp(L) L^2)/2 <= E at the step t."""
    grown, squares = range_bounds()
    L = squares.conclusion[1][1]
    radius = radius_nonnegative()
    weight = product_nonnegative(radius, weak(kernel.exp_positive(Lam)))
    bent = product_nonnegative(radius, kernel.square(L))
    return follows(R_B * (o_max + exp(L) * L**2) / 2 <= E, (bent, grown), (weight, squares))


def pull() -> tuple[Proved, Proved]:
    """-lam y_t - E <= <b_t, u> <= -lam y_t + E."""
    low, high = at_step(rl.LOWER.proved()), at_step(rl.UPPER.proved())
    small = error_bounded()
    b = inner(tilt(layer(t)), u)
    return follows(-lam * along(t) - E <= b, low, small), follows(b <= -lam * along(t) + E, high, small)


def pace_long() -> Proved:
    """h <= h_t: ||D||/C = sqrt(g*^2 + ||b||^2), and ||b|| <= R_B (exp(Lam) - 1)."""
    D, C = layer(t).descent, layer(t).C
    gradient, mass = base.drawn(base.gradient_positive()), base.drawn(base.mass_positive())
    b = tilt(layer(t))
    square = base.drawn(base.at_step(rs.SQUARE.proved()))
    short = follows(norm(b) <= reach, at_step(rl.TILT.proved()), (radius_nonnegative(), range_bounds()[0]))
    longest = follows(0 <= reach, short, norm_nonnegative(b))
    shorter = follows(norm(b) ** 2 <= reach**2, (norm_nonnegative(b), short), (longest, short))
    inside = follows(0 <= margin**2 + reach**2, kernel.square(margin), kernel.square(reach))
    root = sqrt(margin**2 + reach**2)
    squares = follows((norm(D) / C) ** 2 <= root**2, square, norm_squared(b), shorter, nonnegative=[inside])
    Q = square_root_order(squares, kernel.sqrt_nonnegative(inside))
    ratio = product_nonnegative(gradient, kernel.inverse_positive(mass))
    positive = follows(0 < root, ratio, Q)
    step, some = (
        specialize(assume(STEPS_LONG), t),
        product_nonnegative(mass, kernel.inverse_positive(gradient)),
    )
    weight = product_nonnegative(
        product_nonnegative(assume(0 < e_min), kernel.inverse_positive(positive)), some
    )
    return follows(h <= pace(t), (weak(weight), Q), (weak(some), step), nonzero=[mass, gradient, positive])


def moved_along() -> Proved:
    """y_(t+1) = y_t + h_t <b_t, u>."""
    now, hole = layer(t), nt.vector("x")
    pull_ = e(t) / norm(now.descent)
    update = congruence(specialize(assume(nt.update_is()), t), inner(apart(hole), u), hole)
    correlation = base.drawn(base.correlation())
    mass = base.drawn(base.mass_positive())
    return follows(
        eq(along(t + 1), along(t) + pace(t) * inner(tilt(now), u)),
        update, (pull_ * margin**2 * inner(M, u), correlation), nonzero=[mass],
    )  # fmt: skip


def one_step() -> Proved:
    """|y'| - y* >= (h lam - 1)(|y| - y*) if y' = y + k b, h <= k, |b + lam y| <= E and |y| >= y*."""
    y, after, k, b, least, wrong, lam_ = map(symbol, ("y", "z", "k", "b", "h", "E", "lam"))
    low_wall = least * wrong / (least * lam_ - 2)
    both, later = maximum(y, -y), maximum(after, -after)
    facts = [eq(after, y + k * b), least <= k, -lam_ * y - wrong <= b, b <= -lam_ * y + wrong]
    facts += [low_wall <= both, 0 < least, 2 < least * lam_, 0 <= wrong]
    moved, long, low, high, outside, positive, beyond, nonnegative = map(assume, facts)
    target = (least * lam_ - 1) * (both - low_wall) <= later - low_wall
    room = follows(0 < least * lam_ - 2, beyond)
    inverse = kernel.inverse_positive(room)
    shrink = kernel.inverse_positive(positive)
    stiff = follows(0 < lam_, (shrink, beyond), shrink, nonzero=[positive])
    # lam y* - E = 2 E/(h lam - 2) >= 0
    above = follows(
        0 <= lam_ * both - wrong, (weak(stiff), outside), (weak(inverse), nonnegative), nonzero=[room]
    )
    pace_ = follows(0 <= k, positive, long)
    up, down = max_above(after, -after)

    def at(case: Proved, pulled: Proved, side: Proved) -> Proved:
        size_ = case  # |y| as y or -y
        return follows(
            target, side, moved, (pace_, pulled), (above, long), size_, (k * lam_, size_),
            (least * lam_, size_), nonzero=[room],
        )  # fmt: skip

    right = kernel.max_is(assume(-y <= y))
    right = kernel.combine(eq(both, y), [(1, kernel.max_commutes(y, -y)), (1, right)])
    left = kernel.max_is(weak(assume(y < -y)))
    return kernel.cases(at(right, high, down), at(left, low, up), -y, y)


def error_nonnegative() -> Proved:
    """0 <= E."""
    radius, spread = radius_nonnegative(), any_step.interval_nonnegative()
    bend = product_nonnegative(weak(kernel.exp_positive(Lam)), kernel.square(Lam))
    return follows(0 <= E, (radius, spread), (radius, bend))


def least_pace_positive() -> Proved:
    """0 < h."""
    margin_ = base.margin_positive()
    inside = follows(0 < margin**2 + reach**2, (margin_, margin_), kernel.square(reach))
    root = kernel.sqrt_nonnegative(inside)
    # A root of a positive number is positive: its square is.
    none = assume(sqrt(margin**2 + reach**2) <= 0)
    wrong = kernel.combine(0 < real(0), [(1, inside), (root, none)], nonnegative=[inside])
    positive = kernel.cases(
        kernel.absurd(wrong, 0 < sqrt(margin**2 + reach**2)),
        assume(0 < sqrt(margin**2 + reach**2)), sqrt(margin**2 + reach**2), real(0),
    )  # fmt: skip
    return product_nonnegative(assume(0 < e_min), kernel.inverse_positive(positive))


OUTSIDE = floor <= size(t)
REPELLED = growth * (size(t) - floor) <= size(t + 1) - floor


def prove_repels() -> Proved:
    """The scalar step, with the pull's bounds and the least pace."""
    b = inner(tilt(layer(t)), u)
    reals = {"y": along(t), "z": along(t + 1), "k": pace(t), "b": b, "h": h, "E": E}
    claim = kernel.instantiate(one_step(), reals=reals)
    facts = [moved_along(), pace_long(), *pull(), least_pace_positive(), error_nonnegative()]
    return discharge(claim, *facts)


REPELS = Theorem(
    key="balance-repels",
    title="Steps beyond the stability limit drive the residual away from the balanced point",
    kind="theorem",
    reference=REFERENCE,
    statement=r"At every step $t$ near the balanced point, but not along the stable directions: {claim}.",
    hypotheses={
        **HYPOTHESES,
        "the run is near at t": NEAR_NOW,
        "and not along the stable directions": OUTSIDE,
    },
    claim=REPELLED,
    prove=prove_repels,
)

# --- a run that stays near ---------------------------------------------------------------------------------


def factor(t: Index) -> Term:
    """(h lam - 1)^t."""
    return exp(as_real(t) * log(growth))


def growth_positive() -> Proved:
    """0 < h lam - 1."""
    return follows(0 < growth, assume(LONG), one_positive())


def grown() -> Proved:
    """(h lam - 1)^t (|y_t0| - y*) <= |y_(t0+t)| - y*, if |y_t0| >= y*: by induction over the steps."""
    start = assume(floor <= size(t0))
    claim = factor(t) * (size(t0) - floor) <= size(NOW) - floor
    gap = follows(0 <= size(t0) - floor, start)
    outside = follows(
        floor <= size(NOW),
        assume(claim),
        product_nonnegative(weak(kernel.exp_positive(as_real(t) * log(growth))), gap),
    )
    step = kernel.instantiate(REPELS.proved(), indices={"t": NOW})
    step = discharge(step, specialize(assume(NEAR), t), outside)
    back = kernel.exp_log(growth_positive())
    after = follows(
        factor(t + 1) * (size(t0) - floor) <= size(NOW + 1) - floor,
        step, (weak(growth_positive()), assume(claim)), (factor(t) * (size(t0) - floor), back),
    )  # fmt: skip
    first = equation(factor(number(0)) * (size(t0) - floor) <= size(t0 + number(0)) - floor)
    return specialize(induction(first, after, t), t)


STAYS = 2 * R_B * (size(t0) - floor) <= (Lam - o_max) * exp(-as_real(t) * log(growth))


def prove_stays() -> Proved:
    """|y| is at most the distance, which is at most (Lam - o)/(2 R_B)."""
    X = apart(layer(NOW).W)
    unit, length = assume(UNIT), norm_nonnegative(X)
    long = max_at_most(
        follows(along(NOW) <= far(NOW), kernel.cauchy_schwarz(X, u), (norm(X), unit)),
        follows(-along(NOW) <= far(NOW), kernel.cauchy_schwarz(-1 * X, u), (norm(X), unit)),
    )
    radius = radius_nonnegative()
    low_wall = follows(
        0 <= floor,
        (product_nonnegative(weak(least_pace_positive()), error_nonnegative()),
         kernel.inverse_positive(follows(0 < h * lam - 2, assume(LONG)))),
    )  # fmt: skip
    near = specialize(assume(NEAR), t)
    shrunk = weak(kernel.exp_positive(-as_real(t) * log(growth)))
    room = follows(0 <= Lam - o_max, near, (radius, length))
    outside = follows(
        STAYS,
        (product_nonnegative(radius, shrunk), grown()), (product_nonnegative(shrunk, radius), long),
        (shrunk, near), (product_nonnegative(shrunk, radius), low_wall),
    )  # fmt: skip
    inside = follows(STAYS, (radius, weak(assume(size(t0) < floor))), (shrunk, room))
    return generalize(kernel.cases(outside, inside, floor, size(t0)), t, nt.NATURALS)


UNSTABLE = Theorem(
    key="balance-unstable",
    title="Beyond the stability limit only a run along the stable directions stays near the balanced point",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If the run stays near for ever, for every $t$: {claim}.",
    hypotheses={**HYPOTHESES, "the run stays near": NEAR},
    claim=nt.always(STAYS),
    prove=prove_stays,
)
PAGES = (REPELS, UNSTABLE)
