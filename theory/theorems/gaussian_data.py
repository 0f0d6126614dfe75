"""Gaussian data are nearly acute, part 1: what holds on the event that no inner product strays far.

Sequence i has the token mu_i, one of two orthogonal signals of norm s, and m noise tokens xi_(i,tau); its
query z_i is noise too, a further vector or the first token. All noise is N(0, sigma^2) in d dimensions, of
mean squared length v = sigma^2 d. On the event

    |<z_i, z_j>| <= v q,  |<xi_(i,tau), xi_(j,rho)>| <= v p                     for j < i,
    <xi_(i,tau), xi_(i,rho)> >= -v u                                          for rho < tau,
    v (1 - w) <= ||z_i||^2 <= v (1 + y),  ||xi_(i,tau)||^2 >= v (1 - a),
    the sum of <z_i, z_j>^2 over j != i is at most (n - 1) (v h)^2,
    |<mu_i, xi_(j,tau)>| <= g   (g = 0 where the noise is orthogonal to the signals),

with r = s^2 + 2 g + v p, c = s^2 - 2 g - v u, P = c + v (1 - a + u)/m, B = v ((1 - w) P - (n - 1) r h)/n:

    <A_k, A_l> >= -e0 for all k, l, where e0 = max(r v q, -c v (1 + y)),   and  B <= g*^2.

So (S) and (N) hold once e0 < B. A query may be one of the tokens: the event bounds every pair of vectors that
the proof multiplies, independent or not.

Both terms of e0 matter. Across sequences, r q falls below s^2 (1 - w)/n once d is of order n^2 log(n m).
Within one, the inner product of two noise tokens may reach -sigma^2 sqrt(d log(n m)), which outgrows s^2; it
is below the margin for good only when d is of order (n m)^2 log(n m).
"""

from __future__ import annotations

from collections.abc import Iterator

from theory.lemmas import near_acute_blocks as blocks
from theory.lemmas.near_acute_blocks import (
    A,
    across,
    count,
    each,
    i,
    in_i,
    in_rho,
    in_tau,
    j,
    queries,
    query_pairs,
    rho,
    tau,
    tokens,
    within,
    z,
)
from theory.lemmas.ordered_pairs import every_lower
from theory.notation import margin
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize
from theory.proof.tactics import everywhere, follows, max_above, one_positive, product_nonnegative, weak
from theory.proof.terms import (
    NATURALS,
    Formula,
    Index,
    Term,
    Vector,
    below,
    eq,
    forall,
    inner,
    maximum,
    open_binder,
    symbol,
    total,
    vector,
)

REFERENCE = "our theorem on Gaussian data"
s, g, v = symbol("s"), symbol("g"), symbol("v")
q, p, u, w, y, a, h = (symbol(name) for name in "qpuwyah")


def mu(i: Index) -> Vector:
    """The signal token of sequence i."""
    return vector("mu", i)


def xi(i: Index, tau: Index) -> Vector:
    """A noise token."""
    return vector("xi", i, tau)


def _gram_is() -> Formula:
    product = eq(
        inner(A(i, tau), A(j, rho)), inner(mu(i) - xi(i, tau), mu(j) - xi(j, rho)) * inner(z(i), z(j))
    )
    for k in (rho, j, tau, i):
        product = forall(k, NATURALS, product)
    return product


cross, own_left, own_right = (
    inner(xi(i, tau), xi(j, rho)),
    inner(mu(i), xi(j, rho)),
    inner(mu(j), xi(i, tau)),
)
EVENT = {
    "queries across, above": query_pairs(inner(z(i), z(j)) <= v * q),
    "queries across, below": query_pairs(-(v * q) <= inner(z(i), z(j))),
    "query rows": queries(
        total(j, blocks.SEQUENCES, inner(z(i), z(j)) ** 2)
        <= inner(z(i), z(i)) ** 2 + (count - 1) * (v * h) ** 2
    ),
    "noise across, above": across(cross <= v * p),
    "noise across, below": across(-(v * p) <= cross),
    "noise within": within(-(v * u) <= inner(xi(i, tau), xi(i, rho))),
    "query lengths, below": queries(v * (1 - w) <= inner(z(i), z(i))),
    "query lengths, above": queries(inner(z(i), z(i)) <= v * (1 + y)),
    "noise lengths": each(v * (1 - a) <= inner(xi(i, tau), xi(i, tau))),
    "own signal": each(inner(mu(i), xi(i, tau)) <= g),
    "signals across, above": across(own_left <= g),
    "signals across, below": across(-g <= own_left),
    "signals back, above": across(own_right <= g),
    "signals back, below": across(-g <= own_right),
}
SIGNALS = {
    "signal lengths": queries(eq(inner(mu(i), mu(i)), s**2)),
    "signals, above": query_pairs(inner(mu(i), mu(j)) <= s**2),
    "signals, below": query_pairs(0 <= inner(mu(i), mu(j))),
}


def products(rise: Term, fall: Term) -> tuple[Term, Term, Term]:
    """r = rise + v p, c = fall - v u and P, which bound the products of token differences."""
    c = fall - v * u
    return rise + v * p, c, c + v * (1 - a + u) / tokens


def margin_and_pairs(r: Term, c: Term, P: Term) -> tuple[Term, Term, Term]:
    """B, and what pairs of constraints across and within sequences cost."""
    bound = (v * (1 - w) * P - (count - 1) * r * (v * h)) / count
    return bound, r * (v * q), -c * (v * (1 + y))


r, c, P = products(s**2 + 2 * g, s**2 - 2 * g)
BOUND, interference, crowding = margin_and_pairs(r, c, P)
CONDITIONS = {"across": interference < BOUND, "within": crowding < BOUND}
ACUTENESS = maximum(interference, crowding)
HYPOTHESES = {
    "A = (mu - xi) z'": _gram_is(),
    **SIGNALS,
    **EVENT,
    "g >= 0": 0 <= g,
    "v > 0": 0 < v,
    "h > 0": 0 < h,
    "q >= 0": 0 <= q,
    "p >= 0": 0 <= p,
    "u >= 0": 0 <= u,
    "a <= 1": a <= 1,
    "w < 1": w < 1,
    "n >= 1": 1 <= count,
    "T > 1": 0 < tokens,
    "the margin outweighs the pairs across": interference < BOUND,
    "the margin outweighs the pairs within": crowding < BOUND,
    **{name: blocks.HYPOTHESES[name] for name in ("alpha >= 0", *blocks.SOLUTION)},
}


LARGE_MARGIN = ("the margin outweighs the pairs across", "the margin outweighs the pairs within")


def hypothesis(name: str) -> Proved:
    """A hypothesis of the page."""
    return assume(HYPOTHESES[name])


_FAMILIES = {
    "reals": {
        "r": r,
        "q": v * q,
        "f_q": v * h,
        "c": c,
        "l": v * (1 - a + u),
        "w": v * (1 - w),
        "y": v * (1 + y),
    },
    "vectors": {"Delta": (("i", "tau"), mu(i) - xi(i, tau))},
}


def moved(name: str) -> Formula:
    """A hypothesis of the lemma on blocks, for Delta = mu - xi and the event's bounds."""
    return kernel.instantiate(assume(blocks.HYPOTHESES[name]), **_FAMILIES).conclusion


def _body(name: str) -> Formula:
    body = moved(name)
    for k in (i, tau, rho) if name == "tokens within" else (i, tau, j, rho):
        if body[0] == "forall":
            body = open_binder(body, k[1][0])
    return body


def at_pair(name: str) -> Proved:
    """A hypothesis about pairs of constraints, at the generic pair."""
    return everywhere(hypothesis(name), (i, in_i), (tau, in_tau), (j, blocks.before_i), (rho, in_rho))


def tokens_across() -> Iterator[Proved]:
    """|<mu_i - xi_(i,tau), mu_j - xi_(j,rho)>| <= r: the four products, each at its worst."""
    signal = (i, in_i), (j, blocks.before_i)
    sides = {"above": ("above", "below"), "below": ("below", "above")}
    for side, (same, other) in sides.items():
        claim = follows(
            _body(f"tokens across, {side}"),
            everywhere(hypothesis(f"signals, {same}"), *signal),
            at_pair(f"noise across, {same}"),
            at_pair(f"signals across, {other}"),
            at_pair(f"signals back, {other}"),
            kernel.square(s),
        )
        for k, domain in ((rho, blocks.TOKENS), (j, below(i)), (tau, blocks.TOKENS), (i, blocks.SEQUENCES)):
            claim = generalize(claim, k, domain)
        yield claim


def max_below(p: Proved, q: Proved) -> Proved:
    """From a < b and c < b, max(a, c) < b."""
    x, b = p.conclusion[1:]
    z = q.conclusion[1]
    low, high = assume(x <= z), assume(z < x)
    target = maximum(x, z) < b
    first = follows(target, q, kernel.max_is(low))
    second = follows(target, p, kernel.max_commutes(x, z), kernel.max_is(weak(high)))
    return kernel.cases(first, second, x, z)


def own_signal(at: Index, inside: Proved) -> Proved:
    """<mu_i, xi_(i,tau)> <= g."""
    return everywhere(hypothesis("own signal"), (i, in_i), (at, inside))


def tokens_within() -> Proved:
    """c <= <mu_i - xi_(i,tau), mu_i - xi_(i,rho)> for rho < tau."""
    every = every_lower(
        g - inner(mu(i), xi(i, tau)),
        blocks.m,
        follows(0 <= g - inner(mu(i), xi(i, tau)), own_signal(tau, in_tau)),
        tau,
    )
    claim = follows(
        _body("tokens within"),
        everywhere(hypothesis("signal lengths"), (i, in_i)),
        everywhere(hypothesis("noise within"), (i, in_i), (tau, in_tau), (rho, blocks.before_tau)),
        own_signal(tau, in_tau),
        everywhere(every, (tau, in_tau), (rho, blocks.before_tau)),
    )
    for k, domain in ((rho, below(tau)), (tau, blocks.TOKENS), (i, blocks.SEQUENCES)):
        claim = generalize(claim, k, domain)
    return claim


def token_lengths() -> Proved:
    """c + l <= ||mu_i - xi_(i,tau)||^2."""
    claim = follows(
        _body("token lengths"),
        everywhere(hypothesis("signal lengths"), (i, in_i)),
        everywhere(hypothesis("noise lengths"), (i, in_i), (tau, in_tau)),
        (2, own_signal(tau, in_tau)),
    )
    return generalize(generalize(claim, tau, blocks.TOKENS), i, blocks.SEQUENCES)


def size(positive: Proved) -> Proved:
    """0 <= v x from 0 <= x."""
    return product_nonnegative(weak(hypothesis("v > 0")), positive)


def interference_nonnegative() -> Proved:
    """0 <= r v q."""
    return product_nonnegative(cross_bound_nonnegative(), size(hypothesis("q >= 0")))


def row_bound_positive() -> Proved:
    """0 < v h."""
    return product_nonnegative(hypothesis("v > 0"), hypothesis("h > 0"))


def cross_bound_nonnegative() -> Proved:
    """0 <= r."""
    return follows(moved("r >= 0"), kernel.square(s), hypothesis("g >= 0"), size(hypothesis("p >= 0")))


def outweighed() -> Proved:
    """(n - 1) r q <= n r q < n B <= w P."""
    positive = sequences_positive()
    rows = product_nonnegative(cross_bound_nonnegative(), weak(row_bound_positive()))
    return follows(
        moved("w P > (n - 1) r q"),
        (positive, hypothesis("the margin outweighs the pairs across")),
        interference_nonnegative(),
        (follows(0 <= count - 1, hypothesis("n >= 1")), rows),
        nonzero=[positive],
    )


def sequences_positive() -> Proved:
    """0 < n."""
    return follows(0 < count, hypothesis("n >= 1"), one_positive())


def share_nonnegative() -> Proved:
    """0 <= P: w P > (n - 1) r q >= 0 and w > 0."""
    room = product_nonnegative(hypothesis("v > 0"), follows(0 < 1 - w, hypothesis("w < 1")))
    others = follows(0 <= count - 1, hypothesis("n >= 1"))
    return follows(
        moved("P >= 0"),
        (weak(kernel.inverse_positive(room)), outweighed()),
        (product_nonnegative(others, weak(kernel.inverse_positive(room))), interference_nonnegative()),
        nonzero=[room],
    )


def from_event(claim: Proved) -> Proved:
    """A claim of the lemma on blocks, from the event."""
    spread = follows(0 <= 1 - a + u, hypothesis("a <= 1"), hypothesis("u >= 0"))
    facts = [
        *tokens_across(), tokens_within(), token_lengths(), size(spread), cross_bound_nonnegative(),
        size(hypothesis("q >= 0")), row_bound_positive(), sequences_positive(), share_nonnegative(),
        outweighed(),
    ]  # fmt: skip
    claim = kernel.instantiate(claim, **_FAMILIES)
    return discharge(claim, *(fact for fact in facts if fact.conclusion in claim.hypotheses))


ACUTE_CLAIM = blocks.pairs(-ACUTENESS <= blocks.K(i, tau, j, rho))
MARGIN_CLAIM = ACUTENESS < margin**2


def prove_acute() -> Proved:
    """The lemma on blocks, with e0 the larger of what the pairs across and within a sequence need."""
    claim = kernel.instantiate(from_event(blocks.ACUTE.proved()), reals={"e0": ACUTENESS})
    return discharge(claim, *max_above(interference, crowding))


def prove_margin() -> Proved:
    """Both terms of e0 are below B, and B is at most g*^2."""
    margin_bounded = from_event(blocks.MARGIN.proved())
    larger = max_below(
        hypothesis("the margin outweighs the pairs across"),
        hypothesis("the margin outweighs the pairs within"),
    )
    return follows(MARGIN_CLAIM, larger, margin_bounded)


SEPARABLE_CLAIM = kernel.instantiate(assume(blocks.SEPARABLE_CLAIM), **_FAMILIES).conclusion


def prove_separable() -> Proved:
    """The lemma on blocks: r q < B gives (n - 1) r q < w P."""
    return from_event(blocks.SEPARABLE.proved())


_SOLUTION, _ROWS = ("alpha >= 0", *blocks.SOLUTION), ("query rows", "h > 0")
_QUERY_PAIRS = ("queries across, above", "queries across, below")


ACUTE = Theorem(
    key="gaussian-acute",
    title="On the event the constraints are nearly acute",
    kind="theorem",
    reference=REFERENCE,
    statement=r"{claim}: (N), with the following page.",
    hypotheses=without(
        HYPOTHESES, *_ROWS, "query lengths, below", "w < 1", "n >= 1", "T > 1", *LARGE_MARGIN, *_SOLUTION
    ),
    claim=ACUTE_CLAIM,
    prove=prove_acute,
)
MARGIN = Theorem(
    key="gaussian-margin",
    title="On the event the margin outweighs the most obtuse pair of constraints",
    kind="theorem",
    reference=REFERENCE,
    statement=r"{claim}: (N), with the page before.",
    hypotheses=without(HYPOTHESES, *_QUERY_PAIRS, "query lengths, above"),
    claim=MARGIN_CLAIM,
    prove=prove_margin,
)
SEPARABLE = Theorem(
    key="gaussian-separable",
    title="On the event the sum of the constraints separates",
    kind="theorem",
    reference=REFERENCE,
    statement=r"{claim}: (S).",
    hypotheses=without(HYPOTHESES, _ROWS[0], "query lengths, above", LARGE_MARGIN[1], *_SOLUTION),
    claim=SEPARABLE_CLAIM,
    prove=prove_separable,
)
PAGES = (ACUTE, MARGIN, SEPARABLE)
