"""The macros for a paper's preamble: names LaTeX takes, and a document that uses every one compiles."""

import re
import shutil
import subprocess

import pytest

from numerics.errors import InputError
from theory import catalog
from theory import notation as nt
from theory.macros import CONSTANTS, macros
from theory.page import Theorem
from theory.proof.terms import symbol

pages = catalog.theorems()
text = macros(dict.fromkeys(pages, "proved"))
names = re.findall(r"^\\newcommand\{\\([^}]*)\}", text, flags=re.MULTILINE)


def test_every_page_and_constant_has_its_macros() -> None:
    assert all(re.fullmatch(r"rates[A-Za-z]+", name) for name in names)
    assert len(names) == len(set(names)) == text.count("\\newcommand")
    claims = [page for page in pages.values() if page.claim is not None]
    assert sum(name.endswith("Statement") for name in names) == len(claims)
    assert sum(name.endswith("Hypotheses") for name in names) == sum(
        bool(p.hypotheses) for p in pages.values()
    )
    assert sum(name.endswith("Bound") for name in names) >= sum(p.rate is not None for p in pages.values())
    assert {f"ratesConstant{name}" for name in CONSTANTS} <= set(names)


def test_a_constant_is_spelt_out() -> None:
    assert r"\newcommand{\ratesConstantAlignment}{\Lambda = \operatorname{W}\left(" in text
    assert r"\newcommand{\ratesConstantMargin}{\gamma_\ast = \frac{1}{" in text
    assert r"\newcommand{\ratesConstantPathLength}{E_{t} = \sum_{s<t} e_{s}}" in text


def own(key: str, statement: str = "{claim}") -> Theorem:
    claim = symbol("x") <= nt.N
    return Theorem(
        key=key,
        title="t",
        kind="lemma",
        reference="r",
        statement=statement,
        hypotheses={},
        claim=claim,
        prove=None,
    )


def test_a_statement_is_escaped_outside_its_formulas() -> None:
    page = own("own-1", "100% of a_b & $c_d$: {claim}.")
    made = macros({"own-1": "claimed"}, {"own-1": page})
    assert r"{\ratesOwnOneStatement}{100\% of a\_b \& $c_d$: $x \le N$.}" in made
    assert "Constant" not in made


@pytest.mark.parametrize("keys", [("a-1", "A-1"), ("a-1", "a.1"), ("growth", "growth-status")])
def test_two_keys_of_one_macro_are_refused(keys) -> None:
    pages = {key: own(key) for key in keys}
    with pytest.raises(InputError, match=f"the keys {keys[0]} and {keys[1]} both give"):
        macros(dict.fromkeys(keys, "claimed"), pages)
    for key in keys:
        assert "Status" in macros({key: "claimed"}, pages)


@pytest.mark.parametrize(
    "formula",
    [
        r"$}\renewcommand{\ratesMineStatus}{proved}\ratesX{$",
        r"$\frac{1}{2$",
        r"$1}$",
        r"$1 % 2$",
        r"$1\$",
        "a lone $",
        "$$1$$",
    ],
)
def test_a_formula_that_runs_on_is_refused(formula) -> None:
    with pytest.raises(InputError, match="mine: the statement has a formula that does not end"):
        macros({"mine": "claimed"}, {"mine": own("mine", "{claim} " + formula)})
    assert r"$\{5\%\}$" in macros({"mine": "claimed"}, {"mine": own("mine", r"{claim} $\{5\%\}$")})


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex is installed")
def test_a_document_with_every_macro_compiles(tmp_path) -> None:
    (tmp_path / "macros.tex").write_text(text, encoding="utf-8")
    lines = [r"\documentclass{article}\usepackage{amsmath,amssymb}\input{macros}\begin{document}"]
    for name in names:
        prose = name.endswith(("Status", "Statement"))
        lines.append(rf"\{name}\par" if prose else rf"\[ \{name} \]")
    lines.append(r"\end{document}")
    (tmp_path / "paper.tex").write_text("\n".join(lines), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 100_000
