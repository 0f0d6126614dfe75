"""Theorem C with nothing left to the run: the residual's distance from its limit, from the step t0 alone.

With the explicit bound rho of Theorem B for r_max, the smallest eigenvalue sig of the constraints' covariance
under the balanced weights on their span across M (from the problem: theory.predict encloses it), and

    Lam = c0 exp(R_B rho - g* v_t0) + 2 R_B (rho - ||r*||),    P = c0^2 exp(2 R_B rho - 2 g* v_t0),
    mu = kap exp(-Lam) sig/4,    beta = min(mu/2, 2 g*^2),
    eps(L) = sqrt(( (||r*|| + ||r_t0||)^2 + P/(kap (mu - beta)) ) exp(-beta L/R)),

along the path, L = E_(t0+t) - E_t0,

    ||r*|| - eps(L) <= ||r_(t0+t)|| <= ||r*|| + eps(L),
    1 - cos(W_(t0+t), M) <= (||r*|| + eps(L))^2/(2 v^2),   v the larger of the two lower bounds of Theorem B.

So t^2 (1 - cos_t) tends to at most ||r*||^2/(2 eta^2) at an explicit rate. A start at 0 keeps the run in the
span of the constraints, where sig bounds the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from theory import notation as nt
from theory.lemmas import residual_step as rs
from theory.lemmas.residual_step import L_b, apart, height, r_star, residual
from theory.lemmas.symmetric_divergence import R_B
from theory.notation import R, layer, margin, t
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import (
    at_most_min,
    exp_monotone,
    follows,
    min_below,
    product_nonnegative,
    weak,
)
from theory.proof.terms import Formula, Fraction, Term, exp, inner, minimum, norm, sqrt, substitute, symbol
from theory.theorems import limit as lim
from theory.theorems import residual as base
from theory.theorems import separator_gap as sg
from theory.theorems import sharp_rate as rate
from theory.theorems import sharp_residual as sharp
from theory.theorems import unequal_scores as us
from theory.theorems.direction import gap_to
from theory.theorems.limit import NOW, gained
from theory.theorems.residual import t0
from theory.theorems.sharp_residual import far, kap, size

REFERENCE = "our Theorem C, explicit from one step on"
half = Fraction(1, 2)
sig = symbol("lam_min")  # the least eigenvalue on the span, where the general page takes any such bound
VARIANCE_BOUNDED = substitute(lim.VARIANCE_BOUNDED, reals={"sig": ((), sig)})


def at_bound(node: Any) -> Any:
    """A formula or term with the explicit bound for r_max, and the least eigenvalue for sig."""
    return substitute(node, reals={"r_max": ((), sharp.BOUND), "sig": ((), sig)})


mu = at_bound(lim.mu)
beta = minimum(mu / 2, 2 * margin**2)
REACH = far**2 + at_bound(lim.P) / kap / (mu - beta)


def eps(length: Term) -> Term:
    """Bound on ||r - r*|| after a path of that length."""
    return sqrt(REACH * exp(-beta * length / R))


HYPOTHESES: dict[str, Formula] = {
    **rate.RATE_HYPOTHESES,
    "sig bounds the variance": VARIANCE_BOUNDED,
    "sig > 0": 0 < sig,
    "sig <= L_b": sig <= L_b,
}


def rate_positive() -> Proved:
    """0 < mu."""
    short, decay = assume(base.SHORT), kernel.exp_positive(-at_bound(lim.Lam))
    return follows(0 < mu, (product_nonnegative(short, decay), assume(0 < sig)))


def beta_bounds() -> tuple[Proved, Proved, Proved]:
    """beta < mu, beta <= 2 g*^2, 0 <= beta."""
    positive = rate_positive()
    low, slow = min_below(mu / 2, 2 * margin**2)
    nonnegative = at_most_min(
        follows(0 <= mu / 2, positive), follows(0 <= 2 * margin**2, kernel.square(margin))
    )
    return follows(beta < mu, low, (half, positive)), slow, nonnegative


def near() -> Proved:
    """||r_(t0+t) - r*|| <= eps: the linear convergence of Theorem C, <W, M> having grown by L/R."""
    less, slow, nonnegative = beta_bounds()
    linear = kernel.instantiate(lim.LINEAR.proved(), reals={"r_max": sharp.BOUND, "beta": beta, "sig": sig})
    linear = discharge(linear, *sharp.explicit_entry(), less, slow, weak(assume(0 < sig)))
    now, solution = specialize(linear, t), rs.solution_nonzero()
    length = rate.travelled(t)
    grown = follows(length / R <= gained(t), (weak(solution), rate.component_steady()), nonzero=[solution])
    decay = exp_monotone(follows(-beta * gained(t) <= -beta * length / R, (nonnegative, grown)))
    power = kernel.exp_positive(2 * R_B * sharp.BOUND - 2 * height(layer(t0).W))
    noise = product_nonnegative(kernel.square(sharp.c0), weak(power))
    short, room = assume(base.SHORT), follows(0 < mu - beta, less)
    share = product_nonnegative(
        product_nonnegative(noise, weak(kernel.inverse_positive(short))), weak(kernel.inverse_positive(room))
    )
    reach = follows(0 <= REACH, share, kernel.square(far))
    start = sharp.start_bounded()
    squares = follows(
        inner(apart(layer(NOW).W), apart(layer(NOW).W)) <= REACH * exp(-beta * length / R),
        now, (weak(kernel.exp_positive(-beta * gained(t))), start), (reach, decay),
    )  # fmt: skip
    return base.root_order(squares, apart(layer(NOW).W))


def prove_upper() -> Proved:
    """The triangle inequality."""
    split = base.triangle(residual(layer(NOW).W), r_star)
    return follows(size(NOW) <= norm(r_star) + eps(rate.travelled(t)), split, near())


def prove_lower() -> Proved:
    """The triangle inequality, from r*."""
    r = residual(layer(NOW).W)
    split = base.triangle(r_star, r)
    claim = norm(r_star) - eps(rate.travelled(t)) <= size(NOW)
    return follows(claim, split, near())


def prove_rate() -> Proved:
    """The limit's bound on the residual in the static upper bound."""
    length = rate.travelled(t)
    return rate.rate_from(prove_upper(), specialize(sg.EXPLICIT.proved(), t), gap(length)[2])


def upper(length: Term) -> Formula:
    """||r|| <= ||r*|| + eps."""
    return size(NOW) <= norm(r_star) + eps(length)


def lower(length: Term) -> Formula:
    """||r*|| - eps <= ||r||."""
    return norm(r_star) - eps(length) <= size(NOW)


def gap(length: Term) -> Formula:
    """1 - cos <= (||r*|| + eps)^2/(2 v^2)."""
    return gap_to(NOW) <= (norm(r_star) + eps(length)) ** 2 / (2 * rate.reached(length) ** 2)


def general(key: str, title: str, claim: Formula, prove: Callable[[], Proved]) -> Theorem:
    """A page for general shifts."""
    return Theorem(
        key=key,
        title=title,
        kind="theorem",
        reference=REFERENCE,
        statement=r"For every $t$: {claim}.",
        hypotheses=HYPOTHESES if claim == gap(rate.travelled(t)) else WITHOUT_AHEAD,
        claim=nt.always(claim),
        prove=lambda: generalize(prove(), t, nt.NATURALS),
    )


WITHOUT_AHEAD = {name: f for name, f in HYPOTHESES.items() if name != "W has a component along M at t0"}
LENGTH = rate.travelled(t)
UPPER = general(
    "explicit-limit-upper",
    "The residual is at most its limit and a known rest",
    upper(LENGTH),
    prove_upper,
)
LOWER = general(
    "explicit-limit-lower",
    "The residual is at least its limit less an explicit rest",
    lower(LENGTH),
    prove_lower,
)
RATE = general(
    "explicit-limit-rate", "The direction gap falls as the residual's limit says", gap(LENGTH), prove_rate
)

# --- any scores, held against runs -------------------------------------------------------------------------


def prove_unequal(page: Theorem, claim: Callable[[Term], Formula]) -> Proved:
    """A general page with the weights of any scores, past their threshold."""
    variance = us.for_unequal_scores(VARIANCE_BOUNDED)
    from_start = generalize(specialize(assume(variance), NOW), t, nt.NATURALS)
    own = us.explicit(discharge(us.in_time(page.proved()), *us.facts(), from_start))
    moved = us.in_path(specialize(own, t), lambda x: claim(x)[1], lambda x: claim(x)[2])
    return generalize(moved, t, nt.NATURALS)


def unequal(page: Theorem, claim: Callable[[Term], Formula]) -> Theorem:
    """The page of a general one for any scores."""
    small, large = us.for_unequal_scores(claim(LENGTH))[1:]
    return Theorem(
        key=page.key.replace("explicit-", "unequal-explicit-"),
        title=page.title + ", whatever the scores",
        kind="theorem",
        reference=REFERENCE,
        statement=page.statement,
        hypotheses=us.hypotheses(dict(page.hypotheses), us.at_bound(us.PAST_THRESHOLD)),
        claim=nt.always(small <= large),
        prove=lambda: prove_unequal(page, claim),
        # ||r_t|| meets its limit to the last digits of a float: only the gap's bound keeps clear of rounding.
        rate=Rate(observed=small, bound=large, sense="upper") if claim is gap else None,
    )


UNEQUAL_UPPER = unequal(UPPER, upper)
UNEQUAL_LOWER = unequal(LOWER, lower)
UNEQUAL_RATE = unequal(RATE, gap)
PAGES = (UPPER, LOWER, RATE, UNEQUAL_UPPER, UNEQUAL_LOWER, UNEQUAL_RATE)
