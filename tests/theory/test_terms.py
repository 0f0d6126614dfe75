"""Terms: bound names, substitution and its semantics, well-formedness, printing."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from tests.theory.concrete import Grammar, Model, UnknownError, equal, precision
from theory.proof import terms
from theory.proof.terms import (
    NATURALS,
    Formula,
    Index,
    Term,
    as_real,
    below,
    closed,
    diff,
    eq,
    exp,
    finite,
    forall,
    free,
    genuine,
    index,
    inner,
    inv,
    lambertw,
    log,
    maximum,
    member,
    minimum,
    norm,
    number,
    open_binder,
    real,
    sqrt,
    substitute,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)

x, y, z = map(symbol, "xyz")
i, j, k, t = map(index, "ijkt")
u, v = map(vector, "uv")
D = finite("D")


def f(*at):
    return symbol("f", *at)


def J(i):
    return finite("J", i)


# --- bound variables ---------------------------------------------------------------------------------------


def test_terms_equal_up_to_bound_names_are_equal():
    assert total(i, D, f(i) * x) == total(j, D, f(j) * x)
    assert forall(i, D, forall(j, J(i), f(i, j) <= x)) == forall(j, D, forall(i, J(j), f(j, i) <= x))
    assert diff(x, x * y, z) == diff(symbol("t"), symbol("t") * y, z)
    assert total(i, D, f(i)) != total(i, D, f(j))
    assert forall(i, D, forall(j, D, f(i, j) <= x)) != forall(i, D, forall(j, D, f(j, i) <= x))


def test_a_domain_is_outside_its_binder():
    assert free(total(i, J(i), f(i))) == {("set", "J"), ("ix", "i"), ("sym", "f")}
    assert free(total(i, D, f(i))) == {("set", "D"), ("sym", "f")}
    assert free(diff(x, x * y, x)) == {("sym", "x"), ("sym", "y")}
    assert free(forall(t, NATURALS, f(t) <= x)) == {("sym", "f"), ("sym", "x")}


def test_substitution_avoids_capture():
    assert substitute(total(i, D, f(i) * x), reals={"x": ((), f(i))}) == total(j, D, f(j) * f(i))
    assert substitute(total(i, D, f(i, k)), indices={"k": i}) == total(j, D, f(j, i))
    assert substitute(diff(x, x * y, z), reals={"y": ((), x)}) == diff(z, z * x, z)
    assert substitute(total(i, below(k), f(i)), indices={"k": k + 1}) == total(i, below(k + 1), f(i))
    nested = total(i, D, total(j, J(i), f(i, j) * x))
    assert substitute(nested, reals={"x": ((), f(i, j))}) == total(k, D, total(t, J(k), f(k, t) * f(i, j)))


def test_substitution_is_simultaneous():
    assert substitute(x + 2 * y, reals={"x": ((), y), "y": ((), x)}) == y + 2 * x
    assert substitute(f(i, j), indices={"i": j, "j": i}) == f(j, i)
    swapped = substitute(f(i, j), reals={"f": (("a", "b"), f(index("b"), index("a")))})
    assert swapped == f(j, i)
    assert substitute(f(i + 1), reals={"f": (("a",), f(index("a") + 1) * x)}) == f(i + 2) * x


def test_substitution_of_another_arity_is_refused():
    with pytest.raises(ValueError, match="takes 1 indices, its replacement 0"):
        substitute(f(i), reals={"f": ((), x)})


def test_symbols_vectors_and_sets_of_one_name_are_different():
    both = inner(vector("x"), vector("x")) * x
    assert substitute(both, reals={"x": ((), y)}) == inner(vector("x"), vector("x")) * y
    assert substitute(both, vectors={"x": ((), u)}) == inner(u, u) * x


@pytest.mark.parametrize("seed", range(8))
def test_substitution_commutes_with_evaluation(seed):
    rng = random.Random(seed)
    tried = 0
    with precision():
        for round_ in range(60):
            grammar = Grammar(rng)
            term, a = grammar.term(4), grammar.term(2)
            b = grammar.term(1, ("p",))  # the body of a family f(p)
            w, shift = grammar.vector(2), grammar.pick_index(())
            put = substitute(
                term,
                reals={"x": ((), a), "f": (("p",), b)},
                vectors={"u": ((), w)},
                indices={"k": shift},
            )
            assert genuine(put)
            assert closed(put)
            model = Model((seed, round_))
            bound = model.bind(
                sym={
                    "x": lambda m=model, a=a: m.real(a),
                    "f": lambda n, m=model, b=b: m.bind(ix={"p": n}).real(b),
                },
                vsym={"u": lambda m=model, w=w: m.vector(w)},
                ix={"k": model.index(shift)},
            )
            try:
                assert equal(model.real(put), bound.real(term)), (seed, round_, term, put)
            except UnknownError:
                continue
            tried += 1
    print(f"seed {seed}: {tried} values")
    assert tried > 40


@pytest.mark.parametrize("seed", range(4))
def test_renaming_bound_variables_changes_nothing(seed):
    rng = random.Random(50 + seed)
    for _ in range(60):
        body = Grammar(rng).term(3, ("p", "q"))
        p, q = index("p"), index("q")
        there = total(p, D, total(q, J(p), body))
        swap = substitute(body, indices={"p": index("r"), "q": index("s")})
        assert there == total(index("r"), D, total(index("s"), J(index("r")), swap)), (seed, body)
        opened = open_binder(there, "r")
        assert total(index("r"), D, opened) == there


# --- well-formedness ---------------------------------------------------------------------------------------

EVERY_HEAD = [
    real(Fraction(1, 2)), x, f(i), as_real(t + 1), x + y, x * y, x**3, inv(x), exp(x), maximum(x, y),
    total(i, D, f(i)), inner(u, v), diff(x, x * y, z), u, vector("A", i), u + v, x * u,
    vtotal(i, D, vector("A", i)), t + 1, number(0), D, J(i), below(t), NATURALS, x <= y, x < y, eq(x, y),
    veq(u, v), member(i, D), forall(i, D, f(i) <= x), log(x), sqrt(x), lambertw(x), minimum(x, y), norm(u),
]  # fmt: skip


@pytest.mark.parametrize("node", EVERY_HEAD, ids=repr)
def test_constructors_build_genuine_nodes(node):
    assert genuine(node)
    assert closed(node)
    assert type(node)(tuple(node)) == node


def test_every_head_is_covered():
    assert {node[0] for node in EVERY_HEAD} == set(terms._SIGNATURES)


@pytest.mark.parametrize("node", EVERY_HEAD, ids=repr)
def test_no_node_fits_another_kind_or_length(node):
    kinds = {terms.Term, terms.Vector, terms.Index, terms.Domain, terms.Formula} - {type(node)}
    for kind in kinds:
        with pytest.raises(ValueError, match="malformed"):
            kind(tuple(node))
    variadic = {"add", "mul", "vadd", "sym", "vsym", "set"}
    if node[0] not in variadic:
        with pytest.raises(ValueError, match="malformed"):
            type(node)((*node, node[-1] if len(node) > 1 else x))
    if len(node) > 1:
        with pytest.raises(ValueError, match="malformed"):
            type(node)((node[0],))
        with pytest.raises((ValueError, TypeError)):
            type(node)((node[0], *(None for _ in node[1:])))


def test_bound_names_are_fixed_by_height():
    body = total(i, D, f(i))
    for bound in ("#1", "#3", "i", "~1", 2):
        with pytest.raises(ValueError, match="malformed"):
            Term(("sum", bound, D, body))
    assert Term(("sum", "#2", D, body)) == total(i, D, body)


def test_open_terms_are_not_closed():
    assert not closed(Term(("sym", "#1")))
    assert not closed(f(Index(("ix", ("~3",), 0))))
    assert not closed(open_binder(total(i, D, f(i)), "~3"))
    assert closed(Formula(("forall", "#1", D, Formula(("in", Index(("ix", ("#1",), 0)), D)))))


# --- constructors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.5, 1.0, float("nan"), True, "1", None, 1j])
def test_only_exact_numbers_become_terms(value):
    with pytest.raises(TypeError):
        real(value)
    with pytest.raises(TypeError):
        x * value


@pytest.mark.parametrize("power", [0.5, Fraction(1, 2), True, "2"])
def test_powers_are_integers(power):
    with pytest.raises(TypeError):
        x**power
    assert x**-2 == inv(x**2)


@pytest.mark.parametrize("name", ["", "#1", "~0", "1", "x y", "x+y", "(x)", "x\n", "'"])
def test_names_look_like_names(name):
    for make in (symbol, vector, index, finite):
        with pytest.raises(ValueError, match="not a symbol name"):
            make(name)
    assert symbol("x'")[1] == "x'"


def test_a_formula_has_no_truth_value():
    with pytest.raises(TypeError, match="no truth value"):
        bool(x <= y)
    with pytest.raises(TypeError, match="no truth value"):
        x <= y <= z  # noqa: B015


def test_binders_need_variables():
    with pytest.raises(ValueError, match="not an index variable"):
        total(i + 1, D, x)
    with pytest.raises(ValueError, match="not an index variable"):
        forall(number(0), D, x <= y)
    with pytest.raises(ValueError, match="not a plain real symbol"):
        diff(f(i), x, y)
    with pytest.raises(ValueError, match="malformed"):
        total(i, NATURALS, x)


def test_indices_add():
    assert i + j == j + i
    assert i + 1 + j + 2 == j + i + 3
    assert number(2) + 3 == number(5)
    with pytest.raises(TypeError):
        i + (-1)


def test_printing():
    assert repr(total(i, D, f(i) / x) <= norm(u)) == "(sum(#1 in D: (f[#1] * inv(x))) <= sqrt(inner(u, u)))"
    assert repr(t + 2) == "t+2"
    assert repr(number(0)) == "0"
    assert repr(forall(t, NATURALS, x <= 1)) == "forall(#1 in nat(): (x <= 1))"
