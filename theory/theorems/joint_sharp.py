"""Joint training under full support: the residual of W stays bounded, and the direction gap is O(1/E_t^2).

W = v M^ + r with r orthogonal to M. Let every constraint be active, and from t0 on let the weights omega_k =
c_k exp(mu_k) be positive, at every step within a factor kappa of each other. Let r* balance equal weights:
sum exp(-<A_k, r*>) A_k is along M. Let q_min be the least share of a constraint in that sum, sig a lower
bound on the variance of the <A_k, x> under the shares, by ||x||^2, and R_B >= ||A_k - g*^2 M||. For steps e_t
<= e_max from t0 on, with

    Z = e_max R_B^2/g* + log(kappa)^2/4 + log(kappa) - log(q_min),    D0 = Z sqrt((1/q_min - 1)/sig),
    rho = ||r*|| + max(||r_t0|| + ||r*||, D0 + e_max),

    ||r_(t0+t)|| <= rho,    1 - cos(W_(t0+t), M) <= rho^2/(2 (v_t0 + g* (E_(t0+t) - E_t0)/R)^2).

With e_t = eta (t + 1)^(-2/3) this is O(t^(-2/3)), what runs show. The weights may drift within their factor
for ever, as the decoder moves: no limit of them is asked for. It is the theorem on the residual under steps
of any length, with shifts log(omega_k) in an interval of length log(kappa).
"""

from __future__ import annotations

from typing import Any

from theory import notation as nt
from theory.lemmas import joint_layer as jl
from theory.lemmas import residual_step as rs
from theory.lemmas.joint_layer import REFERENCE, t0
from theory.lemmas.residual_step import apart, r_star, residual
from theory.lemmas.separator_correlation import at_constraint
from theory.notation import M, R, e, i, kappa_run, layer, margin, omega, omega_min, t, tau
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, discharge, generalize, specialize
from theory.proof.tactics import (
    equation,
    follows,
    log_monotone,
    log_product,
    max_above,
    max_at_most,
    norm_nonnegative,
    one_positive,
    product_nonnegative,
    telescoped,
    weak,
    zero,
)
from theory.proof.terms import (
    Formula,
    Index,
    Term,
    eq,
    inner,
    log,
    maximum,
    norm,
    number,
    real,
    substitute,
)
from theory.theorems import joint_direction as jd
from theory.theorems import residual as base
from theory.theorems import residual_any_step as any_step
from theory.theorems import sharp_rate as rate
from theory.theorems.direction import gap_to
from theory.theorems.residual import e_max

END, origin = t0 + t, number(0)
EQUAL_WEIGHTS: dict[str, Any] = {"w": (("i", "tau"), real(1))}
INTERVAL: dict[str, Any] = {
    **EQUAL_WEIGHTS, "lo": (("t",), log(omega_min(layer(t)))), "o_max": ((), log(kappa_run)),
}  # fmt: skip


def of_run(node: Any) -> Any:
    """A formula or term of the theorem on steps of any length, for a joint run from step 0 on."""
    return substitute(node, reals=INTERVAL)


D0 = of_run(any_step.D0)


def size(at: Index) -> Term:
    """||r_t||."""
    return norm(residual(layer(at).W))


def rho(start: Index) -> Term:
    """The bound on the residual since ``start``."""
    return norm(r_star) + maximum(size(start) + norm(r_star), D0 + e_max)


# --- the shifts of a joint run -----------------------------------------------------------------------------


def shift_is() -> Proved:
    """The shift of constraint k is log(omega_k): c_k = omega_k exp(-mu_k)."""
    mu, weight = rs.L.gap(i, tau), jl.weight_positive()
    hole = nt.symbol("y")
    named = kernel.congruence(at_constraint(jl.COEFFICIENTS), log(hole), hole)
    split = log_product(weight, kernel.exp_positive(-mu))
    shift = substitute(rs.shift(rs.L), reals=EQUAL_WEIGHTS)
    return follows(eq(shift, log(omega(i, tau))), named, split, kernel.log_exp(-mu), kernel.log_exp(zero()))


def shifts() -> list[Proved]:
    """log(omega_min) <= shift <= log(omega_min) + log(kappa)."""
    smallest = assume(jl.WEIGHTS_POSITIVE)
    low, high = at_constraint(jl.WEIGHTS_LOWER), at_constraint(jl.WEIGHTS_UPPER)
    top = follows(0 < kappa_run * omega_min(), smallest, low, high)
    ratio = follows(0 < kappa_run, (kernel.inverse_positive(smallest), top), nonzero=[smallest])
    ratio = closed_at_one(ratio)
    shift = shift_is()
    floor = log(omega_min())
    return [
        follows(floor <= shift.conclusion[1], shift, log_monotone(low, smallest)),
        follows(
            shift.conclusion[1] <= floor + log(kappa_run),
            shift, log_monotone(high, jl.weight_positive()), log_product(ratio, smallest),
        ),
    ]  # fmt: skip


def closed_at_one(claim: Proved) -> Proved:
    """A claim that speaks of no constraint, from the one that exists."""
    moved = rs.co.moved(kernel.instantiate(claim, indices={"tau": nt.tau1}), rs.co.some_i)
    return discharge(moved, rs.co.some_tau)


def at_every_step(claim: Proved) -> Proved:
    """A claim about the generic constraint at any W, for every constraint at every iterate."""
    return generalize(jl.at_step(rs.co.for_each_constraint(claim), t), t, nt.NATURALS)


def bounded() -> Proved:
    """||r_t - r*|| <= max(||r_0 - r*||, D0 + e_max) for every t."""
    claim = kernel.instantiate(any_step.BOUNDED.proved(), reals=INTERVAL, indices={"t0": origin})
    facts = [at_every_step(c) for c in (*shifts(), jl.coefficient_positive())]
    facts.append(rs.co.for_each_constraint(one_positive()))
    return specialize(discharge(claim, *facts), t)


# --- the residual and the direction ------------------------------------------------------------------------


def prove_residual_from_zero() -> Proved:
    """||r_t|| <= ||r*|| + ||r_t - r*||, and ||r_0 - r*|| <= ||r_0|| + ||r*||."""
    start = base.triangle(apart(layer(origin).W), residual(layer(origin).W))
    first = follows(norm(apart(layer(origin).W)) <= size(origin) + norm(r_star), start)
    top = max_above(size(origin) + norm(r_star), D0 + e_max)
    inside = max_at_most(follows(first.conclusion[1] <= top[0].conclusion[2], first, top[0]), top[1])
    far = base.triangle(residual(layer(t).W), r_star)
    return follows(size(t) <= rho(origin), far, bounded(), inside)


def since(claim: Proved) -> Proved:
    """A claim about the run from step 0 at step t, at t0 + t, for every t."""
    every = jd.without_mass(generalize(claim, t, nt.NATURALS))
    return discharge(kernel.instantiate(every, **jl.since()), rs.separable())


def prove_residual() -> Proved:
    """From t0 on."""
    return since(prove_residual_from_zero())


def prove_rate() -> Proved:
    """1 - cos <= ||r||^2/(2 v^2), with v at least v_t0 + g*/R times the path."""
    now, length = layer(END).W, jd.travelled(t)
    solution = rs.solution_nonzero()
    g_star = kernel.inverse_positive(solution)
    signs = (
        at_every_step(weak(jl.coefficient_positive())),
        generalize(jl.at_step(gradient_positive(), t), t, nt.NATURALS),
    )
    facts = (kernel.instantiate(fact, **jl.since()) for fact in signs)
    steady = discharge(specialize(jd.COMPONENT.proved(), t), *facts, rs.separable())
    start = follows(0 < jd.component(t0), (g_star, assume(jd.AHEAD)))
    radius = kernel.inverse_positive(discharge(rs.co.BOUND_POSITIVE.proved(), rs.separable()))
    lengths = telescoped(lambda k: nt.path_length(t0 + k), t)
    step = specialize(assume(STEPS_NONNEGATIVE), nt.s)
    path = follows(0 <= length, kernel.sum_order(step, nt.s, nt.below(t)), lengths)
    reached = jd.component(t0) + margin * length / R
    low = follows(0 < reached, start, (weak(product_nonnegative(g_star, radius)), path))
    v = follows(0 < jd.component(END), low, steady)
    ahead = follows(0 < inner(now, M), (solution, v), nonzero=[solution])
    static = discharge(nt.at_time(rate.UPPER.proved(), END), ahead)
    quotient = kernel.instantiate(
        rate.quotients_ordered(),
        reals={"a": reached, "b": jd.component(END), "r": size(END), "y": rho(t0)},
    )
    residual_ = specialize(RESIDUAL.proved(), t)
    quotient = discharge(quotient, low, steady, norm_nonnegative(residual(now)), residual_)
    claim = follows(gap_to(END) <= rho(t0) ** 2 / (2 * reached**2), static, quotient)
    return without_mass(generalize(claim, t, nt.NATURALS))


def without_mass(claim: Proved) -> Proved:
    """Without the hypothesis that defines C_(t0+t), in a claim that does not speak of it."""
    mass = nt.over(layer(t).c(i, tau))
    later = substitute(mass, **jl.since())
    defined = generalize(equation(eq(later, later)), t, nt.NATURALS)
    return discharge(kernel.instantiate(claim, reals={"C": (("t",), mass)}), defined)


def gradient_positive() -> Proved:
    """0 < ||D||, as in the direction theorem, under full support."""
    return discharge(jd.gradient_positive(), rs.separable(), rs.solution_nonzero())


STEPS_NONNEGATIVE = nt.always(0 <= e(t0 + t))
BOUND = rho(t0) ** 2 / (2 * (jd.component(t0) + margin * jd.travelled(t) / R) ** 2)


def hypotheses() -> dict[str, Formula]:
    """Those of the theorem on steps of any length, from t0 on, with the shifts of a joint run."""
    shifted = {"c > 0", "C", "w > 0", "the shifts are at least lo", "the shifts are at most lo + o_max"}
    kept = {name: of_run(f) for name, f in any_step.HYPOTHESES.items() if name not in shifted}
    kept |= {name: jl.always(f) for name, f in jl.WEIGHTS.items()}
    return jl.hypotheses_from_step(kept)


RESIDUAL = Theorem(
    key="joint-residual",
    title="In joint training under full support the residual of the weights stays bounded",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses(),
    claim=nt.always(size(END) <= rho(t0)),
    prove=prove_residual,
    rate=Rate(observed=size(END), bound=rho(t0), sense="upper"),
)
SHARP_RATE = Theorem(
    key="joint-sharp-rate",
    title="In joint training under full support the direction gap falls like one over the path squared",
    kind="theorem",
    reference=REFERENCE,
    statement=r"For every $t$: {claim}.",
    hypotheses=hypotheses()
    | {"W has a component along M at t0": jd.AHEAD, "R bounds the constraints": nt.NORM_BOUND},
    claim=nt.always(gap_to(END) <= BOUND),
    prove=prove_rate,
    rate=Rate(observed=gap_to(END), bound=BOUND, sense="upper"),
)
PAGES = (RESIDUAL, SHARP_RATE)
