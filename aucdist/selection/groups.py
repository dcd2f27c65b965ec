"""Find groups of rows: rows with the same value of a column, or equal rows."""

from dataclasses import replace

import numpy as np

from aucdist.data.block import Block, as_dense, n_rows
from aucdist.data.dataset import Schema
from aucdist.errors import InputError, unknown
from aucdist.kernels.row_statistics import csr_digests, dense_digests
from aucdist.kernels.rows import CsrRows


def take_column(block: Block, schema: Schema, name: str) -> tuple[np.ndarray, Block, Schema]:
    """Take a column out of the features: one that groups or orders the rows must not be used as a feature.

    Parameters
    ----------
    schema : Schema
        The schema of the block.
    name : str
        A feature, or a column of categories.

    Returns
    -------
    values : ndarray of shape (n_samples,), float64
        The feature's values, or the categories as numbers in the order of the schema; -1 for none of them.
    block : Block
        With the other features.
    schema : Schema

    Raises
    ------
    InputError
        If the column does not exist, or is the only one.
    """
    own = [f"{name}={value}" for value in schema.categories[name]] if name in schema.categories else [name]
    at = np.flatnonzero(np.isin(schema.feature_names, own))
    if not len(at):
        plain = [feature for feature in schema.feature_names if feature.partition("=")[0] not in schema.categories]
        raise unknown("column", name, [*schema.categories, *plain])
    if len(at) == block.n_features:
        raise InputError(f"{name!r} is the only column, so nothing would be left to learn from: name another column")
    values = as_dense(block.X[:, at]).astype(np.float64)
    if name in schema.categories:
        taken = np.where(values.any(axis=1), np.argmax(values != 0, axis=1), -1).astype(np.float64)
    else:
        taken = values[:, 0]
    others = np.setdiff1d(np.arange(block.n_features), at)
    remaining = {key: value for key, value in schema.categories.items() if key != name}
    return taken, block.with_X(block.X[:, others]), replace(schema.without(own), categories=remaining)


def codes(values: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for equal values. Each row with NaN is a group of its own.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    return np.unique(values, return_inverse=True, equal_nan=False)[1].astype(np.int64)


def names_of_codes(values: np.ndarray, schema: Schema, name: str) -> list[str]:
    """Return the names of the values of a column, indexed by the numbers that `codes` gives them.

    Parameters
    ----------
    values : ndarray of shape (n_samples,), float64
        As `take_column` returns them for this column and schema.
    """
    distinct = np.unique(values, equal_nan=False).tolist()
    if name not in schema.categories:
        return [f"{value:.17g}" for value in distinct]
    return ["of an unknown category" if value < 0 else schema.categories[name][int(value)] for value in distinct]


def duplicates(block: Block) -> np.ndarray:
    """Return a number for each row, the same for rows whose features are equal, whatever their labels.

    Among a million different rows two share a digest of 64 bits with a chance of 3e-8.

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    return codes(digests_of(block))


def digests_of(block: Block) -> np.ndarray:
    """Return the digest of each row, uint64 of shape (n_samples,); the layout and the type of its values do not matter."""
    rows = block.rows
    out = np.empty(n_rows(rows), dtype=np.uint64)
    bits = np.ascontiguousarray(rows.values, dtype=np.float64).view(np.uint64)
    if isinstance(rows, CsrRows):
        csr_digests(bits, rows.indices, rows.offsets, out)
    else:
        dense_digests(bits, out)
    return out
