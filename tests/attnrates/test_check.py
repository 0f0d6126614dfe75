"""`attnrates check`: holds, not claimed and violated, each told truly, in a table and as JSON."""

import json
import os
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

import theory
from numerics import Run, train
from numerics.datasets import load
from paper_figs.wording import counted
from theory.glossary import HYPOTHESES
from theory.hypotheses import checks

GAUSSIAN = "gaussian_n=3_T=3_d=40-ngd-0.1-200-weight-seed0"
DIGITS = "digits_3v5_n=6-gd-1-50-weight-seed0"


def forge(folder, **factors):
    """Rewrite a run with columns of its history scaled: an impossible run with valid hashes."""
    run = Run.load(folder)
    for column, factor in factors.items():
        run.history[column] *= factor
    run.save(folder)


def test_the_table_tells_what_holds_and_which_hypothesis_fails(attnrates, made_runs):
    result = attnrates("check", made_runs, "--all")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in result.out
    assert "\x1b" not in result.out
    start = {name: lines.index(name) for name in (GAUSSIAN, DIGITS)}
    gaussian = next(line for line in lines[start[GAUSSIAN] :] if "norm-growth" in line)
    digits = next(line for line in lines[start[DIGITS] :] if "norm-growth" in line)
    assert gaussian.rstrip().endswith("holds")
    assert "met:" in gaussian
    assert "not claimed" in digits
    assert "fails: E" in digits
    assert any(line.startswith("  E fails: ") for line in lines)
    assert lines[-1].startswith("4 runs: ")
    assert lines[-1].endswith(" 0 violated")


def test_a_narrow_terminal_loses_nothing(attnrates, made_runs, monkeypatch):
    wide = attnrates("check", made_runs, "--all")
    monkeypatch.setenv("COLUMNS", "60")
    narrow = attnrates("check", made_runs, "--all")
    assert max(map(len, narrow.out.splitlines())) <= 60
    assert "".join(narrow.out.split()).count("norm-growth") == "".join(wide.out.split()).count("norm-growth")
    assert narrow.out.count("not claimed") == wide.out.count("not claimed")


def test_json_has_the_documented_shape(attnrates, made_runs):
    result = attnrates("check", made_runs, "--json")
    assert result.code == 0
    rows = json.loads(result.out)
    assert {row["run"] for row in rows} == {path.name for path in made_runs.iterdir()}
    for row in rows:
        assert row["theorem"] in theory.theorems()
        assert row["holds"] in (True, None)
        assert set(row["hypotheses"].values()) <= {"holds", "fails", "unknown"}
        claimed = set(row["hypotheses"].values()) <= {"holds"}
        assert (row["holds"] is not None) == claimed
        assert (row["worst_ratio"] is not None) == claimed
        if claimed:
            assert 0 <= row["worst_ratio"] <= 1 + 1e-9  # the tolerance of a verdict on floats
    assert any(row["holds"] for row in rows)
    assert any(row["holds"] is None for row in rows)


def test_one_run_alone(attnrates, made_runs):
    result = attnrates("check", made_runs / GAUSSIAN, "--json")
    assert {row["run"] for row in json.loads(result.out)} == {GAUSSIAN}


FORGING = (b"ok\n\n1 run: 99 bounds hold, 0 not claimed, 0 violated", b"red\x1b[31m", b"latin-\xe9")


@pytest.mark.parametrize("flag", [(), ("--json",), ("--pairs",), ("--certified",)], ids=str)
def test_a_name_forges_no_line_and_is_always_printed(attnrates, runs_copy, tmp_path, flag):
    for name in FORGING:
        shutil.copytree(runs_copy / GAUSSIAN, tmp_path / "set" / os.fsdecode(name))
    own = [tmp_path / "set" / os.fsdecode(name) for name in FORGING] if not flag else []
    for folder in (tmp_path / "set", *own):
        result = attnrates("check", folder, *flag)
        assert (result.code, result.err.count("Error")) == (0, 0)
        assert not any(line.startswith("1 run: 99") for line in result.out.splitlines())
        assert "\x1b[" not in result.out + result.err
        result.out.encode("utf-8")  # strictly, as stdout does


def test_train_names_its_folder_in_one_line(attnrates, tmp_path):
    arguments = ("--data", "gaussian:n=2,T=2,d=4", "--rule", "ngd", "--step", "0.1", "--steps", "3")
    for name in FORGING:
        result = attnrates("train", *arguments, "--out", tmp_path / os.fsdecode(name))
        assert (result.code, result.out.count("\n")) == (0, 1)
        assert "\x1b" not in result.out
        result.out.encode("utf-8")


def test_a_violated_bound_exits_1_and_says_so(attnrates, runs_copy):
    forge(runs_copy / GAUSSIAN, target_component=0.01, weight_norm=0.01)
    result = attnrates("check", runs_copy)
    assert result.code == 1
    assert "VIOLATED" in result.out
    rows = json.loads(attnrates("check", runs_copy, "--json").out)
    broken = {row["theorem"]: row for row in rows if row["holds"] is False}
    assert broken["norm-growth"]["worst_ratio"] > 1
    step = broken["norm-growth"]["worst_step"]
    text = " ".join(result.out.split())
    assert re.search(rf"norm-growth is VIOLATED, most at step {step}: observed 0\.\d+, bound \d", text)


def test_what_is_not_claimed_for_one_reason_shares_a_line(attnrates, made_runs):
    """Unless --all; what is claimed has its line either way, and every theorem is counted."""
    few, every = (attnrates("check", made_runs / DIGITS, *more).out for more in ((), ("--all",)))
    assert few.count("fails: joint") == 1
    listed = every.count("fails: joint")
    assert listed > 10
    assert f"  {listed} theorems " in few
    assert "--all lists each" in few
    assert "--all lists each" not in every
    assert few.splitlines()[-1] == every.splitlines()[-1]
    counted = sum(int(number) for number in re.findall(r"^  (\d+) theorems", few, re.MULTILINE))
    rows = json.loads(attnrates("check", made_runs / DIGITS, "--json").out)
    alone = re.findall(r"^  ([a-z-]+) .* (?:holds|not claimed)\s*$", few, re.MULTILINE)
    assert counted + len(alone) == len(rows)
    assert {row["theorem"] for row in rows if row["holds"]} <= set(alone)


def test_a_joint_run_is_told_once_that_others_are_about_a_fixed_decoder(attnrates, tmp_path):
    joint = ("train", "--data", "gaussian:n=3,T=3,d=20", "--joint", "--rule", "ngd", "--step", "0.3")
    assert attnrates(*joint, "--steps", "30", "--space", "gram", "--out", tmp_path).code == 0
    result = attnrates("check", tmp_path)
    assert result.code == 0
    assert result.out.count("fails: fixed decoder") == 1
    assert attnrates("check", tmp_path, "--all").out.count("fails: fixed decoder") > 20


def test_one_run_is_no_plural(attnrates, made_runs):
    assert attnrates("check", made_runs / GAUSSIAN).out.splitlines()[-1].startswith("1 run: ")
    assert (counted(0, "run"), counted(1, "run"), counted(2, "run")) == ("0 runs", "1 run", "2 runs")
    assert counted(1, "bound holds", "bounds hold") == "1 bound holds"


def test_the_legend_explains_every_hypothesis_that_is_named(attnrates, made_runs):
    """Each name that any theorem on runs may print is in the glossary, and in the README's table."""
    names = {name for page in theory.theorems().values() if page.rate for name in checks(page)}
    names |= {"recorded", "fixed decoder"}
    explained = {name for key, _ in HYPOTHESES for name in key.split(", ")}
    assert names <= explained
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    table = readme.split("| hypothesis | says |")[1].split("\n\n")[0]
    in_readme = {
        name for key in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for name in key.split(", ")
    }
    assert names <= in_readme
    out = attnrates("check", made_runs / DIGITS).out
    legend = out.split("\n\n")[-2]
    for name in ("worst ratio", "not claimed", "E ", "F ", "short steps", "fixed decoder, joint"):
        assert re.search(f"^{name}", legend, re.MULTILINE), name
    assert "decoder separable" not in legend


SPOILED = {
    "truncated": "history.parquet: does not match",
    "altered": "manifest.json: does not match its own digest",
    "foreign": "manifest.json: is not the manifest of a run",
    "beheaded": "not a run's folder (manifest.json",
}


def spoil(run, how):
    manifest = run / "manifest.json"
    if how == "truncated":
        history = run / "history.parquet"
        history.write_bytes(history.read_bytes()[:-1])
    elif how == "altered":
        manifest.write_text(manifest.read_text().replace('"seed": 0', '"seed": 1'))
    elif how == "foreign":
        manifest.write_text('{"name": "of another program"}')
    else:
        manifest.unlink()


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("flag", [(), ("--json",), ("--pairs",), ("--certified",)], ids=str)
def test_the_runs_beside_a_spoiled_one_are_checked_and_it_is_named(attnrates, runs_copy, tree, how, flag):
    spoil(runs_copy / GAUSSIAN, how)
    before = tree(runs_copy)
    result = attnrates("check", runs_copy, *flag)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert result.err.startswith("attnrates: 1 of 4 runs cannot be read, the others are checked: ")
    assert f"{GAUSSIAN}" in result.err
    assert SPOILED[how] in result.err
    assert DIGITS in result.out
    assert GAUSSIAN not in result.out
    assert tree(runs_copy) == before
    if flag == ("--json",):
        assert len({row["run"] for row in json.loads(result.out)}) == 3


@pytest.mark.parametrize("flag", [(), ("--json",), ("--pairs",), ("--certified",)], ids=str)
def test_nothing_but_spoiled_runs_is_refused_in_one_line(attnrates, runs_copy, tree, flag):
    for run in runs_copy.iterdir():
        spoil(run, "truncated")
    before = tree(runs_copy)
    result = attnrates("check", runs_copy, *flag)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("attnrates: 4 of 4 runs cannot be read: ")
    assert result.err.endswith("; and 1 more\n")
    alone = attnrates("check", runs_copy / DIGITS, *flag)
    assert (alone.code, alone.out) == (2, "")
    assert alone.err.startswith(f"attnrates: {runs_copy / DIGITS}")
    assert tree(runs_copy) == before


def test_a_folder_that_cannot_be_opened_is_named(attnrates, runs_copy, monkeypatch):
    """As root no folder is closed: os.scandir is made to refuse one."""
    closed, scandir = runs_copy / DIGITS, os.scandir

    def guarded(path="."):
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    monkeypatch.setattr(Run, "load", partial(refusing, closed, Run.load))
    result = attnrates("check", runs_copy)
    assert result.code == 2
    assert f"{closed}: Permission denied" in result.err


def refusing(closed, load, place):
    if place == closed:
        raise PermissionError(13, "Permission denied", os.fspath(place))
    return load(place)


def test_a_violation_is_shown_beside_a_spoiled_run(attnrates, runs_copy):
    forge(runs_copy / GAUSSIAN, target_component=0.01, weight_norm=0.01)
    spoil(runs_copy / DIGITS, "truncated")
    result = attnrates("check", runs_copy)
    assert result.code == 2
    assert "VIOLATED" in result.out


@pytest.fixture
def by_adam(tmp_path):
    """A run that no certified engine repeats."""
    import torch

    problem = load("gaussian:n=3,T=3,d=20", seed=0)
    run = train(problem, steps=20, space="weight", optimizer=lambda p: torch.optim.Adam(p, lr=0.01))
    run.save(tmp_path / "adam" / "one")
    return tmp_path / "adam"


def test_certified_skips_what_it_cannot_repeat_and_says_why(attnrates, by_adam, made_runs):
    shutil.copytree(made_runs / GAUSSIAN, by_adam / "two")
    result = attnrates("check", by_adam, "--certified")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert "two" in lines
    skipped = (
        "skipped one: made by torch's Adam; only runs of gd, ngd, polyak are repeated in ball arithmetic"
    )
    assert skipped in lines
    assert "1 run: " in result.out
    assert "1 run skipped" in " ".join(result.out.split())
    stored = json.loads((by_adam / "certified.json").read_text())
    assert {run["run"]: (run["certified"], run.get("skipped")) for run in stored} == {
        "one": (False, True),
        "two": (True, None),
    }
    assert json.loads(attnrates("check", by_adam, "--certified", "--json").out)[1]["run"] == "one"


def test_certified_refuses_a_folder_of_nothing_but_skipped_runs(attnrates, by_adam, tree):
    before = tree(by_adam)
    result = attnrates("check", by_adam, "--certified")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "attnrates: one: made by torch's Adam; only runs of gd, ngd, polyak are repeated in ball arithmetic\n"
    )
    shutil.copytree(by_adam / "one", by_adam / "two")
    result = attnrates("check", by_adam, "--certified", "--json")
    assert (result.code, result.out) == (2, "")
    assert f"{by_adam}: no run in it can be certified, 2 skipped, the first one: made by" in result.err
    assert tree(by_adam) - before == {path for path in tree(by_adam) if path.startswith("two")}


def test_the_certified_table_explains_its_columns(attnrates, made_runs, tmp_path, monkeypatch):
    shutil.copytree(made_runs, tmp_path / "runs")
    few, every = (attnrates("check", tmp_path / "runs", "--certified", *more) for more in ((), ("--all",)))
    assert few.code == every.code == 0
    assert "undecided steps" in few.out
    legend = few.out.split("\n\n")[-2]
    for word in ("worst ratio", "undecided steps", "not claimed"):
        assert re.search(f"^{word}", legend, re.MULTILINE), word
    assert few.out.count("(joint)") == 4 < every.out.count("(joint)")
    assert few.out.splitlines()[-2].startswith("4 runs: ")
    monkeypatch.setenv("COLUMNS", "60")
    narrow = attnrates("check", tmp_path / "runs", "--certified", "--all").out
    assert narrow.count(": not claimed (") == every.out.count("  not claimed (")
    assert re.search(r"^  norm-growth: holds, worst ratio 0\.\d+, undecided", narrow, re.MULTILINE)


@pytest.mark.parametrize("name", ["absent", "empty", "file"])
def test_a_folder_without_runs_is_refused(attnrates, tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    result = attnrates("check", tmp_path / name)
    assert result.code == 2
    assert result.err.count("\n") == 1


def test_many_pairs_are_cut_short_unless_all_are_wanted(attnrates, made_runs):
    few, every = (attnrates("check", made_runs / DIGITS, "--pairs", *more).out for more in ((), ("--all",)))
    (run,) = json.loads(attnrates("check", made_runs / DIGITS, "--pairs", "--json").out)
    number = len(run["pairs"])
    assert number > 20
    assert f"  and {number - 20} more, which --all lists" in few
    assert (few.count(" and ("), every.count(" and (")) == (20, number)
