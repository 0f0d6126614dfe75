"""`attnrates gaussian`: from which dimension on Gaussian data are feasible and near-acute, and how surely."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attnrates._console import console, print_json
from numerics.errors import InputError
from theory import gaussian as theorem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


CONFIDENCE = 0.99
SEARCHED = 500  # problems, at most, for each dimension tried in the search for the simulated one
CONVENTIONS = {"first": "each sequence's query is its first token", "own": "each query is a token of its own"}


def gaussian(
    *,
    n: int,
    tokens: int,
    signal: float,
    sigma: float,
    delta: float,
    d: int | None,
    query: str,
    simulate: int | None,
    seed: int,
    json: bool,
) -> int:
    """Print the theorem's dimension and probability, and what simulation says; 1 if that contradicts them."""
    if query not in (*CONVENTIONS, "both"):
        raise InputError(f'--query must be "first", "own" or "both", not "{query}"')
    scale: dict[str, Any] = {"signal": signal, "noise": sigma}
    queries = list(CONVENTIONS) if query == "both" else [query]
    smallest = theorem.smallest_dimension(n, tokens, delta=delta, query=queries[0], **scale)
    answer: dict[str, Any] = {"n": n, "tokens": tokens, "signal": signal, "sigma": sigma, "delta": delta}
    answer |= {"queries": queries, "smallest_dimension": smallest}
    if d is not None:
        answer |= {"d": d, "probability": theorem.probability(n, tokens, d, query=queries[0], **scale)}
    if simulate is not None:
        claimed = 1 - delta if d is None else answer["probability"]
        answer["simulation"] = [
            _simulated(
                n=n,
                tokens=tokens,
                d=smallest if d is None else d,
                scale=scale,
                query=one,
                problems=simulate,
                seed=seed,
                delta=delta,
                claimed=claimed,
                smallest=smallest,
            )
            for one in queries
        ]
    if json:
        print_json(answer)
    else:
        _print(answer)
    return int(any(found["verdict"] == "contradicted" for found in answer.get("simulation", [])))


def _simulated(
    *,
    n: int,
    tokens: int,
    d: int,
    scale: dict[str, Any],
    query: str,
    problems: int,
    seed: int,
    delta: float,
    claimed: float,
    smallest: int,
) -> dict[str, Any]:
    """How many problems have (S) and (N) in dimension d, and from which d on a share 1 - delta has."""
    from numerics.survey import Cell, count, dimension, interval

    cell = Cell(n=n, T=tokens, d=d, query=query, problems=problems, seed=seed, **scale)
    with _bar(f"simulating {query}") as step:
        found = count(cell, step)
        enough = dimension(replace(cell, d=smallest, problems=min(problems, SEARCHED)), 1 - delta, step)
    low, high = interval(found, problems, CONFIDENCE)
    verdict = "nothing claimed" if claimed == 0 else "not contradicted"
    if claimed > 0 and low >= claimed:
        verdict = "confirmed"
    elif high < claimed:
        verdict = "contradicted"
    return {
        "query": query,
        "d": d,
        "seed": seed,
        "problems": problems,
        "near_acute": found,
        "confidence": CONFIDENCE,
        "interval": [low, high],
        "claimed": claimed,
        "verdict": verdict,
        "simulated_dimension": enough,
        "simulated_problems": min(problems, SEARCHED),
        "conservative_by": smallest / enough,
    }


def _print(answer: dict[str, Any]) -> None:
    likely = f"{1 - answer['delta']:.6g}"
    print(
        f"n={answer['n']} sequences of T={answer['tokens']} tokens, signal {answer['signal']:g}, "
        f"sigma {answer['sigma']:g}"
    )
    for query in answer["queries"]:
        print(f"  query {query}: {CONVENTIONS[query]}")
    print(
        f"from d = {answer['smallest_dimension']} on, (S) and (N) hold with probability at least {likely} "
        "(proved, given the union bound, Markov's inequality and the moment generating functions)"
    )
    if "d" in answer:
        chance = answer["probability"]
        floor = int(chance * 1e6) / 1e6  # rounded down, as the bound is
        print(
            f"in dimension d = {answer['d']} they hold with probability at least {floor:.6f}"
            if chance > 0
            else f"in dimension d = {answer['d']} the theorem guarantees nothing"
        )
    for found in answer.get("simulation", []):
        low, high = found["interval"]
        print(
            f"simulated in floats, query {found['query']}, d = {found['d']}, seed {found['seed']}: "
            f"{found['near_acute']} of {found['problems']} problems have (S) and (N); the probability lies "
            f"in [{low:.6f}, {high:.6f}] with confidence {found['confidence']:g}: {_verdict(found)}"
        )
        print(
            f"  a share of {likely} of {found['simulated_problems']} problems has them in every dimension "
            f"tried from d = {found['simulated_dimension']} on; the theorem's d is "
            f"{found['conservative_by']:.2g} times that"
        )


def _verdict(found: dict[str, Any]) -> str:
    claimed = found["claimed"]
    return f"the theorem's {claimed:.6g} is {found['verdict']}" if claimed > 0 else found["verdict"]


@contextlib.contextmanager
def _bar(text: str) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each problem; on a terminal it moves a counter on stderr."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield lambda: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} problems"))
    with Progress(*columns, TimeElapsedColumn(), console=err, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda: bar.advance(task)
