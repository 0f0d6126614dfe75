"""`attnrates verify`: all proofs once, in a process without torch; table, JSON, exit code, README."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

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
    assert set(proofs) == {"ok", "theorems", "kernel_lines", "trusted", "inference_rules", "axioms"}
    assert [entry["key"] for entry in proofs["theorems"]] == list(theory.theorems())
    fields = {field.name for field in dataclasses.fields(theory.TheoremReport)}
    for entry in proofs["theorems"]:
        page = theory.theorems()[entry["key"]]
        assert set(entry) == fields
        assert entry["status"] in STATUSES
        assert (entry["error"], entry["statement"] != "") == (None, True)
        assert "\\" not in entry["statement"]
        assert list(entry["hypotheses"]) == list(page.hypotheses)
        assert list(entry["given"]) == list(page.given)
        assert (entry["status"] == "proved-given") == bool(page.given)
        assert entry["given"].items() <= entry["hypotheses"].items()
        assert entry["axioms"].items() <= proofs["axioms"].items()
        assert entry["seconds"] >= 0
        assert bool(entry["claim"]) == bool(entry["symbols"]) == (entry["kind"] != "claim")
        if entry["kind"] == "claim":
            assert (entry["steps"], entry["own_steps"], bool(entry["instead"])) == (0, 0, True)
        else:
            assert entry["steps"] >= sum(entry["rules"].values()) > 0
            assert entry["own_steps"] >= sum(entry["rules"].values())


def test_the_readme_names_every_field_of_the_json(proofs):
    text = README.read_text(encoding="utf-8")
    listed = text[text.index("`attnrates verify --json`") :]
    listed = listed[: listed.index("\n\n")]
    for name in (*proofs, *proofs["theorems"][0]):
        assert f"`{name}`" in listed, name


def test_the_trusted_base_is_told_by_file(proofs):
    assert sum(each["lines"] for each in proofs["trusted"]) == proofs["kernel_lines"]
    root = Path(theory.__file__).parents[1]
    code = {each["file"]: (root / each["file"]).read_text(encoding="utf-8") for each in proofs["trusted"]}
    for each in proofs["trusted"]:
        assert 0 < each["lines"] < code[each["file"]].count("\n")
        assert each["role"]
    assert set(proofs["inference_rules"]) | set(proofs["axioms"]) == set(
        re.findall(r"^@_(?:rule|axiom)\ndef (\w+)", code["theory/proof/kernel.py"], re.MULTILINE)
    )
    imported = re.findall(r"^from theory\.(\S+) import", "\n".join(code.values()), re.MULTILINE)
    imported += [f"proof.{name}" for name in ("balls", "calculus", "normal", "terms")]
    trusted = {name.removeprefix("theory/").removesuffix(".py").replace("/", ".") for name in code}
    assert {name for name in imported if name != "proof"} <= trusted, "the trusted base rests on another file"


def test_the_readme_tells_the_size_of_the_trusted_base(proofs):
    found = re.search(r"axioms are about (\d+) lines;[^.]* about (\d+)\.", README.read_text(encoding="utf-8"))
    assert found
    kernel = next(each["lines"] for each in proofs["trusted"] if each["file"].endswith("kernel.py"))
    assert abs(int(found[1]) - kernel) <= 10
    assert abs(int(found[2]) - proofs["kernel_lines"]) <= 10


def test_no_two_pages_read_alike(proofs):
    from paper_figs.proofs import titles

    told = titles(proofs)
    assert len(set(told.values())) == len(told)
    assert told["alignment"] == f"{theory.theorems()['alignment'].title} (alignment)"
    assert told["norm-growth"] == theory.theorems()["norm-growth"].title


def test_the_table_lists_every_theorem_with_its_status(proofs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_table(proofs, console())
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for entry in proofs["theorems"]:
        figures = rf"^{entry['key']} +{entry['status']} +{entry['steps']} +{entry['own_steps']} "
        assert re.search(figures, out, re.MULTILINE)
    words = " ".join(out.split())
    for name, text in (*proofs["axioms"].items(), *proofs["inference_rules"].items()):
        assert f"{name}: {' '.join(text.split())}" in words
    for each in proofs["trusted"]:
        assert f"{each['lines']} {each['file']}: {each['role']}" in words
    assert f"trusted base: {proofs['kernel_lines']} lines" in words
    for entry in proofs["theorems"]:
        for name, text in entry["given"].items():
            assert f"{name}: {text}" in words
    assert "no axiom; given 2: Markov's inequality, moment generating function" in words
    assert "not proved here; proved with explicit constants: global-direction " in words
    assert "every proof stands" in out


def test_a_tightness_that_is_none_says_why(proofs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    table = {**proofs, "theorems": [dict(entry) for entry in proofs["theorems"]]}
    entries = {entry["key"]: entry for entry in table["theorems"]}
    entries["alignment"].update(tightness=None, models=None)  # as of a statement that has changed
    print_table(table, console())
    out = capsys.readouterr().out
    shown = {key: re.search(rf"^{key} .*s  (\S+)$", out, re.MULTILINE)[1] for key in entries}
    assert shown["alignment"] == shown["paper-global"] == "-"
    searched = {key for key, entry in entries.items() if entry["models"] is not None}
    assert {key for key in searched if shown[key] == "none"} == {
        key for key in searched if entries[key]["models"] == 0
    }
    signs = {key for key in searched if shown[key] == "sign"}
    assert {"attention-positive", "slope-positive"} <= signs
    assert all(entries[key]["tightness"] is None and entries[key]["models"] > 0 for key in signs)
    legend = " ".join(out[out.index("\ncolumns\n") :].split())
    assert "none where it met no model of the hypotheses, sign where the page says only a sign" in legend
    assert "- where it has not searched" in legend


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_table_fits_on_a_terminal(proofs, capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table(proofs, console())
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert max(map(cell_len, out.splitlines())) <= width
    assert all(f"\n{entry['key']}" in out for entry in proofs["theorems"])


def test_the_readmes_table_of_theorems_is_the_theorys(proofs):
    match = TABLE.search(README.read_text(encoding="utf-8"))
    assert match
    assert match[1].strip() == status_table(proofs), "write it anew: python -m tests.attnrates.test_verify"


def test_the_command_prints_the_table_and_exits_0(attnrates, few_proofs):
    result = attnrates("verify")
    assert (result.code, result.err) == (0, f"proving 0 of {len(theory.theorems())}\n")
    assert all(key in result.out for key in few_proofs)
    told = attnrates("verify", "--json")
    assert len(json.loads(told.out)["theorems"]) == len(few_proofs)
    assert told.err == result.err


def test_a_failing_proof_exits_1_and_is_shown(attnrates, few_proofs, monkeypatch):
    def broken(self):
        raise ArithmeticError(f"{self.key}: step 3 is no identity")

    monkeypatch.setattr(theory.Theorem, "proved", broken)
    result = attnrates("verify")
    assert result.code == 1
    assert "norm-growth" in result.out
    assert "failed" in result.out
    assert "step 3 is no identity" in result.out
    result = attnrates("verify", "--json")
    assert (result.code, json.loads(result.out)["ok"]) == (1, False)
    assert json.loads(result.out)["theorems"][0]["error"].endswith("step 3 is no identity")
    assert few_proofs


if __name__ == "__main__":
    table = f"<!-- theorems -->\n{status_table(prove_all())}\n<!-- end of theorems -->"
    README.write_text(TABLE.sub(lambda _: table, README.read_text(encoding="utf-8")), encoding="utf-8")
