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


def prove(*, search: bool = False) -> dict[str, Any]:
    """Put every theorem through the kernel: the report of `theory.verify` as plain JSON values."""
    report = theory.verify(search=search)
    return {"ok": bool(report.ok), **report.to_dict()}


def print_table(proofs: dict[str, Any], console: Console) -> None:
    """Print each theorem with status, number of steps and axioms, then what the axioms say."""
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
            Text(", ".join(entry["axioms"]) or "none"),
        )
    console.print(table)
    console.print(Text("axioms of the kernel:"))
    for name, statement in proofs["axioms"].items():
        console.print(Text(f"  {name}: {statement}"))
    for entry in proofs["theorems"]:
        if entry["status"] == "failed":
            console.print(Text(f"{entry['key']} fails: {entry['error']}", style=STYLE["failed"]))
    outcome = "every proof stands" if proofs["ok"] else "a proof FAILS"
    console.print(Text(f"kernel of {proofs['kernel_lines']} lines: {outcome}"))
