"""Pieces of HTML: escaped text, tables, mathematics as MathML, outcomes in their colours."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from latex2mathml.converter import convert

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

TONE = {
    "proved": "good",
    "proved-given": "good",
    "claimed": "warn",
    "observed": "warn",
    "failed": "bad",
    "holds": "good",
    "not claimed": "warn",
    "VIOLATED": "bad",
}


@lru_cache(maxsize=50_000)
def formula(latex: str, *, block: bool = False) -> str:
    """Give MathML; a block formula scrolls by itself where the page is narrow."""
    if not block:
        return _compact(convert(latex))
    return f'<div class="wide formula">{_compact(convert(latex, display="block"))}</div>'


def _compact(mathml: str) -> str:
    """Write the same MathML shorter: a report holds thousands of formulas.

    HTML needs no namespace, attributes that say the default say nothing, characters stand for themselves, and
    a row of one leaf is the leaf.
    """
    mathml = mathml.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(
        ' display="inline"', ""
    )
    mathml = re.sub(r"&#x([0-9A-F]+);", lambda found: escape(chr(int(found[1], 16))), mathml)
    for side in ("prefix", "postfix"):  # these operators' own defaults
        fence = f'<mo stretchy="true" fence="true" form="{side}">'
        mathml = re.sub(f"{fence}([()⟨⟩])", r"<mo>\1", mathml)
        mathml = mathml.replace(fence, f'<mo stretchy="true" form="{side}">')
    mathml = mathml.replace(" />", "/>")
    before = ""
    while before != mathml:
        before, mathml = mathml, re.sub(r"<mrow>(<(m[ino])\b[^>]*>[^<]*</\2>)</mrow>", r"\1", mathml)
    return mathml


def mathematics(text: str) -> str:
    """Turn plain text with $mathematics$ into HTML."""
    pieces = re.split(r"\$(.*?)\$", text)
    return "".join(
        formula(piece) if number % 2 else escape(piece) for number, piece in enumerate(pieces) if piece
    )


def statement(text: str, claim: str) -> str:
    """Turn a page's statement, text with $mathematics$ and a {claim}, into HTML."""
    pieces = []
    for position, piece in enumerate(re.split(r"\$(.*?)\$|(\{claim\}\.?)", text)):
        kind = position % 3  # re.split interleaves text, inline mathematics and claim
        if piece and kind == 0:
            pieces.append(escape(piece))
        elif piece and kind == 1:
            pieces.append(formula(piece))
        elif piece:
            pieces.append(f"</p>{formula(claim, block=True)}<p>")
    return f"<p>{''.join(pieces)}</p>".replace("<p></p>", "")


def row(cells: Sequence[str], tag: str = "td") -> str:
    """Give a table row of escaped cells; numbers stand on the right."""
    return "<tr>" + "".join(f"<{tag}{_kind(cell)}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _kind(cell: str) -> str:
    return ' class="number"' if re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?|–", cell) else ""


def table(head: Sequence[str], rows: Sequence[str]) -> str:
    """Give a table that scrolls by itself where the page is narrow."""
    return f'<div class="wide"><table>{row(head, "th")}{"".join(rows)}</table></div>'


def toned(word: str, tag: str = "span") -> str:
    """Give an outcome in its colour."""
    return f'<{tag} class="{TONE[word]}">{escape(word)}</{tag}>'


def fold(title: str, body: str) -> str:
    """Give a section that opens on demand, without any script."""
    return f"<details><summary>{title}</summary>{body}</details>"


def anchor(key: str, pages: Container[str]) -> str:
    """Give a link to the article of a page, where it is among the pages shown."""
    return f'<a href="#{escape(key, quote=True)}">{escape(key)}</a>' if key in pages else escape(key)
