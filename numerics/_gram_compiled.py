"""The Gram-space step as a compiled loop over one run after the other: the CPU path for small N.

numba, because the loop is scalar code on a few hundred numbers (a step takes a third of a microsecond at N
= 42, far below the call overhead of any array library), because it compiles where it runs (no build step,
no binary wheel of our own), and because it is long-lived and well kept.

A run's logit gaps are kept as mu = shift + nu with a common shift: the direction depends on differences of nu
alone, which stay of order one on the support while mu grows without bound, so no digit is lost in a million
steps. Sums along the run are compensated (Neumaier).
"""

from __future__ import annotations

import math
from typing import no_type_check

import llvmlite.binding  # type: ignore[import-untyped]
import numpy as np
from numba import njit

from numerics import _gram_record as at
from numerics._gram_cache import drop_stale
from numerics._gram_vectors import LN2_HIGH, LN2_LOW, LOG2E, OPTIONS, ROUND

WRONG_SIDE = -20.0  # below this smallest gap p_i may underflow beside the other tokens: full log domain
# Constraints are padded to a multiple of this with constraints that carry nothing (K, along and dual zero,
# the logit gap FAR), and LLVM is told not to interleave vector loops: both leave loops of some dozen
# entries without the scalar remainder that took half of a step at N = 42.
PAD = 16
llvmlite.binding.set_option("numerics", "-force-vector-interleave=1")
FAR = 1e300
LARGE_SCORE = 300.0  # above, sigma(-m) may underflow
# Licence to vectorize sums and minima; the compensated sums stay strict.
_FAST = {"reassoc", "contract", "nsz", "nnan"}


@njit(**OPTIONS)
@no_type_check
def _add(scalars, index, value):
    """Add to a compensated sum."""
    total = scalars[index]
    new = total + value
    kept = new - total
    scalars[index + 1] += (total - (new - kept)) + (value - kept)
    scalars[index] = new


@njit(**OPTIONS)
@no_type_check
def _log1p_exp(x):
    """log(1 + e^x), also where e^x overflows."""
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


@njit(**OPTIONS, fastmath=_FAST)
@no_type_check
def _lowest(nu):
    """The smallest entry."""
    low = nu[0]
    for k in range(nu.shape[0]):
        low = min(low, nu[k])
    return low


@njit(**OPTIONS, fastmath=_FAST)
@no_type_check
def _product(K, c, y):
    """y = K c, eight rows at a time; its size is a multiple of PAD."""
    N = c.shape[0]
    for k in range(0, N, 8):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for j in range(N):
            value = c[j]
            s0 += K[k, j] * value
            s1 += K[k + 1, j] * value
            s2 += K[k + 2, j] * value
            s3 += K[k + 3, j] * value
            s4 += K[k + 4, j] * value
            s5 += K[k + 5, j] * value
            s6 += K[k + 6, j] * value
            s7 += K[k + 7, j] * value
        y[k] = s0
        y[k + 1] = s1
        y[k + 2] = s2
        y[k + 3] = s3
        y[k + 4] = s4
        y[k + 5] = s5
        y[k + 6] = s6
        y[k + 7] = s7


@njit(**OPTIONS, fastmath=_FAST)
@no_type_check
def _sums(c, y, nu, along):
    """(c'Kc, sum |c|, sum c, <., M^>, <., W> but for the shift) in one pass."""
    square = size = total = progress = turned = 0.0
    for k in range(c.shape[0]):
        value = c[k]
        square += value * y[k]
        size += abs(value)
        total += value
        progress += value * along[k]
        turned += value * nu[k]
    return square, size, total, progress, turned


@njit(**OPTIONS, fastmath=_FAST)
@no_type_check
def _move(nu, rho, y, c, dual, length, inverse, drift, step, progress):
    """One step of the logit gaps and of the residual's coefficients."""
    for k in range(nu.shape[0]):
        nu[k] += length * (y[k] * inverse - drift)
        rho[k] += step * (c[k] - progress * dual[k])


@njit(**OPTIONS, fastmath={"contract"})
@no_type_check
def _weights(nu, low, c, bits):
    """c_k = exp(low - nu_k) to one unit in the last place, 0 where that is subnormal; low the smallest nu.

    Written out (reduction by log 2, Taylor, exponent bits) because the C library's exp does not vectorize:
    this one is four times as fast. bits (N,) is scratch space.
    """
    for k in range(nu.shape[0]):
        value = max(low - nu[k], -745.0)
        whole = (value * LOG2E + ROUND) - ROUND
        r = (value - whole * LN2_HIGH) - whole * LN2_LOW
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
        c[k] = (series * r) * r + (r + 1.0)
        power = np.int64(whole) + 1023
        bits[k] = (power if power > 0 else 0) << 52  # 2^whole, or 0 for subnormal results
    powers = bits.view(np.float64)
    for k in range(nu.shape[0]):
        c[k] *= powers[k]


@njit(**OPTIONS)
@no_type_check
def _leaks(c, gap, start, odds, loss):
    """Per sequence the sums of c and of c gap."""
    for i in range(start.shape[0] - 1):
        total = lost = 0.0
        for k in range(start[i], start[i + 1]):
            total += c[k]
            lost += c[k] * gap[k]
        odds[i] = total
        loss[i] = lost


@njit(**OPTIONS)
@no_type_check
def _pulls(c, first, last, p, scale, gap, weight):
    """c_k <- weight c_k (m - g_k) on one sequence, gaps ascending; phi_k = scale c_k on entry.

    m - g_k is the sum over tokens scored above k less that over tokens below, each of terms of one sign.
    """
    above = p  # attention on the tokens scored above k
    pull = 0.0
    phi = 0.0
    for k in range(first, last):
        above += phi
        pull += (gap[k] - (gap[k - 1] if k > first else 0.0)) * above
        push = 0.0
        for s in range(k + 1, last):
            push += scale * c[s] * (gap[s] - gap[k])
        phi = scale * c[k]
        c[k] *= weight * (pull - push)


@njit(**OPTIONS, fastmath=_FAST)
@no_type_check
def _scale_each(c, gap, sequence, weight, delta):
    """c_k <- weight c_k (gap_k - delta), the last two by sequence."""
    for k in range(c.shape[0]):
        c[k] *= weight[sequence[k]] * (gap[k] - delta[sequence[k]])


@njit(**OPTIONS)
@no_type_check
def _coefficients(
    log_scale, start, sequence, gap, tight, best, sigmas, c, odds, loss, weight, delta, power, bits
):
    """Turn c = e^(-mu - log_scale) into the gradient's coefficients up to the factor e^log_scale/n.

    odds[i] and loss[i] get (1-p_i)/p_i and g_(i,o_i) - m_i, both up to the factor e^log_scale. The quick
    path: every p_i is far above underflow.
    """
    n = best.shape[0]
    _leaks(c, gap, start, odds, loss)
    scale = math.exp(log_scale) if log_scale > -700.0 else 0.0  # underflow in libm is slow
    calm = True
    settled = True
    for i in range(n):
        total = 1.0 + scale * odds[i]
        lost = loss[i] / total
        loss[i] = lost
        delta[i] = scale * lost
        power[i] = delta[i] - best[i]
        weight[i] = sigmas[i] / total
        if delta[i] > tight[i]:
            calm = False
        if power[i] != -best[i]:
            settled = False
    if not settled:  # sigma(-m) has not reached its limit yet
        _weights(power, 0.0, power, bits)
        for i in range(n):
            weight[i] = 1.0 / ((1.0 + power[i]) * (1.0 + scale * odds[i]))
    if calm:  # m - g_k = gap_k - delta loses nothing
        _scale_each(c, gap, sequence, weight, delta)
    else:
        for i in range(n):
            p = 1.0 / (1.0 + scale * odds[i])
            _pulls(c, start[i], start[i + 1], p, scale * p, gap, weight[i])


@njit(**OPTIONS)
@no_type_check
def logs(scale, sigmas, odds, loss):
    """(max_i log(1 - p_i), log sum_i (1 - p_i), log(L - L*)) from what `_coefficients` left."""
    n = sigmas.shape[0]
    leak = -math.inf
    leaked = total = 0.0
    factor = math.exp(scale) if scale > -700.0 else 0.0
    for i in range(n):
        if odds[i] == 0.0:
            continue
        leak = max(leak, -_log1p_exp(-(math.log(odds[i]) + scale)))
        leaked += odds[i] / (1.0 + factor * odds[i])
        delta = factor * loss[i]
        sigma = sigmas[i]
        if delta > 700.0:  # e^delta overflows
            total += (delta + math.log(sigma)) / factor
        elif delta > 1e-9:
            total += math.log1p(math.expm1(delta) * sigma) / factor
        else:
            total += loss[i] * sigma * (1.0 + 0.5 * delta * (1.0 - sigma))
    return leak, scale + math.log(leaked), scale + math.log(total / n)


@njit(**OPTIONS)
@no_type_check
def _excess(log_lost, best):
    """log(log(1 + e^(-m)) - log(1 + e^(-best))) from log(best - m)."""
    lost = math.exp(log_lost)
    growth = lost + math.log(-math.expm1(-lost)) if lost > 1e-8 else log_lost + 0.5 * lost
    growth -= _log1p_exp(best)
    return growth - 0.5 * math.exp(growth) if growth < -37.0 else math.log(_log1p_exp(growth))


@njit(**OPTIONS)
@no_type_check
def _pulls_in_logs(c, log_c, first, last, log_p, log_sigma, low, nu, gap):
    """log |c_k| and the sign of c_k on one sequence, every term kept as a logarithm; low is mu - nu."""
    for k in range(first, last):
        # m - g_k = sum_s phi_s (gap_k - gap_s), the optimal token's gap being 0; scaled by its largest term
        top = log_p + math.log(gap[k])
        for s in range(first, last):
            if gap[s] != gap[k]:
                top = max(top, log_p - (nu[s] + low) + math.log(abs(gap[k] - gap[s])))
        pull = math.exp(log_p + math.log(gap[k]) - top)
        for s in range(first, last):
            if gap[s] != gap[k]:
                part = math.exp(log_p - (nu[s] + low) + math.log(abs(gap[k] - gap[s])) - top)
                pull += part if gap[k] > gap[s] else -part
        c[k] = math.copysign(1.0, pull)
        log_c[k] = log_p - (nu[k] + low) + log_sigma + top + math.log(abs(pull)) if pull != 0.0 else -math.inf


@njit(**OPTIONS)
@no_type_check
def coefficients_in_logs(nu, shift, start, gap, best, large, c, log_c, looking):
    """The same where attention may sit on wrong tokens, each sequence at its own scale.

    Returns (scale, max_i log(1 - p_i), log sum_i (1 - p_i), log(L - L*)), the last three only when `looking`.
    """
    n = best.shape[0]
    leak = leaked = excess = high = -math.inf
    for k in range(start[n], c.shape[0]):
        c[k], log_c[k] = 0.0, -math.inf
    for i in range(n):
        first, last = start[i], start[i + 1]
        if last == first:
            continue
        low = _lowest(nu[first:last])
        total = lost = 0.0
        for k in range(first, last):
            c[k] = math.exp(low - nu[k])
            total += c[k]
            lost += c[k] * gap[k]
        scale = -(low + shift)
        log_odds = math.log(total) + scale
        if large or scale > -WRONG_SIDE:
            log_p = -_log1p_exp(log_odds)
            log_lost = math.log(lost) + log_p + scale
            log_sigma = -_log1p_exp(best[i] - math.exp(log_lost))
            _pulls_in_logs(c, log_c, first, last, log_p, log_sigma, shift, nu, gap)
        else:
            factor = math.exp(scale) if scale > -700.0 else 0.0
            p = 1.0 / (1.0 + factor * total)
            weight = p / (1.0 + math.exp(best[i] - factor * p * lost))
            _pulls(c, first, last, p, factor * p, gap, weight)
            for k in range(first, last):
                log_c[k] = scale  # of c_k's unit
            log_lost = math.log(lost * p) + scale
        for k in range(first, last):
            if c[k] != 0.0:
                high = max(high, log_c[k])
        if looking:
            own = -_log1p_exp(-log_odds)
            leak = max(leak, own)
            above = max(own, leaked)
            leaked = above + math.log1p(math.exp(min(own, leaked) - above))
            own = _excess(log_lost, best[i])
            above = max(own, excess)
            excess = above + math.log1p(math.exp(min(own, excess) - above))
    for k in range(c.shape[0]):
        gain = log_c[k] - high
        c[k] = c[k] * math.exp(gain) if gain > -700.0 else 0.0
    return high, leak, leaked, excess - math.log(n)


@njit(**OPTIONS)
@no_type_check
def step_length(law, step, log_norm, excess):
    """e_t by the law (scale, exponent, p, q, cap) of the run's rule."""
    length = law[0]
    if law[1] != 0.0:
        length *= (step + 1.0) ** -law[1]
    power = 0.0
    if law[2] != 0.0:
        power += law[2] * log_norm
    if law[3] != 0.0:
        power += law[3] * excess
    if power != 0.0:
        length *= math.exp(power)
    return min(length, law[4])


@njit(**OPTIONS)
@no_type_check
def record(row, scalars, length, leak, leaked, excess, low, log_norm):
    """Fill the row of a recorded step; scalars (SCALARS,) of one run, low its smallest nu."""
    row[at.ROW_PATH] = scalars[at.PATH] + scalars[at.PATH + 1]
    row[at.ROW_SEPARATOR] = scalars[at.SEPARATOR] + scalars[at.SEPARATOR + 1]
    row[at.ROW_CURVATURE] = scalars[at.CURVATURE] + scalars[at.CURVATURE + 1]
    row[at.ROW_LENGTH] = length
    row[at.ROW_TARGET] = scalars[at.TARGET] + scalars[at.TARGET + 1]
    row[at.ROW_LEAK] = leak
    row[at.ROW_LEAKED] = leaked
    row[at.ROW_EXCESS] = excess
    row[at.ROW_GAP] = scalars[at.SHIFT] + scalars[at.SHIFT + 1] + low
    row[at.ROW_GRADIENT] = log_norm


@njit(**OPTIONS)
@no_type_check
def advance(
    begin,
    until,
    records,
    which,
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
    by_constraint,
    by_sequence,
    by_run,
    bits,
):
    """Step a few runs, in lockstep, from `begin` to `until`, recording at the steps in `records` (ascending).

    Lockstep because one step is a chain of short dependent loops: the processor fills one run's waits with
    the next run's work. Run b belongs to problem which[b]. By problem: K (N, N) the Gram matrix,
    constraints in order of sequence and score; start (n+1,); sequence (N,); gap (N,); tight (n,), half the
    least gap; best (n,); sigmas (n,) = sigma(-best); large whether |best| exceeds LARGE_SCORE; along (N,) =
    <A_k, M^>; dual (N,) = alpha_k/||M||. By run: law (5,); the state scalars (SCALARS,), nu (N,), rho (N,),
    where W = W_0 + (v - v_0) M^ + sum_k rho_k A_k; rows (len(records), ROWS) and snapshots (len(records),
    N) of rho. Scratch: by_constraint (3, runs, N), by_sequence (5, runs, n rounded up to 8), by_run (5,
    runs), bits (runs, N).
    """
    runs = nu.shape[0]
    n = best.shape[1]
    c, y, log_c = by_constraint[0], by_constraint[1], by_constraint[2]
    odds, loss, weight, delta = by_sequence[0], by_sequence[1], by_sequence[2], by_sequence[3]
    power = by_sequence[4]
    low, scale, leak, excess, leaked = by_run[0], by_run[1], by_run[2], by_run[3], by_run[4]
    log_n = math.log(n)
    done = 0
    t = begin
    while True:
        recording = done < records.shape[0] and records[done] == t
        for b in range(runs):
            low[b] = _lowest(nu[b])
            _weights(nu[b], low[b], c[b], bits[b])
        for b in range(runs):
            j = which[b]
            shift = scalars[b, at.SHIFT] + scalars[b, at.SHIFT + 1]
            scale[b] = -(shift + low[b])
            if scale[b] > -WRONG_SIDE or large[j]:
                scale[b], leak[b], leaked[b], excess[b] = coefficients_in_logs(
                    nu[b],
                    shift,
                    start[j],
                    gap[j],
                    best[j],
                    large[j],
                    c[b],
                    log_c[b],
                    recording or law[b, 3] != 0.0,
                )
                continue
            _coefficients(
                scale[b],
                start[j],
                sequence[j],
                gap[j],
                tight[j],
                best[j],
                sigmas[j],
                c[b],
                odds[b],
                loss[b],
                weight[b],
                delta[b],
                power[b],
                bits[b],
            )
            if recording or law[b, 3] != 0.0:
                leak[b], leaked[b], excess[b] = logs(scale[b], sigmas[j], odds[b], loss[b])
        for b in range(runs):
            _product(K[which[b]], c[b], y[b])
        for b in range(runs):
            j = which[b]
            square, size, total, progress, turned = _sums(c[b], y[b], nu[b], along[j])
            shift = scalars[b, at.SHIFT] + scalars[b, at.SHIFT + 1]
            inverse, length, log_norm = 0.0, 0.0, -math.inf
            if square > 0.0:
                inverse = 1.0 / math.sqrt(square)
                if recording or law[b, 2] != 0.0:
                    log_norm = scale[b] - log_n + 0.5 * math.log(square)
                length = step_length(law[b], t, log_norm, excess[b])
            if recording:
                row = rows[b, done]
                record(row, scalars[b], length, leak[b], leaked[b], excess[b], low[b], log_norm)
                for k in range(snapshots.shape[2]):
                    snapshots[b, done, k] = rho[b, k]
            if t < until and length > 0.0:
                step = length * inverse
                drift = 1.0 / (size * inverse)  # <D, sum c A>/sum |c|: what every gap on the support gains
                before = math.sqrt(max(scalars[b, at.SQUARE] + scalars[b, at.SQUARE + 1], 0.0))
                _move(nu[b], rho[b], y[b], c[b], dual[j], length, inverse, drift, step, progress)
                _add(scalars[b], at.SHIFT, length * drift)
                _add(scalars[b], at.TARGET, step * progress)
                _add(scalars[b], at.SQUARE, 2.0 * step * (turned + shift * total) + length * length)
                _add(scalars[b], at.PATH, length)
                _add(scalars[b], at.SEPARATOR, step * total)
                if before > 0.0:
                    _add(scalars[b], at.CURVATURE, length * length / before)
        if recording:
            done += 1
        if t == until:
            return
        t += 1


drop_stale(advance)
