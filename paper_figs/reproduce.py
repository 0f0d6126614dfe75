"""The main job, in order: prove, train, check, plot, report. Interrupted, the next call goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.text import Text

from numerics.errors import InfeasibleError
from numerics.files import atomic_write
from paper_figs import experiments, figures, proofs, report, runs, verdicts
from paper_figs.progress import bar_of_its_own, hidden, phase

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from numerics.maxmargin.solution import MaxMargin


def reproduce(out: Path, *, quick: bool, console: Console, err: Console) -> bool:
    """Do everything into `out`; return whether all is proved and no bound is violated.

    `out` receives proofs.json, runs/, figures/ and report.html. Finished runs and unchanged figures are kept;
    `quick` shortens the runs. `err`, a console on stderr, is told of progress. Raises InputError when `out`
    cannot be written, or holds something else under one of these names.
    """
    runs.writable(out)
    out.mkdir(parents=True, exist_ok=True)

    _stage(console, 1, "prove")
    proved = proofs.prove(err)
    proofs.print_table(proved, console)
    with atomic_write(out / "proofs.json") as stream:
        stream.write(json.dumps(proved, indent=2).encode())

    _stage(console, 2, "train")
    train(out / "runs", quick=quick, console=console, err=err)

    _stage(console, 3, "check")
    rows = check(out / "runs", err)
    console.print(verdicts.summary(rows))

    _stage(console, 4, "plot")
    pictures = draw(out, quick=quick, console=console, err=err)

    _stage(console, 5, "report")
    write(out / "report.html", proved, rows, [path for path in pictures if path.suffix == ".png"], err)

    console.print()
    verdicts.print_table(rows, console)
    console.print("\nfigures:")
    for path in pictures:
        console.print(Text(f"  {path}"), soft_wrap=True)
    console.print(Text(f"report: {out / 'report.html'}"), soft_wrap=True)
    return bool(proved["ok"]) and not verdicts.violated(rows)


def train(folder: Path, *, quick: bool, console: Console, err: Console) -> None:
    """Train the standard runs that are not in `folder` yet; W_mm is computed once for each problem."""
    groups = (experiments.standard(quick=quick) | experiments.joint(quick=quick)).values()
    with phase("training", err, total=sum(map(len, groups))) as step:
        for settings in groups:
            targets: dict[str, MaxMargin | None] = {}
            for number, setting in enumerate(settings, start=1):
                step(setting.name)
                problem = setting.problem()
                anew = setting.decoder is None and not (folder / setting.name).exists()
                if anew and problem.hash not in targets:
                    targets[problem.hash] = _target(problem)
                with bar_of_its_own(err) as progress:
                    _, kept = runs.make(
                        setting,
                        folder,
                        problem=problem,
                        target=targets.get(problem.hash),
                        progress=progress,
                    )
                did = "kept" if kept else "trained"
                with hidden():
                    line = f"{setting.data} {number}/{len(settings)}: {did} {setting.name}"
                    console.print(Text(line), soft_wrap=True)


def check(folder: Path, err: Console) -> list[verdicts.Row]:
    """Hold every run in `folder` against every theorem, telling `err` how far it is."""
    with phase("checking", err, total=len(runs.find(folder))) as step:
        return verdicts.check_folder(folder, watch=step)


def write(
    path: Path, proved: dict[str, Any], rows: list[verdicts.Row], pictures: list[Path], err: Console
) -> None:
    """Write the report, telling `err` how far it is."""
    with phase("writing the report, theorem", err, total=len(proved["theorems"])) as step:
        report.write(path, proved, rows, pictures, watch=step)


def draw(out: Path, *, quick: bool, console: Console, err: Console) -> list[Path]:
    """Make every figure in the folder figures of `out` from the runs in its folder runs; list the files."""
    return [
        path
        for name in figures.MODULES
        for path in figures.make(
            name,
            out / "figures",
            out / "runs",
            quick=quick,
            say=lambda line: console.print(Text(line), soft_wrap=True),
            err=err,
        )
    ]


def _target(problem: runs.Problem) -> MaxMargin | None:
    from numerics import max_margin

    try:
        return max_margin(problem)
    except InfeasibleError:
        return None


def _stage(console: Console, number: int, what: str) -> None:
    console.print(Text(f"[{number}/5] {what}", style="bold"))
