"""The symmetric divergence of two distributions bounds what they tell apart.

For positive weights pi, q over the constraints, each summing to 1, let
J = sum (pi_k - q_k)(log pi_k - log q_k) (the Kullback-Leibler divergences of both directions added). Then

* J >= 0;
* || sum (pi_k - q_k) B_k ||^2 <= R_B^2 J for vectors with ||B_k|| <= R_B;
* sum (pi_k - q_k) x_k <= l J/2 + o^2/(8 l) for every l > 0 and numbers x_k in an interval of length o.

All three come from J >= 2 sum (pi_k - q_k)^2/(pi_k + q_k), the logarithmic mean, term by term.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import log_mean
from theory.lemmas.separator_correlation import at_constraint, sum_constraints
from theory.notation import i, others, over, tau
from theory.page import Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge
from theory.proof.tactics import follows, norm_nonnegative, norm_squared, product_nonnegative, weak
from theory.proof.terms import Fraction, Index, Term, Vector, eq, inner, log, norm, symbol, vector, vtotal

REFERENCE = "our Theorem B, the entropy step"
half = Fraction(1, 2)
R_B, lo, o, ell = symbol("R_B"), symbol("lo"), symbol("o"), symbol("l")


def pi(i: Index, tau: Index) -> Term:
    """The first distribution."""
    return symbol("pi", i, tau)


def q(i: Index, tau: Index) -> Term:
    """The second distribution."""
    return symbol("q", i, tau)


def B(i: Index, tau: Index) -> Vector:
    """The vector of constraint k."""
    return vector("B", i, tau)


def x(i: Index, tau: Index) -> Term:
    """The number of constraint k."""
    return symbol("x", i, tau)


def divergence(pi: Term, q: Term) -> Term:
    """J, the symmetric divergence of two distributions given at the generic constraint."""
    return over((pi - q) * (log(pi) - log(q)))


p_k, q_k = pi(i, tau), q(i, tau)
J = divergence(p_k, q_k)
DIFFERENCE = vtotal(i, nt.SEQUENCES, vtotal(tau, others(i), (p_k - q_k) * B(i, tau)))
HYPOTHESES = {
    "pi > 0": nt.each(0 < p_k),
    "q > 0": nt.each(0 < q_k),
    "pi sums to 1": eq(over(p_k), 1),
    "q sums to 1": eq(over(q_k), 1),
    "R_B bounds the vectors": nt.each(norm(B(i, tau)) <= R_B),
    "the numbers are at least lo": nt.each(lo <= x(i, tau)),
    "the numbers are at most lo + o": nt.each(x(i, tau) <= lo + o),
    "l > 0": 0 < ell,
}


def at(name: str) -> Proved:
    """A hypothesis at the generic constraint."""
    return at_constraint(HYPOTHESES[name])


def logarithms() -> Proved:
    """2 (pi - q)^2/(pi + q) <= (pi - q)(log pi - log q)."""
    return discharge(
        kernel.instantiate(log_mean.LOG_MEAN.proved(), reals={"a": p_k, "b": q_k}), at("pi > 0"), at("q > 0")
    )


def together_positive() -> Proved:
    """0 < pi + q."""
    return follows(0 < p_k + q_k, at("pi > 0"), at("q > 0"))


def term_nonnegative() -> Proved:
    """0 <= (pi - q)(log pi - log q)."""
    both = together_positive()
    square = product_nonnegative(weak(kernel.inverse_positive(both)), kernel.square(p_k - q_k))
    return follows(0 <= (p_k - q_k) * (log(p_k) - log(q_k)), logarithms(), square)


def prove_nonnegative() -> Proved:
    """Each term is nonnegative."""
    return follows(0 <= J, sum_constraints(term_nonnegative()))


def prove_vectors() -> Proved:
    """For y = sum (pi - q) B: ||2 (pi - q) B - (pi + q) y||^2/(pi + q) >= 0, summed; sum (pi + q) = 2."""
    y, both, b = vector("y"), together_positive(), B(i, tau)
    apart = (2 * (p_k - q_k)) * b - (p_k + q_k) * y
    long, size = at("R_B bounds the vectors"), norm_nonnegative(b)
    radius = follows(0 <= R_B, size, long)
    reach = follows(inner(b, b) <= R_B**2, (size, long), (radius, long), norm_squared(b))
    term = (p_k - q_k) * (log(p_k) - log(q_k))
    each = follows(
        4 * (p_k - q_k) * inner(b, y) <= 2 * R_B**2 * term + (p_k + q_k) * inner(y, y),
        (kernel.inverse_positive(both), kernel.inner_nonnegative(apart)),
        (kernel.inner_nonnegative(b), logarithms()), (term_nonnegative(), reach),
        nonzero=[both],
    )  # fmt: skip
    each = kernel.instantiate(each, vectors={"y": DIFFERENCE})
    sums = [(inner(DIFFERENCE, DIFFERENCE), assume(HYPOTHESES[name])) for name in SUMS]
    return follows(VECTORS_CLAIM, sum_constraints(each), *sums)


def prove_numbers() -> Proved:
    """(2 l (pi - q) - (pi + q) z)^2/(pi + q) >= 0, summed, for z = x - lo - o/2, which is at most o/2."""
    both, z = together_positive(), x(i, tau) - lo - half * o
    low = follows(0 <= half * o + z, at("the numbers are at least lo"))
    high = follows(0 <= half * o - z, at("the numbers are at most lo + o"))
    positive = assume(HYPOTHESES["l > 0"])
    inverse = kernel.inverse_positive(positive)
    square = product_nonnegative(
        product_nonnegative(inverse, kernel.inverse_positive(both)),
        kernel.square(2 * ell * (p_k - q_k) - (p_k + q_k) * z),
    )
    weight = product_nonnegative(inverse, both)
    term = (p_k - q_k) * (log(p_k) - log(q_k))
    each = follows(
        (p_k - q_k) * z <= half * ell * term + (p_k + q_k) * o**2 / (16 * ell),
        square, (positive, logarithms()), (weak(weight), product_nonnegative(low, high)),
        nonzero=[both, positive],
    )  # fmt: skip
    sums = [(m, assume(HYPOTHESES[name])) for name in SUMS for m in (lo + half * o, o**2 / ell)]
    return follows(NUMBERS_CLAIM, sum_constraints(each), *sums)


SUMS = ("pi sums to 1", "q sums to 1")
VECTORS_CLAIM = inner(DIFFERENCE, DIFFERENCE) <= R_B**2 * J
NUMBERS_CLAIM = over((p_k - q_k) * x(i, tau)) <= ell * J / 2 + o**2 / (8 * ell)
DISTRIBUTIONS = {name: HYPOTHESES[name] for name in ("pi > 0", "q > 0")}

NONNEGATIVE = Theorem(
    key="divergence-nonnegative",
    title="The symmetric divergence is nonnegative",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=DISTRIBUTIONS,
    claim=0 <= J,
    prove=prove_nonnegative,
)
VECTORS = Theorem(
    key="divergence-vectors",
    title="Means of bounded vectors differ by at most the root of the symmetric divergence",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses=DISTRIBUTIONS | {name: HYPOTHESES[name] for name in (*SUMS, "R_B bounds the vectors")},
    claim=VECTORS_CLAIM,
    prove=prove_vectors,
)
NUMBERS = Theorem(
    key="divergence-numbers",
    title="Means of numbers in an interval differ by at most the root of the symmetric divergence",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $l > 0$: {claim}.",
    hypotheses=without(HYPOTHESES, "R_B bounds the vectors"),
    claim=NUMBERS_CLAIM,
    prove=prove_numbers,
)
PAGES = (NONNEGATIVE, VECTORS, NUMBERS)
