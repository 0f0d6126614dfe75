"""The engines of compiled Gram-space runs, a few in lockstep or eight as lanes, spread over threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from numerics import _gram_compiled as compiled
from numerics import _gram_lanes as lanes
from numerics._gram_geometry import Geometry
from numerics._gram_record import ROWS, Book
from numerics._gram_vectors import WIDTH
from numerics._threads import cores
from numerics.steps import Law

_LOCKSTEP = 4  # runs in a call: enough to fill the processor, and their Gram matrices stay in its cache
_SNAPSHOTS = 1 << 24  # numbers in the snapshots between two looks (128 MiB)


class CompiledGram:
    """Runs in Gram space on the CPU; `geometries` has one entry a run, or one for all."""

    name = "compiled loop"

    def __init__(
        self, geometries: Sequence[Geometry], laws: Sequence[Law], inits: Sequence[np.ndarray | None]
    ) -> None:
        """Form the Gram matrices and the initial states."""
        self.t = 0
        runs, n, N = len(laws), len(geometries[0].best), len(geometries[0].gap)
        self._book = Book(geometries, runs, inits)
        self._N = N
        self._width = _round_up(N, compiled.PAD)
        tight = np.full((len(geometries), n), np.inf)
        for j, geometry in enumerate(geometries):
            np.minimum.at(tight[j], geometry.sequence, geometry.gap / 2)
        best = np.stack([geometry.best for geometry in geometries])
        self._data = (
            self._grams(),
            np.stack([geometry.start for geometry in geometries]),
            self._padded([geometry.sequence.astype(np.uint32) for geometry in geometries], 0),
            self._padded([geometry.gap for geometry in geometries], 1.0),
            tight,
            best,
            np.exp(-np.logaddexp(0.0, best)),
            np.abs(best).max(axis=1) > compiled.LARGE_SCORE,
            self._padded([geometry.along for geometry in geometries], 0.0),
            self._padded([geometry.dual for geometry in geometries], 0.0),
        )
        self._laws = np.array(laws, dtype=np.float64).reshape(runs, 5)
        self._scalars = self._book.scalars()
        self._nu = self._padded(self._book.gaps(), compiled.FAR)
        self._rho = _aligned((runs, self._width))
        blocks = range(0, runs, _LOCKSTEP)
        self._blocks = [slice(first, min(first + _LOCKSTEP, runs)) for first in blocks]
        self._threads = min(len(self._blocks), cores())
        self.pace = max(1, int(1e8 / (runs * N * N)))  # at a tenth of what a core multiplies in a slice

    def _padded(self, rows: Sequence[np.ndarray] | np.ndarray, fill: float | int) -> np.ndarray:
        """Rows of N entries as one array of padded rows."""
        out = _aligned((len(rows), self._width), rows[0].dtype)
        out[:] = fill
        out[:, : self._N] = rows
        return out

    def _grams(self) -> np.ndarray:
        """All Gram matrices, (P, width, width), none of them held twice."""
        geometries = self._book.geometries
        out = _aligned((len(geometries), self._width, self._width))
        for j, geometry in enumerate(geometries):
            geometry.gram(out[j, : self._N, : self._N])
        return out

    def advance(self, records: np.ndarray, until: int) -> np.ndarray:
        """Step to `until`, recording at the steps in `records`: (rows, B, measured columns)."""
        runs, N = len(self._nu), self._N
        parts = []
        size = max(1, _SNAPSHOTS // (runs * N))
        for first in range(0, max(len(records), 1), size):
            some = records[first : first + size].astype(np.int64)
            stop = until if first + size >= len(records) else int(some[-1])
            rows = np.empty((runs, len(some), ROWS))
            snapshots = np.empty((runs, len(some), N))
            self._step(stop, some, rows, snapshots)
            self.t = stop
            parts.append(self._book.columns(rows, snapshots))
        return np.concatenate(parts)

    def _step(self, until: int, records: np.ndarray, rows: np.ndarray, snapshots: np.ndarray) -> None:
        n = _round_up(self._data[5].shape[1], 8)  # a whole number of vectors

        def work(block: slice) -> None:
            runs, width = self._nu[block].shape
            compiled.advance(
                self.t,
                until,
                records,
                self._book.which[block],
                *self._data,
                self._laws[block],
                self._scalars[block],
                self._nu[block],
                self._rho[block],
                rows[block],
                snapshots[block],
                _aligned((3, runs, width)),
                _aligned((5, runs, n)),
                np.zeros((5, runs)),
                _aligned((runs, max(width, n)), np.int64),
            )

        def share(first: int) -> None:
            for block in self._blocks[first :: self._threads]:
                work(block)

        _in_threads(share, self._threads)

    def finite(self) -> np.ndarray:
        """Which runs are still made of finite numbers, (B,)."""
        return np.isfinite(self._scalars).all(axis=1) & np.isfinite(self._nu).all(axis=1)

    def final(self) -> list[dict[str, np.ndarray]]:
        """For every run b with W = W_0 + sum_k b_k A_k, in the problem's order."""
        return self._book.coefficients(self._scalars, self._rho[:, : self._N])

    def state(self) -> dict[str, np.ndarray]:
        """All that changes along the run, for a checkpoint."""
        return {"t": np.array(self.t), "scalars": self._scalars, "nu": self._nu, "rho": self._rho}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        self.t = int(state["t"])
        self._scalars[...], self._nu[...], self._rho[...] = state["scalars"], state["nu"], state["rho"]


class LaneGram:
    """Runs in Gram space on the CPU in groups of eight, each run a lane of the vectors.

    `geometries` has one entry a run, all with equally long sequences, or one for all.
    """

    name = "compiled loop, runs as lanes"

    def __init__(
        self, geometries: Sequence[Geometry], laws: Sequence[Law], inits: Sequence[np.ndarray | None]
    ) -> None:
        """Form the Gram matrices and the states, in whole groups; idle lanes repeat the last run."""
        self.t = 0
        runs = len(laws)
        self._runs, self._shared = runs, len(geometries) == 1
        self._book = Book(geometries, runs, inits)
        self._N, self._n = len(geometries[0].gap), len(geometries[0].best)
        self._groups = -(-runs // WIDTH)
        self._place = np.minimum(np.arange(self._groups * WIDTH), runs - 1)
        tight = np.full((len(geometries), self._n), np.inf)
        for j, geometry in enumerate(geometries):
            np.minimum.at(tight[j], geometry.sequence, geometry.gap / 2)
        best = np.stack([geometry.best for geometry in geometries])
        self._K = self._grams()
        self._start = geometries[0].start
        # By problem: gap, tight, best, sigmas, large, along, dual.
        self._data = (
            self._by_lane(np.stack([geometry.gap for geometry in geometries])),
            self._by_lane(tight),
            self._by_lane(best),
            self._by_lane(np.exp(-np.logaddexp(0.0, best))),
            self._by_lane((np.abs(best).max(axis=1) > compiled.LARGE_SCORE)[:, None])[:, 0] > 0,
            self._by_lane(np.stack([geometry.along for geometry in geometries])),
            self._by_lane(np.stack([geometry.dual for geometry in geometries])),
        )
        laws_by_run = np.array(laws, dtype=np.float64).reshape(runs, 5)
        self._laws = laws_by_run[self._place].reshape(self._groups, WIDTH, 5)
        self._scalars = self._by_lane(self._book.scalars())
        self._nu = self._by_lane(self._book.gaps())
        self._rho = self._by_lane(np.zeros((runs, self._N)))
        self._threads = min(self._groups, cores())
        self.pace = max(1, int(3e8 / (runs * self._N**2)))

    def _by_lane(self, rows: np.ndarray) -> np.ndarray:
        """(runs, m) as (groups, m, 8), one row for all as one group."""
        place = self._place if len(rows) == self._runs else np.zeros(WIDTH, dtype=np.int64)
        groups = rows[place].reshape(-1, WIDTH, rows.shape[1]).transpose(0, 2, 1)
        out = _aligned(groups.shape)
        out[:] = groups
        return out

    def _by_run(self, groups: np.ndarray) -> np.ndarray:
        """(groups, m, 8) as (runs, m)."""
        return groups.transpose(0, 2, 1).reshape(-1, groups.shape[1])[: self._runs]

    def _grams(self) -> np.ndarray:
        """The Gram matrices as the step reads them, a group after the other, or one for all."""
        geometries = self._book.geometries
        if self._shared:
            out = _aligned((1, -(-self._N // WIDTH) * self._N, WIDTH))
            lanes.shared_layout(geometries[0].gram(), out[0])
            return out
        entries = lanes.own_entries(self._N)
        out = _aligned((self._groups, len(entries), WIDTH))
        flat = np.zeros(self._N**2 + 1)
        for place, run in enumerate(self._place.tolist()):
            geometries[run].gram(flat[:-1].reshape(self._N, self._N))
            out[place // WIDTH, :, place % WIDTH] = flat[entries]
        return out

    def advance(self, records: np.ndarray, until: int) -> np.ndarray:
        """Step to `until`, recording at the steps in `records`: (rows, B, measured columns)."""
        runs, N = self._groups * WIDTH, self._N
        parts = []
        size = max(1, _SNAPSHOTS // (runs * N))
        for first in range(0, max(len(records), 1), size):
            some = records[first : first + size].astype(np.int64)
            stop = until if first + size >= len(records) else int(some[-1])
            rows = np.empty((runs, len(some), ROWS))
            snapshots = np.empty((runs, len(some), N))
            self._step(stop, some, rows, snapshots)
            self.t = stop
            parts.append(self._book.columns(rows[: self._runs], snapshots[: self._runs]))
        return np.concatenate(parts)

    def _step(self, until: int, records: np.ndarray, rows: np.ndarray, snapshots: np.ndarray) -> None:
        N, n = self._N, self._n
        padded = _round_up(N, WIDTH)

        def share(first: int) -> None:
            scratch = (
                *(_aligned((size, WIDTH)) for size in (padded, padded, n, n, 8)),
                np.zeros((4, N)),
                np.zeros((4, n)),
            )
            for group in range(first, self._groups, self._threads):
                own = slice(group * WIDTH, (group + 1) * WIDTH)
                K, *data = (part[group if len(part) > 1 else 0] for part in (self._K, *self._data))
                lanes.advance(
                    self.t,
                    until,
                    records,
                    N,
                    self._shared,
                    K,
                    self._start,
                    *data,
                    self._laws[group],
                    self._scalars[group],
                    self._nu[group],
                    self._rho[group],
                    rows[own],
                    snapshots[own],
                    *scratch,
                )

        _in_threads(share, self._threads)

    def finite(self) -> np.ndarray:
        """Which runs are still made of finite numbers, (B,)."""
        sums = self._by_run(np.isfinite(self._scalars)).all(axis=1)
        gaps = self._by_run(np.isfinite(self._nu)).all(axis=1)
        return np.asarray(sums & gaps)

    def final(self) -> list[dict[str, np.ndarray]]:
        """For every run b with W = W_0 + sum_k b_k A_k, in the problem's order."""
        return self._book.coefficients(self._by_run(self._scalars), self._by_run(self._rho))

    def state(self) -> dict[str, np.ndarray]:
        """All that changes along the run, for a checkpoint."""
        return {"t": np.array(self.t), "scalars": self._scalars, "nu": self._nu, "rho": self._rho}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        self.t = int(state["t"])
        self._scalars[...], self._nu[...], self._rho[...] = state["scalars"], state["nu"], state["rho"]


def _in_threads(work: Callable[[int], None], threads: int) -> None:
    """Call work(0), ..., work(threads - 1) at once."""
    if threads == 1:
        work(0)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))


def _aligned(shape: tuple[int, ...], dtype: type | np.dtype = np.float64) -> np.ndarray:
    """Zeros that start at a cache line: a vector load across two costs twice."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, dtype=np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + size].view(dtype).reshape(shape)


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
