"""Sums and claims over pairs of numbered things: the diagonal, and every other pair twice.

With i, j below n:  sum_i sum_j f(i,j) = sum_i f(i,i) + sum_i sum_(j<i) (f(i,j) + f(j,i)), hence two sums may
change places, and there are n (n - 1)/2 pairs j < i. What is nonnegative on the diagonal and on both sides of
it is so for every pair; what is nonnegative for every i < n is so for every j < i.
"""

from __future__ import annotations

from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, combine, generalize, specialize, sum_order, term_of_sum
from theory.proof.tactics import equation, everywhere, follows, max_above, max_of, weak, zero
from theory.proof.terms import (
    NATURALS,
    Domain,
    Formula,
    Index,
    Term,
    as_real,
    below,
    eq,
    forall,
    index,
    maximum,
    member,
    real,
    symbol,
    total,
)

REFERENCE = "counting pairs"
n, i, j = index("n"), index("i"), index("j")
ALL, LOWER = below(n), below(i)
in_i, in_j, in_lower = assume(member(i, ALL)), assume(member(j, ALL)), assume(member(j, LOWER))


def f(i: Index, j: Index) -> Term:
    """Any family over pairs."""
    return symbol("f", i, j)


def h(i: Index) -> Term:
    """Any family over the numbers below n."""
    return symbol("h", i)


def double(body: Term, inner: Domain) -> Term:
    """The sum over i < n of the sum over j in ``inner``."""
    return total(i, ALL, total(j, inner, body))


def double_sum_is(size: Index) -> Formula:
    """The identity, for pairs below ``size``."""
    square, lower = below(size), total(j, below(i), f(i, j) + f(j, i))
    return eq(
        total(i, square, total(j, square, f(i, j))), total(i, square, f(i, i)) + total(i, square, lower)
    )


def prove_double_sum() -> Proved:
    """By induction on n: row n and column n are added on both sides."""
    step = follows(double_sum_is(n + 1), assume(double_sum_is(n)))
    return kernel.induction(equation(double_sum_is(Index(("ix", (), 0)))), step, n)


SWAP_CLAIM = eq(double(f(i, j), ALL), double(f(j, i), ALL))


def prove_swap() -> Proved:
    """The identity's right side does not change when f(i,j) and f(j,i) change places."""
    swapped = kernel.instantiate(DOUBLE_SUM.proved(), reals={"f": (("i", "j"), f(j, i))})
    return follows(SWAP_CLAIM, specialize(DOUBLE_SUM.proved(), n), specialize(swapped, n))


COUNT_CLAIM = eq(double(real(1), LOWER), as_real(n) * (as_real(n) - 1) / 2)


def prove_count() -> Proved:
    """The identity for f = 1."""
    ones = kernel.instantiate(DOUBLE_SUM.proved(), reals={"f": (("i", "j"), real(1))})
    return follows(COUNT_CLAIM, specialize(ones, n))


def missing(body: Term) -> Term:
    """How far a real is below 0."""
    return maximum(zero(), -body)


def nothing_missing(claim: Proved) -> Proved:
    """From 0 <= a, max(0, -a) <= 0."""
    a = claim.conclusion[2]
    order = combine(-a <= zero(), [(1, claim)])
    swapped = kernel.max_commutes(zero(), -a)
    return combine(missing(a) <= 0, [(1, swapped), (1, max_of(order))])


def none_missing(absent: Proved, body: Term) -> Proved:
    """From max(0, -a) <= 0, 0 <= a."""
    return follows(0 <= body, absent, max_above(zero(), -body)[1])


DIAGONAL = forall(i, ALL, 0 <= f(i, i))
BELOW_DIAGONAL = forall(i, ALL, forall(j, LOWER, 0 <= f(i, j)))
ABOVE_DIAGONAL = forall(i, ALL, forall(j, LOWER, 0 <= f(j, i)))
EVERY_PAIR_CLAIM = forall(i, ALL, forall(j, ALL, 0 <= f(i, j)))


def prove_every_pair() -> Proved:
    """The sum of max(0, -f) is 0 by the identity, its terms are nonnegative, so every one of them is 0."""
    lack = missing(f(i, j))
    identity = kernel.instantiate(DOUBLE_SUM.proved(), reals={"f": (("i", "j"), lack)})
    diagonal = nothing_missing(everywhere(assume(DIAGONAL), (i, in_i)))
    lower = nothing_missing(everywhere(assume(BELOW_DIAGONAL), (i, in_i), (j, in_lower)))
    upper = nothing_missing(everywhere(assume(ABOVE_DIAGONAL), (i, in_i), (j, in_lower)))
    sides = [sum_order(sum_order(part, j, LOWER), i, ALL) for part in (lower, upper)]
    everything = follows(double(lack, ALL) <= 0, specialize(identity, n), sum_order(diagonal, i, ALL), *sides)
    positive = max_above(zero(), -f(i, j))[0]
    row = follows(0 <= total(j, ALL, lack), sum_order(positive, j, ALL))
    each = follows(lack <= 0, term_of_sum(positive, j, ALL, in_j), term_of_sum(row, i, ALL, in_i), everything)
    return generalize(generalize(none_missing(each, f(i, j)), j, ALL), i, ALL)


EVERY_ONE = forall(i, ALL, 0 <= h(i))
EVERY_LOWER_CLAIM = forall(i, ALL, forall(j, LOWER, 0 <= h(j)))


def prove_every_lower() -> Proved:
    """The sum over all pairs of max(0, -h(j)) is n times 0 and no less than that over the pairs j < i."""
    lack = missing(h(j))
    identity = kernel.instantiate(DOUBLE_SUM.proved(), reals={"f": (("i", "j"), lack)})
    none = sum_order(nothing_missing(everywhere(assume(EVERY_ONE), (j, in_j))), j, ALL)
    positive_j, positive_i = max_above(zero(), -h(j))[0], max_above(zero(), -h(i))[0]
    everything = follows(
        double(lack, LOWER) <= 0,
        specialize(identity, n),
        (kernel.natural(n), none),
        sum_order(positive_i, i, ALL),
        sum_order(sum_order(positive_i, j, LOWER), i, ALL),
    )
    row = follows(0 <= total(j, LOWER, lack), sum_order(positive_j, j, LOWER))
    each = follows(
        lack <= 0, term_of_sum(positive_j, j, LOWER, in_lower), term_of_sum(row, i, ALL, in_i), everything
    )
    return generalize(generalize(none_missing(each, h(j)), j, LOWER), i, ALL)


def every_pair(
    body: Term, size: Index, diagonal: Proved, lower: Proved, upper: Proved, a: Index, b: Index
) -> Proved:
    """0 <= body for all a, b < size, from the proofs at b = a and, for b < a, of body and of body swapped.

    The proofs may assume a < size (and b < a); their other hypotheses must not speak of a and b.
    """
    inside, under = below(size), below(a)
    parts = [
        generalize(diagonal, a, inside),
        *(generalize(generalize(part, b, under), a, inside) for part in (lower, upper)),
    ]
    family = ((a[1][0], b[1][0]), body)
    moved = kernel.instantiate(EVERY_PAIR.proved(), reals={"f": family}, indices={"n": size})
    return kernel.discharge(moved, *parts)


def every_lower(body: Term, size: Index, claim: Proved, a: Index) -> Proved:
    """For all a < size, for all b < a: 0 <= body at b; from the proof of 0 <= body for a < size."""
    family = ((a[1][0],), body)
    moved = kernel.instantiate(EVERY_LOWER.proved(), reals={"h": family}, indices={"n": size})
    return kernel.discharge(moved, generalize(weak(claim), a, below(size)))


DOUBLE_SUM = Theorem(
    key="double-sum",
    title="A sum over all pairs is the diagonal and every other pair twice",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $n$: {claim}.",
    hypotheses={},
    claim=forall(n, NATURALS, double_sum_is(n)),
    prove=prove_double_sum,
)
SWAP = Theorem(
    key="swapped-sum",
    title="Two sums may change places",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={},
    claim=SWAP_CLAIM,
    prove=prove_swap,
)
COUNT = Theorem(
    key="pair-count",
    title="There are n (n - 1)/2 pairs",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={},
    claim=COUNT_CLAIM,
    prove=prove_count,
)
EVERY_PAIR = Theorem(
    key="every-pair",
    title="What is nonnegative on the diagonal and on both sides of it is so for every pair",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={
        "on the diagonal": DIAGONAL,
        "below the diagonal": BELOW_DIAGONAL,
        "above the diagonal": ABOVE_DIAGONAL,
    },
    claim=EVERY_PAIR_CLAIM,
    prove=prove_every_pair,
)
EVERY_LOWER = Theorem(
    key="every-lower",
    title="What holds for every number below n holds for every number below those",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={"for every number below n": EVERY_ONE},
    claim=EVERY_LOWER_CLAIM,
    prove=prove_every_lower,
)
PAGES = (DOUBLE_SUM, SWAP, COUNT, EVERY_PAIR, EVERY_LOWER)
