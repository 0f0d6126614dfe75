"""Norms of W_0's residual plus combinations of the A_k, eight of them at once.

Compiled rather than handed to BLAS, whose last bit depends on how many rows a call has: recorded steps come
in portions that depend on the clock, and a run's history must not.
"""

from __future__ import annotations

import math
from typing import no_type_check

from numba import njit

from numerics._gram_cache import drop_stale
from numerics._gram_vectors import OPTIONS, WIDTH, fma, load, splat, store


@njit(**OPTIONS)
@no_type_check
def residual_norms(rho, starts, differences, queries, start, norms, coefficients, pulls):
    """norms[s, r] = ||starts[s] + sum_k rho[s, r, k] A_k|| for every row r of every start s.

    rho (S, rows, N); starts (S, b, a); differences (a, N) and queries (b, n), one column a constraint and a
    sequence; start (n+1,). Scratch: coefficients (N, 8), zero on entry, and pulls (n, 8).
    """
    n = pulls.shape[0]
    rows = rho.shape[1]
    for s in range(rho.shape[0]):
        for first in range(0, rows, WIDTH):
            lanes = min(WIDTH, rows - first)
            for k in range(rho.shape[2]):
                for lane in range(lanes):
                    coefficients[k, lane] = rho[s, first + lane, k]
            square = splat(0.0)
            for x in range(differences.shape[0]):
                for i in range(n):
                    pull = splat(0.0)
                    for k in range(start[i], start[i + 1]):
                        pull = fma(splat(differences[x, k]), load(coefficients, k), pull)
                    store(pulls, i, pull)
                for z in range(queries.shape[0]):
                    total = splat(starts[s, z, x])
                    for i in range(n):
                        total = fma(splat(queries[z, i]), load(pulls, i), total)
                    square = fma(total, total, square)
            store(pulls, 0, square)
            for lane in range(lanes):
                norms[s, first + lane] = math.sqrt(pulls[0, lane])


drop_stale(residual_norms)
