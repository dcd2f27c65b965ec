"""A data set in memory, and the names of its features and classes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from aucdist.data.own_files import NO_MORE_KEYS, Count, PositiveCount
from aucdist.parameters import frozen

if TYPE_CHECKING:
    from aucdist.data.block import Block

DatePart = Literal["year", "month", "weekday", "hour", "days"]
PARTS: tuple[DatePart, ...] = get_args(DatePart)
"""The parts of a date. Monday is weekday 0. `hour` has the minutes as a fraction, and `days`, which counts from
1970-01-01 in UTC, has the time."""

Scale = Literal["none", "standard", "minmax", "maxabs", "unit-row"]
Impute = Literal["refuse", "keep", "mean", "median"]


def date_features(column: str, parts: Iterable[str]) -> list[str]:
    """Return the names of the features of a column of dates."""
    return [f"{column}.{part}" for part in parts]


def category_features(categories: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, str]]:
    """Return the names of the 0/1 features of columns of categories, each with its column and its category."""
    return {f"{column}={value}": (column, value) for column, values in categories.items() for value in values}


@dataclass(frozen=True)
class Schema:
    """The names of columns, categories and classes, from which new rows can be encoded like the training rows.

    Attributes
    ----------
    feature_names : tuple of str
        The name of each column of X. The column of a category is called ``column=category``.
    label : str
        The name of the label column. It is empty if the format has none.
    positive, negative : tuple of str
        The classes with the labels +1 and -1, in the spelling of `aucdist.data.labels.class_name`.
    categories : dict of str to tuple of str
        The categories of each categorical column, in the order of their features.
    hashed : dict of str to int
        The number of features of each hashed column. The features are called ``column#number``.
    dates : dict of str to tuple of str
        The parts of each column of dates that are its features, which are called ``column.part``.
    classes : tuple of str
        All classes, if each class is fitted against the rest. The first one is `positive` then. Otherwise empty.
    topics : bool
        Whether a row may have several of `classes`, or none.
    sets : tuple of tuple of int
        With `topics`, the distinct sets of classes that rows have, as positions in `classes`:
        `aucdist.data.label_sets.LabelSets`.
    """

    __pydantic_config__ = NO_MORE_KEYS

    feature_names: tuple[str, ...]
    label: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    hashed: dict[str, PositiveCount] = field(default_factory=dict)
    dates: dict[str, tuple[DatePart, ...]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    topics: bool = False
    sets: tuple[tuple[Count, ...], ...] = ()

    def columns(self) -> list[str]:
        """Return the columns from which the features are made, in their order."""
        return list(self.by_column())

    def by_column(self) -> dict[str, dict[int, Any]]:
        """Return for each column the positions of its features, each with its category, number or part, or None."""
        made: dict[str, Any] = {**category_features(self.categories)}
        made |= {f"{name}.{part}": (name, part) for name, date_parts in self.dates.items() for part in date_parts}
        made |= {f"{name}#{i}": (name, i) for name, n in self.hashed.items() for i in range(n)}
        columns: dict[str, dict[int, Any]] = {}
        for j, feature in enumerate(self.feature_names):
            column, item = made.get(feature, (feature, None))
            columns.setdefault(column, {})[j] = item
        return columns

    def without(self, features: Collection[str]) -> "Schema":
        """Return the schema without some features that are numbers or parts of dates."""
        dates = {name: tuple(p for p in parts if f"{name}.{p}" not in features) for name, parts in self.dates.items()}
        kept = tuple(name for name in self.feature_names if name not in features)
        return replace(self, feature_names=kept, dates={name: parts for name, parts in dates.items() if parts})

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values.

        Newer keys are left out if they are not needed, so that older versions can read it.
        """
        return {
            key: value
            for key, value in vars(self).items()
            if value or key not in ("dates", "classes", "topics", "sets")
        }


@frozen
class Dataset:
    """All rows of a data set, as one block.

    Attributes
    ----------
    block : Block
        The rows. ``row_id`` numbers them from 0 in the order of the files.
    fingerprint : str
        The SHA-256 (hexadecimal) of the stored bytes and of the options that decide how they are read.
    """

    block: "Block"
    schema: Schema
    fingerprint: str
    name: str
