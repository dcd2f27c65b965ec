"""How numbers are written in the columns of a file, and the words that stand for a missing one."""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from aucdist.data.formats.spelling import Spelling
from aucdist.data.formats.table_form import MISSING_CATEGORY

MOSTLY = 0.9
"""If so large a share of a column's rows are numbers, the others are taken for words for missing values."""
MOST_WORDS = 5
PLACEHOLDERS = frozenset(
    (
        "-", "--", "---", ".", "..", "...", "*", "**", "#", "x", "n.a.", "n.a", "na.", "n/d", "nd", "n.d.", "n/v",
        "k.a.", "k. a.", "none", "nil", "unknown", "missing", "not available", "not applicable", "no data", "undefined",
        "\\n", "#div/0!", "#value!", "#ref!", "#num!", "(null)", "[null]",
    )
)  # fmt: skip
"""What is written in place of a number, in lower case."""
SYMBOLS = (
    "$", "€", "£", "¥", "₹", "₽", "₩", "%", "‰", "USD", "EUR", "GBP", "CHF", "JPY", "CAD", "AUD", "Fr.", "kr", "zł", "R$", "US$",
)  # fmt: skip
STYLES = ((".", None), (".", ","), (".", "'"), (".", "space"), (",", None), (",", "."), (",", "space"))
"""Decimal sign and groups; of several that fit as many columns, the first."""
DIGITS = re.compile(r"\d")


def found_spelling(texts: Mapping[str, pd.Categorical]) -> Spelling:
    """Return the spelling by which most columns hold numbers.

    `texts`: the cells of each column, missing ones as `MISSING_CATEGORY`.
    """
    columns = [_counts(cells) for cells in texts.values()]
    best, most = Spelling(), -1
    for symbols in ((), SYMBOLS):
        for decimal, thousands in STYLES:
            spelling = Spelling(decimal=decimal, thousands=thousands, symbols=symbols)
            n = sum(is_mostly_numbers(counts, spelling) for counts in columns)
            if n > most:
                best, most = spelling, n
    used = {
        symbol
        for counts in columns
        if is_mostly_numbers(counts, best)
        for text in counts
        for symbol in best.symbols
        if symbol in text and best.plain_number(text) is not None
    }
    inside = {a for a in used for b in used if a != b and a in b and not _alone(a, b, columns)}
    return Spelling(decimal=best.decimal, thousands=best.thousands, symbols=tuple(sorted(used - inside)))


def words_for_missing(counts: Mapping[str, int], spelling: Spelling) -> list[str] | None:
    """Return the texts of a column of numbers that stand for missing ones; None if the column is none of numbers.

    `counts`: the rows of each text, without missing ones.
    """
    others = [text for text in counts if spelling.plain_number(text) is None and not spelling.is_missing_number(text)]
    numbers = [text for text in counts if spelling.plain_number(text) is not None]
    if len(others) > MOST_WORDS or not numbers:
        return None
    others.sort()
    if all(text.lower() in PLACEHOLDERS for text in others):
        return others
    rows, present = sum(counts[text] for text in others), sum(counts.values())
    digits = any(DIGITS.search(text) for text in others)
    few = rows <= (1.0 - MOSTLY) * present or (len(others) == 1 and len(numbers) > 20 and 2 * rows < present)
    return others if few and not digits and rows < present else None


def is_mostly_numbers(counts: Mapping[str, int], spelling: Spelling) -> bool:
    """Tell whether a column holds numbers and words for missing ones."""
    return words_for_missing(counts, spelling) is not None


def _counts(cells: pd.Categorical) -> dict[str, int]:
    rows = np.bincount(cells.codes, minlength=len(cells.categories)).tolist()
    counts = dict(zip(cells.categories, rows, strict=True))
    counts.pop(MISSING_CATEGORY, None)
    return counts


def _alone(symbol: str, longer: str, columns: list[dict[str, int]]) -> bool:
    """Tell whether a symbol occurs where a longer one that contains it does not."""
    return any(symbol in text and longer not in text for counts in columns for text in counts)
