"""What symbols stand for: every one that a page prints, each in words, no two of a page printed alike."""

import dataclasses
import re
from collections import Counter

import pytest

import theory
from theory import meanings
from theory import notation as nt
from theory.latex import PACKAGE, Notation, latex
from theory.legend import _KINDS, legend, notation_of, own_notation
from theory.plain import from_latex, plain, prose
from theory.proof.terms import (
    below,
    exp,
    finite,
    forall,
    free,
    index,
    inner,
    norm,
    real,
    symbol,
    total,
    vector,
)
from theory.steps import steps

PAGES = theory.theorems()
NAMES = ["M", "R", "e", "e0", "eta", "lam", "r_max", "z", "t0", "alpha_star", "x'", "W"]


@pytest.mark.parametrize("key", PAGES)
def test_every_symbol_of_a_page_has_a_line(key: str) -> None:
    page = PAGES[key]
    entries = legend(page)
    assert len({entry.latex for entry in entries}) == len(entries), "two symbols are printed alike"
    said = {entry.name for entry in entries}
    formulas = [*page.hypotheses.values(), *([] if page.claim is None else [page.claim])]
    assert {name for formula in formulas for _, name in free(formula)} <= said
    for entry in entries:
        assert entry.meaning
        assert "\\" not in prose(entry.meaning)
        assert from_latex(entry.latex)


@pytest.mark.parametrize("key", [k for k, page in PAGES.items() if page.kind in ("theorem", "corollary")])
def test_the_symbols_of_a_theorem_are_told_in_words(key: str) -> None:
    told = {entry.name: entry.meaning for entry in legend(PAGES[key])}
    assert not {name for name, meaning in told.items() if meaning in _KINDS.values()}


def test_no_meaning_is_of_a_symbol_that_no_page_has() -> None:
    used = {
        (kind, name)
        for page in PAGES.values()
        for formula in [*page.hypotheses.values(), *([] if page.claim is None else [page.claim])]
        for kind, name in free(formula)
    }
    assert set(meanings.LAYER) <= used
    for pattern, words in meanings._PAGES:
        of_these = [page for key, page in PAGES.items() if re.fullmatch(pattern, key)]
        assert of_these, f"no page is called {pattern}"
        assert words


def test_what_a_definition_speaks_of_has_a_line() -> None:
    """A letter for a whole term, as Lambda, is defined by others, and each of these has a line."""
    with_lam = 0
    for page in PAGES.values():
        told = {from_latex(entry.latex): prose(entry.meaning) for entry in legend(page)}
        if "Λ e^Λ = (N-1) κ T²/e" in told.get("Λ", ""):
            with_lam += 1
            assert {"N", "κ", "T", "a_max", "a_min"} <= set(told)
        if "γ_*" in told:
            assert {"W_mm", "‖x‖"} <= set(told)
        if "separator path" in told.get("S", ""):
            assert {"e", "C", "(-∇L)"} <= set(told)
    assert with_lam > 10


def test_the_symbols_of_a_proof_are_told_apart() -> None:
    page = PAGES["norm-growth"]
    stated = legend(page)
    whole = legend(page, [step.conclusion for step in steps(page)])
    assert whole[: len(stated)] == stated
    assert [entry.latex for entry in whole[len(stated) :]] == ["t", "S"]


def test_pages_without_full_support_name_the_support() -> None:
    page = PAGES["support-drift"]
    notation = notation_of(page)
    text = plain(page.hypotheses["gradient"], notation)
    assert text == "D_t = ∑_i ∑_(τ∈J_i) c_(t,i,τ) A_(i,τ) for all t∈ℕ"
    assert plain(PAGES["norm-growth"].hypotheses["gradient"]).startswith("(-∇L)_t = ∑_i ∑_(τ ≠ o_i)")


def test_a_statements_words_agree_with_its_claim() -> None:
    for page in PAGES.values():
        text = prose(page.statement)
        claim = "" if page.claim is None else plain(page.claim, notation_of(page))
        assert not (r"τ ≠ o_i" in text and "τ∈J_i" in claim)
        words = text.replace(claim, "")
        assert not re.search(r"g_\*|e₀|-λ| D ", words), words
    said = prose(PAGES["alignment-time"].statement)
    assert "S_(t₀) ≥ (R + γ_*)‖W₀‖/(γ_*² - ε₀)" in said
    assert prose(PAGES["support-drift"].statement).startswith("With τ∈J_i for the tokens of the support")


def test_membership_names_the_set() -> None:
    page = PAGES["norm-reach"]
    assert plain(nt.SOME_SEQUENCE) == "i₁∈[n]"
    assert plain(nt.SOME_TOKEN) == "τ₁ ≠ o_(i₁)"
    assert plain(PAGES["logistic-alignment"].hypotheses["there is an example"]) == "k₁∈K"
    assert page.kind


def test_an_authors_names_are_printed_as_he_wrote_them() -> None:
    k, t, examples = index("k"), index("t"), finite("K")
    claim = forall(t, nt.NATURALS, forall(k, examples, symbol("e0") <= inner(vector("z", k), vector("M"))))
    page = dataclasses.replace(
        PAGES["path-lower"], key="mine", statement="{claim}", hypotheses={}, claim=claim, rate=None
    )
    assert plain(claim, notation_of(page)) == "e₀ ≤ ⟨z_k,M⟩ for all t∈ℕ, k∈K"
    assert plain(claim, own_notation(["e0", "e", "z", "M"])).startswith("e0 ≤ ")  # e at 0 is another thing
    assert plain(claim).startswith("ε₀ ≤ ⟨z_k,W_mm⟩")
    entries = {e.name: e.meaning for e in legend(page, words={"M": "the best $W$"})}
    assert (entries["M"], entries["z"]) == ("the best $W$", _KINDS["vsym"])


def test_an_authors_sum_is_no_path_length() -> None:
    s, t = index("s"), index("t")
    steps_before = total(s, below(t), symbol("e", s))
    assert plain(steps_before) == "E_t"
    assert plain(steps_before, own_notation(["e"])) == "∑_(s < t) e_s"
    assert plain(1 / norm(vector("M")), own_notation(["M"])) == "1/‖M‖"


def test_a_name_is_told_from_an_index_and_from_the_base_of_exponentials() -> None:
    t = index("t")
    claim = symbol("a_t") + exp(real(2)) <= symbol("a", t) + symbol("e") ** 2
    assert plain(claim, own_notation(["a_t", "a", "e", "t"])) == '"a_t"+exp(2) ≤ a_t+e²'
    assert plain(exp(real(2)) <= symbol("a_t"), own_notation(["a_t"])) == "e² ≤ a_t"


def test_no_two_names_of_an_author_look_alike() -> None:
    odd = [
        "eta_",
        "t_0",
        "η",
        "a%b",
        "a b",
        "\\alpha",
        "x$y",
        "{",
        "a[25]b",
        "[n]",
        "γ_*",
        "lambda",
        "а",
        "a",
    ]
    names = [*NAMES, *odd]
    printed = own_notation(names).letters
    assert set(printed) == set(names)
    assert max(Counter(printed.values()).values()) == 1
    texts = [from_latex(text) for text in printed.values()]
    assert max(Counter(texts).values()) == 1
    assert own_notation(["eta", "r_max", "N", "lam"]).letters == {
        "N": "N", "eta": r"\eta", "lam": r"\mathrm{lam}", "r_max": r"{r_{\mathrm{max}}}",
    }  # fmt: skip


def test_the_packages_notation_is_no_authors() -> None:
    assert latex(nt.margin, PACKAGE) == r"\gamma_\ast"
    assert "gamma" not in latex(nt.margin, Notation())
