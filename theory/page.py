"""A page of the paper: a statement with its hypotheses, its bound and its proof through the kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from numerics.errors import InputError
from theory.notation import always, each_sequence
from theory.proof.kernel import Proved
from theory.proof.terms import Formula, Term

Status = Literal["proved", "proved-given", "claimed", "observed", "failed"]
Sense = Literal["upper", "lower"]
Kind = Literal["lemma", "theorem", "corollary", "claim"]


class ProofError(Exception):
    """A page's proof does not prove the page's claim."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What a page says of a recorded run: ``observed <= bound`` (upper) or ``bound <= observed`` (lower).

    Both are the very terms of the proved claim, evaluated on the run by ``theory.observables``; what must be
    checked before the bound is claimed follows from the page's hypotheses (``theory.hypotheses``).
    ``from_step`` is the first step the statement speaks of. ``small_numbers``: both sides are positive and
    may underflow, so their logarithms are compared.

    Raises InputError for a side that is no term, another sense, or a first step that is no step.
    """

    observed: Term
    bound: Term
    sense: Sense
    from_step: int = 0
    small_numbers: bool = False

    def __post_init__(self) -> None:
        """Check the parts."""
        if type(self.observed) is not Term or type(self.bound) is not Term:
            raise InputError("a rate's observed and bound must be terms of the kernel")
        if self.sense not in ("upper", "lower"):
            raise InputError(f'a rate\'s sense must be "upper" or "lower", not {self.sense!r}')
        if type(self.from_step) is not int or self.from_step < 0:
            raise InputError(f"a rate's from_step must be a step, not {self.from_step!r}")


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

    Raises:
        InputError: a part is of another type, the key cannot name a file, another kind, words that cannot be
            printed and so could hide others, a given fact that is no hypothesis, or a statement that does not
            print the claim, so that it could say anything.
    """

    key: str
    title: str
    kind: Kind
    reference: str
    statement: str
    hypotheses: Mapping[str, Formula]
    claim: Formula | None
    prove: Callable[[], Proved] | None
    given: tuple[str, ...] = ()
    rate: Rate | None = None

    def __post_init__(self) -> None:
        """Check the parts; keep the hypotheses as they are now."""
        if type(self.key) is not str or not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", self.key):
            raise InputError(f"a page's key must be letters, digits, '.', '_' and '-', not {self.key!r}")
        for name in ("title", "reference", "statement"):
            if type(getattr(self, name)) is not str:
                raise InputError(f"{self.key}: the {name} must be text")
            if not getattr(self, name).isprintable():  # it reaches the terminal
                raise InputError(f"{self.key}: the {name} must be one line of printable text")
        if type(self.kind) is not str or self.kind not in get_args(Kind):
            kinds = ", ".join(get_args(Kind))
            raise InputError(f"{self.key}: the kind must be one of {kinds}, not {self.kind!r}")
        # Anything else than a formula could claim to equal one, and be printed as another.
        if self.claim is not None and type(self.claim) is not Formula:
            raise InputError(f"{self.key}: the claim must be a formula of the kernel")
        if self.claim is not None and self.statement.count("{claim}") != 1:
            raise InputError(f"{self.key}: the statement must contain {{claim}} once: there it is printed")
        hypotheses = dict(self.hypotheses)
        if not all(type(k) is str and type(v) is Formula for k, v in hypotheses.items()):
            raise InputError(f"{self.key}: hypotheses must be names with formulas of the kernel")
        for name in hypotheses:
            if not name.strip() or not name.isprintable():
                raise InputError(f"{self.key}: a hypothesis's name must be printable text, not {name!r}")
        if type(self.given) is not tuple or not all(type(name) is str for name in self.given):
            raise InputError(f"{self.key}: given must be a tuple of names of hypotheses")
        for name in self.given:
            if name not in hypotheses:
                raise InputError(f"{self.key}: given names {name!r}, which is none of the hypotheses")
        object.__setattr__(self, "hypotheses", MappingProxyType(hypotheses))

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
    if type(page) is not Theorem:  # a subclass may show anything
        raise ProofError(f"{page.key}: is a {type(page).__name__}, not a Theorem itself")
    if page.prove is None:
        raise ProofError(f"{page.key} is the paper's claim; there is no proof here")
    try:
        claim = page.prove()
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:  # an exit must not pass for a proof
        raise ProofError(f"{page.key}: the proof does not end but leaves by {type(error).__name__}") from None
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


def forget_proofs(*pages: Theorem) -> None:
    """Let these pages, or every page, be proved anew when next asked for."""
    for page in pages or tuple(_DONE):
        _DONE.pop(page, None)


def without(hypotheses: Mapping[str, Formula], *names: str) -> dict[str, Formula]:
    """The hypotheses less the named ones."""
    missing = set(names) - set(hypotheses)
    if missing:
        raise KeyError(f"no hypothesis called {missing}")
    return {name: formula for name, formula in hypotheses.items() if name not in names}
