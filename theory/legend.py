"""What the symbols that a page prints stand for: one line each, for `verify`, the report and the docs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from theory import catalog, meanings
from theory import notation as nt
from theory.latex import PACKAGE, Notation, Seen, latex
from theory.page import Theorem
from theory.plain import from_latex
from theory.proof.terms import Formula, Node, index, norm

GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
_OPERATIONS = {
    "norm": r"the norm of a vector or matrix, the root of $\langle x,x\rangle$",
    "inner": "the inner product, for matrices the sum of the products of their entries",
    "inv": "division; to the kernel it is 0 where $y=0$",
    "lambertw": r"Lambert's function, for $x\ge 0$: the number $w\ge 0$ with $w\,e^w=x$",
    "log": "the natural logarithm; of a number not above 0 it is some number, of which nothing is known",
    "max": "the larger of two numbers",
    "min": "the smaller of two numbers",
    "diff": "the derivative",
    "nat": "the numbers 0, 1, 2, ...",
    r"\gamma_\ast": r"the margin $1/\|W_{\mathrm{mm}}\|$",
    r"\Lambda": r"constant of the alignment lemma: $\Lambda\,e^{\Lambda}=(N-1)\,\kappa\,T^2/e$",
    r"\kappa": r"largest over smallest slope, $a_{\max}/a_{\min}$",
    "E": "path length: $E_t$ is the sum of the step lengths $e_s$ over $s<t$",
    "S": r"separator path: $S_t$ is the sum of $e_s\,C_s/\|\nabla\mathcal{L}(W_s)\|$ over $s<t$",
}
_T = index("t")
_DEFINED: Mapping[str, tuple[Node, ...]] = {
    r"\gamma_\ast": (norm(nt.M),),
    r"\Lambda": (nt.N, nt.kappa, nt.T),
    r"\kappa": (nt.a_max, nt.a_min),
    "E": (nt.e(_T),),
    "S": (nt.e(_T), nt.Layer(_T).C, norm(nt.Layer(_T).descent)),
}
"""What the definitions above of letters for whole terms speak of: it has a line where the letter has one."""
_KINDS = {
    "sym": "any real number that the hypotheses allow, or one for each index",
    "vsym": "any vector that the hypotheses allow, or one for each index",
    "ix": "any index 0, 1, 2, ... that the hypotheses allow",
    "set": "a finite set of indices",
}
_ORDER = ("vsym", "sym", "ix", "set", "op")
SPLIT = Notation({**PACKAGE.letters, "D": "D"}, package=True, split=True)
"""For pages without full support: J(i) are the tokens of the support, D their part of the gradient."""


@dataclass(frozen=True)
class Entry:
    """A line of a legend: the symbol's kernel name, how it is printed (LaTeX), what it stands for."""

    name: str
    latex: str
    meaning: str


def notation_of(page: Theorem) -> Notation:
    """The package's notation for a page of the package; for another the names that its author chose."""
    if catalog.theorems().get(page.key) is page:
        return SPLIT if page.key.startswith("support-") else PACKAGE
    return own_notation(_names(page))


def own_notation(names: Iterable[str]) -> Notation:
    """Names as their author wrote them: eta as a Greek letter, r_max with a subscript, others as they stand.

    No two names are printed alike: where the letters of two agree, both are spelt out, as is e0 beside e, of
    which there may be an e at 0, and a_t beside a, in quotes.
    """
    letters = {name: _letter(name) for name in sorted(set(names))}
    shown = Counter(map(from_latex, letters.values()))
    clear = {
        name
        for name, text in letters.items()
        if shown[from_latex(text)] == 1 and re.sub(r"(\d+|_\w+)?'*$", "", name) not in letters.keys() - {name}
    }
    return Notation({name: text if name in clear else _quoted(name) for name, text in letters.items()})


def _quoted(name: str) -> str:
    text = _verbatim(name)
    return text.replace("{", '{"', 1)[:-1] + '"}' if "_" in name else text


def _letter(name: str) -> str:
    parts = re.fullmatch(r"([A-Za-z]+)(\d*)(?:_([A-Za-z0-9]+))?('*)", name)
    if not parts or (parts[2] and parts[3]):
        return _verbatim(name)
    text, below = _word(parts[1]), parts[2] or (parts[3] and _word(parts[3]))
    return (rf"{{{text}_{{{below}}}}}" if below else text) + parts[4]  # in braces: an index may follow


def _word(text: str) -> str:
    return "\\" + text if GREEK.fullmatch(text) else text if len(text) == 1 else rf"\mathrm{{{text}}}"


def _verbatim(name: str) -> str:
    """A name in text, letter by letter; a sign, or a letter that may pass for another, by its code."""
    plain = re.sub(r"[^A-Za-z0-9_' .-]", lambda found: f"[{ord(found[0]):x}]", name)
    return rf"\text{{{plain}}}".replace("_", r"\_")


def _names(page: Theorem) -> set[str]:
    return {name for _, name in kinds_of(page)}


def kinds_of(page: Theorem) -> set[tuple[str, str]]:
    """The kind ("sym", "vsym", "ix", "set") and name of what a page's claim and hypotheses speak of."""
    seen: Seen = {}
    for formula in _said(page):
        latex(formula, Notation(), seen)
    return {(kind, name) for kind, name in seen if kind != "op"}


def _said(page: Theorem) -> list[Formula]:
    return [*page.hypotheses.values(), *([] if page.claim is None else [page.claim])]


def legend(
    page: Theorem, further: Iterable[Node] = (), *, words: Mapping[str, str] | None = None
) -> list[Entry]:
    """What the symbols of a page's claim and hypotheses stand for, and of `further` formulas (its proof's).

    ``words`` are the author's own, by kernel name, of a page outside this package. A symbol of which no words
    are known is said to be a number, a vector, an index: that is all that the kernel knows of it.
    """
    notation, seen, later = notation_of(page), Seen(), Seen()
    for formula in _said(page):
        latex(formula, notation, seen)
    for node in further:
        latex(node, notation, later)
    for known in (seen, later):
        _define(known, notation)
    local = meanings.of(page.key) if notation.package else {("*", k): v for k, v in (words or {}).items()}
    entries = [
        Entry(name, text, _meaning(kind, name, local)) for kind, name, text in _sorted(seen)
    ]  # what only the proof prints may be another page's, whose words are not this page's
    entries += [
        Entry(name, text, _meaning(kind, name, {}))
        for kind, name, text in _sorted({k: v for k, v in later.items() if k not in seen})
    ]
    return entries


def _define(seen: Seen, notation: Notation) -> None:
    """Add what the definitions of the letters in `seen` speak of, and what the definitions of that do."""
    while True:
        more: Seen = {}
        for node in (node for kind, name in seen if kind == "op" for node in _DEFINED.get(name, ())):
            latex(node, notation, more)
        new = {key: text for key, text in more.items() if key not in seen and key[0] != "ix"}
        if not new:
            return
        seen.update(new)


def _sorted(seen: Seen) -> list[tuple[str, str, str]]:
    return sorted(((k, n, t) for (k, n), t in seen.items()), key=lambda e: (_ORDER.index(e[0]), e[1]))


def _meaning(kind: str, name: str, local: Mapping[tuple[str, str], str]) -> str:
    if kind == "op":
        return _OPERATIONS[name]
    return local.get((kind, name)) or local.get(("*", name)) or _KINDS[kind]
