"""The distinct cells of a table, each with its rows and those that are positive, and how the numbers among them are written."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aucdist.data.formats.table_form import Spelling

MOSTLY = 0.9
"""A column of which so large a share of the cells are numbers, or dates, is one of these; the others count as missing."""
SYMBOLS = (
    "$", "€", "£", "¥", "₹", "₽", "₩", "%", "‰", "USD", "EUR", "GBP", "CHF", "JPY", "CAD", "AUD", "Fr.", "kr", "zł", "R$", "US$",
)  # fmt: skip
STYLES = ((".", None), (".", ","), (".", "'"), (".", "space"), (",", None), (",", "."), (",", "space"))
"""Decimal sign and groups; of several that fit as many columns and cells, the first."""
EMPTY = pa.StringArray.from_buffers(1, pa.py_buffer(bytes(8)), pa.py_buffer(b""))
"""An empty text. `pa.array`, as `to_numpy`, loads pandas, which takes as long as all of `aucdist init`."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The distinct cells of each column, those of a column one after the other.

    `names`: the columns.
    `starts`, of shape (n_columns + 1,): where the cells of each column are.
    `text`: for each cell the position of its text in `texts`.
    `rows` and `positives`: how many rows have this cell, and how many of them are of the positive class.
    `texts` and `strings`: the distinct texts, without blanks around them.
    """

    names: list[str]
    starts: np.ndarray
    text: np.ndarray
    rows: np.ndarray
    positives: np.ndarray
    texts: pa.StringArray
    strings: list[str]

    @classmethod
    def of(cls, table: pa.Table, positive: np.ndarray) -> "Cells":
        """Return the cells of a table of texts or of dictionaries of them; a null is an empty text.

        `positive`, of shape (n_rows,), bool: which rows are of the positive class.
        """
        dictionaries, rows, positives = [], [], []
        for column in table.columns:
            whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
            n = len(encoded.dictionary)
            codes = as_numpy(encoded.indices.fill_null(n) if encoded.null_count else encoded.indices)
            dictionaries += [encoded.dictionary.cast(pa.string()), EMPTY]
            rows.append(np.bincount(codes, minlength=n + 1))
            positives.append(np.bincount(codes[positive], minlength=n + 1))
        trimmed = pc.utf8_trim_whitespace(pa.concat_arrays([EMPTY[:0], *dictionaries])).dictionary_encode()
        n_texts = len(trimmed.dictionary)
        n_rows = np.concatenate([np.zeros(0, np.int64), *rows])
        keys = np.repeat(np.arange(len(rows)), [len(part) for part in rows]) * n_texts + as_numpy(trimmed.indices)
        distinct, at = np.unique(keys[n_rows > 0], return_inverse=True)
        return cls(
            table.column_names,
            np.searchsorted(distinct, np.arange(len(rows) + 1) * n_texts),
            distinct % max(n_texts, 1),
            np.bincount(at, n_rows[n_rows > 0], len(distinct)).astype(np.int64),
            np.bincount(at, np.concatenate([n_rows[:0], *positives])[n_rows > 0], len(distinct)).astype(np.int64),
            trimmed.dictionary,
            trimmed.dictionary.to_pylist(),
        )

    def columns(self) -> Iterator[tuple[str, slice]]:
        """Yield each column and where its cells are."""
        for j, name in enumerate(self.names):
            yield name, slice(int(self.starts[j]), int(self.starts[j + 1]))

    def spelling(self, missing: np.ndarray) -> Spelling:
        """Return the spelling of numbers by which most columns hold them.

        `missing`, of shape (n_texts,), bool: texts that say that a value is missing.
        """
        column = np.repeat(np.arange(len(self.names)), np.diff(self.starts))
        present = ~missing[self.text]
        n_present = np.bincount(column[present], self.rows[present], len(self.names))

        def fit(values: np.ndarray) -> tuple[int, int]:
            """Return in how many columns most cells are numbers, and how many cells these are."""
            numbers = present & ~np.isnan(values[self.text])
            n_numbers = np.bincount(column[numbers], self.rows[numbers], len(self.names))
            mostly = (n_numbers >= MOSTLY * n_present) & (n_present > 0)
            return int(mostly.sum()), int(n_numbers[mostly].sum())

        plain = numbers_in(self.texts, Spelling())
        others = present & np.isnan(plain[self.text])
        digits = as_numpy(pc.match_substring_regex(self.texts, r"\d"))
        if not digits[self.text[others]].any():
            return Spelling()
        spellings = [
            Spelling(decimal=decimal, thousands=thousands, symbols=symbols)
            for symbols in ((), SYMBOLS)
            for decimal, thousands in STYLES
        ]
        fits = [fit(plain if spelling == Spelling() else numbers_in(self.texts, spelling)) for spelling in spellings]
        best = spellings[fits.index(max(fits))]
        if not best.symbols:
            return best
        bare = Spelling(decimal=best.decimal, thousands=best.thousands)
        written = ~np.isnan(numbers_in(self.texts, best)) & np.isnan(numbers_in(self.texts, bare))
        texts = [text for text, is_written in zip(self.strings, written, strict=True) if is_written]
        used = {symbol for text in texts for symbol in SYMBOLS if symbol in text}
        inside = {
            a for a in used
            if not any(a in text and not any(b in text for b in used if a != b and a in b) for text in texts)
        }  # fmt: skip
        return Spelling(decimal=best.decimal, thousands=best.thousands, symbols=tuple(sorted(used - inside)))


def numbers_in(texts: pa.StringArray, spelling: Spelling) -> np.ndarray:
    """Return the numbers that texts are, written in this way; nan for those that are none, float64."""
    plain = spelling.plain_numbers(texts)
    numbers = np.full(len(texts), np.nan)
    numbers[as_numpy(plain.is_valid())] = as_numpy(pc.utf8_ltrim(plain.drop_null(), "+").cast(pa.float64()))
    return numbers


def as_numpy(array: pa.Array) -> np.ndarray:
    """Return an array without nulls; `to_numpy` would load pandas."""
    if pa.types.is_boolean(array.type):
        return np.from_dlpack(array.cast(pa.uint8())).astype(bool)
    return np.from_dlpack(array).copy()
