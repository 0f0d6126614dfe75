"""`attnrates check --certified`: recorded runs repeated in ball arithmetic, enclosures against enclosures."""

from __future__ import annotations

import sys
from collections import Counter
from json import dumps
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnrates._check import raise_refused
from attnrates._console import _finite, console, print_json
from numerics.certified import FLOAT_ERROR, CertifiedRun
from numerics.errors import CertificationError, InputError
from numerics.files import atomic_write
from numerics.steps import RULES, TorchOptimizer
from paper_figs import runs
from paper_figs.runs import MANIFEST
from paper_figs.verdicts import NOT_CLAIMED, RATIO, SHARED, about_another_rule, explained, print_legend
from paper_figs.wording import counted, printable
from theory.certified_verdict import CertifiedVerdict, decide

if TYPE_CHECKING:
    from pathlib import Path

    from numerics.run import Run

NARROW = 80  # characters, below which a verdict is a line and no row of a table
UNDECIDED = "recorded steps at which the enclosures prove neither that the bound holds nor that it fails"
WORDS = {
    "tight": "no step disproves it, and both sides agree to 1e-15 where undecided: which is larger is open",
    "undecided": "no step disproves it; enclosures are too wide at the undecided ones",
    "not claimed": NOT_CLAIMED,
}
STATES = {"fails": "fails", "unknown": "is unknown"}
STYLE = {
    "holds": "green",
    "fails": "bold red",
    "tight": "yellow",
    "undecided": "yellow",
    "not claimed": "dim",
}


def check_certified(folder: Path, *, json: bool, every: bool = False) -> int:
    """Print the certified verdicts on every run in `folder`.

    A run to which the certified engine does not apply is skipped, with the reason. What is found, with the
    float engine's error in each column, is kept in certified.json: in `folder`, or beside it as
    NAME.certified.json where it is one run's own. Returns 0 only when every run but the skipped ones is
    certified, its float history lies within its enclosures plus the stated error, and every claimed bound is
    proved to hold; else 1.

    Raises:
        InputError: no run can be certified; or some cannot be read, that once the others are printed, and
            then nothing is stored.
    """
    refused: list[InputError] = []
    results: list[dict[str, Any]] = []
    told: list[CertifiedVerdict] = []
    skipped: dict[str, str] = {}
    sound, shared, open_runs = True, False, 0
    for name, run in runs.each(folder, refused.append):
        if reason := _beyond(run):
            skipped[name] = reason
            continue
        try:
            certified, verdicts = decide(run, progress=sys.stderr.isatty())
        except InputError as error:  # the run is too large
            skipped[name] = str(error)
            continue
        except CertificationError as error:
            sound, open_runs = False, open_runs + 1
            results.append({"run": name, "certified": False, "skipped": False, "reason": str(error)})
            if not json:
                console().print(Text(printable(f"{name}: {error}"), style="yellow"), soft_wrap=True)
            continue
        verdicts = [v for v in verdicts if not about_another_rule(v.hypotheses)]
        outside = certified.outside()
        sound = sound and not outside and all(v.outcome in ("holds", "not claimed") for v in verdicts)
        results.append(_to_dict(name, certified, verdicts, outside))
        told += verdicts
        if not json:
            shared = _print(name, certified, verdicts, outside, every=every) or shared
    if not results and skipped:
        _raise_skipped(folder, skipped, refused)
    results += [
        {"run": name, "certified": False, "skipped": True, "reason": r} for name, r in skipped.items()
    ]
    if json and results:
        print_json(results)
    elif results:
        _print_end(told, skipped, shared=shared, checked=len(results) - len(skipped), open_runs=open_runs)
    if not refused:
        _store(folder, results, quiet=json)
    raise_refused(refused, len(results))
    return int(not sound)


def _beyond(run: Run) -> str | None:
    """Why the certified engine does not apply to a run, None where it does."""
    if run.joint is not None:
        return "its decoder was trained too; only runs with a fixed decoder are repeated in ball arithmetic"
    if isinstance(run.rule, TorchOptimizer):
        rules = ", ".join(RULES)
        return f"made by torch's {run.rule.optimizer}; only runs of {rules} are repeated in ball arithmetic"
    return None


def _raise_skipped(folder: Path, skipped: dict[str, str], refused: list[InputError]) -> NoReturn:
    """There is nothing to certify: say so in one line."""
    name, reason = next(iter(skipped.items()))
    if len(skipped) == 1 and not refused:
        raise InputError(f"{name}: {reason}")
    unread = f"; besides, {counted(len(refused), 'run')} cannot be read: {refused[0]}" if refused else ""
    raise InputError(
        f"{folder}: no run in it can be certified, {len(skipped)} skipped, the first {name}: {reason}{unread}"
    )


def _store(folder: Path, results: list[dict[str, Any]], *, quiet: bool) -> None:
    """Keep the results; a folder that cannot be written is no reason to lose what was printed."""
    own = (folder / MANIFEST).exists()
    whole = folder.absolute()
    place = whole.with_name(f"{whole.name}.certified.json") if own else folder / "certified.json"
    try:
        with atomic_write(place) as stream:
            stream.write((dumps(_finite(results), indent=2, allow_nan=False) + "\n").encode())
    except OSError as error:
        line = printable(f"not stored: {place}: {error.strerror or error}")
        Console(stderr=True).print(Text(line), soft_wrap=True)
        return
    if not quiet:
        console().print(Text(printable(f"stored: {place}")), soft_wrap=True)


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
    name: str,
    certified: CertifiedRun,
    verdicts: list[CertifiedVerdict],
    outside: list[tuple[str, int]],
    *,
    every: bool,
) -> bool:
    """Print one run's verdicts; whether theorems share lines."""
    out = console()
    out.print(Text(printable(name), style="bold"), soft_wrap=True)
    column, error = max(certified.float_error.items(), key=lambda pair: pair[1])
    out.print(
        Text(
            f"  {certified.bits} bits, radii below {certified.radius:.1e}, {certified.seconds:.1f} s; "
            f"largest error of the float run {error:.1e} ({column})"
        ),
        soft_wrap=True,
    )
    if outside:
        first, step = outside[0]
        numbers = counted(len(outside), "recorded number is", "recorded numbers are")
        text = f"  {numbers} off by more than {FLOAT_ERROR:g}, first {first} at step {step}"
        out.print(Text(text, style="bold red"), soft_wrap=True)
    for reason in dict.fromkeys(certified.missing.values()):
        out.print(f"  no {', '.join(certified.missing)}: {reason}", soft_wrap=True)
    rows = _rows(verdicts, every=every)
    if out.width < NARROW:
        for title, worst, undecided, outcome, text in rows:
            line = Text(f"{title}: ").append(text, style=STYLE[outcome])
            line.append("" if worst == "-" else f", worst ratio {worst}, undecided steps {undecided}")
            out.print(Padding(line, (0, 0, 0, 2)))
    else:
        table = Table(box=None, show_header=True, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column("  theorem", min_width=2 + max(len(row[0]) for row in rows))
        for header in ("worst ratio", "undecided steps", "verdict"):
            table.add_column(header, min_width=len("not claimed"), overflow="fold")
        for title, worst, undecided, outcome, text in rows:
            table.add_row("  " + title, worst, undecided, Text(text, style=STYLE[outcome]))
        out.print(table)
    checks = {key: check for v in verdicts for key, check in v.hypotheses.items() if check.state != "holds"}
    for key, check in checks.items():
        out.print(Padding(Text(printable(f"{key} {STATES[check.state]}: {check.detail}")), (0, 0, 0, 2)))
    return len(rows) < len(verdicts)


def _rows(verdicts: list[CertifiedVerdict], *, every: bool) -> list[tuple[str, str, str, str, str]]:
    """(theorem, worst ratio, undecided steps, outcome, outcome with reason); those not claimed come last.

    The theorems that are not claimed for the same reason share a row, unless `every`.
    """
    told: list[tuple[str, str, str, str, str]] = []
    untold: dict[str, list[str]] = {}
    for v in verdicts:
        missing = " ".join(_missing(v))
        text = v.outcome + (f" ({missing})" if missing else "")
        if v.outcome == "not claimed" and not every:
            untold.setdefault(text, []).append(v.theorem)
            continue
        worst = "-" if v.worst is None else f"{sum(v.worst[1]) / 2:.6g}"
        undecided = f"{v.decided.count('undecided')} of {len(v.steps)}" if v.steps.size else "-"
        told.append((v.theorem, worst, undecided, v.outcome, text))
    for text, keys in untold.items():
        title = keys[0] if len(keys) == 1 else counted(len(keys), "theorem")
        told.append((title, "-", "-", "not claimed", text))
    return told


def _missing(verdict: CertifiedVerdict) -> list[str]:
    """The hypotheses that do not hold."""
    return [name for name, check in verdict.hypotheses.items() if check.state != "holds"]


def _print_end(
    verdicts: list[CertifiedVerdict], skipped: dict[str, str], *, shared: bool, checked: int, open_runs: int
) -> None:
    """Print what the words mean, which runs were skipped and why, and one line that counts."""
    out = console()
    outcomes: Counter[str] = Counter(v.outcome for v in verdicts)
    words = {key: text for key, text in WORDS.items() if outcomes[key]}
    if any(v.steps.size for v in verdicts):
        words = {"worst ratio": RATIO, "undecided steps": UNDECIDED} | words
    if shared:
        words["... theorems"] = SHARED
    print_legend(words | explained((v.theorem, _missing(v)) for v in verdicts), out)
    out.print(Text(""))
    for name, reason in skipped.items():
        out.print(Text(printable(f"skipped {name}: {reason}"), style="yellow"), soft_wrap=True)
    line = (
        f"{counted(checked, 'run')}: {counted(outcomes['holds'], 'bound')} proved to hold, "
        f"{outcomes['not claimed']} not claimed, {outcomes['tight'] + outcomes['undecided']} left open, "
        f"{outcomes['fails']} violated"
    )
    line += f"; {counted(open_runs, 'run')} not certified" if open_runs else ""
    line += f"; {counted(len(skipped), 'run')} skipped" if skipped else ""
    out.print(Text(line))
