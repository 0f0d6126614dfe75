"""Corruptions that must fail verification, and the machinery of ``make mutate`` itself."""

import dataclasses

import pytest

from tests.theory.mutate import (
    Outcome,
    PageOutcome,
    SourceMutant,
    claim_mutants,
    first_failure,
    judge_page,
    modules,
    report,
    source_mutants,
    still_proved,
)
from theory import catalog
from theory.notation import R
from theory.page import ProofError, says_what_it_proves
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, exp, free, log, real, substitute, symbol

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


@pytest.mark.parametrize("module", ["theorems.norm_growth", "theorems.sparsification"])
def test_half_of_r_in_a_statement_fails(module):
    """Each R of the source halved: its pages fail, unless it was a multiplier that a proof scales anyway."""
    found = source(module, "R -> half")
    assert found
    failures = [first_failure(m) for m in found]
    assert sum(f is not None for f in failures) >= len(found) / 2


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
    for mutant in source(module, *words)[:4]:
        assert first_failure(mutant) is not None, str(mutant)


def test_a_corruption_that_changes_nothing_proves():
    """A factor two on a multiplier that the search scales anyway: the control of the tests above."""
    (mutant,) = (
        source("lemmas.separator_correlation", ":66:", "R -> half")
        or source("lemmas.separator_correlation", "R -> half")[-1:]
    )
    assert first_failure(mutant) is None


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
    same = [m for m in claim_mutants(x + 0 * y <= 1) if "y" in m.what]
    assert not same  # what exact algebra does not see is no mutant


def test_judging_a_page():
    found = judge_page("path-lower", tries=80)
    assert found.file == "norm_growth.py"
    assert not found.accepted
    assert found.counts["refuted"] > 0.7 * (found.counts["refuted"] + found.counts.get("unrefuted", 0))


def test_modules_come_after_what_they_import():
    order = modules()
    assert order[0] == "theory.notation"
    assert order.index("theory.lemmas.separator_correlation") < order.index("theory.theorems.norm_growth")


@pytest.mark.parametrize(("fate", "clean"), [("killed", True), ("survivor", False), ("equivalent", True)])
def test_the_report_lists_survivors(fate, clean, capsys):
    mutant = SourceMutant("theory.notation", 0, 7, "number", "1 -> 2")
    pages = [PageOutcome("norm-growth", "norm_growth.py", {"refuted": 3, "unrefuted": 1}, ("R dropped",), ())]
    assert report(pages, [Outcome(mutant, fate, "some page")]) is clean
    out = capsys.readouterr().out
    assert "not refuted by search: norm-growth: R dropped" in out
    assert ("SURVIVOR notation.py:7: 1 -> 2" in out) is not clean


def test_an_accepted_claim_mutant_is_a_survivor():
    pages = [PageOutcome("norm-growth", "norm_growth.py", {"refuted": 3, "accepted": 1}, (), ("R -> half",))]
    assert report(pages, []) is False
