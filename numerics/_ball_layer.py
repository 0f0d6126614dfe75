"""The attention layer in ball arithmetic: the exact problem, its gradient's coefficients, the step's length.

The float reference is `numerics.attention`; the formulas are the same. Everything is at the working precision
of flint's context, and every result encloses the number it stands for.
"""

from __future__ import annotations

import math
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
    gaps: tuple[arb, ...]
    optimal_loss: arb
    radius: arb
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
        return cls(gram, tuple(sequences), tuple(gaps), floor, largest.sqrt(), problem.n)


def _exact_differences(problem: Problem) -> arb_mat:
    i = problem.constraint_sequence
    optimal = problem.tokens[i, problem.optimal[i]]
    return arb_mat(optimal.tolist()) - arb_mat(problem.tokens[i, problem.constraint_token].tolist())


def logit_gaps(problem: Problem, W: np.ndarray) -> list[arb]:
    """<A_k, W>, enclosed."""
    towards = arb_mat(problem.queries.tolist()) * arb_mat(np.asarray(W, dtype=float).T.tolist())
    across = _exact_differences(problem) * towards.transpose()  # (N, n)
    return [across[k, i] for k, i in enumerate(problem.constraint_sequence.tolist())]


class Look(NamedTuple):
    """The layer at given logit gaps: c_k, per sequence 1 - p_i, and L - L*."""

    coefficients: list[arb]
    leaks: list[arb]
    excess: arb


def look_at(exact: ExactProblem, mu: list[arb]) -> Look:
    """c_(i,tau) = sigma(-m_i)/n phi_(i,tau) (m_i - g_(i,tau)), with g_(i,o_i) - m_i summed from its terms."""
    coefficients: list[arb] = []
    leaks: list[arb] = []
    excess = arb(0)
    for first, last, best, settled in exact.sequences:
        if first == last:
            continue
        odds = [(-x).exp() for x in mu[first:last]]
        gaps = exact.gaps[first:last]
        total = sum(odds, arb(0))
        optimal = 1 / (1 + total)
        lost = sum((a * g for a, g in zip(odds, gaps, strict=True)), arb(0)) * optimal
        weight = optimal / (exact.n * (1 + (best - lost).exp()))
        coefficients += [weight * a * (g - lost) for a, g in zip(odds, gaps, strict=True)]
        leaks.append(total * optimal)
        excess += (lost.expm1() * settled).log1p()
    return Look(coefficients, leaks, excess / exact.n)


def step_length(law: Law, t: int, norm: arb, excess: arb) -> tuple[arb, arb]:
    """(e_t, e_t/||grad L||) of the rule, each formed without the other's rounding."""
    scale = arb(law.scale)
    if law.exponent:
        scale *= arb(t + 1) ** (-arb(law.exponent))
    if law.q:
        scale *= _power(excess, law.q)
    length, factor = scale * _power(norm, law.p), scale * _power(norm, law.p - 1)
    if law.cap == math.inf:
        return length, factor
    cap = arb(law.cap)
    if length < cap:
        return length, factor
    if length >= cap:
        return cap, cap / norm
    return length.min(cap), factor.min(cap / norm)


def _power(x: arb, exponent: float) -> arb:
    if exponent == 0:
        return arb(1)
    return x ** int(exponent) if exponent == int(exponent) else x ** arb(exponent)


def dot(a: list[arb], b: list[arb]) -> arb:
    """The sum of the products."""
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))
