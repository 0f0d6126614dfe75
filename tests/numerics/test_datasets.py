"""The data sets: reproducible, as documented, feasible at their defaults; every bad specification refused."""

from __future__ import annotations

import numpy as np
import pytest

from numerics import max_margin
from numerics.datasets import load, names, options
from numerics.errors import InputError

SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_gaussian_defaults_are_separable_and_near_acute(seed: int) -> None:
    p = load("gaussian", seed)
    solution = max_margin(p)
    assert solution.margins.min() > 1 - 1e-5
    assert -p.gram().min() < 0.9 * solution.margin**2  # assumption (N), with room
    non_optimal = p.scores[p.constraint_sequence, p.constraint_token]
    assert (non_optimal == 0).all()  # assumption (E), exactly


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_is_the_model_it_says(seed: int) -> None:
    p = load("gaussian:n=40,T=5,d=1000,signal=3,noise=0.2,query=own,orthogonal=false,decoder=2", seed)
    print(f"seed {seed}")
    signals = p.tokens[np.arange(p.n), p.optimal]
    np.testing.assert_allclose(signals @ signals.T, 9.0 * (p.labels[:, None] == p.labels), atol=1e-12)
    assert abs(p.labels.sum()) == 0
    noise = p.tokens[p.constraint_sequence, p.constraint_token]
    own = p.queries
    for sample in (noise, own):
        entries = sample.ravel() / 0.2
        assert abs(entries.mean()) < 6 / np.sqrt(entries.size)
        assert abs((entries**2).mean() - 1) < 6 * np.sqrt(2 / entries.size)
        assert abs((entries**4).mean() - 3) < 6 * np.sqrt(96 / entries.size)
    scores = p.scores[p.constraint_sequence, p.constraint_token]
    assert abs(scores.std() / (np.sqrt(2) * 2 * 0.2 / 3) - 1) < 0.25
    np.testing.assert_allclose(p.scores[np.arange(p.n), p.optimal], 2.0, rtol=1e-14)
    assert set(p.optimal) == set(range(5))
    assert not any((own[i] == p.tokens[i]).all(axis=1).any() for i in range(p.n))


def test_gaussian_first_token_is_noise_and_query() -> None:
    p = load("gaussian:n=60", 0)
    assert set(p.optimal) == {1, 2, 3}
    np.testing.assert_array_equal(p.queries, p.tokens[:, 0])


@pytest.mark.parametrize("spec", ["gaussian", "digits:3v5"])
def test_seeds_reproduce_and_differ(spec: str) -> None:
    assert load(spec, 3) == load(spec, 3)
    assert load(spec, 3) != load(spec, 4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spec", ["digits:3v5", "digits:4v9,patch=4", "digits:1v7,n=10"])
def test_digits_are_separable_with_unequal_scores(spec: str, seed: int) -> None:
    p = load(spec, seed)
    solution = max_margin(p)
    assert solution.margins.min() > 1 - 1e-4
    assert np.unique(p.scores[p.mask]).size > p.n  # assumption (E) fails
    np.testing.assert_allclose(np.linalg.norm(p.tokens[p.mask], axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(p.queries, axis=1), 1.0, rtol=1e-14)
    assert p.labels.sum() == 0


def test_digits_lengths_vary_and_the_decoder_classifies() -> None:
    p = load("digits:3v5,n=100", 0)
    assert len(set(p.lengths)) > 1
    means = p.tokens.sum(axis=1) / p.lengths[:, None]
    assert (np.sign(means @ p.decoder) == p.labels).mean() > 0.9


def test_a_file_is_a_data_set(tmp_path) -> None:
    p = load("gaussian")
    p.save(tmp_path / "p.npz")
    assert load(str(tmp_path / "p.npz")) == p


def test_options_by_keyword_win() -> None:
    assert load("gaussian:n=3", n=4).n == 4
    assert set(names()) == {"bbc", "digits", "gaussian"}
    assert options("gaussian")["n"] == load("gaussian").n


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gauss", 'unknown data set "gauss"'),
        ("", "unknown data set"),
        ("nowhere.npz", r"nowhere\.npz: No such file"),
        ("gaussian:n=x", "n in .* must be a whole number"),
        ("gaussian:n=2.5", "must be a whole number"),
        ("gaussian:noise=big", "must be a number"),
        ("gaussian:noise=nan", "positive noise"),
        ("gaussian:signal=0", "positive signal"),
        ("gaussian:decoder=-1", "positive decoder"),
        ("gaussian:orthogonal=maybe", "true or false"),
        ("gaussian:query=last", 'query "first" or "own"'),
        ("gaussian:colour=red", "its options are n, T, d"),
        ("gaussian:n=3,n=4", "repeats"),
        ("gaussian:n=0", "n >= 1"),
        ("gaussian:T=1", "T >= 2"),
        ("gaussian:d=2", "d >= 3"),
        ("gaussian:n=3,7", "not understood"),
        ("digits:3", "two different digits"),
        ("digits:3v3", "two different digits"),
        ("digits:3v5,patch=3", "patch side"),
        ("digits:3v5,n=7", "even n"),
        ("digits:3v5,n=1000", "even n"),
        ("digits:3v5,query=last", "query"),
    ],
)
def test_bad_specifications_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(spec)
    assert "\n" not in str(caught.value)


def test_bad_arguments_are_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="no option colour"):
        load("gaussian", colour="red")
    with pytest.raises(InputError, match="seed"):
        load("gaussian", seed=-1)
    with pytest.raises(InputError, match="seed"):
        load("digits", seed=-1)
    load("gaussian").save(tmp_path / "p.npz")
    with pytest.raises(InputError, match="takes no options"):
        load(str(tmp_path / "p.npz"), n=3)
    with pytest.raises(InputError, match="is a directory"):
        load(str(tmp_path))
    (tmp_path / "p.pkl").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(InputError, match=r"is not an \.npz"):
        load(str(tmp_path / "p.pkl"))
