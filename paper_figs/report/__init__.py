"""One self-contained HTML file: what is proved and how, what was checked on which runs, and the figures.

No script, no network, nothing beside the file: it is read as well in ten years, or printed.
"""

from __future__ import annotations

import base64
import platform
from collections import Counter
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from numerics.files import atomic_write
from paper_figs.figures import read_note
from paper_figs.proofs import BESIDES, COUNTS
from paper_figs.provenance import source_hash
from paper_figs.report import markup, runs, theorems
from paper_figs.wording import counted
from theory import glossary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from paper_figs.verdicts import Row

INTRODUCTION = (
    "A companion of <cite>Implicit Bias and Fast Convergence Rates for Self-attention</cite>, "
    "arXiv 2402.05738."
)
STATUSES = {
    "proved": "when every step passed the proof kernel",
    "proved-given": "when it needs, besides, facts that the page names and the kernel did not derive",
    "claimed": "when it is the paper's and tested only",
    "observed": "when it is an observation",
    "failed": "when its proof did not pass",
}
"""What the statuses of theorems mean."""


def write(
    path: Path,
    proofs: dict[str, Any],
    rows: Sequence[Row],
    pictures: Sequence[Path],
    *,
    watch: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the report: proof results (of `proofs.prove`), verdict rows, and PNG pictures inlined.

    `watch` is called with each theorem's key before its article is made.
    """
    contents = ("figures", "runs", "tightness", "theorems", "axioms", "glossary", "provenance")
    links = ", ".join(f'<a href="#{name}">{name}</a>' for name in contents)
    body = [
        "<h1>Convergence rates of self-attention: proofs and runs</h1>",
        _introduction(proofs),
        _summary(proofs, rows),
        f"<nav><p>Contents: {links}.</p></nav>",
        _section("figures", "Figures", "".join(map(_picture, pictures)) or "<p>The folder holds none.</p>"),
        _section(
            "runs",
            "Runs against theorems",
            runs.verdicts(rows, {entry["key"] for entry in proofs["theorems"]}),
        ),
        _section("tightness", "Tightness", runs.tightness_table(rows)),
        _section("theorems", "Theorems", theorems.sections(proofs, rows, watch)),
        _section("axioms", "Axioms and trusted base", trusted_base(proofs)),
        _section("glossary", "Glossary", _glossary()),
        _section("provenance", "Provenance", _provenance()),
    ]
    with atomic_write(path) as stream:
        stream.write(document("attnrates report", "\n".join(body)).encode())


def document(title: str, body: str) -> str:
    """Wrap a body into a page with this report's style."""
    style = files("paper_figs.report").joinpath("report.css").read_text(encoding="utf-8")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _section(name: str, title: str, body: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{body}</section>'


def _introduction(proofs: dict[str, Any]) -> str:
    """Say what this is, and what the statuses that theorems have here mean."""
    present = {entry["status"] for entry in proofs["theorems"]}
    words = ", ".join(f"<em>{status}</em> {text}" for status, text in STATUSES.items() if status in present)
    return f"<p>{INTRODUCTION} A theorem is {words}. Observed values are floating point.</p>"


def _summary(proofs: dict[str, Any], rows: Sequence[Row]) -> str:
    """Say in two sentences what stands and what does not."""
    statuses = Counter(entry["status"] for entry in proofs["theorems"])
    counts = ", ".join(f"{number} {markup.toned(status)}" for status, number in statuses.items())
    steps = sum(entry["own_steps"] for entry in proofs["theorems"])
    outcomes = Counter(row.outcome for row in rows)
    held = ", ".join(f"{number} {markup.toned(word)}" for word, number in outcomes.items()) or "none"
    lines, axioms = proofs["kernel_lines"], len(proofs["axioms"])
    return (
        f"<p>{counted(len(proofs['theorems']), 'page')}: {counts}; {steps} own steps of proof, on a "
        f'<a href="#axioms">trusted base</a> of {lines} lines with {axioms} axioms. '
        f"{counted(len({row.run for row in rows}), 'run')}, each against every theorem on runs: {held}.</p>"
    )


def trusted_base(proofs: dict[str, Any]) -> str:
    """What every proof rests on: the axioms and rules with their statements, the files with their sizes."""

    def named(pairs: Iterable[tuple[str, str]]) -> str:
        return "".join(f"<li><strong>{escape(name)}</strong>: {escape(text)}</li>" for name, text in pairs)

    facts = [
        (f"{entry['key']}, {name}", text)
        for entry in proofs["theorems"]
        for name, text in entry["given"].items()
    ]
    given = f"<h3>Given facts, which the kernel did not derive</h3><ul>{named(facts)}</ul>" if facts else ""
    files = [markup.row([each["file"], str(each["lines"]), each["role"]]) for each in proofs["trusted"]]
    counted = named((name, text) for name, text in COUNTS.items() if name in ("steps", "own"))
    return (
        f"<h3>Axioms of the kernel</h3><ol>{named(proofs['axioms'].items())}</ol>"
        f"{given}<h3>Inference rules of the kernel</h3><ul>{named(proofs['inference_rules'].items())}</ul>"
        f"<h3>Trusted base: {proofs['kernel_lines']} lines of code, without comments</h3>"
        f"{markup.table(('file', 'lines', 'what it is for'), files)}<p>{escape(BESIDES)}</p>"
        f"<p>Counts of a proof:</p><ul>{counted}</ul>"
    )


def _glossary() -> str:
    symbols = "".join(
        f"<dt>{markup.formula(latex)}</dt><dd>{escape(text)}</dd>" for latex, text in glossary.SYMBOLS
    )
    names = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in glossary.HYPOTHESES)
    return f"<dl>{symbols}</dl><p>Hypotheses by name:</p><dl>{names}</dl>"


def _picture(path: Path) -> str:
    """Show a picture with the caption noted beside it."""
    content = base64.b64encode(path.read_bytes()).decode()
    caption = read_note(path.with_suffix(".json")).get("caption") or path.stem
    alternative = escape(caption.replace("$", "").split(". ")[0], quote=True)
    picture = f'<img alt="{alternative}" src="data:image/png;base64,{content}">'
    return (
        f"<figure>{picture}<figcaption><strong>{escape(path.stem)}</strong>: "
        f"{markup.mathematics(caption)}</figcaption></figure>"
    )


def _provenance() -> str:
    packages = ("attnrates", "numpy", "scipy", "numba", "python-flint", "torch", "cvxpy", "sympy", "mpmath")
    facts = {
        "code": source_hash("theory", "numerics", "paper_figs")[:16],
        "Python": platform.python_version(),
        "platform": platform.platform(),
    }
    facts |= {name: version(name) for name in packages}
    return "<p>" + ", ".join(f"{escape(name)} {escape(value)}" for name, value in facts.items()) + ".</p>"
