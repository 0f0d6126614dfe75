"""Corruptions that must fail verification, and the machinery of ``make mutate`` itself."""

import ast
import copy
import dataclasses
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.theory import dependencies as deps
from tests.theory import mutate, mutate_source
from tests.theory.mutate import Store, _Progress, _table, main, report
from tests.theory.mutate_claims import PageOutcome, claim_mutants, judge_page, same_statement, still_proved
from tests.theory.mutate_source import (
    Outcome,
    SourceMutant,
    basis,
    changed_code,
    changed_node,
    downstream,
    modules,
    remembered_theory,
    source_mutants,
    try_source,
)
from tests.theory.mutate_strength import asks_more
from theory import catalog
from theory.notation import NORM_BOUND, STATIC, A, R, each, i, tau
from theory.page import ProofError, says_what_it_proves, without
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, eq, exp, free, log, norm, real, substitute, symbol

PAGES = {key: page for key, page in catalog.theorems().items() if page.claim is not None}
x, y = symbol("x"), symbol("y")


def claims(key, *words):
    """The page's claim mutants whose description holds all the words."""
    return [m for m in claim_mutants(PAGES[key].claim) if all(w in m.what for w in words)]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("alignment", ("pow(T, 2)", "power 1")),
        ("alignment", ("lambertw -> log",)),
        ("global-direction", ("lambertw -> log",)),
        ("global-direction", ("1/2 -> ",)),
        ("global-direction-apriori", ("lambertw -> log",)),
    ],
)
def test_named_corruptions_of_claims_are_refused(key, words):
    found = claims(key, *words)
    assert found
    for mutant in found:
        with pytest.raises((ProofError, KernelError)):
            dataclasses.replace(PAGES[key], claim=mutant.claim).proved()


WITH_R = [key for key, page in PAGES.items() if ("sym", "R") in free(page.claim)]


@pytest.mark.parametrize("key", WITH_R)
def test_half_of_r_in_a_claim_is_refused(key):
    halved = substitute(PAGES[key].claim, reals={"R": ((), R / 2)})
    assert not still_proved(PAGES[key], halved)


def test_an_eighth_in_the_direction_theorem_is_refused():
    """The claim written with 1/8 in place of 1/2, by a page that tries its own proof on it."""
    page = PAGES["global-direction"]
    halves = claims("global-direction", "1/2 -> 1/4")
    assert halves
    eighths = [m for h in halves for m in claim_mutants(h.claim) if m.what == "1/4 -> 1/8"]
    assert eighths
    for mutant in eighths:
        assert not still_proved(page, mutant.claim)
        with pytest.raises((ProofError, KernelError)):
            dataclasses.replace(page, claim=mutant.claim).proved()


def source(module, *words):
    return [m for m in source_mutants(f"theory.{module}") if all(w in str(m) for w in words)]


DEAD = ("killed", "not loaded")


@pytest.fixture(scope="module", autouse=True)
def proved():
    """The proofs of the theory, made once for all tests here."""
    with remembered_theory():
        yield


@pytest.mark.parametrize("module", ["theorems.norm_growth", "theorems.sparsification"])
def test_half_of_r_in_a_statement_fails(module):
    """Each R of the source halved: its pages fail, unless it was a multiplier that a proof scales anyway."""
    found = source(module, "R -> half")
    assert found
    fates = [try_source(m).fate for m in found]
    assert set(fates) <= {*DEAD, "equivalent"}
    assert sum(f in DEAD for f in fates) >= len(found) / 2


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("lemmas.alignment", ("** ->",)),
        ("theorems.direction", ("lambertw",)),
        ("theorems.norm_growth", ("/ -> * in margin * path_length(t) / R",)),
        ("lemmas.separator_correlation", ("strict <-> weak in margin * L.C",)),
    ],
)
def test_corrupted_sources_fail(module, words):
    found = source(module, *words)[:4]
    assert found
    for mutant in found:
        assert try_source(mutant).fate in DEAD, str(mutant)


def test_a_corruption_that_changes_nothing_proves():
    """A factor two on a multiplier that the search scales anyway: the control of the tests above."""
    fates = [try_source(m).fate for m in source("lemmas.separator_correlation", "R -> half")]
    assert "equivalent" in fates


@pytest.mark.parametrize(("old", "new", "more"), [(3, 2, True), (2, 3, False), (2, 2, False)])
def test_a_proved_change_that_asks_for_more_is_seen(old, new, more):
    page = PAGES["gradient-upper"]
    pages = [
        dataclasses.replace(page, claim=norm(STATIC.descent) <= factor * R * STATIC.C)
        for factor in (old, new)
    ]
    assert asks_more(*pages) is more


def test_a_change_that_only_assumes_more_asks_for_no_more():
    page = PAGES["gradient-upper"]
    name, bound = next((k, h) for k, h in page.hypotheses.items() if h == NORM_BOUND)
    strict = each(norm(A(i, tau)) < R)
    assert bound == each(norm(A(i, tau)) <= R)
    stronger = dataclasses.replace(page, hypotheses={**page.hypotheses, name: strict})
    assert not asks_more(page, stronger)
    assert asks_more(stronger, dataclasses.replace(page, hypotheses=without(page.hypotheses, name)))


def test_a_changed_page_that_verifies_and_asks_for_more_is_a_survivor(monkeypatch):
    """All proofs pass (here: because nothing is checked), and the statement with R/2 asks for more."""
    monkeypatch.setattr(mutate_source, "failure", lambda page: None)
    fates = {m.what: try_source(m) for m in source("lemmas.separator_correlation", "R -> half")}
    survivors = [o for o in fates.values() if o.fate == "survivor"]
    assert [o.detail for o in survivors if "gradient-upper" in o.detail]


@pytest.mark.parametrize("seed", range(2))
def test_verification_of_a_changed_copy_fails_too(seed, tmp_path):
    """The corrupted file on disk, a process of its own, all pages proved from scratch: the same verdict."""
    print("seed", seed)
    module = ["theory.theorems.norm_growth", "theory.lemmas.separator_correlation"][seed]
    chosen = source_mutants(module)[seed :: max(1, len(source_mutants(module)) // 5)][:5]
    shutil.copytree(deps.ROOT, tmp_path / "theory", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(deps.ROOT.parent / "numerics", tmp_path / "numerics")
    file = tmp_path / (module.replace(".", "/") + ".py")
    script = (
        "import importlib, sys\nfrom theory.page import Theorem\n"
        f"pages = vars(importlib.import_module({module!r})).values()\n"
        "sys.exit(any(p.status == 'failed' for p in pages if isinstance(p, Theorem)))"
    )
    for mutant in chosen:
        here = [*copy.deepcopy(deps.tree(module)).body]
        here[mutant.statement] = changed_node(mutant)
        file.write_text(ast.unparse(ast.Module(here, [])))
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        outcome = try_source(mutant)
        if outcome.detail in {p.key for p in PAGES.values() if p.prove.__module__ == module}:
            assert done.returncode == 1, (str(mutant), outcome)
        elif outcome.fate == "equivalent":
            assert done.returncode == 0, (str(mutant), outcome, done.stderr)


def test_only_what_depends_on_a_change_is_proved_anew():
    (mutant, *_) = source("theorems.norm_growth", "/ -> * in margin * path_length(t) / R")
    assert "norm-growth" in downstream(mutant.changed)
    assert "gradient-upper" not in downstream(mutant.changed)
    (path,) = deps.binders("theory.notation")["path_length"]
    assert {"norm-growth", "ngd-norm-upper"} <= set(downstream(path))
    assert "separator-correlation" not in downstream(path)


def test_digests_see_code_and_no_prose():
    def digest(text):
        return deps.code_digest(ast.parse(text))

    assert digest('def f():\n    "one"\n    return 1') == digest(
        'def f():\n\n    "two"  # three\n    return 1'
    )
    assert digest("def f():\n    return 1") != digest("def f():\n    return 2")
    assert digest("x = 'a'") != digest("x = 'b'")


def test_a_page_rests_on_the_kernel_and_on_the_pages_that_it_quotes(monkeypatch):
    before = deps.basis("theory.theorems.norm_growth", "NORM_GROWTH")
    for module, name in (
        ("theory.proof.kernel", "combine"),
        ("theory.lemmas.separator_correlation", "UPPER"),
        ("theory.notation", "path_length"),
    ):
        found = deps.binders(module)[name]
        assert found
        other = dataclasses.replace(found[0], digest="changed")
        changed = {**deps.binders(module), name: (other,)}
        monkeypatch.setattr(
            deps, "binders", lambda m, real=deps.binders, at=module, new=changed: new if m == at else real(m)
        )
        deps.basis.cache_clear()
        assert deps.basis("theory.theorems.norm_growth", "NORM_GROWTH") != before, name
        monkeypatch.undo()
    deps.basis.cache_clear()
    assert deps.basis("theory.theorems.norm_growth", "NORM_GROWTH") == before


@pytest.mark.parametrize("key", PAGES)
def test_every_page_says_of_runs_what_it_proves(key):
    assert says_what_it_proves(PAGES[key])


def test_a_rate_that_is_not_the_claim_is_seen():
    page = PAGES["path-lower"]
    rate = dataclasses.replace(page.rate, bound=2 * page.rate.bound)
    broken = dataclasses.replace(page, rate=rate)
    assert not says_what_it_proves(broken)
    with pytest.raises(ProofError, match="rate on runs"):
        broken.proved()


def test_mutants_of_a_formula():
    found = {m.what for m in claim_mutants(2 * x + log(y) <= exp(real(Fraction(1, 3))))}
    assert {
        "2 -> 4",
        "2 -> 3",
        "(2 * x) dropped",
        "x -> plus 1",
        "log -> lambertw",
        "exp dropped",
        "<= -> <",
    } <= found
    assert {"1/3 -> 1/6", "1/3 -> 2/3", "1/3 -> 0"} <= found
    claim = x + 0 * y <= 1
    idle = [m for m in claim_mutants(claim) if m.what.startswith("y")]
    assert idle
    assert all(same_statement(claim, m.claim) for m in idle)  # what exact algebra does not see


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (x >= 0, x / 2 >= 0, True),  # a positive factor changes no sign
        (x >= 0, -x >= 0, False),
        (x <= y, 2 * x <= 2 * y, True),
        (x <= y, 2 * x <= y, False),
        (x <= y, x < y, False),
        (eq(x, y), eq(2 * y, 2 * x), True),
        (x * (1 + y) <= 1, x + x * y <= 1, True),
    ],
)
def test_the_same_statement_is_no_strengthening(one, other, same):
    assert same_statement(one, other) is same


def test_a_scaled_sign_is_not_counted():
    """0 <= c is 0 <= c/2: no mutant of it may count as stronger."""
    found = judge_page("coefficients-nonnegative", tries=40)
    assert found.models
    claim = PAGES["coefficients-nonnegative"].claim
    halves = [m for m in claim_mutants(claim) if m.what.endswith("-> half")]
    assert halves
    assert not [m.what for m in halves if m.what in found.unrefuted and same_statement(claim, m.claim)]


def test_judging_a_page():
    found = judge_page("path-lower", tries=80)
    assert found.file == "norm_growth.py"
    assert found.models
    assert not found.accepted
    assert found.counts["refuted"] > 0.7 * (found.counts["refuted"] + found.counts.get("unrefuted", 0))


def test_modules_come_after_what_they_import():
    order = modules()
    assert order[0] == "theory.notation"
    assert order.index("theory.lemmas.separator_correlation") < order.index("theory.theorems.norm_growth")


MUTANT = SourceMutant("theory.notation", 5, 0, 7, "number", "1 -> 2")


@pytest.mark.parametrize(("fate", "clean"), [("killed", True), ("survivor", False), ("equivalent", True)])
def test_the_report_lists_survivors(fate, clean, capsys):
    counts = {"refuted": 3, "unrefuted": 1}
    pages = [PageOutcome("norm-growth", "norm_growth.py", 9, counts, ("R dropped",), ())]
    assert report(pages, [Outcome(MUTANT, fate, "kernel", "some page")]) is clean
    out = capsys.readouterr().out
    assert ("SURVIVOR notation.py:7: 1 -> 2" in out) is not clean
    assert f"{int(fate == 'killed')} of {int(fate != 'equivalent')} mutants of the source killed" in out


def test_a_log_holds_every_file_and_number_whole(capsys):
    name = "theorems/gradient_descent_global.py"
    _table("Mutants", ("file", *(f"column {k}" for k in range(7))), {name: [20_737] * 7})
    lines = capsys.readouterr().out.splitlines()
    assert [line.count("20737") for line in lines if name in line or " all " in line] == [7, 7]


def test_an_accepted_claim_mutant_is_a_survivor():
    pages = [PageOutcome("norm-growth", "norm_growth.py", 9, {"refuted": 3}, (), ("R -> half",))]
    assert report(pages, []) is False


def arguments(path, *more):
    return ["--only", "separator-correlation", "--jobs", "1", "--tries", "20", "--results", str(path), *more]


def test_an_interrupted_run_goes_on(tmp_path, capsys, monkeypatch):
    path = tmp_path / "results.jsonl"
    calls = []

    def interrupted(task, real=mutate._work):
        calls.append(task)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(task)

    monkeypatch.setattr(mutate, "_work", interrupted)
    assert main(arguments(path)) == 130
    assert len(path.read_text().splitlines()) == 5
    monkeypatch.undo()
    path.write_text(path.read_text() + '{"key": "cut sh')  # as a crash leaves it
    assert main(arguments(path)) == 0
    out = capsys.readouterr().out
    assert "5 results are known" in out
    total = len(source_mutants("theory.lemmas.separator_correlation")) + 1
    assert f"{total - 5} of {total - 5} results" in out
    assert main(arguments(path)) == 0
    assert f"{total} results are known" in capsys.readouterr().out
    # a result that rests on other code is tried again
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["basis"] = "other"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(arguments(path)) == 0
    assert f"{total - 1} results are known" in capsys.readouterr().out


def test_a_survivor_ends_in_exit_code_one(tmp_path, monkeypatch, capsys):
    def surviving(task):
        kind, what, tries = task
        return judge_page(what, tries) if kind == "page" else Outcome(what, "survivor", "", "norm-growth")

    monkeypatch.setattr(mutate, "_work", surviving)
    assert main(arguments(tmp_path / "results.jsonl")) == 1
    assert "SURVIVOR separator_correlation.py" in capsys.readouterr().out


def test_a_killed_mutant_rests_on_the_page_that_fails():
    mutant = source("theorems.norm_growth", "/ -> * in margin * path_length(t) / R")[0]
    outcome = try_source(mutant)
    assert outcome.fate == "killed"
    kept = basis(mutant, outcome.fate, outcome.detail)
    assert kept == basis(mutant, "killed", outcome.detail)
    assert kept != basis(mutant, "equivalent", "")
    assert basis(mutant, "killed", "no-such-page") is None


def test_progress_prints_lines_where_there_is_no_terminal():
    lines = []
    with _Progress(3, lines.append) as progress:
        progress.last -= 1000
        progress.step(0)
        progress.step(1)
    assert lines[0].startswith("0 of 3 results")
    assert lines[1].startswith("1 of 3 results, 0 survivors")
    assert lines[-1].startswith("2 of 3 results, 1 survivors")


def test_a_store_keeps_the_last_word(tmp_path):
    store = Store(tmp_path / "x.jsonl")
    store.put("a", "1", {"fate": "killed"})
    store.put("a", "2", {"fate": "survivor"})
    store.put("b", "1", {"fate": "killed"})
    again = Store.load(store.path)
    assert again.known["a"]["fate"] == "survivor"
    again.tidy(["a"])
    assert set(Store.load(store.path).known) == {"a"}


def test_the_change_is_in_the_code():
    mutant = source("theorems.norm_growth", "/ -> * in margin * path_length(t) / R")[0]
    assert ast.unparse(changed_node(mutant)) != ast.unparse(mutant.changed.tree)
    assert changed_code(mutant).co_code
