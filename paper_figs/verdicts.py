"""Recorded runs held against every theorem: the verdict table of `attnrates check`, as text and as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numerics.errors import InputError
from numerics.steps import RULES
from paper_figs import runs
from paper_figs.wording import counted, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from theory import Verdict
    from theory.assumptions import Check
    from theory.relaxed import Relaxed

HEAD = "run and theorem"
NARROW = 64  # characters: the columns but that of the hypotheses take 56
STATES = ("holds", "fails", "unknown")
RATIO = "observed over bound (bound over observed for a lower bound): at most 1 where the bound holds"
NOT_CLAIMED = "a hypothesis fails or is unknown on this run: the theorem says nothing of it"
SHARED = "claim nothing for one and the same reason; attnrates check --all lists each"
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
    def named(self) -> list[str]:
        """The names in `hypotheses`."""
        checks = self.verdict.hypotheses
        return [name for name, check in checks.items() if check.state != "holds"] or list(checks)

    @property
    def reasons(self) -> list[str]:
        """Why, for each hypothesis that does not hold."""
        checks = self.verdict.hypotheses.items()
        words = {"fails": "fails", "unknown": "is unknown"}
        return [f"{name} {words[c.state]}: {c.detail}" for name, c in checks if c.state != "holds"]

    @property
    def breach(self) -> list[str]:
        """Where the bound is violated most, if it is."""
        verdict = self.verdict
        if verdict.holds is not False or verdict.worst_step is None:
            return []
        at = int((verdict.steps == verdict.worst_step).argmax())
        numbers = f"observed {verdict.observed[at]:.6g}, bound {verdict.bound[at]:.6g}"
        return [f"{verdict.theorem} is VIOLATED, most at step {verdict.worst_step}: {numbers}"]

    @property
    def instead(self) -> list[str]:
        """Where (E) fails, which weaker conditions the run meets from which step on, and which not."""
        return [f"instead, {line}" for line in self.weaker] + [
            f"not even at the last step: {line}" for line in self.unmet
        ]

    @property
    def weaker(self) -> list[str]:
        """Where (E) fails, the weaker conditions that the run meets, with the step from which on."""
        met = [found for found in self._weaker if found.from_step is not None]
        return [f"from step {found.from_step} on: {found.says}" for found in met]

    @property
    def unmet(self) -> list[str]:
        """Where (E) fails, the weaker conditions not found to hold, even at the last step."""
        return [found.says for found in self._weaker if found.from_step is None]

    @property
    def _weaker(self) -> list[Relaxed]:
        equal = self.verdict.hypotheses.get("E")
        return list(self.relaxed.values()) if equal is not None and equal.state == "fails" else []

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


def check_folder(
    folder: Path,
    *,
    refuse: Callable[[InputError], None] | None = None,
    watch: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Hold every run in `folder` against every theorem on runs, except those about another step-size rule.

    `watch` is called with each run's name before it is checked. A run that was altered or cannot be read is
    told to `refuse` and passed over; without `refuse` its InputError is raised. Raises InputError when there
    is no run.
    """
    import theory
    from theory.constants import in_bound
    from theory.observables import constants
    from theory.relaxed import relaxed

    pages = theory.theorems()
    rows = []
    for name, run in runs.each(folder, refuse):
        watch(name)
        try:
            verdicts, instead, known = theory.check_all(run), relaxed(run), constants(run)
        except InputError as error:
            if refuse is None:
                raise
            refuse(InputError(f"{name}: {error}"))
            continue
        for verdict in verdicts:
            if not about_another_rule(verdict.hypotheses):
                own = in_bound(known, pages[verdict.theorem].bound) if verdict.holds is not None else {}
                rows.append(Row(name, verdict, instead, own))
    return rows


def about_another_rule(hypotheses: Mapping[str, Check]) -> bool:
    """Whether the theorem is a corollary for a step-size rule that the run did not use."""
    return any(hypotheses[rule].state == "fails" for rule in RULES if rule in hypotheses)


def violated(rows: Sequence[Row]) -> bool:
    """Whether a bound fails although all its hypotheses hold."""
    return any(row.verdict.holds is False for row in rows)


def summary(rows: Sequence[Row]) -> str:
    """One line that counts the outcomes."""
    count = dict.fromkeys(STYLE, 0)
    for row in rows:
        count[row.outcome] += 1
    return (
        f"{counted(len({row.run for row in rows}), 'run')}: "
        f"{counted(count['holds'], 'bound holds', 'bounds hold')}, "
        f"{count['not claimed']} not claimed, {count['VIOLATED']} violated"
    )


@dataclass(frozen=True)
class Line:
    """A line of a table: one theorem, or all those that claim nothing for one and the same reason."""

    title: str
    hypotheses: str
    ratio: str
    outcome: str


def lines(group: Sequence[Row], *, every: bool) -> list[Line]:
    """The lines for one run's rows; unless `every`, what is not claimed comes last, a line a reason."""
    told: list[Line] = []
    untold: dict[str, list[Line]] = {}
    for row in group:
        ratio = float(row.verdict.worst_ratio)
        shown = "-" if math.isnan(ratio) else f"{ratio:.4g}"
        line = Line(row.verdict.theorem, row.hypotheses, shown, row.outcome)
        if every or row.verdict.holds is not None:
            told.append(line)
        else:
            untold.setdefault(row.hypotheses, []).append(line)
    return told + [
        alike[0] if len(alike) == 1 else replace(alike[0], title=counted(len(alike), "theorem"))
        for alike in untold.values()
    ]


def print_table(rows: Sequence[Row], console: Console, *, every: bool = False) -> None:
    """Print the verdicts, grouped by run, folding long text rather than cutting it; then what the words mean.

    The theorems that claim nothing on a run for the same reason share a line, unless `every` is to have its
    own. On a terminal too narrow for columns each verdict is a line with its hypotheses below.
    """
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.run, []).append(row)
    width = min(28, max(len(HEAD) - 2, *(len(row.verdict.theorem) for row in rows)))
    wide = console.width >= NARROW
    if wide:
        console.print(_table(width, header=True))
    shared = False
    for name, group in grouped.items():
        console.print(Text(printable(name), style="bold"), soft_wrap=True)
        shown = lines(group, every=every)
        shared = shared or len(shown) < len(group)
        if wide:
            console.print(_filled(_table(width), shown))
        else:
            _print_lines(shown, console)
        reasons = [reason for row in group for reason in row.breach]
        reasons += [reason for row in group for reason in row.reasons]
        for reason in dict.fromkeys(reasons + [line for row in group for line in row.instead]):
            console.print(Padding(Text(printable(reason)), (0, 0, 0, 2)))
    print_legend(_words(rows, shared=shared), console)
    console.print(Text("\n" + summary(rows)))


def _words(rows: Sequence[Row], *, shared: bool) -> dict[str, str]:
    """What the words of a table mean."""
    words = {}
    if any(row.verdict.holds is not None for row in rows):
        words["worst ratio"] = RATIO
    if any((row.from_step or 0) > 1 for row in rows):
        words["from step"] = "the first recorded step of which the claim speaks"
    if any(row.verdict.holds is None for row in rows):
        words["not claimed"] = NOT_CLAIMED
    if shared:
        words["... theorems"] = SHARED
    return words | explained((row.verdict.theorem, row.named) for row in rows)


def explained(named: Iterable[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """What the hypotheses of this package's theorems mean, of (theorem, names)."""
    import theory
    from theory.glossary import HYPOTHESES

    ours = theory.theorems()
    names = {name for key, some in named if key in ours for name in some}
    return {key: text for key, text in HYPOTHESES if not names.isdisjoint(key.split(", "))}


def print_legend(words: Mapping[str, str], console: Console) -> None:
    """Print what words mean, a line each or more."""
    if not words:
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(width=min(28, max(map(len, words))) if console.width >= NARROW else 14, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    for word, text in words.items():
        table.add_row(Text(word), Text(text))
    console.print(Text(""))
    console.print(table)


def _filled(table: Table, shown: Sequence[Line]) -> Table:
    for line in shown:
        table.add_row(
            Text("  " + line.title),
            Text(line.hypotheses),
            Text(line.ratio),
            Text(line.outcome, style=STYLE[line.outcome]),
        )
    return table


def _print_lines(shown: Sequence[Line], console: Console) -> None:
    for line in shown:
        text = Text(f"{line.title}: ").append(line.outcome, style=STYLE[line.outcome])
        text.append(f", worst ratio {line.ratio}" if line.ratio != "-" else "")
        console.print(Padding(text, (0, 0, 0, 2)))
        console.print(Padding(Text(line.hypotheses), (0, 0, 0, 4)))


def _table(width: int, *, header: bool = False) -> Table:
    """Return an empty table; all have the same columns, so that they line up below each other."""
    table = Table(box=None, expand=True, show_header=header, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(HEAD, width=width + 2, overflow="fold")
    table.add_column("hypotheses", ratio=1, overflow="fold")
    table.add_column("worst ratio", width=11, justify="right", no_wrap=True)
    table.add_column("verdict", width=11, no_wrap=True)
    return table
