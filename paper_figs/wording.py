"""Numbers with their nouns, and foreign text made harmless, for what the commands print."""

from __future__ import annotations


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 run`, `2 runs`; the plural is the singular and an s where it is not given."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def printable(text: str) -> str:
    """Text of unknown origin, such as a file's name, on one line: `?` for what is no printable character.

    So it can neither steer the terminal nor pass for lines of the command, and can always be encoded.
    """
    return "".join(character if character.isprintable() else "?" for character in text)
