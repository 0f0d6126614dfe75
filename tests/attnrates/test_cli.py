"""The command line as a whole: light start, help, usage errors, closed pipes, defects."""

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import typer.main

import theory
from attnrates.cli import app
from numerics import Run

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(typer.main.get_command(app).commands)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["--version"]])
def test_help_does_not_import_torch(arguments):
    result = python(
        f"import sys; from attnrates.cli import run; code = run({arguments!r}); "
        "heavy = {'torch', 'cvxpy', 'numba', 'pandas', 'matplotlib'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    assert result.returncode == 0, result.stderr[-500:]
    assert result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(attnrates, command):
    result = attnrates(command, "--help")
    assert result.code == 0
    assert f"attnrates {command}" in result.out[result.out.index("Example") :]
    assert command in attnrates("--help").out


def test_no_arguments_show_the_help(attnrates):
    assert attnrates().out == attnrates("--help").out


def test_version(attnrates):
    result = attnrates("--version")
    assert (result.code, result.out.split()[0]) == (0, "attnrates")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--nonsense"],
        ["check"],
        ["check", "a", "b"],
        ["figures"],
        ["reproduce"],
        ["verify", "x"],
    ],
)
def test_usage_errors_are_one_line_and_exit_2(attnrates, arguments):
    result = attnrates(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("attnrates: ")
    assert result.err.count("\n") == 1


def test_control_characters_in_a_file_name_do_not_reach_the_terminal(attnrates, tmp_path):
    result = attnrates("check", tmp_path / "a\x1b[31m\nb[red]")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert result.err.count("\n") == 1


def test_a_closed_pipe_is_no_error(made_runs):
    command = f"{sys.executable} -m attnrates.cli check {made_runs} --json | head -c 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, timeout=300)
    assert result.stdout == "["
    assert result.stderr == ""


def test_a_defect_is_not_mistaken_for_a_verdict(attnrates, monkeypatch, tmp_path):
    def broken(folder, **_):
        raise ZeroDivisionError(folder)

    monkeypatch.setattr("attnrates._check.check_folder", broken)
    result = attnrates("check", tmp_path)
    assert result.code == 3
    assert "ZeroDivisionError" in result.err
    assert "defect" in result.err.splitlines()[-1]


def complete(words: str) -> list[str]:
    """What bash offers after these words, by running the script that --show-completion prints."""
    attnrates = Path(sys.executable).with_name("attnrates")
    # --show-completion asks which shell called it; here none did.
    environment = os.environ | {"_ATTNRATES_COMPLETE": "source_bash"}
    script = subprocess.run([attnrates], capture_output=True, text=True, check=True, env=environment)
    quoted = [shlex.quote(word) for word in words.split(" ")]
    code = f"{script.stdout}\nCOMP_WORDS=({' '.join(quoted)}); COMP_CWORD={len(quoted) - 1}\n"
    code += '_attnrates_completion attnrates; printf "%s\\n" "${COMPREPLY[@]}"'
    path = f"{attnrates.parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, check=True, env=os.environ | {"PATH": path}
    )
    return result.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_and_options():
    assert complete("attnrates ver") == ["verify"]
    assert complete("attnrates train --dec") == ["--decoder-rule", "--decoder-step", "--decoder-exponent"]
    assert set(complete("attnrates train --rule ")) >= {"gd", "ngd", "polyak"}


@pytest.mark.parametrize("columns", [40, 64, 200])
def test_no_width_cuts_anything_off(attnrates, made_runs, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    result = attnrates("check", made_runs)
    assert result.code == 0
    assert "…" not in result.out
    squeezed = "".join(result.out.split())
    for run in made_runs.iterdir():
        assert run.name in result.out  # names are never folded
        for verdict in theory.check_all(Run.load(run))[:3]:
            assert verdict.theorem in squeezed or columns == 64
    names = {path.name for path in made_runs.iterdir()}
    assert max(len(line) for line in result.out.splitlines() if line not in names) <= columns


def test_no_gpu_is_said(attnrates, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = attnrates(
        "train", "--data", "gaussian", "--rule", "ngd", "--step", "1", "--device", "cuda", "--out", tmp_path
    )
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "this machine has none that torch can use" in result.err


def test_runs_and_verdicts_display_in_a_notebook(made_runs):
    run = Run.load(next(made_runs.glob("*ngd*")))
    html = run._repr_html_()
    assert html.startswith("<table>")
    assert run.problem.hash[:12] in html
    verdict = theory.check(run, "norm-growth")
    assert "norm-growth" in verdict._repr_html_()
    assert "holds" in verdict._repr_html_()
    odd = type(verdict)(**(vars(verdict) | {"theorem": "<script>alert(1)</script>"}))
    assert "<script" not in odd._repr_html_()


def test_an_interrupt_that_foreign_code_swallows_is_sent_again():
    """As the compiler's callbacks do: Python can only report the exception, and goes on."""
    program = """
import ctypes, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import attnrates._check, attnrates.cli

def callback():
    signal.raise_signal(signal.SIGINT)

def check(*_, **__):
    ctypes.CFUNCTYPE(None)(callback)()
    time.sleep(50)

attnrates._check.check = check
attnrates.cli.main()
"""
    result = subprocess.run(
        [sys.executable, "-c", program, "check", "."], capture_output=True, text=True, check=False, timeout=45
    )
    assert result.returncode == 130
    assert result.stderr == (
        "attnrates: interrupted; what is finished is kept, the same command goes on from there\n"
    )


def test_an_interrupt_while_an_extension_loads_is_an_interrupt(attnrates, monkeypatch, tmp_path):
    def loading(folder, **_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError(f"initialization failed {folder}") from None

    monkeypatch.setattr("attnrates._check.check_folder", loading)
    result = attnrates("check", tmp_path)
    assert result.code == 130
    assert result.err.count("\n") == 1


def test_the_citation_file_has_the_fields_of_its_schema():
    yaml = pytest.importorskip("yaml")
    entry = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(entry)
    assert entry["cff-version"] == "1.2.0"
    assert entry["type"] in {"software", "dataset"}
    assert all(
        "name" in author or {"family-names", "given-names"} <= set(author) for author in entry["authors"]
    )
    for reference in entry["references"]:
        assert {"authors", "title", "type"} <= set(reference)
    from attnrates import __version__

    assert str(entry["version"]) == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_wheel_ships_type_information_and_licence(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    assert {f"{room}/py.typed" for room in ("attnrates", "numerics", "paper_figs", "theory")} <= names
    assert any(name.endswith("/LICENSE") for name in names)
    assert not any(name.startswith("tests/") or name.endswith(".nbc") for name in names)
