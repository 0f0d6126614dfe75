"""What a recorded run says of the terms in a bound: kernel term -> column of the history."""

from __future__ import annotations

from typing import Any

import numpy as np

from numerics.run import Run
from theory import notation as nt
from theory.evaluate import by_canonical
from theory.notation import M, layer, t
from theory.proof.terms import Index, Term, as_real, inner, norm, number


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
    common = best - gaps
    slope_low = gaps / (problem.n * (1 + np.exp(common + gaps)))
    slope_high = gaps / (problem.n * (1 + np.exp(common)))
    used = problem.lengths > 1
    length = float("nan") if target is None else target.norm
    out: dict[Term, Any] = {
        nt.n: problem.n,
        nt.N: problem.n_constraints,
        nt.T: int(problem.lengths.max()),
        nt.R: float(problem.constraint_norms.max()),
        nt.a_min: float(slope_low[used].min()),
        nt.a_max: float(slope_high[used].max()),
        nt.e0: max(0.0, -float(problem.gram().min())),
        inner(M, M): length**2,
        norm(M): length,
        nt.margin: 1 / length,
    }
    step = getattr(run.rule, "step", None)
    if step is not None:
        out[nt.eta] = float(step)
    return out


def observe(run: Run, start: int = 0, base: Index | None = None) -> tuple[dict[Term, Any], dict[Term, Any]]:
    """Values, and logarithms of values that may underflow, for the recorded steps from row ``start`` on.

    ``base`` is the index that stands for the step of row ``start``; the running step is then ``base + t``.
    """
    history = run.history
    rows = {name: history[name].to_numpy()[start:] for name in history.columns}
    here = t if base is None else base + t
    now = layer(here)
    length = float("nan") if run.target is None else run.target.norm
    first = {name: history[name].to_numpy()[0] for name in history.columns}
    values: dict[Term, Any] = constants(run) | {
        as_real(t): rows["step"] - (rows["step"][0] if base is not None else 0),
        norm(now.W): rows["weight_norm"],
        inner(now.W, M): rows["target_component"] * length,
        nt.path_length(here): rows["path_length"],
        nt.separator_path(here): rows["separator_path"],
        # W = 0 has no direction; the term's value there is 1, by inv(0) = 0.
        direction_gap(here): np.where(rows["weight_norm"] > 0, rows["direction_gap"], 1.0),
        1 - now.p(nt.i): np.exp(rows["log_attention_gap"]),  # the largest over i
        norm(layer(number(0)).W): first["weight_norm"],
        inner(layer(number(0)).W, M): first["target_component"] * length,
    }
    if base is not None:
        values |= {
            norm(layer(base).W): rows["weight_norm"][0],
            inner(layer(base).W, M): rows["target_component"][0] * length,
            nt.path_length(base): rows["path_length"][0],
            nt.separator_path(base): rows["separator_path"][0],
        }
    logs: dict[Term, Any] = {1 - now.p(nt.i): rows["log_attention_gap"]}
    return by_canonical(values), by_canonical(logs)
