"""The cells handed to a Dask cluster, here or at an address: workers compute, this process writes.

A worker that dies takes only the cells it was working on, and they are handed out again; when the scheduler
dies, what has come back is on disk.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attnrates.sweep import cell as work
from attnrates.sweep.grid import Cell
from numerics.errors import AttnratesError, InputError

if TYPE_CHECKING:
    from concurrent.futures import Future as Started

    from distributed import Client, Future, LocalCluster

AHEAD = 4  # cells handed out for each worker: enough to keep it busy, few enough to lose little
ATTEMPTS = 20  # that may end with a worker's death before a cell is suspected, and again before it is refused
STARTS = 10  # of the local cluster
SILENCE = 20.0  # seconds without a scheduler before it is given up
GREETING = 20.0  # seconds for what listens at an address to say that it is a scheduler


class SchedulerLostError(AttnratesError):
    """The scheduler does not answer any more."""


@contextmanager
def connect(address: str | None, workers: int | None) -> Iterator[Client]:
    """Start a cluster of processes on this machine, or connect to the scheduler at an address.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    if find_spec("distributed") is None:
        raise InputError("a sweep needs Dask: pip install '.[sweep]'")
    import dask
    from distributed import Client

    with dask.config.set(
        {
            "distributed.scheduler.allowed-failures": ATTEMPTS,
            "distributed.comm.timeouts.connect": f"{SILENCE:.0f}s",
            "distributed.comm.timeouts.tcp": f"{SILENCE:.0f}s",
            "distributed.logging.distributed": "critical",
            "distributed.admin.large-graph-warning-threshold": "1GB",
        }
    ):
        if address is not None:
            try:
                asyncio.run(_greet(address))
                client = Client(address, timeout=SILENCE, set_as_default=False)
            except Exception as error:  # whatever listens there may send anything
                reason = " ".join(str(error).split()) or type(error).__name__
                raise InputError(f"no scheduler answers at {address!r}: {reason}") from None
            with client:
                yield client
            return
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # inherited by the workers
        with (
            _local(workers or os.cpu_count() or 1) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client


async def _greet(address: str) -> None:
    """Ask the scheduler at an address who it is: what is none could make Dask's client wait for ever.

    Raises ValueError when it is something else, TimeoutError when it does not answer, or what Dask raises.
    """
    from distributed.core import connect as open_comm

    async with asyncio.timeout(GREETING):
        comm = await open_comm(address, timeout=GREETING, deserialize=False)
        try:
            await comm.write({"op": "identity", "reply": True})
            answer = await comm.read()
        finally:
            comm.abort()
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise ValueError("what answers is no scheduler")


def _local(workers: int) -> LocalCluster:
    """Start a cluster on this machine; once more where a worker dies before it has begun."""
    from distributed import LocalCluster

    for attempt in range(1, STARTS + 1):
        try:
            return LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # any free port; Dask serves its pages, dashboard or not
                scheduler_kwargs={"dashboard": False},
                silence_logs=50,
            )
        except RuntimeError as error:  # what Dask raises when a worker does not start
            if attempt == STARTS:
                raise AttnratesError(f"the workers do not start: {error}") from None
    raise AssertionError("unreachable")


def outcomes(client: Client, cells: Sequence[Cell], *, check: bool) -> Iterator[tuple[Cell, work.Outcome]]:
    """Have the cells computed; give each as it comes back.

    A cell whose workers die again and again (for want of memory, say) is tried alone once all others are
    done, for it may have shared its workers with the one that kills them.

    Raises:
        SchedulerLostError: the scheduler is gone.
        InputError: the workers run other code than this process.
    """
    from distributed import TimeoutError as NotYet
    from distributed import wait
    from distributed.scheduler import KilledWorker

    waiting = deque((cell, 0) for cell in cells)
    suspects: deque[tuple[Cell, int]] = deque()
    running: dict[Future, tuple[Cell, int]] = {}
    own = work.code()
    silent = 0.0
    refilled: Started | None = None
    while waiting or running or suspects:
        if not waiting and not running:
            waiting.append(suspects.popleft())
        known = len(_workers(client))
        if client.cluster is not None and known < len(client.cluster.worker_spec):
            refilled = _refill(client.cluster) if refilled is None or refilled.done() else refilled
        room = AHEAD * max(1, known) - len(running)
        for _ in range(min(room, len(waiting))):
            cell, attempt = waiting.popleft()
            future = client.submit(
                work.compute,
                cell.setting,
                check=check,
                key=f"attnrates-{cell.key}-{attempt}",
                pure=False,
            )
            running[future] = (cell, attempt)
        try:
            with client.as_current():
                done = wait(list(running), timeout=1.0, return_when="FIRST_COMPLETED").done
        except (NotYet, TimeoutError):
            done = set()
        except Exception as error:  # the client says in many ways that it has lost its scheduler
            raise SchedulerLostError(f"the scheduler is gone: {error}") from None
        silent = 0.0 if client.status == "running" else silent + 1.0
        if silent >= SILENCE or client.status in ("closed", "closing"):
            raise SchedulerLostError("the scheduler is gone")
        for future in done:
            cell, attempt = running.pop(future)
            if future.status == "finished":
                outcome = future.result()
                if outcome.code != own:
                    raise InputError(
                        "the workers have another version of attnrates than this process; install the same"
                    )
                yield cell, outcome
            elif future.status != "error":  # cancelled: the scheduler was lost and came back
                waiting.append((cell, attempt + 1))
            elif not isinstance(failure := future.exception(), KilledWorker):
                yield cell, work.Outcome(own, error=f"{type(failure).__name__}: {failure}")
            elif (died := attempt + failure.allowed_failures + 1) > 2 * ATTEMPTS:
                reason = (
                    f"{died} workers died while they ran this cell: it may need more memory than they have"
                )
                yield cell, work.Outcome(own, error=reason)
            else:
                suspects.append((cell, died))


def _refill(cluster: LocalCluster) -> Started:
    """Start those workers of the local cluster anew that Dask has given up.

    A dead worker is restarted by its nanny; but one that is not back in 15 seconds, as happens on a busy
    machine, Dask drops together with the nanny, and would never replace: without workers a sweep would wait
    for ever.
    """
    from distributed.core import Status

    async def start() -> None:
        for name, nanny in list(cluster.workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del cluster.workers[name]
        with suppress(Exception):  # a worker that dies while it starts; the next turn tries again
            await cluster

    loop: Any = cluster.loop  # Tornado's, which runs on asyncio's
    return asyncio.run_coroutine_threadsafe(start(), loop.asyncio_loop)


def _workers(client: Client) -> dict[str, Any]:
    """Give the workers now known; none where the scheduler does not answer."""
    try:
        return dict(client.scheduler_info(n_workers=-1)["workers"])
    except Exception:  # it answers in many ways that it cannot
        return {}
