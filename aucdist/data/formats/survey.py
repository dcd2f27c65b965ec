"""What must be known of all parts of a data set before the first of them can be encoded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from aucdist.data.dataset import Schema
from aucdist.data.formats.svmlight import SparseRows
from aucdist.data.formats.tables import Table, unique
from aucdist.data.labels import choose_positive
from aucdist.data.source import Source
from aucdist.errors import InputError

# Above this share of non-zero entries a row is read faster as a dense one, and takes hardly more memory.
DENSE_ABOVE = 0.5
# A column with more categories than this is an identifier, and its 0/1 features would fill the memory.
MAX_CATEGORIES = 10_000
# A file of one line could name feature 2 147 483 647. Features beyond the first are seldom rarer than this.
ALWAYS_WIDE = 2**24
WIDTH_PER_VALUE = 10


@dataclass(frozen=True)
class Survey:
    """Counts over the rows of a part, and the names in it. Surveys merge by ``+``.

    Attributes
    ----------
    where : str
        Names the part (the first of those merged) in errors.
    rows, lines : int
        Rows, and line breaks.
    classes : dict of str to int
        Rows of each class, by `class_name`. With several labels a row counts for each of them.
    stored, width : int
        svmlight: values that are not zero, and features up to the last that occurs.
    single : bool
        Whether all numbers are stored as float32.
    label : str
        Name of the label column; empty for svmlight.
    columns : tuple of str
        The columns of a table that are features; empty for svmlight.
    categories : dict of str to tuple of str
        The values of the categorical ones among them, in alphabetical order.
    hashed : dict of str to int
        For the hashed ones the number of their features.
    """

    where: str
    rows: int
    lines: int
    classes: dict[str, int]
    stored: int = 0
    width: int = 0
    single: bool = False
    label: str = ""
    columns: tuple[str, ...] = ()
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hashed: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: "Survey") -> "Survey":
        """Return the survey of both.

        Raises
        ------
        InputError
            If they differ in their columns.
        """
        if _columns(self) != _columns(other):
            raise InputError(f"{other.where} has other columns than {self.where}: {_difference(self, other)}")
        names = sorted({*self.classes, *other.classes})
        return replace(
            self,
            rows=self.rows + other.rows,
            lines=self.lines + other.lines,
            classes={name: self.classes.get(name, 0) + other.classes.get(name, 0) for name in names},
            stored=self.stored + other.stored,
            width=max(self.width, other.width),
            single=self.single and other.single,
            categories={k: tuple(sorted({*values, *other.categories[k]})) for k, values in self.categories.items()},
        )


def survey_of(parsed: Table | SparseRows, where: str, lines: int) -> Survey:
    """Return the survey of a part of so many lines."""
    labels = parsed.labels
    common = Survey(where, len(labels.codes), lines, labels.counts())
    if isinstance(parsed, SparseRows):
        return replace(common, stored=parsed.X.nnz, width=parsed.X.shape[1])
    single = parsed.numbers.dtype == np.float32 and parsed.numbers.shape[1] > 0
    return replace(
        common, single=single, label=parsed.label, columns=parsed.features, categories=parsed.categories,
        hashed=parsed.hashed,
    )  # fmt: skip


def schema_of(source: Source, survey: Survey, name: str) -> Schema:
    """Return the schema of a data set.

    Parameters
    ----------
    source : Source
    survey : Survey
        That of all parts.
    name : str
        Names the data set in errors.

    Raises
    ------
    InputError
        If there is no row or no feature, if a column has too many categories, if two features get the same name, or if
        the classes cannot be parted into positive and negative ones.
    """
    if survey.rows == 0:
        raise InputError(f"{survey.where} has no rows")
    if source.format == "svmlight":
        names = _numbered(source, survey)
    else:
        _refuse_identifiers(survey)
        names = tuple(unique(feature_names(survey.columns, survey.categories, survey.hashed), survey.where))
    if not names:
        raise InputError(f"{survey.where} has no column but the label")
    positive, negative = choose_positive(survey.classes, source.positive, name)
    return Schema(names, survey.label, positive, negative, survey.categories, survey.hashed)


def settled(source: Source, survey: Survey, n_features: int) -> Source:
    """Return the source with layout and type of the values decided where it leaves them open."""
    few = survey.stored <= DENSE_ABOVE * survey.rows * n_features
    sparse = few if source.format == "svmlight" else bool(survey.hashed)
    layout = ("csr" if sparse else "dense") if source.layout == "auto" else source.layout
    dtype = source.dtype or ("float32" if survey.single else "float64")
    return source.model_copy(update={"layout": layout, "dtype": dtype})


def feature_names(
    columns: Sequence[str], categories: Mapping[str, Sequence[str]], hashed: Mapping[str, int]
) -> list[str]:
    """Return the name of each feature: a column's own, ``column=category``, or ``column#number`` where it is hashed."""
    made = {name: [f"{name}={value}" for value in values] for name, values in categories.items()}
    made |= {name: [f"{name}#{i}" for i in range(n)] for name, n in hashed.items()}
    return [feature for name in columns for feature in made.get(name, [name])]


def _refuse_identifiers(survey: Survey) -> None:
    for name, values in survey.categories.items():
        if len(values) > MAX_CATEGORIES:
            raise InputError(
                f"{survey.where}, column {name!r}: {len(values)} categories, more than {MAX_CATEGORIES}: it looks like an "
                "identifier. Leave it out of the data, list it under `hashed`, or make it a number"
            )


def _numbered(source: Source, survey: Survey) -> tuple[str, ...]:
    """Return the names of features that are called by their numbers."""
    if survey.width == 0:
        raise InputError(f"{survey.where}: no row has a feature")
    if source.n_features is None and survey.width > max(ALWAYS_WIDE, WIDTH_PER_VALUE * survey.stored):
        raise InputError(
            f"{survey.where}: the largest feature is number {survey.width}, but only {survey.stored} values are not zero: a "
            f"model of so many weights would fill the memory. If it is meant, say so by n_features: {survey.width}"
        )
    start = 0 if source.zero_based else 1
    return tuple(str(i) for i in range(start, start + (source.n_features or survey.width)))


def _columns(survey: Survey) -> tuple[object, ...]:
    return survey.columns, survey.label, set(survey.categories)


def _difference(one: Survey, other: Survey) -> str:
    differing = set(one.columns) ^ set(other.columns)
    return ", ".join(sorted(differing)) if differing else "the order, the label or which ones are categorical"
