"""Joint training, the decoder: it turns towards its max-margin solution on the optimal tokens.

u_(t+1) = u_t - f_t grad_u L/||grad_u L|| with any steps f_t >= 0, while W moves by any rule; gamma =
1/||u_mm|| is the margin of the tokens y_i x_(i,o_i), and from some step t0 on the attention on others is at
most eps, with theta = 1 - eps R_d/gamma > 0, and m_i <= g_(i,o_i). With Lam exp(Lam) = 2 (n - 1)/e, x_t =
||u_t||, w_t = <u_t, u_mm^> and w_t0 > 0,

    1 - cos(u_(t0+t), u_mm) <= 1 - theta + [ theta x_t0 - w_t0
        + theta Lam/gamma log((gamma x_(t0+t) + Lam)/(gamma x_t0 + Lam))
        + theta/2 sum_(s<t) f_(t0+s)^2/(x_(t0+s) + Lam/gamma) ] / x_(t0+t).

The gradient is that of logistic regression on the features y_i X_i' phi_i, whose margins m_i are at most the
scores of the optimal tokens; what u_mm loses on them is eps R_d/gamma. As eps falls exponentially in the path
of W, a later t0 makes 1 - theta as small as one likes: the decoder's direction converges.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import joint_decoder as jd
from theory.lemmas import joint_loss as jo
from theory.lemmas import potential
from theory.lemmas.joint_decoder import S, eps, mass
from theory.lemmas.joint_layer import REFERENCE, t0
from theory.lemmas.joint_loss import over, slope
from theory.lemmas.potential import psi
from theory.lemmas.separator_correlation import in_i
from theory.notation import R_d, U, decoder_margin, decoder_step, feature, i, n, s, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    exp_monotone,
    exp_tangent,
    follows,
    inverse_order,
    log_quotient,
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
    Fraction,
    Index,
    Term,
    below,
    eq,
    exp,
    index,
    inner,
    lambertw,
    log,
    member,
    norm,
    real,
    symbol,
    total,
    vector,
    veq,
    vtotal,
)
from theory.theorems import joint_loss as jl
from theory.theorems.joint_loss import at, at_step, component, origin

half = Fraction(1, 2)
END = t0 + t
Lam = lambertw(2 * (n - 1) * exp(real(-1)))
theta = 1 - eps * R_d / decoder_margin
B = decoder_margin * norm(S.u) + Lam
HEIGHT = exp(-B - 1)  # no share is larger
m = S.mean_score(i)
i0 = index("i0")  # the sequence of least margin
in_i0 = assume(member(i0, nt.SEQUENCES))
b = symbol("b")


def weight(i: Index) -> Term:
    """Weight of a sequence in the max-margin decoder."""
    return symbol("beta", i)


COUNT = eq(n, total(i, nt.SEQUENCES, real(1)))
DUAL = {
    "beta >= 0": nt.each_sequence(0 <= weight(i)),
    "u_mm is a combination of the optimal tokens": veq(U, vtotal(i, nt.SEQUENCES, weight(i) * feature(i))),
    "complementary slackness of u_mm": eq(total(i, nt.SEQUENCES, weight(i)), inner(U, U)),
}
GOOD = 0 < theta


# --- alignment ---------------------------------------------------------------------------------------------


def solution_positive() -> Proved:
    """0 < ||u_mm||."""
    return jd.separator_nonzero()


def margin_positive() -> Proved:
    """0 < gamma."""
    return kernel.inverse_positive(solution_positive())


def least_margin(at_least: Proved) -> Proved:
    """b <= gamma ||u|| for b at most every m_i: b sum beta <= sum beta g = <u_mm, u>."""
    share = co.at_sequence(DUAL["beta >= 0"])
    low = jd.at_sequence("the optimal token scores at least the mean")
    value = at_least.conclusion[1]
    each = follows(value * weight(i) <= weight(i) * S.optimal_score(i), (share, at_least), (share, low))
    hole, positive = vector("x"), solution_positive()
    combined = assume(DUAL["u_mm is a combination of the optimal tokens"])
    product = follows(
        value * norm(U) ** 2 <= norm(U) * norm(S.u),
        jd.over(each), congruence(combined, inner(hole, S.u), hole),
        (value, assume(DUAL["complementary slackness of u_mm"])), (value, norm_squared(U)),
        kernel.cauchy_schwarz(U, S.u),
    )  # fmt: skip
    inverse = kernel.inverse_positive(positive)
    square = product_nonnegative(inverse, inverse)
    return follows(value <= decoder_margin * norm(S.u), (square, product), nonzero=[positive])


def constant_is() -> tuple[Proved, Proved]:
    """0 <= Lam, and Lam exp(Lam) = 2 (n - 1)/e: there is a sequence."""
    one = kernel.term_of_sum(weak(one_positive()), i, nt.SEQUENCES, co.some_i)
    count = follows(0 <= 2 * (n - 1), one, assume(COUNT))
    argument = restate(0 <= Lam[2], product_nonnegative(count, kernel.exp_positive(real(-1))))
    return kernel.lambert_w_nonnegative(argument), kernel.lambert_w(argument)


def share(i: Index) -> Term:
    """f_i = sigma(-m_i) (m_i - B)."""
    return slope(S.mean_score(i)) * (S.mean_score(i) - B)


def share_bounded() -> Proved:
    """f_i <= exp(-B - 1): sigma(-m) <= exp(-m), and 1 + x <= e^x at x = m - B - 1."""
    up = co.denominator_positive(m)
    positive = jo.slope_positive(m)
    near = follows(share(i) <= HEIGHT, (weak(positive), assume(m <= B)), kernel.exp_positive(-B - 1))
    decay = kernel.exp_positive(-m)
    tail = follows(slope(m) <= exp(-m), product_nonnegative(positive, decay), nonzero=[up])
    beyond = weak(assume(B < m))
    far = follows(share(i) <= HEIGHT, (beyond, tail), (weak(decay), exp_tangent(m - B - 1)))
    return kernel.cases(near, far, m, B)


def least_share_bounded() -> Proved:
    """f_i0 <= -(n - 1) exp(-B - 1): sigma(-m_i0) >= exp(-gamma ||u||)/2."""
    m0 = S.mean_score(i0)
    least = specialize(assume(LEAST), i, in_i)
    reach = least_margin(least)
    lam = decoder_margin * norm(S.u)
    level = product_nonnegative(weak(margin_positive()), norm_nonnegative(S.u))
    unit = follows(
        1 + exp(m0) <= 2 * exp(lam), exp_monotone(reach), exp_monotone(restate(zero() <= lam, level))
    )
    positive = jo.slope_positive(m0)
    weight_ = product_nonnegative(weak(positive), weak(kernel.exp_positive(-lam)))
    low = follows(exp(-lam) <= 2 * slope(m0), (weight_, unit), nonzero=[co.denominator_positive(m0)])
    constant, choice = constant_is()
    return follows(
        share(i0) <= -(n - 1) * HEIGHT,
        (weak(positive), reach), (constant, low), (exp(-B), choice),
    )  # fmt: skip


LEAST = nt.each_sequence(S.mean_score(i0) <= m)


def mass_bounds() -> Proved:
    """<D, u> <= B S: the shares add up to at most 0."""
    spare = follows(0 <= HEIGHT - share(i), share_bounded())
    together = follows(
        over(share(i)) <= 0,
        kernel.term_of_sum(spare, i, nt.SEQUENCES, in_i0), least_share_bounded(), (HEIGHT, assume(COUNT)),
    )  # fmt: skip
    shares = kernel.least(together, [(i0, nt.SEQUENCES)], S.mean_score(i0), [co.some_i])
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    return follows(inner(S.descent, S.u) <= B * mass, (size, shares), jd.along(S.u))


ALIGNED = theta * inner(S.descent, S.u) <= B * inner(S.descent, U)


def prove_alignment() -> Proved:
    """theta S <= <D, u_mm>, as <y_i X_i' phi_i, u_mm> >= theta."""
    solution = solution_positive()
    seen = follows(theta * mass <= inner(S.descent, U), (solution, jd.prove_sees()), nonzero=[solution])
    constant = constant_is()[0]
    positive = follows(0 <= B, (weak(margin_positive()), norm_nonnegative(S.u)), constant)
    return follows(ALIGNED, (weak(assume(GOOD)), mass_bounds()), (positive, seen))


# --- one step, for a run from step 0 -----------------------------------------------------------------------


def wide() -> Proved:
    """0 < gamma - eps R_d."""
    gamma = margin_positive()
    return follows(0 < decoder_margin - eps * R_d, (gamma, assume(GOOD)), nonzero=[solution_positive()])


def size(at_: Index) -> Term:
    """||u_t||."""
    return norm(at(at_).u)


def gradient_positive() -> Proved:
    """0 < ||D_s||."""
    return at_step(jl.gradient_positive(wide()), s)


def pace() -> Proved:
    """0 <= f_s/||D_s||."""
    step = specialize(assume(jl.STEPS_NONNEGATIVE), s)
    inverse = kernel.inverse_positive(gradient_positive())
    return follows(0 <= decoder_step(s) / norm(at(s).descent), (step, inverse))


def ahead(at_: Index) -> Proved:
    """0 < w_0 <= w_t: no step leads away from u_mm."""
    seen = follows(
        0 <= decoder_margin * inner(S.descent, U), (weak(wide()), weak(jd.sum_of_shares())), jd.prove_sees()
    )
    step = follows(
        0 <= component(s + 1) - component(s),
        product_nonnegative(pace(), at_step(seen, s)), (decoder_margin, jl.step_is(U)),
    )  # fmt: skip
    summed = kernel.sum_order(step, s, below(t))
    start = follows(0 < component(origin), (margin_positive(), assume(AHEAD_AT_ZERO)))
    claim = follows(0 < component(t), start, summed, telescoped(component, t))
    return kernel.instantiate(claim, indices={"t": at_})


def size_positive(at_: Index) -> Proved:
    """0 < ||u_t||."""
    reach = (margin_positive(), kernel.cauchy_schwarz(at(at_).u, U))
    return follows(0 < size(at_), ahead(at_), reach, nonzero=[solution_positive()])


def threshold_positive(at_: Index) -> Proved:
    """0 < gamma ||u|| + Lam."""
    constant = constant_is()[0]
    return follows(0 < decoder_margin * size(at_) + Lam, (margin_positive(), size_positive(at_)), constant)


def progress(at_: Index) -> Term:
    """theta psi(||u||) - w, with psi(x) = x - Lam/gamma log(gamma x + Lam)."""
    return theta * psi(size(at_), decoder_margin, Lam) - component(at_)


def curvature(at_: Index) -> Term:
    """f^2/(||u|| + Lam/gamma)."""
    return decoder_step(at_) ** 2 / (size(at_) + Lam / decoder_margin)


def one_step() -> Proved:
    """theta psi(||u||) - w grows by at most theta/2 times the curvature in a step."""
    now, hole, f = at(s), vector("x"), decoder_step(s)
    update = specialize(assume(jl.update_is()), s)
    length, solution = gradient_positive(), solution_positive()
    pull = f / norm(now.descent)
    threshold = decoder_margin * size(s) + Lam
    turned = follows(
        theta * half * (size(s + 1) ** 2 - size(s) ** 2 - f**2)
        <= threshold * inner(at(s + 1).u - now.u, U),
        (pace(), at_step(prove_alignment(), s)),
        (theta, congruence(update, inner(hole, hole), hole)), (threshold, jl.step_is(U)),
        (theta, norm_squared(at(s + 1).u)), (theta, norm_squared(now.u)),
        (theta * pull**2, norm_squared(now.descent)), nonzero=[length],
    )  # fmt: skip
    positive, gamma = threshold_positive(s), margin_positive()
    concave = kernel.instantiate(
        potential.CONCAVE.proved(), reals={"u": size(s), "v": size(s + 1), "m": decoder_margin, "l": Lam}
    )
    sizes = (norm_nonnegative(at(k).u) for k in (s, s + 1))
    concave = discharge(concave, gamma, constant_is()[0], *sizes, positive)
    scaled = follows(0 < size(s) + Lam / decoder_margin, (solution, positive), nonzero=[solution])
    rate = product_nonnegative(gamma, kernel.inverse_positive(positive))
    return follows(
        progress(s + 1) - progress(s) <= half * theta * curvature(s),
        (weak(assume(GOOD)), concave), (rate, turned), nonzero=[positive, scaled, solution],
    )  # fmt: skip


# --- all steps ---------------------------------------------------------------------------------------------


def turned(start: Index, end: Index) -> Term:
    """theta Lam/gamma log((gamma ||u_end|| + Lam)/(gamma ||u_start|| + Lam))."""
    ratio = (decoder_margin * size(end) + Lam) / (decoder_margin * size(start) + Lam)
    return theta * Lam / decoder_margin * log(ratio)


def behind() -> Proved:
    """theta ||u_t|| - w_t, by the steps added up."""
    summed = kernel.sum_order(one_step(), s, below(t))
    quotient = log_quotient(threshold_positive(t), threshold_positive(origin))
    bent = half * theta * total(s, below(t), curvature(s))
    return follows(
        theta * size(t) - component(t)
        <= theta * size(origin) - component(origin) + turned(origin, t) + bent,
        summed, telescoped(progress, t), (theta * Lam / decoder_margin, quotient),
    )  # fmt: skip


def gap(at_: Index) -> Term:
    """1 - cos(u_t, u_mm)."""
    return 1 - inner(at(at_).u, U) / (size(at_) * norm(U))


def divided(bounded: Proved) -> Proved:
    """1 - cos = 1 - theta + (theta ||u_t|| - w_t)/||u_t||, from a bound on the bracket; then from t0 on."""
    last, solution = size_positive(t), solution_positive()
    claim = gap(t) <= 1 - theta + bounded.conclusion[2] / size(t)
    claim_ = follows(claim, (kernel.inverse_positive(last), bounded), nonzero=[last, solution])
    return kernel.instantiate(generalize(claim_, t, nt.NATURALS), **jl.since())


def prove_sharp() -> Proved:
    """Divide by ||u_t||."""
    return divided(behind())


def prove_direction() -> Proved:
    """Without Lam/gamma in the last sum, so that a run need record no more than the sum of f_s^2/||u_s||."""
    extra = product_nonnegative(constant_is()[0], weak(solution_positive()))
    order = inverse_order(follows(size(s) <= size(s) + Lam / decoder_margin, extra), size_positive(s))
    each = follows(curvature(s) <= decoder_step(s) ** 2 / size(s), (kernel.square(decoder_step(s)), order))
    bends = kernel.sum_order(each, s, below(t))
    bent = half * theta * total(s, below(t), decoder_step(s) ** 2 / size(s))
    start = theta * size(origin) - component(origin) + turned(origin, t)
    looser = follows(theta * size(t) - component(t) <= start + bent, behind(), (weak(assume(GOOD)), bends))
    return divided(looser)


AHEAD_AT_ZERO = 0 < inner(at(origin).u, U)
AHEAD = 0 < inner(at(t0).u, U)
FROM = theta * size(t0) - component(t0) + turned(t0, END)
SHARP_BOUND = 1 - theta + (FROM + half * theta * total(s, below(t), curvature(t0 + s))) / size(END)
RECORDED = half * theta * total(s, below(t), decoder_step(t0 + s) ** 2 / size(t0 + s))
BOUND = 1 - theta + (FROM + RECORDED) / size(END)
HYPOTHESES = {
    **without(
        jl.RUN,
        "the leaks are small",
        "R_o bounds the optimal tokens",
        "scores lose at most lambda",
        "scores of optimal tokens are at least h",
    ),
    **DUAL,
    "n": COUNT,
    "theta > 0": GOOD,
    "u has a component along u_mm at t0": AHEAD,
}
SHARP = Theorem(
    key="joint-decoder-direction-sharp",
    title="In joint training the decoder turns towards its max-margin solution: with the curvature as it is",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(gap(END) <= SHARP_BOUND),
    prove=prove_sharp,
)
DIRECTION = Theorem(
    key="joint-decoder-direction",
    title="In joint training the decoder turns towards its max-margin solution on the optimal tokens",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=HYPOTHESES,
    claim=nt.always(gap(END) <= BOUND),
    prove=prove_direction,
    rate=Rate(observed=gap(END), bound=BOUND, sense="upper"),
)
PAGES = (SHARP, DIRECTION)
