"""The theorem on Gaussian data against simulation: how often (S) and (N) hold, with exact binomial intervals.

A problem's Gram matrix needs the noise only through its own Gram matrix, a Wishart matrix, which Bartlett's
decomposition draws in any dimension at the cost of a triangular one. That the data set itself has the same
law is checked too, and ``make soak`` repeats the main check on problems from the data set.

A problem passes if some W proves it: with beta = K^(-1) 1 all logit gaps of W = sum beta_k A_k are 1, so (S)
holds and g*^2 >= 1/||W||^2 = 1/sum(beta); (N) holds if no entry of K is at or below minus that. What does not
pass is decided by the exact max-margin solution.
"""

import numpy as np
import pytest
from scipy.stats import beta as beta_distribution
from scipy.stats import ks_2samp

from numerics import max_margin
from numerics.datasets.gaussian import gaussian as gaussian_data
from theory import assumptions, gaussian

CONFIDENCE = 0.999


def interval(successes, trials, confidence=CONFIDENCE):
    """Clopper and Pearson's interval for a probability."""
    tail = (1 - confidence) / 2
    low = beta_distribution.ppf(tail, successes, trials - successes + 1) if successes else 0.0
    high = beta_distribution.ppf(1 - tail, successes + 1, trials - successes) if successes < trials else 1.0
    return low, high


def wishart(rng, vectors, dimensions):
    """The Gram matrix of standard Gaussian vectors, by Bartlett's decomposition."""
    if dimensions < vectors:
        x = rng.standard_normal((vectors, dimensions))
        return x @ x.T
    lower = np.tril(rng.standard_normal((vectors, vectors)), -1)
    lower[np.diag_indices(vectors)] = np.sqrt(rng.chisquare(dimensions - np.arange(vectors)))
    return lower @ lower.T


def draw_gram(rng, *, n, T, d, signal, noise, query):
    """K of one problem, with labels alternating; the noise lives in d - 2 dimensions."""
    m = T - 1
    gram = noise**2 * wishart(rng, n * m + (n if query == "own" else 0), d - 2)
    sequence = np.repeat(np.arange(n), m)
    tokens = gram[: n * m, : n * m] + signal**2 * (sequence[:, None] % 2 == sequence % 2)
    queries = gram[n * m :, n * m :] if query == "own" else gram[: n * m : m, : n * m : m]
    return tokens * queries[sequence][:, sequence]


def proves_itself(gram):
    """Whether beta = K^(-1) 1 shows (S) and (N), with a little to spare for rounding."""
    try:
        beta = np.linalg.solve(gram, np.ones(len(gram)))
    except np.linalg.LinAlgError:
        return False
    if np.abs(gram @ beta - 1).max() > 1e-6 or beta.sum() <= 0:
        return False
    return bool(gram.min() > -(1 - 1e-5) / beta.sum())


def frequency(seed, trials, **setting):
    """How many of the problems prove (S) and (N): a lower bound of how many have them."""
    rng = np.random.default_rng(seed)
    return sum(proves_itself(draw_gram(rng, **setting)) for _ in range(trials))


def grid(sizes, dimensions):
    """Settings for the given (n, T) and d, at three ratios of signal to noise."""
    return [
        {"n": n, "T": T, "d": d, "signal": signal, "noise": noise}
        for n, T in sizes
        for signal, noise in ((2.0, 0.1), (2.0, 0.3), (1.0, 1.0))
        for d in dimensions
    ]


def not_contradicted(settings, query, trials):
    """Hold the theorem against simulation in each setting; return its claims."""
    claims, seed = [], 7
    print("seed", seed)
    for setting in settings:
        claimed = gaussian.probability(**setting, query=query)
        passed = frequency(seed, trials, **setting, query=query)
        low, high = interval(passed, trials)
        print(setting, f"claimed {claimed:.4f}, seen {passed}/{trials}, interval [{low:.4f}, {high:.4f}]")
        assert claimed <= high
        claims.append(claimed)
    return np.array(claims)


@pytest.mark.parametrize("query", ["first", "own"])
def test_the_theorem_is_not_contradicted(query):
    claims = not_contradicted(grid([(2, 4), (4, 3)], [200, 1500]), query, 400)
    assert (claims > 0.9).any()
    assert (claims < 0.9).any()


@pytest.mark.soak
@pytest.mark.parametrize("query", ["first", "own"])
def test_the_theorem_is_not_contradicted_on_a_grid(query):
    claims = not_contradicted(
        grid([(2, 2), (2, 4), (4, 3), (6, 4), (10, 6)], [50, 200, 800, 3000, 12_000]), query, 2000
    )
    assert (claims > 0.9).sum() >= 10, "the theorem says something on the grid"
    assert (claims < 0.5).sum() >= 10, "and not everywhere"


@pytest.mark.parametrize("query", ["first", "own"])
def test_the_threshold_is_confirmed_by_2000_problems(query):
    """n = 10, T = 6, delta = 0.01: in the printed dimension at least 99% of all problems have (S) and (N)."""
    setting = {"n": 10, "T": 6, "signal": 2.0, "noise": 0.1, "query": query}
    d, seed = gaussian.smallest_dimension(10, 6, delta=0.01, query=query), 11
    print("seed", seed, "d", d)
    low, _ = interval(frequency(seed, 2000, **setting, d=d), 2000)
    assert low >= 0.99


@pytest.mark.parametrize("query", ["first", "own"])
def test_how_conservative_the_threshold_is(query):
    """A dimension four times smaller suffices; one six times smaller does not."""
    setting = {"n": 10, "T": 6, "signal": 2.0, "noise": 0.1, "query": query}
    d, seed, trials = gaussian.smallest_dimension(10, 6, delta=0.01, query=query), 13, 2000
    print("seed", seed, "d", d)
    low, _ = interval(frequency(seed, trials, **setting, d=d // 4), trials)
    assert low >= 0.99
    rng = np.random.default_rng(seed)
    grams = [draw_gram(rng, **setting, d=d // 6) for _ in range(trials)]
    assert all(np.linalg.solve(g, np.ones(len(g))).min() > 0 for g in grams), "full support: g* is exact"
    _, high = interval(sum(map(proves_itself, grams)), trials)
    assert high < 0.99


@pytest.mark.parametrize("query", ["first", "own"])
def test_the_data_set_has_the_law_of_the_drawn_matrices(query):
    setting = {"n": 3, "T": 3, "d": 60, "signal": 2.0, "noise": 0.5, "query": query}
    rng, seed = np.random.default_rng(17), 17
    print("seed", seed)
    drawn = np.array([[(g := draw_gram(rng, **setting)).min(), g.max(), g.mean()] for _ in range(600)])
    made = np.array(
        [[(g := gaussian_data(seed=k, **setting).gram()).min(), g.max(), g.mean()] for k in range(600)]
    )
    for a, b in zip(drawn.T, made.T, strict=True):
        assert ks_2samp(a, b).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_a_problem_that_proves_itself_is_near_acute_in_ball_arithmetic(seed):
    print("seed", seed)
    d = gaussian.smallest_dimension(3, 3, delta=0.01)
    problem = gaussian_data(seed=seed, n=3, T=3, d=d)
    target = max_margin(problem)
    assert proves_itself(problem.gram())
    assert assumptions.separable(problem, target).state == "holds"
    assert assumptions.near_acute(problem, target).state == "holds"


@pytest.mark.soak
@pytest.mark.parametrize("query", ["first", "own"])
def test_the_threshold_is_confirmed_by_2000_problems_of_the_data_set(query):
    d = gaussian.smallest_dimension(10, 6, delta=0.01, query=query)
    print("seeds 0 to 1999, d", d)
    passed = sum(
        proves_itself(gaussian_data(seed=k, n=10, T=6, d=d, query=query).gram()) for k in range(2000)
    )
    low, _ = interval(passed, 2000)
    assert low >= 0.99
