"""`attnrates check --certified`: recorded runs repeated in ball arithmetic, enclosures against enclosures."""

from __future__ import annotations

import sys
from json import dumps
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attnrates._console import _finite, console, print_json
from numerics.certified import FLOAT_ERROR, CertifiedRun
from numerics.errors import CertificationError
from numerics.files import atomic_write
from numerics.run import Run
from numerics.steps import RULES
from paper_figs.runs import MANIFEST, find
from theory.certified_verdict import CertifiedVerdict, decide

if TYPE_CHECKING:
    from pathlib import Path

STYLE = {
    "holds": "green",
    "fails": "bold red",
    "tight": "yellow",
    "undecided": "yellow",
    "not claimed": "dim",
}


def check_certified(folder: Path, *, json: bool) -> int:
    """Print the certified verdicts on every run in `folder`.

    What is found, with the float engine's error in each column, is kept in certified.json: in `folder`, or
    beside it as NAME.certified.json where it is one run's own. Returns 0 only when every run is certified,
    its float history lies within its enclosures plus the stated error, and every claimed bound is proved to
    hold; else 1.
    """
    results = []
    sound = True
    for place in find(folder):
        name = place.relative_to(folder).as_posix() if place != folder else place.absolute().name
        run = Run.load(place)
        try:
            certified, verdicts = decide(run, progress=sys.stderr.isatty())
        except CertificationError as error:
            sound = False
            results.append({"run": name, "certified": False, "reason": str(error)})
            if not json:
                console().print(Text(f"{name}: {error}", style="yellow"), soft_wrap=True)
            continue
        verdicts = [v for v in verdicts if not _about_another_rule(v)]
        outside = certified.outside()
        sound = sound and not outside and all(v.outcome in ("holds", "not claimed") for v in verdicts)
        results.append(_to_dict(name, certified, verdicts, outside))
        if not json:
            _print(name, certified, verdicts, outside)
    _store(folder, results, quiet=json)
    if json:
        print_json(results)
    return int(not sound)


def _store(folder: Path, results: list[dict[str, Any]], *, quiet: bool) -> None:
    """Keep the results; a folder that cannot be written is no reason to lose what was printed."""
    own = (folder / MANIFEST).exists()
    whole = folder.absolute()
    place = whole.with_name(f"{whole.name}.certified.json") if own else folder / "certified.json"
    try:
        with atomic_write(place) as stream:
            stream.write((dumps(_finite(results), indent=2, allow_nan=False) + "\n").encode())
    except OSError as error:
        Console(stderr=True).print(Text(f"not stored: {place}: {error.strerror or error}"), soft_wrap=True)
        return
    if not quiet:
        console().print(Text(f"stored: {place}"), soft_wrap=True)


def _about_another_rule(verdict: CertifiedVerdict) -> bool:
    return any(verdict.hypotheses[rule].state == "fails" for rule in RULES if rule in verdict.hypotheses)


def _to_dict(
    name: str, certified: CertifiedRun, verdicts: list[CertifiedVerdict], outside: list[tuple[str, int]]
) -> dict[str, Any]:
    return {
        "run": name,
        "certified": True,
        "bits": certified.bits,
        "radius": certified.radius,
        "seconds": certified.seconds,
        "float_error": certified.float_error,
        "outside": [{"column": column, "step": step} for column, step in outside],
        "missing": dict(certified.missing),
        "verdicts": [
            {
                "theorem": v.theorem,
                "outcome": v.outcome,
                "worst_step": v.worst[0] if v.worst else None,
                "worst_ratio": list(v.worst[1]) if v.worst else None,
                "rows": len(v.steps),
                "undecided_rows": v.decided.count("undecided"),
                "rows_by_identity": v.identities,
                "open_width": v.open_width,
                "hypotheses": {key: check.state for key, check in v.hypotheses.items()},
            }
            for v in verdicts
        ],
    }


def _print(
    name: str, certified: CertifiedRun, verdicts: list[CertifiedVerdict], outside: list[tuple[str, int]]
) -> None:
    out = console()
    out.print(Text(name, style="bold"), soft_wrap=True)
    column, error = max(certified.float_error.items(), key=lambda pair: pair[1])
    out.print(
        f"  {certified.bits} bits, radii below {certified.radius:.1e}, {certified.seconds:.1f} s; "
        f"largest error of the float run {error:.1e} ({column})",
        soft_wrap=True,
    )
    if outside:
        first, step = outside[0]
        text = (
            f"  {len(outside)} recorded numbers are off by more than {FLOAT_ERROR:g}, first {first} at {step}"
        )
        out.print(Text(text, style="bold red"), soft_wrap=True)
    for reason in dict.fromkeys(certified.missing.values()):
        out.print(f"  no {', '.join(certified.missing)}: {reason}", soft_wrap=True)
    table = Table(box=None, show_header=True, padding=(0, 2, 0, 0), pad_edge=False)
    for header in ("  theorem", "worst ratio", "open rows", "verdict"):
        table.add_column(header, overflow="fold")
    for v in verdicts:
        worst = "-" if v.worst is None else f"{sum(v.worst[1]) / 2:.6g}"
        missing = " ".join(key for key, check in v.hypotheses.items() if check.state != "holds")
        table.add_row(
            "  " + v.theorem,
            worst,
            str(v.decided.count("undecided")) if v.steps.size else "-",
            Text(v.outcome + (f" ({missing})" if missing else ""), style=STYLE[v.outcome]),
        )
    out.print(table)
