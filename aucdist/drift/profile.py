"""The profile of a model: the numbers of training rows in the bins of each feature, and of test rows in the bins of the score."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy import ndarray
from pydantic import Field
from pydantic_core import to_json

from aucdist.data.block import Block, Columns
from aucdist.data.column_statistics import ColumnRanges
from aucdist.data.dataset import Schema
from aucdist.data.own_files import NO_MORE_KEYS, REPAIR, Count, parse_checked, to_jsonable
from aucdist.data.preprocess import Preprocessor
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.codes import edges_of, encode_column
from aucdist.maps.binning import bins_of, sample_by_class
from aucdist.metrics.counts import ScoreCounts

N_BINS = 20
MAX_COLUMNS = 512
"""If the data have more columns, those that change the score most are watched. This is their weight times their
range."""
RARE_ROWS = 20
"""The number of training rows below which a cell counts as rare."""
MAX_BINS = 2**16


@dataclass(frozen=True)
class WatchedColumn:
    """The bins of a column.

    Attributes
    ----------
    name : str
        The name of the column in the data.
    kind : str
        ``numbers``: cell 0 is for missing values, and cell k for those with k - 1 edges below them. ``categories``: cell 0 is
        for rows with none of the categories, and cell k for the k-th.
    at : tuple of int
        The columns of X that belong to it: one column of numbers, or the 0/1 columns of its categories.
    edges : tuple of float
        For numbers, the edges in the encoding of the training rows, ascending. For categories, the value of each 0/1 column
        above which the category is present.
    categories : tuple of str
        The categories of the column. Empty for numbers.
    low, high : float
        The range of the numbers, in the encoding of the training rows; 0 for categories.
    counts : tuple of int
        Rows of each cell.
    """

    __pydantic_config__ = NO_MORE_KEYS

    name: str
    kind: Literal["numbers", "categories"]
    at: Annotated[tuple[Count, ...], Field(min_length=1)]
    edges: tuple[float, ...]
    categories: tuple[str, ...]
    low: float
    high: float
    counts: tuple[Count, ...] = ()

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) + (2 if self.kind == "numbers" else 1)

    def bin_numbers(self, columns: Columns, n: int) -> ndarray:
        """Return the number of each row's bin."""
        if self.kind == "numbers":
            out = np.empty(n, dtype=np.uint8)
            encode_column(columns[self.at[0]], edges_of(np.array(self.edges, dtype=np.float64)), 1, out)
            return out
        bin_numbers = np.zeros(n, dtype=np.int64)
        for k, (j, cut) in enumerate(zip(self.at, self.edges, strict=True)):
            bin_numbers[columns[j] > cut] = k + 1
        return bin_numbers


@dataclass(frozen=True)
class ScoreBins:
    """The bins of the score.

    Attributes
    ----------
    rows : str
        The rows whose scores these are: ``test``, or ``training`` if the run had no test rows.
    edges : tuple of float
        The edges between the bins, ascending.
    counts : tuple of int
        The number of rows in each bin. There is one bin more than there are edges.
    """

    __pydantic_config__ = NO_MORE_KEYS

    rows: Literal["test", "training"]
    edges: tuple[float, ...]
    counts: tuple[Count, ...]

    def bin_numbers(self, scores: ndarray) -> ndarray:
        """Return the number of each score's bin."""
        return np.searchsorted(self.edges, scores, side="left")


@dataclass(frozen=True)
class Profile:
    """A summary of the training rows that is stored with a model.

    Attributes
    ----------
    rows : int
        The number of training rows.
    n_features : int
        The number of columns of X.
    columns : tuple of WatchedColumn
        The columns of the data that are watched, with the training rows in each of their bins.
    score : ScoreBins or None
        The bins of the score. None for a model of several classes.
    test_checked, test_known : int
        The number of test rows that could be looked up among the digests of the training rows, and the number of these whose
        digest is one of them.
    format : int
        The version of the format of the file, 1.
    class_scores : dict of str to ScoreBins
        For several classes, the bins of the score of each class.
    """

    __pydantic_config__ = NO_MORE_KEYS

    rows: Count
    n_features: Count
    columns: Annotated[tuple[WatchedColumn, ...], Field(min_length=1)]
    score: ScoreBins | None
    test_checked: Count = 0
    test_known: Count = 0
    format: Literal[1] = 1
    class_scores: dict[str, ScoreBins] = field(default_factory=dict)

    @property
    def scores(self) -> dict[Any, ScoreBins]:
        """The bins of each class's score. For two classes, those of the score, without a name."""
        if self.score is not None:
            return {None: self.score}
        return self.class_scores

    def to_bytes(self) -> bytes:
        """Return the profile as JSON."""
        content = to_jsonable(self, Profile)
        if not self.class_scores:
            del content["class_scores"]  # older versions cannot read this key
        return bytes(to_json(content, indent=1)) + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "Profile":
        """Return the profile in JSON.

        Raises
        ------
        InputError
            If it is damaged.
        """
        profile = parse_checked(data, cls, where)
        for column in profile.columns:
            ascending = column.kind == "categories" or all(np.diff(column.edges) > 0)
            fits = column.n_bins == len(column.counts) and max(column.at) < profile.n_features
            if not (ascending and fits and len(column.edges) <= MAX_BINS):
                raise InputError(f"{where} is damaged: the counts of {column.name!r} do not match its bins. {REPAIR}")
        if not profile.scores:
            raise InputError(f"{where} is damaged: it has no bins of a score. {REPAIR}")
        for bins in profile.scores.values():
            if len(bins.counts) != len(bins.edges) + 1 or not all(np.diff(bins.edges) > 0):
                raise InputError(f"{where} is damaged: the counts of the score do not match its bins. {REPAIR}")
        return profile


def fit_columns(blocks: Blocks, schema: Schema, preprocessor: Preprocessor, coef: ndarray) -> tuple[WatchedColumn, ...]:
    """Return the columns of the training rows with their counts.

    The first of two reductions finds edges from a sample of the rows, and the second one counts all rows.

    Parameters
    ----------
    blocks : Blocks
        The encoded training rows.
    preprocessor : Preprocessor
        The preprocessor that encoded the rows.
    coef : ndarray
        The weights. If there are more than `MAX_COLUMNS` columns, they decide which columns are watched.
    """
    drawn = sample_by_class(blocks)
    columns, numbers = [], []
    cuts = np.zeros(len(schema.feature_names))  # the midpoints between the encoded values of 0 and 1
    if schema.categories and preprocessor.scale != "unit-row":
        half = Block.of(np.full((1, len(cuts)), 0.5), np.ones(1, dtype=np.int8))
        cuts = np.asarray(preprocessor.transform(half).X[0])
    for name, features in schema.by_column().items():
        if name in schema.categories:
            at = tuple(features)
            edges = tuple(float(cuts[j]) for j in at)
            columns.append(WatchedColumn(name, "categories", at, edges, tuple(features.values()), 0.0, 0.0))
        else:
            numbers += list(features)
    room = max(MAX_COLUMNS - len(columns), 0)
    if len(numbers) > room and len(coef) == drawn.n_features:  # the columns that change the score most
        drawn_ranges = ColumnRanges.of(drawn.rows, drawn.weight)
        reach = np.abs(coef) * np.where(drawn_ranges.constant, 0.0, drawn_ranges.largest)
        numbers = sorted(np.array(numbers)[np.argsort(-reach[numbers], kind="stable")][:room].tolist())
    numbers = numbers[:room]  # if a feature map mixes features, the first columns are watched
    values, weight = Columns(drawn), drawn.weights()
    for j in numbers:
        edges = tuple(bins_of(values[j], weight, N_BINS).edges.tolist())
        columns.append(WatchedColumn(schema.feature_names[j], "numbers", (j,), edges, (), 0.0, 0.0))
    columns.sort(key=lambda column: column.at[0])

    def count(block: Block) -> Summary:
        """Count the rows of a block in the bins of each column, and find the ranges of its features."""
        values = Columns(block)
        counts = [np.bincount(c.bin_numbers(values, block.n_samples), minlength=c.n_bins) for c in columns]
        return {"bins": np.concatenate(counts), "ranges": ColumnRanges.of(block.rows, block.weight)}

    totals = blocks.sum(count)
    ranges = totals["ranges"]
    counted, start = [], 0
    for column in columns:
        end, first = start + column.n_bins, column.at[0]
        low = high = 0.0
        # otherwise all values are missing
        if column.kind == "numbers" and ranges.low[first] <= ranges.high[first]:
            low, high = float(ranges.low[first]), float(ranges.high[first])
        counts = tuple(totals["bins"][start:end].tolist())
        counted.append(replace(column, counts=counts, low=low, high=high))
        start = end
    return tuple(counted)


def score_bins(scores: ScoreCounts, rows: Any, intercept: float) -> ScoreBins:
    """Return bins of the scores plus the intercept, with about equal numbers of rows."""
    mass = scores.pos + scores.neg
    nonempty = mass > 0
    values, mass = scores.middles()[nonempty] + intercept, mass[nonempty]
    edges = bins_of(values, mass, N_BINS).edges
    counts = np.bincount(np.searchsorted(edges, values, "left"), mass, minlength=len(edges) + 1)
    return ScoreBins(rows, tuple(edges.tolist()), tuple(round(n) for n in counts))
