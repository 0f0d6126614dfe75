"""Gaussian data: one signal token in each sequence, independent noise elsewhere."""

from __future__ import annotations

import numpy as np

from numerics._room import require
from numerics.errors import InputError
from numerics.problem import Problem

STRONG_SIGNAL = "gaussian:n=20,T=5,d=200,noise=0.25"
WEAK_SIGNAL = "gaussian:n=8,T=5,d=200,noise=1"
"""Two data sets for joint training, one in each regime.

From zero the decoder's first step goes along sum_i y_i sum_tau x_(i,tau): it scores a signal token by about
(n/2) signal^2, shared by the sequences of its label, and a noise token by noise^2 d, its own. The strong
signal (40 against 12.5) makes the signal tokens the optimal ones; where it is weak (16 against 200), each
sequence is fitted by its noise tokens.
"""


def gaussian(
    *,
    seed: int = 0,
    n: int = 5,
    T: int = 4,
    d: int = 400,
    signal: float = 2.0,
    noise: float = 0.1,
    query: str = "first",
    orthogonal: bool = True,
    decoder: float = 1.0,
) -> Problem:
    """Draw n sequences of T tokens in R^d: a signal mu_(y_i), the rest i.i.d. N(0, noise^2 I_d).

    The two signals are orthogonal vectors of norm `signal`, along the first two axes (the noise is
    isotropic, so this is no restriction); half of the labels are +1. The decoder is u = decoder (mu_+ -
    mu_-)/signal^2: a signal token scores `decoder`, noise scores 0 on average. The signal's position is
    uniform.

    Options: `query="first"` attends from the first token, which is then noise; `query="own"` from one more,
    independent noise vector per sequence. `orthogonal=True` removes the noise's components along the
    signals, so that all non-optimal scores are 0 and assumption (E) holds exactly; `orthogonal=False` is
    the literal model, with unequal scores of standard deviation sqrt(2) decoder noise/signal. Where noise
    outscores the signal, the optimal token is the noise token: keep noise/signal small.

    Model: signals plus noise as in the paper's Gaussian setting. Global convergence is the rule for d >>
    n^2 log(nT), where the constraints are nearly acute (assumption (N)). Raises InputError for sizes or
    scales out of range, and when the data do not fit into memory.
    """
    if n < 1 or T < 2 or d < 3:
        raise InputError(f"gaussian needs n >= 1, T >= 2 and d >= 3, not n={n}, T={T}, d={d}")
    for name, value in (("signal", signal), ("noise", noise), ("decoder", decoder)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"gaussian needs a positive {name}, not {value}")
    if query not in {"first", "own"}:
        raise InputError(f'gaussian needs query "first" or "own", not "{query}"')
    if seed < 0:
        raise InputError(f"the seed must not be negative, and is {seed}")
    require(f"gaussian with n={n}, T={T}, d={d}", 8 * 4 * n * (T + 1) * d)
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.where(np.arange(n) % 2 == 0, 1.0, -1.0))
    position = rng.integers(1 if query == "first" else 0, T, size=n)
    tokens = noise * rng.standard_normal((n, T, d))
    own = noise * rng.standard_normal((n, d))
    if orthogonal:
        tokens[..., :2] = 0.0
        own[:, :2] = 0.0
    signals = np.zeros((n, d))
    signals[np.arange(n), np.where(labels > 0, 0, 1)] = signal
    tokens[np.arange(n), position] = signals
    u = np.zeros(d)
    u[:2] = decoder / signal, -decoder / signal
    return Problem(tokens, None if query == "first" else own, labels, u)
