"""Training in weight space: the paper's literal algorithm against independent textbook loops."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from numerics import GradientDescent, InputError, NormalizedGD, Polyak, max_margin, train
from numerics._threads import SMALL, threads_for
from numerics.attention import gradient_direction, landscape
from numerics.datasets import load
from numerics.run import Run
from numerics.steps import TorchOptimizer
from numerics.training import train_batch
from tests.numerics.oracles import autograd_gradient, autograd_loss, autograd_ngd, random_problem


@pytest.mark.parametrize("seed", range(3))
def test_ngd_is_the_textbook_loop(seed: int) -> None:
    print("seed", seed)
    problem = load("gaussian:n=5,T=4,d=40", seed)
    step, steps = 0.1, 150
    expected = autograd_ngd(problem, np.zeros((problem.d, problem.d)), step, steps)
    run = train(problem, NormalizedGD(step), steps=steps, space="weight")
    assert problem.logit_gaps(run.weights).max() < 20
    assert np.linalg.norm(run.weights - expected) < 1e-10 * np.linalg.norm(expected)
    direction, _ = gradient_direction(problem, run.weights)
    textbook = -autograd_gradient(problem, run.weights)
    assert np.linalg.norm(direction - textbook / np.linalg.norm(textbook)) < 1e-10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", ["gd", "polyak"])
def test_gd_and_polyak_are_their_plain_formulas(seed: int, rule: str) -> None:
    print("seed", seed)
    problem = random_problem(seed, n=3, T=4, d=14)
    W = 0.1 * np.random.default_rng(seed).standard_normal((problem.d, problem.d))
    best = problem.scores[np.arange(problem.n), problem.optimal]
    floor = float(np.mean(np.log1p(np.exp(-best))))
    run = train(
        problem,
        GradientDescent(0.7) if rule == "gd" else Polyak(),
        steps=25,
        init=W,
        space="weight",
        record="all",
    )
    for t in range(25):
        gradient = autograd_gradient(problem, W)
        loss = float(autograd_loss(problem, torch.tensor(W)))
        row = run.history.iloc[t]
        assert row["loss"] == pytest.approx(loss, rel=1e-10)
        size = float(np.linalg.norm(gradient))
        assert row["log_gradient_norm"] == pytest.approx(np.log(size), rel=1e-9)
        W = W - (0.7 if rule == "gd" else (loss - floor) / (2 * size**2)) * gradient
    assert np.linalg.norm(run.weights - W) < 1e-9 * np.linalg.norm(W)


@pytest.mark.parametrize("rule", [NormalizedGD(0.2), NormalizedGD(0.2, exponent=0.5), Polyak(cap=1.5)])
def test_history_is_what_its_columns_say(rule: Any) -> None:
    """Every column recomputed from its definition, the iterates replayed step by step."""
    problem = random_problem(2, n=3, T=4, d=10)
    W = 0.3 * np.random.default_rng(7).standard_normal((problem.d, problem.d))
    target = max_margin(problem)
    run = train(problem, rule, steps=30, init=W, record="all", target=target, space="weight")
    assert run.history["step"].tolist() == list(range(31))
    path = separator = bend = 0.0
    for t in range(31):
        row = run.history.iloc[t]
        view = landscape(problem, W)
        direction, log_norm = gradient_direction(problem, W)
        length = rule.law.step_length(
            step=t, log_gradient_norm=log_norm, log_excess_loss=view.log_excess_loss
        )
        u, v = np.linalg.norm(W), np.sum(W * target.direction)
        expected = {
            "path_length": path,
            "separator_path": separator,
            "curvature_sum": bend,
            "step_length": length,
            "weight_norm": u,
            "target_component": v,
            "residual_norm": np.linalg.norm(W - v * target.direction),
            "direction_gap": 1 - v / u,
            "log_attention_gap": view.log_leak.max(),
            "log_total_attention_gap": np.log(np.exp(view.log_leak).sum()),
            "log_excess_loss": view.log_excess_loss,
            "loss": view.loss,
            "min_logit_gap": view.logit_gaps.min(),
            "log_gradient_norm": log_norm,
        }
        assert set(run.history.columns) == {"step", *expected}
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
        total = np.sum(view.signs * np.exp(view.log_coefficients))
        W = W + length * direction
        path += length
        separator += length * total / np.exp(log_norm)
        bend += length**2 / u


def test_curvature_leaves_out_the_origin() -> None:
    problem = load("gaussian:n=3,T=3,d=8", 0)
    run = train(problem, NormalizedGD(0.5), steps=2, record="all", space="weight")
    u = run.history["weight_norm"]
    assert run.history["curvature_sum"].tolist() == pytest.approx([0, 0, 0.25 / u[1]])
    assert np.isnan(run.history["direction_gap"][0])


def test_the_log_grid_is_dense_then_forty_a_decade() -> None:
    problem = load("gaussian:n=3,T=3,d=8", 0)
    run = train(problem, NormalizedGD(0.5), steps=1234, space="weight")
    steps = run.history["step"].to_numpy()
    assert steps[:21].tolist() == list(range(21))
    assert steps[-1] == 1234
    assert 38 <= np.sum((steps > 100) & (steps <= 1000)) <= 41
    listed = train(problem, NormalizedGD(0.5), steps=9, record=[4, 2], space="weight")
    assert listed.history["step"].tolist() == [0, 2, 4, 9]


def test_an_infeasible_problem_trains_without_a_target() -> None:
    problem = random_problem(0, n=8, T=6, d=2, ragged=False)
    run = train(problem, NormalizedGD(0.1), steps=20, space="weight")
    assert run.target is None
    assert run.history[["target_component", "residual_norm", "direction_gap"]].isna().all().all()
    assert run.history["loss"].notna().all()


def test_a_batch_is_its_runs_one_by_one() -> None:
    problems = [load("gaussian:n=3,T=4,d=9", seed) for seed in range(3)]
    rules = [NormalizedGD(0.3), GradientDescent(2.0), Polyak()]
    inits = [None, np.eye(9), -0.5 * np.ones((9, 9))]
    batch = train_batch(problems, rules, steps=60, inits=inits, seeds=[0, 1, 2], space="weight")
    for b, run in enumerate(batch):
        alone = train(problems[b], rules[b], steps=60, init=inits[b], seed=b, space="weight")
        assert (run.rule, run.seed, run.problem) == (alone.rule, alone.seed, alone.problem)
        np.testing.assert_allclose(run.weights, alone.weights, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(run.history, alone.history, rtol=1e-9, atol=1e-12)


def test_torch_sgd_is_gradient_descent() -> None:
    problem = load("gaussian:n=3,T=4,d=9", 0)
    ours = train(problem, GradientDescent(0.8), steps=40, space="weight")
    theirs = train(problem, steps=40, space="weight", optimizer=lambda W: torch.optim.SGD(W, lr=0.8))
    np.testing.assert_allclose(theirs.weights, ours.weights, rtol=1e-12, atol=1e-14)
    assert isinstance(theirs.rule, TorchOptimizer)
    assert theirs.rule.optimizer == "SGD"
    assert dict(theirs.rule.options)["lr"] == 0.8
    moved = theirs.history["step_length"].to_numpy()[:-1]
    np.testing.assert_allclose(moved, ours.history["step_length"].to_numpy()[:-1], rtol=1e-10)


def test_torch_adam_runs_and_is_saved(tmp_path: Any) -> None:
    problem = load("gaussian:n=3,T=4,d=9", 0)
    run = train(problem, steps=300, space="weight", optimizer=lambda W: torch.optim.Adam(W, lr=0.05))
    assert run.history["log_excess_loss"].iloc[-1] < run.history["log_excess_loss"].iloc[0] - 2
    assert Run.load(run.save(tmp_path / "run")).rule == run.rule


@pytest.mark.parametrize(
    "arguments",
    [
        {"steps": -1},
        {"space": "phase"},
        {"device": "abacus"},
        {"dtype": "float16"},
        {"init": np.zeros((2, 2))},
        {"init": np.full((8, 8), np.nan)},
        {"record": "sometimes"},
        {"record": [3, 99]},
        {"rule": None},
        {"rule": []},
        {"rule": [NormalizedGD(1.0)] * 2, "seed": [1, 2, 3]},
        {"optimizer": lambda W: torch.optim.SGD(W, lr=1.0)},
    ],
)
def test_bad_arguments_are_refused_in_one_line(arguments: dict[str, Any]) -> None:
    problem = load("gaussian:n=3,T=3,d=8", 0)
    full = {"rule": NormalizedGD(0.1), "steps": 5, "space": "weight"} | arguments
    rule, init, seed = full.pop("rule"), full.pop("init", None), full.pop("seed", None)
    with pytest.raises(InputError) as caught:
        train_batch(problem, rule, inits=init, seeds=seed, **full)
    assert "\n" not in str(caught.value)


def test_another_problems_target_is_refused() -> None:
    one, other = (load("gaussian:n=3,T=3,d=8", seed) for seed in (0, 1))
    with pytest.raises(InputError, match="another problem"):
        train(one, NormalizedGD(0.1), steps=1, target=max_margin(other))


def test_an_overflow_is_said() -> None:
    problem = load("gaussian:n=3,T=3,d=8", 0)
    with pytest.raises(InputError, match="overflowed"):
        train(problem, GradientDescent(1e308), steps=50, init=1e3 * np.eye(8), space="weight")


def test_small_steps_take_one_thread_and_give_the_others_back() -> None:
    problem = load("gaussian:n=3,T=4,d=9", 0)
    before = torch.get_num_threads()
    try:
        runs, inside = [], []

        class Watched(torch.optim.SGD):
            def step(self, closure: Any = None) -> Any:
                inside.append(torch.get_num_threads())
                return super().step(closure)

        for threads in (1, 2):
            torch.set_num_threads(threads)
            runs.append(train(problem, Polyak(), steps=50, space="weight"))
            train(problem, steps=3, space="weight", optimizer=lambda W: Watched(W, lr=0.1))
            assert torch.get_num_threads() == threads
        assert set(inside) == {1}
        with threads_for(SMALL):
            assert torch.get_num_threads() == 2
        with pytest.raises(KeyError), threads_for(SMALL - 1):
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(runs[0].history, runs[1].history)


def test_no_module_hides_the_function_of_its_name() -> None:
    code = "import numerics.training, numerics.run; from numerics import train; assert callable(train)"
    subprocess.run([sys.executable, "-c", code], check=True)
