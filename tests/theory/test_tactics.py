# ruff: noqa: SIM300 -- claims are written the way round that the kernel has them
"""Tactics prove what they say, from what they say; and their claims hold in random models.

Nothing here is trusted by the kernel: a wrong tactic fails. What is tested is that they succeed where they
should, keep no hypothesis they need not, and refuse with a clear error otherwise.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from fractions import Fraction

import pytest
from flint import fmpq

from numerics.errors import InputError
from tests.theory.concrete import Model, UnknownError, precision
from theory.proof import kernel, squares, tactics
from theory.proof.kernel import KernelError, assume, combine
from theory.proof.ranges import greatest_at, sign_on_box, tail_by_inverse, tail_by_slope
from theory.proof.squares import sum_of_squares
from theory.proof.tactics import (
    at_most_min,
    chain,
    equation,
    everywhere,
    exp_monotone,
    exp_tangent,
    follows,
    inverse_order,
    log_monotone,
    log_product,
    log_quotient,
    log_secant,
    log_tangent,
    max_above,
    max_at_most,
    max_of,
    min_below,
    min_of,
    min_positive,
    norm_nonnegative,
    norm_squared,
    one_positive,
    product_nonnegative,
    restate,
    scale,
    square_root_order,
    telescoped,
    unused,
    weak,
)
from theory.proof.terms import (
    NATURALS,
    as_real,
    below,
    eq,
    exp,
    finite,
    forall,
    index,
    inner,
    inv,
    lambertw,
    log,
    maximum,
    member,
    minimum,
    norm,
    number,
    real,
    sqrt,
    symbol,
    total,
    vector,
)

x, y, z, a, b = map(symbol, "xyzab")
i, j, t = map(index, "ijt")
u, v = vector("u"), vector("v")
D = finite("D")
P, Q = assume(0 < x), assume(0 < y)
ORDER = assume(x <= y)


def f(i):
    return symbol("f", i)


# --- what each tactic proves, and from what -----------------------------------------------------------------

CLAIMS = {
    "weak": (lambda: weak(P), 0 <= x, {0 < x}),
    "weak of an equation": (lambda: weak(assume(eq(x, y))), x <= y, {eq(x, y)}),
    "equation": (lambda: equation(eq(x / x, 1), nonzero=[P]), eq(x / x, 1), {0 < x}),
    "chain": (lambda: chain(ORDER, assume(y < z)), x < z, {x <= y, y < z}),
    "chain of equations": (lambda: chain(assume(eq(x, y)), assume(eq(y, z))), eq(x, z), {eq(x, y), eq(y, z)}),
    "restate": (lambda: restate(0 <= y - x, ORDER), 0 <= y - x, {x <= y}),
    "scale": (lambda: scale(P, ORDER), x * x <= x * y, {0 < x, x <= y}),
    "scale by a number": (lambda: scale(3, assume(x < y)), 3 * x < 3 * y, {x < y}),
    "product": (lambda: product_nonnegative(P, Q), 0 < x * y, {0 < x, 0 < y}),
    "inverse order": (lambda: inverse_order(ORDER, P), inv(y) <= inv(x), {x <= y, 0 < x}),
    "everywhere": (
        lambda: everywhere(
            assume(forall(t, NATURALS, forall(i, D, f(i) <= as_real(t)))), t + 1, (j, assume(member(j, D)))
        ),
        f(j) <= as_real(t + 1),
        {forall(t, NATURALS, forall(i, D, f(i) <= as_real(t))), member(j, D)},
    ),
    "norm": (lambda: norm_nonnegative(u), 0 <= norm(u), set()),
    "norm squared": (lambda: norm_squared(u), eq(norm(u) ** 2, inner(u, u)), set()),
    "square root order": (
        lambda: square_root_order(assume(x**2 <= y**2), weak(Q)), x <= y, {x**2 <= y**2, 0 < y}
    ),
    "exp monotone": (lambda: exp_monotone(ORDER), exp(x) <= exp(y), {x <= y}),
    "log monotone": (lambda: log_monotone(ORDER, P), log(x) <= log(y), {x <= y, 0 < x}),
    "exp tangent": (lambda: exp_tangent(x), 1 + x <= exp(x), set()),
    "log tangent": (lambda: log_tangent(P), log(x) <= x - 1, {0 < x}),
    "log product": (lambda: log_product(P, Q), eq(log(x * y), log(x) + log(y)), {0 < x, 0 < y}),
    "log quotient": (lambda: log_quotient(P, Q), eq(log(x / y), log(x) - log(y)), {0 < x, 0 < y}),
    "log secant": (lambda: log_secant(P, Q), log(y) - log(x) <= (y - x) / x, {0 < x, 0 < y}),
    "telescoped": (
        lambda: telescoped(lambda s: f(s) * x, t),
        eq(total(i, below(t), f(i + 1) * x - f(i) * x), f(t) * x - f(number(0)) * x),
        set(),
    ),
    "max of": (lambda: max_of(ORDER), eq(maximum(x, y), y), {x <= y}),
    "min of": (lambda: min_of(ORDER), eq(minimum(x, y), x), {x <= y}),
    "max above, left": (lambda: max_above(x, y)[0], x <= maximum(x, y), set()),
    "max above, right": (lambda: max_above(x, y)[1], y <= maximum(x, y), set()),
    "min below, left": (lambda: min_below(x, y)[0], minimum(x, y) <= x, set()),
    "min below, right": (lambda: min_below(x, y)[1], minimum(x, y) <= y, set()),
    "at most min": (
        lambda: at_most_min(assume(z <= x), assume(z <= y)), z <= minimum(x, y), {z <= x, z <= y}
    ),
    "max at most": (
        lambda: max_at_most(assume(x <= z), assume(y <= z)), maximum(x, y) <= z, {x <= z, y <= z}
    ),
    "min positive": (lambda: min_positive(P, Q), 0 < minimum(x, y), {0 < x, 0 < y}),
    "one": (one_positive, 0 < real(1), set()),
}  # fmt: skip


@pytest.mark.parametrize(("prove", "claim", "hypotheses"), CLAIMS.values(), ids=CLAIMS)
def test_tactics_prove_what_they_say(prove, claim, hypotheses):
    proved = prove()
    assert proved.conclusion == claim
    assert proved.hypotheses == hypotheses


@pytest.mark.parametrize("prove", [p for p, *_ in CLAIMS.values()], ids=CLAIMS)
@pytest.mark.parametrize("seed", range(3))
def test_proved_claims_hold_in_models_of_their_hypotheses(prove, seed):
    proved = prove()
    rng = random.Random(seed)
    held = 0
    with precision():
        for _ in range(60):
            draw = {n: fmpq(rng.randint(-5, 12), rng.randint(1, 3)) for n in "xyz"}
            model = Model(rng.random(), sym={n: lambda q=q: q for n, q in draw.items()})
            try:
                if all(map(model.holds, proved.hypotheses)):
                    assert model.holds(proved.conclusion), (seed, draw)
                    held += 1
            except UnknownError:
                continue
    print(f"seed {seed}: {held} models")
    if not any(h[0] in ("eq", "forall") for h in proved.hypotheses):
        assert held >= 3


WRONG = {
    "inverse order without sign": lambda: inverse_order(ORDER, Q),
    "log monotone of another": lambda: log_monotone(ORDER, Q),
    "log tangent of the nonnegative": lambda: log_tangent(weak(P)),
    "log product of the nonnegative": lambda: log_product(weak(P), Q),
    "restate as something stronger": lambda: restate(1 <= y - x, ORDER),
    "restate as strict": lambda: restate(x < y, ORDER),
    "scale by a negative number": lambda: scale(-1, ORDER),
    "square roots of any sign": lambda: square_root_order(assume(x**2 <= y**2), one_positive()),
    "weak to strict chain": lambda: restate(x < z, chain(ORDER, assume(y <= z))),
    "cancelling without proof": lambda: equation(eq(x / x, 1)),
    "min of the wrong order": lambda: restate(minimum(x, y) <= 0, min_of(ORDER)),
}


@pytest.mark.parametrize("prove", WRONG.values(), ids=WRONG)
def test_tactics_refuse(prove):
    with pytest.raises(KernelError):
        prove()


def test_unused_names_are_the_same_every_time_and_free_nowhere():
    taken = assume(symbol("x'") <= symbol("x'''"))
    assert unused(x) == "x'"
    assert unused(taken) == "x''"
    assert unused(taken, symbol("x''")) == "x''''"
    assert unused(kernel.combine(y <= y + 1, [(1, one_positive())]), stem="s") == "s'"
    nested = exp_monotone(exp_monotone(assume(symbol("x'") <= symbol("x''"))))
    assert nested.hypotheses == {symbol("x'") <= symbol("x''")}


# --- follows and its certificates ---------------------------------------------------------------------------


def test_follows_finds_the_factors():
    claim = follows(3 * x + 2 * y < 7, assume(x <= 1), assume(y < 2))
    assert claim.conclusion == (3 * x + 2 * y < 7)
    product = follows(x * y <= 6, (weak(P), assume(y <= 3)), (3, assume(x <= 2)))
    assert product.hypotheses == {0 < x, y <= 3, x <= 2}
    assert follows(eq(x, 2), assume(eq(2 * x + y, 7)), assume(eq(y, 3))).conclusion == eq(x, 2)


@pytest.mark.parametrize("target", [x <= Fraction(99, 100), x < 1, 2 * x <= y, eq(x, 1), x <= y], ids=repr)
def test_follows_refuses_what_does_not_follow(target):
    with pytest.raises(KernelError):
        follows(target, assume(x <= 1), assume(y <= 2))


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty certificate file of this test's own."""
    path = tmp_path / "certificates.json"
    monkeypatch.setattr(tactics, "STORE", path)
    monkeypatch.setattr(tactics, "CERTIFICATES", tactics._Certificates())
    monkeypatch.setattr(squares, "CERTIFICATES", tactics.CERTIFICATES)
    return path


def no_search(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("searched, although `attnrates verify --search` should have stored the answer")

    monkeypatch.setattr(tactics, "_multipliers", refuse)
    monkeypatch.setattr(squares, "_search", refuse)


def ask():
    return follows(3 * x + 2 * y < 7, assume(x <= 1), assume(y < 2)), sum_of_squares(2 * x * y <= x**2 + y**2)


def test_stored_certificates_are_replayed_without_search(store, monkeypatch):
    first = ask()
    assert tactics.save_certificates() == store
    assert [path.name for path in store.parent.iterdir()] == ["certificates.json"]
    table = json.loads(store.read_text())
    assert len(table) == 2
    assert list(table) == sorted(table)
    no_search(monkeypatch)
    again = ask()
    assert [c.conclusion for c in again] == [c.conclusion for c in first]
    monkeypatch.setattr(tactics.CERTIFICATES, "search", True)
    with pytest.raises(AssertionError, match="searched"):
        ask()


def test_saving_twice_gives_the_same_bytes(store):
    ask()
    tactics.save_certificates()
    before = store.read_bytes()
    ask()
    tactics.save_certificates()
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    "damage",
    [["2", "2"], ["3"], ["3", "2", "0"], ["-3", "2"], ["three", "2"], [], ["1/0", "2"]],
    ids=str,
)
def test_a_wrong_stored_certificate_fails_loudly(store, damage):
    follows(3 * x + 2 * y < 7, assume(x <= 1), assume(y < 2))
    (digest,) = tactics.CERTIFICATES.found
    store.write_text(json.dumps({digest: damage}))
    tactics.CERTIFICATES.stored = None
    with pytest.raises(KernelError, match=r"stored factors do not prove .* --search"):
        follows(3 * x + 2 * y < 7, assume(x <= 1), assume(y < 2))
    tactics.CERTIFICATES.search = True
    assert follows(3 * x + 2 * y < 7, assume(x <= 1), assume(y < 2)).conclusion == (3 * x + 2 * y < 7)


@pytest.mark.parametrize("damage", [["0 1"], ["0 1 1*2,0"], ["7 1 1*1,0"], ["x"], ["0 -1 1*1,0"]], ids=str)
def test_wrong_stored_squares_fail_loudly(store, damage):
    sum_of_squares(2 * x * y <= x**2 + y**2)
    (digest,) = tactics.CERTIFICATES.found
    store.write_text(json.dumps({digest: damage}))
    tactics.CERTIFICATES.stored = None
    with pytest.raises(KernelError, match=r"stored squares do not prove .* --search"):
        sum_of_squares(2 * x * y <= x**2 + y**2)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', '{"a": [1]}', "null", "\x00"])
def test_a_broken_certificate_file_is_named(store, text):
    store.write_text(text)
    with pytest.raises(InputError, match=r"certificates\.json"):
        ask()


def test_a_failed_save_leaves_the_old_file(store, monkeypatch):
    ask()
    tactics.save_certificates()
    before = store.read_bytes()

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(tactics.os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        tactics.save_certificates()
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["certificates.json"]


REPLAY = """
import theory
from theory.proof import squares, tactics

def refuse(*_, **__):
    raise AssertionError("not in certificates.json: run `attnrates verify --search`")

tactics._multipliers = squares._search = refuse
for page in theory.verify().theorems:
    if page.status == "failed":
        print(page.key, page.error)
"""


def test_the_pages_replay_the_shipped_certificates():
    """Every question of every page has its answer in the file, so that verifying needs no search."""
    # in a process of its own, where annotations are not checked at run time: three times as fast
    done = subprocess.run([sys.executable, "-c", REPLAY], capture_output=True, text=True, check=True)
    assert done.stdout == ""


# --- boxes, maxima, squares ---------------------------------------------------------------------------------


def test_signs_on_unbounded_boxes():
    target = 0 < x**4 - 3 * x**3 + x**2 + 5
    right = tail_by_inverse(target, x, 4)
    assert right.hypotheses == {real(4) <= x}
    mirrored = tail_by_inverse(0 < x**4 + 3 * x**3 + x**2 + 5, x, 4)
    left = kernel.instantiate(mirrored, reals={"x": -x})
    left = restate(target, kernel.discharge(left, combine(4 <= -x, [(1, assume(x <= -4))])))
    whole = sign_on_box(target, {"x": (None, None)}, above={"x": (4, right)}, below={"x": (-4, left)})
    assert whole.conclusion == target
    assert whole.hypotheses == frozenset()


def test_signs_on_unbounded_boxes_with_functions():
    # x^2 - 1 <= exp(x) for x >= 0: beyond 3 the slope exp(x) - 2x is at least exp(1) x - 2x
    steep = kernel.on_box(2 <= exp(real(1)), {})
    slope = combine(0 <= exp(x) - 2 * x, [(weak(kernel.exp_positive(x - 1)), steep), (2, exp_tangent(x - 1))])
    target = x**2 - 1 <= exp(x)
    claim = sign_on_box(target, {"x": (0, None)}, above={"x": (3, tail_by_slope(target, x, 3, slope))})
    assert claim.hypotheses == {real(0) <= x}
    # log(x) <= sqrt(x) on x >= 1: sqrt' - log' = (sqrt(x) - 2)/(2x) >= 0 beyond 4
    positive = combine(0 < x, [(1, assume(4 <= x)), (4, one_positive())])
    root = square_root_order(
        combine(real(2) ** 2 <= sqrt(x) ** 2, [(1, assume(4 <= x))], nonnegative=[positive]),
        kernel.sqrt_nonnegative(positive),
    )
    root_positive = combine(0 < sqrt(x), [(1, root), (2, one_positive())])
    halves = product_nonnegative(
        weak(kernel.inverse_positive(positive)), combine(0 <= sqrt(x) - 2, [(1, root)])
    )
    gentle = combine(
        0 <= inv(2 * sqrt(x)) - inv(x), [(Fraction(1, 2), halves)],
        nonzero=[positive, root_positive], nonnegative=[positive],
    )  # fmt: skip
    target = log(x) <= sqrt(x)
    tail = tail_by_slope(target, x, 4, gentle, conditions=[positive])
    claim = sign_on_box(target, {"x": (1, None)}, above={"x": (4, tail)})
    assert claim.hypotheses == {real(1) <= x}


def test_lambert_w_on_an_unbounded_box():
    # W(x) < 2 + x/4 for x >= 0: beyond 4 the slope of W, W/(x(1 + W)), is at most 1/4
    beyond = combine(0 < x, [(1, assume(4 <= x)), (4, one_positive())])
    w = lambertw(x)
    low = kernel.lambert_w_nonnegative(beyond)
    whole = combine(0 < x * (1 + w), [(beyond, combine(0 < 1 + w, [(1, low), (1, one_positive())]))])
    inverse = kernel.inverse_positive(whole)
    # 1/4 - W/(x(1 + W)) = ((x - 4) W + x)/(4x(1 + W))
    top = combine(0 <= (x - 4) * w + x, [(low, assume(4 <= x)), (1, beyond)])
    slope = combine(
        0 <= Fraction(1, 4) - w * inv(x * (1 + w)),
        [(combine(0 <= inv(x * (1 + w)) / 4, [(Fraction(1, 4), inverse)]), top)],
        nonzero=[whole],
    )
    target = w < 2 + x / 4
    tail = tail_by_slope(target, x, 4, slope, conditions=[beyond])
    assert sign_on_box(target, {"x": (0, None)}, above={"x": (4, tail)}).hypotheses == {real(0) <= x}


def test_an_end_where_the_function_is_not_defined():
    # x log(x) >= -1/2 for x > 0: by the tangent, log(x) >= 1 - 1/x, hence x log(x) >= x - 1 ... and near 0
    positive = assume(0 < x)
    above_ = log_tangent(kernel.inverse_positive(positive))  # log(1/x) <= 1/x - 1
    flipped = combine(
        eq(log(x) + log(inv(x)), 0),
        [(-1, log_product(positive, kernel.inverse_positive(positive))),
         (1, kernel.congruence(equation(eq(x * inv(x), 1), nonzero=[positive]), log(z), z)),
         (1, _log_one())],
    )  # fmt: skip
    near = combine(
        -1 <= x * log(x), [(weak(positive), above_), (-x, flipped), (1, positive)], nonzero=[positive]
    )
    target = -1 <= x * log(x)
    claim = sign_on_box(target, {"x": (None, 5)}, below={"x": (Fraction(1, 8), near)})
    assert claim.hypotheses == {0 < x, x <= real(5)}


def _log_one():
    return combine(
        eq(log(real(1)), 0),
        [(-1, kernel.congruence(equation(eq(exp(real(0)), 1)), log(z), z)), (1, kernel.log_exp(real(0)))],
    )


def test_boxes_need_their_tails():
    target = 0 < x**2 + 1
    with pytest.raises(KernelError, match="no tail for the unbounded end of x"):
        sign_on_box(target, {"x": (0, None)})
    with pytest.raises(KernelError, match="different claims"):
        sign_on_box(target, {"x": (0, None)}, above={"x": (4, tail_by_inverse(0 < x**2 + 2, x, 4))})
    # a tail that begins too late leaves its hypothesis behind
    late = sign_on_box(target, {"x": (0, None)}, above={"x": (4, tail_by_inverse(target, x, 5))})
    assert late.hypotheses == {real(0) <= x, real(5) <= x}


def test_tails_that_do_not_hold():
    with pytest.raises(KernelError, match="did not decide"):
        tail_by_inverse(0 < 5 - x, x, 4, boxes=200)
    with pytest.raises(KernelError, match="positive number"):
        tail_by_inverse(0 < x**2 + 1, x, 0)
    with pytest.raises(KernelError, match="the derivative is"):
        tail_by_slope(0 < x**2, x, 1, weak(kernel.exp_positive(x)))
    with pytest.raises(KernelError, match="did not decide"):
        tail_by_slope(0 < exp(x) - 3, x, 1, weak(kernel.exp_positive(x)))


def _hump():
    """The slope of x exp(-x), nonnegative up to 1 and nonpositive beyond."""
    positive = kernel.exp_positive(-x)
    slope = exp(-x) - x * exp(-x)
    rising = combine(0 <= slope, [(positive, assume(x <= 1))])
    falling = combine(slope <= 0, [(positive, assume(1 <= x))])
    return rising, falling


def test_maxima_of_one_variable():
    claim = greatest_at(1, x, x * exp(-x), *_hump())
    assert claim.conclusion == (x * exp(-x) <= real(1) * exp(-real(1)))
    assert claim.hypotheses == frozenset()
    positive = assume(0 < x)
    inverse = kernel.inverse_positive(positive)
    rising = combine(0 <= inv(x) - 1, [(inverse, assume(x <= 1))], nonzero=[positive])
    falling = combine(inv(x) - 1 <= 0, [(inverse, assume(1 <= x))], nonzero=[positive])
    bounded = greatest_at(1, x, log(x) - x, rising, falling, conditions=[positive])
    assert bounded.hypotheses == {0 < x}
    at_a = greatest_at(a, x, -((x - a) ** 2), *_parabola())
    assert at_a.conclusion == (-((x - a) ** 2) <= -((a - a) ** 2))


def _parabola():
    return (
        combine(0 <= -2 * (x - a), [(2, assume(x <= a))]),
        combine(-2 * (x - a) <= 0, [(2, assume(a <= x))]),
    )


def test_maxima_elsewhere_are_refused():
    rising, falling = _hump()
    wanted = greatest_at(a, x, x * exp(-x), rising, falling)
    assert wanted.hypotheses == {a <= 1, 1 <= a}  # what is missing for other points is said
    for point in (2, Fraction(99, 100)):
        with pytest.raises(KernelError):
            greatest_at(point, x, x * exp(-x), rising, falling)
    with pytest.raises(KernelError, match="exchanged"):
        greatest_at(1, x, x * exp(-x), falling, rising)
    with pytest.raises(KernelError, match="the derivative is"):
        greatest_at(1, x, x * exp(-2 * x), rising, falling)


SQUARES = [
    (0 <= x**2 - 2 * x * y + y**2, ()),
    (0 < x**4 - 3 * x**3 + x**2 + 5, ()),
    (x * y <= (x**2 + y**2) / 2, ()),
    (0 <= x**4 + y**4 + z**4 - x * y * z * (x + y + z), ()),
    (x**3 <= 1, (0 <= x, x <= 1)),
    (27 * x**2 * (1 - x) <= 4, (0 <= x,)),
    (3 * x * y * z <= x**3 + y**3 + z**3, (0 <= x, 0 <= y, 0 <= z)),
    (2 * exp(x) * exp(y) <= exp(x) ** 2 + exp(y) ** 2, ()),
    (0 < x**2 - x + Fraction(26, 100), ()),
]


@pytest.mark.parametrize(("target", "given"), SQUARES, ids=repr)
def test_sums_of_squares(target, given):
    claim = sum_of_squares(target, *map(assume, given))
    assert claim.conclusion == target
    assert claim.hypotheses <= set(given)
    assert claim.axioms <= {"exp_positive"}


@pytest.mark.parametrize(
    ("target", "given"),
    [
        (0 <= x, ()),
        (0 < x**2, ()),
        (x**2 <= x, ()),
        (0 <= x**4 * y**2 + x**2 * y**4 + 1 - 3 * x**2 * y**2, ()),  # Motzkin: nonnegative, no sum of squares
        (0 < x**2 - x + Fraction(25, 100), ()),
        (27 * x**2 * (1 - x) <= Fraction(399, 100), (0 <= x,)),
        (x**3 <= Fraction(99, 100), (0 <= x, x <= 1)),
    ],
    ids=repr,
)
def test_no_sums_of_squares(target, given):
    with pytest.raises(KernelError, match="no sum of squares"):
        sum_of_squares(target, *map(assume, given))


def test_sums_of_squares_are_of_polynomials():
    with pytest.raises(KernelError, match="polynomials"):
        sum_of_squares(0 <= exp(x / 2) + 1)
