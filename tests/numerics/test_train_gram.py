"""Gram space: the same runs as weight space, for any start, and exact where weight space is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from numerics import GradientDescent, InputError, NormalizedGD, Polyak, Problem, train
from numerics.datasets import load
from numerics.train import train_batch
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
