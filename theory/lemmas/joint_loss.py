"""The logarithm of a mean logistic loss is smooth, and its slope is at least a share of it.

With l(m) = log(1 + exp(-m)) and sigma(-m) = 1/(1 + exp(m)) = -l'(m), for margins m_i, changes |b_i| <= r:

    log sum l(m_i + b_i) <= log sum l(m_i) - sum b_i sigma(-m_i)/sum l(m_i) + r^2/2,
    l(m) sigma(-h)/l(h) <= sigma(-m) <= l(m)    for h <= m,
    l(m - y) <= exp(y) l(m)                     for y >= 0.

The first needs no smallness of r, as l'' <= sigma(-m) <= l: the loss may fall or rise by any factor.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas.separator_correlation import in_i
from theory.notation import i, logistic
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, specialize
from theory.proof.tactics import (
    exp_monotone,
    exp_tangent,
    follows,
    log_monotone,
    log_secant,
    one_positive,
    product_nonnegative,
    restate,
    weak,
    zero,
)
from theory.proof.terms import Term, eq, exp, inv, log, real, substitute, symbol, total

REFERENCE = "the logistic loss; our theorem on joint training"
x, y, r, h = symbol("x"), symbol("y"), symbol("r"), symbol("h")
m_ = symbol("m")  # one margin
m, b = symbol("m", i), symbol("b", i)


def slope(m: Term) -> Term:
    """sigma(-m), minus the derivative of the loss."""
    return inv(1 + exp(m))


def over(body: Term) -> Term:
    """The sum over the sequences."""
    return total(i, nt.SEQUENCES, body)


def denominator(m: Term) -> Proved:
    """0 < 1 + exp(m)."""
    return co.denominator_positive(m)


def slope_positive(m: Term) -> Proved:
    """0 < sigma(-m)."""
    return kernel.inverse_positive(denominator(m))


def slope_forms(m: Term) -> Proved:
    """exp(-m)/(1 + exp(-m)) = sigma(-m)."""
    up, down = denominator(m), denominator(-m)
    return follows(eq(exp(-m) / (1 + exp(-m)), slope(m)), nonzero=[up, down])


def slope_at_most_loss(m: Term) -> Proved:
    """sigma(-m) <= l(m): log(1 + y) >= y/(1 + y) at y = exp(-m)."""
    down, nothing = denominator(-m), kernel.log_exp(zero())
    secant = log_secant(down, one_positive())
    return follows(slope(m) <= logistic(m), secant, nothing, slope_forms(m), nonzero=[down])


def loss_positive(m: Term) -> Proved:
    """0 < l(m)."""
    return follows(0 < logistic(m), slope_positive(m), slope_at_most_loss(m))


def sum_positive(term: Proved) -> Proved:
    """From 0 < f_i, 0 < sum f_i: there is a sequence."""
    f = term.conclusion[2]
    whole = kernel.term_of_sum(weak(term), i, nt.SEQUENCES, co.some_i)
    return follows(0 < over(f), co.moved(term, co.some_i), whole)


# --- smoothness --------------------------------------------------------------------------------------------

CHANGE_UPPER, CHANGE_LOWER = nt.each_sequence(b <= r), nt.each_sequence(-b <= r)
at_x = m + x * b  # the margin on the way
total_loss = over(logistic(at_x))
pull = over(b * slope(at_x))
falls = -pull * inv(total_loss)  # the derivative of log sum l


def on_the_way() -> list[Proved]:
    """What the derivatives ask: no denominator vanishes, for every sequence."""
    signs = (denominator(at_x), denominator(-at_x))
    return [*(co.for_each_sequence(c) for c in signs), sum_positive(loss_positive(at_x))]


def same_pull() -> Proved:
    """The derivative's form of the pull: sum b exp(-m)/(1 + exp(-m)) = sum b sigma(-m)."""
    forms = follows(eq(b * (exp(-at_x) / (1 + exp(-at_x))), b * slope(at_x)), (b, slope_forms(at_x)))
    return kernel.sum_order(forms, i, nt.SEQUENCES)


def bend_bounded() -> Proved:
    """falls(x) <= falls(0) + r^2 x: its slope is at most sum b^2 l''/sum l <= r^2."""
    share, whole, same = slope_positive(at_x), sum_positive(loss_positive(at_x)), same_pull()
    up, low = (specialize(assume(f), i, in_i) for f in (CHANGE_UPPER, CHANGE_LOWER))
    square = follows(b**2 <= r**2, (follows(0 <= r - b, up), follows(0 <= r + b, low)))
    curve = exp(at_x) * slope(at_x) ** 2  # l''
    both = weak(product_nonnegative(share, share))
    small = follows(curve <= logistic(at_x), both, slope_at_most_loss(at_x), nonzero=[denominator(at_x)])
    some = product_nonnegative(weak(kernel.exp_positive(at_x)), both)
    some = restate(0 <= curve, some)
    each = follows(b**2 * curve <= r**2 * logistic(at_x), (some, square), (kernel.square(r), small))
    bends = kernel.sum_order(each, i, nt.SEQUENCES)
    inverse = kernel.inverse_positive(whole)
    first = over(b**2 * curve) * inv(total_loss)
    slope_of_falls = first - pull * same.conclusion[1] * inv(total_loss) ** 2 - r**2
    sign = follows(
        slope_of_falls <= 0,
        (weak(inverse), bends), (kernel.square(inv(total_loss)), kernel.square(pull)),
        (pull * inv(total_loss) ** 2, same), nonzero=[whole],
    )  # fmt: skip
    return kernel.monotone(sign, assume(0 <= y), x, falls - r**2 * x, on_the_way())


def at_start(body: Term) -> Term:
    """A term at x = 0."""
    return substitute(body, reals={"x": ((), real(0))})


def prove_smooth() -> Proved:
    """log sum l less its tangent and r^2 x^2/2 falls from x = 0 to x = 1, by the bound on its slope."""
    bound = kernel.instantiate(bend_bounded(), reals={"y": x})
    start, same = at_start(falls), same_pull()
    body = log(total_loss) - start * x - r**2 * x**2 / 2
    sign = follows(
        -same.conclusion[1] * inv(total_loss) - start - r**2 * x <= 0,
        bound, (inv(total_loss), same),
    )  # fmt: skip
    moved = kernel.monotone(sign, weak(one_positive()), x, body, on_the_way())
    return restate(SMOOTH_CLAIM, moved)


SMOOTH_CLAIM = log(over(logistic(m + b))) <= (
    log(over(logistic(m))) - over(b * slope(m)) / over(logistic(m)) + r**2 / 2
)

# --- slope and loss ----------------------------------------------------------------------------------------


def prove_share() -> Proved:
    """(1 - exp(-x))/x falls in x = l(m), and 1 - exp(-l(m)) = sigma(-m)."""
    low, high = loss_positive(m_), loss_positive(h)
    order = log_monotone(
        follows(1 + exp(-m_) <= 1 + exp(-h), exp_monotone(follows(-m_ <= -h, assume(h <= m_)))),
        denominator(-m_),
    )
    inside = follows(0 < x, low, assume(logistic(m_) <= x))
    inverse = kernel.inverse_positive(inside)
    square = weak(product_nonnegative(inverse, inverse))
    weight = product_nonnegative(square, weak(kernel.exp_positive(-x)))
    sign = follows(
        exp(-x) * inv(x) - (1 - exp(-x)) * inv(x) ** 2 <= 0, (weight, exp_tangent(x)), nonzero=[inside]
    )
    falls_ = kernel.monotone(sign, order, x, (1 - exp(-x)) * inv(x), [inside])
    return follows(
        SHARE_CLAIM,
        (low, falls_), gone(m_), (logistic(m_) / logistic(h), gone(h)), nonzero=[low, high],
    )  # fmt: skip


def gone(m: Term) -> Proved:
    """1 - exp(-l(m)) = sigma(-m)."""
    down = denominator(-m)
    back = kernel.exp_log(down)
    inverse = follows(
        eq(exp(-logistic(m)), 1 / (1 + exp(-m))), (exp(-logistic(m)) / (1 + exp(-m)), back), nonzero=[down]
    )
    return follows(eq(1 - exp(-logistic(m)), slope(m)), inverse, slope_forms(m), nonzero=[down])


SHARE_CLAIM = logistic(m_) * (slope(h) / logistic(h)) <= slope(m_)


def prove_factor() -> Proved:
    """log(1 + k z) <= k log(1 + z) for k = exp(y) >= 1: in z, k/(1 + k z) <= k/(1 + z)."""
    k, z = exp(y), symbol("z")
    more = follows(1 <= k, exp_tangent(y), assume(0 <= y))
    start = assume(0 <= z)
    left = follows(0 < 1 + k * z, one_positive(), (weak(kernel.exp_positive(y)), start))
    right = follows(0 < 1 + z, one_positive(), start)
    inverses = product_nonnegative(
        product_nonnegative(kernel.inverse_positive(left), kernel.inverse_positive(right)),
        kernel.exp_positive(y),
    )
    weight = product_nonnegative(weak(inverses), start)
    sign = follows(0 <= k * inv(1 + z) - k * inv(1 + k * z), (weight, more), nonzero=[left, right])
    grows = kernel.monotone(
        sign, weak(kernel.exp_positive(-m_)), z, k * log(1 + z) - log(1 + k * z), [left, right]
    )
    return follows(FACTOR_CLAIM, grows, (1 - k, kernel.log_exp(zero())))


FACTOR_CLAIM = logistic(m_ - y) <= exp(y) * logistic(m_)

SMOOTH = Theorem(
    key="log-loss-smooth",
    title="The logarithm of a mean logistic loss is smooth, however far the margins move",
    kind="lemma",
    reference=REFERENCE,
    statement=r"If no margin changes by more than $r$: {claim}.",
    hypotheses={
        "changes are at most r": CHANGE_UPPER,
        "changes are at least -r": CHANGE_LOWER,
        "there is a sequence": nt.SOME_SEQUENCE,
    },
    claim=SMOOTH_CLAIM,
    prove=prove_smooth,
)
SHARE = Theorem(
    key="loss-slope-share",
    title="The slope of the logistic loss is at least a share of the loss, and the larger the later",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={"h <= m": h <= m_},
    claim=SHARE_CLAIM,
    prove=prove_share,
)
FACTOR = Theorem(
    key="loss-factor",
    title="A loss in margin multiplies the logistic loss by at most its exponential",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}.",
    hypotheses={"y >= 0": 0 <= y},
    claim=FACTOR_CLAIM,
    prove=prove_factor,
)
PAGES = (SMOOTH, SHARE, FACTOR)
