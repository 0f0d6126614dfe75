"""Tails of Gaussian inner products and of squared lengths, by Chernoff's method with the best exponent.

xi, xi' are independent, N(0, sigma^2) in d dimensions. Not proved here, and listed as given: Markov's
inequality for the exponential of t <xi, xi'>/sigma^2 or t ||xi||^2/sigma^2, and the two expectations

    E exp(t <xi, xi'>/sigma^2) = (1 - t^2)^(-d/2)  for |t| < 1,
    E exp(t ||xi||^2/sigma^2) = (1 - 2 t)^(-d/2)   for t < 1/2.

At the best t they give

    P(<xi, xi'> >= sigma^2 d t/(1 - t^2)) <= exp(-d (t^2/(1 - t^2) + log(1 - t^2)/2)),
    P(||xi||^2 <= sigma^2 d (1 - w)) <= exp(d (w + log(1 - w))/2),
    P(||xi||^2 >= sigma^2 d (1 + y)) <= exp(-d (y - log(1 + y))/2).
"""

from __future__ import annotations

from collections.abc import Mapping

from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence
from theory.proof.tactics import equation, follows, log_quotient, one_positive, unused, zero
from theory.proof.terms import Formula, Term, eq, exp, log, symbol

REFERENCE = "Chernoff's method; Gaussian and chi-square moment generating functions"
t, d, w, y = (symbol(name) for name in "tdwy")
probability, expectation = symbol("P"), symbol("E")
MARKOV, MOMENT = "Markov's inequality", "moment generating function"


def deviation(t: Term) -> Term:
    """The relative size of the inner product whose best exponent is t."""
    return t / (1 - t**2)


def product_tail(t: Term, d: Term) -> Term:
    """Bound of P(<xi, xi'> >= sigma^2 d t/(1 - t^2))."""
    return exp(-d * (t**2 / (1 - t**2) + log(1 - t**2) / 2))


def short_tail(w: Term, d: Term) -> Term:
    """Bound of P(||xi||^2 <= sigma^2 d (1 - w))."""
    return exp(d * (w + log(1 - w)) / 2)


def long_tail(y: Term, d: Term) -> Term:
    """Bound of P(||xi||^2 >= sigma^2 d (1 + y))."""
    return exp(-d * (y - log(1 + y)) / 2)


def markov(probability: Term, exponent: Term, level: Term, expectation: Term) -> Formula:
    """P(X >= level) <= exp(-exponent level) E exp(exponent X)."""
    return probability <= exp(-exponent * level) * expectation


def product_moment(expectation: Term, t: Term, d: Term) -> Formula:
    """E exp(t <xi, xi'>/sigma^2)."""
    return eq(expectation, exp(-d / 2 * log(1 - t**2)))


def square_moment(expectation: Term, t: Term, d: Term) -> Formula:
    """E exp(t ||xi||^2/sigma^2)."""
    return eq(expectation, exp(-d / 2 * log(1 - 2 * t)))


def short_exponent(w: Term) -> Term:
    """The best t for the lower tail."""
    return -w / (2 * (1 - w))


def long_exponent(y: Term) -> Term:
    """The best t for the upper tail."""
    return y / (2 * (1 + y))


PRODUCT_HYPOTHESES = {
    MARKOV: markov(probability, t, d * deviation(t), expectation),
    MOMENT: product_moment(expectation, t, d),
}
SHORT_HYPOTHESES = {
    MARKOV: markov(probability, short_exponent(w), d * (1 - w), expectation),
    MOMENT: square_moment(expectation, short_exponent(w), d),
    "w < 1": w < 1,
}
LONG_HYPOTHESES = {
    MARKOV: markov(probability, long_exponent(y), d * (1 + y), expectation),
    MOMENT: square_moment(expectation, long_exponent(y), d),
    "y >= 0": 0 <= y,
}
PRODUCT_CLAIM = probability <= product_tail(t, d)
SHORT_CLAIM = probability <= short_tail(w, d)
LONG_CLAIM = probability <= long_tail(y, d)


def prove_product() -> Proved:
    """Both exponentials in one."""
    bound, moment = (assume(PRODUCT_HYPOTHESES[name]) for name in (MARKOV, MOMENT))
    return follows(PRODUCT_CLAIM, bound, (exp(-t * (d * deviation(t))), moment))


def _square(
    claim: Formula, hypotheses: Mapping[str, Formula], best: Term, ratio: Term, positive: Proved
) -> Proved:
    """At the best t, 1 - 2 t = 1/(length ratio) and t times the ratio is half its excess over 1."""
    hole = symbol(unused(d, ratio))
    bound, moment = (assume(hypotheses[name]) for name in (MARKOV, MOMENT))
    exponent = congruence(
        equation(eq(-best * (d * ratio), -d * (ratio - 1) / 2), nonzero=[positive]), exp(hole), hole
    )
    inverse = congruence(equation(eq(1 - 2 * best, 1 / ratio), nonzero=[positive]), log(hole), hole)
    logarithm = follows(
        eq(log(1 - 2 * best), -log(ratio)),
        inverse,
        log_quotient(one_positive(), positive),
        kernel.log_exp(zero()),
    )
    power = congruence(logarithm, exp(-d / 2 * hole), hole)
    return follows(
        claim,
        bound,
        (exp(-best * (d * ratio)), moment),
        (exp(-best * (d * ratio)), power),
        (exp(d / 2 * log(ratio)), exponent),
    )


def prove_short() -> Proved:
    """t = -w/(2 (1 - w))."""
    positive = follows(0 < 1 - w, assume(SHORT_HYPOTHESES["w < 1"]))
    return _square(SHORT_CLAIM, SHORT_HYPOTHESES, short_exponent(w), 1 - w, positive)


def prove_long() -> Proved:
    """t = y/(2 (1 + y))."""
    positive = follows(0 < 1 + y, one_positive(), assume(LONG_HYPOTHESES["y >= 0"]))
    return _square(LONG_CLAIM, LONG_HYPOTHESES, long_exponent(y), 1 + y, positive)


PRODUCT = Theorem(
    key="gaussian-product-tail",
    title="The inner product of two independent Gaussian vectors is small beside their squared lengths",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}, where $P$ is the probability of $\langle\xi,\xi'\rangle \ge \sigma^2 d\,t/(1-t^2)$.",
    hypotheses=PRODUCT_HYPOTHESES,
    claim=PRODUCT_CLAIM,
    prove=prove_product,
    given=(MARKOV, MOMENT),
)
SHORT = Theorem(
    key="gaussian-short-tail",
    title="A Gaussian vector is hardly ever much shorter than on average",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}, where $P$ is the probability of $\|\xi\|^2 \le \sigma^2 d (1 - w)$.",
    hypotheses=SHORT_HYPOTHESES,
    claim=SHORT_CLAIM,
    prove=prove_short,
    given=(MARKOV, MOMENT),
)
LONG = Theorem(
    key="gaussian-long-tail",
    title="A Gaussian vector is hardly ever much longer than on average",
    kind="lemma",
    reference=REFERENCE,
    statement=r"{claim}, where $P$ is the probability of $\|\xi\|^2 \ge \sigma^2 d (1 + y)$.",
    hypotheses=LONG_HYPOTHESES,
    claim=LONG_CLAIM,
    prove=prove_long,
    given=(MARKOV, MOMENT),
)
PAGES = (PRODUCT, SHORT, LONG)
