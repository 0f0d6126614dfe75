"""Which definition of the theory uses which: a change reaches what depends on it, and nothing else.

The unit is a top-level statement of a module (a function, a constant, a page). Names are resolved as Python
resolves them, through imports; a local variable that shadows a global name counts as a use of it, so the
relation is at times too large and never too small.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import theory

ROOT = Path(theory.__file__).parent
Name = tuple[str, str]  # a module and a name in it; "*" is everything in it


@dataclass(frozen=True, eq=False)
class Statement:
    """A top-level statement: the names that it binds, the names that it uses, a digest of its code."""

    module: str
    number: int
    tree: ast.stmt = field(repr=False)
    binds: frozenset[str]
    uses: frozenset[Name]
    digest: str


def source(module: str) -> Path:
    """The file of a module of the theory."""
    path = ROOT.parent / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_module(name: str) -> bool:
    """Whether the theory has a module of this name."""
    return name.partition(".")[0] == "theory" and source(name).exists()


@functools.cache
def tree(module: str) -> ast.Module:
    """A module's syntax tree; not to be changed."""
    return ast.parse(source(module).read_text(encoding="utf-8"))


@functools.cache
def _imported(module: str) -> dict[str, Name]:
    """What a module's names stand for where they are imported; (module, "*") for a module."""
    out: dict[str, Name] = {}
    for node in tree(module).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for a in node.names:
                whole = f"{node.module}.{a.name}"
                if is_module(whole):
                    out[a.asname or a.name] = (whole, "*")
                elif is_module(node.module):
                    out[a.asname or a.name] = _origin(node.module, a.name)
    return out


def _origin(module: str, name: str) -> Name:
    """Where a name is defined."""
    found = _imported(module).get(name)
    return (module, name) if found is None else found


@functools.cache
def statements(module: str) -> tuple[Statement, ...]:
    """A module's top-level statements."""
    nodes = tree(module).body
    bound = [_bound(node) for node in nodes]
    own = frozenset().union(*bound)
    return tuple(
        Statement(
            module, k, node, bound[k], _used(node, module, own),
            code_digest(node),
        )
        for k, node in enumerate(nodes)
    )  # fmt: skip


def code_digest(node: ast.AST) -> str:
    """A digest of code, whatever its comments, docstrings, layout and place."""
    prose = {
        id(n.body[0].value)
        for n in ast.walk(node)
        if isinstance(n, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(n) is not None
        if isinstance(n.body[0], ast.Expr)
    }

    def text(n: object) -> str:
        if isinstance(n, ast.AST):
            return "" if id(n) in prose else f"{type(n).__name__}({','.join(map(text, _fields(n)))})"
        return f"[{','.join(map(text, n))}]" if isinstance(n, list) else repr(n)

    return hashlib.sha256(text(node).encode()).hexdigest()[:16]


def _fields(node: ast.AST) -> list[object]:
    return [value for _, value in ast.iter_fields(node)]


def _bound(node: ast.stmt) -> frozenset[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return frozenset([node.name])
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return frozenset(a.asname or a.name.partition(".")[0] for a in node.names)
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _used(node: ast.stmt, module: str, own: frozenset[str]) -> frozenset[Name]:
    imported = _imported(module)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return frozenset(imported[a.asname or a.name] for a in node.names if (a.asname or a.name) in imported)
    uses: set[Name] = set()
    inside: set[int] = set()  # aliases of modules that stand before a dot
    for n in ast.walk(node):
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
            target = imported.get(n.value.id)
            if target is not None and target[1] == "*":
                uses.add(_origin(target[0], n.attr))
                inside.add(id(n.value))
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and id(n) not in inside:
            if n.id in imported:
                uses.add(imported[n.id])
            elif n.id in own:
                uses.add((module, n.id))
    return frozenset(uses)


@functools.cache
def binders(module: str) -> dict[str, tuple[Statement, ...]]:
    """Name -> the statements of a module that bind it; "*" -> all."""
    out: dict[str, tuple[Statement, ...]] = {"*": statements(module)}
    for s in statements(module):
        for name in s.binds:
            out[name] = (*out.get(name, ()), s)
    return out


def needs(statement: Statement) -> Iterable[Statement]:
    """The statements that one uses directly."""
    for module, name in statement.uses:
        yield from binders(module).get(name, ())


@functools.cache
def basis(module: str, name: str) -> str:
    """A digest of what a definition rests on: the code of the statements that it uses, and that they use."""
    seen: set[Statement] = set()
    todo = list(binders(module).get(name) or statements(module))
    while todo:
        s = todo.pop()
        if s not in seen:
            seen.add(s)
            todo.extend(needs(s))
            # what binds no name acts on the module itself
            todo.extend(other for other in statements(s.module) if not other.binds)
    parts = sorted((s.module, s.digest) for s in seen)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def reached(module: str, changed: frozenset[Name], stop: frozenset[Name]) -> list[Statement]:
    """The statements of a module that use changed names, directly or through others of the module.

    A statement that binds a name of ``stop`` is reached, and passes nothing on; an import passes on only the
    names that changed.
    """
    changed_here = set(changed)
    out: set[Statement] = set()
    growing = True
    while growing:
        growing = False
        for s in statements(module):
            if s in out or not (s.uses & changed_here or any((m, "*") in s.uses for m, _ in changed_here)):
                continue
            out.add(s)
            if not isinstance(s.tree, (ast.Import, ast.ImportFrom)):
                growing = True
                changed_here |= {(module, n) for n in s.binds} - stop
    return sorted(out, key=lambda s: s.number)
