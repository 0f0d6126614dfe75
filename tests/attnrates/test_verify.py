"""`attnrates verify`: all proofs once, in a process without torch; table, JSON, exit code, README."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import theory
from attnrates._console import console
from paper_figs.proofs import print_table

README = Path(__file__).parents[2] / "README.md"
TABLE = re.compile(r"<!-- theorems -->\n(.*)<!-- end of theorems -->", re.DOTALL)
PIPE = r"\|"  # a bar inside a cell
STATUSES = {"proved", "proved-given", "claimed", "observed"}
COMMAND = """
import sys
from attnrates.cli import run
code = run(["verify", "--json"])
heavy = {"torch", "cvxpy", "numba", "pandas", "matplotlib"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else code)
"""


def prove_all():
    result = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-500:]
    return json.loads(result.stdout)


def status_table(proofs) -> str:
    """Write the table of theorems as the README should have it."""
    lines = [
        f"| `{entry['key']}` | {entry['title'].replace('|', PIPE)} | {entry['status']} |"
        for entry in proofs["theorems"]
        if entry["kind"] != "lemma"
    ]
    return "\n".join(["| theorem | says | status |", "| --- | --- | --- |", *lines])


@pytest.fixture(scope="module")
def proofs():
    return prove_all()


def test_json_has_the_documented_shape(proofs):
    assert proofs["ok"] is True
    assert proofs["kernel_lines"] > 0
    assert [entry["key"] for entry in proofs["theorems"]] == list(theory.theorems())
    for entry in proofs["theorems"]:
        assert entry["status"] in STATUSES
        assert isinstance(entry["steps"], int)
        assert set(entry["axioms"]) <= set(proofs["axioms"])


def test_the_table_lists_every_theorem_with_its_status(proofs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(proofs, console())
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for entry in proofs["theorems"]:
        assert re.search(rf"^{entry['key']} +{entry['status']} +{entry['steps']} ", out, re.MULTILINE)
    assert "every proof stands" in out


def test_the_readmes_table_of_theorems_is_the_theorys(proofs):
    match = TABLE.search(README.read_text(encoding="utf-8"))
    assert match
    assert match[1].strip() == status_table(proofs), "write it anew: python -m tests.attnrates.test_verify"


def test_the_command_prints_the_table_and_exits_0(attnrates, few_proofs):
    result = attnrates("verify")
    assert (result.code, result.err) == (0, "")
    assert all(key in result.out for key in few_proofs)
    assert len(json.loads(attnrates("verify", "--json").out)["theorems"]) == len(few_proofs)


def test_a_failing_proof_exits_1_and_is_shown(attnrates, few_proofs, monkeypatch):
    def broken(self):
        raise ArithmeticError(f"{self.key}: step 3 is no identity")

    monkeypatch.setattr(theory.Theorem, "proved", broken)
    result = attnrates("verify")
    assert result.code == 1
    assert "norm-growth" in result.out
    assert "failed" in result.out
    assert "step 3 is no identity" in result.out
    assert json.loads(attnrates("verify", "--json").out)["ok"] is False
    assert few_proofs


if __name__ == "__main__":
    table = f"<!-- theorems -->\n{status_table(prove_all())}\n<!-- end of theorems -->"
    README.write_text(TABLE.sub(lambda _: table, README.read_text(encoding="utf-8")), encoding="utf-8")
