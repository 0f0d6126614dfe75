"""The default solver: a dual active-set method in floats, exact arithmetic where floats cannot tell."""

from __future__ import annotations

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Float, Int

from numerics.errors import AttnratesError, CertificationError
from numerics.maxmargin import exact, infeasible
from numerics.maxmargin.active_set import Progress, Ray, Solved, StalledError, solve_units
from numerics.maxmargin.gram import UnitConstraints
from numerics.maxmargin.integers import IntegerConstraints
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem

_REFINEMENTS = 4
_ACCURATE = 1e-11  # KKT residual above which float64 is given up for longer floats
_USABLE = 1e-6  # KKT residual accepted where longer floats are too dear
_HOPELESS = 1e8  # max ||A_k||/g* from which a bound counts as infeasible when exact arithmetic is too dear


def solve(problem: Problem, progress: Progress | None = None) -> MaxMargin:
    """Solve max margin by its dual, in floats as a rule. Raises InfeasibleError with a certificate.

    Long floats solve what is too ill-conditioned for float64, and exact arithmetic decides whether
    constraints that seem to cancel do, as far as the limits in `exact` go. Beyond, raises AttnratesError.
    """
    units = UnitConstraints(problem)
    try:
        outcome = solve_units(units, progress)
    except StalledError as error:
        return _precisely(problem, units, error.support, error.multipliers, str(error))
    if isinstance(outcome, Ray):
        _raise_if_infeasible(problem, outcome.support.tolist(), int(outcome.support[-1]))
        return _precisely(problem, units, outcome.support, outcome.weights, "nearly infeasible")
    solution = _refined(problem, units, outcome)
    if solution.residual < _ACCURATE or (
        solution.residual < _USABLE and outcome.support.size > exact.LONG_SIZE_LIMIT
    ):
        return solution
    return _precisely(problem, units, outcome.support, outcome.multipliers, "ill-conditioned")


def solve_exactly(problem: Problem) -> MaxMargin:
    """Solve in rational arithmetic from scratch; dual and weights are roundings of the exact numbers.

    Raises InfeasibleError with a certificate, and AttnratesError beyond `exact.SIZE_LIMIT` active
    constraints.
    """
    constraints = IntegerConstraints(problem)
    try:
        outcome = exact.optimum(constraints, [])
    except CertificationError as error:
        raise AttnratesError(f"max margin: {error}") from None
    if isinstance(outcome, exact.Farkas):
        raise infeasible.infeasible_error(problem, infeasible.proof(problem, outcome))
    return _rounded(problem, constraints, outcome, "exact")


def _refined(problem: Problem, units: UnitConstraints, solved: Solved) -> MaxMargin:
    """Correct W itself by the margins it misses: free of the rounding of its multipliers."""
    a = np.zeros(problem.n_constraints)
    a[solved.support] = solved.multipliers
    W = problem.combine(units.dual(a))
    best = np.inf
    for _ in range(_REFINEMENTS):
        missed = (1.0 - problem.logit_gaps(W))[solved.support]
        error = float(np.max(np.abs(missed)))
        if not error < best / 2:
            break
        best = error
        correction = np.zeros(problem.n_constraints)
        correction[solved.support] = solved.solve(missed * units.targets[solved.support])
        if not np.isfinite(correction).all():
            break
        a += correction
        W = W + problem.combine(units.dual(correction))
    return MaxMargin.from_dual(problem, units.dual(np.maximum(a, 0.0)), "active-set", W)


def _raise_if_infeasible(problem: Problem, support: list[int], last: int) -> None:
    """Raise InfeasibleError if these constraints, which seem to cancel, are proved to."""
    if len(support) <= exact.SIZE_LIMIT:
        found = exact.farkas(IntegerConstraints(problem), support, last)
        certificate = infeasible.proof(problem, found) if found else None
    else:
        certificate = infeasible.spanned(problem, support)
    if certificate:
        raise infeasible.infeasible_error(problem, certificate)


def _precisely(
    problem: Problem,
    units: UnitConstraints,
    support: Int[np.ndarray, " p"],
    weights: Float[np.ndarray, " p"],
    reason: str,
) -> MaxMargin:
    """Solve in long floats, then, where they do not settle it, in rationals; from where floats stopped."""
    constraints = IntegerConstraints(problem)
    for arithmetic, solver in ((exact.LONG, "long-floats"), (exact.RATIONAL, "exact")):
        try:
            outcome = exact.optimum(constraints, support.tolist(), arithmetic)
        except CertificationError as error:
            reason = f"{reason}; {error}"
            continue
        if isinstance(outcome, exact.Optimum):
            return _rounded(problem, constraints, outcome, solver)
        _, last = max(zip(outcome.weights, outcome.support, strict=True))
        _raise_if_infeasible(problem, outcome.support, last)
    raise _bounded(problem, units, support, weights, reason)


def _bounded(
    problem: Problem,
    units: UnitConstraints,
    support: Int[np.ndarray, " p"],
    weights: Float[np.ndarray, " p"],
    reason: str,
) -> AttnratesError:
    """Build the error for constraints too many for exact arithmetic: infeasible, up to a proved norm."""
    beta = np.zeros(problem.n_constraints)
    beta[support] = weights / units.norms[support]
    certificate = infeasible.bound(problem, beta / beta.sum())
    norm = certificate.norm_at_least
    if norm is None or float(norm) * float(units.norms.max()) > _HOPELESS:
        return infeasible.infeasible_error(problem, certificate)
    return AttnratesError(
        f"max margin: {support.size} constraints are too ill-conditioned to decide ({reason}); it is only "
        f"proved that ||W|| is at least {float(norm):.3g}"
    )


def _rounded(
    problem: Problem, constraints: IntegerConstraints, outcome: exact.Optimum, solver: str
) -> MaxMargin:
    """Round a solution in rationals to floats."""
    dual = np.zeros(problem.n_constraints)
    with ctx.workprec(128):
        unit = arb(2) ** (-2 * constraints.exponent)
        dual[outcome.support] = [float(arb(value) * unit) for value in outcome.values]
    return MaxMargin.from_dual(problem, dual, solver, _weights(constraints, outcome))


def _weights(constraints: IntegerConstraints, optimum: exact.Optimum) -> np.ndarray:
    """M = 2^-exponent sum_k values_k D_k Z_k', rounded once."""
    precision = 256
    while True:
        with ctx.workprec(precision):
            values = [arb(value) * arb(2) ** (-constraints.exponent) for value in optimum.values]
            rows = arb_mat(constraints.differences(optimum.support)).tolist()
            scaled = [[x * value for x in row] for row, value in zip(rows, values, strict=True)]
            M = arb_mat(scaled).transpose() * arb_mat(constraints.query_rows(optimum.support))
            entries = M.entries()
            error = max((float(x.rad()) for x in entries), default=0.0)
        floats = np.array([float(x.mid()) for x in entries]).reshape(M.nrows(), M.ncols())
        if error <= 1e-20 * float(np.abs(floats).max()):
            return floats
        precision *= 2
