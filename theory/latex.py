"""Kernel terms for readers: LaTeX, sympy, and short text. Outside the trusted base."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from theory import notation as nt
from theory.proof.normal import canonical
from theory.proof.terms import Formula, Index, Node, Term, free, open_binder, substitute

if TYPE_CHECKING:
    import sympy

_ATOM, _POWER, _PRODUCT, _SUM = range(4)
_FUNCTIONS = {"log": r"\log", "lambertw": r"\operatorname{W}", "max": r"\max", "min": r"\min"}
_RELATIONS = {"le": r"\le", "lt": "<", "eq": "=", "veq": "="}
_COMPOSITE = {nt.margin: r"\gamma_\ast", nt.Lam: r"\Lambda", nt.kappa: r"\kappa"}
_OPTIMAL = ("Xo", "go")  # the optimal token's


@dataclass(frozen=True)
class Notation:
    """How the symbols of a page are printed.

    Attributes:
        letters: kernel name -> LaTeX; a name that is not there is printed as it stands.
        package: whether the names are this package's, so that J(i) are the tokens of sequence i but o_i, and
            composite terms (1/||M||, the path length, ...) have a letter of their own.
        split: whether J(i) are the tokens of the support only, K(i) the others.
    """

    letters: Mapping[str, str] = field(default_factory=dict)
    package: bool = False
    split: bool = False


PACKAGE = Notation(nt.LATEX | {"Lam": r"\overline{\Lambda}", "lo": r"\underline{\ell}"}, package=True)
Seen = dict[tuple[str, str], str]
"""What has been printed: its kind and kernel name -> LaTeX without indices."""


@dataclass(frozen=True)
class _Scope:
    """Where a node is printed: the notation, the letters of the binders around it, what is noted as seen.

    ``free`` are the letters that are free in the whole formula: no binder takes one of them.
    """

    notation: Notation
    bound: Mapping[str, str] = field(default_factory=dict)
    seen: Seen | None = None
    free: frozenset[str] = frozenset()

    def letter(self, name: str) -> str:
        return self.bound.get(name) or self.notation.letters.get(name, name)

    def binding(self, name: str, letter: str) -> _Scope:
        return replace(self, bound={**self.bound, name: letter})

    def note(self, kind: str, name: str, text: str) -> str:
        """Note a symbol that is not bound as seen; return its LaTeX."""
        if self.seen is not None and name not in self.bound:
            self.seen.setdefault((kind, name), text)
        return text


def _index(i: Index, scope: _Scope) -> str:
    letters = [scope.note("ix", v, scope.letter(v)) for v in i[1]]
    return "+".join([*letters, *([str(i[2])] if i[2] or not letters else [])])


def _named(x: Node, scope: _Scope) -> str:
    base = scope.letter(x[1])
    optimal = x[1] in _OPTIMAL and scope.notation.package
    told = {"Xo": "i,o_i", "go": "i,o_i", "X": r"i,\tau", "gs": r"i,\tau"} if scope.notation.package else {}
    scope.note(x[0], x[1], f"{base}_{{{told[x[1]]}}}" if x[1] in told else base)
    if len(x) == 2:
        return base
    subscript = ",".join(_index(i, scope) for i in x[2:])
    return f"{base}_{{{subscript},o_{{{subscript}}}}}" if optimal else f"{base}_{{{subscript}}}"


def _bound_letter(x: Node, scope: _Scope) -> tuple[str, str]:
    """A fresh opening name, and the letter to print for it: s over steps, i and tau over the data."""
    dom = x[2]
    wanted = {"below": ["s", "r"], "nat": ["t", "s"], "set": ["i", "j"]}[dom[0]]
    if dom[0] == "set":
        if not scope.notation.package or (dom[1] == "K" and len(dom) == 2):
            wanted = [initial] if (initial := dom[1][:1].lower()).isalpha() else []
        elif dom[1] in ("J", "K"):
            wanted = [r"\tau", r"\rho"]
    return f"~print{len(scope.bound)}", _fresh(x, [*wanted, *"klabcdfhmquvwxyz"], scope)


def _fresh(x: Node, wanted: Iterable[str], scope: _Scope) -> str:
    taken = {*scope.bound.values(), *scope.free, *(scope.letter(v) for _, v in free(x))}
    return next(w for w in wanted if w not in taken)


def latex(node: Node, notation: Notation = PACKAGE, seen: Seen | None = None) -> str:
    """LaTeX of a term, vector or formula; `seen` is given what is printed of symbols and operations."""
    scope = _Scope(notation, seen=seen)
    scope = replace(scope, free=frozenset(scope.letter(v) for _, v in free(node)))
    return _formula(node, scope) if isinstance(node, Formula) else _at(node, _SUM, scope)


def spelt_out(term: Term) -> str:
    """LaTeX of a term that has a letter of its own (Lambda, E_t, ...), by what it stands for."""
    return _spelt(term, _SUM, _Scope(PACKAGE))


def _domain(letter: str, dom: Node, scope: _Scope, *, member: bool = False) -> str:
    """A letter and the set that it is from; for the sequences the letter alone."""
    if dom[0] == "below":
        return rf"{letter}<{_index(dom[1], scope)}"
    if dom[0] == "nat":
        scope.note("op", "nat", r"t\in\mathbb{N}")
        return rf"{letter}\in\mathbb{{N}}"
    name, package = dom[1], scope.notation.package
    indices = ",".join(_index(i, scope) for i in dom[2:])
    if package and name == "J" and not scope.notation.split:
        scope.note("set", name, r"\tau\ne o_i")
        return rf"{letter}\ne o_{{{indices}}}"
    base = scope.letter(name)
    within = rf"\in {base}_{{{indices}}}" if indices else rf"\in {base}"
    told = {"I": "i", "J": r"\tau", "K": r"\tau" if indices else "k"}.get(name) if package else None
    scope.note("set", name, rf"{told}\in {base}" + ("_i" if indices else "") if told else base)
    return letter if package and name == "I" and not member else letter + within


def _formula(f: Node, scope: _Scope) -> str:
    if f[0] == "forall":
        prefix: list[str] = []
        while f[0] == "forall":
            name, letter = _bound_letter(f, scope)
            prefix.append(_domain(letter, f[2], scope))
            f, scope = open_binder(f, name), scope.binding(name, letter)
        domains = r",\,".join(prefix)
        return _formula(f, scope) + rf"\quad\text{{for all }}{domains}"
    if f[0] == "in":
        return _domain(_index(f[1], scope), f[2], scope, member=True)
    return f"{_at(f[1], _SUM, scope)} {_RELATIONS[f[0]]} {_at(f[2], _SUM, scope)}"


def _wrap(text: str, level: int, allowed: int) -> str:
    return text if level <= allowed else rf"\left({text}\right)"


def _known(x: Node, scope: _Scope) -> str | None:
    """Composite terms that have a name of their own."""
    if x[:2] == ("fn", "sqrt") and x[2][0] == "inner" and x[2][1] == x[2][2]:
        scope.note("op", "norm", r"\left\|x\right\|")
        return rf"\left\|{_at(x[2][1], _SUM, scope)}\right\|"
    if not scope.notation.package:
        return None
    if x[0] == "sum" and x[2][0] == "below":
        top = x[2][1]
        for build, letter in ((nt.path_length, "E"), (nt.separator_path, "S")):
            known = build(top)
            if known == x or (top[1] and canonical(known) == canonical(x)):  # type: ignore[arg-type]
                return f"{scope.note('op', letter, letter)}_{{{_index(top, scope)}}}"
    found = _COMPOSITE.get(x)  # type: ignore[call-overload]
    return None if found is None else str(scope.note("op", found, found))


def _at(x: Node, allowed: int, scope: _Scope) -> str:
    known = _known(x, scope)
    return _spelt(x, allowed, scope) if known is None else known


def _spelt(x: Node, allowed: int, scope: _Scope) -> str:
    head = x[0]
    if head == "num":
        q: Fraction = x[1]
        text = str(abs(q)) if q.denominator == 1 else rf"\tfrac{{{abs(q.numerator)}}}{{{q.denominator}}}"
        level = _ATOM if q.denominator == 1 else _POWER
        return _wrap(text, level, allowed) if q >= 0 else _wrap(f"-{text}", _SUM, allowed)
    if head in ("sym", "vsym"):
        return _named(x, scope)
    if head == "real":
        return _wrap(_index(x[1], scope), _SUM if len(x[1][1]) + bool(x[1][2]) > 1 else _ATOM, allowed)
    if head in ("add", "vadd"):
        text = ""
        for part in _flat(x, head):
            if part[0] == "mul" and _leading_sign(part) < 0:
                text += "-" + _at(_negated(part), _PRODUCT, scope)
            elif part[0] == "vscale" and part[1] == ("num", -1):
                text += "-" + _at(part[2], _POWER, scope)
            elif part[0] == "num" and part[1] < 0:
                text += "-" + _at(Term(("num", -part[1])), _ATOM, scope)
            else:
                text += ("+" if text else "") + _at(part, _PRODUCT, scope)
        return _wrap(text, _SUM, allowed)
    if head == "mul":
        if _leading_sign(x) < 0:
            return _wrap("-" + _at(_negated(x), _PRODUCT, scope), _SUM, allowed)
        factors = [_unsigned(f) for f in _flat(x, "mul")]  # the signs, an even number of them, cancel
        factors = [f for f in factors if f != ("num", 1)]
        over = [f[1] for f in factors if f[0] == "inv" and f != nt.margin]
        top = [f for f in factors if f[0] != "inv" or f == nt.margin]
        numerator = _product(top, scope, alone=bool(over)) or "1"
        if not over:
            return _wrap(numerator, _PRODUCT, allowed)
        scope.note("op", "inv", r"\frac{x}{y}")
        return _wrap(rf"\frac{{{numerator}}}{{{_product(over, scope, alone=True)}}}", _POWER, allowed)
    if head == "pow":
        return _wrap(f"{_at(x[1], _ATOM, scope)}^{{{x[2]}}}", _POWER, allowed)
    if head == "inv":
        scope.note("op", "inv", r"\frac{x}{y}")
        return _wrap(rf"\frac{{1}}{{{_at(x[1], _SUM, scope)}}}", _POWER, allowed)
    if head == "fn":
        args = [_at(a, _SUM, scope) for a in x[2:]]
        if x[1] == "sqrt":
            return rf"\sqrt{{{args[0]}}}"
        if x[1] == "exp" and not scope.notation.package and "e" in scope.notation.letters:
            return rf"\exp\left({args[0]}\right)"  # e is a name of the author's
        if x[1] == "exp":
            return _wrap(rf"e^{{{args[0]}}}", _POWER, allowed)
        scope.note("op", x[1], _FUNCTIONS[x[1]])
        return rf"{_FUNCTIONS[x[1]]}\left({', '.join(args)}\right)"
    if head in ("sum", "vsum"):
        name, letter = _bound_letter(x, scope)
        body = _at(open_binder(x, name), _PRODUCT, scope.binding(name, letter))
        return _wrap(rf"\sum_{{{_domain(letter, x[2], scope)}}} {body}", _PRODUCT, allowed)
    if head == "inner":
        scope.note("op", "inner", r"\left\langle x,y\right\rangle")
        return rf"\left\langle {_at(x[1], _SUM, scope)},{_at(x[2], _SUM, scope)}\right\rangle"
    if head == "vscale" and x[1] == ("num", -1):
        return _wrap(f"-{_at(x[2], _POWER, scope)}", _SUM, allowed)
    if head == "vscale":
        scalar = _closed(x[1], scope)
        return _wrap(rf"{scalar}\,{_at(x[2], _POWER, scope)}", _PRODUCT, allowed)
    if head == "diff":
        scope.note("op", "diff", r"\frac{d}{dx}")
        name, letter = f"~x{len(scope.bound)}", _fresh(x, "xyzuvwabcd", scope)
        body = substitute(x[2], reals={x[1]: ((), Term(("sym", name)))})
        at, scope = _at(x[3], _SUM, scope), scope.binding(name, letter)
        return rf"\frac{{d}}{{d{letter}}}\Big|_{{{letter}={at}}} \left[{_at(body, _SUM, scope)}\right]"
    raise ValueError(f"no LaTeX for {x!r}")


def _product(factors: list[Node], scope: _Scope, *, alone: bool) -> str:
    """Factors side by side; one that stands ``alone`` between the braces of a fraction may be a sum."""
    if alone and len(factors) == 1:
        return _at(factors[0], _SUM, scope)
    texts = [_closed(f, scope) for f in factors[:-1]] + [_at(f, _PRODUCT, scope) for f in factors[-1:]]
    return r"\,".join(texts)


def _closed(x: Node, scope: _Scope) -> str:
    r"""A factor before others: a \sum at its end would be read as a sum over them too."""
    return _wrap(_at(x, _PRODUCT, scope), _SUM if _ends_in_sum(x, scope) else _ATOM, _PRODUCT)


def _ends_in_sum(x: Node, scope: _Scope) -> bool:
    if x[0] == "mul":
        factors = _flat(x, "mul")
        if any(f[0] == "inv" and f != nt.margin for f in factors):
            return False  # it stands in a fraction
        return _ends_in_sum(factors[-1], scope)
    if x[0] == "vscale":
        return _ends_in_sum(x[2], scope)
    return x[0] in ("sum", "vsum") and _known(x, replace(scope, seen=None)) is None


def _flat(x: Node, head: str) -> list[Any]:
    out: list[Any] = []
    for c in x[1:]:
        out += _flat(c, head) if c[0] == head else [c]
    return out


def _leading_sign(x: Node) -> int:
    negative = sum(1 for f in _flat(x, "mul") if f[0] == "num" and f[1] < 0)
    return -1 if negative % 2 else 1


def _unsigned(x: Node) -> Node:
    return Term(("num", abs(x[1]))) if x[0] == "num" else x


def _negated(x: Node) -> Term:
    factors = _flat(x, "mul")
    k = next(j for j, f in enumerate(factors) if f[0] == "num" and f[1] < 0)
    factors[k] = Term(("num", -factors[k][1]))
    return Term(("mul", *factors))


def to_sympy(node: Term | Formula) -> sympy.Basic:
    """The same expression in sympy; inner products, norms and sums become symbols named in LaTeX."""
    import sympy

    functions: dict[str, Callable[..., Any]] = {
        "exp": sympy.exp,
        "log": sympy.log,
        "sqrt": sympy.sqrt,
        "lambertw": sympy.LambertW,
        "max": sympy.Max,
        "min": sympy.Min,
    }
    relations = {"le": sympy.Le, "lt": sympy.Lt, "eq": sympy.Eq}

    def go(x: Node) -> Any:
        head = x[0]
        if head in relations:
            return relations[head](go(x[1]), go(x[2]), evaluate=False)
        if head == "num":
            return sympy.Rational(x[1].numerator, x[1].denominator)
        if _known(x, _Scope(PACKAGE)) is not None or head in ("sym", "real", "sum", "inner", "diff"):
            return sympy.Symbol(latex(x), real=True)
        if head == "add":
            return sympy.Add(*map(go, x[1:]))
        if head == "mul":
            return sympy.Mul(*map(go, x[1:]))
        if head == "pow":
            return go(x[1]) ** x[2]
        if head == "inv":
            return 1 / go(x[1])
        return functions[x[1]](*map(go, x[2:]))

    if node[0] == "forall":
        return to_sympy(open_binder(node, "~t"))
    return go(node)
