"""The documentation: a page for each theorem and an index, from the same objects that are proved."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import theory
from numerics.files import atomic_write
from paper_figs.proofs import titles
from paper_figs.report import document, markup, theorems, trusted_base

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, proofs: dict[str, Any]) -> list[Path]:
    """Write KEY.html for every page and index.html; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = proofs["theorems"]
    shown, names = {entry["key"] for entry in entries}, titles(proofs)
    paths = []
    for entry in entries:
        body = theorems.article(proofs, entry, (), shown)
        body = _apart(body, shown - {entry["key"]})
        head = '<p><a href="index.html">all theorems</a></p>'
        paths.append(_write(folder / f"{entry['key']}.html", names[entry["key"]], head + body))
    rows = [
        f'<tr><td><a href="{escape(entry["key"])}.html">{escape(entry["key"])}</a></td>'
        f"<td>{escape(names[entry['key']])}</td><td>{entry['kind']}</td>"
        f"{markup.toned(entry['status'], 'td')}</tr>"
        for entry in entries
    ]
    table = markup.table(("page", "says", "kind", "status"), rows)
    index = f"<h1>Theorems of attnrates {version('attnrates')}</h1>{table}{trusted_base(proofs)}"
    return [_write(folder / "index.html", "Theorems of attnrates", index), *paths]


def _apart(body: str, others: set[str]) -> str:
    """Let links to other articles lead to their own pages."""
    for key in others & set(theory.theorems()):
        body = body.replace(f'<a href="#{key}">', f'<a href="{key}.html">')
    return body


def _write(path: Path, title: str, body: str) -> Path:
    with atomic_write(path) as stream:
        stream.write(document(title, body).encode())
    return path
