"""`attnrates report`: one HTML file that holds everything."""

from __future__ import annotations

import tempfile
from pathlib import Path

from attnrates._console import console
from numerics.errors import InputError
from paper_figs import reproduce, runs
from paper_figs.proofs import prove
from paper_figs.verdicts import violated


def report(*, out: Path, source: Path | None, quick: bool) -> int:
    """Write the report on the runs and figures in `source`, or on the standard ones; 1 on a failure."""
    runs.writable(out.parent)
    if out.is_dir():
        raise InputError(f"{out}: is a folder; --out names the HTML file")
    if out.exists() and not out.is_file():
        raise InputError(f"{out}: is not a regular file; not replaced")
    err = console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="attnrates-") as temporary:
        if source is None:
            source = Path(temporary)
            reproduce.train(source / "runs", quick=quick, console=err, err=err)
            reproduce.draw(source, quick=quick, console=err, err=err)
        rows = reproduce.check(source, err)
        proofs = prove(err)
        out.parent.mkdir(parents=True, exist_ok=True)
        reproduce.write(out, proofs, rows, sorted(source.rglob("*.png")), err)
    print(out)
    return int(violated(rows) or not proofs["ok"])
