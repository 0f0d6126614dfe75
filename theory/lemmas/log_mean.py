"""The logarithmic mean of two numbers is at most their arithmetic mean.

For a, b > 0: 2 (a - b)^2/(a + b) <= (a - b)(log a - log b). The two sides agree to fourth order at a = b.
"""

from __future__ import annotations

from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume
from theory.proof.tactics import follows, weak
from theory.proof.terms import Term, log, symbol

REFERENCE = "our Theorem B, the entropy step; classical (logarithmic and arithmetic mean)"
a, b = symbol("a"), symbol("b")
x = symbol("x")  # from the smaller of the two to the larger

HYPOTHESES = {"a > 0": 0 < a, "b > 0": 0 < b}
CLAIM = 2 * (a - b) ** 2 / (a + b) <= (a - b) * (log(a) - log(b))


def above(high: Term, low: Term, order: Proved) -> Proved:
    """From low <= high, 2 (high - low)/(high + low) <= log high - log low: in the larger number the slope
    of the difference is (x - low)^2/(x (x + low)^2)."""
    positive = assume(0 < low)
    at_x = follows(0 < x, positive, assume(low <= x))
    both = follows(0 < x + low, positive, at_x)
    slope = 1 / x - 2 / (x + low) + 2 * (x - low) * (1 / (x + low)) ** 2
    square = kernel.square((x - low) / (x + low))
    grows = follows(0 <= slope, (weak(kernel.inverse_positive(at_x)), square), nonzero=[at_x, both])
    body = log(x) - 2 * (x - low) / (x + low)
    moved = kernel.monotone(grows, order, x, body, [at_x, both])
    return follows(2 * (high - low) / (high + low) <= log(high) - log(low), moved)


def prove_log_mean() -> Proved:
    """Multiply by the distance of the two numbers."""
    up = above(a, b, assume(b <= a))
    down = above(b, a, weak(assume(a < b)))
    high = follows(CLAIM, (assume(b <= a), up))
    low = follows(CLAIM, (weak(assume(a < b)), down))
    return kernel.cases(high, low, b, a)


LOG_MEAN = Theorem(
    key="log-mean",
    title="The logarithmic mean is at most the arithmetic mean",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For $a, b > 0$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=CLAIM,
    prove=prove_log_mean,
)
