"""The attention layer in ball arithmetic: the exact problem, its gradient's coefficients, the step's length.

The float reference is `numerics.attention`; the formulas are the same. Everything is at the working precision
of flint's context, and every result encloses the number it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

from numerics.problem import Problem
from numerics.steps import Law


class Sequence(NamedTuple):
    """One sequence's constraints: rows first..last-1, and its scores."""

    first: int
    last: int
    best: arb  # g_(i,o_i)
    settled: arb  # sigma(-g_(i,o_i))


@dataclass(frozen=True, eq=False)
class ExactProblem:
    """A problem's exact floats in balls of the working precision: K, scores, score gaps, L*, R."""

    gram: arb_mat
    sequences: tuple[Sequence, ...]
    rows: tuple[int, ...]  # each constraint's sequence
    gaps: tuple[arb, ...]
    optimal_loss: arb
    radius: arb
    norms: tuple[arb, ...]  # bounds on ||A_k||
    n: int

    @classmethod
    def of(cls, problem: Problem) -> ExactProblem:
        """Enclose everything the dynamics need; differences are of the exact floats."""
        i = problem.constraint_sequence
        optimal = problem.tokens[np.arange(problem.n), problem.optimal]
        differences = _exact_differences(problem)
        tokens = differences * differences.transpose()
        queries = arb_mat(problem.queries.tolist())
        pairs = queries * queries.transpose()
        rows = i.tolist()
        N = len(rows)
        gram = arb_mat([[tokens[k, m] * pairs[rows[k], rows[m]] for m in range(N)] for k in range(N)])
        used = np.flatnonzero(problem.decoder)
        decoder = arb_mat(len(used), 1, problem.decoder[used].tolist())
        best = (arb_mat(optimal[:, used].tolist()) * decoder).entries() if len(used) else []
        other = arb_mat(problem.tokens[i, problem.constraint_token][:, used].tolist()) * decoder
        labels = [arb(float(y)) for y in problem.labels]
        scores = [y * x for y, x in zip(labels, best, strict=True)]
        gaps = [labels[s] * (best[s] - x) for s, x in zip(rows, other.entries(), strict=True)]
        starts = np.searchsorted(i, np.arange(problem.n + 1)).tolist()
        sequences = [
            Sequence(first, last, score, 1 / (1 + score.exp()))
            for first, last, score in zip(starts[:-1], starts[1:], scores, strict=True)
        ]
        floor = sum(((-score).exp().log1p() for score in scores), arb(0)) / problem.n
        largest = gram[0, 0]
        for k in range(1, N):
            largest = largest.max(gram[k, k])
        norms = tuple(gram[k, k].sqrt().abs_upper() for k in range(N))
        return cls(gram, tuple(sequences), tuple(rows), tuple(gaps), floor, largest.sqrt(), norms, problem.n)


def _exact_differences(problem: Problem) -> arb_mat:
    i = problem.constraint_sequence
    optimal = problem.tokens[i, problem.optimal[i]]
    return arb_mat(optimal.tolist()) - arb_mat(problem.tokens[i, problem.constraint_token].tolist())


def logit_gaps(problem: Problem, W: np.ndarray) -> list[arb]:
    """<A_k, W>, enclosed."""
    towards = arb_mat(problem.queries.tolist()) * arb_mat(np.asarray(W, dtype=float).T.tolist())
    across = _exact_differences(problem) * towards.transpose()  # (N, n)
    return [across[k, i] for k, i in enumerate(problem.constraint_sequence.tolist())]


def _above(odds: list[arb], gaps: Sequence_[arb], lost: arb, optimal: arb) -> list[arb]:
    """m - g_k = g_o - g_k - lost, without cancellation at a wrong token that holds all attention."""
    out = [g - lost for g in gaps]
    k = max(range(len(odds)), key=lambda k: odds[k].mid())
    if odds[k] > 1:
        out[k] = (
            gaps[k] + sum((a * (gaps[k] - g) for a, g in zip(odds, gaps, strict=True)), arb(0))
        ) * optimal
    return out


class Part(NamedTuple):
    """One sequence's share: exp(-mu_k), g_o - g_k - (g_o - m), p_i, and sigma(-m_i)."""

    odds: list[arb]
    above: list[arb]
    optimal: arb
    slope: arb


class Look(NamedTuple):
    """The layer at given logit gaps: c_k, per sequence 1 - p_i, L - L*, and what they were made of."""

    coefficients: list[arb]
    leaks: list[arb]
    excess: arb
    parts: list[Part]
    n: int

    def attention(self) -> list[arb]:
        """phi_k, the attention on each token that is not optimal."""
        return [a * part.optimal for part in self.parts for a in part.odds]

    def leaning(self) -> list[arb]:
        """phi_k (m - g_k)."""
        return [
            a * x * part.optimal for part in self.parts for a, x in zip(part.odds, part.above, strict=True)
        ]

    def weighted_odds(self) -> list[arb]:
        """phi_k sigma(-m)/n, which is c_k/(m - g_k)."""
        return [a * (part.optimal * part.slope / self.n) for part in self.parts for a in part.odds]

    def slopes_left(self) -> list[arb]:
        """sigma(m) of each constraint's sequence."""
        return [1 - part.slope for part in self.parts for _ in part.odds]


def look_at(exact: ExactProblem, mu: list[arb]) -> Look:
    """c_(i,tau) = sigma(-m_i)/n phi_(i,tau) (m_i - g_(i,tau)), with g_(i,o_i) - m_i summed from its terms."""
    coefficients: list[arb] = []
    leaks: list[arb] = []
    parts: list[Part] = []
    excess = arb(0)
    for first, last, best, settled in exact.sequences:
        if first == last:
            continue
        odds = [(-x).exp() for x in mu[first:last]]
        gaps = exact.gaps[first:last]
        total = sum(odds, arb(0))
        optimal = 1 / (1 + total)
        lost = sum((a * g for a, g in zip(odds, gaps, strict=True)), arb(0)) * optimal
        slope = 1 / (1 + (best - lost).exp())
        weight = optimal * slope / exact.n
        above = _above(odds, gaps, lost, optimal)
        coefficients += [weight * a * x for a, x in zip(odds, above, strict=True)]
        leaks.append(total * optimal)
        parts.append(Part(odds, above, optimal, slope))
        excess += (lost.expm1() * settled).log1p()
    return Look(coefficients, leaks, excess / exact.n, parts, exact.n)


def step_length(law: Law, t: int, norm: arb, excess: arb) -> tuple[arb, arb, tuple[float, float]]:
    """(e_t, e_t/||grad L||, (p, q) of the branch e_t ~ ||grad L||^p (L - L*)^q) of the rule.

    The first two are each formed without the other's rounding. (p, q) is (0, 0) at the cap, and (NaN, NaN)
    where the balls do not tell which branch it is.
    """
    scale = arb(law.scale)
    if law.exponent:
        scale *= arb(t + 1) ** (-arb(law.exponent))
    if law.q:
        scale *= _power(excess, law.q)
    length, factor = scale * _power(norm, law.p), scale * _power(norm, law.p - 1)
    if law.cap == math.inf:
        return length, factor, (law.p, law.q)
    cap = arb(law.cap)
    if length < cap:
        return length, factor, (law.p, law.q)
    if length >= cap:
        return cap, cap / norm, (0.0, 0.0)
    return length.min(cap), factor.min(cap / norm), (math.nan, math.nan)


def _power(x: arb, exponent: float) -> arb:
    if exponent == 0:
        return arb(1)
    return x ** int(exponent) if exponent == int(exponent) else x ** arb(exponent)


def dot(a: list[arb], b: list[arb]) -> arb:
    """The sum of the products."""
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))
