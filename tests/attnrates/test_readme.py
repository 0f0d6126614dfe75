"""The README cannot go stale: its snippets run, its commands exist, it names no machine."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attnrates.sweep.grid import read
from theory import theorems
from theory.verify import known_as

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def snippets(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_test_that_is_shown_passes(tmp_path):
    (tmp_path / "test_shown.py").write_text(snippets("python")[0], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shown.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in result.stdout, result.stdout


def test_the_optimizer_that_is_shown_steps():
    setup = """
import torch
model = torch.nn.Linear(2, 1)
def closure():
    optimizer.zero_grad()
    loss = model(torch.ones(3, 2)).square().mean()
    loss.backward()
    return loss
before = model.weight.detach().clone()
"""
    (snippet,) = [text for text in snippets("python") if "PolyakSGD" in text]
    head, tail = snippet.split("optimizer = ", 1)
    code = f"{head}{setup}optimizer = {tail}\nassert not torch.equal(before, model.weight)"
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_max_margin_and_certified_runs_as_shown(tmp_path):
    (snippet,) = [text for text in snippets("python") if "max_margin" in text]
    check = "\nassert prediction.constant is not None and certified.radius < 1e-20\n"
    code = snippet + check
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (tmp_path / "certificate.json").is_file()


def test_the_batch_that_is_shown_runs(tmp_path):
    (snippet,) = [text for text in snippets("python") if "train_batch" in text]
    code = snippet + "\nassert len(runs) == 8 and runs[0].steps == 2000\n"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (tmp_path / "runs" / "first" / "manifest.json").is_file()


def test_the_grid_that_is_shown_is_one(tmp_path):
    (tmp_path / "grid.toml").write_text(snippets("toml")[0], encoding="utf-8")
    assert len(read(tmp_path / "grid.toml").cells) == 120


def test_every_command_shown_exists(attnrates):
    shown = README.replace("\\\n", " ")
    commands = re.findall(r"(?:^ {4}|`)(attnrates [a-z]+[^`\n#]*)", shown, re.MULTILINE)
    assert len(commands) >= 5
    for line in commands:
        words = shlex.split(line)
        text = attnrates(words[1], "--help").out
        for word in words[2:]:
            if word.startswith("--"):
                assert word in text, line


@pytest.mark.parametrize("target", ["setup", "language"])
def test_what_takes_minutes_to_install_is_said_first(tmp_path, target):
    for name in ("Makefile", "requirements.lock", "requirements-language.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    lines = subprocess.run(
        ["make", "-n", target], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    installs = [k for k, line in enumerate(lines) if "pip install" in line and "-r " in line]
    said = [k for k, line in enumerate(lines) if line.startswith("echo") and "takes minutes" in line]
    assert len(said) == len(installs) == {"setup": 1, "language": 2}[target]
    assert all(before < after for before, after in zip(said, installs, strict=True))


def test_every_make_target_shown_exists():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^ {4}make ([a-z]+)", README, re.MULTILINE)
    assert targets[:2] == ["reproduce", "test"]
    for target in (*targets, "figures", "bench", "mutate", "soak", "lint"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_no_machine_or_host_is_named():
    names = ["README.md", "Makefile", "CHANGELOG.md", "pyproject.toml", ".ci/run", "docs/tutorial.md"]
    for name in [*names, "requirements.lock", "requirements-language.lock"]:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"file://|/(?:opt|work|root|home|tmp)/|index-url https?:", text), name


def test_names_of_theorems_are_of_the_pages_beside_them():
    table = README[README.index("| name | page |") :].split("\n\n")[0].splitlines()[2:]
    linked = set()
    for line in table:
        names, pages = (cell.strip() for cell in line.strip("|").split("|"))
        keys = re.findall(r"`([\w-]+)`", pages)
        names = re.sub(r"Theorem (\w)(\(\w+\)), \w(\(\w+\))", r"Theorem \1\2, Theorem \1\3", names).split(
            ", "
        )
        for position, key in enumerate(keys):
            name = names[position] if len(names) > 1 else names[0]
            called = known_as(theorems()[key])
            assert called == f"our {name}" or (called == "our Theorems B and C" and name[-1] in "BC"), (
                key,
                name,
            )
            linked.add(name)
    spoken = {known_as(page) for page in theorems().values()} - {None}
    single = {name.removeprefix("our ") for name in spoken if re.fullmatch(r"our (Theorem|Lemma) \S+", name)}
    assert linked == single
