"""Parse decimal numbers in bytes to float64, correctly rounded.

Numbers of at most 19 digits are exact. If digits and power of ten are floats themselves, one product or quotient rounds
correctly (Clinger, "How to read floating point numbers accurately", PLDI 1990). Otherwise the upper 128 bits of digits times
power of five decide (Lemire, "Number parsing at a gigabyte per second", 2021, algorithm 1; Mushtak & Lemire, "Fast number
parsing without fallback", 2023, prove that this always decides). Of a number with more digits, the first 19 decide if these
digits plus one give the same float. Otherwise the caller must parse the number with Python's `float`.
"""

import math

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import high_product, i64, u64

FINE, NO_NUMBER, HARD = 0, 1, 2
MOST_DIGITS = 19
EXACT_POWERS = np.array([10.0**e for e in range(23)])
LOWEST, HIGHEST = -342, 308
"""The smallest and the largest power of ten; beyond these every number of 19 digits is 0 or infinite."""


def _powers_of_five() -> np.ndarray:
    """Return the first 128 bits of 5**q in two columns, for each q from `LOWEST`; rounded up for q from -27 to -1, else down."""
    table = np.empty((HIGHEST - LOWEST + 1, 2), dtype=np.uint64)
    for row, q in enumerate(range(LOWEST, HIGHEST + 1)):
        power = 5 ** abs(q)
        if q >= 0:
            bits = (power << 128) >> power.bit_length()
        else:
            # 2**127 <= 2**shift / power < 2**128; a power of five is never one of two.
            shift = power.bit_length() + 127
            bits = (1 << shift) // power + (q >= -27)
        table[row] = bits >> 64, bits & 0xFFFFFFFFFFFFFFFF
    return table


FIVES = _powers_of_five()


@kernel(forceinline=True)
def byte_at(data, i):
    """Return a byte as an integer."""
    return int(data[np.uint64(i)])  # unsigned, so that Numba does not check for negative indices


@kernel
def scaled(digits, q):
    """Return digits times 10**q, correctly rounded, or infinity if it is too large.

    `digits`: u64.
    `q`: int.
    """
    w = u64(digits)
    if w == u64(0) or q < LOWEST:
        return 0.0
    if q > HIGHEST:
        return np.inf
    n_zeros = 0
    while w < u64(0x8000000000000000):
        w = u64(w << u64(1))
        n_zeros += 1
    five = u64(FIVES[q - LOWEST, 0])
    high, low = high_product(w, five), u64(w * five)
    if high & u64(0x1FF) == u64(0x1FF):
        # Only in this case the lower half of the power can change the bits that count.
        more = high_product(w, u64(FIVES[q - LOWEST, 1]))
        low = u64(low + more)
        if low < more:
            high = u64(high + u64(1))
    upper = i64(high >> u64(63))
    shift = upper + 9
    mantissa = i64(high >> u64(shift))  # 54 bits: one more than a float has
    # The number is mantissa / 2 * 2**power. 217706 / 2**16 approximates log2(10) accurately enough.
    power = ((217706 * q) >> 16) + upper - n_zeros + 11
    too_small = -1074 - power
    if too_small > 0:
        if too_small > 54:
            return 0.0
        mantissa >>= too_small
        power = -1074
    elif -4 <= q <= 23 and low <= u64(1) and mantissa & 3 == 1 and u64(u64(mantissa) << u64(shift)) == high:
        mantissa -= 1  # halfway between two floats: round to the even one
    mantissa = (mantissa + (mantissa & 1)) >> 1
    if power > 971 or (power == 971 and mantissa >= 9007199254740992):
        return np.inf
    return math.ldexp(float(mantissa), power)


@kernel(forceinline=True)
def _number_of(digits, n_digits, q):
    if n_digits <= 18 and digits <= 9007199254740992 and -22 <= q <= 22:
        return digits * EXACT_POWERS[q] if q >= 0 else digits / EXACT_POWERS[-q]
    return scaled(u64(digits), q)


@kernel
def long_number(data, start, q):
    """Return a number of more than 19 digits, and whether it is `FINE` or `HARD`.

    `data`: ndarray of uint8.
    `start`, int: position of the first digit.
    `q`, int: the power of ten of the last digit.
    """
    digits, kept, n_digits, i = 0, 0, 0, start
    while True:
        c = byte_at(data, i)
        i += 1
        if c == 46:
            continue
        d = c - 48
        if d < 0 or d > 9:
            break
        if kept == MOST_DIGITS:
            n_digits += 1
        elif kept > 0 or d > 0:
            kept += 1
            digits = digits * 10 + d
    low = scaled(u64(digits), q + n_digits)
    if n_digits == 0 or low == scaled(u64(u64(digits) + u64(1)), q + n_digits):
        return low, FINE
    return low, HARD


@kernel(forceinline=True)
def number_at(data, start):
    """Return the number that starts at a position of the data.

    `data`, ndarray of uint8: at least one byte must follow the number; the caller checks what follows.
    `start`: int.
    Returns `value`; `stop`, the position after its last byte; `fault`, `FINE`, `NO_NUMBER` or `HARD`. Integers beyond
        2**53, which a float64 may not hold, are hard.
    """
    i = start
    sign = byte_at(data, i)
    if sign == 43 or sign == 45:
        i += 1
    digits, first = 0, i
    d = byte_at(data, i) - 48
    while 0 <= d <= 9:
        digits = digits * 10 + d
        i += 1
        d = byte_at(data, i) - 48
    n_digits, q = i - first, 0
    if d == -2:
        i += 1
        point = i
        d = byte_at(data, i) - 48
        while 0 <= d <= 9:
            digits = digits * 10 + d
            i += 1
            d = byte_at(data, i) - 48
        q = point - i
        n_digits -= q
    if n_digits == 0:
        return 0.0, i, NO_NUMBER
    if d == 21 or d == 53:
        i += 1
        minus = byte_at(data, i) == 45
        if minus or byte_at(data, i) == 43:
            i += 1
        n_exponent, exponent = i, 0
        d = byte_at(data, i) - 48
        while 0 <= d <= 9:
            if exponent < 100000:
                exponent = exponent * 10 + d
            i += 1
            d = byte_at(data, i) - 48
        if i == n_exponent:
            return 0.0, i, NO_NUMBER
        q += -exponent if minus else exponent
    fault = FINE
    if n_digits <= MOST_DIGITS:
        value = _number_of(digits, n_digits, q)
    else:
        value, fault = long_number(data, first, q)
    if n_digits >= 16 and i - first == n_digits and (n_digits > MOST_DIGITS or digits > 9007199254740992):
        fault = HARD
    return -value if sign == 45 else value, i, fault
