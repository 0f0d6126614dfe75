"""Theorem C (the exact constant): 2 v_t^2 (1 - cos_t) converges to ||r*||^2, at a linear rate plus 1/v_t^2.

For every W with v = <W, M^> > 0 and residual r

    ||r||^2 (1 - ||r||^2/v^2) <= 2 v^2 (1 - cos) <= ||r||^2.

With the converging residual of Theorem C, eps_t = sqrt(Y exp(-beta <W_(t0+t) - W_t0, M>)), the path length
L = E_(t0+t) - E_t0 and the length K by which v falls behind it, wherever v_t0 + L - K > 0:

    2 (v_t0 + L - K)^2 (1 - cos) <= (||r*|| + eps_t)^2,
    2 (v_t0 + L)^2 (1 - cos) >= ||r*||^2 - 2 ||r*|| eps_t - (||r*|| + eps_t)^4/(v_t0 + L - K)^2.

For normalized gradient descent L = eta t, so t^2 (1 - cos_t) -> ||r*||^2/(2 eta^2); and unless r* = 0 the
direction gap is of the exact order 1/t^2, the distance of the directions of the exact order 1/t.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas.residual_step import apart, r_star, residual
from theory.notation import STATIC, M, e, eta, layer, margin, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import (
    follows,
    inverse_order,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    restate,
    weak,
)
from theory.proof.terms import Formula, Term, as_real, exp, inner, norm, sqrt, symbol
from theory.theorems import limit as lim
from theory.theorems import normalized_gd as ngd
from theory.theorems import residual as base
from theory.theorems import separator_gap as sg
from theory.theorems import sharp_rate as rate
from theory.theorems import sharp_residual as sharp
from theory.theorems.direction import gap_to
from theory.theorems.limit import NOW, REACH, beta, gained
from theory.theorems.residual import t0
from theory.theorems.separator_gap import component

REFERENCE = "our Theorem C, the exact constant of the rate"
W, gap = STATIC.W, rate.gap
v = margin * inner(W, M)
r = norm(residual(W))

SANDWICH_LOWER = r**2 * (1 - r**2 / v**2) <= 2 * v**2 * gap
SANDWICH_UPPER = 2 * v**2 * gap <= r**2


def height_positive() -> Proved:
    """0 < v."""
    inverse = kernel.inverse_positive(rate.nonzero(M, W))
    return follows(0 < v, (inverse, assume(rate.AHEAD)))


def prove_sandwich_upper() -> Proved:
    """The static upper bound, times 2 v^2."""
    positive = height_positive()
    ahead, solution = assume(rate.AHEAD), rate.nonzero(M, W)
    return follows(
        SANDWICH_UPPER,
        (product_nonnegative(positive, positive), rate.UPPER.proved()),
        nonzero=[ahead, solution],
    )


def prove_sandwich_lower() -> Proved:
    """2 u^2 (1 - cos) >= r^2 with u^2 = v^2 + r^2, and 2 (1 - cos) <= r^2/v^2."""
    ahead, weights, solution = assume(rate.AHEAD), rate.nonzero(W, M), rate.nonzero(M, W)
    lower = discharge(rate.LOWER.proved(), weights, solution)
    square = discharge(rate.pythagoras(), weights, solution)
    size = product_nonnegative(weights, weights)
    length = product_nonnegative(norm_nonnegative(residual(W)), norm_nonnegative(residual(W)))
    return follows(
        SANDWICH_LOWER,
        (size, lower), (length, rate.UPPER.proved()), (2 * gap, square), nonzero=[ahead, weights, solution],
    )  # fmt: skip


# --- along the run -----------------------------------------------------------------------------------------

EPS = sqrt(REACH * exp(-beta * gained(t)))
END = layer(NOW).W
LOST = sg.store(t0)


def high(length: Term) -> Term:
    """v_t0 + L, which v does not exceed after a path of length L."""
    return component(t0) + length


def low(length: Term) -> Term:
    """v_t0 + L - K, which v does not fall below."""
    return high(length) - LOST


def near() -> Proved:
    """||r - r*|| <= eps."""
    return base.root_order(specialize(lim.LINEAR.proved(), t), apart(END))


def residual_bounds() -> tuple[Proved, Proved]:
    """||r*||^2 - 2 ||r*|| eps <= ||r||^2 <= (||r*|| + eps)^2, as r = r* + (r - r*)."""
    star, size = norm_nonnegative(r_star), norm_nonnegative(residual(END))
    at, eps = apart(END), symbol("eps")
    close, split = assume(norm(at) <= eps), base.triangle(residual(END), r_star)
    length = follows(norm(residual(END)) <= norm(r_star) + eps, split, close)
    reach = follows(0 <= norm(r_star) + eps, size, length)
    upper = follows(norm(residual(END)) ** 2 <= (norm(r_star) + eps) ** 2, (size, length), (reach, length))
    lower = follows(
        norm(r_star) ** 2 - 2 * norm(r_star) * eps <= norm(residual(END)) ** 2,
        kernel.cauchy_schwarz(r_star, -1 * at), (star, close), kernel.inner_nonnegative(at),
        norm_squared(r_star), norm_squared(residual(END)),
    )  # fmt: skip
    exact = near()
    low, high = (discharge(kernel.instantiate(c, reals={"eps": EPS}), exact) for c in (lower, upper))
    return low, high


def sandwiched() -> tuple[Proved, Proved]:
    """2 a^2 g <= X, S - X^2/a^2 <= 2 b^2 g if 0 < a <= V <= b, S <= x <= X, x (1 - x/V^2) <= 2 V^2 g <= x."""
    a, b, V, x, X, S, g = map(symbol, "abVxXSg")
    facts = [
        0 < a,
        a <= V,
        V <= b,
        0 <= x,
        x <= X,
        S <= x,
        0 <= g,
        x * (1 - x / V**2) <= 2 * V**2 * g,
        2 * V**2 * g <= x,
    ]
    positive, least, most, some, above, below_, gap_, lower, upper = map(assume, facts)
    top = follows(0 < V, positive, least)
    small = follows(a**2 <= V**2, (positive, least), (top, least))
    large = follows(V**2 <= b**2, (top, most), (follows(0 < b, top, most), most))
    quotient = follows(
        x / V <= X / a, (some, inverse_order(least, positive)), (kernel.inverse_positive(positive), above)
    )
    both = follows(
        0 <= x / V + X / a, quotient, (2, product_nonnegative(some, weak(kernel.inverse_positive(top))))
    )
    squares = follows(x**2 / V**2 <= X**2 / a**2, (both, quotient))
    return (
        follows(2 * a**2 * g <= X, (gap_, small), upper, above),
        follows(S - X**2 / a**2 <= 2 * b**2 * g, (gap_, large), lower, below_, squares, nonzero=[top]),
    )


KEPT = 0 < low(rate.travelled(t))


def bounds() -> tuple[Proved, Proved]:
    """Both bounds on the direction gap at the step t0 + t, where the component's lower bound is positive."""
    length = rate.travelled(t)
    kept, solution = assume(KEPT), rs.solution_nonzero()
    lost = symbol("K")
    least = follows(high(length) - lost <= component(NOW), assume(sg.fallen_behind(t) <= lost))
    least = discharge(kernel.instantiate(least, reals={"K": LOST}), specialize(sg.BEHIND.proved(), t))
    most = follows(component(NOW) <= high(length), specialize(sg.AHEAD.proved(), t))
    positive = follows(0 < component(NOW), kept, least)
    ahead = follows(0 < inner(END, M), (solution, positive), nonzero=[solution])
    lower, upper = (
        discharge(nt.at_time(page.proved(), NOW), ahead) for page in (SANDWICH_BELOW, SANDWICH_ABOVE)
    )
    square = restate(0 <= norm(residual(END)) ** 2, kernel.square(norm(residual(END))))
    reals = {
        "a": low(length), "b": high(length), "V": component(NOW), "x": norm(residual(END)) ** 2,
        "X": (norm(r_star) + EPS) ** 2, "S": norm(r_star) ** 2 - 2 * norm(r_star) * EPS, "g": gap_to(NOW),
    }  # fmt: skip
    facts = [
        kept,
        least,
        most,
        square,
        *residual_bounds(),
        gap_nonnegative(ahead),
        lower,
        upper,
    ]
    below_, above = (discharge(kernel.instantiate(claim, reals=reals), *facts) for claim in sandwiched())
    return below_, above


def gap_nonnegative(ahead: Proved) -> Proved:
    """0 <= 1 - cos at the step t0 + t."""
    weights, solution = rate.nonzero(W, M), rate.nonzero(M, W)
    inverse = kernel.inverse_positive(product_nonnegative(weights, weights))
    static = discharge(rate.LOWER.proved(), weights, solution)
    claim = follows(0 <= gap, static, (weak(inverse), kernel.square(r)), nonzero=[weights])
    return discharge(nt.at_time(claim, NOW), ahead)


SANDWICH_ABOVE = Theorem(
    key="direction-gap-above",
    title="Twice the squared component times the direction gap is at most the squared residual",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If $\langle W, W_{\mathrm{mm}}\rangle > 0$: {claim}.",
    hypotheses={"W has a component along M": rate.AHEAD},
    claim=SANDWICH_UPPER,
    prove=prove_sandwich_upper,
)
SANDWICH_BELOW = Theorem(
    key="direction-gap-below",
    title="Twice the squared component times the direction gap is nearly the squared residual",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If $\langle W, W_{\mathrm{mm}}\rangle > 0$: {claim}.",
    hypotheses={"W has a component along M": rate.AHEAD},
    claim=SANDWICH_LOWER,
    prove=prove_sandwich_lower,
)

HYPOTHESES = lim.LINEAR_HYPOTHESES


def upper_claim(length: Term) -> Formula:
    """2 (v_t0 + L - K)^2 (1 - cos) <= (||r*|| + eps)^2."""
    return 2 * low(length) ** 2 * gap_to(NOW) <= (norm(r_star) + EPS) ** 2


def lower_claim(length: Term) -> Formula:
    """||r*||^2 - 2 ||r*|| eps - (||r*|| + eps)^4/(v_t0 + L - K)^2 <= 2 (v_t0 + L)^2 (1 - cos)."""
    rest = ((norm(r_star) + EPS) ** 2) ** 2 / low(length) ** 2
    return norm(r_star) ** 2 - 2 * norm(r_star) * EPS - rest <= 2 * high(length) ** 2 * gap_to(NOW)


EXACT_UPPER = Theorem(
    key="exact-constant-upper",
    title="The direction gap times twice the squared component is at most the limit's squared residual",
    kind="theorem",
    reference=REFERENCE,
    statement=r"At every step $t_0 + t$ with a positive bound on the component: {claim}.",
    hypotheses={**HYPOTHESES, "the component's lower bound is positive": KEPT},
    claim=upper_claim(rate.travelled(t)),
    prove=lambda: bounds()[0],
)
EXACT_LOWER = Theorem(
    key="exact-constant-lower",
    title="The direction gap times twice the squared component is at least the limit's squared residual",
    kind="theorem",
    reference=REFERENCE,
    statement=r"At every step $t_0 + t$ with a positive bound on the component: {claim}.",
    hypotheses={**HYPOTHESES, "the component's lower bound is positive": KEPT},
    claim=lower_claim(rate.travelled(t)),
    prove=lambda: bounds()[1],
)

# --- normalized gradient descent, equal scores -------------------------------------------------------------


def specialized(node: Any) -> Any:
    """A formula or term with e_max = eta and the limit weights of equal scores."""
    return rate.with_constant_step(sharp.for_equal_scores(node))


def at_constant_steps(page: Theorem, claim: Formula) -> Proved:
    """A page of this file for the equal-score layer under normalized gradient descent, L = eta t."""
    general = discharge(sharp.with_equal_scores(page.proved()), sharp.constant_nonnegative())
    general = kernel.instantiate(general, reals={"e_max": eta})
    path = rate.path_of_constant_steps()
    hole = symbol("x")
    kept = kernel.congruence(path, specialized(low(hole)), hole)
    condition = follows(specialized(KEPT), assume(specialized(0 < low(eta * as_real(t)))), kept)
    small, large = (
        kernel.congruence(path, specialized(side), hole)
        for side in (upper_claim(hole) if page is EXACT_UPPER else lower_claim(hole))[1:]
    )
    bound = discharge(general, condition)
    moved = kernel.combine(specialized(claim), [(1, bound), (-1, small), (1, large)])
    steps = generalize(follows(e(t) <= eta, weak(specialize(assume(ngd.RULE), t))), t, nt.NATURALS)
    return ngd.with_constant_steps(discharge(moved, steps))


def ngd_page(key: str, title: str, general: Theorem, claim: Formula) -> Theorem:
    """The page for normalized gradient descent of a page of this file."""
    condition = 0 < low(eta * as_real(t))
    hypotheses = {
        name: specialized(f)
        for name, f in HYPOTHESES.items()
        if name not in (*sharp.GENERAL, "c0 >= 0", "steps are nonnegative", "steps are at most e_max")
    }
    hypotheses |= {"the component's lower bound is positive": specialized(condition)}
    return Theorem(
        key=key,
        title=title,
        kind="corollary",
        reference=REFERENCE,
        statement=r"At every step $t_0 + t$ with a positive bound on the component: {claim}.",
        hypotheses=hypotheses | sharp.LAYER | ngd.CONSTANT_STEPS,
        claim=specialized(claim),
        prove=lambda: at_constant_steps(general, claim),
    )


NGD_UPPER = ngd_page(
    "ngd-exact-constant-upper",
    "Under normalized gradient descent t^2 (1 - cos) tends to at most ||r*||^2/(2 eta^2)",
    EXACT_UPPER,
    upper_claim(eta * as_real(t)),
)
NGD_LOWER = ngd_page(
    "ngd-exact-constant-lower",
    "Under normalized gradient descent t^2 (1 - cos) tends to at least ||r*||^2/(2 eta^2)",
    EXACT_LOWER,
    lower_claim(eta * as_real(t)),
)
PAGES = (SANDWICH_ABOVE, SANDWICH_BELOW, EXACT_UPPER, EXACT_LOWER, NGD_UPPER, NGD_LOWER)
