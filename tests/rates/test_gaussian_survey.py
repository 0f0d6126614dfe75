"""The Gaussian theorem against a survey: probabilities, and what (N) promises of runs from any start."""

import itertools

import pytest

from numerics.survey import STARTS, Cell, interval, measure, survey, tally
from theory import gaussian

CONFIDENCE = 0.999


def cells(sizes, dimensions, problems, seed=0):
    """Settings at three ratios of signal to noise, for both kinds of query."""
    scales = ((2.0, 0.1), (2.0, 0.3), (1.0, 1.0))
    for (n, T), d, (signal, noise), query in itertools.product(sizes, dimensions, scales, ("first", "own")):
        yield Cell(n=n, T=T, d=d, signal=signal, noise=noise, query=query, problems=problems, seed=seed)


def hold(found):
    """Hold the theorem against every tally; return what it claims of each."""
    claims = []
    for each in found:
        cell = each.cell
        claimed = gaussian.probability(
            cell.n, cell.T, cell.d, signal=cell.signal, noise=cell.noise, query=cell.query
        )
        low, high = interval(each.near_acute, cell.problems, CONFIDENCE)
        print(cell, f"claimed {claimed:.4f}, seen {each.near_acute}, interval [{low:.4f}, {high:.4f}]")
        assert claimed <= high, "the theorem is contradicted"
        assert each.near_acute <= each.separable <= cell.problems
        assert each.acute_unreached == 0, "a run on a near-acute problem does not reach W_mm"
        assert each.wrong_in_pair == each.wrong, "a sequence is stuck without a pair that breaks (N)"
        for name in STARTS:
            reached = getattr(each, name)
            assert each.near_acute <= reached <= each.separable
            # so convergence, too, is at least as likely as the theorem says
            assert claimed <= interval(reached, cell.problems, CONFIDENCE)[1]
        claims.append(claimed)
    return claims


def test_the_theorem_and_the_runs_agree():
    print("seed", 0)
    found = [tally(cell, measure(cell)) for cell in cells([(2, 3), (5, 3)], [6, 60, 1500], 25)]
    claims = hold(found)
    assert max(claims) > 0.9
    assert min(claims) == 0
    assert any(each.stuck for each in found), "outside (N) some runs are stuck"
    assert any(each.separable < each.cell.problems for each in found) or any(
        each.near_acute < each.cell.problems for each in found
    )


@pytest.mark.soak
def test_the_theorem_and_the_runs_agree_on_a_grid(tmp_path):
    print("seed", 1)
    grid = cells([(2, 2), (4, 4), (10, 6), (16, 4)], [5, 10, 40, 160, 640, 2560, 10_240], 100, seed=1)
    found = survey(grid, tmp_path / "survey.csv")
    claims = hold(found)
    assert sum(claim > 0.9 for claim in claims) >= 20
    assert sum(each.stuck for each in found) >= 100
    undecided = sum(each.undecided for each in found)
    print("undecided", undecided)
    assert undecided <= 0.001 * sum(3 * each.separable for each in found)
