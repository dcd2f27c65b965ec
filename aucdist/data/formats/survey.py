"""What parts hold, and their surveys: what must be known of all parts of a data set before the first of them can be encoded."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aucdist.data.dataset import DatePart
from aucdist.data.formats.source_fields import FEW_CATEGORIES, MOST_CATEGORIES, MOST_GUESSED, SourceFields
from aucdist.data.formats.text import unique
from aucdist.data.labels import Labels
from aucdist.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp


@dataclass(frozen=True)
class Survey:
    """Counts over the rows of a part, and the names in it. Surveys merge by ``+``.

    `where`: names the part (the first of those merged) in errors.
    `classes`: rows of each class, by `class_name`. With several labels a row counts for each of them.
    `sets`: of rows that may have several labels the distinct lists of them, with commas between the labels.
    `stored` and `width`: svmlight: values that are not zero, and features up to the last that occurs.
    `single`: whether all numbers are stored as float32.
    `label`: name of the label column; empty for svmlight.
    `columns`: the columns of a table that are features; empty for svmlight.
    `categories`: the values of the categorical ones among them, in alphabetical order.
    `hashed`: for the hashed ones the number of their features.
    `dates`: for columns of dates the parts that are among `columns`.
    `missing` and `unknown`: missing values, and values of categories that the training data did not have, of the
        columns that have some.
    """

    where: str
    rows: int
    classes: dict[str, int]
    sets: tuple[str, ...] = ()
    stored: int = 0
    width: int = 0
    single: bool = False
    label: str = ""
    columns: tuple[str, ...] = ()
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hashed: dict[str, int] = field(default_factory=dict)
    dates: dict[str, tuple[DatePart, ...]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, where: str, labels: Labels, **columns: Any) -> "Survey":
        """Return the survey of a part whose rows have these labels; `columns` are its other fields."""
        return cls(where, len(labels.codes), labels.counts(), labels.names if labels.topics else (), **columns)

    def __add__(self, other: "Survey") -> "Survey":
        """Return the survey of both.

        Raises InputError if they differ in their columns.
        """
        if _columns(self) != _columns(other):
            raise InputError(f"{other.where} has other columns than {self.where}: {_difference(self, other)}")
        return replace(
            self,
            rows=self.rows + other.rows,
            classes=_added(self.classes, other.classes),
            sets=tuple(sorted({*self.sets, *other.sets})),
            missing=_added(self.missing, other.missing),
            unknown=_added(self.unknown, other.unknown),
            stored=self.stored + other.stored,
            width=max(self.width, other.width),
            single=self.single and other.single,
            categories={k: tuple(sorted({*values, *other.categories[k]})) for k, values in self.categories.items()},
        )


class Texts(NamedTuple):
    """A column of texts: the distinct ones in alphabetical order, and the position of each row's text among them."""

    codes: "np.ndarray"
    categories: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Parsed:
    """What a part holds.

    `X`: of svmlight a csr_matrix of shape (n_samples, width), float32 or float64, without zeros; its width is that of the widest
        row, written zeros included, where it was not given. Of a table an ndarray of shape (n_samples, n_numbers): the features
        that are numbers, in order. Finite, or nan where values may be missing.
    `texts`: of a table the categorical and hashed columns, without blanks around the texts.
    `group`, of shape (n_samples,), int64, or None; `cost`, of shape (n_samples,), float64, or None: see `Block`.
    """

    survey: Survey
    labels: Labels
    X: "np.ndarray | sp.csr_matrix"
    texts: dict[str, Texts] = field(default_factory=dict)
    group: "np.ndarray | None" = None
    cost: "np.ndarray | None" = None


def _added(counts: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) + other.get(name, 0) for name in sorted({*counts, *other})}


def check_expectations(source: SourceFields, name: str, figures: Mapping[str, Any]) -> None:
    """Do nothing if rows, features and rows of each class, as far as they are given, are those that the source states.

    Raises InputError naming what was expected and what was found.
    """
    stated = {"rows": source.rows, "features": source.features, "rows of each class": source.classes}
    for what, value in figures.items():
        if stated[what] not in (None, value):
            raise InputError(f"{name}: {stated[what]} {what} are expected, but {value} were found")


def column_features(survey: Survey) -> tuple[str, ...]:
    """Return the names of the features of columns.

    Raises InputError if two features get the same name.
    """
    return tuple(unique(feature_names(survey.columns, survey.categories, survey.hashed), survey.where))


def feature_names(
    columns: Sequence[str], categories: Mapping[str, Sequence[str]], hashed: Mapping[str, int]
) -> list[str]:
    """Return the name of each feature: a column's own, ``column=category``, or ``column#number`` where it is hashed."""
    made = {name: [f"{name}={value}" for value in values] for name, values in categories.items()}
    made |= {name: [f"{name}#{i}" for i in range(n)] for name, n in hashed.items()}
    return [feature for name in columns for feature in made.get(name, [name])]


def refuse_identifiers(source: SourceFields, where: str, categories: Mapping[str, Collection[str]], rows: int) -> None:
    """Do nothing if no column has too many categories; fewer are too many where they are guessed (``categorical: auto``).

    Raises InputError if one has.
    """
    guessed = source.categorical == "auto"
    most = min(MOST_GUESSED, max(FEW_CATEGORIES, rows // 2)) if guessed else MOST_CATEGORIES
    for name, values in categories.items():
        if len(values) > most:
            reason = f"more than {most}" + f" in {rows} rows" * guessed
            more = ", or list it under `categorical`" if guessed and len(values) <= MOST_CATEGORIES else ""
            raise InputError(
                f"{where}, column {name!r}: {len(values)} categories, {reason}: it looks like an "
                f"identifier or a text. Leave it out by `drop: [{name}]`, hash it by `hashed: {{{name}: 256}}`{more}"
            )


def _columns(survey: Survey) -> tuple[object, ...]:
    return survey.columns, survey.label, set(survey.categories)


def _difference(survey: Survey, other: Survey) -> str:
    differing = set(survey.columns) ^ set(other.columns)
    return ", ".join(sorted(differing)) if differing else "the order, the label or which ones are categorical"
