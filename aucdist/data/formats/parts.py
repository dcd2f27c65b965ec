"""Read files in parts, so that all workers together read one large file.

A format splits a source into parts, and any worker makes the survey of any part. The merged surveys number the rows and give
the schema (`resolve_source_and_schema`). Then any worker reads any part as a block: `encode` makes a block of the parsed rows,
in which numbers stay as they are, categories become 0/1 features, and classes become -1 and +1. See
`aucdist.data.shards.reading`.
"""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.base import FilePart, Parsed, Survey, check_expectations, check_not_identifiers, feature_names
from aucdist.data.formats.registry import FORMATS
from aucdist.data.formats.source_fields import AnySource, EachOf, SourceFields
from aucdist.data.formats.table_options import UNKNOWN_CATEGORY, by_key, category_key, one_spelling_each
from aucdist.data.label_sets import set_numbers, sets_of_topics
from aucdist.data.labels import above_lowest, choose_classes, choose_positive
from aucdist.data.storage.scratch import Stored
from aucdist.errors import InputError

UNKNOWN_CODE = -1
"""The code of an unknown category: all 0/1 features of the column are 0."""


class StoredPart(Stored[Parsed]):
    """A part that is parsed once, and then memory-mapped if the local disk has room for the parsed rows.

    Parameters
    ----------
    source : SourceFields
        The source of the rows.
    index : int
        The number of the block of this part.
    part : FilePart
        The part of a file.
    schema : Schema, optional
        The schema of the training data, if the rows are to be encoded like them.
    """

    def __init__(self, source: SourceFields, index: int, part: FilePart, schema: Schema | None = None):
        super().__init__(FORMATS[source.format](source, schema).read_part, part)
        self.index = index

    def survey(self) -> Survey:
        """Return the survey of the part.

        Raises
        ------
        InputError
            If the part cannot be read or is malformed.
        """
        return self.read().survey


def resolve_source_and_schema(
    source: AnySource, total: Survey, schema: Schema | None, labelled: bool, name: str
) -> tuple[AnySource, Schema]:
    """Return the source with `layout` and `dtype` resolved, and the schema of all parts.

    Parameters
    ----------
    source : AnySource
        The source of the rows.
    total : Survey
        The survey of all parts.
    schema : Schema or None
        The schema of the training data, if the rows are to be encoded like them.
    labelled : bool
        False for rows that are only scored. They may have one class only. Unless the source names a label, all rows count as
        negative.
    name : str
        The name of the data set in error messages.

    Raises
    ------
    InputError
        If there is no row or no feature, a column has too many categories, two features get the same name, the classes
        cannot be divided into positive and negative ones, or rows, features or classes are not the expected ones.
    """
    figures = {"rows": total.rows, "rows of each class": total.classes}
    if total.rows == 0:
        raise InputError(f"{total.where} has no rows: name data with at least one row")
    if schema is None:
        categories = {column: one_spelling_each(values) for column, values in total.categories.items()}
        check_not_identifiers(source, total.where, categories, total.rows)
        names = FORMATS[source.format](source).feature_names(replace(total, categories=categories))
        if not names:
            raise InputError(
                f"{total.where} has no column but the label, and so no feature: check `separator`, `keep` and `drop`"
            )
        topics, graded = source.labels == "topics", source.labels == "grades"
        if source.of_each and not graded:
            topics_to_fit = source.positive.each if isinstance(source.positive, EachOf) else None
            classes = choose_classes(total.classes, topics_to_fit, name, topics=topics)
            sides, sets = (classes[:1], classes[1:]), sets_of_topics(total.labels if topics else (), classes)
        else:
            sides = (above_lowest if graded else choose_positive)(total.classes, source.positive, name)
            classes, topics, sets = (), False, ()
        schema = Schema(names, total.label, *sides, categories, total.hashed, total.dates, classes, topics, sets)
        check_expectations(source, name, figures | {"features": len(schema.feature_names)})
    else:
        if total.columns:
            features_as(total, schema, total.where)
        if labelled:
            if schema.topics:
                schema = replace(schema, sets=sets_of_topics(total.labels, schema.classes, schema.sets))
            choose_positive(total.classes, "minority", name)
            check_expectations(source, name, figures)
        elif source.label is None:
            schema = replace(schema, positive=(), negative=tuple(total.classes), classes=(), topics=False, sets=())
    layout = source.layout
    if layout == "auto":
        layout = "csr" if FORMATS[source.format](source).is_sparse(total, len(schema.feature_names)) else "dense"
    dtype = source.dtype or ("float32" if total.single else "float64")
    return source.model_copy(update={"layout": layout, "dtype": dtype}), schema


def encode(parsed: Parsed, where: str, source: SourceFields, schema: Schema, first_row: int) -> Block:
    """Encode the parsed rows of a part as a block.

    Parameters
    ----------
    parsed : Parsed
        The rows of a file or of a part of it.
    where : str
        The name of the data in error messages.
    source : SourceFields
        The source with the layout and the type of values that `resolve_source_and_schema` returned.
    schema : Schema
        The features and classes that the block gets.
    first_row : int
        The number of the first row in the data set. The other rows are numbered consecutively.

    Raises
    ------
    InputError
        If the features or classes are not those of the schema, or a value is too large for the type.
    """
    X: Any = parsed.X
    if sp.issparse(X):
        X.resize(X.shape[0], len(schema.feature_names))
        X = X.toarray() if source.layout == "dense" else X
    else:
        X = encoded_matrix(parsed, where, schema, sparse=source.layout == "csr")
    grade = None
    if source.labels == "grades":
        grade = parsed.labels.grades(where)
        y = np.where(grade > float(schema.negative[0]), 1, -1)
    else:
        y = parsed.labels.binary_labels(schema.positive, schema.negative, where)
    if X.dtype != source.dtype:
        with np.errstate(over="ignore"):
            X = X.astype(source.dtype)
        if np.isinf(X.data if sp.issparse(X) else X).any():
            raise InputError(f"{where}: a value is too large for {source.dtype}; read it as float64")
    cost = parsed.cost
    if cost is not None and (wrong := ~(np.isfinite(cost) & (cost >= 0))).any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{where}: the cost of row {first_row + row} (counted from 0) must be at least 0; got {cost[row]}. Correct it, or "
            "drop it"
        )
    return Block.of(
        X, y, row_id=first_row + np.arange(len(y)), group=parsed.group, grade=grade, cost=cost,
        code=set_numbers(parsed.labels, schema, where) if schema.classes else None,
    )  # fmt: skip


def encoded_matrix(table: Parsed, where: str, schema: Schema, *, sparse: bool) -> Any:
    """Return the features of a table as one matrix.

    Parameters
    ----------
    table : Parsed
        The parsed rows.
    where : str
        The name of the data in error messages.
    schema : Schema
        The names of the features and of the categories, in their order.
    sparse : bool
        Whether to return a csr_matrix instead of an ndarray. Its type is that of the numbers.

    Returns
    -------
    ndarray or csr_matrix of shape (n_samples, n_features)

    Raises
    ------
    InputError
        If the features are not those of the schema.
    """
    categories, names = features_as(table.survey, schema, where)
    pieces: list[Any] = []  # These are columns of numbers, or the 0/1 features of a column as a sparse matrix.
    n_numbers, hashed = 0, table.survey.hashed
    for is_number, run in itertools.groupby(table.survey.columns, lambda name: name not in {*categories, *hashed}):
        of_run = list(run)
        if is_number:
            pieces.append(table.X[:, n_numbers : n_numbers + len(of_run)])
            n_numbers += len(of_run)
            continue
        for name in of_run:
            column, width = table.texts[name], hashed.get(name) or len(categories[name])
            if name in hashed:
                # The hash of 64 bits depends only on the string, in every process and on every machine.
                hashes = (hashlib.blake2b(value.encode(), digest_size=8).digest() for value in column.categories)
                feature = [int.from_bytes(digest, "little") % width for digest in hashes]
            else:
                position = {value: i for i, value in enumerate(categories[name])}
                code = {spelling: position[value] for spelling, value in by_key(position).items()}
                code[UNKNOWN_CATEGORY] = UNKNOWN_CODE
                feature = [code[value if value in code else category_key(value)] for value in column.categories]
            features = np.array(feature, dtype=np.int32)[column.codes]
            offsets = np.append(0, np.cumsum(features != UNKNOWN_CODE))
            ones = np.ones(offsets[-1], dtype=table.X.dtype)
            pieces.append(sp.csr_matrix((ones, features[features != UNKNOWN_CODE], offsets), (len(features), width)))
    if sparse:
        return sp.hstack([sp.csr_matrix(piece) for piece in pieces], format="csr")
    if len(names) == n_numbers:
        return table.X
    start, X = 0, np.zeros((len(table.X), len(names)), dtype=table.X.dtype)
    for piece in pieces:
        if sp.issparse(piece):
            rows, features = piece.nonzero()
            X[rows, start + features] = 1
        else:
            X[:, start : start + piece.shape[1]] = piece
        start += piece.shape[1]
    return X


def features_as(survey: Survey, schema: Schema, where: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the categories of a table's columns in the order of a schema, and the names of all features.

    Raises
    ------
    InputError
        If the features are not those of the schema.
    """
    categories = {name: schema.categories.get(name, ()) for name in survey.categories}
    names = feature_names(survey.columns, categories, survey.hashed)
    check_features(names, schema, where)
    return categories, names


def check_features(names: Sequence[str], schema: Schema, where: str) -> None:
    """Raise an InputError that lists the first differences if the features are not those of the training data."""
    if tuple(names) == schema.feature_names:
        return
    names_here, trained = set(names), set(schema.feature_names)
    missing = [name for name in schema.feature_names if name not in names_here]
    added = [name for name in names if name not in trained]
    parts = [
        f"{kind} {', '.join(columns_of_kind[:5])}"
        for kind, columns_of_kind in (("missing", missing), ("added", added))
        if columns_of_kind
    ]
    raise InputError(
        f"{where}: its features are not those of the training data: {'; '.join(parts) or 'they have another order'}"
    )
