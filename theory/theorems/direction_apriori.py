"""Theorem A(iii), a priori: normalized GD and Polyak steps converge in direction at the rate log t/t.

On near-acute data, with W_0 = 0 and e_t = eta > 0, for every t >= 1

    1 - cos(W_t, M) <= R/(g* eta t) [ eta + Lam/g* log((g*^2 eta t/R + Lam)/(g* eta + Lam))
                                      + eta R/(2 g*) log(1 + 2 g*^2 eta (t - 1)/(g*^2 eta + 2 R Lam)) ],

and with Polyak steps capped at e_max > 0 the bound of ``global-direction-steady`` at
e_min = min(1/(2 R rho), e_max). Both are corollaries of that theorem.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas.definitions import from_definitions, without_mass
from theory.notation import Lam, R, e, eta, margin, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import follows, min_below, min_positive, product_nonnegative
from theory.proof.terms import Term, as_real, log, substitute
from theory.theorems import direction_path, direction_steady, normalized_gd, polyak
from theory.theorems.direction import gap_to
from theory.theorems.direction_path import end
from theory.theorems.direction_steady import STEADY

REFERENCE = "our Theorem A(iii), a priori; the paper's finite-time rates of convergence in direction"
DATA = without(STEADY.hypotheses, "e_min > 0", "steps are at least e_min", "steps are at most e_max")
STEP_POSITIVE = 0 < eta
HARMONIC = (
    eta * R / (2 * margin) * log(1 + 2 * margin**2 * eta * as_real(t) / (margin**2 * eta + 2 * R * Lam))
)
NGD_BOUND = direction_path.bound(eta * (as_real(t) + 1), eta, HARMONIC)


def prove_ngd() -> Proved:
    """The least and the greatest step are both eta."""
    step, rule = assume(STEP_POSITIVE), specialize(assume(normalized_gd.RULE), t)
    same = [generalize(follows(order, rule), t, nt.NATURALS) for order in (eta <= e(t), e(t) <= eta)]
    steady = kernel.instantiate(STEADY.proved(), reals={"e_min": eta, "e_max": eta})
    bounded = specialize(discharge(steady, step, *same), t)
    return generalize(follows(gap_to(end) <= NGD_BOUND, bounded, nonzero=[step]), t, nt.NATURALS)


NGD = Theorem(
    key="global-direction-apriori",
    title="From zero, normalized gradient descent converges in direction at the rate log t/t",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}. The distance of the directions is $O(\sqrt{\log t/t})$.",
    hypotheses={**DATA, "normalized gradient descent": normalized_gd.RULE, "eta > 0": STEP_POSITIVE},
    claim=nt.always(gap_to(end) <= NGD_BOUND),
    prove=prove_ngd,
    rate=Rate(observed=gap_to(end), bound=NGD_BOUND, sense="upper", from_step=1),
)
CAP_POSITIVE = 0 < polyak.e_max


def polyak_bound() -> Term:
    """The bound at the least Polyak step."""
    return substitute(direction_steady.BOUND, reals={"e_min": ((), polyak.LEAST_STEP)})


def prove_polyak() -> Proved:
    """Polyak steps lie between min(1/(2 R rho), e_max) and e_max."""
    cap, rate = (
        assume(CAP_POSITIVE),
        product_nonnegative(assume(nt.R_POSITIVE), assume(polyak.RATIO_POSITIVE)),
    )
    uncapped = follows(0 < 1 / (2 * R * polyak.rho), kernel.inverse_positive(rate))
    below_cap = min_below(polyak.uncapped(polyak.NOW), polyak.e_max)[1]
    greatest = follows(e(t) <= polyak.e_max, specialize(assume(polyak.RULE), t), below_cap)
    steady = kernel.instantiate(STEADY.proved(), reals={"e_min": polyak.LEAST_STEP})
    bounded = discharge(
        steady, min_positive(uncapped, cap), polyak.STEP_LOWER.proved(), generalize(greatest, t, nt.NATURALS)
    )
    return without_mass(from_definitions(bounded))


POLYAK = Theorem(
    key="global-direction-polyak",
    title="From zero, Polyak steps converge in direction at the rate log t/t",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}. The distance of the directions is $O(\sqrt{\log t/t})$.",
    hypotheses={
        **DATA,
        "Polyak's rule": polyak.RULE,
        "e_max > 0": CAP_POSITIVE,
        "rho bounds the ratio of slopes": polyak.SLOPE_RATIO,
        "rho > 0": polyak.RATIO_POSITIVE,
    },
    claim=nt.always(gap_to(end) <= polyak_bound()),
    prove=prove_polyak,
    rate=Rate(
        observed=gap_to(end), bound=polyak_bound(), sense="upper",
        from_step=1,
    ),
)  # fmt: skip
