"""Parse svmlight rows into CSR arrays. A first pass counts line breaks and colons, and a second one parses.

Decimal numbers become float64, correctly rounded. If the digits and the power of ten are representable as floats, one product
or quotient is correctly rounded (Clinger, "How to read floating point numbers accurately", PLDI 1990). pyarrow parses all other
numbers.
"""

import numpy as np

from aucdist.kernels.compiling import kernel

NO_FAULT, NO_PAIR, TOO_LOW, TOO_HIGH, NOT_ASCENDING, BAD_VALUE, TOO_LARGE, BAD_QUERY = 0, 1, 2, 3, 4, 5, 6, 7
NO_QUERY = -1
SPACE, NEW_LINE, COLON, HASH, ZERO = 32, 10, 58, 35, 48
FINE, NO_NUMBER, HARD = 0, 1, 2
EXACT_POWERS = np.array([10.0**e for e in range(23)])


@kernel(forceinline=True)
def byte_at(data, i):
    """Return a byte as an integer."""
    return int(data[np.uint64(i)])  # the index is unsigned, so that Numba does not check for negative indices


@kernel(forceinline=True)
def number_at(data, start):
    """Return the number that starts at a position of the data.

    Parameters
    ----------
    data : ndarray of uint8
        The text. At least one byte must follow the number, and the caller checks what follows.
    start : int
        The position.

    Returns
    -------
    value : float
        The number.
    stop : int
        The position after its last byte.
    fault : int
        `FINE`, `NO_NUMBER` or `HARD`. A number is hard if it has more than 18 digits, digits that exceed 2**53, or a power of
        ten that is not a float64.
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
    if digits == 0:
        q = 0
    if n_digits > 18 or digits > 9007199254740992 or not -22 <= q <= 22:
        return 0.0, i, HARD
    value = digits * EXACT_POWERS[q] if q >= 0 else digits / EXACT_POWERS[-q]
    return -value if sign == 45 else value, i, FINE


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

    Parameters
    ----------
    data : ndarray of uint8
        Whole lines. The last byte is a line break.
    first, last : int
        The number of the first feature in the file (0 or 1), and the largest number that is allowed.
    most : float
        The largest absolute value that is allowed.
    topics : bool
        Whether a row may have no label.
    ignore_queries : bool
        Whether ``qid:...`` is ignored.
    queries : ndarray of shape (rows,) or (0,), int64
        Output, unless it is empty: the query of each row, or `NO_QUERY`.
    labels : ndarray of shape (rows, 2), int64
        Output: the start and the end of the label of each row.
    offsets : ndarray of shape (rows + 1,), int64
        Output: offsets of the rows in CSR form.
    indices : ndarray of shape (values,), int32
        Output: features of the rows in CSR form.
    values : ndarray of shape (values,), float32 or float64
        Output: values of the rows in CSR form, without zeros. The numbers of rows and values are those of `count_at_most`.
    hard : ndarray of shape (values, 3), int64
        Output: for each hard number, its position in `values`, its start and its end.

    Returns
    -------
    n_rows, n_values, n_hard : int
        The numbers of rows, values and hard numbers.
    width : int
        The number of features up to the last one that occurs.
    fault : int
        `NO_FAULT`, or the kind of error.
    position : int
        The start of the next row, or of the invalid pair.
    """
    i, row, k, n_hard, width, fault = 0, 0, 0, 0, 0, NO_FAULT
    offsets[0] = 0
    while i < data.shape[0] and fault == NO_FAULT:
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
            if fault != NO_FAULT:
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
    """Parse the pairs of a row.

    Return the position after it (or that of the invalid pair), k, n_hard, the width of the row, and the fault.
    """
    before = first - 1
    while True:
        token = _after_blanks(data, i)
        if byte_at(data, token) == HASH:
            token = _line_end(data, token)
        if byte_at(data, token) == NEW_LINE:
            return token + 1, k, n_hard, before + 1 - first, NO_FAULT
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
    """Return the next position that is not a blank. A line break does not count as a blank."""
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
    """Return the number after ``qid:``, the position after it, and the fault. Without a query, return the position `before`."""
    if not _is_query(data, start):
        return NO_QUERY, before, NO_FAULT
    i, number, digits = start + 4, 0, 0
    while 0 <= byte_at(data, i) - ZERO <= 9:
        number = 10 * number + byte_at(data, i) - ZERO
        i += 1
        digits += 1
    if digits == 0 or digits > 18 or not _ends_token(byte_at(data, i)):
        return NO_QUERY, start, BAD_QUERY
    return number, i, NO_FAULT


@kernel
def _is_query(data, i):
    """Return whether ``qid:`` starts here. A line break ends the comparison, so it never reads beyond the data."""
    begins = byte_at(data, i) == 113 and byte_at(data, i + 1) == 105
    return begins and byte_at(data, i + 2) == 100 and byte_at(data, i + 3) == COLON
