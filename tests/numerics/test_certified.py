"""Certified runs: enclosures against an independent 120-digit run, the float engine's error, refusals."""

import dataclasses
import math

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

from numerics import GradientDescent, NormalizedGD, Polyak, Problem, Run, certify, max_margin, train
from numerics.certified import ENCLOSED, FLOAT_ERROR, TARGET_COLUMNS, CertifiedRun, outward
from numerics.datasets import load
from numerics.errors import CertificationError, InputError
from numerics.steps import TorchOptimizer

DIGITS = 120
RULES = {
    "gd": GradientDescent(1.5),
    "gd-schedule": GradientDescent(2.0, exponent=0.25),
    "ngd": NormalizedGD(0.3),
    "ngd-schedule": NormalizedGD(0.5, exponent=2 / 3),
    "polyak": Polyak(),
    "polyak-capped": Polyak(cap=0.4),
}


def problem_with_unequal_scores(seed: int) -> Problem:
    """Three sequences of 4, 3 and 2 tokens, all scores different."""
    rng = np.random.default_rng([seed, 11])
    tokens = rng.standard_normal((3, 4, 4))
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    return Problem(tokens, None, np.array([1.0, -1.0, 1.0]), rng.standard_normal(4), mask)


def feasible_problem(seed: int) -> Problem:
    """The first of such problems whose constraints are feasible."""
    for attempt in range(100):
        problem = problem_with_unequal_scores(1000 * seed + attempt)
        try:
            max_margin(problem)
        except InputError:
            continue
        return problem
    raise AssertionError("no feasible problem in 100 draws")


def textbook(run: Run, alpha: list[mpf]) -> list[dict[str, mpf]]:
    """The run by the textbook formulas on W, softmax and all, at 120 digits; M = sum alpha_k A_k."""
    p, law = run.problem, run.rule.law
    d, n = p.d, p.n
    X = [
        [[mpf(float(x)) for x in p.tokens[i, tau]] for tau in range(p.T) if p.mask[i, tau]] for i in range(n)
    ]
    z = [[mpf(float(x)) for x in row] for row in p.queries]
    y, decoder = [mpf(float(x)) for x in p.labels], [mpf(float(x)) for x in p.decoder]
    g = [[y[i] * sum(a * b for a, b in zip(decoder, x, strict=True)) for x in X[i]] for i in range(n)]
    best = [row.index(max(row)) for row in g]
    pairs = [(i, tau) for i in range(n) for tau in range(len(X[i])) if tau != best[i]]

    def outer(i: int, tau: int) -> list[mpf]:
        return [(X[i][best[i]][a] - X[i][tau][a]) * z[i][b] for a in range(d) for b in range(d)]

    A = [outer(i, tau) for i, tau in pairs]

    def dot(a: list[mpf], b: list[mpf]) -> mpf:
        return sum((x * w for x, w in zip(a, b, strict=True)), mpf(0))

    M = [sum((c * row[j] for c, row in zip(alpha, A, strict=True)), mpf(0)) for j in range(d * d)]
    assert min(dot(row, M) for row in A) > 1 - mpf(10) ** -100  # with alpha >= 0 the KKT conditions
    unit = [x / mp.sqrt(dot(M, M)) for x in M]
    W = [mpf(0)] * (d * d) if run.init is None else [mpf(float(x)) for x in run.init.ravel()]
    floor = sum(mp.log(1 + mp.exp(-g[i][best[i]])) for i in range(n)) / n
    E, S, bend, rows = mpf(0), mpf(0), mpf(0), []
    for t in range(run.steps + 1):
        loss, gradient, gaps, C = mpf(0), [mpf(0)] * (d * d), [], mpf(0)
        for i in range(n):
            towards = [dot(W[d * a : d * a + d], z[i]) for a in range(d)]
            logits = [dot(x, towards) for x in X[i]]
            weights = [mp.exp(a - logits[best[i]]) for a in logits]
            phi = [w / sum(weights) for w in weights]
            m = dot(phi, g[i])
            loss += mp.log(1 + mp.exp(-m)) / n
            gaps.append(1 - phi[best[i]])
            slope = 1 / (1 + mp.exp(m)) / n
            for tau in range(len(X[i])):
                if tau != best[i]:
                    c = slope * phi[tau] * (m - g[i][tau])
                    C += c
                pull = slope * phi[tau] * (g[i][tau] - m)  # -dL/da by the softmax's own derivative
                for a in range(d):
                    for b in range(d):
                        gradient[d * a + b] += pull * X[i][tau][a] * z[i][b]
        length = mp.sqrt(dot(gradient, gradient))
        e = (
            mpf(law.scale)
            * mpf(t + 1) ** -mpf(law.exponent)
            * length ** int(law.p)
            * (loss - floor) ** int(law.q)
        )
        e = e if law.cap == math.inf else min(e, mpf(law.cap))
        u, v = mp.sqrt(dot(W, W)), dot(W, unit)
        rest = [x - v * w for x, w in zip(W, unit, strict=True)]
        rows.append(
            {
                "path_length": E,
                "separator_path": S,
                "curvature_sum": bend,
                "step_length": e,
                "weight_norm": u,
                "target_component": v,
                "residual_norm": mp.sqrt(dot(rest, rest)),
                "direction_gap": 1 - v / u if u else mp.nan,
                "log_attention_gap": mp.log(max(gaps)),
                "log_total_attention_gap": mp.log(sum(gaps)),
                "log_excess_loss": mp.log(loss - floor),
                "loss": loss,
                "min_logit_gap": min(dot(row, W) for row in A),
                "log_gradient_norm": mp.log(length),
            }
        )
        bend += e**2 / u if u else 0
        E, S = E + e, S + e * C / length
        W = [x + e * w / length for x, w in zip(W, gradient, strict=True)]
    return rows


def exact_dual(run: Run) -> list[mpf]:
    """The multipliers at 120 digits: K alpha = 1 on the support of the solver's."""
    p = run.problem
    assert run.target is not None
    D = [
        [
            mpf(float(a)) - mpf(float(b))
            for a, b in zip(p.tokens[i, p.optimal[i]], p.tokens[i, tau], strict=True)
        ]
        for i, tau in zip(p.constraint_sequence, p.constraint_token, strict=True)
    ]
    Z = [[mpf(float(x)) for x in p.queries[i]] for i in p.constraint_sequence]
    support = np.flatnonzero(run.target.support).tolist()
    K = mp.matrix(len(support))
    for a, k in enumerate(support):
        for b, m in enumerate(support):
            K[a, b] = mp.fdot(D[k], D[m]) * mp.fdot(Z[k], Z[m])
    solution = mp.lu_solve(K, mp.matrix([1] * len(support)))
    alpha = [mpf(0)] * len(D)
    for a, k in enumerate(support):
        assert solution[a] > 0
        alpha[k] = solution[a]
    return alpha


@pytest.mark.parametrize("start", ["zero", "random"])
@pytest.mark.parametrize("rule", RULES)
def test_enclosures_contain_the_textbook_run_at_120_digits(rule: str, start: str) -> None:
    problem = feasible_problem(0)
    init = np.random.default_rng(5).standard_normal((4, 4)) if start == "random" else None
    run = train(problem, RULES[rule], steps=12, init=init, space="weight", record="all")
    certified = certify(run)
    assert certified.radius < 1e-20
    assert not certified.missing
    with mp.workdps(DIGITS), ctx.workprec(800):
        for t, row in enumerate(textbook(run, exact_dual(run))):
            for name in ENCLOSED:
                ball = certified.balls[name][t]
                if mp.isnan(row[name]):
                    assert ball.is_nan()
                    continue
                number = arb(mp.nstr(row[name], 110)) + arb(
                    0, 1e-95
                )  # some digits for the run's own rounding
                assert ball.overlaps(number), (name, t, ball, number)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("rule", ["gd", "ngd", "polyak-capped"])
@pytest.mark.parametrize("data", ["gaussian:n=4,T=3,d=60", "digits:3v5,n=4"])
def test_the_float_history_lies_within_its_enclosure_plus_the_stated_error(
    data: str, rule: str, seed: int
) -> None:
    print("seed", seed)
    for space in ("gram", "weight"):
        certified = certify(train(load(data, seed=seed), RULES[rule], steps=60, space=space, record="log"))
        assert certified.outside() == []
        assert set(certified.float_error) == set(ENCLOSED)
        assert 0 < max(certified.float_error.values()) < FLOAT_ERROR
        for name in ENCLOSED:
            low, high = certified.bounds(name)
            defined = ~np.isnan(low)
            assert (low[defined] <= high[defined]).all()
            assert np.nanmax(np.abs(high - low)) <= 1e-15 * max(1.0, np.nanmax(np.abs(low)))


@pytest.fixture(scope="module")
def certified() -> CertifiedRun:
    """A certified run from a random start."""
    init = np.random.default_rng(3).standard_normal((4, 4))
    return certify(train(feasible_problem(1), NormalizedGD(0.2), steps=40, init=init, space="gram"))


@pytest.mark.parametrize("column", ENCLOSED)
def test_one_altered_number_is_found(certified: CertifiedRun, column: str) -> None:
    assert certified.outside() == []
    row = 7
    recorded = {name: np.array(values) for name, values in certified.run.recorded.items()}
    recorded[column][row] += 2 * FLOAT_ERROR * float(certified.scale(column)[row])
    altered = dataclasses.replace(certified, run=dataclasses.replace(certified.run, recorded=recorded))
    assert altered.outside() == [(column, int(certified.steps[row]))]
    assert altered.float_error[column] > FLOAT_ERROR
    recorded[column][row] = np.nan
    assert altered.outside() == [(column, int(certified.steps[row]))]


def test_a_given_step_length_is_measured_by_itself_however_small_the_gradient() -> None:
    run = train(load("gaussian:n=2,T=3,d=20", seed=0), NormalizedGD(1000.0), steps=20, space="gram")
    certified = certify(run)
    assert np.min(certified.run.recorded["log_gradient_norm"]) < -1000
    recorded = {name: np.array(values) for name, values in certified.run.recorded.items()}
    recorded["step_length"][-1] *= 1 + 1e-6
    altered = dataclasses.replace(certified, run=dataclasses.replace(certified.run, recorded=recorded))
    assert ("step_length", int(certified.steps[-1])) in altered.outside()


def test_precision_is_raised_until_the_radii_are_small() -> None:
    run = train(feasible_problem(1), NormalizedGD(0.5), steps=60, space="gram")
    low, high = certify(run, bits=64), certify(run, bits=1024)
    assert low.tried[0] == 64 < low.bits == low.tried[-1]
    assert high.tried == (1024,)
    assert high.radius < low.radius < 1e-20
    for name in ENCLOSED:
        for a, b in zip(low.balls[name], high.balls[name], strict=True):
            assert a.is_nan() if b.is_nan() else a.overlaps(b)
    with pytest.raises(CertificationError, match=r"at 96 bits: .* at step"):
        certify(run, bits=64, max_bits=96)
    assert certify(run, radius=1e-100).radius < 1e-100


def test_the_separator_excess_is_exactly_zero_when_every_constraint_is_active() -> None:
    run = train(load("gaussian:n=3,T=2,d=60", seed=0), NormalizedGD(0.1), steps=30, space="gram")
    certified = certify(run)
    assert certified.certificate is not None
    assert certified.certificate.full_support == "holds"
    assert all(ball.is_zero() for ball in certified.separator_excess)


def test_a_run_without_a_certified_target_says_so() -> None:
    run = train(feasible_problem(2), NormalizedGD(0.2), steps=20, space="gram")
    bare = certify(dataclasses.replace(run, target=None))
    assert set(bare.missing) == set(TARGET_COLUMNS)
    assert "infeasible" in bare.missing["direction_gap"]
    for name in TARGET_COLUMNS:
        assert np.isnan(bare.bounds(name)).all()
    assert bare.outside() == []
    assert "direction_gap" not in bare.float_error


def test_what_cannot_be_certified_is_refused() -> None:
    run = train(feasible_problem(2), NormalizedGD(0.2), steps=20, space="gram")
    with pytest.raises(InputError, match="step-size rule"):
        certify(dataclasses.replace(run, rule=TorchOptimizer("Adam")))
    with pytest.raises(InputError, match="bits"):
        certify(run, bits=512, max_bits=256)
    with pytest.raises(InputError, match="radius"):
        certify(run, radius=0.0)
    steps = run.recorded["step"]
    for wrong in (steps[::-1], steps + 1, steps.astype(float)):
        with pytest.raises(InputError, match="recorded steps"):
            certify(dataclasses.replace(run, recorded=dict(run.recorded) | {"step": wrong}))


def test_bounds_are_rounded_outward() -> None:
    with ctx.workprec(200):
        third = arb(1) / 3
        low, high = outward(third)
        assert arb(low) < third < arb(high)
        assert outward(arb(0.1)) == (0.1, 0.1)
        low, high = outward(arb(-2000).exp())
        assert low <= 0 < high
