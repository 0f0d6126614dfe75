"""Training: many runs in one call, recorded on a grid, interruptible, in Gram space or in weight space."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float

from numerics import _checkpoint
from numerics._gram_cpu import CompiledGram, LaneGram
from numerics._gram_geometry import Geometry
from numerics._gram_torch import TorchGram
from numerics._memory import dense_gram_fits, require_weight_space
from numerics._record import finish, record_steps
from numerics._weight_space import OptimizerFactory, WeightSpace
from numerics.errors import InfeasibleError, InputError
from numerics.maxmargin import max_margin
from numerics.maxmargin.solution import MaxMargin
from numerics.problem import Problem
from numerics.run import Run, make_manifest, source_hash
from numerics.steps import Law, Rule, TorchOptimizer, rule_to_dict

# On a CPU compiled loops are the faster up to this N (beyond, the products with the Gram matrix are all that
# counts), from _BATCH runs on with the runs as lanes of vectors.
_SMALL, _BATCH = 4096, 8
_SLICE_SECONDS = 0.25  # how often the loop comes up for Ctrl-C and the progress bar


@runtime_checkable
class Engine(Protocol):
    """What the driver asks of a batch of runs in one space."""

    name: str  # of what computes, where the bits of the same call may depend on it
    t: int
    pace: int  # steps that surely take less than a slice, to begin with

    def advance(self, records: np.ndarray, until: int) -> np.ndarray:
        """Step to `until`; the measured rows at the listed steps, (rows, B, columns)."""
        ...

    def finite(self) -> np.ndarray:
        """Which runs are still made of finite numbers, (B,)."""
        ...

    def final(self) -> list[dict[str, np.ndarray]]:
        """For every run the array its Run keeps."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """All that changes along the run."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from such a state."""
        ...


def train(
    problem: Problem,
    rule: Rule | None = None,
    *,
    steps: int,
    init: Float[np.ndarray, "d d"] | None = None,
    space: str = "gram",
    record: str | Iterable[int] = "log",
    device: str = "auto",
    target: MaxMargin | None = None,
    progress: bool = False,
    seed: int | None = None,
    **options: Any,
) -> Run:
    """Train one layer on a problem with a step-size rule; see `train_batch` for the options."""
    return train_batch(
        problem,
        rule,
        steps=steps,
        inits=init,
        space=space,
        record=record,
        device=device,
        targets=target,
        progress=progress,
        seeds=seed,
        **options,
    )[0]


def train_batch(
    problems: Problem | Sequence[Problem],
    rules: Rule | Sequence[Rule] | None = None,
    *,
    steps: int,
    inits: Float[np.ndarray, "d d"] | Sequence[np.ndarray | None] | None = None,
    space: str = "gram",
    record: str | Iterable[int] = "log",
    device: str = "auto",
    targets: MaxMargin | Sequence[MaxMargin | None] | None = None,
    progress: bool = False,
    seeds: int | Sequence[int | None] | None = None,
    dtype: str = "float64",
    optimizer: OptimizerFactory | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    memory_limit: int | None = None,
) -> list[Run]:
    """Train many runs at once, W_(t+1) = W_t - e_t grad L/||grad L|| with e_t given by each run's rule.

    problems, rules, inits, targets and seeds are each one value for all runs or one a run; problems must
    agree in n, d and N. inits are W_0 (d, d), None meaning zero. targets are max-margin solutions; where None
    they are computed, and infeasible problems run without one. seeds are only noted in the manifest.

    space "gram" iterates in W_0 + span{A_k} through the Gram matrix, at a cost independent of d; "weight"
    iterates W itself. record: "log" (every step up to 20, then 40 a decade), "all", or a list of steps.
    device "auto" takes CUDA when there is one. dtype "float64" or "float32": in Gram space
    the logs keep six digits and the residual drifts by at most about 1e-7 of the path length; weight space
    loses the gaps' differences sooner. Sums along the run stay float64.

    optimizer, in weight space only, replaces the rule by a torch.optim optimizer, made by optimizer([W]) on
    the batch W (B, d, d) and fed the stable gradient: one that couples the entries of W couples the runs.
    One that evaluates the loss itself (a closure: LBFGS) takes a single run.

    checkpoint names a folder to resume from and to write to every checkpoint_every steps (default: 1000, or a
    hundredth of the run when that is more); a resumed run has bitwise the history of an uninterrupted one,
    also under an optimizer, whose state is stored as plain arrays.

    Memory is planned before anything large is made: where the Gram matrix does not fit, its two small factors
    take its place, and where they do not fit either the call is refused. memory_limit (bytes) replaces what
    the machine says it has.

    Raises InputError for arguments that do not go together, when memory is short, when a step makes W
    overflow, and for a checkpoint that is damaged or another call's.
    """
    plan = _plan(problems, rules, inits, targets, seeds, steps, space, dtype, optimizer)
    where = _device(device)
    grid = record_steps(record, steps)
    engine = _engine(plan, space, where, dtype, optimizer, memory_limit, progress)
    key = _key(plan, grid, space, str(where), dtype, engine.name)
    keep = None if checkpoint is None else _Keeper(checkpoint, checkpoint_every, steps, key)
    rows = _drive(engine, grid, steps, keep, progress)
    return _runs(plan, grid, rows, engine.final(), space, where, dtype, steps)


class _Plan:
    """The runs of a call after broadcasting: one rule, init, seed a run; problems shared or one a run."""

    problems: list[Problem]  # one, or one a run
    targets: list[MaxMargin | None]  # like problems
    rules: list[Any]
    inits: list[np.ndarray | None]
    seeds: list[int | None]

    def problem(self, run: int) -> Problem:
        return self.problems[run if len(self.problems) > 1 else 0]

    def solve(self, progress: bool) -> None:
        """Compute the missing targets; None stays where the constraints are infeasible."""
        for j, problem in enumerate(self.problems):
            if self.targets[j] is None:
                with contextlib.suppress(InfeasibleError):
                    self.targets[j] = max_margin(problem, progress=progress)

    def target(self, run: int) -> MaxMargin | None:
        return self.targets[run if len(self.targets) > 1 else 0]


def _plan(
    problems: Any,
    rules: Any,
    inits: Any,
    targets: Any,
    seeds: Any,
    steps: int,
    space: str,
    dtype: str,
    optimizer: Any,
) -> _Plan:
    """Broadcast and validate the arguments of `train_batch`."""
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise InputError(f"steps must be an integer >= 0, not {steps!r}")
    if space not in ("gram", "weight"):
        raise InputError(f"space must be 'gram' or 'weight', not {space!r}")
    if dtype not in ("float64", "float32"):
        raise InputError(f"dtype must be 'float64' or 'float32', not {dtype!r}")
    if (rules is None) == (optimizer is None):
        raise InputError("give either a step-size rule or a torch.optim optimizer")
    if optimizer is not None and space != "weight":
        raise InputError("a torch.optim optimizer runs in weight space only")
    given = {
        "problems": _listed(problems, Problem),
        "rules": _listed(rules, Rule),
        "inits": _listed(inits, np.ndarray),
        "targets": _listed(targets, MaxMargin),
        "seeds": _listed(seeds, int),
    }
    runs = max(map(len, given.values()))
    for name, values in given.items():
        if len(values) not in (1, runs):
            raise InputError(f"{name} has {len(values)} entries for {runs} runs")
    plan = _Plan()
    plan.problems = given["problems"]
    if len(set(plan.problems)) == 1:
        plan.problems = plan.problems[:1]
    first = plan.problems[0]
    for problem in plan.problems:
        if (problem.n, problem.d, problem.n_constraints) != (first.n, first.d, first.n_constraints):
            raise InputError(f"the problems of one batch must agree in n, d and N: {first!r} and {problem!r}")
    if first.n_constraints == 0:
        raise InputError("every sequence has one token: there is no constraint and nothing to train (N = 0)")
    if len(plan.problems) == 1 and len(given["targets"]) > 1:
        given["targets"] = given["targets"][:1]
    plan.targets = given["targets"] * (len(plan.problems) if len(given["targets"]) == 1 else 1)
    for problem, target in zip(plan.problems, plan.targets, strict=True):
        if target is not None and target.problem_hash != problem.hash:
            raise InputError("the target is another problem's max-margin solution")
    plan.inits = [_init(init, first.d) for init in given["inits"]] * (runs if len(given["inits"]) == 1 else 1)
    plan.seeds = given["seeds"] * (runs if len(given["seeds"]) == 1 else 1)
    plan.rules = given["rules"] * (runs if len(given["rules"]) == 1 else 1)
    for rule in plan.rules:
        if optimizer is None and not isinstance(rule, Rule):
            raise InputError(f"not a step-size rule: {rule!r}")
    return plan


def _listed(value: Any, kind: type) -> list[Any]:
    if value is None or isinstance(value, kind):
        return [value]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(f"expected {kind.__name__} or a sequence of them, not {type(value).__name__}")
    if not value:
        raise InputError(f"an empty sequence of {kind.__name__}: there is no run")
    return list(value)


def _init(init: Any, d: int) -> np.ndarray | None:
    if init is None:
        return None
    W = np.array(init, dtype=np.float64)
    if W.shape != (d, d) or not np.isfinite(W).all():
        raise InputError(f"init must be finite numbers of shape {(d, d)}, not an array of shape {W.shape}")
    return W


def _device(name: str) -> torch.device:
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', not {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device 'cuda' was asked for, and this machine has none that torch can use")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def _engine(
    plan: _Plan,
    space: str,
    device: torch.device,
    dtype: str,
    optimizer: OptimizerFactory | None,
    memory_limit: int | None,
    progress: bool,
) -> Engine:
    """The engine for the plan, its memory checked before anything large is made."""
    runs = len(plan.rules)
    sizes: dict[str, Any] = {
        "device": device,
        "bytes_each": 8 if dtype == "float64" else 4,
        "limit": memory_limit,
    }
    if space == "gram":
        first = plan.problems[0]
        dense = dense_gram_fits(len(plan.problems), first, runs, **sizes)
        plan.solve(progress)
        laws = [rule.law for rule in plan.rules]
        geometries = [Geometry.of(p, m) for p, m in zip(plan.problems, plan.targets, strict=True)]
        small = first.n_constraints <= _SMALL
        if dense and small and device.type == "cpu" and dtype == "float64":
            alike = all(np.array_equal(g.start, geometries[0].start) for g in geometries)
            kind = LaneGram if runs >= _BATCH and alike else CompiledGram
            return kind(geometries, laws, plan.inits)
        torch_dtype = getattr(torch, dtype)
        return TorchGram(geometries, laws, plan.inits, device=device, dtype=torch_dtype, dense=dense)
    require_weight_space(len(plan.problems), plan.problems[0], runs, **sizes)
    plan.solve(progress)
    laws = [rule.law for rule in plan.rules] if optimizer is None else [Law(0.0, 0.0, 0.0, 0.0, 0.0)] * runs
    engine = WeightSpace(
        plan.problems,
        laws,
        plan.inits,
        plan.targets,
        device=device,
        dtype=getattr(torch, dtype),
        optimizer=optimizer,
    )
    if engine.optimizer is not None:
        made = engine.optimizer
        options = tuple(
            (key, value if isinstance(value, int | float) else str(value))
            for key, value in sorted(made.param_groups[0].items())
            if key != "params" and value is not None and value is not False
        )
        plan.rules = [TorchOptimizer(type(made).__name__, options)] * len(plan.rules)
    return engine


class _Keeper:
    """Where and how often to write checkpoints: by default every 1000 steps, or a hundredth of the run."""

    def __init__(
        self, folder: str | os.PathLike[str], every: int | None, steps: int, key: dict[str, Any]
    ) -> None:
        """Raise InputError unless `every` is a positive whole number or None."""
        if every is None:
            every = max(1000, steps // 100)
        if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
            raise InputError(f"checkpoint_every must be a positive number of steps, not {every!r}")
        self.folder, self.every, self.key = folder, int(every), key


def _key(plan: _Plan, grid: np.ndarray, space: str, device: str, dtype: str, engine: str) -> dict[str, Any]:
    """What makes two training calls the same one."""
    inits = hashlib.sha256()
    for init in plan.inits:
        inits.update(b"zero" if init is None else init.tobytes())
    targets = hashlib.sha256()
    for target in plan.targets:
        targets.update(b"none" if target is None else target.dual.tobytes())
    return {
        "problems": [problem.hash for problem in plan.problems],
        "rules": [rule_to_dict(rule) for rule in plan.rules],
        "initial values": inits.hexdigest(),
        "targets": targets.hexdigest(),
        "recorded steps": hashlib.sha256(grid.astype("<i8").tobytes()).hexdigest(),
        "space": space,
        "device": device,
        "dtype": dtype,
        "engine": engine,
        "source code": source_hash("*.py"),
    }


def _drive(
    engine: Engine, grid: np.ndarray, steps: int, keep: _Keeper | None, progress: bool
) -> Float[np.ndarray, "rows B columns"]:
    """Run the engine to the end in slices of a fraction of a second, writing checkpoints between them."""
    with contextlib.nullcontext() if keep is None else _checkpoint.claimed(keep.folder):
        return _driven(engine, grid, steps, keep, progress)


def _driven(
    engine: Engine, grid: np.ndarray, steps: int, keep: _Keeper | None, progress: bool
) -> Float[np.ndarray, "rows B columns"]:
    parts: list[np.ndarray] = []
    found = None if keep is None else _checkpoint.read(keep.folder, keep.key)
    done = 0
    if found is not None:
        rows, state = found
        engine.restore(state)
        parts, done = [rows], rows.shape[0]
    size = engine.pace
    with _bar(steps, progress) as show:
        while done < len(grid):
            until = min(engine.t + size, steps)
            if keep is not None:
                until = min(until, (engine.t // keep.every + 1) * keep.every)
            last = np.searchsorted(grid, until, side="right" if until == steps else "left")
            begun = time.perf_counter()
            part = engine.advance(grid[done:last], until)
            spent = time.perf_counter() - begun
            if part.shape[0]:
                parts.append(part)
            done += part.shape[0]
            if not engine.finite().all():
                bad = int(np.argmin(engine.finite()))
                raise InputError(
                    f"run {bad} overflowed by step {engine.t}; choose smaller steps or a cap "
                    "(for Polyak, --step caps it)"
                )
            if keep is not None and (engine.t % keep.every == 0 or engine.t == steps):
                _checkpoint.write(keep.folder, keep.key, np.concatenate(parts), engine.state())
            show(engine.t)
            if spent < _SLICE_SECONDS / 2:
                size *= 8 if spent < _SLICE_SECONDS / 16 else 2
            elif spent > 2 * _SLICE_SECONDS:
                size = max(1, size // 2)
    return np.concatenate(parts)


@contextlib.contextmanager
def _bar(steps: int, progress: bool) -> Iterator[Any]:
    """Yield a function to call with the present step; it draws a bar on stderr when asked for."""
    if not progress:
        yield lambda _step: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=steps)
        yield lambda step: bar.update(task, completed=step)


def _runs(
    plan: _Plan,
    grid: np.ndarray,
    rows: np.ndarray,
    finals: list[dict[str, np.ndarray]],
    space: str,
    device: torch.device,
    dtype: str,
    steps: int,
) -> list[Run]:
    """Turn the rows into one Run each."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    floors = np.array([_optimal_loss(problem) for problem in plan.problems])
    columns = finish(grid, rows, np.broadcast_to(floors, len(plan.rules)))
    out = []
    for b, (rule, init, seed, final) in enumerate(
        zip(plan.rules, plan.inits, plan.seeds, finals, strict=True)
    ):
        problem = plan.problem(b)
        manifest = make_manifest(problem, rule, steps=steps, space=space, seed=seed, device=name, dtype=dtype)
        out.append(
            Run(
                problem=problem,
                rule=rule,
                steps=steps,
                space=space,
                seed=seed,
                init=init,
                target=plan.target(b),
                recorded=columns[b],
                manifest=manifest,
                joint=None,
                **final,
            )
        )
    return out


def _optimal_loss(problem: Problem) -> float:
    """L* = (1/n) sum_i log(1 + exp(-g_(i,o_i)))."""
    best = problem.scores[np.arange(problem.n), problem.optimal]
    return float(np.mean(np.logaddexp(0.0, -best)))
