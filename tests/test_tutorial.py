"""The tutorial, followed literally in a blank folder: every file saved, every command run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"Save this as `([^`]+)`[^\n]*\n\n```\w+\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def run(command, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blank")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder, {command.strip(): run(command, folder) for command in COMMANDS}


def test_the_page_has_its_files_and_commands():
    assert list(FILES) == ["growth.py", "train.py", "test_growth.py", ".github/workflows/rates.yml"]
    assert len(COMMANDS) == 4
    steps = re.findall(r"- run: (.*)", FILES[".github/workflows/rates.yml"])
    assert steps[1:] == [command.strip() for command in COMMANDS]


def test_every_command_succeeds(followed):
    for command, done in followed[1].items():
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    outputs = [done.stdout for done in followed[1].values()]
    assert re.search(r"my-growth +proved", outputs[0])
    assert re.search(r"my-growth .* holds", outputs[2])
    assert "3 passed" in outputs[3]


def test_a_page_is_printed_in_the_authors_names_and_words(followed):
    done = run("attnrates verify my-growth --theory growth.py", followed[0])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "  ⟨W₀,M⟩+(η t)/R ≤ ⟨W_t,M⟩ for all t∈ℕ" in lines
    assert "  separable: 1 ≤ ⟨z_k,M⟩ for all k∈K" in lines
    assert "  gradient: D_t = ∑_(k∈K) c_(t,k) z_k for all t∈ℕ" in lines
    assert "  M: the max-margin solution: the shortest vector with ⟨z_k,M⟩ ≥ 1 for all k" in lines
    assert "  η: the step size" in lines
    assert not [line for line in lines if "W_mm" in line or "∇" in line or "γ" in line]
    cauchy = "  cauchy_schwarz: <u, v> <= ||u|| ||v|| for all vectors u, v."
    assert cauchy in lines


def test_a_stronger_bound_is_refused(followed, tmp_path):
    stronger = FILES["growth.py"].replace("+ eta * as_real(t) / R", "+ 2 * eta * as_real(t) / R")
    assert stronger != FILES["growth.py"]
    (tmp_path / "growth.py").write_text(stronger, encoding="utf-8")
    done = run("attnrates verify --theory growth.py", tmp_path)
    assert (done.returncode, "my-growth  failed" in done.stdout) == (1, True)


def test_a_run_that_breaks_the_bound_fails_with_step_constants_and_a_plot(followed, tmp_path):
    for name in ("growth.py", "test_growth.py"):
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    lines = (followed[0] / "run.csv").read_text(encoding="utf-8").splitlines()
    slow = [lines[0], *(_slowed(line) for line in lines[1:])]
    (tmp_path / "run.csv").write_text("\n".join(slow) + "\n", encoding="utf-8")
    checked = run("attnrates check run.csv --theory growth.py", tmp_path)
    assert (checked.returncode, "VIOLATED" in checked.stdout) == (1, True)
    tested = run("python -m pytest -q", tmp_path)
    assert tested.returncode == 1
    for fact in ("my-growth is violated", "first at step 1001", "η = 0.1", "observed o, bound -"):
        assert fact in tested.stdout


def _slowed(line):
    """Past step 1000 the component stands still."""
    step, _, *rest = line.split(",")
    return ",".join([step, "0.001", *rest]) if int(step) > 1000 else line
