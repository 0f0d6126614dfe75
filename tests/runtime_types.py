"""The type checker that pytest lays over numerics and theory: beartype, with jaxtyping's shapes."""

from typing import Any

from beartype import beartype
from beartype.roar import BeartypeDecorHintPep673Exception


def checked(function: Any) -> Any:
    """Check calls of `function`, or instances of a dataclass, against the annotations."""
    try:
        return beartype(function)
    except BeartypeDecorHintPep673Exception:  # a method that speaks of Self, decorated without its class
        return function
