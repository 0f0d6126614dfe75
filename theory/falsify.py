"""The falsifier: a seeded search for a model where a page's hypotheses hold and its claim does not.

Small problems with extreme scales (1e-8 to 1e8), tied norms, collinear tokens, a single constraint, two
tokens; free symbols (signs, coefficients, step lengths) of every size. Hill climbing first repairs the
hypotheses, then pushes the claim's ratio of small to large side towards 1. Everything is decided in exact
rationals or balls: a counterexample is one only if every hypothesis is certainly true (up to the horizon) and
the claim certainly false. The largest ratio seen is the page's *tightness*: 1 means its bound is attained.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from theory.model import Model, Side, UndecidedError, approximate, exact, precision, tight_bounds
from theory.page import Theorem
from theory.proof.terms import NATURALS, Formula, Node, eq, free, norm, number, vector
from theory.small_problem import TIGHT, SmallProblem, model

Gene = tuple[Any, ...]
HORIZON = 5
OWN = frozenset({"G", "g", "gs", "go", "alpha", "n", "N"})  # what a problem gives
FRESH = 8  # random candidates looked at before each climb
_SCALES = {"unit": (0, 0), "mild": (0, 0), "wide": (-2, 2), "extreme": (-8, 8)}


def _rounded(q: Fraction, digits: int = 3) -> Fraction:
    """About ``digits`` significant decimal digits, so that exact arithmetic stays cheap."""
    if q == 0:
        return q
    size = math.floor(math.log10(abs(q)))
    return Fraction(round(q, digits - 1 - size))


def _floats(row: Iterable[Any]) -> list[float]:
    return [approximate(x) for x in row]


def _body(formula: Formula) -> Formula:
    """A formula without its universal quantifiers."""
    while formula[0] == "forall":
        formula = formula[3]
    return formula


@dataclass(frozen=True)
class Wants:
    """What a statement's hypotheses say outright, so that the search need not find it out.

    Attributes:
        positive: symbols s with a hypothesis 0 < s or 0 <= s.
        bounded: symbols that a hypothesis bounds and the problem does not give.
        zero_start: whether W_0 = 0 is a hypothesis.
        late: indices t0, t1, ... of a step by which, so a hypothesis says, the path has some length.
    """

    positive: frozenset[str] = frozenset()
    bounded: frozenset[str] = frozenset()
    zero_start: bool = False
    late: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hypotheses: Iterable[Formula]) -> Wants:
        """Read them off."""
        hypotheses = list(hypotheses)
        bodies = [_body(f) for f in hypotheses]
        positive = {
            b[2][1] for b in bodies if b[0] in ("lt", "le") and b[1] == ("num", 0) and b[2][0] == "sym"
        }
        bounded = {bound.name for f in hypotheses for bound in tight_bounds(f)} - OWN
        start = eq(norm(vector("W", number(0))), 0)
        late = {v for f in bodies if f[0] in ("le", "lt") for v in _tops(f) if v[-1].isdigit()}
        return cls(frozenset(positive), frozenset(bounded), start in bodies, frozenset(late))


def _tops(node: Node) -> Iterator[str]:
    """The index variables that end a sum over steps."""
    if node[0] == "below":
        yield from (name for name in node[1][1] if name[0] != "#")
    for child in node:
        if isinstance(child, Node):
            yield from _tops(child)


@dataclass
class Draw:
    """One candidate: a seed that determines every number, and the numbers changed since.

    Attributes:
        seed: the default of each gene is drawn from it and the gene's name.
        changed: gene -> value, what the search has altered.
        wants: what the hypotheses say outright.
        used: the genes that the last model asked for.
    """

    seed: str
    changed: dict[Gene, Fraction] = field(default_factory=dict)
    wants: Wants = Wants()
    used: dict[Gene, Fraction] = field(default_factory=dict, repr=False)

    def _random(self, *key: Any) -> random.Random:
        return random.Random(repr((self.seed, key)))

    def choice(self, name: str, options: Iterable[int | str]) -> Any:
        """A discrete gene."""
        options = list(options)
        key = ("choice", name)
        if key not in self.changed:
            self.used[key] = Fraction(self._random(key).randrange(len(options)))
            return options[int(self.used[key])]
        self.used[key] = self.changed[key]
        return options[int(self.changed[key]) % len(options)]

    def number(self, group: str, *key: Any, positive: bool = False) -> Fraction:
        """A real gene; numbers of one group share a scale (``unit`` gives many ties)."""
        gene = (group, *key)
        value = self.changed.get(gene)
        if value is None:
            scale = self.choice(f"scale {group}", ["unit", "unit", "mild", "mild", "wide", "extreme"])
            value = self._fresh(gene, scale)
        self.used[gene] = value
        return abs(value) or Fraction(1) if positive else value

    def _fresh(self, gene: Gene, scale: str) -> Fraction:
        rng = self._random(gene)
        if scale == "unit":
            return Fraction(rng.choice([0, 2, 2, -2, 4, 2, -2, 6, 1]), 2)
        low, high = _SCALES[scale]
        value = Fraction(rng.randint(10, 99), 10) * Fraction(10) ** rng.randint(low, high)
        return value if rng.random() < 0.65 else -value

    def neighbour(self, rng: random.Random) -> Draw:
        """Another candidate that differs in one or two genes."""
        changed = dict(self.changed)
        keys = list(self.used)
        for _ in range(rng.choice([1, 1, 2, 3])):
            gene = rng.choice(keys)
            value = self.used[gene]
            if gene[0] == "choice":
                changed[gene] = Fraction(rng.randrange(60))
                continue
            same = [k for k in keys if k[0] == gene[0]]
            move = rng.random()
            if move < 0.1:
                new = Fraction(rng.choice([0, 1, -1]))
            elif move < 0.2:
                new = self.used[rng.choice(same)]
            elif move < 0.3:
                new = -value
            elif move < 0.5:
                new = value + Fraction(rng.randint(-30, 30), 10)
            else:
                factor = Fraction(rng.choice([200, 1000, 100_000, 300, 110, 101]), 100)
                new = value * factor if rng.random() < 0.5 else value / factor
            changed[gene] = _rounded(new) if abs(new) < 10**12 else value
        return Draw(self.seed, changed, self.wants)

    # what the numbers mean

    def problem(self) -> SmallProblem | None:
        """A small problem with equal non-optimal scores; None when the genes make none."""
        n = self.choice("n", [1, 1, 1, 2, 2, 3]) if not self.patient else 1
        lengths = [self.choice(f"T{i}", [2, 2, 2, 3, 3, 4, *([1] if i else [])]) for i in range(n)]
        while sum(lengths) - n > 5:
            lengths[lengths.index(max(lengths))] -= 1
        width = self.choice("token width", [1, 2, 2, 3])
        depth = self.choice("query width", [1, 1, 2, 3])
        shape = self.choice("shape", ["free", "free", "free", "collinear", "same query"])
        pull = self.number("decoder", positive=True)
        tokens, queries, labels = [], [], []
        for i, length in enumerate(lengths):
            label = self.choice(f"label{i}", [1, 1, -1])
            common, gap = self.number("score", "g", i), self.number("score", "G", i, positive=True)
            rows = []
            for t in range(length):
                if shape == "collinear":
                    along = self.number("token", i, t)
                    rest = tuple(along * self.number("token", "direction", c) for c in range(width))
                else:
                    rest = tuple(self.number("token", i, t, c) for c in range(width))
                rows.append((*rest, label * (common + (gap if t == 0 else 0)) / pull))
            tokens.append(tuple(rows))
            asked = 0 if shape == "same query" else i
            queries.append(tuple(self.number("query", asked, c) for c in range(depth)))
            labels.append(label)
        decoder = (*(Fraction(0) for _ in range(width)), pull)
        found = SmallProblem(tuple(tokens), tuple(queries), tuple(labels), decoder)
        return found if found.constraints and found.dual is not None else None

    def given(self, problem: SmallProblem) -> dict[str, Any]:
        """M and the counts where they are not the problem's own (what a page says they are goes first)."""
        out: dict[str, Any] = {}
        way = self.choice("separator", ["own"] * 4 + ["longer", "any"])
        if way != "own":
            size = 1 + abs(self.number("weights", "separator")) if way == "longer" else Fraction(1)
            noise = [self.number("weights", "M", k) if way == "any" else 0 for k in range(problem.dimension)]
            own = problem.solution or ()
            out["M"] = tuple(
                exact(Fraction(int(x.p), int(x.q)) * size + e) for x, e in zip(own, noise, strict=True)
            )
        for name in ("n", "N", "T"):
            if self.choice(f"count {name}", [1, 1, 1, 1, 1, 0]) == 0:
                out[name] = exact(self.number("real", name, positive=True))
        return out

    def free_value(self, problem: SmallProblem, kind: str, name: str, at: tuple[int, ...]) -> Any:
        """The value of a symbol that neither the hypotheses nor the problem determine."""
        balanced = (
            self.choice("balanced", [1, 1, 0]) == 1
        )  # alpha_k weigh the constraints against M at r* = 0
        if balanced and kind == "vsym" and name == "r_star":
            return (exact(0),) * problem.dimension
        if balanced and kind == "sym" and name == "w" and problem.dual and at in problem.constraints:
            return problem.dual[at[0], at[1]]
        if kind == "sym":
            if self.patient and (name == "eta" or name in self.wants.bounded):
                return exact(self._patient_value(problem, name))
            group = "step" if name in ("e", "eta") else "real"
            group = "coefficient" if name in ("c", "p", "a") else group
            positive = name in self.wants.positive or self.choice(f"sign {name}", [0, 1]) == 1
            return exact(self.number(group, name, *at, positive=positive))
        if name == "W":
            ways = ["zero", "along"] if at == (0,) else []
            way = self.choice(f"{name} {at}", [*ways, "along", "near", "near", "any"])
            size = self.number("weights", "size", name, *at)
            if way == "zero" or (at == (0,) and self.wants.zero_start):
                return (exact(0),) * problem.dimension
            base = tuple(size * Fraction(int(x.p), int(x.q)) for x in problem.solution or ())
            if way == "along":
                return tuple(map(exact, base))
            noise = [self.number("weights", name, *at, k) for k in range(problem.dimension)]
            if way == "any":
                return tuple(map(exact, noise))
            small = Fraction(1, 10 ** self.choice("noise", range(4)))
            return tuple(exact(b + small * x) for b, x in zip(base, noise, strict=True))
        return tuple(exact(self.number("vector", name, *at, k)) for k in range(problem.dimension))

    @property
    def patient(self) -> bool:
        """Whether many short steps are taken on one or two constraints, so that a path gets long."""
        return bool(self.wants.late) and self.choice("patient", [1, 1, 1, 0]) == 1

    def _patient_value(self, problem: SmallProblem, name: str) -> Fraction:
        """A bounded constant as a fraction of 1; eta as one of the inverse of the largest curvature."""
        size = Fraction(1, self.choice(f"fraction {name}", [2, 4, 10, 10, 100, 1000, 10**8]))
        if name != "eta":
            return size
        longest = max(float(sum(x * x for x in A)) for A in map(_floats, problem.matrices.values()))
        slope = max(
            float(max(s) - min(s)) / (1 + math.exp(min(700.0, max(-700.0, float(min(s))))))
            for s in problem.scores
        )
        scale = longest * slope
        return size / _rounded(Fraction(scale)) if 0 < scale < math.inf else size

    def build(self, hypotheses: Iterable[Formula], names: frozenset[str]) -> Model | None:
        """The model that the genes describe, with values for the free index ``names``."""
        self.used = {}
        problem = self.problem()
        if problem is None:
            return None
        hypotheses = list(hypotheses)
        indices = dict.fromkeys(names, 0)
        for f in hypotheses:  # an index that lies in a set, sequences before their tokens
            if f[0] == "in" and f[2][0] == "set" and len(f[2]) == 2:
                indices[f[1][1][0]] = self.choice(f"index {f[1]!r}", range(len(problem.tokens)))
        for f in hypotheses:
            if f[0] == "in" and f[2][0] == "set" and len(f[2]) == 3:
                inside = [t for i, t in problem.constraints if i == indices[f[2][2][1][0]]]
                if not inside:
                    return None
                indices[f[1][1][0]] = self.choice(f"index {f[1]!r}", inside)
        placed = {f[1][1][0] for f in hypotheses if f[0] == "in"}
        for name in sorted(names - placed):
            far = self.patient and name in self.wants.late
            indices[name] = self.choice(f"index {name}", [9, 12, 20, 30, 50] if far else [0, 1, 1, 2, 3])
        horizon = HORIZON + sum(indices[name] for name in self.wants.late if self.patient)
        return model(
            problem,
            hypotheses=hypotheses,
            free=lambda kind, name, at: self.free_value(problem, kind, name, at),
            layer=self.choice("layer", [1, 1, 0]) == 1,
            given=self.given(problem),
            tighten=[
                name
                for name in sorted(self.wants.bounded | TIGHT)
                if name in TIGHT or (not self.patient and self.choice(f"tight {name}", [1, 1, 1, 0]) == 1)
            ],
            indices=indices,
            horizon=horizon,
        )


@dataclass(frozen=True)
class Witness:
    """A model found by the search, so that it can be looked at and built again.

    Attributes:
        draw: builds it.
        ratio: the claim's small/large ratio there, the largest over its index values.
        sides: the two sides of the claim at that place (rounded), and the index values.
    """

    draw: Draw
    ratio: float
    sides: tuple[float, float, tuple[int, ...]]

    def __str__(self) -> str:
        """The numbers, in words."""
        small, large, at = self.sides
        numbers = ", ".join(
            f"{' '.join(map(str, key))} = {value}"
            for key, value in sorted(self.draw.used.items(), key=repr)
            if key[0] != "choice"
        )
        return f"{small:.6g} against {large:.6g} at {at} (seed {self.draw.seed}; {numbers})"


@dataclass(frozen=True)
class Falsification:
    """What the search found about a page.

    Attributes:
        page: its key.
        tightness: the largest small/large ratio where every hypothesis holds; None when it found no model
            or the claim has no sides of known sign.
        tried: candidates looked at.
        met: how many of them met every hypothesis.
        counterexample: a model that refutes the page, or None.
        witness: the tightest model.
    """

    page: str
    tightness: float | None
    tried: int
    met: int
    counterexample: Witness | None
    witness: Witness | None


def _shortfall(found: Model, hypotheses: Iterable[Formula]) -> float:
    """0 when every hypothesis certainly holds; else how far they are from it (a guide for the search)."""
    missing = 0.0
    for f in hypotheses:
        state = found.holds(f)
        if state is True:
            continue
        missing += 1.0
        if state is False:
            worst = 0.0
            try:
                for side in found.sides(f):
                    ratio = side.ratio
                    if side.state is False and not math.isnan(ratio):
                        worst = max(worst, ratio - 1)
            except UndecidedError:
                worst = 1.0
            missing += min(worst, 2.0)
    return missing


def worst_side(found: Model, claim: Formula) -> tuple[float, Side | None, Side | None]:
    """The claim's largest ratio (-inf when there is none), where it occurs, and a side that fails, if any.

    Step 0 of a claim about every step is left out of the ratio: there both sides are the start.
    """
    stepped = claim[0] == "forall" and claim[2] == NATURALS
    best, at, broken = -math.inf, None, None
    for side in found.sides(claim):
        if side.state is False:
            broken = broken or side
        ratio = side.ratio
        if math.isnan(ratio) or (stepped and side.at[0] == 0):
            continue
        if ratio > best:
            best, at = ratio, side
    return best, at, broken


@dataclass
class Search:
    """The search for one statement; ``pool`` keeps ratio and candidate where every hypothesis is met.

    ``watch`` is called with each model that meets them.
    """

    hypotheses: tuple[Formula, ...]
    claim: Formula
    key: str
    seed: int
    tried: int = 0
    met: int = 0
    best: Witness | None = None
    counterexample: Witness | None = None
    pool: list[tuple[float, Draw]] = field(default_factory=list)
    watch: Callable[[Model], None] | None = None

    def __post_init__(self) -> None:
        """Collect the free indices and what the hypotheses say outright."""
        everything: list[Node] = [*self.hypotheses, self.claim]
        self._indices = frozenset(name for f in everything for kind, name in free(f) if kind == "ix")
        self._wants = Wants.of(self.hypotheses)

    def model(self, draw: Draw) -> Model | None:
        """The model of a candidate."""
        return draw.build(self.hypotheses, self._indices)

    def fresh(self, number: int) -> Draw:
        """A new random candidate."""
        return Draw(f"{self.key}/{self.seed}/{number}", {}, self._wants)

    def score(self, draw: Draw) -> float:
        """Judge a candidate: below -1 while hypotheses fail, else the claim's ratio."""
        self.tried += 1
        found = self.model(draw)
        if found is None:
            return -math.inf
        missing = _shortfall(found, self.hypotheses)
        if missing:
            return -2 - missing
        self.met += 1
        if self.watch is not None:
            self.watch(found)
        try:
            ratio, at, broken = worst_side(found, self.claim)
        except UndecidedError:
            return -2.0
        if broken is not None:
            self.counterexample = self._witness(draw, broken)
        if at is not None and (self.best is None or ratio > self.best.ratio):
            self.best = self._witness(draw, at)
        self.pool.append((ratio, draw))
        return max(ratio, -1.5)

    @staticmethod
    def _witness(draw: Draw, side: Side) -> Witness:
        return Witness(draw, side.ratio, (approximate(side.small), approximate(side.large), side.at))

    def climb(self, start: Draw, tries: int, rng: random.Random) -> None:
        """Hill climbing from one candidate, until ``tries`` are used up or a counterexample is found."""
        here, value = start, self.score(start)
        for _ in range(tries):
            if self.counterexample is not None:
                return
            there = here.neighbour(rng) if here.used else here
            score = self.score(there)
            if score >= value:
                here, value = there, score

    def run(self, tries: int, climb: int = 24) -> None:
        """Several climbs of that length, from random starts and from the best of what is known."""
        rng = random.Random(f"{self.key}/{self.seed}")
        number = rounds = 0
        with precision():
            while self.tried < tries and self.counterexample is None:
                rounds += 1
                start = self.best.draw if self.best is not None and rounds % 3 == 0 else None
                if start is None:  # the best of some random candidates
                    graded = []
                    for _ in range(min(FRESH, tries - self.tried)):
                        number += 1
                        graded.append((self.score(self.fresh(number)), -number))
                    start = self.fresh(-max(graded)[1])
                if self.counterexample is None:
                    self.climb(start, min(climb, tries - self.tried), rng)


def falsify(page: Theorem, *, seed: int = 0, tries: int = 200) -> Falsification:
    """Search for a counterexample to a page, and for the models where its bound is tightest.

    Args:
        page: a lemma or theorem with a claim.
        seed: the same seed gives the same search.
        tries: candidates to look at.

    Raises:
        ValueError: the page makes no formal claim.
    """
    if page.claim is None:
        raise ValueError(f"{page.key} makes no formal claim")
    search = Search(tuple(page.hypotheses.values()), page.claim, page.key, seed)
    search.run(tries)
    best = search.best
    informative = best is not None and best.ratio > 0 and not _says_only_a_sign(page.claim)
    return Falsification(
        page=page.key,
        tightness=best.ratio if best is not None and informative else None,
        tried=search.tried,
        met=search.met,
        counterexample=search.counterexample,
        witness=best,
    )


def _says_only_a_sign(claim: Formula) -> bool:
    """A claim 0 < x or 0 <= x has no tightness: its ratio says nothing."""
    body = _body(claim)
    return body[0] in ("lt", "le") and ("num", 0) in (body[1], body[2])


def summary(results: Iterable[Falsification]) -> Mapping[str, str]:
    """Key -> one line: the tightness, or the counterexample."""
    out = {}
    for r in results:
        if r.counterexample is not None:
            out[r.page] = f"REFUTED: {r.counterexample}"
        elif not r.met:
            out[r.page] = f"no model met every hypothesis in {r.tried} tries"
        else:
            tight = "no sides of one sign" if r.tightness is None else f"tightness {r.tightness:.6f}"
            out[r.page] = f"{tight}, {r.met} models in {r.tried} tries"
    return out
