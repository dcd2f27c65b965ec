"""Losses of pairs: the sum of a loss over all pairs and its derivatives, from the scores of some rows and the sorted anchors.

The anchors are the rows of the smaller class. Their sorted scores are sent to all blocks, and each block pairs its own rows
with them. A loss of all pairs is summed in O(n log m), where m is the number of anchors: each row of the larger class finds by
a search how many anchors lie below a bound, and running sums over the sorted anchors give the sum of the loss
(`aucdist.pairs.kernels`). If the negatives are the smaller class, scores and classes are mirrored. So the margin of a pair, of
which a loss is a function, is always the anchor's score minus the other row's.

A new loss is a subclass of `PairLoss`, which a subclass of `PairLBFGS` (`aucdist.pairs.smooth`) minimises: "A loss of pairs" in
ARCHITECTURE.md lists what else to change. Losses are sent to the blocks. They are frozen dataclasses without fields, or with
fields that are numbers or arrays.
"""

from abc import ABC, abstractmethod
from dataclasses import field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.pairs.kernels import arrange, cut_groups, index_groups, ramp_sum, running_sums_in_groups, sums_above
from aucdist.parameters import frozen

MAX_CELLS = 2**16
"""The largest size of the table that guides a search. It fits into the second-level cache of a core."""

FEW_ANCHORS = 16
"""A group with at most this many anchors is searched without a table, because it has a single cell."""

GroupSlices = tuple[ndarray, ndarray]
"""Where the rows of each group begin and end, int64 of shape (n_slices + 1,), and the numbers of the groups, int32 of
shape (n_slices,)."""


@frozen
class Anchors:
    """The scores of the smaller class at one point, in the form that is sent to the blocks and that kernels take.

    Anchors are sorted by group, and by score within each group. Without groups, all rows belong to one group.

    Attributes
    ----------
    scores : ndarray of shape (n_anchors,), float64
        The scores minus `centre`.
    weights : ndarray of shape (n_anchors,), float64
        The weights, in the order of the scores.
    starts : ndarray of shape (n_groups + 1,), int64
        Where the anchors of each group begin and end.
    n_sums : int
        The number of running sums, see `prefix_sums`.
    centre : float
        A number that is subtracted from all scores, also from those of the larger class; 0 for most losses.
    row_slack : ndarray of shape (n_anchors + 1,) or (1,), float64
        For anchors that stand for several rows of about the same score: see `slacks` of `aucdist.pairs.kernels.cut_group`.
    """

    scores: ndarray
    weights: ndarray
    starts: ndarray
    n_sums: int = 2
    centre: float = 0.0
    row_slack: ndarray = field(default_factory=lambda: np.zeros(1))

    def __getstate__(self) -> dict[str, Any]:
        """Send only the fields. Values that are computed from them are computed again on arrival."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def prefix_sums(self) -> tuple[ndarray, ...]:
        """Running sums in each group of the weights times the scores to the powers 0, 1, ..., n_sums - 1. They start with 0."""
        sums, terms = [], self.weights
        for _ in range(self.n_sums):
            sums.append(np.empty(self.n_gaps))
            running_sums_in_groups(terms, self.starts, sums[-1])
            terms = terms * self.scores
        return tuple(sums)

    @cached_property
    def search(self) -> tuple[ndarray, ...]:
        """The arguments with which kernels search the anchors, and the running sums.

        After scores and starts come the table of the search indices of all groups, where each index begins in it, and the
        lowest score and the scale of each group.
        """
        sizes, n_groups = np.diff(self.starts), len(self.starts) - 1
        cells = np.where(sizes <= FEW_ANCHORS, 1, np.minimum(2 * sizes, MAX_CELLS))
        table_starts = np.concatenate(([0], np.cumsum(cells + 1)))
        table, low, scale = np.empty(table_starts[-1], dtype=np.int32), np.zeros(n_groups), np.zeros(n_groups)
        index_groups(self.scores, self.starts, table, table_starts, low, scale)
        return self.scores, self.starts, table, table_starts, low, scale, *self.prefix_sums

    def sums_above(self, slope_sums: ndarray) -> ndarray:
        """Return for each column of sums, of shape (n_gaps, n), the sums over the gaps above each anchor: (n, n_anchors)."""
        sums = np.empty((len(self.scores), slope_sums.shape[1]))
        sums_above(slope_sums, self.starts, sums)
        return sums.T

    @property
    def n_gaps(self) -> int:
        """The number of gaps between, before and after the anchors, which is the length of a running sum or a slope sum."""
        return len(self.scores) + len(self.starts) - 1


def sort_anchors(
    scores: ndarray, weights: ndarray, groups: tuple[ndarray, int] | None = None, n_sums: int = 2, *,
    centred: bool = False,
) -> tuple[Anchors, ndarray]:  # fmt: skip
    """Return the anchors at a point, and the order that sorts them.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_anchors,), float64
        The scores and the weights of the anchors.
    groups : tuple (ndarray, int), optional
        The number of each anchor's group, int32 of shape (n_anchors,), and the number of groups.
    n_sums : int, default=2
        The number of running sums.
    centred : bool, default=False
        Whether to subtract the median score, because sums of squares lose less precision if scores are small.

    Returns
    -------
    anchors : Anchors
    order : ndarray of shape (n_anchors,), int64
        The positions of the anchors in the order in which they are sorted. Only the client needs it.
    """
    order, starts = np.argsort(scores), np.array([0, len(scores)])
    centre = float(scores[order[len(order) // 2]]) if centred else 0.0
    if groups is not None:
        numbers, n_groups = groups
        starts = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=n_groups))))
        arranged = np.empty(len(scores), dtype=np.int64)
        arrange(order, numbers, starts, np.empty(n_groups, dtype=np.int64), arranged)
        order = arranged
    ascending = scores[order]
    return Anchors(ascending - centre if centred else ascending, weights[order], starts, n_sums, centre), order


def one_slice(n: int) -> GroupSlices:
    """Return the slice of n rows that all belong to one group."""
    return np.array([0, n]), np.zeros(1, dtype=np.int32)


def group_slices(numbers: ndarray) -> GroupSlices:
    """Return the slice of rows of each group, given the group number of each row (int32), with equal numbers adjacent."""
    changes = np.concatenate(([True], numbers[1:] != numbers[:-1], [True])) if len(numbers) else np.ones(1)
    bounds = np.flatnonzero(changes).astype(np.int64)
    return bounds, numbers[bounds[:-1]].astype(np.int32)


class ScoredRows(NamedTuple):
    """The rows of the larger class at a point: their scores, weights and groups."""

    scores: ndarray
    weights: ndarray
    group_slices: GroupSlices


def running_sums(values: ndarray) -> ndarray:
    """Return the running sums along the first axis. They start with 0, so there is one more than there are values."""
    out = np.zeros((len(values) + 1, *values.shape[1:]))
    np.cumsum(values, axis=0, out=out[1:])
    return out


@frozen
class PairLoss(ABC):
    """A loss of the margins of pairs.

    Attributes
    ----------
    convex : bool
        Whether the loss is convex, so that a gradient gives a lower bound on the objective. If it is not, the loss must be the
        difference of two convex functions. Every loss whose slope changes at a bounded rate is such a difference.
    curvature : float
        For L-BFGS: an upper bound on the rate at which the slope of the loss changes, and on the slope at a margin of 0. The
        bounds on rounding errors depend on it.
    n_sums : int
        The number of running sums over the anchors that the loss needs, see `Anchors.prefix_sums`.
    centred : bool
        Whether the median score of the anchors is subtracted from scores, because squares of scores are summed.
    """

    convex: ClassVar[bool]
    curvature = 1.0
    n_sums: ClassVar[int]
    centred = False

    @abstractmethod
    def sums_and_slopes(self, rows: ScoredRows, anchors: Anchors) -> tuple[dict[str, Any], ndarray]:
        """Return sums over all pairs of these rows with the anchors of their groups, and the slopes of the rows.

        Parameters
        ----------
        rows : ScoredRows
            The rows of the larger class. The weight of a pair is the product of the weights of its rows.
        anchors : Anchors
            The rows of the smaller class.

        Returns
        -------
        sums : dict of str
            ``"loss"`` is the weighted sum of the loss, and ``"slope_sums"`` is what `anchor_slopes` takes. The values of all
            blocks are added up.
        row_slopes : ndarray of shape (n_rows,), float64
            The derivative of the sum by each row's score.
        """

    @abstractmethod
    def anchor_slopes(self, slope_sums: ndarray, anchors: Anchors, order: ndarray) -> ndarray:
        """Return the derivative of the sum by each anchor's score, float64 of shape (n_anchors,).

        Parameters
        ----------
        slope_sums : ndarray
            The sum of ``"slope_sums"`` over all rows of the larger class.
        anchors : Anchors
            The rows of the smaller class.
        order : ndarray of shape (n_anchors,), int64
            What `sort_anchors` returned. The derivatives are in the order of the anchors before sorting.
        """


@frozen
class PairHinge(PairLoss):
    """The hinge of pairs; see `PairLoss` for what the methods do.

    A pair is active if its margin is below 1. Its dual variable is then 1, so the offset of a tangent is the weight of the
    active pairs. The slope sums are a histogram: the weight of the rows that are active with exactly the first r anchors.

    A tangent, ``offset + slopes * scores``, is nowhere above the sum of the hinges. Its slopes are sums of dual variables of
    pairs, and its offset is their dual value; both come from the same dual variables, whatever the rounding
    (`aucdist.pairs.kernels.cut_groups`).

    Attributes
    ----------
    shifts : ndarray of shape (n_shifts,)
        The loss is the mean of the hinges at scores with these shifts. They ascend, and the one in the middle is 0. A single 0
        means no smoothing.
    """

    convex = True
    n_sums = 2

    shifts: ndarray = field(default_factory=lambda: np.zeros(1))

    def sums_and_slopes(self, rows: ScoredRows, anchors: Anchors) -> tuple[dict[str, Any], ndarray]:
        """Return the sums of the hinges, of the tangents' offsets and of the slack, the rows in the band, and the slopes."""
        slopes, histogram = np.empty(len(rows.scores)), np.zeros(anchors.n_gaps)
        offset, loss, slack, n_band = cut_groups(
            tuple(rows), self.shifts, anchors.search, anchors.row_slack, slopes, histogram
        )
        return {"loss": loss, "slope_sums": histogram, "offset": offset, "slack": slack, "n_band": n_band}, slopes

    def anchor_slopes(self, slope_sums: ndarray, anchors: Anchors, order: ndarray) -> ndarray:
        """Return minus the weight of each anchor's active pairs."""
        slopes, (above,) = np.empty(len(order)), anchors.sums_above(slope_sums[:, np.newaxis])
        # 0.0 - x gives 0.0 if no pair is active; -x would give -0.0, which cannot be sent as an integer.
        slopes[order] = 0.0 - above * anchors.weights
        return slopes


HINGE = PairHinge()


@frozen
class PairRamp(PairLoss):
    """The ramp of pairs; see `PairLoss` for what the methods do."""

    convex = False
    n_sums = 3
    centred = True

    def sums_and_slopes(self, rows: ScoredRows, anchors: Anchors) -> tuple[dict[str, Any], ndarray]:
        """Return the sum of the ramps, a count, a slope and a moment for each gap between anchors, and the rows' slopes."""
        slopes, sums = np.empty(len(rows.scores)), np.zeros((anchors.n_gaps, 3))
        loss = ramp_sum((rows.scores - anchors.centre, *rows[1:]), anchors.search, slopes, sums)
        return {"loss": loss, "slope_sums": sums}, slopes

    def anchor_slopes(self, slope_sums: ndarray, anchors: Anchors, order: ndarray) -> ndarray:
        """Return the derivative of the sum by each anchor's score."""
        slopes, (plain, slope, moment) = np.empty(len(order)), anchors.sums_above(slope_sums)
        slopes[order] = anchors.weights * (anchors.scores * slope - plain - moment)
        return slopes


RAMP = PairRamp()
