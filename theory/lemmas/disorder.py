"""Close to balance the symmetric divergence is a variance, from below and from above.

Let pi, q be positive weights over the constraints, each summing to 1, with log pi_k - log q_k = x_k - y_k + m
for some m, where the x_k lie in an interval of length o, |y_k| <= Y and sum q_k y_k = 0. With L = o + 2 Y and
J the symmetric divergence of pi and q:

* exp(-L) q_k <= pi_k <= exp(L) q_k;
* J >= exp(-L) (sum q_k y_k^2/2 - o^2/4);
* sum q_k y_k^2 <= Z^2 (1/q_min - 1), Z = J + o - log q_min, if every q_k >= q_min (no bound Y is needed);
* || sum (pi_k - q_k) B_k ||^2 <= (1 + exp(L))/2 lam J, if sum q_k <B_k, z>^2 <= lam ||z||^2 at that sum z.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import symmetric_divergence as sd
from theory.lemmas.separator_correlation import at_constraint, sum_constraints
from theory.lemmas.symmetric_divergence import DIFFERENCE, B, J, lo, o, p_k, pi, q, q_k, x
from theory.notation import i, j, others, over, rho, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume
from theory.proof.tactics import (
    everywhere,
    exp_monotone,
    follows,
    log_monotone,
    log_secant,
    log_tangent,
    one_positive,
    product_nonnegative,
    weak,
)
from theory.proof.terms import Fraction, Index, Term, eq, exp, inner, log, member, symbol, vector

REFERENCE = "our Theorem C, the contraction"
half = Fraction(1, 2)
Y, m, lam = symbol("Y"), symbol("m"), symbol("lam")
L = o + 2 * Y


def y(i: Index, tau: Index) -> Term:
    """The centred part of the logarithms' difference."""
    return symbol("y", i, tau)


y_k, x_k = y(i, tau), x(i, tau)
logs = log(p_k) - log(q_k)
VARIANCE = over(q_k * y_k**2)
HYPOTHESES = {
    **{
        name: sd.HYPOTHESES[name]
        for name in (
            "pi > 0",
            "q > 0",
            "pi sums to 1",
            "q sums to 1",
            "the numbers are at least lo",
            "the numbers are at most lo + o",
        )
    },
    "the logarithms differ by x - y + m": nt.each(eq(logs, x_k - y_k + m)),
    "y >= -Y": nt.each(-Y <= y_k),
    "y <= Y": nt.each(y_k <= Y),
    "y is centred": eq(over(q_k * y_k), 0),
}
in_j, in_rho = assume(member(j, nt.SEQUENCES)), assume(member(rho, others(j)))


def at(name: str) -> Proved:
    """A hypothesis at the generic constraint."""
    return at_constraint(HYPOTHESES[name])


def at_other(name: str) -> Proved:
    """A hypothesis at another generic constraint (j, rho)."""
    return everywhere(assume(HYPOTHESES[name]), (j, in_j), (rho, in_rho))


def logs_close() -> Proved:
    """log pi_j - log q_j - L <= log pi_k - log q_k."""
    other = log(pi(j, rho)) - log(q(j, rho))
    return follows(
        other - L <= logs,
        at("the logarithms differ by x - y + m"), at_other("the logarithms differ by x - y + m"),
        at("the numbers are at least lo"), at_other("the numbers are at most lo + o"),
        at("y <= Y"), at_other("y >= -Y"),
    )  # fmt: skip


def cross() -> Proved:
    """exp(-L) pi_j q_k <= pi_k q_j."""
    p_j, q_j = pi(j, rho), q(j, rho)
    exponent = log(p_j) + log(q_k) - L
    ordered = exp_monotone(follows(exponent <= log(p_k) + log(q_j), logs_close()))
    back = [kernel.exp_log(f) for f in (at("pi > 0"), at("q > 0"), at_other("pi > 0"), at_other("q > 0"))]
    pk, qk, pj, qj = back
    return follows(
        exp(-L) * p_j * q_k <= p_k * q_j,
        ordered, (exp(log(q_j)), pk), (p_k, qj), (exp(-L) * exp(log(q_k)), pj), (exp(-L) * p_j, qk),
    )  # fmt: skip


def over_others(claim: Proved) -> Proved:
    """A claim about (j, rho), summed over all constraints."""
    return kernel.sum_order(kernel.sum_order(claim, rho, others(j)), j, nt.SEQUENCES)


def least_ratio() -> Proved:
    """exp(-L) q_k <= pi_k: sum over the other constraint."""
    return follows(
        exp(-L) * q_k <= p_k,
        over_others(cross()),
        (exp(-L) * q_k, assume(HYPOTHESES["pi sums to 1"])), (p_k, assume(HYPOTHESES["q sums to 1"])),
    )  # fmt: skip


def greatest_ratio() -> Proved:
    """exp(-L) pi_k <= q_k: the same with the roles of k and j exchanged."""
    swapped = kernel.instantiate(cross(), indices={"i": j, "tau": rho, "j": i, "rho": tau})
    return follows(
        exp(-L) * p_k <= q_k,
        over_others(swapped),
        (exp(-L) * p_k, assume(HYPOTHESES["q sums to 1"])), (q_k, assume(HYPOTHESES["pi sums to 1"])),
    )  # fmt: skip


def decay_at_most_one() -> Proved:
    """exp(-L) <= 1, as o >= 0 and Y >= 0."""
    interval = at("the numbers are at least lo"), at("the numbers are at most lo + o")
    return exp_monotone(follows(-L <= 0, *interval, at("y >= -Y"), at("y <= Y")))


def term_bounded() -> Proved:
    """exp(-L) q (log pi - log q)^2 <= (pi - q)(log pi - log q)."""
    target = exp(-L) * q_k * logs**2 <= (p_k - q_k) * logs
    p, w = at("pi > 0"), at("q > 0")
    square = kernel.square(logs)
    more, less = assume(q_k <= p_k), weak(assume(p_k < q_k))
    up, down = log_monotone(more, w), log_monotone(less, p)
    small = product_nonnegative(weak(w), square)
    above = follows(
        target,
        (product_nonnegative(weak(w), follows(0 <= logs, up)), log_secant(w, p)),
        (small, decay_at_most_one()), nonzero=[w],
    )  # fmt: skip
    below = follows(
        target,
        (product_nonnegative(weak(p), follows(0 <= -logs, down)), log_secant(p, w)),
        (square, least_ratio()), nonzero=[p],
    )  # fmt: skip
    return kernel.cases(above, below, q_k, p_k)


def prove_variance() -> Proved:
    """2 (x' + z)^2 + 2 x'^2 >= z^2 for z = m' - y, x' = x - lo - o/2, |x'| <= o/2; y is centred under q."""
    offset = m + lo + half * o
    z, centred = offset - y_k, x_k - lo - half * o
    low = follows(0 <= half * o + centred, at("the numbers are at least lo"))
    high = follows(0 <= half * o - centred, at("the numbers are at most lo + o"))
    weight, decay = weak(at("q > 0")), weak(kernel.exp_positive(-L))
    split = follows(
        half * z**2 - o**2 / 4 <= logs**2,
        kernel.square(2 * centred + z), product_nonnegative(low, high),
        (logs + x_k - y_k + m, at("the logarithms differ by x - y + m")),
    )  # fmt: skip
    each = follows(
        exp(-L) * q_k * (half * z**2 - o**2 / 4) <= (p_k - q_k) * logs,
        term_bounded(), (product_nonnegative(decay, weight), split),
    )  # fmt: skip
    unit = assume(HYPOTHESES["q sums to 1"])
    return follows(
        VARIANCE_CLAIM,
        sum_constraints(each), (decay, kernel.square(offset)),
        (exp(-L) * offset**2, unit), (exp(-L) * o**2, unit),
        (exp(-L) * offset, assume(HYPOTHESES["y is centred"])),
    )  # fmt: skip


VARIANCE_CLAIM = exp(-L) * (half * VARIANCE - o**2 / 4) <= J
"""J grows with the variance."""

SPREAD_BOUNDED = over(q_k * inner(B(i, tau), DIFFERENCE) ** 2) <= lam * inner(DIFFERENCE, DIFFERENCE)
SPREAD_POSITIVE = 0 < lam
TILT_CLAIM = inner(DIFFERENCE, DIFFERENCE) <= half * (1 + exp(L)) * lam * J


def prove_tilt() -> Proved:
    """(c (pi - q) - (pi + q) <B, z>)^2/(pi + q) >= 0 with c = (1 + exp(L)) lam, summed; pi <= exp(L) q."""
    w = inner(B(i, tau), vector("z"))
    growth = kernel.exp_positive(L)
    c = (1 + exp(L)) * lam
    positive = follows(0 < c, assume(SPREAD_POSITIVE), (growth, assume(SPREAD_POSITIVE)))
    both = sd.together_positive()
    square = product_nonnegative(
        weak(kernel.inverse_positive(both)), kernel.square(c * (p_k - q_k) - (p_k + q_k) * w)
    )
    each = follows(
        c * (p_k - q_k) * w <= c**2 * (p_k - q_k) * logs / 4 + half * (1 + exp(L)) * q_k * w**2,
        square, (kernel.square(c), sd.logarithms()),
        (product_nonnegative(weak(growth), kernel.square(w)), greatest_ratio()), nonzero=[both],
    )  # fmt: skip
    summed = sum_constraints(kernel.instantiate(each, vectors={"z": DIFFERENCE}))
    weight = follows(0 <= half * (1 + exp(L)), one_positive(), growth)
    spread = assume(SPREAD_BOUNDED)
    return follows(
        TILT_CLAIM, (kernel.inverse_positive(positive), summed),
        (product_nonnegative(weight, weak(kernel.inverse_positive(positive))), spread), nonzero=[positive],
    )  # fmt: skip


# --- far from balance --------------------------------------------------------------------------------------

q_min = symbol("q_min")
WEIGHTS_LEAST, LEAST_POSITIVE = nt.each(q_min <= q_k), 0 < q_min
Z = J + o - log(q_min)
FAR_CLAIM = VARIANCE <= Z**2 * (1 / q_min - 1)
FAR = {
    **without(HYPOTHESES, "y >= -Y", "y <= Y"),
    "q_min bounds the weights": WEIGHTS_LEAST,
    "q_min > 0": LEAST_POSITIVE,
}


def generic(claim: Proved) -> Proved:
    """A claim about the constraint (i1, tau1), for the generic one."""
    return kernel.instantiate(claim, indices={"i1": i, "tau1": tau})


def forward_nonnegative() -> Proved:
    """0 <= sum pi (log pi - log q), as each term is at least pi - q."""
    p, w = at("pi > 0"), at("q > 0")
    each = follows(p_k - q_k <= p_k * logs, (p, log_secant(p, w)), nonzero=[p])
    sums = [assume(HYPOTHESES[name]) for name in ("pi sums to 1", "q sums to 1")]
    return follows(0 <= over(p_k * logs), sum_constraints(each), *sums)


def centred_above() -> Proved:
    """-y_k <= Z: log pi_k <= 0 bounds m from above, and J >= -sum q (log pi - log q) bounds it from below."""
    p, difference = at("pi > 0"), at("the logarithms differ by x - y + m")
    share = generic(co.one_of_all(weak(p), co.some_i, co.some_tau))
    small = follows(log(p_k) <= 0, log_tangent(p), share, assume(HYPOTHESES["pi sums to 1"]))
    weight = weak(at("q > 0"))
    each = follows(
        q_k * logs <= q_k * (lo + o - y_k + m),
        (weight, at("the numbers are at most lo + o")), (q_k, difference),
    )  # fmt: skip
    unit = assume(HYPOTHESES["q sums to 1"])
    back = follows(
        over(q_k * logs) <= lo + o + m,
        sum_constraints(each), assume(HYPOTHESES["y is centred"]), (lo + o + m, unit),
    )  # fmt: skip
    least = log_monotone(at_constraint(WEIGHTS_LEAST), assume(LEAST_POSITIVE))
    return follows(
        -y_k <= Z, back, forward_nonnegative(), small, difference, at("the numbers are at least lo"), least
    )


def prove_far() -> Proved:
    """q_k (y_k + Z) <= sum q (y + Z) = Z, so q_min sum q (y + Z)^2 <= Z sum q (y + Z) = Z^2."""
    weight = weak(at("q > 0"))
    positive = follows(0 <= y_k + Z, centred_above())
    share = product_nonnegative(weight, positive)
    unit, centred = assume(HYPOTHESES["q sums to 1"]), assume(HYPOTHESES["y is centred"])
    most = generic(co.one_of_all(share, co.some_i, co.some_tau))
    bounded = follows(
        q_min * (y_k + Z) <= Z, most, (Z, unit), centred, (positive, at_constraint(WEIGHTS_LEAST))
    )
    each = follows(q_min * q_k * (y_k + Z) ** 2 <= Z * q_k * (y_k + Z), (share, bounded))
    least = assume(LEAST_POSITIVE)
    whole = follows(
        q_min * (VARIANCE + Z**2) <= Z**2,
        sum_constraints(each), (Z**2, unit), (q_min * Z**2, unit), (Z, centred), (2 * q_min * Z, centred),
    )  # fmt: skip
    return follows(FAR_CLAIM, (kernel.inverse_positive(least), whole), nonzero=[least])


VARIANCE_BELOW = Theorem(
    key="divergence-variance",
    title="Close to balance the symmetric divergence is at least a variance",
    kind="lemma",
    reference=REFERENCE,
    statement=r"With $L = o + 2Y$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=VARIANCE_CLAIM,
    prove=prove_variance,
)
TILT_LOCAL = Theorem(
    key="divergence-vectors-local",
    title="Close to balance means of vectors differ by the root of the divergence times their spread",
    kind="lemma",
    reference=REFERENCE,
    statement=r"With $L = o + 2Y$: {claim}.",
    hypotheses=without(HYPOTHESES, "y is centred")
    | {"lam bounds the spread": SPREAD_BOUNDED, "lam > 0": SPREAD_POSITIVE},
    claim=TILT_CLAIM,
    prove=prove_tilt,
)
VARIANCE_ABOVE = Theorem(
    key="divergence-far",
    title="The symmetric divergence grows with the standard deviation, however far from balance",
    kind="lemma",
    reference="our Theorem B for steps of any length",
    statement=r"With $Z = J + o - \log q_{\min}$: {claim}.",
    hypotheses=FAR,
    claim=FAR_CLAIM,
    prove=prove_far,
)
PAGES = (VARIANCE_BELOW, TILT_LOCAL, VARIANCE_ABOVE)
