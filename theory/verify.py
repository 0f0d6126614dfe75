"""Every page through the kernel: what ``attnrates verify`` reports."""

from __future__ import annotations

import ast
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from theory import catalog
from theory.closeness import tightness_of
from theory.latex import latex
from theory.page import Status, Theorem, forget_proofs
from theory.proof import kernel, tactics
from theory.steps import steps as list_steps

TRUSTED = ("terms", "normal", "calculus", "balls", "kernel")


@dataclass(frozen=True)
class TheoremReport:
    """One page's outcome.

    ``steps`` counts the kernel inferences that the claim rests on; ``uses`` names the pages that it draws on
    directly, and ``rules`` counts the inferences of its own, between those pages and its claim.
    ``tightness`` is the best observed/bound ratio that the falsifier has seen (``theory.closeness``), in
    ``models`` models; None where nothing is stored of this statement.
    """

    key: str
    title: str
    kind: str
    status: Status
    steps: int
    axioms: tuple[str, ...]
    uses: tuple[str, ...]
    rules: Mapping[str, int]
    hypotheses: tuple[str, ...]
    claim: str
    seconds: float
    error: str | None
    tightness: float | None = None
    models: int | None = None


@dataclass(frozen=True)
class Report:
    """The outcome of ``verify``."""

    theorems: tuple[TheoremReport, ...]
    kernel_lines: int
    axioms: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether every page that has a proof is proved."""
        return all(t.status != "failed" for t in self.theorems)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "theorems": [asdict(t) for t in self.theorems],
            "kernel_lines": self.kernel_lines,
            "axioms": dict(self.axioms),
        }


def kernel_lines() -> int:
    """Lines of code of the trusted base: without blank lines, comments and docstrings."""
    folder = Path(kernel.__file__).parent
    total = 0
    for name in TRUSTED:
        source = (folder / f"{name}.py").read_text(encoding="utf-8")
        prose: set[int] = set()
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                prose |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        total += sum(
            1
            for number, line in enumerate(source.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#") and number not in prose
        )
    return total


def report_on(page: Theorem) -> TheoremReport:
    """Prove one page and say how it went."""
    begin = time.perf_counter()
    error: str | None = None
    steps = 0
    axioms: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    rules: dict[str, int] = {}
    if page.prove is not None:
        try:
            claim = page.proved()
        except Exception as problem:  # the outcome is "failed", whatever the reason
            error = f"{type(problem).__name__}: {problem}"
        else:
            steps, axioms = sum(1 for _ in kernel.ancestry(claim)), tuple(sorted(claim.axioms))
            own = list_steps(page)
            uses = tuple(dict.fromkeys(step.page for step in reversed(own) if step.page))
            rules = dict(Counter(step.rule for step in own if not step.page))
    status: Status = "failed" if error else page.status
    tight = tightness_of(page)
    return TheoremReport(
        key=page.key,
        title=page.title,
        kind=page.kind,
        status=status,
        steps=steps,
        axioms=axioms,
        uses=uses,
        rules=dict(sorted(rules.items())),
        hypotheses=tuple(page.hypotheses),
        claim=latex(page.claim) if page.claim is not None else "",
        seconds=time.perf_counter() - begin,
        error=error,
        tightness=tight.ratio if tight else None,
        models=tight.models if tight else None,
    )


def verify(
    *,
    pages: Sequence[Theorem] | None = None,
    search: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Put every lemma and theorem through the kernel, or these `pages` of one's own.

    ``search`` finds the multipliers anew instead of replaying the stored ones, and stores them once every
    page is proved; ``progress`` is called with each page's key before it is proved.
    """
    certificates = tactics.CERTIFICATES
    before = certificates.search, certificates.found
    if search:
        forget_proofs()
        certificates.search, certificates.found = True, {}
    reports = []
    try:
        for page in catalog.theorems().values() if pages is None else pages:
            if progress is not None:
                progress(page.key)
            reports.append(report_on(page))
        if search and pages is None and all(r.status != "failed" for r in reports):
            tactics.save_certificates()
    finally:
        certificates.search, certificates.found = before
    return Report(tuple(reports), kernel_lines(), dict(kernel.AXIOMS))
