"""Theorem C (the balanced point): its equation has one solution; its closed form; when it is 0.

r* balances the weights w_k > 0 if sum q_k A_k = Phi g*^2 M with q_k = w_k exp(-<A_k, r*>), Phi = sum q_k.

* Two balanced points have the same <A_k, r> up to one constant: orthogonal to M, they differ only by what
  no constraint sees, so in the span of the constraints the balanced point is unique.
* If <A_k, r> = log(w_k/alpha_k) - const for every k, r is balanced: for linearly independent constraints this
  solves the equation (the constant is fixed by <r, M> = 0).
* The origin is balanced if and only if sum w_k A_k is a multiple of M. Only then can the direction gap fall
  faster than 1/E_t^2.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import log_mean
from theory.lemmas import residual_step as rs
from theory.lemmas import symmetric_divergence as sd
from theory.lemmas.residual_step import IMBALANCE, STATIONARY, Phi, q_k, r_star, w
from theory.lemmas.separator_correlation import at_constraint, sum_constraints
from theory.notation import A, M, alpha, i, margin, others, over, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge
from theory.proof.tactics import (
    equation,
    follows,
    log_product,
    log_quotient,
    norm_squared,
    product_nonnegative,
    restate,
    square_root_order,
    weak,
    zero,
)
from theory.proof.terms import Formula, Vector, eq, exp, inner, log, real, substitute, symbol, vector, vtotal

REFERENCE = "our Theorem C, the limit equation"

# --- closed form -------------------------------------------------------------------------------------------

k0 = symbol("k0")
LOGARITHMS = nt.each(eq(inner(A(i, tau), r_star), log(w(i, tau)) - log(alpha(i, tau)) - k0))
DUAL_POSITIVE = nt.each(0 < alpha(i, tau))


def weight_is_dual() -> Proved:
    """q_k = alpha_k exp(k0)."""
    dual, weight = at_constraint(DUAL_POSITIVE), at_constraint(rs.LIMIT_WEIGHTS_POSITIVE)
    hole = symbol("x")
    same = congruence(at_constraint(LOGARITHMS), exp(-hole), hole)
    return follows(
        eq(q_k, alpha(i, tau) * exp(k0)),
        (w(i, tau), same), (exp(log(alpha(i, tau)) + k0 - log(w(i, tau))), kernel.exp_log(weight)),
        (exp(k0), kernel.exp_log(dual)),
    )  # fmt: skip


def prove_closed_form() -> Proved:
    """sum q_k A_k = exp(k0) sum alpha_k A_k = exp(k0) M, and Phi = exp(k0) ||M||^2."""
    z, hole, solution = vector("z"), vector("x"), assume(nt.SOLUTION_NONZERO)
    same = weight_is_dual()
    each = follows(
        eq(q_k * inner(A(i, tau), z), alpha(i, tau) * exp(k0) * inner(A(i, tau), z)),
        (inner(A(i, tau), z), same),
    )
    unit = follows(eq(margin**2 * inner(M, M), 1), (margin**2, norm_squared(M)), nonzero=[solution])
    pull = margin**2 * inner(M, z)
    against = follows(
        eq(inner(IMBALANCE, z), 0),
        sum_constraints(each), (-pull, sum_constraints(same)),
        (exp(k0), congruence(assume(nt.DUAL_EXPANSION), inner(hole, z), hole)),
        (exp(k0) * pull, assume(nt.DUAL_MASS)), (exp(k0) * inner(M, z), unit),
    )  # fmt: skip
    return kernel.instantiate(against, vectors={"z": IMBALANCE})


CLOSED_FORM = Theorem(
    key="balance-closed-form",
    title="The balanced point of linearly independent constraints",
    kind="theorem",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={
        "M is a combination of the constraints": nt.DUAL_EXPANSION,
        "complementary slackness": nt.DUAL_MASS,
        "M is not 0": nt.SOLUTION_NONZERO,
        "alpha > 0": DUAL_POSITIVE,
        "w > 0": rs.LIMIT_WEIGHTS_POSITIVE,
        "the logit gaps are those of the closed form": LOGARITHMS,
    },
    claim=STATIONARY,
    prove=prove_closed_form,
)

# --- uniqueness --------------------------------------------------------------------------------------------

other = vector("r_other")


def at_other(node: Formula) -> Formula:
    """A formula about r*, about another point."""
    return substitute(node, vectors={"r_star": ((), other)})


def exchanged(claim: Proved) -> Proved:
    """A claim about r*, about the other point."""
    return kernel.instantiate(claim, vectors={"r_star": other})


q_other = substitute(q_k, vectors={"r_star": ((), other)})
Phi_other = substitute(Phi, vectors={"r_star": ((), other)})
apart = other - r_star
J = sd.divergence(q_other / Phi_other, q_k / Phi)


def both_balanced() -> list[Proved]:
    """Distributions: positive, summing to 1."""
    out = []
    for phi, weight, total_ in (
        (exchanged(rs.phi_positive()), exchanged(rs.limit_positive()), Phi_other),
        (rs.phi_positive(), rs.limit_positive(), Phi),
    ):
        share = weight.conclusion[2] / total_
        out.append(follows(0 < share, (kernel.inverse_positive(phi), weight)))
        out.append(equation(eq(over(share), 1), nonzero=[phi]))
    return out


def logarithms_differ() -> Proved:
    """log(q'_k/Phi') - log(q_k/Phi) = -<A_k, r' - r*> + log Phi - log Phi'."""
    weight = at_constraint(rs.LIMIT_WEIGHTS_POSITIVE)
    parts: list[Proved] = []
    for phi, limit, point in (
        (exchanged(rs.phi_positive()), exchanged(rs.limit_positive()), other),
        (rs.phi_positive(), rs.limit_positive(), r_star),
    ):
        exponent = -inner(A(i, tau), point)
        parts += [
            log_quotient(limit, phi),
            log_product(weight, kernel.exp_positive(exponent)),
            kernel.log_exp(exponent),
        ]
    difference = log(q_other / Phi_other) - log(q_k / Phi)
    return follows(eq(difference, -inner(A(i, tau), apart) + log(Phi) - log(Phi_other)), *parts)


def no_divergence() -> Proved:
    """J = 0: both means of the <A_k, r' - r*> are g*^2 <M, r' - r*>."""
    shares = q_other / Phi_other - q_k / Phi
    logs = log(q_other / Phi_other) - log(q_k / Phi)
    constant = log(Phi) - log(Phi_other)
    each = follows(
        eq(shares * logs, shares * (-inner(A(i, tau), apart) + constant)), (shares, logarithms_differ())
    )
    ends = [exchanged(rs.phi_positive()), rs.phi_positive()]
    there = kernel.instantiate(exchanged(rs.balanced(vector("z"))), vectors={"z": apart})
    return follows(
        eq(J, 0),
        sum_constraints(each), (1 / Phi_other, there), (1 / Phi, rs.balanced(apart)), nonzero=ends,
    )  # fmt: skip


def shares_agree() -> Proved:
    """q'_k/Phi' = q_k/Phi: each term of J is nonnegative, and at least 2 (difference)^2/sum."""
    there, _, here, _ = both_balanced()
    p, q = q_other / Phi_other, q_k / Phi
    mean = discharge(kernel.instantiate(log_mean.LOG_MEAN.proved(), reals={"a": p, "b": q}), there, here)
    both = follows(0 < p + q, there, here)
    square = product_nonnegative(weak(kernel.inverse_positive(both)), kernel.square(p - q))
    term = follows(0 <= (p - q) * (log(p) - log(q)), mean, square)
    least = co.one_of_all(term, co.some_i, co.some_tau)
    least = kernel.instantiate(least, indices={"i1": i, "tau1": tau})
    small = follows(
        (p - q) ** 2 <= zero() ** 2, (both, mean), (both, least), (p + q, no_divergence()), nonzero=[both]
    )
    nothing = equation(zero() <= 0)
    up = square_root_order(small, nothing)
    down = square_root_order(restate((q - p) ** 2 <= zero() ** 2, small), nothing)
    return kernel.antisymmetry(follows(p <= q, up), follows(q <= p, down))


def prove_unique() -> Proved:
    """The logarithms agree, so <A_k, r' - r*> is a constant, which is its mean."""
    hole, constant = symbol("x"), log(Phi) - log(Phi_other)
    agree = congruence(shares_agree(), log(hole), hole)
    each = follows(eq(inner(A(i, tau), apart), constant), agree, logarithms_differ())
    weighted = follows(eq(q_k * inner(A(i, tau), apart), q_k * constant), (q_k, each))
    phi = rs.phi_positive()
    mean = follows(
        eq(constant, margin**2 * inner(M, apart)),
        (1 / Phi, sum_constraints(weighted)), (1 / Phi, rs.balanced(apart)), nonzero=[phi],
    )  # fmt: skip
    mean = kernel.instantiate(mean, indices={"i1": i, "tau1": tau})
    each = kernel.instantiate(each, indices={"i1": i, "tau1": tau})
    return co.for_each_constraint(follows(UNIQUE_CLAIM_AT, each, mean))


UNIQUE_CLAIM_AT = eq(inner(A(i, tau), apart), margin**2 * inner(M, apart))
UNIQUE = Theorem(
    key="balance-unique",
    title="No constraint tells two balanced points apart, up to the max-margin direction",
    kind="theorem",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={
        "w > 0": rs.LIMIT_WEIGHTS_POSITIVE,
        "r* balances the limit weights": STATIONARY,
        "so does the other point": at_other(STATIONARY),
    },
    claim=nt.each(UNIQUE_CLAIM_AT),
    prove=prove_unique,
)

# --- the origin --------------------------------------------------------------------------------------------

PULL = (
    vtotal(i, nt.SEQUENCES, vtotal(tau, others(i), w(i, tau) * A(i, tau))) - (over(w(i, tau)) * margin**2) * M
)
ORIGIN: Vector = substitute(IMBALANCE, vectors={"r_star": ((), real(0) * M)})


def prove_origin() -> Proved:
    """At r = 0 the balanced weights are the limit weights."""
    return equation(ORIGIN_CLAIM)


ORIGIN_CLAIM = eq(inner(ORIGIN, ORIGIN), inner(PULL, PULL))
BALANCED_ORIGIN = Theorem(
    key="balance-at-zero",
    title="The residual tends to 0 if and only if the limit weights pull along the max-margin solution",
    kind="theorem",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={},
    claim=ORIGIN_CLAIM,
    prove=prove_origin,
)
PAGES = (CLOSED_FORM, UNIQUE, BALANCED_ORIGIN)
