"""The pipeline: ends with verdicts, figures and report; goes on where it stopped; fails when a part does."""

import shutil
import sys

import pytest

from numerics import Run
from paper_figs import experiments, runs

pytestmark = pytest.mark.usefixtures("few_proofs")
FIGURES = [
    f"fixed-decoder-{part}{end}" for part in ("gaussian", "digits") for end in (".pdf", ".png", ".csv")
]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory, few_proofs):
    from attnrates.cli import run

    out = tmp_path_factory.mktemp("reproduced") / "out"
    assert run(["reproduce", "--out", str(out), "--quick"]) == 0
    return out


def settings():
    groups = experiments.standard(quick=True) | experiments.joint(quick=True)
    return [setting for group in groups.values() for setting in group]


def test_the_standard_runs_cover_both_data_sets_and_all_rules():
    for quick in (True, False):
        for group in experiments.standard(quick=quick).values():
            assert {setting.rule for setting in group} == {"gd", "ngd", "polyak"}
    assert set(experiments.standard()) == {"gaussian", "digits"}
    assert all(setting.decoder for group in experiments.joint().values() for setting in group)


def test_everything_is_there_and_a_second_call_recomputes_nothing(attnrates, reproduced, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("recomputed")

    before = {path: path.stat().st_mtime_ns for path in reproduced.rglob("*") if path.is_file()}
    monkeypatch.setattr(sys.modules["numerics.training"], "train", forbidden)
    monkeypatch.setattr("paper_figs.reproduce._target", forbidden)
    monkeypatch.setattr("paper_figs.style.save", forbidden)
    result = attnrates("reproduce", "--out", reproduced, "--quick")
    assert result.code == 0, result.err
    changed = {path.name for path, time in before.items() if path.stat().st_mtime_ns != time}
    assert changed <= {"report.html", "proofs.json"}
    for name in FIGURES:
        assert str(reproduced / "figures" / name) in "".join(result.out.split("\n"))
    last = result.out.rstrip().splitlines()[-1]
    assert last == f"report: {reproduced / 'report.html'}"
    folders = [path for path in (reproduced / "runs").iterdir() if (path / "manifest.json").is_file()]
    assert f"{len(folders)} runs: " in result.out
    assert {setting.name for setting in settings()} <= {path.name for path in folders}
    assert "0 violated" in result.out
    table = result.out[result.out.index("worst ratio") :]
    assert all(setting.name in table for setting in settings())


def test_an_interrupted_pipeline_goes_on(attnrates, tmp_path, monkeypatch):
    out = tmp_path / "out"
    genuine, calls = runs.make, []

    def interrupted(setting, *rest, **options):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(setting.name)
        return genuine(setting, *rest, **options)

    monkeypatch.setattr(runs, "make", interrupted)
    result = attnrates("reproduce", "--out", out, "--quick")
    assert result.code == 130
    assert result.err.splitlines()[-1].startswith("attnrates: interrupted; ")
    assert sorted(path.name for path in (out / "runs").iterdir()) == sorted(calls)
    monkeypatch.setattr(runs, "make", genuine)
    result = attnrates("reproduce", "--out", out, "--quick")
    assert result.code == 0
    for name in calls:
        assert f"kept {name}" in result.out
    assert (out / "report.html").exists()


def test_a_violated_bound_fails_the_pipeline(attnrates, tmp_path, reproduced):
    out = tmp_path / "out"
    shutil.copytree(reproduced, out)
    folder = out / "runs" / settings()[0].name
    run = Run.load(folder)
    run.history[["target_component", "weight_norm"]] *= 1e-3
    run.save(folder)
    result = attnrates("reproduce", "--out", out, "--quick")
    assert result.code == 1
    assert "VIOLATED" in result.out
    assert "VIOLATED" in (out / "report.html").read_text()


def test_an_output_that_is_a_file_is_refused(attnrates, tmp_path):
    (tmp_path / "out").write_text("mine")
    result = attnrates("reproduce", "--out", tmp_path / "out")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
