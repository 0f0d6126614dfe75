"""What each kernel symbol of the package's pages stands for, in words with LaTeX between dollars.

A meaning says what a symbol is in the setting of a page; what is proved is about any values that satisfy the
page's hypotheses. Pages that use a letter otherwise have tables of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Meanings = dict[tuple[str, str], str]
"""(kind, kernel name) -> words; the kind is sym (a real), vsym (a vector), ix (an index) or set."""


def _table(kind: str, **words: str) -> dict[tuple[str, str], str]:
    return {(kind, name): text for name, text in words.items()}


LAYER: Meanings = {
    **_table(
        "vsym",
        A=(
            r"constraint $A_{i,\tau}=(x_{i,o_i}-x_{i,\tau})\,z_i^{\top}$ of a non-optimal"
            r" token, of logit gap $\langle A_{i,\tau},W\rangle$"
        ),
        D="the negative gradient of the loss in $W$",
        Du="the negative gradient of the loss in the decoder",
        H="any direction",
        M="the max-margin solution: the shortest matrix with every logit gap at least 1",
        W="the key-query matrix, $W_t$ after $t$ steps",
        X=r"$x_{i,\tau}\,z_i^{\top}$: a token's logit is its inner product with $W$",
        Xo=r"$x_{i,o_i}\,z_i^{\top}$, of the optimal token",
        dx=r"$y_i\,(x_{i,o_i}-x_{i,\tau})$: the optimal token less another, times the label",
        r_star="the balanced point, where the residual settles",
        r_other="another balanced point",
        u="the decoder, $u_t$ after $t$ steps",
        u_mm="max-margin decoder: the shortest with a score of at least 1 for every optimal token",
        xo=r"$y_i\,x_{i,o_i}$: the optimal token of sequence $i$ times its label",
    ),
    **_table(
        "sym",
        C="the sum of the coefficients $c$ over all constraints",
        G="score gap of sequence $i$: the optimal token's score less that of the others, which are equal",
        G_max="a bound on the score gaps",
        Gam="a number that no score gap exceeds",
        L_b=(
            r"bounds the squared gradient across $W_{\mathrm{mm}}$, per unit of the weights'"
            " divergence; $R_B^2$ will do"
        ),
        Lam=r"bounds the length of the shifts' interval plus $2\,R_B$ times the distance from $r_\star$",
        N="the number of constraints",
        P="bounds the squared disturbance at the step $t_0$, from which on it decays",
        R="a bound on the norms of the constraints",
        R_B=r"a bound on the norms of the constraints' parts orthogonal to $W_{\mathrm{mm}}$",
        R_d="a bound on the distance of an optimal token from another of its sequence",
        R_o="a bound on the norms of the optimal tokens",
        T="a bound on the number of tokens of a sequence",
        a=(
            r"slope of the loss of sequence $i$ in its attention: $G_i/(n\,(1+e^{m_i}))$ with"
            r" $m_i=g_i+G_i\,p_i$"
        ),
        a_max="a bound on the slopes $a$ from above",
        a_min="a bound on the slopes $a$ from below",
        alpha=(
            r"multipliers of the max-margin solution: $W_{\mathrm{mm}}$ is the sum of"
            r" $\alpha_k\,A_k$ over the constraints"
        ),
        b="a common lower bound of the logit gaps",
        beta=(
            r"rate at which the shifts or the distance from $r_\star$ decay, per unit of"
            r" $\langle W,W_{\mathrm{mm}}\rangle$"
        ),
        c="coefficient of a constraint $A$ in the negative gradient",
        c0=r"the shifts lie in an interval of length $c_0\,e^{-b}$ where no logit gap is below $b$",
        c1="bounds the coefficients off the support as $c_0$ bounds the shifts",
        decay=r"exponent of the steps $\eta\,(t+1)^{-a}$",
        decay_u=r"exponent of the decoder's steps $\eta_u\,(t+1)^{-a_u}$",
        e="length of step $t$ of $W$",
        e0=r"no two constraints have an inner product below $-\epsilon_0$",
        e_max="a bound on the step lengths from above",
        e_min="a bound on the step lengths from below",
        e_ngd="length of step $t$ of the other run, by normalized gradient descent",
        eps="a bound on the attention on tokens other than the optimal one",
        eta="the step size",
        eta_ngd="the step size of the other run, by normalized gradient descent",
        eta_u="the decoder's step size",
        f="length of the decoder's step $t$",
        floor="a number that the score of every optimal token reaches",
        g="the common score of the non-optimal tokens of sequence $i$",
        gam="a positive number that every score gap reaches",
        gamma="by how much the margins of the constraints off the support exceed 1",
        go="score of the optimal token",
        gs="score of a non-optimal token",
        h=r"a step's growth of $\langle W,W_{\mathrm{mm}}\rangle$",
        k0="a constant, the same for all constraints",
        kappa=r"no two weights $\omega$ of a step differ by more than this factor",
        l="any positive number",
        lam=(
            r"an eigenvalue of the constraints' covariance across $W_{\mathrm{mm}}$, under"
            " the balanced weights"
        ),
        lam_min=(
            r"a lower bound on the variance of the constraints across $W_{\mathrm{mm}}$,"
            " under the balanced weights"
        ),
        leak="a bound on what the scores lose by attention on other tokens",
        lo=r"the least of the shifts $\log(c/w)+\langle A,W\rangle$",
        m="the mean score of sequence $i$ under the attention",
        n="the number of sequences",
        n_rest="the number of constraints off the support",
        o=r"length of an interval that holds the shifts $\log(c/w)+\langle A,W\rangle$ of all constraints",
        o_max="a bound on the length of the interval that holds the shifts, at every step",
        omega=r"weight of a constraint: its coefficient is $c=\omega\,e^{-\langle A,W\rangle}$",
        omega_min=r"a positive number that every weight $\omega$ reaches",
        p="attention on the optimal token of sequence $i$",
        p_min="a number that the attention on every optimal token reaches",
        phi="attention on a non-optimal token",
        q_min="a number that the share of every constraint in the balanced weights reaches",
        r_max=r"a bound on the norm of the residual, the part of $W$ orthogonal to $W_{\mathrm{mm}}$",
        rho="a bound on the ratio of a sequence's slope at no attention to that at full attention",
        sig=r"a lower bound on the variance of the constraints along the distance from $r_\star$",
        theta="a share of the margin",
        w=r"limit weight of a constraint: what $c\,e^{\langle A,W\rangle}$ tends to",
        w_low="a positive number that every limit weight on the support reaches",
        w_top="a bound on the limit weights off the support",
    ),
    **_table(
        "ix",
        i1="a sequence, so that there is one",
        tau1="a non-optimal token of it, so that there is a constraint",
        t="a step",
        t0="a step, from which on the hypotheses are asked",
        t1="a later step, from which on the direction has settled",
        k="a number of steps of the other run",
    ),
    **_table(
        "set",
        I="the sequences, for which $i$ and $j$ stand",
        J="the non-optimal tokens of sequence $i$, all but $o_i$",
    ),
}
_SUPPORT: Meanings = LAYER | {
    ("vsym", "A"): r"constraint $A_{i,\tau}=(x_{i,o_i}-x_{i,\tau})\,z_i^{\top}$ of a non-optimal token",
    ("vsym", "D"): r"the support's part of the negative gradient: the sum of $c\,A$ over it",
    (
        "vsym",
        "F",
    ): "the negative gradient in $W$: $D$ and the pull of the constraints off the support",
    ("vsym", "Z"): "what the pull of the constraints off the support still adds to $W$ after step $t$",
    ("sym", "C"): "the sum of the coefficients $c$ over the support",
    ("sym", "z"): "a bound on the norm of $Z$",
    ("sym", "R"): "a bound on the norms of the constraints, or of those that the hypothesis names",
    (
        "set",
        "J",
    ): (
        r"the tokens of sequence $i$ whose constraints support $W_{\mathrm{mm}}$:"
        r" $\langle A,W_{\mathrm{mm}}\rangle=1$"
    ),
    (
        "set",
        "K",
    ): r"the other non-optimal tokens of sequence $i$, whose constraints do not support $W_{\mathrm{mm}}$",
}
_LOGISTIC: Meanings = {
    **_table(
        "vsym",
        D="the negative gradient of the loss",
        M=(
            "the max-margin solution: the shortest vector with every margin"
            r" $\langle z,W_{\mathrm{mm}}\rangle$ at least 1"
        ),
        W="the linear model, $W_t$ after $t$ steps",
        z="features of example $k$ times its label",
    ),
    **_table(
        "sym",
        N="the number of examples",
        R="a bound on the norms of the examples",
        alpha=r"multipliers of the max-margin solution: it is the sum of $\alpha_k\,z_k$",
        c="weight of example $k$ in the negative gradient",
        e="length of step $t$",
        eta="the step size",
        w_max=r"a weight is at most $w_{\max}\,e^{-\mu}$, $\mu$ the example's margin",
        w_min=r"a weight is at least $w_{\min}\,e^{-\max(\mu,0)}$, $\mu$ the example's margin",
    ),
    **_table("ix", k0="the example of smallest margin", k1="an example, so that there is one", t="a step"),
    **_table("set", K="the examples"),
}
_BLOCKS: Meanings = {
    **_table(
        "vsym",
        A=r"constraint of token $\tau$ of sequence $i$",
        Delta=r"the optimal token of sequence $i$ less its token $\tau$",
        z="query of sequence $i$",
    ),
    **_table(
        "sym",
        c=r"a lower bound on the inner products of $\Delta$ within a sequence",
        e0=r"no two constraints have an inner product below $-\epsilon_0$",
        f_q="bounds the root mean square of a query's inner products with the others",
        l=r"by how much at least the squared lengths of $\Delta$ exceed $c$",
        q="a bound on the inner products of two queries",
        r=r"a bound on the inner products of $\Delta$ across sequences",
        w="a lower bound on the squared lengths of the queries",
        y="an upper bound on the squared lengths of the queries",
    ),
    **_table("ix", n="the number of sequences", m="the number of non-optimal tokens of a sequence"),
    ("vsym", "M"): LAYER["vsym", "M"],
    ("sym", "alpha"): LAYER["sym", "alpha"],
}
_GAUSSIAN: Meanings = {
    **_table(
        "vsym",
        A=r"constraint of noise token $\tau$ of sequence $i$",
        mu="signal token of sequence $i$",
        xi=r"noise token $\tau$ of sequence $i$",
        z="query of sequence $i$, noise too",
    ),
    **_table(
        "sym",
        s="the norm of the signals",
        g="a bound on the inner products of signals and noise",
        v=r"$\sigma^2\,d$, the mean squared length of noise in $d$ dimensions",
        v1="$v$ in a smaller dimension",
        v2="$v$ in a larger dimension",
        q="bound on the inner products of two queries, relative to $v$",
        p="bound on the inner products of noise tokens of two sequences, relative to $v$",
        u="bound on minus the inner products of noise tokens of one sequence, relative to $v$",
        w="bound on how much a query's squared length falls short of $v$, relative to $v$",
        y="bound on how much a query's squared length exceeds $v$, relative to $v$",
        a="bound on how much a noise token's squared length falls short of $v$, relative to $v$",
        h="bound on the root mean square of a query's inner products with the others, relative to $v$",
        n="the number of sequences",
        m="the number of noise tokens of a sequence",
        d="the dimension",
        d1="a smaller dimension",
        r0=r"any number, in the place of $s^2+2\,g$",
        c0=r"any number, in the place of $s^2-2\,g$",
        t_q="gives the bound $q=t_q/(1-t_q^2)$ on the inner products of two queries",
        t_p="gives the bound $p=t_p/(1-t_p^2)$ on the inner products of noise tokens of two sequences",
        t_u="gives the bound $u=t_u/(1-t_u^2)$ on those of one sequence",
        P="the probability that (S) and (N) hold",
        F="the probability that some inner product or length strays beyond its bound",
        Q="the probability that the inner product of queries $i$ and $j$ exceeds its bound",
        C="the probability that the inner product of noise tokens of two sequences exceeds its bound",
        U="the probability that the inner product of noise tokens of one sequence falls below its bound",
        S="the probability that query $i$ is too short",
        L="the probability that query $i$ is too long",
        V="the probability that a noise token is too short",
        R="the probability that the inner products of query $i$ with the others are too large together",
        E_q="expectation of the exponential in Markov's inequality for two queries",
        E_p="expectation of the exponential in Markov's inequality for noise tokens of two sequences",
        E_u="expectation of the exponential in Markov's inequality for noise tokens of one sequence",
        E_w="expectation of the exponential in Markov's inequality for short queries",
        E_y="expectation of the exponential in Markov's inequality for long queries",
        E_a="expectation of the exponential in Markov's inequality for short noise tokens",
        E_h="expectation of the exponential in Markov's inequality for a query's products with the others",
    ),
    **_table("ix", n="the number of sequences", m="the number of noise tokens of a sequence"),
    ("vsym", "M"): LAYER["vsym", "M"],
    ("sym", "alpha"): LAYER["sym", "alpha"],
    ("sym", "e0"): LAYER["sym", "e0"],
}
_TAILS: Meanings = _table(
    "sym",
    P="the probability of the tail",
    E="expectation of the exponential in Markov's inequality",
    d="the dimension",
    t=r"gives the tail: the inner product is at least $\sigma^2\,d\,t/(1-t^2)$",
    w=r"gives the tail: the squared length is at most $\sigma^2\,d\,(1-w)$",
    y=r"gives the tail: the squared length is at least $\sigma^2\,d\,(1+y)$",
)
_DIVERGENCE: Meanings = {
    **_table("vsym", B="a vector for each constraint"),
    **_table(
        "sym",
        R_B="a bound on the norms of the vectors $B$",
        Y="a bound on the numbers $y$",
        l="any positive number",
        lam="bounds the spread of the vectors $B$",
        lo="the left end of an interval that holds the numbers $x$",
        m="a constant, the same for all constraints",
        o="the length of that interval",
        pi="positive weights over the constraints, which sum to 1",
        q="other positive weights over the constraints, which sum to 1",
        q_min="a number that every weight $q$ reaches",
        x="a number for each constraint",
        y="a number for each constraint",
    ),
    **_table(
        "set",
        I="the sequences, for which $i$ and $j$ stand",
        J="the non-optimal tokens of sequence $i$, all but $o_i$",
    ),
}
_NUMBERS = (
    "bracket-.*", "every-.*", "loss-factor", "loss-slope-share", "log-loss-smooth", "log-mean",
    "log-midpoint", "log-quotient-falls", "step-cost", "pair-count", "exponential-increase",
    "potential-concave", "harmonic-sum", "double-sum", "swapped-sum",
)  # fmt: skip
_EIGENVECTOR = {("vsym", "u"): r"a unit eigenvector of the constraints' covariance across $W_{\mathrm{mm}}$"}
_PAGES: tuple[tuple[str, Meanings], ...] = (
    # Inequalities between numbers: whatever letters they use stand for any numbers.
    (
        "|".join(_NUMBERS),
        {("set", "I"): "the sequences, for which $i$ and $j$ stand"},
    ),
    (r"support-.*", _SUPPORT),
    (r"logistic-.*|exponential-.*", _LOGISTIC),
    (r"gaussian-(product|short|long)-tail", _TAILS),
    (r"gaussian-.*", _GAUSSIAN),
    (r"blocks-.*", _BLOCKS),
    (r"divergence-.*", _DIVERGENCE),
    (r"residual-linear-.*|balance-(repels|unstable)", LAYER | _EIGENVECTOR),
    (
        r"local-.*|residual-tilt-local",
        LAYER
        | {
            (
                "sym",
                "lam",
            ): "bounds the constraints' covariance under the balanced weights: its largest eigenvalue will do"
        },
    ),
    (
        r"joint-decoder-direction.*",
        LAYER
        | {
            (
                "sym",
                "beta",
            ): r"multipliers of $u_{\mathrm{mm}}$: it is the sum of $\beta_i$ times the optimal tokens"
        },
    ),
    (
        r"power-sum-.*",
        {("sym", "decay"): LAYER["sym", "decay"], ("ix", "t0"): "the step from which on it is summed"},
    ),
)


def of(key: str) -> Mapping[tuple[str, str], str]:
    """The meanings of the symbols of the page of this key."""
    return next((words for pattern, words in _PAGES if re.fullmatch(pattern, key)), LAYER)
