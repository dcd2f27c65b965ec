"""The direction that each number seems to have: whether its larger values go with the positive class."""

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from aucdist.data.formats.spelling import PLAIN, Spelling
from aucdist.data.labels import class_name

CLEAR = 3.0
"""Standard deviations by which ranks differ, of what chance alone gives."""
FEW = 10
"""With fewer rows of a class nothing is said."""


def direction_of(cells: pd.Categorical, positive: np.ndarray, spelling: Spelling = PLAIN) -> str | None:
    """Return ``increasing`` or ``decreasing`` for a column of numbers; None where ranks do not tell the classes apart.

    `cells`: the texts of the column; those that are no numbers are left out.
    `positive`, of shape (n_rows,), bool: which rows are of the positive class.
    """
    values = np.array([_value(text, spelling) for text in cells.categories], dtype=np.float64)[np.asarray(cells.codes)]
    there = np.isfinite(values)
    ranks, inside = rankdata(values[there]), positive[there]
    n_pos, n = int(inside.sum()), len(inside)
    if min(n_pos, n - n_pos) < FEW:
        return None
    # Wilcoxon's rank sum: mean and variance, the latter with ties, if the classes do not differ.
    beyond = float(ranks[inside].sum()) - n_pos * (n + 1) / 2.0
    deviation = np.sqrt(n_pos * (n - n_pos) / n * float(np.var(ranks)) * n / max(n - 1, 1))
    if abs(beyond) <= CLEAR * deviation:
        return None
    return "increasing" if beyond > 0.0 else "decreasing"


def _value(text: str, spelling: Spelling) -> float:
    plain = spelling.plain_number(text)
    return np.nan if plain is None else float(plain)


def rows_of_class(classes: pd.Categorical, name: str) -> np.ndarray:
    """Return which rows have a class, by its name in `aucdist.data.labels.class_name`; bool."""
    called = np.array([class_name(value) == name for value in classes.categories] + [False])
    return np.asarray(called[np.asarray(classes.codes)])
