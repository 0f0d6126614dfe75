"""Corrupt every number, operator, exponent, symbol and function of the theory: ``make mutate``.

One at a time, in two ways:

* *in a claim*: one node of the formula that a page proves. Whether that strengthens it is read off from
  models in which the hypotheses hold; weaker and equal ones are not counted. The page must then refuse its
  own proof, and the falsifier looks for a model that refutes the corrupted claim. One it cannot refute is
  listed: either it is true (a sharper theorem), or the search is too weak.
* *in the source*: one literal, operator, comparison, symbol or function of ``theory/notation.py``,
  ``theory/lemmas`` and ``theory/theorems``, where claim and proof share their builders. The module and those
  that import it are loaded anew and proved. Killed: a proof fails. Harmless: every statement is as before, or
  weaker. Survivor: all proofs pass and some statement is stronger.

Exit code 1 when a strengthening corruption survives.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import functools
import importlib
import json
import math
import multiprocessing
import random
import signal
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from theory import catalog
from theory import page as page_module
from theory.falsify import Draw, Search
from theory.model import Model, UndecidedError, precision
from theory.page import ProofError, Theorem
from theory.proof.kernel import ancestry
from theory.proof.normal import normal
from theory.proof.terms import (
    Domain,
    Formula,
    Index,
    Node,
    Term,
    forall,
    free,
    index,
    open_binder,
    real,
    substitute,
    symbol,
    total,
    vtotal,
)

ROOT = Path(catalog.__file__).parent
TRIES = 240  # candidates in the search that all mutants of a claim share
POOL = 24  # models that a mutant's own search may start from
OWN = 24  # candidates in a mutant's own search
SECONDS = 30  # a proof that takes longer has failed

# --- mutants of a claim ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClaimMutant:
    """A claim with one node changed; ``what`` says which and how."""

    what: str
    claim: Formula


def _replacements(x: Node) -> Iterator[tuple[str, Node]]:
    """What may stand in a node's place."""
    head = x[0]
    if head == "num":
        q: Fraction = x[1]
        for new in (q / 2, 2 * q, q + 1, q - 1, Fraction(0)):
            yield f"{q} -> {new}", real(new)
    elif head in ("sym", "real") or (head == "inner"):
        yield f"{x!r} -> half", x * Fraction(1, 2)
        yield f"{x!r} -> double", x * 2
        if head != "inner":
            yield f"{x!r} -> less 1", x - 1
            yield f"{x!r} -> plus 1", x + 1
    elif head == "pow":
        yield f"{x!r} -> power {x[2] + 1}", x[1] ** (x[2] + 1)
        yield f"{x!r} -> power {x[2] - 1}", x[1] ** (x[2] - 1)
    elif head == "inv":
        yield f"{x!r} -> no inverse", x[1]
    elif head == "fn":
        for name in {"log": ["lambertw"], "lambertw": ["log"], "sqrt": ["log"], "exp": []}.get(x[1], []):
            yield f"{x[1]} -> {name}", Term(("fn", name, *x[2:]))
        if x[1] in ("max", "min"):
            yield f"{x[1]} -> the other", Term(("fn", "min" if x[1] == "max" else "max", *x[2:]))
            yield f"{x[1]} -> first", x[2]
            yield f"{x[1]} -> second", x[3]
        else:
            yield f"{x[1]} dropped", x[2]
        if x[1] == "exp":
            yield "exp -> tangent", 1 + x[2]
    elif head in ("add", "mul") and len(x) > 2:
        for k in range(1, len(x)):
            rest = x[1:k] + x[k + 1 :]
            yield f"{x[k]!r} dropped", rest[0] if len(rest) == 1 else Term((head, *rest))
            if head == "add":
                yield f"{x[k]!r} subtracted", Term((head, *x[1:k], -x[k], *x[k + 1 :]))
    elif head == "sum" and x[2][0] == "below":
        yield "one more term", Term(("sum", x[1], Domain(("below", x[2][1] + 1)), x[3]))
        top: Index = x[2][1]
        if top[2]:
            less = Domain(("below", Index(("ix", top[1], top[2] - 1))))
            yield "one term less", Term(("sum", x[1], less, x[3]))
    elif head == "le":
        yield "<= -> <", Formula(("lt", x[1], x[2]))


_BINDERS: dict[str, Callable[..., Any]] = {"sum": total, "vsum": vtotal, "forall": forall}


def _mutated(x: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(x, Node) or isinstance(x, (Index, Domain)):
        return
    yield from _replacements(x)
    if x[0] in _BINDERS:
        name = f"b{x[1][1:]}'"  # binders are named by height: build them anew
        for what, new in _mutated(open_binder(x, name)):
            yield what, _BINDERS[x[0]](index(name), x[2], new)
    elif x[0] != "diff":
        for k in range(1, len(x)):
            for what, new in _mutated(x[k]):
                yield what, type(x)((*x[:k], new, *x[k + 1 :]))


def _body(formula: Formula) -> Formula:
    while formula[0] == "forall":
        formula = formula[3]
    return formula


def _meaning(formula: Formula) -> object:
    """Equal for statements that exact algebra does not tell apart."""
    body = _body(formula)
    if body[0] not in ("le", "lt", "eq"):
        return formula
    return body[0], frozenset(normal(body[2] - body[1]).items())


def claim_mutants(claim: Formula) -> list[ClaimMutant]:
    """Every single-node change of a claim that is not the claim by exact algebra; each meaning once."""
    seen = {_meaning(claim)}
    out = []
    for what, mutant in _mutated(claim):
        try:
            meaning = _meaning(mutant)
        except (ValueError, ArithmeticError):  # no normal form
            continue
        if meaning not in seen:
            seen.add(meaning)
            out.append(ClaimMutant(what, mutant))
    return out


def compare(model: Model, claim: Formula, mutant: Formula) -> tuple[bool, bool, float]:
    """In one model: does the mutant ask for more, where the claim says something; does it fail; its ratio.

    A claim says something where its sides have one sign: moving a bound that is negative anyway, below an
    observed positive number, strengthens nothing.
    """
    stronger, ratio = False, -math.inf
    try:
        for old, new in zip(model.sides(claim), model.sides(mutant), strict=False):
            if new.state is False:
                return True, True, math.inf
            tight = old.ratio
            if old.head == "eq" or tight >= 0:
                more = bool(new.small > old.small) or bool(new.large < old.large)
                stronger = stronger or more or (old.head == "eq" and bool(new.small != new.large))
            stronger = stronger or (old.head, new.head) == ("le", "lt")
            ratio = max(ratio, new.ratio)
    except UndecidedError:
        pass
    return stronger, False, ratio


@dataclass(frozen=True)
class PageOutcome:
    """How a page's claim mutants fared.

    Attributes:
        key, file: the page and where it is.
        counts: refuted, unrefuted, weaker (not counted) and accepted (the page still calls itself proved).
        unrefuted: strengthening mutants that no model was found against.
        accepted: strengthening mutants that the page accepts as proved: survivors.
    """

    key: str
    file: str
    counts: dict[str, int]
    unrefuted: tuple[str, ...]
    accepted: tuple[str, ...]


def still_proved(page: Theorem, claim: Formula) -> bool:
    """Whether the page with this claim in place of its own calls itself proved, by its own proof."""
    proof = page.proved()
    try:
        dataclasses.replace(page, claim=claim, prove=lambda: proof).proved()
    except ProofError:
        return False
    return True


def models_of(page: Theorem, seed: int = 0, tries: int = TRIES) -> tuple[Search, list[tuple[Draw, Model]]]:
    """Models that meet a page's hypotheses: the tight end of the search, and others."""
    assert page.claim is not None
    search = Search(tuple(page.hypotheses.values()), page.claim, page.key, seed)
    search.run(tries)
    chosen = search.pool[:: max(1, len(search.pool) // POOL)][:POOL]
    if search.best is not None:
        chosen.append(search.best.draw)
    models = [(draw, search.model(draw)) for draw in chosen]
    return search, [(draw, model) for draw, model in models if model is not None]


def judge_page(key: str, tries: int = TRIES) -> PageOutcome:
    """Every claim mutant of one page: on the models of one search, then each by a search of its own."""
    page = catalog.theorems()[key]
    claim, counts = page.claim, Counter[str]()
    assert claim is not None
    mutants = claim_mutants(claim)
    stronger, refuted = [False] * len(mutants), [False] * len(mutants)

    def look(model: Model) -> None:
        for k, mutant in enumerate(mutants):
            if not refuted[k]:
                more, fails, _ = compare(model, claim, mutant.claim)
                stronger[k], refuted[k] = stronger[k] or more, fails

    unrefuted, accepted = [], []
    with precision():
        search = Search(tuple(page.hypotheses.values()), claim, key, 0, watch=look)
        search.run(tries, climb=40)
        models = [(draw, search.model(draw)) for draw in search.pool[:: max(1, len(search.pool) // POOL)]]
        for k, mutant in enumerate(mutants):
            if not stronger[k]:
                counts["weaker"] += 1
                continue
            if still_proved(page, mutant.claim):
                counts["accepted"] += 1
                accepted.append(mutant.what)
            if not refuted[k]:
                refuted[k] = refute(page, mutant.claim, models)
            counts["refuted" if refuted[k] else "unrefuted"] += 1
            if not refuted[k]:
                unrefuted.append(mutant.what)
    module = sys.modules[page.prove.__module__] if page.prove is not None else None
    file = Path(module.__file__ or "").name if module is not None else ""
    return PageOutcome(key, file, dict(counts), tuple(unrefuted), tuple(accepted))


def refute(page: Theorem, claim: Formula, models: list[tuple[Draw, Model | None]]) -> bool:
    """Look for a model of the hypotheses in which the mutant is false, from where it is tightest."""
    graded = [(compare(m, claim, claim)[2], k) for k, (_, m) in enumerate(models) if m is not None]
    search = Search(tuple(page.hypotheses.values()), claim, page.key, 1)
    rng = random.Random(page.key)
    for _, k in sorted(graded, reverse=True)[:2]:
        search.climb(models[k][0], OWN // 2, rng)
    return search.counterexample is not None


# --- mutants of the source ---------------------------------------------------------------------------------

_SWAPS: dict[str, str] = {
    "log": "lambertw",
    "lambertw": "log",
    "maximum": "minimum",
    "minimum": "maximum",
    "sqrt": "log",
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
_RELATIONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.LtE: ast.Lt,
    ast.Lt: ast.LtE,
    ast.GtE: ast.Gt,
    ast.Gt: ast.GtE,
}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


@dataclass(frozen=True)
class SourceMutant:
    """One change of a module's source: the ``number``-th of its sites' variants."""

    module: str
    number: int
    line: int
    kind: str  # number, operator, relation, sign, symbol, function
    what: str

    def __str__(self) -> str:
        """Where and what."""
        return f"{self.module.rsplit('.', 1)[-1]}.py:{self.line}: {self.what}"


def _variants(node: ast.AST, symbols: frozenset[str]) -> Iterator[tuple[str, str, Callable[[], ast.AST]]]:
    """(kind, what, replacement) for one node."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        q = node.value
        for new in dict.fromkeys((q + 1, q - 1, 2 * q)):
            if new != q:
                yield "number", f"{q} -> {new}", functools.partial(ast.Constant, new)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        other = _OPERATORS[type(node.op)]
        text = f"{_SIGNS[type(node.op)]} -> {_SIGNS[other]} in {ast.unparse(node)[:60]}"
        yield "operator", text, functools.partial(ast.BinOp, node.left, other(), node.right)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _RELATIONS:
        changed = _RELATIONS[type(node.ops[0])]()
        text = f"strict <-> weak in {ast.unparse(node)[:60]}"
        yield "relation", text, lambda: ast.Compare(node.left, [changed, *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", f"minus dropped in {ast.unparse(node)[:60]}", lambda: node.operand
    elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        name = ast.unparse(node)
        if name in symbols:
            for op, word in ((ast.Div(), "half"), (ast.Mult(), "double")):
                yield "symbol", f"{name} -> {word}", functools.partial(ast.BinOp, node, op, ast.Constant(2))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SWAPS:
        new_name = _SWAPS[node.func.id]
        source = f"__import__('theory.proof.terms', fromlist=['terms']).{new_name}"
        function = ast.parse(source, mode="eval").body
        yield (
            "function",
            f"{node.func.id} -> {new_name}",
            lambda: ast.Call(function, node.args, node.keywords),
        )


class _Sites(ast.NodeTransformer):
    """Walks a module; counts the variants, and puts the wanted one in place."""

    def __init__(self, symbols: frozenset[str], wanted: int | None = None) -> None:
        self.symbols, self.wanted = symbols, wanted
        self.found: list[tuple[int, str, str]] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.AnnAssign):  # annotations are no mathematics
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        if isinstance(node, ast.keyword) and node.arg == "from_step":
            return node  # which rows of a run are looked at: no part of a statement
        if isinstance(node, ast.arguments):
            node.defaults = [self.visit(x) for x in node.defaults]
            return node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
            node.value = self.visit(node.value)  # x[2] addresses a tuple
            return node
        if isinstance(node, ast.FunctionDef):
            node.args = self.visit(node.args)
            node.body = [self.visit(x) for x in node.body]
            return node
        if isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom)):
            return node
        replacement = None
        for kind, what, make in _variants(node, self.symbols):
            if len(self.found) == self.wanted:
                replacement = make()
            self.found.append((getattr(node, "lineno", 0), kind, what))
        if replacement is not None:
            return ast.copy_location(replacement, node)
        return super().generic_visit(node)


def _symbols(module: types.ModuleType) -> frozenset[str]:
    """Names under which a module knows plain real terms: R, T, kappa, margin, nt.R, ..."""
    names = {k for k, v in vars(module).items() if isinstance(v, Term)}
    for alias, value in vars(module).items():
        if isinstance(value, types.ModuleType) and value.__name__ == "theory.notation":
            names |= {f"{alias}.{k}" for k, v in vars(value).items() if isinstance(v, Term)}
    return frozenset(names)


def source_mutants(name: str) -> list[SourceMutant]:
    """Every change of one module's source."""
    sites = _Sites(_symbols(importlib.import_module(name)))
    sites.visit(_tree(name))
    return [SourceMutant(name, k, line, kind, what) for k, (line, kind, what) in enumerate(sites.found)]


def modules() -> list[str]:
    """The modules that hold statements and proofs, every one after those that it imports."""
    catalog.theorems()
    names = ["theory.notation"]
    for room in ("lemmas", "theorems"):
        names += sorted(f"theory.{room}.{p.stem}" for p in (ROOT / room).glob("[!_]*.py"))
    uses = {name: _imports(name) & set(names) for name in names}
    ordered: list[str] = []

    def place(name: str) -> None:
        for other in sorted(uses[name]):
            if other not in ordered:
                place(other)
        if name not in ordered:
            ordered.append(name)

    for name in names:
        place(name)
    return ordered


@functools.cache
def _imports(name: str) -> frozenset[str]:
    found = set()
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return frozenset(found - {name})


@functools.cache
def _ordered() -> tuple[str, ...]:
    return tuple(modules())


@functools.cache
def affected(name: str) -> tuple[str, ...]:
    """The modules that a change of one reaches, itself first."""
    out = [name]
    for other in _ordered():
        if other not in out and _imports(other) & set(out):
            out.append(other)
    return tuple(out)


@contextlib.contextmanager
def loaded(names: Sequence[str], change: Mapping[str, ast.Module]) -> Iterator[dict[str, types.ModuleType]]:
    """These modules loaded anew, some from a changed tree; the true ones are back afterwards."""
    kept = {name: sys.modules[name] for name in names}

    def put(name: str, module: types.ModuleType | None) -> None:
        parent, _, child = name.rpartition(".")
        if module is None:
            sys.modules.pop(name, None)
            if hasattr(sys.modules[parent], child):
                delattr(sys.modules[parent], child)
        else:
            sys.modules[name] = module
            setattr(sys.modules[parent], child, module)

    try:
        for name in names:
            put(name, None)
        for name in names:
            if name in change:
                fresh = types.ModuleType(name)
                fresh.__file__ = kept[name].__file__
                put(name, fresh)
                exec(compile(change[name], str(fresh.__file__), "exec"), fresh.__dict__)
            else:
                importlib.import_module(name)
        yield {name: sys.modules[name] for name in names}
    finally:
        for name in names:
            put(name, kept[name])


def changed_tree(mutant: SourceMutant) -> ast.Module:
    """The module's syntax tree with the change in it."""
    sites = _Sites(_symbols(sys.modules[mutant.module]), mutant.number)
    tree: ast.Module = ast.fix_missing_locations(sites.visit(_tree(mutant.module)))
    return tree


def _tree(name: str) -> ast.Module:
    return ast.parse((ROOT.parent / (name.replace(".", "/") + ".py")).read_text(encoding="utf-8"))


def _pages(found: dict[str, types.ModuleType]) -> dict[str, Theorem]:
    out: dict[str, Theorem] = {}
    for module in found.values():
        for value in vars(module).values():
            if isinstance(value, Theorem):
                out.setdefault(value.key, value)
    return out


@dataclass(frozen=True)
class Outcome:
    """A source mutant's fate.

    Attributes:
        mutant: the change.
        fate: ``killed`` (a proof failed), ``not loaded`` (the module refuses: killed too), ``equivalent``
            (every statement as before), ``weaker`` (some statements changed, none asks for more) or
            ``survivor``.
        detail: what failed, or which statements changed.
    """

    mutant: SourceMutant
    fate: str
    detail: str


class _TooSlowError(Exception):
    pass


def _alarm(*_: object) -> None:
    raise _TooSlowError


def _statement(page: Theorem) -> tuple[Any, ...]:
    rate = page.rate
    said = (rate.observed, rate.bound, rate.sense) if rate is not None else ()
    return (page.claim, frozenset(page.hypotheses.values()), said)


def _fails(page: Theorem) -> str | None:
    """Why a page does not verify, or None."""
    if page.prove is None:
        return None
    try:
        page.proved()
    except _TooSlowError:
        return f"{page.key}: no proof within {SECONDS} s"
    except Exception as problem:  # whatever it is, the theory does not verify
        return f"{page.key}: {type(problem).__name__}"
    return None


def _in_doubt(
    mutant: SourceMutant, found: dict[str, types.ModuleType]
) -> tuple[list[Theorem], list[Theorem]]:
    """The pages to prove anew, those whose statement changed and short proofs first; and the former."""
    pages, true_pages, order = _pages(found), catalog.theorems(), touched()
    changed = [p for k, p in pages.items() if _statement(p) != _statement(true_pages[k])]
    changed.sort(key=lambda p: order.cost(p.key))
    reached = sorted(pages, key=order.cost) if changed else order.reached_by(mutant)
    known = {p.key for p in changed}
    return changed + [pages[k] for k in reached if k in pages and k not in known], changed


def first_failure(mutant: SourceMutant) -> str | None:
    """Why the changed module's own pages do not verify, or None; nothing else is loaded anew."""
    try:
        with loaded([mutant.module], {mutant.module: changed_tree(mutant)}) as found:
            return next(filter(None, map(_fails, _pages(found).values())), None)
    except Exception as problem:  # the changed module does not load
        return f"not loaded: {type(problem).__name__}"


def try_source(mutant: SourceMutant) -> Outcome:
    """Load the changed theory and prove what the change reaches: changed statements, then touched proofs."""
    true_pages = catalog.theorems()
    previous = signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(4 * SECONDS)
    proofs = set(page_module._DONE)
    tree = changed_tree(mutant)
    try:
        with loaded([mutant.module], {mutant.module: tree}) as found:  # most die here already
            why = next(filter(None, map(_fails, _in_doubt(mutant, found)[0])), None)
        if why is not None:
            return Outcome(mutant, "killed", why)
        with loaded(affected(mutant.module), {mutant.module: tree}) as found:
            doubtful, changed = _in_doubt(mutant, found)
            why = next(filter(None, map(_fails, doubtful)), None)
            if why is not None:
                return Outcome(mutant, "killed", why)
            signal.alarm(0)
            if not changed:
                return Outcome(mutant, "equivalent", "every statement is as before")
            more = [page.key for page in changed if asks_more(true_pages[page.key], page)]
            detail = ", ".join(more or [page.key for page in changed])
            return Outcome(mutant, "survivor" if more else "weaker", detail)
    except Exception as problem:  # the changed module does not load
        return Outcome(mutant, "not loaded", f"{type(problem).__name__}: {str(problem)[:80]}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        for page in set(page_module._DONE) - proofs:  # else every changed page would be kept
            del page_module._DONE[page]


def is_instance(old: Theorem, new: Theorem) -> bool:
    """Whether a changed page is the true one for half or twice a plain symbol: it says nothing new then."""
    assert old.claim is not None
    assert new.claim is not None
    wanted = {_meaning(f) for f in (new.claim, *new.hypotheses.values())}
    formulas = (old.claim, *old.hypotheses.values())
    names = {name for f in formulas for kind, name in free(f) if kind == "sym"}
    for name in sorted(names):
        for factor in (Fraction(1, 2), Fraction(2)):
            scaled: dict[str, Any] = {name: ((), factor * symbol(name))}
            try:
                if {_meaning(substitute(f, reals=scaled)) for f in formulas} == wanted:
                    return True
            except ValueError:  # the symbol is a family: it has indices
                continue
    return False


def asks_more(old: Theorem, new: Theorem) -> bool:
    """Whether a changed page that is still proved says more than the true one, in some model or of runs."""
    if old.claim is None or new.claim is None:
        return True
    same = _meaning(old.claim) == _meaning(new.claim)
    if same and _statement(new)[2] != _statement(old)[2]:
        return True  # what it says of runs is no longer what it proves
    if same and set(old.hypotheses.values()) <= set(new.hypotheses.values()):
        return False
    if is_instance(old, new):
        return False
    with precision():
        for _, model in models_of(new)[1]:
            if any(model.holds(h) is not True for h in old.hypotheses.values()):
                return True
            if not same and compare(model, old.claim, new.claim)[0]:
                return True
    return False


# --- the run -----------------------------------------------------------------------------------------------


Place = tuple[str, int]  # a module and the first line of a function


@dataclass(frozen=True)
class Touched:
    """What each page's own proof runs (the pages it quotes are proved on their own).

    Attributes:
        proofs: function -> pages whose proof enters it, those with short proofs first.
        loading: functions entered when the modules are loaded: they may make any statement or constant.
        steps: page -> kernel inferences of its proof.
    """

    proofs: dict[Place, tuple[str, ...]]
    loading: frozenset[Place]
    steps: dict[str, int]

    def cost(self, key: str) -> tuple[int, str]:
        """Short proofs first."""
        return self.steps.get(key, 0), key

    def reached_by(self, mutant: SourceMutant) -> list[str]:
        """The pages whose proofs a change may reach."""
        place = (mutant.module, _function_of(mutant))
        if place[1] and place not in self.loading:
            return list(self.proofs.get(place, ()))
        names = set(affected(mutant.module))
        own = {k for (name, _), keys in self.proofs.items() if name == mutant.module for k in keys}
        far = {k for (name, _), keys in self.proofs.items() if name in names for k in keys}
        return sorted(own, key=self.cost) + sorted(far - own, key=self.cost)


@functools.cache
def _functions(name: str) -> tuple[tuple[int, int, int], ...]:
    """(first line, last line, line of the code object) of each outermost function of a module."""
    out = []

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.Lambda)):
                top = getattr(child, "decorator_list", None)
                line = top[0].lineno if top else child.lineno
                out.append((line, child.end_lineno or line, line))
            else:
                visit(child)

    visit(_tree(name))
    return tuple(out)


def _function_of(mutant: SourceMutant) -> int:
    """The line of the outermost function that holds a change; 0 at module level."""
    for first, last, line in _functions(mutant.module):
        if first <= mutant.line <= last:
            return line
    return 0


class _Instrument(ast.NodeTransformer):
    """Makes every outermost function of a module report its place when it is entered."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _report(self, line: int) -> ast.expr:
        return (
            ast.parse(f"__import__('sys').modules['{__name__}'].ENTERED.add(({self.name!r}, {line}))")
            .body[0]
            .value
        )  # type: ignore[attr-defined]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        line = node.decorator_list[0].lineno if node.decorator_list else node.lineno
        node.body.insert(0, ast.Expr(self._report(line)))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        both = ast.Tuple([self._report(node.lineno), node.body], ast.Load())
        node.body = ast.Subscript(both, ast.Constant(1), ast.Load())
        return node


ENTERED: set[Place] = set()


@functools.cache
def touched() -> Touched:
    """Load every module and prove every page once more, with functions that report when they are entered."""
    names = _ordered()
    trees = {name: ast.fix_missing_locations(_Instrument(name).visit(_tree(name))) for name in names}
    proofs: dict[Place, set[str]] = {}
    steps = {}
    ENTERED.clear()
    with loaded(names, trees) as found:
        loading = frozenset(ENTERED)
        pages = {k: p for k, p in _pages(found).items() if p.prove is not None}
        for page in pages.values():
            steps[page.key] = sum(1 for _ in ancestry(page.proved()))
        for key, page in pages.items():
            assert page.prove is not None
            ENTERED.clear()
            page.prove()  # the pages that it quotes are proved already, so their functions are not entered
            for place in ENTERED:
                proofs.setdefault(place, set()).add(key)
    order = {place: tuple(sorted(keys, key=lambda k: (steps[k], k))) for place, keys in proofs.items()}
    return Touched(order, loading, steps)


def run(jobs: int, only: str | None, tries: int) -> tuple[list[PageOutcome], list[Outcome]]:
    """Every mutant, with a progress bar; only pages and modules whose name contains ``only``, if given."""
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    keys = [k for k, p in catalog.theorems().items() if p.claim is not None and (not only or only in k)]
    sources = [
        m for name in _ordered() if not only or only.replace("-", "_") in name for m in source_mutants(name)
    ]
    for key in keys:
        catalog.theorems()[key].proved()
    touched()
    context = multiprocessing.get_context("fork")
    with (
        Progress(*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()) as bar,
        context.Pool(jobs, maxtasksperchild=400) as pool,
    ):
        pages = list(
            bar.track(
                pool.imap(functools.partial(judge_page, tries=tries), keys),
                total=len(keys),
                description="claims",
            )
        )
        outcomes = list(
            bar.track(pool.imap(try_source, sources, chunksize=8), total=len(sources), description="source")
        )
    return pages, outcomes


def report(pages: list[PageOutcome], outcomes: list[Outcome]) -> bool:
    """Print both tables with every survivor; whether there is none."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(
        "page", "strengthening", "refused", "refuted by a model", "weaker", title="Mutants of claims"
    )
    for p in pages:
        strong = p.counts.get("refuted", 0) + p.counts.get("unrefuted", 0)
        table.add_row(
            p.key, str(strong), str(strong - p.counts.get("accepted", 0)), str(p.counts.get("refuted", 0)),
            str(p.counts.get("weaker", 0)),
        )  # fmt: skip
    console.print(table)
    table = Table(
        "file", "killed", "strengthening", "same statements", "weaker", title="Mutants of the source"
    )
    for module in dict.fromkeys(o.mutant.module for o in outcomes):
        fates = Counter(o.fate for o in outcomes if o.mutant.module == module)
        killed = fates["killed"] + fates["not loaded"]
        table.add_row(
            module.replace("theory.", "").replace(".", "/") + ".py", str(killed),
            str(killed + fates["survivor"]), str(fates["equivalent"]), str(fates["weaker"]),
        )  # fmt: skip
    console.print(table)
    for p in pages:
        for what in p.unrefuted:
            console.print(f"not refuted by search: {p.key}: {what}", markup=False, soft_wrap=True)
    survivors = [f"{p.key}: {what}" for p in pages for what in p.accepted]
    survivors += [f"{o.mutant} ({o.detail})" for o in outcomes if o.fate == "survivor"]
    for line in survivors:
        console.print(f"SURVIVOR {line}", markup=False, soft_wrap=True)
    strong = sum(p.counts.get("refuted", 0) + p.counts.get("unrefuted", 0) for p in pages)
    killed = sum(o.fate in ("killed", "not loaded") for o in outcomes)
    console.print(
        f"{strong} strengthening mutants of claims, all refused but {sum(len(p.accepted) for p in pages)}; "
        f"{killed} of {killed + sum(o.fate == 'survivor' for o in outcomes)} mutants of the source killed"
    )
    return not survivors


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; exit code 1 when a strengthening mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.theory.mutate", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="pages and modules whose name contains this")
    parser.add_argument("--tries", type=int, default=TRIES, help="models tried against each claim mutant")
    parser.add_argument("--json", type=Path, help="write every outcome here")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    pages, outcomes = run(options.jobs, options.only, options.tries)
    if options.json:
        plain = {
            "claims": [dataclasses.asdict(p) for p in pages],
            "source": [dataclasses.asdict(o) for o in outcomes],
        }
        options.json.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    clean = report(pages, outcomes)
    print(f"{time.perf_counter() - begin:.0f} s")
    return 0 if clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
