"""The pages on Gaussian data: they prove, stronger claims do not, and they hold on random numbers."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from theory.lemmas import gaussian_tails as tails
from theory.lemmas import near_acute_blocks as blocks
from theory.lemmas import ordered_pairs as pairs
from theory.page import ProofError
from theory.proof import kernel
from theory.proof.kernel import KernelError, assume
from theory.proof.tactics import follows
from theory.proof.terms import Fraction, as_real, eq, exp, forall, log, real
from theory.theorems import gaussian_data as data
from theory.theorems import gaussian_dimension as dimension
from theory.theorems import gaussian_probability as probability

PROVED = (*pairs.PAGES, *blocks.PAGES, *data.PAGES, *dimension.PAGES, probability.FALLS)
GIVEN = (*tails.PAGES, probability.PROBABILITY)
n, q, f, r, y, a = blocks.n, blocks.q, blocks.f, blocks.r, data.y, data.a


@pytest.mark.parametrize("page", PROVED + GIVEN, ids=lambda p: p.key)
def test_the_page_proves(page):
    assert page.proved().conclusion == page.claim
    assert page.status == ("proved-given" if page in GIVEN else "proved")


def test_what_is_not_derived_is_listed():
    assert probability.PROBABILITY.given == tuple(probability.GIVEN)
    assert set(probability.PROBABILITY.hypotheses) - set(probability.GIVEN) == {
        "w < 1",
        "a < 1",
        "y >= 0",
        "x >= 0",
    }


B, P, K = blocks.MARGIN_BOUND, blocks.P, blocks.K
at, of = (blocks.i, blocks.tau), (blocks.j, blocks.rho)
fall = probability.FALLS
STRONGER = [
    (pairs.DOUBLE_SUM, lambda c: forall(pairs.n, pairs.NATURALS, pairs.double_sum_is(pairs.n + 1))),
    (pairs.COUNT, lambda c: eq(c[1], as_real(n) * as_real(n) / 2)),
    (
        pairs.EVERY_LOWER,
        lambda c: forall(pairs.i, pairs.ALL, forall(pairs.j, pairs.ALL, pairs.h(pairs.j) > 0)),
    ),
    (blocks.ACUTE, lambda c: blocks.pairs(-blocks.e0 / 2 <= K(*at, *of))),
    (blocks.ACUTE, lambda c: blocks.pairs(real(0) <= K(*at, *of))),
    (blocks.MARGIN, lambda c: c[2] >= 2 * B),
    (blocks.MARGIN, lambda c: B + r * q / blocks.count <= c[2]),
    (blocks.MARGIN, lambda c: blocks.w * P / blocks.count <= c[2]),
    (blocks.SEPARABLE, lambda c: blocks.each(blocks.inner(blocks.A(*at), blocks.SEPARATOR) >= 2)),
    (data.ACUTE, lambda c: blocks.pairs(-data.interference <= K(*at, *of))),
    (data.ACUTE, lambda c: blocks.pairs(-data.crowding <= K(*at, *of))),
    (data.MARGIN, lambda c: c[1] >= data.BOUND),
    (data.MARGIN, lambda c: 2 * c[1] < c[2]),
    (tails.PRODUCT, lambda c: c[1] <= c[2] ** 2),
    (tails.SHORT, lambda c: c[1] <= exp(tails.d * (tails.w + 2 * log(1 - tails.w)) / 2)),
    (tails.LONG, lambda c: c[1] <= exp(-tails.d * (tails.y - log(1 + tails.y)))),
    (probability.PROBABILITY, lambda c: c[2] >= 1 - probability.BOUND / 2),
    (fall, lambda c: c[1] < c[2]),
    (dimension.BEYOND_ACROSS, lambda c: 2 * c[1] < c[2]),
    (dimension.BETWEEN_WITHIN, lambda c: c[1] < Fraction(9, 10) * c[2]),
]


@pytest.mark.parametrize("case", range(len(STRONGER)))
def test_a_stronger_claim_is_not_proved(case):
    page, stronger = STRONGER[case]
    with pytest.raises(ProofError):
        dataclasses.replace(page, claim=stronger(page.claim)).proved()


def test_the_union_bound_counts_every_event_once():
    """With every probability 1 the sum is the number of events, which the theorem's bound counts too."""
    one = {name: (tuple(names), real(1)) for name, names in EVENT_INDICES.items()}
    claim = kernel.instantiate(assume(probability.GIVEN[probability.UNION]), reals=one)
    number, token = as_real(n), as_real(blocks.m)
    events = number * (number - 1) * (1 + token**2) + number * token * (token - 1) / 2
    events = events + 3 * number + number * token
    count = pairs.COUNT.proved()
    count_tokens = kernel.instantiate(count, indices={"n": blocks.m})
    factors = [(2 * (1 + token**2), count), (number, count_tokens)]
    counted = follows(eq(claim.conclusion[2], events), *factors)
    assert not counted.hypotheses


PAIR = ["i", "tau", "j", "rho"]
EVENT_INDICES = {
    "Q": "ij",
    "C": PAIR,
    "U": ["i", "tau", "rho"],
    "S": "i",
    "L": "i",
    "R": "i",
    "V": ["i", "tau"],
}
FEWER_TERMS = {
    "one tail of the query products": lambda b: (
        b
        - probability.count * (probability.count - 1) / 2 * tails.product_tail(probability.t_q, probability.d)
    ),
    "half the tokens": lambda b: (
        b - probability.count * probability.tokens / 2 * tails.short_tail(a, probability.d)
    ),
    "no wide rows": lambda b: (
        b - probability.count * tails.long_tail(probability.row_excess(probability.d), probability.others)
    ),
    "no long queries": lambda b: b - probability.count * tails.long_tail(y, probability.d),
}


@pytest.mark.parametrize("name", FEWER_TERMS)
def test_the_union_needs_every_event(name, monkeypatch):
    monkeypatch.setattr(probability, "CLAIM", 1 - FEWER_TERMS[name](probability.BOUND) <= probability.success)
    with pytest.raises(KernelError):
        probability.prove_probability()


WEAKER = {
    "interference": {"e0 covers the pairs across": r * q / 2 <= blocks.e0},
    "crowding": {"e0 covers the pairs within": -blocks.c * blocks.y / 2 <= blocks.e0},
    "products above": {"tokens across, above": blocks.across(real(0) <= 1)},
}


@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_hypothesis_does_not_serve(name, monkeypatch):
    blocks.prove_acute()
    monkeypatch.setattr(blocks, "HYPOTHESES", {**blocks.HYPOTHESES, **WEAKER[name]})
    with pytest.raises((KernelError, ValueError)):
        blocks.prove_acute()


@pytest.mark.parametrize("condition", ["across", "within"])
def test_the_growth_condition_is_needed(condition, monkeypatch):
    small, large = dimension.SLOPES[condition][1:]
    monkeypatch.setitem(dimension.SLOPES, condition, small / 2 <= large)
    with pytest.raises(KernelError):
        dimension.prove_beyond(condition)


# --- on numbers --------------------------------------------------------------------------------------------


def margin_squared(gram: np.ndarray) -> float:
    """g*^2 = min beta' K beta over the simplex, by a solver of its own."""
    k = len(gram)
    found = minimize(
        lambda b: (b @ gram @ b, 2 * gram @ b),
        np.full(k, 1 / k),
        jac=True,
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda b: b.sum() - 1, "jac": lambda b: np.ones(k)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return float(found.fun)


def random_data(seed):
    """Signals plus noise of mixed scales, in few dimensions; queries of their own or the first tokens."""
    rng = np.random.default_rng(seed)
    sequences, noise, width = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(8, 200))
    xi = rng.standard_normal((sequences, noise, width)) * 10 ** rng.uniform(-1, 1)
    signals = np.zeros((sequences, width))
    signals[np.arange(sequences), rng.integers(0, 2, sequences)] = 10 ** rng.uniform(-1, 1.5)
    if seed % 2:
        xi[..., :2] = 0
    z = xi[:, 0] if seed % 3 == 0 else rng.standard_normal((sequences, width))
    return signals[:, None] - xi, z


@pytest.mark.parametrize("seed", range(60))
def test_the_lemma_on_blocks_holds_on_random_data(seed):
    """With the tightest bounds that each instance allows."""
    delta, z = random_data(seed)
    print("seed", seed)
    sequences, tokens, _ = delta.shape
    flat = delta.reshape(sequences * tokens, -1)
    of, inner, queries = np.repeat(np.arange(sequences), tokens), flat @ flat.T, z @ z.T
    gram = inner * queries[of][:, of]
    same, diagonal = of[:, None] == of, np.eye(len(of), dtype=bool)
    off_queries = ~np.eye(sequences, dtype=bool)
    r, q = np.abs(inner[~same]).max(), np.abs(queries[off_queries]).max()
    lengths, squares = np.diag(queries), inner[diagonal]
    c = min(inner[same & ~diagonal].min(), squares.min()) if tokens > 1 else squares.min()
    w, y, share = lengths.min(), lengths.max(), c + (squares.min() - c) / tokens
    e0 = max(r * q, -c * y)
    assert gram.min() >= -e0 * (1 + 1e-12)
    if share < 0:
        return
    rows = np.sqrt(((queries**2).sum(axis=1) - lengths**2).max() / (sequences - 1))
    bound = (w * share - (sequences - 1) * r * rows) / sequences
    assert bound <= margin_squared(gram) + 1e-9 * np.abs(gram).max()
    room = tokens * (w * share - (sequences - 1) * r * q)
    if room > 0:
        assert np.all(gram.sum(axis=1) >= room * (1 - 1e-12))


@pytest.mark.parametrize("d", [3, 40, 1000])
def test_the_square_tails_bound_the_chi_square_distribution(d):
    for t in np.linspace(0.01, 0.9, 30):
        assert chi2.cdf(d * (1 - t), d) <= np.exp(d * (t + np.log(1 - t)) / 2)
        assert chi2.sf(d * (1 + t), d) <= np.exp(-d * (t - np.log(1 + t)) / 2)


@pytest.mark.parametrize("seed", range(3))
def test_the_product_tail_bounds_the_frequency(seed):
    """<xi, xi'> of two Gaussian vectors is half the difference of two independent chi-squares."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    d, draws = 30, 200_000
    product = (rng.chisquare(d, draws) - rng.chisquare(d, draws)) / 2
    for t in (0.1, 0.3, 0.5):
        level = d * t / (1 - t**2)
        bound = np.exp(-d * (t**2 / (1 - t**2) + np.log(1 - t**2) / 2))
        frequency = np.mean(product >= level)
        assert frequency <= bound
        assert frequency >= bound / 30, "the exponent is the best one, so the bound is not far"
