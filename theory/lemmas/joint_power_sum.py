"""Sums of powers (s + 1)^(-a), between integrals: what steps eta (t + 1)^(-a) add up to.

With b = 1 - a, for 0 <= a and 0 < b, and for q = 2 a - 1 > 0, 0 < t0:

    ((t0 + t + 1)^b - (t0 + 1)^b)/b <= sum_(s<t) (t0 + s + 1)^(-a) <= ((t0 + t)^b - t0^b)/b,
    sum_(s<t) (t0 + s + 1)^(-2a) <= t0^(-q)/q.

At a = 2/3 the path of length 3 eta t^(1/3) of the paper's joint training, and a finite sum of squares. A
power x^p is exp(p log(x)). One step: with r = log((x + 1)/x) both are statements on exp, as
exp(-r) = x/(x + 1).
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas.joint_layer import REFERENCE, t0
from theory.notation import s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, generalize
from theory.proof.tactics import (
    exp_monotone,
    exp_tangent,
    follows,
    log_monotone,
    one_positive,
    product_nonnegative,
    restate,
    telescoped,
    weak,
    zero,
)
from theory.proof.terms import Term, as_real, below, exp, log, symbol, total

a = symbol("decay")  # the exponent of the schedule
b, q = 1 - a, 2 * a - 1
NONNEGATIVE, BELOW_ONE, ABOVE_HALF = 0 <= a, a < 1, 1 < 2 * a
STARTED = 0 < as_real(t0)
y, r, z = symbol("y"), symbol("r"), symbol("z")


def power(at: Term, exponent: Term) -> Term:
    """x^p, as exp(p log(x))."""
    return exp(exponent * log(at))


def shorter() -> Proved:
    """0 < b."""
    return follows(0 < b, assume(BELOW_ONE))


def excess_bounded() -> Proved:
    """exp(b r) - 1 <= b (exp(r) - 1) for r >= 0: in r, b exp(b y) <= b exp(y)."""
    inside = assume(zero() <= y)
    order = exp_monotone(follows(b * y <= y, (assume(NONNEGATIVE), inside)))
    sign = follows(0 <= b * exp(y) - b * exp(b * y), (weak(shorter()), order))
    body = b * exp(y) - exp(b * y)
    moved = kernel.monotone(sign, assume(zero() <= r), y, body)
    return follows(exp(b * r) - 1 <= b * (exp(r) - 1), moved)


def deficit_bounded() -> Proved:
    """b (1 - exp(-r)) <= 1 - exp(-b r) for r >= 0: in r, b exp(-y) <= b exp(-b y)."""
    inside = assume(zero() <= y)
    order = exp_monotone(follows(-y <= -b * y, (assume(NONNEGATIVE), inside)))
    sign = follows(0 <= b * exp(-b * y) - b * exp(-y), (weak(shorter()), order))
    body = b * exp(-y) - exp(-b * y)
    moved = kernel.monotone(sign, assume(zero() <= r), y, body)
    return follows(b * (1 - exp(-r)) <= 1 - exp(-b * r), moved)


def growth(low: Proved) -> tuple[Proved, Proved, Proved]:
    """For 0 < x: 0 <= r, exp(log(x + 1)) = x + 1 and exp(log(x)) = x, r = log(x + 1) - log(x)."""
    x = low.conclusion[2]
    high = follows(0 < x + 1, low, one_positive())
    order = log_monotone(follows(x <= x + 1, one_positive()), low)
    return restate(0 <= log(x + 1) - log(x), order), kernel.exp_log(high), kernel.exp_log(low)


def step_lower(low: Proved) -> Proved:
    """(x + 1)^b - x^b <= b x^(-a)."""
    x = low.conclusion[2]
    longer, top, bottom = growth(low)
    part = kernel.discharge(kernel.instantiate(excess_bounded(), reals={"r": log(x + 1) - log(x)}), longer)
    scale = kernel.exp_positive(b * log(x))
    return follows(
        power(x + 1, b) - power(x, b) <= b * power(x, -a),
        (scale, part), (b * power(x, -a), top), (b * power(x, -a), bottom),
    )  # fmt: skip


def step_upper(low: Proved) -> Proved:
    """b (x + 1)^(-a) <= (x + 1)^b - x^b."""
    x = low.conclusion[2]
    longer, top, bottom = growth(low)
    part = kernel.discharge(kernel.instantiate(deficit_bounded(), reals={"r": log(x + 1) - log(x)}), longer)
    scale = kernel.exp_positive(b * log(x + 1))
    return follows(
        b * power(x + 1, -a) <= power(x + 1, b) - power(x, b),
        (scale, part), (b * power(x + 1, -a), top), (b * power(x + 1, -a), bottom),
    )  # fmt: skip


def step_square(low: Proved) -> Proved:
    """q (x + 1)^(-2a) <= x^(-q) - (x + 1)^(-q): exp(q r) - 1 >= q r >= q (1 - exp(-r)) = q/(x + 1)."""
    x = low.conclusion[2]
    _, top, bottom = growth(low)
    ratio = log(x + 1) - log(x)
    positive = weak(follows(0 < q, assume(ABOVE_HALF)))
    scale = kernel.exp_positive(-q * log(x + 1))
    return follows(
        q * power(x + 1, -2 * a) <= power(x, -q) - power(x + 1, -q),
        (scale, exp_tangent(q * ratio)),
        (product_nonnegative(positive, weak(scale)), exp_tangent(-ratio)),
        (q * power(x + 1, -2 * a), top), (q * power(x + 1, -2 * a), bottom),
    )  # fmt: skip


# --- sums --------------------------------------------------------------------------------------------------


def terms(exponent: Term) -> Term:
    """The sum of (t0 + s + 1)^p over s < t."""
    return total(s, below(t), power(as_real(t0 + s) + 1, exponent))


LOWER_BOUND = (power(as_real(t0 + t) + 1, b) - power(as_real(t0) + 1, b)) / b
UPPER_BOUND = (power(as_real(t0 + t), b) - power(as_real(t0), b)) / b
SQUARE_BOUND = power(as_real(t0), -q) / q


def next_positive() -> Proved:
    """0 < t0 + s + 1."""
    return follows(0 < as_real(t0 + s) + 1, kernel.natural(t0 + s), one_positive())


def later_positive() -> Proved:
    """0 < t0 + s, for 0 < t0."""
    return follows(0 < as_real(t0 + s), assume(STARTED), kernel.natural(s))


def prove_lower() -> Proved:
    """Each term is at least the integral of x^(-a) over the unit after it."""
    ends = telescoped(lambda k: power(as_real(t0 + k) + 1, b), t)
    inverse = weak(kernel.inverse_positive(shorter()))
    summed = kernel.sum_order(step_lower(next_positive()), s, below(t))
    claim = LOWER_BOUND <= terms(-a)
    return generalize(follows(claim, (inverse, summed), (1 / b, ends), nonzero=[shorter()]), t, nt.NATURALS)


def prove_upper() -> Proved:
    """Each term is at most the integral over the unit before it."""
    ends = telescoped(lambda k: power(as_real(t0 + k), b), t)
    inverse = weak(kernel.inverse_positive(shorter()))
    summed = kernel.sum_order(step_upper(later_positive()), s, below(t))
    claim = terms(-a) <= UPPER_BOUND
    return generalize(follows(claim, (inverse, summed), (1 / b, ends), nonzero=[shorter()]), t, nt.NATURALS)


def prove_squares() -> Proved:
    """Likewise for x^(-2a), whose integral converges."""
    positive = follows(0 < q, assume(ABOVE_HALF))
    inverse = weak(kernel.inverse_positive(positive))
    ends = telescoped(lambda k: power(as_real(t0 + k), -q), t)
    summed = kernel.sum_order(step_square(later_positive()), s, below(t))
    last = product_nonnegative(inverse, weak(kernel.exp_positive(-q * log(as_real(t0 + t)))))
    claim = terms(-2 * a) <= SQUARE_BOUND
    claim_ = follows(claim, (inverse, summed), (1 / q, ends), last, nonzero=[positive])
    return generalize(claim_, t, nt.NATURALS)


LOWER = Theorem(
    key="power-sum-lower",
    title="A sum of powers is at least its integral",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={"a >= 0": NONNEGATIVE, "a < 1": BELOW_ONE},
    claim=nt.always(LOWER_BOUND <= terms(-a)),
    prove=prove_lower,
)
UPPER = Theorem(
    key="power-sum-upper",
    title="A sum of powers is at most its integral, one step before",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={"a >= 0": NONNEGATIVE, "a < 1": BELOW_ONE, "t0 > 0": STARTED},
    claim=nt.always(terms(-a) <= UPPER_BOUND),
    prove=prove_upper,
)
SQUARES = Theorem(
    key="power-sum-squares",
    title="The squares of steps that decay faster than t^(-1/2) have a finite sum",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses={"a > 1/2": ABOVE_HALF, "t0 > 0": STARTED},
    claim=nt.always(terms(-2 * a) <= SQUARE_BOUND),
    prove=prove_squares,
)
PAGES = (LOWER, UPPER, SQUARES)
