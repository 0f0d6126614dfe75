"""`attnrates verify`: every theorem through the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnrates._console import console, print_json
from paper_figs.proofs import print_table, prove
from theory.latex import macros
from theory.own import load

if TYPE_CHECKING:
    from pathlib import Path


def verify(*, json: bool, search: bool, latex: bool, own: Path | None = None) -> int:
    """Prove everything, or a file of one's own, and print the outcome; 0 when every proof stands, else 1."""
    pages = load(own).pages if own else None
    proofs = prove(console(stderr=True), search=search, pages=pages)
    if latex:
        statuses = {entry["key"]: entry["status"] for entry in proofs["theorems"]}
        print(macros(statuses, {page.key: page for page in pages} if pages else None), end="")
    elif json:
        print_json(proofs)
    else:
        print_table(proofs, console())
    return int(not proofs["ok"])
