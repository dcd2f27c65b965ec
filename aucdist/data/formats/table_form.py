"""How the columns of a table become features: which are numbers, texts or dates, and how their cells are written."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from aucdist.data.dataset import DatePart, Schema
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.spelling import PLAIN, Spelling, by_key
from aucdist.data.formats.text import pick
from aucdist.data.labels import listed
from aucdist.errors import InputError

MISSING_CATEGORY = "(missing)"
"""What a missing value of a column of categories is called; a cell with this text is one, where values may be missing."""
UNKNOWN_CATEGORY = "\0unknown"
"""Stands for a category that the training data did not have; no file holds it."""
REMEDY = "remove the row or fill it in; in a feature `missing: keep` lets it through"
SHOWN = 5


@dataclass(frozen=True)
class TableForm:
    """How columns are to be read.

    `label`: the one with the classes; empty where there is none.
    `features`: those that are features, in the order of these. What is neither that nor the label is passed over.
    `categorical`: the features that are texts, and become one feature for each value.
    `guess`: whether the features with a cell that is no number are texts as well.
    `hashed`: the features that are texts, and become so many features.
    `allowed`: for a column of texts the values that it may have; a column that is not here may have any.
    `missing`: whether features may have missing values: nan among numbers, `MISSING_CATEGORY` among texts.
    `dtype`: ``float64`` or ``float32``; None: as the columns are stored.
    `dates`: the features that are dates, and the parts that become numbers.
    `date_format`: how dates are written; None: as in ISO 8601.
    `unknown`: what to do with a text that is not allowed: ``error``; ``ignore`` (it becomes `UNKNOWN_CATEGORY`);
        ``as-missing``.
    `spelling`: how numbers and missing values are written.
    `groups`: the column that says which rows belong together; empty where there is none.
    `cost`: the column of numbers that says what a wrong decision on each row costs; empty where there is none.
    """

    label: str
    features: Sequence[str]
    categorical: Collection[str] = ()
    guess: bool = False
    hashed: Mapping[str, int] = field(default_factory=dict)
    allowed: Mapping[str, Collection[str]] = field(default_factory=dict)
    missing: bool = False
    dtype: str | None = None
    dates: Mapping[str, tuple[DatePart, ...]] = field(default_factory=dict)
    date_format: str | None = None
    unknown: str = "error"
    spelling: Spelling = PLAIN
    groups: str = ""
    cost: str = ""

    @classmethod
    def of(
        cls, source: SourceFields, schema: Schema | None, names: Sequence[str], where: str, kept: Sequence[str] = ()
    ) -> "TableForm":
        """Return the form that a source asks for.

        `schema`: that of the training data, for rows that are encoded like them.
        `names`: the columns.
        `kept`: the features where the source does not name them; by default all columns.
        Raises InputError if a column is not there.
        """
        label, groups, cost = (
            "" if column is None else pick(names, column, where, key)
            for key, column in (
                ("label", source.label), ("groups", source.groups), ("cost_column", source.cost_column),
            )
        )  # fmt: skip
        roles = [(name, key) for name, key in ((label, "label"), (groups, "groups"), (cost, "cost_column")) if name]
        for (name, key), (other, other_key) in itertools.combinations(roles, 2):
            if name == other:  # by its name and by its position
                raise InputError(f"{where}: column {name!r} cannot be both `{key}` and `{other_key}`")
        if source.keep is not None:
            lacking = [name for name in source.keep if name not in names] if schema is not None else []
            if lacking:
                more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
                raise InputError(
                    f"{where} lacks column{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking[:SHOWN]))}{more}, which the "
                    f"model needs; it has: {listed(names)}"
                )
            kept = [pick(names, name, where, "keep") for name in source.keep]
        apart = {label, groups, *([] if source.keep else [cost])}
        apart |= {pick(names, name, where, "drop") for name in source.drop or ()}
        features = tuple(name for name in kept or names if name not in apart)
        given = source if schema is None else schema
        hashed = {pick(features, column, where, "hashed"): n for column, n in given.hashed.items()}
        dates = {pick(features, column, where, "dates"): tuple(parts) for column, parts in given.dates.items()}
        guess = schema is None and source.categorical == "auto"
        if schema is not None:
            categorical = set(schema.categories) & set(features)
        else:
            listed_columns = () if source.categorical == "auto" else source.categorical
            categorical = {pick(features, column, where, "categorical") for column in listed_columns}
        return cls(
            label, features, categorical, guess, hashed, schema.categories if schema else {}, source.missing == "keep",
            source.dtype, dates, source.date_format, source.unknown, Spelling.of(source), groups, cost,
        )  # fmt: skip

    @cached_property
    def spellings(self) -> dict[str, dict[str, str]]:
        """For each column of `allowed` the value that is meant, by its key and by itself."""
        return {name: by_key(values) for name, values in self.allowed.items()}

    @property
    def texts(self) -> list[str]:
        """The columns that are texts."""
        there = (*self.categorical, *self.hashed, *self.dates, self.label, self.groups)
        return sorted(set(there) - {""})

    @property
    def numbers(self) -> list[str]:
        """The columns that are numbers, in the order of the features."""
        texts = {*self.categorical, *self.hashed, *self.dates}
        return [name for name in self.features if name not in texts]

    @property
    def parsed_numbers(self) -> list[str]:
        """The columns of numbers that are read: those of the features, and behind them the costs, if they are none."""
        return [*self.numbers, *([self.cost] if self.cost and self.cost not in self.numbers else [])]
