"""The proof of a page as a numbered list: each inference of the kernel, its rule and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from theory import catalog
from theory.page import Theorem
from theory.proof.kernel import Proved, ancestry
from theory.proof.terms import Formula


@dataclass(frozen=True)
class Step:
    """One inference.

    Attributes:
        number: its place, from 1; the last one is the page's claim.
        rule: the kernel's rule that made it; for a claim that is the claim of another page, "page".
        premises: the numbers of the steps that it was inferred from.
        conclusion: what it concludes.
        page: the key of the other page whose claim it is, or None.
        hypothesis: the page's name of the hypothesis that it assumes, or None.
    """

    number: int
    rule: str
    premises: tuple[int, ...]
    conclusion: Formula
    page: str | None = None
    hypothesis: str | None = None


def steps(page: Theorem) -> list[Step]:
    """List the inferences between the pages that a proved page draws on and its claim, premises first.

    Raises:
        ProofError: the page is not proved.
    """
    claim = page.proved()
    # By what is proved, not by which object proves it, nor by what has been proved so far in this process.
    others = {
        (p.claim, frozenset(p.hypotheses.values())): k
        for k, p in catalog.theorems().items()
        if k != page.key and p.prove is not None
    }
    others.pop(_says(claim), None)
    names = {formula: name for name, formula in page.hypotheses.items()}
    numbers: dict[tuple[Formula, frozenset[Formula]], int] = {}
    found: list[Step] = []
    todo: list[tuple[Proved, bool]] = [(claim, False)]
    while todo:
        node, entered = todo.pop()
        said = _says(node)
        if said in numbers:
            continue
        key = others.get(said) if node.rule != "assume" else None
        premises = () if key else _ordered(node)
        if premises and not entered:
            todo.append((node, True))
            todo.extend((premise, False) for premise in reversed(premises))
            continue
        numbers[said] = len(found) + 1
        found.append(
            Step(
                number=len(found) + 1,
                rule="page" if key else node.rule,
                premises=tuple(numbers[_says(premise)] for premise in premises),
                conclusion=node.conclusion,
                page=key,
                hypothesis=names.get(node.conclusion) if node.rule == "assume" and not key else None,
            )
        )
    return _needed(found)


def count(claim: Proved) -> int:
    """How many different claims a proof goes through, those of its lemmas included, itself too."""
    return len({_says(node) for node in ancestry(claim)})


def _says(claim: Proved) -> tuple[Formula, frozenset[Formula]]:
    return claim.conclusion, frozenset(claim.hypotheses)


def _needed(found: list[Step]) -> list[Step]:
    """The steps that the last one rests on, numbered anew: of what is proved twice one way is enough."""
    used = {found[-1].number}
    for step in reversed(found):
        if step.number in used:
            used.update(step.premises)
    numbers = {old: new for new, old in enumerate(sorted(used), start=1)}
    return [
        replace(step, number=numbers[step.number], premises=tuple(numbers[p] for p in step.premises))
        for step in found
        if step.number in used
    ]


def _ordered(node: Proved) -> tuple[Proved, ...]:
    """The premises; those that discharge hypotheses, drawn from a set, in an order that every run shares."""
    if node.rule != "discharge":
        return node.premises
    claim, *facts = node.premises
    return (claim, *sorted(facts, key=lambda fact: repr(fact.conclusion)))
