"""A training run: what was run, what was recorded, and its folder on disk.

A run's folder holds manifest.json (what was run, with what, and the SHA-256 of the other files),
history.parquet, arrays.npz and problem.npz. It is written under another name and renamed when complete, so
that no interruption leaves a half-written one, and `Run.load` verifies every hash, the manifest's own among
them, before it believes any.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from numerics import _joint_record, _room
from numerics._joint_part import Joint
from numerics._npz import finite_numbers, read_arrays
from numerics._record import COLUMNS
from numerics.errors import InputError
from numerics.files import read_bytes, read_json
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.steps import rule_from_dict, rule_to_dict

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any  # the annotations are checked at run time in the tests; pandas is not imported for that

FORMAT = "attnrates-run"
VERSION = 1
PACKAGES = ("attnrates", "numpy", "scipy", "torch", "numba", "llvmlite", "python-flint", "scikit-learn")
_FILES = ("history.parquet", "arrays.npz", "problem.npz")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Run:
    """One recorded training run.

    init is W_0 (d, d), None meaning zero; target the max-margin solution of the problem, None when its
    constraints are infeasible. The final W is kept as it is (`final_weights`) or as coefficients b with
    W = W_0 + sum_k b_k A_k; `weights` gives it as (d, d) either way.

    recorded holds the columns of `history`, a pandas DataFrame with one row a recorded step t (state W_t;
    sums over s < t):

        step               t
        path_length        E_t = sum e_s, e_s the length of step s
        separator_path     S_t = sum e_s C_s/||grad L_s||, C_s = sum_k c_k with -grad L = sum_k c_k A_k
        curvature_sum      sum e_s^2/u_s over the s with W_s != 0
        step_length        e_t, the step about to be taken
        weight_norm        u_t = ||W_t||_F
        target_component   v_t = <W_t, M^>, M^ = M/||M|| the max-margin direction   (NaN when infeasible)
        residual_norm      ||W_t - v_t M^||                                           (NaN when infeasible)
        direction_gap      1 - cos(W_t, M), computed from the residual       (NaN when infeasible or W_t = 0)
        log_attention_gap  max_i log(1 - p_i), p_i the attention on the optimal token
        log_total_attention_gap  log sum_i (1 - p_i)
        log_excess_loss    log(L - L*), without cancellation
        loss               L
        min_logit_gap      min_k mu_k, mu_k = <A_k, W_t>
        log_gradient_norm  log ||grad L||_F

    A run that trains the decoder too carries `joint`, and its history has the columns that `Joint` lists
    instead: those above, but for log_excess_loss = log(L - L*(u_t)), and as many more on
    the decoder. Its target is that of `joint.reference`, and so are p_i, mu_k and A_k.
    """

    problem: Problem
    rule: Any
    steps: int
    space: str
    recorded: Mapping[str, np.ndarray]
    manifest: dict[str, Any]
    seed: int | None = None
    init: Float[np.ndarray, "d d"] | None = None
    target: MaxMargin | None = None
    final_weights: Float[np.ndarray, "d d"] | None = None
    coefficients: Float[np.ndarray, " N"] | None = None
    joint: Joint | None = None

    @property
    def decoder(self) -> Float[np.ndarray, " d"]:
        """The final decoder: the trained one of a joint run, else the problem's."""
        return self.problem.decoder if self.joint is None else self.joint.decoder

    @cached_property
    def history(self) -> DataFrame:
        """The recorded columns as a DataFrame, made on first use."""
        import pandas as pd

        return pd.DataFrame(dict(self.recorded))

    @cached_property
    def weights(self) -> Float[np.ndarray, "d d"]:
        """The final W."""
        if self.final_weights is not None:
            return self.final_weights
        if self.coefficients is None:
            raise InputError("the run carries neither final weights nor coefficients")
        problem = self.problem if self.joint is None else self.joint.reference
        moved = problem.combine(self.coefficients)
        return moved if self.init is None else self.init + moved

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the run's folder and return its path; an earlier run's folder of that name is replaced.

        Raises InputError when something other than a run is in the way.
        """
        target = Path(folder)
        if target.exists() and not (target.is_dir() and _is_run_or_empty(target)):
            raise InputError(f"{target}: exists and is not a run's folder; not overwritten")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
        try:
            with open(partial / "history.parquet", "wb") as stream:  # pyarrow opens no path but in UTF-8
                self.history.to_parquet(stream, index=False)
            with open(partial / "arrays.npz", "wb") as stream:
                np.savez(stream, allow_pickle=False, **self._arrays())
            self.problem.save(partial / "problem.npz")
            manifest = {key: value for key, value in self.manifest.items() if key != "digest"} | {
                "format": FORMAT,
                "version": VERSION,
                "target_solver": None if self.target is None else self.target.solver,
                "files": {name: _sha256((partial / name).read_bytes()) for name in _FILES},
            }
            text = json.dumps(sealed(manifest), indent=2, allow_nan=False) + "\n"
            (partial / "manifest.json").write_text(text, encoding="utf-8")
            mask = os.umask(0)
            os.umask(mask)
            partial.chmod(0o777 & ~mask)
            if target.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
                os.replace(target, old)
                os.replace(partial, target)
                shutil.rmtree(old)
            else:
                os.replace(partial, target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return target

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Run:
        """Read and verify a run's folder.

        Raises InputError, one line naming the file, when the folder is no run's, or a file is missing,
        truncated, altered or from another format version.
        """
        path = Path(folder)
        manifest = _read_manifest(path)
        content: dict[str, bytes] = {}
        for name in _FILES:
            content[name] = read_bytes(path / name, limit=_room.free_memory() // 2)
            if _sha256(content[name]) != manifest["files"].get(name):
                raise InputError(f"{path / name}: does not match the manifest's hash; the file was altered")
        problem = Problem.load(path / "problem.npz")
        if problem.hash != manifest["problem_hash"]:
            raise InputError(f"{path}: the problem is not the one named in the manifest")
        arrays = read_arrays(path / "arrays.npz")
        entries = manifest.get("joint")
        columns = COLUMNS if entries is None else _joint_record.COLUMNS
        history = _read_history(
            path / "history.parquet", content["history.parquet"], columns, manifest["steps"]
        )
        shapes = {
            "init": (problem.d, problem.d),
            "final_weights": (problem.d, problem.d),
            "coefficients": (problem.n_constraints,),
            "target_dual": (problem.n_constraints,),
        }
        for name, shape in shapes.items():
            if name in arrays and not finite_numbers(arrays[name], shape):
                raise InputError(f"{path / 'arrays.npz'}: {name} must be finite numbers of shape {shape}")
        if entries is None and "decoder" in arrays:
            raise InputError(f"{path}: has a trained decoder, of which the manifest says nothing")
        try:
            rule = rule_from_dict(manifest["rule"])
            joint = None if entries is None else Joint.from_arrays(problem, entries, arrays, len(history))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        target = None
        if "target_dual" in arrays:
            aimed = problem if joint is None else joint.reference
            target = MaxMargin.from_dual(aimed, arrays["target_dual"], str(manifest["target_solver"]))
        return cls(
            problem=problem,
            rule=rule,
            steps=manifest["steps"],
            space=manifest["space"],
            seed=manifest["seed"],
            recorded={name: history[name].to_numpy() for name in history.columns},
            manifest=manifest,
            target=target,
            init=arrays.get("init"),
            final_weights=arrays.get("final_weights"),
            coefficients=arrays.get("coefficients"),
            joint=joint,
        )

    def _arrays(self) -> dict[str, np.ndarray]:
        own = {name: getattr(self, name) for name in ("init", "final_weights", "coefficients")}
        arrays = {name: np.asarray(value) for name, value in own.items() if value is not None}
        if self.target is not None:
            arrays["target_dual"] = self.target.dual
        return arrays if self.joint is None else arrays | self.joint.arrays()

    def _repr_html_(self) -> str:
        """A small table for notebooks; everything in it is escaped."""
        last = {name: column[-1] for name, column in self.recorded.items()}
        names = ("weight_norm", "direction_gap", "log_attention_gap", "loss")
        rows = {
            "rule": repr(self.rule) if self.joint is None else f"{self.rule!r}, decoder {self.joint.rule!r}",
            "steps": f"{self.steps}, {len(self.recorded['step'])} recorded, space {self.space}",
            "seed": str(self.seed),
            "problem": repr(self.problem),
            "W_mm": "none: infeasible" if self.target is None else f"norm {self.target.norm:.6g}",
        } | {f"last {name}": f"{last[name]:.6g}" for name in names if name in last}
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in rows.items()
        )
        return f"<table><caption>Run</caption>{cells}</table>"

    def __repr__(self) -> str:
        """The run in one line."""
        rules = f"{self.rule!r}" if self.joint is None else f"{self.rule!r}, decoder={self.joint.rule!r}"
        return f"Run({rules}, steps={self.steps}, space={self.space!r}, {self.problem!r})"


def make_manifest(
    problem: Problem, rule: Any, *, steps: int, space: str, seed: int | None, device: str, dtype: str
) -> dict[str, Any]:
    """What a run was: problem hash, rule, seed, versions, device, and the hash of this package's source."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "problem_hash": problem.hash,
        "rule": rule_to_dict(rule),
        "steps": steps,
        "space": space,
        "seed": seed,
        "device": device,
        "dtype": dtype,
        "versions": versions(),
        "code": source_hash(),
    }


@cache
def versions(*more: str) -> dict[str, str]:
    """The versions of Python and of the packages that determine a run's numbers, and of `more` packages."""
    found = {"python": platform.python_version()}
    for name in (*PACKAGES, *more):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "uninstalled"
    return found


@cache
def source_hash(pattern: str = "**/*.py") -> str:
    """SHA-256 over the package's source files, so that a run names the code that made it."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.glob(pattern)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_run_or_empty(folder: Path) -> bool:
    names = set(os.listdir(folder))
    return not names or names == {"manifest.json", *_FILES}


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with `digest`, the SHA-256 of all else in it as JSON with sorted keys."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return rest | {"digest": _sha256(json.dumps(rest, sort_keys=True).encode())}


def _read_manifest(path: Path) -> dict[str, Any]:
    name = path / "manifest.json"
    if not name.exists():
        raise InputError(f"{path}: not a run's folder ({name.name}: No such file or directory)")
    manifest = read_json(name)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{name}: is not the manifest of a run")
    if manifest.get("version") != VERSION:
        raise InputError(f"{name}: format version {manifest.get('version')!r} is not {VERSION}")
    kinds = {"problem_hash": str, "rule": dict, "steps": int, "space": str, "files": dict}
    for key, kind in kinds.items():
        if not isinstance(manifest.get(key), kind) or isinstance(manifest[key], bool):
            raise InputError(f"{name}: {key} is missing or not of the right type")
    if "seed" not in manifest or not isinstance(manifest["seed"], int | None) or manifest["seed"] is True:
        raise InputError(f"{name}: seed is missing or not an integer")
    if "target_solver" not in manifest or not isinstance(manifest["target_solver"], str | None):
        raise InputError(f"{name}: target_solver is missing or not of the right type")
    if manifest["steps"] < 0 or manifest["space"] not in ("gram", "weight"):
        raise InputError(f"{name}: steps or space is out of range")
    if "digest" not in manifest:
        raise InputError(f"{name}: has no digest; it was altered or made before there were any: train anew")
    if manifest["digest"] != sealed(manifest)["digest"]:
        raise InputError(f"{name}: does not match its own digest; the file was altered")
    return manifest


def _read_history(path: Path, data: bytes, columns: tuple[str, ...], steps: int) -> DataFrame:
    """The columns of a history, numbers all: of whole steps from 0 to `steps`, ascending."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        rows, names = file.metadata.num_rows, file.schema_arrow.names
        missing = [name for name in columns if name not in names]
        if missing or not rows or len(set(names)) < len(names):
            raise InputError(f"{path}: is not a run's history (rows {rows}, missing {missing})")
        _room.require(f"{path}: to read it", 3 * 8 * rows * len(names))  # a short file may claim any number
        table = file.read()
    except InputError:
        raise
    except Exception as error:  # pyarrow raises several types on damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: cannot be read as Parquet ({reason})") from None
    for field in table.schema:
        if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
            raise InputError(f"{path}: the column {field.name} holds {field.type}, not numbers")
    history = pd.DataFrame({name: table[name].to_numpy() for name in names})
    at = history["step"].to_numpy()
    if at.dtype.kind not in "iu" or at[0] < 0 or at[-1] > steps or not (at[1:] > at[:-1]).all():
        raise InputError(f"{path}: the column step does not ascend in whole numbers from 0 to {steps}")
    return history
