"""Joint training of W and the decoder: both engines against the notebook loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from numerics import NormalizedGD, Problem, train_joint
from numerics._joint_gram import JointGram
from numerics._joint_tokens import Tokens
from numerics.datasets import load
from numerics.datasets.gaussian import STRONG_SIGNAL
from tests.benchmarks.bench_train import NOTHING, Cost, Notebook, measured, with_best_threads

RULE = NormalizedGD(0.3, exponent=2 / 3)


def notebook(problem: Problem, steps: int) -> None:
    """Autograd for W and u, each gradient normalized, the softmax recorded every step."""
    model = Notebook(problem)
    model.decoder = torch.nn.Parameter(torch.zeros(problem.d, dtype=torch.float64))
    recorded = []
    for t in range(steps):
        model.zero_grad()
        loss, attention = model()
        loss.backward()
        with torch.no_grad():
            for variable in (model.W, model.decoder):
                norm = variable.grad.norm()
                if norm > 0:
                    variable.sub_(0.3 * (t + 1) ** (-2 / 3) / norm * variable.grad)
        recorded.append(attention.detach().clone())


def step_cost(problem: Problem, steps: int, repeat: int) -> Cost:
    """Cost of one step through Gram matrices, set-up and history not counted."""
    engine = JointGram([Tokens.of(problem)], [RULE.law], [RULE.law], [None], [None])
    engine.advance(NOTHING, engine.t + 10)
    return measured(lambda: engine.advance(NOTHING, engine.t + steps), repeat).per(steps)


def run(quick: bool) -> list[dict[str, Any]]:
    """All rows."""
    repeat = 2 if quick else 5
    problem = load(STRONG_SIGNAL, 0)
    train_joint(problem, RULE, RULE, steps=20)  # compiles
    slow = with_best_threads(lambda: notebook(problem, 300), repeat).per(300)
    rows: list[dict[str, Any]] = []

    def against(name: str, ours: Cost, more: str) -> None:
        detail = (
            f"{ours.wall * 1e6:.3g} us a step against {slow.wall * 1e6:.3g} by the clock (ratio of CPU "
            f"seconds {slow.cpu / ours.cpu:.3g}); {more}"
        )
        rows.append(
            {
                "name": name,
                "baseline": "notebook loop",
                "ratio": slow.wall / ours.wall,
                "cpu_ratio": slow.cpu / ours.cpu,
                "detail": detail,
            }
        )

    size = "n=20 T=5 d=200"
    whole = measured(lambda: train_joint(problem, RULE, RULE, steps=100_000), repeat).per(100_000)
    against(f"joint run of 10^5 steps, {size}", whole, "history and both max margins included")
    weight = with_best_threads(lambda: train_joint(problem, RULE, RULE, steps=300, space="weight"), repeat)
    against(f"joint run in weight space, {size}", weight.per(300), "the sums and extremes of every step kept")
    wide, narrow = (step_cost(load(f"gaussian:n=20,T=5,d={d}", 0), 20_000, repeat).cpu for d in (5000, 50))
    rows.append(
        {
            "name": "a joint step at d = 5000",
            "baseline": "a joint step at d = 50",
            "ratio": wide / narrow,
            "detail": f"{wide * 1e6:.3g} us against {narrow * 1e6:.3g} (CPU)",
        }
    )
    large = load("gaussian:n=100,T=11,d=64", 0)
    spent = step_cost(large, 100, repeat).cpu
    tokens = int(np.sum(large.lengths))
    rows.append(
        {
            "name": f"a joint step on {tokens} tokens",
            "baseline": "bytes of both Gram matrices a second",
            "ratio": None,
            "detail": f"{spent * 1e3:.3g} ms, {16 * tokens**2 / spent / 1e9:.3g} GB/s (CPU)",
        }
    )
    return rows
