"""`attnrates verify`: every theorem through the kernel."""

from __future__ import annotations

from attnrates._console import console, print_json
from paper_figs.proofs import print_table, prove
from theory.latex import macros


def verify(*, json: bool, search: bool, latex: bool) -> int:
    """Prove everything and print the outcome; return 0 when every proof stands, else 1."""
    proofs = prove(console(stderr=True), search=search)
    if latex:
        print(macros({entry["key"]: entry["status"] for entry in proofs["theorems"]}), end="")
    elif json:
        print_json(proofs)
    else:
        print_table(proofs, console())
    return int(not proofs["ok"])
