"""Theories of one's own: what is no theory is refused by name; observations tell what they do not know."""

import dataclasses

import numpy as np
import pytest
from jaxtyping import TypeCheckError

import theory
from numerics.errors import InputError
from theory import Check, Observation
from theory.notation import R, path_length, separator_path, t
from theory.own import load
from theory.page import ProofError
from theory.proof.terms import number, real
from theory.verify import instead, known_as, report_on

REFUSED = (InputError, TypeCheckError)  # in the tests annotations are checked as well, and first
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
        (PAGE + "SYMBOLS = ['x']\n", "SYMBOLS must be a dict of names and words"),
        (PAGE + "SYMBOLS = {'x': 3}\n", "SYMBOLS must be a dict of names and words"),
        (PAGE + "SYMBOLS = {'x': 'a\\x1b[2Jb'}\n", "SYMBOLS must be a dict of names and words"),
        (PAGE + "TWO = dataclasses.replace(MINE, title='other')\n", "two pages are called mine"),
    ],
)
def test_a_file_that_is_no_theory_is_refused(tmp_path, text, says):
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, text))
    assert says in str(caught.value)
    assert "own.py" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_words_on_symbols_change_what_is_read_and_nothing_that_is_checked(tmp_path):
    plain = load(write(tmp_path, PAGE))
    worded = load(
        write(tmp_path, PAGE + "SYMBOLS = {'R': 'the radius $\\\\rho$ of \\\\nothing'}\n", "worded.py")
    )
    assert (plain.words, worded.words) == ({}, {"R": "the radius $\\rho$ of \\nothing"})
    one, two = (report_on(each.pages[0], each.words) for each in (plain, worded))
    assert ("R", "the radius ρ of \\nothing") in two.symbols
    assert [symbol for symbol, _ in one.symbols] == [symbol for symbol, _ in two.symbols]
    same = {"symbols": (), "seconds": 0.0}
    assert dataclasses.replace(one, **same) == dataclasses.replace(two, **same)


def test_the_words_of_an_own_page_do_not_vouch_for_it(attnrates, tmp_path):
    """Only a page of this package bears a name of the project, or has pages proved in its place."""
    ours = [page for page in theory.theorems().values() if known_as(page) or instead(page)]
    assert any(map(known_as, ours))
    assert any(map(instead, ours))
    for page in ours:
        own = dataclasses.replace(page, key=f"mine-{page.key}")
        assert (known_as(own), instead(own)) == (None, ())
    own = write(tmp_path, PAGE.replace("'mine'", "'mine', reference='our Theorem A(iii)'"))
    assert attnrates("verify", "mine", "--theory", own).out.startswith("mine: ")
    assert attnrates("verify", "Theorem A(iii)", "--theory", own).code == 2


def test_words_nested_too_deep_are_printed_as_they_are(attnrates, tmp_path):
    deep = "'$' + 3000 * '{' + '$'"
    text = PAGE.replace("'mine'", f"'mine', statement='{{claim}}' + {deep}") + f"SYMBOLS = {{'R': {deep}}}\n"
    for key in ((), ("mine",)):
        result = attnrates("verify", *key, "--theory", write(tmp_path, text), "--json")
        assert (result.code, result.err.count("Error")) == (0, 0)
        assert 3000 * "{" in result.out


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


SUBCLASS = """import dataclasses
import theory
LOWER, UPPER = (theory.theorems()[key] for key in ('path-lower', 'path-upper'))
class Boastful(theory.Theorem):
    status = 'proved'
    def proved(self):
        return LOWER.proved()
    def is_proved(self):
        return True
parts = {f.name: getattr(UPPER, f.name) for f in dataclasses.fields(UPPER)}
MINE = Boastful(**parts | {'key': 'mine', 'prove': LOWER.prove})
"""


def test_a_page_that_answers_for_itself_is_refused(attnrates, tmp_path):
    result = attnrates("verify", "--theory", write(tmp_path, SUBCLASS))
    assert (result.code, result.out) == (2, "")
    assert "mine is a Boastful, not a Theorem itself" in result.err
    page = load(write(tmp_path, PAGE)).pages[0]
    parts = {f.name: getattr(page, f.name) for f in dataclasses.fields(page)}

    class Boastful(theory.Theorem):
        pass

    with pytest.raises(ProofError, match="not a Theorem itself"):
        Boastful(**parts).proved()


@pytest.mark.parametrize(
    "text",
    [
        """from theory import page
FALSE = dataclasses.replace(MINE, key='false', claim=theory.theorems()['path-upper'].claim, rate=None)
page._DONE[FALSE] = MINE.proved()
""",
        "import sys\nFALSE = dataclasses.replace(MINE, key='false', prove=lambda: sys.exit(0))\n",
        "FALSE = dataclasses.replace(MINE, key='false', prove=theory.theorems()['path-upper'].proved)\n",
        "FALSE = dataclasses.replace(MINE, key='false', rate=theory.theorems()['path-upper'].rate)\n",
    ],
    ids=["stored", "exit", "another page's claim", "another page's rate"],
)
def test_what_is_not_proved_fails(attnrates, tmp_path, text):
    result = attnrates("verify", "--theory", write(tmp_path, PAGE + text), "--latex")
    assert result.code == 1
    assert r"\ratesMineStatus}{proved}" in result.out
    assert r"\ratesFalseStatus}{failed}" in result.out


class Agreeable(tuple):
    """Claims to equal everything."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(theory.theorems()["path-lower"].claim)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"claim": Agreeable(real(1) < 0)}, "claim"),
        ({"claim": None, "statement": "{claim}", "hypotheses": {"H": Agreeable(real(1) < 0)}}, "hypotheses"),
        ({"statement": "Whatever you like."}, "{claim}"),
        ({"title": 3}, "title"),
        ({"key": "../elsewhere"}, "key"),
        ({"key": ""}, "key"),
        ({"kind": "theorem, proved", "prove": None}, "kind"),
        ({"given": ("nonexistent",)}, "given names 'nonexistent'"),
        ({"given": ["nonexistent"]}, "given"),
        ({"title": "a\x1b[2Kb"}, "title"),
        ({"reference": "our own\rtheorem"}, "reference"),
        ({"statement": "If so:\n{claim}"}, "statement"),
        ({"statement": "\u202e{claim}"}, "statement"),
        ({"key": "mine\n"}, "key"),
        ({"claim": None, "statement": "s", "hypotheses": {"H\x1b[8m": real(1) < 0}}, "hypothesis's name"),
        ({"claim": None, "statement": "s", "hypotheses": {" ": real(1) < 0}}, "hypothesis's name"),
    ],
)
def test_an_ill_formed_page_is_refused(change, names):
    with pytest.raises(REFUSED) as caught:
        dataclasses.replace(theory.theorems()["path-lower"], **change)
    assert names in str(caught.value)


@pytest.mark.parametrize(
    "change", [{"bound": 1.0}, {"sense": "UPPER"}, {"from_step": -1}, {"from_step": float("nan")}]
)
def test_an_ill_formed_rate_is_refused(change):
    with pytest.raises(REFUSED, match=next(iter(change))):
        dataclasses.replace(theory.theorems()["path-lower"].rate, **change)


def test_hypotheses_do_not_change_once_they_are_stated():
    hypotheses = dict(theory.theorems()["path-lower"].hypotheses)
    page = dataclasses.replace(theory.theorems()["path-lower"], key="mine", hypotheses=hypotheses)
    page.proved()
    hypotheses.clear()
    assert page.hypotheses == theory.theorems()["path-lower"].hypotheses
    with pytest.raises(TypeError):
        page.hypotheses["E"] = page.claim


def test_macros_of_own_keys_are_letters(attnrates, tmp_path):
    own = write(tmp_path, PAGE.replace("'mine'", "'my_lemma-12'"))
    assert (
        r"\newcommand{\ratesMyLemmaOneTwoStatus}{proved}"
        in attnrates("verify", "--theory", own, "--latex").out
    )


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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"steps": np.array([1.0, np.nan, 3.0])}, "increase"),
        ({"steps": np.array(["a", "b", "c"])}, "steps: not numbers"),
        ({"values": {R: "long"}}, "not numbers"),
        ({"values": {R: 1 + 2j}}, "not numbers"),
        ({"values": {R: 10**400}}, "not numbers"),
        ({"values": {"R": 1.0}}, "no term"),
        ({"values": {number(2): 5.0}}, "no term"),
        ({"checks": {"E": "fails"}}, "must be a Check or a bool"),
    ],
)
def test_what_is_no_observation_is_refused(change, says):
    with pytest.raises(REFUSED) as caught:
        Observation(**{"steps": STEPS, "values": {R: 1.0}, "checks": {}} | change)
    if isinstance(caught.value, InputError):
        assert says in str(caught.value)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_no_real_number_is_told_from_the_first_step_on(wrong):
    page = theory.theorems()["path-lower"]
    checks = dict.fromkeys(page.hypotheses, True)
    with pytest.raises(InputError, match="no real number at step 2"):
        theory.check(observed(checks, path=(0.1, wrong, 0.5)), page)
    late = dataclasses.replace(page, key="late", rate=dataclasses.replace(page.rate, from_step=5))
    assert theory.check(observed(checks, path=(wrong, wrong, 0.5)), late).holds


def test_the_bound_is_computed_and_is_that_of_the_claim():
    page = theory.theorems()["path-lower"]
    checks = dict.fromkeys(page.hypotheses, True)
    seen = observed(checks)
    named = dataclasses.replace(seen, values=dict(seen.values) | {page.rate.bound: 0.0})
    with pytest.raises(InputError, match="observe those, not the bound"):
        theory.check(named, page)
    other = dataclasses.replace(page, key="other", rate=theory.theorems()["path-upper"].rate)
    with pytest.raises(InputError, match="not the page's claim"):
        theory.check(seen, other)


def test_a_name_of_two_things_is_refused(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from theory.page import Theorem\n"
        "from theory.proof.terms import norm, symbol, vector\n"
        "page = Theorem(key='mine', title='t', kind='claim', reference='r', statement='{claim}',\n"
        "               hypotheses={}, claim=norm(vector('x')) <= symbol('x'), prove=None)\n"
    )
    with pytest.raises(InputError, match="mine: x is the name of two things"):
        load(file)
