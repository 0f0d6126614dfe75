"""Mutants of a page's claim: one node of the formula at a time, refused by the page and refuted by models."""

from __future__ import annotations

import dataclasses
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from theory import catalog
from theory.falsify import Draw, Search
from theory.model import Model, Side, UndecidedError, is_exact, precision
from theory.page import ProofError, Theorem
from theory.proof.normal import normal
from theory.proof.terms import (
    Domain,
    Formula,
    Index,
    Node,
    Term,
    forall,
    index,
    open_binder,
    real,
    total,
    vtotal,
)

TRIES = 200  # candidates in the search that all mutants of a claim share
LOOKED = 16  # models that each mutant is held against
SEARCHED = 12  # mutants of a page that get a search of their own
OWN = 16  # candidates in it


@dataclass(frozen=True)
class ClaimMutant:
    """A claim with one node changed; ``what`` says which and how."""

    what: str
    claim: Formula


def _replacements(x: Node) -> Iterator[tuple[str, Node]]:
    """What may stand in a node's place."""
    head = x[0]
    if head == "num":
        q: Fraction = x[1]
        for new in (q / 2, 2 * q, q + 1, q - 1, Fraction(0)):
            yield f"{q} -> {new}", real(new)
    elif head in ("sym", "real") or (head == "inner"):
        yield f"{x!r} -> half", x * Fraction(1, 2)
        yield f"{x!r} -> double", x * 2
        if head != "inner":
            yield f"{x!r} -> less 1", x - 1
            yield f"{x!r} -> plus 1", x + 1
    elif head == "pow":
        yield f"{x!r} -> power {x[2] + 1}", x[1] ** (x[2] + 1)
        yield f"{x!r} -> power {x[2] - 1}", x[1] ** (x[2] - 1)
    elif head == "inv":
        yield f"{x!r} -> no inverse", x[1]
    elif head == "fn":
        for name in {"log": ["lambertw"], "lambertw": ["log"], "sqrt": ["log"], "exp": []}.get(x[1], []):
            yield f"{x[1]} -> {name}", Term(("fn", name, *x[2:]))
        if x[1] in ("max", "min"):
            yield f"{x[1]} -> the other", Term(("fn", "min" if x[1] == "max" else "max", *x[2:]))
            yield f"{x[1]} -> first", x[2]
            yield f"{x[1]} -> second", x[3]
        else:
            yield f"{x[1]} dropped", x[2]
        if x[1] == "exp":
            yield "exp -> tangent", 1 + x[2]
    elif head in ("add", "mul") and len(x) > 2:
        for k in range(1, len(x)):
            rest = x[1:k] + x[k + 1 :]
            yield f"{x[k]!r} dropped", rest[0] if len(rest) == 1 else Term((head, *rest))
            if head == "add":
                yield f"{x[k]!r} subtracted", Term((head, *x[1:k], -x[k], *x[k + 1 :]))
    elif head == "sum" and x[2][0] == "below":
        yield "one more term", Term(("sum", x[1], Domain(("below", x[2][1] + 1)), x[3]))
        top: Index = x[2][1]
        if top[2]:
            less = Domain(("below", Index(("ix", top[1], top[2] - 1))))
            yield "one term less", Term(("sum", x[1], less, x[3]))
    elif head == "le":
        yield "<= -> <", Formula(("lt", x[1], x[2]))


_BINDERS: dict[str, Callable[..., Any]] = {"sum": total, "vsum": vtotal, "forall": forall}


def _mutated(x: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(x, Node) or isinstance(x, (Index, Domain)):
        return
    yield from _replacements(x)
    if x[0] in _BINDERS:
        name = f"b{x[1][1:]}'"  # binders are named by height: build them anew
        for what, new in _mutated(open_binder(x, name)):
            yield what, _BINDERS[x[0]](index(name), x[2], new)
    elif x[0] != "diff":
        for k in range(1, len(x)):
            for what, new in _mutated(x[k]):
                yield what, type(x)((*x[:k], new, *x[k + 1 :]))


def _body(formula: Formula) -> Formula:
    while formula[0] == "forall":
        formula = formula[3]
    return formula


def meaning(formula: Formula) -> object:
    """Equal for statements that exact algebra does not tell apart: b - a up to a positive factor.

    Raises:
        ValueError: exact algebra cannot write a side as a polynomial of its atoms.
    """
    body = _body(formula)
    if body[0] not in ("le", "lt", "eq"):
        return formula
    slack = normal(body[2] - body[1])
    if not slack:
        return body[0], frozenset[object]()
    lead = slack[min(slack, key=repr)]
    scale = lead if body[0] == "eq" else abs(lead)
    quantifiers = []
    while formula[0] == "forall":
        quantifiers.append(formula[2])
        formula = formula[3]
    return body[0], tuple(quantifiers), frozenset((m, c / scale) for m, c in slack.items())


def same_statement(claim: Formula, mutant: Formula) -> bool:
    """Whether exact algebra shows that a mutant says what the claim says."""
    try:
        return meaning(claim) == meaning(mutant)
    except (ValueError, ArithmeticError):
        return False


def claim_mutants(claim: Formula) -> list[ClaimMutant]:
    """Every change of one node of a claim, each formula once."""
    found = {claim: ""}
    for what, mutant in _mutated(claim):
        found.setdefault(mutant, what)
    return [ClaimMutant(what, mutant) for mutant, what in found.items() if what]


@dataclass(frozen=True)
class View:
    """A model, with what the true claim says in it: one side for each value of its indices."""

    model: Model
    sides: tuple[Side, ...]

    @classmethod
    def of(cls, model: Model, claim: Formula) -> View:
        """Look; the sides that cannot be evaluated are left out."""
        return cls(model, tuple(_evaluated(model, claim)))


def _evaluated(model: Model, claim: Formula) -> Iterator[Side]:
    try:
        yield from model.sides(claim)
    except UndecidedError:
        return


def compare(view: View, mutant: Formula) -> tuple[bool, bool, float]:
    """In one model: does the mutant ask for more, where the claim says something; does it fail; its ratio.

    A claim says something where its sides have one sign: moving a bound that is negative anyway, below an
    observed positive number, strengthens nothing. Nor does scaling a side whose other side is 0.
    """
    stronger, ratio = False, -math.inf
    for old, new in zip(view.sides, _evaluated(view.model, mutant), strict=False):
        if new.state is False:
            return True, True, math.inf
        if old.head == "eq":
            stronger = stronger or bool(new.small != old.small) or bool(new.large != old.large)
        elif old.ratio >= 0 and not (_is_zero(old.small) or _is_zero(old.large)):
            stronger = stronger or bool(new.small > old.small) or bool(new.large < old.large)
        stronger = stronger or (old.head, new.head) == ("le", "lt")
        ratio = max(ratio, new.ratio)
    return stronger, False, ratio


def _is_zero(x: object) -> bool:
    return is_exact(x) and x == 0


@dataclass(frozen=True)
class PageOutcome:
    """How a page's claim mutants fared.

    Attributes:
        key, file: the page and where it is.
        models: how many met every hypothesis.
        counts: ``refuted`` and ``unrefuted`` by a model (both ask for more), ``weaker`` (asks for more in no
            model) and ``same`` (exact algebra shows that it is the claim).
        unrefuted: strengthening mutants that no model was found against.
        accepted: strengthening mutants that the page accepts as proved: survivors.
    """

    key: str
    file: str
    models: int
    counts: dict[str, int]
    unrefuted: tuple[str, ...]
    accepted: tuple[str, ...]


def still_proved(page: Theorem, claim: Formula) -> bool:
    """Whether the page with this claim in place of its own calls itself proved, by its own proof."""
    proof = page.proved()
    try:
        dataclasses.replace(page, claim=claim, prove=lambda: proof).proved()
    except ProofError:
        return False
    return True


def models_of(page: Theorem, seed: int = 0, tries: int = TRIES) -> tuple[Search, list[tuple[Draw, Model]]]:
    """Models that meet a page's hypotheses: where its claim is tightest, and others."""
    assert page.claim is not None
    search = Search(tuple(page.hypotheses.values()), page.claim, page.key, seed)
    search.run(tries)
    tightest = sorted(search.pool, key=lambda found: -found[0])[: LOOKED // 2]
    others = search.pool[:: max(1, len(search.pool) // (LOOKED // 2))][: LOOKED // 2]
    models = [(draw, search.model(draw)) for _, draw in (*tightest, *others)]
    return search, [(draw, model) for draw, model in models if model is not None]


def judge_page(key: str, tries: int = TRIES) -> PageOutcome:
    """Every claim mutant of one page: refused by verification, and held against models of one search.

    The likeliest of those that no model refutes get a search of their own.
    """
    page = catalog.theorems()[key]
    claim, counts = page.claim, Counter[str]()
    assert claim is not None
    mutants = claim_mutants(claim)
    fate = ["weaker"] * len(mutants)
    ratios = [-math.inf] * len(mutants)
    accepted = [m.what for m in mutants if still_proved(page, m.claim) and not same_statement(claim, m.claim)]
    with precision():
        search, models = models_of(page, tries=tries)
        views = [View.of(model, claim) for _, model in models]
        for view in views:
            for k, mutant in enumerate(mutants):
                if fate[k] != "refuted":
                    more, fails, ratio = compare(view, mutant.claim)
                    fate[k] = "refuted" if fails else "unrefuted" if more else fate[k]
                    ratios[k] = max(ratios[k], ratio)
        if views:
            for k, mutant in enumerate(mutants):
                if fate[k] == "unrefuted" and same_statement(claim, mutant.claim):
                    fate[k] = "same"
            left = sorted((k for k, f in enumerate(fate) if f == "unrefuted"), key=lambda k: -ratios[k])
            for k in left[:SEARCHED]:
                if refute(page, mutants[k].claim, [draw for draw, _ in models[:2]]):
                    fate[k] = "refuted"
        else:  # nothing says which of them strengthen: count them all, also what says the same
            fate = ["unrefuted"] * len(mutants)
    counts.update(fate)
    unrefuted = tuple(m.what for m, f in zip(mutants, fate, strict=True) if f == "unrefuted")
    return PageOutcome(key, file_of(page), search.met, dict(counts), unrefuted, tuple(accepted))


def file_of(page: Theorem) -> str:
    """The file that a page stands in."""
    return Path(sys.modules[page.prove.__module__].__file__ or "").name if page.prove is not None else ""


def refute(page: Theorem, claim: Formula, starts: list[Draw]) -> bool:
    """Look for a model where the hypotheses hold and the mutant fails, from where the claim is tight."""
    search = Search(tuple(page.hypotheses.values()), claim, page.key, 1)
    rng = random.Random(page.key)
    for draw in starts:
        search.climb(draw, OWN // 2, rng)
    return search.counterexample is not None
