"""A harmonic sum grows like a logarithm: sum over s <= t of 1/(r s + l) <= 1/l + log(1 + r t/l)/r."""

from __future__ import annotations

from theory import notation as nt
from theory.notation import s, t
from theory.page import Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, generalize, induction, specialize
from theory.proof.tactics import equation, follows, log_quotient, log_secant, weak
from theory.proof.terms import Formula, Index, Term, as_real, below, eq, log, number, symbol, total

r, ell = symbol("r"), symbol("l")
HARMONIC_CLAIM = (
    total(s, below(t + 1), 1 / (r * as_real(s) + ell)) <= 1 / ell + log(1 + r * as_real(t) / ell) / r
)


def prove_harmonic() -> Proved:
    """By induction; the secant of log bounds each term by the growth of log over the step before it."""
    pace, start = assume(0 < r), assume(0 < ell)

    def floor(at: Index) -> Proved:
        positive = 0 < r * as_real(at) + ell
        return follows(positive, (weak(pace), kernel.natural(at)), start)

    def claim(at: Index) -> Formula:
        logs = log(r * as_real(at) + ell) - log(ell)
        return total(s, below(at + 1), 1 / (r * as_real(s) + ell)) <= 1 / ell + logs / r

    secant = log_secant(floor(t + 1), floor(t))
    share = kernel.inverse_positive(pace)
    step = follows(claim(t + 1), assume(claim(t)), (share, secant), nonzero=[pace, floor(t + 1)])
    always = specialize(induction(follows(claim(number(0))), step, t), t)
    joined = log_ratio(r * as_real(t) / ell, floor(t), start)
    return generalize(follows(HARMONIC_CLAIM, always, (1 / r, joined)), t, nt.NATURALS)


def log_ratio(part: Term, whole: Proved, base: Proved) -> Proved:
    """log(1 + part) = log(a) - log(b), for 0 < a and 0 < b with a/b = 1 + part."""
    a, b = whole.conclusion[2], base.conclusion[2]
    hole = symbol("x")
    same = congruence(equation(eq(a / b, 1 + part), nonzero=[base]), log(hole), hole)
    return follows(eq(log(1 + part), log(a) - log(b)), same, log_quotient(whole, base))


HARMONIC = Theorem(
    key="harmonic-sum",
    title="A harmonic sum grows like a logarithm",
    kind="lemma",
    reference="elementary; the steps of normalized gradient descent add up to such a sum",
    statement=r"For every $t$: {claim}.",
    hypotheses={"r > 0": 0 < r, "l > 0": 0 < ell},
    claim=nt.always(HARMONIC_CLAIM),
    prove=prove_harmonic,
)
PAGES = (HARMONIC,)
