"""The comparison of optimizers: step sizes tuned over a grid, then several seeds; every run kept on disk.

Fair tuning: each optimizer has a grid of equally many step sizes, a factor of about 3 apart, and the same
number of steps for each of them; one run each, with a seed of its own that is not reported. The step size of
lowest validation loss at the end is taken. Then each optimizer runs on the reported seeds with its step size,
measured on training and test texts. The test texts play no part in the choice.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numerics.errors import InputError
from numerics.files import atomic_write
from numerics.language.finetune import OPTIMIZERS, Cell, Task
from numerics.language.texts import Texts
from numerics.run import source_hash, versions

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any  # the annotations are checked at run time in the tests; pandas is not imported for that

FORMAT = "attnrates-finetune"
VERSION = 1
NOTE = "comparison.json"  # not manifest.json: a comparison is no Run, and is not to be found as one
TUNING_SEED = 1000
# Step sizes a factor of about 3 apart; for "sps" the largest step size allowed.
GRIDS: dict[str, tuple[float, ...]] = {
    "sgd": (0.003, 0.01, 0.03, 0.1, 0.3),
    "nsgd": (0.01, 0.03, 0.1, 0.3, 1.0),
    "sps": (0.01, 0.03, 0.1, 0.3, 1.0),
    "adam": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3),
}
QUICK = {"train": 24, "validation": 24, "test": 32, "length": 12, "batch": 8, "steps": 4, "evaluations": 2}
QUICK_GRIDS: dict[str, tuple[float, ...]] = {name: grid[2:4] for name, grid in GRIDS.items()}
MEASURED = ("train", "test")
CODE = ("optim.py", "language/encoder.py", "language/finetune.py", "language/texts.py")  # decides the numbers


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What was found: `tuning`, one row a step size; `history`, one row a measured step of a reported run.

    tuning: optimizer, step_size, seed, validation_loss, validation_accuracy (at the end), chosen, at_edge
    (chosen, and the smallest or largest of its grid). history: optimizer, step_size, seed, step, train_loss,
    train_accuracy, test_loss, test_accuracy. A diverged run has infinite losses and accuracies NaN.
    """

    tuning: DataFrame
    history: DataFrame
    manifest: Mapping[str, Any]

    @property
    def step_sizes(self) -> dict[str, float]:
        """The tuned step size of each optimizer."""
        chosen = self.tuning[self.tuning["chosen"]]
        return {
            str(name): float(size)
            for name, size in zip(chosen["optimizer"], chosen["step_size"], strict=True)
        }


def steps_in_all(task: Task, *, seeds: int, grids: Mapping[str, tuple[float, ...]] = GRIDS) -> int:
    """Count the steps of the whole comparison, for a progress bar."""
    return task.settings.steps * sum(len(grid) + seeds for grid in grids.values())


def compare(
    task: Task,
    texts: Texts,
    folder: str | os.PathLike[str],
    *,
    seeds: int = 3,
    grids: Mapping[str, tuple[float, ...]] = GRIDS,
    tick: Callable[[int], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Compare the optimizers of `grids` on `task`, made from `texts`; finished runs in `folder` are kept.

    Every finished run is a file in the subfolder cells, so an interrupted call goes on from there, and more
    seeds may be asked for later. At the end `folder` holds tuning and history, as .csv and .parquet, and
    their hashes with all settings in comparison.json, each written whole or not at all. `tick` is called with
    a number of steps done, `say` with a line for each finished run. Runs by other code are made anew.

    Raises InputError for fewer than one seed, an empty grid, and when `folder` holds anything else.
    """
    if seeds < 1 or not grids or not all(grids.values()) or not set(grids) <= set(OPTIMIZERS):
        raise InputError(
            f"a comparison needs a seed and step sizes for optimizers among {', '.join(OPTIMIZERS)}"
        )
    place = Path(folder)
    identity = _identity(task, texts)
    _claim(place, identity)
    cells = _Cells(place / "cells", identity, tick, say)

    tuning: list[dict[str, Any]] = []
    chosen: dict[str, float] = {}
    for name, grid in grids.items():
        rows: list[dict[str, Any]] = []
        losses: list[float] = []
        for size in sorted(grid):
            cell = Cell(name, float(size), TUNING_SEED)
            last = {key: float(values[-1]) for key, values in cells.run(task, cell, ("validation",)).items()}
            del last["step"]
            losses.append(last["validation_loss"])
            rows.append({"optimizer": name, "step_size": cell.step_size, "seed": TUNING_SEED, **last})
        best = int(np.argmin(losses))
        if not math.isfinite(losses[best]):
            raise InputError(f"{name} diverges with every step size of its grid")
        chosen[name] = float(sorted(grid)[best])
        for i, row in enumerate(rows):
            row["chosen"] = i == best
            row["at_edge"] = i == best and len(rows) > 1 and best in (0, len(rows) - 1)
        tuning += rows
    history = []
    for name, size in chosen.items():
        for seed in range(seeds):
            columns = cells.run(task, Cell(name, size, seed), MEASURED)
            rest = {key: values.astype(int) if key == "step" else values for key, values in columns.items()}
            history.append({"optimizer": name, "step_size": size, "seed": seed, **rest})
    return _write(place, identity, tuning, history, seeds=seeds, grids=grids)


def notes(found: Comparison) -> list[str]:
    """Say which tuned step sizes lie at an end of their grid, where a better one may lie beyond."""
    edge = found.tuning[found.tuning["at_edge"]]
    return [
        f"{name}: the tuned step size {size:g} is at the end of its grid; a better one may lie beyond"
        for name, size in zip(edge["optimizer"], edge["step_size"], strict=True)
    ]


class _Cells:
    """The finished runs, one JSON file each."""

    def __init__(
        self,
        folder: Path,
        identity: dict[str, Any],
        tick: Callable[[int], None],
        say: Callable[[str], None],
    ) -> None:
        self.folder, self.tick, self.say = folder, tick, say
        self.key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def run(self, task: Task, cell: Cell, measure: tuple[str, ...]) -> dict[str, np.ndarray]:
        """The columns of a run: read when it is finished, else trained and written."""
        steps = task.settings.steps
        every = steps if measure == ("validation",) else max(1, steps // task.settings.evaluations)
        stage = "tune" if measure == ("validation",) else "final"
        name = f"{stage}-{cell.optimizer}-{cell.step_size:g}-seed{cell.seed}"
        path = self.folder / f"{name}.json"
        columns = self._read(path)
        kept = columns is not None
        if columns is None:
            columns = task.run(cell, measure, every=every, tick=lambda: self.tick(1))
            self._write(path, columns)
        else:
            self.tick(steps)
        last = ", ".join(f"{key.replace('_', ' ')} {values[-1]:.4g}" for key, values in columns.items())
        self.say(f"{'kept' if kept else 'trained'} {name}: {last}")
        return columns

    def _read(self, path: Path) -> dict[str, np.ndarray] | None:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            found = json.loads(path.read_text(encoding="utf-8"))
            columns = {str(k): np.array([float(v) for v in vs]) for k, vs in found["columns"].items()}
            if found["key"] == self.key and found["digest"] == _digest(columns):
                return columns
        return None

    def _write(self, path: Path, columns: dict[str, np.ndarray]) -> None:
        content = {
            "key": self.key,
            "digest": _digest(columns),
            "columns": {name: [repr(float(v)) for v in values] for name, values in columns.items()},
        }
        with atomic_write(path) as stream:
            stream.write(json.dumps(content, indent=1).encode())


def _digest(columns: Mapping[str, np.ndarray]) -> str:
    text = json.dumps({name: [repr(float(v)) for v in values] for name, values in columns.items()})
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(task: Task, texts: Texts) -> dict[str, Any]:
    """What makes two comparisons the same one, and their finished runs good for both."""
    import torch

    return {
        "settings": asdict(task.settings),
        "data": {"source": texts.source, "classes": list(texts.names), "sha256": texts.hash},
        "model": task.encoder,
        "device": torch.cuda.get_device_name(task.device) if task.device.type == "cuda" else "cpu",
        "code": {name: source_hash(name) for name in CODE},
    }


def _claim(place: Path, identity: dict[str, Any]) -> None:
    """Make the folder this comparison's own, or find that it is. Raises InputError when it is another's."""
    note = place / NOTE
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        (place / "cells").mkdir(parents=True, exist_ok=True)
    else:
        try:
            known = json.loads(note.read_text(encoding="utf-8"))
            code = known.pop("code")
        except (OSError, ValueError, AttributeError, KeyError):
            raise InputError(f"{place}: exists and is not a comparison's folder; not overwritten") from None
        differing = [key for key in identity if key != "code" and known.get(key) != identity[key]]
        if differing:
            raise InputError(
                f"{place}: holds another comparison (other {', '.join(differing)}); choose another folder"
            )
        if code != identity["code"]:  # the numbers may be others
            shutil.rmtree(place / "cells", ignore_errors=True)
        (place / "cells").mkdir(exist_ok=True)
    with atomic_write(note) as stream:
        stream.write(json.dumps(identity, indent=2).encode())


def _write(
    place: Path,
    identity: dict[str, Any],
    tuning: list[dict[str, Any]],
    history: list[dict[str, Any]],
    *,
    seeds: int,
    grids: Mapping[str, tuple[float, ...]],
) -> Comparison:
    import pandas as pd

    frames = {
        "tuning": pd.DataFrame(tuning),
        "history": pd.concat([pd.DataFrame(run) for run in history], ignore_index=True),
    }
    files = {}
    for name, frame in frames.items():
        parquet = io.BytesIO()
        frame.to_parquet(parquet, index=False)
        csv = frame.to_csv(index=False, float_format="%.17g").encode()
        for suffix, content in ((".parquet", parquet.getvalue()), (".csv", csv)):
            with atomic_write(place / f"{name}{suffix}") as stream:
                stream.write(content)
            files[name + suffix] = hashlib.sha256(content).hexdigest()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        **identity,
        "grids": {name: list(grid) for name, grid in grids.items()},
        "tuning_seed": TUNING_SEED,
        "seeds": list(range(seeds)),
        "versions": versions("transformers", "tokenizers"),
        "files": files,
    }
    comparison = Comparison(**frames, manifest=manifest)
    with atomic_write(place / NOTE) as stream:
        stream.write(json.dumps(manifest | {"step_sizes": comparison.step_sizes}, indent=2).encode())
    return comparison
