"""Captions: one text for LaTeX and for the report, plain words with $mathematics$ between dollars."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from numerics import max_margin
from numerics.datasets import options, parse

if TYPE_CHECKING:
    from paper_figs.runs import Setting

SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {character: "\\" + character for character in "&%#_{}"}
RULE_NAMES = {"gd": "GD", "ngd": "normalized GD", "polyak": "Polyak"}


def latex(text: str) -> str:
    """Escape everything outside the dollars for LaTeX."""
    pieces = re.split(r"(\$.*?\$)", text)
    return "".join(
        piece if number % 2 else "".join(SPECIAL.get(character, character) for character in piece)
        for number, piece in enumerate(pieces)
    )


def figure(stem: str, caption: str, *, wide: bool = False) -> str:
    """Give a LaTeX figure, to be input where STEM.pdf is found, with its caption and label.

    A `wide` one spans both columns of a paper that has two.
    """
    kind = "figure*" if wide else "figure"
    return (
        f"\\begin{{{kind}}}\n"
        "  \\centering\n"
        f"  \\includegraphics{{{stem}.pdf}}\n"
        f"  \\caption{{{latex(caption)}}}\n"
        f"  \\label{{fig:{stem}}}\n"
        f"\\end{{{kind}}}\n"
    )


def number(value: float, digits: int = 4) -> str:
    """Write a number in a formula, with a power of ten when very large or small (without dollars)."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if 1e-3 <= abs(value) < 1e6:
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = rf"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}\cdot {power}"


def data_set(setting: Setting, *, margin: bool = False) -> str:
    """Name a run's data with their sizes and scales, given or default, and their `margin` g* where wanted."""
    name, given = parse(setting.data)
    values = options(name) | given
    facts = [f"${key}={values[key]}$" for key in ("n", "T", "d") if key in values]
    facts += [f"{key} ${number(values[key])}$" for key in ("signal", "noise") if key in values]
    facts += [f"{key} {values[key]}" for key in ("classes",) if key in values]
    facts += [f"{key} ${values[key]}$" for key in ("tokens",) if key in values]
    if "patch" in values:
        facts.append(f"patches of ${values['patch']}\\times{values['patch']}$ pixels")
    if margin:
        facts.append(f"margin $g^*={number(max_margin(setting.problem()).margin)}$")
    return f"the data set {name} ({', '.join(facts)})"


def rules(steps: Mapping[str, float | None]) -> str:
    """List the step-size rules with their steps: GD with $\\eta=10$, ..., Polyak with steps at most $1$."""
    said = []
    for rule, step in steps.items():
        if rule == "polyak":
            said.append("Polyak" if step is None else f"Polyak with steps at most ${number(step)}$")
        else:
            assert step is not None
            said.append(rf"{RULE_NAMES[rule]} with $\eta={number(step)}$")
    return listed(said)


def listed(words: Iterable[str]) -> str:
    """Join words as a sentence does: a, b and c."""
    *most, last = list(words)
    return f"{', '.join(most)} and {last}" if most else last


def seeds(numbers: Iterable[int]) -> str:
    """Say which seeds: seed 0, seeds 0 to 19, or seeds 0, 3 and 5."""
    unique = sorted(set(numbers))
    if len(unique) == 1:
        return f"seed {unique[0]}"
    if len(unique) > 2 and unique == list(range(unique[0], unique[-1] + 1)):
        return f"seeds {unique[0]} to {unique[-1]}"
    return f"seeds {listed(map(str, unique))}"
