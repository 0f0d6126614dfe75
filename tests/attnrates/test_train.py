"""`attnrates train`: runs are saved, kept and named; bad input is refused in one line and leaves no file."""

import os
import pickle
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from numerics import NormalizedGD, Run, train
from numerics.datasets import load

SMALL = ("--rule", "ngd", "--step", "0.1", "--steps", "5")


def arrays(**changes):
    rng = np.random.default_rng(0)
    good = {
        "tokens": rng.standard_normal((4, 3, 6)),
        "labels": np.array([1, -1, 1, -1]),
        "decoder": rng.standard_normal(6),
    }
    return good | changes


class Bomb:
    """A pickle that would create a file when read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def nan_file(folder):
    data = arrays()
    data["tokens"][2, 1, 3] = np.nan
    np.savez(folder / "bad.npz", **data)


def wrong_shape(folder):
    np.savez(folder / "bad.npz", **arrays(labels=np.ones(3)))


def pickled_file(folder):
    (folder / "bad.npz").write_bytes(pickle.dumps(Bomb(folder / "executed")))


def pickled_array(folder):
    np.savez(folder / "bad.npz", **arrays(decoder=np.array([Bomb(folder / "executed")], dtype=object)))


def directory(folder):
    (folder / "bad.npz").mkdir()


def tied(folder):
    data = arrays()
    data["tokens"][:, 1] = data["tokens"][:, 2] = data["decoder"] * np.array([1, -1, 1, -1])[:, None]
    np.savez(folder / "bad.npz", **data)


def empty_file(folder):
    (folder / "bad.npz").write_bytes(b"")


def text_file(folder):
    (folder / "bad.npz").write_text("tokens, labels\n")


def truncated(folder):
    np.savez(folder / "bad.npz", **arrays())
    content = (folder / "bad.npz").read_bytes()
    (folder / "bad.npz").write_bytes(content[: len(content) // 2])


def lacking(folder):
    np.savez(folder / "bad.npz", tokens=arrays()["tokens"])


def no_sequence(folder):
    np.savez(folder / "bad.npz", **arrays(tokens=np.zeros((0, 3, 6)), labels=np.zeros(0)))


def one_token(folder):
    np.savez(folder / "bad.npz", **arrays(tokens=arrays()["tokens"][:, :1]))


def absent(folder):
    del folder


BAD_FILES = {
    nan_file: "tokens[2, 1, 3] is nan",
    wrong_shape: "labels must have shape (4,)",
    pickled_file: "is not an .npz file",
    pickled_array: "without pickles",
    directory: "is a directory",
    tied: "tie for the largest score",
    empty_file: "is not an .npz file",
    text_file: "is not an .npz file",
    truncated: "cannot be read as an .npz",
    lacking: "lacks labels, decoder",
    no_sequence: "no sequence",
    one_token: "one token",
    absent: "No such file",
}


def refused(result, reason):
    assert result.code == 2, result
    assert result.out == ""
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("attnrates: ")
    assert reason in lines[0]


@pytest.mark.parametrize("make", BAD_FILES, ids=lambda make: make.__name__)
def test_a_bad_file_is_refused_in_one_line_and_nothing_is_written(attnrates, tmp_path, tree, make):
    make(tmp_path)
    before = tree(tmp_path)
    result = attnrates("train", "--data", tmp_path / "bad.npz", *SMALL, "--out", tmp_path / "out")
    refused(result, BAD_FILES[make])
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--data", "gausian", *SMALL), "unknown data set"),
        (("--data", "gaussian:n=many", *SMALL), "whole number"),
        (("--data", "digits:3v3", *SMALL), "two different digits"),
        (("--data", "gaussian", "--rule", "ngd"), "needs a step size"),
        (("--data", "gaussian", "--rule", "ngd", "--step", "nan"), "positive finite"),
        (("--data", "gaussian", "--rule", "gd", "--step", "-1"), "positive finite"),
        (("--data", "gaussian", "--rule", "polyak", "--exponent", "0.5"), "no exponent"),
        (("--data", "gaussian", "--rule", "ngd", "--step", "1", "--exponent", "-1"), "exponent"),
        (
            ("--data", "gaussian", "--rule", "adam", "--step", "1"),
            "'--rule': 'adam' is not one of 'gd', 'ngd'",
        ),
        (
            ("--data", "gaussian", *SMALL, "--joint", "--decoder-step", "nan"),
            "the decoder's ngd: step must be",
        ),
        (("--data", "gaussian", "--rule", "ngd", "--step", "0.1", "--steps", "0"), "--steps"),
        (("--data", "gaussian", *SMALL, "--seeds", "0"), "--seeds"),
        (("--data", "gaussian", *SMALL, "--seeds", "2", "--seed", "1"), "not both"),
        (("--data", "gaussian", *SMALL, "--seed", "-1"), "--seed"),
        (("--data", "gaussian", *SMALL, "--device", "tpu"), "device"),
        (("--data", "gaussian", *SMALL, "--space", "fourier"), "--space"),
        (("--rule", "ngd"), "--data"),
    ],
)
def test_bad_options_are_refused_in_one_line_and_nothing_is_written(attnrates, tmp_path, arguments, reason):
    refused(attnrates("train", *arguments, "--out", tmp_path / "out"), reason)
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_a_file_is_refused_before_training(attnrates, tmp_path):
    (tmp_path / "out").write_text("mine")
    refused(attnrates("train", "--data", "gaussian", *SMALL, "--out", tmp_path / "out"), "is a file")
    assert (tmp_path / "out").read_text() == "mine"


def test_seeds_of_a_file_are_refused(attnrates, tmp_path):
    load("gaussian:n=2,T=2,d=8").save(tmp_path / "mine.npz")
    result = attnrates(
        "train", "--data", tmp_path / "mine.npz", *SMALL, "--seeds", "2", "--out", tmp_path / "o"
    )
    refused(result, "every seed would give the same run")


def test_the_command_saves_what_the_library_computes(attnrates, tmp_path):
    spec = "gaussian:n=3,T=3,d=20"
    result = attnrates("train", "--data", spec, *SMALL, "--seeds", "2", "--out", tmp_path)
    assert (result.code, result.err) == (0, "")
    names = ["gaussian_n=3_T=3_d=20-ngd-0.1-5-weight-seed0", "gaussian_n=3_T=3_d=20-ngd-0.1-5-weight-seed1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(name in result.out for name in names)
    saved = Run.load(tmp_path / names[1])
    direct = train(load(spec, 1), NormalizedGD(step=0.1), steps=5, space="weight")
    np.testing.assert_array_equal(saved.weights, direct.weights)
    assert saved.seed == 1


def test_a_users_file_is_trained_on(attnrates, tmp_path):
    np.savez(tmp_path / "mine.npz", **arrays())
    out = tmp_path / "out"
    result = attnrates("train", "--data", tmp_path / "mine.npz", *SMALL, "--space", "gram", "--out", out)
    assert result.code == 0, result.err
    assert [path.name for path in out.iterdir()] == ["mine-ngd-0.1-5-gram-seed0"]


def test_a_finished_run_is_kept(attnrates, tmp_path):
    arguments = ("train", "--data", "gaussian:n=2,T=2,d=8", *SMALL, "--out", tmp_path)
    assert "trained" in attnrates(*arguments).out
    manifest = next(tmp_path.glob("*/manifest.json"))
    before = manifest.stat()
    result = attnrates(*arguments)
    assert result.code == 0
    assert result.out.startswith("kept")
    after = manifest.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_another_problem_under_the_same_name_is_not_overwritten(attnrates, tmp_path):
    load("gaussian:n=2,T=2,d=8", 0).save(tmp_path / "mine.npz")
    arguments = ("train", "--data", tmp_path / "mine.npz", *SMALL, "--out", tmp_path / "out")
    assert attnrates(*arguments).code == 0
    load("gaussian:n=2,T=2,d=8", 1).save(tmp_path / "mine.npz")
    refused(attnrates(*arguments), "holds another run (other data), which is kept; choose another folder")


def test_infeasible_constraints_are_said_and_trained_without_a_target(attnrates, tmp_path):
    pair = [
        [1.0, 0.0],
        [0.0, 0.0],
    ]  # equal queries, opposite labels: W should raise and lower the same logit gap
    np.savez(
        tmp_path / "mine.npz",
        tokens=[pair, pair],
        labels=[1, -1],
        decoder=[1.0, 0.0],
        queries=[[0.0, 1.0]] * 2,
    )
    result = attnrates("train", "--data", tmp_path / "mine.npz", *SMALL, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    assert "infeasible" in result.err
    assert Run.load(tmp_path / "out" / "mine-ngd-0.1-5-weight-seed0").target is None


@pytest.mark.parametrize(
    ("more", "phases"),
    [
        ((), ["reading the data", "max margin: step", "training"]),
        (("--space", "gram"), ["reading the data", "max margin: step", "training"]),
        (
            ("--space", "gram", "--joint"),
            ["reading the data", "training", "max margin: step", "the decoder's max margin"],
        ),
    ],
    ids=["weight", "gram", "joint"],
)
def test_every_phase_is_shown_on_a_terminal(tmp_path, more, phases):
    """With the time elapsed; stdout has the result alone."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "attnrates.cli", "train", "--data", "gaussian:n=60,T=4,d=60"]
    command += ["--rule", "ngd", "--step", "0.1", "--steps", "5", *more, "--out", str(tmp_path)]
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    environment |= {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the terminal's end
            while part := os.read(ours, 65536):
                shown += part
        out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, shown
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    places = [text.find(phase) for phase in phases]
    assert -1 not in places, text
    assert places == sorted(places), text
    assert re.search(r"max margin.* 0:00:0\d", text)
    assert out.decode().startswith("trained ")
    assert "max margin" not in out.decode()


def test_an_interrupt_gives_one_line_and_leaves_no_file(tmp_path):
    # A background job inherits "ignore SIGINT" from its shell; a terminal's job does not.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [
        sys.executable,
        "-c",
        f"{heed}; from attnrates.cli import main; main()",
        "train",
        "--data",
        "gaussian:n=3,T=3,d=40",
        "--rule",
        "ngd",
    ]
    command += ["--step", "0.1", "--steps", "100000000", "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            time.sleep(6)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert out == ""
    assert err.count("\n") == 1
    assert "interrupted" in err
    assert list(tmp_path.rglob("*")) == []
