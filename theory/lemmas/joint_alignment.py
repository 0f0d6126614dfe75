"""The alignment lemma for weights that differ by at most a factor kappa, whatever the scores.

With -grad L = sum c_k A_k, c_k = omega_k exp(-mu_k), 0 < omega_k <= kappa omega_l for all k and l, and N
constraints, let Lam exp(Lam) = (N - 1) kappa/e. Then, for every W,

    <-grad L, W> <= (g* ||W|| + Lam) <-grad L, M>.

No bound on the logit gaps is asked, and no length of a sequence enters: the attention's own factor is part of
the weights. Proof, with B = g* ||W|| + Lam and f_k = c_k (mu_k - B): no f_k exceeds h = kappa omega_min
exp(-B - 1), and at the least gap f_k is at most -(N - 1) h. So sum f_k <= 0.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import max_margin
from theory.lemmas.joint_layer import COEFFICIENTS, REFERENCE, WEIGHTS, coefficient_positive
from theory.lemmas.separator_correlation import CORRELATION, along, at_constraint
from theory.notation import STATIC as L
from theory.notation import M, N, i, kappa_run, margin, omega_min, others, over, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge
from theory.proof.tactics import (
    everywhere,
    exp_monotone,
    exp_tangent,
    follows,
    norm_nonnegative,
    one_positive,
    product_nonnegative,
    restate,
    weak,
)
from theory.proof.terms import Index, Term, exp, index, inner, lambertw, member, norm, real

Lam = lambertw((N - 1) * kappa_run * exp(real(-1)))
B = margin * norm(L.W) + Lam
HEIGHT = kappa_run * omega_min() * exp(-B - 1)  # no share is larger
i0, tau0 = index("i0"), index("tau0")  # the constraint of least gap
in_i0, in_tau0 = assume(member(i0, nt.SEQUENCES)), assume(member(tau0, others(i0)))
mu0 = L.gap(i0, tau0)
smallest = assume(WEIGHTS["the smallest weight is positive"])


def largest_weight_positive() -> Proved:
    """0 < kappa omega_min: it bounds the weights of the constraint that exists."""
    at_one = (nt.i1, co.some_i), (nt.tau1, co.some_tau)
    names = "omega_min bounds the weights", "no two weights differ by more than a factor kappa"
    low, high = (everywhere(assume(WEIGHTS[name]), *at_one) for name in names)
    return follows(0 < kappa_run * omega_min(), smallest, low, high)


def constant_is() -> tuple[Proved, Proved]:
    """0 <= Lam, and Lam exp(Lam) = (N - 1) kappa/e."""
    one = co.one_of_all(weak(one_positive()), co.some_i, co.some_tau)
    count = follows(0 <= N - 1, one, assume(nt.COUNT_IS))
    inverse = kernel.inverse_positive(smallest)
    ratio = follows(0 < kappa_run, (inverse, largest_weight_positive()), nonzero=[smallest])
    argument = product_nonnegative(product_nonnegative(count, ratio), kernel.exp_positive(real(-1)))
    argument = restate(0 <= Lam[2], argument)
    return kernel.lambert_w_nonnegative(argument), kernel.lambert_w(argument)


def share(i: Index, tau: Index) -> Term:
    """f_k = c_k (mu_k - B), what constraint k adds to <-grad L, W> - B C."""
    return L.c(i, tau) * (L.gap(i, tau) - B)


def share_bounded() -> Proved:
    """f_k <= h: not positive unless mu_k > B, and then 1 + x <= e^x at x = mu_k - B - 1."""
    mu, largest = L.gap(i, tau), largest_weight_positive()
    target = share(i, tau) <= HEIGHT
    height = product_nonnegative(largest, kernel.exp_positive(-B - 1))
    near = follows(target, (weak(coefficient_positive()), assume(mu <= B)), height)
    upper = at_constraint(WEIGHTS["no two weights differ by more than a factor kappa"])
    decay = kernel.exp_positive(-mu)
    below = follows(
        L.c(i, tau) <= kappa_run * omega_min() * exp(-mu), (decay, upper), at_constraint(COEFFICIENTS)
    )
    scale = product_nonnegative(largest, decay)
    beyond = weak(assume(B < mu))
    return kernel.cases(near, follows(target, (beyond, below), (scale, exp_tangent(mu - B - 1))), mu, B)


def least_share_bounded() -> Proved:
    """f_k0 <= -(N - 1) h: mu_k0 <= g* ||W||, so c_k0 >= omega_min exp(-g* ||W||)."""
    reach = kernel.instantiate(max_margin.OPTIMALITY.proved(), reals={"b": mu0})
    constant, choice = constant_is()
    at_least = (i0, in_i0), (tau0, in_tau0)
    low = everywhere(assume(WEIGHTS["omega_min bounds the weights"]), *at_least)
    decay = exp_monotone(follows(-margin * norm(L.W) <= -mu0, reach))
    coefficient = follows(
        omega_min() * exp(-margin * norm(L.W)) <= L.c(i0, tau0),
        (weak(smallest), decay), (weak(kernel.exp_positive(-mu0)), low),
        everywhere(assume(COEFFICIENTS), *at_least),
    )  # fmt: skip
    here = discharge(
        co.moved(kernel.instantiate(weak(coefficient_positive()), indices={"tau": tau0}), in_i0), in_tau0
    )
    return follows(
        share(i0, tau0) <= -(N - 1) * HEIGHT,
        (here, reach), (constant, coefficient), (omega_min() * exp(-B), choice),
    )  # fmt: skip


CLAIM = inner(L.descent, L.W) <= B * inner(L.descent, M)


def prove_alignment() -> Proved:
    """sum f_k <= 0, as f_k0 makes up for the N - 1 others; and C <= <-grad L, M>."""
    spare = follows(0 <= HEIGHT - share(i, tau), share_bounded())
    together = follows(
        over(share(i, tau)) <= 0,
        co.one_of_all(spare, in_i0, in_tau0), least_share_bounded(), (HEIGHT, assume(nt.COUNT_IS)),
    )  # fmt: skip
    binders = [(i0, nt.SEQUENCES), (tau0, others(i0))]
    shares = kernel.least(together, binders, mu0, [co.some_i, co.some_tau])
    solution = kernel.inverse_positive(assume(nt.SOLUTION_NONZERO))
    nonnegative = follows(0 <= B, (weak(solution), norm_nonnegative(L.W)), constant_is()[0])
    coefficients = co.for_each_constraint(weak(coefficient_positive()))
    correlation = discharge(CORRELATION.proved(), coefficients)
    reach = follows(CLAIM, shares, along(L.W), (B, assume(L.mass_is())), (nonnegative, correlation))
    return discharge(co.without_mass(reach), co.SOLUTION_NONZERO.proved())


HYPOTHESES = {
    "(S)": nt.SEPARABLE,
    "alpha >= 0": nt.DUAL_NONNEGATIVE,
    "M is a combination of the constraints": nt.DUAL_EXPANSION,
    "complementary slackness": nt.DUAL_MASS,
    "gradient": L.gradient_is(),
    **WEIGHTS,
    "N": nt.COUNT_IS,
    "there is a sequence": nt.SOME_SEQUENCE,
    "with a constraint": nt.SOME_TOKEN,
}
ALIGNMENT = Theorem(
    key="joint-alignment",
    title="The negative gradient is nearly as well aligned with the max-margin solution, whatever the scores",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=CLAIM,
    prove=prove_alignment,
)
PAGES = (ALIGNMENT,)
