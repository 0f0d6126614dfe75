"""Figure 3: every curve is there, the bounds lie above the runs, the asymptote meets them at the end."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from numerics import GradientDescent, NormalizedGD, Polyak, train
from numerics.datasets import load
from paper_figs import direction_rate, figures, style


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    files = figures.make("direction-rate", out, out / "runs", quick=True)
    assert [path.name for path in files] == [
        f"direction-rate-gaussian.{end}" for end in ("pdf", "png", "csv", "tex")
    ]
    return out, pd.read_csv(files[2], keep_default_na=False)


def curve(frame, series, rule):
    part = frame[(frame["series"] == series) & (frame["rule"] == rule)]
    return part.set_index("step")["value"]


CLAIMED = {
    "gd": {"observed", "a-posteriori"},
    "ngd": {"observed", "a-posteriori", "a-priori", "sharp", "asymptote"},
    "polyak": {"observed", "a-posteriori", "a-priori", "asymptote"},
}


def test_every_curve_that_is_claimed_is_there(made):
    frame = made[1]
    assert {rule: set(part["series"]) for rule, part in frame.groupby("rule") if rule} == CLAIMED
    assert frame.columns.tolist() == ["series", "rule", "step", "value"]
    for rule, series in CLAIMED.items():
        for name in series:
            own = curve(frame, name, rule)
            assert own.index.is_unique
            assert own.index[-1] == 20_000
            assert own.index[0] <= 100
            assert len(own) > 50


@pytest.mark.parametrize("series", ["a-posteriori", "a-priori", "sharp"])
def test_the_bounds_lie_above_the_runs(made, series):
    frame = made[1]
    for rule in (rule for rule, claimed in CLAIMED.items() if series in claimed):
        bound = curve(frame, series, rule)
        assert (curve(frame, "observed", rule).loc[bound.index] <= bound * (1 + 1e-9)).all()


def test_the_sharp_bound_ends_far_below_the_others(made):
    last = {series: curve(made[1], series, "ngd").iloc[-1] for series in CLAIMED["ngd"]}
    assert last["observed"] < last["sharp"] < 1e-4 * last["a-posteriori"] < 1e-4 * last["a-priori"]


@pytest.mark.parametrize("rule", ["ngd", "polyak"])
def test_the_asymptote_meets_the_run_at_the_end_and_not_at_the_start(made, rule):
    error = curve(made[1], "asymptote", rule) / curve(made[1], "observed", rule) - 1
    assert abs(error.iloc[-1]) < 1e-3
    assert abs(error.iloc[0]) > 1


def test_the_slope_is_that_of_the_papers_rate(made):
    guide = curve(made[1], "slope", "")
    assert np.diff(np.log(guide))[0] / np.diff(np.log(guide.index))[0] == pytest.approx(-1)


def test_what_is_not_claimed_is_left_out():
    problem = load("gaussian:n=4,T=3,d=6", seed=0)  # d too small for nearly acute constraints
    rules = [GradientDescent(step=1.0), NormalizedGD(step=0.1), Polyak(cap=1.0)]
    shop = SimpleNamespace(runs_of=lambda _: [train(problem, rule, steps=50) for rule in rules])
    frame = direction_rate.data(direction_rate.parts()["gaussian"], shop)
    assert set(frame["series"]) & set(direction_rate.BOUNDS) == set()
    assert set(frame.loc[frame["series"] == "observed", "rule"]) == {"gd", "ngd", "polyak"}
    direction_rate.draw(frame)


def test_the_caption_says_where_bounds_begin_and_for_which_rules_there_is_no_sharp_one(made):
    frame, part = made[1], direction_rate.parts(quick=True)["gaussian"]
    text = direction_rate.caption(part, frame)
    assert "between the bounds" not in text
    first = curve(frame, "sharp", "ngd").index[0]
    assert f"The sharp bound is drawn from $t={first}$ on for normalized GD" in text
    assert "GD and Polyak have none, since it needs steps below $2g^*/R_B^2=0.126$" in text
    bound = curve(frame, "a-priori", "polyak")
    inside = bound.index[bound <= 2][0]
    assert inside > 1
    assert f"The a-priori bound of Polyak is above $2$, and the panel, until $t={inside}$." in text
    late = frame[(frame["series"] != "sharp") & ((frame["series"] != "a-priori") | (frame["step"] >= inside))]
    text = direction_rate.caption(part, late)
    assert "drawn from" not in text
    assert "the panel" not in text


def test_quick_is_shorter():
    steps = [
        {x.steps for x in direction_rate.parts(quick=quick)["gaussian"].settings} for quick in (True, False)
    ]
    assert steps == [{20_000}, {100_000}]


def test_the_picture_is_one_column_wide_and_shows_every_rule(made):
    picture = imread(made[0] / "direction-rate-gaussian.png")[..., :3]
    assert picture.shape[1] == round(style.SINGLE * style.PNG_DPI)
    plot = picture[: int(0.7 * len(picture))]
    for look in style.RULES.values():
        color = np.array([int(look.color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        assert (np.abs(plot - color).max(axis=-1) < 0.05).sum() > 1000
