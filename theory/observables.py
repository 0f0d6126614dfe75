"""What a recorded run says of the terms in a bound: kernel term -> column of the history."""

from __future__ import annotations

from typing import Any

import numpy as np

from numerics.run import Run
from theory import joint_run, support_run
from theory import notation as nt
from theory.assumptions import longest_step
from theory.evaluate import by_canonical
from theory.lemmas.residual_step import residual
from theory.notation import M, e, layer, s, t
from theory.proof.terms import Index, Term, as_real, below, inner, norm, number, symbol, total, vector


def direction_gap(at: Index) -> Term:
    """1 - cos(W_t, M)."""
    W = layer(at).W
    return 1 - inner(W, M) / (norm(W) * norm(M))


def constants(run: Run) -> dict[Term, Any]:
    """The problem's constants, as floats."""
    problem, target = run.problem, run.target
    gaps = np.zeros(problem.n)
    best = problem.scores[np.arange(problem.n), problem.optimal]
    gaps[problem.constraint_sequence] = problem.score_gaps
    low, high = _log_slopes(gaps, best, problem.n)
    used = problem.lengths > 1
    length = float("nan") if target is None else target.norm
    out: dict[Term, Any] = {
        nt.n: problem.n,
        nt.N: problem.n_constraints,
        nt.T: int(problem.lengths.max()),
        nt.R: float(problem.constraint_norms.max()),
        nt.a_min: float(np.exp(low[used].min())),
        nt.a_max: float(np.exp(high[used].max())),
        nt.e0: max(0.0, -float(problem.gram().min())),
        inner(M, M): length**2,
        norm(M): length,
        nt.margin: 1 / length,
    }
    rule = run.rule
    if hasattr(rule, "step"):
        out[nt.eta] = float(rule.step)
    out[symbol("e_max")] = longest_step(run)
    out[symbol("G_max")] = float(problem.score_gaps.max(initial=0.0))
    out[symbol("Gam")] = out[symbol("G_max")]
    out[symbol("gam")] = float(problem.score_gaps.min(initial=np.inf))
    # Under full support the constraints lie at distance g* along M; elsewhere no page speaks of R_B.
    out[symbol("R_B")] = float(np.sqrt(max(out[nt.R] ** 2 - length**-2, 0.0)))
    out |= support_run.values(problem, balls=False)
    with np.errstate(over="ignore"):
        out[symbol("rho")] = float(np.exp((high[used] - low[used]).max()))
        # for scores so large that both slopes underflow
        out[nt.kappa] = float(np.exp(high[used].max() - low[used].min()))
    return out


def _log_slopes(gaps: np.ndarray, best: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of G_i sigma(-g_i - G_i)/n and G_i sigma(-g_i)/n; -inf where a sequence has one token."""
    with np.errstate(divide="ignore"):
        sizes = np.log(gaps) - np.log(n)
    return sizes - np.logaddexp(0.0, best), sizes - np.logaddexp(0.0, best - gaps)


def observe(
    run: Run, start: int = 0, base: Index | None = None, *, running: bool = True
) -> tuple[dict[Term, Any], dict[Term, Any]]:
    """Values, and logarithms of values that may underflow, for the recorded steps from row ``start`` on.

    ``base`` is the index that stands for the step of row ``start``; the running step is then ``base + t``.
    With ``running=False``, ``base`` itself runs over the rows (to find the row where a page starts).
    """
    history = run.history
    rows = {name: history[name].to_numpy()[start:] for name in history.columns}
    here = t if base is None else base + t if running else base
    now = layer(here)
    length = float("nan") if run.target is None else run.target.norm
    begin = 0 if base is None else base[2] if not base[1] else rows["step"][0]
    first = {name: history[name].to_numpy()[0] for name in history.columns}
    values: dict[Term, Any] = constants(run) | {
        as_real(t): rows["step"] - begin,
        e(here): rows["step_length"],
        norm(now.W): rows["weight_norm"],
        inner(now.W, M): rows["target_component"] * length,
        nt.path_length(here): rows["path_length"],
        nt.separator_path(here): rows["separator_path"],
        # W = 0 has no direction; the term's value there is 1, by inv(0) = 0.
        direction_gap(here): np.where(rows["weight_norm"] > 0, rows["direction_gap"], 1.0),
        1 - now.p(nt.i): np.exp(rows["log_attention_gap"]),  # the largest over i
        nt.loss(now) - nt.least_loss(): np.exp(rows["log_excess_loss"]),
        norm(residual(now.W)): rows["residual_norm"],
        norm(layer(number(0)).W): first["weight_norm"],
        inner(layer(number(0)).W, M): first["target_component"] * length,
    }
    logs: dict[Term, Any] = {
        nt.a_max: _log_steepest(run),
        1 - now.p(nt.i): rows["log_attention_gap"],
        nt.loss(now) - nt.least_loss(): rows["log_excess_loss"],
    }
    if "log_total_attention_gap" in rows:
        total_gap = total(nt.i, nt.SEQUENCES, 1 - now.p(nt.i))
        values[total_gap] = np.exp(rows["log_total_attention_gap"])
        logs[total_gap] = rows["log_total_attention_gap"]
    if joint_run.is_joint(run):
        more, more_logs = _joint(run, start, base, running=running)
        values, logs = values | more, logs | more_logs
    if base is not None and base[1] and running:
        bends = rows["curvature_sum"] - rows["curvature_sum"][0]
        values |= {
            total(s, below(t), e(base + s) ** 2 / norm(layer(base + s).W)): bends,
            norm(layer(base).W): rows["weight_norm"][0],
            # u - v, without cancellation
            norm(layer(base).W) - inner(layer(base).W, M) / norm(M): rows["weight_norm"][0]
            * (values[direction_gap(here)][0]),
            norm(residual(layer(base).W)): rows["residual_norm"][0],
            inner(layer(base).W, M): rows["target_component"][0] * length,
            nt.path_length(base): rows["path_length"][0],
            nt.separator_path(base): rows["separator_path"][0],
        }
    return by_canonical(values), by_canonical(logs)


def _log_steepest(run: Run) -> float:
    """log a_max."""
    problem = run.problem
    gaps = np.zeros(problem.n)
    gaps[problem.constraint_sequence] = problem.score_gaps
    best = problem.scores[np.arange(problem.n), problem.optimal]
    return float(_log_slopes(gaps, best, problem.n)[1].max())


def _joint(
    run: Run, start: int, base: Index | None, *, running: bool
) -> tuple[dict[Term, Any], dict[Term, Any]]:
    """What a joint run adds; its problem is the one that names the reference tokens.

    The constants of the steps from t0 on are numbers, or an array over t0 where that runs.
    """
    from theory.lemmas.joint_decoder import eps, leak
    from theory.theorems.joint_loss import floor

    at = start if base is not None and base[1] and running else slice(start, None)
    least = joint_run.tail(run, "min_optimal_score", least=True)[at]
    assert run.joint is not None
    length = float("nan") if run.joint.target is None else run.joint.target.norm
    values: dict[Term, Any] = {
        nt.kappa_run: joint_run.weight_ratio(run)[at],
        eps: np.exp(joint_run.tail(run, "log_attention_gap")[at]),
        leak: np.exp(joint_run.tail(run, "log_leak")[at]),
        floor: least,
        nt.logistic(floor): np.log1p(np.exp(-least)),
        nt.R_o: joint_run.longest_token(run.problem),
        nt.R_d: joint_run.longest_difference(run.problem),
        norm(nt.U): length,
        inner(nt.U, nt.U): length**2,
        symbol("e_max"): joint_run.longest_steps(run)[at],
    }
    if run.target is not None:  # asked for under full support only
        problem, target = run.problem, run.target
        for place, term in enumerate((norm(vector("r_star")), symbol("q_min"), symbol("sig"))):
            values[term] = lambda place=place: joint_run.equal_balance(problem, target)[place]
    for rule, scale, exponent in (
        (run.rule, nt.eta, symbol("decay")),
        (run.joint.rule, symbol("eta_u"), symbol("decay_u")),
    ):
        values[scale] = float(getattr(rule, "step", np.nan))
        values[exponent] = float(getattr(rule, "exponent", np.nan))
    if base is not None and base[1]:
        steps = run.history["step"].to_numpy(dtype=float)
        values |= {as_real(base): steps[at], as_real(base + t): steps[start:]}
    if base is not None and base[1] and not running:
        along = run.history["decoder_target_component"].to_numpy()[start:]
        values[inner(nt.DecoderState(base).u, nt.U)] = along * length
    if base is None or not base[1] or not running:
        return values, {}
    rows = {name: run.history[name].to_numpy()[start:] for name in run.history.columns}
    bends = rows["decoder_curvature_sum"] - rows["decoder_curvature_sum"][0]
    first, now = nt.DecoderState(base), nt.DecoderState(base + t)
    values |= {
        total(s, below(t), e(base + s) ** 2): rows["path_squares"] - rows["path_squares"][0],
        total(s, below(t), nt.decoder_step(base + s) ** 2): rows["decoder_path_squares"]
        - rows["decoder_path_squares"][0],
        nt.decoder_path(base): rows["decoder_path_length"][0],
        nt.decoder_path(base + t): rows["decoder_path_length"],
        norm(first.u): rows["decoder_norm"][0],
        norm(now.u): rows["decoder_norm"],
        1 - inner(now.u, nt.U) / (norm(now.u) * norm(nt.U)): rows["decoder_direction_gap"],
        total(s, below(t), nt.decoder_step(base + s) ** 2 / norm(nt.DecoderState(base + s).u)): bends,
        inner(first.u, nt.U): rows["decoder_target_component"][0] * length,
        inner(now.u, nt.U): rows["decoder_target_component"] * length,
        first.optimal_loss(): np.exp(rows["log_optimal_loss"][0]),
        now.optimal_loss(): np.exp(rows["log_optimal_loss"]),
        now.loss(): np.exp(rows["log_loss"]),
        now.optimal_score(nt.i): rows["min_optimal_score"],  # the smallest over i
    }
    logs = {
        first.optimal_loss(): rows["log_optimal_loss"][0],
        now.optimal_loss(): rows["log_optimal_loss"],
        now.loss(): rows["log_loss"],
    }
    return values, logs
