"""Figure 8: every theorem about runs has its row, with ratios at most 1 that are those of the verdicts."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

import theory
from numerics import NormalizedGD, train
from paper_figs import figures, style, tightness

ABOUT = {"gd": "gd-", "ngd": "ngd-", "polyak": "polyak-"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    files = figures.make("tightness", out, out / "runs", quick=True)
    assert [path.name for path in files] == [
        f"tightness-{part}.{end}" for part in ("gaussian", "joint") for end in ("pdf", "png", "csv", "tex")
    ]
    return out, pd.read_csv(files[2]), pd.read_csv(files[6])


def test_the_theorems_about_runs_are_there_for_the_rules_they_speak_of(made):
    frame = made[1]
    assert not frame.duplicated(["theorem", "rule"]).any()
    known = {key for key, page in theory.theorems().items() if page.rate}
    assert set(frame["theorem"]) <= known
    assert len(set(frame["theorem"])) >= 20
    rules = frame.groupby("theorem")["rule"].agg(set)
    for theorem in ("norm-growth", "global-direction", "sparsification", "loss-decay"):
        assert rules[theorem] == {"gd", "ngd", "polyak"}
    for rule, prefix in ABOUT.items():
        own = [theorem for theorem in rules.index if theorem.startswith(prefix)]
        assert own
        assert all(rules[theorem] == {rule} for theorem in own)
    assert (frame["seeds"] == 3).sum() > 30


def test_together_the_parts_show_every_theorem_about_runs(made):
    known = {key for key, page in theory.theorems().items() if page.rate}
    joint = {key for key in known if key.startswith("joint-")}
    assert len(joint) >= 15
    assert set(made[2]["theorem"]) == joint
    assert known - joint - set(made[1]["theorem"]) <= {"polyak-step-upper-direction"}


def test_a_joint_bound_is_kept(made):
    frame = made[2]
    assert (frame["worst"] <= 1 + 1e-9).all()
    assert (frame[["median", "final"]].max(axis=1) <= frame["worst"] * (1 + 1e-9)).all()
    rules = frame.groupby("theorem")["rule"].agg(set)
    assert rules["joint-loss"] == {"gd", "ngd", "polyak"}
    assert rules["joint-loss-rate"] == {"ngd"}  # the schedule's


def test_each_picture_fits_a_page_with_its_caption(made):
    for part in ("gaussian", "joint"):
        picture = imread(made[0] / f"tightness-{part}.png")
        assert picture.shape[0] <= 8 * style.PNG_DPI


def test_every_bound_is_kept_and_the_worst_is_the_worst(made):
    frame = made[1]
    assert (frame["worst"] <= 1 + 1e-9).all()
    for other in ("median", "final"):
        assert (frame[other] > 0).all()
        assert (frame[other] <= frame["worst"] * (1 + 1e-9)).all()


def test_the_numbers_are_those_of_the_verdicts(made):
    runs = [
        train(setting.problem(), setting.step_rule(), steps=setting.steps, seed=setting.seed)
        for setting in tightness.parts(quick=True)["gaussian"].settings
        if setting.rule == "ngd"
    ]
    assert {type(run.rule) for run in runs} == {NormalizedGD}
    row = made[1].set_index(["theorem", "rule"])
    for theorem, swapped in (("global-direction", False), ("norm-growth", True), ("sparsification", False)):
        verdicts = [theory.check(run, theorem) for run in runs]
        shares = [v.bound / v.observed if swapped else v.observed / v.bound for v in verdicts]
        found = row.loc[(theorem, "ngd")]
        assert found["worst"] == pytest.approx(max(v.worst_ratio for v in verdicts), rel=1e-12)
        assert found["worst"] == pytest.approx(np.concatenate(shares).max(), rel=1e-9)
        assert found["median"] == pytest.approx(np.median(np.concatenate(shares)), rel=1e-9)
        assert found["final"] == pytest.approx(np.median([share[-1] for share in shares]), rel=1e-9)


def test_the_full_figure_takes_twenty_seeds_and_float64_holds_both_sides():
    settings = tightness.parts(quick=False)["gaussian"].settings
    for rule in ABOUT:
        assert sorted(x.seed for x in settings if x.rule == rule) == list(range(20))
    assert len(tightness.parts(quick=True)["gaussian"].settings) == 9
    longest = next(x for x in settings if x.rule == "polyak")
    run = train(longest.problem(), longest.step_rule(), steps=longest.steps)
    for theorem in ("sparsification", "loss", "loss-decay"):  # those that underflow
        verdict = theory.check(run, theorem)
        assert verdict.steps[-1] == longest.steps
        assert verdict.observed.min() > 0
        assert verdict.bound.min() > 0


def test_the_picture_is_one_column_wide_and_shows_every_rule(made):
    picture = imread(made[0] / "tightness-gaussian.png")[..., :3]
    assert picture.shape[1] == round(style.SINGLE * style.PNG_DPI)
    plot = picture[: int(0.85 * len(picture))]
    for look in style.RULES.values():
        color = np.array([int(look.color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        assert (np.abs(plot - color).max(axis=-1) < 0.05).sum() > 300
