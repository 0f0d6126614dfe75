"""``python -m theory``: the keys of the pages; ``python -m theory KEY``: one page, with an example."""

from __future__ import annotations

import sys

from theory import catalog
from theory.examples import example
from theory.latex import latex
from theory.legend import notation_of
from theory.page import Theorem


def page_text(page: Theorem) -> str:
    """A page as text: title, reference, hypotheses, claim, status and an example."""
    lines = [f"{page.key} ({page.kind}, {page.status})", page.title, f"Source: {page.reference}"]
    if page.claim is None:
        return "\n".join([*lines, "", page.statement])
    notation = notation_of(page)
    lines += ["", "Hypotheses"]
    hypotheses = page.hypotheses.items()
    lines += [f"  {name}: {latex(formula, notation)}" for name, formula in hypotheses] or ["  none"]
    lines += ["", "Claim", f"  {latex(page.claim, notation)}", "", "Example", example(page)]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print one page, or the keys of all; exit code 2 for an unknown key."""
    pages = catalog.theorems()
    if not arguments:
        for key, page in pages.items():
            print(f"{key:34} {page.title}")
        return 0
    if len(arguments) != 1 or arguments[0] not in pages:
        print(f"no page is called {' '.join(arguments)!r}; `python -m theory` lists them", file=sys.stderr)
        return 2
    print(page_text(pages[arguments[0]]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
