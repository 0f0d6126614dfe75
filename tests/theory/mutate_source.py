"""Mutants of the theory's source: one literal, operator, comparison, symbol or function at a time.

A mutant changes one top-level statement. What depends on it (``tests.theory.dependencies``) is executed anew,
module by module, on top of the unchanged rest, and its pages are proved: those whose statement is as before
stand for themselves, so that pages which quote them are not proved again.

While the mutants of a run are tried, functions of the theory remember their results, so that a proof is
repeated only from the changed step on; what they remember was made by the kernel.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import copy
import functools
import gc
import hashlib
import importlib
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.theory import dependencies as deps
from tests.theory.dependencies import Name, Statement
from tests.theory.mutate_strength import asks_more, said
from theory import catalog
from theory import page as page_module
from theory.page import ProofError, Theorem
from theory.proof.kernel import KernelError, Proved, ancestry
from theory.proof.terms import Node, Term

SECONDS = 60  # of processor time; what is not proved by then is not proved

# --- what is changed ---------------------------------------------------------------------------------------

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
    """Walks a statement; counts the variants, and puts the wanted one in place."""

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


@functools.cache
def _symbols(module: types.ModuleType) -> frozenset[str]:
    """Names under which a module knows plain real terms: R, T, kappa, margin, nt.R, ..."""
    names = {k for k, v in vars(module).items() if isinstance(v, Term)}
    for alias, value in vars(module).items():
        if isinstance(value, types.ModuleType) and value.__name__ == "theory.notation":
            names |= {f"{alias}.{k}" for k, v in vars(value).items() if isinstance(v, Term)}
    return frozenset(names)


@dataclass(frozen=True)
class SourceMutant:
    """One change of one top-level statement: the ``variant``-th that there is.

    ``line`` is where, ``kind`` one of number, operator, relation, sign, symbol, function.
    """

    module: str
    statement: int
    variant: int
    line: int
    kind: str
    what: str

    def __str__(self) -> str:
        """Where and what."""
        return f"{self.module.rsplit('.', 1)[-1]}.py:{self.line}: {self.what}"

    @property
    def changed(self) -> Statement:
        """The statement that is changed."""
        return deps.statements(self.module)[self.statement]

    @property
    def key(self) -> str:
        """The same for the same change of the same code, wherever it stands."""
        names = ",".join(sorted(self.changed.binds))
        return f"{self.module}:{names}:{self.changed.digest}:{self.variant}"


@functools.cache
def source_mutants(module: str) -> tuple[SourceMutant, ...]:
    """Every change of one module's source."""
    symbols, out = _symbols(importlib.import_module(module)), []
    for s in deps.statements(module):
        sites = _Sites(symbols)
        sites.visit(copy.deepcopy(s.tree))
        out += [SourceMutant(module, s.number, k, *site) for k, site in enumerate(sites.found)]
    return tuple(out)


def changed_node(mutant: SourceMutant) -> ast.stmt:
    """The statement with the change in it."""
    sites = _Sites(_symbols(importlib.import_module(mutant.module)), mutant.variant)
    node: ast.stmt = ast.fix_missing_locations(sites.visit(copy.deepcopy(mutant.changed.tree)))
    return node


def changed_code(mutant: SourceMutant) -> types.CodeType:
    """The changed statement, compiled."""
    return _compiled(changed_node(mutant), mutant.module)


def _compiled(node: ast.stmt, module: str) -> types.CodeType:
    flags = __future__.annotations.compiler_flag
    code: types.CodeType = compile(ast.Module([node], []), module, "exec", flags, dont_inherit=True)
    return code


@functools.cache
def _code(statement: Statement) -> types.CodeType:
    return _compiled(statement.tree, statement.module)


@functools.cache
def modules() -> tuple[str, ...]:
    """The modules that hold statements and proofs, every one after those that it imports."""
    catalog.theorems()
    names = ["theory.notation"]
    for room in ("lemmas", "theorems"):
        names += sorted(f"theory.{room}.{p.stem}" for p in (deps.ROOT / room).glob("[!_]*.py"))
    ordered: dict[str, None] = {}

    def place(name: str) -> None:
        used = {module for s in deps.statements(name) for module, _ in s.uses} - {name}
        for other in sorted(used & set(names)):
            if other not in ordered:
                place(other)
        ordered[name] = None

    for name in names:
        place(name)
    return tuple(ordered)


# --- functions that remember -------------------------------------------------------------------------------

_record = threading.Event()  # set: new results are kept


def remembering(function: Callable[..., Any], always: bool = False) -> Callable[..., Any]:
    """A function of the theory that gives a claim or a term once for the same arguments.

    New results are kept while the theory is proved as it stands; ``always`` for a function of a mutant.
    """
    table: dict[Any, Any] = {}

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        key = (args, tuple(sorted(options.items())))
        try:
            if key in table:
                return table[key]
        except TypeError:  # a list, say
            return function(*args, **options)
        value = function(*args, **options)
        if (always or _record.is_set()) and _immutable(value):
            table[key] = value
        return value

    return call


def _immutable(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_immutable, value))
    return isinstance(value, Node) or type(value) is Proved


@contextlib.contextmanager
def remembered_theory() -> Iterator[None]:
    """The theory proved, by functions that remember inside this block."""
    loaded = {name: sys.modules[name] for name in modules()}
    old = [(m, k, v) for m in loaded.values() for k, v in vars(m).items() if type(v) is types.FunctionType]
    new = {f: remembering(f) for _, _, f in old if f.__module__ in loaded}
    for module, name, function in old:
        if function in new:
            setattr(module, name, new[function])
    page_module.forget_proofs()
    _record.set()
    try:
        for page in catalog.theorems().values():
            if page.prove is not None:
                page.proved()
        _record.clear()
        gc.freeze()  # the proved theory stays: no collection need look at it
        yield
    finally:
        gc.unfreeze()
        _record.clear()
        for module, name, function in old:
            setattr(module, name, function)


# --- a changed theory --------------------------------------------------------------------------------------


@functools.cache
def page_names(module: str) -> dict[str, str]:
    """Name -> key of the pages that a module defines."""
    own = {name for s in deps.statements(module) for name in s.binds}
    found = vars(importlib.import_module(module)).items()
    return {name: value.key for name, value in found if isinstance(value, Theorem) and name in own}


@functools.cache
def cost(key: str) -> int:
    """Kernel inferences of a page's proof."""
    return sum(1 for _ in ancestry(catalog.theorems()[key].proved()))


@functools.cache
def place_of(key: str) -> Name:
    """Where a page is defined."""
    return next((m, name) for m in modules() for name, k in page_names(m).items() if k == key)


class _Workshop:
    """The changed modules, in place of the true ones inside a ``with`` block."""

    def __enter__(self) -> _Workshop:
        self.true: dict[str, types.ModuleType] = {}
        return self

    def __exit__(self, *_: object) -> None:
        for name, module in self.true.items():
            self._put(name, module)

    @staticmethod
    def _put(name: str, module: types.ModuleType) -> None:
        parent, _, child = name.rpartition(".")
        sys.modules[name] = module
        setattr(sys.modules[parent], child, module)

    def build(self, name: str, codes: Iterable[tuple[Statement, types.CodeType]]) -> dict[str, Any]:
        """The module with these statements executed anew; gives its names."""
        true = self.true.setdefault(name, sys.modules[name])
        fresh = types.ModuleType(name)
        fresh.__dict__.update(true.__dict__)
        self._put(name, fresh)
        for statement, code in codes:
            exec(code, fresh.__dict__)
            if isinstance(statement.tree, ast.FunctionDef):
                value = fresh.__dict__[statement.tree.name]
                if type(value) is types.FunctionType:
                    fresh.__dict__[statement.tree.name] = remembering(value, always=True)
        return fresh.__dict__


def changed_pages(mutant: SourceMutant, workshop: _Workshop) -> Iterator[tuple[Theorem, bool]]:
    """The pages that the change reaches, module by module, and whether each says something new."""
    true_pages = catalog.theorems()
    start, code = mutant.changed, changed_code(mutant)
    pages_here = {(mutant.module, n) for n in page_names(mutant.module)}
    changed: set[Name] = {(mutant.module, n) for n in start.binds} - pages_here
    for module in modules()[modules().index(mutant.module) :]:
        names = page_names(module)
        moved: set[Name] = set()  # pages that say something else
        while True:
            stop = frozenset((module, n) for n in names) - moved
            hit = deps.reached(module, frozenset(changed | moved), stop)
            if module == mutant.module:
                hit = sorted({*hit, start}, key=lambda s: s.number)
            if not hit:
                break
            known = workshop.build(module, [(s, code if s is start else _code(s)) for s in hit])
            bound = {n for s in hit for n in s.binds if not isinstance(s.tree, (ast.Import, ast.ImportFrom))}
            pages = {n: known[n] for n in names if n in bound}
            news = {(module, n) for n, p in pages.items() if said(p) != said(true_pages[names[n]])}
            if news <= moved:
                yield from sorted(
                    ((p, (module, n) in moved) for n, p in pages.items()),
                    key=lambda pair: (not pair[1], cost(pair[0].key) if pair[0].key in true_pages else 0),
                )
                changed |= {(module, n) for n in bound - set(names)} | moved
                break
            moved |= news


# --- a mutant's fate ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A source mutant's fate.

    Attributes:
        mutant: the change.
        fate: ``killed`` (a page does not verify), ``not loaded`` (the module refuses: killed too),
            ``equivalent`` (every proof passes, every statement is as before), ``weaker`` (some statements
            changed, none asks for more) or ``survivor``.
        how: of the killed: ``kernel`` (a rule refuses), ``no certificate`` (the search finds no multipliers
            for a step), ``page`` (the claim is proved otherwise than stated), ``time``, or an exception.
        detail: the page that fails, or those whose statements changed.
    """

    mutant: SourceMutant
    fate: str
    how: str
    detail: str


class _TooSlowError(BaseException):
    """Not an ``Exception``: no proof may take it for a failed attempt."""


def _alarm(*_: object) -> None:
    raise _TooSlowError


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    previous = signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def failure(page: Theorem) -> str | None:
    """How a page fails to verify, or None."""
    if page.prove is None:
        return None
    try:
        page.proved()
    except _TooSlowError:
        return "time"
    except ProofError:
        return "page"
    except KernelError as problem:
        return "no certificate" if str(problem).startswith("no combination found") else "kernel"
    except Exception as problem:  # whatever it is, the theory does not verify
        return type(problem).__name__
    return None


def try_source(mutant: SourceMutant) -> Outcome:
    """Change the theory and prove what the change reaches, until a page fails."""
    true_pages, moved = catalog.theorems(), []
    for page in true_pages.values():
        if page.prove is not None:
            page.proved()
    proofs = set(page_module._DONE)
    try:
        with _Workshop() as workshop, _time_limit(SECONDS):
            for page, new in changed_pages(mutant, workshop):
                how = failure(page)
                if how is not None:
                    return Outcome(mutant, "killed", how, page.key)
                if new:
                    moved.append(page)
    except _TooSlowError:
        return Outcome(mutant, "not loaded", "time", "")
    except Exception as problem:  # the changed module does not load
        return Outcome(mutant, "not loaded", type(problem).__name__, str(problem)[:80])
    finally:
        for page in set(page_module._DONE) - proofs:  # else every changed page would be kept
            del page_module._DONE[page]
    if not moved:
        return Outcome(mutant, "equivalent", "", "")
    more = [page.key for page in moved if asks_more(true_pages[page.key], page)]
    return Outcome(mutant, "survivor" if more else "weaker", "", ", ".join(more or [p.key for p in moved]))


@functools.cache
def downstream(start: Statement) -> tuple[str, ...]:
    """The pages that rest on a statement."""
    changed: set[Name] = {(start.module, n) for n in start.binds}
    keys = {page_names(start.module)[n] for n in start.binds if n in page_names(start.module)}
    for module in modules()[modules().index(start.module) :]:
        for s in deps.reached(module, frozenset(changed), frozenset()):
            if not isinstance(s.tree, (ast.Import, ast.ImportFrom)):
                changed |= {(module, n) for n in s.binds}
                keys |= {page_names(module)[n] for n in s.binds if n in page_names(module)}
    return tuple(sorted(keys))


@functools.cache
def _basis_of_pages(keys: tuple[str, ...]) -> str:
    parts = [(key, deps.basis(*place_of(key))) for key in keys]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def basis(mutant: SourceMutant, fate: str, detail: str) -> str | None:
    """A digest of the code that decides the fate: the failing page's, else that of every page reached."""
    if fate == "killed":
        return deps.basis(*place_of(detail)) if detail in catalog.theorems() else None
    return _basis_of_pages(downstream(mutant.changed))
