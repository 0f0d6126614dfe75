"""The README cannot go stale: its snippets run, its commands exist, it names no machine."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_snippet_runs():
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    result = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True)
    assert "norm-growth True" in result.stdout


def test_every_command_shown_exists(attnrates):
    commands = re.findall(r"(?:^ {4}|`)(attnrates [a-z]+[^`\n]*)", README, re.MULTILINE)
    assert len(commands) >= 5
    for line in commands:
        words = shlex.split(line)
        text = attnrates(words[1], "--help").out
        for word in words[2:]:
            if word.startswith("--"):
                assert word in text, line


def test_every_make_target_shown_exists():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^ {4}make ([a-z]+)", README, re.MULTILINE)
    assert targets[:2] == ["reproduce", "test"]
    for target in (*targets, "figures", "bench", "mutate", "soak", "lint"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_no_machine_or_host_is_named():
    for name in ("README.md", "Makefile", "CHANGELOG.md", "pyproject.toml", ".ci/run", "requirements.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"file://|/(?:opt|work|root|home|tmp)/|index-url https?:", text), name
