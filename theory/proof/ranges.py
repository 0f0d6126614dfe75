"""Signs on boxes with unbounded ends, and maxima of functions of one variable.

Outside the trusted base. A box with an unbounded end is cut into a bounded box, decided by ball arithmetic,
and a tail, proved by other means: ``tail_by_inverse`` (x = 1/u, for polynomials and for functions that ball
arithmetic can follow to infinity in u) or ``tail_by_slope`` (a point, and the sign of the derivative beyond).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from theory.proof import kernel
from theory.proof.kernel import KernelError, Proved, assume, combine
from theory.proof.normal import cleared, is_zero, polynomial_term
from theory.proof.tactics import one_positive, scale, unused, weak
from theory.proof.terms import Formula, Term, TermLike, free, inv, real, substitute, symbol

Number = int | Fraction
Range = tuple[Number | None, Number | None]


def sign_on_box(
    target: Formula,
    box: Mapping[str, Range],
    *,
    above: Mapping[str, tuple[Number, Proved]] | None = None,
    below: Mapping[str, tuple[Number, Proved]] | None = None,
    boxes: int = 20_000,
) -> Proved:
    """An inequality for all points of a box whose ends may be unbounded (None).

    For a variable x without upper end, ``above[x]`` is (cut, the target proved for cut <= x); without lower
    end, ``below[x]`` is (cut, the target proved for x <= cut). A tail may have further hypotheses, such as
    0 < x where a function is not defined at 0: the claim keeps them. The claim's other hypotheses are the
    bounded ends of the box.

    Raises:
        KernelError: ball arithmetic does not decide the bounded part, or a tail proves something else.
    """
    above, below = above or {}, below or {}
    missing = [
        x for x, (lo, hi) in box.items() if (lo is None and x not in below) or (hi is None and x not in above)
    ]
    if missing:
        raise KernelError(f"no tail for the unbounded end of {', '.join(missing)}")
    bounded = {
        x: (below[x][0] if lo is None else lo, above[x][0] if hi is None else hi)
        for x, (lo, hi) in box.items()
    }
    claim = kernel.on_box(target, bounded, boxes)
    for name, (lo, hi) in box.items():
        x = symbol(name)
        if hi is None:
            cut, tail = above[name]
            beyond = weak(assume(real(cut) < x))
            claim = kernel.cases(claim, kernel.discharge(tail, beyond), x, real(cut))
        if lo is None:
            cut, tail = below[name]
            beyond = weak(assume(x < real(cut)))
            claim = kernel.cases(claim, kernel.discharge(tail, beyond), real(cut), x)
    return claim


def tail_by_inverse(target: Formula, x: Term, cut: Number, *, boxes: int = 20_000) -> Proved:
    """The target for cut <= x, where cut > 0, by ball arithmetic in u = 1/x on [0, 1/cut].

    Right - left, times the least power of u that clears the powers of 1/u, must have a sign that is decided
    there, u = 0 included: so it is for polynomials whose leading coefficient has the right sign.

    Raises:
        KernelError: it is not decided, or ``cut`` is not positive.
    """
    if cut <= 0:
        raise KernelError(f"the tail must begin at a positive number, not at {cut}")
    u = symbol(unused(target, stem="u"))
    gap = substitute(target[2] - target[1], reals={x[1]: ((), inv(u))})
    power, scaled = map(polynomial_term, cleared([real(1), gap], [u], []))
    near = kernel.on_box(_sign(target, scaled), {u[1]: (0, Fraction(1) / cut)}, boxes)
    order = assume(real(cut) <= x)
    positive = combine(0 < x, [(1, order), (cut, one_positive())])
    inverse = kernel.inverse_positive(positive)
    small = combine(
        inv(x) <= real(Fraction(1) / cut), [(scale(Fraction(1) / cut, inverse), order)], nonzero=[positive]
    )
    far = kernel.discharge(kernel.instantiate(near, reals={u[1]: inv(x)}), weak(inverse), small)
    size = one_positive()  # 0 < x^k undoes the factor u^k
    while not is_zero(size.conclusion[2] * substitute(power, reals={u[1]: ((), inv(x))}) - 1, [x]):
        size = combine(0 < size.conclusion[2] * x, [(size, positive)])
    return combine(target, [(size, far)], nonzero=[positive])


def _sign(target: Formula, t: Term) -> Formula:
    return 0 < t if target[0] == "lt" else 0 <= t


def tail_by_slope(
    target: Formula,
    x: Term,
    cut: Number,
    slope: Proved,
    *,
    conditions: Sequence[Proved] = (),
    boxes: int = 20_000,
) -> Proved:
    """The target for cut <= x: it holds at the cut, and right - left does not decrease beyond.

    ``slope`` proves 0 <= (right - left)' and ``conditions`` its regularity (see ``kernel.derivative``); both
    may assume cut <= x and lower bounds of x.

    Raises:
        KernelError: ball arithmetic does not decide the value at the cut.
    """
    gap = target[2] - target[1]
    start = kernel.on_box(_sign(target, gap), {x[1]: (cut, cut)}, boxes)
    start = kernel.instantiate(start, reals={x[1]: real(cut)})
    start = kernel.discharge(start, combine(real(cut) <= real(cut)))
    grown = _along(slope, conditions, assume(real(cut) <= x), x, gap)
    return combine(target, [(1, start), (1, grown)])


def greatest_at(
    point: TermLike,
    x: Term,
    body: Term,
    rising: Proved,
    falling: Proved,
    *,
    conditions: Sequence[Proved] = (),
) -> Proved:
    """body(x) <= body(point), for a function that rises up to the point and falls beyond.

    ``rising`` proves 0 <= body'(x), under hypotheses that may include x <= point; ``falling`` proves
    body'(x) <= 0, under hypotheses that may include point <= x. Both, and the ``conditions`` of the
    derivative, may assume bounds of x (a <= x, a < x, x <= b, x < b): the claim keeps those, and the same
    bounds of the point unless they compare two numbers.
    """
    top = real(point)
    left = _along(rising, conditions, assume(x <= top), x, body)
    right = _along(falling, conditions, weak(assume(top < x)), x, body)
    if left.conclusion != (body <= substitute(body, reals={x[1]: ((), top)})):
        raise KernelError("the function does not rise up to the point: are the two signs exchanged?")
    return kernel.cases(left, right, x, top)


def _along(sign: Proved, conditions: Sequence[Proved], order: Proved, x: Term, body: Term) -> Proved:
    """``kernel.monotone`` between x and another point; bounds of the points between come from those of x."""
    a, b = order.conclusion[1:]
    z = symbol(unused(sign, order, body, *conditions))

    def between(claim: Proved) -> Proved:
        claim = kernel.instantiate(claim, reals={x[1]: z})
        drawn = []
        for h in claim.hypotheses:
            if h[0] not in ("le", "lt") or h in (a <= z, z <= b):
                continue
            if h[2] == z and ("sym", z[1]) not in free(h[1]):  # c <= a <= z
                drawn.append(combine(h, [(1, _bound(h[0], h[1], a)), (1, assume(a <= z))]))
            elif h[1] == z and ("sym", z[1]) not in free(h[2]):  # z <= b <= c
                drawn.append(combine(h, [(1, _bound(h[0], b, h[2])), (1, assume(z <= b))]))
        return kernel.discharge(claim, *drawn)

    moved = substitute(body, reals={x[1]: ((), z)})
    return kernel.monotone(between(sign), order, z, moved, [between(c) for c in conditions])


def _bound(head: str, a: Term, b: Term) -> Proved:
    formula = Formula((head, a, b))
    if a[0] == b[0] == "num":
        return combine(formula, [(b[1] - a[1], one_positive())])
    return assume(formula)
