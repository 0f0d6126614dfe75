"""Symbolic derivatives, with the conditions under which they hold. Part of the trusted base."""

from __future__ import annotations

from collections.abc import Callable

from theory.proof.terms import (
    Domain,
    Formula,
    Index,
    Node,
    Term,
    Vector,
    forall,
    free,
    fresh,
    inner,
    inv,
    open_binder,
    real,
    total,
    vtotal,
)

Condition = tuple[str, Term]  # ("nonzero", the term that must be so)


def differentiate(t: Term, x: Term) -> tuple[Term, list[Formula | Condition]]:
    """The derivative of ``t`` by the plain real symbol ``x``, and what it needs.

    A condition is a formula ``0 < b`` (for log, sqrt and lambertw: needed as it stands) or the pair
    ("nonzero", b) (for ``inv``: either sign will do); under a sum it is quantified over the sum's index.

    Raises:
        ValueError: ``x`` is no plain symbol, or a function (max, min) has no derivative here.
    """
    if x[0] != "sym" or len(x) != 2:
        raise ValueError(f"{x!r} is not a plain real symbol")
    conditions: list[Formula | Condition] = []
    wrap: list[Callable[[Formula], Formula]] = []

    def require(formula: Formula) -> None:
        for quantify in reversed(wrap):
            formula = quantify(formula)
        conditions.append(formula)

    def constant(node: Node) -> bool:
        return ("sym", x[1]) not in free(node)

    def under(name: str, dom: Domain) -> Callable[[Formula], Formula]:
        return lambda f: forall(Index(("ix", (name,), 0)), dom, f)

    def vec(v: Vector) -> Vector | None:
        if constant(v):
            return None
        if v[0] == "vadd":
            parts = [d for d in map(vec, v[1:]) if d is not None]
            return Vector(("vadd", *parts))
        if v[0] == "vscale":
            d, dv = go(v[1]), vec(v[2])
            first = d * v[2]
            return first if dv is None else first + v[1] * dv
        name = fresh()
        wrap.append(under(name, v[2]))
        body = vec(open_binder(v, name))
        wrap.pop()
        return None if body is None else vtotal(Index(("ix", (name,), 0)), v[2], body)

    def go(t: Term) -> Term:
        if constant(t):
            return real(0)
        head = t[0]
        if t == x:
            return real(1)
        if head == "add":
            return Term(("add", *map(go, t[1:])))
        if head == "mul":
            return Term(("add", *(Term(("mul", *t[1:i], go(t[i]), *t[i + 1 :])) for i in range(1, len(t)))))
        if head == "pow":
            return t[2] * t[1] ** (t[2] - 1) * go(t[1]) if t[2] else real(0)
        if head == "inv":
            if wrap:
                require(real(0) < t[1])
            else:
                conditions.append(("nonzero", t[1]))
            return -(inv(t[1]) ** 2) * go(t[1])
        if head == "sum":
            name = fresh()
            wrap.append(under(name, t[2]))
            body = go(open_binder(t, name))
            wrap.pop()
            return total(Index(("ix", (name,), 0)), t[2], body)
        if head == "inner":
            du, dv = vec(t[1]), vec(t[2])
            parts = [inner(du, t[2])] if du is not None else []
            parts += [inner(t[1], dv)] if dv is not None else []
            return Term(("add", *parts))
        if t[:2] == ("fn", "exp"):
            return t * go(t[2])
        if t[0] == "fn" and t[1] in ("log", "sqrt", "lambertw"):
            u = t[2]
            require(real(0) < u)
            slopes = {"log": inv(u), "sqrt": inv(2 * t), "lambertw": t * inv(u * (1 + t))}
            return go(u) * slopes[t[1]]
        raise ValueError(f"the kernel does not differentiate {t!r}")

    return go(t), conditions
