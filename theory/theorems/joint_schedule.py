"""Joint training with the paper's steps: eta (t + 1)^(-a), 1/2 < a < 1, and the loss is exp(-c t^(1-a)).

The a-posteriori theorems on joint training with normalized steps e_t = eta (t + 1)^(-a) of W and f_t = eta_u
(t + 1)^(-a_u) of the decoder, at the steps from some t0 > 0 on. With b = 1 - a and q = 2 a - 1, the path of W
since t0 lies between

    lo_t = eta/b ((t0 + t + 1)^b - (t0 + 1)^b),    hi_t = eta/b ((t0 + t)^b - t0^b),

and the squares of its steps add up to at most eta^2 t0^(-q)/q; likewise for the decoder. Hence, under the
hypotheses of those theorems and with their constants,

    1 - cos(W_(t0+t), M) <= [ u_t0 - v_t0 + Lam/g* log(1 + g* hi_t/(g* u_t0 + Lam))
                              + eta^2 t0^(-q)/(2 q (v_t0 + Lam/g*)) ] / (v_t0 + g* lo_t/R),
    L(W_(t0+t), u_(t0+t)) <= L0(u_t0) exp(lambda - c lo^u_t + R_o^2 eta_u^2 t0^(-q_u)/(2 q_u)).

If the leaks cost at most a tenth of the margin from t0 on, 9/10 gamma sigma(-h)/l(h) may stand for c. At a =
2/3, the paper's schedule: 1 - cos is O(log t/t^(1/3)), and the loss O(exp(-3 c eta_u t^(1/3))).
"""

from __future__ import annotations

from typing import TypeVar

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import joint_power_sum as ps
from theory.lemmas.joint_alignment import Lam
from theory.lemmas.joint_decoder import eps, leak
from theory.lemmas.joint_layer import REFERENCE, t0
from theory.lemmas.joint_power_sum import ABOVE_HALF, BELOW_ONE, STARTED, a, power
from theory.notation import M, R, R_d, R_o, decoder_margin, e, eta, layer, margin, s, t
from theory.page import Rate, Theorem, without
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    exp_monotone,
    follows,
    inverse_order,
    log_monotone,
    one_positive,
    product_nonnegative,
    restate,
    telescoped,
    weak,
)
from theory.proof.terms import Formula, Fraction, Term, as_real, below, eq, exp, log, substitute, symbol
from theory.theorems import joint_direction as jd
from theory.theorems import joint_loss as jl
from theory.theorems.direction import gap_to, size

N = TypeVar("N", Term, Formula)
half = Fraction(1, 2)
eta_u, a_u = symbol("eta_u"), symbol("decay_u")
STEP_POSITIVE = 0 < eta
DECODER_STEP_POSITIVE = 0 < eta_u


def schedule(step: Term, scale: Term, exponent: Term) -> Formula:
    """From t0 on the steps are scale (t + 1)^(-a)."""
    return nt.always(eq(step, scale * power(as_real(t0 + t) + 1, -exponent)))


SCHEDULE = schedule(e(t0 + t), eta, a)
DECODER_SCHEDULE = schedule(nt.decoder_step(t0 + t), eta_u, a_u)
SHORTEST, LONGEST = eta * ps.LOWER_BOUND, eta * ps.UPPER_BOUND
SQUARES = eta**2 * ps.SQUARE_BOUND


def of_decoder(node: N) -> N:
    """A term or formula with the decoder's exponent."""
    return substitute(node, reals={"decay": ((), a_u)})


DECODER_SHORTEST = eta_u * of_decoder(ps.LOWER_BOUND)
DECODER_SQUARES = eta_u**2 * of_decoder(ps.SQUARE_BOUND)


def sums() -> list[Proved]:
    """The path of W since t0 from below and above, and the squares of its steps."""
    nonnegative = follows(ps.NONNEGATIVE, assume(ABOVE_HALF), one_positive())
    step = assume(STEP_POSITIVE)
    now, hole = specialize(assume(SCHEDULE), s), symbol("y")
    lengths = telescoped(lambda k: nt.path_length(t0 + k), t)
    path = kernel.sum_order(now, s, below(t))
    squares = kernel.sum_order(congruence(now, hole**2, hole), s, below(t))
    lower, upper, square = (
        discharge(specialize(page.proved(), t), nonnegative) for page in (ps.LOWER, ps.UPPER, ps.SQUARES)
    )
    return [
        follows(SHORTEST <= jd.travelled(t), (step, lower), path, lengths),
        follows(jd.travelled(t) <= LONGEST, (step, upper), path, lengths),
        follows(jd.squares(t) <= SQUARES, (kernel.square(eta), square), squares),
    ]


def decoder_sums() -> list[Proved]:
    """The same for the decoder."""
    families = {"decay": a_u, "eta": eta_u, "e": (("t",), nt.decoder_step(t))}
    return [kernel.instantiate(claim, reals=families) for claim in sums()]


def steps_nonnegative() -> Proved:
    """0 <= eta (t + 1)^(-a) at every step from t0 on."""
    now = specialize(assume(SCHEDULE), t)
    weight = product_nonnegative(assume(STEP_POSITIVE), kernel.exp_positive(-a * log(as_real(t0 + t) + 1)))
    return generalize(follows(0 <= e(t0 + t), weak(weight), now), t, nt.NATURALS)


def decoder_steps_nonnegative() -> Proved:
    """The same for the decoder."""
    families = {"decay": a_u, "eta": eta_u, "e": (("t",), nt.decoder_step(t))}
    return kernel.instantiate(steps_nonnegative(), reals=families)


# --- the direction -----------------------------------------------------------------------------------------

NUMERATOR = (
    jd.lag(t0)
    + Lam / margin * log(1 + margin * LONGEST / (margin * size(t0) + Lam))
    + SQUARES / (2 * (jd.component(t0) + Lam / margin))
)
DENOMINATOR = jd.component(t0) + margin * SHORTEST / R
DIRECTION_BODY = gap_to(t0 + t) <= NUMERATOR / DENOMINATOR


def prove_direction() -> Proved:
    """The path theorem, whose numerator grows and whose denominator grows with the path."""
    shortest, longest, squares = sums()
    sharp = specialize(jd.PATH.proved(), t)
    solution = co.SOLUTION_NONZERO.proved()
    g_star = kernel.inverse_positive(solution)
    start = follows(0 < jd.component(t0), (g_star, assume(jd.AHEAD)))
    constant = jd.closed(jd.from_step(jd.constant_nonnegative()))
    share = restate(0 <= Lam / margin, product_nonnegative(constant, weak(solution)))
    width = follows(0 < jd.component(t0) + Lam / margin, start, share)
    lag = follows(0 <= jd.lag(t0), (g_star, kernel.cauchy_schwarz(layer(t0).W, M)), nonzero=[solution])
    least = follows(0 < size(t0), start, lag)
    base = follows(0 < margin * size(t0) + Lam, (g_star, least), constant)
    scale = product_nonnegative(g_star, kernel.inverse_positive(base))
    length = path_nonnegative()
    low = follows(
        0 < 1 + margin * jd.travelled(t) / (margin * size(t0) + Lam), (weak(scale), length), one_positive()
    )
    high = follows(
        1 + margin * jd.travelled(t) / (margin * size(t0) + Lam)
        <= 1 + margin * LONGEST / (margin * size(t0) + Lam),
        (weak(scale), longest),
    )
    unit = follows(1 <= low.conclusion[2], (weak(scale), length))
    turn = (share, log_monotone(high, low))
    growing = log_monotone(unit, one_positive())
    bent = (weak(kernel.inverse_positive(width)), squares)
    radius = co.BOUND_POSITIVE.proved()
    rate = weak(product_nonnegative(g_star, kernel.inverse_positive(radius)))
    path = jd.component(t0) + margin * jd.travelled(t) / R
    far = follows(0 < path, start, (rate, length))
    near = follows(0 < DENOMINATOR, start, (rate, shortest_nonnegative()))
    numerator = jd.lag(t0) + jd.STEADY_TURN + jd.START_COST
    some = kernel.sum_order(kernel.square(e(t0 + s)), s, below(t))
    nonnegative = follows(
        0 <= numerator,
        lag, (share, growing), (Lam / margin, kernel.log_exp(0 * Lam)),
        (weak(kernel.inverse_positive(width)), some),
    )  # fmt: skip
    more = follows(numerator <= NUMERATOR, turn, bent, nonzero=[width])
    order = follows(DENOMINATOR <= path, (rate, shortest))
    claim = follows(
        DIRECTION_BODY,
        sharp, (nonnegative, inverse_order(order, near)), (kernel.inverse_positive(near), more),
        nonzero=[far],
    )  # fmt: skip
    return jd.closed(discharge(generalize(claim, t, nt.NATURALS), steps_nonnegative()))


def path_nonnegative() -> Proved:
    """0 <= E_(t0+t) - E_t0."""
    step = specialize(steps_nonnegative(), s)
    lengths = telescoped(lambda k: nt.path_length(t0 + k), t)
    return follows(0 <= jd.travelled(t), kernel.sum_order(step, s, below(t)), lengths)


def shortest_nonnegative() -> Proved:
    """0 <= lo_t: the logarithm grows."""
    b = ps.shorter()
    first = follows(0 < as_real(t0) + 1, kernel.natural(t0), one_positive())
    order = follows(as_real(t0) + 1 <= as_real(t0 + t) + 1, kernel.natural(t))
    grows = exp_monotone(
        follows(
            ps.b * log(as_real(t0) + 1) <= ps.b * log(as_real(t0 + t) + 1),
            (weak(b), log_monotone(order, first)),
        )
    )
    weight = product_nonnegative(assume(STEP_POSITIVE), kernel.inverse_positive(b))
    return follows(0 <= SHORTEST, (weak(weight), grows))


# --- the loss ----------------------------------------------------------------------------------------------

EXPONENT = -jl.PACE * DECODER_SHORTEST + half * R_o**2 * DECODER_SQUARES
LOSS_BODY = jl.at(t0 + t).loss() <= jl.at(t0).optimal_loss() * exp(leak + EXPONENT)


def prove_loss() -> Proved:
    """The exponent of the loss theorem, by the path and the squares of the schedule."""
    shortest, _, squares = decoder_sums()
    share = product_nonnegative(
        kernel.inverse_positive(jl.jo.loss_positive(jl.floor)), jl.jo.slope_positive(jl.floor)
    )
    pace = product_nonnegative(weak(share), weak(assume(jl.PACE_POSITIVE)))
    exponent = follows(
        leak + jl.EXPONENT <= leak + EXPONENT,
        (pace, shortest), (kernel.square(R_o), squares),
    )  # fmt: skip
    size_ = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    start = jl.jo.sum_positive(jl.jo.loss_positive(jl.at(t0).optimal_score(nt.i)))
    loss = product_nonnegative(start, size_)
    claim = follows(LOSS_BODY, specialize(jl.LOSS.proved(), t), (weak(loss), exp_monotone(exponent)))
    return discharge(generalize(claim, t, nt.NATURALS), decoder_steps_nonnegative())


SMALL_LEAKS = 10 * (2 * eps * R_d + (1 - exp(-leak)) * R_o) <= decoder_margin
RATE = Fraction(9, 10) * decoder_margin * jl.SHARE
RATE_EXPONENT = -RATE * DECODER_SHORTEST + half * R_o**2 * DECODER_SQUARES
RATE_BODY = jl.at(t0 + t).loss() <= jl.at(t0).optimal_loss() * exp(leak + RATE_EXPONENT)


def prove_rate() -> Proved:
    """c is at least 9/10 of gamma sigma(-h)/l(h), and positive with gamma."""
    positive = kernel.inverse_positive(jl.jd.separator_nonzero())
    pace = follows(jl.PACE_POSITIVE, positive, assume(SMALL_LEAKS))
    share = product_nonnegative(
        kernel.inverse_positive(jl.jo.loss_positive(jl.floor)), jl.jo.slope_positive(jl.floor)
    )
    order = follows(Fraction(9, 10) * decoder_margin <= jl.RATE, assume(SMALL_LEAKS))
    weight = product_nonnegative(weak(share), decoder_shortest_nonnegative())
    exponent = follows(leak + EXPONENT <= leak + RATE_EXPONENT, (weight, order))
    size_ = kernel.inverse_positive(assume(co.DATA_SIZE_POSITIVE))
    start = jl.jo.sum_positive(jl.jo.loss_positive(jl.at(t0).optimal_score(nt.i)))
    loss = product_nonnegative(start, size_)
    slow = discharge(specialize(LOSS.proved(), t), pace)
    claim = follows(RATE_BODY, slow, (weak(loss), exp_monotone(exponent)))
    return generalize(claim, t, nt.NATURALS)


def decoder_shortest_nonnegative() -> Proved:
    """0 <= lo_t of the decoder."""
    return kernel.instantiate(shortest_nonnegative(), reals={"decay": a_u, "eta": eta_u})


EXPONENTS = {"a < 1": BELOW_ONE, "a > 1/2": ABOVE_HALF}
DIRECTION = Theorem(
    key="joint-direction-schedule",
    title="In joint training with steps eta (t + 1)^(-a) the direction gap is O(log t/t^(1-a))",
    kind="corollary",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=without(jd.PATH.hypotheses, "steps are nonnegative")
    | EXPONENTS
    | {"t0 > 0": STARTED, "schedule": SCHEDULE, "eta > 0": STEP_POSITIVE},
    claim=nt.always(DIRECTION_BODY),
    prove=prove_direction,
    rate=Rate(observed=DIRECTION_BODY[1], bound=DIRECTION_BODY[2], sense="upper"),
)
LOSS = Theorem(
    key="joint-loss-schedule",
    title="In joint training with steps eta (t + 1)^(-a) the loss is exp(-c t^(1-a)), whatever W does",
    kind="corollary",
    reference="the paper's exp(-c t^(1/3)) of joint training, by our a-posteriori theorem",
    statement=r"For every $t$: {claim}.",
    hypotheses=without(jl.LOSS.hypotheses, "the decoder's steps are nonnegative")
    | {f"{name}, of the decoder": of_decoder(f) for name, f in EXPONENTS.items()}
    | {"t0 > 0": STARTED, "decoder's schedule": DECODER_SCHEDULE, "eta_u > 0": DECODER_STEP_POSITIVE},
    claim=nt.always(LOSS_BODY),
    prove=prove_loss,
    rate=Rate(observed=LOSS_BODY[1], bound=LOSS_BODY[2], sense="upper", small_numbers=True),
)
LOSS_RATE = Theorem(
    key="joint-loss-rate",
    title="Once attention leaks little, the loss of joint training is exp(-c t^(1-a)) with c near the margin",
    kind="corollary",
    reference="the paper's exp(-c t^(1/3)) of joint training, by our a-posteriori theorem",
    statement=r"If from $t_0$ on the leaks cost at most a tenth of the margin: for every $t$, {claim}.",
    hypotheses=without(LOSS.hypotheses, "the leaks are small")
    | {"the leaks cost at most a tenth of the margin": SMALL_LEAKS},
    claim=nt.always(RATE_BODY),
    prove=prove_rate,
    rate=Rate(observed=RATE_BODY[1], bound=RATE_BODY[2], sense="upper", small_numbers=True),
)
PAGES = (DIRECTION, LOSS, LOSS_RATE)
