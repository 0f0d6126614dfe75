"""Recorded runs held against every theorem: the verdict table of `attnrates check`, as text and as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numerics.steps import RULES
from paper_figs import runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from theory import Verdict
    from theory.relaxed import Relaxed

NARROW = 64  # characters: the columns but that of the hypotheses take 56
STATES = ("holds", "fails", "unknown")
STYLE = {"holds": "green", "not claimed": "yellow", "VIOLATED": "bold red"}


@dataclass(frozen=True)
class Row:
    """One theorem held against one run, which goes by its folder's name; constants are those of its bound."""

    run: str
    verdict: Verdict
    relaxed: Mapping[str, Relaxed] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)

    @property
    def from_step(self) -> int | None:
        """The first recorded step of which the claim speaks; None where nothing is claimed."""
        steps = self.verdict.steps
        return int(steps[0]) if self.verdict.holds is not None and len(steps) else None

    @property
    def outcome(self) -> str:
        """`holds`, `VIOLATED`, or `not claimed` when a hypothesis fails or cannot be checked."""
        return {True: "holds", False: "VIOLATED", None: "not claimed"}[self.verdict.holds]

    @property
    def hypotheses(self) -> str:
        """In short: the hypotheses that do not hold, or else those that do."""
        checks = self.verdict.hypotheses
        groups = {state: [name for name, check in checks.items() if check.state == state] for state in STATES}
        missing = [f"{state}: {' '.join(groups[state])}" for state in ("fails", "unknown") if groups[state]]
        late = f"; from step {self.from_step}" if (self.from_step or 0) > 1 else ""
        return "; ".join(missing) or ("met: " + " ".join(checks) if checks else "needs none") + late

    @property
    def reasons(self) -> list[str]:
        """Why, for each hypothesis that does not hold."""
        checks = self.verdict.hypotheses.items()
        words = {"fails": "fails", "unknown": "is unknown"}
        return [f"{name} {words[c.state]}: {c.detail}" for name, c in checks if c.state != "holds"]

    @property
    def instead(self) -> list[str]:
        """Where (E) fails, which weaker conditions the run meets, and from which step on."""
        equal = self.verdict.hypotheses.get("E")
        if equal is None or equal.state != "fails":
            return []
        said = [(found.from_step, found.says) for found in self.relaxed.values()]
        met = [f"instead, from step {step} on: {says}" for step, says in said if step is not None]
        return met + [f"not even at the last step: {says}" for step, says in said if step is None]

    def to_dict(self) -> dict[str, Any]:
        """The row of `attnrates check --json`; holds is true, false or null (not claimed)."""
        verdict = self.verdict
        ratio = float(verdict.worst_ratio)
        return {
            "run": self.run,
            "theorem": verdict.theorem,
            "holds": verdict.holds,
            "worst_ratio": ratio if math.isfinite(ratio) else None,
            "worst_step": None if verdict.worst_step is None else int(verdict.worst_step),
            "hypotheses": {name: check.state for name, check in verdict.hypotheses.items()},
            "details": {name: check.detail for name, check in verdict.hypotheses.items()},
            "from_step": self.from_step,
            "relaxed": {name: found.from_step for name, found in self.relaxed.items()},
        }


def check_folder(folder: Path) -> list[Row]:
    """Hold every run in `folder` against every theorem on runs, except those about another step-size rule.

    Raises InputError when there is no run, or one that was altered or cannot be read.
    """
    import theory
    from numerics.run import Run
    from theory.constants import in_bound
    from theory.observables import constants
    from theory.relaxed import relaxed

    pages = theory.theorems()
    rows = []
    for place in runs.find(folder):
        name = place.relative_to(folder).as_posix() if place != folder else place.absolute().name
        run = Run.load(place)
        verdicts, instead = theory.check_all(run), relaxed(run)
        known = constants(run)
        for verdict in verdicts:
            if not _about_another_rule(verdict):
                own = in_bound(known, pages[verdict.theorem].bound) if verdict.holds is not None else {}
                rows.append(Row(name, verdict, instead, own))
    return rows


def _about_another_rule(verdict: Verdict) -> bool:
    """Whether the theorem is a corollary for a step-size rule that the run did not use."""
    return any(verdict.hypotheses[rule].state == "fails" for rule in RULES if rule in verdict.hypotheses)


def violated(rows: Sequence[Row]) -> bool:
    """Whether a bound fails although all its hypotheses hold."""
    return any(row.verdict.holds is False for row in rows)


def summary(rows: Sequence[Row]) -> str:
    """One line that counts the outcomes."""
    count = dict.fromkeys(STYLE, 0)
    for row in rows:
        count[row.outcome] += 1
    return (
        f"{len({row.run for row in rows})} runs: {count['holds']} bounds hold, "
        f"{count['not claimed']} not claimed, {count['VIOLATED']} violated"
    )


def print_table(rows: Sequence[Row], console: Console) -> None:
    """Print the verdicts, grouped by run, folding long text rather than cutting it.

    On a terminal too narrow for columns each verdict is a line with its hypotheses below.
    """
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.run, []).append(row)
    width = min(28, max(len(row.verdict.theorem) for row in rows))
    wide = console.width >= NARROW
    if wide:
        console.print(_table(width, header=True))
    for name, group in grouped.items():
        console.print(Text(name, style="bold"), soft_wrap=True)
        if wide:
            console.print(_filled(_table(width), group))
        else:
            _print_lines(group, console)
        reasons = [reason for row in group for reason in row.reasons]
        for reason in dict.fromkeys(reasons + [line for row in group for line in row.instead]):
            console.print(Padding(Text(reason), (0, 0, 0, 2)))
    console.print(Text(summary(rows)))


def _filled(table: Table, group: Sequence[Row]) -> Table:
    for row in group:
        ratio = float(row.verdict.worst_ratio)
        table.add_row(
            Text("  " + row.verdict.theorem),
            Text(row.hypotheses),
            Text(f"{ratio:.4g}" if math.isfinite(ratio) else "-"),
            Text(row.outcome, style=STYLE[row.outcome]),
        )
    return table


def _print_lines(group: Sequence[Row], console: Console) -> None:
    for row in group:
        ratio = float(row.verdict.worst_ratio)
        text = Text(f"{row.verdict.theorem}: ").append(row.outcome, style=STYLE[row.outcome])
        text.append(f", worst ratio {ratio:.4g}" if math.isfinite(ratio) else "")
        console.print(Padding(text, (0, 0, 0, 2)))
        console.print(Padding(Text(row.hypotheses), (0, 0, 0, 4)))


def _table(width: int, *, header: bool = False) -> Table:
    """Return an empty table; all have the same columns, so that they line up below each other."""
    table = Table(box=None, expand=True, show_header=header, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("run and theorem", width=width + 2, overflow="fold")
    table.add_column("hypotheses", ratio=1, overflow="fold")
    table.add_column("worst ratio", width=11, justify="right", no_wrap=True)
    table.add_column("verdict", width=11, no_wrap=True)
    return table
