"""How a page scales: a dimension check of hypotheses and claim, exact and for every factor at once.

Multiplying the tokens by c and dividing the decoder by c leaves the scores alone and multiplies every A_k by c;
so does multiplying the queries by c. With W divided by c the logit gaps stay as they are: this is a symmetry of
the setting, and a page whose hypotheses respect it must have a claim that does. Multiplying the decoder alone
by c is none (the loss's exponentials see it); multiplying the loss is one, where n is not a count.

Each symbol s scales as c^w(s). A sum needs parts of one weight, an (in)equality sides of one weight, and exp,
log and Lambert W a weightless argument; those linear equations are solved exactly for the weights that a
scaling leaves open (step sizes, constants).
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

_FIXED = {"A": 0, "X": 0, "Xo": 0, "W": 0, "G": 0, "g": 0, "gs": 0, "go": 0, "n": 0, "N": 0, "T": 0}


def _scaling(**changed: int) -> Weights:
    return {name: Fraction(w) for name, w in (_FIXED | changed).items()}


SCALINGS: Mapping[str, Weights] = {
    "tokens x c, decoder x 1/c; or queries x c": _scaling(A=1, X=1, Xo=1, W=-1),
    "loss x c": _scaling(n=-1),
    "decoder x c": _scaling(G=1, g=1, gs=1, go=1),
}
"""Name -> the weights that it fixes. The decoder's is no symmetry of the logistic loss; a page that never looks
at the loss's exponentials may still respect it."""


@dataclass(frozen=True)
class Scaling:
    """What one scaling does to one page.

    Attributes:
        name: a key of ``SCALINGS``.
        state: ``respected``; ``no symmetry`` when the hypotheses already break it, so that nothing is asked of
            the claim; ``violated`` when they do not and the claim does.
        weights: the exponent of c of each symbol (those left open are 0), where respected.
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
        """The weight of a term or vector; None for the literal 0."""
        head = x[0]
        if head == "num":
            return {} if x[1] else None
        if head == "real":
            return {}
        if head in ("sym", "vsym"):
            return {x[1]: Fraction(1)}
        if head in ("add", "vadd"):
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
            below = self.weight(x[3])
            if below is not None:
                self.zero(_plus({x[1]: Fraction(1)}, below, -1), x)
            body = self.weight(x[2])
            return None if body is None else _plus(body, {x[1]: Fraction(1)}, -1)
        if head == "fn" and x[1] in ("max", "min"):
            return self.same([self.weight(c) for c in x[2:]], x)
        f = self.weight(x[2] if head == "fn" else x[1])
        if head == "fn" and x[1] != "sqrt":
            if f is not None:
                self.zero(f, x)
            return {}
        if f is None:
            return {} if head == "pow" and x[2] == 0 else None
        factor = {"pow": Fraction(x[2] if head == "pow" else 0), "inv": Fraction(-1), "fn": Fraction(1, 2)}[
            head
        ]
        return _plus({}, f, factor)

    def formula(self, f: Formula) -> None:
        """Ask that both sides scale alike.

        Raises:
            MixedError: they cannot.
        """
        if f[0] == "forall":
            self.formula(f[3])
        elif f[0] != "in":
            self.same([self.weight(f[1]), self.weight(f[2])], f)


def check_scaling(page: Theorem, name: str) -> Scaling:
    """Whether a page respects one of ``SCALINGS``.

    Raises:
        KeyError: no scaling of that name.
    """
    equations = Equations(SCALINGS[name])
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
    weights = {
        symbol: form.get("", Fraction(0))
        for symbol, form in equations.solved.items()
        if symbol[0] not in "#~"
    }
    return Scaling(name, "respected", weights)


def check_scalings(page: Theorem) -> dict[str, Scaling]:
    """Every scaling, by name."""
    return {name: check_scaling(page, name) for name in SCALINGS}
