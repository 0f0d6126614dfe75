"""Interrupt and resume: at most one checkpoint interval is lost, and the result is bitwise the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import numerics._checkpoint as checkpoints
from numerics import GradientDescent, InputError, NormalizedGD, Polyak, max_margin, train, train_joint
from numerics._weight_space import OptimizerFactory
from numerics.datasets import load
from numerics.optim import NormalizedSGD, PolyakSGD
from numerics.run import Run
from numerics.training import train_batch
from tests.numerics.oracles import random_problem

torch.set_num_threads(1)

# The first line: a background job inherits "ignore SIGINT" from its shell; a terminal's job does not.
PROGRAM = """
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)
import sys
import torch
torch.set_num_threads(1)
from numerics import NormalizedGD, Polyak
from numerics.datasets import load
from numerics.training import train_batch
train_batch(load("gaussian:n=4,T=4,d=30", 0), [NormalizedGD(0.1), Polyak()], steps=int(sys.argv[2]),
            space=sys.argv[3], checkpoint=sys.argv[1], checkpoint_every=int(sys.argv[4]))
"""


@pytest.mark.parametrize(
    ("space", "how"), [("gram", signal.SIGKILL), ("gram", signal.SIGINT), ("weight", signal.SIGKILL)]
)
def test_a_killed_run_resumes_bitwise(tmp_path: Path, space: str, how: signal.Signals) -> None:
    steps, every = (2_000_000, 20_000) if space == "gram" else (1_500, 50)
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path), str(steps), space, str(every)]
    child = subprocess.Popen(arguments, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2])
    file = tmp_path / "checkpoint.npz"
    deadline = time.monotonic() + 120
    while not file.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(0.05)
    child.send_signal(how)
    assert child.wait(timeout=60) != 0, "the run ended before it was killed"
    with np.load(file) as saved:
        reached = int(saved["state.t"])
    assert 0 < reached < steps
    assert reached % every == 0
    problem, rules = load("gaussian:n=4,T=4,d=30", 0), [NormalizedGD(0.1), Polyak()]
    resumed = train_batch(
        problem, rules, steps=steps, space=space, checkpoint=tmp_path, checkpoint_every=every
    )
    straight = train_batch(problem, rules, steps=steps, space=space)
    for one, other in zip(resumed, straight, strict=True):
        np.testing.assert_array_equal(one.history, other.history)
        np.testing.assert_array_equal(one.weights, other.weights)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint.npz"]


@pytest.mark.parametrize("space", ["gram", "weight"])
def test_same_call_same_bits(space: str) -> None:
    problem = load("gaussian:n=4,T=4,d=30", 1)
    runs = [train(problem, Polyak(), steps=200, init=np.eye(30), space=space) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].history, runs[1].history)
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)


@pytest.mark.parametrize("engine", ["loop", "lanes", "matrix", "factors", "weight"])
@pytest.mark.parametrize("seed", range(2))
def test_bits_do_not_follow_the_slices(
    engine: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs go in slices timed by the clock: slices of one step give the bits of one slice for all."""
    print("seed", seed)
    problem = random_problem(seed, n=5, T=6, d=17)
    rules = [NormalizedGD(0.2), GradientDescent(1.0), Polyak(cap=0.5)] * (3 if engine == "lanes" else 1)
    if engine == "loop":
        rules = rules[:1]  # a recorded step alone in its slice
    inits = [0.1 * b * np.eye(17) for b in range(len(rules))]
    module = sys.modules["numerics.training"]
    if engine in ("matrix", "factors"):
        monkeypatch.setattr(module, "_SMALL", 0)
    if engine == "factors":
        monkeypatch.setattr(module, "dense_gram_fits", lambda *_a, **_k: False)
    call: dict[str, Any] = {"steps": 120, "inits": inits, "space": "weight" if engine == "weight" else "gram"}
    sliced = train_batch(problem, rules, checkpoint=tmp_path, checkpoint_every=1, **call)
    for one, other in zip(sliced, train_batch(problem, rules, **call), strict=True):
        np.testing.assert_array_equal(one.history, other.history)
        np.testing.assert_array_equal(one.weights, other.weights)


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    problem = load("gaussian:n=4,T=4,d=30", 1)
    first = train(problem, NormalizedGD(0.1), steps=100, checkpoint=tmp_path)
    again = train(problem, NormalizedGD(0.1), steps=100, checkpoint=tmp_path)
    np.testing.assert_array_equal(first.history, again.history)
    np.testing.assert_array_equal(first.weights, again.weights)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rule": GradientDescent(0.1)}, "other step-size rule (ngd step=0.1 there, gd step=0.1 here);"),
        ({"rule": NormalizedGD(0.1, exponent=0.5)}, "(ngd step=0.1 there, ngd exponent=0.5 step=0.1 here);"),
        ({"problem": load("gaussian:n=4,T=4,d=30", 2)}, "other data and max-margin solutions;"),
        ({"init": np.eye(30)}, "other initial values;"),
        ({"steps": 200}, "other number of steps or recorded steps;"),
        ({"space": "weight"}, "other space (gram there, weight here) and engine (compiled"),
    ],
)
def test_another_calls_checkpoint_is_refused(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    call = {"problem": load("gaussian:n=4,T=4,d=30", 1), "rule": NormalizedGD(0.1), "steps": 100}
    train(**call, checkpoint=tmp_path)
    with pytest.raises(InputError) as caught:
        train(**(call | change), checkpoint=tmp_path)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'checkpoint.npz'}: belongs to another training call: ")
    assert named in said
    assert said.endswith(
        "repeat that call with its own arguments to resume it, or name another folder to begin anew"
    )
    assert "\n" not in said
    assert len(said) < 400 + len(str(tmp_path))


def test_a_joint_calls_checkpoint_and_other_codes_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, rule = load("gaussian:n=4,T=4,d=30", 1), NormalizedGD(0.1)
    train(problem, rule, steps=10, checkpoint=tmp_path)
    with pytest.raises(InputError, match="call: one of the two trains the decoder too; repeat"):
        train_joint(problem, rule, rule, steps=10, checkpoint=tmp_path)
    monkeypatch.setattr("numerics.training.source_hash", lambda _: "of another day")
    with pytest.raises(InputError, match="call: other version of the code; repeat"):
        train(problem, rule, steps=10, checkpoint=tmp_path)


def stopped_halfway(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Arguments of a call of 100 steps that left a checkpoint at step 50."""
    write = checkpoints.write

    def once(*arguments: Any) -> None:
        write(*arguments)
        raise KeyboardInterrupt

    call = {"steps": 100, "checkpoint": folder, "checkpoint_every": 50}
    problem = load("gaussian:n=6,T=8,d=10", 0)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write", once)
        with pytest.raises(KeyboardInterrupt):
            train(problem, NormalizedGD(0.1), **call)
    return call


def test_another_engine_s_checkpoint_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory has become short, the factors take the Gram matrix's place: other bits, another state."""
    call = stopped_halfway(tmp_path, monkeypatch)
    problem = load("gaussian:n=6,T=8,d=10", 0)
    with pytest.raises(InputError, match=r"belongs to another training call: other engine \("):
        train(problem, NormalizedGD(0.1), **call, memory_limit=45_000)
    assert len(train(problem, NormalizedGD(0.1), **call).history) > 20


def test_two_calls_do_not_share_a_folder(tmp_path: Path) -> None:
    problem = load("gaussian:n=4,T=3,d=10", 0)
    with checkpoints.claimed(tmp_path), pytest.raises(InputError, match="another training call is writing"):
        train(problem, NormalizedGD(0.1), steps=10, checkpoint=tmp_path)
    train(problem, NormalizedGD(0.1), steps=10, checkpoint=tmp_path)


def test_what_is_left_of_a_write_that_was_killed_is_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = stopped_halfway(tmp_path, monkeypatch)
    (tmp_path / ".checkpoint.npz.abc.tmp").write_bytes((tmp_path / "checkpoint.npz").read_bytes()[:100])
    train(load("gaussian:n=6,T=8,d=10", 0), NormalizedGD(0.1), **call)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]


@pytest.mark.parametrize("every", [0, -5])
def test_checkpoint_every_is_a_number_of_steps(tmp_path: Path, every: int) -> None:
    problem = load("gaussian:n=4,T=3,d=10", 0)
    call: dict[str, Any] = {"steps": 10, "checkpoint": tmp_path, "checkpoint_every": every}
    for train_both, rules in ((train, [NormalizedGD(0.1)]), (train_joint, [NormalizedGD(0.1)] * 2)):
        with pytest.raises(InputError, match="checkpoint_every must be a positive number of steps"):
            train_both(problem, *rules, **call)


def test_a_folder_that_cannot_hold_a_checkpoint_is_refused_before_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    problem = load("gaussian:n=4,T=3,d=10", 0)
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="cannot hold a checkpoint"):
            train(problem, NormalizedGD(0.1), steps=10, checkpoint=folder)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("harm", ["truncate", "flip", "foreign"])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, harm: str) -> None:
    problem = load("gaussian:n=4,T=4,d=30", 1)
    train(problem, NormalizedGD(0.1), steps=100, target=max_margin(problem), checkpoint=tmp_path)
    file = tmp_path / "checkpoint.npz"
    data = bytearray(file.read_bytes())
    if harm == "truncate":
        file.write_bytes(data[: len(data) // 2])
    elif harm == "flip":
        with np.load(file) as saved:
            data[data.index(saved["state.nu"].tobytes())] ^= 4
        file.write_bytes(data)
    else:
        problem.save(file)
    with pytest.raises(InputError, match=r"checkpoint\.npz") as caught:
        train(problem, NormalizedGD(0.1), steps=100, checkpoint=tmp_path)
    assert "\n" not in str(caught.value)


OPTIMIZERS: dict[str, OptimizerFactory] = {
    "SGD": lambda W: torch.optim.SGD(W, lr=0.3, momentum=0.9),
    "Adam": lambda W: torch.optim.Adam(W, lr=0.02, amsgrad=True),
    "Rprop": lambda W: torch.optim.Rprop(W, lr=0.01),
    "ASGD": lambda W: torch.optim.ASGD(W, lr=0.3),
    "LBFGS": lambda W: torch.optim.LBFGS(W, lr=0.1, max_iter=3),
    "NormalizedSGD": lambda W: NormalizedSGD(W, lr=0.1, momentum=0.9),
    "PolyakSGD": lambda W: PolyakSGD(W, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_resumes_bitwise(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted after the first checkpoint, with the optimizer's own memory under way."""
    call: dict[str, Any] = {
        "problem": load("gaussian:n=4,T=4,d=30", 0),
        "steps": 90,
        "space": "weight",
        "optimizer": OPTIMIZERS[name],
    }
    straight = train(**call)
    module = sys.modules["numerics._checkpoint"]
    write = module.write

    def die(*arguments: Any) -> None:
        write(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write", die)
    with pytest.raises(KeyboardInterrupt):
        train(**call, checkpoint=tmp_path, checkpoint_every=37)
    monkeypatch.undo()
    with np.load(tmp_path / "checkpoint.npz", allow_pickle=False) as saved:
        assert int(saved["state.t"]) == 37
        assert all(saved[name].dtype.kind in "fiuU" for name in saved.files)
    resumed = train(**call, checkpoint=tmp_path, checkpoint_every=37)
    np.testing.assert_array_equal(resumed.history, straight.history)
    np.testing.assert_array_equal(resumed.weights, straight.weights)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_killed_optimizer_resumes_bitwise(name: str, tmp_path: Path) -> None:
    """kill -9 at any moment, a batch of runs."""
    program = f"""
import torch
torch.set_num_threads(1)
from tests.numerics.test_train_resume import OPTIMIZERS, batch
batch(OPTIMIZERS[{name!r}], {str(tmp_path)!r})
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2]
    )
    file = tmp_path / "checkpoint.npz"
    deadline = time.monotonic() + 120
    while not file.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    assert child.wait(timeout=60) != 0, "the run ended before it was killed"
    with np.load(file) as saved:
        assert 0 < int(saved["state.t"]) < BATCH_STEPS
    resumed, straight = batch(OPTIMIZERS[name], tmp_path), batch(OPTIMIZERS[name], None)
    for one, other in zip(resumed, straight, strict=True):
        np.testing.assert_array_equal(one.history, other.history)
        np.testing.assert_array_equal(one.weights, other.weights)


BATCH_STEPS = 1500


def batch(optimizer: OptimizerFactory, folder: str | Path | None) -> list[Run]:
    """Two runs from two starts, checkpoints every 20 steps."""
    return train_batch(
        load("gaussian:n=4,T=4,d=30", 0),
        steps=BATCH_STEPS,
        inits=[np.eye(30), -np.eye(30)],
        space="weight",
        optimizer=optimizer,
        checkpoint=folder,
        checkpoint_every=20,
    )


def test_another_optimizers_checkpoint_is_refused(tmp_path: Path) -> None:
    call: dict[str, Any] = {"problem": load("gaussian:n=4,T=4,d=30", 1), "steps": 10, "space": "weight"}
    train(**call, optimizer=OPTIMIZERS["SGD"], checkpoint=tmp_path)
    for other in (
        OPTIMIZERS["Adam"],
        lambda W: torch.optim.SGD(W, lr=0.4, momentum=0.9),
        lambda W: torch.optim.SGD([{"params": W, "lr": 0.5}], lr=0.3, momentum=0.9),
    ):
        with pytest.raises(InputError, match=r"other step-size rule \("):
            train(**call, optimizer=other, checkpoint=tmp_path)


class Opaque(torch.optim.SGD):
    """Keeps a thing that no plain array holds."""

    def step(self, closure: Any = None) -> Any:
        self.state[self.param_groups[0]["params"][0]]["thing"] = object()
        return super().step(closure)


def test_what_no_checkpoint_holds_is_said(tmp_path: Path) -> None:
    problem = load("gaussian:n=4,T=4,d=30", 1)
    with pytest.raises(InputError, match="Opaque: its state holds a object"):
        train(problem, steps=5, space="weight", optimizer=lambda W: Opaque(W, lr=0.1), checkpoint=tmp_path)


@pytest.mark.parametrize("name", ["LBFGS", "PolyakSGD"])
def test_an_optimizer_that_evaluates_the_loss_takes_one_run(name: str) -> None:
    problem = load("gaussian:n=4,T=4,d=30", 1)
    with pytest.raises(InputError, match="one run a call") as caught:
        train_batch(problem, steps=5, seeds=[1, 2], space="weight", optimizer=OPTIMIZERS[name])
    assert "\n" not in str(caught.value)


def test_an_optimizer_that_wants_other_gradients_is_refused() -> None:
    with pytest.raises(InputError, match="SparseAdam"):
        train(
            load("gaussian:n=4,T=4,d=30", 1),
            steps=5,
            space="weight",
            optimizer=torch.optim.SparseAdam,
        )
