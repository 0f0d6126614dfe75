"""Gaussian data are nearly acute, part 2: from one dimension to larger ones, at the same relative bounds.

n (B - e0)/v is affine in v = sigma^2 d (B, e0 and the bounds as in part 1, with any numbers r0 and c0 in the
place of s^2 + 2 g and s^2 - 2 g). So the margin outweighs the pairs between two dimensions in which it does,
and beyond one if moreover the slope is not negative:

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
    REFERENCE,
    a,
    h,
    margin_and_pairs,
    p,
    products,
    q,
    u,
    v,
    w,
    y,
)

low, high = symbol("v1"), symbol("v2")
r0, c0 = symbol("r0"), symbol("c0")  # for s^2 + 2 g and s^2 - 2 g: any two numbers will do
_B, _across, _within = margin_and_pairs(*products(r0, c0))
CONDITIONS = {"across": _across < _B, "within": _within < _B}
_GROWTH = (1 - w) * ((1 - a + u) / tokens - u)
SLOPES = {
    "across": (count * q + (count - 1) * h) * p <= _GROWTH,
    "within": count * (1 + y) * u + (count - 1) * h * p <= _GROWTH,
}
N_POSITIVE = 0 < count
BEYOND_HYPOTHESES = {"n > 0": N_POSITIVE, "v1 > 0": 0 < low, "v1 <= v": low <= v}
BETWEEN_HYPOTHESES = {**BEYOND_HYPOTHESES, "v < v2": v < high}


def in_dimension(length: Term, condition: Formula) -> Formula:
    """A condition in a dimension in which the noise has another mean squared length."""
    return substitute(condition, reals={"v": ((), length)})


def spare(condition: Formula, length: Term) -> Term:
    """n (B - e0)/v, which is affine in v."""
    small, large = in_dimension(length, condition)[1:]
    return count * (large - small) / length


def has_spare(condition: Formula, length: Term, positive: Proved) -> Proved:
    """The condition gives a positive spare."""
    factor = product_nonnegative(assume(N_POSITIVE), kernel.inverse_positive(positive))
    claim = 0 < spare(condition, length)
    return follows(claim, (factor, assume(in_dimension(length, condition))))


def from_spare(condition: Formula, positive: Proved) -> Proved:
    """A positive spare gives the condition."""
    many, length = assume(N_POSITIVE), length_positive()
    factor = product_nonnegative(length, kernel.inverse_positive(many))
    return follows(condition, (factor, positive), nonzero=[many, length])


def length_positive() -> Proved:
    """0 < v."""
    return follows(0 < v, assume(BEYOND_HYPOTHESES["v1 > 0"]), assume(BEYOND_HYPOTHESES["v1 <= v"]))


def prove_between(name: str) -> Proved:
    """(v2 - v1) spare(v) = (v2 - v) spare(v1) + (v - v1) spare(v2)."""
    condition, start, lower, upper = CONDITIONS[name], *map(assume, list(BETWEEN_HYPOTHESES.values())[1:])
    here, end = length_positive(), follows(0 < high, length_positive(), upper)
    way = follows(0 < high - low, lower, upper)
    mixed = follows(
        0 < (high - low) * spare(condition, v),
        (follows(0 < high - v, upper), has_spare(condition, low, start)),
        (follows(0 <= v - low, lower), weak(has_spare(condition, high, end))),
        nonzero=[start, here, end],
    )
    positive = follows(0 < spare(condition, v), (kernel.inverse_positive(way), mixed), nonzero=[way])
    return from_spare(condition, positive)


def prove_beyond(name: str) -> Proved:
    """spare(v) = spare(v1) + (v - v1) slope."""
    condition, start, lower = CONDITIONS[name], *map(assume, list(BEYOND_HYPOTHESES.values())[1:])
    positive = follows(
        0 < spare(condition, v),
        has_spare(condition, low, start),
        (follows(0 <= v - low, lower), assume(SLOPES[name])),
        nonzero=[start, length_positive(), assume(N_POSITIVE)],
    )
    return from_spare(condition, positive)


_BETWEEN, _BEYOND = "between two dimensions in which it does", "beyond a dimension in which it does"


def _page(kind: str, name: str) -> Theorem:
    between = kind == "between"
    start = {"in dimension 1": in_dimension(low, CONDITIONS[name])}
    end = {"in dimension 2": in_dimension(high, CONDITIONS[name])} if between else {"growth": SLOPES[name]}
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
