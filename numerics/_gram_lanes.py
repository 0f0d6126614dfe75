"""The compiled Gram-space step for many runs of one problem: a run is a lane of the processor's vectors.

The same arithmetic as `_gram_compiled`, on arrays whose last axis is the run. Every loop then fills whole
vectors and the Gram matrix is read once for all lanes, so that a run costs half of what it costs alone.
A lane whose attention sits on a wrong token is taken out and treated by the scalar code.
"""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from numba import njit

from numerics._gram_compiled import (
    _FAST,
    _LN2_HIGH,
    _LN2_LOW,
    _LOG2E,
    _OPTIONS,
    _ROUND,
    _WRONG_SIDE,
    _coefficients,
    _coefficients_in_logs,
    _length,
    _logs,
    _weights,
)
from numerics._gram_record import (
    CURVATURE,
    PATH,
    ROW_CURVATURE,
    ROW_EXCESS,
    ROW_GAP,
    ROW_GRADIENT,
    ROW_LEAK,
    ROW_LEAKED,
    ROW_LENGTH,
    ROW_PATH,
    ROW_SEPARATOR,
    ROW_TARGET,
    SEPARATOR,
    SHIFT,
    SQUARE,
    TARGET,
)

LANES = 64  # at most, in a block; enough to make up for the start of each vector loop


@njit(**_OPTIONS)
@no_type_check
def _add(total, kept, value):
    """Add to the compensated sums of all lanes."""
    for b in range(value.shape[0]):
        old = total[b]
        new = old + value[b]
        part = new - old
        kept[b] += (old - (new - part)) + (value[b] - part)
        total[b] = new


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _lowest(nu, low):
    """The smallest entry of each lane."""
    for b in range(low.shape[0]):
        low[b] = nu[0, b]
    for k in range(1, nu.shape[0]):
        for b in range(low.shape[0]):
            low[b] = min(low[b], nu[k, b])


@njit(**_OPTIONS, fastmath={"contract"})
@no_type_check
def _exp_below(top, x, out, bits):
    """out = e^(top - x) in every lane, as `_weights` of the scalar code."""
    for b in range(x.shape[0]):
        value = max(top[b] - x[b], -745.0)
        whole = (value * _LOG2E + _ROUND) - _ROUND
        r = (value - whole * _LN2_HIGH) - whole * _LN2_LOW
        series = 1.0 / 6227020800.0
        series = series * r + 1.0 / 479001600.0
        series = series * r + 1.0 / 39916800.0
        series = series * r + 1.0 / 3628800.0
        series = series * r + 1.0 / 362880.0
        series = series * r + 1.0 / 40320.0
        series = series * r + 1.0 / 5040.0
        series = series * r + 1.0 / 720.0
        series = series * r + 1.0 / 120.0
        series = series * r + 1.0 / 24.0
        series = series * r + 1.0 / 6.0
        series = series * r + 0.5
        out[b] = (series * r) * r + (r + 1.0)
        power = np.int64(whole) + 1023
        bits[b] = (power if power > 0 else 0) << 52
    powers = bits.view(np.float64)
    for b in range(x.shape[0]):
        out[b] *= powers[b]


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _leaks(c, gap, first, last, odds, loss):
    """One sequence's sums of c and of c gap."""
    for b in range(odds.shape[0]):
        odds[b] = 0.0
        loss[b] = 0.0
    for k in range(first, last):
        for b in range(odds.shape[0]):
            odds[b] += c[k, b]
            loss[b] += c[k, b] * gap[k]


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _attend(factor, odds, loss, best, tight, delta, power, inverse, worst):
    """One sequence: inverse = 1/p, loss = (best - m)/factor, delta = best - m, power = -m."""
    for b in range(odds.shape[0]):
        inverse[b] = 1.0 + factor[b] * odds[b]
        loss[b] = loss[b] / inverse[b]
        delta[b] = factor[b] * loss[b]
        power[b] = delta[b] - best
        worst[b] = max(worst[b], delta[b] - tight)


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _scale(c, gap, first, last, delta, growth, inverse):
    """c_k <- p sigma(-m) c_k (gap_k - delta) on one sequence; growth is e^m, inverse is 1/p."""
    for b in range(delta.shape[0]):
        inverse[b] = 1.0 / ((1.0 + growth[b]) * inverse[b])
    for k in range(first, last):
        for b in range(delta.shape[0]):
            c[k, b] *= inverse[b] * (gap[k] - delta[b])


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _product(K, c, y):
    """y = K c, four constraints at a time; c's rows are a multiple of four."""
    for k in range(y.shape[0]):
        row = y[k]
        for b in range(row.shape[0]):
            row[b] = 0.0
        for j in range(0, c.shape[0], 4):
            k0, k1, k2, k3 = K[k, j], K[k, j + 1], K[k, j + 2], K[k, j + 3]
            c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
            for b in range(row.shape[0]):
                row[b] += (k0 * c0[b] + k1 * c1[b]) + (k2 * c2[b] + k3 * c3[b])


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _sums(c, y, nu, along, square, size, total, progress, turned):
    """c'Kc, sum |c|, sum c, <., M^> and <., W> but for the shift, in every lane."""
    lanes = square.shape[0]
    for b in range(lanes):
        square[b] = size[b] = total[b] = progress[b] = turned[b] = 0.0
    for k in range(y.shape[0]):
        for b in range(lanes):
            value = c[k, b]
            square[b] += value * y[k, b]
            size[b] += abs(value)
            total[b] += value
        for b in range(lanes):
            progress[b] += c[k, b] * along[k]
            turned[b] += c[k, b] * nu[k, b]


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _move(nu, rho, y, c, dual, rise, drift, step, progress):
    """One step of the logit gaps and of the residual's coefficients."""
    for k in range(nu.shape[0]):
        for b in range(rise.shape[0]):
            nu[k, b] += rise[b] * y[k, b] - drift[b]
        for b in range(rise.shape[0]):
            rho[k, b] += step[b] * (c[k, b] - progress[b] * dual[k])


@njit(**_OPTIONS)
@no_type_check
def advance(
    begin,
    until,
    records,
    K,
    start,
    sequence,
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
    bits,
    odds,
    loss,
    lane,
    column,
    column_bits,
    short,
):
    """Step a block of lanes from `begin` to `until`, recording at the steps in `records` (ascending).

    The arguments are those of the scalar code for one problem, the state transposed: scalars (SCALARS, L),
    nu and rho (N, L), law (L, 5). Scratch: c (padded N, L), zero in the padding; y, bits (N, L); odds, loss
    (n, L); lane (21, L); column (3, padded N), column_bits (padded N), short (5, n rounded up to 8) for one
    lane alone.
    """
    N, lanes = nu.shape
    n = start.shape[0] - 1
    log_n = math.log(n)
    low, factor, scale, zero = lane[0], lane[1], lane[2], lane[3]
    delta, power, inverse, worst = lane[4], lane[5], lane[6], lane[7]
    square, size, total, progress, turned = lane[8], lane[9], lane[10], lane[11], lane[12]
    length, rise, drift, step = lane[13], lane[14], lane[15], lane[16]
    leak, leaked, excess, value = lane[17], lane[18], lane[19], lane[20]
    alone_odds, alone_loss = short[0], short[1]
    for b in range(lanes):
        zero[b] = 0.0
    done = 0
    t = begin
    while True:
        recording = done < records.shape[0] and records[done] == t
        _lowest(nu, low)
        for k in range(N):
            _exp_below(low, nu[k], c[k], bits[k])
        for b in range(lanes):
            scale[b] = -(scalars[SHIFT, b] + scalars[SHIFT + 1, b] + low[b])
            value[b] = -min(scale[b], 700.0)
            worst[b] = -1.0
        _exp_below(zero, value, factor, bits[0])
        for i in range(n):
            _leaks(c, gap, start[i], start[i + 1], odds[i], loss[i])
            _attend(factor, odds[i], loss[i], best[i], tight[i], delta, power, inverse, worst)
            _exp_below(zero, power, value, bits[0])
            _scale(c, gap, start[i], start[i + 1], delta, value, inverse)
        for b in range(lanes):
            looking = recording or law[b, 3] != 0.0
            misled = large or scale[b] > -_WRONG_SIDE
            if misled or worst[b] > 0.0:  # this lane alone, by the scalar code
                for k in range(N):
                    column[0, k] = nu[k, b]
                shift = scalars[SHIFT, b] + scalars[SHIFT + 1, b]
                if misled:
                    scale[b], leak[b], leaked[b], excess[b] = _coefficients_in_logs(
                        column[0], shift, start, gap, best, large, column[1], column[2], looking
                    )
                else:
                    _weights(column[0], low[b], column[1], column_bits)
                    _coefficients(
                        scale[b],
                        start,
                        sequence,
                        gap,
                        tight,
                        best,
                        sigmas,
                        column[1],
                        alone_odds,
                        alone_loss,
                        short[2],
                        short[3],
                        short[4],
                        column_bits,
                    )
                for k in range(N):
                    c[k, b] = column[1, k]
            elif looking:
                for i in range(n):
                    alone_odds[i], alone_loss[i] = odds[i, b], loss[i, b]
            if looking and not misled:
                leak[b], leaked[b], excess[b] = _logs(scale[b], sigmas, alone_odds, alone_loss)
        _product(K, c, y)
        _sums(c, y, nu, along, square, size, total, progress, turned)
        for b in range(lanes):
            log_norm = -math.inf
            length[b] = rise[b] = drift[b] = step[b] = 0.0
            if square[b] > 0.0:
                if recording or law[b, 2] != 0.0:
                    log_norm = scale[b] - log_n + 0.5 * math.log(square[b])
                length[b] = _length(law[b], t, log_norm, excess[b])
            if recording:
                row = rows[b, done]
                row[ROW_PATH] = scalars[PATH, b] + scalars[PATH + 1, b]
                row[ROW_SEPARATOR] = scalars[SEPARATOR, b] + scalars[SEPARATOR + 1, b]
                row[ROW_CURVATURE] = scalars[CURVATURE, b] + scalars[CURVATURE + 1, b]
                row[ROW_LENGTH] = length[b]
                row[ROW_TARGET] = scalars[TARGET, b] + scalars[TARGET + 1, b]
                row[ROW_LEAK] = leak[b]
                row[ROW_LEAKED] = leaked[b]
                row[ROW_EXCESS] = excess[b]
                row[ROW_GAP] = scalars[SHIFT, b] + scalars[SHIFT + 1, b] + low[b]
                row[ROW_GRADIENT] = log_norm
                for k in range(N):
                    snapshots[b, done, k] = rho[k, b]
        if recording:
            done += 1
        if t == until:
            return
        for b in range(lanes):
            if length[b] > 0.0:
                step[b] = length[b] / math.sqrt(square[b])
                rise[b] = step[b]
                drift[b] = length[b] * math.sqrt(square[b]) / size[b]
                turned[b] += (scalars[SHIFT, b] + scalars[SHIFT + 1, b]) * total[b]
            value[b] = 2.0 * step[b] * turned[b] + length[b] * length[b]
            delta[b] = max(scalars[SQUARE, b] + scalars[SQUARE + 1, b], 0.0)
        _move(nu, rho, y, c, dual, rise, drift, step, progress)
        for b in range(lanes):
            progress[b] *= step[b]
            total[b] *= step[b]
        _add(scalars[SHIFT], scalars[SHIFT + 1], drift)
        _add(scalars[TARGET], scalars[TARGET + 1], progress)
        _add(scalars[SQUARE], scalars[SQUARE + 1], value)
        _add(scalars[PATH], scalars[PATH + 1], length)
        _add(scalars[SEPARATOR], scalars[SEPARATOR + 1], total)
        for b in range(lanes):
            value[b] = length[b] * length[b] / math.sqrt(delta[b]) if delta[b] > 0.0 else 0.0
        _add(scalars[CURVATURE], scalars[CURVATURE + 1], value)
        t += 1
