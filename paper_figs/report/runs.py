"""The runs: for each, the bounds that hold or are violated, and why the others are not claimed; tightness."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from paper_figs.report import markup
from paper_figs.wording import printable
from theory.tightness_table import tabulate

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from paper_figs.verdicts import Row


def verdicts(rows: Sequence[Row], shown: Container[str]) -> str:
    """Give a section for each run; `shown` are the pages that may be linked."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.run, []).append(row)
    sections = [_run(name, group, shown) for name, group in grouped.items()]
    return (
        "<p>The worst ratio is the largest over the run of observed to bound (bound to observed for lower "
        "bounds): at most 1 where the bound holds. A bound is not claimed where a hypothesis fails on the "
        f"data, or cannot be decided.</p>{''.join(sections)}"
    )


def _run(name: str, rows: Sequence[Row], shown: Container[str]) -> str:
    count = {word: sum(row.outcome == word for row in rows) for word in ("holds", "not claimed", "VIOLATED")}
    summary = ", ".join(f"{number} {word}" for word, number in count.items() if number)
    claimed = [row for row in rows if row.verdict.holds is not None]
    lines = []
    for row in sorted(claimed, key=lambda row: -float(row.verdict.worst_ratio)):
        ratio, step = float(row.verdict.worst_ratio), row.verdict.worst_step
        lines.append(
            f"<tr><td>{markup.anchor(row.verdict.theorem, shown)}</td>"
            f'<td class="number">{f"{ratio:.4g}" if math.isfinite(ratio) else "–"}</td>'
            f'<td class="number">{"–" if step is None else int(step)}</td>'
            f"{markup.toned(row.outcome, 'td')}</tr>"
        )
    table = markup.table(["theorem", "worst ratio", "at step", "verdict"], lines) if lines else ""
    why: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict.holds is None:
            why.setdefault("; ".join(row.reasons), []).append(row.verdict.theorem)
    reasons = "".join(
        f"<li>{escape(reason)}: {', '.join(markup.anchor(key, shown) for key in keys)}</li>"
        for reason, keys in why.items()
    )
    missing = f"<p>Not claimed:</p><ul>{reasons}</ul>" if reasons else ""
    weaker = _listed("Weaker conditions than (E) that hold instead", (x for row in rows for x in row.weaker))
    unmet = _listed(
        "Weaker conditions than (E) not found to hold, even at the last step",
        (x for row in rows for x in row.unmet),
    )
    return markup.fold(
        f"<strong>{escape(printable(name))}</strong>: {summary}", table + missing + weaker + unmet
    )


def _listed(title: str, lines: Iterable[str]) -> str:
    """Give a heading and each line once; nothing where there are none."""
    items = "".join(f"<li>{escape(line)}</li>" for line in dict.fromkeys(lines))
    return f"<p>{title}:</p><ul>{items}</ul>" if items else ""


def tightness_table(rows: Sequence[Row]) -> str:
    """Tabulate observed/bound by theorem and decade of t, over the runs of the verdicts."""
    lines = [
        markup.row(
            [
                row.theorem,
                f"{10.0**row.decade:g}",
                f"{row.median:.4g}",
                f"{row.worst:.4g}",
                str(row.steps),
                str(row.runs),
            ]
        )
        for row in tabulate(row.verdict for row in rows)
    ]
    if not lines:
        return "<p>No bound is claimed on these runs.</p>"
    return (
        "<p>Observed over bound (bound over observed for lower bounds) at the recorded steps of all runs, by "
        "decade of t; steps at which a side has left the range of floating point are left out.</p>"
        + markup.fold(
            f"{len(lines)} rows",
            markup.table(["theorem", "t from", "median", "worst", "steps", "runs"], lines),
        )
    )
