"""`attnrates check`: holds, not claimed and violated, each told truly, in a table and as JSON."""

import json

import pytest

import theory
from numerics import Run

GAUSSIAN = "gaussian_n=3_T=3_d=40-ngd-0.1-200-weight-seed0"
DIGITS = "digits_3v5_n=6-gd-1-50-weight-seed0"


def forge(folder, **factors):
    """Rewrite a run with columns of its history scaled: an impossible run with valid hashes."""
    run = Run.load(folder)
    for column, factor in factors.items():
        run.history[column] *= factor
    run.save(folder)


def test_the_table_tells_what_holds_and_which_hypothesis_fails(attnrates, made_runs):
    result = attnrates("check", made_runs)
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
    wide = attnrates("check", made_runs)
    monkeypatch.setenv("COLUMNS", "64")
    narrow = attnrates("check", made_runs)
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


def test_a_violated_bound_exits_1_and_says_so(attnrates, runs_copy):
    forge(runs_copy / GAUSSIAN, target_component=0.01, weight_norm=0.01)
    result = attnrates("check", runs_copy)
    assert result.code == 1
    assert "VIOLATED" in result.out
    rows = json.loads(attnrates("check", runs_copy, "--json").out)
    assert any(row["holds"] is False and row["worst_ratio"] > 1 for row in rows)


def test_an_altered_run_is_refused(attnrates, runs_copy):
    history = runs_copy / GAUSSIAN / "history.parquet"
    history.write_bytes(history.read_bytes()[:-1])
    result = attnrates("check", runs_copy)
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert "history.parquet" in result.err


@pytest.mark.parametrize("name", ["absent", "empty", "file"])
def test_a_folder_without_runs_is_refused(attnrates, tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    result = attnrates("check", tmp_path / name)
    assert result.code == 2
    assert result.err.count("\n") == 1
