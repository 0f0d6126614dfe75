"""Joint runs on disk: what is saved comes back, what was altered is refused; interrupted, they resume."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from numerics import InputError, NormalizedGD, Polyak, Run, train, train_joint
from numerics._joint_record import COLUMNS
from numerics.datasets import load
from numerics.joint import train_joint_batch
from numerics.run import _sha256, sealed

torch.set_num_threads(1)
RULES = (NormalizedGD(0.1, exponent=2 / 3), Polyak(1.0))
PROGRAM = """
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)
import sys
import torch
torch.set_num_threads(1)
from numerics import NormalizedGD, Polyak
from numerics.datasets import load
from numerics.joint import train_joint_batch
train_joint_batch(load("gaussian:n=4,T=4,d=30", 0), [NormalizedGD(0.1), Polyak(1.0)], NormalizedGD(0.05),
                  steps=int(sys.argv[2]), space=sys.argv[3], checkpoint=sys.argv[1],
                  checkpoint_every=int(sys.argv[4]))
"""


def made(space: str = "gram", **options) -> Run:
    return train_joint(load("gaussian:n=4,T=3,d=20", 0), *RULES, steps=60, space=space, seed=7, **options)


@pytest.mark.parametrize("space", ["gram", "weight"])
@pytest.mark.parametrize("reference", ["final", "data"])
@pytest.mark.parametrize("given", [False, True])
def test_what_is_saved_comes_back(tmp_path: Path, space: str, reference: str, given: bool) -> None:
    rng = np.random.default_rng(0)
    start = {"init": rng.standard_normal((20, 20)), "decoder_init": rng.standard_normal(20)} if given else {}
    run = made(space, reference=reference, **start)
    back = Run.load(run.save(tmp_path / "run"))
    assert list(back.history.columns) == list(COLUMNS)
    np.testing.assert_array_equal(back.history, run.history)
    np.testing.assert_array_equal(back.weights, run.weights)
    np.testing.assert_array_equal(back.decoder, run.decoder)
    np.testing.assert_array_equal(back.joint.optimal, run.joint.optimal)
    np.testing.assert_allclose(back.target.weights, run.target.weights, rtol=1e-12)
    np.testing.assert_allclose(back.joint.target.weights, run.joint.target.weights, rtol=1e-12)
    assert back.joint.rule == run.joint.rule == RULES[1]
    assert back.joint.reference == run.joint.reference
    assert back.joint.reference_kind == reference
    assert (back.joint.init is None) == (not given)
    assert (back.rule, back.steps, back.seed, back.space) == (RULES[0], 60, 7, space)
    assert "decoder=Polyak" in repr(back)


def test_a_fixed_decoder_is_no_joint_run(tmp_path: Path) -> None:
    run = train(load("gaussian:n=4,T=3,d=20", 0), RULES[0], steps=10)
    assert run.joint is None
    assert Run.load(run.save(tmp_path / "run")).joint is None
    np.testing.assert_array_equal(run.decoder, run.problem.decoder)


def alter(folder: Path, *, arrays: dict | None = None, without: str | None = None, manifest=None) -> None:
    """Change a saved run and make its hashes fit again."""
    content = json.loads((folder / "manifest.json").read_text())
    with np.load(folder / "arrays.npz") as stored:
        kept = {name: stored[name] for name in stored.files if name != without} | (arrays or {})
    np.savez(folder / "arrays.npz", **kept)
    content["files"]["arrays.npz"] = _sha256((folder / "arrays.npz").read_bytes())
    if manifest:
        manifest(content)
    (folder / "manifest.json").write_text(json.dumps(sealed(content)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"without": "decoder"}, "decoder"),
        ({"without": "optimal"}, "optimal"),
        ({"arrays": {"decoder": np.zeros(19)}}, "decoder must be finite numbers of shape"),
        ({"arrays": {"decoder": np.full(20, np.nan)}}, "decoder must be finite"),
        ({"arrays": {"decoder": np.zeros(20)}}, "names no reference tokens"),
        ({"arrays": {"decoder_dual": np.zeros(3)}}, "decoder_dual"),
        ({"arrays": {"decoder_init": np.zeros((2, 2))}}, "decoder_init"),
        ({"arrays": {"optimal": np.zeros((3, 4), int)}}, "optimal must be integers of shape"),
        ({"arrays": {"optimal": np.full((40, 4), 3)}}, "does not exist"),
        ({"arrays": {"optimal": np.zeros((40, 4))}}, "optimal must be integers"),
        ({"manifest": lambda m: m.update(joint=3)}, "malformed"),
        ({"manifest": lambda m: m["joint"].update(reference="mine")}, "malformed"),
        ({"manifest": lambda m: m["joint"].update(decoder_rule={"name": "adam"})}, "step-size rule"),
        ({"manifest": lambda m: m["joint"].pop("decoder_rule")}, "step-size rule"),
    ],
)
def test_what_was_altered_is_refused_in_one_line(tmp_path: Path, change: dict, message: str) -> None:
    run = made()
    folder = run.save(tmp_path / "run")
    assert len(run.history) == 40
    alter(folder, **change)
    with pytest.raises(InputError, match=message) as raised:
        Run.load(folder)
    assert str(folder) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_joint_run_does_not_pass_for_one_with_a_fixed_decoder(tmp_path: Path) -> None:
    folder = made().save(tmp_path / "run")
    alter(folder, manifest=lambda m: m.pop("joint"))
    with pytest.raises(InputError, match="has a trained decoder"):
        Run.load(folder)


@pytest.mark.parametrize("space", ["gram", "weight"])
def test_a_killed_run_resumes_bitwise(tmp_path: Path, space: str) -> None:
    steps, every = (600_000, 20_000) if space == "gram" else (1_500, 50)
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path), str(steps), space, str(every)]
    child = subprocess.Popen(arguments, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2])
    file = tmp_path / "checkpoint.npz"
    deadline = time.monotonic() + 120
    while not file.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) != 0, "the run ended before it was interrupted"
    with np.load(file) as saved:
        reached = int(saved["state.t"])
    assert 0 < reached < steps
    problem, rules = load("gaussian:n=4,T=4,d=30", 0), [NormalizedGD(0.1), Polyak(1.0)]
    options = {"steps": steps, "space": space}
    kept = {"checkpoint": tmp_path, "checkpoint_every": every}
    resumed = train_joint_batch(problem, rules, NormalizedGD(0.05), **options, **kept)
    straight = train_joint_batch(problem, rules, NormalizedGD(0.05), **options)
    for one, other in zip(resumed, straight, strict=True):
        np.testing.assert_array_equal(one.history, other.history)
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.decoder, other.decoder)
    with pytest.raises(InputError, match="decoder rule"):
        train_joint_batch(problem, rules, NormalizedGD(0.06), **options, **kept)


@pytest.mark.parametrize("cut", [1, 7, 20, 33])
def test_slices_do_not_show(tmp_path: Path, cut: int) -> None:
    """However a run is cut into slices, and whatever is recorded, the interval columns are the same."""
    problem = load("gaussian:n=4,T=3,d=20,orthogonal=false,noise=0.5", 3)
    for space in ("gram", "weight"):
        whole = train_joint(problem, *RULES, steps=60, space=space, record=[0, 20, 40, 60])
        options = {"checkpoint": tmp_path / space / str(cut), "checkpoint_every": cut}
        parts = train_joint(problem, *RULES, steps=60, space=space, record=[0, 20, 40, 60], **options)
        np.testing.assert_array_equal(whole.history, parts.history)
