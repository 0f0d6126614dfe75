"""Every symbol once: its kernel term, LaTeX, meaning, sign, and how it scales.

``Layer`` bundles the quantities of the attention layer at one weight matrix: without an index (``STATIC``)
for lemmas about an arbitrary W, with an index for the iterate W_t. Definitions (p, a, c, the gradient) enter
proofs as named hypotheses, see ``Layer``; a lemma about ``STATIC`` moves to the iterate by ``at_time``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from theory.proof import kernel
from theory.proof.kernel import Proved
from theory.proof.terms import (
    NATURALS,
    Domain,
    Formula,
    Index,
    Term,
    Vector,
    below,
    eq,
    exp,
    finite,
    forall,
    index,
    inner,
    inv,
    lambertw,
    log,
    member,
    norm,
    real,
    substitute,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)
from theory.proof.terms import free as kernel_free

LATEX = {
    "tau": r"\tau",
    "rho": r"\rho",
    "t0": "t_0",
    "t1": "t_1",
    "D": r"(-\nabla\mathcal{L})",
    "M": r"W_{\mathrm{mm}}",
    "a_min": r"a_{\min}",
    "a_max": r"a_{\max}",
    "e0": r"\epsilon_0",
    "eta": r"\eta",
    "e_max": r"e_{\max}",
    "e_min": r"e_{\min}",
    "p_min": r"p_{\min}",
    "alpha": r"\alpha",
    "r_star": r"r_\ast",
    "lo": r"\ell",
    "theta": r"\theta",
    "w_min": r"w_{\min}",
    "w_max": r"w_{\max}",
    "e_ngd": r"e'",
    "eta_ngd": r"\eta'",
    "k0": "k_0",
    "k1": "k_1",
    "i0": "i_0",
    "i1": "i_1",
    "tau0": r"\tau_0",
    "tau1": r"\tau_1",
    "l": r"\ell",
    "I": r"[n]",
    "Xo": "X",
    "go": "g",
    "gs": "g",
}
"""How a kernel name is printed, where it is not printed as it stands."""

i, tau, j, rho = index("i"), index("tau"), index("j"), index("rho")
s, t = index("s"), index("t")

SEQUENCES = finite("I")


def others(i: Index) -> Domain:
    """The non-optimal tokens of sequence i."""
    return finite("J", i)


def each(body: Formula, i: Index = i, tau: Index = tau) -> Formula:
    """``body`` for every constraint k = (i, tau)."""
    return forall(i, SEQUENCES, forall(tau, others(i), body))


def each_sequence(body: Formula, i: Index = i) -> Formula:
    """``body`` for every sequence i."""
    return forall(i, SEQUENCES, body)


def always(body: Formula, t: Index = t) -> Formula:
    """``body`` for every step t = 0, 1, ..."""
    return forall(t, NATURALS, body)


def over(body: Term, i: Index = i, tau: Index = tau) -> Term:
    """The sum of ``body`` over all constraints k = (i, tau)."""
    return total(i, SEQUENCES, total(tau, others(i), body))


def A(i: Index, tau: Index) -> Vector:
    """The constraint matrix A_k = (x_(i,o_i) - x_(i,tau)) z_i'."""
    return vector("A", i, tau)


def G(i: Index) -> Term:
    """Score gap of sequence i, under (E)."""
    return symbol("G", i)


def g(i: Index) -> Term:
    """Common score of the non-optimal tokens of sequence i, under (E)."""
    return symbol("g", i)


M = vector("M")
margin = inv(norm(M))  # g* = 1/||M||
n, N, T, R = symbol("n"), symbol("N"), symbol("T"), symbol("R")
a_min, a_max = symbol("a_min"), symbol("a_max")
kappa = a_max / a_min
e0, eta = symbol("e0"), symbol("eta")


def e(t: Index) -> Term:
    """Step length e_t = ||W_(t+1) - W_t||."""
    return symbol("e", t)


def path_length(t: Index) -> Term:
    """E_t, the sum of the step lengths before t."""
    return total(s, below(t), e(s))


@dataclass(frozen=True)
class Layer:
    """The layer's quantities at W (``at=None``) or at the iterate W_t (``at=t``)."""

    at: Index | None = None

    def _ix(self) -> tuple[Index, ...]:
        return () if self.at is None else (self.at,)

    @property
    def W(self) -> Vector:
        """Key-query matrix."""
        return vector("W", *self._ix())

    @property
    def descent(self) -> Vector:
        """The negative gradient of the loss."""
        return vector("D", *self._ix())

    @property
    def C(self) -> Term:
        """The sum of the gradient's coefficients c_k."""
        return symbol("C", *self._ix())

    def c(self, i: Index, tau: Index) -> Term:
        """Coefficient of A_k in the negative gradient."""
        return symbol("c", *self._ix(), i, tau)

    def p(self, i: Index) -> Term:
        """Attention on the optimal token of sequence i."""
        return symbol("p", *self._ix(), i)

    def a(self, i: Index) -> Term:
        """G_i sigma(-m_i)/n."""
        return symbol("a", *self._ix(), i)

    def gap(self, i: Index, tau: Index) -> Term:
        """Logit gap mu_k = <A_k, W>."""
        return inner(A(i, tau), self.W)

    def attention_is(self) -> Formula:
        """Definition: p_i = 1/(1 + sum over the other tokens of exp(-mu))."""
        return each_sequence(eq(self.p(i), inv(1 + total(tau, others(i), exp(-self.gap(i, tau))))))

    def slope_is(self) -> Formula:
        """Definition: a_i = G_i sigma(-m_i)/n with m_i = g_i + G_i p_i."""
        return each_sequence(eq(self.a(i), G(i) / (n * (1 + exp(g(i) + G(i) * self.p(i))))))

    def coefficient_is(self) -> Formula:
        """Gradient formula: c_k = a_i p_i^2 exp(-mu_k)."""
        return each(eq(self.c(i, tau), self.a(i) * self.p(i) ** 2 * exp(-self.gap(i, tau))))

    def gradient_is(self) -> Formula:
        """Gradient formula: the negative gradient is the sum of c_k A_k."""
        body = vtotal(tau, others(i), self.c(i, tau) * A(i, tau))
        return veq(self.descent, vtotal(i, SEQUENCES, body))

    def mass_is(self) -> Formula:
        """Definition: C is the sum of the c_k."""
        return eq(self.C, over(self.c(i, tau)))

    def coefficients_nonnegative(self) -> Formula:
        """c_k >= 0."""
        return each(0 <= self.c(i, tau))


STATIC = Layer()


def layer(t: Index) -> Layer:
    """The layer at iterate W_t."""
    return Layer(t)


def _time_families(t: Index) -> dict[str, Any]:
    now = layer(t)
    return {
        "reals": {
            "c": (("i", "tau"), now.c(i, tau)),
            "p": (("i",), now.p(i)),
            "a": (("i",), now.a(i)),
            "C": ((), now.C),
        },
        "vectors": {"W": ((), now.W), "D": ((), now.descent)},
    }


def at_time(claim: Proved, t: Index) -> Proved:
    """A claim about an arbitrary W, for the iterate W_t; its hypotheses move along."""
    return kernel.instantiate(claim, **_time_families(t))


def from_all_times(claim: Proved, t: Index) -> Proved:
    """``at_time``, with each hypothesis about W_t drawn from the one for every step."""
    now = at_time(claim, t)
    general = [f for f in claim.hypotheses if kernel_free(f) & _STATIC_NAMES]
    drawn = [kernel.specialize(kernel.assume(at_all_times(f)), t) for f in general]
    return kernel.discharge(now, *drawn)


_STATIC_NAMES = frozenset(
    {("sym", "c"), ("sym", "p"), ("sym", "a"), ("sym", "C"), ("vsym", "W"), ("vsym", "D")}
)

# Hypotheses with a name of their own -----------------------------------------------------------------------

SEPARABLE = each(1 <= inner(A(i, tau), M))  # (S), M = W_mm
NORM_BOUND = each(norm(A(i, tau)) <= R)
SCORE_GAPS = each_sequence(0 < G(i))  # (O) and (E)
SOLUTION_NONZERO = 0 < norm(M)


def update_is(t: Index = t) -> Formula:
    """Every step-size rule: W_(t+1) = W_t + e_t D_t/||D_t||, D_t = -grad L(W_t)."""
    now, then = layer(t), layer(t + 1)
    return always(veq(then.W, now.W + (e(t) / norm(now.descent)) * now.descent), t)


def separator_path(t: Index) -> Term:
    """S_t, the sum of e_s C_s/||grad L_s|| over s < t."""
    now = layer(s)
    return total(s, below(t), e(s) * now.C / norm(now.descent))


STEPS_NONNEGATIVE = always(0 <= e(t))
DESCENT_NONZERO = always(0 < norm(layer(t).descent))
R_POSITIVE = 0 < R


def at_all_times(formula: Formula) -> Formula:
    """A static hypothesis about the layer (a definition, a sign), for every iterate."""
    return always(substitute(formula, **_time_families(t)))


# Max-margin solution and the alignment lemma ---------------------------------------------------------------


def alpha(i: Index, tau: Index) -> Term:
    """Dual weight of a constraint in M = sum alpha_k A_k."""
    return symbol("alpha", i, tau)


DUAL_NONNEGATIVE = each(0 <= alpha(i, tau))
DUAL_EXPANSION = veq(M, vtotal(i, SEQUENCES, vtotal(tau, others(i), alpha(i, tau) * A(i, tau))))
DUAL_MASS = eq(over(alpha(i, tau)), inner(M, M))  # complementary slackness, summed

i1, tau1 = index("i1"), index("tau1")
SOME_SEQUENCE = member(i1, SEQUENCES)  # with SOME_TOKEN: there is a constraint
SOME_TOKEN = member(tau1, others(i1))

COUNT_IS = eq(N, over(real(1)))
LENGTH_BOUND = each_sequence(1 + total(tau, others(i), real(1)) <= T)
SLOPE_LOWER, SLOPE_UPPER = each_sequence(a_min <= STATIC.a(i)), each_sequence(STATIC.a(i) <= a_max)
SLOPE_LOWER_POSITIVE = 0 < a_min
Lam = lambertw((N - 1) * kappa * T**2 * exp(real(-1)))


def lam(layer: Layer) -> Term:
    """g* ||W||, the margin that the max-margin direction would have at the norm of W."""
    return margin * norm(layer.W)


def gaps_bounded(layer: Layer) -> Formula:
    """The alignment lemma's hypothesis: every logit gap is at least -g* ||W||."""
    return each(-lam(layer) <= layer.gap(i, tau))


WEIGHTS_NONZERO = 0 < norm(STATIC.W)


# Direction and loss ----------------------------------------------------------------------------------------


def cosine(layer: Layer) -> Term:
    """cos, the cosine of the angle between W and the max-margin solution (0 at W = 0)."""
    return inner(layer.W, M) / (norm(layer.W) * norm(M))


def logistic(score: Term) -> Term:
    """The logistic loss log(1 + exp(-score))."""
    return log(1 + exp(-score))


def loss(layer: Layer) -> Term:
    """L, the mean logistic loss at the margins m_i = g_i + G_i p_i."""
    return total(i, SEQUENCES, logistic(g(i) + G(i) * layer.p(i))) / n


def least_loss() -> Term:
    """L*, the mean logistic loss with full attention on every optimal token."""
    return total(i, SEQUENCES, logistic(g(i) + G(i))) / n


# Tokens and loss, for the gradient formula -----------------------------------------------------------------


def token(i: Index, tau: Index) -> Vector:
    """X_(i,tau) = x_(i,tau) z_i' for a non-optimal token, so that its logit is <X_(i,tau), W>."""
    return vector("X", i, tau)


def optimal_token(i: Index) -> Vector:
    """X_(i,o_i) = x_(i,o_i) z_i'."""
    return vector("Xo", i)


def score(i: Index, tau: Index) -> Term:
    """Score g_(i,tau) = y_i u' x_(i,tau) of a non-optimal token."""
    return symbol("gs", i, tau)


def optimal_score(i: Index) -> Term:
    """Score g_(i,o_i) of the optimal token."""
    return symbol("go", i)


CONSTRAINT_IS = each(veq(A(i, tau), optimal_token(i) - token(i, tau)))
SCORES_EQUAL = each(eq(score(i, tau), g(i)))  # (E)
SCORE_GAP_IS = each_sequence(eq(optimal_score(i), g(i) + G(i)))


# The residual and its limit --------------------------------------------------------------------------------

LATEX |= {
    "r_star": r"r_\star",
    "r_max": r"r_{\max}",
    "lo": r"\ell",
    "pi": r"\pi",
    "c0": "c_0",
    "r0": "r_0",
    "r_other": r"r_\star'",
    "Gam": r"\Gamma",
    "gam": r"\underline{\Gamma}",
    "sig": r"\sigma",
    "beta": r"\beta",
    "lam": r"\lambda",
    "q_min": r"q_{\min}",
    "o_max": r"o_{\max}",
    "G_max": r"G_{\max}",
}

# Gaussian data ---------------------------------------------------------------------------------------------

LATEX |= {"Delta": r"\Delta", "xi": r"\xi", "mu": r"\mu", "sigma": r"\sigma", "delta": r"\delta"}

# Joint training of the weights and the decoder -------------------------------------------------------------

LATEX |= {"omega": r"\omega", "omega_min": r"\underline{\omega}", "kappa": r"\kappa"}
kappa_run = symbol("kappa")  # the run's own ratio of weights, in the place of a_max/a_min


def omega(i: Index, tau: Index, at: Layer = STATIC) -> Term:
    """Weight of a constraint in the gradient: c_k = omega_k exp(-mu_k)."""
    return symbol("omega", *at._ix(), i, tau)


def omega_min(at: Layer = STATIC) -> Term:
    """A lower bound on the weights of all constraints."""
    return symbol("omega_min", *at._ix())


def feature(i: Index) -> Vector:
    """y_i x_(i,o_i): the optimal token with its label, so that its score is <y_i x_(i,o_i), u>."""
    return vector("xo", i)


def feature_gap(i: Index, tau: Index) -> Vector:
    """y_i (x_(i,o_i) - x_(i,tau)) for a non-optimal token."""
    return vector("dx", i, tau)


U = vector("u_mm")  # the max-margin decoder u_mm on the optimal tokens
decoder_margin = inv(norm(U))  # 1/||u_mm||
R_o, R_d = symbol("R_o"), symbol("R_d")
LATEX |= {
    "u_mm": r"u_{\mathrm{mm}}",
    "Du": r"(-\nabla_u\mathcal{L})",
    "xo": r"x^\circ",
    "dx": r"\delta",
    "phi": r"\varphi",
    "R_o": r"R_\circ",
    "R_d": r"R_\delta",
    "eps": r"\varepsilon",
    "leak": r"\lambda",
    "floor": r"h",
}


@dataclass(frozen=True)
class DecoderState:
    """The decoder and the attention it sees, at any step (``at=None``) or at step t."""

    at: Index | None = None

    def _ix(self) -> tuple[Index, ...]:
        return () if self.at is None else (self.at,)

    @property
    def u(self) -> Vector:
        """The decoder."""
        return vector("u", *self._ix())

    @property
    def descent(self) -> Vector:
        """The negative gradient of the loss in u."""
        return vector("Du", *self._ix())

    def phi(self, i: Index, tau: Index) -> Term:
        """Attention on a non-optimal token."""
        return symbol("phi", *self._ix(), i, tau)

    def attended(self, i: Index) -> Vector:
        """y_i X_i' phi_i, what the decoder sees of sequence i."""
        lost = vtotal(tau, others(i), self.phi(i, tau) * feature_gap(i, tau))
        return feature(i) - lost

    def optimal_score(self, i: Index) -> Term:
        """g_(i,o_i), the score of the optimal token."""
        return inner(feature(i), self.u)

    def mean_score(self, i: Index) -> Term:
        """m_i = <y_i X_i' phi_i, u>."""
        return inner(self.attended(i), self.u)

    def missing(self, i: Index) -> Term:
        """1 - p_i, the attention on the other tokens."""
        return total(tau, others(i), self.phi(i, tau))

    def loss(self) -> Term:
        """L, the mean logistic loss at the m_i."""
        return total(i, SEQUENCES, logistic(self.mean_score(i))) / n

    def optimal_loss(self) -> Term:
        """The mean logistic loss of the optimal tokens alone: no W enters."""
        return total(i, SEQUENCES, logistic(self.optimal_score(i))) / n


def decoder_step(t: Index) -> Term:
    """The length of the decoder's step t."""
    return symbol("f", t)


def decoder_path(t: Index) -> Term:
    """F_t, the decoder's path length: the sum of its step lengths before t."""
    return total(s, below(t), decoder_step(s))


# Support ---------------------------------------------------------------------------------------------------

LATEX |= {
    "gamma": r"\gamma",
    "n_rest": "N_K",
    "w_low": r"\underline{w}",
    "w_top": r"\overline{w}_K",
    "c1": "c_1",
    "lam_min": r"\lambda_{\min}",
}


LATEX |= {"decay": "a", "decay_u": "a_u", "eta_u": r"\eta_u"}
