"""From bounds on inner products to (S), (N) and the margin, for any data.

Sequences i < n, non-optimal tokens tau < m, Delta_(i,tau) = x_(i,o_i) - x_(i,tau), queries z_i, so that
<A_(i,tau), A_(j,rho)> = <Delta_(i,tau), Delta_(j,rho)> <z_i, z_j>. Suppose

    |<Delta_(i,tau), Delta_(j,rho)>| <= r and |<z_i, z_j>| <= q           across sequences (j < i),
    <Delta_(i,tau), Delta_(i,rho)> >= c for rho < tau, ||Delta_(i,tau)||^2 >= c + l   within a sequence,
    w <= ||z_i||^2 <= y,   the sum of <z_i, z_j>^2 over j != i is at most (n - 1) f^2,

and let P = c + l/m. Then, besides <A_k, A_l> >= -e0 for all k, l when e0 is at least r q and -c y:

    g*^2 >= (w P - (n - 1) r f)/n,    and (S) holds once w P > (n - 1) r q.

So (N) holds once the larger of r q and -c y is below (w P - (n - 1) r f)/n. The margin feels only f, the root
mean square of a query's products with the others, and not the largest of all products.
"""

from __future__ import annotations

from theory.lemmas.ordered_pairs import SWAP, every_lower, every_pair
from theory.notation import A, M, alpha, e0, margin
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, generalize, sum_order, term_of_sum
from theory.proof.tactics import (
    equation,
    everywhere,
    follows,
    norm_squared,
    product_nonnegative,
    restate,
    weak,
)
from theory.proof.terms import (
    NATURALS,
    Formula,
    Index,
    Term,
    Vector,
    as_real,
    below,
    eq,
    forall,
    index,
    inner,
    inv,
    member,
    norm,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)

REFERENCE = "our theorem on near-acute data"
n, m = index("n"), index("m")
i, tau, j, rho = index("i"), index("tau"), index("j"), index("rho")
count, tokens = as_real(n), as_real(m)
r, q, c, ell, w, y = (symbol(name) for name in "rqclwy")
SEQUENCES, TOKENS = below(n), below(m)
f = symbol("f_q")
in_i, in_tau, in_rho = assume(member(i, SEQUENCES)), assume(member(tau, TOKENS)), assume(member(rho, TOKENS))
in_j, before_i = assume(member(j, SEQUENCES)), assume(member(j, below(i)))
before_tau = assume(member(rho, below(tau)))


def Delta(i: Index, tau: Index) -> Vector:
    """The optimal token of sequence i minus its token tau."""
    return vector("Delta", i, tau)


def z(i: Index) -> Vector:
    """The query of sequence i."""
    return vector("z", i)


def K(i: Index, tau: Index, j: Index, rho: Index) -> Term:
    """The Gram matrix."""
    return inner(A(i, tau), A(j, rho))


def each(body: Formula) -> Formula:
    """For every constraint (i, tau)."""
    return forall(i, SEQUENCES, forall(tau, TOKENS, body))


def across(body: Formula) -> Formula:
    """For every pair of constraints (i, tau), (j, rho) of different sequences, once."""
    return each(forall(j, below(i), forall(rho, TOKENS, body)))


def within(body: Formula) -> Formula:
    """For every pair of constraints (i, tau), (i, rho) of one sequence, once."""
    return each(forall(rho, below(tau), body))


def queries(body: Formula) -> Formula:
    """For every sequence i."""
    return forall(i, SEQUENCES, body)


def query_pairs(body: Formula) -> Formula:
    """For every pair of sequences i, j, once."""
    return queries(forall(j, below(i), body))


def pairs(body: Formula) -> Formula:
    """For all pairs of constraints."""
    return each(forall(j, SEQUENCES, forall(rho, TOKENS, body)))


def _constraint_is() -> Formula:
    product = eq(K(i, tau, j, rho), inner(Delta(i, tau), Delta(j, rho)) * inner(z(i), z(j)))
    for v in (rho, j, tau, i):
        product = forall(v, NATURALS, product)
    return product


GRAM_IS = _constraint_is()  # of A = Delta z'
total_alpha = total(i, SEQUENCES, total(tau, TOKENS, alpha(i, tau)))
expansion = vtotal(i, SEQUENCES, vtotal(tau, TOKENS, alpha(i, tau) * A(i, tau)))

HYPOTHESES = {
    "A = Delta z'": GRAM_IS,
    "tokens across, above": across(inner(Delta(i, tau), Delta(j, rho)) <= r),
    "tokens across, below": across(-r <= inner(Delta(i, tau), Delta(j, rho))),
    "queries across, above": query_pairs(inner(z(i), z(j)) <= q),
    "queries across, below": query_pairs(-q <= inner(z(i), z(j))),
    "tokens within": within(c <= inner(Delta(i, tau), Delta(i, rho))),
    "token lengths": each(c + ell <= inner(Delta(i, tau), Delta(i, tau))),
    "l >= 0": 0 <= ell,
    "query lengths, below": queries(w <= inner(z(i), z(i))),
    "query lengths, above": queries(inner(z(i), z(i)) <= y),
    "query rows": queries(
        total(j, SEQUENCES, inner(z(i), z(j)) ** 2) <= inner(z(i), z(i)) ** 2 + (count - 1) * f**2
    ),
    "f > 0": 0 < f,
    "r >= 0": 0 <= r,
    "q >= 0": 0 <= q,
    "T > 1": 0 < tokens,
    "n > 0": 0 < count,
    "P >= 0": 0 <= c + ell / tokens,
    "e0 covers the pairs across": r * q <= e0,
    "e0 covers the pairs within": -c * y <= e0,
    "w P > (n - 1) r q": (count - 1) * r * q < w * (c + ell / tokens),
    "alpha >= 0": each(0 <= alpha(i, tau)),
    "M is a combination of the constraints": veq(M, expansion),
    "complementary slackness": eq(total_alpha, inner(M, M)),
    "M is not 0": 0 < norm(M),
}
P = c + ell / tokens
MARGIN_BOUND = (w * P - (count - 1) * r * f) / count


_ACROSS = tuple(f"{what} across, {side}" for what in ("tokens", "queries") for side in ("above", "below"))
_DATA = ("A = Delta z'", *_ACROSS[:2], "tokens within", "token lengths", "l >= 0")
_SIZES = ("query lengths, below", "r >= 0", "T > 1", "P >= 0")
SOLUTION = ("M is a combination of the constraints", "complementary slackness", "M is not 0")


def hypothesis(name: str) -> Proved:
    """A hypothesis of the page."""
    return assume(HYPOTHESES[name])


def gram(i: Index, tau: Index, j: Index, rho: Index) -> Proved:
    """<A_(i,tau), A_(j,rho)> = <Delta_(i,tau), Delta_(j,rho)> <z_i, z_j>."""
    return everywhere(assume(GRAM_IS), i, tau, j, rho)


def product_bounded() -> Proved:
    """0 <= r q."""
    return product_nonnegative(hypothesis("r >= 0"), hypothesis("q >= 0"))


def across_bounded() -> Proved:
    """-r q <= <A_(i,tau), A_(j,rho)> for j < i: a product of a number in [-r, r] and one in [-q, q]."""
    at = ((i, in_i), (tau, in_tau), (j, before_i), (rho, in_rho))
    high, low = (
        follows(0 <= gap, everywhere(hypothesis(f"tokens across, {side}"), *at))
        for side, gap in (
            ("above", r - inner(Delta(i, tau), Delta(j, rho))),
            ("below", r + inner(Delta(i, tau), Delta(j, rho))),
        )
    )
    query_high, query_low = (
        everywhere(hypothesis(f"queries across, {side}"), (i, in_i), (j, before_i))
        for side in ("above", "below")
    )
    return follows(
        -r * q <= K(i, tau, j, rho), (low, query_low), (high, query_high), gram(i, tau, j, rho)
    )  # fmt: skip


def swapped(claim: Proved) -> Proved:
    """The claim about (i, tau), (j, rho) for (i, rho), (j, tau): the same pair seen from the other side."""
    return kernel.instantiate(claim, indices={"tau": rho, "rho": tau})


def length_nonnegative(v: Vector) -> Proved:
    """0 <= <v, v>."""
    return kernel.inner_nonnegative(v)


def within_bounded() -> Proved:
    """c ||z_i||^2 <= <A_(i,tau), A_(i,rho)> for all tau, rho < m."""
    body, size = K(i, tau, i, rho) - c * inner(z(i), z(i)), length_nonnegative(z(i))
    off = everywhere(hypothesis("tokens within"), (i, in_i), (tau, in_tau), (rho, before_tau))
    lower = follows(0 <= body, (size, off), gram(i, tau, i, rho))
    mirror = K(i, rho, i, tau) - c * inner(z(i), z(i))
    upper = restate(0 <= mirror, lower)
    diagonal = follows(
        0 <= K(i, tau, i, tau) - c * inner(z(i), z(i)), square_bounded(), (size, hypothesis("l >= 0"))
    )
    every = every_pair(body, m, diagonal, lower, upper, tau, rho)
    return follows(
        c * inner(z(i), z(i)) <= K(i, tau, i, rho), everywhere(every, (tau, in_tau), (rho, in_rho))
    )


def square_bounded() -> Proved:
    """(c + l) ||z_i||^2 <= ||A_(i,tau)||^2."""
    length = everywhere(hypothesis("token lengths"), (i, in_i), (tau, in_tau))
    return follows(
        (c + ell) * inner(z(i), z(i)) <= K(i, tau, i, tau),
        (length_nonnegative(z(i)), length),
        gram(i, tau, i, tau),
    )


def query_length() -> Proved:
    """w <= ||z_i||^2."""
    return everywhere(hypothesis("query lengths, below"), (i, in_i))


# --- (N) ---------------------------------------------------------------------------------------------------

ACUTE_CLAIM = pairs(-e0 <= K(i, tau, j, rho))


def prove_acute() -> Proved:
    """Across sequences -r q; within one at least 0, or at least c y when c < 0."""
    body = K(i, tau, j, rho) + e0
    off = follows(0 <= body, across_bounded(), hypothesis("e0 covers the pairs across"))
    mirror = restate(0 <= K(j, tau, i, rho) + e0, swapped(off))
    long = everywhere(hypothesis("query lengths, above"), (i, in_i))
    inside = 0 <= K(i, tau, i, rho) + e0
    near, far = assume(0 <= c), assume(c < 0)
    blunt = follows(
        inside, within_bounded(), (weak(follows(0 < -c, far)), long), hypothesis("e0 covers the pairs within")
    )
    sharp = follows(
        inside,
        within_bounded(),
        (near, length_nonnegative(z(i))),
        product_bounded(),
        hypothesis("e0 covers the pairs across"),
    )
    diagonal = kernel.cases(sharp, blunt, near.conclusion[1], c)
    every = everywhere(every_pair(body, n, diagonal, off, mirror, i, j), (i, in_i), (j, in_j))
    claim = follows(-e0 <= K(i, tau, j, rho), every)
    for v, domain in ((rho, TOKENS), (j, SEQUENCES), (tau, TOKENS), (i, SEQUENCES)):
        claim = generalize(claim, v, domain)
    return claim


# --- (S) ---------------------------------------------------------------------------------------------------

SCALE = inv(tokens * (w * P - (count - 1) * r * q))
SEPARATOR = SCALE * vtotal(j, SEQUENCES, vtotal(rho, TOKENS, A(j, rho)))
SEPARABLE_CLAIM = each(1 <= inner(A(i, tau), SEPARATOR))


def own_row() -> Proved:
    """m w P <= the sum over rho of <A_(i,tau), A_(i,rho)>: its tau-th exceeds the others by l ||z_i||^2."""
    excess = follows(0 <= K(i, tau, i, rho) - c * inner(z(i), z(i)), within_bounded())
    spare = follows(ell * inner(z(i), z(i)) <= K(i, tau, i, tau) - c * inner(z(i), z(i)), square_bounded())
    size = follows(0 <= tokens * P, (weak(hypothesis("T > 1")), hypothesis("P >= 0")))
    return follows(
        tokens * w * P <= total(rho, TOKENS, K(i, tau, i, rho)),
        spare,
        term_of_sum(excess, rho, TOKENS, in_tau),
        (size, query_length()),
        nonzero=[hypothesis("T > 1")],
    )


def prove_separable() -> Proved:
    """The sum of all A_k has logit gaps of at least m (w P - (n - 1) r q): own row, less the other rows."""
    row = total(rho, TOKENS, K(i, tau, j, rho))
    body = row + tokens * r * q
    other = sum_order(across_bounded(), rho, TOKENS)
    mirror = sum_order(restate(-r * q <= K(j, tau, i, rho), swapped(across_bounded())), rho, TOKENS)
    below_row = follows(0 <= body, other)
    above_row = follows(0 <= total(rho, TOKENS, K(j, tau, i, rho)) + tokens * r * q, mirror)
    positive = weak(hypothesis("T > 1"))
    diagonal = restate(
        0 <= total(rho, TOKENS, K(i, tau, i, rho)) + tokens * r * q, own_row_nonnegative(positive)
    )
    every = everywhere(every_pair(body, n, diagonal, below_row, above_row, i, j), (i, in_i), (j, in_j))
    reach = follows(
        tokens * (w * P - (count - 1) * r * q) <= total(j, SEQUENCES, row),
        own_row(),
        term_of_sum(every, j, SEQUENCES, in_i),
    )
    gap = follows(0 < w * P - (count - 1) * r * q, hypothesis("w P > (n - 1) r q"))
    weight = product_nonnegative(hypothesis("T > 1"), gap)
    claim = follows(
        1 <= inner(A(i, tau), SEPARATOR), (weak(kernel.inverse_positive(weight)), reach), nonzero=[weight]
    )
    return generalize(generalize(claim, tau, TOKENS), i, SEQUENCES)


def own_row_nonnegative(positive: Proved) -> Proved:
    """0 <= the own row plus m r q: the row is at least m P ||z_i||^2."""
    size = follows(0 <= tokens * P, (positive, hypothesis("P >= 0")))
    excess = follows(0 <= K(i, tau, i, rho) - c * inner(z(i), z(i)), within_bounded())
    spare = follows(ell * inner(z(i), z(i)) <= K(i, tau, i, tau) - c * inner(z(i), z(i)), square_bounded())
    return follows(
        0 <= total(rho, TOKENS, K(i, tau, i, rho)) + tokens * r * q,
        spare,
        term_of_sum(excess, rho, TOKENS, in_tau),
        (size, length_nonnegative(z(i))),
        (positive, product_bounded()),
        nonzero=[hypothesis("T > 1")],
    )


# --- the margin --------------------------------------------------------------------------------------------

a_i = vtotal(tau, TOKENS, alpha(i, tau) * A(i, tau))
a_j = vtotal(rho, TOKENS, alpha(j, rho) * A(j, rho))
b_i, b_j = total(tau, TOKENS, alpha(i, tau)), total(rho, TOKENS, alpha(j, rho))
MARGIN_CLAIM = MARGIN_BOUND <= margin**2


def weight(i: Index, inside: Proved, tau: Index, token: Proved) -> Proved:
    """0 <= alpha_(i,tau)."""
    return everywhere(hypothesis("alpha >= 0"), (i, inside), (tau, token))


def mean_square(body: Term, v: Index, size: Index, positive: Proved) -> Proved:
    """(sum of a)^2/N <= sum of a^2: the sum of (a - mean)^2 is nonnegative."""
    inside, number = below(size), as_real(size)
    mean = total(v, inside, body) / number
    squares = sum_order(kernel.square(body - mean), v, inside)
    return follows(
        total(v, inside, body) ** 2 / number <= total(v, inside, body**2), squares, nonzero=[positive]
    )


def sequence_bounded() -> Proved:
    """w P b_i^2 <= ||sum over tau of alpha A||^2, b_i the sum over tau of alpha."""
    size = inner(z(i), z(i))
    weights = product_nonnegative(weight(i, in_i, tau, in_tau), weight(i, in_i, rho, in_rho))
    excess = follows(0 <= K(i, tau, i, rho) - c * size, within_bounded())
    pair = product_nonnegative(weights, excess)
    spare = follows(0 <= K(i, tau, i, tau) - (c + ell) * size, square_bounded())
    square = follows(
        alpha(i, tau) ** 2 * ell * size <= total(rho, TOKENS, pair.conclusion[2]),
        term_of_sum(pair, rho, TOKENS, in_tau),
        (kernel.square(alpha(i, tau)), spare),
    )
    heavy = product_nonnegative(length_nonnegative(z(i)), hypothesis("l >= 0"))
    sum_squares = mean_square(alpha(i, tau), tau, m, hypothesis("T > 1"))
    own = follows(
        size * P * b_i**2 <= inner(a_i, a_i),
        sum_order(square, tau, TOKENS),
        (heavy, sum_squares),
    )
    share = product_nonnegative(hypothesis("P >= 0"), kernel.square(b_i))
    return follows(w * P * b_i**2 <= inner(a_i, a_i), own, (share, query_length()))


def query_product() -> Term:
    """<z_i, z_j>."""
    return inner(z(i), z(j))


def cost(i: Index, j: Index, b_i: Term, b_j: Term) -> Term:
    """What the pair of sequences i, j may take from ||M||^2: r (<z_i, z_j>^2/f + f) (b_i^2 + b_j^2)/4."""
    return r * (inner(z(i), z(j)) ** 2 / f + f) * (b_i**2 + b_j**2) / 4


def pair_bounded(sign: Proved, size: Term, side: str) -> Proved:
    """0 <= <a_i, a_j> + cost for j < i, when |<z_i, z_j>| is ``size``, proved nonnegative by ``sign``.

    <a_i, a_j> >= -r |<z_i, z_j>| b_i b_j, and the cost is at least that: 2 |x| <= x^2/f + f.
    """
    lower_weight = every_lower(alpha(i, rho), n, weight(i, in_i, rho, in_rho), i)
    weights = product_nonnegative(
        weight(i, in_i, tau, in_tau), everywhere(lower_weight, (i, in_i), (j, before_i))
    )
    bound = everywhere(
        hypothesis(f"tokens across, {side}"), (i, in_i), (tau, in_tau), (j, before_i), (rho, in_rho)
    )
    both = alpha(i, tau) * alpha(j, rho)
    pair = follows(
        -r * size * both <= both * K(i, tau, j, rho),
        (product_nonnegative(weights, sign), bound),
        (both, gram(i, tau, j, rho)),
    )
    steep = product_nonnegative(hypothesis("r >= 0"), weak(kernel.inverse_positive(hypothesis("f > 0"))))
    return follows(
        0 <= inner(a_i, a_j) + cost(i, j, b_i, b_j),
        sum_order(sum_order(pair, rho, TOKENS), tau, TOKENS),
        (steep, kernel.square((size - f) * b_i)),
        (steep, kernel.square((size - f) * b_j)),
        (product_nonnegative(hypothesis("r >= 0"), sign), kernel.square(b_i - b_j)),
        nonzero=[hypothesis("f > 0")],
    )


def sequences_bounded() -> Proved:
    """0 <= <sum of alpha A in i, sum of alpha A in j> + cost for all i, j < n."""
    product = query_product()
    near, far = assume(0 <= product), assume(product < 0)
    lower = kernel.cases(
        pair_bounded(near, product, "below"),
        pair_bounded(follows(0 <= -product, far), -product, "above"),
        near.conclusion[1],
        product,
    )
    upper = restate(0 <= inner(a_j, a_i) + cost(j, i, b_j, b_i), lower)
    positive = weak(hypothesis("f > 0"))
    steep = product_nonnegative(hypothesis("r >= 0"), weak(kernel.inverse_positive(hypothesis("f > 0"))))
    diagonal = follows(
        0 <= inner(a_i, a_i) + cost(i, i, b_i, b_i),
        length_nonnegative(a_i),
        (steep, kernel.square(inner(z(i), z(i)) * b_i)),
        (product_nonnegative(hypothesis("r >= 0"), positive), kernel.square(b_i)),
    )
    body = inner(a_i, a_j) + cost(i, j, b_i, b_j)
    return everywhere(every_pair(body, n, diagonal, lower, upper, i, j), (i, in_i), (j, in_j))


def by_sequences() -> Proved:
    """||sum of a_i||^2 is the sum over i and j of <a_i, a_j>, whatever the vectors a_i."""
    v = vector("v", i)
    square = inner(vtotal(i, SEQUENCES, v), vtotal(i, SEQUENCES, v))
    opened = equation(eq(square, total(i, SEQUENCES, total(j, SEQUENCES, inner(v, vector("v", j))))))
    return kernel.instantiate(opened, vectors={"v": (("i",), a_i)})


def prove_expanded() -> Proved:
    """(w P - (n - 1) r f) sum of b_i^2 <= ||M||^2: the squares, less the cost of every pair."""
    together = sequences_bounded()
    row = term_of_sum(together, j, SEQUENCES, in_i)
    own = sum_order(
        follows(w * P * b_i**2 + cost(i, i, b_i, b_i) <= row.conclusion[2], row, sequence_bounded()),
        i,
        SEQUENCES,
    )
    products = inner(z(i), z(j)) ** 2 * b_j**2
    swap = kernel.instantiate(SWAP.proved(), reals={"f": (("i", "j"), products)})
    rows = sum_order(
        follows(
            total(j, SEQUENCES, inner(z(i), z(j)) ** 2) * b_i**2
            <= (inner(z(i), z(i)) ** 2 + (count - 1) * f**2) * b_i**2,
            (kernel.square(b_i), everywhere(hypothesis("query rows"), (i, in_i))),
        ),
        i,
        SEQUENCES,
    )
    hole = vector("x")
    steep = product_nonnegative(hypothesis("r >= 0"), weak(kernel.inverse_positive(hypothesis("f > 0"))))
    return follows(
        (w * P - (count - 1) * r * f) * total(i, SEQUENCES, b_i**2) <= inner(M, M),
        own,
        congruence(hypothesis("M is a combination of the constraints"), inner(hole, hole), hole),
        by_sequences(),
        (r / f, swap),
        (steep, rows),
        nonzero=[hypothesis("f > 0")],
    )


def prove_margin() -> Proved:
    """The sum of b_i^2 is at least B^2/n, B = sum of alpha = ||M||^2; so ||M||^2 >= bound ||M||^4."""
    positive, solution = hypothesis("n > 0"), hypothesis("M is not 0")
    size, inverse = norm_squared(M), kernel.inverse_positive(solution)
    left = w * P - (count - 1) * r * f
    strong, feeble = assume(0 <= left), assume(left < 0)
    mass = hypothesis("complementary slackness")
    product = follows(
        MARGIN_BOUND * total_alpha**2 <= inner(M, M),
        prove_expanded(),
        (strong, mean_square(b_i, i, n, positive)),
        nonzero=[positive],
    )
    reach = follows(
        MARGIN_BOUND * norm(M) ** 4 <= norm(M) ** 2,
        product,
        (MARGIN_BOUND * (total_alpha + inner(M, M)), mass),
        (MARGIN_BOUND * (inner(M, M) + norm(M) ** 2), size),
        size,
    )
    shrink = product_nonnegative(product_nonnegative(inverse, inverse), product_nonnegative(inverse, inverse))
    large = follows(MARGIN_CLAIM, (weak(shrink), reach), nonzero=[solution])
    low = product_nonnegative(kernel.inverse_positive(positive), follows(0 < -left, feeble))
    small = follows(MARGIN_CLAIM, low, kernel.square(margin))
    return kernel.cases(large, small, strong.conclusion[1], strong.conclusion[2])


def _some(*names: str) -> dict[str, Formula]:
    return {name: formula for name, formula in HYPOTHESES.items() if name in names}


ACUTE = Theorem(
    key="blocks-acute",
    title="Constraints whose tokens and queries are nearly orthogonal across sequences are nearly acute",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=_some(
        *_DATA,
        *_ACROSS[2:],
        "query lengths, above",
        "r >= 0",
        "q >= 0",
        "e0 covers the pairs across",
        "e0 covers the pairs within",
    ),
    claim=ACUTE_CLAIM,
    prove=prove_acute,
)
SEPARABLE = Theorem(
    key="blocks-separable",
    title="Their sum separates, once each sequence outweighs the others' interference",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}: (S) holds.",
    hypotheses=_some(*_DATA, *_ACROSS[2:], *_SIZES, "q >= 0", "w P > (n - 1) r q"),
    claim=SEPARABLE_CLAIM,
    prove=prove_separable,
)
MARGIN = Theorem(
    key="blocks-margin",
    title="Their max-margin solution has at least the margin of one sequence, shared, less the interference",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=_some(*_DATA, *_SIZES, "query rows", "f > 0", "n > 0", "alpha >= 0", *SOLUTION),
    claim=MARGIN_CLAIM,
    prove=prove_margin,
)
PAGES = (ACUTE, SEPARABLE, MARGIN)
