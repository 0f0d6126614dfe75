"""Correctly rounded numbers: the one form in which a certificate states a real number."""

from __future__ import annotations

from typing import NamedTuple

from flint import arb, ctx


class Rounded(NamedTuple):
    """A real number x >= 0 rounded to the nearest mantissa 2^exponent, the mantissa having `bits` bits.

    Zero and only zero is (0, 0). The rounding being correct, x lies in the ball of half a unit of the last
    bit, and no other pair is right for the same x: an altered certificate is a false one.
    """

    mantissa: int
    exponent: int

    @property
    def ball(self) -> arb:
        """Rigorous enclosure of x."""
        if self.mantissa == 0:
            return arb(0)
        with ctx.workprec(self.mantissa.bit_length() + 8):
            return arb((self.mantissa, self.exponent), (1, self.exponent - 1))

    def __float__(self) -> float:
        """Give a float near x: not a bound."""
        return float(self.ball.mid())


ZERO = Rounded(0, 0)


def rounded(x: arb, bits: int) -> Rounded | None:
    """Round the positive number in a ball to `bits` bits; None where the ball leaves more than one choice.

    The ball must be tighter than 2^-bits relative, and ctx.prec exceed bits by some.
    """
    if not x > 0 or not x.is_finite():
        return None
    mantissa, exponent = (int(part) for part in x.mid().man_exp())
    shift = mantissa.bit_length() - bits
    scaled = mantissa << -shift if shift <= 0 else (mantissa + (1 << (shift - 1))) >> shift
    if scaled.bit_length() > bits:
        scaled, shift = scaled >> 1, shift + 1
    result = Rounded(scaled, exponent + shift)
    return result if is_rounding(x, result, bits) else None


def is_rounding(x: arb, candidate: tuple[int, int], bits: int) -> bool:
    """Whether every number in the ball rounds to `candidate` at `bits` bits."""
    mantissa, exponent = candidate
    if mantissa.bit_length() != bits or mantissa < 0:
        return False
    error = x * arb(2) ** (-exponent) - mantissa
    below = 4 if mantissa == 1 << (bits - 1) else 2  # below a power of two the spacing halves
    return bool(error * below > -1) and bool(error * 2 < 1)
