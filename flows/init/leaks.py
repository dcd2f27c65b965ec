"""Columns that rank the rows almost without an error by themselves: what is known only once the label is."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from aucdist.data.formats.spelling import Spelling
from aucdist.drift.traps import SUSPICIOUS, categories_auc, single_auc
from flows.init.columns import ColumnGuess


def with_auc(
    column: ColumnGuess, texts: Mapping[str, pd.Categorical], positive: np.ndarray, spelling: Spelling
) -> ColumnGuess:
    """Return a column with its AUC alone, and with a comment where that is suspicious.

    `positive`: of shape (n_rows,), bool.
    """
    if column.kind not in ("number", "categorical"):
        return column
    cells = texts[column.name]
    codes = np.asarray(cells.codes)
    if column.kind == "categorical":
        area = categories_auc(codes, positive)
    else:
        plain = [spelling.plain_number(text) for text in cells.categories]
        values = np.array([np.nan if text is None else float(text) for text in plain])
        area = single_auc(values[codes], positive)
    if area < SUSPICIOUS:
        return replace(column, auc=area)
    said = f"AUC {area:.4f} alone: drop it if it is known only once the label is; {column.comment}"
    return replace(column, auc=area, comment=said)
