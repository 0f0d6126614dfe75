"""The engine of Gram-space runs in torch: large N, CUDA, float32, matrix-free.

A batch is one tensor program. On CUDA the step is captured once as a graph and replayed, so that its some
eighty small kernels cost no launches. Where the Gram matrix does not fit, or is larger than its factors, K
c is formed from them: K_kl = <x_k, x_l> <z_i, z_j>, two products with the differences and one with the n x
n queries' Gram.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from numerics import _gram_record as at
from numerics._gram_geometry import Geometry
from numerics._gram_record import Book
from numerics._threads import threads_for
from numerics.attention import Scores, read
from numerics.steps import Law

_REPLAY = 32  # steps in one captured graph


class TorchGram:
    """Runs in Gram space as tensors (B, N); `geometries` has one entry a run, or one for all.

    State sums stay float64 in either dtype; float32 concerns the logit gaps' differences and the residual's
    coefficients.
    """

    def __init__(
        self,
        geometries: Sequence[Geometry],
        laws: Sequence[Law],
        inits: Sequence[np.ndarray | None],
        *,
        device: torch.device,
        dtype: torch.dtype,
        dense: bool,
    ) -> None:
        """Move the data to the device."""
        self.name = "tensors, " + ("Gram matrix" if dense else "its factors")
        self.t, self.pace = 0, 64
        self._device, self._dtype, self._dense = device, dtype, dense
        runs = len(laws)
        self._book = Book(geometries, runs, inits)
        shape = (len(geometries[0].best), max(int(np.diff(g.start).max()) for g in geometries))
        self._shape = shape
        slots = np.stack(
            [g.sequence * shape[1] + np.arange(len(g.gap)) - g.start[g.sequence] for g in geometries]
        )
        full = shape[0] * shape[1]
        self._regular = slots.shape[1] == full
        self._slots = torch.as_tensor(slots, device=device)
        valid = np.zeros((len(geometries), full), dtype=bool)
        np.put_along_axis(valid, slots, True, axis=1)
        gap = np.ones((len(geometries), full))
        np.put_along_axis(gap, slots, np.stack([g.gap for g in geometries]), axis=1)
        self._scores = Scores.of(
            np.stack([g.best for g in geometries]),
            gap.reshape(-1, *shape),
            valid.reshape(-1, *shape),
            device=device,
            dtype=dtype,
        )
        self._along = self._move_in(np.stack([g.along for g in geometries]))
        self._dual = self._move_in(np.stack([g.dual for g in geometries]))
        if dense:
            self._gram = self._move_in(np.stack([g.gram() for g in geometries]))
        else:
            padded = np.zeros((len(geometries), full, geometries[0].differences.shape[1]))
            for j, g in enumerate(geometries):
                padded[j, slots[j]] = g.differences
            self._differences = self._move_in(padded.reshape(len(geometries), *shape, -1))
            self._kernel = self._move_in(np.stack([g.queries @ g.queries.T for g in geometries]))
        columns = torch.as_tensor(np.array(laws, dtype=np.float64).reshape(runs, 5).T, device=device)
        self._scale, self._exponent, self._p, self._q, self._cap = columns
        self.nu = self._move_in(self._book.gaps())
        self.rho = torch.zeros_like(self.nu)
        self.scalars = torch.as_tensor(self._book.scalars(), device=device)
        self.time = torch.zeros((), dtype=torch.float64, device=device)
        self._row = torch.zeros((runs, at.ROWS), dtype=torch.float64, device=device)
        self._seen: tuple[Tensor, ...] = ()
        self._graphs: tuple[Callable[[], None], Callable[[], None]] | None = None

    def _move_in(self, value: np.ndarray) -> Tensor:
        return torch.as_tensor(value, dtype=self._dtype, device=self._device)

    @torch.no_grad()
    def advance(self, records: np.ndarray, until: int) -> np.ndarray:
        """Step to `until`, recording at the steps in `records`: (rows, B, measured columns)."""
        factors = (self._gram,) if self._dense else (self._differences, self._kernel)
        with threads_for(self.nu.numel() * self._shape[1] + sum(factor.numel() for factor in factors)):
            return self._advance(records, until)

    def _advance(self, records: np.ndarray, until: int) -> np.ndarray:
        if self._device.type == "cuda" and self._graphs is None:
            self._graphs = self._capture()
        wanted = [*records.tolist(), until] if until not in records else records.tolist()
        rows, snapshots = [], []
        for stop in wanted:
            self._run(stop - self.t)
            if stop in records:
                self._look()
                rows.append(self._row.cpu().numpy().copy())
                snapshots.append(self.rho.double().cpu().numpy().copy())
        if not rows:
            return self._book.columns(
                np.empty((len(self.nu), 0, at.ROWS)), np.empty((len(self.nu), 0, self.nu.shape[1]))
            )
        return self._book.columns(np.stack(rows, axis=1), np.stack(snapshots, axis=1))

    def _run(self, steps: int) -> None:
        """Take steps, by graph replay where there are graphs."""
        self.t += steps
        if self._graphs is None:
            for _ in range(steps):
                self._look()
                self._move()
            return
        one, many = self._graphs
        for _ in range(steps // _REPLAY):
            many()
        for _ in range(steps % _REPLAY):
            one()

    def _capture(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Record one step and _REPLAY steps as CUDA graphs; the state is left as it was."""
        held = [tensor.clone() for tensor in (self.nu, self.rho, self.scalars, self.time)]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._look()
                self._move()
        torch.cuda.current_stream().wait_stream(stream)
        replays = []
        for count in (1, _REPLAY):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(count):
                    self._look()
                    self._move()
            replays.append(graph.replay)
        for tensor, value in zip((self.nu, self.rho, self.scalars, self.time), held, strict=True):
            tensor.copy_(value)
        return replays[0], replays[1]

    def _pad(self, values: Tensor, fill: float) -> Tensor:
        """Constraints (B, N) in the (B, n, J) layout."""
        if self._regular:
            return values.view(-1, *self._shape)
        out = torch.full(
            (len(values), self._shape[0] * self._shape[1]), fill, dtype=values.dtype, device=values.device
        )
        return out.scatter_(1, self._slots.expand(len(values), -1), values).view(-1, *self._shape)

    def _flat(self, values: Tensor) -> Tensor:
        """The (B, n, J) layout's constraints, (B, N)."""
        flat = values.reshape(len(values), -1)
        return flat if self._regular else flat.gather(1, self._slots.expand(len(values), -1))

    def _product(self, c: Tensor) -> Tensor:
        """K c for every run."""
        if self._dense:
            if len(self._gram) == 1:
                return torch.mv(self._gram[0], c[0])[None] if len(c) == 1 else c @ self._gram[0]
            return torch.bmm(self._gram, c[..., None])[..., 0]
        pulls = (self._pad(c, 0.0)[..., None, :] @ self._differences)[..., 0, :]
        mixed = self._kernel @ pulls
        return self._flat((self._differences @ mixed[..., None])[..., 0])

    def _sum(self, index: int) -> Tensor:
        return self.scalars[:, index] + self.scalars[:, index + 1]

    def _add(self, index: int, value: Tensor) -> None:
        """Add to a compensated sum (two-sum)."""
        total = self.scalars[:, index]
        new = total + value
        kept = new - total
        self.scalars[:, index + 1] += (total - (new - kept)) + (value - kept)
        self.scalars[:, index] = new

    def _look(self) -> None:
        """Evaluate the runs where they stand: fill the row and what `_move` needs."""
        shift = self._sum(at.SHIFT)
        reading = read(self._pad(self.nu, torch.inf), self._scores, shift=shift)
        log_c = self._flat(reading.log_coefficient)
        top = torch.amax(log_c, -1, keepdim=True)
        top = torch.where(top == -torch.inf, 0.0, top)
        c = self._flat(reading.sign) * torch.exp(log_c - top)
        y = self._product(c)
        square = torch.sum(c * y, -1, dtype=torch.float64)
        moving = square > 0
        square = torch.where(moving, square, 1.0)
        inverse = torch.rsqrt(square)
        log_norm = top[:, 0].double() - shift + 0.5 * torch.log(square)
        excess = reading.log_excess.double()
        powers = torch.where(self._p != 0, self._p * log_norm, 0.0)
        powers = powers + torch.where(self._q != 0, self._q * excess, 0.0)
        length = torch.minimum(
            self._scale * (self.time + 1.0) ** -self._exponent * torch.exp(powers), self._cap
        )
        length = torch.where(moving, length, 0.0)
        values = {
            at.ROW_PATH: self._sum(at.PATH),
            at.ROW_SEPARATOR: self._sum(at.SEPARATOR),
            at.ROW_CURVATURE: self._sum(at.CURVATURE),
            at.ROW_LENGTH: length,
            at.ROW_TARGET: self._sum(at.TARGET),
            at.ROW_LEAK: torch.amax(reading.log_leak, -1).double(),
            at.ROW_LEAKED: torch.logsumexp(reading.log_leak, -1).double(),
            at.ROW_EXCESS: excess,
            at.ROW_GAP: shift + torch.amin(self.nu, -1).double(),
            at.ROW_GRADIENT: torch.where(moving, log_norm, -torch.inf),
        }
        self._row.copy_(torch.stack([values[j] for j in range(at.ROWS)], -1))
        self._seen = (shift, c, y, inverse, length)

    def _move(self) -> None:
        """Take the step that `_look` saw."""
        shift, c, y, inverse, length = self._seen
        size = torch.sum(torch.abs(c), -1, dtype=torch.float64)
        total = torch.sum(c, -1, dtype=torch.float64)
        progress = torch.sum(c * self._along, -1, dtype=torch.float64)
        turned = torch.sum(c * self.nu, -1, dtype=torch.float64) + shift * total
        drift = torch.where(length > 0, 1.0 / (size * inverse), 0.0)
        step = length * inverse
        before = torch.sqrt(torch.clamp(self._sum(at.SQUARE), min=0.0))
        self.nu += (length[:, None] * (y * inverse[:, None] - drift[:, None])).to(self._dtype)
        self.rho += (step[:, None] * (c - progress[:, None] * self._dual)).to(self._dtype)
        self._add(at.SHIFT, length * drift)
        self._add(at.TARGET, step * progress)
        self._add(at.SQUARE, 2.0 * step * turned + length**2)
        self._add(at.PATH, length)
        self._add(at.SEPARATOR, step * total)
        self._add(at.CURVATURE, torch.where((before > 0) & (length > 0), length**2 / before, 0.0))
        self.time += 1.0

    def finite(self) -> np.ndarray:
        """Which runs are still made of finite numbers, (B,)."""
        good = torch.isfinite(self.scalars).all(-1) & torch.isfinite(self.nu).all(-1)
        return good.cpu().numpy()

    def final(self) -> list[dict[str, np.ndarray]]:
        """For every run b with W = W_0 + sum_k b_k A_k, in the problem's order."""
        return self._book.coefficients(self.scalars.cpu().numpy(), self.rho.double().cpu().numpy())

    def state(self) -> dict[str, np.ndarray]:
        """All that changes along the run, for a checkpoint."""
        tensors = {"scalars": self.scalars, "nu": self.nu, "rho": self.rho, "time": self.time}
        return {"t": np.array(self.t)} | {name: value.cpu().numpy() for name, value in tensors.items()}

    @torch.no_grad()
    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        self.t = int(state["t"])
        for name in ("scalars", "nu", "rho", "time"):
            getattr(self, name).copy_(torch.as_tensor(state[name]))
