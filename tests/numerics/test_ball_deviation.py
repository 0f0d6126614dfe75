"""The bound on a run's distance from the computed trajectory: derivatives, norms, runs that start apart."""

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from numerics import GradientDescent, NormalizedGD, Polyak, certify, max_margin, train
from numerics._ball_deviation import Deviation, StepShape, _norm_bound
from numerics._ball_layer import ExactProblem, dot, look_at, step_length
from numerics.datasets import load
from numerics.steps import Rule

RULES = {
    "gd": GradientDescent(2.0),
    "gd-schedule": GradientDescent(2.0, exponent=0.25),
    "ngd": NormalizedGD(0.2),
    "ngd-long": NormalizedGD(1.0),
    "polyak": Polyak(),
    "polyak-capped": Polyak(cap=0.4),
}
DATA = {"gaussian": "gaussian", "digits": "digits:3v5,n=4"}


class Walk:
    """The run's steps on exact points b, at the working precision."""

    def __init__(self, data: str, rule: Rule) -> None:
        self.problem, self.law = load(DATA[data], seed=1), rule.law
        self.exact = ExactProblem.of(self.problem)
        self.deviation = Deviation.of(self.exact, self.problem.gram(), max_margin(self.problem))

    def gaps(self, b: list[arb]) -> list[arb]:
        return (self.exact.gram * arb_mat(len(b), 1, b)).entries()

    def step(self, b: list[arb], t: int) -> list[arb]:
        look = look_at(self.exact, self.gaps(b))
        norm = dot(look.coefficients, self.gaps(look.coefficients)).sqrt()
        _, factor, _ = step_length(self.law, t, norm, look.excess)
        return [x + factor * c for x, c in zip(b, look.coefficients, strict=True)]

    def shape(self, b: list[arb], t: int, away: arb) -> tuple[object, StepShape]:
        """What `advance` is given: everything at any point within the distance."""
        wide = [x + arb(0, away * r) for x, r in zip(self.gaps(b), self.deviation.reach, strict=True)]
        look = look_at(self.exact, wide)
        pull = self.gaps(look.coefficients)
        norm = dot(look.coefficients, pull).sqrt()
        length, _, powers = step_length(self.law, t, norm, look.excess)
        return look, StepShape(length, norm, pull, powers)

    def size(self, b: list[arb], other: list[arb]) -> arb:
        """||P (b - other)||."""
        N = len(b)
        gap = arb_mat(N, 1, [x - y for x, y in zip(b, other, strict=True)])
        P = arb_mat(self.deviation.coordinates.value.tolist())
        return sum((x * x for x in (P * gap).entries()), arb(0)).sqrt()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("data", DATA)
def test_the_derivative_is_that_of_the_step(data: str, rule: str, seed: int) -> None:
    print("seed", seed)
    with ctx.workprec(400):
        walk, rng = Walk(data, RULES[rule]), np.random.default_rng(seed)
        N = walk.problem.n_constraints
        b = [arb(0)] * N
        for t in range(13):
            if t in (0, 2, 12):
                J, error = walk.deviation._derivative(*walk.shape(b, t, arb(0)))
                P = arb_mat(walk.deviation.coordinates.value.tolist())
                u, h = rng.standard_normal(N), arb(2) ** -150
                moved = [x + h * arb(v) for x, v in zip(b, u, strict=True)]
                pairs = zip(walk.step(moved, t), walk.step(b, t), strict=True)
                change = P * arb_mat(N, 1, [(x - y) / h for x, y in pairs])
                found = np.array([float(x.mid()) for x in change.entries()])
                y = walk.deviation.coordinates.value @ u
                assert np.linalg.norm(found - J @ y) <= (error + 1e-13 * np.linalg.norm(J)) * np.linalg.norm(
                    y
                )
                assert error < 1e-8 * np.linalg.norm(J)
            b = [x.mid() for x in walk.step(b, t)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("data", DATA)
def test_a_run_that_starts_apart_stays_within_the_distance(data: str, rule: str) -> None:
    with ctx.workprec(400):
        walk, rng = Walk(data, RULES[rule]), np.random.default_rng(5)
        N = walk.problem.n_constraints
        b, apart = [arb(0)] * N, [arb(1e-18 * x) for x in rng.standard_normal(N)]
        start = walk.size(b, apart)
        walk.deviation.rest = walk.deviation.drift = start.abs_upper()
        worst = arb(0)
        for t in range(60):
            away = walk.deviation.distance
            assert walk.size(b, apart) <= away, t
            worst = worst.max(walk.size(b, apart) / away)
            assert walk.deviation.advance(*walk.shape(b, t, away), arb(2) ** -350)
            b = [x.mid() for x in walk.step(b, t)]
            apart = [x.mid() for x in walk.step(apart, t)]
        assert worst > 1e-3  # the bound follows the run, it does not only grow


def test_a_distance_forgotten_is_seen() -> None:
    with ctx.workprec(400):
        walk = Walk("gaussian", RULES["ngd"])
        N = walk.problem.n_constraints
        b, apart = [arb(0)] * N, [arb(1e-18)] * N
        walk.deviation.rest = arb(1e-24)
        assert not walk.size(b, apart) <= walk.deviation.distance


@pytest.mark.parametrize("seed", range(5))
def test_the_norm_bound_is_above_the_norm_and_close_to_it(seed: int) -> None:
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for n in (1, 2, 30):
        for C in (rng.standard_normal((n, n)), np.eye(n), np.diag(rng.random(n)), np.zeros((n, n))):
            bound, norm = _norm_bound(C), np.linalg.norm(C, 2)
            assert norm <= bound <= norm * (1 + 1e-8) + 1e-290


@pytest.mark.parametrize("rule", ["gd", "ngd", "ngd-long", "polyak", "polyak-capped"])
def test_precision_does_not_grow_with_the_number_of_steps(rule: str) -> None:
    run = train(load("gaussian", seed=1), RULES[rule], steps=1000, space="gram", record=[0, 100, 1000])
    found = certify(run, bits=192, max_bits=192)  # a bit or more a step when pushed through in balls
    assert found.radius < 1e-30
