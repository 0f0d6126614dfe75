"""The numbered proof: premises first, nothing missing, the claim last; and formulas as a line of text."""

import os
import subprocess
import sys

import pytest
from latex2mathml.converter import convert

import theory
from theory import notation as nt
from theory.latex import latex
from theory.notation import R, e, layer, t
from theory.plain import from_latex, plain
from theory.proof import kernel
from theory.proof.terms import exp, inner, norm, number, real
from theory.steps import steps

PAGES = ["norm-growth", "global-direction", "sparsification", "logistic-separator"]


@pytest.mark.parametrize("key", PAGES)
def test_a_proof_as_a_list(key):
    page = theory.theorems()[key]
    listed = steps(page)
    assert [step.number for step in listed] == list(range(1, len(listed) + 1))
    assert all(premise < step.number for step in listed for premise in step.premises)
    assert listed[-1].conclusion == page.claim
    used = {premise for step in listed for premise in step.premises}
    assert used == set(range(1, len(listed)))  # each step serves another, but the last
    for step in listed:
        if step.rule == "page":
            assert theory.theorems()[step.page].claim == step.conclusion
            assert not step.premises
        elif step.rule == "assume" and step.hypothesis:
            assert page.hypotheses[step.hypothesis] == step.conclusion


@pytest.mark.parametrize("key", PAGES)
def test_no_inference_is_left_out(key):
    page = theory.theorems()[key]
    inside = {id(node) for node in kernel.ancestry(page.proved())}
    own = [step for step in steps(page) if step.rule != "page"]
    assert 0 < len(own) <= len(inside)
    stated = {step.hypothesis for step in steps(page)} - {None}
    through = {name for name, formula in page.hypotheses.items() if formula in page.proved().hypotheses}
    assert stated <= through == set(page.hypotheses)


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (nt.margin * nt.path_length(t) / R, "(γ_* E_t)/R"),
        (norm(layer(number(0)).W), "‖W₀‖"),
        (nt.separator_path(number(0)), "S₀"),
        (nt.path_length(number(0)), "E₀"),
        (nt.separator_path(t + 1), "S_(t+1)"),
        (inner(layer(t).W, nt.M) <= real(0), "⟨W_t,W_mm⟩ ≤ 0"),
        (exp(-e(t)), "e^(-e_t)"),
        (nt.DESCENT_NONZERO, "0 < ‖(-∇L)_t‖ for all t∈ℕ"),
    ],
)
def test_text(term, text):
    assert plain(term) == text


def test_every_statement_has_a_text():
    for page in theory.theorems().values():
        for formula in [*page.hypotheses.values(), *([page.claim] if page.claim is not None else [])]:
            text = plain(formula)
            assert "\\" not in text
            assert "\n" not in text
            assert latex(formula).count("(") <= text.count("(")
            assert "<math" in convert(latex(formula))  # no letter with two subscripts, say


@pytest.mark.parametrize("text", [r"\unknown{x}", r"\frac{1", "{"])
def test_what_is_not_understood_is_no_text(text):
    with pytest.raises((ValueError, IndexError)):
        from_latex(text)


def test_a_step_has_the_same_number_in_every_process():
    """Hypotheses are a set, whose order changes with the seed of Python's hashes."""
    code = (
        "import theory; from theory.steps import steps;"
        "print([(s.rule, s.premises, s.conclusion) for key in ('logit-gaps', 'joint-never-falls')"
        " for s in steps(theory.theorems()[key])])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1
