"""One self-contained HTML file: what is proved, what was checked on which runs, and the figures."""

from __future__ import annotations

import base64
import math
import platform
import re
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from latex2mathml.converter import convert

import theory
from numerics.files import atomic_write
from paper_figs.figures import read_note
from paper_figs.proofs import axiom_numbers
from paper_figs.provenance import source_hash
from theory.tightness import tightness

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from paper_figs.verdicts import Row

INTRODUCTION = (
    "<p>A companion of <cite>Implicit Bias and Fast Convergence Rates for Self-attention</cite>, "
    "arXiv 2402.05738. A theorem is <em>proved</em> when every step passed the proof kernel, "
    "<em>proved-given</em> when it needs, besides, facts that the page names and the kernel did not derive, "
    "<em>claimed</em> when it is the paper's and tested only, <em>observed</em> when it is an observation. "
    "Observed values are floating point.</p>"
)
TONE = {
    "proved": "good",
    "proved-given": "good",
    "claimed": "warn",
    "observed": "warn",
    "failed": "bad",
    "holds": "good",
    "not claimed": "warn",
    "VIOLATED": "bad",
}


def write(path: Path, proofs: dict[str, Any], rows: Sequence[Row], pictures: Sequence[Path]) -> None:
    """Write the report: proof results (of `proofs.prove`), verdict rows, and PNG pictures inlined."""
    style = files("paper_figs").joinpath("report.css").read_text(encoding="utf-8")
    body = [
        "<h1>Convergence rates of self-attention: proofs and runs</h1>",
        INTRODUCTION,
        "<h2>Theorems</h2>",
        _theorems(proofs),
        "<h2>Verdicts on the runs</h2>",
        _verdicts(rows),
        "<h2>Tightness</h2>",
        _tightness(rows),
        "<h2>Figures</h2>",
        *(_picture(picture) for picture in pictures),
        "<h2>Provenance</h2>",
        _provenance(),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>attnrates report</title>\n<style>\n{style}</style>"
    )
    page = [
        "<!doctype html>",
        '<html lang="en">',
        f"<head>{head}</head>",
        "<body>",
        *body,
        "</body>",
        "</html>",
        "",
    ]
    with atomic_write(path) as stream:
        stream.write("\n".join(page).encode())


def _theorems(proofs: dict[str, Any]) -> str:
    """Tabulate the theorems, then the lemmas under a fold, then list the axioms."""
    theorems = [entry for entry in proofs["theorems"] if entry["kind"] != "lemma"]
    lemmas = [entry for entry in proofs["theorems"] if entry["kind"] == "lemma"]
    axioms = "".join(
        f"<li><strong>{escape(name)}</strong>: {escape(text)}</li>" for name, text in proofs["axioms"].items()
    )
    return (
        f"{_pages(proofs, theorems)}<details><summary>{len(lemmas)} lemmas</summary>{_pages(proofs, lemmas)}"
        f"</details><p>The axioms of the kernel, {proofs['kernel_lines']} lines of code:</p><ol>{axioms}</ol>"
    )


def _pages(proofs: dict[str, Any], entries: Sequence[dict[str, Any]]) -> str:
    """Show pages of the theory: title, status, steps, axioms by number, source, statement."""
    articles = []
    for entry in entries:
        page = theory.theorems()[entry["key"]]
        numbers = ", ".join(map(str, axiom_numbers(proofs, entry))) or "none"
        steps = f", {entry['steps']} steps, axioms {numbers}" if entry["steps"] else ""
        articles.append(
            f"<article><h3>{escape(page.title)}</h3><p><strong>{escape(page.key)}</strong>: "
            f'<span class="{TONE[entry["status"]]}">{escape(entry["status"])}</span>{steps}. '
            f"<small>{escape(page.reference)}</small></p>"
            f"{_statement(page.statement, entry['claim'])}</article>"
        )
    return "\n".join(articles)


def _statement(text: str, claim: str) -> str:
    """Turn a statement, plain text with $mathematics$ and a {claim}, into HTML with MathML."""
    pieces = []
    for position, piece in enumerate(re.split(r"\$(.*?)\$|(\{claim\}\.?)", text)):
        kind = position % 3  # re.split interleaves text, inline mathematics and claim
        if piece and kind == 0:
            pieces.append(escape(piece))
        elif piece and kind == 1:
            pieces.append(convert(piece))
        elif piece:
            pieces.append(f'</p><div class="wide formula">{convert(claim, display="block")}</div><p>')
    return f"<p>{''.join(pieces)}</p>".replace("<p></p>", "")


def _verdicts(rows: Sequence[Row]) -> str:
    table = [_row(["theorem", "hypotheses", "worst ratio", "worst step", "verdict"], "th")]
    run = None
    for row in rows:
        if row.run != run:
            run = row.run
            table.append(f'<tr><th class="run" colspan="5">{escape(run)}</th></tr>')
        hypotheses = "<br>".join(escape(text) for text in [row.hypotheses, *row.reasons])
        ratio = float(row.verdict.worst_ratio)
        number = f"{ratio:.4g}" if math.isfinite(ratio) else "&ndash;"
        step = "&ndash;" if row.verdict.worst_step is None else str(int(row.verdict.worst_step))
        table.append(
            f"<tr><td>{escape(row.verdict.theorem)}</td><td>{hypotheses}</td>"
            f'<td class="number">{number}</td><td class="number">{step}</td>{_toned(row.outcome)}</tr>'
        )
    return (
        "<p>The worst ratio is the largest over the run of observed to bound (bound to observed for "
        "lower bounds): at most 1 where the bound holds.</p>"
        f'<div class="wide"><table>{"".join(table)}</table></div>'
    )


def _tightness(rows: Sequence[Row]) -> str:
    """Tabulate observed/bound by theorem and decade of t, over the runs of the verdicts."""
    table = [_row(["theorem", "t from", "median", "worst", "steps", "runs"], "th")]
    for row in tightness(row.verdict for row in rows):
        cells = [row.theorem, f"{10.0**row.decade:g}", f"{row.median:.4g}", f"{row.worst:.4g}"]
        table.append(_row([*cells, str(row.rows), str(row.runs)], "td"))
    return (
        "<p>Observed over bound (bound over observed for lower bounds) at the recorded steps of all runs, by "
        "decade of t; steps at which a side has left the range of floating point are left out.</p>"
        f'<div class="wide"><table>{"".join(table)}</table></div>'
    )


def _picture(path: Path) -> str:
    """Show a picture with the caption noted beside it."""
    content = base64.b64encode(path.read_bytes()).decode()
    caption = read_note(path.with_suffix(".json")).get("caption") or path.stem
    picture = f'<img alt="{escape(path.stem, quote=True)}" src="data:image/png;base64,{content}">'
    return f"<figure>{picture}<figcaption>{_mathematics(caption)}</figcaption></figure>"


def _mathematics(text: str) -> str:
    """Turn plain text with $mathematics$ into HTML with MathML."""
    pieces = re.split(r"\$(.*?)\$", text)
    return "".join(
        convert(piece) if number % 2 else escape(piece) for number, piece in enumerate(pieces) if piece
    )


def _provenance() -> str:
    packages = ("attnrates", "numpy", "scipy", "sympy", "mpmath", "python-flint", "torch", "cvxpy")
    facts = {
        "code": source_hash("theory", "numerics", "paper_figs")[:16],
        "Python": platform.python_version(),
    }
    facts |= {name: version(name) for name in packages}
    return "<p>" + ", ".join(f"{escape(name)} {escape(value)}" for name, value in facts.items()) + ".</p>"


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _toned(word: str) -> str:
    return f'<td class="{TONE[word]}">{escape(word)}</td>'
