"""The report: one well-formed file, nothing outside it, with every theorem, verdict and figure in it."""

import os
import re
import shutil
from html.parser import HTMLParser

import pytest
from rich.console import Console

import theory
from paper_figs import proofs, report
from paper_figs.report import markup
from paper_figs.verdicts import check_folder

pytestmark = pytest.mark.usefixtures("few_proofs")
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Checks nesting; collects text, links and the tags seen."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.text, self.tags = [], [], "", set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in {"src", "href", "srcset", "data", "action"}]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def source(made_runs, tmp_path):
    folder = tmp_path / "source"
    shutil.copytree(made_runs, folder / "runs")
    from paper_figs import style

    figure = style.new_figure(1, 1)
    style.save(figure, folder / "some-figure")
    return folder


def test_the_report_holds_everything_and_needs_nothing(attnrates, source, tmp_path, few_proofs):
    out = tmp_path / "report.html"
    result = attnrates("report", "--from", source, "--out", out)
    assert (result.code, result.out.strip()) == (0, str(out))
    assert result.err.splitlines() == [
        "checking 0 of 4",
        f"proving 0 of {len(theory.theorems())}",
        "writing the report, theorem 0 of 3",
    ]
    content = out.read_text(encoding="utf-8")
    page = Page(content)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert page.links
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in page.links)
    assert "url(" not in content
    assert "@import" not in content
    for key in few_proofs:
        assert f"{key}: {theory.theorems()[key].status}" in page.text
    for run in (source / "runs").iterdir():
        assert f"runs/{run.name}" in page.text
    assert "not claimed" in page.text
    assert "some-figure" in page.text


def test_names_are_escaped(attnrates, source, tmp_path):
    run = next((source / "runs").iterdir())
    run.rename(run.with_name("<b>&bold"))
    assert attnrates("report", "--from", source, "--out", tmp_path / "r.html").code == 0
    page = Page((tmp_path / "r.html").read_text())
    assert "b" not in page.tags
    assert "<b>&bold" in page.text


def test_joint_runs_alone_are_reported(attnrates, tmp_path):
    data = ["--data", "gaussian:n=3,T=3,d=40,noise=0.25", "--steps", "20", "--out", str(tmp_path / "runs")]
    rule = ["--joint", "--rule", "ngd", "--step", "0.3", "--exponent", "0.6667"]
    assert attnrates("train", *data, *rule).code == 0
    assert attnrates("report", "--from", tmp_path / "runs", "--out", tmp_path / "r.html").code == 0
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    (run,) = (tmp_path / "runs").iterdir()
    assert f"{run.name}: " in page.text
    assert "The folder holds none." in page.text  # figures


def test_runs_without_any_claim_are_reported(made_runs, few_proofs, tmp_path):
    rows = [row for row in check_folder(made_runs) if row.verdict.holds is None]
    assert rows
    report.write(tmp_path / "r.html", proofs.prove(Console(quiet=True)), rows, [])
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert f"{len(rows)} not claimed." in page.text
    assert "No bound is claimed on these runs." in page.text
    assert "0 rows" not in page.text


def test_what_holds_and_what_does_not_stand_apart(made_runs, few_proofs, tmp_path):
    """Under "hold instead" is nothing that does not hold; the console tells them apart by line."""
    rows = [row for row in check_folder(made_runs) if row.run.startswith("digits")]
    weaker, unmet = ({line for row in rows for line in getattr(row, name)} for name in ("weaker", "unmet"))
    assert weaker
    assert unmet
    for row in rows:
        assert row.instead == [f"instead, {x}" for x in row.weaker] + [
            f"not even at the last step: {x}" for x in row.unmet
        ]
    report.write(tmp_path / "r.html", proofs.prove(Console(quiet=True)), rows, [])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    lists = dict(re.findall(r"<p>([^<]*):</p><ul>(.*?)</ul>", text))
    held = lists["Weaker conditions than (E) that hold instead"]
    not_held = lists["Weaker conditions than (E) not found to hold, even at the last step"]
    assert all(line.startswith("from step ") for line in weaker)
    assert "not even" not in held
    assert held.count("<li>") == held.count("<li>from step ") >= 1
    assert "from step " not in not_held


def test_only_what_is_there_is_explained(few_proofs, tmp_path):
    results = proofs.prove(Console(quiet=True))
    report.write(tmp_path / "r.html", results, [], [])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    head = text[: text.index("<nav>")]
    present = {entry["status"] for entry in results["theorems"]}
    assert set(re.findall(r"<em>([a-z-]+)</em>", head)) == present == {"proved", "claimed"}
    results["theorems"][0]["status"] = "observed"
    report.write(tmp_path / "r.html", results, [], [])
    assert "<em>observed</em>" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "No axiom of the kernel." in text  # of separator-correlation
    assert "axioms none" not in text
    assert "<p>None.</p>" not in text
    assert set(report.STATUSES) == set(proofs.STYLE)


def test_a_run_of_any_name_can_be_written(attnrates, source, tmp_path):
    one, *others = sorted((source / "runs").iterdir())
    for other in others:
        shutil.rmtree(other)
    one.rename(one.with_name(os.fsdecode(b"latin-\xe9\x1b")))
    result = attnrates("report", "--from", source, "--out", tmp_path / "report.html")
    assert (result.code, result.out) == (0, f"{tmp_path / 'report.html'}\n")
    assert "<strong>runs/latin-??</strong>" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_source_without_runs_is_refused(attnrates, tmp_path, name):
    (tmp_path / "empty").mkdir()
    result = attnrates("report", "--from", tmp_path / name, "--out", tmp_path / "report.html")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "report.html").exists()


def test_a_folder_as_output_is_refused(attnrates, source, tmp_path):
    result = attnrates("report", "--from", source, "--out", tmp_path)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_formulas_are_written_short_and_mean_the_same():
    inline = markup.formula(r"\left(x_{t}<1\right)")
    assert inline.startswith("<math><mrow>")
    assert "&lt;" in inline
    assert "<mi>t</mi></msub>" in inline
    assert not re.search(r"xmlns|&#x|<mrow><mi>[^<]*</mi></mrow>", inline)
    assert 'display="block"' in markup.formula("x", block=True)
