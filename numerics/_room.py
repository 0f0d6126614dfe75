"""Free memory of this machine, known without torch: what may be read or made is refused beyond it."""

from __future__ import annotations

import os
from pathlib import Path

from numerics.errors import InputError


def free_memory() -> int:
    """Bytes that are free on the machine or in the container, whichever is less."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = 1024 * int(line.split()[1])
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
        if limit.isdigit():
            free = min(free, max(int(limit) - used, 0))
    except (OSError, ValueError):
        pass  # not Linux, or no cgroup: the physical memory stands
    return free


def require(what: str, need: int) -> None:
    """Raise InputError, with the numbers, where `what` needs more bytes than half of what is free."""
    room = free_memory() // 2
    if need > room:
        raise InputError(f"{what} needs about {gigabytes(need)}, and {gigabytes(room)} are available")


def gigabytes(size: int) -> str:
    """A number of bytes as text; it may be astronomic."""
    return f"{size / 1e9:.3g} GB" if size < 10**300 else "more than 10^291 GB"
