"""Weight space: the paper's algorithm on W in R^(d x d), literally, in torch, a batch of runs at once.

The reference against which the Gram-space engines are tested; also the home of torch.optim optimizers, which
need not stay in the span of the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from numerics import _optimizer_state
from numerics._record import MEASURED
from numerics._threads import threads_for
from numerics.attention import Scores, Slots, optimal_loss, read
from numerics.errors import InputError
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.steps import Law

_OPTIMIZER = "optimizer."  # what the names of the optimizer's arrays in a checkpoint begin with
OptimizerFactory = Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]


class WeightSpace:
    """Iterates W (B, d, d) for B runs; `problems` and `targets` have one entry a run, or one for all."""

    name = "weight space"

    def __init__(
        self,
        problems: Sequence[Problem],
        laws: Sequence[Law],
        inits: Sequence[np.ndarray | None],
        targets: Sequence[MaxMargin | None],
        *,
        device: torch.device,
        dtype: torch.dtype,
        optimizer: OptimizerFactory | None = None,
    ) -> None:
        """Move the data to the device; W starts at the initial values."""
        self.t, self.pace = 0, 16
        self._dtype, self._device = dtype, device
        runs, d = len(laws), problems[0].d
        width = max(Slots.of(problem).shape[1] for problem in problems)
        slots = [Slots.of(problem, width=width) for problem in problems]
        pieces = [slot.scores(problem) for slot, problem in zip(slots, problems, strict=True)]
        best, gap, valid = (np.stack([piece[j] for piece in pieces]) for j in range(3))
        self.scores = Scores.of(best, gap, valid, device=device, dtype=dtype)
        differences = [slot.pad(problem.differences) for slot, problem in zip(slots, problems, strict=True)]
        self._differences = self._move(np.stack(differences))
        self._queries = self._move(np.stack([problem.queries for problem in problems]))
        directions = [np.full((d, d), np.nan) if m is None else m.direction for m in targets]
        self._target = self._move(np.stack(directions))
        start = np.zeros((runs, d, d))
        for b, init in enumerate(inits):
            if init is not None:
                start[b] = init
        self.W = self._move(start)
        self.path, self.separator, self.curvature = (
            torch.zeros(runs, dtype=torch.float64, device=device) for _ in range(3)
        )
        columns = np.array(laws, dtype=np.float64).reshape(runs, 5).T
        self._scale, self._exponent, self._p, self._q, self._cap = torch.as_tensor(columns, device=device)
        self.optimizer: torch.optim.Optimizer | None = None
        if optimizer is not None:
            self.W = torch.nn.Parameter(self.W)
            self.optimizer = optimizer([self.W])

    def _move(self, value: np.ndarray) -> Tensor:
        return torch.as_tensor(value, dtype=self._dtype, device=self._device)

    @torch.no_grad()
    def advance(self, records: np.ndarray, until: int) -> np.ndarray:
        """Step to `until`, recording at the steps in `records`: (rows, B, measured columns).

        A record at `until` itself is taken only if listed; the next call continues from there.
        """
        with threads_for(self.W.numel() + self._differences.numel()):
            return self._advance(set(records.tolist()), until)

    def _advance(self, wanted: set[int], until: int) -> np.ndarray:
        rows = []
        while True:
            if self.t == until and self.t not in wanted:
                break
            mu, direction, log_norm, log_excess, total, log_leak = self._look()
            length = self._length(log_norm, log_excess)
            row = None
            if self.t in wanted:
                row = self._row(mu, length, log_norm, log_excess, log_leak)
                rows.append(row)
            if self.t == until:
                break
            taken = self._step(direction, length, log_norm, log_excess, total)
            if row is not None and self.optimizer is not None:
                row[:, MEASURED.index("step_length")] = taken
        if not rows:
            return np.empty((0, self.W.shape[0], len(MEASURED)))
        return torch.stack(rows).cpu().numpy()

    def _look(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """(mu, unit descent direction, log ||grad||, log excess, C/||grad||, log leak) at the present W."""
        towards = self._queries @ self.W.mT  # W z_i
        mu = (self._differences @ towards[..., None])[..., 0]
        reading = read(mu, self.scores)
        log_c = reading.log_coefficient
        shift = torch.amax(log_c, (-2, -1))
        shift = torch.where(shift == -torch.inf, 0.0, shift)
        c = reading.sign * torch.exp(log_c - shift[:, None, None])
        pulls = (c[..., None, :] @ self._differences)[..., 0, :]
        gradient = pulls.mT @ self._queries
        norm = torch.linalg.matrix_norm(gradient)
        safe = torch.where(norm > 0, norm, 1.0)
        direction = gradient / safe[:, None, None]
        total = torch.sum(c, (-2, -1)).double() / safe.double()
        log_norm = shift.double() + torch.log(norm.double())
        return mu, direction, log_norm, reading.log_excess.double(), total, reading.log_leak

    def _length(self, log_norm: Tensor, log_excess: Tensor) -> Tensor:
        """e_t of every run, by the law of its rule."""
        powers = torch.where(self._p != 0, self._p * log_norm, 0.0)
        powers = powers + torch.where(self._q != 0, self._q * log_excess, 0.0)
        length = self._scale * (self.t + 1.0) ** -self._exponent * torch.exp(powers)
        length = torch.minimum(length, self._cap)
        return torch.where(log_norm == -torch.inf, 0.0, length)

    def _step(
        self, direction: Tensor, length: Tensor, log_norm: Tensor, log_excess: Tensor, total: Tensor
    ) -> Tensor:
        """Move W and the sums; the lengths moved."""
        before = torch.linalg.matrix_norm(self.W).double()
        if self.optimizer is None:
            self.W += length.to(self.W.dtype)[:, None, None] * direction
        else:
            old = self.W.detach().clone()
            self._descend(direction, log_norm, log_excess)
            length = torch.linalg.matrix_norm(self.W - old).double()
        self.path += length
        self.separator += length * total
        self.curvature += torch.where(before > 0, length**2 / before, 0.0)
        self.t += 1
        return length

    def _descend(self, direction: Tensor, log_norm: Tensor, log_excess: Tensor) -> None:
        """One step of the optimizer; alone, a run can be evaluated again, as line searches ask."""
        optimizer = self.optimizer
        assert optimizer is not None
        self.W.grad = self._gradient(direction, log_norm)
        seen: list[Tensor] = [self._loss(log_excess)]  # at the present W: nothing to evaluate

        @torch.no_grad()
        def closure() -> Tensor:
            if seen:
                return seen.pop()
            _, there, log_size, excess, _, _ = self._look()
            self.W.grad = self._gradient(there, log_size)
            return self._loss(excess)

        try:
            if len(self.W) == 1:
                optimizer.step(closure)  # type: ignore[arg-type]  # torch says float, and takes a tensor
            else:
                optimizer.step()
        except (TypeError, ValueError, RuntimeError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            hint = "; one that evaluates the loss itself takes one run a call" if len(self.W) > 1 else ""
            name = type(optimizer).__name__
            raise InputError(f"the optimizer {name} does not train W: {reason}{hint}") from error

    def _gradient(self, direction: Tensor, log_norm: Tensor) -> Tensor:
        return -(direction * torch.exp(log_norm).to(self.W.dtype)[:, None, None])

    def _loss(self, log_excess: Tensor) -> Tensor:
        """The loss of the first run, as an optimizer wants it."""
        return optimal_loss(self.scores.best)[0] + torch.exp(log_excess[0])

    def _row(
        self, mu: Tensor, length: Tensor, log_norm: Tensor, log_excess: Tensor, log_leak: Tensor
    ) -> Tensor:
        """The measured columns of every run at the present step, (B, columns)."""
        component = torch.sum(self.W * self._target, (-2, -1))
        values = {
            "path_length": self.path,
            "separator_path": self.separator,
            "curvature_sum": self.curvature,
            "step_length": length if self.optimizer is None else torch.full_like(length, torch.nan),
            "weight_norm": torch.linalg.matrix_norm(self.W),
            "target_component": component,
            "residual_norm": torch.linalg.matrix_norm(self.W - component[:, None, None] * self._target),
            "log_attention_gap": torch.amax(log_leak, -1),
            "log_total_attention_gap": torch.logsumexp(log_leak, -1),
            "log_excess_loss": log_excess,
            "min_logit_gap": torch.amin(torch.where(self.scores.valid, mu, torch.inf), (-2, -1)),
            "log_gradient_norm": log_norm,
        }
        return torch.stack([values[name].double().expand(self.W.shape[0]) for name in MEASURED], -1)

    def finite(self) -> np.ndarray:
        """Which runs are still made of finite numbers, (B,)."""
        return torch.isfinite(torch.linalg.matrix_norm(self.W.detach())).cpu().numpy()

    def final(self) -> list[dict[str, np.ndarray]]:
        """For every run the array its Run keeps."""
        weights = self.W.detach().double().cpu().numpy()
        return [{"final_weights": weights[b].copy()} for b in range(weights.shape[0])]

    def state(self) -> dict[str, np.ndarray]:
        """All that changes along the run, for a checkpoint."""
        tensors = {
            "W": self.W.detach(),
            "path": self.path,
            "separator": self.separator,
            "curvature": self.curvature,
        }
        state = {"t": np.array(self.t)} | {key: value.cpu().numpy() for key, value in tensors.items()}
        if self.optimizer is not None:
            packed = _optimizer_state.pack(self.optimizer)
            state |= {f"{_OPTIMIZER}{name}": value for name, value in packed.items()}
        return state

    @torch.no_grad()
    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        self.t = int(state["t"])
        for name in ("W", "path", "separator", "curvature"):
            getattr(self, name).copy_(torch.as_tensor(state[name]))
        if self.optimizer is not None:
            packed = {name: value for name, value in state.items() if name.startswith(_OPTIMIZER)}
            _optimizer_state.unpack(
                self.optimizer, {name.removeprefix(_OPTIMIZER): value for name, value in packed.items()}
            )
