"""Joint training of W and the decoder as a compiled loop over tokens: exact, and independent of d.

W_t = W_0 + sum_(i,tau) b_(i,tau) x_(i,tau) z_i' and u_t = u_0 + sum q_(i,tau) x_(i,tau), so the logits and
scores of the tokens are all the state there is; a step costs one product each with the Gram matrices of the
pairs (token, query) and of the tokens. As the decoder moves, so does the optimal token: nothing here refers
to one except what is measured. With `top` the token of most attention, r_tau = e^(a_tau - a_second) for the
others, and lift = sum_tau phi_tau (g_tau - g_top),

    m = g_top + lift,    m - g_tau = (g_top - g_tau) + lift,    m - g_top = lift,

so that each sequence's coefficients phi_tau (g_tau - m) are formed up to the factor phi_second without
cancellation, however small that factor is. The state is kept as pairs of floats (compensated sums).
"""

from __future__ import annotations

import math
from typing import no_type_check

from numba import njit

from numerics._gram_cache import drop_stale
from numerics._gram_compiled import _add, _excess, _log1p_exp, _product, step_length
from numerics._joint_record import (
    CHANGES,
    CURVATURE,
    DECODER_CURVATURE,
    DECODER_LEAK,
    DECODER_PATH,
    DECODER_SEPARATOR,
    DECODER_SQUARE,
    DECODER_SQUARES,
    EXTREMES,
    NEUTRAL,
    PATH,
    SEPARATOR,
    SINCE,
    SQUARES,
    SUMS,
    WEIGHT_SQUARE,
    X_ATTENTION,
    X_GAP,
    X_LEAK,
    X_LOGIT,
    X_PUSH,
    X_RATIO,
    X_SCORE,
    X_SPREAD,
)

_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "_nrt": False}
_FAST = {"reassoc", "contract", "nsz"}
# By sequence: log of the coefficients' common factor, log sigma(-m), the optimal token's coefficient,
# its missing attention, m, log(g_opt - m), g_opt, the least and the largest log w_k.
_SCALE, _SIGMA, _PULL, _LEAK, _MARGIN, _LOST, _BEST, _LOW, _HIGH = range(9)
BY_SEQUENCE = 9


@njit(**_OPTIONS)
@no_type_check
def _log(x):
    """log x, -inf at 0."""
    return math.log(x) if x > 0.0 else -math.inf


@njit(**_OPTIONS)
@no_type_check
def _log_log1p_exp(x):
    """log log(1 + e^x), also where e^x underflows."""
    if x < -37.0:
        return x - 0.5 * math.exp(x)
    return math.log(_log1p_exp(x))


@njit(**_OPTIONS)
@no_type_check
def _accumulate(high, low, step, values):
    """(high, low) += step values, the rounding errors kept in low."""
    for k in range(values.shape[0]):
        value = step * values[k]
        total = high[k]
        new = total + value
        kept = new - total
        low[k] += (total - (new - kept)) + (value - kept)
        high[k] = new


@njit(**_OPTIONS, fastmath=_FAST)
@no_type_check
def _inner(x, y):
    """x'y."""
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * y[k]
    return total


@njit(**_OPTIONS)
@no_type_check
def _sequence(first, last, y, state, c, w, r, own, extremes):
    """Read one sequence: fill its c, w (both up to a factor) and its row of `own`; widen the extremes.

    Reading the same step twice changes nothing, so that runs may be resumed at any step.

    Returns (optimal token, largest |g - g_top|).
    """
    ah, al, sh, sl = state[0], state[1], state[4], state[5]
    top = best = first
    for k in range(first + 1, last):
        if (ah[k] - ah[top]) + (al[k] - al[top]) > 0.0:
            top = k
        if y * ((sh[k] - sh[best]) + (sl[k] - sl[best])) > 0.0:
            best = k
    top_score = y * (sh[top] + sl[top])
    best_score = y * (sh[best] + sl[best])
    own[_BEST] = best_score
    if last == first + 1:
        c[first], w[first] = 0.0, y
        own[_SCALE], own[_PULL], own[_LEAK] = -math.inf, 0.0, 0.0
        own[_MARGIN], own[_LOST], own[_SIGMA] = top_score, -math.inf, -_log1p_exp(top_score)
        own[_LOW], own[_HIGH] = math.inf, -math.inf
        extremes[X_SCORE] = min(extremes[X_SCORE], best_score)
        return best, 0.0
    second = -math.inf
    for k in range(first, last):
        if k != top:
            r[k] = (ah[k] - ah[top]) + (al[k] - al[top])
            second = max(second, r[k])
    to_best = r[best] if best != top else 0.0
    total = drop = size = 0.0
    for k in range(first, last):
        if k != top:
            r[k] = math.exp(r[k] - second)
            total += r[k]
            fall = y * ((sh[k] - sh[top]) + (sl[k] - sl[top]))
            c[k] = fall
            size = max(size, abs(fall))
            drop += r[k] * fall
    factor = math.exp(second) if second > -740.0 else 0.0
    log_top = -math.log1p(factor * total)
    p_top = 1.0 / (1.0 + factor * total)
    lift = p_top * factor * drop
    margin = top_score + lift
    log_sigma = -_log1p_exp(margin)
    log_lift = second + log_top + _log(abs(drop))

    # The scores of the other tokens, and their weights w_k = c_k e^(mu_k) = sigma(-m) p (m - g_k).
    low, high = math.inf, -math.inf
    least_pull, most_pull = math.inf, -math.inf
    next_logit = -math.inf
    for k in range(first, last):
        fall = c[k] if k != top else 0.0
        if k != best:
            low, high = min(low, fall), max(high, fall)
            gap = (ah[k] - ah[best]) + (al[k] - al[best])
            next_logit = max(next_logit, gap)
            if k != top:
                pull = lift - fall
                least_pull, most_pull = min(least_pull, pull), max(most_pull, pull)
        w[k] = p_top * y * (1.0 if k == top else factor * r[k])
        c[k] = r[k] * (fall - lift) if k != top else -p_top * drop
    best_fall = y * ((sh[best] - sh[top]) + (sl[best] - sl[top]))
    log_p = log_top + to_best
    log_least = _log(least_pull) if least_pull < math.inf else math.inf
    log_most = _log(most_pull) if most_pull > -math.inf else -math.inf
    if best == top:
        leak = p_top * factor * total
        log_leak = second + log_top + math.log(total)
        own[_LOST] = log_lift if drop < 0.0 else -math.inf
    else:
        p = math.exp(log_p)
        leak = 1.0 - p
        log_leak = math.log1p(-p)
        own[_LOST] = _log(best_fall - lift)
        pull = log_lift if drop > 0.0 else -math.inf  # of the top token, which is not optimal
        log_least, log_most = min(log_least, pull), max(log_most, pull)
    extremes[X_GAP] = min(extremes[X_GAP], best_fall - high)
    extremes[X_SPREAD] = max(extremes[X_SPREAD], high - low)
    extremes[X_ATTENTION] = max(extremes[X_ATTENTION], log_leak)
    extremes[X_LEAK] = max(extremes[X_LEAK], own[_LOST])
    extremes[X_SCORE] = min(extremes[X_SCORE], best_score)
    extremes[X_LOGIT] = min(extremes[X_LOGIT], -next_logit)
    push = (1.0 - leak) * (best_fall - high) - leak * (high - low)
    extremes[X_PUSH] = min(extremes[X_PUSH], push)
    own[_SCALE] = second + log_top + log_sigma
    own[_PULL] = c[best]
    own[_LEAK] = leak
    own[_MARGIN] = margin
    own[_SIGMA] = log_sigma
    own[_LOW] = log_sigma + log_least + log_p
    own[_HIGH] = log_sigma + log_most + log_p
    return best, size


@njit(**_OPTIONS)
@no_type_check
def _losses(own, n):
    """(log L, log(L - L*)), L* the least loss at the present decoder."""
    loss = excess = -math.inf
    for i in range(n):
        value = _log_log1p_exp(-own[i, _MARGIN])
        above = max(value, loss)
        loss = above + math.log1p(math.exp(min(value, loss) - above))
        if own[i, _LOST] > -math.inf:
            value = _excess(own[i, _LOST], own[i, _BEST])
            above = max(value, excess)
            excess = above + math.log1p(math.exp(min(value, excess) - above))
    return loss - math.log(n), excess - math.log(n)


@njit(**_OPTIONS)
@no_type_check
def advance(
    begin,
    until,
    records,
    pairs,
    tokens,
    start,
    label,
    law,
    decoder_law,
    scalars,
    state,
    optimal,
    rows,
    snapshots,
    by_token,
    own,
):
    """Step one run from `begin` to `until`, recording at the steps in `records` (ascending).

    pairs and tokens (M, M) are the Gram matrices of x_(i,tau) z_i' (tokens centred in each sequence, which
    changes no coefficient) and of the x_(i,tau), padded by zeros; start (n+1,); label (n,); law and
    decoder_law (5,); the state: scalars (SCALARS,), state (8, M) the logits, the coefficients of W, the
    scores u'x and the coefficients of u, each as two floats, optimal (n,) the optimal tokens (-1 at first).
    rows (len(records), ROWS) and snapshots (len(records), 4, tokens) are filled. Scratch: by_token (5, M),
    own (n, BY_SEQUENCE).
    """
    n = label.shape[0]
    c, w, y, v, r = by_token[0], by_token[1], by_token[2], by_token[3], by_token[4]
    log_n = math.log(n)
    done = 0
    t = begin
    while True:
        recording = done < records.shape[0] and records[done] == t
        changed = False
        shift = sigma = -math.inf
        size, low, high = 0.0, math.inf, -math.inf
        for i in range(n):
            best, spread = _sequence(start[i], start[i + 1], label[i], state, c, w, r, own[i], scalars)
            low, high = min(low, own[i, _LOW]), max(high, own[i, _HIGH])
            if best != optimal[i]:
                changed = changed or optimal[i] >= 0
                optimal[i] = best
            if spread > 0.0:
                shift = max(shift, own[i, _SCALE])
                size = max(size, spread)
            sigma = max(sigma, own[i, _SIGMA])
        scalars[X_RATIO] = max(scalars[X_RATIO], high - low if low > -math.inf else math.inf)
        if changed:
            scalars[CHANGES] += 1.0
            scalars[SINCE] = t

        square = along = 0.0
        if size > 0.0:
            for i in range(n):
                gain = own[i, _SCALE] - shift
                gain = math.exp(gain) / size if gain > -700.0 else 0.0
                own[i, _PULL] *= gain
                along += own[i, _PULL]
                for k in range(start[i], start[i + 1]):
                    c[k] *= gain
            _product(pairs, c, y)
            square = _inner(c, y)
        mass = leaked = 0.0
        for i in range(n):
            gain = own[i, _SIGMA] - sigma
            gain = math.exp(gain) if gain > -700.0 else 0.0
            mass += gain
            leaked += gain * own[i, _LEAK]
            for k in range(start[i], start[i + 1]):
                w[k] *= gain
        _product(tokens, w, v)
        decoder_square = _inner(w, v)

        loss = excess = 0.0
        if recording or law[3] != 0.0 or decoder_law[3] != 0.0:
            loss, excess = _losses(own, n)
        log_norm = decoder_log_norm = -math.inf
        length = decoder_length = inverse = decoder_inverse = 0.0
        if square > 0.0:
            log_norm = shift + math.log(size) - log_n + 0.5 * math.log(square)
            inverse = 1.0 / math.sqrt(square)
            length = step_length(law, t, log_norm, excess)
        if decoder_square > 0.0:
            decoder_log_norm = sigma - log_n + 0.5 * math.log(decoder_square)
            decoder_inverse = 1.0 / math.sqrt(decoder_square)
            decoder_length = step_length(decoder_law, t, decoder_log_norm, loss)
        if recording:
            row = rows[done]
            for j in range(SUMS):
                row[j] = scalars[2 * j] + scalars[2 * j + 1]
            row[SUMS], row[SUMS + 1] = length, decoder_length
            row[SUMS + 2], row[SUMS + 3] = log_norm, decoder_log_norm
            row[SUMS + 4], row[SUMS + 5] = loss, excess
            row[SUMS + 6], row[SUMS + 7] = scalars[CHANGES], scalars[SINCE]
            for j in range(8):
                row[EXTREMES + j] = scalars[X_GAP + j]
                scalars[X_GAP + j] = NEUTRAL[j]
            for j in range(4):
                for k in range(snapshots.shape[2]):
                    snapshots[done, j, k] = state[2 * j, k] + state[2 * j + 1, k]
            done += 1
        if t == until:
            return
        if length > 0.0:
            turned = _inner(c, state[0]) * inverse  # <W, direction>
            before = math.sqrt(max(scalars[WEIGHT_SQUARE] + scalars[WEIGHT_SQUARE + 1], 0.0))
            _accumulate(state[0], state[1], length * inverse, y)
            _accumulate(state[2], state[3], length * inverse, c)
            _add(scalars, PATH, length)
            _add(scalars, SQUARES, length * length)
            _add(scalars, SEPARATOR, length * along * inverse)
            _add(scalars, WEIGHT_SQUARE, 2.0 * length * turned + length * length)
            if before > 0.0:
                _add(scalars, CURVATURE, length * length / before)
        if decoder_length > 0.0:
            turned = _inner(w, state[4]) * decoder_inverse
            before = math.sqrt(max(scalars[DECODER_SQUARE] + scalars[DECODER_SQUARE + 1], 0.0))
            _accumulate(state[4], state[5], decoder_length * decoder_inverse, v)
            _accumulate(state[6], state[7], decoder_length * decoder_inverse, w)
            _add(scalars, DECODER_PATH, decoder_length)
            _add(scalars, DECODER_SQUARES, decoder_length * decoder_length)
            _add(scalars, DECODER_SEPARATOR, decoder_length * mass * decoder_inverse)
            _add(scalars, DECODER_LEAK, decoder_length * leaked * decoder_inverse)
            _add(scalars, DECODER_SQUARE, 2.0 * decoder_length * turned + decoder_length * decoder_length)
            if before > 0.0:
                _add(scalars, DECODER_CURVATURE, decoder_length * decoder_length / before)
        t += 1


drop_stale(advance)
