"""Handwritten digits as sequences of patch tokens, two digits a problem, with a fitted linear decoder."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from numerics.errors import InputError
from numerics.problem import Problem


def digits(
    classes: str = "3v5",
    *,
    seed: int = 0,
    n: int = 20,
    patch: int = 2,
    query: str = "mean",
) -> Problem:
    """Take n images of two digits, half of each, as sequences of patches: scikit-learn's 8 x 8 digits.

    `classes` names the digits, the first labelled +1. An image is cut into square patches of side `patch`
    (1, 2 or 4), and a token is one patch scaled to unit norm, in coordinates of its own position (d = 64):
    equal patches at different positions are different, orthogonal tokens. Blank patches are masked, so that
    lengths vary. `query="mean"` attends from the mean token scaled to unit norm, `query="first"` from the
    first token.

    The decoder is scikit-learn's logistic regression without intercept, fitted to the mean tokens of all
    images of the two digits and rounded to six decimals, so that the problem does not depend on the
    machine. `seed` draws the images. Scores are real-valued and unequal: assumption (E) fails, on purpose.
    """
    # scikit-learn loads slowly; everything else must start without it.
    from sklearn.linear_model import LogisticRegression

    if patch not in {1, 2, 4}:
        raise InputError(f"digits needs a patch side of 1, 2 or 4, not {patch}")
    if query not in {"mean", "first"}:
        raise InputError(f'digits needs query "mean" or "first", not "{query}"')
    every, labels, take = _choose(classes, seed=seed, n=n)
    tokens, mask = _patch_tokens(every, patch)
    means = tokens.sum(axis=1) / mask.sum(axis=1)[:, None]
    fit = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000).fit(means, labels)
    decoder = np.round(fit.coef_[0], 6)
    z = means[take] / np.linalg.norm(means[take], axis=1)[:, None] if query == "mean" else None
    return Problem(tokens[take], z, labels[take], decoder, mask[take])


def images(classes: str = "3v5", *, seed: int = 0, n: int = 20) -> Float[np.ndarray, "n 8 8"]:
    """Give the images that `digits` with the same options is made of: ink from 0 to 16."""
    every, _, take = _choose(classes, seed=seed, n=n)
    return every[take]


def _choose(classes: str, *, seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all images of the two digits, their labels, and which of them make the problem."""
    from sklearn.datasets import load_digits

    names = classes.split("v")
    if (
        len(names) != 2
        or not all(len(name) == 1 and name in "0123456789" for name in names)
        or names[0] == names[1]
    ):
        raise InputError(f'digits needs two different digits such as "3v5", not "{classes}"')
    if seed < 0:
        raise InputError(f"the seed must not be negative, and is {seed}")
    positive, negative = (int(name) for name in names)
    data = load_digits()
    chosen = np.isin(data.target, (positive, negative))
    every, labels = data.images[chosen], np.where(data.target[chosen] == positive, 1.0, -1.0)
    available = 2 * min(int((labels > 0).sum()), int((labels < 0).sum()))
    if not 2 <= n <= available or n % 2:
        raise InputError(f"digits:{classes} needs an even n from 2 to {available}, not {n}")

    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(labels == sign), n // 2, replace=False) for sign in (1.0, -1.0)]
    return every, labels, np.sort(np.concatenate(rows))


def _patch_tokens(images: np.ndarray, patch: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (n, T, 64) and mask (n, T): the image restricted to each patch, scaled to unit norm."""
    side = images.shape[1]
    row, column = np.divmod(np.arange(side * side), side)
    owner = (row // patch) * (side // patch) + column // patch  # which patch a pixel belongs to
    T = (side // patch) ** 2
    restricted = images.reshape(-1, 1, side * side) * (owner == np.arange(T)[:, None])
    norms = np.sqrt((restricted**2).sum(axis=2))  # pixels are small integers: exact up to the root
    mask = norms > 0
    return restricted / np.where(mask, norms, 1.0)[..., None], mask
