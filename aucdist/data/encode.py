"""From the columns of tables to a matrix: numbers as they are, categories as 0/1 features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from aucdist.data.dataset import Schema
from aucdist.data.tables import Table, unique
from aucdist.errors import InputError

# A column with more categories than this is an identifier, and its 0/1 features would fill the memory.
MAX_CATEGORIES = 10_000


@dataclass(frozen=True)
class Encoded:
    """A matrix with the classes of its rows.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_samples, n_features), float32 or float64
    codes : ndarray of shape (n_samples,), int
        The class of each row, as a position in `classes`.
    classes : tuple of str
        Names as the file spells them.
    feature_names : tuple of str
    label : str
    categories : dict of str to tuple of str
    """

    X: Any
    codes: np.ndarray
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]
    label: str
    categories: dict[str, tuple[str, ...]]


def encode(tables: Sequence[Table], urls: Sequence[str], schema: Schema | None) -> Encoded:
    """Put tables below each other and encode them.

    Parameters
    ----------
    tables : sequence of Table
        The files of one data set. They must have the same columns; their categories are united.
    urls : sequence of str
        Names the files in errors.
    schema : Schema or None
        The one of the training data, for rows that must be encoded like them.

    Raises
    ------
    InputError
        If the tables differ in their columns, or differ from the schema; if a column has too many categories; if two
        features get the same name.
    """
    first = tables[0]
    for table, url in zip(tables[1:], urls[1:], strict=True):
        if _columns(table) != _columns(first):
            raise InputError(f"{url} has other columns than {urls[0]}: {_difference(table, first)}")
    categories = {
        name: tuple(schema.categories[name]) if schema else _united([table.categories[name] for table in tables], name)
        for name in first.categories
    }
    widths = [len(categories.get(name, ("",))) for name in first.features]
    names = [
        f"{name}={value}" if name in categories else name
        for name in first.features
        for value in categories.get(name, ("",))
    ]
    if schema is not None and tuple(names) != schema.feature_names:
        raise InputError(f"{urls[0]}: its features are not those of the training data: {_missing(names, schema)}")
    if not names:
        raise InputError(f"{urls[0]} has no column but the label")
    unique(names, urls[0])
    numbers = {
        name: np.concatenate([t.numbers[name] for t in tables]) for name in first.features if name not in categories
    }
    texts = {name: union_categoricals([t.texts[name] for t in tables]) for name in (*categories, first.label)}
    single = bool(numbers) and all(column.dtype == np.float32 for column in numbers.values())
    label = texts[first.label]
    X = np.zeros((len(label), len(names)), dtype=np.float32 if single else np.float64)
    for name, start, width in zip(first.features, np.cumsum([0, *widths]), widths, strict=False):
        if name in categories:
            _one_hot(texts[name], categories[name], X[:, start : start + width])
        else:
            X[:, start] = numbers[name]
    return Encoded(X, label.codes, tuple(label.categories), tuple(names), first.label, categories)


def _columns(table: Table) -> tuple[object, ...]:
    return table.features, table.label, set(table.categories)


def _united(parts: Sequence[tuple[str, ...]], name: str) -> tuple[str, ...]:
    values = sorted({value for part in parts for value in part})
    if len(values) > MAX_CATEGORIES:
        raise InputError(
            f"column {name!r} has {len(values)} categories, more than {MAX_CATEGORIES}: it looks like an identifier. "
            "Leave it out of the data, or make it a number"
        )
    return tuple(values)


def _one_hot(column: pd.Categorical, values: Sequence[str], out: np.ndarray) -> None:
    """Write 1 where a row has the value of the column of `out`. Every category of the column is one of the values."""
    position = {value: i for i, value in enumerate(values)}
    place = np.array([position[value] for value in column.categories], dtype=np.intp)
    out[np.arange(len(out)), place[column.codes]] = 1


def _difference(one: Table, other: Table) -> str:
    differing = set(one.features) ^ set(other.features)
    return ", ".join(sorted(differing)) if differing else "the order, the label or which ones are categorical"


def _missing(names: Sequence[str], schema: Schema) -> str:
    missing = [name for name in schema.feature_names if name not in set(names)]
    added = [name for name in names if name not in set(schema.feature_names)]
    parts = [f"{kind} {', '.join(which[:5])}" for kind, which in (("missing", missing), ("added", added)) if which]
    return "; ".join(parts) or "they have another order"
