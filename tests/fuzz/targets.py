# ruff: noqa: E501 (the tables of odd inputs)
"""What is fuzzed: every reader of files, and every command line. A target makes one call from a generator."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
import typer.main

from attnrates.cli import app
from attnrates.cli import run as run_command
from numerics import max_margin
from numerics.datasets import load
from numerics.errors import InputError
from numerics.run import sealed
from tests.fuzz import mutations as spoil
from tests.fuzz.harness import CANARY, Call

SMALL = ("--rule", "ngd", "--step", "0.1", "--steps", "3")
GRID = """
data = ["gaussian:n=2,T=2,d=4", "digits:3v5,n=4"]
seeds = [0, 3]
steps = 5
space = "gram"
check = true
[[rules]]
rule = "ngd"
step = [0.05, 0.1]
exponent = 0.5
[[rules]]
rule = "polyak"
"""
OWN = """
from pathlib import Path
import pandas as pd
from theory import Observation, Rate, Theorem
from theory.proof.kernel import assume
from theory.proof.terms import index, norm, number, symbol, vector
t, eta = index("t"), symbol("eta")
"""


@dataclass(frozen=True)
class Stock:
    """Valid files, made once: what is spoiled."""

    folder: Path
    runs: dict[str, dict[str, bytes]] = field(default_factory=dict)

    @classmethod
    def make(cls, folder: Path) -> Stock:
        """Make them all in a folder."""
        problem = load("gaussian:n=2,T=2,d=4", 0)
        problem.save(folder / "problem.npz")
        max_margin(problem).certify().save(folder / "certificate.json")
        common = ("train", "--data", "gaussian:n=2,T=2,d=4", *SMALL)
        runs = {}
        for name, more in (("weight", ()), ("gram", ("--space", "gram")), ("joint", ("--joint",))):
            assert run_command([*common, *more, "--out", str(folder / name)]) == 0
            (place,) = (folder / name).iterdir()
            runs[name] = {path.name: path.read_bytes() for path in place.iterdir()}
        survey = folder / "survey.csv"
        assert run_command(["survey", *SURVEY, "--out", str(survey)]) == 0
        return cls(folder, runs)


SURVEY = ("--n", "2", "--tokens", "2", "--d", "3", "--problems", "1", "--steps", "1")
Target = Callable[[random.Random, Path, Stock], Call]


def problem_file(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """`train --data FILE.npz` on a spoiled problem, a user's own or one with a hash."""
    path = folder / "bad.npz"
    data = (stock.folder / "problem.npz").read_bytes()
    if rng.random() < 0.3:
        path.write_bytes(spoil.spoil_bytes(rng, data))
    else:
        with np.load(io.BytesIO(data)) as file:
            arrays = {name: file[name] for name in file.files}
        if rng.random() < 0.7:
            arrays = {name: arrays[name] for name in ("tokens", "labels", "decoder", "queries", "mask")}
        path.write_bytes(spoil.spoil_archive(rng, arrays, folder / CANARY))
    space = rng.choice(("gram", "weight"))
    arguments = ("train", "--data", str(path), *SMALL, "--space", space, "--out", str(folder / "out"))
    return Call(arguments, about="problem")


def run_folder(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """`check DIR` on a run one of whose files is spoiled; often with all hashes made to agree again."""
    kind = rng.choice(sorted(stock.runs))
    files = dict(stock.runs[kind])
    name = rng.choice(("manifest.json", "manifest.json", "arrays.npz", "history.parquet", "problem.npz"))
    forged = rng.random() < 0.7
    if name == "manifest.json":
        manifest = json.loads(files[name])
        if forged:
            with_new = spoil.put(rng, manifest, spoil.strange(rng))
            files[name] = json.dumps(sealed(with_new) if isinstance(with_new, dict) else with_new).encode(
                "utf-8", "surrogatepass"
            )
        else:
            files[name] = spoil.spoil_json(rng, manifest)
    else:
        files[name] = _spoiled(rng, name, files[name], folder)
        if rng.random() < 0.05:
            files[name] = files[rng.choice(sorted(files))]
        if forged:
            manifest = json.loads(files["manifest.json"])
            manifest["files"][name] = hashlib.sha256(files[name]).hexdigest()
            if name == "problem.npz":
                manifest["problem_hash"] = _hash_inside(files[name]) or manifest["problem_hash"]
            files["manifest.json"] = json.dumps(sealed(manifest)).encode()
    place = folder / "run"
    place.mkdir()
    for file, content in files.items():
        (place / file).write_bytes(content)
    if rng.random() < 0.03:
        (place / name).unlink()
        rng.choice(
            (
                lambda: os.mkfifo(place / name),
                (place / name).mkdir,
                lambda: (place / name).symlink_to("/dev/zero"),
                lambda: (place / name).symlink_to(name),
                lambda: None,
            )
        )()
    flags = rng.choice(((), ("--json",), ("--pairs",)))
    return Call(("check", str(place), *flags), codes=(0, 1, 2), about=f"run {kind} {name} forged={forged}")


def _spoiled(rng: random.Random, name: str, content: bytes, folder: Path) -> bytes:
    if rng.random() < 0.15:
        return spoil.spoil_bytes(rng, content)
    if name == "history.parquet":
        return _history(rng, content)
    with np.load(io.BytesIO(content)) as file:
        arrays = {key: file[key] for key in file.files}
    return spoil.spoil_archive(rng, arrays, folder / CANARY)


def _history(rng: random.Random, content: bytes) -> bytes:
    """A Parquet file with a column or row that no run has."""
    frame = pd.read_parquet(io.BytesIO(content))
    column = rng.choice(list(frame.columns))
    kind = rng.randrange(8)
    if kind <= 2:
        frame[column] = frame[column].astype(float)
        bad = rng.choice((np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 1e18, -5e-324))
        frame.loc[rng.randrange(len(frame)) if rng.random() < 0.5 else slice(None), column] = bad
    elif kind == 3:
        frame = frame.drop(columns=column)
    elif kind == 4:
        frame = frame.iloc[:: rng.choice((-1, 2))] if rng.random() < 0.7 else frame.iloc[:0]
    elif kind == 5:
        kinds = ("str", "bool", "float32", "datetime64[ns]", "int8", "category")
        frame[column] = frame[column].fillna(0).replace([np.inf, -np.inf], 0).astype(rng.choice(kinds))
    elif kind == 6:
        frame[rng.choice((*spoil.WORDS[:4], "extra"))] = rng.choice((None, "text", 3))
    else:
        frame = pd.concat([frame, frame])
    stream = io.BytesIO()
    frame.to_parquet(stream, index=rng.random() < 0.2)
    return stream.getvalue()


def _hash_inside(content: bytes) -> str | None:
    try:
        with np.load(io.BytesIO(content)) as file:
            return str(file["hash"])
    except Exception:
        return None


def certificate(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """The checker of max-margin certificates on a spoiled one."""
    from numerics.errors import CertificationError
    from numerics.maxmargin.checker import check_file

    path = folder / "certificate.json"
    content = json.loads((stock.folder / "certificate.json").read_bytes())
    path.write_bytes(spoil.spoil_json(rng, content))

    def read() -> None:
        try:
            check_file(stock.folder / "problem.npz", path)
        except CertificationError as error:
            raise InputError(str(error)) from None

    return Call(reader=read, about="certificate")


def grid(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """`sweep GRID.toml` on a spoiled grid; the cluster is never started (see `stubs`)."""
    del stock
    path = folder / "grid.toml"
    kind = rng.randrange(6)
    if kind == 0:
        content = spoil.spoil_bytes(rng, GRID.encode())
    elif kind == 1:
        content = ("data = " + "[" * rng.choice((100, 5000, 100_000))).encode()
    else:
        lines = GRID.strip().split("\n")
        for _ in range(rng.choice((1, 1, 2))):
            place = rng.randrange(len(lines))
            value = rng.choice(
                (
                    "nan", "-inf", "inf", "-1", "0", "1e400", spoil.HUGE, '""', '"☃"', "[]", "[[]]", "{}", "true",
                    "1979-05-27", '"gaussian:n=1000000000"', '"gaussian:d=" ', '"/dev/zero"', '"' + "x" * 9000 + '"',
                    '"a\\u0000b.npz"', '"../x.npz"', "{a = {b = 1}}", "1_000_000_000_000", "0x7fffffffffffffffffff",
                    '["gaussian:n=2,T=2,d=4", 3]', '"digits:3v5,n=99999999999"', "[0.1, 0.1, nan]",
                )
            )  # fmt: skip
            key = lines[place].partition("=")[0]
            choice = rng.randrange(4)
            if choice == 0:
                del lines[place]
            elif choice == 1:
                lines.insert(place, lines[place])
            elif choice == 2:
                lines.insert(
                    place, f"{rng.choice(('x', 'data', '[[rules]]', 'step', '☃', '[a.b]'))} = {value}"
                )
            else:
                lines[place] = f"{key}= {value}"
            lines = lines or [""]
        content = "\n".join(lines).encode("utf-8", "surrogatepass")
    path.write_bytes(content)
    return Call(("sweep", str(path), "--out", str(folder / "out")), about="grid")


@cache
def _computed(setting: Any) -> Any:
    from attnrates.sweep import cell as work

    return work.compute(setting, check=True)


def _sweep_cells(rng: random.Random, folder: Path, out: Path) -> None:
    """A sweep of right code whose finished cells are spoiled."""
    from attnrates.sweep import grid as grids
    from attnrates.sweep.store import Store

    store = Store(out)
    store.begin()
    for cell in grids.read(folder / "grid.toml").cells:
        store.add(cell, _computed(cell.setting))
        for path in rng.sample((store.history(cell), store.verdicts(cell)), rng.choice((0, 1, 1, 2))):
            path.write_bytes(
                spoil.spoil_bytes(rng, path.read_bytes()) if rng.random() < 0.8 else spoil.foreign(rng)
            )


def sweep_folder(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """`sweep` into a folder whose note is spoiled, or that holds something else."""
    del stock
    (folder / "grid.toml").write_text(GRID.replace(', "digits:3v5,n=4"', ""), encoding="utf-8")
    out = folder / "out"
    out.mkdir()
    note = {"format": "attnrates-sweep", "code": "0" * 64}
    chance = rng.random()
    if chance < 0.3:
        _sweep_cells(rng, folder, out)
    elif chance < 0.9:
        (out / "sweep.json").write_bytes(spoil.spoil_json(rng, note))
    else:
        (out / rng.choice(("history", "mine.txt"))).write_bytes(spoil.foreign(rng))
    return Call(("sweep", str(folder / "grid.toml"), "--out", str(out)), about="sweep's folder")


def figure_note(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """The note beside a figure: a damaged one counts as none."""
    from paper_figs.figures import read_note

    del stock
    content = {"figure": "x", "runs": ["a", "b"], "options": {"d": [1, 2]}, "code": "0", "csv": "1"}
    (folder / "note.json").write_bytes(spoil.spoil_json(rng, content))
    return Call(reader=lambda: read_note(folder / "note.json"), codes=(0,), about="figure's note")


def texts(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """`finetune --data FILE` on spoiled JSONL and CSV; no model is loaded (see `stubs`)."""
    del stock
    rows = [{"text": f'word{i} and, "more"', "label": rng.choice("ab")} for i in range(6)]
    if rng.random() < 0.5:
        path = folder / "texts.jsonl"
        lines = [json.dumps(row).encode() for row in rows]
        place = rng.randrange(len(lines))
        lines[place] = spoil.spoil_json(rng, rows[place])
        content = b"\n".join(lines)
    else:
        path = folder / "texts.csv"
        stream = io.StringIO()
        writer = csv.writer(stream)
        writer.writerows([["text", "label"], *([row["text"], row["label"]] for row in rows)])
        content = stream.getvalue().encode()
        if rng.random() < 0.3:
            content += b'"' + b"x" * (1 << 25)
    if rng.random() < 0.5:
        content = spoil.spoil_bytes(rng, content)
    path.write_bytes(content)
    return Call(
        ("finetune", "--data", str(path), "--out", str(folder / "out"), "--device", "cpu"), about="texts"
    )


def survey_table(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """`survey --out FILE.csv` going on from a spoiled table."""
    path = folder / "survey.csv"
    content = (stock.folder / "survey.csv").read_bytes()
    if rng.random() < 0.5:
        content = spoil.spoil_bytes(rng, content)
    else:
        rows = [line.split(",") for line in content.decode().splitlines()]
        row = rng.choice(rows)
        row[rng.randrange(len(row))] = str(rng.choice((*spoil.NUMBERS, *spoil.WORDS)))
        content = "\n".join(map(",".join, rows)).encode("utf-8", "surrogatepass")
    path.write_bytes(content)
    return Call(("survey", *SURVEY, "--out", str(path)), codes=(0, 1, 2), about="survey's table")


def own_theory(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """`verify --theory` and `check --theory` with a file that does not run, or defines something else."""
    path = folder / rng.choice(("own.py", "own.py", "own.py", "own.txt", "☃.py"))
    body = rng.choice(
        (
            "raise ValueError('x\\ny')", "import sys; sys.exit(0)", "exit(3)", "raise SystemExit", "1/0", "x = (",
            "import not_there_at_all", "def f(:", "\0", "raise GeneratorExit",
            "Theorem()", "Theorem(key=3)", "page = 3", "def g(): return g()\ng()", "raise MemoryError",
            "(" * 500, "assert False, '\x1b[31m'", "class E(BaseException): pass\nraise E('own')",
            "from theory import theorems\npages = list(theorems().values())[:2]\na, b = pages",
            "x = '\\ud800'; raise ValueError(x)", "symbol('')", "symbol(3)", "norm(3)", "index(None)", "x = '\\d'",
            "import warnings; warnings.warn('mine')\n1/0", "observe = 3", "from theory import *\nimport theory.own",
        )
    )  # fmt: skip
    source = OWN + body
    kind = rng.randrange(4)
    if kind == 0:
        source = source[: rng.randrange(len(source))]
    content = source.encode("utf-8", "surrogatepass")
    if kind == 1:
        content = spoil.foreign(rng)
    path.write_bytes(content)
    if rng.random() < 0.1:
        path.unlink()
    arguments = ("verify", "--theory", str(path))
    if rng.random() < 0.5:
        arguments = ("check", str(stock.folder / "problem.npz"), "--theory", str(path))
    return Call(arguments, codes=(2,), new=("__pycache__",), about="own theory", program=True)


TEXTS = (
    "", " ", "-", "--", "-1", "0", "1", "3", "1e3", "nan", "inf", "-inf", "1e400", "9" * 25, "9" * 5000, "0x10", "1_0",
    "٣", "½", "true", "None", "☃", "\x1b[31mred", "a\nb", "\x00", "a\x00b", "\udcff", "x" * 300, "x" * 70_000, "..",
    "../..", "/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem", "/dev/null/x", "/proc/x/y", "no/such/file",
    "file.npz", "file", "folder", "loop", "~", "*", "$(touch executed)", "`touch executed`", "; touch executed",
    "%s%n", "{0.__class__}", "__import__('os').mkdir('executed')", "gaussian:n=2,T=2,d=4", "=", ":", ",", ",,1",
    "gaussian:", "gaussian:n", "gaussian:n=", "gaussian:=3", "gaussian:n=1e9", "gaussian:n=-1", "digits:0v0,n=2",
    "gaussian:n=99999999999999,T=1000", "gaussian:signal=nan", "gaussian:n=2,n=2", "gaussian:query=" + "q" * 999,
    "gaussian:n=100000,T=1000,d=100000", "digits:3v5,n=3", "digits:" + "v" * 99, "bbc:a+b", "tcp://", "tcp://x:1",
    "cuda", "tpu", "gd", "ngd", "polyak", "both", "own", "fixed-decoder", "final",
)  # fmt: skip
GOOD = {
    "data": ("gaussian:n=2,T=2,d=4", "digits:3v5,n=4"), "rule": ("gd", "ngd", "polyak"), "step": ("0.1", "1"),
    "steps": ("1", "3"), "seeds": ("1", "2"), "out": ("out", "deep/out"), "device": ("cpu", "auto"),
    "n": ("2", "3"), "tokens": ("2", "3"), "d": ("3", "50"), "problems": ("1",), "folder": ("folder",),
    "source": ("folder",), "grid": ("grid.toml",), "simulate": ("2",), "space": ("gram", "weight"),
    "only": ("fixed-decoder",), "exponent": ("0", "0.5"), "sigma": ("0.1",), "delta": ("0.01", "0.5"),
}  # fmt: skip


def command_line(rng: random.Random, folder: Path, stock: Stock) -> Call:
    """Any subcommand with options of any kind; what would take minutes is stubbed."""
    shutil.copy(stock.folder / "problem.npz", folder / "file.npz")
    (folder / "file").write_bytes(b"mine")
    (folder / "grid.toml").write_text(GRID, encoding="utf-8")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    commands: dict[str, click.Command] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    name = rng.choice(sorted(commands))
    arguments = [name]
    spoiled = rng.choice((1, 1, 1, 2, 3))
    parameters = [p for p in commands[name].params if p.name != "help"]
    bad = rng.sample(range(len(parameters)), min(spoiled, len(parameters)))
    for place, parameter in enumerate(parameters):
        required = parameter.required or parameter.name in {"step", "steps", "problems", "n", "tokens", "d"}
        if place not in bad and not required and rng.random() < 0.7:
            continue
        if getattr(parameter, "is_flag", False):
            arguments.append(parameter.opts[0])
            continue
        good = GOOD.get(str(parameter.name), ("1",))
        value = rng.choice(TEXTS if place in bad else good)
        if parameter.param_type_name == "argument":
            arguments.append(value)
        else:
            option = max(parameter.opts, key=len)
            arguments += [f"{option}={value}"] if rng.random() < 0.3 else [option, value]
    if rng.random() < 0.1:
        arguments.insert(rng.randrange(len(arguments) + 1), rng.choice(TEXTS))
    return Call(tuple(arguments), codes=(0, 1, 2), about="command line")


TARGETS: dict[str, Target] = {
    "problem": problem_file,
    "run": run_folder,
    "certificate": certificate,
    "grid": grid,
    "sweep-folder": sweep_folder,
    "figure-note": figure_note,
    "texts": texts,
    "survey": survey_table,
    "own-theory": own_theory,
    "command-line": command_line,
}


@contextmanager
def stubs() -> Iterator[None]:
    """Put what takes minutes or starts other processes out of reach, behind all that is read and checked."""
    import attnrates._sweep
    import numerics.language.encoder
    import numerics.language.finetune  # its annotations are those of the encoder as it is
    import paper_figs.figures
    import paper_figs.reproduce

    def unreachable(*_: Any, **__: Any) -> Any:
        raise InputError("what follows is not fuzzed")

    proofs = {
        "ok": True, "theorems": [], "axioms": {}, "inference_rules": {}, "trusted": [], "kernel_lines": 0,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attnrates._sweep, "connect", unreachable)
        patch.setattr(numerics.language.encoder, "Encoder", unreachable)
        patch.setattr(paper_figs.figures, "make", lambda *_, **__: [])
        patch.setattr(paper_figs.reproduce, "reproduce", lambda *_, **__: True)
        for module in map(import_module, ("attnrates._verify", "attnrates._report", "attnrates._docs")):
            for name in ("prove", "print_table", "_falsify", "macros"):
                given = "" if name == "macros" else proofs
                patch.setattr(module, name, lambda *_, given=given, **__: given, raising=False)
        for name in ("train", "draw"):
            patch.setattr(paper_figs.reproduce, name, unreachable)
        yield
