"""Normalized SGD and the stochastic Polyak step as torch optimizers, for anyone's training loop.

Both move along -g/||g||, g the gradient of all parameters together, and differ in the length of the step:

    NormalizedSGD  lr                                        (the paper's normalized GD, on mini-batches)
    PolyakSGD      min( (f - lower_bound)/(c ||g||), lr ||g|| )   (SPS_max of Loizou et al., 2021)

They are the stochastic versions of `numerics.steps.NormalizedGD` and `numerics.steps.Polyak`. The norm is
summed in float64, so that no float32 gradient is too small or too large for it; everything stays on the
parameters' devices and nothing waits for a GPU.

    N. Loizou, S. Vaswani, I. Laradji, S. Lacoste-Julien, Stochastic Polyak Step-size for SGD: An Adaptive
    Learning Rate for Fast Convergence, AISTATS 2021.
    A. Cutkosky, H. Mehta, Momentum Improves Normalized SGD, ICML 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

__all__ = ["NormalizedSGD", "PolyakSGD"]

_HALVES = (torch.float16, torch.bfloat16)


class NormalizedSGD(Optimizer):
    """Normalized stochastic gradient descent: every step has length `lr`, whatever the gradient's length.

        g <- gradient + weight_decay parameters
        m <- momentum m + (1 - momentum) g           (m = g at the first step, and without momentum)
        parameters <- parameters - lr m/||m||

    ||m|| is the norm over all parameters of all groups; each group has its own lr, momentum and weight decay.
    Momentum is as in Cutkosky and Mehta, weight decay, part of the gradient, as in torch.optim.SGD.
    Parameters without a gradient are left alone; where all of m is zero nothing moves. Sparse gradients are
    taken without momentum and weight decay. A gradient that is not finite makes the parameters NaN, as in
    torch.optim.SGD.

    Raises ValueError for an lr or weight decay that is negative or not finite and a momentum outside [0, 1).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | int = 1e-3,
        *,
        momentum: float | int = 0.0,
        weight_decay: float | int = 0.0,
    ) -> None:
        """Take parameters or parameter groups as every torch optimizer does."""
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, its options checked."""
        options = self.defaults | param_group
        _require("lr", options["lr"], 0.0, math.inf)
        _require("momentum", options["momentum"], 0.0, 1.0)
        _require("weight_decay", options["weight_decay"], 0.0, math.inf)
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step; returns the closure's loss, None without a closure."""
        loss = _evaluate(closure)
        blocks = [
            _Block(group, device_block, [self._average(group, p) for p in device_block])
            for group in self.param_groups
            for device_block in _alike(group["params"])
        ]
        if blocks:
            norm = _norm(blocks)
            for block in blocks:
                block.move(_over(torch.full_like(norm, block.group["lr"]), norm))
        return loss

    def _average(self, group: dict[str, Any], p: Tensor) -> Tensor:
        """m of one parameter: its gradient with weight decay, averaged when there is momentum."""
        assert p.grad is not None
        g = p.grad
        momentum, decay = group["momentum"], group["weight_decay"]
        if g.is_sparse:
            if momentum or decay:
                raise RuntimeError(
                    "NormalizedSGD takes sparse gradients without momentum and weight decay only"
                )
            return g.coalesce()
        if decay:
            g = g.add(p, alpha=decay)
        if momentum:
            state = self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = g.clone(memory_format=torch.preserve_format)
            else:
                state["momentum_buffer"].lerp_(g, 1 - momentum)
            g = state["momentum_buffer"]
        return g


class PolyakSGD(Optimizer):
    """SGD with the stochastic Polyak step with a cap, SPS_max of Loizou et al. (2021):

        parameters <- parameters - gamma g,    gamma = min( (f - lower_bound)/(c ||g||^2), lr ),

    f the loss and g its gradient on the mini-batch, ||g|| over all parameters of all groups. `lower_bound` is
    a lower bound f* of the mini-batch losses (0 for cross-entropy and logistic losses); where f lies below it
    nothing moves. c = 2 is the full-batch rule of this project and the paper, c = 1/2 the choice of Loizou et
    al. for strongly convex losses. `lr` caps gamma (their gamma_b), is what schedulers act on, and may be
    math.inf for no cap. Each group has its own lr, c and lower_bound.

    The loss comes from a closure, `optimizer.step(closure)`, as with torch.optim.LBFGS: clear the gradients,
    compute the loss, call backward, return the loss. After a backward pass of one's own, say under mixed
    precision, `optimizer.step(loss=loss)` does the same. The method has no momentum and no weight decay.

    Parameters without a gradient are left alone; a zero gradient moves nothing; sparse gradients are taken.

    Raises ValueError for an lr that is negative or NaN, a c that is not positive, a lower bound that is not
    finite, and a step without a loss.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | int = 1.0,
        *,
        c: float | int = 2.0,
        lower_bound: float | int = 0.0,
    ) -> None:
        """Take parameters or parameter groups as every torch optimizer does."""
        super().__init__(params, {"lr": lr, "c": c, "lower_bound": lower_bound})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, its options checked."""
        options = self.defaults | param_group
        if options["lr"] != math.inf:
            _require("lr", options["lr"], 0.0, math.inf)
        _require("c", options["c"], 0.0, math.inf)
        if options["c"] == 0:
            raise ValueError("c must be positive, not 0")
        _require("lower_bound", options["lower_bound"], -math.inf, math.inf)
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(
        self, closure: Callable[[], Any] | None = None, *, loss: Tensor | float | int | None = None
    ) -> Any:
        """Make one step with the closure's loss, or with `loss` after a backward pass; return that loss."""
        if (closure is None) == (loss is None):
            raise ValueError("PolyakSGD.step needs the loss: pass a closure that returns it, or loss=...")
        value = loss if closure is None else _evaluate(closure)
        if value is None:
            raise ValueError("the closure returned no loss; PolyakSGD needs it")
        scalar = torch.as_tensor(value).detach()
        if scalar.numel() != 1:
            raise ValueError(f"PolyakSGD needs a scalar loss, not one of shape {tuple(scalar.shape)}")
        scalar = scalar.reshape(())
        blocks = [
            _Block(group, block, [_dense_or_coalesced(p) for p in block])
            for group in self.param_groups
            for block in _alike(group["params"])
        ]
        if blocks:
            norm = _norm(blocks)
            for block in blocks:
                above = torch.clamp(scalar - block.group["lower_bound"], min=0).to(norm.device, norm.dtype)
                gamma = _over(_over(above / block.group["c"], norm), norm)
                block.move(torch.clamp(gamma, max=block.group["lr"]))
        return value


@dataclass
class _Block:
    """Parameters of one group, device and dtype with the directions they move along."""

    group: dict[str, Any]
    params: list[Tensor]
    directions: list[Tensor]

    def values(self) -> list[Tensor]:
        """The numbers of the directions: of a sparse one those that are stored."""
        return [g._values() if g.is_sparse else g for g in self.directions]

    def move(self, factor: Tensor) -> None:
        """Subtract the directions times `factor`, a scalar tensor, from the parameters."""
        first = self.params[0]
        narrow = first.dtype in _HALVES
        factor = factor.to(first.device, torch.float32 if narrow else first.dtype.to_real())
        most = torch.finfo(factor.dtype).max  # reached where the gradient itself is below normal numbers
        factor = -torch.clamp(factor, max=most)
        if any(g.is_sparse for g in self.directions):
            for p, g in zip(self.params, self.directions, strict=True):
                p.add_(g * factor)
        elif first.device.type == "cpu" and not narrow:
            torch._foreach_add_(self.params, self.directions, alpha=float(factor))
        else:  # a tensor, not a number, so that nothing waits for the device
            wide = [g.float() for g in self.directions] if narrow else self.directions
            torch._foreach_add_(self.params, [c.to(first.dtype) for c in torch._foreach_mul(wide, factor)])


def _norm(blocks: list[_Block]) -> Tensor:
    """The norm of all directions together, a scalar tensor in float64 where the device has it."""
    home = blocks[0].params[0].device
    squares = []
    for block in blocks:
        first = block.params[0]
        wide = torch.float32 if first.device.type == "mps" else torch.float64
        kind = torch.complex128 if first.is_complex() else wide
        norms = torch.stack([n.real for n in torch._foreach_norm(block.values(), 2, kind)])
        squares.append(norms.square().sum().to(home))
    return torch.stack(squares).sum().sqrt()


def _over(length: Tensor, norm: Tensor) -> Tensor:
    """length/norm: 0 where the norm is 0, as nothing is to move, and NaN where it is not finite."""
    factor = length / torch.where(norm == 0, torch.ones_like(norm), norm)
    factor = torch.where(norm == 0, torch.zeros_like(norm), factor)
    return torch.where(torch.isfinite(norm), factor, torch.full_like(norm, torch.nan))


def _alike(params: list[Tensor]) -> list[list[Tensor]]:
    """The parameters that have a gradient, sorted by device and dtype."""
    blocks: dict[tuple[Any, ...], list[Tensor]] = {}
    for p in params:
        if p.grad is not None:
            blocks.setdefault((p.device, p.dtype), []).append(p)
    return list(blocks.values())


def _dense_or_coalesced(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad.coalesce() if p.grad.is_sparse else p.grad


def _evaluate(closure: Callable[[], Any] | None) -> Any:
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def _require(name: str, value: Any, low: float, high: float) -> None:
    """Raise ValueError unless low <= value < high; the infinite ends are not allowed themselves."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    if not (math.isfinite(number) and low <= number < high):
        kind = "a finite number" if low == -math.inf else "a finite number >= 0"
        raise ValueError(
            f"{name} must be {kind if high == math.inf else f'in [{low:g}, {high:g})'}, not {value!r}"
        )
