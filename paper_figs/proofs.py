"""Proof results as data and as a table: what `attnrates verify` prints and the report shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

import theory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

STYLE = {
    "proved": "green",
    "proved-given": "green",
    "claimed": "yellow",
    "observed": "yellow",
    "failed": "bold red",
}


def prove(
    console: Console, *, search: bool = False, pages: Sequence[theory.Theorem] | None = None
) -> dict[str, Any]:
    """Put every theorem, or these pages, through the kernel: the report of `theory.verify` as plain values.

    On a terminal the console shows which theorem is being proved.
    """
    with console.status(Text("proving")) as status:
        report = theory.verify(
            pages=pages, search=search, progress=lambda key: status.update(Text(f"proving {key}"))
        )
    return {"ok": bool(report.ok), **report.to_dict()}


def axiom_numbers(proofs: dict[str, Any], entry: dict[str, Any]) -> list[int]:
    """Give the places, from 1, of the axioms that a theorem's proof uses in the list of all axioms."""
    return [number for number, name in enumerate(proofs["axioms"], start=1) if name in entry["axioms"]]


def _tight(entry: dict[str, Any]) -> str:
    """Tightness, rounded down: 1 is printed only where the bound is attained up to six digits."""
    ratio = entry.get("tightness")
    return "-" if ratio is None else f"{ratio:.3g}" if ratio < 0.001 else f"{int(ratio * 1000) / 1000:.3f}"


def print_table(proofs: dict[str, Any], console: Console) -> None:
    """Print each theorem with status, steps, time, tightness and axioms by number, its tree one level deep.

    Tightness is the falsifier's best ratio of observed to bound, 1 where a bound is attained; "-" where it
    met no model, or the page says only a sign. Under a theorem stand the pages that it draws on and the
    kernel's rules that lead from them to its claim, with how often each is applied. The axioms come last.
    """
    width = max(len(entry["key"]) for entry in proofs["theorems"])
    console.print(Text(f"{'theorem':{width}}  {'status':12}  steps    time  tight  axioms"))
    for entry in proofs["theorems"]:
        status = Text(f"{entry['status']:12}", style=STYLE[entry["status"]])
        axioms = " ".join(map(str, axiom_numbers(proofs, entry))) or "none"
        line = Text(f"{entry['key']:{width}}  ", style="bold").append_text(status)
        line.append(
            f"  {entry['steps']:5}  {entry['seconds']:5.2f}s  {_tight(entry):5}  {axioms}", style="not bold"
        )
        console.print(line)
        rules = ", ".join(f"{rule} {count}" for rule, count in entry["rules"].items())
        for branch in (", ".join(entry["uses"]), rules):
            if branch:
                console.print(Padding(Text(branch, style="dim"), (0, 0, 0, 4)))
    console.print(Text("axioms of the kernel:"))
    for number, (name, statement) in enumerate(proofs["axioms"].items(), start=1):
        console.print(Text(f"  {number} {name}: {statement}"))
    for entry in proofs["theorems"]:
        if entry["status"] == "failed":
            console.print(Text(f"{entry['key']} fails: {entry['error']}", style=STYLE["failed"]))
    outcome = "every proof stands" if proofs["ok"] else "a proof FAILS"
    console.print(Text(f"kernel of {proofs['kernel_lines']} lines: {outcome}"))
