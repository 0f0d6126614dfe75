"""Every page through the kernel: what ``attnrates verify`` reports."""

from __future__ import annotations

import ast
import functools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from theory import catalog
from theory.closeness import tightness_of
from theory.latex import latex
from theory.legend import legend, notation_of
from theory.page import Status, Theorem, forget_proofs
from theory.plain import from_latex, plain, prose
from theory.proof import kernel, tactics
from theory.steps import count
from theory.steps import steps as list_steps

TRUSTED = {
    "kernel": "the inference rules and the axioms: the only place where a claim comes to be proved",
    "terms": "the language: terms, vectors, indices, formulas, substitution",
    "normal": "the normal form by which two terms are found equal, exactly",
    "calculus": "derivatives, with the conditions under which they hold",
    "balls": "signs on boxes of numbers, by interval arithmetic (python-flint)",
}
"""The files of theory/proof that a proof rests on, and what each is for. All else there is not trusted."""


@dataclass(frozen=True)
class TrustedFile:
    """A file of the trusted base: its path in the source, its lines of code, what it is for."""

    file: str
    lines: int
    role: str


@dataclass(frozen=True)
class TheoremReport:
    """One page's outcome. Formulas are text, but ``claim`` (LaTeX).

    Attributes:
        key, title, kind, reference: of the page.
        known_as: what the project's texts call it ("our Theorem A(i)"), or None.
        status: proved, proved-given, claimed or failed.
        statement: what the page says, with the claim; of the paper's own claims, the paper's words.
        claim: the proved formula; empty for a page without one.
        hypotheses: name -> what it says: all that the claim is proved from.
        given: those of them that are not assumptions but facts which the kernel did not derive.
        axioms: name -> statement of the kernel's axioms that the claim rests on, through lemmas too.
        steps: the different claims that the proof goes through by kernel rules, its lemmas' included.
        own_steps: the lines of the page's own proof, each another claim: by a kernel rule, a hypothesis, or
            the claim of another page that it draws on.
        uses: the pages that it draws on directly.
        rules: rule -> how often it is applied in the page's own proof.
        instead: for a claim of the paper, the pages that prove a form of it with explicit constants.
        symbols: (symbol, what it stands for) of the statement and the hypotheses.
        seconds: the time that the proof took, that of lemmas not yet proved included.
        error: why it failed, or None.
        tightness: the best observed/bound ratio that the falsifier has seen (``theory.closeness``), in
            ``models`` models; None where nothing is stored of this statement.
    """

    key: str
    title: str
    kind: str
    reference: str
    known_as: str | None
    status: Status
    statement: str
    claim: str
    hypotheses: Mapping[str, str]
    given: Mapping[str, str]
    axioms: Mapping[str, str]
    steps: int
    own_steps: int
    uses: tuple[str, ...]
    rules: Mapping[str, int]
    instead: tuple[str, ...]
    symbols: tuple[tuple[str, str], ...]
    seconds: float
    error: str | None
    tightness: float | None = None
    models: int | None = None


@dataclass(frozen=True)
class Report:
    """The outcome of ``verify``.

    Attributes:
        theorems: one report for each page.
        trusted: the files that every proof rests on; ``kernel_lines`` is their size together.
        inference_rules: name -> what it concludes, of each rule of the kernel that is no axiom.
        axioms: name -> statement, of each axiom of the kernel.
    """

    theorems: tuple[TheoremReport, ...]
    trusted: tuple[TrustedFile, ...]
    inference_rules: Mapping[str, str]
    axioms: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether every page that has a proof is proved."""
        return all(t.status != "failed" for t in self.theorems)

    @property
    def kernel_lines(self) -> int:
        """Lines of code of the trusted base."""
        return sum(part.lines for part in self.trusted)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "theorems": [asdict(t) for t in self.theorems],
            "kernel_lines": self.kernel_lines,
            "trusted": [asdict(part) for part in self.trusted],
            "inference_rules": dict(self.inference_rules),
            "axioms": dict(self.axioms),
        }


def report(theorems: Iterable[TheoremReport]) -> Report:
    """What the proofs of these pages amount to, with the trusted base as it is."""
    return Report(tuple(theorems), trusted(), inference_rules(), dict(kernel.AXIOMS))


@functools.cache
def trusted() -> tuple[TrustedFile, ...]:
    """The files of the trusted base, with their size: without blank lines, comments and docstrings."""
    return tuple(TrustedFile(f"theory/proof/{n}.py", _lines(_source(n)), role) for n, role in TRUSTED.items())


@functools.cache
def inference_rules() -> Mapping[str, str]:
    """Name -> what it concludes, from the kernel's source: each rule but the axioms."""
    return {
        node.name: " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
        for node in ast.parse(_source("kernel")).body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(d, ast.Name) and d.id == "_rule" for d in node.decorator_list)
    }


def _source(name: str) -> str:
    return (Path(kernel.__file__).parent / f"{name}.py").read_text(encoding="utf-8")


def _lines(source: str) -> int:
    prose_lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            prose_lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        1
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#") and number not in prose_lines
    )


def report_on(page: Theorem, words: Mapping[str, str] | None = None) -> TheoremReport:
    """Prove one page and say how it went; ``words`` say what the symbols of one's own page stand for."""
    begin = time.perf_counter()
    error: str | None = None
    steps = own_steps = 0
    axioms: dict[str, str] = {}
    uses: tuple[str, ...] = ()
    rules: dict[str, int] = {}
    if page.prove is not None:
        try:
            claim = page.proved()
        except Exception as problem:  # the outcome is "failed", whatever the reason
            error = f"{type(problem).__name__}: {problem}"
        else:
            steps = count(claim)
            axioms = {name: kernel.AXIOMS[name] for name in sorted(claim.axioms)}
            own = list_steps(page)
            own_steps = len(own)
            uses = tuple(dict.fromkeys(step.page for step in reversed(own) if step.page))
            rules = dict(sorted(Counter(step.rule for step in own if not step.page).items()))
    seconds = time.perf_counter() - begin
    notation = notation_of(page)
    formula = latex(page.claim, notation) if page.claim is not None else ""
    hypotheses = {name: plain(f, notation) for name, f in page.hypotheses.items()}
    tight = tightness_of(page)
    return TheoremReport(
        key=page.key,
        title=page.title,
        kind=page.kind,
        reference=page.reference,
        known_as=known_as(page),
        status="failed" if error else page.status,
        statement=prose(page.statement.replace("{claim}", f"${formula}$")),
        claim=formula,
        hypotheses=hypotheses,
        given={name: hypotheses[name] for name in page.given},
        axioms=axioms,
        steps=steps,
        own_steps=own_steps,
        uses=uses,
        rules=rules,
        instead=instead(page),
        symbols=tuple((from_latex(e.latex), prose(e.meaning)) for e in legend(page, words=words)),
        seconds=seconds,
        error=error,
        tightness=tight.ratio if tight else None,
        models=tight.models if tight else None,
    )


def known_as(page: Theorem) -> str | None:
    """What the project's texts call a page: "our Theorem A(i)", "our Lemma 1"; None where it has no name.

    A page of one's own has none, whatever its reference says.
    """
    if not _ours(page):
        return None
    name = re.split("[;,:]", page.reference)[0]
    if not re.match(r"our (Theorems?|Lemmas?|corollaries of Theorem) \w", name):
        return None
    return f"a lemma of {name}" if page.kind == "lemma" and "Theorem" in name else name


def instead(page: Theorem) -> tuple[str, ...]:
    """The pages that a claim of the paper names: each proves a form of it with explicit constants.

    None for a page of one's own: nobody has compared what it says with them.
    """
    named = re.search(r"With explicit constants[^:]*: ([^.]*)\.", page.statement)
    if page.prove is not None or not named or not _ours(page):
        return ()
    return tuple(key for key in named[1].split(", ") if key in catalog.theorems())


def _ours(page: Theorem) -> bool:
    """Whether it is a page of this package, whose words about itself were compared with its claim."""
    return catalog.theorems().get(page.key) is page


def verify(
    *,
    pages: Sequence[Theorem] | None = None,
    words: Mapping[str, str] | None = None,
    search: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Put every lemma and theorem through the kernel, or these `pages` of one's own.

    ``words`` say what the symbols of one's own pages stand for, by kernel name. ``search`` finds the
    multipliers anew instead of replaying the stored ones, and stores them once every page is proved;
    ``progress`` is called with each page's key before it is proved.
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
            reports.append(report_on(page, words))
        if search and pages is None and all(r.status != "failed" for r in reports):
            tactics.save_certificates()
    finally:
        certificates.search, certificates.found = before
    return report(reports)
