"""Counts of the rows of each class at each score, from which all ranking metrics are computed. Counts of parts can be added."""

import functools
import math
import operator
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from aucdist.errors import InputError
from aucdist.kernels.float_order import floats_of_keys, ordered_keys
from aucdist.parameters import check_weights, frozen

Weights = ArrayLike | None
"""The weight of each row. None means that each row counts once."""
MAX_VALUES = 2**20
"""The largest number of distinct scores that counts of limited size store one by one. They take 25 MB."""

MAX_CELLS = 2**18
"""The number of cells that these counts store if there are more distinct scores. It is at most `MAX_VALUES`, so that there are
always fewer cells than there were scores."""


@frozen
class ScoreCounts:
    """The distinct scores of a data set, with the weight of each class at each of them.

    The counts of two parts of a data set add up to the counts of the whole. Without weights every entry is an integer, which
    float64 holds exactly up to 2**53 rows. So any partition merged in any order gives the same bits. With weights the last
    digits depend on the order of adding.

    Attributes
    ----------
    values : ndarray of shape (n_values,), float64
        The distinct scores, ascending. -0.0 is stored as 0.0.
    pos, neg : ndarray of shape (n_values,), float64
        Total weight of the positive and of the negative rows at each score.
    rows_pos, rows_neg : int
        Number of rows of each class with a weight above 0.
    weighted : bool
        Whether some weight was neither 0 nor 1.
    shift : int
        0 if the values are the scores themselves. Otherwise scores are counted in intervals, called cells, and each value is the
        highest number of its cell. Two scores are in the same cell if their float64 bits, read as integers in the order of the
        numbers, agree except for the last `shift` bits. A threshold among the values therefore divides the cells exactly as it
        divides the rows.
    bounded : bool
        Whether sums with other counts are bounded in size: see `within_bounds`.

    Examples
    --------
    >>> from aucdist.metrics import ScoreCounts
    >>> from aucdist.metrics.ranking import auc
    >>> here = ScoreCounts.from_scores([-1, 1], [0.1, 0.5])
    >>> there = ScoreCounts.from_scores([-1, -1, 1], [0.6, 0.2, 0.9])
    >>> round(auc(here + there), 4)  # the AUC of all five rows
    0.8333
    """

    values: ndarray
    pos: ndarray
    neg: ndarray
    rows_pos: int
    rows_neg: int
    weighted: bool = False
    shift: int = 0
    bounded: bool = False

    @classmethod
    def from_scores(cls, y: ArrayLike, scores: ArrayLike, weight: Weights = None) -> "ScoreCounts":
        """Return the counts of some rows. There may be no rows, or rows of one class only.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels, -1 or +1.
        scores : array-like of shape (n_samples,)
            Scores; higher means more likely positive.
        weight : array-like of shape (n_samples,), optional
            Sample weights, at least 0. Rows of weight 0 are left out.

        Raises
        ------
        InputError
            If the lengths differ, a label is neither -1 nor +1, a score is not finite, or a weight is negative, not finite, or
            too large or too small for products of weights. The message names the first such position, counted from 0.

        Returns
        -------
        ScoreCounts
        """
        y, scores = checked_scores(y, scores)
        positive, scores, weighted = y == 1, scores + 0.0, False
        if weight is not None:
            w = as_column("weights", weight)
            if w.shape != scores.shape:
                raise InputError(
                    f"Found input variables with inconsistent numbers of samples: [{len(y)}, {len(scores)}, {w.size}]. y_score "
                    f"has {len(scores)} values, but sample_weight has shape {w.shape}: give one weight for each score"
                )
            check_weights(w)
            kept = w > 0
            positive, scores, w = positive[kept], scores[kept], w[kept]
            weighted = bool((w != 1).any())
        if weighted:
            merged = _add_equal(scores, np.where(positive, w, 0.0), np.where(positive, 0.0, w))
        else:  # Without weights the values are sorted, which is several times as fast as computing the order of the rows.
            ascending = np.sort(scores)
            first = _first_of_equal(ascending)
            values = ascending[first]
            places = np.searchsorted(values, np.sort(scores[positive]))
            pos = np.bincount(places, minlength=len(values)).astype(np.float64)
            merged = values, pos, np.diff(first, append=len(scores)) - pos
        n_pos = int(positive.sum())
        return cls(*merged, n_pos, len(positive) - n_pos, weighted)

    @classmethod
    def of_values(cls, values: ndarray, pos: ndarray, neg: ndarray) -> "ScoreCounts":
        """Return counts from values and the numbers of rows at each value.

        Parameters
        ----------
        values : ndarray of shape (n,), float64
            Scores, which need not be distinct.
        pos, neg : ndarray of shape (n,), float64
            The numbers of positive and of negative rows at each value.

        Returns
        -------
        ScoreCounts
        """
        merged = _add_equal(values + 0.0, pos.astype(np.float64), neg.astype(np.float64))
        return cls(*merged, int(pos.sum()), int(neg.sum()))

    def __add__(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return the counts of the rows of both. They are counts in cells if one of the two is."""
        shift = max(self.shift, other.shift)
        parts = self.in_cells(shift), other.in_cells(shift)
        values, pos, neg = (
            np.concatenate(pair) for pair in zip(*((p.values, p.pos, p.neg) for p in parts), strict=True)
        )
        total = ScoreCounts(
            *_add_equal(values, pos, neg),
            self.rows_pos + other.rows_pos,
            self.rows_neg + other.rows_neg,
            self.weighted or other.weighted,
            shift,
        )
        return total.within_bounds() if self.bounded or other.bounded else total

    def within_bounds(self) -> "ScoreCounts":
        """Return counts of the same rows whose size stays bounded, even when counts of other rows are added.

        Up to `MAX_VALUES` distinct scores are held one by one. If there are more, they are held in at most `MAX_CELLS` cells,
        which are as narrow as this number allows. The cells depend on the rows alone, not on their partition or the order of
        adding.

        Returns
        -------
        ScoreCounts
        """
        shift = self.shift
        if len(self.values) > (MAX_VALUES if shift == 0 else MAX_CELLS):
            keys = ordered_keys(self.values)
            shift = bisect_left(range(64), True, key=lambda k: bool(np.count_nonzero(np.diff(keys >> k)) < MAX_CELLS))
        return replace(self.in_cells(shift), bounded=True)

    def in_cells(self, shift: int) -> "ScoreCounts":
        """Return the counts of the same rows in cells.

        Parameters
        ----------
        shift : int
            The number of bits in which the scores of a cell may differ: see the attribute `shift`.

        Returns
        -------
        ScoreCounts
        """
        if shift <= self.shift:
            return self
        keys = ordered_keys(self.values) >> shift
        first = _first_of_equal(keys)
        highest = np.minimum((keys[first] << shift) | ((1 << shift) - 1), HIGHEST)
        # -1 is the key of -0.0. A score of 0.0 is in the next cell, but not larger than -0.0.
        highest[highest == -1] = -2
        pos, neg = (np.add.reduceat(column, first) for column in (self.pos, self.neg))
        return ScoreCounts(floats_of_keys(highest), pos, neg, self.rows_pos, self.rows_neg, self.weighted, shift)

    def middles(self) -> ndarray:
        """Return a score for each value: the value itself, or the number in the middle of its cell.

        Returns
        -------
        ndarray of shape (n_values,), float64
        """
        if self.shift == 0:
            return self.values
        keys = ordered_keys(self.values)
        return floats_of_keys(keys - ((keys & ((1 << self.shift) - 1)) >> 1)) + 0.0

    def threshold(self, n_below: int) -> float:
        """Return a threshold between two values, so that a given number of values does not exceed it.

        It is the midpoint of the two scores. Below all scores, it is the next smaller number, and above all scores the highest
        score.

        Parameters
        ----------
        n_below : int
            The number of values that do not exceed the threshold.

        Returns
        -------
        float
        """
        values = self.values
        if n_below == 0:
            lowest = floats_of_keys(np.maximum(ordered_keys(values[:1]) >> self.shift << self.shift, ~HIGHEST))[0]
            return math.nextafter(float(lowest), -math.inf)
        low, high = float(values[n_below - 1]), float(values[min(n_below, len(values) - 1)])
        middle = low / 2 + high / 2
        # Neighbouring floats have no number between them. Of neighbouring cells, only the end of the lower one is known.
        return middle if low <= middle < high and self.shift == 0 else low

    def mapped(self, function: Callable[[ndarray], ndarray]) -> "ScoreCounts":
        """Return the counts of the same rows with mapped scores, such as probabilities. For a cell, its middle is mapped.

        Parameters
        ----------
        function : callable
            Takes and returns an array of shape (n_values,), float64.

        Returns
        -------
        ScoreCounts
        """
        merged = _add_equal(function(self.middles()) + 0.0, self.pos, self.neg)
        return ScoreCounts(*merged, self.rows_pos, self.rows_neg, self.weighted)

    @property
    def n_pos(self) -> float:
        """Total weight of the positive rows. Without weights, it is their number."""
        return float(self.pos.sum())

    @property
    def n_neg(self) -> float:
        """Total weight of the negative rows. Without weights, it is their number."""
        return float(self.neg.sum())


HIGHEST = 0x7FEFFFFFFFFFFFFF
"""The key of the largest finite float. The key of the smallest one has all bits inverted."""


def _add_equal(values: ndarray, pos: ndarray, neg: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Return the distinct values, ascending, with the sums of pos and neg at each."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    first = _first_of_equal(ascending)
    return ascending[first], np.add.reduceat(pos[order], first), np.add.reduceat(neg[order], first)


def _first_of_equal(ascending: ndarray) -> ndarray:
    return np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1]))[: len(ascending)])


def as_column(name: str, values: object) -> ndarray:
    """Return values as float64 of shape (n,), with NaN where they are masked, or raise an InputError that names them."""
    try:
        if isinstance(values, np.ma.MaskedArray):  # NumPy would use the values below the mask
            values = np.ma.filled(values.astype(np.float64), np.nan)
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not numbers: {error}. Convert them first") from None
    if column.ndim != 1:
        raise InputError(f"{name} must have one dimension, with one value for each row; got the shape {column.shape}")
    return column


def checked_scores(y: object, scores: object) -> tuple[ndarray, ndarray]:
    """Return labels -1 and +1 and the finite scores of as many rows, or raise an InputError."""
    y, scores = np.asarray(y), as_column("scores", scores)
    if y.shape != scores.shape:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: [{y.size}, {len(scores)}]. y_score has {len(scores)} "
            f"values, but y_true has shape {y.shape}: give one label for each score"
        )
    check_values("label", y, (y != 1) & (y != -1), "is neither -1 nor +1")
    check_values(
        f"Input y_score contains {'NaN' if np.isnan(scores).any() else 'infinity'}: the score",  # the words of scikit-learn
        scores,
        ~np.isfinite(scores),
        "is not finite",
    )
    return y, scores


def check_values(kind: str, values: ndarray, wrong: ndarray, reason: str) -> None:
    """Raise an InputError that names the first position where `wrong` is true, if there is one."""
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"{kind} at position {first} (counted from 0) {reason}: {values[first]}. Correct it, or leave it out"
        )


def dot(a: ndarray, b: ndarray) -> float:
    """Return the sum of products. BLAS is not used, because its order of adding depends on the number of threads."""
    return float(np.sum(a * b))


def counts_of_rows(
    y_true: Any, y_score: Any, sample_weight: Any = None, pos_label: Any = None, *, one_class: bool = False
) -> ScoreCounts:
    """Return the counts of labels and scores. Error messages begin like those of scikit-learn.

    Dask collections are counted chunk by chunk, on the workers of the current client if there is one.
    """
    if hasattr(y_score, "__dask_graph__"):
        import dask

        inputs = [y_true, y_score] if sample_weight is None else [y_true, y_score, sample_weight]
        if not all(hasattr(collection, "__dask_graph__") for collection in inputs):
            raise InputError("y_score is a dask collection: y_true and sample_weight must be dask collections too")
        chunks = [np.ravel(collection.to_delayed(optimize_graph=False)) for collection in inputs]
        if len(sizes := {len(column) for column in chunks}) > 1:
            raise InputError(f"y_true, y_score and weights have {sizes} chunks: take them from one DataFrame")
        distinct = dask.compute(*(dask.delayed(np.unique)(labels) for labels in chunks[0]))
        labels, _ = binary_labels(np.concatenate(distinct), pos_label, one_class=one_class)
        positive = labels[-1] if pos_label is None else pos_label
        counts = dask.compute(
            *(dask.delayed(_counts_of_chunk)(positive, *chunk) for chunk in zip(*chunks, strict=True))
        )
        return functools.reduce(operator.add, counts)
    return ScoreCounts.from_scores(binary_labels(y_true, pos_label, one_class=one_class)[1], y_score, sample_weight)


def _counts_of_chunk(positive: Any, y: Any, scores: Any, weight: Any = None) -> ScoreCounts:
    if len(scores) == len(y) == 0:
        return ScoreCounts.from_scores(np.zeros(0), np.zeros(0))
    return counts_of_rows(y, scores, weight, positive, one_class=True)


def binary_labels(y_true: Any, pos_label: Any = None, *, one_class: bool = False) -> tuple[ndarray, ndarray]:
    """Return the two labels in ascending order, and -1 or +1 for each row. A single label is an error unless `one_class` is true.

    The label `pos_label` is positive. If it is None, the larger label is.
    """
    column = labels_of("y_true", y_true)
    try:
        labels = np.unique(column)
    except TypeError:
        raise InputError(
            "y_true mixes labels that cannot be compared, such as numbers and strings: convert them to one type"
        ) from None
    shown = ", ".join(str(label) for label in labels[:5])
    if len(labels) != 2 and not (one_class and len(labels) == 1):
        raise InputError(
            f"the labels must be of two classes, and they are of {len(labels)}: {shown}. Give two classes, such as y == label"
        )
    if pos_label is None:
        return labels, np.where(column == labels[-1], 1, -1)
    if pos_label not in labels.tolist() and len(labels) == 2:
        raise InputError(f"pos_label must be one of the labels of y_true, {shown}; got {pos_label!r}")
    return labels, np.where(column == pos_label, 1, -1)


def labels_of(name: str, values: Any) -> ndarray:
    """Return labels as an array of one dimension. Raise an InputError for other shapes, masked values or missing values."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise InputError(f"{name} must have one dimension, with one value for each row; got the shape {column.shape}")
    if isinstance(values, np.ma.MaskedArray):
        check_values(f"the value of {name}", column, np.ma.getmaskarray(values), "is masked")
    if column.dtype == object:
        import pandas as pd  # loading it takes half a second

        missing = pd.isna(column)
    else:
        missing = column != column
    check_values(f"the value of {name}", column, missing, "is missing")
    return column
