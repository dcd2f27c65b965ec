"""The anchors of all groups: sorted by group, and by score within each; a row of the larger class searches those of its group."""

from dataclasses import dataclass, replace

import numpy as np

from aucdist.kernels.pair_groups import arrange, guide_groups, running_sums_in_groups
from aucdist.solvers.pairs.anchors import MAX_CELLS, Anchors, Runs

FEW_ANCHORS = 16
"""A group of so many anchors is searched without a search_index: its table has a single cell."""


@dataclass(frozen=True, eq=False)
class GroupedAnchors(Anchors):
    """The anchors of all groups at one point; `aucdist.kernels.pair_groups` says how the arrays lie.

    `low` and `scale`: of shape (n_groups,), float64.
    `starts` and `table_starts`: of shape (n_groups + 1,), int64.
    `runs`: which rows of the larger class are whose, for the rows that the anchors are searched for.
    """

    starts: np.ndarray
    table_starts: np.ndarray
    runs: Runs

    def for_groups(self, runs: Runs) -> "GroupedAnchors":
        """Return the anchors as these rows search them."""
        return replace(self, runs=runs)

    def search(self) -> tuple[np.ndarray, ...]:
        """Return the arguments of a search among the anchors, in the order of the kernels."""
        return *self.runs, self.scores, self.starts, self.table, self.table_starts, self.low, self.scale


class AnchorGroups:
    """The anchors' groups, which stay while the scores change.

    `codes`, of shape (n_anchors,), int32: the number of each anchor's group, in the order of the anchors.
    """

    def __init__(self, codes: np.ndarray, n_groups: int):
        self.codes, sizes = codes, np.bincount(codes, minlength=n_groups)
        self.starts = np.concatenate(([0], np.cumsum(sizes)))
        cells = np.where(sizes <= FEW_ANCHORS, 1, np.minimum(2 * sizes, MAX_CELLS))
        self.table_starts = np.concatenate(([0], np.cumsum(cells + 1)))

    def sorted(
        self, scores: np.ndarray, weights: np.ndarray, n_sums: int = 2, *, centred: bool = False
    ) -> tuple[GroupedAnchors, np.ndarray]:
        """Return the anchors at a point, and the order that sorts them; parameters as of `sorted_anchors`."""
        order = self._order(scores)
        ascending = scores[order]
        centre = float(np.median(scores)) if centred else 0.0
        if centred:
            ascending = ascending - centre
        table, low, scale = self._search_indexes(ascending)
        term, prefix_sums = weights[order], []
        for _ in range(n_sums):
            prefix_sums.append(self._running_sums(term))
            term = term * ascending
        nobody = (np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))
        return GroupedAnchors(
            ascending, table, low, scale, tuple(prefix_sums), np.asarray(centre), self.starts, self.table_starts, nobody
        ), order

    def along(self, points: np.ndarray, weights: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the anchors at several points of a line, as `slopes_along_in_groups` takes them after the rows' runs.

        `points`: of shape (n_points, n_anchors), float64.
        `weights` and `change`, of shape (n_anchors,), float64: the weights, and the derivative of the scores.
        """
        orders = [self._order(scores) for scores in points]
        ascending = np.stack([scores[order] for scores, order in zip(points, orders, strict=True)])
        indexes = [self._search_indexes(scores) for scores in ascending]
        table, low, scale = (np.stack(parts) for parts in zip(*indexes, strict=True))
        weight_below, change_below = (
            np.stack([self._running_sums(terms[order]) for order in orders]) for terms in (weights, weights * change)
        )
        return ascending, self.starts, table, self.table_starts, low, scale, weight_below, change_below

    def _order(self, scores: np.ndarray) -> np.ndarray:
        arranged = np.empty(len(scores), dtype=np.int64)
        arrange(np.argsort(scores), self.codes, self.starts, np.empty(len(self.starts) - 1, dtype=np.int64), arranged)
        return arranged

    def _search_indexes(self, ascending: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n_groups = len(self.starts) - 1
        table, low, scale = np.empty(self.table_starts[-1], dtype=np.int32), np.zeros(n_groups), np.zeros(n_groups)
        guide_groups(ascending, self.starts, table, self.table_starts, low, scale)
        return table, low, scale

    def _running_sums(self, values: np.ndarray) -> np.ndarray:
        out = np.empty(len(values) + len(self.starts) - 1)
        running_sums_in_groups(values, self.starts, out)
        return out


def runs_of(codes: np.ndarray) -> Runs:
    """Return which rows are whose, given the number of each row's group, int32, equal ones side by side."""
    bounds = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1], [True]))) if len(codes) else np.zeros(1)
    bounds = bounds.astype(np.int64)
    return bounds, codes[bounds[:-1]].astype(np.int32)
