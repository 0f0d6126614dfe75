"""A certified run held against a theorem: enclosures against enclosures, by the very terms that are proved.

The same terms as `theory.verdict` evaluates in floats, here in balls around the run in exact arithmetic and
around the problem's exact constants. An inequality is `holds` or `fails` only where the balls prove it; what
they leave open is `undecided` and is never rounded to one of the two.

Where a statement is an equality, as <W_t, M> = <W_0, M> + S_t when every constraint is active, no precision
separates the sides. Such a row is decided by algebra, or not at all: identities that are exact for this run
(`_identities`) are put into the difference of the sides, which the kernel's normal form then cancels. Rows
that are left open although both sides agree to 1e-15 make the outcome `tight`: equal within 1e-15, which side
is larger is not known. That is no `holds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from flint import arb, ctx, fmpq
from jaxtyping import Int

from numerics._ball_layer import ExactProblem
from numerics.certified import MAX_BITS, CertifiedRun, certify, outward
from numerics.errors import AttnratesError, CertificationError, InputError
from numerics.run import Run
from theory import catalog, joint_run, support_run
from theory import notation as nt
from theory.assumptions import Check, check_all, equal_scores
from theory.evaluate import by_canonical, canonical
from theory.hypotheses import START, about_start, checks
from theory.lemmas.residual_step import residual
from theory.notation import M, e, layer, s, t
from theory.observables import direction_gap
from theory.page import Theorem
from theory.proof.terms import (
    BINDERS,
    Index,
    Node,
    Term,
    as_real,
    below,
    inner,
    norm,
    number,
    real,
    substitute,
    symbol,
    total,
)
from theory.verdict import _based, _shift

Outcome = Literal["holds", "fails", "tight", "undecided", "not claimed"]
TIGHT = 1e-15
"""How close, relatively, the sides of an undecided row must be proved to be for the outcome `tight`."""
RAISES = 3  # how often the precision is raised, fourfold, for the sake of an open comparison
EXCESS = symbol("separator_excess")  # <W_t, M> - <W_0, M> - S_t

Balls = Mapping[Term, Any]  # canonical term -> ball, or a call for it


@dataclass(frozen=True)
class CertifiedVerdict:
    """The outcome of `check_certified`.

    Attributes:
        theorem: the theorem's key.
        outcome: "holds" (proved at every recorded step), "fails" (disproved at one at least), "tight" (none
            disproved, and where undecided the sides are proved to agree to 1e-15), "undecided", or "not
            claimed" (a hypothesis fails or is unknown).
        hypotheses: name -> Check.
        steps: the recorded steps that the statement speaks of.
        decided: for each, "holds", "fails" or "undecided".
        identities: how many rows were decided by exact algebra, not by the balls alone.
        small, large: for each, the enclosures of the sides of small <= large.
        open_width: the largest relative distance that an undecided row leaves possible (0 when none is).
    """

    theorem: str
    outcome: Outcome
    hypotheses: dict[str, Check]
    steps: Int[np.ndarray, " rows"] = field(repr=False)
    decided: tuple[str, ...] = field(repr=False)
    identities: int
    small: tuple[arb, ...] = field(repr=False)
    large: tuple[arb, ...] = field(repr=False)
    open_width: float

    @property
    def worst(self) -> tuple[int, tuple[float, float]] | None:
        """(step, outward-rounded enclosure of small/large there) of the row that is used up most."""
        found: tuple[arb, int, arb] | None = None
        for step, small, large in zip(self.steps.tolist(), self.small, self.large, strict=True):
            ratio = small / large if large > 0 else large / small if small < 0 else arb.nan()
            if ratio.is_finite() and (found is None or ratio.mid() > found[0]):
                found = (ratio.mid(), step, ratio)
        return None if found is None else (found[1], outward(found[2]))


def check_certified(certified: CertifiedRun, key: str) -> CertifiedVerdict:
    """Hold a certified run against a theorem.

    Raises:
        InputError: no theorem of that key, or one that says nothing of runs.
    """
    page = catalog.theorems().get(key)
    if page is None or page.rate is None:
        known = ", ".join(k for k, p in catalog.theorems().items() if p.rate)
        raise InputError(f"no theorem about runs is called {key!r}; there are: {known}")
    return _Reading(certified).verdict(page)


def check_certified_run(certified: CertifiedRun) -> list[CertifiedVerdict]:
    """Hold a certified run against every theorem that says something of runs."""
    reading = _Reading(certified)
    return [reading.verdict(page) for page in catalog.theorems().values() if page.rate]


def decide(
    run: Run, *, max_bits: int = MAX_BITS, progress: bool = False
) -> tuple[CertifiedRun, list[CertifiedVerdict]]:
    """Certify a run and hold it against every theorem, raising the precision while a comparison is open.

    It is raised fourfold, at most `RAISES` times: an equality that algebra does not decide stays open at any
    precision. Sides that approach each other like exp(-||W_t||), as those of the upper bound on Polyak's step
    do, need as many bits as ||W_t|| is long, whatever the balls' widths.

    Raises:
        InputError, CertificationError: see `numerics.certified.certify`.
    """
    certified = certify(run, max_bits=max_bits, progress=progress)
    verdicts = check_certified_run(certified)
    for _ in range(RAISES):
        bits = min(4 * certified.bits, max_bits)
        if all(v.outcome not in ("tight", "undecided") for v in verdicts) or bits == certified.bits:
            break
        try:
            certified = certify(run, bits=bits, max_bits=max_bits, progress=progress)
        except CertificationError:  # what is enclosed already stands
            break
        verdicts = check_certified_run(certified)
    return certified, verdicts


_TIME = canonical(as_real(t))


@lru_cache(maxsize=64)
def _terms(here: Index) -> tuple[tuple[str, Term], ...]:
    """(column, canonical term) for what a recorded row says of W_here; logarithms stand for their numbers."""
    now = layer(here)
    terms = {
        "step_length": e(here),
        "weight_norm": norm(now.W),
        "<W, M>": inner(now.W, M),
        "path_length": nt.path_length(here),
        "separator_path": nt.separator_path(here),
        "direction_gap": direction_gap(here),
        "log_attention_gap": 1 - now.p(nt.i),  # the largest over i
        "log_excess_loss": nt.loss(now) - nt.least_loss(),
        "residual_norm": norm(residual(now.W)),
        "log_total_attention_gap": total(nt.i, nt.SEQUENCES, 1 - now.p(nt.i)),
    }
    return tuple((name, canonical(term)) for name, term in terms.items())


@lru_cache(maxsize=64)
def _bending(base: Index) -> Term:
    """The sum of e_s^2/||W_s|| from t0 on."""
    return canonical(total(s, below(t), e(base + s) ** 2 / norm(layer(base + s).W)))


class _Reading:
    """A certified run with its constants in balls; each is computed once for all pages."""

    def __init__(self, certified: CertifiedRun) -> None:
        self.certified = certified
        self.run = certified.run
        self.bits = max(certified.bits, 256)
        self._checks: dict[str, Check] = {}
        self._rows: dict[tuple[int, Index], dict[Term, arb]] = {}
        with ctx.workprec(self.bits):
            self.constants = by_canonical(self._constants())

    # --- hypotheses ---

    def checks(self, names: tuple[str, ...]) -> dict[str, Check]:
        if "joint" in names:  # a certified run has a fixed decoder
            return {"joint": joint_run.CONDITIONS["joint"](self.run)}
        missing = tuple(n for n in names if n not in self._checks)
        self._checks |= check_all(self.run, missing)
        with ctx.workprec(self.bits):
            for name in set(missing) & _IN_BALLS.keys():
                if self._checks[name].state == "holds":
                    self._checks[name] = _IN_BALLS[name](self)
        return {n: self._checks[n] for n in names}

    # --- values ---

    @cached_property
    def exact(self) -> ExactProblem:
        """The problem in balls."""
        return ExactProblem.of(self.run.problem)

    def _constants(self) -> dict[Term, Any]:
        """The problem's constants, as `theory.observables.constants` gives them in floats."""
        problem, rule, exact = self.run.problem, self.run.rule, self.exact
        low, high, gaps = [], [], []
        for first, last, best, _ in exact.sequences:
            if first < last:
                gap = exact.gaps[first]
                low.append(gap / (problem.n * (1 + best.exp())))
                high.append(gap / (problem.n * (1 + (best - gap).exp())))
        gaps = list(exact.gaps)
        length, margin = self.certified.norm, self.certified.margin
        self.margin, self.steepest = margin, _most(high)
        self.longest = self._longest_step()
        smallest = _least(exact.gram.entries())
        out: dict[Term, Any] = {
            nt.n: arb(problem.n),
            nt.N: arb(problem.n_constraints),
            nt.T: arb(int(problem.lengths.max())),
            nt.R: exact.radius,
            nt.a_min: _least(low),
            nt.a_max: self.steepest,
            nt.kappa: self.steepest / _least(low),
            nt.e0: (-smallest).max(arb(0)),
            inner(M, M): length**2,
            norm(M): length,
            nt.margin: margin,
            symbol("e_max"): self.longest,
            symbol("G_max"): _most(gaps).max(arb(0)),
            symbol("Gam"): _most(gaps),
            symbol("gam"): _least(gaps),
            symbol("R_B"): (exact.radius**2 - margin**2).nonnegative_part().sqrt(),
            symbol("rho"): _most([b / a for a, b in zip(low, high, strict=True)]),
            **support_run.values(problem, balls=True),
        }
        if hasattr(rule, "step"):
            out[nt.eta] = arb(rule.step)
        return out

    def _longest_step(self) -> arb:
        """A bound on every step length: the rule's own, or for gradient descent eta R n a_max/4."""
        rule = self.run.rule
        if rule.name == "ngd":
            return arb(rule.step)
        if rule.name == "gd" and equal_scores(self.run.problem).state != "holds":
            return arb.pos_inf()  # no bound is proved
        if rule.name == "gd":
            return arb(rule.step) * self.exact.radius * self.run.problem.n * self.steepest / 4
        return arb(float(rule.law.cap))

    def at(self, row: int, here: Index) -> dict[Term, arb]:
        """What the run says of the terms at W_here, the recorded state of a row."""
        if (row, here) not in self._rows:
            balls = {name: column[row] for name, column in self.certified.balls.items()}
            u, length = balls["weight_norm"], self.constants[canonical(norm(M))]
            balls["<W, M>"] = balls["target_component"] * length
            # W = 0 has no direction; the term's value there is 1, by inv(0) = 0.
            balls["direction_gap"] = arb(1) if u.is_zero() else balls["direction_gap"]
            for name in ("log_attention_gap", "log_total_attention_gap", "log_excess_loss"):
                balls[name] = balls[name].exp()
            self._rows[row, here] = {term: balls[name] for name, term in _terms(here)}
        return self._rows[row, here]

    def values(self, row: int, here: Index, begin: int, base: Index | None, start: int) -> dict[Term, Any]:
        """Everything a page may ask of a row; `base`, if it is a variable, is the step of row `start`."""
        steps = self.certified.steps
        out: dict[Term, Any] = self.constants | {
            _TIME: arb(int(steps[row]) - begin),
            EXCESS: self.certified.separator_excess[row],
        }
        if steps[0] == 0:
            out |= self.at(0, number(0))
        if base is not None and base[1]:
            bends = self.certified.balls["curvature_sum"]
            first, gap = self.at(start, base), self.certified.balls["direction_gap"][start]
            size = norm(layer(base).W)
            behind = canonical(size - inner(layer(base).W, M) / norm(M))  # u - v, without cancellation
            out |= first | {_bending(base): bends[row] - bends[start], behind: first[canonical(size)] * gap}
        return out | self.at(row, here)

    # --- the verdict ---

    def verdict(self, page: Theorem) -> CertifiedVerdict:
        hypotheses = self.checks(checks(page))
        if any(c.state != "holds" for c in hypotheses.values()):
            return _unclaimed(page.key, hypotheses)
        with ctx.workprec(self.bits):
            try:
                return self._compare(page, hypotheses)
            except (KeyError, AttnratesError) as error:
                hypotheses["recorded"] = Check("unknown", str(error.args[0]))
                return _unclaimed(page.key, hypotheses)

    def _compare(self, page: Theorem, hypotheses: dict[str, Check]) -> CertifiedVerdict:
        rate, steps = page.rate, self.certified.steps
        assert rate is not None
        small, large = (rate.observed, rate.bound) if rate.sense == "upper" else (rate.bound, rate.observed)
        shift = _shift(rate.observed)
        if _based(page):
            start = self._start(page)
            base: Index | None = START
            begin, rows = int(steps[start]), range(start + 1, len(steps))
        else:
            start = int(np.searchsorted(steps, rate.from_step))
            base = number(shift) if shift else None
            begin, rows = shift, range(start, len(steps))
        if not rows:
            raise KeyError("no step is recorded that the statement speaks of")
        here = t if base is None else base + t
        decided, lows, highs, identities, width = [], [], [], 0, arb(0)
        for row in rows:
            values = self.values(row, here, begin, base, start)
            low, high = value(small, values), value(large, values)
            state = "holds" if low <= high else "fails" if low > high else "undecided"
            if state == "undecided":
                known = self._by_algebra(small, large, row, here, begin, base, start)
                if known is None:
                    width = width.max(_distance(low, high))
                else:
                    state, identities = known, identities + 1
            decided.append(state)
            lows.append(low)
            highs.append(high)
        outcome: Outcome = "holds"
        if "fails" in decided:
            outcome = "fails"
        elif "undecided" in decided:
            outcome = "tight" if width < TIGHT else "undecided"
        return CertifiedVerdict(
            page.key, outcome, hypotheses, steps[rows.start :], tuple(decided), identities,
            tuple(lows), tuple(highs), outward(width)[1],
        )  # fmt: skip

    def _start(self, page: Theorem) -> int:
        """The first row that provably meets the page's conditions on t0; any such row is a valid t0."""
        conditions = [f for f in page.hypotheses.values() if about_start(f)]
        for row in range(len(self.certified.steps)):
            values = self.values(row, START, 0, None, 0)
            sides = [(f[0], value(f[1], values), value(f[2], values)) for f in conditions]
            if all(low < high if head == "lt" else low <= high for head, low, high in sides):
                return row
        raise KeyError("no recorded step provably meets the conditions on t0")

    def _by_algebra(
        self, small: Term, large: Term, row: int, here: Index, begin: int, base: Index | None, start: int
    ) -> str | None:
        """Decide a row from the difference of its sides, after exact identities have been put in."""
        difference = large - small
        step = int(self.certified.steps[row])
        if step == begin and (base is None or not base[1]):  # the row at which the running index is 0
            difference = substitute(difference, indices={"t": number(0)})
            here = number(step)
        facts = by_canonical(self._identities(row, here, base, start))
        reduced = canonical(_put(canonical(difference), facts))
        try:
            gap = value(reduced, self.values(row, here, begin, base, start))
        except KeyError:
            return None
        return "holds" if gap >= 0 else "fails" if gap < 0 else None

    def _identities(self, row: int, here: Index, base: Index | None, start: int) -> dict[Term, Any]:
        """Terms -> what they equal exactly on this run, at this row."""
        now, zero = layer(here), number(0)
        from_zero = self.run.init is None or not np.any(self.run.init)
        facts: dict[Term, Any] = {}
        if from_zero:
            facts |= {norm(layer(zero).W): real(0), inner(layer(zero).W, M): real(0)}
        if here != zero and not self.certified.separator_excess[row].is_nan():
            # <W_(s+1) - W_s, M> = e_s <-grad L_s, M>/||grad L_s||, and <A_k, M> = 1 for active constraints.
            excess = self.certified.separator_excess[row]
            begun = real(0) if from_zero else inner(layer(zero).W, M)
            facts[inner(now.W, M)] = (
                begun + nt.separator_path(here) + (real(0) if excess.is_zero() else EXCESS)
            )
        if self.run.rule.name == "ngd" and not self.run.rule.law.exponent:
            facts[e(here)] = nt.eta
        if self.certified.steps[row] == 1 and from_zero and here != zero:
            facts[norm(now.W)] = nt.path_length(here)  # one step from 0 leads e_0 away
        return facts


def _unclaimed(key: str, hypotheses: dict[str, Check]) -> CertifiedVerdict:
    return CertifiedVerdict(key, "not claimed", hypotheses, np.array([], dtype=int), (), 0, (), (), 0.0)


def _distance(low: arb, high: arb) -> arb:
    """How far apart the sides may be, relative to the larger; 1 where there is no telling."""
    gap, size = (high - low).abs_upper(), low.abs_lower().max(high.abs_lower())
    far = gap / size if size > 0 else arb(1)
    return far.abs_upper() if far.is_finite() else arb(1)


def _put(node: Any, facts: Balls) -> Any:
    """Replace the terms of `facts`, outside binders."""
    if not isinstance(node, Node):
        return node
    if isinstance(node, Term) and node in facts:
        return facts[node]
    if node[0] in BINDERS or not isinstance(node, Term):
        return node
    return type(node)((node[0], *(_put(child, facts) for child in node[1:])))


# --- terms in balls ----------------------------------------------------------------------------------------


def value(term: Term, values: Balls) -> arb:
    """A ball around the value of a term; NaN where a function's argument may leave its domain.

    Raises:
        KeyError: a symbol of the term has no value.
    """
    found = values.get(term)
    if found is None and term[0] != "num":
        found = values.get(canonical(term))
    if found is not None:
        return found() if callable(found) else found
    head = term[0]
    if head == "num":
        q = Fraction(term[1])
        return arb(fmpq(q.numerator, q.denominator))
    if head == "add":
        return sum((value(c, values) for c in term[1:]), arb(0))
    if head == "mul":
        out = arb(1)
        for c in term[1:]:
            out *= value(c, values)
        return out
    if head == "pow":
        return value(term[1], values) ** int(term[2])
    if head == "inv":
        x = value(term[1], values)
        return arb(0) if x.is_zero() else 1 / x  # inv(0) = 0; a ball that only contains 0 gives NaN
    if head == "fn":
        return _apply(term[1], [value(c, values) for c in term[2:]])
    raise KeyError(f"no value for {term!r}")


def _apply(name: str, args: list[arb]) -> arb:
    x = args[0]
    if name == "exp":
        return x.exp()
    if name == "max":
        return x.max(args[1])
    if name == "min":
        return x.min(args[1])
    if name == "log" and x > 0:
        return x.log()
    if name == "sqrt" and x >= 0:
        return x.sqrt()
    if name == "lambertw" and x >= 0:
        return x.lambertw()
    return arb.nan()


def _least(balls: list[arb]) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = out.min(x)
    return out


def _most(balls: list[arb]) -> arb:
    out = balls[0]
    for x in balls[1:]:
        out = out.max(x)
    return out


# --- hypotheses that turn on floats in `theory.assumptions` ------------------------------------------------


def _full_support(reading: _Reading) -> Check:
    """(F), from the certificate's own answer."""
    certificate = reading.certified.certificate
    if certificate is None:
        return Check("unknown", "the max-margin solution is not certified")
    state: Any = certificate.full_support
    return Check(state, "certified support")


def _short_steps(reading: _Reading) -> Check:
    """e_max < 2 g*/R_B^2, every number in balls."""
    across = reading.exact.radius**2 - reading.margin**2
    if across <= 0:
        return Check("holds", "one direction only: no step is too long")
    limit = 2 * reading.margin / across
    longest, at_most = outward(reading.longest)[1], outward(limit)
    text = f"e_max <= {longest:.6g} against 2 g*/R_B^2 in [{at_most[0]:.6g}, {at_most[1]:.6g}]"
    if reading.longest < limit:
        return Check("holds", text, at_most)
    return Check("fails" if reading.longest >= limit else "unknown", text, at_most)


_IN_BALLS: dict[str, Callable[[_Reading], Check]] = {"F": _full_support, "short steps": _short_steps}
