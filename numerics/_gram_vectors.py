"""Eight float64 numbers as one value of numba code: what the lanes of the compiled Gram-space step are.

Written as loops over arrays, code for eight lanes leaves the compiler to prove that arrays do not overlap;
its run-time checks took half of the time. A vector type says it outright. LLVM maps it to whatever registers
the processor has (one of AVX-512, two of AVX, four of NEON), with the same bits on all that fuse a product
and a sum. Vectors add, subtract, multiply and divide, with numbers too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, no_type_check

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic, models, overload, register_model

WIDTH = 8
OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "_nrt": False}
LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding and subtracting it rounds to an integer
_ROUND_BITS = 0x4338000000000000  # its bits: below them stands the integer


class _Float64x8(types.Type):
    def __init__(self) -> None:
        super().__init__(name="float64x8")


_VECTOR = _Float64x8()
_DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)
_INTEGERS = ir.VectorType(ir.IntType(64), WIDTH)


@register_model(_Float64x8)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _DOUBLES)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    """Where row `row` of a (rows, 8) array stands."""
    data = context.make_array(kind)(context, builder, array).data
    start = builder.gep(data, [builder.mul(row, ir.Constant(row.type, WIDTH))])
    return builder.bitcast(start, _DOUBLES.as_pointer())


def _is_rows(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 2 and array.layout == "C"


@intrinsic
def load(_typing, array, row):  # type: ignore[no-untyped-def]
    """Row `row` of a contiguous (rows, 8) array."""
    if not (_is_rows(array) and isinstance(row, types.Integer)):
        return None

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        where = _pointer(context, builder, signature.args[0], *arguments)
        value = builder.load(where)
        value.align = 8
        return value

    return _VECTOR(array, types.intp), code


@intrinsic
def store(_typing, array, row, value):  # type: ignore[no-untyped-def]
    """Set row `row` of a contiguous (rows, 8) array."""
    if not (_is_rows(array) and isinstance(row, types.Integer) and value == _VECTOR):
        return None

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        where = _pointer(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], where, align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, _VECTOR), code


def _spread(builder: Any, number: Any) -> Any:
    one = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, ir.Constant(_DOUBLES, ir.Undefined), places)


@intrinsic
def spread(_typing, array, row, place):  # type: ignore[no-untyped-def]
    """One entry of a contiguous (rows, 8) array in all places."""
    if not (_is_rows(array) and isinstance(row, types.Integer) and isinstance(place, types.Integer)):
        return None

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        index = builder.add(builder.mul(arguments[1], ir.Constant(arguments[1].type, WIDTH)), arguments[2])
        return _spread(builder, builder.load(builder.gep(data, [index])))

    return _VECTOR(array, types.intp, types.intp), code


@intrinsic
def splat(_typing, number):  # type: ignore[no-untyped-def]
    """The number in all places."""

    def code(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return _spread(builder, arguments[0])

    return _VECTOR(types.float64), code


def _elementwise(count: int, build: Callable[..., Any], returns: Any = _VECTOR) -> Any:
    """An intrinsic of `count` vectors."""

    def code(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return build(builder, *arguments)

    made = returns(*[_VECTOR] * count), code
    by_count: dict[int, Callable[..., Any]] = {  # numba asks for named arguments
        1: lambda _typing, a: made,
        2: lambda _typing, a, b: made,
        3: lambda _typing, a, b, c: made,
        4: lambda _typing, a, b, c, d: made,
    }
    return intrinsic(by_count[count])


def _below(builder: Any, a: Any, b: Any) -> Any:
    return builder.fcmp_ordered("<", a, b)


def _call(name: str) -> Callable[..., Any]:
    """A call of LLVM's elementwise function of that name."""

    def build(builder: Any, *arguments: Any) -> Any:
        kind = ir.FunctionType(_DOUBLES, [_DOUBLES] * len(arguments))
        symbol = f"llvm.{name}.v{WIDTH}f64"
        function = builder.module.globals.get(symbol) or ir.Function(builder.module, kind, symbol)
        return builder.call(function, arguments)

    return build


def _power(builder: Any, rounded: Any) -> Any:
    """2^k from k + ROUND, 0 for k < -1022."""

    def all_of(value: int) -> Any:
        return ir.Constant(_INTEGERS, [value] * WIDTH)

    bits = builder.bitcast(rounded, _INTEGERS)
    exponent = builder.sub(bits, all_of(_ROUND_BITS - 1023))
    exponent = builder.select(builder.icmp_signed(">", exponent, all_of(0)), exponent, all_of(0))
    return builder.bitcast(builder.shl(exponent, all_of(52)), _DOUBLES)


def _some_below(builder: Any, a: Any, b: Any) -> Any:
    mask = builder.bitcast(_below(builder, a, b), ir.IntType(WIDTH))
    return builder.icmp_unsigned("!=", mask, ir.Constant(ir.IntType(WIDTH), 0))


fma = _elementwise(3, _call("fmuladd"))  # a b + c
sqrt = _elementwise(1, _call("sqrt"))
absolute = _elementwise(1, _call("fabs"))
least = _elementwise(2, lambda builder, a, b: builder.select(_below(builder, a, b), a, b))
most = _elementwise(2, lambda builder, a, b: builder.select(_below(builder, a, b), b, a))
where_below = _elementwise(4, lambda builder, a, b, x, y: builder.select(_below(builder, a, b), x, y))
some_below = _elementwise(2, _some_below, types.boolean)  # whether a < b anywhere
_two_to = _elementwise(1, _power)


def _arithmetic(operation: Any, build: Callable[..., Any]) -> None:
    """Let an operator take two vectors, or a vector and a number."""
    both = _elementwise(2, build)

    @overload(operation)
    def typed(a, b):  # type: ignore[no-untyped-def]
        if a == _VECTOR and b == _VECTOR:
            return lambda a, b: both(a, b)  # noqa: PLW0108 - numba asks for a function
        if a == _VECTOR and isinstance(b, types.Number):
            return lambda a, b: both(a, splat(b))
        if b == _VECTOR and isinstance(a, types.Number):
            return lambda a, b: both(splat(a), b)
        return None


_arithmetic(operator.add, lambda builder, a, b: builder.fadd(a, b))
_arithmetic(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_arithmetic(operator.mul, lambda builder, a, b: builder.fmul(a, b))
_arithmetic(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))


@njit(**OPTIONS)
@no_type_check
def exp(x):
    """e^x for x <= 709 to one unit in the last place, 0 where that is subnormal.

    Reduction by log 2, Taylor, exponent bits.
    """
    x = most(x, splat(-745.0))
    rounded = fma(x, splat(LOG2E), splat(ROUND))
    whole = rounded - ROUND
    r = fma(whole, splat(-LN2_LOW), fma(whole, splat(-LN2_HIGH), x))
    series = fma(splat(1.0 / 6227020800.0), r, splat(1.0 / 479001600.0))
    series = fma(series, r, splat(1.0 / 39916800.0))
    series = fma(series, r, splat(1.0 / 3628800.0))
    series = fma(series, r, splat(1.0 / 362880.0))
    series = fma(series, r, splat(1.0 / 40320.0))
    series = fma(series, r, splat(1.0 / 5040.0))
    series = fma(series, r, splat(1.0 / 720.0))
    series = fma(series, r, splat(1.0 / 120.0))
    series = fma(series, r, splat(1.0 / 24.0))
    series = fma(series, r, splat(1.0 / 6.0))
    series = fma(series, r, splat(0.5))
    return fma(series * r, r, r + 1.0) * _two_to(rounded)
