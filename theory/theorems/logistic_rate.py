"""The rate of normalized gradient descent on the logistic loss, with nothing left but the data's constants.

Continues ``logistic_regression``. From W_0 = 0 with e_t = eta, for every t, at the step t + 1:

    1 - cos(W_(t+1), M) <= R/(g* eta (t + 1)) [ Lam/g* log(1 + g* eta (t + 1)/Lam) + eta^2 g*/(2 Lam)
                                               + eta R/(2 g*) log(1 + g*^2 eta t/(R Lam)) ],

Lam exp(Lam) = 2 (N - 1)/e for the logistic loss, (N - 1)/e for the exponential loss: 1 - cos is O(log t/t).

Proof. In the direction theorem ||W_t|| <= eta t bounds the logarithm, and ||W_s|| >= g* eta s/R (a step adds
at least eta/R to <W, M>) makes the last sum a harmonic one. Divide by ||W_(t+1)|| >= g* eta (t + 1)/R.
"""

from __future__ import annotations

from collections.abc import Callable

from theory import notation as nt
from theory.lemmas.harmonic_sum import HARMONIC, log_ratio
from theory.notation import M, N, R, e, eta, margin, path_length, s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import (
    Proved,
    assume,
    congruence,
    discharge,
    generalize,
    induction,
    specialize,
    sum_order,
)
from theory.proof.tactics import (
    chain,
    equation,
    exp_monotone,
    follows,
    inverse_order,
    log_monotone,
    max_above,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    restate,
    weak,
)
from theory.proof.terms import (
    Formula,
    Index,
    Term,
    as_real,
    below,
    eq,
    exp,
    inner,
    lambertw,
    log,
    maximum,
    norm,
    real,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)
from theory.theorems import normalized_gd
from theory.theorems.logistic_regression import (
    BOUNDED,
    DATA,
    EXAMPLES,
    OPTIMAL,
    REFERENCE,
    RUN,
    SEPARABLE,
    START,
    D,
    Lam,
    above_tail,
    all_steps,
    along,
    at,
    below_tail,
    c,
    constant_positive,
    descent_positive,
    half,
    in_k1,
    iterate,
    k,
    k1,
    lag,
    moved,
    positive_since,
    prove_correlation,
    size,
    solution_positive,
    threshold_positive,
    weight_positive,
    z,
)

STEP_POSITIVE = 0 < eta
STARTS_AT_ZERO = eq(norm(iterate(START)), 0)


def radius_positive() -> Proved:
    """0 < R, as 1 <= <z_k, M> <= R ||M||."""
    reach = kernel.cauchy_schwarz(z(k1), M)
    bounded = (norm_nonnegative(M), at(BOUNDED, in_k1))
    wrong = follows(real(1) <= 0, at(SEPARABLE, in_k1), reach, bounded, (norm_nonnegative(M), assume(R <= 0)))
    return positive_since(one_positive(), wrong, R)


def descent_sees_solution() -> Proved:
    """||D|| <= R <D, M>: ||D||^2 = sum c_k <z_k, D> <= R C ||D||."""
    length = descent_positive()
    reach = follows(
        inner(z(k), D) <= R * norm(D),
        kernel.cauchy_schwarz(z(k), D), (norm_nonnegative(D), at(BOUNDED)),
    )  # fmt: skip
    term = follows(c(k) * inner(z(k), D) <= R * norm(D) * c(k), (weak(weight_positive()), reach))
    product = product_nonnegative(radius_positive(), length)
    squared = follows(
        norm(D) ** 2 <= norm(D) * (R * inner(D, M)),
        sum_order(term, k, EXAMPLES), along(D), norm_squared(D), (weak(product), prove_correlation()),
    )  # fmt: skip
    return follows(norm(D) <= R * inner(D, M), (kernel.inverse_positive(length), squared), nonzero=[length])


def steps_nonnegative() -> Proved:
    """0 <= e_t, for every t, as e_t = eta."""
    step = follows(0 <= e(t), assume(STEP_POSITIVE), specialize(assume(normalized_gd.RULE), t))
    return generalize(step, t, nt.NATURALS)


def component_grows() -> Proved:
    """<W_t, M> >= <W_0, M> + E_t/R for every t, by induction: a step adds e <D, M>/||D|| >= e/R."""
    claim = inner(iterate(START), M) + path_length(t) / R <= inner(iterate(t), M)
    hole = vector("x")
    step = congruence(specialize(assume(nt.update_is()), t), inner(hole, M), hole)
    length, radius = moved(descent_positive(), t), radius_positive()
    inverses = product_nonnegative(kernel.inverse_positive(length), kernel.inverse_positive(radius))
    pace = product_nonnegative(specialize(steps_nonnegative(), t), weak(inverses))
    after = inner(iterate(START), M) + path_length(t + 1) / R <= inner(iterate(t + 1), M)
    grown = follows(
        after, assume(claim), step, (pace, moved(descent_sees_solution(), t)), nonzero=[length, radius]
    )
    base = inner(iterate(START), M) + path_length(START) / R <= inner(iterate(START), M)
    return induction(equation(base), grown, t)


def least_size(at: Term) -> Term:
    """g* eta t/R."""
    return margin * eta * at / R


def size_at_least(at: Index) -> Proved:
    """g* eta t/R <= ||W_t||: E_t = eta t, and <W_0, M> = 0."""
    solution = solution_positive()
    g_star = kernel.inverse_positive(solution)
    return follows(
        least_size(as_real(at)) <= size(at),
        (g_star, specialize(component_grows(), at)), (g_star, kernel.cauchy_schwarz(iterate(at), M)),
        (g_star, start_sees_nothing()), (margin / R, specialize(normalized_gd.PATH.proved(), at)),
        nonzero=[solution],
    )  # fmt: skip


def start_sees_nothing() -> Proved:
    """0 <= <W_0, M>."""
    opposite = kernel.cauchy_schwarz(-1 * iterate(START), M)
    return follows(0 <= inner(iterate(START), M), opposite, (norm(M), assume(STARTS_AT_ZERO)))


def size_at_most(at: Index) -> Proved:
    """||W_t|| <= eta t."""
    above = discharge(specialize(normalized_gd.UPPER.proved(), at), weak(assume(STEP_POSITIVE)))
    return follows(size(at) <= eta * as_real(at), above, assume(STARTS_AT_ZERO))


SLACK = Lam / margin
PACE = margin * eta / R


def sizes_sum() -> Proved:
    """The sum of 1/(||W_s|| + Lam/g*) over s <= t, by ||W_s|| >= g* eta s/R."""
    solution = solution_positive()
    pace = product_nonnegative(kernel.inverse_positive(solution), assume(STEP_POSITIVE))
    pace = product_nonnegative(pace, kernel.inverse_positive(radius_positive()))
    slack = restate(0 < SLACK, product_nonnegative(moved(constant_positive(), START), solution))
    low = follows(0 < PACE * as_real(s) + SLACK, (weak(pace), kernel.natural(s)), slack)
    each = inverse_order(follows(low.conclusion[2] <= size(s) + SLACK, size_at_least(s)), low)
    harmonic = specialize(kernel.instantiate(HARMONIC.proved(), reals={"r": PACE, "l": SLACK}), t)
    harmonic = discharge(harmonic, pace, slack)
    bound = 1 / SLACK + log(1 + margin**2 * eta * as_real(t) / (R * Lam)) / PACE
    return follows(
        total(s, below(t + 1), 1 / (size(s) + SLACK)) <= bound, sum_order(each, s, below(t + 1)), harmonic
    )


def gap(at: Index) -> Term:
    """1 - cos(W_t, M)."""
    return 1 - inner(iterate(at), M) / (size(at) * norm(M))


def bracket(constant: Term) -> Term:
    """The bound on ||W_(t+1)|| (1 - cos), for a value of Lam."""
    turned = constant / margin * log(1 + margin * eta * as_real(t + 1) / constant)
    first = eta**2 * margin / (2 * constant)
    later = eta * R / (2 * margin) * log(1 + margin**2 * eta * as_real(t) / (R * constant))
    return turned + first + later


def rate_bound(constant: Term) -> Term:
    """The bound on 1 - cos at the step t + 1, for a value of Lam."""
    return R / (margin * eta * as_real(t + 1)) * bracket(constant)


def lag_at_most() -> Proved:
    """||W_(t+1)|| (1 - cos) is at most the bracket of the bound."""
    hole, constant = symbol("x"), moved(constant_positive(), START)
    solution, step = solution_positive(), assume(STEP_POSITIVE)
    g_star = kernel.inverse_positive(solution)
    square = congruence(specialize(assume(normalized_gd.RULE), s), hole**2 / (size(s) + SLACK), hole)
    far = follows(
        0 < margin * eta * as_real(t + 1) + Lam,
        constant, (weak(product_nonnegative(g_star, step)), kernel.natural(t + 1)),
    )  # fmt: skip
    grown = follows(margin * size(t + 1) + Lam <= far.conclusion[2], (g_star, size_at_most(t + 1)))
    turned = log_ratio(margin * eta * as_real(t + 1) / Lam, far, constant)
    share = product_nonnegative(constant, solution)
    return follows(
        lag(t + 1) <= bracket(Lam),
        all_steps(t + 1), sum_order(square, s, below(t + 1)), (kernel.square(eta), sizes_sum()),
        (share, log_monotone(grown, threshold_positive(t + 1))), (Lam / margin, turned),
        (Lam / margin, congruence(assume(STARTS_AT_ZERO), log(margin * hole + Lam), hole)),
        assume(STARTS_AT_ZERO), (g_star, start_sees_nothing()),
        nonzero=[constant, solution, step, radius_positive()],
    )  # fmt: skip


def prove_rate() -> Proved:
    """||W_(t+1)|| (1 - cos) is at most the bracket, and ||W_(t+1)|| at least g* eta (t + 1)/R."""
    solution, radius, after = solution_positive(), radius_positive(), t + 1
    pace = product_nonnegative(kernel.inverse_positive(solution), assume(STEP_POSITIVE))
    path = product_nonnegative(pace, follows(0 < as_real(after), kernel.natural(t), one_positive()))
    low = follows(0 < least_size(as_real(after)), (kernel.inverse_positive(radius), path))
    length = chain(low, size_at_least(after))
    inverses = product_nonnegative(kernel.inverse_positive(solution), kernel.inverse_positive(length))
    nonnegative = follows(
        0 <= gap(after), (inverses, kernel.cauchy_schwarz(iterate(after), M)), nonzero=[solution, length]
    )
    behind = follows(
        margin * eta * as_real(after) * gap(after) <= R * lag(after),
        (product_nonnegative(weak(radius), nonnegative), size_at_least(after)),
        nonzero=[solution, length, radius],
    )  # fmt: skip
    scaled = follows(behind.conclusion[1] <= R * bracket(Lam), behind, (radius, lag_at_most()))
    claim = follows(gap(after) <= rate_bound(Lam), (kernel.inverse_positive(path), scaled), nonzero=[path])
    return generalize(discharge(claim, steps_nonnegative()), t, nt.NATURALS)


# --- 6. the logistic and the exponential loss --------------------------------------------------------------


m = symbol("m")  # the margin of an example


def logistic(k: Index, at: Index) -> Term:
    """The weights of the logistic loss at W_t."""
    return 1 / (1 + exp(inner(z(k), iterate(at))))


def exponential(k: Index, at: Index) -> Term:
    """The weights of the exponential loss at W_t."""
    return exp(-inner(z(k), iterate(at)))


def gradient_of(weight: Callable[[Index, Index], Term]) -> Formula:
    """The negative gradient at every step, by the weights of a loss."""
    return nt.always(veq(vector("D", t), vtotal(k, EXAMPLES, weight(k, t) * z(k))))


def prove_logistic_below() -> Proved:
    """1/(1 + exp(m)) <= exp(-m)."""
    return follows(
        LOGISTIC_BELOW,
        (kernel.inverse_positive(denominator()), kernel.exp_positive(-m)),
        nonzero=[denominator()],
    )


def denominator() -> Proved:
    """0 < 1 + exp(m)."""
    return follows(0 < 1 + exp(m), one_positive(), kernel.exp_positive(m))


def prove_logistic_above() -> Proved:
    """exp(-max(m, 0))/2 <= 1/(1 + exp(m)), as exp(m) and 1 are at most exp(max(m, 0))."""
    top = maximum(m, 0)
    grows, starts = max_above(m, 0)
    weight = product_nonnegative(kernel.inverse_positive(denominator()), kernel.exp_positive(-top))
    return follows(
        LOGISTIC_ABOVE,
        (weak(weight), exp_monotone(grows)), (weak(weight), exp_monotone(starts)), nonzero=[denominator()],
    )  # fmt: skip


LOGISTIC_BELOW = below_tail(1 / (1 + exp(m)), m, real(1))
LOGISTIC_ABOVE = above_tail(1 / (1 + exp(m)), m, real(half))


def at_every_example(claim: Proved) -> Proved:
    """A claim about a margin m, at every example and every step."""
    here = kernel.instantiate(claim, reals={"m": inner(z(k), iterate(t))})
    return generalize(generalize(here, k, EXAMPLES), t, nt.NATURALS)


def prove_logistic_rate() -> Proved:
    """The tails of the logistic loss: w_max/w_min = 2."""
    weights = {"c": (("t", "k"), logistic(k, t)), "w_min": real(half), "w_max": real(1)}
    rate = kernel.instantiate(RATE.proved(), reals=weights)
    half_positive = follows(0 < real(half), one_positive())
    rate = discharge(
        rate,
        half_positive,
        at_every_example(prove_logistic_above()),
        at_every_example(prove_logistic_below()),
    )
    claim = follows(gap(t + 1) <= rate_bound(LOGISTIC_CONSTANT), specialize(rate, t))
    return generalize(claim, t, nt.NATURALS)


def prove_exponential_rate() -> Proved:
    """The tails of the exponential loss: w_max/w_min = 1."""
    weights = {"c": (("t", "k"), exponential(k, t)), "w_min": real(1), "w_max": real(1)}
    rate = kernel.instantiate(RATE.proved(), reals=weights)
    same = equation(below_tail(exp(-m), m, real(1)))
    more = follows(
        above_tail(exp(-m), m, real(1)), exp_monotone(follows(-maximum(m, 0) <= -m, max_above(m, 0)[0]))
    )
    rate = discharge(rate, one_positive(), at_every_example(more), at_every_example(same))
    claim = follows(gap(t + 1) <= rate_bound(EXPONENTIAL_CONSTANT), specialize(rate, t))
    return generalize(claim, t, nt.NATURALS)


EXPONENTIAL_CONSTANT = lambertw((N - 1) * exp(real(-1)))
LOGISTIC_CONSTANT = lambertw(2 * (N - 1) * exp(real(-1)))

NORMALIZED = {
    "R bounds the examples": BOUNDED,
    "normalized gradient descent": normalized_gd.RULE,
    "eta > 0": STEP_POSITIVE,
    "W_0 is 0": STARTS_AT_ZERO,
}
COUNTED = {name: RUN[name] for name in ("N counts the examples", "there are two examples", "update")}
KNOWN_LOSS = DATA | OPTIMAL | NORMALIZED | COUNTED

RATE = Theorem(
    key="exponential-tail-rate",
    title="Normalized gradient descent on a loss with exponential tails converges in direction",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$, at the step $t + 1$: {claim}.",
    hypotheses=DATA | OPTIMAL | RUN | NORMALIZED,
    claim=nt.always(gap(t + 1) <= rate_bound(Lam)),
    prove=prove_rate,
)
LOGISTIC_RATE = Theorem(
    key="logistic-rate",
    title="Normalized gradient descent on the logistic loss converges in direction",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$, at the step $t + 1$: {claim}.",
    hypotheses=KNOWN_LOSS | {"gradient": gradient_of(logistic)},
    claim=nt.always(gap(t + 1) <= rate_bound(LOGISTIC_CONSTANT)),
    prove=prove_logistic_rate,
)
EXPONENTIAL_RATE = Theorem(
    key="exponential-rate",
    title="Normalized gradient descent on the exponential loss converges in direction",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$, at the step $t + 1$: {claim}.",
    hypotheses=KNOWN_LOSS | {"gradient": gradient_of(exponential)},
    claim=nt.always(gap(t + 1) <= rate_bound(EXPONENTIAL_CONSTANT)),
    prove=prove_exponential_rate,
)
PAGES = (RATE, LOGISTIC_RATE, EXPONENTIAL_RATE)
