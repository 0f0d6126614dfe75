"""Numbers with their nouns, for what the commands print."""

from __future__ import annotations


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 run`, `2 runs`; the plural is the singular and an s where it is not given."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
