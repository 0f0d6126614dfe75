"""Formulas as a line of Unicode text, for terminals and long lists: from what `theory.latex` prints."""

from __future__ import annotations

import re

from theory.latex import PACKAGE, Notation, latex
from theory.proof.terms import Formula, Node, Term

RELATIONS = {"le": "≤", "ge": "≥", "ne": "≠", "in": "∈"}
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π",
    "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Sigma": "Σ", "Phi": "Φ",
    "Psi": "Ψ", "Omega": "Ω", "ell": "ℓ",
}  # fmt: skip
SYMBOLS = GREEK | {
    "sum": "∑", "langle": "⟨", "rangle": "⟩", "nabla": "∇", "cdot": "·", "ldots": "…", "infty": "∞",
    "ast": "*", "star": "*", "circ": "°", "prime": "′", "quad": " ", "Big": "", "big": "", "left": "",
    "right": "", "to": " → ", "top": "ᵀ", "log": "log", "exp": "exp", "min": "min", "max": "max",
    "cos": "cos", "|": "‖", "{": "{", "}": "}", "_": "_", ",": " ", ";": " ", ":": " ", "!": "", " ": " ",
}  # fmt: skip
FONTS = {"text", "mathrm", "mathcal", "mathbb", "mathbf", "operatorname", "boldsymbol"}
ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "underline": "\u0332"}
ACCENTS |= {"widehat": ACCENTS["hat"], "overline": ACCENTS["bar"]}
LETTERS = {"N": "ℕ", "R": "ℝ"}  # of mathbb
OPERATORS = {"W": "LambertW"}  # W is the weights, in text
SUBSCRIPTS = str.maketrans("0123456789+-", "₀₁₂₃₄₅₆₇₈₉₊₋")
SUPERSCRIPTS = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")
TOKEN = re.compile(r"\\([A-Za-z]+)\s?|\\(.)|(\s+)|(.)", re.DOTALL)


def plain(node: Term | Formula | Node, notation: Notation = PACKAGE) -> str:
    """Give a term or formula as one line of Unicode text."""
    return from_latex(latex(node, notation))


def from_latex(text: str) -> str:
    """Turn the LaTeX that this package prints into Unicode text.

    What it does not print raises ValueError, and so does what is nested deeper than Python can follow.
    """
    tokens = [
        ("\\" + (name or sign)) if name or sign else (" " if space else character)
        for name, sign, space, character in TOKEN.findall(text)
    ]
    try:
        return re.sub(r" +", " ", _Reader(tokens).all()).strip()
    except RecursionError:
        raise ValueError("the formula is nested too deeply") from None


def prose(text: str) -> str:
    """Turn words with LaTeX between dollars into Unicode text; what is not understood stays."""
    pieces = text.split("$")
    return "".join(_tried(piece) if number % 2 else piece for number, piece in enumerate(pieces))


def _tried(text: str) -> str:
    try:
        return from_latex(text)
    except (ValueError, IndexError):
        return text


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    def all(self, end: str | None = None) -> str:
        out: list[str] = []
        while self.at < len(self.tokens):
            if self.tokens[self.at] == end:
                self.at += 1
                return "".join(out)
            out.append(self.one())
        if end is not None:
            raise ValueError("a brace is not closed")
        return "".join(out)

    def group(self) -> str:
        if self.tokens[self.at] == "{":
            self.at += 1
            return self.all("}")
        return self.one()

    def one(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token == "{":
            return self.all("}")
        if token in ("_", "^"):
            inside = self.group()
            small = inside.translate(SUBSCRIPTS if token == "_" else SUPERSCRIPTS)
            if inside and all(character.isdigit() or character in "+-" for character in inside):
                return small
            if token == "^" and inside in ("*", "ᵀ"):
                return inside
            return token + (inside if len(inside) == 1 or inside.isalpha() else f"({inside})")
        if not token.startswith("\\"):
            return f" {token} " if token in "<=" else token
        name = token[1:]
        if name in ("frac", "tfrac", "dfrac"):
            top, bottom = self.group(), self.group()
            return f"{_grouped(top)}/{_grouped(bottom)}"
        if name == "sqrt":
            return f"√{_grouped(self.group())}"
        if name in ACCENTS:
            return self.group() + ACCENTS[name]
        if name in FONTS:
            inside = self.group()
            names = {"mathbb": LETTERS, "operatorname": OPERATORS}.get(name, {})
            return names.get(inside, inside)
        if name in RELATIONS:
            return RELATIONS[name] if name == "in" else f" {RELATIONS[name]} "
        if name in SYMBOLS:
            return SYMBOLS[name]
        raise ValueError(f"no text for {token}")


def _grouped(text: str) -> str:
    alone = re.fullmatch(r"[\w*.₀-₉\u0302-\u0332]+|‖[^‖]*‖|⟨[^⟨⟩]*⟩", text)
    return text if alone else f"({text})"
