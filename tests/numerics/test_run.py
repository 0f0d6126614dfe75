"""A run's folder: complete or absent, verified on loading."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from numerics import InputError, NormalizedGD, Problem, Run, train
from numerics.datasets import load
from numerics.run import sealed


@pytest.fixture(scope="module")
def run() -> Run:
    problem = load("gaussian:n=3,T=3,d=8", 0)
    W = np.random.default_rng(0).standard_normal((8, 8))
    return train(problem, NormalizedGD(0.1, exponent=0.25), steps=50, init=W, seed=0, space="weight")


def test_a_saved_run_comes_back_whole(run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "deep" / "run")
    assert sorted(p.name for p in folder.iterdir()) == [
        "arrays.npz",
        "history.parquet",
        "manifest.json",
        "problem.npz",
    ]
    back = Run.load(folder)
    assert back.problem == run.problem
    assert (back.rule, back.steps, back.seed, back.space) == (run.rule, run.steps, run.seed, run.space)
    pd.testing.assert_frame_equal(back.history, run.history, check_exact=True)
    np.testing.assert_array_equal(back.weights, run.weights)
    assert back.init is not None
    assert run.init is not None
    np.testing.assert_array_equal(back.init, run.init)
    assert back.target is not None
    assert run.target is not None
    np.testing.assert_array_equal(back.target.dual, run.target.dual)
    assert {"problem_hash", "rule", "seed", "versions", "device", "code", "files"} <= set(back.manifest)
    assert "torch" in back.manifest["versions"]


def test_saving_twice_replaces_the_run(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    run.save(tmp_path / "run")
    Run.load(tmp_path / "run")
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_is_no_run_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not a run"):
        run.save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("existing", [False, True])
def test_an_interrupted_save_leaves_no_half_written_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    if existing:
        run.save(tmp_path / "run")

    def interrupt(_self: Problem, _path: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Problem, "save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.save(tmp_path / "run")
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == (["run"] if existing else [])
    if existing:
        Run.load(tmp_path / "run")


def _truncate(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])


def _flip(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(bytes(data))


@pytest.mark.parametrize("name", ["history.parquet", "arrays.npz", "problem.npz"])
@pytest.mark.parametrize("harm", [_truncate, _flip, lambda folder, name: (folder / name).unlink()])
def test_damaged_files_are_refused(run: Run, tmp_path: Path, name: str, harm: Any) -> None:
    folder = run.save(tmp_path / "run")
    harm(folder, name)
    with pytest.raises(InputError, match=name) as caught:
        Run.load(folder)
    assert "\n" not in str(caught.value)


def _edit(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    for key, value in changes.items():
        if value is None:
            del manifest[key]
        else:
            manifest[key] = value
    (folder / "manifest.json").write_text(json.dumps(sealed(manifest)))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "something-else"},
        {"version": 99},
        {"problem_hash": "0" * 64},
        {"rule": {"name": "sorcery"}},
        {"rule": None},
        {"steps": "many"},
        {"files": {}},
        {"seed": [1]},
    ],
)
def test_altered_manifests_are_refused(run: Run, tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = run.save(tmp_path / "run")
    _edit(folder, **changes)
    with pytest.raises(InputError) as caught:
        Run.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe\x00", pickle.dumps({"format": "attnrates-run"})]
)
def test_foreign_folders_are_refused(tmp_path: Path, content: bytes) -> None:
    for folder in (tmp_path / "absent", tmp_path):
        with pytest.raises(InputError):
            Run.load(folder)
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"manifest\.json") as caught:
        Run.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "key", ["rule", "steps", "space", "seed", "device", "code", "versions", "target_solver"]
)
def test_a_manifest_altered_by_hand_is_refused(run: Run, tmp_path: Path, key: str) -> None:
    folder = run.save(tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text())
    other = {"rule": {"name": "ngd", "step": 0.2, "exponent": 0.25}, "steps": 51, "space": "gram", "seed": 1}
    manifest[key] = other.get(key, "other")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"manifest\.json: does not match its own digest|target_solver"):
        Run.load(folder)


def test_a_run_names_what_determines_it(run: Run, tmp_path: Path) -> None:
    manifest = Run.load(run.save(tmp_path / "run")).manifest
    assert manifest["problem_hash"] == run.problem.hash
    assert {"rule", "steps", "seed", "device", "dtype", "code"} <= set(manifest)
    packages = {"python", "attnrates", "numpy", "scipy", "torch", "numba", "llvmlite", "python-flint"}
    assert packages <= set(manifest["versions"])
    assert all(isinstance(version, str) and version for version in manifest["versions"].values())


def test_another_problems_file_is_refused(run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    load("gaussian:n=3,T=3,d=8", 1).save(folder / "problem.npz")
    with pytest.raises(InputError, match="problem"):
        Run.load(folder)
