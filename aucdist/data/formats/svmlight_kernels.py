"""Parse svmlight rows into CSR arrays, by one pass that counts line breaks and colons and one that parses.

Decimal numbers become float64, correctly rounded. Numbers of at most 19 digits are exact. If digits and power of ten
are floats themselves, one product or quotient rounds correctly (Clinger, "How to read floating point numbers
accurately", PLDI 1990). Otherwise the upper 128 bits of digits times power of five decide (Lemire, "Number parsing at
a gigabyte per second", 2021, algorithm 1; Mushtak & Lemire, "Fast number parsing without fallback", 2023, prove that
this always decides). For a number with more digits, the first 19 decide if these digits plus one give the same float.
Otherwise the caller must parse the number with Python's `float`.
"""

import math

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.random import high_product, i64, u64

SOUND, NO_PAIR, TOO_LOW, TOO_HIGH, NOT_ASCENDING, BAD_VALUE, TOO_LARGE, BAD_QUERY = 0, 1, 2, 3, 4, 5, 6, 7
NO_QUERY = -1
SPACE, NEW_LINE, COLON, HASH, ZERO = 32, 10, 58, 35, 48
FINE, NO_NUMBER, HARD = 0, 1, 2
MAX_DIGITS = 19
EXACT_POWERS = np.array([10.0**e for e in range(23)])
LOWEST, HIGHEST = -342, 308
"""The smallest and the largest power of ten; beyond these every number of 19 digits is 0 or infinite."""


def _powers_of_five() -> np.ndarray:
    """Return the first 128 bits of 5**q in two columns, for each q from `LOWEST`: rounded down, and up from -27 to -1."""
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
        if kept == MAX_DIGITS:
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
    if n_digits <= 18 and digits <= 9007199254740992 and -22 <= q <= 22:
        value = digits * EXACT_POWERS[q] if q >= 0 else digits / EXACT_POWERS[-q]
    elif n_digits <= MAX_DIGITS:
        value = scaled(u64(digits), q)
    else:
        value, fault = long_number(data, first, q)
    if n_digits >= 16 and i - first == n_digits and (n_digits > MAX_DIGITS or digits > 9007199254740992):
        fault = HARD
    return -value if sign == 45 else value, i, fault


@kernel
def gather(data, spans, offsets, out):
    """Copy pieces of the data into one contiguous array.

    `data`: ndarray of uint8.
    `spans`, of shape (n, 2), int64: start and stop of each piece.
    `offsets`, of shape (n + 1,), int64: start of each piece in `out`, and the end of the last one.
    `out`, ndarray of uint8: written: the pieces.
    """
    for r in range(spans.shape[0]):
        at = offsets[r]
        for i in range(spans[r, 0], spans[r, 1]):
            out[at] = data[i]
            at += 1


@kernel
def count_at_most(data):
    """Return upper bounds on the numbers of rows and values: the numbers of line breaks and of colons."""
    rows, values = 0, 0
    for c in data:
        rows += c == NEW_LINE
        values += c == COLON
    return rows, values


@kernel
def parse_rows(data, first, last, most, topics, ignore_queries, queries, labels, offsets, indices, values, hard):
    """Parse svmlight rows into labels and CSR arrays.

    `data`, ndarray of uint8: whole lines; the last byte is a line break.
    `first` and `last`, int: the number of the first feature in the file (0 or 1), and the largest number allowed.
    `most`, float: the largest absolute value allowed.
    `topics`, bool: whether a row without a label is allowed.
    `ignore_queries`, bool: whether ``qid:...`` is ignored.
    `queries`, of shape (rows,) or (0,), int64: written, unless it is empty: the query of each row, `NO_QUERY` where it
        has none.
    `labels`, of shape (rows, 2), int64: written: start and stop of the label of each row.
    `offsets`: of shape (rows + 1,), int64.
    `indices`: of shape (values,), int32.
    `values`, of shape (values,), float32 or float64: written: the rows in CSR form, without zeros. The numbers of rows
        and values are those of `count_at_most`.
    `hard`, of shape (any, 3), int64: written: position in `values`, and start and stop, of each number that Python must
        parse. One entry for every 17 bytes is enough.
    Returns `n_rows` and `n_values` and `n_hard`; `width`, number of features up to the last one that occurs; `fault`,
        `SOUND`, or the kind of error; `position`, start of the next row, or of the invalid pair.
    """
    i, row, k, n_hard, width, fault = 0, 0, 0, 0, 0, SOUND
    offsets[0] = 0
    while i < data.shape[0] and fault == SOUND:
        i = _after_blanks(data, i)
        if byte_at(data, i) == HASH:
            i = _line_end(data, i)
        if byte_at(data, i) == NEW_LINE:
            i += 1
            continue
        stop = _after_token(data, i)
        colon = i
        while topics and colon < stop and byte_at(data, colon) != COLON:
            colon += 1
        if topics and colon < stop:
            stop = i
        labels[row, 0], labels[row, 1] = i, stop
        if queries.shape[0]:
            queries[row], stop, fault = _query(data, _after_blanks(data, stop), stop)
            if fault != SOUND:
                return row, k, n_hard, width, fault, stop
        i, k, n_hard, named, fault = _pairs(
            data, stop, first, last, most, ignore_queries, k, n_hard, indices, values, hard
        )
        width = max(width, named)
        row += 1
        offsets[row] = k
    return row, k, n_hard, width, fault, i


@kernel(forceinline=True)
def _pairs(data, i, first, last, most, ignore_queries, k, n_hard, indices, values, hard):
    """Parse the pairs of a row; return the position after it (or of the invalid pair), k, n_hard, the row's width and fault."""
    before = first - 1
    while True:
        token = _after_blanks(data, i)
        if byte_at(data, token) == HASH:
            token = _line_end(data, token)
        if byte_at(data, token) == NEW_LINE:
            return token + 1, k, n_hard, before + 1 - first, SOUND
        i, index, d = token, 0, byte_at(data, token) - ZERO
        while 0 <= d <= 9:
            index = min(index * 10 + d, last + 1)
            i += 1
            d = byte_at(data, i) - ZERO
        if d != COLON - ZERO or i == token:
            if ignore_queries and i == token and _is_query(data, i):
                i = _after_token(data, i)
                continue
            return token, k, n_hard, 0, NO_PAIR
        if index < first:
            return token, k, n_hard, 0, TOO_LOW
        if index > last:
            return token, k, n_hard, 0, TOO_HIGH
        if index <= before:
            return token, k, n_hard, 0, NOT_ASCENDING
        before, start = index, i + 1
        value, i, kind = number_at(data, start)
        if kind == NO_NUMBER or not _ends_token(byte_at(data, i)):
            return token, k, n_hard, 0, BAD_VALUE
        if not -most <= value <= most:
            return token, k, n_hard, 0, TOO_LARGE
        if kind == HARD:
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = k, start, i
            n_hard += 1
        if value != 0.0 or kind == HARD:
            indices[k], values[k] = index - first, value
            k += 1


@kernel(forceinline=True)
def _ends_token(c):
    return c in (SPACE, HASH) or 9 <= c <= 13


@kernel(forceinline=True)
def _after_blanks(data, i):
    """Return the next position that is not blank; a line break is not blank."""
    c = byte_at(data, i)
    while c == SPACE or (9 <= c <= 13 and c != NEW_LINE):
        i += 1
        c = byte_at(data, i)
    return i


@kernel
def _after_token(data, i):
    """Return the next position of a blank, a line break or the start of a comment."""
    while not _ends_token(byte_at(data, i)):
        i += 1
    return i


@kernel
def _line_end(data, i):
    while byte_at(data, i) != NEW_LINE:
        i += 1
    return i


@kernel
def _query(data, start, before):
    """Return the number behind ``qid:``, the position after it, and the fault; the position before where there is none."""
    if not _is_query(data, start):
        return NO_QUERY, before, SOUND
    i, number, digits = start + 4, 0, 0
    while 0 <= byte_at(data, i) - ZERO <= 9:
        number = 10 * number + byte_at(data, i) - ZERO
        i += 1
        digits += 1
    if digits == 0 or digits > 18 or not _ends_token(byte_at(data, i)):
        return NO_QUERY, start, BAD_QUERY
    return number, i, SOUND


@kernel
def _is_query(data, i):
    """Return whether ``qid:`` starts here. A line break ends the comparison, so it never reads beyond the data."""
    begins = byte_at(data, i) == 113 and byte_at(data, i + 1) == 105
    return begins and byte_at(data, i + 2) == 100 and byte_at(data, i + 3) == COLON
