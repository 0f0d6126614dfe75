"""`attnrates train`: one run a seed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from attnrates._console import console
from numerics.errors import InputError
from paper_figs import runs

if TYPE_CHECKING:
    from pathlib import Path

    from numerics.run import Run


def train(
    *,
    data: str,
    rule: str,
    step: float | None,
    exponent: float,
    steps: int,
    seeds: int | None,
    seed: int | None,
    out: Path,
    space: str,
    device: str,
) -> int:
    """Train on each seed and save the runs under `out`; all is validated before anything is written."""
    if seeds is not None and seed is not None:
        raise InputError("give --seeds K (seeds 0 to K-1) or --seed S, not both")
    settings = [
        runs.Setting(data=data, rule=rule, step=step, exponent=exponent, steps=steps, seed=s, space=space)
        for s in (range(seeds) if seeds is not None else [seed or 0])
    ]
    if settings[0].is_file and len(settings) > 1:
        raise InputError(
            f"{data}: a file is one problem, every seed would give the same run; leave --seeds out"
        )
    settings[0].step_rule()
    runs.writable(out)
    progress = console(stderr=True).is_terminal
    for setting in settings:
        problem = setting.problem()
        run, kept = runs.make(setting, out, problem=problem, device=device, progress=progress)
        for note in _notes(run):
            print(f"{setting.data}, seed {setting.seed}: {note}", file=sys.stderr)
        last = run.history.iloc[-1]
        verb = "kept" if kept else "trained"
        print(
            f"{verb} {os.path.join(out, setting.name)}: ||W|| {last['weight_norm']:.4g}, "
            f"1-cos(W, W_mm) {last['direction_gap']:.3g}, log(L-L*) {last['log_excess_loss']:.4g}"
        )
    return 0


def _notes(run: Run) -> list[str]:
    """Give the remarks worth a line each: what is odd about the data, and that there is no target."""
    notes = list(run.problem.notes[:3])
    if len(run.problem.notes) > 3:
        notes.append(f"and {len(run.problem.notes) - 3} more remarks of this kind")
    if run.target is None:
        notes.append("the constraints are infeasible: there is no W_mm, hence no target direction")
    return notes
