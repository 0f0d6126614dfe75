"""The errors this project raises on purpose; the command line turns each into one line and exit code 2."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float


class AttnratesError(Exception):
    """Anything this project refuses to do, with a message for the user."""


class InputError(AttnratesError, ValueError):
    """The input is malformed or outside what the method covers; the message names the offending part."""


class InfeasibleError(InputError):
    """No weight matrix satisfies every constraint <A_k, W> >= 1.

    `beta` (N,) holds nonnegative weights of sum 1 whose combination sum_k beta_k A_k vanishes (numerically:
    has a norm at rounding level): by Farkas' lemma the reason for infeasibility. `certificate`, where there
    is one, proves it: see `numerics.maxmargin.infeasible.InfeasibilityCertificate`.
    """

    def __init__(
        self, message: str, beta: Float[np.ndarray, " N"] | None = None, certificate: Any = None
    ) -> None:
        """Keep the weights beta of the clashing constraints and the proof beside the message."""
        super().__init__(message)
        self.beta = beta
        self.certificate = certificate


class CertificationError(AttnratesError):
    """A rigorous statement could not be established; the message says why. Nothing was guessed."""
