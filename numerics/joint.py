"""Joint training of W and the decoder u: both step at once, from the same point, each by its own rule.

    W_(t+1) = W_t - e_t grad_W L/||grad_W L||,    u_(t+1) = u_t - f_t grad_u L/||grad_u L||,

gradients at (W_t, u_t); e_t and f_t by the two step-size rules (the paper, joint training: normalized GD with
steps (t+1)^(-2/3) for both, from zero). A variable whose gradient is exactly zero rests, and the length of
that step counts as 0: so W rests at the first step from u_0 = 0, where all scores are equal.

Polyak's step needs the least loss that its variable can reach: for W it is the loss with all attention on
the optimal tokens of the present decoder, for u it is 0.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from numerics._joint_columns import finish
from numerics._joint_gram import JointGram
from numerics._joint_part import REFERENCES
from numerics._joint_record import BY_TOKEN, ROWS
from numerics._joint_tokens import Tokens
from numerics._joint_weight import JointWeight
from numerics._memory import available
from numerics._record import record_steps
from numerics.errors import InputError
from numerics.problem import Problem
from numerics.run import Run, make_manifest, source_hash
from numerics.steps import Rule, rule_to_dict
from numerics.training import _device, _drive, _init, _Keeper, _listed

__all__ = ["train_joint", "train_joint_batch"]


def train_joint(
    problem: Problem,
    rule: Rule,
    decoder_rule: Rule,
    *,
    steps: int,
    init: Float[np.ndarray, "d d"] | None = None,
    decoder_init: Float[np.ndarray, " d"] | None = None,
    seed: int | None = None,
    **options: Any,
) -> Run:
    """Train W and the decoder of one layer together; see `train_joint_batch` for the options."""
    return train_joint_batch(
        problem,
        rule,
        decoder_rule,
        steps=steps,
        inits=init,
        decoder_inits=decoder_init,
        seeds=seed,
        **options,
    )[0]


def train_joint_batch(
    problems: Problem | Sequence[Problem],
    rules: Rule | Sequence[Rule],
    decoder_rules: Rule | Sequence[Rule],
    *,
    steps: int,
    inits: Float[np.ndarray, "d d"] | Sequence[np.ndarray | None] | None = None,
    decoder_inits: Float[np.ndarray, " d"] | Sequence[np.ndarray | None] | None = None,
    space: str = "gram",
    record: str | Iterable[int] = "log",
    device: str = "auto",
    reference: str = "final",
    progress: bool = False,
    seeds: int | Sequence[int | None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    memory_limit: int | None = None,
) -> list[Run]:
    """Train many runs; what is given once serves them all, and problems must agree in n, d and N.

    inits are W_0 (d, d) and decoder_inits u_0 (d,), None meaning zero; the problems' own decoders play no
    part in the training. reference says whose optimal tokens the history, the target W_mm and the decoder's
    max margin refer to: "final" the final u's, "data" the problem's own decoder's.

    space "gram" keeps the logits and scores of the tokens and works through their Gram matrices, on the CPU,
    at a cost independent of d; "weight" iterates W and u themselves, on `device`. Both are float64. record,
    checkpoint, checkpoint_every and memory_limit are as for `train_batch`; seeds are only noted.

    Raises InputError for arguments that do not go together, when memory is short, when a step overflows,
    when the final decoder ties reference tokens, and for a checkpoint that is damaged or another call's.
    """
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise InputError(f"steps must be an integer >= 0, not {steps!r}")
    if space not in ("gram", "weight"):
        raise InputError(f"space must be 'gram' or 'weight', not {space!r}")
    if reference not in REFERENCES:
        raise InputError(f"reference must be 'final' or 'data', not {reference!r}")
    if space == "gram" and device == "cuda":
        raise InputError("joint training through Gram matrices runs on the CPU; space 'weight' takes 'cuda'")
    where = torch.device("cpu") if space == "gram" and device == "auto" else _device(device)
    plan = _Plan(problems, rules, decoder_rules, inits, decoder_inits, seeds)
    grid = record_steps(record, steps)
    _require_memory(plan, space, len(grid), where, memory_limit)
    layouts = [Tokens.of(problem) for problem in plan.problems]
    laws = [rule.law for rule in plan.rules], [rule.law for rule in plan.decoder_rules]
    engine: JointGram | JointWeight
    if space == "gram":
        engine = JointGram(layouts, *laws, plan.inits, plan.decoder_inits)
    else:
        engine = JointWeight(layouts, *laws, plan.inits, plan.decoder_inits, where)
    key = plan.key(grid, space, str(where))
    keep = None if checkpoint is None else _Keeper(checkpoint, checkpoint_every, steps, key)
    kept = _drive(engine, grid, steps, keep, progress)
    name = torch.cuda.get_device_name(where) if where.type == "cuda" else "cpu"
    runs = []
    for b, final in enumerate(engine.final()):
        problem, seed = plan.problem(b), plan.seeds[b]
        done = finish(
            layouts[b if len(layouts) > 1 else 0],
            grid,
            kept[:, b],
            decoder=final.pop("decoder"),
            decoder_rule=plan.decoder_rules[b],
            init=plan.inits[b],
            decoder_init=plan.decoder_inits[b],
            reference_kind=reference,
            progress=progress,
        )
        if space == "gram":
            final["coefficients"] = done.coefficients
        manifest = make_manifest(
            problem, plan.rules[b], steps=steps, space=space, seed=seed, device=name, dtype="float64"
        )
        runs.append(
            Run(
                problem=problem,
                rule=plan.rules[b],
                steps=steps,
                space=space,
                seed=seed,
                init=plan.inits[b],
                target=done.target,
                recorded=done.columns,
                manifest=manifest | {"joint": done.joint.to_manifest()},
                joint=done.joint,
                **final,
            )
        )
    return runs


class _Plan:
    """The runs of a call after broadcasting; problems shared or one a run."""

    def __init__(
        self, problems: Any, rules: Any, decoder_rules: Any, inits: Any, decoder_inits: Any, seeds: Any
    ) -> None:
        given = {
            "problems": _listed(problems, Problem),
            "rules": _listed(rules, Rule),
            "decoder rules": _listed(decoder_rules, Rule),
            "inits": _listed(inits, np.ndarray),
            "decoder inits": _listed(decoder_inits, np.ndarray),
            "seeds": _listed(seeds, int),
        }
        runs = max(map(len, given.values()))
        for name, values in given.items():
            if len(values) not in (1, runs):
                raise InputError(f"{name} has {len(values)} entries for {runs} runs")
        shared = len(set(given["problems"])) == 1
        self.problems: list[Problem] = given["problems"][:1] if shared else given["problems"]
        self.rules: list[Any] = _all(given["rules"], runs)
        self.decoder_rules: list[Any] = _all(given["decoder rules"], runs)
        self.seeds: list[int | None] = _all(given["seeds"], runs)
        first = self.problems[0]
        for problem in self.problems:
            if (problem.n, problem.d, problem.n_constraints) != (first.n, first.d, first.n_constraints):
                raise InputError(
                    f"the problems of one batch must agree in n, d and N: {first!r} and {problem!r}"
                )
        if first.n_constraints == 0:
            raise InputError(
                "every sequence has one token: there is no constraint and nothing to train (N = 0)"
            )
        for rule in (*self.rules, *self.decoder_rules):
            if not isinstance(rule, Rule):
                raise InputError(f"not a step-size rule: {rule!r}")
        self.inits = _all([_init(init, first.d) for init in given["inits"]], runs)
        self.decoder_inits = _all([_decoder_init(u, first.d) for u in given["decoder inits"]], runs)

    def problem(self, run: int) -> Problem:
        return self.problems[run if len(self.problems) > 1 else 0]

    def key(self, grid: np.ndarray, space: str, device: str) -> dict[str, Any]:
        """What makes two training calls the same one; whose tokens are the reference does not matter."""
        starts = hashlib.sha256()
        for start in (*self.inits, *self.decoder_inits):
            starts.update(b"zero" if start is None else start.tobytes())
        return {
            "training": "joint",
            "problems": [problem.hash for problem in self.problems],
            "rules": [rule_to_dict(rule) for rule in self.rules],
            "decoder rules": [rule_to_dict(rule) for rule in self.decoder_rules],
            "initial values": starts.hexdigest(),
            "recorded steps": hashlib.sha256(grid.astype("<i8").tobytes()).hexdigest(),
            "space": space,
            "device": device,
            "source code": source_hash("*.py"),
        }


def _all(values: list[Any], runs: int) -> list[Any]:
    return values * (runs if len(values) == 1 else 1)


def _decoder_init(init: Any, d: int) -> np.ndarray | None:
    if init is None:
        return None
    u = np.array(init, dtype=np.float64)
    if u.shape != (d,) or not np.isfinite(u).all():
        raise InputError(f"decoder_init must be finite numbers of shape {(d,)}, not an array of {u.shape}")
    return u


def _require_memory(plan: _Plan, space: str, rows: int, device: torch.device, limit: int | None) -> None:
    """Raise InputError when the Gram matrices, or the d x d matrices, and the records do not fit."""
    first, runs = plan.problems[0], len(plan.rules)
    n, d, width, M = first.n, first.d, first.T, first.n_constraints + first.n
    records = 24 * rows * runs * (len(ROWS) + len(BY_TOKEN) * M) + 48 * rows * n * width * width
    if space == "gram":
        need, advice = 24 * len(plan.problems) * M * M, 'fewer problems at once, or space="weight"'
    else:
        need = 8 * runs * (4 * d * d + 8 * n * width * width) + 24 * len(plan.problems) * n * width * d
        advice = 'space="gram", which does not depend on d'
    room = available(device) if limit is None else limit
    if need + records > room:
        raise InputError(
            f"joint training needs about {(need + records) / 1e9:.3g} GB (M = {M} tokens, d = {d}, "
            f"runs = {runs}, {rows} recorded steps), and {room / 1e9:.3g} GB are available; try {advice}"
        )
