"""Signs on boxes by outward-rounded ball arithmetic with subdivision. Part of the trusted base."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from fractions import Fraction

from flint import arb, ctx, fmpq

from theory.proof.terms import Term

Box = Mapping[str, tuple[Fraction, Fraction]]


_precision = threading.Lock()  # flint's working precision is one for all threads


class UndecidedError(Exception):
    """The enclosure meets a point where the term is not defined, or the budget is spent."""


def _ball(lo: Fraction, hi: Fraction) -> arb:
    a, b = (arb(fmpq(q.numerator, q.denominator)) for q in (lo, hi))
    return a.union(b)


def enclose(t: Term, box: Mapping[str, arb]) -> arb:
    """A finite ball that holds every value of ``t`` over the box.

    Raises:
        UndecidedError: a divisor's ball holds 0, a function's argument may leave its domain, or the value
            has no finite enclosure.
    """
    ball = _enclose(t, box)
    if not ball.is_finite():  # infinities and NaN compare in ways that are better not relied upon
        raise UndecidedError(f"no finite enclosure: {t!r}")
    return ball


def _enclose(t: Term, box: Mapping[str, arb]) -> arb:
    head = t[0]
    if head == "num":
        return arb(fmpq(t[1].numerator, t[1].denominator))
    if head == "sym" and len(t) == 2 and t[1] in box:
        return box[t[1]]
    if head == "add":
        return sum((enclose(c, box) for c in t[1:]), start=arb(0))
    if head == "mul":
        return math.prod((enclose(c, box) for c in t[1:]), start=arb(1))
    if head == "pow":
        return math.prod([enclose(t[1], box)] * t[2], start=arb(1))
    if head == "inv":
        b = enclose(t[1], box)
        if b.contains(0):
            raise UndecidedError(f"divisor may vanish: {t[1]!r}")
        return 1 / b
    if head == "fn":
        args = [enclose(c, box) for c in t[2:]]
        if t[1] == "exp":
            return args[0].exp()
        if t[1] == "max":
            return args[0].max(args[1])
        if t[1] == "min":
            return args[0].min(args[1])
        if t[1] == "log" and args[0] > 0:
            return args[0].log()
        if t[1] == "sqrt" and args[0] >= 0:
            return args[0].sqrt()
        if t[1] == "lambertw" and args[0] >= 0:
            return args[0].lambertw()
        raise UndecidedError(f"argument may leave the domain: {t!r}")
    raise ValueError(f"ball arithmetic knows nothing of {t!r}")


def holds_on_box(t: Term, box: Box, *, strict: bool, boxes: int = 20_000, bits: int = 96) -> bool:
    """Whether t > 0 (strict) or t >= 0 on the whole closed box: True is a proof, False is not."""
    names = sorted(box)
    todo = [tuple(box[n] for n in names)]
    with _precision, ctx.workprec(bits):
        while todo:
            boxes -= 1
            if boxes < 0:
                return False
            cell = todo.pop()
            try:
                value = enclose(t, {n: _ball(*side) for n, side in zip(names, cell, strict=True)})
                if value > 0 or (not strict and value >= 0):
                    continue
                if value < 0:
                    return False
            except UndecidedError:
                pass
            k = max(range(len(cell)), key=lambda k: cell[k][1] - cell[k][0], default=None)
            if k is None or cell[k][0] == cell[k][1]:
                return False
            lo, hi = cell[k]
            mid = (lo + hi) / 2
            todo += [(*cell[:k], half, *cell[k + 1 :]) for half in ((lo, mid), (mid, hi))]
    return True
