"""The attention layer seen through its logit gaps: attention, loss and gradient without cancellation.

Setting (the paper, section 2): attention phi_i = softmax(X_i W z_i), scores g_(i,tau) = y_i u'x_(i,tau),
margin m_i = sum_tau phi_(i,tau) g_(i,tau), loss L = (1/n) sum_i log(1 + exp(-m_i)). Everything the dynamics
need follows from the logit gaps mu_k = <A_k, W> of the constraints k = (i, tau), tau != o_i, by

    -grad L = sum_k c_k A_k,      c_(i,tau) = sigma(-m_i)/n  phi_(i,tau) (m_i - g_(i,tau)),
    m_i - g_(i,tau) = sum_s phi_(i,s) (g_(i,s) - g_(i,tau)),
    L - L* = (1/n) sum_i log(1 + expm1(delta_i) sigma(-g_(i,o_i))),    delta_i = g_(i,o_i) - m_i
           = sum_tau phi_(i,tau) (g_(i,o_i) - g_(i,tau)) >= 0.

The textbook form phi (g - m) loses every digit of the direction once 1 - p_i < 1e-16 (logit gaps near 37),
and autograd with it; here every sum is formed from logarithms of its terms, so gaps of 1e6 do no harm.

Arrays are torch tensors. Constraints are laid out as (n, J): the non-optimal tokens of each sequence in their
order, J the most of any sequence; `valid` is false at padding. Leading dimensions are batches of runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from numerics.problem import Problem

_SERIES = -37.0  # below, log(log1p(e^x)) = x - e^x/2 to the last digit


@dataclass(frozen=True)
class Scores:
    """The decoder's part: what stays fixed while W moves.

    best (..., n) is g_(i,o_i); gap (..., n, J) is g_(i,o_i) - g_(i,tau) > 0 (1 at padding); valid
    (..., n, J). log_difference and sign (..., n, J, 1+J) hold log |g_s - g_tau| and the sign, s over the
    optimal token and the others, for each constraint's tau.
    """

    best: Float[Tensor, "*batch n"]
    gap: Float[Tensor, "*batch n J"]
    valid: Bool[Tensor, "*batch n J"]
    log_gap: Float[Tensor, "*batch n J"]
    log_difference: Float[Tensor, "*batch n J S"]
    sign: Float[Tensor, "*batch n J S"]

    @classmethod
    def of(
        cls,
        best: Float[np.ndarray, "*batch n"],
        gap: Float[np.ndarray, "*batch n J"],
        valid: Bool[np.ndarray, "*batch n J"],
        *,
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float64,
    ) -> Scores:
        """Precompute the pairwise score differences, in float64, then move them to the device and dtype."""
        gap = np.where(valid, gap, 1.0)
        sources = np.concatenate([np.zeros((*gap.shape[:-1], 1)), gap], axis=-1)
        present = np.concatenate([np.ones((*gap.shape[:-1], 1), bool), valid], axis=-1)
        difference = gap[..., :, None] - sources[..., None, :]
        difference[~(valid[..., :, None] & present[..., None, :])] = 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(difference))

        def move(value: np.ndarray) -> Tensor:
            return torch.as_tensor(value, dtype=dtype, device=device)

        return cls(
            torch.as_tensor(best, dtype=torch.float64, device=device),
            move(gap),
            torch.as_tensor(valid, device=device),
            move(np.log(gap)),
            move(logs),
            move(np.sign(difference)),
        )


@dataclass(frozen=True)
class Reading:
    """What the loss looks like at given logit gaps.

    log_attention (..., n, J): log phi_(i,tau); log_optimal (..., n): log p_i; log_leak (..., n):
    log(1 - p_i); log_coefficient (..., n, J): log |c_k| + shift (take shift off for the true value), -inf at
    padding; sign the signs of the c_k; log_excess (...): log(L - L*), -inf when no sequence has two tokens.
    """

    log_attention: Float[Tensor, "*batch n J"]
    log_optimal: Float[Tensor, "*batch n"]
    log_leak: Float[Tensor, "*batch n"]
    log_coefficient: Float[Tensor, "*batch n J"]
    sign: Float[Tensor, "*batch n J"]
    log_excess: Float[Tensor, "*batch"]


def read(
    gaps: Float[Tensor, "*batch n J"], scores: Scores, *, shift: Float[Tensor, "*batch"] | None = None
) -> Reading:
    """Attention, gradient coefficients and excess loss at the logit gaps mu = gaps + shift.

    A shift common to all constraints (a number a run) lets gaps of 1e6 keep the digits of their differences,
    on which alone the direction of the gradient depends once attention is concentrated. What belongs to a
    sequence or a run is float64, what belongs to a constraint has the dtype of the gaps.
    """
    n = gaps.shape[-2]
    zero = torch.zeros((), dtype=torch.float64, device=gaps.device)
    minus_inf = zero - torch.inf
    fall = torch.where(scores.valid, -gaps, minus_inf.to(gaps.dtype))
    offset = zero if shift is None else shift[..., None].double()
    log_odds = torch.logsumexp(fall, -1).double() - offset  # log((1 - p)/p)
    log_optimal = -torch.logaddexp(zero, log_odds)
    log_leak = torch.where(log_odds == minus_inf, minus_inf, -torch.logaddexp(zero, -log_odds))
    unshifted = fall + log_optimal[..., None].to(gaps.dtype)
    log_attention = unshifted - offset[..., None].to(gaps.dtype)

    log_delta = torch.logsumexp(unshifted + scores.log_gap, -1).double() - offset
    delta = torch.exp(log_delta)
    log_expm1 = torch.where(
        delta > 1e-8, delta + torch.log(-torch.expm1(-delta.clamp(min=1e-8))), log_delta + delta / 2
    )
    log_growth = log_expm1 - torch.logaddexp(zero, scores.best)
    log_excess = torch.where(
        log_growth < _SERIES,
        log_growth - torch.exp(log_growth) / 2,
        torch.log(torch.logaddexp(zero, log_growth.clamp(min=_SERIES - 1))),
    )

    # m - g_tau, each constraint's terms scaled by the largest so that none that matters underflows.
    everyone = torch.cat([log_optimal[..., None].to(gaps.dtype), log_attention], -1)
    terms = everyone[..., None, :] + scores.log_difference
    largest = torch.amax(terms, -1, keepdim=True)
    largest = torch.where(largest == -torch.inf, 0.0, largest)
    pull = torch.sum(torch.exp(terms - largest) * scores.sign, -1)
    log_pull = torch.log(torch.abs(pull)) + largest[..., 0]
    log_sigma = -torch.logaddexp(zero, scores.best - delta) - float(np.log(n))
    return Reading(
        log_attention,
        log_optimal,
        log_leak,
        unshifted + log_pull + log_sigma[..., None].to(gaps.dtype),
        torch.sign(pull),
        torch.logsumexp(log_excess, -1) - float(np.log(n)),
    )


def optimal_loss(best: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """L* = (1/n) sum_i log(1 + exp(-g_(i,o_i))): the loss when all attention is on the optimal tokens."""
    return torch.mean(torch.logaddexp(torch.zeros_like(best), -best), -1)


@dataclass(frozen=True)
class Slots:
    """Where the N constraints of a problem stand in the (n, J) layout."""

    sequence: np.ndarray
    slot: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, problem: Problem, *, width: int | None = None) -> Slots:
        """Slots in order of sequence, then token; `width` asks for a J larger than needed."""
        counts = problem.lengths - 1
        sequence = problem.constraint_sequence
        starts = np.cumsum(counts) - counts
        slot = np.arange(problem.n_constraints) - starts[sequence]
        needed = int(counts.max(initial=1))
        return cls(sequence, slot, (problem.n, max(needed, 1) if width is None else width))

    def pad(self, values: np.ndarray, fill: float | bool = 0.0) -> np.ndarray:
        """Values (N, ...) spread over (n, J, ...), `fill` at padding."""
        out = np.full((*self.shape, *values.shape[1:]), fill, dtype=values.dtype)
        out[self.sequence, self.slot] = values
        return out

    def flatten(self, values: np.ndarray) -> np.ndarray:
        """Values (..., n, J) at the constraints, (..., N)."""
        return values[..., self.sequence, self.slot]

    def scores(self, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(best, gap, valid) of the problem, what `Scores.of` asks for."""
        best = problem.scores[np.arange(problem.n), problem.optimal]
        valid = self.pad(np.ones(problem.n_constraints, dtype=bool), False)
        return best, self.pad(problem.score_gaps, 1.0), valid


@dataclass(frozen=True)
class Landscape:
    """The layer at one W, constraints in the problem's order, everything as NumPy.

    logit_gaps (N,), log_leak (n,) = log(1 - p_i), log_attention (N,), log_coefficients (N,) and signs (N,) of
    the c_k with -grad L = sum_k c_k A_k, loss, log_excess_loss = log(L - L*), optimal_loss = L*.
    """

    logit_gaps: Float[np.ndarray, " N"]
    log_leak: Float[np.ndarray, " n"]
    log_attention: Float[np.ndarray, " N"]
    log_coefficients: Float[np.ndarray, " N"]
    signs: Float[np.ndarray, " N"]
    loss: float
    log_excess_loss: float
    optimal_loss: float


def landscape(problem: Problem, W: Float[np.ndarray, "d d"]) -> Landscape:
    """Evaluate the layer on a problem at W, in float64."""
    mu = problem.logit_gaps(W)
    slots = Slots.of(problem)
    scores = Scores.of(*slots.scores(problem))
    reading = read(torch.from_numpy(slots.pad(mu)), scores)
    floor = float(optimal_loss(scores.best))
    log_excess = float(reading.log_excess)
    return Landscape(
        mu,
        reading.log_leak.numpy(),
        slots.flatten(reading.log_attention.numpy()),
        slots.flatten(reading.log_coefficient.numpy()),
        slots.flatten(reading.sign.numpy()),
        floor + float(np.exp(log_excess)),
        log_excess,
        floor,
    )


def gradient_direction(problem: Problem, W: Float[np.ndarray, "d d"]) -> tuple[np.ndarray, float]:
    """(-grad L/||grad L|| as a d x d matrix, log ||grad L||) at W; all digits at any logit gap."""
    view = landscape(problem, W)
    shift = float(np.max(view.log_coefficients, initial=-np.inf))
    if shift == -np.inf:
        return np.zeros((problem.d, problem.d)), -np.inf
    total = problem.combine(view.signs * np.exp(view.log_coefficients - shift))
    norm = float(np.linalg.norm(total))
    return total / norm, shift + float(np.log(norm))
