"""The sharp rate in one constant: E^2 (1 - cos) <= A^2/2, so the distance of the directions is at most A/E.

With the explicit bound rho of the residual from t0 on and L = E_(t0+t) - E_t0 the path since then,

    L^2 (1 - cos(W_(t0+t), M)) <= A^2/2,    A = rho R/g*,

since v_(t0+t) >= g* L/R and ||W^ - M^||^2 = 2 (1 - cos). Three pages: equal scores, any scores, any scores
without full support. For normalized gradient descent L = eta t: the distance of the directions is at most
(A/eta)/t. Asymptotically A is ||r*|| (Theorem C); R/g* is the price of a bound for every t.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.notation import M, R, eta, layer, margin, path_length, s, t
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import follows, max_above, product_nonnegative, telescoped, weak
from theory.proof.terms import Term, as_real, below, inner, symbol
from theory.theorems import normalized_gd as ngd
from theory.theorems import residual as base
from theory.theorems import sharp_rate as rate
from theory.theorems import sharp_residual as sharp
from theory.theorems import support_sharp as ss
from theory.theorems import unequal_scores as us
from theory.theorems.direction import gap_to
from theory.theorems.residual import t0

REFERENCE = "our Theorem B, in the form of a constant over the path"
NOW = t0 + t
travelled = path_length(NOW) - path_length(t0)


def constant(bound: Term) -> Term:
    """A^2/2."""
    return (bound * R / margin) ** 2 / 2


def folded() -> Proved:
    """L^2 g <= (y R/m)^2/2 if g <= y^2/(2 s^2), m L/R <= s, 0 < s, 0 <= L, 0 < R, 0 < m."""
    L, g, y, r, m, v = map(symbol, "LgyRmv")
    facts = [g <= y**2 / (2 * v**2), m * L / r <= v, 0 < v, 0 <= L, 0 < r, 0 < m]
    bound, slow, positive, path, radius, margin_ = map(assume, facts)
    ratio = follows(
        L <= v * r / m, (weak(product_nonnegative(radius, kernel.inverse_positive(margin_))), slow),
        nonzero=[radius, margin_],
    )  # fmt: skip
    squares = follows(L**2 <= (v * r / m) ** 2, (path, ratio), (follows(0 <= v * r / m, path, ratio), ratio))
    inverse = kernel.inverse_positive(positive)
    weight = product_nonnegative(kernel.square(y), weak(product_nonnegative(inverse, inverse)))
    return follows(
        L**2 * g <= (y * r / m) ** 2 / 2,
        (kernel.square(L), bound), (weight, squares), nonzero=[positive],
    )  # fmt: skip


def path_nonnegative() -> Proved:
    """0 <= E_(t0+t) - E_t0."""
    some = kernel.sum_order(specialize(assume(base.STEPS_NONNEGATIVE), t0 + s), s, below(t))
    return follows(0 <= travelled, some, telescoped(lambda k: path_length(t0 + k), t))


def fold(page: Theorem, bound: Term, reached: Term, lower: Proved, at_start: Proved) -> Proved:
    """The page's rate, with the part of the denominator that grows with the path kept alone."""
    radius, margin_ = assume(nt.R_POSITIVE), base.margin_positive()
    start = follows(0 < margin * inner(layer(t0).W, M), (margin_, at_start))
    path = path_nonnegative()
    weight = product_nonnegative(margin_, kernel.inverse_positive(radius))
    slow = follows(margin * travelled / R <= reached, lower, start)
    positive = follows(0 < reached, lower, start, (weak(weight), path))
    claim = kernel.instantiate(
        folded(), reals={"L": travelled, "g": gap_to(NOW), "y": bound, "R": R, "m": margin, "v": reached}
    )
    facts = [specialize(page.proved(), t), slow, positive, path, radius, margin_]
    return generalize(discharge(claim, *facts), t, nt.NATURALS)


def full(page: Theorem, put_in: Any) -> Proved:
    """A page of full support, whose denominator is a maximum."""
    length = rate.travelled(t)
    lower = max_above(put_in(rate.direct(length)), put_in(rate.steady(length)))[1]
    return fold(page, put_in(sharp.BOUND), put_in(rate.reached(length)), lower, assume(rate.AHEAD_AT_START))


def prove_support() -> Proved:
    """The page without full support, whose denominator is the steady one."""
    same = kernel.combine(ss.steady(t) <= ss.steady(t))
    return fold(ss.RATE, ss.BOUND, ss.steady(t), same, assume(ss.AHEAD_AT_START))


def page(key: str, title: str, general: Theorem, bound: Term, prove: Any) -> Theorem:
    """The folded form of a page."""
    observed = travelled**2 * gap_to(NOW)
    return Theorem(
        key=key,
        title=title,
        kind="corollary",
        reference=REFERENCE,
        statement=r"For every $t$: {claim}.",
        hypotheses=general.hypotheses,
        claim=nt.always(observed <= constant(bound)),
        prove=prove,
        rate=Rate(observed=observed, bound=constant(bound), sense="upper"),
    )


EQUAL = page(
    "sharp-rate-folded",
    "The squared path length times the direction gap is bounded",
    rate.SHARP_RATE,
    sharp.for_equal_scores(sharp.BOUND),
    lambda: full(rate.SHARP_RATE, sharp.for_equal_scores),
)
UNEQUAL = page(
    "unequal-sharp-rate-folded",
    "The squared path length times the direction gap is bounded, whatever the scores",
    us.RATE,
    us.for_unequal_scores(sharp.BOUND),
    lambda: full(us.RATE, us.for_unequal_scores),
)
SUPPORT = page(
    "support-sharp-rate-folded",
    "The squared path length times the direction gap is bounded, without full support",
    ss.RATE,
    ss.BOUND,
    prove_support,
)

# --- normalized gradient descent ---------------------------------------------------------------------------

NGD_BOUND = (rate.with_constant_step(sharp.for_equal_scores(sharp.BOUND)) * R / (margin * eta)) ** 2 / 2


def prove_ngd() -> Proved:
    """L = eta t."""
    claim = specialize(kernel.instantiate(EQUAL.proved(), reals={"e_max": eta}), t)
    hole = symbol("x")
    same = kernel.congruence(rate.path_of_constant_steps(), hole**2 * gap_to(NOW), hole)
    inverse = kernel.inverse_positive(assume(0 < eta))
    moved = follows(
        as_real(t) ** 2 * gap_to(NOW) <= NGD_BOUND,
        (product_nonnegative(inverse, inverse), claim), (1 / eta**2, same), nonzero=[assume(0 < eta)],
    )  # fmt: skip
    steps = specialize(assume(ngd.RULE), t)
    short = generalize(follows(nt.e(t) <= eta, weak(steps)), t, nt.NATURALS)
    claim = ngd.with_constant_steps(discharge(generalize(moved, t, nt.NATURALS), short))
    return discharge(claim, weak(assume(0 < eta)))


NGD = Theorem(
    key="ngd-sharp-rate-folded",
    title="Under normalized gradient descent the distance of the directions is at most a constant over t",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={
        **{name: f for name, f in rate.NGD_RATE.hypotheses.items() if f != ngd.STEP_NONNEGATIVE},
        "eta > 0": 0 < eta,
    },
    claim=nt.always(as_real(t) ** 2 * gap_to(NOW) <= NGD_BOUND),
    prove=prove_ngd,
    rate=Rate(observed=as_real(t) ** 2 * gap_to(NOW), bound=NGD_BOUND, sense="upper"),
)
PAGES = (EQUAL, UNEQUAL, SUPPORT, NGD)
