"""Runs on disk: their names, what is kept, what is replaced, what is refused."""

import json

import pytest

from numerics import Run
from numerics.errors import InputError
from numerics.run import sealed
from paper_figs import runs
from paper_figs.runs import Setting

SMALL = Setting(data="gaussian:n=2,T=2,d=8", rule="ngd", step=0.1, steps=3)


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (SMALL, "gaussian_n=2_T=2_d=8-ngd-0.1-3-weight-seed0"),
        (Setting(data="digits:3v5", rule="gd", step=1.0, steps=10), "digits_3v5-gd-1-10-weight-seed0"),
        (
            Setting(data="digits:3v5", rule="polyak", step=None, steps=10, seed=4, space="gram"),
            "digits_3v5-polyak-free-10-gram-seed4",
        ),
        (
            Setting(data="a b/../my data.npz", rule="ngd", step=1e-3, exponent=0.5, steps=7),
            "my_data-ngd-0.001t^-0.5-7-weight-seed0",
        ),
        (Setting(data="/...npz", rule="ngd", step=1, steps=7), "data-ngd-1-7-weight-seed0"),
    ],
)
def test_names(setting, name):
    assert setting.name == name


def test_different_settings_have_different_names():
    steps = (0.1, 0.1 + 1e-16, 0.1 + 1e-15, 1, 1.0 + 2**-52)
    names = {Setting(data="gaussian", rule="ngd", step=step, steps=3).name for step in steps}
    assert len(names) == len(set(steps))


def test_a_run_by_this_code_is_kept_and_one_by_other_code_is_replaced(tmp_path):
    problem = SMALL.problem()
    _, kept = runs.make(SMALL, tmp_path, problem=problem)
    assert not kept
    run, kept = runs.make(SMALL, tmp_path, problem=problem)
    assert kept
    manifest = tmp_path / SMALL.name / "manifest.json"
    value = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(sealed(value | {"code": "0" * 64})))
    _, kept = runs.make(SMALL, tmp_path, problem=problem)
    assert not kept
    assert Run.load(tmp_path / SMALL.name).manifest["code"] == run.manifest["code"]


def test_a_damaged_run_is_refused_and_left_alone(tmp_path):
    problem = SMALL.problem()
    runs.make(SMALL, tmp_path, problem=problem)
    arrays = tmp_path / SMALL.name / "arrays.npz"
    arrays.write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"arrays\.npz"):
        runs.make(SMALL, tmp_path, problem=problem)
    assert arrays.read_bytes() == b"damaged"


def test_nothing_is_left_when_saving_fails(tmp_path, tree, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numerics.problem.Problem.save", full)
    with pytest.raises(OSError, match="No space"):
        runs.make(SMALL, tmp_path, problem=SMALL.problem())
    assert tree(tmp_path) == set()


def test_find_skips_hidden_folders_and_goes_deep(tmp_path):
    for name in ("a/b/one", "two", ".two.x.tmp", "a/.hidden/three"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text("{}")
    assert [path.relative_to(tmp_path).as_posix() for path in runs.find(tmp_path)] == ["a/b/one", "two"]


def test_links_to_folders_are_followed_and_each_run_is_found_once(tmp_path):
    """Loops end; what lies outside is found through its link, what lies inside by its own path."""
    for place in ("in/one", "out/two", "out/deep/three", "out/.hidden/four"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / runs.MANIFEST).write_text("{}")
    folder = tmp_path / "in"
    (folder / "again").symlink_to("one")
    (folder / "a-loop").symlink_to(".")
    (folder / "nowhere").symlink_to("gone")
    (folder / "itself").symlink_to("itself")
    (folder / "far").symlink_to(tmp_path / "out")
    (tmp_path / "out" / "back").symlink_to(folder)
    (tmp_path / "out" / "deep" / "up").symlink_to("..")
    found = [path.relative_to(folder).as_posix() for path in runs.find(folder)]
    assert found == ["far/deep/three", "far/two", "one"]
    (tmp_path / "link").symlink_to(folder)
    assert [path.name for path in runs.find(tmp_path / "link")] == ["three", "two", "one"]
    assert runs.find(folder / "again") == [folder / "again"]
