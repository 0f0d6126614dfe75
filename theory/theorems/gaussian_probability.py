"""Gaussian data are nearly acute, part 3: how likely the event is.

n sequences of m noise tokens, queries that are noise too (further vectors, or the first tokens), all N(0,
sigma^2) in d dimensions and orthogonal to the signals. The event of part 1 at the bounds

    q = t_q/(1 - t_q^2),  p = t_p/(1 - t_p^2),  u = t_u/(1 - t_u^2),  w, y, a, h,   g = 0

fails with probability at most F, the union bound over

    n (n - 1)/2 pairs of queries and n (n - 1)/2 m^2 pairs of tokens across sequences (two tails each),
    n m (m - 1)/2 pairs of tokens within a sequence (one tail), n queries (two), n m tokens (one),
    n rows of queries: given z_i, the sum of <z_i, z_j>^2 over j != i is (sigma ||z_i||)^2 times a chi-square
    variable of n - 1 degrees of freedom; with ||z_i||^2 <= v (1 + y), v = sigma^2 d, it is at most
    (n - 1) (v h)^2 once that variable is at most (n - 1) (1 + x), (1 + x) (1 + y) = d h^2,

each tail bounded by Chernoff's method. Nothing is assumed of how the vectors of different pairs depend on
each other, so it is the same whether the query is a vector of its own or the first token. (S) and (N) hold on
the event, so with probability at least 1 - F.

Given, not proved here: the probability that (S) and (N) hold is at least that of the event; the union bound;
Markov's inequality; the two Gaussian moment generating functions. The rest, the count of pairs included, is.
"""

from __future__ import annotations

from collections.abc import Callable

from theory.lemmas import gaussian_tails as tails
from theory.lemmas.near_acute_blocks import (
    SEQUENCES,
    TOKENS,
    across,
    before_i,
    before_tau,
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
)
from theory.lemmas.ordered_pairs import COUNT
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, sum_order
from theory.proof.tactics import (
    everywhere,
    exp_monotone,
    follows,
    log_quotient,
    log_secant,
    log_tangent,
    one_positive,
    product_nonnegative,
    weak,
    zero,
)
from theory.proof.terms import Formula, Index, Term, below, log, substitute, symbol, total
from theory.theorems.gaussian_data import REFERENCE, a, h, w, y

d = tails.d
t_q, t_p, t_u = symbol("t_q"), symbol("t_p"), symbol("t_u")
success, failure = symbol("P"), symbol("F")
query_product, token_product = symbol("Q", i, j), symbol("C", i, tau, j, rho)
token_product_within = symbol("U", i, tau, rho)
short_query, long_query, short_token = symbol("S", i), symbol("L", i), symbol("V", i, tau)
wide_row = symbol("R", i)
E_q, E_p, E_u, E_w, E_y, E_a, E_h = (symbol(f"E_{name}") for name in "qpuwyah")
others = count - 1


def row_excess(d: Term) -> Term:
    """x, how far the mean square of a query's products with the others may exceed its mean, relatively."""
    return d * h**2 / (1 + y) - 1


BOUND = (
    count * (count - 1) * tails.product_tail(t_q, d)
    + count * (count - 1) * tokens**2 * tails.product_tail(t_p, d)
    + count * tokens * (tokens - 1) / 2 * tails.product_tail(t_u, d)
    + count * (tails.short_tail(w, d) + tails.long_tail(y, d))
    + count * tokens * tails.short_tail(a, d)
    + count * tails.long_tail(row_excess(d), others)
)


def union() -> Term:
    """The sum of the probabilities; an inner product is as likely to be far below 0 as far above."""
    of_token = short_token + total(rho, below(tau), token_product_within)
    of_pair = 2 * query_product + 2 * total(tau, TOKENS, total(rho, TOKENS, token_product))
    of_sequence = (
        short_query + long_query + wide_row + total(tau, TOKENS, of_token) + total(j, below(i), of_pair)
    )
    return total(i, SEQUENCES, of_sequence)


EVENT, UNION = "(S) and (N) hold on the event", "union bound"


def _product(probability: Term, expectation: Term, t: Term) -> tuple[Formula, Formula]:
    level = d * tails.deviation(t)
    return tails.markov(probability, t, level, expectation), tails.product_moment(expectation, t, d)


def _square(
    probability: Term, expectation: Term, t: Term, ratio: Term, freedom: Term = d
) -> tuple[Formula, Formula]:
    return tails.markov(probability, t, freedom * ratio, expectation), tails.square_moment(
        expectation, t, freedom
    )


_TAILS = {
    "query products": (query_pairs, *_product(query_product, E_q, t_q)),
    "token products across": (across, *_product(token_product, E_p, t_p)),
    "token products within": (within, *_product(token_product_within, E_u, t_u)),
    "short queries": (queries, *_square(short_query, E_w, tails.short_exponent(w), 1 - w)),
    "long queries": (queries, *_square(long_query, E_y, tails.long_exponent(y), 1 + y)),
    "short tokens": (each, *_square(short_token, E_a, tails.short_exponent(a), 1 - a)),
    "query rows": (
        queries,
        *_square(wide_row, E_h, tails.long_exponent(row_excess(d)), 1 + row_excess(d), others),
    ),
}
GIVEN = {
    EVENT: 1 - failure <= success,
    UNION: failure <= union(),
    **{f"{tails.MARKOV}, {name}": every(bound) for name, (every, bound, _) in _TAILS.items()},
    **{f"{tails.MOMENT}, {name}": moment for name, (_, _, moment) in _TAILS.items()},
}
HYPOTHESES = {**GIVEN, "w < 1": w < 1, "a < 1": a < 1, "y >= 0": 0 <= y, "x >= 0": 0 <= row_excess(d)}
CLAIM = 1 - BOUND <= success


def tail(name: str, page: Theorem, at: dict[str, Term], *indices: tuple[Index, Proved]) -> Proved:
    """The tail bound of one vector or pair, from Markov's inequality for every one."""
    every, bound, moment = _TAILS[name]
    probability, expectation = bound[1], moment[1]
    claim = kernel.instantiate(page.proved(), reals={"P": probability, "E": expectation, **at})
    return kernel.discharge(claim, everywhere(assume(every(bound)), *indices))


def prove_probability() -> Proved:
    """Sum the tails, and count the pairs."""
    one, two = ((i, in_i), (tau, in_tau)), (rho, in_rho)
    product, short = tails.PRODUCT, tails.SHORT
    query = tail("query products", product, {"t": t_q}, (i, in_i), (j, before_i))
    token = tail("token products across", product, {"t": t_p}, *one, (j, before_i), two)
    inside = tail("token products within", product, {"t": t_u}, *one, (rho, before_tau))
    short_one = tail("short queries", short, {"w": w}, (i, in_i))
    long_one = tail("long queries", tails.LONG, {"y": y}, (i, in_i))
    token_length = tail("short tokens", short, {"w": a}, *one)
    row = tail("query rows", tails.LONG, {"y": row_excess(d), "d": others}, (i, in_i))

    def over_pairs(claim: Proved) -> Proved:
        return sum_order(sum_order(claim, j, below(i)), i, SEQUENCES)

    def over_tokens(claim: Proved) -> Proved:
        return sum_order(sum_order(claim, tau, TOKENS), i, SEQUENCES)

    token_pairs = sum_order(sum_order(token, rho, TOKENS), tau, TOKENS)
    sequence_pairs = COUNT.proved()
    pairs_of_tokens = kernel.instantiate(sequence_pairs, indices={"n": TOKENS[1]})
    return follows(
        CLAIM,
        assume(GIVEN[EVENT]),
        assume(GIVEN[UNION]),
        (2, over_pairs(query)),
        (2, over_pairs(token_pairs)),
        over_tokens(sum_order(inside, rho, below(tau))),
        sum_order(short_one, i, SEQUENCES),
        sum_order(long_one, i, SEQUENCES),
        sum_order(row, i, SEQUENCES),
        over_tokens(token_length),
        (2 * tails.product_tail(t_q, d), sequence_pairs),
        (2 * tokens**2 * tails.product_tail(t_p, d), sequence_pairs),
        (count * tails.product_tail(t_u, d), pairs_of_tokens),
    )


# --- larger dimensions -------------------------------------------------------------------------------------

d1 = symbol("d1")
FALLS_HYPOTHESES = {
    **{f"{t!r}^2 < 1": t**2 < 1 for t in (t_q, t_p, t_u)},
    "w < 1": w < 1,
    "a < 1": a < 1,
    "y >= 0": 0 <= y,
    "n >= 1": 1 <= count,
    "m >= 1": 1 <= tokens,
    "d1 <= d": d1 <= d,
    "x >= 0 in dimension d1": 0 <= row_excess(d1),
}
FALLS_CLAIM = BOUND <= substitute(BOUND, reals={"d": ((), d1)})


def rate_nonnegative(tail: Callable[[Term, Term], Term], t: Term, regular: Formula) -> Proved:
    """0 <= x, where the tail is exp(-d x): log(b) <= b - 1 for b or for 1/b."""
    less = assume(regular)
    if tail is tails.product_tail:
        b = follows(0 < 1 - t**2, less)
        inverse = kernel.inverse_positive(b)
        return follows(
            0 <= t**2 / (1 - t**2) + log(1 - t**2) / 2,
            log_tangent(inverse),
            log_quotient(one_positive(), b),
            kernel.log_exp(zero()),
            (kernel.square(t), inverse),
            nonzero=[b],
        )
    if tail is tails.short_tail:
        return follows(0 <= -(t + log(1 - t)) / 2, log_tangent(follows(0 < 1 - t, less)))
    return follows(0 <= (t - log(1 + t)) / 2, log_tangent(follows(0 < 1 + t, one_positive(), less)))


def prove_falls() -> Proved:
    """Each tail is exp(-d x) with x >= 0."""
    order, many, tokens_many = (assume(FALLS_HYPOTHESES[name]) for name in ("d1 <= d", "n >= 1", "m >= 1"))
    n_positive, m_positive = (
        follows(0 < count, many, one_positive()),
        follows(0 < tokens, tokens_many, one_positive()),
    )
    n_pairs = product_nonnegative(weak(n_positive), follows(0 <= count - 1, many))
    m_pairs = product_nonnegative(weak(m_positive), follows(0 <= tokens - 1, tokens_many))
    both = product_nonnegative(weak(n_positive), weak(m_positive))
    weights: list[tuple[Proved, Callable[[Term, Term], Term], Term, str]] = [
        (n_pairs, tails.product_tail, t_q, "t_q^2 < 1"),
        (product_nonnegative(n_pairs, kernel.square(tokens)), tails.product_tail, t_p, "t_p^2 < 1"),
        (product_nonnegative(weak(n_positive), m_pairs), tails.product_tail, t_u, "t_u^2 < 1"),
        (weak(n_positive), tails.short_tail, w, "w < 1"),
        (weak(n_positive), tails.long_tail, y, "y >= 0"),
        (both, tails.short_tail, a, "a < 1"),
    ]
    parts = []
    for weight, tail, t, name in weights:
        rate = rate_nonnegative(tail, t, FALLS_HYPOTHESES[name])
        low, high = tail(t, d)[2], tail(t, d1)[2]
        parts.append((weight, exp_monotone(follows(low <= high, (follows(0 <= d - d1, order), rate)))))
    return follows(FALLS_CLAIM, *parts, (weak(n_positive), row_falls(follows(0 <= others, many))))


def rate_grows() -> Proved:
    """x - log(1 + x) grows from x = v to v' when 0 <= v <= v': the secant of log at 1 + v."""
    v, later = symbol("v"), symbol("v'")
    start, order = assume(0 <= v), assume(v <= later)
    at_v = follows(0 < 1 + v, start, one_positive())
    at_later = follows(0 < 1 + later, at_v, order)
    less = product_nonnegative(start, weak(kernel.inverse_positive(at_v)))
    return follows(
        v - log(1 + v) <= later - log(1 + later),
        log_secant(at_v, at_later),
        (less, order),
        nonzero=[at_v],
    )


def row_falls(freedom: Proved) -> Proved:
    """The tail of a row falls with x >= 0, and x grows with d."""
    start = assume(FALLS_HYPOTHESES["x >= 0 in dimension d1"])
    spread = follows(0 < 1 + y, one_positive(), assume(FALLS_HYPOTHESES["y >= 0"]))
    steep = product_nonnegative(weak(kernel.inverse_positive(spread)), kernel.square(h))
    low, high = row_excess(d1), row_excess(d)
    order = follows(low <= high, (steep, follows(0 <= d - d1, assume(FALLS_HYPOTHESES["d1 <= d"]))))
    rates = kernel.discharge(kernel.instantiate(rate_grows(), reals={"v": low, "v'": high}), start, order)
    now, before = tails.long_tail(high, others)[2], tails.long_tail(low, others)[2]
    return exp_monotone(follows(now <= before, (freedom, rates)))


FALLS = Theorem(
    key="gaussian-failure-falls",
    title="The same relative bounds fail less often in a larger dimension",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=FALLS_HYPOTHESES,
    claim=FALLS_CLAIM,
    prove=prove_falls,
)
PROBABILITY = Theorem(
    key="gaussian-probability",
    title="Gaussian data are separable and nearly acute with high probability",
    kind="theorem",
    reference=REFERENCE,
    statement=r"Once the margin outweighs the pairs of constraints at the event's bounds: {claim}.",
    hypotheses=HYPOTHESES,
    claim=CLAIM,
    prove=prove_probability,
    given=tuple(GIVEN),
)
PAGES = (FALLS, PROBABILITY)
