"""Whether a changed page that is still proved says more than the true one."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

from tests.theory.mutate_claims import View, compare, meaning, models_of, same_statement
from theory.model import precision
from theory.page import Theorem
from theory.proof.terms import Formula, free, substitute, symbol


def said(page: Theorem) -> tuple[Any, ...]:
    """What a page says: its claim, its hypotheses, its rate on runs."""
    rate = page.rate
    of_runs = (rate.observed, rate.bound, rate.sense) if rate is not None else ()
    return (page.key, page.claim, frozenset(page.hypotheses.values()), of_runs)


def is_instance(old: Theorem, new: Theorem) -> bool:
    """Whether a changed page is the true one for half or twice a plain symbol: it says nothing new then."""
    assert old.claim is not None
    assert new.claim is not None
    formulas = (old.claim, *old.hypotheses.values())
    names = {name for f in formulas for kind, name in free(f) if kind == "sym"}
    for name in sorted(names):
        for factor in (Fraction(1, 2), Fraction(2)):
            scaled: dict[str, Any] = {name: ((), factor * symbol(name))}
            with contextlib.suppress(ValueError):  # the symbol is a family, or exact algebra has no opinion
                claim, *hypotheses = (meaning(substitute(f, reals=scaled)) for f in formulas)
                if claim == meaning(new.claim) and {*hypotheses} == {*map(meaning, new.hypotheses.values())}:
                    return True
    return False


def _strict(formula: Formula) -> Formula | None:
    """The formula with < for <=, under its quantifiers."""
    if formula[0] == "forall":
        body = _strict(formula[3])
        return None if body is None else Formula((*formula[:3], body))
    return Formula(("lt", *formula[1:])) if formula[0] == "le" else None


def asks_more(old: Theorem, new: Theorem) -> bool:
    """Whether a changed page that is still proved says more than the true one, in some model or of runs."""
    if old.claim is None or new.claim is None:
        return True
    same = same_statement(old.claim, new.claim)
    if same and said(new)[3] != said(old)[3]:
        return True  # what it says of runs is no longer what it proves
    assumed = frozenset(new.hypotheses.values())
    if same and all(
        h in assumed or _strict(h) in assumed or any(same_statement(h, other) for other in assumed)
        for h in old.hypotheses.values()
    ):
        return False
    if is_instance(old, new):
        return False
    with precision():
        for _, model in models_of(new)[1]:
            if any(model.holds(h) is not True for h in old.hypotheses.values()):
                return True
            if not same and compare(View.of(model, old.claim), new.claim)[0]:
                return True
    return False
