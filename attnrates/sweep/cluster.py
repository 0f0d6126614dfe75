"""The cells handed to a Dask cluster, here or at an address: workers compute, this process writes.

A worker that dies takes only the cells it was working on, and they are handed out again; when the scheduler
dies, what has come back is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attnrates.sweep import apart
from attnrates.sweep import cell as work
from attnrates.sweep.grid import Cell
from numerics.errors import AttnratesError, InputError

if TYPE_CHECKING:
    from concurrent.futures import Future as Started

    from distributed import Client, Future, LocalCluster

AHEAD = 4  # cells handed out for each worker: enough to keep it busy, few enough to lose little
ATTEMPTS = 5  # that may end with a worker's death before a cell is suspected
MOST = 40  # workers that may die over one cell before it is refused, whatever killed them
STARTS = 10  # of the local cluster
SILENCE = 20.0  # seconds without a scheduler before it is given up
GREETING = 20.0  # seconds for what listens at an address to say that it is a scheduler
NOTICE = 5.0  # seconds without any worker before it is told
FETCH = 10.0  # seconds to bring a result here
REFILL = 60.0  # seconds for a local worker to start


class SchedulerLostError(AttnratesError):
    """The scheduler does not answer any more."""


class NoWorkersError(AttnratesError):
    """There has been no worker for as long as was to be waited."""


@dataclass(frozen=True)
class _Task:
    """A cell handed out: how many workers died over it so far, and whether it is tried apart."""

    cell: Cell
    died: int = 0
    apart: bool = False
    again: int = 0  # handed out anew, since Dask knows a task by its key


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

    settings = dask.config.set(
        {
            "distributed.scheduler.allowed-failures": ATTEMPTS,
            "distributed.comm.timeouts.connect": f"{SILENCE:.0f}s",
            "distributed.comm.timeouts.tcp": f"{SILENCE:.0f}s",
            "distributed.logging.distributed": "critical",
            "distributed.admin.large-graph-warning-threshold": "1GB",
            "distributed.worker.memory.pause": False,  # one that stays paused would be waited for for ever
        }
    )
    with _quiet(), settings:
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Hear nothing of the tasks that Dask's client leaves behind when a worker is lost."""
    logger = logging.getLogger("asyncio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


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


def outcomes(
    client: Client,
    cells: Sequence[Cell],
    *,
    check: bool,
    patience: float = 300.0,
    tell: Callable[[str], None] = print,
) -> Iterator[tuple[Cell, work.Outcome]]:
    """Have the cells computed; give each as it comes back.

    A cell whose workers die again and again (for want of memory, say) is suspected: it is tried once all
    others are done, alone and in a process of its own (`apart`), for it may have shared its workers with the
    one that kills them. `tell` is told when there is no worker, which is waited for `patience` seconds.

    Raises:
        SchedulerLostError: the scheduler is gone.
        NoWorkersError: there is no worker.
        InputError: the workers run other code than this process, or have none of it.
    """
    from distributed import TimeoutError as NotYet
    from distributed import wait

    waiting = deque(_Task(cell) for cell in cells)
    suspects: deque[_Task] = deque()
    running: dict[Future, _Task] = {}
    own = work.code()
    silent = 0.0
    lonely = time.monotonic()
    told = False
    refilled: Started | None = None
    while waiting or running or suspects:
        if not waiting and not running:
            waiting.append(suspects.popleft())
        known = len(_workers(client))
        if client.cluster is not None and known < len(client.cluster.worker_spec):
            refilled = _refill(client.cluster) if refilled is None or refilled.done() else refilled
        if known:
            lonely, told = time.monotonic(), False
        elif time.monotonic() - lonely > patience:
            raise NoWorkersError(
                f"no worker for {patience:g} seconds; finished cells are kept, the same command goes on"
            )
        elif time.monotonic() - lonely > NOTICE and not told:
            tell(f"there is no worker; waiting up to {patience:g} seconds for one")
            told = True
        room = AHEAD * max(1, known) - len(running)
        for _ in range(min(room, len(waiting))):
            task = waiting.popleft()
            running[_submit(client, task, check=check)] = task
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
            task = running.pop(future)
            result = _result(future)
            if result is None and future.status in ("finished", "pending"):
                running[future] = task
            elif result is None:  # cancelled or lost: the scheduler was away, or came back
                waiting.append(replace(task, again=task.again + 1))
            elif isinstance(result, Exception):
                failed = _failed(task, result)
                if isinstance(failed, _Task):
                    suspects.append(failed)
                else:
                    yield task.cell, failed
            elif result.code != own:
                raise InputError(
                    "the workers have another version of attnrates than this process, or its code was "
                    "changed since; install the same"
                )
            else:
                yield task.cell, result


def _result(future: Future) -> work.Outcome | Exception | None:
    """Bring a result here, or what went wrong in its place; None where it is not to be had, or not yet.

    A result is gone when its worker dies before it is brought: Dask has it computed again, which may end
    otherwise, or not, where there is no other worker.
    """
    from distributed import CancelledError
    from distributed import TimeoutError as NotYet

    if future.status not in ("finished", "error"):
        return None
    try:
        outcome: work.Outcome = future.result(timeout=FETCH)
    except (NotYet, TimeoutError, CancelledError):
        return None
    except Exception as error:
        return error
    return outcome


def _submit(client: Client, task: _Task, *, check: bool) -> Future:
    key = f"attnrates-{task.cell.key}-{task.died}-{task.again}"
    if task.apart:
        return client.submit(apart.compute, work.compute, task.cell.setting, check=check, key=key, pure=False)
    return client.submit(work.compute, task.cell.setting, check=check, key=key, pure=False)


def _failed(task: _Task, failure: Exception) -> _Task | work.Outcome:
    """Give the task to try again apart, or the outcome of a cell that cannot be run.

    Raises InputError when the cluster has no code to run any cell with.
    """
    from distributed.scheduler import KilledWorker

    if isinstance(failure, KilledWorker):
        died = task.died + failure.allowed_failures + 1
        if died <= MOST:
            return replace(task, died=died, apart=True)
        return work.Outcome(work.code(), error=f"{died} workers died while they ran this cell")
    reason = " ".join(f"{type(failure).__name__}: {failure}".split())
    if isinstance(failure, ImportError) or "deserializ" in reason:
        raise InputError(f"the cluster cannot load attnrates; install it there as it is here ({reason})")
    return work.Outcome(work.code(), error=reason)


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
            async with asyncio.timeout(REFILL):
                await cluster

    loop: Any = cluster.loop  # Tornado's, which runs on asyncio's
    return asyncio.run_coroutine_threadsafe(start(), loop.asyncio_loop)


def _workers(client: Client) -> dict[str, Any]:
    """Give the workers now known; none where the scheduler does not answer."""
    try:
        return dict(client.scheduler_info(n_workers=-1)["workers"])
    except Exception:  # it answers in many ways that it cannot
        return {}
