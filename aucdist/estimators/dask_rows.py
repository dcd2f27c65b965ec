"""Rows of estimators in dask collections: their columns, and what a function makes of each chunk."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from aucdist.estimators.tables import holds_texts


def is_dask(thing: Any) -> bool:
    """Return whether something is a dask collection."""
    return hasattr(thing, "__dask_graph__")


def check_columns(estimator: Any, X: Any, *, reset: bool = False) -> None:
    """Check number and names of the columns of a dask collection as those of an array or a DataFrame in memory."""
    rows = X._meta if hasattr(X, "columns") else np.zeros((1, X.shape[1]))
    holds_texts(rows)  # raises an error for two columns of one name
    validate_data(estimator, rows, reset=reset, skip_check_array=True)


def map_chunks(estimator: Any, X: Any, function: Callable[[Any], np.ndarray], dtype: Any, width: int | None) -> Any:
    """Return what a function makes of each chunk of the rows of a dask collection, as a dask Array.

    `X`: of shape (n_samples, n_features).
    `function`: of an array or a DataFrame; its result has a row for each.
    `width`: their columns; None for one-dimensional results.
    Raises InputError for other columns than those of the training rows.
    """
    import dask
    import dask.array as da

    check_columns(estimator, X)
    tail = () if width is None else (width,)
    names = getattr(estimator, "feature_names_in_", None)
    if hasattr(X, "columns"):
        chunks, lengths = X.to_delayed(), (np.nan,) * X.npartitions
    else:
        X = X.rechunk({1: -1})
        chunks, lengths = X.to_delayed().ravel(), X.chunks[0]
    results = [
        da.from_delayed(dask.delayed(_on_rows)(function, chunk, names, tail, dtype), (length, *tail), dtype)
        for chunk, length in zip(chunks, lengths, strict=True)
    ]
    return da.concatenate(results) if len(results) > 1 else results[0]


def _on_rows(function: Callable[[Any], np.ndarray], rows: Any, names: Any, tail: tuple[int, ...], dtype: Any) -> Any:
    if len(rows) == 0:
        return np.zeros((0, *tail), dtype)
    if names is not None and not hasattr(rows, "columns"):
        rows = pd.DataFrame(rows, columns=names)  # else there is a warning for each chunk
    return function(rows)
