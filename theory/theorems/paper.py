"""The paper's own claims, as its abstract and introduction state them: encoded, tested, not re-derived.

None is given a constant that we did not derive. Each names the page of ours that proves a form of it with
explicit constants, where there is one; what remains the paper's word is printed as ``claimed``.
"""

from __future__ import annotations

from theory.page import Theorem

PAPER = "Vasudeva, Deora, Thrampoulidis, arXiv 2402.05738, abstract and introduction"


def _claim(key: str, title: str, statement: str) -> Theorem:
    return Theorem(
        key=key,
        title=title,
        kind="claim",
        reference=PAPER,
        statement=statement,
        hypotheses={},
        claim=None,
        prove=None,
    )


GLOBAL = _claim(
    "paper-global",
    "Convergence in direction to the max-margin solution is global in non-trivial data settings",
    r"There are data settings in which, for every initial direction, "
    r"$W_t/\|W_t\|\to W_{\mathrm{mm}}/\|W_{\mathrm{mm}}\|$. "
    "With explicit constants under (N): global-direction.",
)
FINITE_TIME = _claim(
    "paper-finite-time",
    "Normalized GD and Polyak's step converge in direction at a finite-time rate, faster than plain GD",
    r"For normalized GD and Polyak's step $\|W_t/\|W_t\|-W_{\mathrm{mm}}/\|W_{\mathrm{mm}}\|\|$ is at most "
    r"of order $t^{-1/2}$ up to logarithms, and plain GD is slower. "
    "With explicit constants: global-direction-apriori, global-direction-polyak, gd-path-lower.",
)
SPARSIFICATION = _claim(
    "paper-sparsification",
    "The attention map concentrates on the optimal token at a quantified rate",
    r"$1-p_i(W_t)\to 0$ at a rate set by the margin and $\|W_t\|$. With explicit constants: sparsification.",
)
JOINT = _claim(
    "paper-joint",
    "Joint training of W and the decoder under Gaussian-like data",
    r"$W_t$ still converges globally, the decoder attains a positive margin on the optimal tokens, and the "
    r"loss decays like $\exp(-c\,t^{1/3})$. With explicit constants, from hypotheses checked along the run: "
    "joint-direction-schedule, joint-sharp-rate, joint-decoder-margin, joint-loss-rate. Missing for a "
    "statement from the data alone: that these hypotheses come to hold and persist, namely that the signal "
    r"tokens stay the ones of largest score and that the ratio $\kappa$ stays bounded while both move.",
)
