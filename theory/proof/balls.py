"""Signs on boxes by outward-rounded ball arithmetic with subdivision. Part of the trusted base."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from flint import arb, ctx, fmpq

from theory.proof.terms import Term

Box = Mapping[str, tuple[Fraction, Fraction]]


_precision = threading.Lock()  # flint's working precision is one for all threads


class UndecidedError(Exception):
    """The enclosure meets a point where the term is not defined, or the budget is spent."""


Ends = Mapping[str, tuple[arb, arb]]


def _point(q: Fraction) -> arb:
    return arb(fmpq(q.numerator, q.denominator))


def enclose(t: Term, box: Mapping[str, arb], ends: Ends = MappingProxyType({})) -> arb:
    """A finite ball that holds every value of ``t`` over the box.

    ``ends`` are balls of the ends of a variable's range, where they are known: a ball around [0, 1] reaches
    below 0, where log, sqrt and Lambert W are unspecified, its ends do not.

    Raises:
        UndecidedError: a divisor's ball holds 0, a function's argument may leave its domain, or the value
            has no finite enclosure.
    """
    ball = _enclose(t, box, ends)
    if not ball.is_finite():  # infinities and NaN compare in ways that are better not relied upon
        raise UndecidedError(f"no finite enclosure: {t!r}")
    return ball


def _enclose(t: Term, box: Mapping[str, arb], ends: Ends) -> arb:
    head = t[0]
    if head == "num":
        return _point(t[1])
    if head == "sym" and len(t) == 2 and t[1] in box:
        return box[t[1]]
    if head == "add":
        return sum((enclose(c, box, ends) for c in t[1:]), start=arb(0))
    if head == "mul":
        return math.prod((enclose(c, box, ends) for c in t[1:]), start=arb(1))
    if head == "pow":
        return math.prod([enclose(t[1], box, ends)] * t[2], start=arb(1))
    if head == "inv":
        b = enclose(t[1], box, ends)
        if b.contains(0):
            raise UndecidedError(f"divisor may vanish: {t[1]!r}")
        return 1 / b
    if head == "fn":
        args = [enclose(c, box, ends) for c in t[2:]]
        if t[1] == "exp":
            return args[0].exp()
        if t[1] == "max":
            return args[0].max(args[1])
        if t[1] == "min":
            return args[0].min(args[1])
        known = ends.get(t[2][1]) if t[2][0] == "sym" else None
        low, high = (_increasing(t, b) for b in known or (args[0], args[0]))
        return low.union(high)
    raise ValueError(f"ball arithmetic knows nothing of {t!r}")


def _increasing(t: Term, b: arb) -> arb:
    if t[1] == "log" and b > 0:
        return b.log()
    if t[1] == "sqrt" and b >= 0:
        return b.sqrt()
    if t[1] == "lambertw" and b >= 0:
        return b.lambertw()
    raise UndecidedError(f"argument may leave the domain: {t!r}")


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
                ends = {n: (_point(lo), _point(hi)) for n, (lo, hi) in zip(names, cell, strict=True)}
                value = enclose(t, {n: lo.union(hi) for n, (lo, hi) in ends.items()}, ends)
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
