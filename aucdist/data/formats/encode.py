"""From what was parsed to a block: numbers as they are, categories as 0/1 features, classes as -1 and +1."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.survey import feature_names
from aucdist.data.formats.svmlight import SparseRows
from aucdist.data.formats.table_form import UNKNOWN_CATEGORY
from aucdist.data.formats.tables import Table
from aucdist.data.label_sets import places
from aucdist.errors import InputError

Parsed = Table | SparseRows
NONE = -1
"""In place of a feature: none of a column's 0/1 features is 1, because the category is unknown."""


def encode(parsed: Parsed, where: str, source: SourceFields, schema: Schema, first_row: int = 0) -> Block:
    """Return rows as a block.

    `parsed`: what a file or a part of one holds.
    `source`: its layout and type of values must be decided (`aucdist.data.formats.parts.plan_parts`).
    `schema`: the features and classes that the block gets.
    `first_row`: the first row's number in the data set; the others follow.
    Raises InputError if the features or classes are not those of the schema, or a value is too large for the type.
    """
    if isinstance(parsed, SparseRows):
        X = parsed.X
        X.resize(X.shape[0], len(schema.feature_names))
        X = X.toarray() if source.layout == "dense" else X
    else:
        X = encoded_matrix(parsed, where, schema, sparse=source.layout == "csr")
    grade = None
    if source.labels == "grades":
        grade = parsed.labels.grades(where)
        y = np.where(grade > float(schema.negative[0]), 1, -1)
    else:
        y = parsed.labels.signs(schema.positive, schema.negative, where)
    ids = first_row + np.arange(len(y))
    X, cost = _typed(X, source.dtype, where), None if isinstance(parsed, SparseRows) else parsed.cost
    if cost is not None and (wrong := ~(np.isfinite(cost) & (cost >= 0))).any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{where}: the cost of row {first_row + row} (from 0) is {cost[row]}; what a wrong decision costs is a number of at "
            "least 0"
        )
    code = places(parsed.labels, schema, where) if schema.classes else None
    return Block.of(X, y, row_id=ids, group=parsed.group, grade=grade, cost=cost, code=code)


def _typed(X: Any, dtype: str | None, where: str) -> Any:
    if X.dtype == dtype:
        return X
    with np.errstate(over="ignore"):
        cast = X.astype(dtype)
    if np.isinf(cast.data if sp.issparse(cast) else cast).any():
        raise InputError(f"{where}: a value is too large for {dtype}; read it as float64")
    return cast


def encoded_matrix(table: Table, where: str, schema: Schema, *, sparse: bool) -> Any:
    """Return the features of a table side by side.

    `schema`: names the features, and the categories in the order of theirs.
    `sparse`: whether to return a csr_matrix, or else an ndarray of shape (n_samples, n_features), in the type of the
        numbers.
    Raises InputError if the features are not those of the schema.
    """
    categories = {name: schema.categories.get(name, ()) for name in table.categories}
    names = feature_names(table.features, categories, table.hashed)
    if tuple(names) != schema.feature_names:
        raise InputError(f"{where}: its features are not those of the training data: {_missing(names, schema)}")
    pieces = list(_pieces(table, categories))
    if len(pieces) == 1 and pieces[0][0].ndim == 2 and not sparse:
        return table.numbers
    if sparse:
        return sp.hstack([_sparse(*piece, table.numbers.dtype) for piece in pieces], format="csr")
    start, X = 0, np.zeros((len(table.numbers), len(names)), dtype=table.numbers.dtype)
    for piece, width in pieces:
        if piece.ndim == 2:
            X[:, start : start + width] = piece
        else:
            rows = np.flatnonzero(piece != NONE)
            X[rows, start + piece[rows]] = 1
        start += width
    return X


def _pieces(table: Table, categories: Mapping[str, Sequence[str]]) -> Iterator[tuple[np.ndarray, int]]:
    """Yield features that belong together, and how many: numbers, or for each row which of 0/1 features is 1 (or `NONE`)."""
    start, texts = 0, {*categories, *table.hashed}
    for is_number, run in itertools.groupby(table.features, lambda name: name not in texts):
        of_run = list(run)
        if is_number:
            yield table.numbers[:, start : start + len(of_run)], len(of_run)
            start += len(of_run)
            continue
        for name in of_run:
            column, width = table.texts[name], table.hashed.get(name) or len(categories[name])
            if name in table.hashed:
                # 64 bits that depend on the text alone, in every process and on every machine.
                hashes = (hashlib.blake2b(value.encode(), digest_size=8).digest() for value in column.categories)
                feature = [int.from_bytes(one, "little") % width for one in hashes]
            else:
                position = {UNKNOWN_CATEGORY: NONE} | {value: i for i, value in enumerate(categories[name])}
                feature = [position[value] for value in column.categories]
            yield np.array(feature, dtype=np.int32)[column.codes], width


def _sparse(piece: np.ndarray, width: int, dtype: np.dtype) -> sp.csr_matrix:
    if piece.ndim == 2:
        return sp.csr_matrix(piece)
    there = piece != NONE
    offsets = np.concatenate([[0], np.cumsum(there)])
    return sp.csr_matrix((np.ones(offsets[-1], dtype=dtype), piece[there], offsets), (len(piece), width))


def _missing(names: Sequence[str], schema: Schema) -> str:
    here, trained = set(names), set(schema.feature_names)
    missing = [name for name in schema.feature_names if name not in here]
    added = [name for name in names if name not in trained]
    parts = [f"{kind} {', '.join(which[:5])}" for kind, which in (("missing", missing), ("added", added)) if which]
    return "; ".join(parts) or "they have another order"
