"""From facts about the layer to its definitions: what other pages assume of its signs and sizes is proved."""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.notation import i, layer, over, t, tau
from theory.proof.kernel import Proved, discharge, generalize, instantiate
from theory.proof.tactics import equation
from theory.proof.terms import eq

STATIC_FACTS = (co.SOLUTION_NONZERO, co.BOUND_POSITIVE)
FACTS_AT_EVERY_STEP = (co.COEFFICIENTS_NONNEGATIVE, co.GRADIENT_NONZERO, co.SLOPE_LOWER, co.SLOPE_UPPER)
NAMES = {
    **{name: nt.at_all_times(co.HYPOTHESES[name]) for name in ("p", "a", "c", "gradient")},
    **{
        name: co.HYPOTHESES[name]
        for name in ("(E)", "n > 0", "(S)", "a_min bounds the slopes", "a_max bounds the slopes", *co.EXISTS)
    },
}


def from_definitions(claim: Proved) -> Proved:
    """The claim, no longer assuming M, R and the gradient not 0, c_k >= 0, a_min <= a_i <= a_max."""
    facts = [page.proved() for page in STATIC_FACTS]
    facts += [generalize(nt.from_all_times(page.proved(), t), t, nt.NATURALS) for page in FACTS_AT_EVERY_STEP]
    return discharge(claim, *(fact for fact in facts if fact.conclusion in claim.hypotheses))


def without_mass(claim: Proved) -> Proved:
    """A claim that does not speak of C_t, without the hypothesis that defines C_t: let C_t be that sum."""
    mass = over(layer(t).c(i, tau))
    defined = generalize(equation(eq(mass, mass)), t, nt.NATURALS)
    return discharge(instantiate(claim, reals={"C": (("t",), mass)}), defined)
