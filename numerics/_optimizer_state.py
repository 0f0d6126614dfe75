"""A torch optimizer's state as plain arrays and back, for checkpoints: tensors as they are, the rest as JSON.

Never a pickle: reading a checkpoint runs no code of its own.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

from numerics.errors import InputError

_STRUCTURE = "structure"


def pack(optimizer: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """The state as arrays: one a tensor, and the structure around them as JSON text.

    Raises InputError for a state with anything but tensors, numbers, words, lists, tuples and dictionaries.
    """
    tensors: list[torch.Tensor] = []
    state = _encode(optimizer.state_dict(), tensors, type(optimizer).__name__)
    arrays = {f"tensor{j}": tensor.detach().cpu().numpy().copy() for j, tensor in enumerate(tensors)}
    return {_STRUCTURE: np.array(json.dumps(state)), **arrays}


def unpack(optimizer: torch.optim.Optimizer, arrays: dict[str, np.ndarray]) -> None:
    """Give an optimizer of the same kind the state that `pack` stored."""
    optimizer.load_state_dict(_decode(json.loads(str(arrays[_STRUCTURE])), arrays))


def _encode(value: Any, tensors: list[torch.Tensor], name: str) -> Any:
    """A value as JSON: [kind, content]; JSON writes floats so that they are read back bitwise."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return ["tensor", len(tensors) - 1]
    if value is None or isinstance(value, bool | int | float | str):
        return ["value", value]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [_encode(item, tensors, name) for item in value]]
    if isinstance(value, dict):
        pairs = [[_encode(key, tensors, name), _encode(item, tensors, name)] for key, item in value.items()]
        return ["dict", pairs]
    raise InputError(
        f"optimizer {name}: its state holds a {type(value).__name__}, which no checkpoint stores"
    )


def _decode(coded: Any, arrays: dict[str, np.ndarray]) -> Any:
    kind, content = coded
    if kind == "tensor":
        return torch.as_tensor(arrays[f"tensor{content}"].copy())
    if kind == "value":
        return content
    if kind == "dict":
        return {_decode(key, arrays): _decode(item, arrays) for key, item in content}
    items = [_decode(item, arrays) for item in content]
    return tuple(items) if kind == "tuple" else items
