"""`attnrates gaussian`: from which dimension on Gaussian data are feasible and near-acute, and how surely."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from attnrates._console import console, print_json
from numerics.errors import InputError
from paper_figs.wording import counted
from theory import gaussian as theorem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


CONFIDENCE = 0.99
SEARCHED = 500  # problems, at most, for each dimension tried in the search for the simulated one
CONVENTIONS = {
    "first": "its first token, which is noise (--query first)",
    "own": "one more noise vector, which is none of its tokens (--query own)",
}
VERDICTS = {
    "confirmed": "the proved {claimed} lies below it: confirmed",
    "not contradicted": "the proved {claimed} lies in it: not contradicted",
    "contradicted": "the proved {claimed} lies above it: CONTRADICTED",
    "nothing claimed": "the theorem guarantees nothing in this dimension",
}


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
    """Print what is proved, then what is simulated; wrapped on a terminal, one line a sentence elsewhere."""
    out = console()

    def say(text: str, indent: int = 0) -> None:
        if out.is_terminal:
            out.print(Padding(Text(text), (0, 0, 0, indent)))
        else:
            out.print(Text(" " * indent + text), soft_wrap=True)

    delta = answer["delta"]
    likely = f"{1 - delta:.6g}" if delta >= 1e-6 else f"1 - {delta:g}"
    say(
        f"Gaussian data: n = {answer['n']} sequences of T = {answer['tokens']} tokens in R^d, one of them a "
        f"signal of norm {answer['signal']:g}, the others noise of standard deviation "
        f"{answer['sigma']:g} a coordinate, orthogonal to the signals."
    )
    say(f"The query of a sequence is {', or '.join(CONVENTIONS[query] for query in answer['queries'])}.")
    say(
        f"Proved: from d = {answer['smallest_dimension']} on, with probability at least {likely}, they are "
        "separable (S) and near-acute (N), the conditions under which runs turn towards W_mm from any start."
    )
    if "d" in answer:
        chance = answer["probability"]
        say(
            f"In dimension d = {answer['d']}: with probability at least {_floor(chance)}."
            if chance > 0
            else f"In dimension d = {answer['d']} the theorem guarantees nothing.",
            2,
        )
    say(
        "Taken as given: the union bound, Markov's inequality, the moment generating functions of Gaussian "
        "and chi-square variables, and the step from the event to its probability, 1 - F <= P: (S) and (N) "
        "are at least as likely as the event on which they hold.",
        2,
    )
    say(f"That they hold on the event is proved, without probability: {', '.join(theorem.ON_EVENT)}.", 2)
    for found in answer.get("simulation", []):
        low, high = found["interval"]
        query = "its first token" if found["query"] == "first" else "a vector of its own"
        say(
            f"Simulated in floats with a sequence's query {query}, d = {found['d']}, seed {found['seed']}: "
            f"(S) and (N) hold for {found['near_acute']} of {counted(found['problems'], 'problem')}."
        )
        say(
            f"So the probability lies in [{low:.6f}, {high:.6f}], at confidence {found['confidence']:g}: "
            f"{_verdict(found)}.",
            2,
        )
        say(
            f"A share of {likely} of {counted(found['simulated_problems'], 'problem')} has both in every "
            f"dimension tried from d = {found['simulated_dimension']} on; the proved d = "
            f"{answer['smallest_dimension']} is {found['conservative_by']:.2g} times that.",
            2,
        )


def _floor(chance: float) -> str:
    """Six digits, rounded down, as a lower bound is."""
    return f"{int(chance * 1e6) / 1e6:.6f}"


def _verdict(found: dict[str, Any]) -> str:
    return VERDICTS[found["verdict"]].format(claimed=_floor(found["claimed"]))


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
