"""The articles: each theorem with statement, hypotheses, proof, and what the runs say of it."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import theory
from paper_figs.proofs import axiom_numbers, titles, together
from paper_figs.report import markup
from paper_figs.report.plot import plot
from paper_figs.wording import printable
from theory.latex import latex
from theory.legend import notation_of
from theory.plain import plain
from theory.steps import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from paper_figs.verdicts import Row

KINDS = {"theorem": "Theorems", "corollary": "Corollaries", "lemma": "Lemmas", "claim": "The paper's claims"}
GIVEN = " (given: a fact that is named, not derived)"


def sections(proofs: dict[str, Any], rows: Sequence[Row], watch: Callable[[str], None]) -> str:
    """Give all articles, by kind; the lemmas under a fold. `watch` hears each key before its article."""
    held: dict[str, list[Row]] = {}
    for row in rows:
        held.setdefault(row.verdict.theorem, []).append(row)
    shown = {entry["key"] for entry in proofs["theorems"]}
    out = []
    for kind, title in KINDS.items():
        entries = [entry for entry in proofs["theorems"] if entry["kind"] == kind]
        made = []
        for entry in entries:
            watch(entry["key"])
            made.append(article(proofs, entry, held.get(entry["key"], ()), shown))
        articles = "\n".join(made)
        if kind == "lemma":
            articles = markup.fold(f"{len(entries)} lemmas", articles)
        if entries:
            out.append(f"<h3>{title}</h3>{articles}")
    return "\n".join(out)


def article(proofs: dict[str, Any], entry: dict[str, Any], rows: Sequence[Row], shown: Container[str]) -> str:
    """Give one page of the theory; `shown` are the pages that may be linked."""
    page = theory.theorems()[entry["key"]]
    counts = (
        f": {entry['own_steps']} own steps, {entry['steps']} steps with its lemmas" if entry["steps"] else ""
    )
    tight = entry.get("tightness")
    tightness = f"; tightest model found: {tight:.3g} of the bound" if tight is not None else ""
    error = f'<p class="bad">{escape(entry["error"])}</p>' if entry["error"] else ""
    return (
        f'<article id="{escape(page.key, quote=True)}"><h4>{escape(titles(proofs)[page.key])}</h4>'
        f"<p><strong>{escape(page.key)}</strong>: {markup.toned(entry['status'])}{counts}{tightness}. "
        f"<small>{escape(page.reference)}</small></p>{error}"
        f"{markup.statement(page.statement, entry['claim'])}{_instead(entry, shown)}"
        f"{_hypotheses(page)}{_symbols(entry)}{_base(proofs, entry)}{_proof(page, entry, shown)}"
        f"{_runs(page, rows)}</article>"
    )


def _instead(entry: dict[str, Any], shown: Container[str]) -> str:
    """Say of a claim of the paper that it is not proved here, and what is."""
    if entry["kind"] != "claim":
        return ""
    pages = ", ".join(markup.anchor(key, shown) for key in entry["instead"])
    proved = f" Proved in its place, with explicit constants: {pages}." if pages else ""
    words = "Not proved here: the statement is the paper's, and none of its hypotheses is encoded."
    return f"<p>{words}{proved}</p>"


def _hypotheses(page: theory.Theorem) -> str:
    if not page.hypotheses:
        return ""
    notation = notation_of(page)
    items = "".join(
        f"<dt>{escape(name)}{GIVEN if name in page.given else ''}</dt>"
        f"<dd>{markup.formula(latex(formula, notation), block=True)}</dd>"
        for name, formula in page.hypotheses.items()
    )
    given = f", {len(page.given)} of them given" if page.given else ""
    return markup.fold(f"{len(page.hypotheses)} hypotheses{given}", f"<dl>{items}</dl>")


def _symbols(entry: dict[str, Any]) -> str:
    """Say what each symbol of the statement and the hypotheses stands for."""
    if not entry["symbols"]:
        return ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in together(entry["symbols"]))
    return markup.fold("symbols", f"<ul>{lines}</ul>")


def _base(proofs: dict[str, Any], entry: dict[str, Any]) -> str:
    """List what the proof rests on besides the hypotheses: the axioms, each with its statement."""
    if entry["status"] not in ("proved", "proved-given"):
        return ""
    axioms = entry["axioms"].items()
    listed = "".join(f"<li>{escape(name)}: {escape(text)}</li>" for name, text in axioms)
    numbers = " ".join(map(str, axiom_numbers(proofs, entry)))
    given = f"; given facts: {escape(', '.join(entry['given']))}" if entry["given"] else ""
    if not listed:
        return f"<p>No axiom of the kernel{given}.</p>"
    return markup.fold(f"axioms {numbers}{given}", f"<ul>{listed}</ul>")


def _proof(page: theory.Theorem, entry: dict[str, Any], shown: Container[str]) -> str:
    """Unfold the proof: its own inferences, numbered; those of other pages are linked."""
    if entry["status"] not in ("proved", "proved-given"):
        return ""
    lines = []
    notation = notation_of(page)
    for step in steps(page):
        text = plain(step.conclusion, notation)
        if step.page:
            by = f"by {markup.anchor(step.page, shown)}"
        elif step.hypothesis:
            by = f"hypothesis: {escape(step.hypothesis)}"
        else:
            by = escape(step.rule) + (f" {', '.join(map(str, step.premises))}" if step.premises else "")
        lines.append(f"<li>{escape(text)} <small>{by}</small></li>")
    uses = ", ".join(markup.anchor(key, shown) for key in entry["uses"])
    draws = f"<p>Draws on {uses}.</p>" if uses else ""
    return markup.fold(f"proof: {entry['own_steps']} own steps", f"{draws}<ol>{''.join(lines)}</ol>")


def _runs(page: theory.Theorem, rows: Sequence[Row]) -> str:
    """Tell what the runs say: verdict, constants, a plot, and each hypothesis with what was found."""
    if not rows:
        return ""
    claimed = [row for row in rows if row.verdict.holds is not None]
    count = f"claimed on {len(claimed)} of {len(rows)} runs"
    if claimed:
        worst = max(float(row.verdict.worst_ratio) for row in claimed)
        count += f", worst ratio {worst:.4g}"
    shown = ""
    if claimed:
        first = claimed[0]
        constants = ", ".join(
            f"{markup.formula(name)} = {value:.6g}" for name, value in first.constants.items()
        )
        run = escape(printable(first.run))
        shown = f"<p>{run}{': ' if constants else ''}{constants}</p>{plot(first.verdict)}"
    table = markup.table(
        ["run", "verdict", "worst ratio", "at step", "hypotheses, and what was found"],
        [_run(row) for row in rows],
    )
    return markup.fold(f"runs: {count}", shown + table)


def _run(row: Row) -> str:
    ratio = float(row.verdict.worst_ratio)
    step = row.verdict.worst_step
    found = "<br>".join(
        f"{escape(name)} {escape(check.state)}: {escape(check.detail)}"
        for name, check in row.verdict.hypotheses.items()
    )
    return (
        f'<tr><td class="name">{escape(printable(row.run))}</td>{markup.toned(row.outcome, "td")}'
        f'<td class="number">{f"{ratio:.4g}" if math.isfinite(ratio) else "–"}</td>'
        f'<td class="number">{"–" if step is None else int(step)}</td><td>{found}</td></tr>'
    )
