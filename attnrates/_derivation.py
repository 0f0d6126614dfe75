"""`attnrates verify KEY`: one page with its whole proof, step by step."""

from __future__ import annotations

import re
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
from theory.proof.kernel import ancestry
from theory.steps import Step, steps
from theory.verify import TheoremReport, inference_rules, known_as, report_on

if TYPE_CHECKING:
    from pathlib import Path

    from theory import Theorem
    from theory.latex import Notation
    from theory.proof.terms import Formula


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
    if key in pages:
        return pages[key]
    if bearers := _bearers(key, pages.values()):
        many = "" if len(bearers) < 7 else "; the README's table of names tells the main ones"
        raise InputError(f"{key!r} is a name, which these keys bear: {', '.join(bearers)}{many}")
    near = _near(key, list(pages))
    listing = f"attnrates verify --theory {own.path}" if own else "attnrates verify"
    hint = f"did you mean {', '.join(near)}" if near else f"{listing} lists them"
    raise InputError(f"no page is called {key!r}; {hint}")


def _bearers(name: str, pages: Iterable[Theorem]) -> list[str]:
    """Keys of the pages that texts call by a name, "Theorem B" or "Lemma 1"; "Theorem A" is all its parts."""
    asked = re.fullmatch(r"(?:our )?(theorem|lemma) (\w)(\([ivx]+\))?", name.strip(), re.IGNORECASE)
    if not asked:
        return []
    kind, letter, part = asked[1].capitalize(), asked[2].upper(), (asked[3] or "").lower()
    found = []
    for page in pages:
        called = re.match(rf"our {kind}s? (.*)", known_as(page) or "")
        places = re.findall(r"\b([A-Z\d])\b(\([ivx]+\))?", called[1]) if called else []
        if (letter, part) in places or (not part and letter in dict(places)):
            found.append(page.key)
    return found


def _near(key: str, keys: list[str]) -> list[str]:
    """Keys that hold this one or are held by it, or else are spelt alike, the same first word first."""
    holding = [name for name in keys if key and (key in name or name in key)]
    first = key.split("-", maxsplit=1)[0]
    kin = [name for name in keys if name.split("-", maxsplit=1)[0] == first]
    return (
        sorted(holding, key=lambda name: not name.startswith(key))
        or get_close_matches(key, kin, cutoff=0.7)
        or get_close_matches(key, kin, n=5, cutoff=0)
        or get_close_matches(key, keys)
    )


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
    claimed = report.kind == "claim"
    whose = " by the paper" if notation.package else ""
    how = f"claimed{whose}, not proved here" if claimed else f"{report.kind}, {report.status}"
    _indented(f"{how}. Source: {page.reference}", within=0)
    _part("statement", _statement(page, notation))
    if claimed and notation.package:
        _in_its_place(report)
        return
    assumed = {name: text for name, text in report.hypotheses.items() if name not in report.given}
    _part("hypotheses", _lines(assumed.items()) or ["none"])
    if report.given:
        _part("given: facts that it takes over and the kernel did not derive", _lines(report.given.items()))
    _part("symbols", together(report.symbols))
    if claimed:
        return
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
    dropped = _dropped(page, found)
    for step in found:
        reason = _reason(step, dropped.get(step.number, ""))
        _indented(f"{step.number:{width}}  {plain(step.conclusion, notation)}   [{reason}]", hang=width + 2)
    known = inference_rules()
    if rules := [(rule, known[rule]) for rule in report.rules if rule in known]:
        _part("rules of the kernel in this proof, besides axioms", _lines(rules))
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


def _reason(step: Step, dropped: str) -> str:
    if step.page:
        return f"by {step.page}"
    if step.hypothesis:
        return f"hypothesis: {step.hypothesis}"
    if dropped:
        return f"{step.rule}, {dropped}"
    return f"{step.rule} {', '.join(map(str, step.premises))}".strip()


def _dropped(page: Theorem, found: list[Step]) -> dict[int, str]:
    """Number of a step that assumes what is no hypothesis -> in which steps it is dropped or instantiated."""
    below: dict[int, set[Step]] = {}  # what assumes something, among all that a step rests on
    for step in found:
        below[step.number] = set().union(*(below[n] for n in step.premises))
        if step.rule == "assume" and not step.hypothesis:
            below[step.number].add(step)
    places: dict[tuple[str, Formula, frozenset[Formula]], list[int]] = {}  # one may stand twice
    for step in found:
        said = step.rule, step.conclusion, frozenset(found[n - 1].conclusion for n in step.premises)
        places.setdefault(said, []).append(step.number)
    where: dict[int, dict[str, set[int]]] = {}
    for node in ancestry(page.proved()):
        said = node.rule, node.conclusion, frozenset(premise.conclusion for premise in node.premises)
        how = "instantiated" if node.rule == "instantiate" else "dropped"
        lost = {h for premise in node.premises for h in premise.hypotheses} - set(node.hypotheses)
        for place in places.get(said, ()):
            for step in below[place]:
                if step.conclusion in lost:
                    where.setdefault(step.number, {}).setdefault(how, set()).add(place)
    return {
        number: ", ".join(f"{how} in {', '.join(map(str, sorted(at)))}" for how, at in sorted(ways.items()))
        for number, ways in where.items()
    }


def _indented(text: str, *, hang: int = 2, within: int = 2, style: str = "") -> None:
    """Print with an indent: on a terminal in lines that fit, elsewhere as one line."""
    out = console()
    if out.is_terminal:
        print_indented(out, text, within=within, hang=hang, style=style)
    else:
        print(" " * within + text)
