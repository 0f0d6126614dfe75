"""The survey of many problems: its draws, its intervals, its starts, its ends, its table on disk."""

import csv
import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import ks_2samp

from numerics import NormalizedGD, max_margin, train
from numerics.datasets.gaussian import gaussian
from numerics.errors import InputError
from numerics.problem import Problem
from numerics.survey import Cell, count, dimension, draw, interval, measure, near_acute, survey, table, tally
from numerics.survey.starts import LARGEST_GAP, STARTS

SMALL = Cell(n=4, T=3, d=6, noise=0.3, problems=12, steps=500)


def tail(successes, trials, share):
    """The probability of at least so many successes, by adding up exact fractions."""
    p = Fraction(share)
    return sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1))


@pytest.mark.parametrize(("successes", "trials"), [(0, 7), (7, 7), (3, 7), (39, 40), (1, 40)])
def test_the_interval_is_clopper_and_pearsons(successes, trials):
    low, high = interval(successes, trials, 0.95)
    if successes:
        assert float(tail(successes, trials, low)) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0
    if successes < trials:
        assert 1 - float(tail(successes + 1, trials, high)) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1


def test_impossible_counts_have_no_interval():
    for arguments in [(3, 2), (-1, 2), (1, 2, 1.0), (1, 2, 0.0)]:
        with pytest.raises(InputError):
            interval(*arguments)
    assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("query", ["first", "own"])
@pytest.mark.parametrize("d", [5, 60])
def test_draws_have_the_law_of_the_data_set(query, d):
    """Also where the noise has fewer dimensions than vectors."""
    cell = Cell(n=3, T=3, d=d, noise=0.5, query=query)
    print("seed", cell.seed)
    drawn = np.array([_shape(draw(cell, j)) for j in range(600)])
    options = {"n": 3, "T": 3, "d": d, "signal": 2.0, "noise": 0.5, "query": query}
    made = np.array([_shape(gaussian(seed=j, **options)) for j in range(600)])
    for a, b in zip(drawn.T, made.T, strict=True):
        assert ks_2samp(a, b).pvalue > 1e-3


def _shape(problem):
    gram = problem.gram()
    return gram.min(), gram.max(), gram.mean(), np.linalg.eigvalsh(gram)[1]


def test_draws_are_reproducible_and_independent():
    a, b = draw(SMALL, 3), draw(dataclasses.replace(SMALL, problems=50, steps=7), 3)
    assert a == b
    others = [
        draw(SMALL, 4),
        draw(dataclasses.replace(SMALL, seed=1), 3),
        draw(dataclasses.replace(SMALL, d=7), 3),
    ]
    assert len({problem.hash for problem in [a, *others]}) == 4
    assert set(a.optimal) == {SMALL.T - 1}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"n": 0}, {"T": 1}, {"d": 2}, {"problems": 0}, {"steps": 0}, {"seed": -1}, {"d": True}),
        *({"noise": 0.0}, {"noise": float("inf")}, {"signal": float("nan")}, {"query": "mean"}),
    ],
)
def test_cells_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match="a survey needs"):
        Cell(**({"n": 4, "T": 3, "d": 6} | wrong))


@pytest.mark.parametrize("name", STARTS)
def test_starts_lie_in_the_span_at_their_scale(name):
    for j in range(5):
        problem, rng = draw(SMALL, j), SMALL.generator(j, name)
        W = STARTS[name](problem, max_margin(problem), problem.gram(), rng)
        gaps = problem.logit_gaps(W)
        assert np.abs(gaps).max() == pytest.approx(LARGEST_GAP)
        rows = [problem.combine(row).ravel() for row in np.eye(problem.n_constraints)]
        left = W.ravel() - np.array(rows).T @ np.linalg.lstsq(np.array(rows).T, W.ravel(), rcond=None)[0]
        assert np.linalg.norm(left) < 1e-8 * np.linalg.norm(W)
        if name == "opposite":
            assert gaps.max() < 0
        if name == "decoy":
            assert (gaps < 0).sum() >= 1


@pytest.mark.parametrize("seed", range(2))
def test_near_acute_by_linear_equations_is_that_of_the_solver(seed):
    """On problems with and without full support, with and without (N)."""
    print("seed", seed)
    seen = set()
    for d in (5, 12, 60):
        cell = Cell(n=4, T=3, d=d, noise=0.3, seed=seed)
        for j in range(25):
            problem = draw(cell, j)
            target = max_margin(problem)
            expected = problem.gram().min() > -1 / target.norm**2
            assert near_acute(problem) == expected
            seen.add((expected, bool((target.dual > 0).all())))
    assert seen == set(itertools.product((True, False), repeat=2))


def test_infeasible_problems_are_not_near_acute():
    tokens = np.array([[[0.0, 1, 0], [0, 0, 1]], [[0, 0, 1], [0, 1, 0]]])
    problem = Problem(tokens, np.ones((2, 3)), [1, -1], [0, 1, -1])
    assert not near_acute(problem)


@pytest.mark.parametrize("seed", range(3))
def test_near_acute_problems_are_solved_from_every_start(seed):
    """What the theorem on global convergence says: with (N) no start is a bad one."""
    print("seed", seed)
    seen = 0
    for d in (8, 40):
        outcomes = measure(Cell(n=4, T=3, d=d, noise=0.3, problems=25, seed=seed))
        for outcome in outcomes:
            if outcome.near_acute:
                seen += 1
                assert outcome.separable
                assert not outcome.pairs
                assert all(limit.reached for limit in outcome.limits.values())
    assert seen > 20


def test_stuck_runs_are_at_the_solution_of_the_right_sequences():
    """The run goes on and stays there; which of its wrong tokens is ahead may change with time."""
    cell = Cell(n=10, T=4, d=8, problems=20, steps=2000, seed=3)
    print("seed", cell.seed)
    stuck = 0
    for j, outcome in enumerate(measure(cell, starts=("random",))):
        limit = outcome.limits.get("random")
        if limit is None or not limit.stuck:
            continue
        stuck += 1
        assert not outcome.near_acute
        problem = draw(cell, j)
        init = STARTS["random"](problem, None, problem.gram(), cell.generator(j, "random"))
        rule = NormalizedGD(step=1 / float(problem.constraint_norms.max()))
        W = train(problem, rule, steps=20_000, init=init, record=[0]).weights
        attention = np.array([problem.tokens[i] @ W @ problem.queries[i] for i in range(problem.n)])
        chosen = attention.argmax(axis=1)
        wrong = [(int(i), int(chosen[i])) for i in np.flatnonzero(chosen != problem.optimal)]
        assert {i for i, _ in wrong} == {i for i, _ in limit.wrong}
        right = np.flatnonzero(chosen == problem.optimal)
        part = Problem(problem.tokens[right], problem.queries[right], problem.labels[right], problem.decoder)
        M = max_margin(part)
        cosine = np.sum(W * M.weights) / np.linalg.norm(W) / M.norm
        assert cosine > 0.99
        # beaten by more than the margin, hence in a pair that breaks (N) with a right sequence
        gaps = problem.logit_gaps(M.weights)
        pairs = {frozenset(pair) for pair in outcome.pairs}
        gram = problem.gram()
        names = list(
            zip(problem.constraint_sequence.tolist(), problem.constraint_token.tolist(), strict=True)
        )
        for name in wrong:
            k = names.index(name)
            assert gaps[k] < -1
            clash = [
                names[m] for m in range(len(names)) if gram[k, m] < -1 / M.norm**2 and names[m][0] in right
            ]
            assert clash
            assert all(frozenset((name, other)) in pairs for other in clash)
    assert stuck >= 3


def test_without_starts_nothing_is_trained():
    assert all(outcome.limits == {} for outcome in measure(SMALL, starts=()))
    assert sum(o.near_acute for o in measure(SMALL, starts=())) == count(SMALL)


def test_the_blocks_do_not_matter():
    assert measure(SMALL, block=5) == measure(SMALL)


def test_the_dimension_is_where_the_share_is_reached():
    cell = Cell(n=4, T=3, d=2000, noise=0.3, problems=60)
    found = dimension(cell, 0.9)
    assert count(dataclasses.replace(cell, d=found)) >= 54
    assert count(dataclasses.replace(cell, d=max(3, int(found * 0.7)))) < 54
    assert dimension(dataclasses.replace(cell, d=4), 0.9) <= 2 * found, "a d that is too small is doubled"
    with pytest.raises(InputError, match="share"):
        dimension(cell, 0.0)


def test_a_survey_goes_on_from_its_file(tmp_path, monkeypatch):
    path = tmp_path / "new" / "survey.csv"
    cells = [SMALL, dataclasses.replace(SMALL, d=9), dataclasses.replace(SMALL, d=30)]
    measured = []

    def interrupted(cell):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(cell)
        return measure(cell)

    monkeypatch.setattr(table, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        survey(cells, path)
    assert len(path.read_text().splitlines()) == 3
    measured.clear()
    found = survey(cells, path)
    assert measured == cells[2:]
    assert found == [tally(cell, measure(cell)) for cell in cells]
    assert survey(cells, path) == found
    assert len(measured) == 1
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["d"]) for row in rows] == [6, 9, 30]
    assert [path.name for path in path.parent.iterdir()] == ["survey.csv"]


def test_other_code_measures_anew(tmp_path, monkeypatch):
    path = tmp_path / "survey.csv"
    survey([SMALL], path)
    monkeypatch.setattr(table, "source_hash", lambda pattern: "other")
    monkeypatch.setattr(table, "measure", lambda cell: [])
    assert survey([SMALL], path)[0].separable == 0


@pytest.mark.parametrize("damage", ["foreign", "truncated", "binary", "impossible"])
def test_damaged_tables_are_refused(tmp_path, damage):
    path = tmp_path / "survey.csv"
    if damage == "foreign":
        path.write_text("a,b\n1,2\n")
    elif damage == "binary":
        path.write_bytes(b"\xff\xfe\x00key")
    else:
        survey([SMALL], path)
        text = path.read_text()
        path.write_text(text[:-9] if damage == "truncated" else text.replace(",first,", ",third,"))
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"survey\.csv"):
        survey([SMALL], path)
    assert path.read_bytes() == before
