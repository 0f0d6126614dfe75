"""Training: Gram space against the notebook loop, the hand-batched loop and the memory roofline."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from numerics import NormalizedGD, Problem, max_margin
from numerics._gram_cpu import CompiledGram, LaneGram
from numerics._gram_geometry import Geometry
from numerics.datasets import load
from numerics.training import train_batch

SMALL = "gaussian:n=6,T=8,d=10"
NOTHING = np.empty(0, dtype=np.int64)


class Notebook(torch.nn.Module):
    """The usual notebook: an nn.Module with W, float64."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.tokens = torch.tensor(problem.tokens)
        self.queries = torch.tensor(problem.queries)
        self.labels = torch.tensor(problem.labels)
        self.decoder = torch.tensor(problem.decoder)
        self.W = torch.nn.Parameter(torch.zeros(problem.d, problem.d, dtype=torch.float64))

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(loss, attention)."""
        attention = torch.softmax(torch.einsum("ntd,de,ne->nt", self.tokens, self.W, self.queries), dim=1)
        outputs = torch.einsum("nt,ntd,d->n", attention, self.tokens, self.decoder)
        return torch.nn.functional.softplus(-self.labels * outputs).mean(), attention


def notebook(problem: Problem, steps: int) -> None:
    """(a): autograd, SGD on the normalized gradient, one run at a time, the softmax recorded every step."""
    model = Notebook(problem)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorded = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss, attention = model()
        loss.backward()
        with torch.no_grad():
            model.W.grad /= model.W.grad.norm()
        optimizer.step()
        recorded.append(attention.detach().clone())


def batched_by_hand(problems: list[Problem], steps: int) -> None:
    """(b): the same with a leading axis for the runs."""
    tokens = torch.tensor(np.stack([p.tokens for p in problems]))
    queries = torch.tensor(np.stack([p.queries for p in problems]))
    labels = torch.tensor(np.stack([p.labels for p in problems]))
    decoder = torch.tensor(np.stack([p.decoder for p in problems]))
    d = problems[0].d
    W = torch.zeros(len(problems), d, d, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([W], lr=0.1)
    recorded = []
    for _ in range(steps):
        optimizer.zero_grad()
        attention = torch.softmax(torch.einsum("bntd,bde,bne->bnt", tokens, W, queries), dim=2)
        outputs = torch.einsum("bnt,bntd,bd->bn", attention, tokens, decoder)
        torch.nn.functional.softplus(-labels * outputs).mean(dim=1).sum().backward()
        with torch.no_grad():
            W.grad /= torch.linalg.matrix_norm(W.grad)[:, None, None]
        optimizer.step()
        recorded.append(attention.detach().clone())


class Cost(NamedTuple):
    """Wall-clock and CPU seconds, each the least of some repetitions, and the clock's median.

    A busy machine distorts the clock.
    """

    wall: float
    cpu: float
    median: float

    def per(self, count: float) -> Cost:
        """The cost of one of so many."""
        return Cost(self.wall / count, self.cpu / count, self.median / count)


def measured(work: Callable[[], Any], repeat: int) -> Cost:
    """Time some repetitions."""
    walls, cpus = [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Cost(min(walls), min(cpus), float(np.median(walls)))


def with_best_threads(work: Callable[[], Any], repeat: int) -> Cost:
    """The same under one torch thread and under all, whichever is faster by each clock."""
    all_threads = torch.get_num_threads()
    costs = []
    for threads in {1, all_threads}:
        torch.set_num_threads(threads)
        work()
        costs.append(measured(work, repeat))
    torch.set_num_threads(all_threads)
    return Cost(*(min(clock) for clock in zip(*costs, strict=True)))


def engine(problem: Problem, runs: int = 1) -> CompiledGram | LaneGram:
    """The compiled engine of some runs on one problem, without a target: set-up is not timed here."""
    kind = CompiledGram if runs < 8 else LaneGram
    return kind([Geometry.of(problem, None)], [NormalizedGD(0.1).law] * runs, [None] * runs)


def step_cost(made: CompiledGram | LaneGram, steps: int, repeat: int) -> Cost:
    """Cost of one step of all its runs."""
    made.advance(NOTHING, made.t + 10)
    return measured(lambda: made.advance(NOTHING, made.t + steps), repeat).per(steps)


def copy_bandwidth() -> float:
    """Bytes a second moved by copying a large array (read and written), the best of several."""
    source = np.random.default_rng(0).standard_normal(1 << 24)
    target = np.empty_like(source)
    return 2 * source.nbytes / measured(lambda: np.copyto(target, source), 7).cpu


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    repeat = 3 if quick else 7
    rows: list[dict[str, Any]] = []

    def row(name: str, baseline: str, ratio: float | None, detail: str, **more: float) -> None:
        rows.append({"name": name, "baseline": baseline, "ratio": ratio, "detail": detail, **more})

    problems = [load(SMALL, seed) for seed in range(100)]
    targets = [max_margin(problem) for problem in problems]
    rules = [NormalizedGD(0.1)] * 100
    train_batch(problems, rules, steps=20, targets=targets)  # compiles
    train_batch(problems[0], rules, steps=20, targets=targets[0])

    plain = with_best_threads(lambda: notebook(problems[0], 400), repeat).per(400)
    hand = with_best_threads(lambda: batched_by_hand(problems, 100), repeat).per(100 * 100)

    def against(name: str, baseline: str, slow: Cost, ours: Cost, more: str) -> None:
        detail = (
            f"{ours.wall * 1e6:.3g} us against {slow.wall * 1e6:.3g} by the clock (ratio of medians "
            f"{slow.median / ours.median:.3g}, of CPU seconds {slow.cpu / ours.cpu:.3g}); {more}"
        )
        row(name, baseline, slow.wall / ours.wall, detail, cpu_ratio=slow.cpu / ours.cpu)

    steps_tried = [NormalizedGD(step) for step in np.geomspace(0.02, 0.5, 100).tolist()]
    same = measured(
        lambda: train_batch(problems[0], steps_tried, steps=2000, targets=targets[0]), repeat
    ).per(200_000)
    against(
        "100 step sizes x 2000 steps, n=6 T=8 d=10",
        "(a) notebook loop",
        plain,
        same,
        "wanted: 1000 on 2 cores",
    )
    ours = measured(lambda: train_batch(problems, rules, steps=2000, targets=targets), repeat).per(200_000)
    against(
        "100 problems x 2000 steps, n=6 T=8 d=10",
        "(a) notebook loop",
        plain,
        ours,
        "each its own Gram matrix; wanted: 1000 on 2 cores",
    )
    against(
        "100 problems x 2000 steps, n=6 T=8 d=10",
        "(b) batched by hand",
        hand,
        ours,
        "autograd over a run axis",
    )
    one = measured(lambda: train_batch(problems[0], rules[0], steps=20_000, targets=targets[0]), repeat)
    against("one run, N = 42", "(a) notebook loop", plain, one.per(20_000), "wanted: 200")

    steps = 20_000
    wide, narrow = (load(f"gaussian:n=6,T=8,d={d}", 0) for d in (5000, 50))
    setup = [measured(lambda p=p: engine(p), 2).cpu for p in (wide, narrow)]
    made = [engine(p) for p in (wide, narrow)]
    times = np.array([[step_cost(e, steps, 1).cpu for e in made] for _ in range(repeat)]).min(axis=0)
    row(
        "a step at d = 5000",
        "a step at d = 50",
        times[0] / times[1],
        f"{times[0] * 1e6:.3g} us against {times[1] * 1e6:.3g} (CPU); Gram set-up {setup[0] * 1e3:.3g} ms "
        f"against {setup[1] * 1e3:.3g}; wanted: below 1.2",
    )

    large = load("gaussian:n=100,T=21,d=64", 0)
    bandwidth = copy_bandwidth()
    floor = 8 * large.n_constraints**2 / bandwidth
    spent = step_cost(engine(large), 50, repeat).cpu
    row(
        f"a step at N = {large.n_constraints}",
        "(c) roofline: Gram bytes / copy bandwidth",
        spent / floor,
        f"{spent * 1e3:.3g} ms, {bandwidth / 1e9:.3g} GB/s, one core each (CPU); wanted: below 3",
    )
    rows += growth(quick)
    if torch.cuda.is_available():
        rows.append(on_cuda(problems[0], targets[0], same.wall))
    else:
        row("run-steps a second on CUDA", "2 CPU cores", None, "skipped: no CUDA device at hand")
    return rows


def on_cuda(problem: Problem, target: Any, cpu: float) -> dict[str, Any]:
    """Throughput of ten thousand runs on the device."""
    runs, steps = 10_000, 2_000
    rules = [NormalizedGD(0.1)] * runs

    def work() -> None:
        train_batch(problem, rules, steps=steps, targets=target, device="cuda", record=[])

    work()
    spent = measured(work, 3).wall / (runs * steps)
    return {
        "name": f"run-steps a second on {torch.cuda.get_device_name()}",
        "baseline": "2 CPU cores",
        "ratio": cpu / spent,
        "detail": f"{1 / spent:.3g} run-steps a second, {runs} runs",
    }


def growth(quick: bool) -> list[dict[str, Any]]:
    """How the cost of a step grows with N, d and the number of runs, and of a run with its steps."""
    repeat = 2 if quick else 4
    rows = []

    def row(axis: str, value: int, cost: float, first: float) -> None:
        detail = f"{cost * 1e6:.3g} us"
        rows.append(
            {
                "name": f"growth with {axis}: {value}",
                "baseline": f"the smallest {axis}",
                "ratio": cost / first,
                "detail": detail,
                "axis": axis,
                "value": value,
                "seconds": cost,
            }
        )

    def sweep(axis: str, values: tuple[int, ...], cost: Callable[[int], float]) -> None:
        costs = [cost(value) for value in values]
        for value, spent in zip(values, costs, strict=True):
            row(axis, value, spent, costs[0])

    def by_size(N: int) -> float:
        made = engine(load(f"gaussian:n={N // 8},T=9,d=40", 0))
        return step_cost(made, max(20, 4_000_000 // (N * N)), repeat).cpu

    def by_dimension(d: int) -> float:
        return step_cost(engine(load(f"gaussian:n=6,T=8,d={d}", 0)), 10_000, repeat).cpu

    def by_runs(runs: int) -> float:
        return step_cost(engine(load(SMALL, 0), runs), max(200, 40_000 // runs), repeat).cpu

    def by_steps(steps: int) -> float:
        problem = load(SMALL, 0)
        target = max_margin(problem)
        return measured(
            lambda: train_batch(problem, NormalizedGD(0.1), steps=steps, targets=target), repeat
        ).cpu

    sweep("N", (16, 64, 256, 1024) if quick else (16, 32, 64, 128, 256, 512, 1024, 2048), by_size)
    sweep("d", (10, 100, 1000) if quick else (10, 50, 200, 1000, 5000), by_dimension)
    sweep("runs", (1, 10, 100, 1000), by_runs)
    sweep("steps", (1_000, 10_000, 100_000), by_steps)
    return rows


def figure(rows: list[dict[str, Any]], stem: Path) -> list[Path]:
    """Four panels, cost against N, d, runs and steps, as PDF and PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    labels = {"N": "step (us)", "d": "step (us)", "runs": "step of all runs (us)", "steps": "run (us)"}
    canvas, panels = plt.subplots(1, 4, figsize=(10, 2.6), layout="constrained")
    for panel, (axis, label) in zip(panels, labels.items(), strict=True):
        points = [(row["value"], row["seconds"] * 1e6) for row in rows if row.get("axis") == axis]
        panel.loglog(*zip(*points, strict=True), "ko-", markersize=3)
        panel.set_xlabel(axis)
        panel.set_ylabel(label)
    paths = [stem.with_suffix(suffix) for suffix in (".pdf", ".png")]
    for path in paths:
        canvas.savefig(path, dpi=200)
    plt.close(canvas)
    return paths
