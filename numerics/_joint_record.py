"""What joint runs record: the names, and where a loop keeps what it measures at a step."""

from __future__ import annotations

# A loop's compensated sums, each followed by its compensation.
(
    PATH,
    SQUARES,
    SEPARATOR,
    CURVATURE,
    DECODER_PATH,
    DECODER_SQUARES,
    DECODER_SEPARATOR,
    DECODER_LEAK,
    DECODER_CURVATURE,
    WEIGHT_SQUARE,
    DECODER_SQUARE,
) = range(0, 22, 2)
# Counters, then the extremes over the steps since the last recorded one.
CHANGES, SINCE = 22, 23
X_GAP, X_SPREAD, X_ATTENTION, X_LOGIT, X_PUSH, X_RATIO, X_LEAK, X_SCORE = range(24, 32)
SCALARS = 32
# The values from which the extremes start: low for a maximum, high for a minimum.
INF = float("inf")
NEUTRAL = (INF, -INF, -INF, INF, INF, -INF, -INF, INF)

# What is kept of a recorded step; then follow the logits, the coefficients of W, the scores and the
# coefficients of u, all by token.
ROWS = (
    "path_length",
    "path_squares",
    "separator_path",
    "curvature_sum",
    "decoder_path_length",
    "decoder_path_squares",
    "decoder_separator_path",
    "decoder_leak_path",
    "decoder_curvature_sum",
    "step_length",
    "decoder_step_length",
    "log_gradient_norm",
    "log_decoder_gradient_norm",
    "log_loss",
    "log_excess_loss",
    "optimal_changes",
    "optimal_since",
    "interval_score_gap",
    "interval_score_spread",
    "interval_log_attention_gap",
    "interval_min_logit_gap",
    "interval_smallest_push",
    "interval_log_weight_ratio",
    "interval_log_leak",
    "interval_min_optimal_score",
)
SUMS = 9  # the first of ROWS are the first of the sums
EXTREMES = ROWS.index("interval_score_gap")
BY_TOKEN = ("logits", "coefficients", "scores", "decoder_coefficients")

COLUMNS = (
    "step",
    "path_length",
    "path_squares",
    "separator_path",
    "curvature_sum",
    "step_length",
    "weight_norm",
    "target_component",
    "residual_norm",
    "direction_gap",
    "log_attention_gap",
    "log_total_attention_gap",
    "min_logit_gap",
    "smallest_push",
    "log_weight_ratio",
    "log_leak",
    "log_gradient_norm",
    "loss",
    "log_loss",
    "log_excess_loss",
    "min_margin",
    "log_optimal_loss",
    "min_optimal_score",
    "score_gap",
    "score_spread",
    "optimal_reference",
    "optimal_data",
    "optimal_changes",
    "optimal_since",
    "decoder_path_length",
    "decoder_path_squares",
    "decoder_separator_path",
    "decoder_leak_path",
    "decoder_curvature_sum",
    "decoder_step_length",
    "decoder_norm",
    "decoder_target_component",
    "decoder_residual_norm",
    "decoder_direction_gap",
    "decoder_margin",
    "decoder_margin_share",
    "log_decoder_gradient_norm",
    *ROWS[EXTREMES:],
)
