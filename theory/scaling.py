"""How a page scales: a dimension check of hypotheses and claim, exact and for every factor at once.

Multiplying the tokens by c and dividing the decoder by c leaves the scores alone and multiplies every A_k by
c; so does multiplying the queries by c. With W divided by c the logit gaps stay as they are: this is a
symmetry of the setting, and a page whose hypotheses respect it must have a claim that does. So is multiplying
the loss by c (dividing n by it), where a page does not say that n is a count. Multiplying only the decoder is
none: the exponentials of the loss see it.

Each symbol s scales as c^w(s). A sum needs parts of one weight, an (in)equality sides of one weight, and exp
and Lambert W a weightless argument; a logarithm turns its argument's weight into a shift by a multiple of
log(c), and shifts must cancel. These linear equations are solved exactly for the weights that a scaling
leaves open (step sizes, constants).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from theory.page import Theorem
from theory.proof.terms import Formula, Node

Weights = Mapping[str, Fraction]
Form = dict[str, Fraction]  # a linear form in the unknown weights; the key "" is its constant
State = Literal["respected", "no symmetry", "violated"]

_FIXED = {
    **dict.fromkeys(("A/2", "X/2", "Xo/1", "W/0", "W/1"), 0),  # a symbol and its number of indices
    **dict.fromkeys(("G/1", "g/1", "gs/2", "go/1", "n/0", "N/0", "T/0"), 0),
}


def _scaling(changed: Mapping[str, int]) -> Weights:
    return {name: Fraction(w) for name, w in {**_FIXED, **changed}.items()}


SYMMETRIES: Mapping[str, Weights] = {
    "tokens x c, decoder x 1/c; or queries x c": _scaling(
        {"A/2": 1, "X/2": 1, "Xo/1": 1, "W/0": -1, "W/1": -1}
    ),
    "loss x c": _scaling({"n/0": -1}),
}
"""Name -> the weights that it fixes."""
DECODER = _scaling({"G/1": 1, "g/1": 1, "gs/2": 1, "go/1": 1})
"""The decoder times c, with everything else as it is: no symmetry of the logistic loss."""


@dataclass(frozen=True)
class Scaling:
    """What one scaling does to one page.

    Attributes:
        name: a key of ``SYMMETRIES``.
        state: ``respected``; ``no symmetry`` when the hypotheses already break it, so that nothing is asked
            of the claim; ``violated`` when they do not and the claim does.
        weights: the exponent of c of each symbol, named with its number of indices (those left open are 0);
            where respected.
    """

    name: str
    state: State
    weights: Weights


class MixedError(ValueError):
    """A sum or comparison of parts that scale differently."""


def _plus(a: Form, b: Form, factor: Fraction | int = 1) -> Form:
    out = dict(a)
    for name, x in b.items():
        out[name] = out.get(name, Fraction(0)) + factor * x
    return {name: x for name, x in out.items() if x}


class Equations:
    """Linear equations for weights, kept solved."""

    def __init__(self, fixed: Weights) -> None:
        """Start from the weights that are given."""
        self.solved: dict[str, Form] = {name: {"": w} if w else {} for name, w in fixed.items()}

    def reduced(self, form: Form) -> Form:
        """The form in terms of unknowns that are still open."""
        out: Form = {}
        for name, x in form.items():
            out = _plus(out, self.solved.get(name, {name: Fraction(1)}), x)
        return out

    def zero(self, form: Form, where: Node) -> None:
        """Ask that a form be 0.

        Raises:
            MixedError: it cannot.
        """
        rest = self.reduced(form)
        name = min((k for k in rest if k), default=None)
        if name is None:
            if rest:
                raise MixedError(f"parts of weights that differ by {rest['']}: {where!r}")
            return
        lead = rest.pop(name)
        value = {k: -x / lead for k, x in rest.items()}
        self.solved = {
            k: _plus({j: x for j, x in f.items() if j != name}, value, f.get(name, 0))
            for k, f in self.solved.items()
        }
        self.solved[name] = value

    def same(self, forms: list[Form | None], where: Node) -> Form | None:
        """Ask that all weights be equal; the literal 0 (None) has every weight."""
        known = [f for f in forms if f is not None]
        for f in known[1:]:
            self.zero(_plus(f, known[0], -1), where)
        return known[0] if known else None

    def weight(self, x: Node) -> Form | None:
        """The weight of a term or vector that shifts by nothing; None for the literal 0."""
        weight, shift = self.scaled(x)
        self.zero(shift, x)
        return weight

    def scaled(self, x: Node) -> tuple[Form | None, Form]:
        """The weight w and the shift h of a term: it becomes c^w x + h log(c)."""
        head = x[0]
        if head == "add":
            parts = [self.scaled(c) for c in x[1:]]
            shift: Form = {}
            for _, h in parts:
                shift = _plus(shift, h)
            return self.same([w for w, _ in parts], x), shift
        if head == "mul" and len(x) == 3 and x[1][0] == "num":
            weight, shift = self.scaled(x[2])
            return (weight if x[1][1] else None), {name: v * x[1][1] for name, v in shift.items() if x[1][1]}
        if x[:2] == ("fn", "log"):
            return {}, self.weight(x[2]) or {}
        return self._weight(x), {}

    def _weight(self, x: Node) -> Form | None:
        head = x[0]
        if head == "num":
            return {} if x[1] else None
        if head == "real":
            return {}
        if head in ("sym", "vsym"):
            return {f"{x[1]}/{len(x) - 2}": Fraction(1)}
        if head == "vadd":
            return self.same([self.weight(c) for c in x[1:]], x)
        if head in ("mul", "inner", "vscale"):
            out: Form = {}
            for f in [self.weight(c) for c in x[1:]]:
                if f is None:
                    return None
                out = _plus(out, f)
            return out
        if head in ("sum", "vsum"):
            return self.weight(x[3])
        if head == "diff":
            variable, below, body = {f"{x[1]}/0": Fraction(1)}, self.weight(x[3]), self.weight(x[2])
            if below is not None:
                self.zero(_plus(variable, below, -1), x)
            return None if body is None else _plus(body, variable, -1)
        if head == "fn" and x[1] in ("max", "min"):
            return self.same([self.weight(c) for c in x[2:]], x)
        f = self.weight(x[2] if head == "fn" else x[1])
        if head == "fn" and x[1] != "sqrt":
            self.zero(f or {}, x)
            return {}
        if f is None:
            return {} if head == "pow" and x[2] == 0 else None
        return _plus({}, f, x[2] if head == "pow" else -1 if head == "inv" else Fraction(1, 2))

    def formula(self, f: Formula) -> None:
        """Ask that both sides scale alike.

        Raises:
            MixedError: they cannot.
        """
        if f[0] == "forall":
            self.formula(f[3])
        elif f[0] != "in":
            (left, before), (right, after) = self.scaled(f[1]), self.scaled(f[2])
            self.same([left, right], f)
            self.zero(_plus(before, after, -1), f)


def check_scaling(page: Theorem, name: str) -> Scaling:
    """Whether a page respects one of ``SYMMETRIES``.

    Raises:
        KeyError: no scaling of that name.
    """
    return respects(page, SYMMETRIES[name], name)


def respects(page: Theorem, fixed: Weights, name: str = "") -> Scaling:
    """Whether a page respects a scaling with these weights."""
    equations = Equations(fixed)
    try:
        for f in page.hypotheses.values():
            equations.formula(f)
    except MixedError:
        return Scaling(name, "no symmetry", {})
    try:
        if page.claim is not None:
            equations.formula(page.claim)
    except MixedError:
        return Scaling(name, "violated", {})
    solved = {k: form.get("", Fraction(0)) for k, form in equations.solved.items() if k[0] != "#"}
    return Scaling(name, "respected", solved)


def check_scalings(page: Theorem) -> dict[str, Scaling]:
    """Every scaling, by name."""
    return {name: check_scaling(page, name) for name in SYMMETRIES}
