"""Small attention problems in exact rationals, and the model of the theory that each of them is.

Everything a page speaks of is built from tokens, queries, labels and decoder: constraint matrices A_k,
scores, the max-margin solution M with its multipliers alpha (exact, by enumerating supports), counts and
bounds; the iterates W_t follow from the page's own update rule (``theory.model`` takes it as a definition).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from numerics.errors import InputError
from numerics.problem import Problem
from theory import notation as nt
from theory.model import Model, exact
from theory.proof.terms import Formula
from theory.proof.terms import free as names

Coordinates = tuple[Fraction, ...]
LARGEST = 10  # constraints; enumerating supports takes 2^N small solves


@dataclass(frozen=True)
class SmallProblem:
    """Tokens (by sequence), queries, labels and decoder, all exact.

    Raises:
        InputError: a sequence has no tokens, two optimal tokens, or there are more than ten constraints.
    """

    tokens: tuple[tuple[Coordinates, ...], ...]
    queries: tuple[Coordinates, ...]
    labels: tuple[int, ...]
    decoder: Coordinates

    def __post_init__(self) -> None:
        """Refuse what has no optimal token."""
        if not self.tokens or not all(self.tokens):
            raise InputError("a small problem needs sequences, and each of them a token")
        for i, scores in enumerate(self.scores):
            if scores.count(max(scores)) > 1:
                raise InputError(f"sequence {i} has two optimal tokens")
        if len(self.constraints) > LARGEST:
            raise InputError(f"{len(self.constraints)} constraints are too many to enumerate their supports")

    @classmethod
    def from_problem(cls, problem: Problem) -> SmallProblem:
        """The problem with the exact values of its floats."""

        def row(values: Any) -> Coordinates:
            return tuple(Fraction(float(x)) for x in values)

        tokens = tuple(
            tuple(row(problem.tokens[i, t]) for t in range(problem.T) if problem.mask[i, t])
            for i in range(problem.n)
        )
        labels = tuple(int(np.sign(y)) for y in problem.labels)
        return cls(tokens, tuple(map(row, problem.queries)), labels, row(problem.decoder))

    @cached_property
    def scores(self) -> tuple[tuple[Fraction, ...], ...]:
        """g_(i,tau) = y_i u' x_(i,tau)."""
        return tuple(
            tuple(y * _dot(self.decoder, x) for x in sequence)
            for y, sequence in zip(self.labels, self.tokens, strict=True)
        )

    @cached_property
    def optimal(self) -> tuple[int, ...]:
        """o_i, the token of largest score."""
        return tuple(s.index(max(s)) for s in self.scores)

    @cached_property
    def constraints(self) -> tuple[tuple[int, int], ...]:
        """The pairs (i, tau) with tau != o_i."""
        return tuple((i, t) for i, s in enumerate(self.tokens) for t in range(len(s)) if t != self.optimal[i])

    def outer(self, i: int, x: Coordinates) -> tuple[fmpq, ...]:
        """x z_i', flattened."""
        return tuple(exact(a * b) for a in x for b in self.queries[i])

    def token(self, i: int, tau: int) -> tuple[fmpq, ...]:
        """x_(i,tau) z_i', flattened."""
        return self.outer(i, self.tokens[i][tau])

    @cached_property
    def matrices(self) -> dict[tuple[int, int], tuple[fmpq, ...]]:
        """A_k = (x_(i,o_i) - x_(i,tau)) z_i', flattened."""
        return {
            (i, t): self.outer(
                i,
                tuple(a - b for a, b in zip(self.tokens[i][self.optimal[i]], self.tokens[i][t], strict=True)),
            )
            for i, t in self.constraints
        }

    @property
    def dimension(self) -> int:
        """Entries of a weight matrix."""
        return len(self.decoder) * len(self.queries[0])

    @cached_property
    def gram(self) -> list[list[fmpq]]:
        """K_kl = <A_k, A_l>."""
        A = [self.matrices[k] for k in self.constraints]
        return [[sum((x * y for x, y in zip(u, v, strict=True)), start=fmpq(0)) for v in A] for u in A]

    @cached_property
    def dual(self) -> dict[tuple[int, int], fmpq] | None:
        """alpha, exactly; None when no weight matrix satisfies the constraints.

        A support S with alpha_S = K_SS^-1 1 > 0 whose combination satisfies every constraint meets the
        optimality conditions, so it gives M, which is unique.
        """
        K, N = self.gram, len(self.constraints)
        for size in range(N + 1):
            for S in itertools.combinations(range(N), size):
                if not S:
                    if not N:
                        return {}
                    continue
                try:
                    a = fmpq_mat([[K[k][m] for m in S] for k in S]).solve(fmpq_mat(size, 1, [1] * size))
                except ZeroDivisionError:
                    continue
                weights = [a[m, 0] for m in range(size)]
                if min(weights) > 0 and all(
                    sum((K[k][m] * w for m, w in zip(S, weights, strict=True)), start=fmpq(0)) >= 1
                    for k in range(N)
                ):
                    chosen = dict(zip(S, weights, strict=True))
                    return {c: chosen.get(k, fmpq(0)) for k, c in enumerate(self.constraints)}
        return None

    @cached_property
    def solution(self) -> tuple[fmpq, ...] | None:
        """M, flattened; None when the constraints are infeasible."""
        if self.dual is None:
            return None
        zero = tuple(fmpq(0) for _ in range(self.dimension))
        rows = [tuple(w * x for x in self.matrices[k]) for k, w in self.dual.items()]
        return tuple(sum(xs, start=fmpq(0)) for xs in zip(zero, *rows, strict=True))


def _dot(u: Sequence[Fraction], v: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(u, v, strict=True)), start=Fraction(0))


# The layer's definitions, where a page does not bring its own.
_STATIC = (
    nt.STATIC.attention_is(),
    nt.STATIC.slope_is(),
    nt.STATIC.coefficient_is(),
    nt.STATIC.gradient_is(),
    nt.STATIC.mass_is(),
)
LAYER: tuple[Formula, ...] = (*_STATIC, *map(nt.at_all_times, _STATIC), nt.update_is())
# Constants that a page may use as bounds: the tight side of the hypothesis that bounds them.
TIGHT = frozenset({"R", "T", "a_min", "a_max", "e0"})


def _supports(problem: SmallProblem, at: tuple[int, int], split: bool) -> bool:
    """Whether a constraint is counted to the support: each, unless the page tells them apart."""
    return not split or problem.dual is None or problem.dual[at] > 0


def model(
    problem: SmallProblem,
    *,
    hypotheses: Iterable[Formula] = (),
    free: Callable[[str, str, tuple[int, ...]], Any],
    layer: bool = True,
    given: Mapping[str, Any] | None = None,
    tighten: Iterable[str] = TIGHT,
    indices: Mapping[str, int] | None = None,
    horizon: int = 6,
) -> Model:
    """The theory's symbols with the values they have on a problem.

    Args:
        hypotheses: the page's; those that define symbols are followed (see ``theory.model``).
        free: the value of a symbol that neither they nor the problem determine: W, W_0, step lengths, ...;
            called with the kind (``sym``, ``vsym``), the name and the indices.
        layer: whether p, a, c, C, the gradient and the update follow their definitions where the page does
            not say what they are; else they are free.
        given: values for M, n, N or T in place of the problem's own.
        tighten: constants to be set by the hypothesis that bounds them.
        indices: values of free index variables.
        horizon: the last simulated step.
    """
    gaps = [
        sorted(s)[-1] - max((x for t, x in enumerate(s) if t != o), default=s[o] - 1)
        for s, o in zip(problem.scores, problem.optimal, strict=True)
    ]

    given = given or {}
    hypotheses = list(hypotheses)
    split = any(("set", "K") in names(f) for f in hypotheses)

    def sets(name: str, at: tuple[int, ...]) -> Sequence[int]:
        if name == "I" and not at:
            return range(len(problem.tokens))
        if name in ("J", "K") and len(at) == 1:
            own = [k for k in problem.constraints if k[0] == at[0]]
            return [t for i, t in own if _supports(problem, (i, t), split) == (name == "J")]
        if not at:  # a set of constraints without sequences, as in logistic regression
            return range(len(problem.constraints))
        raise KeyError(f"no finite set called {name} on a small problem")

    def real(name: str, at: tuple[int, ...]) -> Any:
        if not at and name in given:
            return given[name]
        inside = bool(at) and 0 <= at[0] < len(problem.tokens)
        best = problem.scores[at[0]][problem.optimal[at[0]]] if inside else None
        if name == "G" and best is not None:
            return exact(gaps[at[0]])
        if name == "g" and best is not None:
            return exact(best - gaps[at[0]])
        if name == "go" and best is not None:
            return exact(best)
        if name == "gs" and at in problem.constraints:
            return exact(problem.scores[at[0]][at[1]])
        if name == "alpha" and problem.dual is not None and at in problem.constraints:
            return problem.dual[at[0], at[1]]
        if (
            name == "alpha"
            and problem.dual is not None
            and len(at) == 1
            and at[0] in range(len(problem.constraints))
        ):
            return problem.dual[problem.constraints[at[0]]]
        if name == "n" and not at:
            return fmpq(len(problem.tokens))
        if name == "N" and not at:
            return fmpq(len(problem.constraints))
        if name == "T" and not at:
            return fmpq(max(map(len, problem.tokens)))
        return free("sym", name, at)

    def vector(name: str, at: tuple[int, ...]) -> tuple[Any, ...]:
        if name == "A" and at in problem.constraints:
            return problem.matrices[at[0], at[1]]
        if name == "z" and len(at) == 1 and 0 <= at[0] < len(problem.constraints):
            return problem.matrices[problem.constraints[at[0]]]
        if name == "X" and at in problem.constraints:
            return problem.token(at[0], at[1])
        if name == "Xo" and len(at) == 1 and 0 <= at[0] < len(problem.tokens):
            return problem.token(at[0], problem.optimal[at[0]])
        if name == "M" and not at and problem.solution is not None:
            return given.get("M", problem.solution)
        return tuple(free("vsym", name, at))

    return Model(
        sets=sets,
        real=real,
        vector=vector,
        hypotheses=[*hypotheses, *(LAYER if layer else ())],
        tighten=tighten,
        indices=indices,
        horizon=horizon,
    )
