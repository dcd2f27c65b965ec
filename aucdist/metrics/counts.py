"""The number of rows of each class at each score. All ranking measures are functions of it, and it merges by adding."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aucdist.errors import InputError


@dataclass(frozen=True, eq=False)
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

    Examples
    --------
    >>> from aucdist.metrics import ScoreCounts
    >>> from aucdist.metrics.auc import auc
    >>> here = ScoreCounts.from_scores([-1, 1], [0.1, 0.5])
    >>> there = ScoreCounts.from_scores([-1, -1, 1], [0.6, 0.2, 0.9])
    >>> round(auc(here + there), 4)  # of all five rows
    0.8333
    """

    values: np.ndarray
    pos: np.ndarray
    neg: np.ndarray
    rows_pos: int
    rows_neg: int
    weighted: bool = False

    @classmethod
    def from_scores(cls, y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None) -> "ScoreCounts":
        """Return the counts of some rows; no rows, or rows of one class only, are allowed.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Labels, -1 or +1.
        scores : array of shape (n_samples,)
            Scores; higher means more likely positive.
        weight : array of shape (n_samples,), optional
            Sample weights, at least 0. Rows of weight 0 are left out.

        Raises
        ------
        InputError
            If the lengths differ, a label is neither -1 nor +1, a score is not finite, or a weight is negative or not
            finite. The message names the first such position, counted from 0.
        """
        y, scores = np.asarray(y), as_column("scores", scores)
        if y.shape != scores.shape:
            raise InputError(f"{len(scores)} scores, but labels of shape {y.shape}")
        refuse("label", y, (y != 1) & (y != -1), "is neither -1 nor +1")
        refuse("score", scores, ~np.isfinite(scores), "is not finite")
        positive, scores, weighted = y == 1, scores + 0.0, False
        if weight is not None:
            w = as_column("weights", weight)
            if w.shape != scores.shape:
                raise InputError(f"{len(scores)} scores, but weights of shape {w.shape}")
            refuse("weight", w, ~(np.isfinite(w) & (w >= 0)), "is negative or not finite")
            kept = w > 0
            positive, scores, w = positive[kept], scores[kept], w[kept]
            weighted = bool((w != 1).any())
        if weighted:
            merged = _add_equal(scores, np.where(positive, w, 0.0), np.where(positive, 0.0, w))
        else:
            merged = _count_equal(scores, positive)
        n_pos = int(positive.sum())
        return cls(*merged, n_pos, len(positive) - n_pos, weighted)

    def __add__(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return the counts of the rows of both, in time linear in the number of distinct scores."""
        pairs = ((self.values, other.values), (self.pos, other.pos), (self.neg, other.neg))
        return ScoreCounts(
            *_add_equal(*(np.concatenate(pair) for pair in pairs)),
            self.rows_pos + other.rows_pos,
            self.rows_neg + other.rows_neg,
            self.weighted or other.weighted,
        )

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> "ScoreCounts":
        """Return the counts of the same rows with mapped scores, such as probabilities.

        Parameters
        ----------
        function : callable
            Takes and returns an array of shape (n_values,), float64.
        """
        merged = _add_equal(function(self.values) + 0.0, self.pos, self.neg)
        return ScoreCounts(*merged, self.rows_pos, self.rows_neg, self.weighted)

    @property
    def n_pos(self) -> float:
        """Total weight of the positive rows; without weights their number."""
        return float(self.pos.sum())

    @property
    def n_neg(self) -> float:
        """Total weight of the negative rows; without weights their number."""
        return float(self.neg.sum())


def _count_equal(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct scores, ascending, with the numbers of positives and negatives at each.

    This is `_add_equal` without weights, and faster, because sorting values is several times as fast as finding their order.
    """
    if len(scores) == 0:
        return scores, scores, scores
    ascending = np.sort(scores)
    first = _first_of_equal(ascending)
    values = ascending[first]
    rows = np.diff(first, append=len(scores)).astype(np.float64)
    fewer = positive if 2 * np.count_nonzero(positive) <= len(positive) else ~positive
    of_fewer = np.bincount(np.searchsorted(values, np.sort(scores[fewer])), minlength=len(values)).astype(np.float64)
    rest = rows - of_fewer
    return (values, of_fewer, rest) if fewer is positive else (values, rest, of_fewer)


def _add_equal(values: np.ndarray, pos: np.ndarray, neg: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct values, ascending, with the sums of pos and neg at each."""
    if len(values) == 0:
        return values, pos, neg
    # The stable sort detects sorted runs, so merging two sorted halves takes linear time.
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    first = _first_of_equal(ascending)
    return ascending[first], np.add.reduceat(pos[order], first), np.add.reduceat(neg[order], first)


def _first_of_equal(ascending: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))


def as_column(name: str, values: object) -> np.ndarray:
    """Return values as float64 of shape (n,), or raise an InputError that names them."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not numbers: {error}") from None
    if column.ndim != 1:
        raise InputError(f"{name} have shape {column.shape}; one dimension is expected")
    return column


def refuse(kind: str, values: np.ndarray, wrong: np.ndarray, why: str) -> None:
    """Raise an InputError that names the first position where `wrong` is true, if there is one."""
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(f"{kind} at position {first} (counted from 0) {why}: {values[first]}")
