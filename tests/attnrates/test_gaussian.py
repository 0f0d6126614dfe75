"""`attnrates gaussian` and `attnrates survey`: the theorem's numbers, simulation beside them, refusals."""

import json
from pathlib import Path

import pytest

from attnrates import _gaussian, _survey
from numerics.survey import Cell, count
from theory import gaussian as theorem

SIZE = ("gaussian", "--n", "10", "--tokens", "6")
SMALL = ("gaussian", "--n", "3", "--tokens", "3", "--sigma", "0.3")
GRID = ("survey", "--n", "3", "--tokens", "3", "--d", "5,40", "--problems", "10", "--steps", "300")


def test_everything_that_is_taken_as_given_is_named(attnrates):
    import theory

    words = {
        "(S) and (N) hold on the event": "step from the event to its probability",
        "union bound": "union bound",
        "Markov's inequality": "Markov's inequality",
        "moment generating function": "moment generating functions",
    }
    given = {name.split(",")[0] for name in theory.theorems()["gaussian-probability"].given}
    assert given == set(words)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    readme = " ".join(readme[readme.index("`gaussian` prints") :].split("\n\n")[0].split())
    said = attnrates(*SIZE).out
    for phrase in (*words.values(), *theorem.ON_EVENT):
        assert phrase in said
        assert phrase in readme
    assert "(S) and (N) hold on the event" in theorem.__doc__
    for key in theorem.ON_EVENT:
        assert theory.theorems()[key].status == "proved"


def test_it_prints_the_smallest_dimension(attnrates):
    result = attnrates(*SIZE, "--delta", "0.01", "--d", "3000")
    assert result.code == 0
    assert not result.err
    assert "from d = 3808 on" in result.out
    assert "at least 0.99" in result.out
    assert "d = 3000" in result.out
    assert "at least 0.86" in result.out
    assert "query of a sequence is its first token" in result.out
    assert "or one more noise vector" in result.out
    assert "own" not in attnrates(*SIZE, "--query", "first").out


@pytest.mark.parametrize("query", ["first", "own", "both"])
def test_json_has_the_theorems_numbers(attnrates, query):
    result = attnrates(*SMALL, "--delta", "0.05", "--signal", "1.5", "--d", "900", "--query", query, "--json")
    answer = json.loads(result.out)
    scale = {"signal": 1.5, "noise": 0.3}
    assert answer["smallest_dimension"] == theorem.smallest_dimension(3, 3, delta=0.05, **scale)
    assert answer["probability"] == theorem.probability(3, 3, 900, **scale)
    assert answer["queries"] == (["first", "own"] if query == "both" else [query])
    assert "simulation" not in answer


def test_no_probability_is_rounded_to_1(attnrates):
    assert "with probability at least 1 - 1e-09, " in attnrates(*SMALL, "--delta", "1e-9").out
    assert "with probability at least 0.999999, " in attnrates(*SMALL, "--delta", "1e-6").out


def test_too_small_a_dimension_has_no_guarantee(attnrates):
    result = attnrates(*SIZE, "--d", "100")
    assert result.code == 0
    assert "guarantees nothing" in result.out


def test_simulation_confirms_the_threshold(attnrates):
    """2000 problems of each convention, n = 10, T = 6, delta = 0.01; no vector has d entries."""
    result = attnrates(*SIZE, "--simulate", "2000", "--json")
    assert result.code == 0
    answer = json.loads(result.out)
    assert answer["smallest_dimension"] == 3808
    assert [found["query"] for found in answer["simulation"]] == ["first", "own"]
    for found in answer["simulation"]:
        assert found["problems"] == 2000
        assert found["d"] == 3808
        assert found["verdict"] == "confirmed"
        assert 0.99 <= found["interval"][0] <= found["near_acute"] / 2000 <= found["interval"][1]
        assert 2 < found["conservative_by"] < 10
        assert found["conservative_by"] == 3808 / found["simulated_dimension"]
        cell = Cell(n=10, T=6, d=found["simulated_dimension"], query=found["query"], problems=500)
        assert count(cell) >= 495
    text = attnrates(*SMALL, "--simulate", "100", "--d", "40").out
    assert "of 100 problems." in text
    assert "guarantees nothing in this dimension" in text


def test_a_contradiction_is_told_and_exits_1(attnrates, monkeypatch):
    """Were the theorem wrong, here by a dimension that is too small."""
    monkeypatch.setattr(theorem, "smallest_dimension", lambda *_, **__: 12)
    result = attnrates(*SIZE, "--simulate", "50", "--query", "first")
    assert result.code == 1
    assert "lies above it: CONTRADICTED" in result.out
    monkeypatch.setattr(theorem, "probability", lambda *_, **__: 0.9)
    monkeypatch.setattr(theorem, "smallest_dimension", lambda *_, **__: 4000)
    assert attnrates(*SIZE, "--simulate", "50", "--query", "own", "--d", "12").code == 1
    monkeypatch.setattr(_survey.theorem, "probability", lambda *_, **__: 0.9999)
    result = attnrates(*GRID, "--d", "5")
    assert result.code == 1
    assert "CONTRADICTED: n=3 T=3 d=5" in result.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--n", "1"), "n >= 2"),
        (("--tokens", "1"), "T >= 2"),
        (("--delta", "0"), "delta"),
        (("--delta", "nan"), "delta"),
        (("--sigma", "-1"), "noise"),
        (("--signal", "inf"), "signal"),
        (("--sigma", "1e200"), "a noise from 10^-60 to 10^60"),
        (("--signal", "1e-200"), "a signal from 10^-60 to 10^60"),
        (("--n", "10000"), "no dimension up to 1000000000 suffices for n = 10000, T = 6, signal 2 and noise"),
        (("--d", "2"), "d >= 3"),
        (("--query", "mean"), "query"),
        (("--simulate", "0"), "simulate"),
        (("--n", "ten"), "--n"),
        (("--seed", "-1"), "seed"),
    ],
)
def test_bad_input_is_one_line(attnrates, arguments, says):
    result = attnrates(*SIZE, *arguments)
    assert result.code == 2
    assert not result.out
    assert result.err.count("\n") == 1
    assert says in result.err


def test_the_survey_is_a_table_and_goes_on_from_its_file(attnrates, tmp_path):
    path = tmp_path / "deep" / "survey.csv"
    result = attnrates(*GRID, "--out", path)
    assert result.code == 0
    lines = result.out.splitlines()
    names = [
        "n",
        "T",
        "d",
        "sigma",
        "(S)",
        "(N)",
        "interval",
        "proved",
        "(F)",
        "random",
        "opposite",
        "decoy",
        "undecided",
    ]
    assert lines[0].split() == names
    assert [line.split()[2] for line in lines[1:3]] == ["5", "40"]
    assert "exact 99% interval" in result.out
    before = path.read_bytes()
    assert attnrates(*GRID, "--out", path).out == result.out
    assert path.read_bytes() == before
    rows = json.loads(attnrates(*GRID, "--out", path, "--json").out)
    for row in rows:
        low, high = row["intervals"]["near_acute"]
        assert low <= row["near_acute"] / row["problems"] <= high
        assert not row["contradicted"]
        assert row["claimed"] == theorem.probability(3, 3, row["d"], signal=2.0, noise=0.1)


def test_the_survey_tells_of_stuck_runs(attnrates):
    result = attnrates("survey", "--n", "10", "--d", "8", "--problems", "10")
    assert result.code == 0
    assert (
        "on problems with (S), stuck at the max-margin solution of the sequences that are right" in result.out
    )
    assert "pair that breaks (N)" in result.out


def test_the_survey_s_columns_are_explained_and_fit_a_narrow_terminal(attnrates):
    out = attnrates(*GRID).out
    legend = out.split("\n\n")[-1]
    for name in out.splitlines()[0].split()[4:]:
        assert name in [key for words in _survey.COLUMNS for key in words.split(", ")], name
    for words in _survey.COLUMNS:
        assert f"\n{words} " in f"\n{legend}"
    lines = [["n", "T", "d", "sigma", "(S)", "interval"], ["10", "4", "8", "0.1", "1.00", "0.00-0.41"]]
    assert list(_survey._fitting(lines, None)) == [
        " n  T  d  sigma   (S)   interval",
        "10  4  8    0.1  1.00  0.00-0.41",
    ]
    assert list(_survey._fitting(lines, 25)) == [
        " n  T  d  sigma   (S)",
        "10  4  8    0.1  1.00",
        " n  T  d  sigma   interval",
        "10  4  8    0.1  0.00-0.41",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--n", "3,x"), "--n"),
        (("--d", "2"), "d >= 3"),
        (("--sigma", "0"), "noise"),
        (("--problems", "0"), "problems"),
        (("--query", "both"), "query"),
        (("--d", ""), "--d"),
    ],
)
def test_bad_grids_are_refused(attnrates, tmp_path, arguments, says, tree):
    result = attnrates(*GRID, *arguments, "--out", tmp_path / "survey.csv")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert says in result.err
    assert not tree(tmp_path)


def test_a_foreign_table_is_kept(attnrates, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b\n1,2\n")
    result = attnrates(*GRID, "--out", path)
    assert result.code == 2
    assert "mine.csv" in result.err
    assert path.read_text() == "a,b\n1,2\n"


def test_the_verdict_names_what_is_claimed():
    found = {"claimed": 0.99, "verdict": "confirmed"}
    assert _gaussian._verdict(found) == "the proved 0.990000 lies below it: confirmed"
    found["claimed"] = 0.8609949
    assert "0.860994 " in _gaussian._verdict(found)  # rounded down, as it is everywhere


def test_check_lists_the_pairs(attnrates, tmp_path):
    train = ("train", "--rule", "ngd", "--step", "0.5", "--steps", "100", "--out", tmp_path)
    assert attnrates(*train, "--data", "gaussian:n=6,T=3,d=6,noise=0.5").code == 0
    result = attnrates("check", tmp_path, "--pairs")
    assert result.code == 0
    assert "pairs of constraints have <A_k, A_l> <= -g*^2" in result.out
    assert "(i, t): the constraint A_k" in result.out
    (run,) = json.loads(attnrates("check", tmp_path, "--pairs", "--json").out)
    assert result.out.count("<A_k, A_l> in") == min(20, len(run["pairs"])) > 3
    assert attnrates("check", tmp_path, "--pairs", "--all").out.count("<A_k, A_l> in") == len(run["pairs"])
    assert {"first", "second", "product", "certain"} == set(run["pairs"][0])
    assert attnrates(*train[:-1], tmp_path / "near", "--data", "gaussian:n=3,T=3,d=900").code == 0
    assert "(N) holds: no pair" in attnrates("check", tmp_path / "near", "--pairs").out
    refused = attnrates("check", tmp_path, "--pairs", "--certified")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert attnrates("check", tmp_path / "nothing", "--pairs").code == 2


def test_check_names_the_wrong_tokens(attnrates, tmp_path):
    """A problem on which two sequences are pulled against each other, from zero."""
    import numpy as np

    from numerics import NormalizedGD, train
    from numerics.survey import draw
    from numerics.survey.starts import STARTS

    cell = Cell(n=10, T=4, d=8, problems=20, seed=3)
    for j in range(20):
        problem = draw(cell, j)
        init = STARTS["random"](problem, None, problem.gram(), cell.generator(j, "random"))
        rule = NormalizedGD(step=1 / float(problem.constraint_norms.max()))
        run = train(problem, rule, steps=2000, init=init, record=[0])
        gaps = problem.logit_gaps(run.weights)
        if gaps.min() < 0:
            break
    run.save(tmp_path / "run")
    (found,) = json.loads(attnrates("check", tmp_path, "--pairs", "--json").out)
    wrong = np.unique(problem.constraint_sequence[gaps < 0])
    assert [i for i, _ in found["chosen_instead"]] == wrong.tolist()
    for i, k in found["chosen_instead"]:
        own = problem.constraint_sequence == i
        assert gaps[own & (problem.constraint_token == k)] == gaps[own].min()
    assert "chosen instead of the optimal token: (" in attnrates("check", tmp_path, "--pairs").out


def test_check_says_from_which_step_on_digits_meet_the_weaker_conditions(attnrates, made_runs):
    result = attnrates("check", made_runs)
    assert "every optimal token has the largest logit" in result.out
    rows = json.loads(attnrates("check", made_runs, "--json").out)
    digits = [row for row in rows if row["run"].startswith("digits")]
    assert digits
    assert all(set(row["relaxed"]) >= {"chosen", "pull", "threshold"} for row in digits)
    assert all(row["from_step"] is None for row in rows if row["holds"] is None)
    assert all(row["from_step"] >= 0 for row in rows if row["holds"])
