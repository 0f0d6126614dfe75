"""The numbers of the theorem on Gaussian data: rigorous, as by a formula written anew; bad input refused."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest

from numerics.errors import InputError
from theory import gaussian
from theory.proof.kernel import KernelError
from theory.proof.terms import real
from theory.theorems.gaussian_probability import GIVEN, success

SETTING = gaussian.Setting(10, 6, 2.0, 0.1)


@pytest.fixture(scope="module")
def pieces():
    return gaussian.cover(10, 6, signal=2.0, noise=0.1, delta=0.01)


def by_hand(setting, d, bounds):
    """Interference, crowding, margin bound and failure probability, from the theorem's statement."""
    n, m, s, scale = setting.n, setting.T - 1, setting.signal, setting.noise**2 * (d - 2)
    t_q, t_p, t_u, w, y, a, h = (float(bounds[name]) for name in ("t_q", "t_p", "t_u", "w", "y", "a", "h"))
    q, p, u = (scale * t / (1 - t**2) for t in (t_q, t_p, t_u))
    r, c = s**2 + p, s**2 - u
    share = c + (scale * (1 - a) + u) / m
    margin = scale * ((1 - w) * share - (n - 1) * r * h) / n

    def tail(t):
        return np.exp(-(d - 2) * t**2 / (1 - t**2)) * (1 - t**2) ** (-(d - 2) / 2)

    def shorter(x, freedom=d - 2):
        return (np.exp(x) * (1 - x)) ** (freedom / 2)

    failure = n * (n - 1) * (tail(t_q) + m**2 * tail(t_p)) + n * m * (m - 1) / 2 * tail(t_u)
    failure += n * (shorter(w) + shorter(-y)) + n * m * shorter(a)
    wide = (d - 2) * h**2 / (1 + y) - 1
    assert wide > 0
    failure += n * shorter(-wide, n - 1)
    return r * q, -c * scale * (1 + y), margin, failure


def test_the_terms_are_the_statement(pieces):
    for piece in pieces:
        across, within, margin, failure = by_hand(SETTING, piece.d, piece.bounds)
        assert max(across, within) < margin
        assert failure == pytest.approx(piece.failure, rel=1e-9)


def test_the_cover_is_complete(pieces):
    assert [p.d for p in pieces] == sorted({p.d for p in pieces})
    assert all(p.failure <= 0.01 for p in pieces)
    assert all(p.reaches(q.d - 1) for p, q in itertools.pairwise(pieces))
    assert pieces[-1].endless
    assert pieces[-1].reaches(10**7)
    assert gaussian.smallest_dimension(10, 6) == pieces[0].d


def test_a_certificate_does_not_reach_everywhere(pieces):
    """What keeps the cover honest: the first pieces end, and none reaches below its own dimension."""
    assert not any(p.reaches(100 * p.d) or p.endless for p in pieces[:2])
    assert not any(p.reaches(p.d - 1) for p in pieces)


def test_the_threshold_is_proved_by_the_kernel(pieces):
    likely, across, within = gaussian.proved(pieces[0])
    assert likely.conclusion == (1 - real(Fraction(pieces[0].failure)) <= success)
    assert len(likely.hypotheses) == len(GIVEN), "nothing but the given facts"
    assert not across.hypotheses
    assert not within.hypotheses
    too_good = dataclasses.replace(pieces[0], failure=pieces[0].failure * 0.999)
    with pytest.raises(KernelError):
        gaussian.proved(too_good)
    wrong = {**pieces[0].bounds, "t_q": pieces[0].bounds["t_q"] * Fraction(11, 10)}
    with pytest.raises(KernelError):
        gaussian.proved(dataclasses.replace(pieces[0], bounds=wrong))


def test_just_below_the_threshold_the_theorem_does_not_say_enough(pieces):
    d = pieces[0].d
    assert gaussian.probability(10, 6, d) >= 0.99
    assert gaussian.probability(10, 6, d - 1) < 0.99
    assert gaussian.probability(10, 6, d // 2) == 0.0


def test_own_and_first_queries_have_one_bound():
    assert gaussian.probability(3, 3, 600, query="own") == gaussian.probability(3, 3, 600, query="first") > 0


@pytest.mark.parametrize(("signal", "noise"), [(2.0, 0.1), (0.5, 0.2)])
def test_only_the_ratio_of_signal_to_noise_counts(signal, noise):
    d = 700
    one = gaussian.probability(2, 3, d, signal=signal, noise=noise)
    same = gaussian.probability(2, 3, d, signal=4 * signal, noise=4 * noise)
    assert one == pytest.approx(same, abs=1e-4)


def test_more_sequences_or_tokens_need_larger_dimensions():
    base = gaussian.smallest_dimension(2, 3)
    assert base < gaussian.smallest_dimension(3, 3)
    assert base < gaussian.smallest_dimension(2, 3, delta=1e-6)


def test_probability_never_reaches_one():
    assert gaussian.probability(2, 2, 100_000) < 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 1}, "n >= 2"),
        ({"T": 1}, "T >= 2"),
        ({"signal": 0.0}, "positive signal"),
        ({"noise": float("nan")}, "positive noise"),
        ({"noise": float("inf")}, "positive noise"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"query": "last"}, "query"),
    ],
)
def test_bad_input_is_named(change, words):
    options = {"n": 2, "T": 3, "signal": 2.0, "noise": 0.1, "delta": 0.01, "query": "first"} | change
    with pytest.raises(InputError, match=words):
        gaussian.smallest_dimension(options.pop("n"), options.pop("T"), **options)


def test_too_small_a_dimension_is_named():
    with pytest.raises(InputError, match="d >= 3"):
        gaussian.probability(2, 3, 2)
