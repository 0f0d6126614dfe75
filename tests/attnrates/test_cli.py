"""The command line as a whole: light start, help, usage errors, closed pipes, defects."""

import subprocess
import sys

import pytest

COMMANDS = ("verify", "train", "check", "figures", "report", "reproduce")


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
    assert "Example: attnrates " + command in result.out
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
    def broken(folder):
        raise ZeroDivisionError(folder)

    monkeypatch.setattr("attnrates._check.check_folder", broken)
    result = attnrates("check", tmp_path)
    assert result.code == 3
    assert "ZeroDivisionError" in result.err
    assert "defect" in result.err.splitlines()[-1]
