"""A cell in a process of its own, inside a worker: when it dies, the worker lives and tells how it died.

A worker that is lost says nothing of why: it may have been the cell, one that shared the worker, or someone
who killed it. Apart, a death is the cell's own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from attnrates.sweep import cell as work

if TYPE_CHECKING:
    from paper_figs.runs import Setting

TRIES = 2  # a process may be killed by someone else once

# The call is read from stdin, which ends when the worker does: then the process must not live on.
CHILD = """
import os, sys, threading
import cloudpickle
answer = os.dup(1)
os.dup2(2, 1)
function, setting, check = cloudpickle.load(sys.stdin.buffer)
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(1)), daemon=True).start()
try:
    found = function(setting, check=check)
except Exception as error:
    found = error
except BaseException as error:  # the process must answer, whatever asks it to leave
    found = RuntimeError(f"the cell leaves by {type(error).__name__} {error}".strip())
with os.fdopen(answer, "wb") as stream:
    cloudpickle.dump(found, stream)
os._exit(0)
"""


def compute(function: Callable[..., work.Outcome], setting: Setting, *, check: bool) -> work.Outcome:
    """Run function(setting, check=check) in a process of its own; its death gives an Outcome with its error.

    Raises what the function raises; a RuntimeError that names it where that is an exit or an interrupt.
    """
    import cloudpickle  # type: ignore[import-untyped]

    call = cloudpickle.dumps((function, setting, check))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    died = ""
    for _ in range(TRIES):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD],
            bufsize=0,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):  # it is dead already
                process.stdin.write(call)
            answer = process.stdout.read()
            died = _death(process.wait(), answer)
        if not died:
            found = cloudpickle.loads(answer)
            if isinstance(found, Exception):
                raise found
            assert isinstance(found, work.Outcome)
            return found
    return work.Outcome(
        work.code(),
        error=f"its workers died, and {TRIES} processes that ran it alone, the last by {died}",
    )


def _death(code: int, answer: bytes) -> str:
    """Say how a process ended that should not have; a signal often means want of memory, an exit does not."""
    if code >= 0:
        return "" if code == 0 and answer else f"exit code {code} without a result"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"signal {name}: it may need more memory than there is"
