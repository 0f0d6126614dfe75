"""Proof results as data and as a table: what `attnrates verify` prints and the report shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

import theory

if TYPE_CHECKING:
    from rich.console import Console

STYLE = {
    "proved": "green",
    "proved-given": "green",
    "claimed": "yellow",
    "observed": "yellow",
    "failed": "bold red",
}


def prove(console: Console, *, search: bool = False) -> dict[str, Any]:
    """Put every theorem through the kernel: the report of `theory.verify` as plain JSON values.

    On a terminal the console shows which theorem is being proved.
    """
    with console.status(Text("proving")) as status:
        report = theory.verify(search=search, progress=lambda key: status.update(Text(f"proving {key}")))
    return {"ok": bool(report.ok), **report.to_dict()}


def axiom_numbers(proofs: dict[str, Any], entry: dict[str, Any]) -> list[int]:
    """Give the places, from 1, of the axioms that a theorem's proof uses in the list of all axioms."""
    return [number for number, name in enumerate(proofs["axioms"], start=1) if name in entry["axioms"]]


def print_table(proofs: dict[str, Any], console: Console) -> None:
    """Print each theorem with status, number of steps and axioms by number, then the axioms."""
    table = Table(box=None, expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("theorem", overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("axioms", ratio=1, overflow="fold")
    for entry in proofs["theorems"]:
        table.add_row(
            Text(entry["key"]),
            Text(entry["status"], style=STYLE[entry["status"]]),
            str(entry["steps"]),
            Text(" ".join(map(str, axiom_numbers(proofs, entry))) or "none"),
        )
    console.print(table)
    console.print(Text("axioms of the kernel:"))
    for number, (name, statement) in enumerate(proofs["axioms"].items(), start=1):
        console.print(Text(f"  {number} {name}: {statement}"))
    for entry in proofs["theorems"]:
        if entry["status"] == "failed":
            console.print(Text(f"{entry['key']} fails: {entry['error']}", style=STYLE["failed"]))
    outcome = "every proof stands" if proofs["ok"] else "a proof FAILS"
    console.print(Text(f"kernel of {proofs['kernel_lines']} lines: {outcome}"))
