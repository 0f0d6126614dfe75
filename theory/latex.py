"""Kernel terms for readers: LaTeX, sympy, and short text. Outside the trusted base."""

from __future__ import annotations

from collections.abc import Callable
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


def _index(i: Index, names: dict[str, str]) -> str:
    letters = [names.get(v, nt.LATEX.get(v, v)) for v in i[1]]
    return "+".join([*letters, *([str(i[2])] if i[2] or not letters else [])])


def _named(x: Node, names: dict[str, str]) -> str:
    base = nt.LATEX.get(x[1], x[1])
    if len(x) == 2:
        return base
    subscript = ",".join(_index(i, names) for i in x[2:])
    if x[1] in ("Xo", "go"):  # the optimal token's
        return f"{base}_{{{subscript},o_{{{subscript}}}}}"
    return f"{base}_{{{subscript}}}"


def _bound_letter(x: Node, names: dict[str, str]) -> tuple[str, str]:
    """A fresh opening name, and the letter to print for it: s over steps, i and tau over the data."""
    dom = x[2]
    wanted = {"below": ["s", "r"], "nat": ["t", "s"], "set": ["i", "j"]}[dom[0]]
    if dom[0] == "set" and dom[1] in ("J", "K"):
        wanted = [r"\tau", r"\rho"]
    taken = set(names.values()) | {nt.LATEX.get(v, v) for _, v in free(x)}
    letter = next(w for w in [*wanted, *"klabcdfhmquvwxyz"] if w not in taken)
    return f"~print{len(names)}", letter


def latex(node: Node) -> str:
    """LaTeX of a term, vector or formula."""
    return _formula(node, {}) if isinstance(node, Formula) else _at(node, _SUM, {})


def spelt_out(term: Term) -> str:
    """LaTeX of a term that has a letter of its own (Lambda, E_t, ...), by what it stands for."""
    return _spelt(term, _SUM, {})


def _domain(letter: str, dom: Node, names: dict[str, str]) -> str:
    if dom[0] == "below":
        return rf"{letter}<{_index(dom[1], names)}"
    if dom[0] == "nat":
        return rf"{letter}\in\mathbb{{N}}"
    if dom[1] == "J":
        return rf"{letter}\ne o_{{{_index(dom[2], names)}}}"
    if dom[1] == "K" and len(dom) > 2:  # the tokens off the support; the plain K is every example
        return rf"{letter}\in K_{{{_index(dom[2], names)}}}"
    return letter


def _formula(f: Node, names: dict[str, str]) -> str:
    if f[0] == "forall":
        prefix: list[str] = []
        while f[0] == "forall":
            name, letter = _bound_letter(f, names)
            prefix.append(_domain(letter, f[2], names))
            f, names = open_binder(f, name), names | {name: letter}
        return _formula(f, names) + rf"\quad\text{{for all }}{','.join(prefix)}"
    if f[0] == "in":
        return rf"{_index(f[1], names)}\in {nt.LATEX.get(f[2][1], f[2][1])}"
    return f"{_at(f[1], _SUM, names)} {_RELATIONS[f[0]]} {_at(f[2], _SUM, names)}"


def _wrap(text: str, level: int, allowed: int) -> str:
    return text if level <= allowed else rf"\left({text}\right)"


def _known(x: Node, names: dict[str, str]) -> str | None:
    """Composite terms that have a name of their own."""
    if x[0] == "sum" and x[2][0] == "below":
        top = x[2][1]
        for build, letter in ((nt.path_length, "E"), (nt.separator_path, "S")):
            known = build(top)
            if known == x or (top[1] and canonical(known) == canonical(x)):  # type: ignore[arg-type]
                return f"{letter}_{{{_index(top, names)}}}"
    composite = {nt.margin: r"\gamma_\ast", nt.Lam: r"\Lambda", nt.kappa: r"\kappa"}
    if x in composite:
        return composite[x]
    if x[:2] == ("fn", "sqrt") and x[2][0] == "inner" and x[2][1] == x[2][2]:
        return rf"\left\|{_at(x[2][1], _SUM, names)}\right\|"
    return None


def _at(x: Node, allowed: int, names: dict[str, str]) -> str:
    known = _known(x, names)
    return _spelt(x, allowed, names) if known is None else known


def _spelt(x: Node, allowed: int, names: dict[str, str]) -> str:
    head = x[0]
    if head == "num":
        q: Fraction = x[1]
        text = str(abs(q)) if q.denominator == 1 else rf"\tfrac{{{abs(q.numerator)}}}{{{q.denominator}}}"
        return text if q >= 0 else _wrap(f"-{text}", _SUM, allowed)
    if head in ("sym", "vsym"):
        return _named(x, names)
    if head == "real":
        return _wrap(_index(x[1], names), _SUM if len(x[1][1]) + bool(x[1][2]) > 1 else _ATOM, allowed)
    if head in ("add", "vadd"):
        text = ""
        for part in _flat(x, head):
            if part[0] == "mul" and _leading_sign(part) < 0:
                text += "-" + _at(_negated(part), _PRODUCT, names)
            elif part[0] == "vscale" and part[1] == ("num", -1):
                text += "-" + _at(part[2], _POWER, names)
            elif part[0] == "num" and part[1] < 0:
                text += "-" + _at(Term(("num", -part[1])), _ATOM, names)
            else:
                text += ("+" if text else "") + _at(part, _PRODUCT, names)
        return _wrap(text, _SUM, allowed)
    if head == "mul":
        if _leading_sign(x) < 0:
            return _wrap("-" + _at(_negated(x), _PRODUCT, names), _SUM, allowed)
        factors = [f for f in _flat(x, "mul") if f != ("num", 1)]
        over = [f[1] for f in factors if f[0] == "inv" and f != nt.margin]
        top = [f for f in factors if f[0] != "inv" or f == nt.margin]
        level = _SUM if len(top) == 1 and over else _PRODUCT
        numerator = r"\,".join(_at(f, level, names) for f in top) or "1"
        if not over:
            return _wrap(numerator, _PRODUCT, allowed)
        level = _SUM if len(over) == 1 else _PRODUCT
        denominator = r"\,".join(_at(f, level, names) for f in over)
        return _wrap(rf"\frac{{{numerator}}}{{{denominator}}}", _POWER, allowed)
    if head == "pow":
        return _wrap(f"{_at(x[1], _ATOM, names)}^{{{x[2]}}}", _POWER, allowed)
    if head == "inv":
        return _wrap(rf"\frac{{1}}{{{_at(x[1], _SUM, names)}}}", _POWER, allowed)
    if head == "fn":
        args = [_at(a, _SUM, names) for a in x[2:]]
        if x[1] == "sqrt":
            return rf"\sqrt{{{args[0]}}}"
        if x[1] == "exp":
            return rf"e^{{{args[0]}}}"
        return rf"{_FUNCTIONS[x[1]]}\left({', '.join(args)}\right)"
    if head in ("sum", "vsum"):
        name, letter = _bound_letter(x, names)
        body = _at(open_binder(x, name), _PRODUCT, names | {name: letter})
        return _wrap(rf"\sum_{{{_domain(letter, x[2], names)}}} {body}", _PRODUCT, allowed)
    if head == "inner":
        return rf"\left\langle {_at(x[1], _SUM, names)},{_at(x[2], _SUM, names)}\right\rangle"
    if head == "vscale":
        scalar = _at(x[1], _PRODUCT, names)
        return _wrap(rf"{scalar}\,{_at(x[2], _POWER, names)}", _PRODUCT, allowed)
    if head == "diff":
        body = substitute(x[2], reals={x[1]: ((), Term(("sym", "x")))})
        return rf"\frac{{d}}{{dx}}\Big|_{{x={_at(x[3], _SUM, names)}}} \left[{_at(body, _SUM, names)}\right]"
    raise ValueError(f"no LaTeX for {x!r}")


def _flat(x: Node, head: str) -> list[Any]:
    out: list[Any] = []
    for c in x[1:]:
        out += _flat(c, head) if c[0] == head else [c]
    return out


def _leading_sign(x: Node) -> int:
    negative = sum(1 for f in _flat(x, "mul") if f[0] == "num" and f[1] < 0)
    return -1 if negative % 2 else 1


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
        if _known(x, {}) is not None or head in ("sym", "real", "sum", "inner", "diff"):
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
