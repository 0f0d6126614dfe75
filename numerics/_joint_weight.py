"""The engine of joint runs in weight space: the algorithm as written, on W (d, d) and u (d,), in torch.

Coefficients of the gradients are formed pair by pair in the log domain, sigma(-m_i) phi_tau phi_s (g_s -
g_tau): the textbook form phi (g - m) loses all digits once attention is concentrated. Independent of the
Gram engine but for the names of what is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from numerics._joint_record import BY_TOKEN, NEUTRAL, ROWS, SUMS
from numerics._joint_tokens import Tokens
from numerics._threads import threads_for
from numerics.steps import Law

_SERIES = -37.0  # below, log(log1p(e^x)) = x - e^x/2 to the last digit


class _One:
    """One run."""

    def __init__(
        self,
        tokens: Tokens,
        law: Law,
        decoder_law: Law,
        init: np.ndarray | None,
        decoder_init: np.ndarray | None,
        device: torch.device,
    ) -> None:
        def move(value: np.ndarray) -> Tensor:
            return torch.tensor(value, device=device)

        problem = tokens.problem
        d = problem.d
        self.n = problem.n
        self.law, self.decoder_law = law, decoder_law
        self.x = move(problem.tokens)
        self.centred = move(tokens.spread(tokens.centred.T, 0.0).transpose(1, 2, 0).copy())
        self.z, self.y, self.mask = move(problem.queries), move(problem.labels), move(problem.mask)
        self.flat = move(np.stack([tokens.sequence, tokens.place]))
        self.several = self.mask.sum(1) > 1
        self.W = move(np.zeros((d, d)) if init is None else init)
        self.u = move(np.zeros(d) if decoder_init is None else decoder_init)
        self.b = torch.zeros_like(self.mask, dtype=torch.float64)
        self.q = torch.zeros_like(self.b)
        self.sums = np.zeros(SUMS)
        self.counts = np.zeros(2)
        self.extremes = np.array(NEUTRAL)
        self.optimal: Tensor | None = None

    def advance(self, t: int, until: int, records: np.ndarray) -> np.ndarray:
        """Step from t to `until`; the kept rows at the steps in `records`."""
        rows = []
        wanted = set(records.tolist())
        for step in range(t, until + 1):
            recording = step in wanted
            kept = self._step(step, recording, move=step < until)
            if kept is not None:
                rows.append(kept)
        width = len(ROWS) + len(BY_TOKEN) * self.flat.shape[1]
        return np.array(rows).reshape(len(records), width)

    def _step(self, t: int, recording: bool, *, move: bool) -> np.ndarray | None:
        """Measure at step t and, unless it is the last of the call, move."""
        zero = torch.zeros((), dtype=torch.float64, device=self.x.device)
        a = ((self.z @ self.W.T)[:, None, :] * self.centred).sum(-1)
        masked = torch.where(self.mask, a, -torch.inf)
        log_phi = torch.log_softmax(masked, dim=1)
        scores = self.x @ self.u
        g = self.y[:, None] * scores
        best_g, best = torch.where(self.mask, g, -torch.inf).max(dim=1)
        phi = torch.exp(log_phi)
        margin = (phi * g).sum(1)
        log_sigma = -torch.logaddexp(zero, margin)

        # sigma phi_tau phi_s (g_tau - g_s), the largest product scaled to 1.
        difference = g[:, :, None] - g[:, None, :]
        both = log_phi[:, :, None] + log_phi[:, None, :]
        live = (self.mask[:, :, None] & self.mask[:, None, :]) & (difference != 0)
        logs = torch.where(live, both + log_sigma[:, None, None], -torch.inf)
        shift = logs.max()
        c = torch.zeros_like(g)
        log_norm, inverse = -math.inf, 0.0
        direction = None
        if bool(torch.isfinite(shift)):
            size = difference.abs().max()
            c = (torch.exp(logs - shift) * (difference / size)).sum(2)
            direction = torch.einsum("ntd,nt->nd", self.centred, c).T @ self.z
            norm = float(torch.linalg.matrix_norm(direction))
            if norm > 0:
                inverse = 1.0 / norm
                log_norm = float(shift) + math.log(float(size)) + math.log(norm) - math.log(self.n)
        weight = torch.exp(log_sigma - log_sigma.max())
        w = weight[:, None] * phi * self.y[:, None]
        decoder_direction = torch.einsum("ntd,nt->d", self.x, w)
        decoder_norm = float(torch.linalg.vector_norm(decoder_direction))
        decoder_log_norm = -math.inf
        if decoder_norm > 0:
            decoder_log_norm = float(log_sigma.max()) + math.log(decoder_norm) - math.log(self.n)

        at = torch.arange(self.n, device=g.device)
        leak = self._look(t, a, log_phi, g, best, best_g, log_sigma)
        loss = excess = 0.0
        if recording or self.law.q or self.decoder_law.q:
            loss, excess = self._losses(margin, g, best, best_g, log_phi)
        length = self.law.step_length(step=t, log_gradient_norm=log_norm, log_excess_loss=excess)
        decoder_length = self.decoder_law.step_length(
            step=t, log_gradient_norm=decoder_log_norm, log_excess_loss=loss
        )
        kept = None
        if recording:
            by_token = [v[self.flat[0], self.flat[1]] for v in (a, self.b, scores, self.q)]
            measured = [length, decoder_length, log_norm, decoder_log_norm, loss, excess, *self.counts]
            kept = np.concatenate([self.sums, measured, self.extremes, torch.cat(by_token).cpu().numpy()])
            self.extremes = np.array(NEUTRAL)
        if not move:
            return kept
        moved = np.zeros(SUMS)
        if length > 0 and direction is not None:
            before = float(torch.linalg.matrix_norm(self.W))
            self.W += (length * inverse) * direction
            self.b += (length * inverse) * c
            along = float(c[at, best].sum()) * inverse
            square = length * length  # not a power: that raises where it overflows
            moved[:4] = length, square, length * along, square / before if before > 0 else 0.0
        if decoder_length > 0:
            before = float(torch.linalg.vector_norm(self.u))
            scale = decoder_length / decoder_norm
            self.u += scale * decoder_direction
            self.q += scale * w
            moved[4:] = (
                decoder_length,
                decoder_length * decoder_length,
                scale * float(weight.sum()),
                scale * float((weight * leak).sum()),
                decoder_length * decoder_length / before if before > 0 else 0.0,
            )
        with np.errstate(over="ignore"):  # reported by the driver
            self.sums += moved
        return kept

    def _look(
        self,
        t: int,
        a: Tensor,
        log_phi: Tensor,
        g: Tensor,
        best: Tensor,
        best_g: Tensor,
        log_sigma: Tensor,
    ) -> Tensor:
        """Count changes of the optimal tokens and widen the extremes; the missing attention 1 - p_i."""
        if self.optimal is not None and not torch.equal(best, self.optimal):
            self.counts[0] += 1
            self.counts[1] = t
        self.optimal = best
        at = torch.arange(self.n, device=g.device)
        others = self.mask.clone()
        others[at, best] = False
        log_p = log_phi[at, best]
        log_leak = torch.logsumexp(torch.where(others, log_phi, -torch.inf), 1)
        leak = torch.exp(log_leak)
        gaps = best_g[:, None] - g
        least = torch.where(others, gaps, torch.inf).amin(1)
        spread = torch.where(others, gaps, -torch.inf).amax(1) - least
        phi = torch.exp(log_phi)
        pulls = (phi[:, :, None] * (g[:, :, None] - g[:, None, :])).sum(1)
        weights = torch.log(pulls.clamp(min=0)) + (log_sigma + log_p)[:, None]
        low = float(torch.where(others, weights, torch.inf).amin())
        high = float(torch.where(others, weights, -torch.inf).amax())
        lost = torch.logsumexp(torch.where(others, log_phi + torch.log(gaps), -torch.inf), 1)
        push = torch.where(self.several, phi[at, best] * least - leak * spread, torch.inf)
        mu = torch.where(others, a[at, best][:, None] - a, torch.inf)
        now = (
            float(least.amin()),
            float(torch.where(self.several, spread, -torch.inf).amax()),
            float(log_leak.amax()),
            float(mu.amin()),
            float(push.amin()),
            high - low if low > -math.inf else math.inf,
            float(lost.amax()),
            float(best_g.amin()),
        )
        raised = [start < 0 for start in NEUTRAL]
        self.extremes = np.array(
            [max(x, y) if up else min(x, y) for x, y, up in zip(self.extremes, now, raised, strict=True)]
        )
        return leak

    def _losses(
        self, margin: Tensor, g: Tensor, best: Tensor, best_g: Tensor, log_phi: Tensor
    ) -> tuple[float, float]:
        """(log L, log(L - L*)), L* the least loss at the present decoder."""
        zero = torch.zeros((), dtype=torch.float64, device=g.device)
        log_losses = _log_softplus(-margin)
        gaps = torch.where(self.mask, best_g[:, None] - g, 0.0)
        log_lost = torch.logsumexp(torch.where(gaps > 0, log_phi + torch.log(gaps), -torch.inf), 1)
        lost = torch.exp(log_lost)
        log_expm1 = torch.where(
            lost > 1e-8, lost + torch.log(-torch.expm1(-lost.clamp(min=1e-8))), log_lost + lost / 2
        )
        log_excess = _log_softplus(log_expm1 - torch.logaddexp(zero, best_g))
        return (
            float(torch.logsumexp(log_losses, 0)) - math.log(self.n),
            float(torch.logsumexp(log_excess, 0)) - math.log(self.n),
        )


def _log_softplus(x: Tensor) -> Tensor:
    """log log(1 + e^x), also where e^x underflows."""
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    return torch.where(
        x < _SERIES, x - torch.exp(x) / 2, torch.log(torch.logaddexp(zero, x.clamp(min=_SERIES - 1)))
    )


class JointWeight:
    """Runs in weight space, one after the other; `layouts` has one entry a run, or one for all."""

    name = "weight space"

    pace = 16

    def __init__(
        self,
        layouts: Sequence[Tokens],
        laws: Sequence[Law],
        decoder_laws: Sequence[Law],
        inits: Sequence[np.ndarray | None],
        decoder_inits: Sequence[np.ndarray | None],
        device: torch.device,
    ) -> None:
        """Put everything on the device."""
        self.t = 0
        self._layouts = list(layouts) * (len(laws) if len(layouts) == 1 else 1)
        given = zip(self._layouts, laws, decoder_laws, inits, decoder_inits, strict=True)
        self._runs = [_One(*arguments, device) for arguments in given]

    @torch.no_grad()
    def advance(self, records: np.ndarray, until: int) -> np.ndarray:
        """Step to `until`, recording at the steps in `records`: (rows, B, kept)."""
        with threads_for(max(run.W.numel() + run.x.numel() for run in self._runs)):
            out = np.stack([run.advance(self.t, until, records) for run in self._runs], axis=1)
        self.t = until
        return out

    def finite(self) -> np.ndarray:
        """Which runs are still made of finite numbers, (B,)."""
        return np.array(
            [
                bool(
                    torch.isfinite(run.W).all()
                    and torch.isfinite(run.u).all()
                    and np.isfinite(run.sums).all()
                )
                for run in self._runs
            ]
        )

    def final(self) -> list[dict[str, np.ndarray]]:
        """For every run the final W and decoder."""
        return [
            {"final_weights": run.W.cpu().numpy().copy(), "decoder": run.u.cpu().numpy().copy()}
            for run in self._runs
        ]

    def state(self) -> dict[str, np.ndarray]:
        """All that changes along the run, for a checkpoint."""
        out = {"t": np.array(self.t)}
        for b, run in enumerate(self._runs):
            for name in ("W", "u", "b", "q"):
                out[f"{name}{b}"] = getattr(run, name).cpu().numpy()
            for name in ("sums", "counts", "extremes"):
                out[f"{name}{b}"] = getattr(run, name)
            if run.optimal is not None:
                out[f"optimal{b}"] = run.optimal.cpu().numpy()
        return out

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        self.t = int(state["t"])
        for b, run in enumerate(self._runs):
            for name in ("W", "u", "b", "q"):
                getattr(run, name).copy_(torch.as_tensor(state[f"{name}{b}"]))
            for name in ("sums", "counts", "extremes"):
                setattr(run, name, state[f"{name}{b}"].copy())
            if f"optimal{b}" in state:
                run.optimal = torch.as_tensor(state[f"optimal{b}"], device=run.W.device)
