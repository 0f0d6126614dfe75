"""Corrupt every number, operator, exponent, symbol and function of the theory: ``make mutate``.

One at a time, in two ways:

* *in the source* (``tests.theory.mutate_source``): one literal, operator, comparison, symbol or function of
  ``theory/notation.py``, ``theory/lemmas`` and ``theory/theorems``, where claim and proof share their
  builders. What depends on it is executed and proved anew, with the search for multipliers. Killed: a page
  does not verify. Harmless: every statement is as before, or weaker. Survivor: all proofs pass and some
  statement is stronger.
* *in a claim* (``tests.theory.mutate_claims``): one node of the formula that a page proves. Verification must
  refuse it, and the falsifier looks for a model that refutes it: where it finds none, the corrupted claim is
  either true (a sharper theorem, not proved) or the search is too weak.

Results are written as they come (``--results``). Each is stored with a digest of the code that decided it, so
that the next run tries only what has changed since, and an interrupted run goes on where it stopped.

Exit code 1 when a strengthening corruption survives, 130 when interrupted.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import hashlib
import json
import multiprocessing
import os
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.theory import mutate_claims, mutate_source, mutate_strength
from tests.theory.dependencies import code_digest
from tests.theory.mutate_claims import PageOutcome, judge_page
from tests.theory.mutate_source import Outcome, SourceMutant, modules, source_mutants, try_source
from theory import catalog, falsify, model, small_problem

LOG_WIDTH = 120  # of tables where there is no terminal
EVERY = 20  # seconds between lines of progress where there is no terminal
MODELS = (mutate_claims, falsify, model, small_problem)  # what finds models of a page
Result = PageOutcome | Outcome


# --- the store ---------------------------------------------------------------------------------------------


@functools.cache
def _code_of(*judges: types.ModuleType) -> str:
    """A digest of the code that makes and judges mutants."""
    files = [Path(m.__file__ or "").read_text(encoding="utf-8") for m in judges]
    return _digest(*(code_digest(ast.parse(text)) for text in files))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass
class Store:
    """Outcomes in a file of JSON lines, each with the digest of what it rests on.

    Killed mutants rest on the page that fails, others on every page that the change reaches; a page's claim
    mutants on its statement and on the falsifier.
    """

    path: Path
    known: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Store:
        """What is there; a line that a crash cut short is passed over."""
        store = cls(path)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            try:
                row = json.loads(line)
                store.known[row["key"]] = row
            except (ValueError, TypeError, KeyError):
                continue
        return store

    def tidy(self, keys: Iterable[str]) -> None:
        """Write the file anew with these keys only."""
        kept = set(keys)
        self.known = {key: row for key, row in self.known.items() if key in kept}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text("".join(json.dumps(row) + "\n" for row in self.known.values()), encoding="utf-8")
        os.replace(partial, self.path)

    def put(self, key: str, basis: str, outcome: dict[str, Any]) -> None:
        """Keep an outcome."""
        row = {"key": key, "basis": basis, **outcome}
        self.known[key] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    # what is stored of source mutants and of pages

    def source(self, mutant: SourceMutant) -> Outcome | None:
        """The fate of this mutant, if it is known and rests on code that is as it was."""
        row = self.known.get(mutant.key)
        if row is None or row["basis"] != _source_basis(mutant, row["fate"], row["detail"]):
            return None
        return Outcome(mutant, row["fate"], row["how"], row["detail"])

    def page(self, key: str, tries: int) -> PageOutcome | None:
        """How a page's claim mutants fared, if nothing has changed since."""
        row = self.known.get(f"claim:{key}")
        if row is None or row["basis"] != _page_basis(key, tries):
            return None
        return PageOutcome(
            key, row["file"], row["models"], row["counts"], tuple(row["unrefuted"]), tuple(row["accepted"])
        )

    def keep(self, result: Result, tries: int) -> None:
        """Store a result."""
        if isinstance(result, PageOutcome):
            row = dataclasses.asdict(result)
            row.pop("key")
            self.put(f"claim:{result.key}", _page_basis(result.key, tries), row)
        else:
            basis = _source_basis(result.mutant, result.fate, result.detail)
            fate = {"fate": result.fate, "how": result.how, "detail": result.detail}
            self.put(result.mutant.key, basis, {"where": str(result.mutant), **fate})


def _source_basis(mutant: SourceMutant, fate: str, detail: str) -> str:
    judges = (mutate_source, *(() if fate in ("killed", "equivalent") else (mutate_strength, *MODELS)))
    return _digest(_code_of(*judges), mutate_source.basis(mutant, fate, detail))


def _page_basis(key: str, tries: int) -> str:
    return _digest(_code_of(*MODELS), tries, mutate_strength.said(catalog.theorems()[key]))


# --- the run -----------------------------------------------------------------------------------------------


class _Progress:
    """A bar on a terminal; elsewhere a line every so often."""

    def __init__(self, total: int, echo: Callable[[str], None] | None = None) -> None:
        self.total, self.done, self.survivors = total, 0, 0
        self.begin = self.last = time.monotonic()
        self.echo = echo or functools.partial(print, flush=True)
        self.bar: Any = None

    def __enter__(self) -> _Progress:
        if sys.stdout.isatty():
            from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

            self.bar = Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
            self.bar.start()
            self.bar.add_task("mutants", total=self.total)
        else:
            self.line()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        else:
            self.line()

    def step(self, survivors: int) -> None:
        """One more result."""
        self.done += 1
        self.survivors += survivors
        if self.bar is not None:
            self.bar.update(0, advance=1)
        elif time.monotonic() - self.last > EVERY:
            self.line()

    def line(self) -> None:
        """Say where the run stands."""
        self.last = time.monotonic()
        spent = self.last - self.begin
        left = f", about {spent * (self.total / self.done - 1):.0f} s to go" if self.done else ""
        self.echo(f"{self.done} of {self.total} results, {self.survivors} survivors, {spent:.0f} s{left}")


Task = tuple[str, Any, int]


def _work(task: Task) -> Result:
    kind, what, tries = task
    return judge_page(what, tries) if kind == "page" else try_source(what)


def _results(tasks: list[Task], jobs: int) -> Iterator[Result]:
    if jobs == 1:
        yield from map(_work, tasks)
        return
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=500) as pool:
        yield from pool.imap_unordered(_work, tasks, chunksize=1 if len(tasks) < 1000 else 4)


def run(
    *, jobs: int, only: str | None, tries: int, store: Store, anew: bool = False
) -> tuple[list[PageOutcome], list[Outcome]]:
    """Every mutant that the store does not know; with ``only``, of what has it in its name."""
    every = [k for k, p in catalog.theorems().items() if p.claim is not None]
    sites = [m for name in modules() for m in source_mutants(name)]
    keys = [k for k in every if not only or only in k]
    mutants = [m for m in sites if not only or only.replace("-", "_") in m.module]
    known: dict[str, Result] = {}
    if not anew:
        known |= {f"claim:{k}": page for k in keys if (page := store.page(k, tries)) is not None}
        known |= {m.key: fate for m in mutants if (fate := store.source(m)) is not None}
    store.tidy([*(f"claim:{k}" for k in every), *(m.key for m in sites)])
    tasks: list[Task] = [("source", m, 0) for m in mutants if m.key not in known]
    tasks += [("page", k, tries) for k in keys if f"claim:{k}" not in known]
    if known:
        print(f"{len(known)} results are known from {store.path}", flush=True)
    if tasks:
        with mutate_source.remembered_theory(), _Progress(len(tasks)) as progress:
            for result in _results(tasks, jobs):
                store.keep(result, tries)
                known[_key(result)] = result
                progress.step(_survivors(result))
    pages = [x for k in keys if isinstance(x := known[f"claim:{k}"], PageOutcome)]
    outcomes = [x for m in mutants if isinstance(x := known[m.key], Outcome)]
    return pages, outcomes


def _key(result: Result) -> str:
    return f"claim:{result.key}" if isinstance(result, PageOutcome) else result.mutant.key


def _survivors(result: Result) -> int:
    return len(result.accepted) if isinstance(result, PageOutcome) else result.fate == "survivor"


# --- the report --------------------------------------------------------------------------------------------


def _table(title: str, columns: tuple[str, ...], rows: dict[str, list[int]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    table.add_column(columns[0], overflow="fold")
    for column, number in zip(columns[1:], total, strict=True):  # a narrow terminal cuts no number
        table.add_column(column, justify="right", min_width=len(str(number)))
    for name, row in {**rows, "all": total}.items():
        table.add_row(name, *map(str, row))
    Console(width=None if sys.stdout.isatty() else LOG_WIDTH).print(table)


def report(pages: list[PageOutcome], outcomes: list[Outcome]) -> bool:
    """Print killed and total by file with every survivor; whether there is none."""
    files: dict[str, list[int]] = {}
    for o in outcomes:
        killed = o.fate in ("killed", "not loaded")
        row = files.setdefault(o.mutant.module.removeprefix("theory.").replace(".", "/") + ".py", [0] * 7)
        row[0] += killed
        row[1] += killed or o.fate == "survivor"
        row[2] += o.how == "kernel"
        row[3] += o.how == "no certificate"
        row[4] += killed and o.how not in ("kernel", "no certificate")
        row[5] += o.fate == "equivalent"
        row[6] += o.fate == "weaker"
    if files:
        columns = ("killed", "of", "by a rule", "no certificate", "otherwise", "same statements", "weaker")
        _table("Mutants of the source", ("file", *columns), files)
    claims: dict[str, list[int]] = {}
    for p in pages:
        strong = p.counts.get("refuted", 0) + p.counts.get("unrefuted", 0)
        sums = claims.setdefault(p.file, [0] * 5)
        sums[0] += strong - len(p.accepted)
        sums[1] += strong
        sums[2] += p.counts.get("refuted", 0)
        sums[3] += p.counts.get("weaker", 0) + p.counts.get("same", 0)
        sums[4] += not p.models
    if claims:
        heads = ("refused", "of", "refuted by a model", "weaker or the same", "pages without model")
        _table("Mutants of claims", ("file", *heads), claims)
    survivors = [f"{p.key}: {what}" for p in pages for what in p.accepted]
    survivors += [f"{o.mutant} ({o.detail})" for o in outcomes if o.fate == "survivor"]
    for line in survivors:
        print(f"SURVIVOR {line}")
    strong = sum(p.counts.get("refuted", 0) + p.counts.get("unrefuted", 0) for p in pages)
    refuted = sum(p.counts.get("refuted", 0) for p in pages)
    fates = Counter(o.fate for o in outcomes)
    dead = fates["killed"] + fates["not loaded"]
    print(
        f"{dead} of {dead + fates['survivor']} mutants of the source killed; "
        f"{strong - sum(len(p.accepted) for p in pages)} of {strong} mutants of claims refused, "
        f"{refuted} of them refuted by a model"
    )
    return not survivors


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; exit code 1 when a strengthening mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.theory.mutate", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", help="pages and modules whose name contains this")
    parser.add_argument("--tries", type=int, default=mutate_claims.TRIES, help="models tried for each claim")
    parser.add_argument("--results", type=Path, default=Path("out/mutate.jsonl"), help="outcomes, kept")
    parser.add_argument("--anew", action="store_true", help="try again what is known")
    parser.add_argument("--list", action="store_true", help="also list the claims that no model refutes")
    options = parser.parse_args(arguments)
    begin = time.monotonic()
    store = Store.load(options.results)
    try:
        pages, outcomes = run(
            jobs=options.jobs, only=options.only, tries=options.tries, store=store, anew=options.anew
        )
    except KeyboardInterrupt:
        print(f"interrupted; what is done is kept in {store.path}", file=sys.stderr)
        return 130
    clean = report(pages, outcomes)
    if options.list:
        for p in pages:
            for what in p.unrefuted:
                print(f"not refuted by a model: {p.key}: {what}")
    print(f"{time.monotonic() - begin:.0f} s")
    return 0 if clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
