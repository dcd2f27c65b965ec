"""Convert the rows that estimators accept: arrays, sparse matrices, dask collections, and tables with categories or strings.

A column of categories or strings becomes a 0/1 feature for each of its values in the training rows, by the code that encodes
files (`aucdist.data.formats.parts`). Missing values are a category of their own if the training rows had some. If no training
row had the value of a row, all 0/1 features of the column are 0 for this row.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from narwhals.exceptions import DuplicateError
from numpy import ndarray
from sklearn.utils.validation import check_array, check_X_y, validate_data

from aucdist.data.block import unmasked
from aucdist.data.dataset import Schema
from aucdist.data.formats.base import Parsed, feature_names
from aucdist.data.formats.parts import encoded_matrix
from aucdist.data.formats.source_fields import MAX_CATEGORIES, MAX_DETECTED, MIN_DISTINCT, SourceFields
from aucdist.data.formats.table_options import PANDAS_INDEX, PLAIN, UNKNOWN_CATEGORY, are_dates, one_spelling_each
from aucdist.data.formats.tables import is_numeric_type, is_plain, is_text
from aucdist.data.formats.text import check_names, match_names
from aucdist.data.labels import listed
from aucdist.errors import InputError
from aucdist.maps import expander_of
from aucdist.maps.base import ROW_FORM

ENCODING_ATTRIBUTES = ("categories_", "feature_names_out_")
"""The fitted attributes that exist if a column of the training rows had categories or strings."""
MAX_DENSE = 256
"""Tables with more features than this are stored as sparse rows, because most of their features are 0."""
MANY_UNKNOWN = 0.05
"""The share of rows with unknown categories from which there is a warning about a column. A misspelt category changes many
rows."""
SHOWN_VALUES = 3
LENIENT_CELLS = {"missing": "keep", "unknown": "ignore"}
"""How cells of tables are read: a missing number stays missing, and a string that the training rows did not have has no
category."""
NO_LABELS = "no_validation"  # the value by which scikit-learn marks that there is no y


def allows_missing(estimator: Any) -> bool:
    """Return whether the estimator has a feature map that accepts missing values."""
    features = estimator.features
    if estimator._features_auto:
        if not hasattr(estimator, "chosen_"):
            return True
        features = estimator.chosen_.get("features")
    try:
        expander = expander_of(features)
    except InputError:
        return False
    return expander is not None and expander.allows_missing


def names_of_features(estimator: Any) -> ndarray | None:
    """Return the names of the features to which the weights or the feature map refer, or None if they have no names."""
    return getattr(estimator, "feature_names_out_", getattr(estimator, "feature_names_in_", None))


def labels_of_features(estimator: Any) -> list[str]:
    """Return the names of these features. If they have none, return x0, x1 and so on."""
    names = names_of_features(estimator)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def forget_columns(estimator: Any) -> None:
    """Remove the attributes that describe the columns of the last fit."""
    for name in (*ENCODING_ATTRIBUTES, "feature_names_in_"):
        vars(estimator).pop(name, None)


def checked_rows(
    estimator: Any,
    X: Any,
    y: Any = NO_LABELS,
    *,
    reset: bool = False,
    multi_output: bool = False,
) -> Any:
    """Return rows as `sklearn.utils.validation.validate_data` does, with 0/1 features for columns of categories and strings.

    Parameters
    ----------
    estimator : BlockClassifier
        The estimator that is fitted, or that scores the rows.
    X : array-like, sparse matrix or table of shape (n_samples, n_features)
        A table is a DataFrame of pandas or polars, a Table of pyarrow, or another table that narwhals knows.
    y : array-like, optional
        The labels.
    reset : bool, default=False
        Whether these are training rows, which set `n_features_in_`, `feature_names_in_` and the attributes in
        `ENCODING_ATTRIBUTES`.
    multi_output : bool, default=False
        Whether y is a matrix.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_samples, n_encoded_features), float64 or float32
        With y, the tuple of both.

    Raises
    ------
    InputError
        If two columns have one name, a column has dates or looks like an identifier, or a column that had numbers in the
        training rows has strings here.
    """
    check_not_lazy("X", X)
    X = _plain_table(X)
    with_texts = is_table(X) and holds_texts(X)
    if reset:
        forget_columns(estimator)
    known: dict[str, tuple[str, ...]] = vars(estimator).get("categories_", {})
    accepted: dict[str, Any] = dict(ROW_FORM)
    if y is not NO_LABELS:
        accepted["multi_output"] = multi_output
    if allows_missing(estimator):
        accepted["ensure_all_finite"] = "allow-nan"
    with _errors_explained(estimator, X):
        if not (known or with_texts):
            return validate_data(estimator, X, y, reset=reset, **accepted)
        table = _as_arrow(X, known)
        validate_data(estimator, X, y, reset=reset, skip_check_array=True)
        texts = [name for name in table.column_names if not is_numeric_type(table.schema.field(name).type)]
        if reset and texts:
            estimator.categories_, estimator.feature_names_out_ = _found_categories(table, texts)
        elif unencoded := [name for name in texts if name not in known]:
            raise InputError(
                f"column {unencoded[0]!r} holds strings, but held numbers in the training rows: convert it to numbers"
            )
        encoded_names = vars(estimator).get("feature_names_out_", table.column_names)
        schema = Schema(tuple(encoded_names), "", (), (), vars(estimator).get("categories_", {}))
        sparse = len(encoded_names) > MAX_DENSE and bool(schema.categories)
        rows = encoded_matrix(_parsed(table, schema, LENIENT_CELLS), "X", schema, sparse=sparse)
        if y is NO_LABELS:
            return check_array(rows, estimator=estimator, input_name="X", **accepted)
        return check_X_y(rows, y, estimator=estimator, **accepted)


@contextmanager
def _errors_explained(estimator: Any, X: Any) -> Iterator[None]:
    """Convert errors of Arrow to InputErrors, and name the maps that accept missing values in scikit-learn's errors about NaN."""
    try:
        yield
    except (ValueError, NotImplementedError) as e:
        if type(e).__module__.startswith("pyarrow") or isinstance(e, UnicodeError):
            raise InputError(
                f"a column of X holds values that are neither numbers nor strings: {str(e)[:200]}. Convert it, or leave "
                "it out"
            ) from None
        if str(e).startswith("could not convert string to float"):
            raise InputError(f"X: {e}. Give a DataFrame, whose columns of strings become 0/1 features") from None
        missing = str(e).startswith("Input X contains NaN")
        if not missing and not str(e).startswith("Input X contains infinity"):
            raise
        wrong = pd.isna if missing else np.isinf
        names = [name for name, values in X.items() if wrong(values).any()] if hasattr(X, "items") else []
        columns = f" in {len(names)} column{'s' * (len(names) > 1)} ({listed(map(repr, names))})" if names else ""
        raise InputError(
            f"Input X contains NaN{columns}: use features='bins', which accepts missing values, or fill them in first, as by "
            "SimpleImputer"
            if missing
            else f"Input X contains infinity{columns}: correct the values, or leave their rows out"
        ) from None


def check_not_lazy(name: str, values: Any) -> None:
    """Raise an InputError for a LazyFrame of polars."""
    if type(values).__name__ == "LazyFrame":
        raise InputError(f"{name} is a LazyFrame: give {name}.collect()")


def _plain_table(X: Any) -> Any:
    """Return rows without the columns in which pyarrow keeps the index of a DataFrame, because they are not features.

    Sparse columns of pandas become dense, unless values that are not stored are 0 in all of them, as scikit-learn requires.
    """
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        kinds = dict(enumerate(X.dtypes))
        sparse = {j: kind for j, kind in kinds.items() if isinstance(kind, pd.SparseDtype)}
        if sparse and (len(sparse) < len(kinds) or any(kind.fill_value != 0 for kind in sparse.values())):
            columns = [X.iloc[:, j].sparse.to_dense() if j in sparse else X.iloc[:, j] for j in kinds]
            return pd.concat(columns, axis=1)
        return X
    if hasattr(X, "iloc"):
        raise InputError("X is a Series: give a table, as by X.to_frame() for a column, or X.to_frame().T for a row")
    if type(X).__module__.partition(".")[0] != "pyarrow" or not hasattr(X, "column_names"):
        return unmasked(X)
    return X.drop_columns([name for name in X.column_names if PANDAS_INDEX.fullmatch(name)])


def holds_texts(X: Any) -> bool:
    """Return whether X is a table with a column that is neither numeric nor boolean.

    Raises
    ------
    InputError
        If two columns have one name, or a column has periods, intervals or complex numbers.
    """
    try:
        schema = nw.from_native(X, eager_only=True).schema
    except DuplicateError:
        names = list(X.columns) if hasattr(X, "iloc") else list(X.column_names)
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(
            f"two columns are called {twice!r}, but names of features must differ: rename one of them"
        ) from None
    except TypeError:  # narwhals does not know this kind of table
        return False
    for at, (name, kind) in enumerate(schema.items()):
        dtype = X.dtypes.iloc[at] if isinstance(kind, nw.Unknown) and hasattr(X, "iloc") else None
        if str(dtype).startswith("period"):
            raise InputError(_dates(name, str(dtype)))
        if str(dtype).startswith(("interval", "complex")):
            raise InputError(
                f"column {name!r} holds {dtype}; features are numbers, booleans, categories or strings: convert it, "
                "or leave it out"
            )
    return not all(kind.is_numeric() or isinstance(kind, nw.Boolean | nw.Unknown) for kind in schema.values())


def _as_arrow(X: Any, categorical: Collection[str]) -> pa.Table:
    """Return a table as a pyarrow table with columns of numbers, booleans, strings or categories.

    Raises
    ------
    InputError
        If X is not a table, or a column has other values. The message names the first such column.
    """
    from aucdist.data.formats.arrow_tables import from_pandas

    if not is_table(X):
        raise InputError(
            f"the model was fitted on a table, and its columns {', '.join(map(repr, sorted(categorical)[:5]))} held categories: "
            "give a table with the same columns"
        )
    table = from_pandas(X, "X") if hasattr(X, "iloc") else nw.from_native(X, eager_only=True).to_arrow()
    for at, name in enumerate(table.column_names):
        kind = table.schema.field(at).type
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if name not in categorical and (numbers := _written_numbers(table.column(at))) is not None:
            table = table.set_column(at, name, numbers)
        elif pa.types.is_null(kind) or pa.types.is_decimal(kind):
            # Decimals are converted via strings, which rounds them correctly.
            texts = table.column(at).cast(pa.string())
            table = table.set_column(at, name, texts if name in categorical else texts.cast(pa.float64()))
        elif pa.types.is_temporal(value):
            raise InputError(_dates(name, str(value)))
        elif not is_plain(kind):
            raise InputError(
                f"column {name!r} holds {kind}; features are numbers, booleans, categories or strings: convert it, "
                "or leave it out"
            )
    return table


def _written_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column of strings as numbers, or None if a value is neither a number nor a missing value as in files."""
    if not is_text(column.type):
        return None
    distinct = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = [text.strip() for text in distinct.dictionary.to_pylist()]
    numbers = PLAIN.plain_numbers(texts).to_pylist()
    if any(n is None and not PLAIN.is_missing_number(text) for text, n in zip(texts, numbers, strict=True)):
        return None
    values = pa.array([None if number is None else float(number) for number in numbers], pa.float64())
    return pa.chunked_array([values.take(distinct.indices)])


def _dates(name: str, kind: str) -> str:
    return (
        f"column {name!r} holds {kind}: give the parts of a date that should count, such as its month and weekday, as columns of "
        "numbers, or leave the column out; from files `dates` makes the numbers"
    )


def _parsed(table: pa.Table, schema: Any, rules: Mapping[str, Any]) -> Parsed:
    """Return the columns of a table after parsing them by the reader of files, with the keys of a source and a schema.

    Warns if many values of a column of categories are unknown to the schema.
    """
    from aucdist.data.formats.arrow_tables import parse_arrow

    parsed = parse_arrow(table, "X", SourceFields.model_validate({"source": "X", "format": "arrow", **rules}), schema)
    if unknown := _columns_of_many_unknown(parsed, table):
        warnings.warn(
            f"X has values that no training row had: {'; '.join(unknown)}. The model knows nothing about them, so the scores of "
            "these rows may be wrong. Spell the values as in the training rows, or train again on rows that have them",
            stacklevel=2,
        )
    return parsed


def _columns_of_many_unknown(parsed: Parsed, table: pa.Table) -> list[str]:
    """Return the columns in which the share of rows with an unknown category is at least `MANY_UNKNOWN`, with some of the values.

    A missing value is unknown if no training row had one.
    """
    columns = []
    for name, texts in parsed.texts.items():
        if UNKNOWN_CATEGORY in texts.categories:
            rows = np.flatnonzero(texts.codes == texts.categories.index(UNKNOWN_CATEGORY))
            if len(rows) >= MANY_UNKNOWN * len(texts.codes):
                values = table[name].take(rows).unique().to_pylist()[:SHOWN_VALUES]
                counts = f"{len(rows):,} of {len(texts.codes):,} rows"
                columns.append(f"column {name!r} in {counts}, such as {', '.join(map(repr, values))}")
    return columns


def _found_categories(table: pa.Table, texts: Collection[str]) -> tuple[dict[str, tuple[str, ...]], ndarray]:
    """Return the categories of each column in the order of their features, and the names of all features.

    Raises
    ------
    InputError
        If a column has dates or looks like an identifier.
    """
    survey = _parsed(table, None, {**LENIENT_CELLS, "categorical": list(texts)}).survey
    categories = dict(survey.categories)
    for name in categories:
        column = table[name]
        stated = pa.types.is_dictionary(column.type)
        if not stated and are_dates(categories[name]):
            raise InputError(_dates(name, "dates as strings"))
        categories[name] = one_spelling_each(categories[name])
        most = MAX_CATEGORIES if stated else min(MAX_DETECTED, max(MIN_DISTINCT, table.num_rows // 2))
        if len(categories[name]) > most:
            raise InputError(
                f"column {name!r} holds {len(categories[name])} different strings in {table.num_rows} rows, such as "
                f"{categories[name][0]!r}, and more than {most} look like an identifier: leave it out"
                f"{', or give it the type of categories (category in pandas)' * (not stated)}"
            )
    names = check_names(feature_names(survey.columns, categories, {}), "X")
    return categories, np.asarray(names, dtype=object)


def is_table(X: Any) -> bool:
    """Return whether rows are a table with named columns, such as one of pandas, polars or pyarrow."""
    return (hasattr(X, "iloc") and hasattr(X, "columns")) or hasattr(X, "schema")


def features_of_table(X: Any, schema: Any, reading: Mapping[str, Any]) -> Any:
    """Return the features of a table that a schema names. Other columns are ignored.

    Parameters
    ----------
    X : table of shape (n_samples, n_columns)
        A DataFrame of pandas or polars, a Table of pyarrow, or another table that narwhals knows.
    schema : Schema
        The schema of the training rows.
    reading : mapping
        The keys of a source that say how values are read, as saved models have them.

    Returns
    -------
    ndarray or csr_matrix of shape (n_samples, n_features)

    Raises
    ------
    InputError
        If a column is missing, or its values are of another kind.
    """
    from aucdist.data.formats.arrow_tables import from_pandas

    check_not_lazy("X", X)
    columns = schema.columns()
    own = [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]
    names = match_names(own, columns, "X")
    times = Counter(names)
    if missing := [column for column in columns if column not in times]:
        raise InputError(f"X has no column {missing[0]!r}, which the model needs: add it")
    if twice := [column for column in columns if times[column] > 1]:
        raise InputError(f"two columns of X are called {twice[0]!r}, which the model needs: rename one of them")
    indices = [names.index(column) for column in columns]
    if hasattr(X, "iloc"):
        table = from_pandas(X.iloc[:, indices], "X").rename_columns(columns)
    else:
        table = nw.from_native(X, eager_only=True).select([own[j] for j in indices]).to_arrow().rename_columns(columns)
    rules = {
        key: reading[key]
        for key in ("missing", "missing_values", "unknown", "decimal", "thousands", "symbols", "date_format", "dtype")
        if key in reading
    }
    parsed = _parsed(table, schema, {**rules, "keep": columns})
    return encoded_matrix(parsed, "X", schema, sparse=len(schema.feature_names) > MAX_DENSE)


# ---- rows in dask collections ---------------------------------------------------------------------------------------------


def is_dask(thing: Any) -> bool:
    """Return whether something is a dask collection."""
    return hasattr(thing, "__dask_graph__")


def check_columns(estimator: Any, X: Any, *, reset: bool = False) -> None:
    """Check the number and the names of the columns of a dask collection, as for arrays and DataFrames in memory."""
    rows = X._meta if hasattr(X, "columns") else np.zeros((1, X.shape[1]))
    holds_texts(rows)  # raises an error for two columns of one name
    validate_data(estimator, rows, reset=reset, skip_check_array=True)


def map_chunks(estimator: Any, X: Any, function: Callable[[Any], ndarray], dtype: Any, width: int | None) -> Any:
    """Apply a function to each chunk of the rows of a dask collection, and return the results as a dask Array.

    Parameters
    ----------
    estimator : estimator of aucdist
        A fitted one.
    X : dask Array or DataFrame of shape (n_samples, n_features)
        The rows.
    function : callable
        Takes an array or a DataFrame, and returns an array with as many rows.
    dtype : dtype
        The type of the result.
    width : int or None
        The number of columns of the result, or None if it has one dimension.

    Returns
    -------
    dask Array

    Raises
    ------
    InputError
        If the columns are not those of the training rows.
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


def _on_rows(function: Callable[[Any], ndarray], rows: Any, names: Any, tail: tuple[int, ...], dtype: Any) -> Any:
    if len(rows) == 0:
        return np.zeros((0, *tail), dtype)
    if names is not None and not hasattr(rows, "columns"):
        rows = pd.DataFrame(rows, columns=names)  # without names, scikit-learn warns for each chunk
    return function(rows)
