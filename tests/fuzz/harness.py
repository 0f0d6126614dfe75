"""One fuzzed call in this process: what must be true of it whatever the input was."""

from __future__ import annotations

import io
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from attnrates.cli import _refuse
from attnrates.cli import run as run_command
from numerics.errors import AttnratesError

CANARY = "executed"
PROGRESS = re.compile(r"\d+ cells?, \d+ finished before")


class TooLongError(KeyboardInterrupt):
    """A call took longer than it may; handled as what a user would do about it."""


@dataclass(frozen=True)
class Call:
    """What to call: a command line, or a reader that no command line reaches in short time.

    `codes` are the exit codes that are right; `new` the paths that may be new when the code is `BAD_INPUT`
    (none by default), relative to the folder.
    """

    arguments: tuple[str, ...] = ()
    reader: Callable[[], object] | None = None
    codes: tuple[int, ...] = (0, 2)
    new: tuple[str, ...] = ()
    about: str = ""
    program: bool = False  # the input is a program of the user's, which may print what it likes


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@contextmanager
def limited(seconds: float) -> Iterator[list[bool]]:
    """Raise TooLongError in the block after that time (of the clock)."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        called.append(True)
        raise TooLongError(f"more than {seconds:g} s")

    called: list[bool] = []
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield called
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def perform(call: Call, *, seconds: float) -> Outcome:
    """Make the call with its output caught; warnings count as output, as they do at a terminal."""
    out, err = io.StringIO(), io.StringIO()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"warning: {message}", file=sys.stderr)

    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(), limited(seconds) as late:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        code = run_command(list(call.arguments)) if call.reader is None else _read(call.reader)
    if late:
        raise TooLongError(f"more than {seconds:g} s")
    return Outcome(code, out.getvalue(), err.getvalue())


def _read(reader: Callable[[], object]) -> int:
    try:
        reader()
    except AttnratesError as error:
        return _refuse(str(error), 2)
    except Exception:
        traceback.print_exc()
        return 3
    return 0


def tree(folder: Path) -> set[str]:
    """Every path below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def faults(call: Call, folder: Path, *, seconds: float = 20.0) -> list[str]:
    """Make the call; say all that is wrong with what it did (nothing, as a rule)."""
    before = tree(folder)
    try:
        outcome = perform(call, seconds=seconds)
    except TooLongError as error:
        return [f"hangs: {error}"]
    except BaseException as error:  # nothing may escape
        return [f"escapes: {error!r}"]
    after = tree(folder)
    wrong = []
    if CANARY in after:
        wrong.append("code of the data was executed")
    if outcome.code not in call.codes:
        wrong.append(f"exit code {outcome.code}")
    if "Traceback" in outcome.err:
        wrong.append("a traceback")
    left = {name for name in after - before if name.endswith((".tmp", ".old"))}
    if outcome.code == 2:
        left |= {name for name in after - before if name not in call.new}
        lines = [line for line in outcome.err.splitlines() if not PROGRESS.fullmatch(line)]
        if call.program:
            lines = lines[-1:]
        if len(lines) != 1 or not lines[0].startswith("attnrates: "):
            wrong.append(f"not one line on stderr but {len(lines)}")
        elif not lines[0].isprintable() or len(lines[0]) > 2000:
            wrong.append("a line that is not printable or endless")
    if left:
        wrong.append(f"left behind: {sorted(left)[:5]}")
    if before - after:
        wrong.append(f"removed: {sorted(before - after)[:5]}")
    return [*wrong, f"stderr: {outcome.err[-1500:]}"] if wrong else []
