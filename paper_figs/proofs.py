"""Proof results as data and as a table: what `attnrates verify` prints and the report shows."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from numerics.files import atomic_write
from paper_figs.provenance import source_hash

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

STYLE = {"proved": "green", "proved-given": "green", "claimed": "yellow", "observed": "yellow"}


def prove(*, search: bool = False) -> dict[str, Any]:
    """Put every theorem through the kernel: the report of `theory.verify` as plain JSON values."""
    import theory

    report = theory.verify(search=search)
    return {"ok": bool(report.ok), **report.to_dict()}


def prove_once(path: Path) -> tuple[dict[str, Any], bool]:
    """Return (the proof results, whether they were kept from `path`).

    They are kept only while the code, Python and the libraries that the kernel rests on are the same ones.
    """
    key = {
        "code": source_hash("theory", "numerics"),
        "python": platform.python_version(),
        **{name: version(name) for name in ("sympy", "mpmath", "python-flint")},
    }
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["key"] == key and known["proofs"]["ok"] is True:
            return known["proofs"], True
    except (OSError, ValueError, KeyError, TypeError):
        pass
    proofs = prove()
    with atomic_write(path) as stream:
        stream.write(json.dumps({"key": key, "proofs": proofs}, indent=2).encode())
    return proofs, False


def print_table(proofs: dict[str, Any], console: Console) -> None:
    """Print each theorem with status, number of steps and axioms, then what the axioms say."""
    table = Table(box=None, expand=True, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("theorem", overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("axioms", ratio=1, overflow="fold")
    for entry in proofs["theorems"]:
        failed = entry.get("error") is not None
        table.add_row(
            Text(entry["key"]),
            Text("FAILS", style="bold red")
            if failed
            else Text(entry["status"], style=STYLE[entry["status"]]),
            str(entry["steps"]),
            Text(", ".join(entry["axioms"]) or "none"),
        )
    console.print(table)
    for name, statement in proofs["axioms"].items():
        console.print(Text(f"axiom {name}: {statement}"))
    for entry in proofs["theorems"]:
        if entry.get("error") is not None:
            console.print(Text(f"{entry['key']} FAILS: {entry['error']}", style="bold red"))
    outcome = "every proof stands" if proofs["ok"] else "a proof FAILS"
    console.print(Text(f"kernel of {proofs['kernel_lines']} lines: {outcome}"))
