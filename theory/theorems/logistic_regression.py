"""The smallest worked example: logistic regression on separable data converges in direction at a finite rate.

This page needs no attention layer and may be read first. There are N examples z_k (features times label, k in
K), a linear model W, and the loss sum_k log(1 + exp(-<z_k, W>)). Its negative gradient is

    D = sum_k c_k z_k,    c_k = 1/(1 + exp(mu_k)),    mu_k = <z_k, W>  the margins of the examples.

M is the max-margin solution, the shortest vector with <z_k, M> >= 1 for all k; g* = 1/||M|| the margin of the
data and R >= ||z_k||. Nothing else is assumed. Four steps lead to the rate.

1. *The gradient sees M*: <D, M> = sum c_k <z_k, M> >= C := sum c_k, so a step along D/||D|| moves W along M.
2. *M is the best*: no W has a smallest margin above g* ||W||.
3. *Alignment*: D is nearly as well aligned with M as with W,  <D, W> <= (g* ||W|| + Lam) <D, M>.
   For with B = g* ||W|| + Lam, <D, W> - B C = sum c_k (mu_k - B). Only examples with mu_k > B count against
   us, and their weights c_k <= w_max exp(-mu_k) are so small that each adds at most w_max exp(-B - 1). The
   example of smallest margin, at most g* ||W||, counts for us by Lam w_min exp(-g* ||W||), and Lam, the
   solution of Lam exp(Lam) = (N - 1) (w_max/w_min)/e, is just large enough to outweigh the N - 1 others.
4. *Direction*: the squared norm grows by 2 e <D, W>/||D|| + e^2 in a step, and 3 turns that into growth of
   <W, M>. Added up, <W, M>/||M|| falls behind ||W|| only by a logarithm and by the steps' own lengths.

Only the tails of the loss enter, w_min exp(-max(mu_k, 0)) <= c_k <= w_max exp(-mu_k). The logistic loss has
w_min = 1/2 and w_max = 1. The rate that this gives normalized gradient descent is on the next page,
``logistic_rate``.

The attention layer differs in step 3: its c_k carry softmax factors, which cost the factor T^2 in Lam and the
hypothesis that no logit gap is below -g* ||W||.
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import potential
from theory.lemmas.potential import psi
from theory.notation import M, N, R, e, margin, s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import (
    Proved,
    assume,
    combine,
    congruence,
    discharge,
    generalize,
    specialize,
    sum_order,
    term_of_sum,
)
from theory.proof.tactics import (
    chain,
    exp_monotone,
    exp_tangent,
    follows,
    log_quotient,
    max_at_most,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    restate,
    telescoped,
    weak,
    zero,
)
from theory.proof.terms import (
    Formula,
    Fraction,
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
    lambertw,
    log,
    maximum,
    member,
    norm,
    number,
    real,
    substitute,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)

REFERENCE = "the linear prototype of the paper: logistic regression with normalized gradient descent"
half = Fraction(1, 2)

# --- the setting -------------------------------------------------------------------------------------------

EXAMPLES = finite("K")
k, k0, k1 = index("k"), index("k0"), index("k1")  # any example; that of smallest margin; one that exists
W, D = vector("W"), vector("D")
w_min, w_max = symbol("w_min"), symbol("w_max")
Lam = lambertw((N - 1) * (w_max / w_min) * exp(real(-1)))
B = margin * norm(W) + Lam


def z(k: Index) -> Vector:
    """Example k: its features times its label."""
    return vector("z", k)


def c(k: Index) -> Term:
    """Weight of example k in the negative gradient."""
    return symbol("c", k)


def alpha(k: Index) -> Term:
    """Weight of example k in the max-margin solution."""
    return symbol("alpha", k)


def mu(k: Index) -> Term:
    """Margin of example k."""
    return inner(z(k), W)


def each(body: Formula) -> Formula:
    """``body`` for every example k."""
    return forall(k, EXAMPLES, body)


def over(body: Term) -> Term:
    """The sum of ``body`` over the examples k."""
    return total(k, EXAMPLES, body)


def above_tail(weight: Term, margin_of: Term, w_min: Term = w_min) -> Formula:
    """w_min exp(-max(mu_k, 0)) <= c_k."""
    return w_min * exp(-maximum(margin_of, 0)) <= weight


def below_tail(weight: Term, margin_of: Term, w_max: Term = w_max) -> Formula:
    """c_k <= w_max exp(-mu_k)."""
    return weight <= w_max * exp(-margin_of)


SEPARABLE = each(1 <= inner(z(k), M))
BOUNDED = each(norm(z(k)) <= R)
DUAL_NONNEGATIVE = each(0 <= alpha(k))
DUAL_EXPANSION = veq(M, vtotal(k, EXAMPLES, alpha(k) * z(k)))
DUAL_MASS = eq(over(alpha(k)), inner(M, M))
COUNT = eq(N, over(real(1)))
EXISTS = member(k1, EXAMPLES)
GRADIENT = veq(D, vtotal(k, EXAMPLES, c(k) * z(k)))
TAIL_ABOVE = each(above_tail(c(k), mu(k)))
TAIL_BELOW = each(below_tail(c(k), mu(k)))
TAIL_POSITIVE = 0 < w_min
in_k, in_k0, in_k1 = (assume(member(at, EXAMPLES)) for at in (k, k0, k1))


def at(formula: Formula, example: Proved = in_k) -> Proved:
    """A hypothesis about every example, at one of them."""
    return specialize(assume(formula), example.conclusion[1], example)


def along(v: Vector) -> Proved:
    """<D, v> = sum c_k <z_k, v>."""
    hole = vector("x")
    return congruence(assume(GRADIENT), inner(hole, v), hole)


# --- 1. the gradient sees M --------------------------------------------------------------------------------


def weight_positive(example: Proved = in_k) -> Proved:
    """0 < c_k."""
    here = example.conclusion[1]
    least = product_nonnegative(assume(TAIL_POSITIVE), kernel.exp_positive(-maximum(mu(here), 0)))
    return follows(0 < c(here), least, at(TAIL_ABOVE, example))


def prove_correlation() -> Proved:
    """Each c_k <z_k, M> is at least c_k."""
    term = follows(c(k) <= c(k) * inner(z(k), M), (weak(weight_positive()), at(SEPARABLE)))
    return follows(over(c(k)) <= inner(D, M), sum_order(term, k, EXAMPLES), along(M))


# --- 2. M is the best --------------------------------------------------------------------------------------

SMALLEST = each(mu(k0) <= mu(k))


def positive_since(positive: Proved, wrong: Proved, value: Term) -> Proved:
    """0 < value, as value <= 0 would make something positive at most 0."""
    absurd = combine(zero() < zero(), [(1, positive), (1, wrong)])
    return kernel.cases(kernel.absurd(absurd, 0 < value), assume(0 < value), value, zero())


def solution_positive() -> Proved:
    """0 < ||M||: otherwise 1 <= <z_k, M> <= ||z_k|| ||M|| would be at most 0."""
    short = (norm_nonnegative(z(k1)), assume(norm(M) <= 0))
    wrong = follows(real(1) <= 0, at(SEPARABLE, in_k1), kernel.cauchy_schwarz(z(k1), M), short)
    return positive_since(one_positive(), wrong, norm(M))


def prove_optimality() -> Proved:
    """mu_k0 sum alpha <= sum alpha_k mu_k = <M, W> <= ||M|| ||W||, and sum alpha = ||M||^2."""
    term = follows(mu(k0) * alpha(k) <= alpha(k) * mu(k), (at(DUAL_NONNEGATIVE), at(SMALLEST)))
    hole, positive = vector("x"), solution_positive()
    product = follows(
        mu(k0) * norm(M) ** 2 <= norm(M) * norm(W),
        sum_order(term, k, EXAMPLES),
        congruence(assume(DUAL_EXPANSION), inner(hole, W), hole),
        (mu(k0), assume(DUAL_MASS)), (mu(k0), norm_squared(M)),
        kernel.cauchy_schwarz(M, W),
    )  # fmt: skip
    inverse = kernel.inverse_positive(positive)
    square = product_nonnegative(inverse, inverse)
    return follows(mu(k0) <= margin * norm(W), (square, product), nonzero=[positive])


# --- 3. alignment ------------------------------------------------------------------------------------------


def excess(k: Index) -> Term:
    """f_k = c_k (mu_k - B), what example k adds to <D, W> - B C."""
    return c(k) * (mu(k) - B)


HEIGHT = w_max * exp(-B - 1)  # no f_k is larger


def largest_weight_positive() -> Proved:
    """0 < w_max, as 0 < c_k <= w_max exp(-mu_k)."""
    return follows(
        0 < w_max, (kernel.exp_positive(mu(k1)), chain(weight_positive(in_k1), at(TAIL_BELOW, in_k1)))
    )


def constant_is() -> tuple[Proved, Proved]:
    """0 <= Lam, and Lam exp(Lam) = (N - 1) (w_max/w_min)/e."""
    one = term_of_sum(weak(one_positive()), k, EXAMPLES, in_k1)
    ratio = product_nonnegative(largest_weight_positive(), kernel.inverse_positive(assume(TAIL_POSITIVE)))
    ratio = product_nonnegative(ratio, kernel.exp_positive(real(-1)))
    others = follows(0 <= N - 1, one, assume(COUNT))
    argument = restate(0 <= Lam[2], product_nonnegative(others, weak(ratio)))
    return kernel.lambert_w_nonnegative(argument), kernel.lambert_w(argument)


def excess_at_most() -> Proved:
    """f_k <= w_max exp(-B - 1): not positive unless mu_k > B, and then 1 + x <= e^x at x = mu_k - B - 1."""
    height = product_nonnegative(largest_weight_positive(), kernel.exp_positive(-B - 1))
    small = follows(excess(k) <= HEIGHT, (weak(weight_positive()), assume(mu(k) <= B)), height)
    scale = product_nonnegative(largest_weight_positive(), kernel.exp_positive(-mu(k)))
    beyond = weak(assume(mu(k) > B))
    large = follows(excess(k) <= HEIGHT, (beyond, at(TAIL_BELOW)), (scale, exp_tangent(mu(k) - B - 1)))
    return kernel.cases(small, large, mu(k), B)


def smallest_excess() -> Proved:
    """f_k0 <= -(N - 1) w_max exp(-B - 1), by mu_k0 <= g* ||W|| and the choice of Lam."""
    lam = margin * norm(W)
    inverse = kernel.inverse_positive(solution_positive())
    level = product_nonnegative(weak(inverse), norm_nonnegative(W))
    largest = max_at_most(prove_optimality(), level)
    weight = exp_monotone(follows(-lam <= -maximum(mu(k0), 0), largest))
    least = follows(w_min * exp(-lam) <= c(k0), (weak(assume(TAIL_POSITIVE)), weight), at(TAIL_ABOVE, in_k0))
    constant, choice = constant_is()
    return follows(
        excess(k0) <= -(N - 1) * HEIGHT,
        (weak(weight_positive(in_k0)), prove_optimality()), (constant, least), (w_min * exp(-B), choice),
        nonzero=[assume(TAIL_POSITIVE)],
    )  # fmt: skip


def prove_alignment() -> Proved:
    """sum f_k <= 0, as f_k0 makes up for the N - 1 others; so <D, W> <= B C <= B <D, M>."""
    spare = follows(0 <= HEIGHT - excess(k), excess_at_most())
    together = follows(
        over(excess(k)) <= 0,
        term_of_sum(spare, k, EXAMPLES, in_k0), smallest_excess(), (HEIGHT, assume(COUNT)),
    )  # fmt: skip
    together = kernel.least(together, [(k0, EXAMPLES)], mu(k0), [in_k1])
    constant, _ = constant_is()
    inverse = kernel.inverse_positive(solution_positive())
    positive = follows(0 <= B, constant, (weak(inverse), norm_nonnegative(W)))
    return follows(ALIGNED, together, along(W), (positive, prove_correlation()))


ALIGNED = inner(D, W) <= B * inner(D, M)

# --- 4. direction ------------------------------------------------------------------------------------------

SEVERAL = 1 < N
START = number(0)


def iterate(at: Index) -> Vector:
    """W_t."""
    return vector("W", at)


def size(at: Index) -> Term:
    """||W_t||."""
    return norm(iterate(at))


def component(at: Index) -> Term:
    """<W_t, M>/||M||."""
    return margin * inner(iterate(at), M)


def moved(claim: Proved, at: Index) -> Proved:
    """A claim about any W, at W_t; each hypothesis about W is drawn from the one for all t."""
    now = kernel.instantiate(claim, **families(at))
    drawn = (specialize(assume(nt.always(substitute(f, **families(t)))), at) for f in claim.hypotheses)
    return discharge(now, *(d for d in drawn if d.conclusion not in claim.hypotheses))


def families(at: Index) -> dict[str, Any]:
    """What W, D and c are at the step t."""
    return {
        "vectors": {"W": ((), iterate(at)), "D": ((), vector("D", at))},
        "reals": {"c": (("k",), symbol("c", at, k))},
    }


def descent_positive() -> Proved:
    """0 < ||D||, as 0 < c_k1 <= C <= <D, M> <= ||D|| ||M||."""
    one = term_of_sum(weak(weight_positive()), k, EXAMPLES, in_k1)
    short = (norm_nonnegative(M), assume(norm(D) <= 0))
    wrong = follows(c(k1) <= 0, one, prove_correlation(), kernel.cauchy_schwarz(D, M), short)
    return positive_since(weight_positive(in_k1), wrong, norm(D))


def constant_positive() -> Proved:
    """0 < Lam when there are two examples: otherwise Lam exp(Lam) would be at most 0."""
    _, choice = constant_is()
    ratio = product_nonnegative(largest_weight_positive(), kernel.inverse_positive(assume(TAIL_POSITIVE)))
    ratio = product_nonnegative(ratio, kernel.exp_positive(real(-1)))
    argument = product_nonnegative(follows(0 < N - 1, assume(SEVERAL)), ratio)
    wrong = follows(argument.conclusion[2] <= 0, choice, (weak(kernel.exp_positive(Lam)), assume(Lam <= 0)))
    return positive_since(argument, wrong, Lam)


def threshold_positive(at: Index) -> Proved:
    """0 < g* ||W_t|| + Lam."""
    g_star = kernel.inverse_positive(solution_positive())
    return follows(
        0 < margin * size(at) + Lam,
        moved(constant_positive(), START),
        (g_star, norm_nonnegative(iterate(at))),
    )


def progress(at: Index) -> Term:
    """psi(||W_t||) - <W_t, M>/||M||, with psi(u) = u - Lam/g* log(g* u + Lam)."""
    return psi(size(at), margin, Lam) - component(at)


def curvature(at: Index) -> Term:
    """e^2/(||W|| + Lam/g*), what the length of a step costs, twice."""
    return e(at) ** 2 / (size(at) + Lam / margin)


def one_step() -> Proved:
    """psi(||W||) - <W, M>/||M|| grows by at most half the curvature term in a step."""
    now, hole = vector("D", s), vector("x")
    update = specialize(assume(nt.update_is()), s)
    length = moved(descent_positive(), s)
    pull = e(s) / norm(now)
    pace = follows(0 <= pull, (specialize(assume(nt.STEPS_NONNEGATIVE), s), kernel.inverse_positive(length)))
    threshold = margin * size(s) + Lam
    turned = follows(
        half * (size(s + 1) ** 2 - size(s) ** 2 - e(s) ** 2)
        <= threshold * inner(iterate(s + 1) - iterate(s), M),
        (pace, moved(prove_alignment(), s)),
        congruence(update, inner(hole, hole), hole), (threshold, congruence(update, inner(hole, M), hole)),
        norm_squared(iterate(s + 1)), norm_squared(iterate(s)), (pull**2, norm_squared(now)),
        nonzero=[length],
    )  # fmt: skip
    g_star = kernel.inverse_positive(solution_positive())
    positive = threshold_positive(s)
    concave = kernel.instantiate(
        potential.CONCAVE.proved(), reals={"u": size(s), "v": size(s + 1), "m": margin, "l": Lam}
    )
    sizes = (norm_nonnegative(iterate(s)), norm_nonnegative(iterate(s + 1)))
    constant = moved(constant_is()[0], START)
    concave = discharge(concave, g_star, constant, *sizes, positive)
    solution = solution_positive()
    scaled = follows(0 < size(s) + Lam / margin, (solution, positive), nonzero=[solution])
    rate = product_nonnegative(g_star, kernel.inverse_positive(positive))
    return follows(
        progress(s + 1) - progress(s) <= half * curvature(s), concave, (rate, turned),
        nonzero=[positive, scaled, solution],
    )  # fmt: skip


def all_steps(at: Index) -> Proved:
    """The steps before t, added up."""
    return follows(
        progress(at) - progress(START) <= half * total(s, below(at), curvature(s)),
        sum_order(one_step(), s, below(at)), telescoped(progress, at),
    )  # fmt: skip


def prove_direction() -> Proved:
    """All steps together, with the two logarithms of the potential as one."""
    quotient = log_quotient(threshold_positive(t), threshold_positive(START))
    claim = follows(lag(t) <= LAG_BOUND, all_steps(t), (Lam / margin, quotient))
    return generalize(claim, t, nt.NATURALS)


def lag(at: Index) -> Term:
    """||W_t|| - <W_t, M>/||M||, that is ||W_t|| (1 - cos)."""
    return size(at) - component(at)


TURNED = Lam / margin * log((margin * size(t) + Lam) / (margin * size(START) + Lam))
LAG_BOUND = lag(START) + TURNED + half * total(s, below(t), curvature(s))

DATA = {
    "the data are separable": SEPARABLE,
    "there is an example": EXISTS,
}
OPTIMAL = {
    "alpha >= 0": DUAL_NONNEGATIVE,
    "M is a combination of the examples": DUAL_EXPANSION,
    "complementary slackness": DUAL_MASS,
}
LOSS = {
    "gradient": GRADIENT,
    "w_min > 0": TAIL_POSITIVE,
    "weights from below": TAIL_ABOVE,
    "weights from above": TAIL_BELOW,
}
RUN = {
    "gradient": nt.always(substitute(GRADIENT, **families(t))),
    "w_min > 0": TAIL_POSITIVE,
    "weights from below": nt.always(substitute(TAIL_ABOVE, **families(t))),
    "weights from above": nt.always(substitute(TAIL_BELOW, **families(t))),
    "N counts the examples": COUNT,
    "there are two examples": SEVERAL,
    "update": nt.update_is(),
}
CORRELATION = Theorem(
    key="logistic-separator",
    title="The negative gradient sees the max-margin solution",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses={name: LOSS[name] for name in ("gradient", "w_min > 0", "weights from below")}
    | {"the data are separable": SEPARABLE},
    claim=over(c(k)) <= inner(D, M),
    prove=prove_correlation,
)
OPTIMALITY = Theorem(
    key="logistic-optimality",
    title="The max-margin solution has the largest smallest margin",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If no margin of $W$ is below that of the example $k_0$: {claim}.",
    hypotheses=DATA | OPTIMAL | {"k0 has the smallest margin": SMALLEST},
    claim=mu(k0) <= margin * norm(W),
    prove=prove_optimality,
)
ALIGNMENT = Theorem(
    key="logistic-alignment",
    title="The negative gradient is nearly as well aligned with the max-margin solution as with the weights",
    kind="lemma",
    reference=REFERENCE,
    statement=r"For every $W$: {claim}.",
    hypotheses=DATA | OPTIMAL | LOSS | {"N counts the examples": COUNT},
    claim=ALIGNED,
    prove=prove_alignment,
)
DIRECTION = Theorem(
    key="logistic-direction",
    title="For any step sizes the weights turn towards the max-margin solution",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$, from any start: {claim}; the left side is $\|W_t\|(1 - \cos)$.",
    hypotheses=DATA | OPTIMAL | RUN | {"steps are nonnegative": nt.STEPS_NONNEGATIVE},
    claim=nt.always(lag(t) <= LAG_BOUND),
    prove=prove_direction,
)
PAGES = (CORRELATION, OPTIMALITY, ALIGNMENT, DIRECTION)
