"""`attnrates verify KEY`: one page with its whole proof, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from attnrates._console import console, print_json
from numerics.errors import InputError
from theory import theorems
from theory.own import load
from theory.plain import plain
from theory.steps import Step, steps

if TYPE_CHECKING:
    from pathlib import Path

    from theory import Theorem


def derivation(key: str, *, json: bool, own: Path | None = None) -> int:
    """Prove one page and print its steps; return 0 when it is proved, else 1.

    Raises InputError for a key that no page has.
    """
    page = _page(key, own)
    error = None
    found: list[Step] = []
    if page.prove is not None:
        try:
            found = steps(page)
        except Exception as problem:  # whatever went wrong, it is not proved
            error = f"{type(problem).__name__}: {problem}"
    status = "failed" if error else page.status
    if json:
        print_json(
            {
                "key": page.key,
                "title": page.title,
                "status": status,
                "error": error,
                "claim": None if page.claim is None else plain(page.claim),
                "hypotheses": {name: plain(formula) for name, formula in page.hypotheses.items()},
                "steps": [
                    {
                        "number": step.number,
                        "rule": step.rule,
                        "premises": list(step.premises),
                        "conclusion": plain(step.conclusion),
                        "page": step.page,
                        "hypothesis": step.hypothesis,
                    }
                    for step in found
                ],
            }
        )
    else:
        _show(page, status, found, error)
    return int(status == "failed")


def _page(key: str, own: Path | None) -> Theorem:
    pages = {page.key: page for page in load(own).pages} if own else dict(theorems())
    if key not in pages:
        near = [name for name in pages if key in name or name in key]
        raise InputError(f"no page is called {key!r}{'; did you mean ' + ', '.join(near) if near else ''}")
    return pages[key]


def _show(page: Theorem, status: str, found: list[Step], error: str | None) -> None:
    out = console()
    out.print(Text(f"{page.key}: {page.title}", style="bold"))
    out.print(Text(f"{page.kind}, {status}. {page.reference}"))
    if page.claim is not None:
        out.print(Text("claim"))
        _indented(plain(page.claim))
    if page.hypotheses:
        out.print(Text("hypotheses"))
        for name, formula in page.hypotheses.items():
            _indented(f"{name}: {plain(formula)}")
    if found:
        out.print(Text("proof"))
        width = len(str(found[-1].number))
        for step in found:
            _indented(f"{step.number:{width}}  {plain(step.conclusion)}   [{_reason(step)}]", hang=width + 2)
    if error:
        out.print(Text(f"fails: {error}", style="bold red"))


def _reason(step: Step) -> str:
    if step.page:
        return f"by {step.page}"
    if step.hypothesis:
        return f"hypothesis: {step.hypothesis}"
    return f"{step.rule} {', '.join(map(str, step.premises))}".strip()


def _indented(text: str, hang: int = 2) -> None:
    """Print with an indent; what does not fit on a line goes on below it, further in."""
    out = console()
    if not out.is_terminal:
        print("  " + text)
        return
    for number, line in enumerate(Text(text).wrap(out, max(20, out.width - 2 - hang))):
        out.print(Padding(line, (0, 0, 0, 2 + (hang if number else 0))), soft_wrap=True)
