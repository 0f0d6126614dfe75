"""Runs on disk: one folder a run, named by its settings, written whole or not at all, kept when finished."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numerics.errors import InputError
from numerics.run import Run, source_hash
from numerics.steps import RULES, GradientDescent, NormalizedGD, Polyak

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numerics.maxmargin.solution import MaxMargin
    from numerics.problem import Problem

MANIFEST = "manifest.json"
PARTS = frozenset({"history.parquet", "problem.npz"})


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """How the decoder is trained beside W: rule, step and exponent as in `Setting`.

    reference says whose optimal tokens the run's columns refer to: those of the final decoder ("final") or
    of the data's own ("data").
    """

    rule: str
    step: float | None
    exponent: float = 0.0
    reference: str = "final"

    @property
    def name(self) -> str:
        """The decoder's part of the folder's name."""
        reference = "" if self.reference == "final" else f"-reference_{self.reference}"
        return f"joint-{self.rule}-{_step(self.step, self.exponent)}{reference}"

    def step_rule(self) -> GradientDescent | NormalizedGD | Polyak:
        """The decoder's step-size rule. Raises InputError when its step is missing or not positive."""
        try:
            return _step_rule(self.rule, self.step, self.exponent, "--decoder-step")
        except InputError as error:
            raise InputError(f"the decoder's {error}") from None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What determines a run: the same setting gives the same numbers on the same device and versions.

    `step` is the step size (gd, ngd) or the longest step allowed (polyak; None for no limit). The step size
    of gd and ngd decays like (t+1)^(-exponent). With `decoder`, the decoder is trained too, from zero.
    """

    data: str
    rule: str
    step: float | None
    steps: int
    exponent: float = 0.0
    seed: int = 0
    space: str = "weight"
    decoder: Decoder | None = None

    @property
    def name(self) -> str:
        """The folder's name: data-rule-step-steps-space-seed, in characters that every file system takes.

        The decoder's part, where it is trained, stands before the number of steps.
        """
        data = Path(self.data).stem if self.is_file else self.data
        data = re.sub(r"[^A-Za-z0-9._=+]+", "_", data).strip("._")[:80] or "data"
        rule = f"{self.rule}-{_step(self.step, self.exponent)}"
        if self.decoder is not None:
            rule += f"-{self.decoder.name}"
        return f"{data}-{rule}-{self.steps}-{self.space}-seed{self.seed}"

    @property
    def is_file(self) -> bool:
        """Whether the data are a user's file rather than a named data set."""
        from numerics.datasets import names

        return self.data.partition(":")[0] not in names()

    def step_rule(self) -> GradientDescent | NormalizedGD | Polyak:
        """The step-size rule itself. Raises InputError when its step is missing or not positive."""
        return _step_rule(self.rule, self.step, self.exponent, "--step")

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

    `problem` is `setting.problem()`, `target` its max-margin solution (None: computed when training, as it
    always is where the decoder is trained). A
    finished run is kept when it is intact, has the same problem and setting, and was made by this very code;
    one made by other code is replaced. Raises InputError when a folder of that name holds anything else:
    nothing of it is overwritten.
    """
    place = folder / setting.name
    if place.exists():
        run = existing(setting, place, problem)
        if run.manifest.get("code") == source_hash():
            return run, True
    run = train(setting, problem=problem, target=target, device=device, progress=progress)
    run.save(place)
    return run, False


def train(
    setting: Setting,
    *,
    problem: Problem,
    target: MaxMargin | None = None,
    device: str = "auto",
    progress: bool = False,
) -> Run:
    """Train the run of `setting` and return it, without keeping anything; arguments as for `make`."""
    options: dict[str, Any] = {
        "steps": setting.steps,
        "space": setting.space,
        "device": device,
        "progress": progress,
        "seed": setting.seed,
    }
    if setting.decoder is None:
        from numerics.training import train as train_fixed

        return train_fixed(problem, setting.step_rule(), target=target, **options)
    from numerics.joint import train_joint

    decoder = setting.decoder
    rules = setting.step_rule(), decoder.step_rule()
    return train_joint(problem, *rules, reference=decoder.reference, **options)


def existing(setting: Setting, place: Path, problem: Problem) -> Run:
    """Load the run at `place`. Raises InputError unless it is intact, and that of `setting` on `problem`."""
    run = Run.load(place)
    decoder = None if setting.decoder is None else (setting.decoder.step_rule(), setting.decoder.reference)
    trained = None if run.joint is None else (run.joint.rule, run.joint.reference_kind)
    pairs = {
        "data": (run.problem.hash, problem.hash),
        "rule or step size": (run.rule, setting.step_rule()),
        "number of steps": (run.steps, setting.steps),
        "seed": (run.seed, setting.seed),
        "space": (run.space, setting.space),
        "training of the decoder": (trained, decoder),
    }
    other = [name for name, (there, here) in pairs.items() if there != here]
    if other:
        raise InputError(
            f"{place}: holds another run (other {', '.join(other)}), which is kept; choose another folder, "
            "or remove that one"
        )
    return run


def find(folder: Path) -> list[Path]:
    """Every run in `folder` at any depth, or `folder` itself. Raises InputError when there is none."""
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder" if folder.exists() else f"{folder}: does not exist")
    found = sorted(_places(folder))
    if not found:
        raise InputError(f"{folder}: holds no run")
    return found


def _places(folder: Path) -> Iterator[Path]:
    """The folders of runs, and those that are not to be passed over: without a manifest, or closed to us.

    Links to folders are followed, after all else, and each real folder is gone through once: one that
    several paths lead to goes by one without links if there is any, and no loop is without end.
    """
    closed: list[OSError] = []
    seen: set[str] = set()
    starts = [os.fspath(folder)]
    for start in starts:  # grows by the links
        for path, folders, files in os.walk(start, onerror=closed.append):
            real = os.path.realpath(path)
            folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith("."))
            starts += filter(os.path.islink, (os.path.join(path, name) for name in folders))
            if real not in seen and (MANIFEST in files or set(files) >= PARTS):
                yield Path(path)
            seen.add(real)
    yield from (Path(error.filename) for error in closed)


def each(folder: Path, refuse: Callable[[InputError], None] | None = None) -> Iterator[tuple[str, Run]]:
    """Load every run in `folder`, with its name: the path from `folder`, or the folder's own name.

    A run that was altered, cannot be read or is none is told to `refuse` and passed over; without `refuse`
    its InputError is raised. Raises InputError when there is no run at all.
    """
    for place in find(folder):
        try:
            run = _load(place)
        except InputError as error:
            if refuse is None:
                raise
            refuse(error)
            continue
        yield place.relative_to(folder).as_posix() if place != folder else place.absolute().name, run


def _load(place: Path) -> Run:
    try:
        return Run.load(place)
    except OSError as error:
        raise InputError(f"{error.filename or place}: {error.strerror or error}") from None


def writable(folder: Path) -> None:
    """Raise InputError when `folder` cannot be created or written to; creates nothing."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise InputError(f"{place}: is a file, not a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"{place}: no permission to write there")


def _step_rule(
    rule: str, step: float | None, exponent: float, option: str
) -> GradientDescent | NormalizedGD | Polyak:
    if rule not in RULES:
        raise InputError(f"unknown step-size rule {rule!r}; there are {', '.join(RULES)}")
    if rule == "polyak":
        if exponent:
            raise InputError("polyak takes no exponent: its step sizes follow from the loss")
        return Polyak(cap=step)
    if step is None:
        raise InputError(f"rule {rule} needs a step size ({option})")
    kind = GradientDescent if rule == "gd" else NormalizedGD
    return kind(step=step, exponent=exponent)


def _step(step: float | None, exponent: float) -> str:
    """The step sizes in a folder's name."""
    text = "free" if step is None else _short(step)
    return f"{text}t^-{_short(exponent)}" if exponent else text


def _short(value: float) -> str:
    """Write a number so that it reads back the same, 1.0 as 1."""
    return repr(float(value)).removesuffix(".0")
