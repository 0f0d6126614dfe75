"""The compiled Gram-space step for eight runs at once, each a lane of the processor's vectors.

The same arithmetic as `_gram_compiled`, on arrays (rows, 8) whose last axis is the run: everything that a
step touches stays in the first cache, and a lane's numbers do not depend on its neighbours. A lane whose
attention sits on a wrong token is treated by the scalar code.
"""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from numba import njit

from numerics import _gram_record as at
from numerics._gram_cache import drop_stale
from numerics._gram_compiled import WRONG_SIDE, coefficients_in_logs, logs, record, step_length
from numerics._gram_vectors import (
    OPTIONS,
    WIDTH,
    absolute,
    exp,
    fma,
    least,
    load,
    some_below,
    splat,
    spread,
    sqrt,
    store,
    where_below,
)

TILE = 4  # rows of a run's own Gram matrix that are taken together


def shared_layout(K: np.ndarray, out: np.ndarray) -> None:
    """K (N, N), common to all lanes, as `_shared_product` reads it: column k of all rows, eight k at a time.

    out (ceil(N/8) N, 8) holds zeros on entry.
    """
    N = len(K)
    for place, first in enumerate(range(0, N, WIDTH)):
        out[place * N : (place + 1) * N, : min(WIDTH, N - first)] = K[:, first : first + WIDTH]


def own_entries(N: int) -> np.ndarray:
    """Which entries of a lane's K (N, N) `_own_product` reads, in its order: the upper half by tiles of rows.

    Entries of the flattened K; N^2 stands for the zeros that fill the last tile.
    """
    padded = -(-N // TILE) * TILE
    index = np.full((padded, padded), N * N)
    index[:N, :N] = np.arange(N * N).reshape(N, N)
    return np.concatenate([index[k:, k : k + TILE].ravel() for k in range(0, padded, TILE)])


@njit(**OPTIONS)
@no_type_check
def _shared_product(K, c, y):
    """y = K c, one K for all lanes, in `shared_layout`; y has a multiple of eight rows."""
    N = K.shape[0] * WIDTH // y.shape[0]
    row = 0
    for k in range(0, y.shape[0], WIDTH):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = splat(0.0)
        for j in range(N):
            value = load(c, j)
            s0 = fma(spread(K, row, 0), value, s0)
            s1 = fma(spread(K, row, 1), value, s1)
            s2 = fma(spread(K, row, 2), value, s2)
            s3 = fma(spread(K, row, 3), value, s3)
            s4 = fma(spread(K, row, 4), value, s4)
            s5 = fma(spread(K, row, 5), value, s5)
            s6 = fma(spread(K, row, 6), value, s6)
            s7 = fma(spread(K, row, 7), value, s7)
            row += 1
        store(y, k, s0)
        store(y, k + 1, s1)
        store(y, k + 2, s2)
        store(y, k + 3, s3)
        store(y, k + 4, s4)
        store(y, k + 5, s5)
        store(y, k + 6, s6)
        store(y, k + 7, s7)


@njit(**OPTIONS)
@no_type_check
def _own_product(K, c, y, N):
    """y = K c, a K for each lane, by its `own_entries`: every entry is read once and used on both sides."""
    for k in range(y.shape[0]):
        store(y, k, splat(0.0))
    last = N + (-N) % TILE
    entry = 0
    for k in range(0, last, TILE):
        c0, c1, c2, c3 = load(c, k), load(c, k + 1), load(c, k + 2), load(c, k + 3)
        s0, s1, s2, s3 = load(y, k), load(y, k + 1), load(y, k + 2), load(y, k + 3)
        for j in range(k, k + TILE):
            value = load(c, j)
            s0 = fma(load(K, entry), value, s0)
            s1 = fma(load(K, entry + 1), value, s1)
            s2 = fma(load(K, entry + 2), value, s2)
            s3 = fma(load(K, entry + 3), value, s3)
            entry += TILE
        for j in range(k + TILE, last):
            value = load(c, j)
            k0, k1, k2, k3 = load(K, entry), load(K, entry + 1), load(K, entry + 2), load(K, entry + 3)
            s0 = fma(k0, value, s0)
            s1 = fma(k1, value, s1)
            s2 = fma(k2, value, s2)
            s3 = fma(k3, value, s3)
            store(y, j, fma(k0, c0, fma(k1, c1, load(y, j))) + fma(k2, c2, k3 * c3))
            entry += TILE
        store(y, k, s0)
        store(y, k + 1, s1)
        store(y, k + 2, s2)
        store(y, k + 3, s3)


@njit(**OPTIONS)
@no_type_check
def _pulls(c, gap, first, last, phi, weight, delta, tight, beneath):
    """c_k <- weight c_k (m - g_k) on one sequence, gaps ascending; phi_k = phi c_k, `beneath` is scratch.

    Lanes where delta = best - m is below the least gap's half take gap_k - delta, which loses nothing there.
    In the others m - g_k is the sum over tokens scored above k less that over tokens below, each built up
    from terms of one sign.
    """
    mass = push = splat(0.0)
    for k in range(last - 1, first - 1, -1):
        store(beneath, k, push)
        mass = mass + load(c, k)
        if k > first:
            push = fma(mass, load(gap, k) - load(gap, k - 1), push)
    above = splat(1.0)  # p in units of p: attention on the tokens scored above k
    pull = before = splat(0.0)
    for k in range(first, last):
        here = load(gap, k)
        value = load(c, k)
        pull = fma(here - before, above, pull)
        quick = here - delta
        careful = (pull - phi * load(beneath, k)) * weight[1]
        store(c, k, value * (weight[0] * where_below(tight, delta, careful, quick)))
        above = fma(phi, value, above)
        before = here


@njit(**OPTIONS)
@no_type_check
def _coefficients(factor, start, gap, tight, best, c, odds, loss, beneath):
    """Turn c = e^(-mu)/factor into the gradient's coefficients up to factor/n, in all lanes.

    odds and loss get (1-p_i)/p_i and g_(i,o_i) - m_i by sequence, both up to the factor.
    """
    for i in range(start.shape[0] - 1):
        first, last = start[i], start[i + 1]
        total = lost = splat(0.0)
        for k in range(first, last):
            value = load(c, k)
            total = total + value
            lost = fma(value, load(gap, k), lost)
        inverse = fma(factor, total, splat(1.0))  # 1/p
        lost = lost / inverse
        store(odds, i, total)
        store(loss, i, lost)
        delta = factor * lost
        weight = 1.0 / ((exp(load(best, i) - delta) + 1.0) * inverse)
        least_gap = load(tight, i)
        if some_below(least_gap, delta):
            _pulls(c, gap, first, last, factor, (weight, 1.0 / inverse), delta, least_gap, beneath)
        else:
            for k in range(first, last):
                store(c, k, load(c, k) * (weight * (load(gap, k) - delta)))


@njit(**OPTIONS)
@no_type_check
def _add(scalars, index, value):
    """Add to the compensated sums of all lanes."""
    old = load(scalars, index)
    new = old + value
    part = new - old
    store(scalars, index + 1, load(scalars, index + 1) + ((old - (new - part)) + (value - part)))
    store(scalars, index, new)


@njit(**OPTIONS)
@no_type_check
def _sum(scalars, index):
    """A compensated sum of all lanes."""
    return load(scalars, index) + load(scalars, index + 1)


@njit(**OPTIONS)
@no_type_check
def advance(
    begin,
    until,
    records,
    N,
    shared,
    K,
    start,
    gap,
    tight,
    best,
    sigmas,
    large,
    along,
    dual,
    law,
    scalars,
    nu,
    rho,
    rows,
    snapshots,
    c,
    y,
    odds,
    loss,
    lane,
    column,
    short,
):
    """Step eight runs from `begin` to `until`, recording at the steps in `records` (ascending).

    The arguments are those of the scalar code with a last axis of eight lanes: gap, along, dual, nu, rho (N,
    8); tight, best, sigmas (n, 8); large (8,); scalars (SCALARS, 8). K is in `shared_layout` when `shared`,
    otherwise the lanes' `own_entries`; start (n+1,) is common. By lane: law (8, 5), rows (8, len(records),
    ROWS), snapshots (8, len(records), N). Scratch: c, y (N rounded up to 8, 8), zero in the padding; odds,
    loss (n, 8); lane (8, 8); column (4, N) and short (4, n) for one lane alone.
    """
    n = start.shape[0] - 1
    log_n = math.log(n)
    excesses = False  # whether a rule asks for the excess loss at every step
    plain = True  # whether every rule is a fixed length
    for b in range(WIDTH):
        lane[0, b] = min(law[b, 0], law[b, 4])
        excesses = excesses or law[b, 3] != 0.0
        plain = plain and law[b, 1] == 0.0 and law[b, 2] == 0.0 and law[b, 3] == 0.0
    lengths, scale, low, squares = lane[0], lane[1], lane[2], lane[3]
    leak, leaked, excess = lane[4], lane[5], lane[6]
    done = 0
    t = begin
    while True:
        recording = done < records.shape[0] and records[done] == t
        looking = recording or excesses
        bottom = load(nu, 0)
        for k in range(1, N):
            bottom = least(bottom, load(nu, k))
        shift = _sum(scalars, at.SHIFT)
        log_factor = 0.0 - (shift + bottom)
        store(lane, 1, log_factor)
        store(lane, 2, bottom)
        for k in range(N):
            store(c, k, exp(bottom - load(nu, k)))
        factor = exp(least(log_factor, splat(700.0)))
        _coefficients(factor, start, gap, tight, best, c, odds, loss, y)
        for b in range(WIDTH):
            if large[b] or scale[b] > -WRONG_SIDE:  # this lane alone, by the scalar code
                for k in range(N):
                    column[0, k], column[3, k] = nu[k, b], gap[k, b]
                for i in range(n):
                    short[0, i] = best[i, b]
                scale[b], leak[b], leaked[b], excess[b] = coefficients_in_logs(
                    column[0],
                    scalars[at.SHIFT, b] + scalars[at.SHIFT + 1, b],
                    start,
                    column[3],
                    short[0],
                    large[b],
                    column[1],
                    column[2],
                    looking,
                )
                for k in range(N):
                    c[k, b] = column[1, k]
            elif looking:
                for i in range(n):
                    short[1, i], short[2, i], short[3, i] = odds[i, b], loss[i, b], sigmas[i, b]
                leak[b], leaked[b], excess[b] = logs(scale[b], short[3], short[1], short[2])
        if shared:
            _shared_product(K, c, y)
        else:
            _own_product(K, c, y, N)
        square = size = total = progress = turned = splat(0.0)
        for k in range(N):
            value = load(c, k)
            square = fma(value, load(y, k), square)
            size = size + absolute(value)
            total = total + value
            progress = fma(value, load(along, k), progress)
            turned = fma(value, load(nu, k), turned)
        if recording or not plain:
            store(lane, 3, square)
            for b in range(WIDTH):
                log_norm, length_here = -math.inf, 0.0
                if squares[b] > 0.0:
                    if recording or law[b, 2] != 0.0:
                        log_norm = scale[b] - log_n + 0.5 * math.log(squares[b])
                    length_here = step_length(law[b], t, log_norm, excess[b])
                lengths[b] = length_here
                if recording:
                    row = rows[b, done]
                    record(row, scalars[:, b], length_here, leak[b], leaked[b], excess[b], low[b], log_norm)
                    for k in range(N):
                        snapshots[b, done, k] = rho[k, b]
        if recording:
            done += 1
        if t == until:
            return
        zero, one = splat(0.0), splat(1.0)
        length = where_below(zero, square, load(lane, 0), zero)
        root = sqrt(where_below(zero, square, square, one))
        step = length / root
        drift = length * root / where_below(zero, size, size, one)  # what every gap on the support gains
        before = _sum(scalars, at.SQUARE)
        for k in range(N):
            store(nu, k, load(nu, k) + (step * load(y, k) - drift))
            store(rho, k, fma(step, load(c, k) - progress * load(dual, k), load(rho, k)))
        turned = fma(shift, total, turned)
        square_length = length * length
        _add(scalars, at.SHIFT, drift)
        _add(scalars, at.TARGET, step * progress)
        _add(scalars, at.SQUARE, fma(2.0 * step, turned, square_length))
        _add(scalars, at.PATH, length)
        _add(scalars, at.SEPARATOR, step * total)
        moved = where_below(zero, before, before, one)
        _add(scalars, at.CURVATURE, where_below(zero, before, square_length / sqrt(moved), zero))
        t += 1


drop_stale(advance)
