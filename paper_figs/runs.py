"""Runs on disk: one folder a run, named by its settings, written whole or not at all, kept when finished."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from numerics.errors import InputError
from numerics.run import Run, source_hash
from numerics.steps import RULES, GradientDescent, NormalizedGD, Polyak

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numerics.maxmargin.solution import MaxMargin
    from numerics.problem import Problem

MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What determines a run: the same setting gives the same numbers on the same device and versions.

    `step` is the step size (gd, ngd) or the longest step allowed (polyak; None for no limit). The step size
    of gd and ngd decays like (t+1)^(-exponent).
    """

    data: str
    rule: str
    step: float | None
    steps: int
    exponent: float = 0.0
    seed: int = 0
    space: str = "weight"

    @property
    def name(self) -> str:
        """The folder's name: data-rule-step-steps-space-seed, in characters that every file system takes."""
        data = Path(self.data).stem if self.is_file else self.data
        data = re.sub(r"[^A-Za-z0-9._=+]+", "_", data).strip("._")[:80] or "data"
        step = "free" if self.step is None else _short(self.step)
        if self.exponent:
            step += f"t^-{_short(self.exponent)}"
        return f"{data}-{self.rule}-{step}-{self.steps}-{self.space}-seed{self.seed}"

    @property
    def is_file(self) -> bool:
        """Whether the data are a user's file rather than a named data set."""
        from numerics.datasets import names

        return self.data.partition(":")[0] not in names()

    def step_rule(self) -> GradientDescent | NormalizedGD | Polyak:
        """The step-size rule itself. Raises InputError when its step is missing or not positive."""
        if self.rule not in RULES:
            raise InputError(f"unknown step-size rule {self.rule!r}; there are {', '.join(RULES)}")
        if self.rule == "polyak":
            if self.exponent:
                raise InputError("polyak takes no exponent: its step sizes follow from the loss")
            return Polyak(cap=self.step)
        if self.step is None:
            raise InputError(f"rule {self.rule} needs a step size (--step)")
        kind = GradientDescent if self.rule == "gd" else NormalizedGD
        return kind(step=self.step, exponent=self.exponent)

    def problem(self) -> Problem:
        """The data. Raises InputError for an unknown data set or a file that is no problem."""
        from numerics.datasets import load

        return load(self.data, self.seed)


def make(
    setting: Setting,
    folder: Path,
    *,
    problem: Problem,
    target: MaxMargin | None = None,
    device: str = "auto",
    progress: bool = False,
) -> tuple[Run, bool]:
    """Return (the run of `setting` under `folder`, whether it was there already and kept).

    `problem` is `setting.problem()`, `target` its max-margin solution (None: computed when training). A
    finished run is kept when it is intact, has the same problem and setting, and was made by this very code;
    one made by other code is replaced. Raises InputError when a folder of that name holds anything else:
    nothing of it is overwritten.
    """
    place = folder / setting.name
    if place.exists():
        run = existing(setting, place, problem)
        if run.manifest.get("code") == source_hash():
            return run, True
    from numerics.training import train

    run = train(
        problem,
        setting.step_rule(),
        steps=setting.steps,
        space=setting.space,
        device=device,
        target=target,
        progress=progress,
        seed=setting.seed,
    )
    run.save(place)
    return run, False


def existing(setting: Setting, place: Path, problem: Problem) -> Run:
    """Load the run at `place`. Raises InputError unless it is intact, and that of `setting` on `problem`."""
    run = Run.load(place)
    wanted = (problem.hash, setting.step_rule(), setting.steps, setting.seed, setting.space)
    if (run.problem.hash, run.rule, run.steps, run.seed, run.space) != wanted:
        raise InputError(f"{place}: holds another run (other data or settings); choose another folder")
    return run


def find(folder: Path) -> list[Path]:
    """Every run in `folder` at any depth, or `folder` itself. Raises InputError when there is none."""
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder" if folder.exists() else f"{folder}: does not exist")
    found = sorted(path.parent for path in _manifests(folder))
    if not found:
        raise InputError(f"{folder}: holds no run")
    return found


def _manifests(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if MANIFEST in files:
            yield Path(path) / MANIFEST


def writable(folder: Path) -> None:
    """Raise InputError when `folder` cannot be created or written to; creates nothing."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise InputError(f"{place}: is a file, not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"{place}: no permission to write there")


def _short(value: float) -> str:
    """Write a number so that it reads back the same, 1.0 as 1."""
    return repr(float(value)).removesuffix(".0")
