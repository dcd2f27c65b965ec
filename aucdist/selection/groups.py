"""Groups of rows: by the values of a column, or of equal rows."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.split import scrambled
from aucdist.errors import InputError, unknown
from aucdist.kernels.rows import CsrRows

CHUNK = 2**16  # rows that are hashed at a time


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
        If there is no such column, or no other.
    """
    own = [f"{name}={value}" for value in schema.categories[name]] if name in schema.categories else [name]
    at = np.flatnonzero(np.isin(schema.feature_names, own))
    if not len(at):
        plain = [feature for feature in schema.feature_names if feature.partition("=")[0] not in schema.categories]
        raise unknown("column", name, [*schema.categories, *plain])
    if len(at) == block.n_features:
        raise InputError(f"{name!r} is the only column there is: nothing would be left to learn from")
    columns = block.X[:, at]
    values = (
        sp.csr_matrix(columns).toarray() if isinstance(block.rows, CsrRows) else np.asarray(columns, dtype=np.float64)
    )
    if name in schema.categories:
        taken = np.where(values.any(axis=1), np.argmax(values != 0, axis=1), -1).astype(np.float64)
    else:
        taken = values[:, 0]
    others = np.setdiff1d(np.arange(block.n_features), at)
    left = {key: value for key, value in schema.categories.items() if key != name}
    return taken, block.with_X(block.X[:, others]), replace(schema.without(own), categories=left)


def codes(values: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for equal values; not-a-number is a group of its own for each such row.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    return np.unique(values, return_inverse=True, equal_nan=False)[1].astype(np.int64)


def names_of_codes(values: np.ndarray, schema: Schema, name: str) -> list[str]:
    """Return what the values of a column are called, by the numbers that `codes` gives them.

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

    A row's features are hashed to 64 bits, a sum of one random number for each value that is not 0; among a million different
    rows two share a hash with a chance of 3e-8.

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    hashes, rows = np.zeros(block.n_samples, dtype=np.uint64), block.rows
    for start in range(0, block.n_samples, CHUNK):
        part = slice(start, min(start + CHUNK, block.n_samples))
        if isinstance(rows, CsrRows):
            of = np.repeat(np.arange(part.start, part.stop), np.diff(rows.offsets[part.start : part.stop + 1]))
            stored = slice(rows.offsets[part.start], rows.offsets[part.stop])
            np.add.at(hashes, of, _hashed(rows.indices[stored], rows.values[stored]))
        else:
            for j in range(block.n_features):
                hashes[part] += _hashed(np.array([j]), rows.values[part, j])
    return np.unique(hashes, return_inverse=True)[1].astype(np.int64)


def _hashed(column: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a random number for each value in its column, uint64; 0 for 0, so that sparse and dense rows agree."""
    bits = values.astype(np.float64).view(np.uint64)
    mixed = scrambled(bits ^ scrambled(column.astype(np.int64), 1), 2)
    return np.where(values == 0, np.uint64(0), mixed)
