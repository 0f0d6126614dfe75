"""Every rule of the kernel once where it applies, and refused once for each of its side conditions.

The refusals under "attacks" were holes or near misses: each would prove something false.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import pytest
from flint import ctx

from theory.proof import kernel
from theory.proof.calculus import differentiate
from theory.proof.kernel import KernelError, assume, combine, instantiate
from theory.proof.tactics import everywhere, exp_tangent, follows, one_positive, weak, zero
from theory.proof.terms import (
    NATURALS,
    Formula,
    Index,
    Term,
    as_real,
    below,
    diff,
    eq,
    exp,
    finite,
    forall,
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
    real,
    sqrt,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)

x, y, a, b, c = map(symbol, "xyabc")
i, j, k, t = map(index, "ijkt")
u, v, w = map(vector, "uvw")
D, E = finite("D"), finite("E")
ZERO = real(0)


def f(i):
    return symbol("f", i)


def J(i):
    return finite("J", i)


def refused(rule, *arguments, says=None, **options):
    with pytest.raises(KernelError, match=says):
        rule(*arguments, **options)


# --- logic -------------------------------------------------------------------------------------------------


def test_assume_is_the_formula_under_itself():
    claim = assume(x <= y)
    assert claim.hypotheses == {x <= y}
    assert claim.conclusion == (x <= y)
    assert (claim.rule, claim.premises, claim.axioms) == ("assume", (), frozenset())
    refused(assume, x, says="malformed formula")
    refused(assume, 1, says="malformed formula")


def test_discharge_replaces_a_hypothesis_by_its_proof():
    claim = combine(x <= c, [(1, assume(x <= y)), (1, assume(y <= c))])
    shorter = kernel.discharge(claim, combine(x <= y, [(1, assume(x < y))]))
    assert shorter.hypotheses == {x < y, y <= c}
    assert shorter.conclusion == (x <= c)
    kept = kernel.discharge(claim, one_positive())  # proves no hypothesis: the claim keeps them all
    assert kept.hypotheses == claim.hypotheses


def test_generalize_needs_an_index_that_is_free_nowhere_else():
    claim = everywhere(assume(forall(j, D, f(j) <= x)), (i, assume(member(i, D))))
    assert kernel.generalize(claim, i, D).conclusion == forall(j, D, f(j) <= x)
    refused(kernel.generalize, assume(f(i) <= x), i, D, says="i is free")
    refused(kernel.generalize, claim, i, E, says="i is free")  # the hypothesis is about D
    refused(kernel.generalize, claim, i + 1, D, says="not an index variable")
    refused(kernel.generalize, assume(member(i, J(i))), i, J(i), says="i is free in J")


def test_specialize_needs_the_index_in_the_domain():
    everyone = assume(forall(i, D, f(i) <= x))
    assert kernel.specialize(everyone, j, assume(member(j, D))).conclusion == (f(j) <= x)
    refused(kernel.specialize, everyone, j, says="not shown")
    refused(kernel.specialize, everyone, j, assume(member(j, E)), says="not shown")
    refused(kernel.specialize, everyone, j, assume(member(k, D)), says="not shown")
    refused(kernel.specialize, assume(x <= y), j, says="not a universal claim")
    assert kernel.specialize(assume(forall(i, NATURALS, f(i) <= x)), number(7)).conclusion == (
        f(number(7)) <= x
    )


def test_specialize_renames_inner_binders():
    claim = assume(forall(i, NATURALS, eq(total(j, D, f(i)), x)))
    assert kernel.specialize(claim, j).conclusion == eq(total(k, D, f(j)), x)


def test_instantiate_replaces_symbols_families_and_indices():
    claim = assume(eq(total(i, D, f(i)) * x, inner(u, v)))
    got = instantiate(claim, reals={"x": exp(y), "f": (("i",), f(i + 1) * x)}, vectors={"u": v + v})
    assert got.conclusion == eq(total(i, D, f(i + 1) * x) * exp(y), inner(v + v, v))
    assert got.hypotheses == {got.conclusion}
    assert instantiate(assume(f(t + 1) <= x), indices={"t": t + 2}).conclusion == (f(t + 3) <= x)


def test_instantiate_refuses_replacements_of_the_wrong_kind():
    claim = assume(eq(f(i) * x, inner(u, v)))
    refused(instantiate, claim, reals={"x": u}, says="wrong kind")
    refused(instantiate, claim, vectors={"u": x}, says="wrong kind")
    refused(instantiate, claim, indices={"i": x}, says="wrong kind")
    refused(instantiate, claim, reals={"f": ((), x)}, says="takes 1 indices")
    refused(instantiate, claim, reals={"x": (("i",), x)}, says="takes 0 indices")


def test_instantiate_avoids_capture():
    claim = assume(eq(total(i, D, f(i) * x), y))
    got = instantiate(claim, reals={"x": f(i)}).conclusion
    assert got == eq(total(j, D, f(j) * f(i)), y)
    slope = assume(eq(diff(x, x * y, a), b))
    assert instantiate(slope, reals={"y": x}).conclusion == eq(diff(c, c * x, a), b)


def test_cases_joins_two_halves():
    low = combine(x <= maximum(x, y), [(1, assume(x <= y)), (-1, kernel.max_is(assume(x <= y)))])
    high = combine(x <= maximum(x, y), [(-1, kernel.max_commutes(x, y)), (-1, kernel.max_is(assume(y < x)))])
    assert kernel.cases(low, high, x, y).hypotheses == frozenset()
    refused(kernel.cases, low, one_positive(), x, y, says="different claims")
    # the halves must be complementary: the other order keeps both hypotheses
    assert kernel.cases(low, high, y, x).hypotheses == {x <= y, y < x}


def test_absurd_needs_a_strict_inequality_between_equals():
    assert kernel.absurd(assume(x * y < y * x), eq(x, 7)).conclusion == eq(x, 7)
    refused(kernel.absurd, assume(x < y), eq(x, 7), says="not absurd")
    refused(kernel.absurd, assume(x <= x + 0), eq(x, 7), says="expected lt")


def test_induction_needs_base_and_step():
    claim = f(t) <= as_real(t) * x
    more = assume(forall(t, NATURALS, f(t + 1) <= f(t) + x))
    step = follows(f(t + 1) <= as_real(t + 1) * x, kernel.specialize(more, t), assume(claim))
    base = follows(f(number(0)) <= as_real(number(0)) * x, assume(f(number(0)) <= 0))
    proved = kernel.induction(base, step, t)
    assert proved.conclusion == forall(t, NATURALS, claim)
    assert proved.hypotheses == base.hypotheses | more.hypotheses
    other = combine(f(number(1)) <= as_real(number(1)) * x, [(1, assume(f(number(1)) <= x))])
    refused(kernel.induction, other, step, t, says="base is another claim")
    refused(kernel.induction, base, assume(claim), t, says="not an assumption")
    loose = follows(f(t + 1) <= as_real(t + 1) * x, assume(f(t + 1) <= f(t) + x), assume(claim))
    refused(kernel.induction, base, loose, t, says="t is free")
    refused(kernel.induction, base, step, t + 1, says="not an index variable")


def test_congruence_rewrites_terms_by_an_equation():
    assert kernel.congruence(assume(eq(x, y)), exp(a) * a, a).conclusion == eq(exp(x) * x, exp(y) * y)
    assert kernel.congruence(assume(veq(u, v)), norm(w), w).conclusion == eq(norm(u), norm(v))
    refused(kernel.congruence, assume(veq(u, v)), exp(a), a, says="not an equation of that kind")
    refused(kernel.congruence, assume(x <= y), exp(a), a, says="not an equation of that kind")
    refused(kernel.congruence, assume(eq(x, y)), f(i), f(i), says="not a plain symbol")
    refused(kernel.congruence, assume(veq(u, v)), w, w)  # a template is a real term
    refused(kernel.congruence, assume(eq(x, y)), as_real(i), i, says="not an equation of that kind")


def test_congruence_avoids_capture():
    claim = kernel.congruence(assume(eq(f(i), y)), total(i, D, a), a)
    assert claim.conclusion == eq(total(j, D, f(i)), total(j, D, y))


def _least_claim():
    """From "f is least at (i, j)" the claim that f is positive on the family if its least member is."""
    least = forall(t, D, forall(k, J(t), symbol("g", i, j) <= symbol("g", t, k)))
    here = [assume(member(i, D)), assume(member(j, J(i)))]
    positive = everywhere(
        assume(forall(i, D, forall(j, J(i), symbol("g", i, j) > 0))), (i, here[0]), (j, here[1])
    )
    some = member(k, J(t))
    at = everywhere(assume(least), (t, assume(member(t, D))), (k, assume(some)))
    return follows(symbol("g", t, k) > 0, positive, at)


def test_least_drops_the_least_member():
    claim = _least_claim()
    witness = [assume(member(t, D)), assume(member(k, J(t)))]
    family = [(i, D), (j, J(i))]
    proved = kernel.least(claim, family, symbol("g", i, j), witness)
    assert proved.hypotheses == {
        member(t, D), member(k, J(t)), forall(i, D, forall(j, J(i), symbol("g", i, j) > 0))
    }  # fmt: skip
    wrong = [assume(member(t, D)), assume(member(k, J(i)))]
    refused(kernel.least, claim, family, symbol("g", i, j), wrong, says="witness elsewhere")
    refused(kernel.least, claim, family, symbol("g", i, j), witness[:1])
    refused(kernel.least, claim, [(i, NATURALS)], f(i), [one_positive()], says="only finite families")
    refused(kernel.least, claim, family, symbol("g", j, i), witness, says="is free in")  # not the least one
    refused(kernel.least, assume(f(i) <= x), [(i, D)], f(i), [assume(member(j, D))], says="i is free")


# --- algebra and order -------------------------------------------------------------------------------------


def test_combine_adds_and_multiplies():
    p, q = assume(x >= 0), assume(y > 0)
    assert combine(x * y >= 0, [(p, q)]).hypotheses == {x >= 0, y > 0}
    assert combine(y + 3 * x > 0, [(1, q), (3, p)]).conclusion == (y + 3 * x > 0)
    equal = assume(eq(x, y))
    assert combine(eq(x * a, y * a), [(a, equal)]).conclusion == eq(x * a, y * a)
    assert combine(x <= y, [(1, equal)]).conclusion == (x <= y)
    assert combine(eq(exp(x) * exp(-x), 1)).hypotheses == frozenset()


def test_combine_refuses_wrong_signs_and_strictness():
    p, q, equal = assume(x >= 0), assume(y > 0), assume(eq(x, y))
    refused(combine, x <= 0, [(-1, p)], says="negative")
    refused(combine, x > 0, [(1, p)], says="strict part")
    refused(combine, x * y > 0, [(p, q)], says="strict part")
    refused(combine, y * y * 0 + ZERO > 0, [(0, q)], says="strict part")
    refused(combine, x < y, [(1, equal)], says="strict part")
    refused(combine, eq(x, 0), [(1, p)], says="does not follow from inequalities")
    refused(combine, x * y >= 0, [(1, p)], says="does not add up")
    refused(combine, a * x >= 0, [(a, p)])  # a term of unknown sign
    refused(combine, x >= 0, [(equal, p)], says="expected le/lt")  # an equation is no multiplier here
    refused(combine, veq(u, u), [], says="not an .in.equality")
    refused(combine, x >= 0, [(0.5, p)], says="not made by the kernel: float")
    refused(combine, x >= 0, [(1, assume(member(i, D)))], says="expected le/lt/eq")


def test_combine_cancels_only_what_is_proved_nonzero():
    assert combine(eq(x / x, 1), nonzero=[assume(x > 0)]).hypotheses == {x > 0}
    assert combine(eq(x / x, 1), nonzero=[assume(x < 0)]).hypotheses == {x < 0}
    both = [assume(x * y + y > 0), assume(x + 1 > 0)]
    assert combine(eq(inv(x * y + y) * y, inv(x + 1)), nonzero=both).hypotheses == {x * y + y > 0, x + 1 > 0}
    refused(combine, eq(inv(x * y + y) * y, inv(x + 1)), nonzero=both[:1], says="does not add up")
    refused(combine, eq(x / x, 1), says="does not add up")
    refused(combine, eq(x / x, 1), nonzero=[assume(x >= 0)], says="expected lt")
    refused(combine, eq(x / x, 1), nonzero=[assume(eq(x, 1))], says="expected lt")
    refused(combine, eq(x / x, 1), nonzero=[assume(y > 0)], says="does not add up")
    assert combine(eq(x * inv(x) * x, x), nonzero=[assume(x * y > 0)]).hypotheses == {x * y > 0}
    refused(combine, eq(inv(x - x), 1), says="does not add up")
    assert combine(eq(inv(x - x), 0)).conclusion == eq(inv(x - x), 0)


def test_combine_squares_only_roots_of_the_nonnegative():
    assert combine(eq(sqrt(x) ** 2, x), nonnegative=[assume(x >= 0)]).hypotheses == {x >= 0}
    assert combine(eq(sqrt(x) ** 5, x**2 * sqrt(x)), nonnegative=[assume(x > 0)]).hypotheses == {x > 0}
    refused(combine, eq(sqrt(x) ** 2, x), says="does not add up")
    refused(combine, eq(sqrt(x**2), x), nonnegative=[kernel.square(x)], says="does not add up")
    refused(combine, eq(sqrt(x) ** 2, x), nonnegative=[assume(eq(0, x))], says="expected le/lt")


def test_squares_and_order():
    assert kernel.square(x - y).conclusion == ((x - y) ** 2 >= 0)
    refused(kernel.square, u)
    assert kernel.antisymmetry(assume(x <= y), assume(y <= x)).conclusion == eq(x, y)
    refused(kernel.antisymmetry, assume(x <= y), assume(y <= a), says="do not bound each other")
    refused(kernel.antisymmetry, assume(x < y), assume(y <= x), says="expected le")
    assert kernel.inverse_positive(assume(x > 0)).conclusion == (inv(x) > 0)
    refused(kernel.inverse_positive, assume(x >= 0), says="expected lt")
    refused(kernel.inverse_positive, assume(y < x), says="expected 0 < b")
    assert kernel.natural(t + 1).conclusion == (as_real(t + 1) >= 0)
    refused(kernel.natural, x)


def test_sum_order_sums_over_finite_domains():
    claim = everywhere(assume(forall(j, D, f(j) <= x)), (i, assume(member(i, D))))
    assert kernel.sum_order(claim, i, D).conclusion == (total(i, D, f(i)) <= total(i, D, x))
    refused(kernel.sum_order, claim, i, E, says="i is free")
    refused(kernel.sum_order, assume(f(i) <= x), i, D, says="i is free")
    refused(kernel.sum_order, combine(x < x + 1, [(1, one_positive())]), i, D, says="expected le/eq")
    refused(kernel.sum_order, combine(x <= x + 0), i, NATURALS, says="malformed")  # no infinite sums
    refused(kernel.sum_order, combine(eq(x, x)), i, J(i), says="i is free in J")


def test_term_of_sum_needs_nonnegative_terms_and_membership():
    claim = everywhere(assume(forall(j, D, f(j) >= 0)), (i, assume(member(i, D))))
    inside = assume(member(k, D))
    assert kernel.term_of_sum(claim, i, D, inside).conclusion == (f(k) <= total(i, D, f(i)))
    refused(kernel.term_of_sum, claim, i, D, assume(member(k, E)), says="expected j in D")
    refused(kernel.term_of_sum, claim, i, D, one_positive(), says="expected j in D")
    refused(kernel.term_of_sum, assume(f(i) >= 0), i, D, inside, says="i is free")
    lower = combine(x <= x + 0)
    refused(kernel.term_of_sum, lower, i, D, inside, says="expected 0 <= b")
    mine = combine(real(1) >= 0, [(1, one_positive())])
    refused(kernel.term_of_sum, mine, i, below(i), assume(member(number(0), below(i))), says="i is free in")


# --- calculus ----------------------------------------------------------------------------------------------


def test_derivative_of_every_head():
    positive = [assume(y > 0), assume(2 + y > 0)]
    body = x**3 * exp(-x) + log(x) / (2 + x) + sqrt(x) + f(i)
    claim = kernel.derivative(x, body, y, positive)
    assert claim.conclusion[1] == diff(x, body, y)
    slope, _ = differentiate(body, x)
    at = instantiate(combine(eq(slope, slope)), reals={"x": real(2), "f": (("i",), real(0))}).conclusion[1]
    step = 1e-6

    def value(z):
        return z**3 * math.exp(-z) + math.log(z) / (2 + z) + math.sqrt(z)

    from tests.theory.concrete import Model, precision

    with precision():
        got = float(Model(0).real(at).mid())
    assert got == pytest.approx((value(2 + step) - value(2 - step)) / (2 * step), rel=1e-8)


def test_derivative_asks_for_every_condition():
    body = log(x) / (2 + x)
    refused(kernel.derivative, x, body, y, [assume(y > 0)], says="derivative needs")
    refused(kernel.derivative, x, body, y, [assume(2 + y > 0)], says="derivative needs")
    refused(kernel.derivative, x, log(x), y, [assume(y < 0)], says="derivative needs")
    refused(kernel.derivative, x, sqrt(x), y, [assume(y >= 0)], says="derivative needs")
    refused(kernel.derivative, x, log(x), y, [assume(x > 0)], says="derivative needs")  # at y, not at x
    assert kernel.derivative(x, inv(x), y, [assume(y < 0)]).hypotheses == {y < 0}
    everywhere_ = forall(i, D, f(i) * y + 1 > 0)
    under = total(i, D, log(f(i) * x + 1))
    assert kernel.derivative(x, under, y, [assume(everywhere_)]).hypotheses == {everywhere_}
    refused(kernel.derivative, x, under, y, [assume(f(i) * y + 1 > 0)], says="derivative needs")
    quotient = total(i, D, inv(f(i) * x + 1))
    refused(
        kernel.derivative, x, quotient, y, [assume(forall(i, D, f(i) * y + 1 < 0))], says="derivative needs"
    )


@pytest.mark.parametrize("body", [maximum(x, 1), minimum(x, 1), diff(y, x * y, a)], ids=repr)
def test_derivative_of_unknown_functions_is_refused(body):
    refused(kernel.derivative, x, body, a, says="does not differentiate")


def test_derivative_through_vectors():
    body = inner(x * u + vtotal(i, D, (x**2 * f(i)) * vector("z", i)), v)
    claim = kernel.derivative(x, body, y)
    wanted = inner(u, v) + 2 * y * total(i, D, f(i) * inner(vector("z", i), v))
    assert combine(eq(diff(x, body, y), wanted), [(1, claim)]).hypotheses == frozenset()


def test_monotone_is_the_mean_value_theorem():
    up = kernel.monotone(weak(kernel.exp_positive(x)), assume(a <= b), x, exp(x))
    assert up.conclusion == (exp(a) <= exp(b))
    assert up.hypotheses == {a <= b}
    inside = combine(x > 0, [(1, assume(a > 0)), (1, assume(a <= x))])
    slope = weak(kernel.inverse_positive(inside))
    grown = kernel.monotone(slope, assume(a <= b), x, log(x), [inside])
    assert grown.hypotheses == {a > 0, a <= b}
    down = combine(-exp(x) <= 0, [(1, kernel.exp_positive(x))])
    assert kernel.monotone(down, assume(a <= b), x, -exp(x)).conclusion == (-exp(b) <= -exp(a))


def test_monotone_refuses_what_the_theorem_does_not_cover():
    positive, order = weak(kernel.exp_positive(x)), assume(a <= b)
    refused(kernel.monotone, positive, order, x, exp(-x), says="the derivative is")
    refused(kernel.monotone, assume(y <= exp(x)), order, x, exp(x), says="expected the sign")
    refused(kernel.monotone, positive, assume(eq(a, b)), x, exp(x), says="expected le/lt")
    refused(kernel.monotone, positive, order, f(i), exp(x), says="not a plain")
    # the derivative's sign only at this x
    here = combine(2 * x >= 0, [(2, assume(x >= 0))])
    refused(kernel.monotone, here, order, x, x**2, says="x is free")
    # an end that moves with x
    refused(kernel.monotone, positive, assume(x <= b), x, exp(x), says="x is free")
    # 1/x is decreasing on either side of 0, not across
    sign = combine(-(inv(x) ** 2) * 1 <= 0, [(1, kernel.square(inv(x)))])
    refused(kernel.monotone, sign, order, x, inv(x), says="derivative needs")
    crossing = assume(x > 0)
    refused(kernel.monotone, sign, order, x, inv(x), [crossing], says="x is free")


def test_on_box_decides_strict_and_weak_signs():
    claim = kernel.on_box(x * exp(-x) <= Fraction(37, 100), {"x": (0, 5)})
    assert claim.hypotheses == {real(0) <= x, x <= real(5)}
    assert kernel.on_box(lambertw(x) + log(x) + sqrt(y) > 0, {"x": (1, 2), "y": (1, 3)}).rule == "on_box"
    assert kernel.on_box(minimum(x, y) <= maximum(x, y) + 1, {"x": (-1, 1), "y": (-1, 1)}).rule == "on_box"
    assert kernel.on_box(real(1) > 0, {}).hypotheses == frozenset()


@pytest.mark.parametrize(
    ("target", "box"),
    [
        (x * exp(-x) <= Fraction(36, 100), {"x": (0, 5)}),  # false
        (x >= 0, {"x": (-1, 1)}),
        (inv(x) > 0, {"x": (-1, 1)}),  # inv(0) = 0
        (log(x) + 100 >= 0, {"x": (-1, 1)}),  # unspecified at x <= 0
        (sqrt(x) + 1 >= 0, {"x": (-1, 1)}),
        (lambertw(x) + 2 >= 0, {"x": (-1, 1)}),
        (x >= 0, {"y": (0, 1)}),  # x is not in the box
        (eq(x, x), {"x": (0, 1)}),
        (diff(x, x, a) + 1 >= 0, {"a": (0, 1)}),
        (inner(u, u) + 1 >= 0, {}),
        (f(i) + 1 >= 0, {"f": (0, 1)}),
        (inv(exp(exp(exp(exp(1000 * x))))) <= 0, {"x": (1, 1)}),  # overflows: no ball, no claim
        (x - x > 0, {"x": (1, 1)}),  # a cell of no width
        (x >= 0, {"x": (0.0, 1.0)}),  # floats are not exact
        (x >= 0, {"x": (0, math.nan)}),
        (x + 1 >= 0, {1: (0, 1)}),
        (x + 1 >= 0, {"#1": (0, 1), "x": (0, 1)}),
    ],
    ids=repr,
)
def test_on_box_refuses(target, box):
    refused(kernel.on_box, target, box, boxes=2000)


def test_on_box_leaves_the_precision_alone_and_takes_threads():
    before = ctx.prec
    claims = []

    def work():
        claims.append(kernel.on_box(x * exp(-x) <= Fraction(37, 100), {"x": (0, 5)}))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({claim.conclusion for claim in claims}) == 1
    assert len(claims) == 4
    assert ctx.prec == before


# --- axioms ------------------------------------------------------------------------------------------------


def test_axioms_state_what_they_say():
    p, q = assume(x > 0), assume(x >= 0)
    assert kernel.exp_positive(x).conclusion == (exp(x) > 0)
    assert kernel.log_exp(x).conclusion == eq(log(exp(x)), x)
    assert kernel.exp_log(p).conclusion == eq(exp(log(x)), x)
    refused(kernel.exp_log, q, says="expected lt")
    refused(kernel.exp_log, assume(y < x), says="expected 0 < b")
    assert kernel.sqrt_nonnegative(q).conclusion == (sqrt(x) >= 0)
    refused(kernel.sqrt_nonnegative, assume(y <= x), says="expected 0 <= b")
    assert kernel.lambert_w(q).conclusion == eq(lambertw(x) * exp(lambertw(x)), x)
    assert kernel.lambert_w_nonnegative(p).conclusion == (lambertw(x) >= 0)
    for rule in (kernel.lambert_w, kernel.lambert_w_nonnegative):
        refused(rule, assume(y <= x), says="expected 0 <= b")
        refused(rule, assume(eq(x, 0)), says="expected le/lt")
    assert kernel.max_is(assume(x <= y)).conclusion == eq(maximum(x, y), y)
    refused(kernel.max_is, assume(eq(x, y)), says="expected le/lt")
    assert kernel.max_commutes(x, y).conclusion == eq(maximum(x, y), maximum(y, x))
    assert kernel.min_is_minus_max(x, y).conclusion == eq(minimum(x, y), x + y - maximum(x, y))
    assert kernel.inner_nonnegative(u).conclusion == (inner(u, u) >= 0)
    assert kernel.cauchy_schwarz(u, v).conclusion == (inner(u, v) <= norm(u) * norm(v))


def test_axioms_are_listed_in_every_claim_that_uses_them():
    claim = exp_tangent(y)
    assert claim.axioms == {"exp_positive"}
    assert combine(y <= exp(y), [(1, claim), (1, one_positive())]).axioms == {"exp_positive"}
    assert combine(eq(x, x)).axioms == frozenset()
    assert claim.axioms <= set(kernel.AXIOMS)
    assert kernel.AXIOMS["cauchy_schwarz"] == "<u, v> <= ||u|| ||v|| for all vectors u, v."


def test_ancestry_lists_every_premise_once():
    claim = exp_tangent(y)
    line = list(kernel.ancestry(claim))
    assert line[-1] is claim
    assert len({id(p) for p in line}) == len(line)
    place = {id(p): n for n, p in enumerate(line)}
    assert all(place[id(q)] < place[id(p)] for p in line for q in p.premises)


# --- attacks -----------------------------------------------------------------------------------------------


def test_attack_domain_that_depends_on_its_own_index():
    # "i in J(i)" for this i does not make every element k of J(i) one of J(k)
    refused(kernel.generalize, assume(member(i, J(i))), i, J(i), says="i is free in J")
    h = forall(j, NATURALS, forall(k, J(j), symbol("g", j, k) <= 0))
    diagonal = everywhere(assume(h), i, (i, assume(member(i, J(i)))))
    refused(kernel.sum_order, diagonal, i, J(i), says="i is free in J")
    # no f(i) < f(k) for all i in J(k) at i = k; but J(k) may be nonempty for all k
    smaller = forall(j, NATURALS, forall(k, J(j), f(k) < f(j)))
    never = kernel.absurd(everywhere(assume(smaller), i, (i, assume(member(i, J(i))))), real(1) < 0)
    refused(kernel.least, never, [(i, J(i))], f(i), [assume(member(j, J(i)))], says="i is free in J")


def test_attack_least_with_one_name_for_two_indices():
    # D and E may have no common element
    low = everywhere(assume(forall(i, D, f(i) < 0)), (i, assume(member(i, D))))
    high = everywhere(assume(forall(i, E, f(i) > 0)), (i, assume(member(i, E))))
    both = kernel.absurd(combine(ZERO < 0, [(1, low), (1, high)]), real(1) < 0)
    witness = [assume(member(j, D)), assume(member(k, E))]
    refused(kernel.least, both, [(i, D), (i, E)], f(i), witness, says="not distinct")
    # a domain that mentions a later index
    nobody = kernel.absurd(combine(ZERO < 0, [(1, assume(ZERO < 0))]), real(1) < 0)
    refused(kernel.least, nobody, [(i, J(k)), (k, E)], f(i), witness, says="k is free in J")


def test_attack_negative_index():
    # 1 <= t + 1 would give 1 <= 0 at t = -1
    claim = combine(as_real(t + 1) >= 1, [(1, kernel.natural(t))])
    for make in (lambda: number(-1), lambda: Index(("ix", (), -1))):
        with pytest.raises(ValueError, match="malformed Index"):
            make()
    refused(
        instantiate, claim, indices={"t": tuple.__new__(Index, ("ix", (), -1))}, says="not made by the kernel"
    )


@pytest.mark.parametrize("name", ["#1", "#2", "~0", "~at", "~i", "~~0"])
def test_attack_capture_by_an_internal_name(name):
    # from "f is x on D" follows "f is constant on D"; with x := f(bound index) the hypothesis would be empty
    inner_index = Index(("ix", (name,), 0))
    constant = assume(forall(i, D, eq(f(i), x)))
    parts = [everywhere(constant, (n, assume(member(n, D)))) for n in (i, j)]
    claim = combine(eq(f(i), f(j)), [(1, parts[0]), (-1, parts[1])])
    claim = kernel.generalize(kernel.generalize(claim, j, D), i, D)
    refused(instantiate, claim, reals={"x": f(inner_index)}, says="not made by the kernel: Term")
    refused(instantiate, claim, reals={"x": Term(("sym", name))}, says="not made by the kernel: Term")
    refused(assume, f(inner_index) <= x, says="not made by the kernel: Formula")
    with pytest.raises(ValueError, match="not a symbol name"):
        index(name)


@pytest.mark.parametrize("name", ["0", "x + y", "x) <= (y", "1/2", "", "x\ny"])
def test_attack_names_that_look_like_terms(name):
    # a claim printed as "0 < 0" must not be one about a symbol called 0
    with pytest.raises(ValueError, match="not a symbol name"):
        symbol(name)
    refused(assume, Term(("sym", name)) < 0, says="not made by the kernel")


MALFORMED = [
    (Formula, ("le", 1, 2)),
    (Formula, ("le", ("num", Fraction(1)), ("num", Fraction(0)))),
    (Formula, ("le", x)),
    (Formula, ("le", x, y, a)),
    (Formula, ("equals", x, y)),
    (Formula, ()),
    (Formula, ("in", ("ix", ("i",), 0), D)),
    (Formula, ("forall", "#2", D, x <= y)),
    (Formula, ("forall", "i", D, x <= y)),
    (Term, ("le", x, y)),
    (Term, ("num", 1)),
    (Term, ("num", 0.5)),
    (Term, ("num", math.nan)),
    (Term, ("num", True)),
    (Term, ("pow", x, -1)),
    (Term, ("pow", x, True)),
    (Term, ("pow", x, Fraction(1, 2))),
    (Term, ("fn", "tan", x)),
    (Term, ("fn", "exp", x, y)),
    (Term, ("fn", "max", x)),
    (Term, ("add",)),
    (Term, ("sum", "#1", NATURALS, x)),
    (Term, ("sum", "#1", D, u)),
    (Term, ("inner", u, x)),
    (Term, ("diff", "#3", x, y)),
    (Index, ("ix", ("t", "s"), 0)),
    (Index, ("ix", ["t"], 0)),
    (Index, ("ix", ("t",), 0.0)),
    (Index, ("ix", (x,), 0)),
]


@pytest.mark.parametrize(("kind", "parts"), MALFORMED, ids=lambda p: repr(p)[:60])
def test_attack_malformed_nodes(kind, parts):
    with pytest.raises((ValueError, TypeError)):
        kind(parts)
    forged = tuple.__new__(kind, parts)
    if kind is Formula:
        refused(assume, forged)
    elif kind is Term:
        refused(kernel.square, forged)
    else:
        refused(kernel.natural, forged)


def test_attack_malformed_node_inside_a_good_one():
    plain = tuple.__new__(Formula, ("le", ("sym", "x"), y))  # equal to x <= y as a tuple
    assert plain == (x <= y)
    refused(assume, plain, says="not made by the kernel")


class _Name(str):
    """A string that changes its mind about what it equals."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("x")


def test_attack_fickle_names():
    with pytest.raises((ValueError, TypeError)):
        Term(("sym", _Name("z")))
    claim = assume(x <= y)
    refused(instantiate, claim, reals={_Name("z"): a}, says="not made by the kernel: dict")
    refused(instantiate, claim, reals={("x",): a}, says="not made by the kernel: dict")


def test_attack_a_type_that_equals_every_type():
    class Fickle(type):
        __hash__ = lambda cls: hash(Term)  # noqa: E731
        __eq__ = lambda cls, other: True  # noqa: E731

    class Fake(metaclass=Fickle):
        hypotheses = frozenset()
        conclusion = real(1) < 0

        def __iter__(self):
            return iter((self.hypotheses, self.conclusion))

    refused(kernel.discharge, Fake(), says="not made by the kernel: Fake")


def test_attack_further_kinds_of_terms():
    with pytest.raises(TypeError, match="no further kinds"):
        type("Evil", (Term,), {"__eq__": lambda s, o: True, "__hash__": lambda s: 0})


def test_attack_symbol_and_family_of_one_name():
    # x and x(i) are different things; a rule that took one for the other would differentiate x(i) by x
    family = symbol("x", i)
    refused(kernel.derivative, x, x * family, y)
    refused(kernel.monotone, combine(family * 0 >= 0), assume(a <= b), x, family)
    slope = kernel.congruence(assume(eq(x, y)), inner(vector("x"), vector("x")), x)
    assert slope.conclusion[1] == slope.conclusion[2]  # the vector of that name is another thing too


def test_attack_zero_divisors():
    # x y = 0 with x, y not 0 does not exist; but inv(x) x = 1 must not be used at x = 0
    nothing = assume(eq(x, 0))
    refused(combine, real(1) <= 0, [(inv(x), nothing)], says="does not add up")
    refused(combine, eq(1, 0), [(inv(x), nothing)], nonzero=[assume(y > 0)], says="does not add up")
    at_zero = combine(eq(x * inv(x), 0), [(inv(x), nothing)])
    assert at_zero.conclusion == eq(x * inv(x), 0)
    # contradictory conditions prove anything, and say so
    absurd = combine(eq(1, 0), [(inv(x), nothing)], nonzero=[assume(x > 0)])
    assert absurd.hypotheses == {eq(x, 0), x > 0}


def test_attack_derivative_at_a_kink():
    # sqrt(x^2) = |x| is not differentiable at 0, and its slope changes sign
    body = sqrt(x**2)
    refused(kernel.derivative, x, body, zero(), [kernel.square(zero())], says="derivative needs")


def test_attack_strictness_from_zero_times_positive():
    refused(combine, ZERO < 0, [(0, one_positive())], says="strict part")
    nothing = combine(ZERO >= 0)
    refused(combine, ZERO < 0, [(nothing, one_positive())], says="strict part")
