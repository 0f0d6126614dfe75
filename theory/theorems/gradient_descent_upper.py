"""Plain gradient descent, upper bound: its path grows at most like log t, so it is exponentially slower.

From any step t1 on with every logit gap at least theta g* ||W||, theta > 0,

    E_(t1+t) <= E_t1 + (1/q) log(1 + (exp(x) - 1) t),    q = theta g*^2/R,
    x = theta g*^2 eta N a_max exp(-theta g* <W_t1, M>/||M||).

This holds as soon as the direction has settled for good, 1 - cos <= (1 - theta)^2 g*^2/(2 R^2). Normalized
gradient descent has E_t = eta t: to gain what that gains in k steps, gradient descent needs at least
(exp(q eta k) - 1)/(exp(x) - 1) steps.

Proof. ||grad L|| <= R N a_max exp(-theta g* ||W||) and g* ||W|| grows with the path, so that
q e <= x exp(-q (E - E_t1)); the step adds most to exp(q (E - E_t1)) where that is 1, namely exp(x) - 1.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import separator_correlation as lemma1
from theory.lemmas.definitions import NAMES, from_definitions
from theory.lemmas.gradient_size import UPPER as GRADIENT_UPPER
from theory.notation import STATIC as L
from theory.notation import M, N, R, a_max, e, eta, i, layer, margin, path_length, s, t, tau
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, induction, specialize
from theory.proof.tactics import (
    chain,
    equation,
    exp_monotone,
    exp_tangent,
    follows,
    log_monotone,
    one_positive,
    product_nonnegative,
    weak,
)
from theory.proof.terms import (
    Index,
    Term,
    as_real,
    below,
    eq,
    exp,
    index,
    inner,
    log,
    norm,
    number,
    symbol,
    total,
    vector,
)
from theory.theorems import normalized_gd, sparsification
from theory.theorems.direction import at_step
from theory.theorems.gradient_descent import (
    RULES,
    STEP_NONNEGATIVE,
    gained,
    prove_steps_nonnegative,
    the_step,
)
from theory.theorems.sparsification import theta

REFERENCE = "our corollaries of Theorem A; the paper's comparison with plain gradient descent"
t1, k = index("t1"), index("k")
ZERO = number(0)
x, y, w = symbol("x"), symbol("y"), symbol("w")
eta_ngd = symbol("eta_ngd")


def e_ngd(t: Index) -> Term:
    """Step length of the run that gradient descent is compared with."""
    return symbol("e_ngd", t)


LOGIT_RATE = theta * margin**2 / R  # q: how fast the smallest gap grows with the path
FIRST_STEP = theta * margin**2 * eta * N * a_max * exp(-theta * margin**2 * inner(layer(t1).W, M))  # x
THETA_POSITIVE = 0 < theta
GAPS_SEPARATED = nt.always(nt.each(theta * nt.lam(layer(t1 + t)) <= layer(t1 + t).gap(i, tau)))
SETTLED_FOR_GOOD = nt.always(sparsification.settled(layer(t1 + t)))
CAUGHT_UP = total(s, below(k), e_ngd(s)) <= gained(t1, t)
Y_NONNEGATIVE = 0 <= y
INCREASE_CLAIM = exp(y + x * exp(-y)) <= exp(y) + exp(x) - 1


def grown_at_most(t: Index) -> Term:
    """The bound on exp(q (E_(t1+t) - E_t1)) after t steps."""
    return 1 + (exp(FIRST_STEP) - 1) * as_real(t)


def prove_increase() -> Proved:
    """exp(y) (exp(x exp(-y)) - 1) shrinks in y: its slope is exp(y) (e^z (1 - z) - 1), z = x exp(-y)."""
    z = x * exp(-w)
    body = exp(w + z) - exp(w)
    slope = (1 - z) * exp(w + z) - exp(w)
    tangent = follows((1 - z) * exp(z) <= 1, (kernel.exp_positive(z), exp_tangent(-z)))
    sign = follows(slope <= 0, (kernel.exp_positive(w), tangent))
    return follows(INCREASE_CLAIM, kernel.monotone(sign, assume(Y_NONNEGATIVE), w, body))


def prove_gained_nonnegative() -> Proved:
    """E_t1 <= E_(t1+t), by induction."""
    claim = 0 <= gained(t1, t)
    step = specialize(prove_steps_nonnegative(), t1 + t)
    grown = follows(0 <= gained(t1, t + 1), assume(claim), step)
    return induction(equation(0 <= gained(t1, ZERO)), grown, t)


def prove_separator_since() -> Proved:
    """<W_(t1+t), M> >= <W_t1, M> + (E_(t1+t) - E_t1)/R: a step adds e <D, M>/||D|| >= e/R."""
    at = t1 + t
    now, hole = layer(at), vector("x")
    claim = inner(layer(t1).W, M) + gained(t1, t) / R <= inner(now.W, M)
    step = congruence(specialize(assume(nt.update_is()), at), inner(hole, M), hole)
    size, radius = specialize(assume(nt.DESCENT_NONZERO), at), assume(nt.R_POSITIVE)
    inverses = product_nonnegative(kernel.inverse_positive(size), kernel.inverse_positive(radius))
    pace = product_nonnegative(specialize(prove_steps_nonnegative(), at), weak(inverses))
    pull = follows(
        norm(L.descent) <= R * inner(L.descent, M),
        (radius, lemma1.CORRELATION.proved()), lemma1.UPPER.proved(),
    )  # fmt: skip
    pull = nt.from_all_times(co.without_mass(pull), at)
    grown = follows(
        inner(layer(t1).W, M) + gained(t1, t + 1) / R <= inner(layer(at + 1).W, M),
        assume(claim), step, (pace, pull), nonzero=[size, radius],
    )  # fmt: skip
    start = inner(layer(t1).W, M)
    return induction(equation(start + gained(t1, ZERO) / R <= start), grown, t)


def largest_slope_nonnegative() -> Proved:
    """0 <= a_max."""
    return weak(
        follows(
            0 < a_max,
            co.moved(co.slope_positive(), co.some_i),
            specialize(assume(nt.SLOPE_UPPER), co.some_i.conclusion[1], co.some_i),
        )
    )


def prove_step_shrinks() -> Proved:
    """q e <= x exp(-q (E - E_t1)): the gaps are at least theta g* ||W||, which grows with the path."""
    at = t1 + t
    now = layer(at)
    gaps = specialize(assume(GAPS_SEPARATED), t)
    small = kernel.instantiate(GRADIENT_UPPER.proved(), reals={"b": theta * nt.lam(L)})
    small = at_step(small, at, gaps)
    solution, radius, share = assume(nt.SOLUTION_NONZERO), assume(nt.R_POSITIVE), assume(THETA_POSITIVE)
    g_star = kernel.inverse_positive(solution)
    rate = product_nonnegative(product_nonnegative(share, g_star), g_star)
    reach = follows(
        theta * margin**2 * inner(layer(t1).W, M) + LOGIT_RATE * gained(t1, t) <= theta * nt.lam(now),
        (rate, specialize(prove_separator_since(), t)), (rate, kernel.cauchy_schwarz(now.W, M)),
        nonzero=[solution],
    )  # fmt: skip
    decay = exp_monotone(
        follows(
            -theta * nt.lam(now) <= -theta * margin**2 * inner(layer(t1).W, M) - LOGIT_RATE * gained(t1, t),
            reach,
        )
    )
    count = follows(0 <= N, lemma1.sum_constraints(weak(one_positive())), assume(nt.COUNT_IS))
    slope = nt.from_all_times(largest_slope_nonnegative(), at)
    step = assume(STEP_NONNEGATIVE)
    pace = product_nonnegative(step, weak(product_nonnegative(rate, kernel.inverse_positive(radius))))
    weight = product_nonnegative(product_nonnegative(step, weak(rate)), product_nonnegative(count, slope))
    return follows(
        LOGIT_RATE * e(at) <= FIRST_STEP * exp(-LOGIT_RATE * gained(t1, t)),
        (LOGIT_RATE, the_step(at)), (pace, small), (weight, decay),
        nonzero=[radius],
    )  # fmt: skip


def rate_positive() -> Proved:
    """0 < q."""
    g_star = kernel.inverse_positive(assume(nt.SOLUTION_NONZERO))
    square = product_nonnegative(g_star, g_star)
    inverse = kernel.inverse_positive(assume(nt.R_POSITIVE))
    product = product_nonnegative(product_nonnegative(assume(THETA_POSITIVE), square), inverse)
    return follows(0 < LOGIT_RATE, product)


def prove_exponential() -> Proved:
    """exp(q (E_(t1+t) - E_t1)) <= 1 + (exp(x) - 1) t by induction: a step adds at most exp(x) - 1."""
    size = LOGIT_RATE * gained(t1, t)
    claim = exp(size) <= grown_at_most(t)
    far = product_nonnegative(weak(rate_positive()), specialize(prove_gained_nonnegative(), t))
    more = kernel.instantiate(INCREASE.proved(), reals={"x": FIRST_STEP, "y": size})
    more = discharge(more, follows(0 <= size, far))
    after = LOGIT_RATE * gained(t1, t + 1)
    step = exp_monotone(follows(after <= size + FIRST_STEP * exp(-size), prove_step_shrinks()))
    grown = follows(exp(after) <= grown_at_most(t + 1), assume(claim), step, more)
    zeroth = ZERO
    return induction(equation(exp(LOGIT_RATE * gained(t1, zeroth)) <= grown_at_most(zeroth)), grown, t)


def prove_upper() -> Proved:
    """The logarithm of the exponential form."""
    size = LOGIT_RATE * gained(t1, t)
    above = log_monotone(specialize(prove_exponential(), t), kernel.exp_positive(size))
    inverse = kernel.inverse_positive(rate_positive())
    length = follows(
        path_length(t1 + t) <= UPPER_BOUND,
        (inverse, above), (1 / LOGIT_RATE, kernel.log_exp(size)),
        nonzero=[assume(nt.SOLUTION_NONZERO), assume(nt.R_POSITIVE), assume(THETA_POSITIVE)],
    )  # fmt: skip
    return from_definitions(generalize(length, t, nt.NATURALS))


def separated_for_good() -> Proved:
    """A direction that has settled for good separates the tokens for good."""
    settled = specialize(assume(SETTLED_FOR_GOOD), t)
    return generalize(at_step(sparsification.SEPARATED.proved(), t1 + t, settled), t, nt.NATURALS)


def prove_upper_from_direction() -> Proved:
    """A settled direction separates the tokens."""
    return from_definitions(discharge(prove_upper(), separated_for_good()))


def prove_slower() -> Proved:
    """q eta' k <= q (E_(t1+t) - E_t1), exponentiated."""
    other = kernel.instantiate(normalized_gd.PATH.proved(), reals={"e": (("s",), e_ngd(s)), "eta": eta_ngd})
    ahead = follows(
        LOGIT_RATE * eta_ngd * as_real(k) <= LOGIT_RATE * gained(t1, t),
        (weak(rate_positive()), assume(CAUGHT_UP)), (LOGIT_RATE, specialize(other, k)),
    )  # fmt: skip
    return from_definitions(chain(exp_monotone(ahead), specialize(prove_exponential(), t)))


UPPER_BOUND = path_length(t1) + log(grown_at_most(t)) / LOGIT_RATE
HYPOTHESES = {
    **{name: NAMES[name] for name in NAMES if name != "a_min bounds the slopes"},
    **RULES,
    "R bounds the constraints": nt.NORM_BOUND,
    "N": nt.COUNT_IS,
    "theta > 0": THETA_POSITIVE,
    "update": nt.update_is(),
}

INCREASE = Theorem(
    key="exponential-increase",
    title="What one step adds to the exponential is largest at the start",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={"y >= 0": Y_NONNEGATIVE},
    claim=INCREASE_CLAIM,
    prove=prove_increase,
)
UPPER = Theorem(
    key="gd-path-upper",
    title="The path length of gradient descent grows at most like log t once the tokens are separated",
    kind="corollary",
    reference=REFERENCE,
    statement=r"If from $t_1$ on every logit gap is at least $\theta \gamma_\ast\|W\|$, for every "
    r"$t$: {claim}.",
    hypotheses=HYPOTHESES | {"logit gaps are at least theta lam from t1 on": GAPS_SEPARATED},
    claim=nt.always(path_length(t1 + t) <= UPPER_BOUND),
    prove=prove_upper,
)
UPPER_FROM_DIRECTION = Theorem(
    key="gd-path-upper-from-direction",
    title="The path length of gradient descent grows at most like log t once the direction has settled",
    kind="corollary",
    reference=REFERENCE,
    statement=r"If from $t_1$ on $1 - \cos \le (1 - \theta)^2 \gamma_\ast^2/(2 R^2)$, for every "
    r"$t$: {claim}.",
    hypotheses=HYPOTHESES
    | {
        "theta <= 1": sparsification.THETA_AT_MOST_ONE,
        "the direction has settled from t1 on": SETTLED_FOR_GOOD,
    },
    claim=UPPER.claim,
    prove=prove_upper_from_direction,
)
SLOWER = Theorem(
    key="gd-exponentially-slower",
    title="Gradient descent needs exponentially many steps for the path of normalized gradient descent",
    kind="corollary",
    reference=REFERENCE,
    statement=r"If since $t_1$ gradient descent has covered in $t$ steps the path that normalized gradient "
    r"descent covers in its first $k$: {claim}.",
    hypotheses=HYPOTHESES
    | {
        "logit gaps are at least theta lam from t1 on": GAPS_SEPARATED,
        "the other run is normalized gradient descent": nt.always(eq(e_ngd(t), eta_ngd)),
        "gradient descent has covered the other's path": CAUGHT_UP,
    },
    claim=exp(LOGIT_RATE * eta_ngd * as_real(k)) <= grown_at_most(t),
    prove=prove_slower,
)
PAGES = (INCREASE, UPPER, UPPER_FROM_DIRECTION, SLOWER)
