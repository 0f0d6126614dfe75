"""`attnrates verify KEY` and `attnrates docs`: a proof in full, and a page for every theorem."""

import json
import re

import pytest

import theory
from theory.steps import steps


def test_a_page_is_printed_with_every_step(attnrates):
    result = attnrates("verify", "norm-growth")
    assert (result.code, result.err) == (0, "")
    listed = steps(theory.theorems()["norm-growth"])
    numbers = [int(number) for number in re.findall(r"^ {2,}(\d+)  ", result.out, re.MULTILINE)]
    assert numbers == list(range(1, len(listed) + 1))
    for name in theory.theorems()["norm-growth"].hypotheses:
        assert f"  {name}: " in result.out
    assert "[by separator-growth]" in result.out
    assert "[by path-lower]" in result.out
    assert "theorem, proved." in result.out


def test_the_same_as_json(attnrates):
    data = json.loads(attnrates("verify", "norm-growth", "--json").out)
    assert (data["key"], data["status"], data["error"]) == ("norm-growth", "proved", None)
    assert data["steps"][-1]["conclusion"] == data["claim"]
    assert all(premise < step["number"] for step in data["steps"] for premise in step["premises"])


def test_a_claim_without_a_proof_has_no_steps(attnrates):
    result = attnrates("verify", "paper-joint", "--json")
    data = json.loads(result.out)
    assert (result.code, data["status"], data["steps"]) == (0, "claimed", [])


def test_a_page_of_ones_own_that_fails_exits_1(attnrates, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "import dataclasses, theory\n"
        "MINE = dataclasses.replace(theory.theorems()['path-lower'], key='mine', rate=None,\n"
        "                           claim=theory.theorems()['path-upper'].claim)\n",
        encoding="utf-8",
    )
    result = attnrates("verify", "mine", "--theory", own)
    assert (result.code, result.err) == (1, "")
    assert "fails: ProofError" in result.out


@pytest.mark.parametrize(
    "arguments", [["norm"], ["norm-growth", "--latex"], ["norm-growth", "--search"], [""], ["\x1b[31m"]]
)
def test_bad_keys_are_refused_in_one_line(attnrates, arguments):
    result = attnrates("verify", *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err[:-1].isprintable()


def test_a_page_for_every_theorem(attnrates, few_proofs, tmp_path):
    result = attnrates("docs", "--out", tmp_path / "pages")
    assert (result.code, result.out.strip()) == (0, str(tmp_path / "pages" / "index.html"))
    assert {path.stem for path in (tmp_path / "pages").iterdir()} == {"index", *few_proofs}
    index = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    for key in few_proofs:
        page = (tmp_path / "pages" / f"{key}.html").read_text(encoding="utf-8")
        assert f'href="{key}.html"' in index
        assert "<math" in page
        assert "<script" not in page
        for link in re.findall(r'href="([^"#]+)"', page):
            assert (tmp_path / "pages" / link).is_file()
    assert "<small>by separator-growth</small>" in (tmp_path / "pages" / "norm-growth.html").read_text()
