"""`attnrates verify`: every theorem through the kernel."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from attnrates._console import console, print_json
from paper_figs.progress import phase
from paper_figs.proofs import print_table, prove
from theory.closeness import search_all
from theory.macros import macros
from theory.own import load

if TYPE_CHECKING:
    from pathlib import Path


def verify(*, json: bool, search: bool, latex: bool, falsify: bool = False, own: Path | None = None) -> int:
    """Prove everything, or a file of one's own, and print the outcome; 0 when every proof stands, else 1.

    With ``falsify`` a counterexample is hunted to every page whose statement has not been searched yet: to
    find one counts as a failing proof.
    """
    broken = _falsify() if falsify else {}
    theory = load(own) if own else None
    pages = theory.pages if theory else None
    proofs = prove(console(stderr=True), search=search, pages=pages, words=theory.words if theory else None)
    if latex:
        statuses = {entry["key"]: entry["status"] for entry in proofs["theorems"]}
        print(macros(statuses, {page.key: page for page in pages} if pages else None), end="")
    elif json:
        print_json(proofs)
    else:
        print_table(proofs, console())
    for key, counterexample in broken.items():
        print(f"{key} is REFUTED: {counterexample}", file=sys.stderr)
    return int(bool(broken) or not proofs["ok"])


def _falsify() -> dict[str, str]:
    with phase("falsifying", console(stderr=True)) as step:
        return search_all(progress=step)
