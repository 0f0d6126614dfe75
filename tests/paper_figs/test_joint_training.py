"""Figure 2: every curve is there, the loss a stretched exponential, and the regimes are told apart."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from scipy import stats

from paper_figs import figures, joint_training, style

RULES = ["gd", "ngd", "polyak"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    files = figures.make("joint-training", out, out / "runs", quick=True)
    names = [
        f"joint-training-{part}.{end}" for part in joint_training.DATA for end in ("pdf", "png", "csv", "tex")
    ]
    assert [path.name for path in files] == names
    return out, {part: pd.read_csv(out / f"joint-training-{part}.csv") for part in joint_training.DATA}


def curve(frame, rule, column):
    part = frame[frame["rule"] == rule].set_index("step")
    return part[column].dropna()


@pytest.mark.parametrize("part", joint_training.DATA)
def test_every_series_is_there(made, part):
    frame = made[1][part]
    assert frame["rule"].unique().tolist() == RULES
    for rule in RULES:
        for column in ("minus_log_loss", "direction_gap", "log_attention_gap", "margin_gap"):
            own = curve(frame, rule, column)
            assert own.index[-1] == 3_000
            assert len(own) > 100


@pytest.mark.parametrize("part", joint_training.DATA)
def test_the_loss_of_normalized_gd_is_a_line_in_the_root_of_t(made, part):
    loss = curve(made[1][part], "ngd", "minus_log_loss").loc[300:]
    fit = stats.linregress(np.cbrt(loss.index), loss)
    assert fit.rvalue > 0.9999
    low, high = joint_training.rate(made[1][part])
    assert low < high < 1.2 * low
    faster = curve(made[1][part], "polyak", "minus_log_loss").loc[300:]
    assert stats.linregress(np.log(faster.index), np.log(faster)).slope > 0.9
    assert curve(made[1][part], "gd", "minus_log_loss").iloc[-1] < loss.iloc[-1]


@pytest.mark.parametrize("part", joint_training.DATA)
def test_the_bounds_are_on_their_side(made, part):
    frame = made[1][part]
    for rule in RULES:
        bound = curve(frame, rule, "bound_direction_gap")
        assert (curve(frame, rule, "direction_gap").loc[bound.index] <= bound * (1 + 1e-9)).all()
        bound = curve(frame, rule, "bound_minus_log_loss")
        assert (curve(frame, rule, "minus_log_loss").loc[bound.index] >= bound - 1e-9).all()
    assert len(curve(frame, "ngd", "bound_minus_log_loss")) > 50
    assert len(curve(frame, "ngd", "bound_direction_gap")) > 50


@pytest.mark.parametrize(("part", "found", "total"), [("strong-signal", 20, 20), ("weak-signal", 0, 8)])
def test_the_regimes_are_told_apart(made, part, found, total):
    frame = made[1][part]
    last = frame[frame["step"] == 3_000]
    assert (last["optimal_data"] == found).all()
    assert (last["sequences"] == total).all()
    text = (made[0] / f"joint-training-{part}.tex").read_text()
    assert f"signal token found in {found} of {total} sequences" in text
    assert curve(frame, "ngd", "direction_gap").iloc[-1] < 0.01
    assert curve(frame, "ngd", "margin_gap").iloc[-1] < 0.05


@pytest.mark.parametrize("part", joint_training.DATA)
def test_the_picture_shows_every_rule_in_every_panel(made, part):
    picture = imread(made[0] / f"joint-training-{part}.png")[..., :3]
    assert picture.shape[1] == round(style.DOUBLE * style.PNG_DPI)
    plot = picture[: int(0.88 * len(picture))]
    half, middle = len(plot) // 2, plot.shape[1] // 2
    panels = [plot[:half, :middle], plot[:half, middle:], plot[half:, :middle], plot[half:, middle:]]
    for panel in panels:
        for rule in RULES:
            look = style.RULES[rule]
            color = np.array([int(look.color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
            rows = np.flatnonzero((np.abs(panel - color).max(axis=-1) < 0.05).any(axis=1))
            assert len(rows) > 15, rule  # a curve, not a line squeezed onto an axis


@pytest.mark.parametrize("part", joint_training.DATA)
def test_the_caption_names_every_line(made, part):
    frame = made[1][part]
    text = joint_training.caption(joint_training.parts(quick=True)[part], frame)
    assert "the grey line has the slope of $t^{-2/3}$" in text
    assert "Dotted in (a) and (b), where claimed" in text
    assert "(pale bands)" in text
    bound = curve(frame, "polyak", "bound_minus_log_loss")
    falls = len(bound) > 0 and bound.iloc[0] > 0 and bound.min() <= 0
    assert falls == (part == "weak-signal")
    said = "That on the loss under Polyak says nothing from"
    assert (said in text) == falls
    if falls:
        assert f"{said} $t={bound.index[bound <= 0][0]}$ on" in text


@pytest.mark.parametrize("part", joint_training.DATA)
def test_both_distances_of_the_decoder_are_seen(made, part):
    figure = joint_training.draw(made[1][part])
    lines = figure.axes[3].lines
    bands = [line for line in lines if line.get_alpha()]
    others = [line for line in lines if not line.get_alpha()]
    assert len(bands) == len(others) == len(RULES)
    assert min(line.get_linewidth() for line in bands) > 2 * max(line.get_linewidth() for line in others)
    assert not any(line.get_linestyle() == ":" for line in lines)


def test_quick_is_shorter():
    for quick, steps in ((True, 3_000), (False, 100_000)):
        for part in joint_training.parts(quick=quick).values():
            assert {setting.steps for setting in part.settings} == {steps}
            assert all(setting.decoder is not None for setting in part.settings)
