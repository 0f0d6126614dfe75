"""Exact confidence intervals for a share."""

from __future__ import annotations

from numerics.errors import InputError


def interval(successes: int, trials: int, confidence: float = 0.99) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability, from `successes` among independent `trials`.

    Each end is passed with probability at most (1 - confidence)/2. No trial: the whole of [0, 1]. Raises
    InputError for counts or a confidence out of range.
    """
    from scipy.stats import beta

    if not 0 <= successes <= trials:
        raise InputError(f"{successes} successes in {trials} trials are impossible")
    if not 0 < confidence < 1:
        raise InputError(f"a confidence must lie between 0 and 1, and is {confidence}")
    tail, failures = (1 - confidence) / 2, trials - successes
    low = float(beta.ppf(tail, successes, failures + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, failures)) if failures else 1.0
    return low, high
