"""Proof results as data and as a table: what `attnrates verify` prints and the report shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.text import Text

import theory
from paper_figs.progress import phase
from paper_figs.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

STYLE = {
    "proved": "green",
    "proved-given": "green",
    "claimed": "yellow",
    "observed": "yellow",
    "failed": "bold red",
}
COUNTS = {
    "steps": "different claims that the proof goes through by kernel rules, those of its lemmas included",
    "own": "lines of the page's own proof: rules applied, hypotheses, and one line for a claim drawn on",
    "time": "seconds for the proof, lemmas that were not proved before included",
    "tight": "the falsifier's best ratio of observed to bound, 1 where the bound is attained; none where it "
    "met no model of the hypotheses, sign where the page says only a sign, - where it has not searched",
}
"""What the columns of the table count; the report and `verify KEY` use the same names."""
BESIDES = (
    "Relied on besides: Python and its fractions, python-flint, theory/page.py (compares what is proved with "
    "what a page says) and theory/latex.py (prints it). All else, the searches and their certificates "
    "included, can at worst fail to prove: what it finds goes through the rules above."
)


def prove(
    console: Console,
    *,
    search: bool = False,
    pages: Sequence[theory.Theorem] | None = None,
    words: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Put every theorem, or these pages, through the kernel: the report of `theory.verify` as plain values.

    `words` say what the symbols of one's own pages stand for. The console, one on stderr,
    is told how many are proved (`progress.phase`).
    """
    total = len(theory.theorems() if pages is None else pages)
    with phase("proving", console, total=total) as step:
        report = theory.verify(pages=pages, words=words, search=search, progress=step)
    return {"ok": bool(report.ok), **report.to_dict()}


def titles(proofs: dict[str, Any]) -> dict[str, str]:
    """Key -> title; where several pages have one title the key is added, so that no two read alike."""
    counts = Counter(entry["title"] for entry in proofs["theorems"])
    return {
        entry["key"]: entry["title"] + (f" ({entry['key']})" if counts[entry["title"]] > 1 else "")
        for entry in proofs["theorems"]
    }


def together(symbols: Iterable[Sequence[str]]) -> list[str]:
    """Give a line for each meaning of (symbol, meaning), with the symbols that share it."""
    shared: dict[str, list[str]] = {}
    for symbol, meaning in symbols:
        shared.setdefault(meaning, []).append(symbol)
    return [f"{', '.join(alike)}: {meaning}" for meaning, alike in shared.items()]


def axiom_numbers(proofs: dict[str, Any], entry: dict[str, Any]) -> list[int]:
    """Give the places, from 1, of the axioms that a theorem's proof uses in the list of all axioms."""
    return [number for number, name in enumerate(proofs["axioms"], start=1) if name in entry["axioms"]]


def rests_on(proofs: dict[str, Any], entry: dict[str, Any]) -> str:
    """Tell what a page rests on besides its hypotheses: axioms by number, given facts by name."""
    if entry["kind"] == "claim":
        named = ", ".join(entry["instead"])
        return "not proved here" + (f"; proved with explicit constants: {named}" if named else "")
    numbers = " ".join(map(str, axiom_numbers(proofs, entry)))
    given = f"; given {len(entry['given'])}: {', '.join(entry['given'])}" if entry["given"] else ""
    return ("axioms " + numbers if numbers else "no axiom") + given


def _tight(entry: dict[str, Any]) -> str:
    """Tightness, rounded down: 1 only where the bound is attained up to six digits; or why there is none."""
    ratio, models = entry.get("tightness"), entry.get("models")
    if ratio is None:
        return "-" if models is None else "sign" if models else "none"
    return f"{ratio:.3g}" if ratio < 0.001 else f"{int(ratio * 1000) / 1000:.3f}"


def print_table(proofs: dict[str, Any], console: Console) -> None:
    """Print each theorem with status, steps, time and tightness, and its tree one level deep; then the base.

    Under a theorem stand the axioms and given facts that it rests on, the pages that it draws on, and the
    kernel's rules that lead from them to its claim, with how often each is applied. What the columns count,
    the given facts, the rules, the axioms and the trusted base come last, each with its statement.
    """
    width = max(len(entry["key"]) for entry in proofs["theorems"])
    figures = f"{'status':12}  {'steps':>5}  {'own':>4}  {'time':>6}  tight"
    narrow = console.is_terminal and console.width < width + 2 + len(figures)
    lead = "\n    " if narrow else "  "
    console.print(Text(f"{'theorem':{0 if narrow else width}}{lead}{figures}"))
    for entry in proofs["theorems"]:
        line = Text(f"{entry['key']:{0 if narrow else width}}{lead}", style="bold")
        line.append(f"{entry['status']:12}", style=STYLE[entry["status"]])
        line.append(
            f"  {entry['steps']:5}  {entry['own_steps']:4}  {entry['seconds']:5.2f}s  {_tight(entry)}",
            style="not bold",
        )
        console.print(line)
        rules = ", ".join(f"{rule} {count}" for rule, count in entry["rules"].items())
        draws = "draws on " + ", ".join(entry["uses"]) if entry["uses"] else ""
        for branch in (rests_on(proofs, entry), draws, rules):
            if branch:
                print_indented(console, branch, within=4, style="dim")
    _base(proofs, console)
    for entry in proofs["theorems"]:
        if entry["status"] == "failed":
            console.print(Text(f"{entry['key']} fails: {entry['error']}", style=STYLE["failed"]))
    statuses = Counter(entry["status"] for entry in proofs["theorems"])
    counts = ", ".join(f"{number} {status}" for status, number in statuses.items())
    outcome = "every proof stands" if proofs["ok"] else "a proof FAILS"
    console.print(Text(f"{counted(len(proofs['theorems']), 'page')}: {counts}; {outcome}"))


def _base(proofs: dict[str, Any], console: Console) -> None:
    """Print what the columns count, and what everything rests on."""

    def part(title: str, lines: Iterable[str]) -> None:
        console.print(Text(title, style="bold"))
        for line in lines:
            print_indented(console, line)

    part("columns", (f"{name}: {text}" for name, text in COUNTS.items()))
    given = {e["key"]: e["given"] for e in proofs["theorems"] if e["given"]}
    if given:
        part("given facts, which the kernel did not derive", ())
    for key, facts in given.items():
        print_indented(console, f"of {key}")
        for name, text in facts.items():
            print_indented(console, f"{name}: {text}", within=4)
    part("inference rules of the kernel", (f"{n}: {text}" for n, text in proofs["inference_rules"].items()))
    axioms = enumerate(proofs["axioms"].items(), start=1)
    part("axioms of the kernel", (f"{number} {name}: {text}" for number, (name, text) in axioms))
    sizes = (f"{each['lines']} {each['file']}: {each['role']}" for each in proofs["trusted"])
    part(f"trusted base: {proofs['kernel_lines']} lines of code, without comments", (*sizes, BESIDES))


def print_indented(console: Console, text: str, *, within: int = 2, hang: int = 2, style: str = "") -> None:
    """Print with an indent; what does not fit on a line goes on below it, further in."""
    for number, line in enumerate(
        Text(text, style=style).wrap(console, max(20, console.width - within - hang))
    ):
        line.pad_left(within + (hang if number else 0))
        line.rstrip()
        console.print(line, soft_wrap=True)
