"""One cell of a sweep, from its setting to the bytes of its Parquet files: what a worker does.

The bytes depend on the setting, the code and the packages alone, not on who computed them or when.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict, dataclass
from typing import Any

from numerics.errors import AttnratesError
from paper_figs.runs import Setting

PACKAGES = ("attnrates", "numerics", "paper_figs", "theory")


@dataclass(frozen=True)
class Outcome:
    """What a cell gave: its files (without verdicts None), or why it cannot be run."""

    code: str
    history: bytes | None = None
    verdicts: bytes | None = None
    violated: int = 0
    error: str | None = None


def code() -> str:
    """Give the hash of the code that makes cells."""
    from paper_figs.provenance import source_hash

    return source_hash(*PACKAGES)


def compute(setting: Setting, *, check: bool) -> Outcome:
    """Run one cell; an input that cannot be run gives an Outcome with its error."""
    from numerics.training import train

    try:
        problem = setting.problem()
        run = train(
            problem,
            setting.step_rule(),
            steps=setting.steps,
            space=setting.space,
            device="cpu",
            seed=setting.seed,
        )
        rows = _verdicts(run) if check else None
    except AttnratesError as error:
        return Outcome(code(), error=" ".join(str(error).split()))
    except MemoryError:
        return Outcome(code(), error="not enough memory for this problem")
    about = {"setting": asdict(setting), "manifest": run.manifest, "code": code()}
    history = run.history
    for place, (name, value) in enumerate(_labels(setting).items()):
        history.insert(place, name, value)
    return Outcome(
        code(),
        history=_parquet({str(name): list(history[name]) for name in history}, about),
        verdicts=None if rows is None else _parquet(_columns(rows, setting), about),
        violated=sum(row["holds"] is False for row in rows or ()),
    )


def _labels(setting: Setting) -> dict[str, Any]:
    """Give the columns that name the cell; the rule is the name of the folder (the partition)."""
    return {
        "data": setting.data,
        "step_size": float("nan") if setting.step is None else setting.step,
        "exponent": setting.exponent,
        "steps": setting.steps,
        "space": setting.space,
        "seed": setting.seed,
    }


def _verdicts(run: Any) -> list[dict[str, Any]]:
    import theory

    return [
        {
            "theorem": verdict.theorem,
            "holds": verdict.holds,
            "worst_ratio": float(verdict.worst_ratio),
            "worst_step": verdict.worst_step,
            "unmet": " ".join(name for name, check in verdict.hypotheses.items() if check.state != "holds"),
        }
        for verdict in theory.check_all(run)
    ]


def _columns(rows: list[dict[str, Any]], setting: Setting) -> dict[str, list[Any]]:
    labels = {name: [value] * len(rows) for name, value in _labels(setting).items()}
    return labels | {name: [row[name] for row in rows] for name in rows[0]}


TYPES = {
    "data": "string",
    "step_size": "float64",
    "exponent": "float64",
    "steps": "int64",
    "space": "string",
    "seed": "int64",
    "step": "int64",
    "theorem": "string",
    "holds": "bool_",
    "worst_ratio": "float64",
    "worst_step": "int64",
    "unmet": "string",
}


def _parquet(columns: dict[str, list[Any]], about: dict[str, Any]) -> bytes:
    """Write columns of fixed types, with where they come from in the file's metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, getattr(pa, TYPES.get(name, "float64"))()) for name in columns])
    table = pa.table({field.name: pa.array(columns[field.name], field.type) for field in schema}, schema)
    about = {**about, "digest": digest(table)}
    table = table.replace_schema_metadata({"attnrates": json.dumps(about, sort_keys=True)})
    stream = io.BytesIO()
    parquet.write_table(  # a bound on values that is damaged would hide rows, and no checksum covers it
        table, stream, compression="zstd", write_page_checksum=True, write_statistics=False
    )
    return stream.getvalue()


def digest(table: Any) -> str:
    """Give a hash of a table's columns: their names, types and values."""
    import numpy as np

    found = hashlib.sha256()
    for field in table.schema:
        column = table[field.name]
        found.update(json.dumps([field.name, str(field.type), len(column)]).encode())
        if str(field.type) == "double" and not column.null_count:
            found.update(np.ascontiguousarray(column.to_numpy(), dtype="<f8").tobytes())
        else:
            found.update(json.dumps(column.to_pylist()).encode())
    return found.hexdigest()
