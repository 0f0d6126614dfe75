"""Theorem A(iii) from zero: with W_0 = 0 the direction bound needs nothing of the run but its step lengths.

On near-acute data, with W_0 = 0 and e_0 > 0, the norm after t steps is at least x_t = g* E_t/R, and under any
step-size rule, for t >= 1,

    1 - cos(W_t, M) <= [ e_0 + Lam/g* log((g* x_t + Lam)/(g* e_0 + Lam))
                         + 1/2 sum_(0<s<t) e_s^2/(x_s + Lam/g*) ] / x_t.

Proof. The direction theorem from t0 = 1, where u_1 = e_0 and <W_1, M> >= 0. Its bound falls with the norm
(``bracket-falls``), so the guaranteed norm may take the norm's place.
"""

from __future__ import annotations

from collections.abc import Callable

from theory import notation as nt
from theory.lemmas import log_bounds
from theory.lemmas.definitions import from_definitions, without_mass
from theory.lemmas.log_bounds import bracket
from theory.notation import Lam, M, R, e, layer, margin, path_length, s, separator_path, t
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    equation,
    follows,
    inverse_order,
    norm_nonnegative,
    product_nonnegative,
    square_root_order,
    weak,
)
from theory.proof.terms import Fraction, Index, Term, below, eq, inner, log, norm, number, symbol, total
from theory.theorems import alignment_time, direction, norm_growth
from theory.theorems.alignment_time import margin_positive
from theory.theorems.direction import gap_to, size

REFERENCE = "our Theorem A(iii), a priori; the paper's finite-time rate of convergence in direction"
half = Fraction(1, 2)
first, one, end, now = number(0), number(1), t + 1, s + 1
ORIGIN = eq(size(first), 0)
FIRST_STEP = 0 < e(first)
at_origin = assume(ORIGIN)


def guaranteed(path: Term) -> Term:
    """x_t = g* E_t/R, a lower bound on the norm."""
    return margin * path / R


def bound(path: Term, step: Term, curvature: Term) -> Term:
    """The right side, for the path length so far, the first step, and a bound on the curvature."""
    return bracket(guaranteed(path), step, curvature, margin, Lam) / guaranteed(path)


def guaranteed_size(at: Index) -> Term:
    """x_t at the path length of the run."""
    return guaranteed(path_length(at))


def cost(length: Callable[[Index], Term]) -> Term:
    """e_s^2/(length_s + Lam/g*), at the step s + 1."""
    return e(now) ** 2 / (length(now) + Lam / margin)


def curvature(length: Callable[[Index], Term]) -> Term:
    """1/2 sum over the steps s = 1, ..., t of e_s^2/(length_s + Lam/g*)."""
    return half * total(s, below(t), cost(length))


# --- the first step ----------------------------------------------------------------------------------------


def origin_orthogonal(v: nt.Vector) -> Proved:
    """<v, W_0> = 0: Cauchy-Schwarz at both signs, with ||W_0|| = 0."""
    origin = layer(first).W
    high = follows(inner(v, origin) <= 0, kernel.cauchy_schwarz(v, origin), (norm(v), at_origin))
    low = follows(0 <= inner(v, origin), kernel.cauchy_schwarz(-1 * v, origin), (norm(v), at_origin))
    return kernel.antisymmetry(high, low)


def first_norm() -> Proved:
    """u_1 = e_0: W_1 is the first step."""
    turn = kernel.instantiate(direction.turn(), indices={"t0": first, "s": first})
    start = layer(first)
    sideways = origin_orthogonal(start.descent)
    squared = [
        follows(a**2 <= b**2, turn, (e(first) / norm(start.descent), sideways), (size(first), at_origin))
        for a, b in ((size(one), e(first)), (e(first), size(one)))
    ]
    step = specialize(assume(nt.STEPS_NONNEGATIVE), first)
    return kernel.antisymmetry(
        square_root_order(squared[0], step), square_root_order(squared[1], norm_nonnegative(layer(one).W))
    )


# --- every step --------------------------------------------------------------------------------------------


def path_covers_first() -> Proved:
    """e_0 <= E_(t+1), by induction over t: no step is negative."""
    claim = e(first) <= path_length(end)
    step = specialize(assume(nt.STEPS_NONNEGATIVE), end)
    grown = follows(e(first) <= path_length(end + 1), assume(claim), step)
    return kernel.induction(equation(e(first) <= path_length(one)), grown, t)


def guaranteed_positive(at: Index) -> Proved:
    """0 < x_(t+1)."""
    path = follows(0 < path_length(at + 1), assume(FIRST_STEP), specialize(path_covers_first(), at))
    rate = product_nonnegative(margin_positive(), kernel.inverse_positive(assume(nt.R_POSITIVE)))
    return follows(0 < guaranteed(path_length(at + 1)), (rate, path))


def norm_guaranteed(at: Index) -> Proved:
    """x_t <= u_t: norm growth from W_0 = 0."""
    growth = specialize(norm_growth.NORM_GROWTH.proved(), at)
    return follows(guaranteed(path_length(at)) <= size(at), growth, at_origin)


def first_separator() -> Proved:
    """0 < S_1: S_1 >= E_1/R = e_0/R."""
    lower = specialize(norm_growth.PATH_LOWER.proved(), one)
    return follows(
        0 < separator_path(one), (kernel.inverse_positive(assume(nt.R_POSITIVE)), assume(FIRST_STEP)), lower
    )


def since_one(claim: Proved) -> Proved:
    """A claim about the steps since t0, with t0 = 1: from W_0 = 0 both conditions on t0 hold there."""
    covered = kernel.instantiate(assume(alignment_time.PATH_ALIGNS), indices={"t0": one}).conclusion
    left = kernel.instantiate(assume(alignment_time.PATH_LEAVES_START), indices={"t0": one}).conclusion
    factor = (R + margin) / (margin**2 - alignment_time.e0)
    moved = kernel.instantiate(claim, indices={"t0": one})
    return discharge(
        moved,
        follows(covered, weak(first_separator()), (factor, at_origin)),
        follows(left, (margin_positive(), first_separator()), at_origin),
    )


def direction_since_one() -> Proved:
    """The direction theorem from t0 = 1, with u_1 = e_0 and <W_1, M> >= 0."""
    gaps = specialize(since_one(alignment_time.ALIGNMENT_TIME.proved()), s)
    nonzero = since_one(alignment_time.NONZERO.proved())
    so_far = generalize(specialize(nonzero, s), s, below(t))
    last = specialize(nonzero, t)
    sharp = kernel.instantiate(direction.FROM_GAPS.proved(), indices={"t0": one})
    sharp = discharge(sharp, generalize(gaps, s, below(t)), so_far, last)
    hole = symbol("x")
    logs = congruence(first_norm(), log((margin * size(end) + Lam) / (margin * hole + Lam)), hole)
    ahead = follows(
        0 <= inner(layer(one).W, M),
        specialize(norm_growth.SEPARATOR.proved(), one), weak(first_separator()), origin_orthogonal(M),
    )  # fmt: skip
    shrink = kernel.inverse_positive(last)
    return follows(
        gap_to(end) <= bracket(size(end), e(first), curvature(size), margin, Lam) / size(end),
        sharp,
        (product_nonnegative(weak(shrink), weak(margin_positive())), ahead),
        (1 / size(end), first_norm()), (Lam / margin / size(end), logs),
    )  # fmt: skip


def share_nonnegative() -> Proved:
    """0 <= Lam/g*."""
    return follows(0 <= Lam / margin, (direction.constant_nonnegative(), assume(nt.SOLUTION_NONZERO)))


def guaranteed_curvature() -> tuple[Proved, Proved]:
    """The guaranteed norm replaces the norm in the curvature; what comes of it is nonnegative."""
    near = follows(0 < guaranteed_size(now) + Lam / margin, guaranteed_positive(s), share_nonnegative())
    order = inverse_order(
        follows(guaranteed_size(now) + Lam / margin <= size(now) + Lam / margin, norm_guaranteed(now)), near
    )
    step = kernel.square(e(now))
    more = kernel.sum_order(follows(cost(size) <= cost(guaranteed_size), (step, order)), s, below(t))
    some = follows(0 <= cost(guaranteed_size), (step, weak(kernel.inverse_positive(near))))
    return (
        follows(curvature(size) <= curvature(guaranteed_size), more),
        follows(0 <= curvature(guaranteed_size), kernel.sum_order(some, s, below(t))),
    )


def prove_path() -> Proved:
    """The guaranteed norm replaces the norm in the curvature, then in the bracket, which falls with it."""
    more, some = guaranteed_curvature()
    flat = curvature(guaranteed_size)
    last = follows(0 < size(end), guaranteed_positive(t), norm_guaranteed(end))
    nearer = follows(
        gap_to(end) <= bracket(size(end), e(first), flat, margin, Lam) / size(end),
        direction_since_one(), (kernel.inverse_positive(last), more),
    )  # fmt: skip
    falls = kernel.instantiate(
        log_bounds.FALLS.proved(),
        reals={
            "u": size(end), "x": guaranteed_size(end), "a": e(first), "k": flat, "m": margin, "l": Lam,
        },
    )  # fmt: skip
    falls = discharge(
        falls, margin_positive(), direction.constant_nonnegative(), assume(FIRST_STEP), some,
        guaranteed_positive(t), norm_guaranteed(end),
    )  # fmt: skip
    claim = gap_to(end) <= bound(path_length(end), e(first), flat)
    return without_mass(generalize(from_definitions(follows(claim, nearer, falls)), t, nt.NATURALS))


HYPOTHESES = {
    **without(
        direction.GLOBAL.hypotheses,
        "C",
        "the path has covered the start's gaps",
        "the path has left the start",
    ),
    "W_0 = 0": ORIGIN,
    "e_0 > 0": FIRST_STEP,
}
PATH = Theorem(
    key="global-direction-path",
    title="From zero, the direction is bounded by the step lengths alone",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(gap_to(end) <= bound(path_length(end), e(first), curvature(guaranteed_size))),
    prove=prove_path,
)
