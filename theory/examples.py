"""A runnable example of every page: a small problem that meets its hypotheses, observed beside guaranteed."""

from __future__ import annotations

from fractions import Fraction

from theory.falsify import Draw, Search
from theory.model import Model, Side, UndecidedError, approximate, precision
from theory.page import Theorem
from theory.proof.terms import NATURALS

ROWS = 6
TRIES = 200
_SCALES = ("token", "query", "score", "weights", "step", "real", "coefficient", "vector", "decoder")


def _named(search: Search, number: int) -> Draw:
    """Small problem ``number``: entries of one or two digits, no extreme scales."""
    draw = search.fresh(number)
    mild = {("choice", f"scale {group}"): Fraction(number % 4) for group in _SCALES}
    return Draw(f"example/{number}", mild, draw.wants)


def _sides(model: Model, page: Theorem) -> list[Side]:
    assert page.claim is not None
    stepped = page.claim[0] == "forall" and page.claim[2] == NATURALS
    sides = list(model.sides(page.claim))
    return [s for s in sides if not (stepped and s.at[0] == 0)] or sides


def find(page: Theorem) -> tuple[str, Model, list[Side]] | None:
    """The first named small problem on which every hypothesis holds and the claim says something."""
    assert page.claim is not None
    search = Search(tuple(page.hypotheses.values()), page.claim, page.key, 0)
    with precision():
        for number in range(TRIES):
            draw = _named(search, number)
            model = search.model(draw)
            if model is None or not all(model.holds(f) is True for f in search.hypotheses):
                continue
            try:
                sides = _sides(model, page)
            except UndecidedError:
                continue
            if any(s.ratio > 0 for s in sides):
                return f"small problem {number}", model, sides
        search.run(TRIES)
        if search.best is None:
            return None
        model = search.model(search.best.draw)
        assert model is not None
        return f"found by the falsifier, seed {search.best.draw.seed}", model, _sides(model, page)


def example(page: Theorem) -> str:
    """Hypotheses met, and both sides of the claim, on one small problem.

    Raises:
        ValueError: the page makes no formal claim.
    """
    if page.claim is None:
        raise ValueError(f"{page.key} makes no formal claim")
    found = find(page)
    if found is None:
        return f"No small problem was found that meets every hypothesis of {page.key}."
    name, model, sides = found
    with precision():
        tokens = [1 + sum(len(model.sets(part, (i,))) for part in "JK") for i in model.sets("I", ())]
        lines = [f"{name}: {len(tokens)} sequence(s), of {', '.join(map(str, tokens))} tokens"]
        for label, f in page.hypotheses.items():
            how = "by construction" if model.by_construction(f) else "holds"
            lines.append(f"  {label}: {how}")
        relation = {"le": "<=", "lt": "<", "eq": "="}[sides[0].head]
        for s in sides[:ROWS]:
            at = f" at {', '.join(map(str, s.at))}" if s.at else ""
            lines.append(f"  {approximate(s.small):.8g} {relation} {approximate(s.large):.8g}{at}")
        if len(sides) > ROWS:
            lines.append(f"  ... and {len(sides) - ROWS} more")
    return "\n".join(lines)
