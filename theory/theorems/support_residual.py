"""Theorem B without full support: the residual is bounded for good, whatever pulls off the support.

J_i are the tokens whose constraints support M (<A_k, M> = 1), K_i the others. r* balances limit weights over
the support. At step t let the shifts of the support's coefficients lie in an interval of length
c0 exp(R ||r_t|| - g* v_t), and let the rest's coefficients be nonnegative and, for some gamma > 0 (as when
<A_k, M> >= 1 + gamma on K),

    sum_K c_k <= c1 exp(R ||r_t|| - gamma g* v_t) C_t,        C_t = sum_J c_k.

With kap = 2 - e_max R_B^2/g* > 0 and some r_max let

    Gam = c0^2 exp(2 R r_max) (||M||^2/2 + e_max ||M||)/(4 kap),
    Y = c1 R exp(R r_max) (||M||^2/gamma + e_max ||M||).

If   sqrt(||r_t - r*||^2 + Gam exp(-2 g* v_t)) + Y exp(-gamma g* v_t) <= r_max - ||r*||   at t = t0, then
for every t >= t0, so that ||r_t|| <= r_max: the rest moves the residual by a finite length, which is small
when attention has settled at t0. No initial weight and no score enters.
"""

from __future__ import annotations

from functools import cache

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas import support_step as ss
from theory.lemmas.residual_step import apart, height, r_star, residual, shift
from theory.lemmas.support_step import stray
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import M, R, e, layer, margin, s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    equation,
    exp_monotone,
    exp_tangent,
    follows,
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
    Vector,
    below,
    eq,
    exp,
    inner,
    norm,
    number,
    real,
    sqrt,
    symbol,
    vector,
    veq,
    vtotal,
)
from theory.theorems import residual as base
from theory.theorems.residual import distance, e_max, kap, lo, t0

REFERENCE = "our Theorem B, the extension without full support"
c0, c1, r_max, gamma = symbol("c0"), symbol("c1"), symbol("r_max"), symbol("gamma")


def whole(t: Index) -> Vector:
    """F_t, the negative gradient: the pull of the support and of the rest."""
    return vector("F", t)


def pace(t: Index) -> Term:
    """h_t = e_t C_t/||F_t||, the step in units of the support's mean constraint."""
    return e(t) * layer(t).C / norm(whole(t))


def size(t: Index) -> Term:
    """||r_t||."""
    return norm(residual(layer(t).W))


def spread(t: Index) -> Term:
    """Length of the interval of the shifts at step t."""
    return c0 * exp(R * size(t) - height(layer(t).W))


def share(t: Index) -> Term:
    """Bound on the rest's part of the coefficients at step t."""
    return c1 * exp(R * size(t) - gamma * height(layer(t).W))


def reach(theta: Term) -> Term:
    """||M||^2/theta + e_max ||M||, which bounds the sum of h exp(-theta g* v)."""
    return norm(M) ** 2 / theta + e_max * norm(M)


Gam = c0**2 * exp(2 * R * r_max) * reach(real(2)) / (4 * kap)
Y = c1 * R * exp(R * r_max) * reach(gamma)


def square_part(t: Index) -> Term:
    """d_t^2 + Gam exp(-2 g* v_t)."""
    return distance(t) + Gam * exp(-2 * height(layer(t).W))


def potential(t: Index) -> Term:
    """sqrt(d_t^2 + Gam exp(-2 g* v_t)) + Y exp(-gamma g* v_t)."""
    return sqrt(square_part(t)) + Y * exp(-gamma * height(layer(t).W))


room = r_max - norm(r_star)
SETTLED = potential(t0) <= room
UPDATE = nt.always(veq(layer(t + 1).W, layer(t).W + (e(t) / norm(whole(t))) * whole(t)))
STRAY = nt.always(stray(layer(t)) <= share(t) * layer(t).C)
SHIFT_LOWER = nt.always(nt.each(lo(t) <= shift(layer(t))))
SHIFT_UPPER = nt.always(nt.each(shift(layer(t)) <= lo(t) + spread(t)))
REST_PULLS = nt.always(ss.rest_nonnegative(layer(t)))
DEFINITIONS = {
    "gradient": base.HYPOTHESES["gradient"],
    "C": base.HYPOTHESES["C"],
    "negative gradient": nt.always(ss.whole_pull_is(layer(t), whole(t))),
}
LAYER = {
    "c > 0": base.HYPOTHESES["c > 0"],
    "the rest pulls": REST_PULLS,
    "the rest pulls little": STRAY,
    "the shifts are at least lo": SHIFT_LOWER,
    "the shifts are exponentially small in the gaps": SHIFT_UPPER,
}
HYPOTHESES: dict[str, Formula] = {
    **{
        name: base.HYPOTHESES[name]
        for name in (
            "(F)",
            "r* balances the limit weights",
            "w > 0",
            "R_B bounds the constraints across M",
            "there is a sequence",
            "with a constraint",
            "steps are nonnegative",
            "steps are at most e_max",
            "steps are short",
        )
    },
    **DEFINITIONS,
    **LAYER,
    "M satisfies the rest": ss.REST_AHEAD,
    "R bounds the rest": ss.REST_BOUND,
    "update": UPDATE,
    "gamma > 0": 0 < gamma,
    "R >= 0": 0 <= R,
    "c1 >= 0": 0 <= c1,
    "the residual has settled": SETTLED,
}


def at_step(claim: Proved) -> Proved:
    """A claim about any W, at W_t; the definitions hold at every t."""
    moved = kernel.instantiate(nt.at_time(claim, t), reals={"lo": lo(t)}, vectors={"F": whole(t)})
    return discharge(moved, *(specialize(assume(f), t) for f in DEFINITIONS.values()))


@cache
def mass_positive() -> Proved:
    """0 < C_t."""
    return at_step(rs.mass_positive())


@cache
def gradient_positive() -> Proved:
    """0 < ||F_t||."""
    lower = at_step(ss.LOWER.proved())
    return follows(0 < norm(whole(t)), lower, (base.margin_positive(), mass_positive()))


@cache
def pull_nonnegative() -> Proved:
    """0 <= e_t/||F_t||."""
    step = specialize(assume(base.STEPS_NONNEGATIVE), t)
    return product_nonnegative(step, weak(kernel.inverse_positive(gradient_positive())))


@cache
def pace_nonnegative() -> Proved:
    """0 <= h_t."""
    return follows(0 <= pace(t), (pull_nonnegative(), mass_positive()))


@cache
def pace_bounded() -> Proved:
    """h_t <= e_max/g*."""
    solution = rs.solution_nonzero()
    weight = product_nonnegative(pull_nonnegative(), weak(solution))
    return follows(
        pace(t) <= e_max / margin,
        (weight, at_step(ss.LOWER.proved())), (weak(solution), specialize(assume(base.STEPS_BOUNDED), t)),
        nonzero=[solution, gradient_positive()],
    )  # fmt: skip


moved = apart(layer(t).W) + pace(t) * rs.tilt(layer(t))
pushed = apart(layer(t + 1).W) - moved


def support_step() -> Proved:
    """||r_t + h_t b_t - r*||^2 <= d_t^2 + h_t o_t^2/(4 kap)."""
    positive = assume(base.STEPS_SHORT)
    claim = kernel.instantiate(
        rs.STEP.proved(), reals={"h": symbol("h_t"), "L_b": R_B**2, "o": symbol("o_t")}
    )
    claim = discharge(at_step(claim), at_step(rs.TILT.proved()))
    claim = kernel.instantiate(claim, reals={"h_t": pace(t), "l": kap, "o_t": spread(t)})
    claim = discharge(claim, positive, pace_nonnegative())
    short = follows(
        0 <= 2 - pace(t) * R_B**2 - kap,
        (kernel.square(R_B), pace_bounded()), nonzero=[rs.solution_nonzero()],
    )  # fmt: skip
    disorder = at_step(rs.of_distributions(rs.sd.NONNEGATIVE.proved()))
    return follows(
        inner(moved, moved) <= distance(t) + pace(t) * spread(t) ** 2 / (4 * kap),
        claim, (product_nonnegative(pace_nonnegative(), short), disorder), nonzero=[positive],
    )  # fmt: skip


def push() -> Proved:
    """||r_(t+1) - (r_t + h_t b_t)|| <= h_t R c1 exp(...): the rest's pull, across M."""
    now, pull, hole = layer(t), e(t) / norm(whole(t)), vector("x")
    N, mass, size_ = whole(t) - now.descent, mass_positive(), gradient_positive()
    solution, along = rs.solution_nonzero(), at_step(rs.correlation())
    after = now.W + pull * whole(t)
    update = congruence(specialize(assume(UPDATE), t), inner(apart(hole) - moved, apart(hole) - moved), hole)
    across = pull * (N - (margin**2 * inner(N, M)) * M)

    def same(z: Vector) -> Proved:
        factor = pull * margin**2 * inner(M, z)
        return follows(
            eq(inner(apart(after) - moved, z), inner(across, z)), (factor, along), nonzero=[mass, size_]
        )

    unit = follows(eq(margin**2 * inner(M, M), 1), (margin**2, norm_squared(M)), nonzero=[solution])
    squares = follows(
        inner(across, across) <= (pull * norm(N)) ** 2,
        (pull**2, norm_squared(N)), (pull**2 * margin**2 * inner(N, M) ** 2, unit),
        kernel.square(pull * margin * inner(N, M)),
    )  # fmt: skip
    whole_squares = follows(
        norm(pushed) ** 2 <= (pull * norm(N)) ** 2,
        squares, norm_squared(pushed), update, same(apart(after) - moved), same(across),
    )  # fmt: skip
    length = square_root_order(whole_squares, product_nonnegative(pull_nonnegative(), norm_nonnegative(N)))
    bound = product_nonnegative(pull_nonnegative(), assume(0 <= R))
    little = assume(stray(now) <= share(t) * now.C)
    return follows(
        norm(pushed) <= pace(t) * R * share(t),
        length, (pull_nonnegative(), at_step(ss.STRAY.proved())), (bound, little),
    )  # fmt: skip


def component_grows() -> Proved:
    """<W_t, M> + h_t <= <W_(t+1), M>."""
    hole = vector("x")
    update = congruence(specialize(assume(UPDATE), t), inner(hole, M), hole)
    ahead = at_step(ss.CORRELATION.proved())
    return follows(
        inner(layer(t).W, M) + pace(t) <= inner(layer(t + 1).W, M), update, (pull_nonnegative(), ahead)
    )


def decay_pays(theta: Term, positive: Proved) -> Proved:
    """h_t exp(-theta g* v_t) <= reach (exp(-theta g* v_t) - exp(-theta g* v_(t+1))).

    By x <= (1 + x)(1 - exp(-x)) with x = theta g*^2 h_t.
    """
    solution, h = rs.solution_nonzero(), pace(t)
    x = theta * margin**2 * h
    before, after = exp(-theta * height(layer(t).W)), exp(-theta * height(layer(t + 1).W))
    rate = product_nonnegative(weak(positive), kernel.square(margin))
    smaller = exp_monotone(
        follows(-theta * height(layer(t + 1).W) <= -theta * height(layer(t).W) - x, (rate, component_grows()))
    )
    tangent = follows((1 + x) * exp(-x) <= 1, (weak(kernel.exp_positive(-x)), exp_tangent(x)))
    fall = follows(0 <= 1 - exp(-x), exp_monotone(follows(-x <= 0, (rate, pace_nonnegative()))))
    square = product_nonnegative(norm_nonnegative(M), norm_nonnegative(M))
    length = product_nonnegative(square, weak(kernel.inverse_positive(positive)))
    paid = follows(
        h <= reach(theta) * (1 - exp(-x)),
        (length, tangent), (fall, pace_bounded()), nonzero=[solution, positive],
    )  # fmt: skip
    decay = weak(kernel.exp_positive(-theta * height(layer(t).W)))
    return follows(
        h * before <= reach(theta) * (before - after),
        (decay, paid),
        (reach_nonnegative(theta, positive), smaller),
    )


def reach_nonnegative(theta: Term, positive: Proved) -> Proved:
    """0 <= ||M||^2/theta + e_max ||M||."""
    steps = specialize(assume(base.STEPS_NONNEGATIVE), t), specialize(assume(base.STEPS_BOUNDED), t)
    length = norm_nonnegative(M)
    inverse = weak(kernel.inverse_positive(positive))
    return follows(
        0 <= reach(theta),
        product_nonnegative(product_nonnegative(length, length), inverse),
        product_nonnegative(follows(0 <= e_max, *steps), length),
    )


def two_positive() -> Proved:
    """0 < 2."""
    return follows(0 < real(2), one_positive())


def factor_nonnegative() -> Proved:
    """0 <= c0^2 exp(2 R r_max)/(4 kap)."""
    inverse = weak(kernel.inverse_positive(assume(base.STEPS_SHORT)))
    square = product_nonnegative(kernel.square(c0), weak(kernel.exp_positive(2 * R * r_max)))
    return follows(0 <= c0**2 * exp(2 * R * r_max) / (4 * kap), (inverse, square))


def rest_factor_nonnegative() -> Proved:
    """0 <= c1 R exp(R r_max)."""
    both = product_nonnegative(assume(0 <= c1), assume(0 <= R))
    return product_nonnegative(both, weak(kernel.exp_positive(R * r_max)))


def square_part_nonnegative() -> Proved:
    """0 <= d_t^2 + Gam exp(-2 g* v_t)."""
    decay = weak(kernel.exp_positive(-2 * height(layer(t).W)))
    tail = product_nonnegative(
        product_nonnegative(factor_nonnegative(), reach_nonnegative(real(2), two_positive())), decay
    )
    return follows(0 <= square_part(t), kernel.inner_nonnegative(apart(layer(t).W)), tail)


def at_next(claim: Proved) -> Proved:
    """A claim about the step t, for t + 1."""
    return kernel.instantiate(claim, indices={"t": t + 1})


def support_falls() -> Proved:
    """The support's step does not raise d^2 + Gam exp(-2 g* v), if ||r_t|| <= r_max."""
    positive = assume(base.STEPS_SHORT)
    W = layer(t).W
    exponent = follows(
        2 * (R * size(t) - height(W)) <= 2 * R * r_max - 2 * height(W),
        (assume(0 <= R), assume(size(t) <= r_max)),
    )
    small = follows(
        spread(t) ** 2 <= c0**2 * exp(2 * R * r_max) * exp(-2 * height(W)),
        (kernel.square(c0), exp_monotone(exponent)),
    )
    weight = product_nonnegative(weak(kernel.inverse_positive(positive)), pace_nonnegative())
    return follows(
        inner(moved, moved) + Gam * exp(-2 * height(layer(t + 1).W)) <= square_part(t),
        support_step(), (weight, small), (factor_nonnegative(), decay_pays(real(2), two_positive())),
        nonzero=[positive],
    )  # fmt: skip


def push_paid() -> Proved:
    """The rest's push is at most what Y exp(-gamma g* v) loses in the step, if ||r_t|| <= r_max."""
    W = layer(t).W
    exponent = follows(
        R * size(t) - gamma * height(W) <= R * r_max - gamma * height(W),
        (assume(0 <= R), assume(size(t) <= r_max)),
    )
    weight = product_nonnegative(product_nonnegative(pace_nonnegative(), assume(0 <= R)), assume(0 <= c1))
    return follows(
        norm(pushed) <= Y * (exp(-gamma * height(W)) - exp(-gamma * height(layer(t + 1).W))),
        push(), (weight, exp_monotone(exponent)),
        (rest_factor_nonnegative(), decay_pays(gamma, assume(0 < gamma))),
    )  # fmt: skip


def root_falls() -> Proved:
    """From n^2 + b <= q, 0 <= d <= n + p, 0 <= p <= x: sqrt(d^2 + b) <= sqrt(q) + x."""
    n, b, q, d, p, x = map(symbol, "nbqdpx")
    facts = [n**2 + b <= q, 0 <= n, 0 <= d, d <= n + p, 0 <= p, p <= x, 0 <= b]
    fall, low, long, split, part, small, tail = map(assume, facts)
    inside = follows(0 <= q, fall, kernel.square(n), tail)
    root = kernel.sqrt_nonnegative(inside)
    below = square_root_order(follows(n**2 <= sqrt(q) ** 2, fall, tail, nonnegative=[inside]), root)
    both = follows(0 <= n + p, low, part)
    most = follows(d**2 <= (n + p) ** 2, (long, split), (both, split))
    outside = follows(0 <= d**2 + b, kernel.square(d), tail)
    bound = follows(
        sqrt(d**2 + b) ** 2 <= (sqrt(q) + p) ** 2,
        most, fall, (2, product_nonnegative(part, follows(0 <= sqrt(q) - n, below))),
        nonnegative=[inside, outside],
    )  # fmt: skip
    return follows(
        sqrt(d**2 + b) <= sqrt(q) + x, square_root_order(bound, follows(0 <= sqrt(q) + p, root, part)), small
    )


def potential_falls() -> Proved:
    """The potential does not grow in the step from t, if ||r_t|| <= r_max."""
    at = apart(layer(t + 1).W)
    tail = at_next(tail_nonnegative())
    paid = push_paid()
    general = kernel.instantiate(
        root_falls(),
        reals={
            "n": norm(moved), "b": Gam * exp(-2 * height(layer(t + 1).W)), "q": square_part(t),
            "d": norm(at), "p": norm(pushed), "x": paid.conclusion[2],
        },
    )  # fmt: skip
    squares = follows(
        norm(moved) ** 2 + Gam * exp(-2 * height(layer(t + 1).W)) <= square_part(t),
        support_falls(),
        norm_squared(moved),
    )
    claim = discharge(
        general, squares, norm_nonnegative(moved), norm_nonnegative(at), base.triangle(at, moved),
        norm_nonnegative(pushed), paid, tail,
    )  # fmt: skip
    hole = symbol("x")
    same = congruence(norm_squared(at), sqrt(hole + Gam * exp(-2 * height(layer(t + 1).W))), hole)
    return follows(potential(t + 1) <= potential(t), claim, same)


def residual_bounded(close: Proved) -> Proved:
    """From potential <= r_max - ||r*||, ||r_t|| <= r_max."""
    at, inside = apart(layer(t).W), square_part_nonnegative()
    decay = product_nonnegative(
        product_nonnegative(rest_factor_nonnegative(), reach_nonnegative(gamma, assume(0 < gamma))),
        weak(kernel.exp_positive(-gamma * height(layer(t).W))),
    )
    squares = follows(
        norm(at) ** 2 <= sqrt(square_part(t)) ** 2,
        norm_squared(at), tail_nonnegative(), nonnegative=[inside],
    )  # fmt: skip
    near = square_root_order(squares, kernel.sqrt_nonnegative(inside))
    return follows(size(t) <= r_max, base.triangle(residual(layer(t).W), r_star), near, close, decay)


def tail_nonnegative() -> Proved:
    """0 <= Gam exp(-2 g* v_t)."""
    scale = product_nonnegative(factor_nonnegative(), reach_nonnegative(real(2), two_positive()))
    return follows(
        0 <= Gam * exp(-2 * height(layer(t).W)),
        product_nonnegative(scale, weak(kernel.exp_positive(-2 * height(layer(t).W)))),
    )


LOCAL = tuple(LAYER)


def drawn(claim: Proved, names: tuple[str, ...] = LOCAL) -> Proved:
    """A claim about the step t, with what it assumes of the layer there drawn from that for every step."""
    return discharge(claim, *(specialize(assume(LAYER[name]), t) for name in names))


def prove_potential() -> Proved:
    """By induction: while the potential is small the residual is at most r_max, and the potential falls."""
    claim = assume(potential(t) <= room)
    fallen = drawn(discharge(potential_falls(), residual_bounded(claim)))
    grown = kernel.instantiate(follows(potential(t + 1) <= room, fallen, claim), indices={"t": t0 + t})
    return induction(assume(SETTLED), grown, t)


def prove_bounded() -> Proved:
    """The residual at a small potential."""
    bounded = kernel.instantiate(residual_bounded(assume(potential(t) <= room)), indices={"t": t0 + t})
    return generalize(discharge(bounded, specialize(POTENTIAL.proved(), t)), t, nt.NATURALS)


POTENTIAL = Theorem(
    key="support-distance",
    title="Without full support a settled residual keeps its distance from the balanced one",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support, for every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(potential(t0 + t) <= room),
    prove=prove_potential,
)
BOUNDED = Theorem(
    key="support-residual",
    title="Without full support a settled residual is bounded for good",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support, for every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(size(t0 + t) <= r_max),
    prove=prove_bounded,
)

# --- the rest's pull adds up to a finite length ------------------------------------------------------------


def drift(t: Index) -> Vector:
    """The part of step t that the rest makes: (e_t/||F_t||)(F_t - D_t)."""
    return (e(t) / norm(whole(t))) * (whole(t) - layer(t).descent)


def drift_paid() -> Proved:
    """||the rest's part|| <= Y (exp(-gamma g* v_t) - exp(-gamma g* v_(t+1))), if ||r_t|| <= r_max."""
    now, pull, W = layer(t), e(t) / norm(whole(t)), layer(t).W
    N = whole(t) - now.descent
    squares = follows(
        norm(drift(t)) ** 2 <= (pull * norm(N)) ** 2, norm_squared(drift(t)), (pull**2, norm_squared(N))
    )
    length = square_root_order(squares, product_nonnegative(pull_nonnegative(), norm_nonnegative(N)))
    little = assume(stray(now) <= share(t) * now.C)
    exponent = follows(
        R * size(t) - gamma * height(W) <= R * r_max - gamma * height(W),
        (assume(0 <= R), assume(size(t) <= r_max)),
    )
    weight = product_nonnegative(product_nonnegative(pace_nonnegative(), assume(0 <= R)), assume(0 <= c1))
    return follows(
        norm(drift(t)) <= Y * (exp(-gamma * height(W)) - exp(-gamma * height(layer(t + 1).W))),
        length, (pull_nonnegative(), at_step(ss.STRAY.proved())),
        (product_nonnegative(pull_nonnegative(), assume(0 <= R)), little), (weight, exp_monotone(exponent)),
        (rest_factor_nonnegative(), decay_pays(gamma, assume(0 < gamma))),
    )  # fmt: skip


def drifted(t: Index) -> Vector:
    """The rest's part of the steps since t0."""
    return vtotal(s, below(t), drift(t0 + s))


def faded(t: Index) -> Term:
    """exp(-gamma g* v_t)."""
    return exp(-gamma * height(layer(t).W))


def prove_drift() -> Proved:
    """By induction: each step pays for its part."""
    claim = norm(drifted(t)) <= Y * (faded(t0) - faded(t0 + t))
    each = kernel.instantiate(drawn(drift_paid()), indices={"t": t0 + t})
    each = discharge(each, specialize(BOUNDED.proved(), t))
    split = base.triangle(drifted(t + 1), drifted(t))
    grown = follows(norm(drifted(t + 1)) <= Y * (faded(t0) - faded(t0 + t + 1)), split, each, assume(claim))
    nothing = drifted(number(0))
    first = square_root_order(
        follows(norm(nothing) ** 2 <= real(0) ** 2, norm_squared(nothing)), equation(real(0) <= 0)
    )
    start = follows(norm(nothing) <= Y * (faded(t0) - faded(t0 + number(0))), first)
    return induction(start, grown, t)


DRIFT = Theorem(
    key="support-drift",
    title="The pull off the support adds up to a finite length, exponentially small in the component",
    kind="theorem",
    reference=REFERENCE,
    statement=r"With $\tau\in J_i$ for the tokens of the support, for every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(norm(drifted(t)) <= Y * (faded(t0) - faded(t0 + t))),
    prove=prove_drift,
)
PAGES = (POTENTIAL, BOUNDED, DRIFT)
