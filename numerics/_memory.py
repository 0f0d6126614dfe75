"""Planning memory: what a training call needs, what there is, and which way to go, before it allocates."""

from __future__ import annotations

import torch

from numerics._room import free_memory, gigabytes
from numerics.errors import InputError
from numerics.problem import Problem

_SHARE = 0.9  # of what is free: the rest is for the interpreter and the libraries


def available(device: torch.device) -> int:
    """Bytes that a training call may use on the device."""
    if device.type == "cuda":
        return int(_SHARE * torch.cuda.mem_get_info(device)[0])
    free = free_memory()
    return int(_SHARE * free)


def dense_gram_fits(
    problems: int, first: Problem, runs: int, *, device: torch.device, bytes_each: int, limit: int | None
) -> bool:
    """True for the Gram matrix, False for its two factors; raises InputError when neither fits.

    `limit` (bytes) stands in for what is available, None asks the machine. The estimate counts the matrix,
    the factors, the state of the runs and the temporaries of a step.
    """
    room = available(device) if limit is None else limit
    N, n, d = first.n_constraints, first.n, first.d
    width = first.T
    small = min(d, N) + min(d, n)
    factors = problems * 8 * (2 * N * min(N, d) + N * d + n * d + n * n)
    state = runs * bytes_each * (8 * N + 6 * n * width * (width + 1)) + runs * 8 * min(N, d) * min(n, d)
    dense = factors + state + problems * N * N * (8 + bytes_each if bytes_each < 8 else 8)
    lean = factors + state + runs * bytes_each * 3 * n * small
    if dense <= room:
        return True
    if lean <= room:
        return False
    raise InputError(
        f"training needs about {gigabytes(lean)} even without the Gram matrix (N = {N}, d = {d}, "
        f"runs = {runs}), and {gigabytes(room)} are available; train fewer runs at once or a smaller problem"
    )


def require_weight_space(
    problems: int, first: Problem, runs: int, *, device: torch.device, bytes_each: int, limit: int | None
) -> None:
    """Raise InputError when weight space does not fit: a few d x d matrices a run."""
    room = available(device) if limit is None else limit
    n, d, width = first.n, first.d, first.T
    runs_need = runs * bytes_each * (5 * d * d + 6 * n * width * (width + 1))
    need = runs_need + problems * 16 * (n * width * d + d * d)
    if need > room:
        raise InputError(
            f"training in weight space needs about {gigabytes(need)} (d = {d}, runs = {runs}), and "
            f'{gigabytes(room)} are available; space="gram" does not depend on d'
        )
