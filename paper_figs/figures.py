"""All figures by name: trained when needed, data saved as CSV, drawn from the CSV, reused when unchanged."""

from __future__ import annotations

import hashlib
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from numerics.errors import InputError
from numerics.files import atomic_write
from paper_figs import runs, style
from paper_figs.provenance import source_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from numerics.run import Run

MODULES = {
    "fixed-decoder": "paper_figs.fixed_decoder",
    "direction-rate": "paper_figs.direction_rate",
    "tightness": "paper_figs.tightness",
}


class FigureModule(Protocol):
    """What a figure's module provides; one figure, one module."""

    def settings(self, *, quick: bool) -> dict[str, list[runs.Setting]]:
        """Give the runs of each part of the figure; each part becomes a file of its own."""

    def data(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Compute everything that is drawn."""

    def draw(self, frame: pd.DataFrame) -> Figure:
        """Draw from the data alone."""


def select(only: str | None) -> list[str]:
    """List the figures to draw. Raises InputError for an unknown name."""
    if only is not None and only not in MODULES:
        raise InputError(f"unknown figure {only!r}; there are {', '.join(MODULES)}")
    return [only] if only else list(MODULES)


def make(
    name: str,
    out: Path,
    runs_folder: Path,
    *,
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Make the files of one figure in `out`: per part PDF, PNG, the CSV drawn and a JSON note.

    A part is left alone while its settings, the code and its files are those noted in the JSON. Where only a
    picture is missing it is drawn again from the CSV; else the runs are loaded, or trained where missing.
    Runs in Gram space are trained anew and not kept: each takes about a second at most.
    """
    import pandas as pd

    module: Any = import_module(MODULES[name])
    figure_module: FigureModule = module
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for part, settings in figure_module.settings(quick=quick).items():
        stem = out / f"{name}-{part}"
        csv, note = stem.with_name(stem.name + ".csv"), stem.with_name(stem.name + ".json")
        pictures = [stem.with_name(stem.name + suffix) for suffix in (".pdf", ".png")]
        known = _read(note)
        content = {
            "figure": name,
            "part": part,
            "runs": [setting.name for setting in settings],
            "code": source_hash("numerics", "theory", "paper_figs"),
        }
        if {key: known.get(key) for key in content} != content or known.get("csv") != _digest(csv):
            frame = figure_module.data([_run(setting, runs_folder, say) for setting in settings])
            with atomic_write(csv) as stream:
                stream.write(frame.to_csv(index=False, float_format="%.17g").encode())
            known = {}
        if not known or not all(path.exists() for path in pictures):
            style.save(figure_module.draw(pd.read_csv(csv)), stem)
            with atomic_write(note) as stream:
                stream.write(json.dumps(content | {"csv": _digest(csv)}, indent=2).encode())
            say(f"drew {pictures[0]}")
        else:
            say(f"unchanged {pictures[0]}")
        files += [*pictures, csv]
    return files


def _run(setting: runs.Setting, folder: Path, say: Callable[[str], None]) -> Run:
    if setting.space == "gram":
        from numerics.training import train

        rule = setting.step_rule()
        run = train(setting.problem(), rule, steps=setting.steps, space="gram", seed=setting.seed)
        say(f"trained {setting.name}")
        return run
    run, kept = runs.make(setting, folder, problem=setting.problem())
    say(f"{'kept' if kept else 'trained'} {folder / setting.name}")
    return run


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _read(path: Path) -> dict[str, Any]:
    """Return the note beside a figure, or nothing when it is missing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
