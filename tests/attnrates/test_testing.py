"""Assertions for anyone's tests: they pass, fail and explain themselves, as functions and as fixtures."""

import dataclasses
import time

import numpy as np
import pytest
from jaxtyping import TypeCheckError

import theory
from attnrates.testing import assert_bound, assert_proved, assert_rate, plot
from numerics import GradientDescent, NormalizedGD, train
from numerics.datasets import load
from numerics.errors import InputError


@pytest.fixture(scope="module")
def run():
    return train(load("gaussian:n=3,T=3,d=40", seed=0), NormalizedGD(step=0.1), steps=200)


def test_a_proved_theorem_passes_and_a_claimed_or_false_one_fails():
    assert_proved("path-lower")
    with pytest.raises(AssertionError, match="paper-joint is claimed"):
        assert_proved("paper-joint")
    page = theory.theorems()["path-lower"]
    false = dataclasses.replace(page, key="false", claim=theory.theorems()["path-upper"].claim, rate=None)
    with pytest.raises(AssertionError, match="false is not proved: ProofError"):
        assert_proved(false)
    with pytest.raises(InputError, match="no theorem is called"):
        assert_proved("no-such-theorem")


def test_a_rate_that_holds_gives_its_verdict(run):
    verdict = assert_rate(run, "norm-growth")
    assert verdict.holds
    assert assert_rate(run, theory.theorems()["norm-growth"]).worst_ratio == verdict.worst_ratio


def test_a_violation_names_step_values_constants_and_draws(run):
    history = run.history
    history.loc[history["step"] >= 50, "weight_norm"] = 0.5
    broken = dataclasses.replace(run, recorded={name: history[name].to_numpy() for name in history.columns})
    with pytest.raises(AssertionError) as caught:
        assert_rate(broken, "norm-growth")
    text = str(caught.value)
    for fact in ("norm-growth is violated", "observed 0.5 < bound", "R = ", "observed o, bound -"):
        assert fact in text
    assert "\\" not in text
    first = int(text.split("first at step ")[1].split(":", maxsplit=1)[0])
    verdict = theory.check(broken, "norm-growth")
    assert first == verdict.steps[np.argmax(verdict.observed < verdict.bound)]


def test_what_is_not_claimed_fails_unless_allowed(run):
    with pytest.raises(AssertionError, match=r"claims nothing on this run:\n  gd fails"):
        assert_rate(run, "gd-path-lower")
    assert assert_rate(run, "gd-path-lower", allow_unclaimed=True).holds is None
    other = train(load("gaussian:n=3,T=3,d=40", seed=0), GradientDescent(step=1.0), steps=20)
    with pytest.raises(InputError, match="page of your own"):
        assert_rate(other, dataclasses.replace(theory.theorems()["norm-growth"], key="mine"))


@pytest.mark.parametrize(
    ("values", "bound", "options"),
    [
        ([1, 2], 2, {}),
        ([3, 2], [3, 2], {"sense": "lower"}),
        ([1.05], [1.0], {"tolerance": 0.1}),
        ([1, 2], float("inf"), {}),
        ([1, 2], -float("inf"), {"sense": "lower", "tolerance": 0.1}),
        ([1, 2], 1e308, {"tolerance": 1e308}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_bound_kept(values, bound, options):
    assert_bound(values, bound, **options)


@pytest.mark.parametrize(
    ("values", "bound", "options", "says"),
    [
        ([1, 3, 4], 2, {}, "first at step 1: observed 3 > bound 2\n  at 2 of 3 steps"),
        ([1, 3], 2, {"steps": [10, 20], "sense": "lower"}, "first at step 10: observed 1 < bound 2"),
        ([1, float("nan")], 2, {}, "first at step 1: observed nan"),
        ([1.05], [1.0], {"tolerance": 0.01}, "first at step 0"),
        ([1], float("nan"), {}, "observed 1 > bound nan"),
        ([1e308, -1e308, 1.7e308], 0, {}, "1.7e+308 |"),
        ([1.7976931348623157e308] * 2, 1e308, {}, "1.8e+308 |"),
        ([1, 2], 0, {"steps": [2**62, 2**63 - 1]}, "first at step 4611686018427387904"),
    ],
)
def test_a_bound_broken(values, bound, options, says):
    with pytest.raises(AssertionError) as caught:
        assert_bound(values, bound, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("values", "bound", "options", "names"),
    [
        ([], 1, {}, "values"),
        ([[1]], 1, {}, "values"),
        ([1, 2], [1, 2, 3], {}, "bound"),
        ([1, 2], 1, {"steps": [1]}, "steps"),
        ([1], 1, {"tolerance": float("nan")}, "tolerance"),
        ([10**400], 1, {}, "values"),
        ([1j], 1, {}, "values"),
        (["1"], 1, {}, "values"),
        ([1, 2], 1, {"steps": [0, float("nan")]}, "steps"),
        ([1, 2], 1, {"steps": ["a", "b"]}, "steps"),
    ],
)
def test_bad_arguments_are_named(values, bound, options, names):
    with pytest.raises(InputError, match=names):
        assert_bound(values, bound, **options)


def test_another_sense_and_another_page_are_refused():
    """Taken for "lower", a misspelt sense would let a violation pass; a subclass could say anything."""
    for call, arguments in ((assert_bound, ([1, 5], 2)), (assert_proved, ())):
        refused = {assert_bound: {"sense": "Upper"}, assert_proved: {"theorem": 3}}[call]
        with pytest.raises((InputError, TypeCheckError)):
            call(*arguments, **refused)


def test_many_values_are_drawn_in_no_time():
    values = np.zeros(2_000_000)
    values[-1] = 3
    begin = time.process_time()
    with pytest.raises(AssertionError, match="first at step 1999999"):
        assert_bound(values, 1)
    assert time.process_time() - begin < 5


def test_the_plot_has_both_curves_and_their_ends():
    steps = np.arange(1, 101)
    lines = plot(steps, 1.0 / steps, np.full(100, 0.5))
    assert max(map(len, lines)) <= 80
    body = "\n".join(lines)
    assert lines[1].lstrip().startswith("1 |o")
    assert "0.01" in body
    assert "1 ... 100" in body
    assert body.count("-") > 30
    assert plot([1], [1], [1]) == []
    assert plot([1, 2, 3], [np.nan] * 3, [1, 2, 3]) == []
    assert len(plot([0, 1], [0.0, -1.0], [1.0, 1.0])) == 12


pytest_plugins = ["pytester"]


def test_the_plugin_offers_them_as_fixtures(pytester):
    pytester.makepyfile(
        """
        def test_kept(assert_proved, assert_bound):
            assert_proved("path-lower")
            assert_bound([1, 2], 3)

        def test_broken(assert_bound):
            assert_bound([1, 4], 3)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:xdist")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["attnrates: *", "*first at step 1: observed 4 > bound 3*"])
    assert "testing.py" not in result.stdout.str()  # the traceback ends in the user's own test


def test_the_plugin_works_under_xdist(pytester):
    """Two workers: every fixture, a rate that holds, failures whose message and plot reach the user whole."""
    for name in ("first", "second"):
        pytester.makepyfile(
            **{
                f"test_{name}": """
        import dataclasses
        import os

        import numpy as np
        import pytest

        from numerics import NormalizedGD, train
        from numerics.datasets import load


        @pytest.fixture(scope="module")
        def run():
            return train(load("gaussian:n=3,T=3,d=20", seed=0), NormalizedGD(step=0.1), steps=50)

        def test_kept(assert_proved, assert_bound, assert_rate, run):
            assert os.environ["PYTEST_XDIST_WORKER"] in ("gw0", "gw1")
            assert_proved("path-lower")
            assert_bound([1, 2], 3)
            assert assert_rate(run, "norm-growth").holds

        def test_broken_bound(assert_bound):
            assert_bound([1, 4], 3)

        def test_broken_rate(assert_rate, run):
            norms = np.minimum(run.recorded["weight_norm"], 0.5)
            recorded = run.recorded | {"weight_norm": norms}
            assert_rate(dataclasses.replace(run, recorded=recorded), "norm-growth")

        def test_unclaimed(assert_rate, run):
            assert_rate(run, "gd-path-lower")

        def test_unproved(assert_proved):
            assert_proved("paper-joint")
        """
            }
        )
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-n", "2", "--dist", "loadfile")
    result.assert_outcomes(passed=2, failed=8)
    result.stdout.fnmatch_lines(["attnrates: *"])
    text = result.stdout.str()
    for said in (
        "E       AssertionError: the bound is violated\n",
        "E         first at step 1: observed 4 > bound 3\n",
        "E       AssertionError: norm-growth is violated: The weight norm grows at least like the path",
        "E         ‖W_mm‖ = 1.8",
        "E       AssertionError: gd-path-lower claims nothing on this run:\n",
        "E         gd fails: ",
        "E       AssertionError: paper-joint is claimed: it has no proof\n",
    ):
        assert text.count(said) == 2, said
    assert text.count("E         observed o, bound -, both X\n") == 4
    for name in ("first", "second"):
        assert f"test_{name}.py:" in text
    assert "testing.py" not in text
    assert "INTERNALERROR" not in text
