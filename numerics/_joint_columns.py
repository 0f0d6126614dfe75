"""From what a joint loop keeps at the recorded steps to the columns of its history.

Everything that refers to the reference tokens is computed here, after the run: they may be the final
decoder's. Directions are compared through residuals formed from coefficients, without cancellation.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from numerics._joint_margin import DecoderMargin, decoder_max_margin
from numerics._joint_part import Joint, reference_problem
from numerics._joint_record import BY_TOKEN, COLUMNS, ROWS
from numerics._joint_span import Span
from numerics._joint_tokens import Tokens
from numerics.errors import InfeasibleError
from numerics.maxmargin import max_margin
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.progress import phase
from numerics.steps import Rule

_SERIES = -37.0  # below, log(log1p(e^x)) = x - e^x/2 to the last digit


class Finished(NamedTuple):
    """A joint run's history and targets, and the final W as coefficients of the reference's A_k."""

    columns: dict[str, np.ndarray]
    joint: Joint
    target: MaxMargin | None
    coefficients: Float[np.ndarray, " N"]


def finish(
    tokens: Tokens,
    steps: Int[np.ndarray, " rows"],
    kept: Float[np.ndarray, "rows kept"],
    *,
    decoder: Float[np.ndarray, " d"],
    decoder_rule: Rule,
    init: Float[np.ndarray, "d d"] | None,
    decoder_init: Float[np.ndarray, " d"] | None,
    reference_kind: str,
    progress: bool = False,
) -> Finished:
    """All columns of one run; kept holds for each recorded step the `ROWS`, then the `BY_TOKEN` values.

    Raises InputError when the final decoder is to name the reference tokens and ties some.
    """
    problem = tokens.problem
    reference = reference_problem(problem, decoder, reference_kind)
    target, decoder_target = None, None
    with contextlib.suppress(InfeasibleError):
        target = max_margin(reference, progress=progress)
    with contextlib.suppress(InfeasibleError), phase("the decoder's max margin", show=progress):
        decoder_target = decoder_max_margin(reference)
    columns = {"step": steps} | {name: kept[:, j] for j, name in enumerate(ROWS)}
    by_token = kept[:, len(ROWS) :].reshape(len(kept), len(BY_TOKEN), -1).transpose(1, 0, 2)
    logits, b, scores, q = by_token
    optimal = _optimal(tokens, scores)
    columns["optimal_reference"] = np.sum(optimal == reference.optimal, axis=1)
    columns["optimal_data"] = np.sum(optimal == problem.optimal, axis=1)
    columns |= _attention(tokens, reference, logits, scores)
    columns |= _weights(tokens, reference, target, b, logits, init)
    columns |= _decoder(tokens, reference, decoder_target, scores, q, decoder_init)
    columns["loss"] = np.exp(columns["log_loss"])
    for name in ("optimal_changes", "optimal_since"):
        columns[name] = columns[name].astype(np.int64)
    joint = Joint(
        rule=decoder_rule,
        decoder=decoder,
        reference=reference,
        reference_kind="data" if reference_kind == "data" else "final",
        optimal=optimal,
        init=decoder_init,
        target=decoder_target,
    )
    ordered = {name: columns[name] for name in COLUMNS}
    return Finished(ordered, joint, target, _on_constraints(tokens, reference, b[-1]))


def _on_constraints(
    tokens: Tokens, reference: Problem, b: Float[np.ndarray, "*rows M"]
) -> Float[np.ndarray, "*rows N"]:
    """Coefficients of the A_k from those of the tokens, which sum to 0 in each sequence."""
    at = tokens.spread(b, 0.0)
    return -at[..., reference.constraint_sequence, reference.constraint_token]


def _optimal(tokens: Tokens, scores: Float[np.ndarray, "rows M"]) -> Int[np.ndarray, "rows n"]:
    """The token of largest score, -1 where it is tied."""
    g = tokens.spread(scores, 0.0) * tokens.problem.labels[:, None]
    g[:, ~tokens.problem.mask] = -np.inf
    best = np.argmax(g, axis=-1)
    tied = np.sum(g == np.max(g, axis=-1, keepdims=True), axis=-1) > 1
    return np.where(tied, -1, best)


def _attention(
    tokens: Tokens,
    reference: Problem,
    logits: Float[np.ndarray, "rows M"],
    scores: Float[np.ndarray, "rows M"],
) -> dict[str, np.ndarray]:
    """Attention, scores and weights at the reference tokens o_i."""
    problem = tokens.problem
    own = np.arange(problem.n), reference.optimal
    others = problem.mask.copy()
    others[own] = False
    several = problem.lengths > 1
    with np.errstate(divide="ignore", invalid="ignore"):
        a = tokens.spread(logits, 0.0)
        mu = np.where(others, a[:, own[0], own[1]][..., None] - a, np.inf)  # logit gaps
        lowest = np.where(several, mu.min(axis=-1), 0.0)
        odds = np.log(np.sum(np.exp(lowest[..., None] - mu), axis=-1)) - lowest  # log (1-p)/p
        log_p = -np.logaddexp(0.0, odds)
        log_leak = np.where(several, -np.logaddexp(0.0, -odds), -np.inf)
        g = tokens.spread(scores, 0.0) * problem.labels[:, None]
        best = g[:, own[0], own[1]]
        gaps = best[..., None] - g
        phi = np.where(others, np.exp(log_p[..., None] - mu), 0.0)
        logs = np.where(others, log_p[..., None] - mu + np.log(np.abs(gaps)), -np.inf)
        top = np.maximum(logs.max(axis=-1), np.finfo(float).min)
        lost = np.sum(np.sign(gaps) * np.exp(logs - top[..., None]), axis=-1)  # g_o - m, up to e^top
        log_lost = top + np.log(np.maximum(lost, 0.0))
        margin = best - np.exp(top) * lost
        least = np.min(np.where(others, gaps, np.inf), axis=-1)
        spread = np.max(np.where(others, gaps, -np.inf), axis=-1) - least
        # m - g_tau = p (g_o - g_tau) + sum_s phi_s (g_s - g_tau)
        pulls = np.exp(log_p)[..., None] * gaps + np.einsum(
            "rns,rnst->rnt", phi, g[..., :, None] - g[..., None, :]
        )
        weights = np.log(np.maximum(pulls, 0.0)) + (log_p - np.logaddexp(0.0, margin))[..., None]
        low = np.where(others, weights, np.inf).min(axis=(-2, -1))
        high = np.where(others, weights, -np.inf).max(axis=(-2, -1))
        push = np.exp(log_p) * least - np.exp(log_leak) * spread
        return {
            "log_attention_gap": log_leak.max(axis=-1),
            "log_total_attention_gap": np.logaddexp.reduce(log_leak, axis=-1),
            "min_logit_gap": mu.min(axis=(-2, -1)),
            "smallest_push": np.where(several, push, np.inf).min(axis=-1),
            "log_weight_ratio": np.where(low > -np.inf, high - low, np.inf),
            "log_leak": log_lost.max(axis=-1),
            "log_optimal_loss": np.logaddexp.reduce(_log_softplus(-best), axis=-1) - np.log(problem.n),
            "min_optimal_score": best.min(axis=-1),
            "min_margin": margin.min(axis=-1),
            "score_gap": least.min(axis=-1),
            "score_spread": np.where(several, spread, -np.inf).max(axis=-1),
        }


def _log_softplus(x: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """log log(1 + e^x), also where e^x underflows."""
    return np.where(x < _SERIES, x - np.exp(x) / 2, np.log(np.logaddexp(0.0, np.maximum(x, _SERIES))))


def _weights(
    tokens: Tokens,
    reference: Problem,
    target: MaxMargin | None,
    b: Float[np.ndarray, "rows M"],
    logits: Float[np.ndarray, "rows M"],
    init: Float[np.ndarray, "d d"] | None,
) -> dict[str, np.ndarray]:
    """Norm and direction of W, from W = W_0 - v_0 M^ + v M^ + sum_k rho_k A_k."""
    a = tokens.spread(logits, 0.0)
    sequence, token = reference.constraint_sequence, reference.constraint_token
    mu = a[:, sequence, reference.optimal[sequence]] - a[:, sequence, token]
    coefficients = _on_constraints(tokens, reference, b)
    span = Span.of(reference)
    if target is None:
        r, v = span.norms(coefficients, init), np.zeros(len(b))
    else:
        dual = target.dual / target.norm
        v = mu @ dual
        begin = 0.0 if init is None else float(np.sum(init * target.direction))
        offset = None if init is None else init - begin * target.direction
        r = span.norms(coefficients - (v - begin)[:, None] * dual, offset)
    if target is None:
        nothing = np.full(len(b), np.nan)
        return {
            "weight_norm": r,
            "target_component": nothing,
            "residual_norm": nothing,
            "direction_gap": nothing,
        }
    u = np.hypot(v, r)
    return {
        "weight_norm": u,
        "target_component": v,
        "residual_norm": r,
        "direction_gap": direction_gap(u, v, r),
    }


def _decoder(
    tokens: Tokens,
    reference: Problem,
    target: DecoderMargin | None,
    scores: Float[np.ndarray, "rows M"],
    q: Float[np.ndarray, "rows M"],
    init: Float[np.ndarray, " d"] | None,
) -> dict[str, np.ndarray]:
    """Norm, direction and margin of u."""
    u = q @ tokens.rows if init is None else init + q @ tokens.rows
    norm = np.linalg.norm(u, axis=1)
    g = tokens.spread(scores, 0.0) * tokens.problem.labels[:, None]
    least = g[:, np.arange(reference.n), reference.optimal].min(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = least / norm
    out = {"decoder_norm": norm, "decoder_margin": margin}
    if target is None:
        names = ("decoder_target_component", "decoder_residual_norm", "decoder_direction_gap")
        return out | dict.fromkeys((*names, "decoder_margin_share"), np.full(len(u), np.nan))
    direction = target.weights / target.norm
    v = u @ direction
    r = np.linalg.norm(u - v[:, None] * direction, axis=1)
    return out | {
        "decoder_target_component": v,
        "decoder_residual_norm": r,
        "decoder_direction_gap": direction_gap(norm, v, r),
        "decoder_margin_share": margin * target.norm,
    }


def direction_gap(
    u: Float[np.ndarray, " rows"], v: Float[np.ndarray, " rows"], r: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " rows"]:
    """1 - cos from norm u, component v and residual r: r^2/(u (u + v)) for v > 0; NaN at u = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ahead = r / u * (r / (u + v))
        return np.where(u > 0, np.where(v > 0, ahead, (u - v) / u), np.nan)
