"""Theorem C without full support: the residual's limit is the balanced point plus what the run itself chose.

Off the support the pull is exponentially small: its sum Z_t over all later steps is finite and goes to 0 (the
page support-drift). Let W_t be the run freed of it, W_t = V_t + Z_t with V_t the iterates: W moves by the
support's pull alone, W_(t+1) = W_t + e_t D_t/||D_t||, so off the span of the support it never moves. Choose
r* balanced over the support with the part that the support does not see equal to that of W: a limit that the
run has chosen.

With shifts at V_t in intervals of length o_t, ||Z_t|| <= z_t, o_t + 2 R z_t + 2 R_B ||r_t - r*|| <= Lam and
(o_t + 2 R z_t)^2 <= P exp(-beta <W_t - W_t0, M>) for every t >= t0, where beta < mu = kap exp(-Lam) sig/4,
kap = 2 - e_max R_B^2/g* > 0 and sig bounds the variance on the span of the support as in Theorem C:

    ||r(W_(t0+t)) - r*||^2 <= ( ||r_t0 - r*||^2 + P/(kap (mu - beta)) ) exp(-beta <W_(t0+t) - W_t0, M>),

and with eps_t the root of the right side and v_t = <V_t, M^> > 0 along the iterates themselves

    2 v_t^2 (1 - cos(V_t, M)) <= (||r*|| + eps_t + z_t)^2,
    2 v_t^2 (1 - cos(V_t, M)) >= ||r*||^2 - 2 ||r*|| (eps_t + z_t) - (||r*|| + eps_t + z_t)^4/v_t^2.

So v_t^2 (1 - cos_t) -> ||r*||^2/2 whenever Z_t -> 0, as with full support; only r* is the run's own.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas import residual_variance as rv
from theory.lemmas.residual_step import apart, disorder, r_star, residual, shift
from theory.lemmas.separator_correlation import at_constraint, in_i, in_tau
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import STATIC, A, M, R, i, layer, margin, t, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    equation,
    everywhere,
    exp_monotone,
    follows,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    restate,
    square_root_order,
    weak,
)
from theory.proof.terms import (
    Formula,
    Fraction,
    Index,
    Term,
    Vector,
    eq,
    exp,
    inner,
    norm,
    number,
    sqrt,
    substitute,
    symbol,
    vector,
)
from theory.theorems import exact_constant as exact
from theory.theorems import limit as lim
from theory.theorems import residual as base
from theory.theorems import sharp_rate as rate
from theory.theorems.limit import beta, gained, sig
from theory.theorems.residual import distance, kap, lo, o, pace, t0

REFERENCE = "our Theorem C, the extension without full support"
half = Fraction(1, 2)
Lam, P = symbol("Lam"), symbol("P")
mu = kap * exp(-Lam) * sig / 4
NOW = t0 + t


def span(t: Index) -> Term:
    """o_t + 2 R_B ||r_t - r*||, the range of the logarithms of c_k/q_k."""
    return o(t) + 2 * (R_B * norm(apart(layer(t).W)))


RANGE = nt.always(span(NOW) <= Lam)
DECAY = nt.always(o(NOW) ** 2 <= P * exp(-beta * gained(t)))
HYPOTHESES: dict[str, Formula] = {
    **base.HYPOTHESES,
    "sig bounds the variance": lim.VARIANCE_BOUNDED,
    "sig >= 0": 0 <= sig,
    "sig <= R_B^2": sig <= R_B**2,
    "Lam bounds the range": RANGE,
    "the disturbance decays": DECAY,
    "beta < mu": beta < mu,
}


def at_now(claim: Proved) -> Proved:
    """A claim about the step t with its shifts, for t0 + t."""
    return kernel.instantiate(base.with_shifts(claim), indices={"t": NOW})


def at_step(claim: Proved) -> Proved:
    """A claim about the step t, for t0 + t."""
    return kernel.instantiate(base.drawn(claim), indices={"t": NOW})


def span_nonnegative() -> Proved:
    """0 <= o + 2 R_B ||r - r*||: the shifts lie in an interval of length o."""
    at = (nt.i1, rs.co.some_i), (nt.tau1, rs.co.some_tau)
    low, high = (everywhere(assume(base.HYPOTHESES[name]), t, *at) for name in base.SHIFTS)
    longest = norm_nonnegative(apart(layer(t).W))
    return follows(0 <= span(t), low, high, (radius_nonnegative(), longest))


def radius_nonnegative() -> Proved:
    """0 <= R_B."""
    longest = follows(0 <= R_B, norm_nonnegative(A(i, tau) - margin**2 * M), at_constraint(rs.RADIUS))
    some = kernel.instantiate(longest, indices={"tau": nt.tau1})
    return discharge(rs.co.moved(some, rs.co.some_i), rs.co.some_tau)


def disorder_bounded() -> Proved:
    """exp(-Lam) sig d^2/2 - o^2/4 <= J at the step t0 + t."""
    size = span(NOW)
    variance = at_now(base.at_step(rv.VARIANCE.proved()))
    decay = exp_monotone(follows(-Lam <= -size, specialize(assume(RANGE), t)))
    nonnegative = kernel.instantiate(span_nonnegative(), indices={"t": NOW})
    at_most_one = exp_monotone(follows(-size <= 0, nonnegative))
    least = specialize(assume(lim.VARIANCE_BOUNDED), NOW)
    spread_out = product_nonnegative(assume(0 <= sig), kernel.inner_nonnegative(apart(layer(NOW).W)))
    return follows(
        half * exp(-Lam) * sig * distance(NOW) - o(NOW) ** 2 / 4 <= disorder(layer(NOW)),
        variance, (weak(kernel.exp_positive(-size)), least),
        (spread_out, decay), (kernel.square(o(NOW)), at_most_one),
    )  # fmt: skip


def slack_at_most_two() -> Proved:
    """kap <= 2."""
    solution = rs.solution_nonzero()
    steps = (specialize(assume(f), t) for f in (base.STEPS_NONNEGATIVE, base.STEPS_BOUNDED))
    weight = product_nonnegative(kernel.square(R_B), weak(solution))
    return follows(kap <= 2, (weight, follows(0 <= base.e_max, *steps)), nonzero=[solution])


CONTRACTION = distance(NOW + 1) <= (1 - mu * pace(NOW)) * distance(NOW) + pace(NOW) * o(NOW) ** 2 / kap


def contraction() -> Proved:
    """The descent by kap/2 h J, with J >= exp(-Lam) sig d^2/2 - o^2/4; kap^2 <= 4."""
    short = assume(base.STEPS_SHORT)
    descent = at_now(base.anywhere(base.descent()))
    pace_ = at_step(base.pace_nonnegative())
    weight = product_nonnegative(weak(short), pace_)
    disturbance = product_nonnegative(
        product_nonnegative(pace_, kernel.square(o(NOW))), weak(kernel.inverse_positive(short))
    )
    two = slack_at_most_two()
    square = follows(kap**2 <= 4, (weak(short), two), two)
    return follows(CONTRACTION, descent, (weight, disorder_bounded()), (disturbance, square), nonzero=[short])


REACH = distance(t0) + P / kap / (mu - beta)


def rate_small() -> Proved:
    """mu h <= 1: kap R_B^2 h <= kap (2 - kap) <= 1."""
    short = assume(base.STEPS_SHORT)
    pace_, bounded = (at_step(c) for c in (base.pace_nonnegative(), base.pace_bounded()))
    weight = product_nonnegative(weak(short), pace_)
    nonnegative = kernel.instantiate(span_nonnegative(), indices={"t": NOW})
    decay = exp_monotone(follows(-Lam <= 0, specialize(assume(RANGE), t), nonnegative))
    factor = product_nonnegative(weight, assume(0 <= sig))
    reach = product_nonnegative(weak(short), kernel.square(R_B))
    return follows(
        mu * pace(NOW) <= 1,
        (factor, decay), (weight, assume(HYPOTHESES["sig <= R_B^2"])), (reach, bounded),
        kernel.square(kap - 1), one_positive(), nonzero=[rs.solution_nonzero()],
    )  # fmt: skip


def power_nonnegative() -> Proved:
    """0 <= P."""
    start = kernel.instantiate(specialize(assume(DECAY), t), indices={"t": number(0)})
    return follows(0 <= P, start, kernel.square(o(t0)))


def prove_linear() -> Proved:
    """By induction over the contraction."""
    claim, decay = distance(NOW) <= REACH * exp(-beta * gained(t)), exp(-beta * gained(t))
    power, start = power_nonnegative(), kernel.inner_nonnegative(apart(layer(t0).W))
    short = assume(base.STEPS_SHORT)
    general = kernel.instantiate(
        lim.one_contraction(),
        reals={
            "m": mu, "h": pace(NOW), "d": distance(NOW), "w": o(NOW) ** 2, "k": kap, "E": decay,
            "D": distance(t0), "p": P, "b": beta,
        },
    )  # fmt: skip
    pace_, grows = (at_step(c) for c in (base.pace_nonnegative(), base.component_grows()))
    step = discharge(
        general, pace_, rate_small(), assume(claim), specialize(assume(DECAY), t), short,
        kernel.exp_positive(-beta * gained(t)), start, power, assume(beta < mu),
    )  # fmt: skip
    hole = symbol("x")
    moved = congruence(grows, exp(-beta * (hole - inner(layer(t0).W, M))), hole)
    grown = follows(
        distance(NOW + 1) <= REACH * exp(-beta * gained(t + 1)), contraction(), step, (REACH, moved)
    )
    room = kernel.inverse_positive(follows(0 < mu - beta, assume(beta < mu)))
    share = product_nonnegative(product_nonnegative(power, weak(kernel.inverse_positive(short))), weak(room))
    first = follows(distance(t0 + number(0)) <= REACH * exp(-beta * gained(number(0))), share)
    return induction(first, grown, t)


LINEAR = Theorem(
    key="residual-converges-generally",
    title="The residual converges to the balanced point, whatever makes the disturbance decay",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(distance(NOW) <= REACH * exp(-beta * gained(t))),
    prove=prove_linear,
)

# --- the iterates themselves -------------------------------------------------------------------------------


def remainder(t: Index) -> Vector:
    """Z_t, the sum of the rest's pull over all steps from t on."""
    return vector("Z", t)


def z(t: Index) -> Term:
    """A bound on ||Z_t||."""
    return symbol("z", t)


def iterate(t: Index) -> Vector:
    """V_t = W_t - Z_t, the iterate whose coefficients c_k are."""
    return layer(t).W - remainder(t)


def own_shift(t: Index) -> Term:
    """The logarithm of c_k/(w_k exp(-mu_k)) at the iterate V_t."""
    return substitute(shift(layer(t)), vectors={"W": (("t",), iterate(t))})


REMAINDER_BOUNDED = nt.always(norm(remainder(t)) <= z(t))
SHIFT_LOWER = nt.always(nt.each(lo(t) <= own_shift(t)))
SHIFT_UPPER = nt.always(nt.each(own_shift(t) <= lo(t) + o(t)))
WIDER = {"lo": (("t",), lo(t) - R * z(t)), "o": (("t",), o(t) + 2 * R * z(t))}


def widened(node: Any) -> Any:
    """A formula or term with the shifts of W in place of those of V."""
    return substitute(node, reals=WIDER)


def shifts_of_freed_run() -> list[Proved]:
    """<A_k, Z_t> moves the shifts by at most R z_t."""
    Z, length = remainder(t), norm_nonnegative(remainder(t))
    bound = at_constraint(nt.NORM_BOUND)
    longest = follows(0 <= R, norm_nonnegative(A(i, tau)), bound)
    small = longest, specialize(assume(REMAINDER_BOUNDED), t)
    up = follows(inner(A(i, tau), Z) <= R * z(t), kernel.cauchy_schwarz(A(i, tau), Z), (length, bound), small)
    down = kernel.cauchy_schwarz(-1 * A(i, tau), Z)
    down = follows(-R * z(t) <= inner(A(i, tau), Z), down, (length, bound), small)
    at = (i, in_i), (tau, in_tau)
    out = []
    for general, own, moved in (
        (base.HYPOTHESES[base.SHIFTS[0]], SHIFT_LOWER, down),
        (base.HYPOTHESES[base.SHIFTS[1]], SHIFT_UPPER, up),
    ):
        target = everywhere(assume(widened(general)), t, *at).conclusion
        each = follows(target, everywhere(assume(own), t, *at), moved)
        out.append(generalize(rs.co.for_each_constraint(each), t, nt.NATURALS))
    return out


ITERATES: dict[str, Formula] = {
    **{name: widened(f) for name, f in HYPOTHESES.items() if name not in base.SHIFTS},
    "the shifts are at least lo": SHIFT_LOWER,
    "the shifts are at most lo + o": SHIFT_UPPER,
    "z bounds what is left of the rest's pull": REMAINDER_BOUNDED,
    "R bounds the support": nt.NORM_BOUND,
}
EPS = sqrt(widened(REACH) * exp(-beta * gained(t)))
far = EPS + z(NOW)
END = iterate(NOW)


def of_iterate(node: Any) -> Any:
    """A formula or term about any W, about V_(t0+t)."""
    return substitute(node, vectors={"W": ((), END)})


def near() -> Proved:
    """||r(V) - r*|| <= eps + z: what is across M of Z is no longer than Z."""
    linear = discharge(kernel.instantiate(LINEAR.proved(), reals=WIDER), *shifts_of_freed_run())
    at, Z, solution = apart(layer(NOW).W), remainder(NOW), rs.solution_nonzero()
    close = base.root_order(specialize(linear, t), at)
    unit = follows(eq(margin**2 * inner(M, M), 1), (margin**2, norm_squared(M)), nonzero=[solution])
    across = residual(Z)
    squares = follows(
        norm(across) ** 2 <= norm(Z) ** 2,
        norm_squared(across), norm_squared(Z), (margin**2 * inner(Z, M) ** 2, unit),
        kernel.square(margin * inner(Z, M)),
    )  # fmt: skip
    short = square_root_order(squares, norm_nonnegative(Z))
    split = base.triangle(apart(END), at)
    bound = specialize(assume(REMAINDER_BOUNDED), NOW)
    return follows(norm(apart(END)) <= far, split, close, short, bound)


def residual_bounds() -> tuple[Proved, Proved]:
    """||r*||^2 - 2 ||r*|| E <= ||r||^2 <= (||r*|| + E)^2 if ||r - r*|| <= E, for r = r(V)."""
    r, at, E = residual(END), apart(END), symbol("E")
    close, star, size = assume(norm(at) <= E), norm_nonnegative(r_star), norm_nonnegative(r)
    length = follows(norm(r) <= norm(r_star) + E, base.triangle(r, r_star), close)
    reach = follows(0 <= norm(r_star) + E, size, length)
    upper = follows(norm(r) ** 2 <= (norm(r_star) + E) ** 2, (size, length), (reach, length))
    lower = follows(
        norm(r_star) ** 2 - 2 * norm(r_star) * E <= norm(r) ** 2,
        kernel.cauchy_schwarz(r_star, -1 * at), (star, close), kernel.inner_nonnegative(at),
        norm_squared(r_star), norm_squared(r),
    )  # fmt: skip
    exact_ = near()
    low, high = (discharge(kernel.instantiate(c, reals={"E": far}), exact_) for c in (lower, upper))
    return low, high


AHEAD = 0 < inner(END, M)
v = margin * inner(END, M)
gap = of_iterate(rate.gap)


def bounds() -> tuple[Proved, Proved]:
    """Both bounds on the direction gap of V_(t0+t), from the static ones."""
    ahead = assume(AHEAD)
    positive = follows(0 < v, (base.margin_positive(), ahead))
    least_v = equation(Formula(("le", v, v)))

    def static(page: Theorem) -> Proved:
        return kernel.instantiate(page.proved(), vectors={"W": END})

    lower, upper = static(exact.SANDWICH_BELOW), static(exact.SANDWICH_ABOVE)
    size = restate(0 <= norm(residual(END)) ** 2, kernel.square(norm(residual(END))))
    weights, other = rate.nonzero(STATIC.W, M), rate.nonzero(M, STATIC.W)
    inverse = kernel.inverse_positive(product_nonnegative(weights, weights))
    least = discharge(rate.LOWER.proved(), weights, other)
    spread_out = kernel.square(norm(residual(STATIC.W)))
    nonnegative = follows(0 <= rate.gap, least, (weak(inverse), spread_out), nonzero=[weights])
    nonnegative = kernel.instantiate(nonnegative, vectors={"W": END})
    reals = {
        "a": v, "b": v, "V": v, "x": norm(residual(END)) ** 2, "X": (norm(r_star) + far) ** 2,
        "S": norm(r_star) ** 2 - 2 * norm(r_star) * far, "g": gap,
    }  # fmt: skip
    facts = [positive, least_v, size, *residual_bounds(), nonnegative, lower, upper]
    below_, above = (
        discharge(kernel.instantiate(claim, reals=reals), *facts) for claim in exact.sandwiched()
    )
    return below_, above


UPPER = Theorem(
    key="support-exact-constant-upper",
    title="Without full support the direction gap is at most what the run's own limit says",
    kind="theorem",
    reference=REFERENCE,
    statement=r"At every step $t_0 + t$ with a component along $W_{{\mathrm{{mm}}}}$: {claim}.",
    hypotheses={**ITERATES, "V has a component along M": AHEAD},
    claim=2 * v**2 * gap <= (norm(r_star) + far) ** 2,
    prove=lambda: bounds()[0],
)
LOWER = Theorem(
    key="support-exact-constant-lower",
    title="Without full support the direction gap is at least what the run's own limit says",
    kind="theorem",
    reference=REFERENCE,
    statement=r"At every step $t_0 + t$ with a component along $W_{{\mathrm{{mm}}}}$: {claim}.",
    hypotheses={**ITERATES, "V has a component along M": AHEAD},
    claim=norm(r_star) ** 2 - 2 * norm(r_star) * far - ((norm(r_star) + far) ** 2) ** 2 / v**2
    <= 2 * v**2 * gap,
    prove=lambda: bounds()[1],
)
PAGES = (LINEAR, UPPER, LOWER)
