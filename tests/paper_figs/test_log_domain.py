"""Figure 7: the balls are exact, the engine stays with them, and autograd leaves them where theory says."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from paper_figs import figures, log_domain, style
from paper_figs.log_domain import BALLS, FLOAT32, FLOAT64, OURS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    files = figures.make("log-domain", out, out / "runs", quick=True)
    return out, pd.read_csv(files[2])


def test_every_series_is_there(made):
    frame = made[1]
    assert frame["series"].unique().tolist() == [BALLS, OURS, FLOAT64, FLOAT32]
    assert frame.groupby("series")["step"].max().eq(300).all()


def test_the_engine_stays_with_the_balls(made):
    frame = made[1]
    assert (frame.loc[frame["series"] == BALLS, "error"] < 1e-20).all()
    assert (frame.loc[frame["series"] == OURS, "error"] < 1e-11).all()


@pytest.mark.parametrize(("series", "before"), [(FLOAT32, 1e-3), (FLOAT64, 1e-10)])
def test_autograd_is_right_before_attention_rounds_to_one_and_wrong_after(made, series, before):
    frame = made[1]
    saturated = log_domain.saturation(frame)[series]
    curve = frame[frame["series"] == series].set_index("step")["error"].dropna()
    assert (curve[curve.index < saturated / 3] < before).all()
    assert (curve[curve.index > 2 * saturated - 50] > 10).all()
    assert curve.index.max() > saturated


def test_where_attention_rounds_to_one():
    frame = pd.DataFrame({"series": BALLS, "step": [1, 2, 3, 4], "logit_gap": [16.6, 16.7, 36.7, 36.8]})
    assert log_domain.saturation(frame) == {FLOAT32: 2, FLOAT64: 4}
    assert np.exp(-16.7) < 2.0**-24
    assert np.exp(-36.8) < 2.0**-53


def test_the_picture_shows_every_series(made):
    picture = imread(made[0] / "log-domain-gaussian.png")[..., :3]
    assert picture.shape[1] == round(style.DOUBLE * style.PNG_DPI)
    plot = picture[: int(0.85 * len(picture))]
    for look in (log_domain.LOOKS[name] for name in (OURS, FLOAT64, FLOAT32)):
        color = np.array([int(look["color"][k : k + 2], 16) / 255 for k in (1, 3, 5)])
        assert (np.abs(plot - color).max(axis=-1) < 0.05).sum() > 500
