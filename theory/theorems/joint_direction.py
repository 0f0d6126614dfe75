"""Joint training, the weights: they turn towards the max-margin solution, whatever the decoder does.

W_(t+1) = W_t - e_t grad_W L/||grad_W L|| with any steps e_t, while the decoder moves by any rule. Fix a token
o_i in each sequence; A_k and W_mm = M are as these tokens give them. Let t0 be such that from there on
-grad_W L = sum c_k A_k with c_k >= 0 (the token o_i draws attention from every other). Then with E_t the path
length of W, S_t = sum e_s C_s/||grad_W L_s|| and v_t = <W_t, M^>

    v_t0 + g* (E_(t0+t) - E_t0)/R <= v_t0 + g* (S_(t0+t) - S_t0) <= v_(t0+t).

If moreover the weights omega_k = c_k exp(mu_k) are positive from t0 on and at every step within a factor
kappa of each other, and v_t0 > 0, then with Lam exp(Lam) = (N - 1) kappa/e and u_t = ||W_t||

    1 - cos(W_(t0+t), M) <= [ u_t0 - v_t0 + Lam/g* log((g* u_(t0+t) + Lam)/(g* u_t0 + Lam))
                              + 1/2 sum_(s<t) e_(t0+s)^2/(u_(t0+s) + Lam/g*) ] / u_(t0+t),

where a run need record no more than the sum of e_s^2/u_s; and with nothing of the run after t0 but its steps,

    1 - cos(W_(t0+t), M) <= [ u_t0 - v_t0 + Lam/g* log(1 + g* dE/(g* u_t0 + Lam)) + dQ/(2 (v_t0 + Lam/g*)) ]
                            / (v_t0 + g* dE/R),      dE = E_(t0+t) - E_t0,  dQ = sum_(s<t) e_(t0+s)^2.

With e_t = eta (t + 1)^(-2/3), dE is of the order t^(1/3) and dQ bounded: the gap is O(log t/t^(1/3)). What is
said of the step t0 + t draws on the steps from t0 to t0 + t only.
"""

from __future__ import annotations

from theory import notation as nt
from theory.lemmas import coefficients as co
from theory.lemmas import joint_alignment as ja
from theory.lemmas import joint_layer as jl
from theory.lemmas import potential
from theory.lemmas.definitions import without_mass
from theory.lemmas.harmonic_sum import log_ratio
from theory.lemmas.joint_alignment import Lam
from theory.lemmas.joint_layer import REFERENCE, at_step, from_step, t0
from theory.lemmas.potential import psi
from theory.lemmas.separator_correlation import CORRELATION, sum_constraints
from theory.notation import STATIC, M, R, e, layer, margin, path_length, s, separator_path, t
from theory.page import Rate, Theorem
from theory.proof import kernel
from theory.proof.kernel import Proved, assume, congruence, discharge, generalize, specialize
from theory.proof.tactics import (
    follows,
    inverse_order,
    log_monotone,
    log_quotient,
    norm_nonnegative,
    norm_squared,
    product_nonnegative,
    restate,
    telescoped,
    weak,
)
from theory.proof.terms import (
    Fraction,
    Index,
    Term,
    below,
    inner,
    log,
    norm,
    number,
    symbol,
    total,
    vector,
)
from theory.theorems import norm_growth, normalized_gd
from theory.theorems.direction import gap_to, size

half = Fraction(1, 2)
START, END = t0, t0 + t
origin = number(0)


def component(at: Index) -> Term:
    """v_t = <W_t, M^>."""
    return margin * inner(layer(at).W, M)


def travelled(t: Index) -> Term:
    """E_(t0+t) - E_t0."""
    return path_length(t0 + t) - path_length(t0)


def separated(t: Index) -> Term:
    """S_(t0+t) - S_t0."""
    return separator_path(t0 + t) - separator_path(t0)


def squares(t: Index, start: Index = t0) -> Term:
    """The sum of e_s^2 over the ``t`` steps since ``start``."""
    return total(s, below(t), e(start + s) ** 2)


# --- growth along the max-margin direction -----------------------------------------------------------------


def solution_positive() -> Proved:
    """0 < ||M||."""
    return assume(nt.SOLUTION_NONZERO)


def margin_positive() -> Proved:
    """0 < g*."""
    return kernel.inverse_positive(solution_positive())


def closed(claim: Proved) -> Proved:
    """Without the hypotheses that M and R are not 0: there is a constraint."""
    facts = (page.proved() for page in (co.SOLUTION_NONZERO, co.BOUND_POSITIVE))
    return discharge(claim, *(f for f in facts if f.conclusion in claim.hypotheses))


def prove_separator() -> Proved:
    """The separator growth of a run that starts at t0, with the sum over its steps as a difference."""
    grown = specialize(from_step(norm_growth.SEPARATOR.proved()), t)
    steps = telescoped(lambda k: separator_path(t0 + k), t)
    claim = component(t0) + margin * separated(t) <= component(END)
    return closed(generalize(follows(claim, (margin_positive(), grown), (margin, steps)), t, nt.NATURALS))


def prove_component() -> Proved:
    """S grows by at least 1/R of the path."""
    paths = specialize(from_step(norm_growth.PATH_LOWER.proved()), t)
    lengths = telescoped(lambda k: path_length(t0 + k), t)
    steps = telescoped(lambda k: separator_path(t0 + k), t)
    longer = follows(travelled(t) / R <= separated(t), paths, (1 / R, lengths), steps)
    grown = specialize(SEPARATOR.proved(), t)
    claim = component(t0) + margin * travelled(t) / R <= component(END)
    return closed(generalize(follows(claim, grown, (margin_positive(), longer)), t, nt.NATURALS))


GROWTH_HYPOTHESES = {
    "(S)": nt.SEPARABLE,
    "there is a sequence": nt.SOME_SEQUENCE,
    "with a constraint": nt.SOME_TOKEN,
    **jl.hypotheses_from_step(
        {
            name: norm_growth.HYPOTHESES[name]
            for name in ("c >= 0", "gradient", "C", "gradient is not 0", "steps are nonnegative", "update")
        }
    ),
}
SEPARATOR = Theorem(
    key="joint-separator",
    title="While the tokens draw attention the weights grow along the max-margin solution",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If from $t_0$ on no coefficient of the gradient is negative: for every $t$, {claim}.",
    hypotheses=GROWTH_HYPOTHESES,
    claim=nt.always(component(t0) + margin * separated(t) <= component(END)),
    prove=prove_separator,
    rate=Rate(observed=component(END), bound=component(t0) + margin * separated(t), sense="lower"),
)
COMPONENT = Theorem(
    key="joint-component",
    title="While the tokens draw attention the weights grow at least like the path length",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If from $t_0$ on no coefficient of the gradient is negative: for every $t$, {claim}.",
    hypotheses=GROWTH_HYPOTHESES | {"R bounds the constraints": nt.NORM_BOUND},
    claim=nt.always(component(t0) + margin * travelled(t) / R <= component(END)),
    prove=prove_component,
    rate=Rate(observed=component(END), bound=component(t0) + margin * travelled(t) / R, sense="lower"),
)

# --- one step, for a run from step 0 -----------------------------------------------------------------------


def coefficients_nonnegative() -> Proved:
    """0 <= c_k for every constraint."""
    return co.for_each_constraint(weak(jl.coefficient_positive()))


def gradient_positive() -> Proved:
    """0 < ||D||: 0 < c_k <= C <= <D, M> <= ||D|| ||M||."""
    one = co.one_of_all(weak(jl.coefficient_positive()), co.some_i, co.some_tau)
    first = co.at_some(co.for_each_constraint(jl.coefficient_positive()))
    correlation = discharge(CORRELATION.proved(), coefficients_nonnegative())
    product = follows(
        0 < norm(STATIC.descent) * norm(M),
        first, one, assume(STATIC.mass_is()), correlation, kernel.cauchy_schwarz(STATIC.descent, M),
    )  # fmt: skip
    solution = solution_positive()
    inverse = kernel.inverse_positive(solution)
    return follows(0 < norm(STATIC.descent), (inverse, product), nonzero=[solution])


def pace() -> Proved:
    """0 <= e_s/||D_s||."""
    length = kernel.inverse_positive(at_step(gradient_positive(), s))
    step = specialize(assume(nt.STEPS_NONNEGATIVE), s)
    return follows(0 <= e(s) / norm(layer(s).descent), (step, length))


def grown() -> tuple[Proved, Proved]:
    """<W_0, M> + S_t <= <W_t, M> and E_t/R <= S_t, with c >= 0 and D not 0 from the weights."""
    facts = (coefficients_nonnegative(), gradient_positive())
    every = [generalize(at_step(f, t), t, nt.NATURALS) for f in facts]
    pages = (norm_growth.SEPARATOR, norm_growth.PATH_LOWER)
    along_, path = (specialize(discharge(page.proved(), *every), t) for page in pages)
    return along_, path


def path_nonnegative() -> Proved:
    """0 <= E_t."""
    return restate(
        0 <= path_length(t), kernel.sum_order(specialize(assume(nt.STEPS_NONNEGATIVE), s), s, below(t))
    )


def steady(at: Index) -> Proved:
    """v_0 + g* E_t/R <= v_t."""
    along_, path = grown()
    target = component(origin) + margin * path_length(t) / R <= component(t)
    claim = follows(target, (margin_positive(), along_), (margin_positive(), path))
    return kernel.instantiate(claim, indices={"t": at})


def ahead(at: Index) -> Proved:
    """0 < v_0 <= v_t: S_t is a sum of what is not negative."""
    mass = follows(0 <= STATIC.C, sum_constraints(weak(jl.coefficient_positive())), assume(STATIC.mass_is()))
    each = follows(0 <= e(s) * layer(s).C / norm(layer(s).descent), (pace(), at_step(mass, s)))
    path = kernel.sum_order(each, s, below(t))
    least = follows(
        component(origin) <= component(t), (margin_positive(), grown()[0]), (margin_positive(), path)
    )
    return kernel.instantiate(least, indices={"t": at})


def start_positive() -> Proved:
    """0 < v_0."""
    return follows(0 < component(origin), (margin_positive(), assume(AHEAD_AT_ZERO)))


def size_positive(at: Index) -> Proved:
    """0 < u_t, as 0 < v_0 <= v_t <= u_t."""
    return follows(0 < size(at), start_positive(), ahead(at), component_at_most_size(at))


def component_at_most_size(at: Index) -> Proved:
    """v_t <= u_t."""
    solution = solution_positive()
    reach = kernel.cauchy_schwarz(layer(at).W, M)
    return follows(component(at) <= size(at), (margin_positive(), reach), nonzero=[solution])


def threshold_positive(at: Index) -> Proved:
    """0 < g* u + Lam."""
    return follows(
        0 < margin * size(at) + Lam, (margin_positive(), size_positive(at)), constant_nonnegative()
    )


def constant_nonnegative() -> Proved:
    """0 <= Lam."""
    return at_step(ja.constant_is()[0], origin)


def progress(at: Index) -> Term:
    """psi(u_t) - v_t, with psi(u) = u - Lam/g* log(g* u + Lam)."""
    return psi(size(at), margin, Lam) - component(at)


def curvature(at: Index) -> Term:
    """e^2/(u + Lam/g*), what the length of a step costs, twice."""
    return e(at) ** 2 / (size(at) + Lam / margin)


def one_step() -> Proved:
    """psi(u) - v grows by at most half the curvature in a step."""
    now, hole = layer(s), vector("x")
    update = specialize(assume(nt.update_is()), s)
    length = at_step(gradient_positive(), s)
    pull = e(s) / norm(now.descent)
    threshold = margin * size(s) + Lam
    turned = follows(
        half * (size(s + 1) ** 2 - size(s) ** 2 - e(s) ** 2)
        <= threshold * inner(layer(s + 1).W - now.W, M),
        (pace(), at_step(ja.ALIGNMENT.proved(), s)),
        congruence(update, inner(hole, hole), hole), (threshold, congruence(update, inner(hole, M), hole)),
        norm_squared(layer(s + 1).W), norm_squared(now.W), (pull**2, norm_squared(now.descent)),
        nonzero=[length],
    )  # fmt: skip
    positive, solution = threshold_positive(s), solution_positive()
    concave = kernel.instantiate(
        potential.CONCAVE.proved(), reals={"u": size(s), "v": size(s + 1), "m": margin, "l": Lam}
    )
    sizes = (norm_nonnegative(layer(at).W) for at in (s, s + 1))
    concave = discharge(concave, margin_positive(), constant_nonnegative(), *sizes, positive)
    scaled = follows(0 < size(s) + Lam / margin, (solution, positive), nonzero=[solution])
    rate = product_nonnegative(margin_positive(), kernel.inverse_positive(positive))
    return follows(
        progress(s + 1) - progress(s) <= half * curvature(s), concave, (rate, turned),
        nonzero=[positive, scaled, solution],
    )  # fmt: skip


# --- all steps ---------------------------------------------------------------------------------------------


def lag(at: Index) -> Term:
    """u_t - v_t, that is u_t (1 - cos)."""
    return size(at) - component(at)


def turned(start: Index, end: Index) -> Term:
    """Lam/g* log((g* u_end + Lam)/(g* u_start + Lam))."""
    return Lam / margin * log((margin * size(end) + Lam) / (margin * size(start) + Lam))


def behind() -> Proved:
    """u_t - v_t <= u_0 - v_0 + Lam/g* log(...) + 1/2 sum e_s^2/(u_s + Lam/g*)."""
    summed = kernel.sum_order(one_step(), s, below(t))
    quotient = log_quotient(threshold_positive(t), threshold_positive(origin))
    return follows(
        lag(t) <= lag(origin) + turned(origin, t) + half * total(s, below(t), curvature(s)),
        summed, telescoped(progress, t), (Lam / margin, quotient),
    )  # fmt: skip


def finished(claim: Proved) -> Proved:
    """A claim about the run from step 0 at step t, about the run from t0 on, from what is assumed of it."""
    every = without_mass(generalize(claim, t, nt.NATURALS))
    return closed(from_step(every))


def prove_sharp() -> Proved:
    """Divide by u_t."""
    last, solution = size_positive(t), solution_positive()
    rest = lag(origin) + turned(origin, t) + half * total(s, below(t), curvature(s))
    claim = 1 - inner(layer(t).W, M) / (size(t) * norm(M)) <= rest / size(t)
    return finished(follows(claim, (kernel.inverse_positive(last), behind()), nonzero=[last, solution]))


def prove_direction() -> Proved:
    """Without Lam/g* in the last sum: a run need record no more than the sum of e_s^2/u_s."""
    solution, last = solution_positive(), size_positive(t)
    extra = product_nonnegative(constant_nonnegative(), weak(solution))
    order = inverse_order(follows(size(s) <= size(s) + Lam / margin, extra), size_positive(s))
    each = follows(curvature(s) <= e(s) ** 2 / size(s), (kernel.square(e(s)), order))
    bends = kernel.sum_order(each, s, below(t))
    rest = lag(origin) + turned(origin, t) + half * total(s, below(t), e(s) ** 2 / size(s))
    looser = follows(lag(t) <= rest, behind(), (half, bends))
    claim = 1 - inner(layer(t).W, M) / (size(t) * norm(M)) <= rest / size(t)
    return finished(follows(claim, (kernel.inverse_positive(last), looser), nonzero=[last, solution]))


AHEAD_AT_ZERO = 0 < inner(layer(origin).W, M)
AHEAD = 0 < inner(layer(t0).W, M)
SHARP_BOUND = (lag(t0) + turned(t0, END) + half * total(s, below(t), curvature(t0 + s))) / size(END)
BOUND = (lag(t0) + turned(t0, END) + half * total(s, below(t), e(t0 + s) ** 2 / size(t0 + s))) / size(END)
STEADY_TURN = Lam / margin * log(1 + margin * travelled(t) / (margin * size(t0) + Lam))
PATH_BOUND = (lag(t0) + STEADY_TURN + squares(t) / (2 * (component(t0) + Lam / margin))) / (
    component(t0) + margin * travelled(t) / R
)


# --- by the steps alone ------------------------------------------------------------------------------------


def prove_path() -> Proved:
    """v_0 + g* E_t/R <= v_t <= u_t <= u_0 + E_t, and v_0 <= u_s, in the bound on u_t - v_t."""
    path, solution = path_length(t), solution_positive()
    first = threshold_positive(origin)
    longest = specialize(normalized_gd.NORM_UPPER.proved(), t)
    far = follows(
        margin * size(t) + Lam <= margin * (size(origin) + path) + Lam, (margin_positive(), longest)
    )
    end = follows(0 < margin * (size(origin) + path) + Lam, threshold_positive(t), far)
    part = margin * path / (margin * size(origin) + Lam)
    share = product_nonnegative(constant_nonnegative(), weak(solution))
    scale = restate(0 <= Lam / margin, share)
    turn = follows(
        turned(origin, t) <= Lam / margin * log(1 + part),
        (scale, log_monotone(far, threshold_positive(t))), (Lam / margin, log_ratio(part, end, first)),
        (Lam / margin, log_quotient(threshold_positive(t), first)),
    )  # fmt: skip
    width = follows(0 < component(origin) + Lam / margin, start_positive(), scale)
    nearer = follows(
        component(origin) + Lam / margin <= size(s) + Lam / margin, ahead(s), component_at_most_size(s)
    )
    each = follows(
        curvature(s) <= e(s) ** 2 / (component(origin) + Lam / margin),
        (kernel.square(e(s)), inverse_order(nearer, width)),
    )
    bends = kernel.sum_order(each, s, below(t))
    cost = squares(t, origin) / (2 * (component(origin) + Lam / margin))
    numerator = lag(origin) + Lam / margin * log(1 + part) + cost
    bounded = follows(lag(t) <= numerator, behind(), turn, (half, bends), nonzero=[width])
    least = component(origin) + margin * path / R
    rate = product_nonnegative(margin_positive(), kernel.inverse_positive(assume(nt.R_POSITIVE)))
    low = follows(0 < least, start_positive(), (weak(rate), path_nonnegative()))
    last = size_positive(t)
    order = follows(least <= size(t), steady(t), component_at_most_size(t))
    nonnegative = follows(0 <= numerator, component_at_most_size(t), bounded)
    target = 1 - inner(layer(t).W, M) / (size(t) * norm(M)) <= numerator / least
    divided = follows(
        target,
        (kernel.inverse_positive(last), bounded), (nonnegative, inverse_order(order, low)),
        nonzero=[last, solution],
    )  # fmt: skip
    all_steps = specialize(finished(divided), t)
    lengths = telescoped(lambda k: path_length(t0 + k), t)
    hole = symbol("x")
    shape = (lag(t0) + Lam / margin * log(1 + margin * hole / (margin * size(t0) + Lam)) + START_COST) / (
        component(t0) + margin * hole / R
    )
    claim = follows(gap_to(END) <= PATH_BOUND, all_steps, congruence(lengths, shape, hole))
    return generalize(claim, t, nt.NATURALS)


START_COST = squares(t) / (2 * (component(t0) + Lam / margin))
DIRECTION_HYPOTHESES = {
    **{
        name: ja.HYPOTHESES[name]
        for name in (
            "(S)",
            "alpha >= 0",
            "M is a combination of the constraints",
            "complementary slackness",
            "N",
            "there is a sequence",
            "with a constraint",
        )
    },
    **jl.hypotheses_from_step(
        {
            **{name: jl.always(f) for name, f in jl.WEIGHTS.items()},
            "gradient": nt.at_all_times(STATIC.gradient_is()),
            "steps are nonnegative": nt.STEPS_NONNEGATIVE,
            "update": nt.update_is(),
        }
    ),
    "W has a component along M at t0": AHEAD,
}
SHARP = Theorem(
    key="joint-direction-sharp",
    title="In joint training the weights turn towards the max-margin solution: with the curvature as it is",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If from $t_0$ on the weights are positive and within a factor $\kappa$ of each other: "
    r"for every $t$, {claim}.",
    hypotheses=DIRECTION_HYPOTHESES,
    claim=nt.always(gap_to(END) <= SHARP_BOUND),
    prove=prove_sharp,
)
DIRECTION = Theorem(
    key="joint-direction",
    title="In joint training the weights turn towards the max-margin solution",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If from $t_0$ on the weights are positive and within a factor $\kappa$ of each other: "
    r"for every $t$, {claim}.",
    hypotheses=DIRECTION_HYPOTHESES,
    claim=nt.always(gap_to(END) <= BOUND),
    prove=prove_direction,
    rate=Rate(observed=gap_to(END), bound=BOUND, sense="upper"),
)
PATH = Theorem(
    key="joint-direction-path",
    title="In joint training the direction gap is bounded by the path length, like its logarithm over it",
    kind="theorem",
    reference=REFERENCE,
    statement=r"If from $t_0$ on the weights are positive and within a factor $\kappa$ of each other: "
    r"for every $t$, {claim}.",
    hypotheses=DIRECTION_HYPOTHESES | {"R bounds the constraints": nt.NORM_BOUND},
    claim=nt.always(gap_to(END) <= PATH_BOUND),
    prove=prove_path,
    rate=Rate(observed=gap_to(END), bound=PATH_BOUND, sense="upper"),
)
PAGES = (SEPARATOR, COMPONENT, SHARP, DIRECTION, PATH)
