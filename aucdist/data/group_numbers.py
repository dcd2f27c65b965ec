"""The numbers of groups: what a user, a query or a centre is called becomes a number that is the same wherever its rows lie."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from aucdist.data.labels import class_name
from aucdist.errors import InputError

WHOLE = re.compile(r"-?\d{1,18}")


def group_numbers(groups: Any, first: int = 0) -> np.ndarray | None:
    """Return a number for each row, the same for rows of one group; None for None.

    Whole numbers are their own, whatever other numbers there are. Everything else is hashed to 64 bits. So blocks which are read
    apart agree; two of a million groups share a number with a chance of 3e-8, and would be taken for one.

    Parameters
    ----------
    groups : array-like of shape (n_samples,) or None
        Numbers, texts, dates or categories.
    first : int, default=0
        What errors call the first row.

    Returns
    -------
    ndarray of shape (n_samples,), int64, or None

    Raises
    ------
    InputError
        If a group is missing, or there is not one for each row.

    Examples
    --------
    >>> from aucdist.data.group_numbers import group_numbers
    >>> group_numbers([7, 7, -1]).tolist()
    [7, 7, -1]
    """
    if groups is None:
        return None
    series = pd.Series(groups) if not isinstance(groups, pd.Series) else groups
    if isinstance(groups, np.ndarray) and groups.ndim != 1:
        raise InputError(f"groups have shape {groups.shape}; one for each row is needed, of shape (n_samples,)")
    missing = series.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"the group of row {first + int(np.argmax(missing))} (from 0) is missing: each row needs one. Rows that belong to no "
            "group can have a group of their own, which then has no pair"
        )
    if pd.api.types.is_integer_dtype(series.dtype) and series.dtype.kind in "iu":
        return series.to_numpy().astype(np.int64)
    if pd.api.types.is_float_dtype(series.dtype):
        numbers = series.to_numpy(dtype=np.float64)
        whole = (np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))
        found = np.where(whole, numbers, 0.0).astype(np.int64)
        found[~whole] = _hashed(series[~whole])
        return found
    return _hashed(series)


def _hashed(series: pd.Series) -> np.ndarray:
    values = series.astype(object).map(str).to_numpy() if series.dtype.kind not in "mM" else series.to_numpy()
    return pd.util.hash_array(values, categorize=False).view(np.int64)


def numbers_of_texts(texts: Sequence[str]) -> np.ndarray:
    """Return a number for each text, int64: that of whole numbers however they are written, or else of a hash."""
    spelled = [class_name(text) for text in texts]
    hashed = pd.util.hash_array(np.array(spelled, dtype=object), categorize=False).view(np.int64)
    whole = [i for i, text in enumerate(spelled) if WHOLE.fullmatch(text)]
    hashed[whole] = [int(spelled[i]) for i in whole]
    return hashed
