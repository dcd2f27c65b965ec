"""Parse the cells of delimited text: numbers into a matrix, texts into their positions in the data."""

import numpy as np

from aucdist.kernels.compiling import kernel
from aucdist.kernels.decimals import HARD, NO_NUMBER, byte_at, number_at

SOUND, OTHER_LENGTH, BAD_NUMBER, OPEN_QUOTE, STRAY = 0, 1, 2, 3, 4
SKIPPED, FIRST_TEXT = -1, -2
BLANKS = -1
"""Separator code for any run of blanks."""
NEW_LINE, SPACE, QUOTE = 10, 32, 34
MORE, END, NEITHER = 0, 1, 2

MISSING_NUMBER = (
    "", "?", "<null>", "nan", "na", "null", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "none", "-nan", "1.#ind", "-1.#ind",
    "1.#qnan", "-1.#qnan",
)  # fmt: skip
"""What says in a column of numbers that a value is missing: what pandas takes for it, and the question mark of UCI's files."""


def token_table(texts):
    """Return texts as the kernels take them: one after the other in lower case, each behind its length in two bytes."""
    rows = [text.encode().lower() for text in texts]
    return np.frombuffer(b"".join(len(row).to_bytes(2, "little") + row for row in rows), dtype=np.uint8)


@kernel
def parse_cells(data, separator, slots, most, keep_missing, tokens, numbers, spans, hard):
    """Read the cells of a table.

    `data`, ndarray of uint8: whole lines; the last byte is a line break. Blank lines are ignored.
    `separator`, int: a byte, or `BLANKS`. A quoted cell may contain separators, line breaks, and doubled quotes.
    `slots`, of shape (n_columns,), int64: for each column its index in `numbers`, or `SKIPPED`, or `FIRST_TEXT` minus
        its index in `spans`.
    `most`, float: the largest absolute value allowed.
    `keep_missing`, bool: whether a missing number becomes nan.
    `tokens`, ndarray of uint8: what says that one is missing; see `token_table`.
    `numbers`, of shape (rows, n_numbers), float32 or float64: written: the numbers.
    `spans`, of shape (n_texts, rows, 2), int64: written: start and stop of each text, quotes included. There are at
        most as many rows as line breaks.
    `hard`, of shape (any, 4), int64: written: row and column in `numbers`, and start and stop, of each number that
        Python must parse. One entry for every 17 bytes is enough.
    Returns `n_rows` and `n_hard`; `fault`, `SOUND`, or the kind of error; `start` and `stop`, position of the invalid
        cell or row; `column`, the column of the invalid cell; for a row of another length, its number of cells.
    """
    i, row, n_hard = 0, 0, 0
    while i < data.shape[0]:
        i = _after_blanks(data, i, separator)
        if byte_at(data, i) == NEW_LINE:
            i += 1
            continue
        begin, end, n_columns = i, MORE, slots.shape[0]
        for j in range(n_columns):
            if end == END:
                return row, n_hard, OTHER_LENGTH, begin, i, j
            start, slot, end = _after_blanks(data, i, separator), slots[j], NEITHER
            if slot >= 0:
                value, stop, i, end, kind = _number_cell(data, start, separator, most)
                numbers[row, slot] = value
                if kind == HARD:
                    hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = row, slot, start, stop
                    n_hard += 1
            if end == NEITHER and slot >= 0 and keep_missing:
                i, end = _missing_cell(data, start, separator, tokens)
                numbers[row, slot] = np.nan
            if end == NEITHER:
                stop, i, end = _text_cell(data, start, separator)
                if end == NEITHER:
                    return row, n_hard, OPEN_QUOTE if stop < 0 else STRAY, start, i, j
                if slot >= 0:
                    n = j + 1 + _count_cells(data, i, separator, end)
                    if n != n_columns:
                        return row, n_hard, OTHER_LENGTH, begin, i, n
                    return row, n_hard, BAD_NUMBER, start, stop, j
                if slot <= FIRST_TEXT:
                    spans[FIRST_TEXT - slot, row, 0], spans[FIRST_TEXT - slot, row, 1] = start, stop
        if end == MORE:
            return row, n_hard, OTHER_LENGTH, begin, i, n_columns + _count_cells(data, i, separator, end)
        row += 1
    return row, n_hard, SOUND, i, i, 0


@kernel
def _count_cells(data, i, separator, end):
    """Return the number of cells from here to the end of the row."""
    n = 0
    while end == MORE:
        _, i, end = _text_cell(data, _after_blanks(data, i, separator), separator)
        n += 1
    return n


@kernel
def find_texts(data, separator, keep_missing, tokens, is_text):
    """Set ``is_text[j]`` for each column with a cell that is not a number; stop at the first row of another length."""
    i = 0
    while i < data.shape[0]:
        i = _after_blanks(data, i, separator)
        if byte_at(data, i) == NEW_LINE:
            i += 1
            continue
        end = MORE
        for j in range(is_text.shape[0]):
            if end != MORE:
                return
            start = _after_blanks(data, i, separator)
            _, _, i, end, _ = _number_cell(data, start, separator, np.inf)
            if end == NEITHER and keep_missing:
                i, end = _missing_cell(data, start, separator, tokens)
            if end == NEITHER:
                is_text[j] = True
                _, i, end = _text_cell(data, start, separator)
        if end != END:
            return


@kernel(forceinline=True)
def _number_cell(data, start, separator, most):
    """Return a number, its stop, the start of the next cell, whether the row goes on, and the kind of the number.

    The row goes on (`MORE`), ends (`END`), or the cell is not a number (`NEITHER`).
    """
    i, quoted = start, byte_at(data, start) == QUOTE
    if quoted:
        i = _after_blanks(data, i + 1, separator)
    value, stop, kind = number_at(data, i)
    if kind != NO_NUMBER and -most <= value <= most:
        i, closed = stop, True
        if quoted:
            i = _after_blanks(data, i, separator)
            closed = byte_at(data, i) == QUOTE
            i += 1
        if closed:
            i, end = _after_cell(data, i, separator)
            if end != NEITHER:
                return value, stop, i, end, kind
    return 0.0, stop, start, NEITHER, NO_NUMBER


@kernel
def _missing_cell(data, start, separator, tokens):
    """Return of a cell that says that a number is missing how to go on, as `_text_cell` does; of another one `NEITHER`."""
    stop, i, end = _text_cell(data, start, separator)
    if end != NEITHER and _is_missing(data, start, stop, tokens):
        return i, end
    return start, NEITHER


@kernel
def _text_cell(data, start, separator):
    """Return the stop of a cell, the start of the next cell, and whether the row goes on.

    The stop is -1 if a quote is not closed. The row goes on (`MORE`), ends (`END`), or text follows a closing quote (`NEITHER`).
    """
    i, last = start, data.shape[0] - 1
    if byte_at(data, i) == QUOTE:
        i += 1
        while i < last and (byte_at(data, i) != QUOTE or byte_at(data, i + 1) == QUOTE):
            i += 2 if byte_at(data, i) == QUOTE else 1
        if i >= last:
            return -1, last, NEITHER
        i += 1
        after, end = _after_cell(data, i, separator)
        return i, after, end
    c = byte_at(data, i)
    while c != separator and c != NEW_LINE and not (separator == BLANKS and _is_blank(c, separator)):
        i += 1
        c = byte_at(data, i)
    stop = i
    while stop > start and _is_blank(byte_at(data, stop - 1), separator):
        stop -= 1
    after, end = _after_cell(data, i, separator)
    return stop, after, end


@kernel(forceinline=True)
def _after_cell(data, i, separator):
    """Return the position after the end of a cell, and whether its row goes on."""
    if byte_at(data, i) == separator:
        return i + 1, MORE
    stop = _after_blanks(data, i, separator)
    c = byte_at(data, stop)
    if c == NEW_LINE:
        return stop + 1, END
    if c == separator:
        return stop + 1, MORE
    return stop, MORE if separator == BLANKS and stop > i else NEITHER


@kernel(forceinline=True)
def _is_blank(c, separator):
    return c <= SPACE and (c == SPACE or 9 <= c <= 13) and c != NEW_LINE and c != separator


@kernel(forceinline=True)
def _after_blanks(data, i, separator):
    """Return the next position that is not blank; line breaks and separators are not blank."""
    c = byte_at(data, i)
    while c <= SPACE and _is_blank(c, separator):
        i += 1
        c = byte_at(data, i)
    return i


@kernel
def _is_missing(data, start, stop, tokens):
    """Return whether a cell is one of the tokens, in upper or lower case."""
    if stop - start >= 2 and byte_at(data, start) == QUOTE:
        start, stop = start + 1, stop - 1
    n, t = stop - start, 0
    while t < tokens.shape[0]:
        length = byte_at(tokens, t) + 256 * byte_at(tokens, t + 1)
        if length == n:
            k = 0
            while k < n and _lower(byte_at(data, start + k)) == byte_at(tokens, t + 2 + k):
                k += 1
            if k == n:
                return True
        t += 2 + length
    return False


@kernel(forceinline=True)
def _lower(c):
    return c + 32 if 65 <= c <= 90 else c
