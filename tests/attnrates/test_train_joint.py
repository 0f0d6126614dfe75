"""`attnrates train --joint`: the decoder is trained too; bad combinations are refused in one line."""

import json

import numpy as np
import pytest

from numerics import GradientDescent, NormalizedGD, Polyak, Run
from numerics.joint import train_joint

DATA = "gaussian:n=4,T=3,d=30"
JOINT = ("--data", DATA, "--joint", "--rule", "ngd", "--step", "0.1", "--exponent", "0.6667")


def only(folder):
    (place,) = folder.iterdir()
    return place


def test_what_is_left_out_is_as_for_w(attnrates, tmp_path) -> None:
    result = attnrates("train", *JOINT, "--steps", "30", "--out", tmp_path)
    assert (result.code, result.err) == (0, "")
    assert "4 of 4 optimal tokens are the data's own" in result.out
    place = only(tmp_path)
    assert place.name == "gaussian_n=4_T=3_d=30-ngd-0.1t^-0.6667-joint-ngd-0.1t^-0.6667-30-weight-seed0"
    run = Run.load(place)
    rule = NormalizedGD(0.1, exponent=0.6667)
    assert run.rule == run.joint.rule == rule
    again = train_joint(run.problem, rule, rule, steps=30, space="weight", seed=0)
    np.testing.assert_array_equal(run.history, again.history)
    np.testing.assert_array_equal(run.decoder, again.decoder)


@pytest.mark.parametrize(
    ("options", "rule", "name"),
    [
        (("--decoder-step", "0.5"), NormalizedGD(0.5, exponent=0.6667), "ngd-0.5t^-0.6667"),
        (("--decoder-rule", "ngd", "--decoder-exponent", "0"), NormalizedGD(0.1), "ngd-0.1"),
        (("--decoder-rule", "polyak"), Polyak(), "polyak-free"),
        (("--decoder-rule", "polyak", "--decoder-step", "2"), Polyak(2.0), "polyak-2"),
        (("--decoder-rule", "gd", "--decoder-step", "2"), GradientDescent(2.0), "gd-2"),
        (
            ("--decoder-rule", "gd", "--decoder-step", "2", "--decoder-exponent", "0.5"),
            GradientDescent(2.0, exponent=0.5),
            "gd-2t^-0.5",
        ),
    ],
)
def test_the_decoder_has_options_of_its_own(attnrates, tmp_path, options, rule, name) -> None:
    result = attnrates("train", *JOINT, *options, "--steps", "5", "--space", "gram", "--out", tmp_path)
    assert result.code == 0
    assert f"-joint-{name}-5-gram" in only(tmp_path).name
    assert Run.load(only(tmp_path)).joint.rule == rule


def test_seeds_and_finished_runs(attnrates, tmp_path) -> None:
    arguments = ("train", *JOINT, "--steps", "20", "--space", "gram", "--out", tmp_path)
    first = attnrates(*arguments, "--seeds", "3")
    assert first.code == 0
    assert first.out.count("trained") == 3
    second = attnrates(*arguments, "--seeds", "3")
    assert second.out.count("kept") == 3
    # Another reference, and a fixed decoder, are other runs.
    assert "trained" in attnrates(*arguments, "--reference", "data").out
    fixed = [argument for argument in arguments if argument != "--joint"]
    assert "trained" in attnrates(*fixed).out
    assert len(list(tmp_path.iterdir())) == 5
    (place,) = tmp_path.glob("*reference_data*")
    assert Run.load(place).joint.reference_kind == "data"


def test_a_run_of_other_rules_is_not_taken_for_it(attnrates, tmp_path) -> None:
    arguments = ("train", *JOINT, "--steps", "5", "--space", "gram", "--out", tmp_path)
    assert attnrates(*arguments).code == 0
    place = only(tmp_path)
    run = Run.load(place)
    train_joint(run.problem, run.rule, Polyak(), steps=5, seed=0).save(place)
    result = attnrates(*arguments)
    assert result.code == 2
    assert "holds another run (other training of the decoder)" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rule", "ngd", "--step", "1", "--decoder-rule", "gd"), "go with --joint"),
        (("--rule", "ngd", "--step", "1", "--decoder-step", "1"), "go with --joint"),
        (("--rule", "ngd", "--step", "1", "--reference", "data"), "go with --joint"),
        (("--joint", "--rule", "ngd"), "needs a step size (--step)"),
        (("--joint", "--rule", "ngd", "--step", "1", "--decoder-rule", "gd"), "(--decoder-step)"),
        (("--joint", "--rule", "polyak", "--exponent", "1"), "polyak takes no exponent"),
        (
            (
                "--joint",
                "--rule",
                "ngd",
                "--step",
                "1",
                "--decoder-rule",
                "polyak",
                "--decoder-exponent",
                "1",
            ),
            "polyak takes no exponent",
        ),
        (("--joint", "--rule", "ngd", "--step", "1", "--decoder-step", "-1"), "positive"),
        (("--joint", "--rule", "ngd", "--step", "1", "--decoder-step", "nan"), "positive"),
        (("--joint", "--rule", "ngd", "--step", "1", "--decoder-rule", "adam"), "adam"),
        (("--joint", "--rule", "ngd", "--step", "1", "--reference", "mine"), "mine"),
        (
            ("--joint", "--rule", "ngd", "--step", "1", "--space", "gram", "--device", "cuda"),
            "runs on the CPU",
        ),
    ],
)
def test_bad_combinations_are_one_line(attnrates, tmp_path, arguments, message) -> None:
    out = tmp_path / "out"
    result = attnrates("train", "--data", DATA, *arguments, "--steps", "3", "--out", out)
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not out.exists()


def test_weak_signals_are_told(attnrates, tmp_path) -> None:
    data = ("--data", "gaussian:n=8,T=5,d=200,noise=1", *JOINT[2:])
    result = attnrates("train", *data, "--steps", "500", "--space", "gram", "--out", tmp_path)
    assert "0 of 8 optimal tokens are the data's own" in result.out


def test_check_gives_verdicts_on_joint_runs(attnrates, tmp_path) -> None:
    arguments = ("train", *JOINT, "--steps", "300", "--space", "gram", "--out", tmp_path)
    assert attnrates(*arguments).code == 0
    assert attnrates(*[argument for argument in arguments if argument != "--joint"]).code == 0
    result = attnrates("check", tmp_path, "--json")
    assert result.code == 0
    rows = json.loads(result.out)
    joint = [row for row in rows if "-joint-" in row["run"]]
    fixed = [row for row in rows if "-joint-" not in row["run"]]
    assert any(row["holds"] for row in fixed)
    assert joint
    assert all(row["holds"] is not False for row in rows)
    theorems = {row["theorem"]: row["holds"] for row in joint}
    # Theorems for a fixed decoder claim nothing of a joint run.
    assert not any(theorems.get(key) for key in ("norm-growth", "global-direction", "loss-decay"))
    assert attnrates("check", tmp_path).code == 0
