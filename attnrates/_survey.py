"""`attnrates survey`: how often the assumptions hold and runs reach W_mm, on a grid of Gaussian problems."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from rich.text import Text

from attnrates._console import console, print_json
from numerics.errors import InputError
from numerics.survey import CONFIDENCE, SHARES, STARTS, Cell, Tally, survey
from paper_figs import runs
from paper_figs.verdicts import print_legend
from paper_figs.wording import counted
from theory import gaussian as theorem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CELL = ("n", "T", "d", "sigma")
COLUMNS = {
    "(S), (N), (F)": "share of the problems that are separable, separable and near-acute, of full support",
    "interval, proved": "exact 99% interval for the probability of (S) and (N); what the theorem guarantees",
    "random, opposite, decoy": "share of the problems whose run from there reaches W_mm: from Gaussian "
    "entries, from -W_mm, from all attention on wrong tokens",
    "undecided": "runs, of all starts, that are neither at W_mm nor stuck at wrong tokens yet",
}
Number = TypeVar("Number", int, float)


def command(
    *,
    n: str,
    tokens: str,
    d: str,
    sigma: str,
    signal: float,
    query: str,
    problems: int,
    steps: int,
    seed: int,
    out: Path | None,
    json: bool,
) -> int:
    """Survey the grid and print a row a cell; return 1 when the theorem is contradicted anywhere."""
    cells = [
        Cell(
            n=size,
            T=T,
            d=dimension,
            signal=signal,
            noise=noise,
            query=query,
            problems=problems,
            steps=steps,
            seed=seed,
        )
        for size, T, noise, dimension in product(
            _numbers("--n", n, int),
            _numbers("--tokens", tokens, int),
            _numbers("--sigma", sigma, float),
            _numbers("--d", d, int),
        )
    ]
    claims = [_claim(cell) for cell in cells]
    if out is not None:
        runs.writable(out.parent)
    found = survey(cells, out, progress=console(stderr=True).is_terminal)
    rows = [_row(tally, claim) for tally, claim in zip(found, claims, strict=True)]
    if json:
        print_json(rows)
    else:
        _print(rows)
    return int(any(row["contradicted"] for row in rows))


def _numbers(name: str, text: str, kind: Callable[[str], Number]) -> list[Number]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f'{name} takes numbers separated by commas, not "{text}"') from None


def _claim(cell: Cell) -> float:
    """The theorem's probability of (S) and (N); 0 where it says nothing (it needs two sequences)."""
    if cell.n < 2:
        return 0.0
    scale: dict[str, Any] = {"signal": cell.signal, "noise": cell.noise, "query": cell.query}
    return theorem.probability(cell.n, cell.T, cell.d, **scale)


def _row(tally: Tally, claim: float) -> dict[str, Any]:
    row = tally.to_dict() | {"claimed": claim, "confidence": CONFIDENCE}
    row["intervals"] = {name: tally.interval(name) for name in SHARES}
    row["contradicted"] = row["intervals"]["near_acute"][1] < claim
    return row


def _print(rows: list[dict[str, Any]]) -> None:
    heads = [*CELL, "(S)", "(N)", "interval", "proved", "(F)", *STARTS, "undecided"]
    lines = [heads]
    for row in rows:
        share = {name: f"{row[name] / row['problems']:.2f}" for name in SHARES}
        low, high = row["intervals"]["near_acute"]
        lines.append(
            [
                *(str(row["n"]), str(row["T"]), str(row["d"]), f"{row['noise']:g}"),
                *(share["separable"], share["near_acute"], f"{low:.2f}-{high:.2f}", f"{row['claimed']:.2f}"),
                *(share["full_support"], *(share[name] for name in STARTS), str(row["undecided"])),
            ]
        )
    out = console()
    for part in _fitting(lines, out.width if out.is_terminal else None):
        print(part)
    stuck, wrong, pairs = (sum(row[name] for row in rows) for name in ("stuck", "wrong", "wrong_in_pair"))
    widest = max(high - low for row in rows for low, high in row["intervals"].values())
    notes = [
        f"shares in floats, each to within an exact {CONFIDENCE:.0%} interval of width at most {widest:.2f}"
    ]
    if stuck:
        notes.append(
            f"{counted(stuck, 'run')} from random starts, on problems with (S), stuck at the max-margin "
            "solution of the sequences that are right; "
            f"{counted(wrong, 'sequence attends', 'sequences attend')} to a wrong token, {pairs} of them in "
            "a pair that breaks (N) with one that is right"
        )
    late = sum(row["acute_unreached"] for row in rows)
    if late:
        notes.append(f"{counted(late, 'run')} on problems with (N) not yet at W_mm")
    for note in notes:
        out.print(Text(note), soft_wrap=not out.is_terminal)
    print_legend(COLUMNS, out)
    for row in rows:
        if row["contradicted"]:
            print(f"CONTRADICTED: n={row['n']} T={row['T']} d={row['d']}: proved {row['claimed']:.4f}")


def _fitting(lines: list[list[str]], width: int | None) -> Iterator[str]:
    """The table in lines of at most `width` characters, if need be in parts that all name the cell."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cell, rest = list(range(len(CELL))), list(range(len(CELL), len(widths)))
    while rest:
        taken = [*cell, rest.pop(0)]
        while rest and (width is None or sum(widths[k] + 2 for k in [*taken, rest[0]]) - 2 <= width):
            taken.append(rest.pop(0))
        for line in lines:
            yield "  ".join(line[k].rjust(widths[k]) for k in taken)
