"""What a joint run says of the hypotheses and symbols of the joint pages: from which step on, and how much.

A joint run records at each row the extremes over the steps since the row before, so that the extreme over all
steps from a recorded one on is exact. The tokens o_i are the run's reference tokens; what it records of the
tokens that are optimal under the moving decoder speaks of them once both are the same for good.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb_mat
from jaxtyping import Bool, Float

from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.run import Run
from theory.assumptions import Check, between_duals, unsolved


def is_joint(run: Run) -> bool:
    """Whether the decoder was trained too."""
    return run.joint is not None


def on_reference(run: Run) -> Run:
    """A joint run whose problem has the decoder that names its reference tokens; others as they are."""
    return run if run.joint is None else dataclasses.replace(run, problem=run.joint.reference)


def tail(run: Run, column: str, *, least: bool = False) -> Float[np.ndarray, " rows"]:
    """The largest (least) value of a quantity over all steps from each recorded one on."""
    history = run.history
    now, between = history[column].to_numpy(), history[f"interval_{column}"].to_numpy()
    extreme = np.minimum if least else np.maximum
    later = np.append(between[1:], np.inf if least else -np.inf)
    later = extreme.accumulate(later[::-1])[::-1]
    return np.asarray(extreme(now, later), dtype=float)


def tokens_kept(run: Run) -> Bool[np.ndarray, " rows"]:
    """Whether from a recorded step on the reference tokens are the optimal ones at every step."""
    history = run.history
    same = history["optimal_reference"].to_numpy()[-1] == run.problem.n
    return same & (history["step"].to_numpy() >= history["optimal_since"].to_numpy()[-1])


def weights_positive(run: Run) -> Bool[np.ndarray, " rows"]:
    """Whether from a recorded step on every coefficient of the gradient is positive."""
    return tokens_kept(run) & np.isfinite(tail(run, "log_weight_ratio"))


def scores_apart(run: Run) -> Bool[np.ndarray, " rows"]:
    """Whether from a recorded step on every optimal token scores above all others: no gradient is 0 then.

    For <-grad L, W_mm> > 0 then under full support; and where all c_k > 0 the scores are apart.
    """
    return tokens_kept(run) & (tail(run, "score_gap", least=True) > 0)


def weight_ratio(run: Run) -> Float[np.ndarray, " rows"]:
    """kappa: the largest ratio of two weights at one step, from each recorded step on."""
    return np.exp(tail(run, "log_weight_ratio"))


def joint(run: Run) -> Check:
    """The decoder is trained too."""
    if is_joint(run):
        return Check("holds", "the decoder is trained")
    return Check("fails", "the decoder is fixed, the statement is about joint training")


def fixed_decoder(run: Run) -> Check:
    """The decoder is not trained."""
    if is_joint(run):
        return Check("fails", "the decoder moves, the statement is about a fixed one")
    return Check("holds", "the decoder is fixed")


def regime(run: Run) -> tuple[int, int]:
    """In how many sequences the trained decoder scores the data's own token best, and of how many."""
    assert run.joint is not None
    found = int(np.sum(run.joint.optimal[-1] == run.problem.optimal))
    return found, run.problem.n


def in_words(run: Run) -> str:
    """Which tokens the run attends to in the end."""
    found, n = regime(run)
    if found == n:
        return "the signal tokens"
    return f"the signal tokens in {found} of {n} sequences, noise tokens in {n - found}"


def settled(run: Run) -> Check:
    """From some step on the reference tokens are the optimal ones."""
    kept = tokens_kept(run)
    if not kept.any():
        return Check("fails", f"the reference tokens are not the optimal ones; those are {in_words(run)}")
    first = int(run.history["step"].to_numpy()[int(np.argmax(kept))])
    return Check(
        "holds", f"the optimal tokens from step {first} on are {in_words(run)}", (float(first), float(first))
    )


def decoder_separable(run: Run) -> Check:
    """Some decoder gives every reference token a positive score."""
    if run.joint is None or run.joint.target is None:
        return Check("fails", "no decoder separates the reference tokens")
    target = run.joint.target
    rows = arb_mat(target.rows.tolist())
    products = (rows * rows.transpose()).tolist()
    margin = between_duals(products, target.dual)
    if margin is None:
        return Check("unknown", "the solver's decoder does not separate the reference tokens strictly")
    reason = unsolved(margin, target.norm)
    if reason is not None:
        return Check("unknown", reason)
    width = 1 / target.norm
    return Check("holds", f"margin 1/||u_mm|| = {width:.6g}", (width, width))


def _scheduled(rule: Any, words: str) -> Check:
    exponent = float(rule.exponent) if rule.name == "ngd" else float("nan")
    if 0.5 < exponent < 1:
        return Check(
            "holds", f"{words} steps {rule.step:.4g} (t + 1)^(-{exponent:.4g})", (exponent, exponent)
        )
    return Check("fails", f"{words} rule is not normalized with steps eta (t + 1)^(-a), 1/2 < a < 1")


def scheduled(run: Run) -> Check:
    """W moves by steps eta (t + 1)^(-a), 1/2 < a < 1."""
    return _scheduled(run.rule, "W's")


def decoder_scheduled(run: Run) -> Check:
    """The decoder moves by steps eta_u (t + 1)^(-a_u), 1/2 < a_u < 1."""
    assert run.joint is not None
    return _scheduled(run.joint.rule, "the decoder's")


@lru_cache(maxsize=64)
def equal_balance(problem: Problem, target: MaxMargin) -> tuple[float, float, float]:
    """(||r*||, q_min, sig) of the balance of equal weights, for linearly independent active constraints.

    The shares are then alpha_k/||M||^2, and <A_k, r*> their negative logarithms up to a constant that makes
    r* orthogonal to M. sig is the least eigenvalue of the Gram matrix weighted by the shares.
    """
    gram, shares = problem.gram(), target.dual / target.dual.sum()
    levels = -np.log(shares) + float(shares @ np.log(shares))
    root = np.sqrt(shares)
    least = float(np.linalg.eigvalsh(root[:, None] * gram * root)[0])
    return float(np.sqrt(levels @ np.linalg.solve(gram, levels))), float(shares.min()), least


def independent(run: Run) -> Check:
    """The reference constraints are linearly independent."""
    eigenvalues = np.linalg.eigvalsh(on_reference(run).problem.gram())
    ratio = float(eigenvalues[0] / eigenvalues[-1])
    text = f"least over largest eigenvalue of the Gram matrix {ratio:.3g}"
    if ratio > 1e-9:
        return Check("holds", text, (ratio, ratio))
    return Check("unknown", text, (ratio, ratio))


def longest_steps(run: Run) -> Float[np.ndarray, " rows"]:
    """A bound on the steps of W from each recorded one on: the schedule's, or the rule's cap."""
    steps = run.history["step"].to_numpy(dtype=float)
    if run.rule.name == "ngd":
        return np.asarray(float(run.rule.step) * (steps + 1) ** -float(run.rule.exponent))
    return np.full(steps.shape, float(run.rule.law.cap))


def longest_step(run: Run) -> Check:
    """Every step of W is at most some e_max."""
    longest = float(longest_steps(run)[0])
    if np.isfinite(longest):
        return Check("holds", f"e_max = {longest:.4g}", (longest, longest))
    return Check("fails", "no cap e_max on the step length is known")


def longest_token(problem: Problem) -> float:
    """R_o, the length of the longest optimal token."""
    return float(np.linalg.norm(problem.tokens[np.arange(problem.n), problem.optimal], axis=1).max())


def longest_difference(problem: Problem) -> float:
    """R_d, the largest distance of an optimal token from another of its sequence."""
    return float(np.linalg.norm(problem.differences, axis=1).max())


CONDITIONS: dict[str, Callable[[Run], Check]] = {
    "joint": joint,
    "fixed decoder": fixed_decoder,
    "settled tokens": settled,
    "decoder separable": decoder_separable,
    "independent": independent,
    "longest step": longest_step,
    "schedule": scheduled,
    "decoder schedule": decoder_scheduled,
}
