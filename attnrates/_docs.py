"""`attnrates docs`: a documentation page for every theorem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnrates._console import console
from paper_figs import runs
from paper_figs.proofs import prove
from paper_figs.report import pages

if TYPE_CHECKING:
    from pathlib import Path


def docs(out: Path) -> int:
    """Prove everything, write the pages into `out`, print the index; 0 when every proof stands, else 1."""
    runs.writable(out)
    proofs = prove(console(stderr=True))
    print(pages.write(out, proofs)[0])
    return int(not proofs["ok"])
