"""Numbers of the theorem on Gaussian data: how likely (S) and (N) are in a dimension, and from which on.

The theorem (``theory.theorems.gaussian_data``, ``gaussian_dimension``, ``gaussian_probability``) holds at any
relative bounds t_q, ..., h of its event. Good ones are searched for in floats; what is then
claimed of them is decided by the kernel's ball arithmetic on exact rationals, from the terms that are proved.

Besides the union bound, Markov's inequality and the moment generating functions the last page takes as given
that (S) and (N) are at least as likely as the event ("(S) and (N) hold on the event", 1 - F <= P). That they
hold on the event is proved by the pages ``ON_EVENT``, which speak of no probability.

The noise is orthogonal to the signals, as in the data set "gaussian": it lives in d - 2 dimensions. The query
may be a vector of its own or the first token: the union bound does not ask, so the numbers are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from flint import arb, ctx

from numerics.errors import InputError
from theory.lemmas.gaussian_tails import deviation
from theory.model import exact
from theory.proof import balls, kernel
from theory.proof.kernel import Proved
from theory.proof.normal import canonical
from theory.proof.tactics import follows
from theory.proof.terms import Formula, Index, Node, Term, free, number, real, substitute
from theory.theorems.gaussian_data import CONDITIONS
from theory.theorems.gaussian_dimension import SLOPES
from theory.theorems.gaussian_probability import BOUND, PROBABILITY, d, row_excess, t_p, t_q, t_u

NAMES = ("t_q", "t_p", "t_u", "w", "y", "a", "h")
ON_EVENT = ("gaussian-acute", "gaussian-margin", "gaussian-separable")
"""The pages that prove (S) and (N) on the event, for each data set in it."""
SIGNAL_DIRECTIONS = 2  # in which there is no noise
QUERIES = ("first", "own")
FARTHEST = 10**9  # dimensions beyond this are not looked at
_LOWEST, _HIGHEST = np.full(7, 1e-7), np.array([0.9, 0.9, 0.9, 0.9, 5.0, 0.9, 5.0])
_SPARE = 1e-9  # what the search keeps from the edge, far above its rounding errors


SCALES = 1e-60, 1e60  # whose squares and products are numbers still
LARGEST = 10**15  # n and T: beyond, floats no longer search well, far from the range where they overflow


@dataclass(frozen=True)
class Setting:
    """n sequences of T tokens, signals of norm ``signal``, noise of standard deviation ``noise``.

    Raises:
        InputError: a size or a scale is out of range.
    """

    n: int
    T: int
    signal: float
    noise: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.n < 2 or self.T < 2:
            raise InputError(f"the Gaussian theorem needs n >= 2 and T >= 2, not n={self.n}, T={self.T}")
        if max(self.n, self.T) > LARGEST:
            raise InputError("the Gaussian theorem is evaluated for n and T up to 10^15")
        for name in ("signal", "noise"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"Gaussian data need a positive {name}, not {value}")
            if not SCALES[0] <= value <= SCALES[1]:
                raise InputError(f"the Gaussian theorem is evaluated for a {name} from 10^-60 to 10^60")

    def term(self, of_page: Term) -> Term:
        """A page's term in this setting, with g = 0; its symbols are d and the bounds of the event."""
        values = {"q": deviation(t_q), "p": deviation(t_p), "u": deviation(t_u), "g": real(0)}
        values |= {"s": real(Fraction(self.signal)), "v": real(Fraction(self.noise)) ** 2 * d}
        families = {name: ((), value) for name, value in values.items()}
        return _with_integers(substitute(of_page, reals=families, indices=self.indices))

    @property
    def indices(self) -> dict[str, Index]:
        """The page's n and m = T - 1."""
        return {"n": number(self.n), "m": number(self.T - 1)}


def _with_integers(t: Any) -> Any:
    """Constant natural numbers as rationals, which ball arithmetic knows."""
    if isinstance(t, Term) and t[0] == "real":
        return canonical(t)
    return type(t)((t[0], *map(_with_integers, t[1:]))) if isinstance(t, Node) and t[0] != "ix" else t


@dataclass(frozen=True)
class Terms:
    """The page's quantities in one setting, in the symbols d, t_q, t_p, t_u, w, y, a.

    ``conditions`` and ``slopes`` are pairs (small, large), to hold as small < large and small <= large. The
    last condition, that a row's excess x is positive, holds in every larger dimension anyway.
    """

    conditions: tuple[tuple[Term, Term], ...]
    slopes: tuple[tuple[Term, Term], ...]
    failure: Term


@lru_cache(maxsize=64)
def terms(setting: Setting) -> Terms:
    """The terms of the pages in a setting."""

    def sides(formula: Formula) -> tuple[Term, Term]:
        return setting.term(formula[1]), setting.term(formula[2])

    conditions, slopes = (tuple(map(sides, table.values())) for table in (CONDITIONS, SLOPES))
    excess = real(0), setting.term(row_excess(d))
    return Terms((*conditions, excess), slopes, setting.term(BOUND))


# --- search, in floats -------------------------------------------------------------------------------------

Values = Mapping[str, Any]


def compiled(t: Term) -> Callable[[Values], Any]:
    """The term as a function of floats or arrays."""
    head = t[0]
    if head == "num":
        constant = float(t[1])
        return lambda values: constant
    if head == "sym":
        name = t[1]
        return lambda values: values[name]
    parts = [compiled(c) for c in t[1:] if isinstance(c, Term)]
    if head == "add":
        return lambda values: sum(part(values) for part in parts)
    if head == "mul":
        return lambda values: reduce(operator.mul, (part(values) for part in parts))
    (inner,) = parts
    if head == "pow":
        power = t[2]
        return lambda values: inner(values) ** power
    if head == "inv":
        return lambda values: 1 / inner(values)
    function = {"exp": np.exp, "log": np.log}[t[1]]
    return lambda values: function(inner(values))


@lru_cache(maxsize=64)
def _functions(setting: Setting) -> tuple[list[tuple[Callable[[Values], Any], ...]], Callable[[Values], Any]]:
    of = terms(setting)
    return [tuple(map(compiled, sides)) for sides in of.conditions], compiled(of.failure)


class _Search:
    """Spare (of the margin, relative) and failure probability over the logarithms x of the bounds."""

    def __init__(self, setting: Setting, d: int) -> None:
        self.setting, self.d = setting, d
        self.low, self.high = np.log(_LOWEST), np.log(_HIGHEST)
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None

    def _values(self, x: np.ndarray) -> np.ndarray:
        """Spare of each condition and the logarithm of the failure probability, in rows."""
        conditions, failure = _functions(self.setting)
        d = float(self.d - SIGNAL_DIRECTIONS)
        values = dict(zip(NAMES, np.exp(x), strict=True)) | {"d": d}
        scale = d * self.setting.noise**2
        unit = scale * (self.setting.signal**2 + scale / (self.setting.T - 1)) / self.setting.n
        *rows, excess = ((large(values) - small(values)) for small, large in conditions)
        rows = [*(row / unit for row in rows), 10 * excess]  # the excess is rarely what binds
        return np.array([*rows, np.log(np.maximum(failure(values), 1e-300))])

    def with_slopes(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows at x, and their derivatives by central differences; the last answer is kept."""
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            step = 1e-5
            shifts = np.hstack([np.zeros((7, 1)), step * np.eye(7), -step * np.eye(7)])
            rows = self._values(np.clip(x, self.low, self.high)[:, None] + shifts)
            self._last = key, (rows[:, 0], (rows[:, 1:8] - rows[:, 8:]) / (2 * step))
        return self._last[1]

    def start(self, delta: float) -> np.ndarray:
        """Bounds that fail with about probability delta, equally likely each."""
        d, pairs = self.d - SIGNAL_DIRECTIONS, self.setting.n**2 * self.setting.T**2
        level = np.log(7 * pairs / delta) / d
        row = np.sqrt(3 * (1 + 2 * np.sqrt(level)) / d)
        first = [*[np.sqrt(2 * level)] * 3, *[2 * np.sqrt(level)] * 3]
        return np.log([*np.clip(first, 1e-6, 0.5), min(row, 2.0)])

    def widest(self, delta: float) -> np.ndarray:
        """The bounds of the largest spare that fail with probability at most delta."""
        k, goal = len(CONDITIONS) + 1, np.log(delta) - _SPARE

        def constraint(x: np.ndarray) -> np.ndarray:
            rows = self.with_slopes(x[:7])[0]
            return np.array([*(rows[:k] - x[7]), goal - rows[k]])

        def slopes(x: np.ndarray) -> np.ndarray:
            rows = self.with_slopes(x[:7])[1]
            return np.vstack([np.hstack([rows[:k], -np.ones((k, 1))]), np.append(-rows[k], 0)])

        first = self.start(delta)
        first = np.append(first, float(self.with_slopes(first)[0][:k].min()))
        limits = [*zip(self.low, self.high, strict=True), (None, None)]
        last = np.eye(8)[7]
        return self._found(lambda x: (-x[7], -last), constraint, slopes, first, limits)

    def likeliest(self, first: np.ndarray) -> np.ndarray:
        """The bounds that fail least often at a positive spare, searched for from ``first``."""
        k = len(CONDITIONS) + 1

        def goal(x: np.ndarray) -> tuple[float, np.ndarray]:
            rows, slopes = self.with_slopes(x)
            return float(rows[k]), slopes[k]

        limits = list(zip(self.low, self.high, strict=True))
        return self._found(
            goal,
            lambda x: self.with_slopes(x)[0][:k] - _SPARE,
            lambda x: self.with_slopes(x)[1][:k],
            first,
            limits,
        )

    def _found(
        self,
        goal: Callable[[np.ndarray], tuple[float, np.ndarray]],
        constraint: Callable[[np.ndarray], np.ndarray],
        slopes: Callable[[np.ndarray], np.ndarray],
        first: np.ndarray,
        limits: list[tuple[Any, Any]],
    ) -> np.ndarray:
        from scipy import optimize

        minimize: Any = optimize.minimize
        found = minimize(
            goal,
            first,
            jac=True,
            constraints={"type": "ineq", "fun": constraint, "jac": slopes},
            bounds=limits,
            method="SLSQP",
            options={"maxiter": 200, "ftol": 1e-9},
        )
        return np.clip(found.x[:7], self.low, self.high)


# --- what is claimed, in balls -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificate:
    """Bounds of the event at which the theorem applies in dimension d, and fails with at most ``failure``."""

    setting: Setting
    d: int
    bounds: Mapping[str, Fraction]
    failure: float

    def reaches(self, d: int) -> bool:
        """Whether the same bounds serve from the certificate's dimension up to d."""
        return d >= self.d and _decided(self.setting, d, self.bounds)

    @property
    def endless(self) -> bool:
        """Whether they serve in every larger dimension."""
        box = _box(self.d, self.bounds)
        return all(
            balls.holds_on_box(large - small, box, strict=False)
            for small, large in terms(self.setting).slopes
        )


def _numbers(d: int, bounds: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {**bounds, "d": Fraction(d - SIGNAL_DIRECTIONS)}


def _box(d: int, bounds: Mapping[str, Fraction]) -> dict[str, tuple[Fraction, Fraction]]:
    return {name: (value, value) for name, value in _numbers(d, bounds).items()}


def _decided(setting: Setting, d: int, bounds: Mapping[str, Fraction]) -> bool:
    box = _box(d, bounds)
    return all(
        balls.holds_on_box(large - small, box, strict=True) for small, large in terms(setting).conditions
    )


def _failure(setting: Setting, d: int, bounds: Mapping[str, Fraction]) -> float:
    """An upper bound of the failure probability."""
    with ctx.workprec(128):
        values = {name: arb(exact(low)) for name, (low, _) in _box(d, bounds).items()}
        upper = float(balls.enclose(terms(setting).failure, values).upper())
    return float(np.nextafter(upper, np.inf))


def _certificate(setting: Setting, d: int, x: np.ndarray) -> Certificate | None:
    """The certificate of these logarithms of bounds; None where a condition is not met."""
    exact_values = (Fraction(float(value)) for value in np.exp(x))
    bounds = MappingProxyType(dict(zip(NAMES, exact_values, strict=True)))
    if not _decided(setting, d, bounds):
        return None
    return Certificate(setting, d, bounds, _failure(setting, d, bounds))


def roomy(setting: Setting, d: int, delta: float) -> Certificate | None:
    """A certificate of large spare in dimension d that fails with probability at most delta, if found."""
    if d <= SIGNAL_DIRECTIONS:
        return None
    found = _certificate(setting, d, _Search(setting, d).widest(delta))
    return found if found is not None and found.failure <= delta else None


@lru_cache(maxsize=256)
def likeliest(setting: Setting, d: int) -> Certificate | None:
    """In dimension d, the certificate that fails least often among those found; None when there is none."""
    search, found = _Search(setting, d), []
    for k in range(8):  # from failing often to hardly ever: where no start serves, none of them is feasible
        start = search.widest(10.0 ** -(k / 2))
        candidates = (_certificate(setting, d, x) for x in (start, search.likeliest(start)))
        valid = [c for c in candidates if c is not None]
        if not valid:
            break
        found += valid
    return min(found, key=lambda c: c.failure, default=None)


def proved(found: Certificate) -> tuple[Proved, ...]:
    """What a certificate says, through the kernel.

    First 1 - failure <= P, for P the probability of (S) and (N) as on the page, from the given facts at these
    numbers and nothing else. Then the conditions under which (S) and (N) hold on the event: the margin
    outweighs the pairs across and within sequences.
    """
    numbers = {name: real(value) for name, value in _numbers(found.d, found.bounds).items()}
    of = terms(found.setting)

    def at(t: Term) -> Term:
        return substitute(t, reals={name: ((), value) for name, value in numbers.items()})

    claim = kernel.instantiate(PROBABILITY.proved(), reals=numbers, indices=found.setting.indices)
    signs = [f for f in claim.hypotheses if not free(f)]
    claim = kernel.discharge(claim, *(kernel.on_box(f, {}) for f in signs))
    failure = real(Fraction(found.failure))
    likely = follows(1 - failure <= claim.conclusion[2], claim, kernel.on_box(at(of.failure) <= failure, {}))
    return likely, *(kernel.on_box(at(small) < at(large), {}) for small, large in of.conditions[:2])


def _setting(n: int, T: int, signal: float, noise: float, query: str) -> Setting:
    if query not in QUERIES:
        raise InputError(f'Gaussian data need query "first" or "own", not "{query}"')
    return Setting(n, T, signal, noise)


def probability(
    n: int, T: int, d: int, *, signal: float = 2.0, noise: float = 0.1, query: str = "first"
) -> float:
    """The theorem's bound on the probability of (S) and (N), rounded down; 0 when it says nothing.

    Raises:
        InputError: a size, scale or query out of range.
    """
    if d < 3:
        raise InputError(f"Gaussian data need d >= 3, not d={d}")
    if d > LARGEST**2:
        raise InputError("the Gaussian theorem is evaluated for d up to 10^30")
    found = likeliest(_setting(n, T, signal, noise, query), d)
    if found is None or found.failure >= 1:
        return 0.0
    return max(0.0, float(np.nextafter(1.0 - found.failure, -np.inf)))


def smallest_dimension(
    n: int, T: int, *, signal: float = 2.0, noise: float = 0.1, delta: float = 0.01, query: str = "first"
) -> int:
    """The smallest d from which on, in every dimension, (S) and (N) hold with probability at least 1 - delta.

    By this theorem, that is: the true threshold is smaller.

    Raises:
        InputError: a size, scale, query or delta out of range, or the dimension exceeds ``FARTHEST``.
    """
    return cover(n, T, signal=signal, noise=noise, delta=delta, query=query)[0].d


def cover(
    n: int, T: int, *, signal: float = 2.0, noise: float = 0.1, delta: float = 0.01, query: str = "first"
) -> tuple[Certificate, ...]:
    """Certificates that each reach up to the next one's dimension, the last of them without end.

    Raises:
        InputError: as ``smallest_dimension``.
    """
    if not 0 < delta < 1:
        raise InputError(f"delta must lie between 0 and 1, and is {delta}")
    return _cover(_setting(n, T, signal, noise, query), delta)


@lru_cache(maxsize=64)
def _cover(setting: Setting, delta: float) -> tuple[Certificate, ...]:
    pieces = [_endless(setting, delta)]
    gap = pieces[0].d // 2
    while (before := _before(pieces[0], gap, delta)) is not None:
        gap = min(2 * (pieces[0].d - before.d), before.d // 2)
        pieces.insert(0, before)
    return tuple(pieces)


def _endless(setting: Setting, delta: float) -> Certificate:
    """A certificate for all larger dimensions."""
    d = 4
    while d <= FARTHEST:
        found = roomy(setting, d, delta)
        if found is not None and found.endless:
            return found
        d *= 2
    raise InputError(
        f"no dimension up to {FARTHEST} suffices for n = {setting.n}, T = {setting.T}, signal "
        f"{setting.signal:g} and noise {setting.noise:g} at delta = {delta:g}"
    )


def _before(later: Certificate, gap: int, delta: float) -> Certificate | None:
    """A certificate at most ``gap`` below a later one that reaches up to it, by halving the gap."""
    while gap:
        d = later.d - gap
        found = roomy(later.setting, d, delta)
        if found is not None and found.reaches(later.d - 1):
            return found
        gap //= 2
    return None
