"""`attnrates verify`: the table, the JSON contract and the exit code."""

import json
from types import SimpleNamespace

import theory

STATUSES = {"proved", "proved-given", "claimed", "observed"}


def test_every_theorem_is_listed_with_its_status(attnrates):
    result = attnrates("verify")
    assert (result.code, result.err) == (0, "")
    assert max(map(len, result.out.splitlines())) <= 80
    for key in theory.theorems():
        assert key in result.out
    assert "every proof stands" in result.out


def test_the_tree_shows_pages_rules_and_times(attnrates):
    out = attnrates("verify").out
    assert "    separator-correlation" in out
    assert "combine" in out


def test_latex_macros_are_printed(attnrates):
    out = attnrates("verify", "--latex").out
    assert r"\newcommand{\ratesNormGrowth}" in out
    assert r"\newcommand{\ratesNormGrowthStatus}{proved}" in out


def test_json_has_the_documented_shape(attnrates):
    value = json.loads(attnrates("verify", "--json").out)
    assert value["ok"] is True
    assert value["kernel_lines"] > 0
    assert {entry["key"] for entry in value["theorems"]} >= set(theory.theorems())
    for entry in value["theorems"]:
        assert entry["status"] in STATUSES
        assert isinstance(entry["steps"], int)
        assert set(entry["axioms"]) <= set(value["axioms"])


def test_a_failing_proof_exits_1_and_is_shown(attnrates, monkeypatch):
    genuine = theory.verify()
    value = genuine.to_dict()
    value["theorems"][0] |= {"status": "failed", "error": "step 3: not an identity"}
    failing = SimpleNamespace(ok=False, to_dict=lambda: value)
    monkeypatch.setattr(theory, "verify", lambda **_: failing)
    result = attnrates("verify")
    assert result.code == 1
    assert "failed" in result.out
    assert "not an identity" in result.out
    assert json.loads(attnrates("verify", "--json").out)["ok"] is False
