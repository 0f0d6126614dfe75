"""What a joint run has beside a run with a fixed decoder, and how it is kept in the run's folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from numerics._joint_margin import DecoderMargin
from numerics._npz import finite_numbers
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

    Columns of a joint history, one row a recorded step t: state at (W_t, u_t), sums over s < t. e_s and f_s
    are the lengths of the steps of W and u (0 while a gradient vanishes), sig_i = sigma(-m_i), and G_i,
    beta_i the gap above and the spread of the other scores. p_i, A_k, mu_k, g_(i,o_i) are those of the
    reference tokens; "present" means the tokens optimal under u_t.

        path_length, path_squares   sum e_s, sum e_s^2           (decoder_...: with f_s)
        separator_path              sum e_s C_s/||grad_W L||, C = sum_k c_k, present tokens
        curvature_sum               sum e_s^2/||W_s|| where W_s != 0      (decoder_...: f_s^2/||u_s||)
        step_length, weight_norm, target_component, residual_norm, direction_gap, log_attention_gap,
        log_total_attention_gap, min_logit_gap, log_gradient_norm         as for `Run`
        smallest_push               min_i p_i G_i - (1-p_i) beta_i; where positive, every c_k > 0
        log_weight_ratio            log of max over min of w_k = c_k e^(mu_k); inf unless all are positive
        log_leak                    log max_i (g_(i,o_i) - m_i)
        loss, log_loss              L and log L, which does not underflow
        log_excess_loss             log(L - L*(u_t)), L* the least loss at the present decoder
        log_optimal_loss            log of the loss with all attention on the reference tokens
        min_margin, min_optimal_score      min_i m_i, min_i g_(i,o_i)
        score_gap, score_spread     min_i G_i (negative where another token is optimal), max_i beta_i
        optimal_reference           sequences whose one optimal token is the reference's
        optimal_data                the same for the data's own decoder: tells the regimes apart
        optimal_changes             steps s < t after which some present token was another one
        optimal_since               the last such step + 1, 0 if there is none
        decoder_separator_path      sum f_s (sum_i sig_i/n)/||grad_u L||
        decoder_leak_path           sum f_s (sum_i sig_i (1-p_i)/n)/||grad_u L||, present tokens
        decoder_norm, decoder_target_component, decoder_residual_norm, decoder_direction_gap
                                    ||u_t|| and its direction against u_mm
        decoder_margin              min_i y_i <u_t, x_(i,o_i)>/||u_t||
        decoder_margin_share        the same times ||u_mm||, 1 at the max margin
        interval_X                  the extreme (largest or smallest, whichever is worse) of column X over all
                                    steps after the previous recorded one up to this, for present tokens
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
            if name in arrays and not finite_numbers(arrays[name], shape):
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
