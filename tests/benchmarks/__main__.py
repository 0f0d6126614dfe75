"""Run every bench_*.py of this folder and print its ratios; figures and rows go to a folder.

Each module has `run(quick)` returning rows {"name", "baseline", "ratio", "detail"}: the ratio is ours
against the named baseline, both measured in this very run. A module may offer `figure(rows, path)` to draw
how cost grows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
from pathlib import Path

from rich.console import Console
from rich.table import Table

import tests.benchmarks as package


def main() -> None:
    """Parse the arguments, run the modules, print one table each."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", metavar="NAME", help="run bench_NAME alone")
    parser.add_argument(
        "--out", type=Path, default=Path("out/benchmarks"), help="folder for rows and figures"
    )
    arguments = parser.parse_args()
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith("bench_"))
    if arguments.only is not None:
        names = [name for name in names if name == f"bench_{arguments.only}"]
        if not names:
            parser.error(f"there is no bench_{arguments.only}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    console = Console()
    everything = {}
    for name in names:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        if not hasattr(module, "run"):
            continue
        rows = module.run(arguments.quick)
        everything[name] = rows
        table = Table(title=(module.__doc__ or name).split("\n")[0], title_justify="left")
        for heading in ("what", "against"):
            table.add_column(heading)
        table.add_column("ratio", justify="right")
        table.add_column("detail")
        for row in rows:
            ratio = row["ratio"]
            table.add_row(
                row["name"], row["baseline"], "" if ratio is None else f"{ratio:.3g}", row["detail"]
            )
        console.print(table)
        if hasattr(module, "figure"):
            for path in module.figure(rows, arguments.out / name):
                console.print(f"written: {path}")
    text = json.dumps(everything, indent=2, default=float) + "\n"
    (arguments.out / "rows.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
