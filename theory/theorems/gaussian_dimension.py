"""Gaussian data are nearly acute, part 2: from one dimension to larger ones, at the same relative bounds.

n (B - e0)/(sigma^2 d) is affine in d (B, e0 and the bounds as on the page before). So the margin outweighs
the pairs between two dimensions at which it does, and beyond one if moreover the slope is not negative:

    (n q + (n - 1) h) p <= (1 - w) k,   n (1 + y) u + (n - 1) h p <= (1 - w) k,   k = (1 - a + u)/m - u.
"""

from __future__ import annotations

from functools import partial

from theory.lemmas.near_acute_blocks import count, tokens
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume
from theory.proof.tactics import follows, product_nonnegative, weak
from theory.proof.terms import Formula, Term, substitute, symbol
from theory.theorems.gaussian_data import (
    BOUND,
    REFERENCE,
    a,
    crowding,
    d,
    h,
    interference,
    p,
    q,
    sigma,
    u,
    w,
    y,
)

low, high = symbol("d1"), symbol("d2")
CONDITIONS = {"across": interference < BOUND, "within": crowding < BOUND}
_GROWTH = (1 - w) * ((1 - a + u) / tokens - u)
SLOPES = {
    "across": (count * q + (count - 1) * h) * p <= _GROWTH,
    "within": count * (1 + y) * u + (count - 1) * h * p <= _GROWTH,
}
_SIGNS = {"sigma is not 0": 0 < sigma**2, "n > 0": 0 < count}
BETWEEN_HYPOTHESES = {**_SIGNS, "d1 > 0": 0 < low, "d1 <= d": low <= d, "d < d2": d < high}
BEYOND_HYPOTHESES = {**_SIGNS, "d1 > 0": 0 < low, "d1 <= d": low <= d}


def in_dimension(dimension: Term, condition: Formula) -> Formula:
    """A condition in another dimension."""
    return substitute(condition, reals={"d": ((), dimension)})


def spare(condition: Formula, dimension: Term) -> Term:
    """n (B - e0)/(sigma^2 d), which is affine in d."""
    small, large = in_dimension(dimension, condition)[1:]
    return count * (large - small) / (sigma**2 * dimension)


def has_spare(condition: Formula, dimension: Term, positive: Proved) -> Proved:
    """The condition gives a positive spare."""
    factor = product_nonnegative(assume(_SIGNS["n > 0"]), kernel.inverse_positive(positive))
    claim = 0 < spare(condition, dimension)
    return follows(claim, (factor, assume(in_dimension(dimension, condition))))


def scale_positive(dimension: Proved) -> Proved:
    """0 < sigma^2 d."""
    return product_nonnegative(assume(_SIGNS["sigma is not 0"]), dimension)


def from_spare(condition: Formula, positive: Proved) -> Proved:
    """A positive spare gives the condition."""
    many, dimension = assume(_SIGNS["n > 0"]), scale_positive(dimension_positive())
    factor = product_nonnegative(dimension, kernel.inverse_positive(many))
    return follows(condition, (factor, positive), nonzero=[many, dimension])


def dimension_positive() -> Proved:
    """0 < d."""
    return follows(0 < d, assume(BEYOND_HYPOTHESES["d1 > 0"]), assume(BEYOND_HYPOTHESES["d1 <= d"]))


def prove_between(name: str) -> Proved:
    """(d2 - d1) spare(d) = (d2 - d) spare(d1) + (d - d1) spare(d2)."""
    condition, start, lower, upper = CONDITIONS[name], *map(assume, list(BETWEEN_HYPOTHESES.values())[2:])
    at_low, at_d = scale_positive(start), scale_positive(dimension_positive())
    end = follows(0 < high, dimension_positive(), upper)
    at_high = scale_positive(end)
    length = follows(0 < high - low, lower, upper)
    mixed = follows(
        0 < (high - low) * spare(condition, d),
        (follows(0 < high - d, upper), has_spare(condition, low, at_low)),
        (follows(0 <= d - low, lower), weak(has_spare(condition, high, at_high))),
        nonzero=[at_low, at_d, at_high],
    )
    positive = follows(0 < spare(condition, d), (kernel.inverse_positive(length), mixed), nonzero=[length])
    return from_spare(condition, positive)


def prove_beyond(name: str) -> Proved:
    """spare(d) = spare(d1) + (d - d1) sigma^2 slope."""
    condition, start, lower = CONDITIONS[name], *map(assume, list(BEYOND_HYPOTHESES.values())[2:])
    at_low, at_d = scale_positive(start), scale_positive(dimension_positive())
    way = product_nonnegative(weak(assume(_SIGNS["sigma is not 0"])), follows(0 <= d - low, lower))
    positive = follows(
        0 < spare(condition, d),
        has_spare(condition, low, at_low),
        (way, assume(SLOPES[name])),
        nonzero=[at_low, at_d, assume(_SIGNS["n > 0"])],
    )
    return from_spare(condition, positive)


_BETWEEN, _BEYOND = "between two dimensions at which it does", "beyond a dimension at which it does"


def _page(kind: str, name: str) -> Theorem:
    between = kind == "between"
    start = {"in dimension d1": in_dimension(low, CONDITIONS[name])}
    end = {"in dimension d2": in_dimension(high, CONDITIONS[name])} if between else {"growth": SLOPES[name]}
    return Theorem(
        key=f"gaussian-{kind}-{name}",
        title=f"The margin outweighs the pairs {name} sequences {_BETWEEN if between else _BEYOND}",
        kind="lemma",
        reference=REFERENCE,
        statement=r"{claim}.",
        hypotheses={**(BETWEEN_HYPOTHESES if between else BEYOND_HYPOTHESES), **start, **end},
        claim=CONDITIONS[name],
        prove=partial(prove_between if between else prove_beyond, name),
    )


BETWEEN_ACROSS, BETWEEN_WITHIN = _page("between", "across"), _page("between", "within")
BEYOND_ACROSS, BEYOND_WITHIN = _page("beyond", "across"), _page("beyond", "within")
PAGES = (BETWEEN_ACROSS, BETWEEN_WITHIN, BEYOND_ACROSS, BEYOND_WITHIN)
