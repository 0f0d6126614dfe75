"""The data of one training problem: tokens, scores, optimal tokens, constraints, Gram matrix."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from numerics._npz import read_arrays
from numerics.errors import InputError
from numerics.files import atomic_write

FORMAT = "attnrates-problem"
VERSION = 1
_BLOCK = 1 << 22  # numbers in a temporary block (32 MiB)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem:
    """A binary classification problem for one self-attention layer with a linear decoder.

    Setting of the paper: token matrices X_i in R^(T_i x d), queries z_i, labels y_i = +-1, decoder u. The
    score of a token is g_(i,tau) = y_i u'x_(i,tau); the optimal token o_i is the one of largest score,
    which must be unique (assumption (O); ties are decided exactly, not up to rounding). Every other token
    gives a constraint

        <A_k, W> >= 1,   A_k = (x_(i,o_i) - x_(i,tau)) z_i',   k = (i, tau), ordered by sequence, then
        token.

    Arguments may be NumPy or torch arrays or nested lists. `queries=None` takes each sequence's first
    (valid) token. `mask` (n, T) is true at the tokens of each sequence and false at padding; None means no
    padding. What stands at padding is ignored. Everything is kept as read-only float64, padding as zeros.

    Attributes: tokens (n, T, d), queries (n, d), labels (n,), decoder (d,), mask (n, T), scores (n, T) with
    -inf at padding, optimal (n,), constraint_sequence (N,), constraint_token (N,), score_gaps (N,), the
    positive g_(i,o_i) - g_(i,tau), and `notes`: remarks on what is allowed but contributes nothing, such as
    sequences of one token.

    Raises InputError, naming the array and the index, for wrong shapes, numbers that are not finite, labels
    other than +-1, tied optimal tokens, sequences without a token, and when there is no sequence.
    """

    tokens: Float[np.ndarray, "n T d"]
    queries: Float[np.ndarray, "n d"]
    labels: Float[np.ndarray, " n"]
    decoder: Float[np.ndarray, " d"]
    mask: Bool[np.ndarray, "n T"]
    scores: Float[np.ndarray, "n T"]
    optimal: Int[np.ndarray, " n"]
    constraint_sequence: Int[np.ndarray, " N"]
    constraint_token: Int[np.ndarray, " N"]
    score_gaps: Float[np.ndarray, " N"]
    notes: tuple[str, ...]

    def __init__(self, tokens: Any, queries: Any, labels: Any, decoder: Any, mask: Any = None) -> None:
        """Validate the arrays, copy them, and find the optimal tokens."""
        x = _floats("tokens", tokens)
        if x.ndim != 3:
            raise InputError(f"tokens must have shape (n, T, d), not {x.shape}")
        n, T, d = x.shape
        if n == 0:
            raise InputError("tokens holds no sequence (n = 0)")
        if T == 0 or d == 0:
            raise InputError(f"tokens of shape {x.shape} holds no number")
        valid = np.ones((n, T), dtype=bool) if mask is None else _booleans("mask", mask, (n, T))
        if not valid.any(axis=1).all():
            raise InputError(
                f"sequence {int(np.argmin(valid.any(axis=1)))} has no valid token (its mask is all false)"
            )
        if not valid.all():
            x[~valid] = 0.0
        _require_finite("tokens", x)
        z = x[np.arange(n), np.argmax(valid, axis=1)] if queries is None else _floats("queries", queries)
        _require_shape("queries", z, (n, d))
        _require_finite("queries", z)
        y = _floats("labels", labels)
        _require_shape("labels", y, (n,))
        if not (np.abs(y) == 1).all():
            bad = int(np.argmin(np.abs(y) == 1))
            raise InputError(f"labels must be +1 or -1; labels[{bad}] is {y[bad]:g}")
        u = _floats("decoder", decoder)
        _require_shape("decoder", u, (d,))
        _require_finite("decoder", u)

        with np.errstate(over="ignore", invalid="ignore"):
            scores = y[:, None] * (x @ u)
            # Bounds on the norms by the largest entries: they neither underflow nor need a temporary.
            sizes = np.sqrt(d) * np.maximum(x.max(axis=2), -x.min(axis=2))
            rounding = 2 * (d + 2) * np.finfo(float).eps * np.sqrt(d) * np.max(np.abs(u))
            bound = rounding * sizes + d * np.finfo(float).tiny
            big = float(np.max(sizes)) * np.sqrt(d) * float(np.max(np.abs(z)))
            if not (np.isfinite(scores).all() and np.isfinite(bound).all() and np.isfinite(4 * big * big)):
                raise InputError(
                    "tokens, queries or decoder are so large that scores or the Gram matrix overflow"
                )
        scores[~valid] = -np.inf
        optimal, close = _optimal_tokens(x, y, u, valid, scores, bound)
        sequence, token = np.nonzero(valid & (np.arange(T) != optimal[:, None]))
        gaps = scores[sequence, optimal[sequence]] - scores[sequence, token]
        for k in np.flatnonzero(np.isin(sequence, close)):  # floats may even have the wrong sign here
            i, tau = int(sequence[k]), int(token[k])
            gaps[k] = float(_exact_score(x[i, optimal[i]], u, y[i]) - _exact_score(x[i, tau], u, y[i]))
        notes = tuple(
            f"sequence {i} has one token and contributes no constraint"
            for i in np.flatnonzero(valid.sum(1) == 1)
        )
        if sequence.size == 0:
            notes += ("no sequence has two tokens: there is nothing to separate (N = 0)",)

        values = {
            "tokens": x,
            "queries": z,
            "labels": y,
            "decoder": u,
            "mask": valid,
            "scores": scores,
            "optimal": optimal,
            "constraint_sequence": sequence,
            "constraint_token": token,
            "score_gaps": gaps,
        }
        for name, value in values.items():
            object.__setattr__(self, name, _frozen(value))
        object.__setattr__(self, "notes", notes)

    @property
    def n(self) -> int:
        """Number of sequences."""
        return self.tokens.shape[0]

    @property
    def T(self) -> int:
        """Length of the longest sequence, padding included."""
        return self.tokens.shape[1]

    @property
    def d(self) -> int:
        """Dimension of a token."""
        return self.tokens.shape[2]

    @property
    def n_constraints(self) -> int:
        """N, the number of constraints: one for each token that is not optimal."""
        return self.constraint_sequence.size

    @cached_property
    def lengths(self) -> Int[np.ndarray, " n"]:
        """Tokens in each sequence."""
        return _frozen(self.mask.sum(axis=1))

    @cached_property
    def differences(self) -> Float[np.ndarray, "N d"]:
        """x_(i,o_i) - x_(i,tau), one row for each constraint."""
        rows = self.tokens[self.constraint_sequence, self.constraint_token]
        offsets = self._offsets
        for i in range(self.n):
            own = rows[offsets[i] : offsets[i + 1]]
            np.subtract(self.tokens[i, self.optimal[i]], own, out=own)
        return _frozen(rows)

    @cached_property
    def constraint_norms(self) -> Float[np.ndarray, " N"]:
        """||A_k||, the product of the norms of the difference and the query."""
        sizes = np.sqrt(np.einsum("kd,kd->k", self.differences, self.differences))
        return _frozen(sizes * np.linalg.norm(self.queries, axis=1)[self.constraint_sequence])

    @cached_property
    def _offsets(self) -> Int[np.ndarray, " n_plus_1"]:
        """Where each sequence's constraints start; sequence i owns offsets[i] : offsets[i + 1]."""
        return _frozen(np.searchsorted(self.constraint_sequence, np.arange(self.n + 1)))

    def gram(self) -> Float[np.ndarray, "N N"]:
        """K_kl = <A_k, A_l>: the Gram matrix of the differences times that of the queries, elementwise."""
        K = self.differences @ self.differences.T
        Z = self.queries @ self.queries.T
        sequence = self.constraint_sequence
        step = max(1, _BLOCK // max(1, self.n_constraints))
        for start in range(0, self.n_constraints, step):
            K[start : start + step] *= Z[sequence[start : start + step]][:, sequence]
        return K

    def gram_block(
        self, rows: Int[np.ndarray, " a"], columns: Int[np.ndarray, " b"]
    ) -> Float[np.ndarray, "a b"]:
        """The submatrix of `gram()` at these constraints, without the rest of it."""
        sequence = self.constraint_sequence
        rows_of, row_index = np.unique(sequence[rows], return_inverse=True)
        columns_of, column_index = np.unique(sequence[columns], return_inverse=True)
        block = self.differences[rows] @ self.differences[columns].T
        block *= (self.queries[rows_of] @ self.queries[columns_of].T)[row_index][:, column_index]
        return block

    def logit_gaps(self, W: Float[np.ndarray, "d d"]) -> Float[np.ndarray, " N"]:
        """mu_k = <A_k, W>: how far the optimal token's attention logit lies above token tau's."""
        towards = self.queries @ np.asarray(W).T
        gaps = np.empty(self.n_constraints)
        step = max(1, _BLOCK // self.d)
        for start in range(0, gaps.size, step):
            part = slice(start, start + step)
            gaps[part] = np.einsum(
                "kd,kd->k", self.differences[part], towards[self.constraint_sequence[part]]
            )
        return gaps

    def combine(self, coefficients: Float[np.ndarray, " N"]) -> Float[np.ndarray, "d d"]:
        """sum_k c_k A_k as a d x d matrix, the adjoint of `logit_gaps`."""
        c = np.asarray(coefficients)
        sums = np.zeros((self.n, self.d))
        offsets = self._offsets
        for i in range(self.n):
            own = slice(offsets[i], offsets[i + 1])
            sums[i] = c[own] @ self.differences[own]
        return sums.T @ self.queries

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) of the content: the five arrays with their shapes, and the format version."""
        digest = hashlib.sha256(f"{FORMAT} {VERSION}".encode())
        for name, value in self._arrays().items():
            digest.update(f"\n{name} {value.shape} {value.dtype.str[1:]}\n".encode())
            digest.update(np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).data)
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz with the arrays, the format's name and version, and the content hash; atomically."""
        header = {"format": np.array(FORMAT), "version": np.array(VERSION), "hash": np.array(self.hash)}
        with atomic_write(path) as stream:
            np.savez(stream, allow_pickle=False, **(header | self._arrays()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Problem:
        """Read a problem from an .npz, either one written by `save` or a user's own.

        A user's own file needs the arrays tokens (n, T, d), labels (n,), decoder (d,) and may have queries
        (n, d) and mask (n, T), under these names; without a version and a hash nothing can be verified, and
        nothing is. A file by `save` is checked against its hash. No pickle is ever read. Raises InputError
        naming the file.
        """
        name = os.fspath(path)
        arrays = read_arrays(path)
        ours = {key: arrays.pop(key) for key in ("format", "version", "hash") if key in arrays}
        unknown = sorted(set(arrays) - {"tokens", "queries", "labels", "decoder", "mask"})
        missing = [key for key in ("tokens", "labels", "decoder") if key not in arrays]
        if missing:
            raise InputError(f"{name}: not a problem file, it lacks {', '.join(missing)}")
        if unknown:
            raise InputError(f"{name}: not a problem file, it has unknown arrays {', '.join(unknown)}")
        if ours:
            if set(ours) != {"format", "version", "hash"} or str(ours["format"]) != FORMAT:
                raise InputError(f"{name}: not a problem file (format, version and hash do not go together)")
            if str(ours["version"]) != str(VERSION):
                raise InputError(
                    f"{name}: format version {ours['version']} is not {VERSION}, the one read here"
                )
        try:
            problem = cls(
                arrays["tokens"],
                arrays.get("queries"),
                arrays["labels"],
                arrays["decoder"],
                arrays.get("mask"),
            )
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        if ours and str(ours["hash"]) != problem.hash:
            raise InputError(f"{name}: the content does not match its hash; the file was altered")
        return problem

    def _arrays(self) -> dict[str, np.ndarray]:
        return {key: getattr(self, key) for key in ("tokens", "queries", "labels", "decoder", "mask")}

    def __eq__(self, other: object) -> bool:
        """Equal when the content is, bit for bit."""
        return isinstance(other, Problem) and self.hash == other.hash

    def __hash__(self) -> int:
        """Hash of the content hash."""
        return int(self.hash[:15], 16)

    def __repr__(self) -> str:
        """Sizes and the start of the content hash."""
        return f"Problem(n={self.n}, T={self.T}, d={self.d}, N={self.n_constraints}, hash={self.hash[:12]})"


def _floats(name: str, value: Any) -> np.ndarray:
    """A fresh float64 copy of a NumPy or torch array or nested list."""
    array = _plain(name, value)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must hold real numbers, not {array.dtype}")
    return np.array(array, dtype=np.float64, order="C")


def _booleans(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = _plain(name, value)
    _require_shape(name, array, shape)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InputError(f"{name} must hold booleans")
    return np.array(array, dtype=bool, order="C")


def _plain(name: str, value: Any) -> np.ndarray:
    """Anything array-like as a NumPy array; torch tensors are known by their methods, not by an import."""
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            value = (value.double() if value.is_floating_point() else value).numpy()
        return np.asarray(value)
    except Exception as error:  # ragged lists, sparse tensors, ...
        raise InputError(f"{name} is not an array of numbers ({str(error).splitlines()[0]})") from None


def _require_shape(name: str, value: np.ndarray, shape: tuple[int, ...]) -> None:
    if value.shape != shape:
        raise InputError(f"{name} must have shape {shape} to go with the tokens, not {value.shape}")


def _require_finite(name: str, value: np.ndarray) -> None:
    if not np.isfinite(value).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
        raise InputError(f"{name}[{', '.join(map(str, index))}] is {value[index]}, not a finite number")


def _frozen(value: np.ndarray) -> np.ndarray:
    value.setflags(write=False)
    return value


def _optimal_tokens(
    x: np.ndarray, y: np.ndarray, u: np.ndarray, valid: np.ndarray, scores: np.ndarray, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(optimal token of each sequence, the sequences where only exact arithmetic told).

    `bound` is an upper bound on the rounding error of each score.
    """
    optimal = np.argmax(scores, axis=1)
    lower = np.where(valid, scores - bound, -np.inf).max(axis=1)
    candidates = valid & (scores + bound >= lower[:, None])
    close = np.flatnonzero(candidates.sum(axis=1) > 1)
    for i in close:
        exact = {int(tau): _exact_score(x[i, tau], u, y[i]) for tau in np.flatnonzero(candidates[i])}
        best = max(exact.values())
        tied = [tau for tau, score in exact.items() if score == best]
        if len(tied) > 1:
            raise InputError(
                f"sequence {i}: tokens {', '.join(map(str, tied))} tie for the largest score "
                f"y u'x = {float(best):g}; the optimal token must be unique"
            )
        optimal[i] = tied[0]
    return optimal, close


def _exact_score(x: np.ndarray, u: np.ndarray, y: float) -> Fraction:
    """Y u'x as an exact rational: floats are dyadic rationals."""
    return int(y) * sum(
        (Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), u.tolist(), strict=True)), Fraction(0)
    )
