"""Theorem C up to the stability limit: near the balanced point every step below 2 g*/lam converges.

lam is the largest eigenvalue of the constraints' covariance sum q_k/Phi B_k B_k', B_k = A_k - g*^2 M, under
the balanced weights; R_B^2 in Theorem B is the largest ||B_k||^2, for many constraints far larger. If at
some t0 the residual has settled (as in Theorem B) within r_max, and with Lam = c0 exp(R_B r_max - g* v_t0)
+ 2 R_B (r_max - ||r*||)

    L_b = (1 + exp(Lam))/2 lam    and    e_max L_b < 2 g*,

then Theorems B and C hold from t0 on with this L_b in place of R_B^2: the residual stays within r_max and
converges linearly to r*, and the exact constant is the same. Lam is as small as attention has settled and
r_t0 is near r*, so every step below the stability limit 2 g*/lam is covered.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import residual_variance as rv
from theory.lemmas.residual_step import disorder, r_star
from theory.notation import layer, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, induction, specialize
from theory.proof.tactics import exp_monotone, follows, one_positive, product_nonnegative
from theory.proof.terms import Formula, Fraction, exp, inner, norm, substitute
from theory.theorems import exact_constant as exact
from theory.theorems import limit as lim
from theory.theorems import residual as base
from theory.theorems import sharp_residual as sharp
from theory.theorems.limit import NOW, Lam
from theory.theorems.sharp_residual import potential, r_max, spread

REFERENCE = "our Theorem C, the local stability limit"
half = Fraction(1, 2)
lam = rv.lam
L_LOCAL = half * (1 + exp(Lam)) * lam
SPREAD_BOUNDED = nt.at_all_times(rv.SPREAD_BOUNDED)
SPREAD_POSITIVE = 0 < lam
room = (r_max - norm(r_star)) ** 2


def local(node: Any) -> Any:
    """A formula or term with the local bound on the tilt."""
    return substitute(node, reals={"L_b": ((), L_LOCAL)})


def localized(claim: Proved) -> Proved:
    """A claim with the local bound on the tilt."""
    return kernel.instantiate(claim, reals={"L_b": L_LOCAL})


def smooth(close: Proved) -> Proved:
    """||b||^2 <= L_b J at the step t0 + t, from the potential there: the logarithms' range is at most Lam."""
    static = kernel.instantiate(base.at_step(rv.TILT.proved()), reals={"o": (("t",), spread(t))})
    static = discharge(sharp.with_shifts(static), specialize(assume(SPREAD_BOUNDED), t))
    now = lim.at_now(static)
    growth = exp_monotone(lim.range_bounded(close))
    weight = product_nonnegative(assume(SPREAD_POSITIVE), lim.at_now(base.disorder_nonnegative()))
    b = inner(*[rv.rs.tilt(layer(NOW))] * 2)
    return follows(b <= L_LOCAL * disorder(layer(NOW)), now, (weight, growth))


def prove_distance() -> Proved:
    """By induction: the potential's bound makes the tilt small, and a small tilt makes the potential fall."""
    close = assume(potential(NOW) <= room)
    tilt = localized(smooth(close))
    falls = discharge(sharp.potential_falls(), sharp.residual_bounded(assume(potential(t) <= room)))
    grown = follows(potential(t + 1) <= room, sharp.with_shifts(falls), assume(potential(t) <= room))
    step = discharge(localized(lim.at_now(grown)), tilt)
    return discharge(induction(assume(local(sharp.SETTLED)), step, t), scale_nonnegative())


def scale_nonnegative() -> Proved:
    """0 <= L_b."""
    positive = assume(SPREAD_POSITIVE)
    return follows(
        0 <= L_LOCAL, (product_nonnegative(one_positive(), kernel.exp_positive(Lam)), positive), positive
    )


def from_there(claim: Proved) -> Proved:
    """A claim for any bound on the tilt, for the local one."""
    smooth_now = localized(smooth(assume(potential(NOW) <= room)))
    everywhere = generalize(discharge(smooth_now, specialize(DISTANCE.proved(), t)), t, nt.NATURALS)
    return discharge(localized(claim), everywhere, scale_nonnegative())


def hypotheses(general: dict[str, Formula]) -> dict[str, Formula]:
    """The hypotheses of a page for any bound on the tilt, for the local one."""
    kept = {name: local(f) for name, f in general.items() if name not in ("L_b >= 0", "L_b bounds the tilt")}
    return kept | {
        "c0 >= 0": sharp.C0_NONNEGATIVE,
        "lam bounds the spread": SPREAD_BOUNDED,
        "lam > 0": SPREAD_POSITIVE,
    }


DISTANCE = Theorem(
    key="local-distance",
    title="Near the balanced point the residual stays near it, for every step below the stability limit",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(sharp.HYPOTHESES),
    claim=local(nt.always(potential(NOW) <= room)),
    prove=prove_distance,
)
LINEAR = Theorem(
    key="local-converges",
    title="Near the balanced point the residual converges to it, for every step below the stability limit",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(lim.LINEAR_HYPOTHESES),
    claim=local(lim.LINEAR.claim),
    prove=lambda: from_there(lim.LINEAR.proved()),
)
UPPER = Theorem(
    key="local-exact-constant-upper",
    title="The exact constant from above, for every step below the stability limit",
    kind="theorem",
    reference=REFERENCE,
    statement=exact.EXACT_UPPER.statement,
    hypotheses=hypotheses(dict(exact.EXACT_UPPER.hypotheses)),
    claim=local(exact.EXACT_UPPER.claim),
    prove=lambda: from_there(exact.EXACT_UPPER.proved()),
)
LOWER = Theorem(
    key="local-exact-constant-lower",
    title="The exact constant from below, for every step below the stability limit",
    kind="theorem",
    reference=REFERENCE,
    statement=exact.EXACT_LOWER.statement,
    hypotheses=hypotheses(dict(exact.EXACT_LOWER.hypotheses)),
    claim=local(exact.EXACT_LOWER.claim),
    prove=lambda: from_there(exact.EXACT_LOWER.proved()),
)
PAGES = (DISTANCE, LINEAR, UPPER, LOWER)
