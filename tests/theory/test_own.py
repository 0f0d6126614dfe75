"""Theories of one's own: what is no theory is refused by name; observations tell what they do not know."""

import numpy as np
import pytest

import theory
from numerics.errors import InputError
from theory import Check, Observation
from theory.notation import R, path_length, separator_path, t
from theory.own import load

PAGE = """import dataclasses
import theory
MINE = dataclasses.replace(theory.theorems()['path-lower'], key='mine')
"""


def write(tmp_path, text, name="own.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = = 1\n", "does not run, line 1: invalid syntax"),
        ("\n1/0\n", "does not run, line 2: ZeroDivisionError"),
        ("import no_such_module\n", "line 1: ModuleNotFoundError"),
        ("", "defines no Theorem"),
        ("import theory\nX = theory.theorems()['path-lower']\n", "defines no Theorem"),
        (PAGE.replace("'mine'", "'path-upper'"), "path-upper is the key of a page of this package"),
        (PAGE + "TWO = dataclasses.replace(MINE, title='other')\n", "two pages are called mine"),
    ],
)
def test_a_file_that_is_no_theory_is_refused(tmp_path, text, says):
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, text))
    assert says in str(caught.value)
    assert "own.py" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_python_file_is_refused(tmp_path):
    for path in (tmp_path / "none.py", tmp_path, write(tmp_path, "", "data.csv")):
        with pytest.raises(InputError, match=path.name):
            load(path)


@pytest.mark.parametrize(
    ("reader", "says"),
    [
        ("", "defines no function observe"),
        ("def observe(path):\n    return 1\n", "observe gives a int, not an Observation"),
        ("def observe(path):\n    raise OSError('gone')\n", "fails, line 5: OSError: gone"),
    ],
)
def test_a_reader_that_fails_is_named(tmp_path, reader, says):
    own = load(write(tmp_path, PAGE + reader))
    assert [page.key for page in own.pages] == ["mine"]
    with pytest.raises(InputError, match=r"own\.py") as caught:
        own.observe(tmp_path)
    assert says in str(caught.value)


def test_the_commands_end_in_2_on_bad_files(attnrates, tmp_path):
    bad = write(tmp_path, "1/0\n")
    for arguments in (
        ["verify", "--theory", bad],
        ["check", tmp_path, "--theory", bad],
        ["check", tmp_path / "none", "--theory", write(tmp_path, PAGE, "good.py")],
        ["check", tmp_path, "--certified", "--theory", write(tmp_path, PAGE, "good.py")],
        ["check", tmp_path, "--theory", write(tmp_path, PAGE.replace("key=", "rate=None, key="), "still.py")],
    ):
        result = attnrates(*arguments)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_verify_json_and_latex_of_an_own_file(attnrates, tmp_path):
    own = write(tmp_path, PAGE)
    result = attnrates("verify", "--theory", own, "--latex")
    assert result.code == 0
    assert r"\newcommand{\ratesMineStatus}{proved}" in result.out
    assert "path-upper" not in attnrates("verify", "--theory", own, "--json").out


STEPS = np.array([1, 2, 5])


def observed(checks, path=(0.1, 0.2, 0.5)):
    values = {path_length(t): np.array(path), separator_path(t): STEPS / 10, R: 2.0}
    return Observation(steps=STEPS, values=values, checks=checks)


def test_an_observation_is_held_against_a_page():
    page = theory.theorems()["path-lower"]
    verdict = theory.check(observed(dict.fromkeys(page.hypotheses, True)), page)
    assert verdict.holds
    assert verdict.worst_ratio == pytest.approx(0.5)
    np.testing.assert_array_equal(verdict.steps, STEPS)
    by_formula = dict.fromkeys(page.hypotheses.values(), Check("holds", "seen"))
    assert theory.check(observed(by_formula), "path-lower").holds
    broken = theory.check(observed(by_formula, path=(0.1, 0.9, 0.5)), "path-lower")
    assert (broken.holds, broken.worst_step) == (False, 2)


def test_what_an_observation_does_not_say_is_unknown():
    page = theory.theorems()["path-lower"]
    name, *others = page.hypotheses
    verdict = theory.check(observed(dict.fromkeys(others, True)), page)
    assert (verdict.holds, verdict.hypotheses[name].state) == (None, "unknown")
    verdict = theory.check(observed(dict.fromkeys(others, True) | {name: False}), page)
    assert verdict.hypotheses[name].state == "fails"
    checks = dict.fromkeys(page.hypotheses, True)
    silent = Observation(steps=STEPS, values={R: 1.0}, checks=checks)
    verdict = theory.check(silent, page)
    assert (verdict.holds, "recorded" in verdict.hypotheses) == (None, True)


@pytest.mark.parametrize(
    ("steps", "value", "says"),
    [([], 1.0, "at least one"), ([2, 1], 1.0, "increase"), ([1, 2], [1.0, 2.0, 3.0], "shape")],
)
def test_an_ill_formed_observation_is_refused(steps, value, says):
    with pytest.raises(InputError, match=says):
        Observation(steps=np.array(steps, dtype=int), values={R: np.asarray(value)}, checks={})
