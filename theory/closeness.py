"""How tight each page's bound is: the falsifier's best observed/bound ratio, searched once and stored.

``attnrates verify --falsify`` hunts a counterexample to every page and writes ``closeness.json``; ``attnrates
verify`` prints what is stored. A stored ratio belongs to a statement (by digest), so a page that has changed
since has none, and only such pages are searched again. The search is seeded: the same file on every machine.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from numerics.errors import InputError
from theory import catalog
from theory.page import Theorem

STORE = Path(__file__).parent / "closeness.json"
SEED = 0
TRIES = 200


@dataclass(frozen=True, kw_only=True)
class Tightness:
    """What the search found about a page.

    Attributes:
        ratio: the largest small/large ratio of the claim's sides in a model of its hypotheses, rounded to six
            digits; 1 means that the bound is attained. None where no model was met, or the claim says only a
            sign.
        models: how many of the candidates met every hypothesis.
        tried: candidates looked at.
        statement: a digest of hypotheses and claim.
    """

    ratio: float | None
    models: int
    tried: int
    statement: str


def statement_digest(page: Theorem) -> str:
    """Tells whether a page still says what was searched."""
    said = (page.claim, sorted(map(repr, page.hypotheses.values())))
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


@cache
def stored() -> Mapping[str, Tightness]:
    """Key -> what is stored; empty when nothing is.

    Raises:
        InputError: the file is not such a table.
    """
    if not STORE.exists():
        return {}
    try:
        table = json.loads(STORE.read_text(encoding="utf-8"))
        found = {key: Tightness(**row) for key, row in table.items()}
    except (ValueError, TypeError, AttributeError) as error:
        message = f"{STORE}: not a table of tightness ({error}); write it anew with --falsify"
        raise InputError(message) from None
    return found


def tightness_of(page: Theorem) -> Tightness | None:
    """What is stored of this very statement."""
    found = stored().get(page.key)
    return found if found is not None and found.statement == statement_digest(page) else None


def search(page: Theorem, *, seed: int = SEED, tries: int | None = None) -> tuple[Tightness, str]:
    """Search for a counterexample; gives the tightness, and the counterexample in words or ""."""
    from theory.falsify import falsify

    found = falsify(page, seed=seed, tries=TRIES if tries is None else tries)
    ratio = None if found.tightness is None else float(f"{found.tightness:.6g}")
    broken = "" if found.counterexample is None else str(found.counterexample)
    digest = statement_digest(page)
    return Tightness(ratio=ratio, models=found.met, tried=found.tried, statement=digest), broken


def search_all(*, anew: bool = False, progress: Callable[[str], None] | None = None) -> dict[str, str]:
    """Search every page whose statement has none stored, or with ``anew`` every page, and store the outcome.

    The file is written every so often, so that an interrupted search goes on.

    Returns:
        Key -> counterexample, for pages that were refuted: nothing is stored of them.
    """
    out: dict[str, Tightness] = {}
    broken: dict[str, str] = {}
    pages = [page for page in catalog.theorems().values() if page.claim is not None]
    if not anew:
        out = {page.key: known for page in pages if (known := tightness_of(page)) is not None}
    todo = [page for page in pages if page.key not in out]
    for number, page in enumerate(todo):
        if progress is not None:
            progress(page.key)
        found, counterexample = search(page)
        if counterexample:
            broken[page.key] = counterexample
        else:
            out[page.key] = found
        if number % 20 == 0:
            save(out)
    save(out)
    return broken


def save(table: Mapping[str, Tightness]) -> None:
    """Write the file in place of the stored one.

    Raises:
        OSError: the folder cannot be written; the old file is then as it was.
    """
    rows: dict[str, Any] = {key: asdict(row) for key, row in sorted(table.items())}
    text = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n"
    partial = STORE.with_suffix(f".{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, STORE)
    finally:
        partial.unlink(missing_ok=True)
    stored.cache_clear()
