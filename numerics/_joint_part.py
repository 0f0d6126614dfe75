"""What a joint run has beside a run with a fixed decoder, and how it is kept in the run's folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from numerics._joint_margin import DecoderMargin
from numerics.errors import InputError
from numerics.problem import Problem
from numerics.steps import rule_from_dict, rule_to_dict

REFERENCES = ("final", "data")


@dataclass(frozen=True, eq=False, kw_only=True)
class Joint:
    """The decoder's part of a run that trains W and u together.

    rule is the decoder's step-size rule; init u_0 (d,), None meaning zero; decoder (d,) the final u.
    reference is the data with the decoder whose optimal tokens o_i the history refers to: the final u
    (reference_kind "final") or the data's own ("data"). target is the max-margin decoder u_mm on these
    tokens, None where they are not separable. optimal (rows, n) is the optimal token of each sequence under
    u_t at each recorded step, -1 where it is tied.
    """

    rule: Any
    decoder: Float[np.ndarray, " d"]
    reference: Problem
    reference_kind: Literal["final", "data"]
    optimal: Int[np.ndarray, "rows n"]
    init: Float[np.ndarray, " d"] | None = None
    target: DecoderMargin | None = None

    def to_manifest(self) -> dict[str, Any]:
        """The entries of the manifest."""
        return {"decoder_rule": rule_to_dict(self.rule), "reference": self.reference_kind}

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that are stored."""
        out = {"decoder": np.asarray(self.decoder), "optimal": self.optimal.astype(np.int64)}
        if self.init is not None:
            out["decoder_init"] = self.init
        if self.target is not None:
            out["decoder_dual"] = self.target.dual
        return out

    @classmethod
    def from_arrays(cls, problem: Problem, entries: Any, arrays: dict[str, np.ndarray], rows: int) -> Joint:
        """Rebuild from the manifest's entries and the stored arrays.

        Raises InputError, naming what, when an entry or array is missing or malformed.
        """
        if not isinstance(entries, dict) or entries.get("reference") not in REFERENCES:
            raise InputError("the manifest's entries on joint training are malformed")
        shapes = {"decoder": (problem.d,), "decoder_init": (problem.d,), "decoder_dual": (problem.n,)}
        for name, shape in shapes.items():
            if name in arrays and (arrays[name].shape != shape or not np.isfinite(arrays[name]).all()):
                raise InputError(f"{name} must be finite numbers of shape {shape}")
        optimal = arrays.get("optimal")
        if "decoder" not in arrays or optimal is None:
            raise InputError("the decoder or the optimal tokens are missing")
        if optimal.shape != (rows, problem.n) or optimal.dtype.kind not in "iu":
            raise InputError(f"optimal must be integers of shape {(rows, problem.n)}")
        if rows and (optimal.min() < -1 or optimal.max() >= problem.T):
            raise InputError("optimal names a token that does not exist")
        reference = reference_problem(problem, arrays["decoder"], entries["reference"])
        dual = arrays.get("decoder_dual")
        return cls(
            rule=rule_from_dict(entries.get("decoder_rule")),
            decoder=arrays["decoder"],
            reference=reference,
            reference_kind=entries["reference"],
            optimal=optimal,
            init=arrays.get("decoder_init"),
            target=None if dual is None else DecoderMargin.from_dual(reference, dual),
        )


def reference_problem(problem: Problem, decoder: Float[np.ndarray, " d"], kind: str) -> Problem:
    """The data with the decoder that names the reference tokens.

    Raises InputError when the final decoder ties tokens.
    """
    if kind == "data":
        return problem
    try:
        return Problem(problem.tokens, problem.queries, problem.labels, decoder, problem.mask)
    except InputError as error:
        raise InputError(
            f'the final decoder names no reference tokens ({error}); reference="data" takes the data\'s own'
        ) from None
