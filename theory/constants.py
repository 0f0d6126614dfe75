"""The constants of a bound on one run: the numbers in it that do not change with the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from theory.latex import PACKAGE, Notation, latex
from theory.proof.terms import Node, Term


def in_bound(known: Mapping[Term, Any], bound: Term | None, notation: Notation = PACKAGE) -> dict[str, float]:
    """Give LaTeX name -> value of each known term inside a bound that is one number.

    `known` maps terms to numbers, arrays (left out) or calls that give a number.
    """
    inside: set[Node] = set()
    todo: list[Node] = [] if bound is None else [bound]
    while todo:
        node = todo.pop()
        if node not in inside:
            inside.add(node)
            todo.extend(child for child in node[1:] if isinstance(child, Node))
    found = {}
    for term, value in known.items():
        if term in inside:
            number = value() if callable(value) else value
            if np.ndim(number) == 0:
                found[latex(term, notation)] = float(number)
    return found
