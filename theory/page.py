"""A page of the paper: a statement with its hypotheses, its bound and its proof through the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from theory.notation import always, each_sequence
from theory.proof.kernel import Proved
from theory.proof.terms import Formula, Term

Status = Literal["proved", "proved-given", "claimed", "observed", "failed"]
Sense = Literal["upper", "lower"]


class ProofError(Exception):
    """A page's proof does not prove the page's claim."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What a page says of a recorded run: ``observed <= bound`` (upper) or ``bound <= observed`` (lower).

    Both are the very terms of the proved claim, evaluated on the run by ``theory.observables``; what must be
    checked before the bound is claimed follows from the page's hypotheses (``theory.hypotheses``).
    ``from_step`` is the first step the statement speaks of. ``small_numbers``: both sides are positive and
    may underflow, so their logarithms are compared.
    """

    observed: Term
    bound: Term
    sense: Sense
    from_step: int = 0
    small_numbers: bool = False


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """One lemma, theorem or corollary.

    Attributes:
        key: name on the command line and in files.
        title: what it says, in words.
        kind: lemma, theorem, corollary, or claim (the paper's own, encoded and not re-derived).
        reference: where it comes from.
        statement: LaTeX, with the formula as ``{claim}`` (printed from the kernel term, never typed).
        hypotheses: name -> formula; the proof may use these and no others.
        claim: what is proved from them.
        prove: makes the claim through the kernel; None for a page of kind claim.
        given: names of hypotheses that are not assumptions but facts to be checked on a run.
        rate: what it says of a run, if it does.
    """

    key: str
    title: str
    kind: Literal["lemma", "theorem", "corollary", "claim"]
    reference: str
    statement: str
    hypotheses: Mapping[str, Formula]
    claim: Formula | None
    prove: Callable[[], Proved] | None
    given: tuple[str, ...] = ()
    rate: Rate | None = None

    @property
    def bound(self) -> Term | None:
        """The bound on a run as one symbolic expression (``theory.latex.to_sympy`` gives it to sympy)."""
        return self.rate.bound if self.rate else None

    def proved(self) -> Proved:
        """The claim, proved; from the stated hypotheses and no others.

        Raises:
            ProofError: the proof proves something else, needs more than is stated, or less.
        """
        if self not in _DONE:
            _DONE[self] = _prove(self)
        return _DONE[self]

    def is_proved(self) -> bool:
        """Whether the proof has been run and stands."""
        return self in _DONE

    @property
    def status(self) -> Status:
        """What may be said of this page; runs the proof if it has not run yet."""
        if self.prove is None:
            return "claimed"
        try:
            self.proved()
        except Exception:  # whatever went wrong, it is not proved
            return "failed"
        return "proved-given" if self.given else "proved"

    def __hash__(self) -> int:
        """Pages go by their key."""
        return hash(self.key)


_DONE: dict[Theorem, Proved] = {}


def _prove(page: Theorem) -> Proved:
    if page.prove is None:
        raise ProofError(f"{page.key} is the paper's claim; there is no proof here")
    claim = page.prove()
    if type(claim) is not Proved:  # isinstance and attributes can be imitated
        raise ProofError(f"{page.key}: the proof gives a {type(claim).__name__}, not a claim of the kernel")
    if claim.conclusion != page.claim:
        raise ProofError(f"{page.key}: the proof ends in {claim.conclusion!r}, the page says {page.claim!r}")
    extra = claim.hypotheses - set(page.hypotheses.values())
    if extra:
        raise ProofError(f"{page.key}: the proof also needs {', '.join(map(repr, extra))}")
    if not says_what_it_proves(page):
        raise ProofError(f"{page.key}: the rate on runs is not the proved claim")
    idle = [name for name, formula in page.hypotheses.items() if formula not in claim.hypotheses]
    if idle:  # a hypothesis that is not needed makes the page weaker than its proof
        raise ProofError(f"{page.key}: stated but not needed: {', '.join(idle)}")
    return claim


def says_what_it_proves(page: Theorem) -> bool:
    """Whether the bound that a page claims on runs is its proved claim: for every step t (and sequence i)."""
    if page.rate is None:
        return True
    sides = (page.rate.observed, page.rate.bound)
    body = sides[0] <= sides[1] if page.rate.sense == "upper" else sides[1] <= sides[0]
    return page.claim in (always(body), always(each_sequence(body)))


def forget_proofs() -> None:
    """Let every page be proved anew when it is next asked for."""
    _DONE.clear()


def without(hypotheses: Mapping[str, Formula], *names: str) -> dict[str, Formula]:
    """The hypotheses less the named ones."""
    missing = set(names) - set(hypotheses)
    if missing:
        raise KeyError(f"no hypothesis called {missing}")
    return {name: formula for name, formula in hypotheses.items() if name not in names}
