"""The layer under a moving decoder: weights of any size, and claims from some step t0 on.

When the decoder moves, the non-optimal tokens have unequal scores that change from step to step. The gradient
in W is still a sum of c_k A_k over the constraints of fixed tokens o_i, with

    c_k = omega_k exp(-mu_k),    omega_k = p_i (m_i - g_(i,tau)) sigma(-m_i)/n,

m_i the mean of the scores under the attention (page ``gradient-weights``). All that the theorems on W ask is
that from some step t0 on these weights are positive, and that no two of them differ by more than a factor
kappa. It is read off the run, and takes the place of the ratio of slopes under equal scores.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import gradient as gr
from theory.lemmas.separator_correlation import along, at_constraint, sum_constraints
from theory.notation import STATIC as L
from theory.notation import A, e, i, kappa_run, layer, n, omega, omega_min, score, t, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, specialize
from theory.proof.tactics import follows
from theory.proof.terms import Formula, Index, Term, eq, exp, index, inner, substitute, symbol, vector

REFERENCE = "the paper's joint training of the weights and the decoder; our a-posteriori theorem"
t0 = index("t0")  # the step from which on the claims hold

COEFFICIENTS = nt.each(eq(L.c(i, tau), omega(i, tau) * exp(-L.gap(i, tau))))
WEIGHTS_POSITIVE = 0 < omega_min()
WEIGHTS_LOWER = nt.each(omega_min() <= omega(i, tau))
WEIGHTS_UPPER = nt.each(omega(i, tau) <= kappa_run * omega_min())
WEIGHTS = {
    "c": COEFFICIENTS,
    "the smallest weight is positive": WEIGHTS_POSITIVE,
    "omega_min bounds the weights": WEIGHTS_LOWER,
    "no two weights differ by more than a factor kappa": WEIGHTS_UPPER,
}

# --- from a step on ----------------------------------------------------------------------------------------


def at_step(claim: Proved, at: Index) -> Proved:
    """A claim about any W, at W_t; each hypothesis about W is drawn from the one for every t."""
    now = kernel.instantiate(claim, **static_families(at))
    drawn = (specialize(assume(always(f)), at) for f in claim.hypotheses)
    return discharge(now, *(d for d in drawn if d.conclusion not in claim.hypotheses))


def always(formula: Formula) -> Formula:
    """A hypothesis about the layer at any W, for every iterate."""
    return nt.always(substitute(formula, **static_families(t)))


def static_families(at: Index) -> dict[str, Any]:
    """What the layer's quantities at any W are at W_t."""
    moved = nt._time_families(at)
    weights = {"omega": (("i", "tau"), omega(i, tau, layer(at))), "omega_min": ((), omega_min(layer(at)))}
    return {"reals": moved["reals"] | weights, "vectors": moved["vectors"]}


def since(start: Index = t0) -> dict[str, Any]:
    """W_t becomes W_(t0+t), and so do the quantities of step t."""
    now, at = layer(start + t), ("t",)
    constraint = ("t", "i", "tau")
    return {
        "reals": {
            "e": (at, e(start + t)),
            "C": (at, now.C),
            "c": (constraint, now.c(i, tau)),
            "omega": (constraint, omega(i, tau, now)),
            "omega_min": (at, omega_min(now)),
        },
        "vectors": {"W": (at, now.W), "D": (at, now.descent)},
    }


def from_step(claim: Proved) -> Proved:
    """A claim about the run, about the run from t0 on: W_t0 is then its start."""
    return kernel.instantiate(claim, **since())


def hypotheses_from_step(formulas: dict[str, Formula]) -> dict[str, Formula]:
    """The hypotheses of such a claim."""
    return {name: substitute(f, **since()) for name, f in formulas.items()}


# --- signs -------------------------------------------------------------------------------------------------


def weight_positive() -> Proved:
    """0 < omega_k at the generic constraint."""
    return follows(0 < omega(i, tau), assume(WEIGHTS_POSITIVE), at_constraint(WEIGHTS_LOWER))


def coefficient_positive() -> Proved:
    """0 < c_k at the generic constraint."""
    decay = kernel.exp_positive(-L.gap(i, tau))
    return follows(0 < L.c(i, tau), (weight_positive(), decay), at_constraint(COEFFICIENTS))


# --- the gradient's weights --------------------------------------------------------------------------------


def mean(i: Index) -> Term:
    """m_i, the mean of the scores under the attention."""
    return symbol("m", i)


MEAN_IS = nt.each_sequence(eq(mean(i), gr.mean_score(L.W)))
WEIGHT_IS = nt.each(eq(omega(i, tau), L.p(i) * (mean(i) - score(i, tau)) / (n * (1 + exp(mean(i))))))
GRADIENT_CLAIM = eq(gr.SLOPE, -inner(L.descent, gr.H))


def prove_gradient() -> Proved:
    """Term by term: phi_(i,tau) = p_i exp(-mu_k), and the rest is omega_k."""
    W, mu, p, Z = L.W, L.gap(i, tau), L.p(i), gr.partition(L.W)
    hole, number = vector("v"), symbol("y")
    attended = follows(
        eq(gr.attention(W), p * exp(-mu)),
        (exp(gr.best_logit()) / Z, gr.gap_is()), (exp(-mu), gr.attention_is_softmax()),
    )  # fmt: skip
    m = mean(i)
    form = p * exp(-mu) * (number - score(i, tau)) / (1 + exp(number))
    named = congruence(co.at_sequence(MEAN_IS), form, number)
    sigmoid = co.factored(m)
    rest = (gr.mean_score(W) - score(i, tau)) / (1 + exp(gr.mean_score(W)))
    each = follows(
        eq(gr.coefficient(W) / n, L.c(i, tau)),
        (rest / n, attended), (1 / n, named), at_constraint(COEFFICIENTS),
        (exp(-mu), at_constraint(WEIGHT_IS)), (exp(-mu) * p * (m - score(i, tau)), sigmoid),
    )  # fmt: skip
    direction = congruence(at_constraint(nt.CONSTRAINT_IS), inner(hole, gr.H), hole)
    reach = inner(gr.difference(i, tau), gr.H)
    term = follows(
        eq(gr.coefficient(W) * reach / n, L.c(i, tau) * inner(A(i, tau), gr.H)),
        (reach, each), (L.c(i, tau), direction),
    )  # fmt: skip
    return follows(GRADIENT_CLAIM, gr.prove_general(), sum_constraints(term), along(gr.H))


GRADIENT_WEIGHTS = Theorem(
    key="gradient-weights",
    title="The gradient in the weights, whatever the scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"$(-\nabla\mathcal{L})$ is the negative gradient: for every $W$ and every direction "
    r"$H$, {claim}.",
    hypotheses={
        "A": nt.CONSTRAINT_IS,
        "p": L.attention_is(),
        "m": MEAN_IS,
        "omega": WEIGHT_IS,
        "c": COEFFICIENTS,
        "gradient": L.gradient_is(),
        "n > 0": co.DATA_SIZE_POSITIVE,
    },
    claim=GRADIENT_CLAIM,
    prove=prove_gradient,
)
PAGES = (GRADIENT_WEIGHTS,)
