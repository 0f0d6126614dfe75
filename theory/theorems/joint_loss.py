"""Joint training, the decoder: its scores of the optimal tokens grow and the loss decays with its path.

u_(t+1) = u_t - f_t grad_u L/||grad_u L|| with any steps f_t >= 0, while W moves by any rule. From some step
t0 on let the attention on tokens other than o_i be at most eps, let the scores lose 0 <= g_(i,o_i) - m_i <=
lambda by it, and let g_(i,o_i) >= h. With gamma = 1/||u_mm|| the margin of the tokens y_i x_(i,o_i), R_o the
longest of them and R_d the farthest from another of its sequence, F_t the decoder's path length, dF =
F_(t0+t) - F_t0, dQ the sum of f_s^2 since t0, L0 the loss of the optimal tokens alone, and

    c = (gamma - 2 eps R_d - (1 - exp(-lambda)) R_o) sigma(-h)/l(h),    l(h) = log(1 + exp(-h)),

if c > 0 then for every t

    L(W_(t0+t), u_(t0+t)) <= L0(u_t0) exp(lambda - c dF + R_o^2 dQ/2),
    g_(i,o_i) >= h + log l(h) - log(n L0(u_t0)) + c dF - R_o^2 dQ/2    at the step t0 + t,
    <u_(t0+t), u_mm^> >= <u_t0, u_mm^> + (gamma - eps R_d)/(R_o + eps R_d) dF.

The steps of W cost nothing but lambda: they do not change L0, which the decoder descends whatever they do.
With f_t = eta (t + 1)^(-2/3), dF is of the order t^(1/3) and dQ bounded: the paper's exp(-c t^(1/3)).
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import joint_decoder as jd
from theory.lemmas import joint_loss as jo
from theory.lemmas.joint_decoder import RATE, S, eps, leak, mass
from theory.lemmas.joint_layer import REFERENCE, t0
from theory.lemmas.joint_loss import over, slope
from theory.lemmas.separator_correlation import in_i
from theory.notation import (
    DecoderState,
    R_d,
    R_o,
    U,
    decoder_margin,
    decoder_path,
    decoder_step,
    feature,
    i,
    n,
    s,
    t,
    tau,
)
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    exp_monotone,
    follows,
    log_monotone,
    log_product,
    norm_nonnegative,
    product_nonnegative,
    restate,
    telescoped,
    weak,
)
from theory.proof.terms import (
    Formula,
    Fraction,
    Index,
    Term,
    below,
    eq,
    exp,
    inner,
    log,
    norm,
    number,
    substitute,
    symbol,
    total,
    vector,
    veq,
)

half = Fraction(1, 2)
floor = symbol("floor")  # h, the least score of an optimal token
END, origin = t0 + t, number(0)
FLOOR = nt.each_sequence(floor <= S.optimal_score(i))
SHARE = slope(floor) / nt.logistic(floor)  # sigma(-h)/l(h)
PACE = RATE * SHARE  # c
PACE_POSITIVE = 0 < RATE


def at(t: Index) -> DecoderState:
    """The decoder at step t."""
    return DecoderState(t)


def static_families(at_: Index) -> dict[str, Any]:
    """What the decoder's quantities at any u are at u_t."""
    now = at(at_)
    return {
        "vectors": {"u": ((), now.u), "Du": ((), now.descent)},
        "reals": {"phi": (("i", "tau"), now.phi(i, tau))},
    }


def always(formula: Formula) -> Formula:
    """A hypothesis about the decoder at any u, for every step."""
    return nt.always(substitute(formula, **static_families(t)))


def at_step(claim: Proved, at_: Index) -> Proved:
    """A claim about any u, at u_t; each hypothesis about u is drawn from the one for every step."""
    now = kernel.instantiate(claim, **static_families(at_))
    drawn = (specialize(assume(always(f)), at_) for f in claim.hypotheses)
    return discharge(now, *(d for d in drawn if d.conclusion not in claim.hypotheses))


def since() -> dict[str, Any]:
    """u_t becomes u_(t0+t), and so do the quantities of step t."""
    now = at(END)
    return {
        "vectors": {"u": (("t",), now.u), "Du": (("t",), now.descent)},
        "reals": {"phi": (("t", "i", "tau"), now.phi(i, tau)), "f": (("t",), decoder_step(END))},
    }


def update_is() -> Formula:
    """u_(t+1) = u_t + f_t D_t/||D_t||, D_t = -grad_u L."""
    now = at(t)
    return nt.always(veq(at(t + 1).u, now.u + (decoder_step(t) / norm(now.descent)) * now.descent))


def travelled(t: Index) -> Term:
    """F_(t0+t) - F_t0."""
    return decoder_path(t0 + t) - decoder_path(t0)


def squares(t: Index, start: Index = t0) -> Term:
    """The sum of f_s^2 over the ``t`` steps since ``start``."""
    return total(s, below(t), decoder_step(start + s) ** 2)


STEPS_NONNEGATIVE = nt.always(0 <= decoder_step(t))

# --- one step, for a run from step 0 -----------------------------------------------------------------------


def gradient_positive(rate: Proved) -> Proved:
    """0 < ||D||, from 0 < gamma - eps R_d."""
    return follows(0 < norm(S.descent), (rate, jd.sum_of_shares()), jd.length_at_least())


def step_is(v: nt.Vector) -> Proved:
    """<u_(s+1), v> = <u_s, v> + f_s <D_s, v>/||D_s||."""
    hole = vector("x")
    return congruence(specialize(assume(update_is()), s), inner(hole, v), hole)


def radius_nonnegative() -> Proved:
    """0 <= R_o at the generic sequence."""
    return follows(0 <= R_o, norm_nonnegative(feature(i)), jd.at_sequence("R_o bounds the optimal tokens"))


def leaks_nonnegative() -> tuple[Proved, Proved]:
    """0 <= eps R_d and 0 <= (1 - exp(-lambda)) R_o."""
    some = kernel.sum_order(jd.at_constraint(jd.STATE["attention is nonnegative"]), tau, nt.others(i))
    share = follows(0 <= eps, some, jd.at_sequence("attention on other tokens is at most eps"))
    attention = co.moved(follows(0 <= eps * R_d, (jd.radius_nonnegative(), share)), co.some_i)
    low, high = (jd.at_sequence(name) for name in list(jd.STATE)[3:])
    nonnegative = follows(0 <= leak, low, high)
    decay = follows(exp(-leak) <= 1, exp_monotone(follows(-leak <= 0 * leak, nonnegative)))
    scores = co.moved(follows(0 <= (1 - exp(-leak)) * R_o, (radius_nonnegative(), decay)), co.some_i)
    return attention, scores


def pull_at_least() -> Proved:
    """c sum l(g_i) ||D|| <= n <-grad L0, D>: sigma(-m_i) >= sigma(-g_i) >= l(g_i) sigma(-h)/l(h)."""
    g = S.optimal_score(i)
    rate = assume(PACE_POSITIVE)
    size = assume(co.DATA_SIZE_POSITIVE)
    share = kernel.instantiate(jo.SHARE.proved(), reals={"m": g, "h": floor})
    share = discharge(share, co.at_sequence(FLOOR))
    each = follows(nt.logistic(g) * SHARE <= slope(S.mean_score(i)), share, jd.optimal_slope()[1])
    summed = jd.over(each)
    weight = product_nonnegative(weak(rate), norm_nonnegative(S.descent))
    return follows(
        PACE * over(nt.logistic(g)) * norm(S.descent)
        <= over(slope(g) * inner(feature(i), S.descent)),
        (size, jd.prove_descent()), (weight, summed), nonzero=[size],
    )  # fmt: skip


def wide_rate() -> Proved:
    """0 < gamma - eps R_d."""
    attention, scores = leaks_nonnegative()
    return follows(0 < decoder_margin - eps * R_d, assume(PACE_POSITIVE), attention, scores)


def one_step() -> Proved:
    """log sum l(g_i) falls by at least c f - R_o^2 f^2/2 in a step of length f."""
    now, f = at(s), decoder_step(s)
    g = now.optimal_score(i)
    positive = at_step(gradient_positive(wide_rate()), s)
    inverse = kernel.inverse_positive(positive)
    pace = follows(0 <= f / norm(now.descent), (specialize(assume(STEPS_NONNEGATIVE), s), inverse))
    change = f / norm(now.descent) * inner(feature(i), now.descent)
    radius = jd.at_sequence("R_o bounds the optimal tokens")
    length = norm_nonnegative(now.descent)
    up = follows(
        change <= R_o * f,
        (pace, kernel.cauchy_schwarz(feature(i), now.descent)),
        (product_nonnegative(pace, length), radius), nonzero=[positive],
    )  # fmt: skip
    down = follows(
        -change <= R_o * f,
        (pace, kernel.cauchy_schwarz(feature(i), -1 * now.descent)),
        (product_nonnegative(pace, length), radius), nonzero=[positive],
    )  # fmt: skip
    smooth = kernel.instantiate(
        jo.SMOOTH.proved(), reals={"m": (("i",), g), "b": (("i",), change), "r": R_o * f}
    )
    smooth = discharge(smooth, *(co.for_each_sequence(c) for c in (up, down)))
    hole = symbol("y")
    moved = congruence(step_is(feature(i)), nt.logistic(hole), hole)
    then = jd.over(moved)
    inside = symbol("y")
    new = congruence(then, log(inside), inside)
    whole = jo.sum_positive(jo.loss_positive(g))
    share = product_nonnegative(pace, weak(kernel.inverse_positive(whole)))
    return follows(
        log(over(nt.logistic(at(s + 1).optimal_score(i)))) - log(over(nt.logistic(g)))
        <= -PACE * f + half * R_o**2 * f**2,
        new, smooth, (share, at_step(pull_at_least(), s)), nonzero=[positive, whole],
    )  # fmt: skip


def total_log(at_: Index) -> Term:
    """log sum l(g_i)."""
    return log(over(nt.logistic(at(at_).optimal_score(i))))


def prove_optimal() -> Proved:
    """The steps added up, and the exponential of it."""
    summed = kernel.sum_order(one_step(), s, below(t))
    exponent = -PACE * decoder_path(t) + half * R_o**2 * squares(t, origin)
    fallen = follows(total_log(t) <= total_log(origin) + exponent, summed, telescoped(total_log, t))
    ends = [kernel.exp_log(jo.sum_positive(jo.loss_positive(at(k).optimal_score(i)))) for k in (t, origin)]
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    claim = follows(
        at(t).optimal_loss() <= at(origin).optimal_loss() * exp(exponent),
        (size, exp_monotone(fallen)), (1 / n, ends[0]), (exp(exponent) / n, ends[1]),
    )  # fmt: skip
    return generalize(from_start(claim, OPTIMAL_BODY), t, nt.NATURALS)


def from_start(claim: Proved, target: Formula) -> Proved:
    """A claim about the run from step 0 at step t, at t0 + t, the steps since t0 as a path length."""
    every = specialize(kernel.instantiate(generalize(claim, t, nt.NATURALS), **since()), t)
    steps = total(s, below(t), decoder_step(t0 + s))
    lengths = telescoped(lambda k: decoder_path(t0 + k), t)
    hole = symbol("x")
    same = congruence(lengths, exp(-PACE * hole), hole)
    return follows(target, every, (every.conclusion[2] * exp(PACE * steps), same))


EXPONENT = -PACE * travelled(t) + half * R_o**2 * squares(t)
OPTIMAL_BODY = at(END).optimal_loss() <= at(t0).optimal_loss() * exp(EXPONENT)
LOSS_BODY = at(END).loss() <= at(t0).optimal_loss() * exp(leak + EXPONENT)


def leaked() -> Proved:
    """L <= exp(lambda) L0: l(m_i) <= l(g_i - lambda) <= exp(lambda) l(g_i)."""
    g, m = S.optimal_score(i), S.mean_score(i)
    low, high = (jd.at_sequence(name) for name in list(jd.STATE)[3:])
    nonnegative = follows(0 <= leak, low, high)
    factor = kernel.instantiate(jo.FACTOR.proved(), reals={"m": g, "y": leak})
    factor = discharge(factor, nonnegative)
    wide = follows(1 + exp(-m) <= 1 + exp(-(g - leak)), exp_monotone(follows(-m <= leak - g, high)))
    each = follows(
        nt.logistic(m) <= exp(leak) * nt.logistic(g), factor, log_monotone(wide, co.denominator_positive(-m))
    )
    size = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    return follows(S.loss() <= exp(leak) * S.optimal_loss(), (size, jd.over(each)))


def prove_loss() -> Proved:
    """The attention's leak costs a factor exp(lambda) at every step."""
    now = kernel.instantiate(at_step(leaked(), t), **since())
    claim = follows(LOSS_BODY, now, (kernel.exp_positive(leak), specialize(OPTIMAL.proved(), t)))
    return generalize(claim, t, nt.NATURALS)


def score_by_loss() -> Proved:
    """h + log l(h) - log sum l(g_j) <= g_i: l(x) exp(x) grows with x, and l(g_i) is one of the sum."""
    g, x = S.optimal_score(i), symbol("x")
    down = co.denominator_positive(-x)
    body = exp(x) * nt.logistic(x)
    slope_ = exp(x) * nt.logistic(x) - exp(x) * (exp(-x) / (1 + exp(-x)))
    sign = follows(
        0 <= slope_, (weak(kernel.exp_positive(x)), jo.slope_at_most_loss(x)), (exp(x), jo.slope_forms(x))
    )
    grows = kernel.monotone(sign, co.at_sequence(FLOOR), x, body, [down])
    low, high = jo.loss_positive(floor), jo.loss_positive(g)
    ends = product_nonnegative(kernel.exp_positive(floor), low)
    logs = log_monotone(grows, restate(0 < exp(floor) * nt.logistic(floor), ends))
    whole = kernel.term_of_sum(weak(high), i, nt.SEQUENCES, in_i)
    one = log_monotone(whole, high)
    return follows(
        floor + log(nt.logistic(floor)) - log(over(nt.logistic(g))) <= g,
        logs, one,
        log_product(kernel.exp_positive(floor), low), log_product(kernel.exp_positive(g), high),
        kernel.log_exp(floor), kernel.log_exp(g),
    )  # fmt: skip


def prove_margin() -> Proved:
    """The loss of the optimal tokens bounds each of their scores."""
    now = kernel.instantiate(at_step(score_by_loss(), t), **since())
    size = assume(co.DATA_SIZE_POSITIVE)
    decayed = specialize(OPTIMAL.proved(), t)
    scaled = follows(
        n * at(END).optimal_loss() <= n * at(t0).optimal_loss() * exp(EXPONENT), (weak(size), decayed)
    )
    sums = [jo.sum_positive(jo.loss_positive(at(k).optimal_score(i))) for k in (END, t0)]
    whole = follows(
        over(nt.logistic(at(END).optimal_score(i)))
        <= over(nt.logistic(at(t0).optimal_score(i))) * exp(EXPONENT),
        scaled, nonzero=[size],
    )  # fmt: skip
    logs = log_monotone(whole, sums[0])
    split = log_product(sums[1], kernel.exp_positive(EXPONENT))
    hole = symbol("y")
    mean = follows(eq(n * at(t0).optimal_loss(), over(nt.logistic(at(t0).optimal_score(i)))), nonzero=[size])
    same = congruence(mean, log(hole), hole)
    claim = follows(MARGIN_BODY, now, logs, split, kernel.log_exp(EXPONENT), same)
    return generalize(co.for_each_sequence(claim), t, nt.NATURALS)


MARGIN_BOUND = floor + log(nt.logistic(floor)) - log(n * at(t0).optimal_loss()) - EXPONENT
MARGIN_BODY = MARGIN_BOUND <= at(END).optimal_score(i)


# --- growth along the max-margin decoder -------------------------------------------------------------------

WIDE = 0 < decoder_margin - eps * R_d
PULL = (decoder_margin - eps * R_d) / (R_o + eps * R_d)


def component(at_: Index) -> Term:
    """<u_t, u_mm^>."""
    return decoder_margin * inner(at(at_).u, U)


def prove_component() -> Proved:
    """A step adds f <D, u_mm^>/||D||: at least (gamma - eps R_d) S, over at most (R_o + eps R_d) S."""
    f, now = decoder_step(s), at(s)
    positive = at_step(gradient_positive(assume(WIDE)), s)
    inverse = kernel.inverse_positive(positive)
    pace = follows(0 <= f / norm(now.descent), (specialize(assume(STEPS_NONNEGATIVE), s), inverse))
    size = jd.sum_of_shares()
    bound = follows(0 < (R_o + eps * R_d) * mass, gradient_positive(assume(WIDE)), jd.prove_length())
    count = assume(co.DATA_SIZE_POSITIVE)
    reach = follows(0 < R_o + eps * R_d, (kernel.inverse_positive(size), bound), nonzero=[size, count])
    width = kernel.inverse_positive(reach)
    share = product_nonnegative(weak(width), weak(assume(WIDE)))
    static = follows(
        PULL * norm(S.descent) <= decoder_margin * inner(S.descent, U),
        jd.prove_sees(), (share, jd.prove_length()), nonzero=[reach],
    )  # fmt: skip
    step = follows(
        PULL * f <= component(s + 1) - component(s),
        (pace, at_step(static, s)), (decoder_margin, step_is(U)), nonzero=[positive],
    )  # fmt: skip
    summed = kernel.sum_order(step, s, below(t))
    grown = follows(
        component(origin) + PULL * decoder_path(t) <= component(t), summed, telescoped(component, t)
    )
    every = specialize(kernel.instantiate(generalize(grown, t, nt.NATURALS), **since()), t)
    lengths = telescoped(lambda k: decoder_path(t0 + k), t)
    claim = follows(component(t0) + PULL * travelled(t) <= component(END), every, (PULL, lengths))
    return generalize(claim, t, nt.NATURALS)


RUN = {
    **jd.DATA,
    "with a constraint": nt.SOME_TOKEN,
    "the leaks are small": PACE_POSITIVE,
    **{
        name: substitute(f, **since())
        for name, f in {
            **{name: always(f) for name, f in jd.STATE.items()},
            "scores of optimal tokens are at least h": always(FLOOR),
            "the decoder's steps are nonnegative": STEPS_NONNEGATIVE,
            "update of u": update_is(),
        }.items()
    },
}
COMPONENT = Theorem(
    key="joint-decoder-component",
    title="In joint training the decoder grows along its max-margin solution",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(
        RUN,
        "the leaks are small",
        "the optimal token scores at least the mean",
        "scores lose at most lambda",
        "scores of optimal tokens are at least h",
    )
    | {"the attention's leak is small": WIDE},
    claim=nt.always(component(t0) + PULL * travelled(t) <= component(END)),
    prove=prove_component,
    rate=Rate(observed=component(END), bound=component(t0) + PULL * travelled(t), sense="lower"),
)
OPTIMAL = Theorem(
    key="joint-optimal-loss",
    title="In joint training the loss of the optimal tokens decays exponentially in the decoder's path",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=RUN,
    claim=nt.always(OPTIMAL_BODY),
    prove=prove_optimal,
    rate=Rate(observed=OPTIMAL_BODY[1], bound=OPTIMAL_BODY[2], sense="upper", small_numbers=True),
)
LOSS = Theorem(
    key="joint-loss",
    title="In joint training the loss decays exponentially in the decoder's path",
    kind="theorem",
    reference="the paper's decay of the loss in joint training, by our a-posteriori theorem",
    statement=r"For every $t$: {claim}.",
    hypotheses=RUN,
    claim=nt.always(LOSS_BODY),
    prove=prove_loss,
    rate=Rate(observed=LOSS_BODY[1], bound=LOSS_BODY[2], sense="upper", small_numbers=True),
)
MARGIN = Theorem(
    key="joint-decoder-margin",
    title="In joint training the decoder's scores of the optimal tokens grow like its path",
    kind="theorem",
    reference="the paper's positive margin of the decoder in joint training, by our a-posteriori theorem",
    statement=r"For every $t$: {claim}.",
    hypotheses=RUN,
    claim=nt.always(nt.each_sequence(MARGIN_BODY)),
    prove=prove_margin,
    rate=Rate(observed=at(END).optimal_score(i), bound=MARGIN_BOUND, sense="lower"),
)
PAGES = (COMPONENT, OPTIMAL, LOSS, MARGIN)
