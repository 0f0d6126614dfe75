"""The step-size rules: their lengths, their files, their refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from numerics.errors import InputError
from numerics.steps import (
    GradientDescent,
    NormalizedGD,
    Polyak,
    Rule,
    TorchOptimizer,
    rule_from_dict,
    rule_to_dict,
)


def length(rule: Rule, step: int, norm: float, excess: float) -> float:
    return rule.law.step_length(step=step, log_gradient_norm=math.log(norm), log_excess_loss=math.log(excess))


@pytest.mark.parametrize("step", [0, 1, 17])
def test_lengths_are_those_of_the_definitions(step: int) -> None:
    norm, excess = 0.37, 0.21
    assert length(GradientDescent(0.3), step, norm, excess) == pytest.approx(0.3 * norm, rel=1e-15)
    assert length(NormalizedGD(0.3), step, norm, excess) == 0.3
    assert length(Polyak(), step, norm, excess) == pytest.approx(excess / (2 * norm), rel=1e-15)
    assert length(Polyak(cap=0.1), step, norm, excess) == 0.1
    decayed = length(NormalizedGD(0.3, exponent=2 / 3), step, norm, excess)
    assert decayed == pytest.approx(0.3 * (step + 1) ** (-2 / 3), rel=1e-15)
    decayed = length(GradientDescent(0.3, exponent=0.5), step, norm, excess)
    assert decayed == pytest.approx(0.3 * norm / math.sqrt(step + 1), rel=1e-15)


def test_polyak_outlives_the_underflow_of_its_numbers() -> None:
    law = Polyak().law
    assert law.step_length(step=0, log_gradient_norm=-1e6, log_excess_loss=-1e6 + 1) == pytest.approx(
        math.e / 2
    )
    assert Polyak(cap=3.0).law.step_length(step=0, log_gradient_norm=-1e6, log_excess_loss=0.0) == 3.0


@pytest.mark.parametrize("rule", [GradientDescent(1.0), NormalizedGD(1.0), Polyak()])
def test_a_stationary_point_is_not_left(rule: Rule) -> None:
    assert rule.law.step_length(step=3, log_gradient_norm=-math.inf, log_excess_loss=-5.0) == 0.0


@pytest.mark.parametrize(
    "rule",
    [
        GradientDescent(0.5),
        NormalizedGD(0.25, exponent=2 / 3),
        Polyak(),
        Polyak(cap=2.0),
        TorchOptimizer("Adam", (("eps", 1e-8), ("lr", 0.1))),
    ],
)
def test_rules_survive_json(rule: Any) -> None:
    assert rule_from_dict(json.loads(json.dumps(rule_to_dict(rule)))) == rule


@pytest.mark.parametrize(
    "make",
    [
        lambda: GradientDescent(0.0),
        lambda: NormalizedGD(-1.0),
        lambda: NormalizedGD(math.nan),
        lambda: NormalizedGD(math.inf),
        lambda: NormalizedGD(True),
        lambda: NormalizedGD(1.0, exponent=-0.5),
        lambda: Polyak(cap=0.0),
        lambda: rule_from_dict({"name": "adagrad"}),
        lambda: rule_from_dict({"name": "ngd"}),
        lambda: rule_from_dict({"name": "ngd", "step": 0.1, "momentum": 0.9}),
        lambda: rule_from_dict([1, 2]),
        lambda: rule_from_dict({"name": []}),
    ],
)
def test_bad_rules_are_refused_in_one_line(make: Any) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert "\n" not in str(caught.value)
