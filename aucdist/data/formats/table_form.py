"""How the cells of a table become features: which columns are numbers, texts or dates, and how they are written."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aucdist.data.date_parts import DatePart
from aucdist.data.formats.spelling import PLAIN, Spelling
from aucdist.kernels import cells as kernels

MISSING_CATEGORY, UNKNOWN_CATEGORY = "(missing)", "(unknown)"
REMEDY = "remove the row or fill it in; in a feature `missing: keep` lets it through"


@dataclass(frozen=True)
class TableForm:
    """How lines of cells are to be read.

    `label`: the one with the classes; empty where there is none.
    `features`: those that are features, in the order of these. What is neither that nor the label is passed over.
    `categorical`: the features that are texts, and become one feature for each value.
    `hashed`: the features that are texts, and become so many features.
    `separator`: one character, or `BLANKS`.
    `first_line`: number of the first of the lines in its file.
    `allowed`: for a column of texts the values that it may have; a column that is not here may have any.
    `missing`: whether features may have missing values: nan among numbers, `MISSING_CATEGORY` among texts.
    `dtype`: ``float64`` or ``float32``.
    `dates`: the features that are dates, and the parts that become numbers.
    `date_format`: how dates are written; None: as in ISO 8601.
    `unknown`: what to do with a text that is not allowed: ``error``; ``ignore`` (it becomes `UNKNOWN_CATEGORY`);
        ``as-missing``.
    `spelling`: how numbers, missing values and quotes are written.
    `groups`: the column that says which rows belong together; empty where there is none.
    `cost`: the column of numbers that says what a wrong decision on each row costs; empty where there is none.
    """

    names: Sequence[str]
    label: str
    features: Sequence[str]
    categorical: Collection[str] = ()
    hashed: Mapping[str, int] = field(default_factory=dict)
    separator: str = ","
    first_line: int = 1
    allowed: Mapping[str, Collection[str]] = field(default_factory=dict)
    missing: bool = False
    dtype: str = "float64"
    dates: Mapping[str, tuple[DatePart, ...]] = field(default_factory=dict)
    date_format: str | None = None
    unknown: str = "error"
    spelling: Spelling = PLAIN
    groups: str = ""
    cost: str = ""

    @property
    def texts(self) -> list[str]:
        """The columns that are texts."""
        wanted = {*self.categorical, *self.hashed, *self.dates, self.label, self.groups}
        return [name for name in self.names if name in wanted]

    @property
    def numbers(self) -> list[str]:
        """The columns that are numbers, in the order of the features."""
        texts = {*self.categorical, *self.hashed, *self.dates}
        return [name for name in self.features if name not in texts]

    @property
    def parsed_numbers(self) -> list[str]:
        """The columns of numbers that are parsed: those of the features, and behind them the costs, if they are none."""
        return [*self.numbers, *([self.cost] if self.cost and self.cost not in self.numbers else [])]

    @property
    def written(self) -> list[str]:
        """The columns of numbers that are read as texts first, for the way they are written."""
        return [] if self.spelling.plain else self.parsed_numbers

    @property
    def slots(self) -> np.ndarray:
        """The slot of each column, as the kernel takes it; those of `written` follow those of `texts`."""
        slots = {name: i for i, name in enumerate(self.parsed_numbers)}
        slots |= {name: kernels.FIRST_TEXT - i for i, name in enumerate([*self.texts, *self.written])}
        return np.array([slots.get(name, kernels.SKIPPED) for name in self.names], dtype=np.int64)
