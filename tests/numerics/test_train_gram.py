"""Gram space: the same runs as weight space, for any start, and exact where weight space is not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mpmath
import numba
import numpy as np
import pytest
import torch

import numerics._gram_torch as tensors
from numerics import GradientDescent, InputError, NormalizedGD, Polyak, Problem, max_margin, train
from numerics._gram_geometry import Geometry
from numerics._gram_vectors import exp, store
from numerics._gram_vectors import load as load_lanes
from numerics.datasets import load
from numerics.training import train_batch
from tests.numerics.oracles import random_problem

torch.set_num_threads(1)  # small tensors: threads only wait for each other

RULES = (
    GradientDescent(0.5),
    NormalizedGD(0.1),
    NormalizedGD(0.3, exponent=2 / 3),
    Polyak(),
    Polyak(cap=0.4),
)


def drawn(seed: int) -> tuple[Problem, np.ndarray]:
    """A random problem and a random start, of either kind of scores, ragged or not, d below and above N."""
    rng = np.random.default_rng(seed)
    n, T, d = int(rng.integers(2, 6)), int(rng.integers(2, 7)), int(rng.integers(8, 40))
    kind = seed % 3
    if kind == 0:
        problem = load(f"gaussian:n={n},T={T},d={d}", seed)
    else:
        problem = random_problem(seed, n=n, T=T, d=d, ragged=kind == 2)
    return problem, rng.uniform(0.1, 3.0) * rng.standard_normal((d, d)) / np.sqrt(d)


@pytest.mark.parametrize("seed", range(50))
def test_gram_and_weight_space_agree_for_a_thousand_steps(seed: int) -> None:
    print("seed", seed)
    problem, W = drawn(seed)
    rules = list(RULES)
    try:
        train(problem, Polyak(), steps=1000, init=W)
    except (
        InputError
    ):  # attention on a wrong token: the gradient vanishes, the excess does not, and the step leaps
        with pytest.raises(InputError, match="overflowed"):
            train(problem, Polyak(), steps=1000, init=W, space="weight")
        rules.remove(Polyak())
    gram = train_batch(problem, rules, steps=1000, inits=W)
    weight = train_batch(problem, rules, steps=1000, inits=W, space="weight")
    for ours, reference in zip(gram, weight, strict=True):
        size = np.linalg.norm(reference.weights)
        assert np.linalg.norm(ours.weights / size - reference.weights / size) < 1e-9, ours.rule
        for name in (
            "weight_norm",
            "path_length",
            "log_excess_loss",
            "log_attention_gap",
            "log_gradient_norm",
        ):
            np.testing.assert_allclose(ours.history[name], reference.history[name], rtol=1e-7, err_msg=name)


def drive(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Send small problems, which the compiled loop would take, to one of the tensor engines."""
    module = sys.modules["numerics.training"]
    monkeypatch.setattr(module, "_SMALL", 0)
    if engine == "factors":
        monkeypatch.setattr(module, "dense_gram_fits", lambda *_a, **_k: False)


@pytest.mark.parametrize("engine", ["matrix", "factors"])
@pytest.mark.parametrize("seed", range(6))
def test_tensor_engines_run_as_the_compiled_loop(
    seed: int, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    print("seed", seed)
    problem, W = drawn(seed)
    rules = [rule for rule in RULES if rule != Polyak()]
    compiled = train_batch(problem, rules, steps=300, inits=W)
    drive(monkeypatch, engine)
    for run, reference in zip(train_batch(problem, rules, steps=300, inits=W), compiled, strict=True):
        assert np.linalg.norm(run.weights - reference.weights) < 1e-12 * np.linalg.norm(reference.weights)
        np.testing.assert_allclose(run.history, reference.history, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("engine", ["loop", "matrix", "factors"])
def test_a_batch_of_problems_rules_and_starts_is_its_runs_one_by_one(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [load("gaussian:n=3,T=4,d=9", seed) for seed in range(6)]
    rules = [
        NormalizedGD(0.3),
        GradientDescent(2.0),
        Polyak(),
        NormalizedGD(0.1),
        Polyak(cap=0.5),
        NormalizedGD(1.0),
    ]
    inits = [None, np.eye(9), None, -0.5 * np.ones((9, 9)), np.eye(9), None]
    alone = [train(p, rule, steps=80, init=W) for p, rule, W in zip(problems, rules, inits, strict=True)]
    if engine != "loop":
        drive(monkeypatch, engine)
    batch = train_batch(problems, rules, steps=80, inits=inits, seeds=list(range(6)))
    for b, (run, single) in enumerate(zip(batch, alone, strict=True)):
        assert (run.problem, run.rule, run.seed) == (problems[b], rules[b], b)
        if engine == "loop":  # bitwise: a run does not notice its neighbours
            np.testing.assert_array_equal(run.weights, single.weights)
            np.testing.assert_array_equal(run.history, single.history)
        else:
            np.testing.assert_allclose(run.weights, single.weights, rtol=1e-10, atol=1e-12)


def test_the_part_outside_the_span_is_carried_exactly() -> None:
    problem = load("gaussian:n=2,T=3,d=12", 0)
    rng = np.random.default_rng(0)
    W = rng.standard_normal((12, 12))
    run = train(problem, NormalizedGD(0.1), steps=500, init=W)
    span = np.stack([problem.combine(row).ravel() for row in np.eye(problem.n_constraints)])
    off = np.linalg.svd(span)[2][np.linalg.matrix_rank(span) :]
    np.testing.assert_allclose(off @ run.weights.ravel(), off @ W.ravel(), atol=1e-13)
    target = max_margin(problem)
    v = float(np.sum(run.weights * target.direction))
    last = run.history.iloc[-1]
    assert last["weight_norm"] == pytest.approx(np.linalg.norm(run.weights), rel=1e-13)
    assert last["residual_norm"] == pytest.approx(
        np.linalg.norm(run.weights - v * target.direction), rel=1e-11
    )


@pytest.mark.parametrize("engine", ["loop", "matrix"])
@pytest.mark.parametrize("seed", range(2))
def test_logs_are_right_at_gaps_of_a_million(seed: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded logarithms against mpmath, evaluated from the recorded coefficients."""
    print("seed", seed)
    problem = load("gaussian:n=4,T=4,d=40,orthogonal=False,noise=0.3", seed)
    if engine == "matrix":
        drive(monkeypatch, engine)
    run = train(problem, NormalizedGD(2e4), steps=300)
    last = run.history.iloc[-1]
    assert last["min_logit_gap"] > 1e6
    with mpmath.workdps(40):
        differences = mpmath.matrix(problem.differences.tolist())
        inner = differences * differences.T
        queries = problem.queries
        mu = []
        for k in range(problem.n_constraints):
            i = problem.constraint_sequence[k]
            total = mpmath.mpf(0)
            for m, b in enumerate(run.coefficients if run.coefficients is not None else ()):
                j = problem.constraint_sequence[m]
                zz = mpmath.fdot(zip(map(mpmath.mpf, queries[i].tolist()), queries[j].tolist(), strict=True))
                total += mpmath.mpf(float(b)) * inner[k, m] * zz
            mu.append(total)
        leaks, excess = [], mpmath.mpf(0)
        for i in range(problem.n):
            own = np.flatnonzero(problem.constraint_sequence == i)
            weights = [mpmath.exp(-mu[k]) for k in own]
            p = 1 / (1 + mpmath.fsum(weights))
            leaks.append(mpmath.log(p * mpmath.fsum(weights)))
            delta = p * mpmath.fsum(
                w * mpmath.mpf(float(problem.score_gaps[k])) for w, k in zip(weights, own, strict=True)
            )
            best = mpmath.mpf(float(problem.scores[i, problem.optimal[i]]))
            excess += mpmath.log1p(mpmath.expm1(delta) / (1 + mpmath.exp(best))) / problem.n
        assert last["log_attention_gap"] == pytest.approx(float(max(leaks)), rel=1e-10)
        assert last["log_excess_loss"] == pytest.approx(float(mpmath.log(excess)), rel=1e-10)


def test_residual_keeps_its_digits_where_one_minus_cosine_has_none() -> None:
    problem = load("gaussian:n=3,T=3,d=60", 1)
    run = train(problem, NormalizedGD(1.0), steps=10**5)
    target = run.target
    assert target is not None
    last = run.history.iloc[-1]
    assert last["direction_gap"] < 1e-9
    with mpmath.workdps(40):  # the same numbers, W = sum_k b_k A_k, in forty digits
        assert run.coefficients is not None
        b, a = run.coefficients.tolist(), target.dual.tolist()
        K = mpmath.matrix(problem.gram().tolist())
        bb, ba, aa = (
            mpmath.fsum(
                K[k, m] * mpmath.mpf(x[k]) * mpmath.mpf(y[m]) for k in range(len(x)) for m in range(len(x))
            )
            for x, y in ((b, b), (b, a), (a, a))
        )
        exact = 1 - ba / mpmath.sqrt(bb * aa)
    assert last["direction_gap"] == pytest.approx(float(exact), rel=1e-5)


def test_float32_goes_as_far_as_its_products_allow() -> None:
    """float32 rounds K c alike in every step: the residual drifts by 1e-7 of the path; logs keep 1e-6."""
    problem = load("gaussian:n=5,T=4,d=400", 0)
    rules = [NormalizedGD(0.5), Polyak()]
    full = train_batch(problem, rules, steps=3000)
    half = train_batch(problem, rules, steps=3000, dtype="float32")
    for one, other in zip(half, full, strict=True):
        assert one.manifest["dtype"] == "float32"
        ours, theirs = one.history.iloc[-1], other.history.iloc[-1]
        drift = abs(ours["residual_norm"] - theirs["residual_norm"])
        assert 1e-10 * theirs["path_length"] < drift < 1e-7 * theirs["path_length"]
        assert ours["direction_gap"] < 1e-8
        for name in (
            "log_attention_gap",
            "log_excess_loss",
            "log_gradient_norm",
            "weight_norm",
            "min_logit_gap",
        ):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-6)


def test_step_cost_does_not_depend_on_the_dimension_in_memory() -> None:
    """The factors are rotated into their span: nothing of size d is left in the loop."""
    problem = load("gaussian:n=3,T=3,d=3000", 0)
    geometry = Geometry.of(problem, None)
    assert geometry.differences.shape == (6, 6)
    assert geometry.queries.shape == (3, 3)
    np.testing.assert_allclose(
        geometry.gram(), problem.gram()[np.ix_(geometry.order, geometry.order)], rtol=1e-12, atol=1e-14
    )


def test_memory_is_refused_with_the_number_or_goes_matrix_free(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load("gaussian:n=40,T=21,d=20", 0)
    N = problem.n_constraints
    with pytest.raises(InputError, match=r"needs about .* GB even .*N = 800") as caught:
        train(problem, NormalizedGD(0.1), steps=1, memory_limit=100_000)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"weight space needs about .* GB"):
        train(problem, NormalizedGD(0.1), steps=1, space="weight", memory_limit=100_000)
    seen = []
    made = tensors.TorchGram.__init__

    def watch(self: Any, *arguments: Any, **options: Any) -> None:
        seen.append(options["dense"])
        made(self, *arguments, **options)

    monkeypatch.setattr(tensors.TorchGram, "__init__", watch)
    free = train(problem, NormalizedGD(0.1), steps=50, memory_limit=8 * N * N)
    assert seen == [False]
    usual = train(problem, NormalizedGD(0.1), steps=50)
    assert seen == [False]
    np.testing.assert_allclose(free.weights, usual.weights, rtol=1e-10, atol=1e-13)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device at hand")
@pytest.mark.parametrize("seed", range(6))
def test_cuda_runs_as_the_cpu(seed: int) -> None:
    print("seed", seed)
    problem, W = drawn(seed)
    rules = [rule for rule in RULES if rule != Polyak()]
    host = train_batch(problem, rules, steps=1000, inits=W, device="cpu")
    for space in ("gram", "weight"):
        device = train_batch(problem, rules, steps=1000, inits=W, device="cuda", space=space)
        for run, reference in zip(device, host, strict=True):
            assert run.manifest["device"] != "cpu"
            assert np.linalg.norm(run.weights - reference.weights) < 1e-9 * np.linalg.norm(reference.weights)
    again = train_batch(problem, rules, steps=1000, inits=W, device="cuda")
    first = train_batch(problem, rules, steps=1000, inits=W, device="cuda")
    for one, other in zip(again, first, strict=True):
        np.testing.assert_array_equal(one.history, other.history)


@pytest.mark.parametrize("seed", range(3))
def test_a_million_steps_show_the_sharp_rate(seed: int) -> None:
    """1 - cos falls as 1/t^2 with a constant (our Theorem C), and log(1 - p) falls linearly."""
    print("seed", seed)
    problem = load("gaussian:n=5,T=4,d=400", seed)
    run = train(problem, NormalizedGD(0.1), steps=10**6)
    last = run.history[run.history["step"] >= 10**5]
    constant = last["step"] ** 2 * last["direction_gap"]
    print("t^2 (1 - cos) from", constant.iloc[0], "to", constant.iloc[-1])
    assert constant.max() / constant.min() - 1 < 1e-4
    slope = np.diff(last["log_attention_gap"]) / np.diff(last["step"])
    assert np.ptp(slope) < 1e-9 * abs(slope.mean())
    assert slope.mean() == pytest.approx(-run.rule.step / run.target.norm, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_lanes_run_as_the_runs_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seventy runs of one problem, every rule, starts from the origin to far on the wrong side."""
    print("seed", seed)
    problem, W = drawn(seed)
    rules = ([rule for rule in RULES if rule != Polyak()] * 18)[:70]
    inits = [scale * W for scale in np.linspace(-8.0, 20.0, 70)]
    lanes = train_batch(problem, rules, steps=300, inits=inits)
    monkeypatch.setattr(sys.modules["numerics.training"], "_BATCH", 1000)
    single = train_batch(problem, rules, steps=300, inits=inits)
    for run, reference in zip(lanes, single, strict=True):
        assert run.rule == reference.rule
        assert np.linalg.norm(run.weights - reference.weights) < 1e-11 * np.linalg.norm(reference.weights)
        np.testing.assert_allclose(run.history, reference.history, rtol=1e-7, atol=1e-10)


def test_a_lane_does_not_notice_its_neighbours() -> None:
    """Bitwise the same among other starts and rules, other problems' lanes, and in batches of other sizes."""
    problems = [load("gaussian:n=4,T=4,d=9", seed) for seed in range(21)]
    for mixed in (problems, problems[:1] * 21):
        rules = [(NormalizedGD(0.3), GradientDescent(2.0), Polyak(cap=0.5))[b % 3] for b in range(21)]
        inits = [0.6 * (b % 5) * np.eye(9)[:, ::-1] for b in range(21)]
        whole = train_batch(mixed, rules, steps=200, inits=inits)
        for part in (slice(0, 9), slice(3, 13), slice(12, 21)):
            some = train_batch(mixed[part], rules[part], steps=200, inits=inits[part])
            for one, other in zip(some, whole[part], strict=True):
                np.testing.assert_array_equal(one.history, other.history)
                np.testing.assert_array_equal(one.weights, other.weights)


def test_lanes_of_different_problems_run_as_the_scalar_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unequal scores, attention on wrong tokens and not, N no multiple of anything."""
    problems = [random_problem(seed, n=3, T=4, d=10, ragged=False) for seed in range(19)]
    rules = [(NormalizedGD(0.2), Polyak(cap=0.4), GradientDescent(1.0))[b % 3] for b in range(19)]
    W = np.random.default_rng(0).standard_normal((10, 10))
    inits = [scale * W for scale in np.linspace(-6.0, 12.0, 19)]
    lanes = train_batch(problems, rules, steps=300, inits=inits)
    monkeypatch.setattr(sys.modules["numerics.training"], "_BATCH", 1000)
    for run, reference in zip(lanes, train_batch(problems, rules, steps=300, inits=inits), strict=True):
        assert np.linalg.norm(run.weights - reference.weights) < 1e-11 * np.linalg.norm(reference.weights)
        np.testing.assert_allclose(run.history, reference.history, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("portion", [1, 2, 3, 8, 50])
def test_recorded_norms_do_not_depend_on_how_records_are_portioned(portion: int) -> None:
    """Portions follow the clock; a history that followed them would not be reproducible."""
    problem = load("gaussian:n=20,T=5,d=60", 0)
    geometry = Geometry.of(problem, max_margin(problem))
    rho = np.random.default_rng(1).standard_normal((50, len(geometry.gap)))
    start = np.random.default_rng(2).standard_normal((1, *geometry.direction.shape))
    whole = geometry.residual_norms(rho, start, np.zeros(1))
    parts = [
        geometry.residual_norms(rho[first : first + portion], start, np.zeros(1))
        for first in range(0, 50, portion)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    literal = [
        np.linalg.norm(
            start[0] + (geometry.queries[geometry.sequence] * row[:, None]).T @ geometry.differences
        )
        for row in rho
    ]
    np.testing.assert_allclose(whole, literal, rtol=1e-13)


def test_exponentials_of_lanes_are_right_to_two_units_in_the_last_place() -> None:
    x = np.linspace(-708.0, 0.0, 400_000).reshape(-1, 8)
    x[:1000] = np.linspace(-1.0, 0.0, 8000).reshape(-1, 8)
    out = np.empty_like(x)

    @numba.njit
    def fill(x: Any, out: Any) -> None:
        for row in range(x.shape[0]):
            store(out, row, exp(load_lanes(x, row)))

    fill(x, out)
    with mpmath.workdps(30):
        chosen = np.random.default_rng(0).choice(x.size, 4000, replace=False)
        for k in chosen.tolist():
            exact = mpmath.exp(mpmath.mpf(float(x.flat[k])))
            assert abs(mpmath.mpf(float(out.flat[k])) - exact) < 2 * np.spacing(float(exact))
    edges = np.array([[-745.0, -1e300, -710.0, 0.0, -0.0, -np.inf, 1.0, 700.0]])
    at_edges = np.empty_like(edges)
    fill(edges, at_edges)
    np.testing.assert_allclose(at_edges, [[0, 0, 0, 1, 1, 0, np.e, np.exp(700.0)]], rtol=4e-16)


def test_lanes_resume_bitwise(tmp_path: Path) -> None:
    problem = load("gaussian:n=4,T=4,d=30", 0)
    rules = [NormalizedGD(0.01 * (1 + b)) for b in range(40)]
    straight = train_batch(problem, rules, steps=700)
    with pytest.MonkeyPatch.context() as patch:
        write = sys.modules["numerics._checkpoint"].write

        def die(*arguments: Any) -> None:
            write(*arguments)
            raise KeyboardInterrupt

        patch.setattr(sys.modules["numerics._checkpoint"], "write", die)
        with pytest.raises(KeyboardInterrupt):
            train_batch(problem, rules, steps=700, checkpoint=tmp_path, checkpoint_every=250)
    resumed = train_batch(problem, rules, steps=700, checkpoint=tmp_path, checkpoint_every=250)
    for one, other in zip(resumed, straight, strict=True):
        np.testing.assert_array_equal(one.history, other.history)
        np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [30.0, 900.0])
def test_attention_on_wrong_tokens_is_left_as_in_weight_space(seed: int, depth: float) -> None:
    """Starts at which p_i underflows: each sequence is then taken at its own scale."""
    print("seed", seed)
    problem, W = drawn(seed)
    W = W if problem.logit_gaps(W).min() < 0 else -W
    W *= -depth / problem.logit_gaps(W).min()
    rules = [NormalizedGD(0.5), GradientDescent(0.5)]
    gram = train_batch(problem, rules, steps=400, inits=W)
    weight = train_batch(problem, rules, steps=400, inits=W, space="weight")
    assert gram[0].history["min_logit_gap"].iloc[0] == pytest.approx(-depth)
    for ours, reference in zip(gram, weight, strict=True):
        assert np.linalg.norm(ours.weights - reference.weights) < 1e-9 * np.linalg.norm(reference.weights)
        for name in ("log_excess_loss", "log_attention_gap", "log_gradient_norm", "separator_path"):
            np.testing.assert_allclose(
                ours.history[name], reference.history[name], rtol=1e-7, atol=1e-12, err_msg=name
            )


@pytest.mark.parametrize("runs", [1, 9])  # the scalar loop, lanes
def test_scores_at_which_sigma_underflows(runs: int) -> None:
    """Scores of hundreds: sigma(-m) is below the smallest float, its logarithm is not."""
    base = random_problem(1, n=3, T=4, d=10)
    problem = Problem(base.tokens, base.queries, base.labels, 800.0 * base.decoder, base.mask)
    assert np.abs(problem.scores[problem.mask]).max() > 745
    ours = train_batch(problem, NormalizedGD(0.1), steps=200, seeds=list(range(runs)))[-1]
    reference = train(problem, NormalizedGD(0.1), steps=200, space="weight")
    assert np.linalg.norm(ours.weights - reference.weights) < 1e-9 * np.linalg.norm(reference.weights)
    np.testing.assert_allclose(
        ours.history["log_gradient_norm"], reference.history["log_gradient_norm"], rtol=1e-9
    )


@pytest.mark.parametrize("runs", [1, 9])  # the scalar loop, lanes
@pytest.mark.parametrize("fall", [1e3, 1e6])
def test_score_gaps_at_which_the_loss_s_exponential_overflows(runs: int, fall: float) -> None:
    """Optimal tokens of score 1 among tokens of score -1000: e^(g_o - m) is above the largest float."""
    tokens = np.array([[[1.0, 0, 0], [-fall, 1, 0], [-2 * fall, 0, 1]]] * 2)
    tokens[1] += 0.01 * np.eye(3)
    problem = Problem(tokens, np.eye(3)[:2], np.ones(2), np.array([1.0, 0, 0]))
    ours = train_batch(problem, Polyak(), steps=20, record="all", seeds=list(range(runs)))[-1]
    reference = train(problem, Polyak(), steps=20, record="all", space="weight")
    assert reference.history["loss"].iloc[0] > 0.9 * fall
    for name in ("loss", "log_excess_loss", "path_length", "weight_norm"):
        np.testing.assert_allclose(ours.history[name], reference.history[name], rtol=1e-9, err_msg=name)
