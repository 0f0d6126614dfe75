"""The finite models: exact where they say so, undecided where they must be, and the true layer's values."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from numerics import NormalizedGD, Problem, max_margin, train
from numerics.errors import InputError
from tests.theory.instances import instance
from theory import catalog
from theory import notation as nt
from theory.model import Model, UndecidedError, approximate, definition, precision, tight_bounds
from theory.proof.terms import Term, eq, forall, index, inner, inv, log, norm, real, sqrt, symbol, vector
from theory.small_problem import SmallProblem, model

x, y = symbol("x"), symbol("y")


def plain(**values):
    """A model without sets, with these real symbols."""
    return Model(
        sets=lambda name, at: range(3),
        real=lambda name, at: values[name],
        vector=lambda name, at: (fmpq(0),),
    )


def corner(queries=((1,),), scale=1):
    """One sequence of three tokens in the plane and a score coordinate; the first token is optimal."""
    rows = ((2, 1, 1), (0, 1, 0), (1, -1, 0))
    tokens = (tuple(tuple(Fraction(c * scale) for c in row) for row in rows),)
    zs = tuple(tuple(map(Fraction, z)) for z in queries)
    return SmallProblem(tokens, zs, (1,), (Fraction(0), Fraction(0), Fraction(1) / scale))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (real(1) <= 1, True),
        (real(1) < 1, False),
        (eq(x * inv(x), 1), True),  # x = 3
        (eq(inv(y), 0), True),  # y = 0 and inv(0) = 0
        (sqrt(real(2)) * sqrt(real(3)) <= sqrt(real(6)), None),  # equal, which balls cannot show
        (sqrt(real(2)) < Fraction(3, 2), True),
        (eq(sqrt(real(4)), 2), True),  # perfect squares stay exact
        (log(-x) <= 0, None),  # unspecified
        (forall(index("i"), nt.SEQUENCES, real(1) <= 0), False),
    ],
)
def test_true_false_or_undecided(formula, expected):
    with precision():
        assert plain(x=fmpq(3), y=fmpq(0)).holds(formula) is expected


def test_a_divisor_that_may_vanish_is_undecided():
    ball = arb(0).union(arb(1))
    with precision(), pytest.raises(UndecidedError, match="vanish"):
        plain(x=ball).term(inv(x))


def test_hypotheses_that_define_are_recognized():
    assert definition(nt.STATIC.attention_is()) is not None
    assert definition(nt.update_is()).name == "W"
    assert definition(nt.DUAL_MASS) is None  # its left side is a sum
    assert definition(nt.SEPARABLE) is None


def test_definitions_shift_and_recur():
    problem = corner()
    free = {("vsym", "W", (0,)): (fmpq(0),) * 3, ("sym", "eta", ()): fmpq(1)}
    rule = nt.always(eq(nt.e(nt.t), nt.eta))
    made = model(problem, hypotheses=[rule], free=lambda *key: free[key], horizon=3)
    with precision():
        assert made.by_construction(rule)
        W = vector("W", index("k"))
        lengths = [approximate(made.term(norm(W), {"k": k})) for k in range(4)]
        assert lengths[0] == 0
        assert lengths[1] == pytest.approx(1)
        assert made.holds(nt.always(norm(nt.layer(nt.t).W) <= nt.path_length(nt.t))) is not False
        with pytest.raises(UndecidedError):
            made.term(norm(W), {"k": 4})  # beyond the horizon


@pytest.mark.parametrize(
    ("hypothesis", "name", "side"),
    [(nt.NORM_BOUND, "R", 1), (nt.SLOPE_LOWER, "a_min", -1), (nt.SLOPE_UPPER, "a_max", 1)],
)
def test_bounds_are_made_tight(hypothesis, name, side):
    assert (name, side) in [(b.name, b.side) for b in tight_bounds(hypothesis)]


def test_tight_bounds_hold_and_less_does_not():
    made = model(corner(((1, 2),)), hypotheses=[nt.NORM_BOUND], free=lambda *key: fmpq(0))
    with precision():
        assert made.holds(nt.NORM_BOUND) is True
        smaller = nt.each(norm(nt.A(nt.i, nt.tau)) <= nt.R * Fraction(999, 1000))
        assert made.holds(smaller) is False


@pytest.mark.parametrize("seed", [42, 44, 47, 48, 49, 51])
def test_exact_max_margin_agrees_with_the_solver(seed):
    """Instances with at most eight constraints; enumeration takes ten."""
    at = instance(seed)
    small = SmallProblem.from_problem(at.problem)
    alpha = np.array([approximate(a) for a in small.dual.values()])
    solution = max_margin(at.problem)
    scale = max(1.0, float(np.abs(solution.dual).max()))
    np.testing.assert_allclose(alpha, solution.dual, atol=1e-6 * scale)
    assert sum(small.dual.values()) == sum(v * v for v in small.solution)  # complementary slackness, exactly
    margins = [sum(a * m for a, m in zip(A, small.solution, strict=True)) for A in small.matrices.values()]
    assert min(margins) == 1


def test_infeasible_constraints_have_no_solution():
    rows = ((Fraction(1), Fraction(1)), (Fraction(0), Fraction(0)))
    queries = ((Fraction(1),), (Fraction(-1),))  # A_2 = -A_1
    problem = SmallProblem((rows, rows), queries, (1, 1), (Fraction(0), Fraction(1)))
    assert problem.dual is None
    assert problem.solution is None


def test_iterates_are_those_of_training():
    """Five steps of normalized GD in balls and in float64."""
    rng = np.random.default_rng(3)
    tokens = rng.integers(-3, 4, (2, 2, 4)).astype(float)
    tokens[:, 0, 3], tokens[:, 1, 3] = 1.0, 0.0
    problem = Problem(tokens, rng.integers(1, 3, (2, 4)).astype(float), np.ones(2), np.eye(4)[3])
    run = train(problem, NormalizedGD(0.5), steps=5, record="all")
    page = catalog.theorems()["ngd-norm-lower"]
    small = SmallProblem.from_problem(problem)
    zero = (fmpq(0),) * small.dimension
    made = model(
        small,
        hypotheses=page.hypotheses.values(),
        free=lambda kind, name, at: zero if kind == "vsym" else fmpq(1, 2),
        horizon=5,
    )
    with precision():
        assert made.holds(page.claim) is not False
        k = index("k")
        for column, term in {
            "weight_norm": norm(vector("W", k)),
            "path_length": nt.path_length(k),
            "separator_path": nt.separator_path(k),
        }.items():
            exact = [approximate(made.term(term, {"k": int(s)})) for s in run.history["step"]]
            np.testing.assert_allclose(run.history[column], exact, rtol=1e-10)
        excess = nt.loss(nt.layer(k)) - nt.least_loss()
        exact = [approximate(made.term(log(excess), {"k": int(s)})) for s in run.history["step"]]
        np.testing.assert_allclose(run.history["log_excess_loss"], exact, rtol=1e-9)


def test_bad_problems_are_refused():
    one = (Fraction(1),)
    with pytest.raises(InputError, match="two optimal tokens"):
        SmallProblem((((one * 2), (one * 2)),), (one,), (1,), one * 2)
    with pytest.raises(InputError, match="token"):
        SmallProblem(((),), (one,), (1,), one)
    many = tuple((Fraction(k),) for k in range(12))
    with pytest.raises(InputError, match="too many"):
        SmallProblem((many,), (one,), (1,), one)


def test_ratio_of_sides():
    with precision():
        made = plain(x=fmpq(3), y=fmpq(4))
        (side,) = made.sides(x <= y)
        assert side.state is True
        assert side.ratio == pytest.approx(0.75)
        (side,) = made.sides(-y <= -x)
        assert side.ratio == pytest.approx(0.75)
        (side,) = made.sides(y <= x)
        assert side.state is False
        assert side.ratio == pytest.approx(1.25)
        assert isinstance(x, Term)
        assert made.term(inner(vector("v"), vector("v"))) == 0
