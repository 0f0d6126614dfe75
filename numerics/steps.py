"""Step-size rules: gradient descent, normalized gradient descent and Polyak's step.

All are path-length rules: W_(t+1) = W_t - e_t grad L/||grad L||, and a rule only says how long the step is,

    e_t = min( scale (t+1)^(-exponent) ||grad L||^p (L - L*)^q, cap ).

`Law` holds these five numbers, so that every engine evaluates all rules, also mixed in one batch, by this one
formula, in the log domain: far along a run ||grad L|| and L - L* underflow while e_t does not.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from numerics.errors import InputError


class Law(NamedTuple):
    """The five numbers of e_t = min(scale (t+1)^(-exponent) ||grad L||^p (L-L*)^q, cap)."""

    scale: float | int
    exponent: float | int
    p: float
    q: float
    cap: float | int

    def step_length(self, *, step: int, log_gradient_norm: float, log_excess_loss: float) -> float:
        """e_t at step t from log ||grad L|| and log(L - L*); 0 at an exactly stationary point."""
        if log_gradient_norm == -math.inf:
            return 0.0
        log_powers = 0.0
        if self.p:
            log_powers += self.p * log_gradient_norm
        if self.q:
            log_powers += self.q * log_excess_loss
        if log_powers > 700.0:
            return self.cap if self.cap < math.inf else math.exp(min(log_powers, 709.0)) * self.scale
        return min(self.scale * (step + 1.0) ** -self.exponent * math.exp(log_powers), self.cap)


@runtime_checkable
class Rule(Protocol):
    """What `train` asks of a step-size rule."""

    name: ClassVar[str]

    @property
    def law(self) -> Law:
        """The numbers of the rule's formula."""
        ...


@dataclass(frozen=True)
class GradientDescent:
    """Plain gradient descent, W_(t+1) = W_t - step (t+1)^(-exponent) grad L.

    Raises InputError unless step is positive and finite and the exponent finite and not negative.
    """

    step: float | int
    exponent: float | int = field(default=0.0, kw_only=True)
    name: ClassVar[str] = "gd"

    def __post_init__(self) -> None:
        """Validate the numbers."""
        _check(self)

    @property
    def law(self) -> Law:
        """e_t = step (t+1)^(-exponent) ||grad L||."""
        return Law(self.step, self.exponent, 1.0, 0.0, math.inf)


@dataclass(frozen=True)
class NormalizedGD:
    """Normalized gradient descent, W_(t+1) = W_t - step (t+1)^(-exponent) grad L/||grad L||.

    Raises InputError unless step is positive and finite and the exponent finite and not negative.
    """

    step: float | int
    exponent: float | int = field(default=0.0, kw_only=True)
    name: ClassVar[str] = "ngd"

    def __post_init__(self) -> None:
        """Validate the numbers."""
        _check(self)

    @property
    def law(self) -> Law:
        """e_t = step (t+1)^(-exponent)."""
        return Law(self.step, self.exponent, 0.0, 0.0, math.inf)


@dataclass(frozen=True)
class Polyak:
    """Polyak's step, W_(t+1) = W_t - (L - L*)/(2 ||grad L||^2) grad L, no longer than `cap` (None: no cap).

    L* = (1/n) sum_i log(1 + exp(-g_(i,o_i))) is the infimum of the loss, computed from the data. Raises
    InputError unless the cap is None or positive and finite.
    """

    cap: float | int | None = None
    name: ClassVar[str] = "polyak"

    def __post_init__(self) -> None:
        """Validate the cap."""
        _check(self)

    @property
    def law(self) -> Law:
        """e_t = min((L - L*)/(2 ||grad L||), cap)."""
        return Law(0.5, 0.0, -1.0, 1.0, math.inf if self.cap is None else self.cap)


@dataclass(frozen=True)
class TorchOptimizer:
    """The torch.optim optimizer that drove a run, by name; the path-length theorems do not cover it."""

    optimizer: str
    options: tuple[tuple[str, float | int | str], ...] = ()
    name: ClassVar[str] = "torch"


RULES: dict[str, type] = {rule.name: rule for rule in (GradientDescent, NormalizedGD, Polyak)}


def rule_to_dict(rule: Any) -> dict[str, Any]:
    """A rule as plain JSON values, `{"name": ..., <its numbers>}`."""
    values = asdict(rule)
    if isinstance(rule, TorchOptimizer):
        values["options"] = dict(rule.options)
    return {"name": rule.name, **values}


def rule_from_dict(values: Any) -> Any:
    """The rule that `rule_to_dict` wrote. Raises InputError on anything else."""
    try:
        fields = dict(values)
        name = fields.pop("name")
        if name == TorchOptimizer.name:
            return TorchOptimizer(str(fields["optimizer"]), tuple(dict(fields["options"]).items()))
        return RULES[name](**fields)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise InputError(f"not a step-size rule: {values!r}") from None


def _check(rule: GradientDescent | NormalizedGD | Polyak) -> None:
    for name, value in asdict(rule).items():
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or (value == 0 and name != "exponent"):
            kind = "a finite number >= 0" if name == "exponent" else "a positive finite number"
            raise InputError(f"{rule.name}: {name} must be {kind}, not {value!r}")
