"""`attnrates train`: one run a seed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from attnrates._console import console, spinner
from numerics.errors import InputError
from paper_figs import runs
from paper_figs.wording import printable

if TYPE_CHECKING:
    from pathlib import Path

    from numerics.run import Run


MOST_SEEDS = 1_000_000


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
    joint: bool = False,
    decoder_rule: str | None = None,
    decoder_step: float | None = None,
    decoder_exponent: float | None = None,
    reference: str | None = None,
) -> int:
    """Train on each seed and save the runs under `out`; all is validated before anything is written."""
    if seeds is not None and seed is not None:
        raise InputError("give --seeds K (seeds 0 to K-1) or --seed S, not both")
    if seeds is not None and seeds > MOST_SEEDS:
        raise InputError(f"--seeds: at most {MOST_SEEDS} runs are made by one call, not {seeds}")
    first = runs.Setting(data=data, rule=rule, step=step, exponent=exponent, steps=steps, space=space)
    if joint:
        first = replace(
            first, decoder=_decoder(first, decoder_rule, decoder_step, decoder_exponent, reference)
        )
    elif (decoder_rule, decoder_step, decoder_exponent, reference) != (None,) * 4:
        raise InputError("the options --decoder-... and --reference go with --joint, which trains a decoder")
    settings = [replace(first, seed=s) for s in (range(seeds) if seeds is not None else [seed or 0])]
    if settings[0].is_file and len(settings) > 1:
        raise InputError(
            f"{data}: a file is one problem, every seed would give the same run; leave --seeds out"
        )
    first.step_rule()
    if first.decoder is not None:
        first.decoder.step_rule()
    if joint and space == "gram" and device == "cuda":
        raise InputError(
            "joint training in space gram runs on the CPU; leave --device out, or --space weight"
        )
    runs.writable(out)
    progress = console(stderr=True).is_terminal
    for setting in settings:
        with spinner("reading the data"):
            problem = setting.problem()
        run, kept = runs.make(setting, out, problem=problem, device=device, progress=progress)
        for note in _notes(run):
            print(printable(f"{setting.data}, seed {setting.seed}: {note}"), file=sys.stderr)
        last = run.history.iloc[-1]
        verb = "kept" if kept else "trained"
        loss = (
            f"log(L-L*) {last['log_excess_loss']:.4g}"
            if run.joint is None
            else f"log L {last['log_loss']:.4g}, {tokens(run)}"
        )
        print(
            f"{verb} {printable(os.path.join(out, setting.name))}: ||W|| {last['weight_norm']:.4g}, "
            f"1-cos(W, W_mm) {last['direction_gap']:.3g}, {loss}"
        )
    return 0


def tokens(run: Run) -> str:
    """Tell which tokens a joint run settled on, from when on, and the decoder's share of its max margin."""
    last, n = run.history.iloc[-1], run.problem.n
    return (
        f"{last['optimal_data']:.0f} of {n} optimal tokens are the data's own (unchanged since step "
        f"{last['optimal_since']:.0f}), decoder's margin {last['decoder_margin_share']:.3g} of the largest"
    )


def _decoder(
    setting: runs.Setting,
    rule: str | None,
    step: float | None,
    exponent: float | None,
    reference: str | None,
) -> runs.Decoder:
    """The decoder's options; where its rule is that of W, what is left out is as for W."""
    if rule is None or rule == setting.rule:
        rule, step = setting.rule, setting.step if step is None else step
        exponent = setting.exponent if exponent is None else exponent
    return runs.Decoder(rule=rule, step=step, exponent=exponent or 0.0, reference=reference or "final")


def _notes(run: Run) -> list[str]:
    """Give the remarks worth a line each: what is odd about the data, and that there is no target."""
    notes = list(run.problem.notes[:3])
    if len(run.problem.notes) > 3:
        notes.append(f"and {len(run.problem.notes) - 3} more remarks of this kind")
    if run.target is None:
        notes.append("the constraints are infeasible: there is no W_mm, hence no target direction")
    return notes
