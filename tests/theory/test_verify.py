"""The report: statuses are honest, sizes and axioms are printed, failures are seen."""

import dataclasses
import json
import subprocess
import sys

import pytest

import theory
from theory import catalog
from theory.proof.kernel import AXIOMS
from theory.proof.terms import symbol
from theory.verify import report_on


def test_everything_with_a_proof_is_proved() -> None:
    report = theory.verify()
    failed = {t.key: t.error for t in report.theorems if t.status == "failed"}
    assert not failed
    assert report.ok
    for t in report.theorems:
        assert t.status in {"proved", "proved-given", "claimed", "observed"}
        assert (t.status == "claimed") == (t.kind == "claim")
        assert set(t.axioms) <= set(AXIOMS)
        assert t.steps > 0 or t.kind == "claim"


def test_the_report_is_plain_json() -> None:
    content = json.loads(json.dumps(theory.verify().to_dict()))
    assert {"theorems", "kernel_lines", "axioms"} <= set(content)
    assert {"key", "status", "steps", "axioms"} <= set(content["theorems"][0])


def test_a_page_that_says_more_than_its_proof_fails() -> None:
    page = theory.theorems()["norm-growth"]
    broken = dataclasses.replace(page, key="broken", claim=symbol("x") < symbol("x"))
    report = report_on(broken)
    assert report.status == "failed"
    assert report.error is not None
    assert broken.status == "failed"


@pytest.mark.parametrize("name", list(theory.theorems()["norm-growth"].hypotheses))
def test_a_page_that_hides_a_hypothesis_fails(name: str) -> None:
    page = theory.theorems()["norm-growth"]
    fewer = {k: v for k, v in page.hypotheses.items() if k != name}
    assert report_on(dataclasses.replace(page, key="without-one", hypotheses=fewer)).status == "failed"


def test_a_needless_hypothesis_fails() -> None:
    page = theory.theorems()["norm-growth"]
    more = {**page.hypotheses, "idle": symbol("x") <= symbol("y")}
    assert report_on(dataclasses.replace(page, key="idle", hypotheses=more)).status == "failed"


def test_every_page_can_be_read() -> None:
    from theory.latex import latex, to_sympy

    for page in theory.theorems().values():
        assert page.title
        assert page.reference
        for formula in page.hypotheses.values():
            assert latex(formula)
        if page.claim is not None:
            assert latex(page.claim)
            assert to_sympy(page.claim) is not None
        if page.rate is not None:
            assert page.bound == page.rate.bound


def test_theory_does_not_import_torch() -> None:
    code = "import sys, theory; theory.verify(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_two_pages_of_one_key_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from theory.theorems import norm_growth

    twin = dataclasses.replace(norm_growth.NORM_GROWTH, title="another page")
    monkeypatch.setattr(norm_growth, "TWIN", twin, raising=False)
    catalog.theorems.cache_clear()
    with pytest.raises(ValueError, match="two pages"):
        catalog.theorems()
    monkeypatch.undo()
    catalog.theorems.cache_clear()
