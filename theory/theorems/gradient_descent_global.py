"""Plain gradient descent on near-acute data, from W_0 = 0: exponentially slower, with nothing left to assume.

Gradient descent's steps are at most e_max = eta R n a_max/4, so its direction settles at an explicit path
length (``direction-settles``), which it reaches (``gd-path-lower``). From then on its path grows at most like
log t, and what normalized gradient descent gains in k steps takes it at least
(exp(q eta' k) - 1)/(exp(x) - 1) steps, with q = theta g*^2/R and x as in ``gradient_descent_upper``.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas.definitions import from_definitions, without_mass
from theory.lemmas.gradient_size import BOUNDED, SAMPLES_COUNTED, gradient_cap
from theory.notation import e, eta, t
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import follows, weak
from theory.proof.terms import Formula, number, substitute
from theory.theorems import (
    direction_path,
    direction_settles,
    gradient_descent_upper,
    sparsification,
)
from theory.theorems.gradient_descent import RULE, prove_steps_nonnegative, the_step
from theory.theorems.gradient_descent_upper import SLOWER, UPPER_FROM_DIRECTION, t1

REFERENCE = gradient_descent_upper.REFERENCE
STEP_POSITIVE = 0 < eta
LARGEST_STEP = eta * gradient_cap()
SHIFT = {"t1": t1 + 1}


def with_largest_step(formula: Formula) -> Formula:
    """A formula about e_max, at gradient descent's largest step."""
    return substitute(formula, reals={"e_max": ((), LARGEST_STEP)})


def settled() -> Proved:
    """The direction settles: gradient descent's steps are bounded, and the first is positive."""
    claim = kernel.instantiate(direction_settles.SETTLES.proved(), reals={"e_max": LARGEST_STEP})
    step = assume(STEP_POSITIVE)
    bounded = nt.from_all_times(BOUNDED.proved(), t)
    bounded = follows(e(t) <= LARGEST_STEP, the_step(t), (weak(step), bounded))
    first = follows(
        direction_path.FIRST_STEP, the_step(number(0)),
        (step, specialize(assume(nt.DESCENT_NONZERO), number(0))),
    )  # fmt: skip
    return discharge(claim, generalize(bounded, t, nt.NATURALS), first, prove_steps_nonnegative())


def closed(claim: Proved) -> Proved:
    """Without the hypotheses that the definitions give."""
    claim = discharge(claim, weak(assume(STEP_POSITIVE)))
    return without_mass(from_definitions(claim))


def prove_upper() -> Proved:
    """The upper bound from a settled direction, at t1 + 1."""
    return closed(discharge(kernel.instantiate(UPPER_FROM_DIRECTION.proved(), indices=SHIFT), settled()))


def prove_slower() -> Proved:
    """The comparison, at t1 + 1."""
    gaps = kernel.instantiate(gradient_descent_upper.separated_for_good(), indices=SHIFT)
    claim = kernel.instantiate(SLOWER.proved(), indices=SHIFT)
    return closed(discharge(claim, discharge(gaps, settled())))


def shifted(formula: Formula | None) -> Formula:
    """A formula about t1, at t1 + 1."""
    assert formula is not None
    return substitute(formula, indices=SHIFT)


HYPOTHESES = (
    without(direction_settles.HYPOTHESES, "steps are nonnegative", "steps are at most e_max", "e_0 > 0")
    | {
        "gradient descent": RULE,
        "eta > 0": STEP_POSITIVE,
        "n counts the sequences": SAMPLES_COUNTED,
        "theta > 0": gradient_descent_upper.THETA_POSITIVE,
        "theta <= 1": sparsification.THETA_AT_MOST_ONE,
        "the path is long enough": with_largest_step(direction_settles.SETTLED),
    }
)  # fmt: skip

UPPER = Theorem(
    key="gd-path-upper-near-acute",
    title="On near-acute data the path length of gradient descent grows at most like log t",
    kind="corollary",
    reference=REFERENCE,
    statement=r"With $t_1$ such that the path is long enough at the step $t_1 + 1$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=shifted(UPPER_FROM_DIRECTION.claim),
    prove=prove_upper,
)
SLOWER_GLOBAL = Theorem(
    key="gd-exponentially-slower-near-acute",
    title="On near-acute data gradient descent is exponentially slower than normalized gradient descent",
    kind="corollary",
    reference=REFERENCE,
    statement=r"With $t_1$ such that the path is long enough at the step $t_1 + 1$; if gradient descent has "
    r"then covered in $t$ more steps what normalized gradient descent covers in its first $k$: {claim}.",
    hypotheses=HYPOTHESES
    | {
        "the other run is normalized gradient descent": nt.always(
            nt.eq(gradient_descent_upper.e_ngd(t), gradient_descent_upper.eta_ngd)
        ),
        "gradient descent has covered the other's path": shifted(gradient_descent_upper.CAUGHT_UP),
    },
    claim=shifted(SLOWER.claim),
    prove=prove_slower,
)
PAGES = (UPPER, SLOWER_GLOBAL)
