"""The engine of joint runs through Gram matrices of the tokens, at a cost independent of d."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from numerics import _joint_compiled as compiled
from numerics._gram_compiled import PAD
from numerics._joint_record import (
    BY_TOKEN,
    DECODER_SQUARE,
    NEUTRAL,
    ROWS,
    SCALARS,
    WEIGHT_SQUARE,
    X_GAP,
)
from numerics._joint_tokens import Tokens
from numerics._threads import cores
from numerics.steps import Law


class JointGram:
    """Runs on the CPU, spread over threads; `layouts` has one entry a run, or one for all."""

    name = "compiled loop over tokens"

    def __init__(
        self,
        layouts: Sequence[Tokens],
        laws: Sequence[Law],
        decoder_laws: Sequence[Law],
        inits: Sequence[np.ndarray | None],
        decoder_inits: Sequence[np.ndarray | None],
    ) -> None:
        """Form the Gram matrices and the initial states."""
        self.t = 0
        runs = len(laws)
        self._layouts = list(layouts)
        self._which = list(range(runs)) if len(layouts) > 1 else [0] * runs
        self._M = len(layouts[0].rows)
        width = -(-self._M // PAD) * PAD
        self._pairs = np.zeros((len(layouts), width, width))
        self._tokens = np.zeros((len(layouts), width, width))
        for j, tokens in enumerate(layouts):
            self._pairs[j, : self._M, : self._M] = tokens.pairs()
            np.matmul(tokens.rows, tokens.rows.T, out=self._tokens[j, : self._M, : self._M])
        self._laws = np.array(laws, dtype=np.float64).reshape(runs, 5)
        self._decoder_laws = np.array(decoder_laws, dtype=np.float64).reshape(runs, 5)
        self._inits, self._decoder_inits = inits, decoder_inits
        self._scalars = np.zeros((runs, SCALARS))
        self._scalars[:, X_GAP:] = NEUTRAL
        self._state = np.zeros((runs, 8, width))
        self._optimal = np.full((runs, layouts[0].problem.n), -1, dtype=np.int64)
        for b in range(runs):
            tokens, W, u = layouts[self._which[b]], inits[b], decoder_inits[b]
            self._state[b, 0, : self._M] = tokens.logits(W)
            self._state[b, 4, : self._M] = tokens.scores(u)
            self._scalars[b, WEIGHT_SQUARE] = 0.0 if W is None else np.sum(W * W)
            self._scalars[b, DECODER_SQUARE] = 0.0 if u is None else u @ u
        self._threads = min(runs, cores())
        self.pace = 16 + int(5e7 / (runs * self._M**2))

    def advance(self, records: np.ndarray, until: int) -> np.ndarray:
        """Step to `until`, recording at the steps in `records`: (rows, B, kept)."""
        runs = len(self._laws)
        out = np.empty((len(records), runs, len(ROWS) + len(BY_TOKEN) * self._M))
        n = self._layouts[0].problem.n

        def work(b: int) -> None:
            j = self._which[b]
            rows = np.empty((len(records), len(ROWS)))
            snapshots = np.empty((len(records), len(BY_TOKEN), self._M))
            compiled.advance(
                self.t,
                until,
                records.astype(np.int64),
                self._pairs[j],
                self._tokens[j],
                self._layouts[j].start.astype(np.int64),
                self._layouts[j].problem.labels,
                self._laws[b],
                self._decoder_laws[b],
                self._scalars[b],
                self._state[b],
                self._optimal[b],
                rows,
                snapshots,
                np.zeros((5, self._state.shape[2])),
                np.zeros((n, compiled.BY_SEQUENCE)),
            )
            out[:, b, : len(ROWS)] = rows
            out[:, b, len(ROWS) :] = snapshots.reshape(len(records), len(BY_TOKEN) * self._M)

        if self._threads == 1:
            for b in range(runs):
                work(b)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(work, range(runs)))
        self.t = until
        return out

    def finite(self) -> np.ndarray:
        """Which runs are still made of finite numbers, (B,)."""
        sums = np.isfinite(self._scalars[:, : DECODER_SQUARE + 2]).all(axis=1)
        return np.asarray(sums & np.isfinite(self._state).all(axis=(1, 2)))

    def final(self) -> list[dict[str, np.ndarray]]:
        """For every run the final decoder."""
        out = []
        for b, u in enumerate(self._decoder_inits):
            q = self._state[b, 6, : self._M] + self._state[b, 7, : self._M]
            moved = q @ self._layouts[self._which[b]].rows
            out.append({"decoder": moved if u is None else u + moved})
        return out

    def state(self) -> dict[str, np.ndarray]:
        """All that changes along the run, for a checkpoint."""
        return {
            "t": np.array(self.t),
            "scalars": self._scalars,
            "tokens": self._state,
            "optimal": self._optimal,
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        self.t = int(state["t"])
        self._scalars[...], self._state[...] = state["scalars"], state["tokens"]
        self._optimal[...] = state["optimal"]
