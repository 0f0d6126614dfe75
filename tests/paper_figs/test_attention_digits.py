"""Figure 5, digits: attention sums to one, starts uniform and ends on the optimal patches."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from numerics import NormalizedGD, train
from numerics.datasets import load
from numerics.datasets.digits import images
from paper_figs import attention_digits, experiments, figures, style


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    files = figures.make("attention-digits", out, out / "runs", quick=True)
    return out, pd.read_csv(files[2])


def test_a_row_for_each_pixel_of_each_image(made):
    frame = made[1]
    assert len(frame) == 64 * experiments.DIGITS[1]
    assert frame.groupby("digit")["image"].nunique().to_dict() == {3: 5, 5: 5}


def test_the_tokens_are_patches_of_these_images():
    problem, ink = load("digits:3v5,n=10", seed=3), images("3v5", seed=3, n=10)
    for tokens, picture, mask in zip(problem.tokens, ink, problem.mask, strict=True):
        seen = tokens[mask].sum(axis=0) > 0
        np.testing.assert_array_equal(seen, picture.ravel() > 0)


def test_attention_starts_uniform_and_sums_to_one_over_the_patches(made):
    frame = made[1]
    corners = frame[(frame["row"] % 2 == 0) & (frame["column"] % 2 == 0)]  # a pixel of each 2 x 2 patch
    for column in attention_digits.COLUMNS:
        np.testing.assert_allclose(corners.groupby("image")[column].sum(), 1, rtol=1e-12)
    for _, part in corners.groupby("image"):
        used = part[part["before"] > 0]
        assert used["before"].nunique() == 1
        assert used["before"].iloc[0] == pytest.approx(1 / len(used))
        assert part["optimal"].sum() == 1


def test_training_moves_attention_to_the_optimal_token():
    run = train(load("digits:3v5,n=10", seed=0), NormalizedGD(step=0.1), steps=2_000, space="gram", seed=0)
    shop = SimpleNamespace(runs_of=lambda _: [run])
    frame = attention_digits.data(attention_digits.parts()["digits"], shop)
    best = frame[frame["optimal"]].drop_duplicates("image")
    assert (best["after"] > 0.99).all()
    assert best["hit"].all()
    assert (1 - best["after"]).max() == pytest.approx(best["one_minus_p"].iloc[0], rel=1e-6)


def test_equal_scores_are_not_said_to_hold(made):
    names = made[1]["hypotheses"].iloc[0].split()
    assert "S" in names
    assert "O" in names
    assert "E" not in names


def test_the_picture_shows_attention_and_outlines(made):
    picture = imread(made[0] / "attention-digits-digits.png")[..., :3]
    assert picture.shape[1] == round(style.DOUBLE * style.PNG_DPI)
    color = np.array([int(attention_digits.OPTIMAL[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    assert (np.abs(picture - color).max(axis=-1) < 0.05).sum() > 1000
