"""The assumptions (S) (O) (E) (N) (F), decided in ball arithmetic over the exact values of the floats.

A check says Holds, Fails or Unknown with an enclosure of the number it turned on; Unknown is an answer, a
guess is not. Also the conditions a corollary puts on a run: its rule, its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from flint import arb, arb_mat, ctx

from numerics.errors import AttnratesError
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.run import Run
from numerics.steps import GradientDescent, NormalizedGD, Rule

State = Literal["holds", "fails", "unknown"]
BITS = 128
WORK_LIMIT = 400_000_000  # ball multiplications for one Gram matrix; beyond it the answer is Unknown


@dataclass(frozen=True)
class Check:
    """The outcome of checking one hypothesis: state, reason, enclosure (lo, hi) of the deciding number."""

    state: State
    detail: str
    value: tuple[float, float] | None = None


def _bounds(x: arb) -> tuple[float, float]:
    """Outward-rounded floats around a ball."""
    lo, hi = float(x.lower()), float(x.upper())
    return float(np.nextafter(lo, -np.inf)), float(np.nextafter(hi, np.inf))


def _show(x: arb) -> str:
    lo, hi = _bounds(x)
    return f"[{lo:.6g}, {hi:.6g}]"


@dataclass(frozen=True)
class Enclosures:
    """Balls around what the assumptions speak of; see ``enclose``.

    ``margin`` encloses g* by weak duality from the solver's multipliers alpha, whatever their error: every
    W = sum alpha_k A_k has g* >= min_k <A_k, W>/||W||, and g* <= ||W||/sum alpha when alpha >= 0.
    """

    margin: arb
    feasible: bool
    smallest_product: arb
    smallest_pair: tuple[int, int]
    radius: arb


@lru_cache(maxsize=64)
def _enclose(problem: Problem, dual: bytes | None) -> Enclosures | None:
    N, d = problem.n_constraints, problem.d
    if N == 0 or N * N * d > WORK_LIMIT:
        return None
    previous, ctx.prec = ctx.prec, BITS
    try:
        sequence = problem.constraint_sequence
        best = problem.tokens[np.arange(problem.n), problem.optimal][sequence]
        other = problem.tokens[sequence, problem.constraint_token]
        differences = arb_mat(best.tolist()) - arb_mat(other.tolist())
        tokens = differences * differences.transpose()
        queries = arb_mat(problem.queries.tolist())
        pairs = queries * queries.transpose()
        gram = [
            [tokens[k, m] * pairs[int(sequence[k]), int(sequence[m])] for m in range(N)] for k in range(N)
        ]
    finally:
        ctx.prec = previous
    flat = np.array([[float(x.mid()) for x in row] for row in gram])
    smallest = _least([x for row in gram for x in row])
    radius = _greatest([gram[k][k].sqrt() for k in range(N)])
    k, m = np.unravel_index(int(flat.argmin()), flat.shape)
    margin = None if dual is None else between_duals(gram, np.frombuffer(dual))
    found = arb(0).union(radius) if margin is None else margin
    return Enclosures(found, margin is not None, smallest, (int(k), int(m)), radius)


def between_duals(gram: list[list[arb]], dual: np.ndarray) -> arb | None:
    """A ball around the margin of constraints with this Gram matrix, by weak duality from any multipliers.

    None where the combination of the constraints by the multipliers does not satisfy all of them.
    """
    alpha = [arb(max(float(x), 0.0)) for x in dual]
    images = [sum((a * x for a, x in zip(alpha, row, strict=True)), start=arb(0)) for row in gram]
    square = sum((a * x for a, x in zip(alpha, images, strict=True)), start=arb(0))
    length, mass, least = square.sqrt(), sum(alpha, start=arb(0)), _least(images)
    if not (square > 0 and least > 0):
        return None
    return (least / length).union(length / mass)


SOLVED = 1e-9
"""How far, relatively, the margin of a recorded solution may be from the optimal one: this much is rounding.
The bounds are held against distances from the recorded one, so that a worse one makes every verdict void."""


def unsolved(margin: arb, norm: float) -> str | None:
    """Why a solution of this norm is not the max-margin one, up to rounding; None where it is."""
    recorded = 1 / arb(norm) if norm > 0 else arb.nan()
    if abs(recorded / margin - 1) < SOLVED:
        return None
    return (
        f"the recorded solution is not the max-margin one: 1/norm = {_show(recorded)}, {_show(margin)} is g*"
    )


def _least(balls: list[arb]) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = out.min(x)
    return out


def _greatest(balls: list[arb]) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = out.max(x)
    return out


def enclose(problem: Problem, target: MaxMargin | None) -> Enclosures | None:
    """Ball enclosures of margin, smallest Gram entry and largest constraint norm; None when too large."""
    return _enclose(problem, None if target is None else np.ascontiguousarray(target.dual).tobytes())


def _too_large(problem: Problem) -> Check:
    if problem.n_constraints == 0:
        return Check("unknown", "no constraint: every sequence has one token")
    return Check("unknown", f"N = {problem.n_constraints}, d = {problem.d} is too large to enclose")


def separable(problem: Problem, target: MaxMargin | None) -> Check:
    """(S): some W has <A_k, W> >= 1 for all k, and the recorded solution is the shortest."""
    balls = enclose(problem, target)
    if balls is None:
        return _too_large(problem)
    if target is None:
        return Check("fails", "the solver found the constraints infeasible")
    if not balls.feasible:
        return Check("unknown", "the solver's solution does not satisfy the constraints strictly")
    reason = unsolved(balls.margin, target.norm)
    if reason is not None:
        return Check("unknown", reason, _bounds(balls.margin))
    return Check("holds", f"margin g* in {_show(balls.margin)}", _bounds(balls.margin))


def unique_optimum(problem: Problem, target: MaxMargin | None = None) -> Check:
    """(O): each sequence has one token of largest score (decided exactly when the problem is made)."""
    gap = float(np.min(problem.score_gaps)) if problem.n_constraints else float("inf")
    return Check("holds", f"smallest score gap {gap:.6g}", (gap, gap))


def equal_scores(problem: Problem, target: MaxMargin | None = None) -> Check:
    """(E): in each sequence all non-optimal tokens have the same score, exactly."""
    used = np.flatnonzero(problem.decoder)
    u = [Fraction(float(x)) for x in problem.decoder[used]]
    scale = float(np.abs(problem.decoder).sum() * np.abs(problem.tokens).max())
    for i in range(problem.n):
        rest = [k for k in range(problem.T) if problem.mask[i, k] and k != problem.optimal[i]]
        if len(rest) < 2:
            continue
        scores = problem.scores[i, rest]
        spread = float(scores.max() - scores.min())
        if spread > 1e-9 * scale:  # far beyond rounding
            return Check(
                "fails", f"sequence {i}: non-optimal scores spread over {spread:.4g}", (spread, spread)
            )
        chosen = problem.tokens[i][:, used]
        exact = {sum(a * Fraction(float(b)) for a, b in zip(u, chosen[k], strict=True)) for k in rest}
        if len(exact) > 1:
            width = float(max(exact) - min(exact))
            return Check("fails", f"sequence {i}: non-optimal scores differ by {width:.4g}", (width, width))
    return Check("holds", "all non-optimal scores are equal, exactly", (0.0, 0.0))


def near_acute(problem: Problem, target: MaxMargin | None) -> Check:
    """(N): the smallest Gram entry is above -g*^2."""
    balls = enclose(problem, target)
    if balls is None:
        return _too_large(problem)
    if not balls.feasible:
        return Check("fails" if target is None else "unknown", "no margin: (S) does not hold")
    needed = -(balls.margin**2)
    text = f"smallest <A_k,A_l> {_show(balls.smallest_product)} against -g*^2 {_show(needed)}"
    if balls.smallest_product > needed:
        return Check("holds", text, _bounds(balls.smallest_product))
    if balls.smallest_product <= needed:
        i, tau = problem.constraint_sequence, problem.constraint_token
        first, second = (f"({i[k]}, {tau[k]})" for k in balls.smallest_pair)
        where = f"at the (sequence, token) {first} and {second}"
        return Check("fails", f"{text} {where}", _bounds(balls.smallest_product))
    return Check("unknown", text, _bounds(balls.smallest_product))


def full_support(problem: Problem, target: MaxMargin | None) -> Check:
    """(F): every constraint is active with a positive multiplier (from the certified solution)."""
    if target is None:
        return Check("fails", "no solution: (S) does not hold")
    if not bool(np.all(target.margins < 1 + 1e-6)):
        k = int(np.argmax(target.margins))
        return _inactive(problem, target, k)
    try:
        answer = target.certify().full_support
    except AttnratesError as error:
        return Check("unknown", str(error))
    states: dict[str, State] = {"holds": "holds", "fails": "fails"}
    return Check(states.get(answer, "unknown"), "certified support")


def _inactive(problem: Problem, target: MaxMargin, k: int) -> Check:
    balls = enclose(problem, target)
    if balls is None or not balls.feasible:
        return Check("unknown", f"constraint {k} looks inactive, not certified")
    # <A_k, M> differs from the float solution's by at most R ||M - W||, and strong convexity bounds that.
    lo, hi = _bounds(balls.margin)
    distance = float(np.sqrt(max(1 / lo**2 - 1 / hi**2, 0.0))) * _bounds(balls.radius)[1] * 2
    slack = float(target.margins[k]) - 1
    if slack > distance + 1e-9:
        return Check(
            "fails", f"constraint {k} is inactive, slack {slack:.4g}", (slack - distance, slack + distance)
        )
    return Check("unknown", f"constraint {k}: slack {slack:.4g} is within the solution's error")


ASSUMPTIONS: Mapping[str, Callable[[Problem, MaxMargin | None], Check]] = {
    "S": separable,
    "O": unique_optimum,
    "E": equal_scores,
    "N": near_acute,
    "F": full_support,
}


def _rule(name: str, words: str) -> Callable[[Run], Check]:
    def check(run: Run) -> Check:
        if run.rule.name != name:
            return Check("fails", f"the rule is {run.rule.name}, the statement is about {words}")
        if getattr(run.rule, "exponent", 0):
            return Check("fails", "the step size is not constant")
        return Check("holds", words)

    return check


def along_gradient(run: Run) -> Check:
    """Every step goes along the negative gradient, by a length that the rule says."""
    if isinstance(run.rule, Rule):
        return Check("holds", "every step goes along the negative gradient")
    optimizer = getattr(run.rule, "optimizer", run.rule.name)
    return Check("fails", f"{optimizer} need not step along the gradient")


def zero_start(run: Run) -> Check:
    """W_0 = 0, exactly."""
    if run.init is None or not np.any(run.init):
        return Check("holds", "W_0 = 0")
    return Check("fails", f"||W_0|| = {np.linalg.norm(run.init):.4g}")


def capped(run: Run) -> Check:
    """The step length has a cap e_max."""
    cap = float(run.rule.law.cap) if isinstance(run.rule, Rule) else float("inf")
    if np.isfinite(cap):
        return Check("holds", f"e_max = {cap:.4g}", (cap, cap))
    return Check("fails", "the rule has no cap e_max on its step length")


def longest_step(run: Run) -> float:
    """A bound e_max on every step length: the rule's own, or for gradient descent eta R n a_max/4.

    The latter is the page gradient-bounded, under equal scores; infinite where no bound is proved, as for
    Polyak's step without a cap or another optimizer's.
    """
    rule, problem = run.rule, run.problem
    if not isinstance(rule, Rule):
        return float("inf")
    if isinstance(rule, NormalizedGD):
        return float(rule.step)
    if isinstance(rule, GradientDescent):
        if equal_scores(problem).state != "holds":
            return float("inf")
        steepest = problem.score_gaps / (1 + np.exp(_common_scores(problem))) / problem.n
        return float(rule.step * problem.constraint_norms.max() * problem.n * steepest.max() / 4)
    return float(rule.law.cap)


def _common_scores(problem: Problem) -> np.ndarray:
    return problem.scores[problem.constraint_sequence, problem.constraint_token]


def bounded_steps(run: Run) -> Check:
    """Every step length is at most some e_max."""
    longest = longest_step(run)
    if np.isfinite(longest):
        return Check("holds", f"e_max = {longest:.4g}", (longest, longest))
    return Check("fails", "no cap e_max on the step length is known")


def short_steps(run: Run) -> Check:
    """e_max < 2 g*/R_B^2, in ball arithmetic, with R_B^2 = R^2 - g*^2 (under full support)."""
    balls = enclose(run.problem, run.target)
    longest = longest_step(run)
    if balls is None or not balls.feasible:
        return Check("unknown", "no margin")
    if not np.isfinite(longest):
        return Check("fails", "no cap e_max on the step length is known")
    limit = 2 * balls.margin / (balls.radius**2 - balls.margin**2)
    text = f"e_max = {longest:.4g} against 2 g*/R_B^2 {_show(limit)}"
    if arb(longest) < limit:
        return Check("holds", text, _bounds(limit))
    return Check("fails" if arb(longest) >= limit else "unknown", text, _bounds(limit))


def balanced(run: Run) -> Check:
    """The balanced point r* exists and is enclosed."""
    from theory.predict import predict

    try:
        found = predict(run.problem, run.rule)
    except AttnratesError as error:
        return Check("unknown", str(error))
    return Check("holds", f"||r*|| in {_show(found.balanced)}", _bounds(found.balanced))


def supported(run: Run) -> Check:
    """The constraints that support M are known for certain, and balance."""
    from theory import support_run

    return support_run.check(run)


CONDITIONS: Mapping[str, Callable[[Run], Check]] = {
    "gd": _rule("gd", "gradient descent with a constant step"),
    "ngd": _rule("ngd", "normalized gradient descent with a constant step"),
    "polyak": _rule("polyak", "Polyak's step"),
    "gradient steps": along_gradient,
    "zero start": zero_start,
    "cap": capped,
    "bounded steps": bounded_steps,
    "short steps": short_steps,
    "balance": balanced,
    "support": supported,
}


def check_all(run: Run, names: tuple[str, ...]) -> dict[str, Check]:
    """Each named assumption or condition, on a run.

    Raises:
        KeyError: an unknown name.
    """
    return {
        name: ASSUMPTIONS[name](run.problem, run.target) if name in ASSUMPTIONS else CONDITIONS[name](run)
        for name in names
    }
