"""`attnrates verify KEY`: one page with its whole proof, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING

from attnrates._console import console, print_json
from numerics.errors import InputError
from paper_figs.proofs import print_indented, together
from paper_figs.wording import counted
from theory import theorems
from theory.legend import legend, notation_of
from theory.own import OwnTheory, load
from theory.plain import from_latex, plain, prose
from theory.steps import Step, steps
from theory.verify import TheoremReport, report_on

if TYPE_CHECKING:
    from pathlib import Path

    from theory import Theorem
    from theory.latex import Notation


def derivation(key: str, *, json: bool, own: Path | None = None) -> int:
    """Prove one page and print what it says, what it rests on and its steps; 0 when it is proved, else 1.

    Raises InputError for a key that no page has.
    """
    theory = load(own) if own else None
    page = _page(key, theory)
    report = report_on(page, theory.words if theory else None)
    found = steps(page) if report.own_steps else []
    notation = notation_of(page)
    inside = _symbols_inside(page, found, theory)
    if json:
        print_json(
            {
                **asdict(report),
                "proof": [
                    {
                        "number": step.number,
                        "rule": step.rule,
                        "premises": list(step.premises),
                        "conclusion": plain(step.conclusion, notation),
                        "page": step.page,
                        "hypothesis": step.hypothesis,
                    }
                    for step in found
                ],
                "proof_symbols": inside,
            }
        )
    else:
        _show(page, report, found, inside, notation)
    return int(report.status == "failed")


def _page(key: str, own: OwnTheory | None) -> Theorem:
    pages = {page.key: page for page in own.pages} if own else dict(theorems())
    if key not in pages:
        near = [name for name in pages if key and (key in name or name in key)]
        near = near or get_close_matches(key, pages)
        listing = f"attnrates verify --theory {own.path}" if own else "attnrates verify"
        hint = f"did you mean {', '.join(near)}" if near else f"{listing} lists them"
        raise InputError(f"no page is called {key!r}; {hint}")
    return pages[key]


def _symbols_inside(page: Theorem, found: list[Step], own: OwnTheory | None) -> list[tuple[str, str]]:
    """Say what the symbols stand for that only the proof's steps print."""
    words = own.words if own else None
    stated = len(legend(page, words=words))
    entries = legend(page, (step.conclusion for step in found), words=words)[stated:]
    return [(from_latex(entry.latex), prose(entry.meaning)) for entry in entries]


def _show(
    page: Theorem,
    report: TheoremReport,
    found: list[Step],
    inside: Iterable[tuple[str, str]],
    notation: Notation,
) -> None:
    called = f", {report.known_as}" if report.known_as else ""
    _indented(f"{page.key}{called}: {page.title}", within=0, style="bold")
    paper = report.kind == "claim"
    how = "claimed by the paper, not proved here" if paper else f"{report.kind}, {report.status}"
    _indented(f"{how}. Source: {page.reference}", within=0)
    _part("statement", _statement(page, notation))
    if paper:
        _in_its_place(report)
        return
    assumed = {name: text for name, text in report.hypotheses.items() if name not in report.given}
    _part("hypotheses", _lines(assumed.items()) or ["none"])
    if report.given:
        _part("given: facts that it takes over and the kernel did not derive", _lines(report.given.items()))
    _part("symbols", together(report.symbols))
    if report.error:
        _indented(f"fails: {report.error}", within=0, style="bold red")
        return
    _part(
        "axioms of the kernel that it rests on, through its lemmas too",
        _lines(report.axioms.items()) or ["none"],
    )
    own, whole = counted(report.own_steps, "own step"), counted(report.steps, "step")
    _part(f"proof: {own}; {whole} with those of its lemmas", ())
    width = len(str(report.own_steps))
    for step in found:
        text = f"{step.number:{width}}  {plain(step.conclusion, notation)}   [{_reason(step)}]"
        _indented(text, hang=width + 2)
    if inside:
        _part("symbols of the proof alone", together(inside))


def _statement(page: Theorem, notation: Notation) -> list[str]:
    """Give the words around the claim, and the claim on a line of its own."""
    before, _, after = page.statement.partition("{claim}")
    claim = "" if page.claim is None else plain(page.claim, notation)
    return [part for part in (prose(before).strip(), claim, prose(after).strip(" .,")) if part]


def _in_its_place(report: TheoremReport) -> None:
    """Print what is proved in the place of a claim of the paper: each page with its claim and hypotheses."""
    _part("hypotheses", ["none is encoded: the statement is the paper's, in words"])
    if not report.instead:
        _part("proved in its place", ["nothing"])
        return
    _part("proved in its place, with explicit constants", ())
    for key in report.instead:
        page = theorems()[key]
        proved = report_on(page)
        _indented(f"{key}, {proved.status}: {page.title}", style="bold")
        if page.claim is not None:
            _indented(plain(page.claim, notation_of(page)), within=4)
        _indented(f"from: {', '.join(proved.hypotheses) or 'no hypothesis'}", within=4)
    _indented(
        "For the hypotheses in full, the symbols and the proof: attnrates verify with one of these keys."
    )


def _lines(named: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name}: {text}" for name, text in named]


def _part(title: str, lines: Iterable[str]) -> None:
    _indented(title, within=0, style="bold")
    for line in lines:
        _indented(line)


def _reason(step: Step) -> str:
    if step.page:
        return f"by {step.page}"
    if step.hypothesis:
        return f"hypothesis: {step.hypothesis}"
    return f"{step.rule} {', '.join(map(str, step.premises))}".strip()


def _indented(text: str, *, hang: int = 2, within: int = 2, style: str = "") -> None:
    """Print with an indent: on a terminal in lines that fit, elsewhere as one line."""
    out = console()
    if out.is_terminal:
        print_indented(out, text, within=within, hang=hang, style=style)
    else:
        print(" " * within + text)
