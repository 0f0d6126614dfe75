"""How many threads there may be, and how many a tensor program gets: one where a step is too small."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Numbers that a step touches, below which one thread steps. Where other work keeps the cores busy, threads
# wait for each other: on a loaded machine of two cores a step of two took 4 to 30 times as long at all sizes
# from 10^2 to 10^6.
SMALL = 1 << 20


def cores() -> int:
    """CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """One torch thread for a step that touches few numbers, as many as torch has for others.

    By size and not by load, so that the same call has the same bits.
    """
    before = torch.get_num_threads()
    if numbers >= SMALL or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
