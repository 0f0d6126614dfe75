"""Theorem B (the residual stays near its balanced point): any step-size rule with steps below 2 g*/R_B^2.

W_t = v_t M^ + r_t with r_t orthogonal to M. Under full support, let r* balance weights w_k > 0 (see the
lemma on one step), and at step t let log(c_k/(w_k exp(-mu_k))) lie in an interval of length o_t. If
e_t <= e_max with kap = 2 - e_max R_B^2/g* > 0, then for every t0 and t

    ||r_(t0+t) - r*||^2 <= ||r_t0 - r*||^2 + 1/(4 kap) sum_(s<t) h_(t0+s) o_(t0+s)^2,
    ||r_(t0+t)|| <= ||r*|| + sqrt(the same),

where h_s = e_s C_s/||D_s|| <= e_s/g* is the growth of <W, M> in step s. No initial weight, no score and no
entry time enters: what differs between losses is w_k and o_t.
"""

from __future__ import annotations

from functools import cache

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas import separator_correlation as lemma1
from theory.lemmas import symmetric_divergence as sd
from theory.lemmas.residual_step import L_b, apart, disorder, r_star, residual, shift
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import M, e, layer, margin, s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    follows,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    square_root_order,
    telescoped,
    weak,
)
from theory.proof.terms import (
    Formula,
    Fraction,
    Index,
    Term,
    Vector,
    below,
    eq,
    index,
    inner,
    norm,
    sqrt,
    symbol,
    total,
    vector,
)

REFERENCE = "our Theorem B; beyond the paper's finite-time rate"
e_max, t0 = symbol("e_max"), index("t0")
half = Fraction(1, 2)


def slack(smoothness: Term) -> Term:
    """2 - e_max L_b/g*: what a step of length e_max leaves of the descent."""
    return 2 - e_max * smoothness / margin


kap = slack(R_B**2)


def lo(t: Index) -> Term:
    """Lower end of the interval of the shifts at step t."""
    return symbol("lo", t)


def o(t: Index) -> Term:
    """o_t, the length of the interval of the shifts at step t."""
    return symbol("o", t)


def pace(t: Index) -> Term:
    """h_t = e_t C_t/||D_t||, the step in units of the mean constraint."""
    return e(t) * layer(t).C / norm(layer(t).descent)


def distance(t: Index) -> Term:
    """d_t^2 = ||r_t - r*||^2."""
    r = apart(layer(t).W)
    return inner(r, r)


def disturbance(t: Index, start: Index = t0) -> Term:
    """The sum of h_s o_s^2 over the ``t`` steps since ``start``."""
    return total(s, below(t), pace(start + s) * o(start + s) ** 2)


STEPS_BOUNDED = nt.always(e(t) <= e_max)
STEPS_SHORT = 0 < kap
SMOOTHNESS_NONNEGATIVE, SHORT = 0 <= L_b, 0 < slack(L_b)


def smooth(t: Index) -> Formula:
    """||b_t||^2 <= L_b J_t."""
    b = rs.tilt(layer(t))
    return inner(b, b) <= L_b * disorder(layer(t))


STEPS_NONNEGATIVE = nt.STEPS_NONNEGATIVE
SHIFTS = ("the shifts are at least lo", "the shifts are at most lo + o")

HYPOTHESES = {
    **{
        name: rs.HYPOTHESES[name]
        for name in (
            "(F)",
            "r* balances the limit weights",
            "w > 0",
            "R_B bounds the constraints across M",
            "there is a sequence",
            "with a constraint",
        )
    },
    **{name: nt.at_all_times(rs.HYPOTHESES[name]) for name in ("c > 0", "gradient", "C")},
    "the shifts are at least lo": nt.always(nt.each(lo(t) <= shift(layer(t)))),
    "the shifts are at most lo + o": nt.always(nt.each(shift(layer(t)) <= lo(t) + o(t))),
    "update": nt.update_is(),
    "steps are nonnegative": STEPS_NONNEGATIVE,
    "steps are at most e_max": STEPS_BOUNDED,
    "steps are short": STEPS_SHORT,
}


def at_step(claim: Proved) -> Proved:
    """A claim about any W, at W_t with its shifts; the definitions hold at every t."""
    moved = kernel.instantiate(nt.at_time(claim, t), reals={"lo": lo(t), "o": o(t)})
    return discharge(moved, *(specialize(assume(HYPOTHESES[name]), t) for name in ("gradient", "C")))


def drawn(claim: Proved) -> Proved:
    """A claim about the step t, with c > 0 there drawn from its holding at every step."""
    return discharge(claim, specialize(assume(HYPOTHESES["c > 0"]), t))


def with_shifts(claim: Proved) -> Proved:
    """The shifts at W_t lie in the interval assumed for every t."""
    return discharge(drawn(claim), *(specialize(assume(HYPOTHESES[name]), t) for name in SHIFTS))


@cache
def mass_positive() -> Proved:
    """0 < C_t."""
    return at_step(rs.mass_positive())


@cache
def margin_positive() -> Proved:
    """0 < g*."""
    return kernel.inverse_positive(rs.solution_nonzero())


@cache
def gradient_lower() -> Proved:
    """g* C_t <= ||D_t||."""
    positive = rs.co.for_each_constraint(weak(rs.at_constraint(rs.COEFFICIENTS_POSITIVE)))
    return at_step(discharge(lemma1.LOWER.proved(), positive, rs.separable(), rs.solution_nonzero()))


@cache
def gradient_positive() -> Proved:
    """0 < ||D_t||."""
    return follows(0 < norm(layer(t).descent), gradient_lower(), (margin_positive(), mass_positive()))


@cache
def pace_nonnegative() -> Proved:
    """0 <= h_t."""
    step = specialize(assume(STEPS_NONNEGATIVE), t)
    weight = product_nonnegative(mass_positive(), kernel.inverse_positive(gradient_positive()))
    return follows(0 <= pace(t), (step, weight))


@cache
def pace_upper() -> Proved:
    """h_t <= e_t/g*."""
    step, size, solution = (
        specialize(assume(STEPS_NONNEGATIVE), t),
        gradient_positive(),
        rs.solution_nonzero(),
    )
    weight = product_nonnegative(product_nonnegative(step, kernel.inverse_positive(size)), weak(solution))
    return follows(pace(t) <= e(t) / margin, (weight, gradient_lower()), nonzero=[size, solution])


@cache
def moved_by_step() -> Proved:
    """||r_(t+1) - r*||^2 = ||r_t + h_t b_t - r*||^2, as <D_t, M> = C_t under (F)."""
    now, hole, along = layer(t), vector("x"), correlation()
    update = specialize(assume(nt.update_is()), t)
    after = now.W + (e(t) / norm(now.descent)) * now.descent
    moved = apart(now.W) + pace(t) * rs.tilt(now)
    mass = mass_positive()

    def same(z: Vector) -> Proved:
        factor = e(t) / norm(now.descent) * margin**2 * inner(M, z)
        return follows(eq(inner(apart(after), z), inner(moved, z)), (factor, along), nonzero=[mass])

    return follows(
        eq(distance(t + 1), inner(moved, moved)),
        congruence(update, inner(apart(hole), apart(hole)), hole), same(apart(after)), same(moved),
    )  # fmt: skip


@cache
def correlation() -> Proved:
    """<D_t, M> = C_t."""
    return at_step(rs.correlation())


@cache
def component_grows() -> Proved:
    """<W_(t+1), M> = <W_t, M> + h_t."""
    hole, pull = vector("x"), e(t) / norm(layer(t).descent)
    update = congruence(specialize(assume(nt.update_is()), t), inner(hole, M), hole)
    grown = eq(inner(layer(t + 1).W, M), inner(layer(t).W, M) + pace(t))
    return follows(grown, update, (pull, correlation()))


@cache
def disorder_nonnegative() -> Proved:
    """0 <= J_t."""
    return at_step(rs.of_distributions(sd.NONNEGATIVE.proved()))


def step(ell: Term, positive: Proved) -> Proved:
    """The lemma on one step at W_t, for l = ``ell``."""
    claim = at_step(kernel.instantiate(rs.STEP.proved(), reals={"l": ell, "h": symbol("h_t")}))
    claim = discharge(kernel.instantiate(claim, reals={"h_t": pace(t)}), positive, pace_nonnegative())
    end = claim.conclusion[2]
    return follows(distance(t + 1) <= end, claim, moved_by_step())


@cache
def pace_bounded() -> Proved:
    """h_t <= e_max/g*."""
    solution = rs.solution_nonzero()
    return follows(
        pace(t) <= e_max / margin,
        pace_upper(), (weak(solution), specialize(assume(STEPS_BOUNDED), t)), nonzero=[solution],
    )  # fmt: skip


@cache
def short() -> Proved:
    """h_t L_b <= e_max L_b/g*, so that the lemma's factor 2 - h L_b is at least its slack."""
    weight = assume(SMOOTHNESS_NONNEGATIVE)
    return follows(
        0 <= 2 - pace(t) * L_b - slack(L_b), (weight, pace_bounded()), nonzero=[rs.solution_nonzero()]
    )


def one_step() -> Proved:
    """d_(t+1)^2 - d_t^2 <= h_t o_t^2/(4 (2 - e_max L_b/g*)), where ||b_t||^2 <= L_b J_t."""
    positive = assume(SHORT)
    weight = product_nonnegative(pace_nonnegative(), short())
    return follows(
        distance(t + 1) - distance(t) <= pace(t) * o(t) ** 2 / (4 * slack(L_b)),
        step(slack(L_b), positive), (weight, disorder_nonnegative()), nonzero=[positive],
    )  # fmt: skip


def descent() -> Proved:
    """d_(t+1)^2 - d_t^2 <= -k/2 h_t J_t + h_t o_t^2/(2 k), with k = 2 - e_max L_b/g*."""
    some = slack(L_b)
    positive = assume(0 < some)
    halved = step(half * some, follows(0 < half * some, positive))
    weight = product_nonnegative(pace_nonnegative(), short())
    return follows(
        distance(t + 1) - distance(t)
        <= -half * some * pace(t) * disorder(layer(t)) + pace(t) * o(t) ** 2 / (2 * some),
        halved, (weight, disorder_nonnegative()), nonzero=[positive],
    )  # fmt: skip


def anywhere(claim: Proved) -> Proved:
    """A claim about steps with ||b_t||^2 <= L_b J_t, for L_b = R_B^2, which holds everywhere."""
    claim = kernel.instantiate(claim, reals={"L_b": R_B**2})
    return discharge(claim, at_step(rs.TILT.proved()), kernel.square(R_B))


# --- all steps ---------------------------------------------------------------------------------------------

END = distance(t0) + disturbance(t) / (4 * kap)


def prove_distance() -> Proved:
    """The steps add up."""
    each = kernel.instantiate(with_shifts(anywhere(one_step())), indices={"t": t0 + s})
    summed = kernel.sum_order(each, s, below(t))
    ends = telescoped(lambda k: distance(t0 + k), t)
    return generalize(follows(distance(t0 + t) <= END, summed, ends), t, nt.NATURALS)


def triangle(u: Vector, v: Vector) -> Proved:
    """||u|| <= ||v|| + ||u - v||: the square, by Cauchy-Schwarz."""
    rest = u - v
    lengths = norm_nonnegative(v), norm_nonnegative(rest)
    squares = follows(
        norm(u) ** 2 <= (norm(v) + norm(rest)) ** 2,
        norm_squared(u), norm_squared(v), norm_squared(rest), kernel.cauchy_schwarz(v, rest),
    )  # fmt: skip
    return square_root_order(squares, follows(0 <= norm(v) + norm(rest), *lengths))


def root_order(squares: Proved, u: Vector) -> Proved:
    """From <u, u> <= b, ||u|| <= sqrt(b)."""
    b = squares.conclusion[2]
    positive = follows(0 <= b, kernel.inner_nonnegative(u), squares)
    order = follows(norm(u) ** 2 <= sqrt(b) ** 2, squares, norm_squared(u), nonnegative=[positive])
    return square_root_order(order, kernel.sqrt_nonnegative(positive))


def prove_residual() -> Proved:
    """The triangle inequality."""
    W = layer(t0 + t).W
    close = root_order(specialize(DISTANCE.proved(), t), apart(W))
    split = triangle(residual(W), r_star)
    return generalize(follows(norm(residual(W)) <= norm(r_star) + sqrt(END), split, close), t, nt.NATURALS)


DISTANCE = Theorem(
    key="residual-distance",
    title="The squared distance from the balanced point grows by no more than the disturbance",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t_1$ and $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(distance(t0 + t) <= END),
    prove=prove_distance,
)
RESIDUAL = Theorem(
    key="residual",
    title="The residual is bounded by the balanced point and its distance from it",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t_1$ and $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(norm(residual(layer(t0 + t).W)) <= norm(r_star) + sqrt(END)),
    prove=prove_residual,
)
PAGES = (DISTANCE, RESIDUAL)
