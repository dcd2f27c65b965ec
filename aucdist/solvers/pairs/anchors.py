"""The anchors: the rows of the smaller class, whose sorted scores are sent to all blocks, which pair their own rows with them.

A loss of all pairs is summed in O(n log m), m the number of anchors: each row of the larger class finds by a search how many
anchors lie below a bound, and running sums over the sorted anchors do the rest (`aucdist.kernels.pairs`). Scores are those of
"positive above negative". Where the negatives are the smaller class, scores and classes are mirrored, so that the margin of a
pair is the anchor's score minus the row's in either case.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from aucdist.kernels.pairs import search_index

MAX_CELLS = 2**16
"""The largest size of the table that guides a search: as much as stays in a core's second-level cache."""

Runs = tuple[np.ndarray, np.ndarray]
"""Where the rows of each group begin and end, int64 of shape (n_runs + 1,), and the groups' numbers, int32 of shape (n_runs,)."""


@dataclass(frozen=True, eq=False)
class Sent:
    """What is sent to the blocks: its fields alone, and what is computed of them is computed where they arrive."""

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, eq=False)
class Anchors(Sent):
    """The scores of the smaller class at one point, in the form that the kernels take and that is sent to the blocks.

    Attributes
    ----------
    scores : ndarray of shape (n_anchors,), float64
        Ascending, minus `centre`.
    weights : ndarray of shape (n_anchors,), float64
        In the order of the scores.
    n_sums : int
        The number of running sums, see `prefix_sums`.
    centre : float
        The zero of the scores, to be subtracted from those of the larger class too; 0 for most losses.
    """

    scores: np.ndarray
    weights: np.ndarray
    n_sums: int
    centre: float

    @cached_property
    def index(self) -> tuple[Any, ...]:
        """The table that guides a search, and its lowest score and scale: see `aucdist.kernels.pairs.search_index`."""
        table = np.empty(_table_size(len(self.scores)), dtype=np.int32)
        return table, *search_index(self.scores, table)

    @cached_property
    def prefix_sums(self) -> tuple[np.ndarray, ...]:
        """Running sums over the first r anchors of their weights times the scores to the powers 0, 1, ..., n_sums - 1."""
        return tuple(map(self._running_sums, powers(self.scores, self.weights, self.n_sums)))

    def _running_sums(self, values: np.ndarray) -> np.ndarray:
        return running_sums(values)

    def search(self) -> tuple[Any, ...]:
        """Return the arguments of a search among the anchors, in the order of the kernels."""
        return self.scores, *self.index

    @property
    def n_gaps(self) -> int:
        """How many places there are between anchors, before and behind them: the entries of a running sum or a slope_sums."""
        return len(self.scores) + 1

    def for_groups(self, runs: Runs) -> "Anchors":
        """Return the anchors as rows search them that are of these groups; here there are no groups."""
        return self


def powers(scores: np.ndarray, weights: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Yield the weights times the scores to the powers 0, 1, ..., n - 1."""
    for _ in range(n):
        yield weights
        weights = weights * scores


def sorted_anchors(
    scores: np.ndarray, weights: np.ndarray, n_sums: int = 2, *, centred: bool = False
) -> tuple[Anchors, np.ndarray]:
    """Return the anchors at a point, and the order that sorts them.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_anchors,), float64
    n_sums : int
        The number of running sums: of the weights times the scores to the powers 0, 1, ..., n_sums - 1.
    centred : bool
        Take the median score as zero. Sums of squares lose least where scores are small.

    Returns
    -------
    anchors : Anchors
    order : ndarray of shape (n_anchors,), int64
        ``scores[order]`` is ascending. Only the client needs it.
    """
    order = np.argsort(scores)
    ascending = scores[order]
    centre = float(ascending[len(ascending) // 2]) if centred else 0.0
    return Anchors(ascending - centre if centred else ascending, weights[order], n_sums, centre), order


@dataclass(frozen=True, eq=False)
class AnchorsOnLine(Sent):
    """Anchors at several steps of a line, as they are sent to the blocks.

    Attributes
    ----------
    start, change : ndarray of shape (n_anchors,), float64
        Their scores where the line begins, and the derivative of the scores by the step.
    steps : ndarray of shape (n_steps,), float64
    weights : ndarray of shape (n_anchors,) or (n_steps, n_anchors), float64
        At all steps, or at each.
    """

    start: np.ndarray
    change: np.ndarray
    steps: np.ndarray
    weights: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """The scores at each step, float64 of shape (n_steps, n_anchors)."""
        points: np.ndarray = self.start + self.steps[:, np.newaxis] * self.change
        return points

    @cached_property
    def at_steps(self) -> tuple[np.ndarray, ...]:
        """The arguments of a line search, in the order of the kernels: see `anchors_along`."""
        points = self.points
        return anchors_along(points, np.broadcast_to(self.weights, points.shape), self.change)


def anchors_along(points: np.ndarray, weights: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the anchors at several points of a line, as `aucdist.kernels.pairs.slopes_along` takes them.

    Parameters
    ----------
    points, weights : ndarray of shape (n_points, n_anchors), float64
        Scores and weights at each point.
    change : ndarray of shape (n_anchors,), float64
        The derivative of the scores.

    Returns
    -------
    anchors, table, low, scale, weight_below, change_below : ndarray
        In one array for all points: with many points and few anchors, calls of NumPy would be most of the time.
    """
    order = np.argsort(points, axis=1)
    ascending = np.take_along_axis(points, order, axis=1)
    n_points, n_anchors = points.shape
    table = np.empty((n_points, _table_size(n_anchors)), dtype=np.int32)
    low, scale = map(np.array, zip(*map(search_index, ascending, table), strict=True))
    weight_below, change_below = (
        running_sums(np.take_along_axis(terms, order, axis=1)) for terms in (weights, weights * change)
    )
    return ascending, table, low, scale, weight_below, change_below


def _table_size(n_anchors: int) -> int:
    return min(2 * n_anchors, MAX_CELLS) + 1


def running_sums(values: np.ndarray) -> np.ndarray:
    """Return the running sums along the last axis, which start with 0: one more than there are values."""
    out = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=out[..., 1:])
    return out
