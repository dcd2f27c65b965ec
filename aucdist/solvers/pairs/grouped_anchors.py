"""The anchors of all groups: sorted by group, and by score within each; a row of the larger class searches those of its group."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from aucdist.kernels.pair_groups import arrange, guide_groups, running_sums_in_groups
from aucdist.solvers.pairs.anchors import MAX_CELLS, Anchors, AnchorsOnLine, Runs

FEW_ANCHORS = 16
"""A group of so many anchors is searched without a search_index: its table has a single cell."""


@dataclass(frozen=True, eq=False)
class GroupedAnchors(Anchors):
    """The anchors of all groups at one point; `aucdist.kernels.pair_groups` says how the arrays lie.

    `starts`: of shape (n_groups + 1,), int64.
    `runs`: which rows of the larger class are whose, for the rows that the anchors are searched for.
    """

    starts: np.ndarray
    runs: Runs

    @cached_property
    def index(self) -> tuple[np.ndarray, ...]:
        """The tables of all groups, where each begins, and the lowest score and the scale of each."""
        return search_indexes(self.scores, self.starts)

    def _running_sums(self, values: np.ndarray) -> np.ndarray:
        return running_sums_of_groups(values, self.starts)

    @property
    def n_gaps(self) -> int:
        """How many places there are in all groups."""
        return len(self.scores) + len(self.starts) - 1

    def for_groups(self, runs: Runs) -> "GroupedAnchors":
        """Return the anchors as these rows search them."""
        shared = {"index": self.index, "prefix_sums": self.prefix_sums}  # computed once, for the rows of all components
        found = replace(self, runs=runs)
        vars(found).update(shared)
        return found

    def search(self) -> tuple[np.ndarray, ...]:
        """Return the arguments of a search among the anchors, in the order of the kernels."""
        return *self.runs, self.scores, self.starts, *self.index


@dataclass(frozen=True, eq=False)
class GroupedAnchorsOnLine(AnchorsOnLine):
    """Anchors of groups at several steps of a line; `codes`, of shape (n_anchors,), int32: the number of each anchor's group."""

    codes: np.ndarray
    n_groups: int

    @cached_property
    def at_steps(self) -> tuple[np.ndarray, ...]:
        """The arguments of a line search after the rows' runs, in the order of the kernels."""
        groups = AnchorGroups(self.codes, self.n_groups)
        points = self.points
        orders = [groups.order(scores) for scores in points]
        ascending = np.stack([scores[order] for scores, order in zip(points, orders, strict=True)])
        tables, (starts, *_), lows, scales = zip(
            *(search_indexes(one, groups.starts) for one in ascending), strict=True
        )
        sums = (
            np.stack([running_sums_of_groups(terms[order], groups.starts) for order in orders])
            for terms in (self.weights, self.weights * self.change)
        )
        return ascending, groups.starts, np.stack(tables), starts, np.stack(lows), np.stack(scales), *sums


class AnchorGroups:
    """The anchors' groups, which stay while the scores change.

    `codes`, of shape (n_anchors,), int32: the number of each anchor's group, in the order of the anchors.
    """

    def __init__(self, codes: np.ndarray, n_groups: int):
        self.codes = codes
        self.starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=n_groups))))

    def sorted(
        self, scores: np.ndarray, weights: np.ndarray, n_sums: int = 2, *, centred: bool = False
    ) -> tuple[GroupedAnchors, np.ndarray]:
        """Return the anchors at a point, and the order that sorts them; parameters as of `sorted_anchors`."""
        order = self.order(scores)
        ascending = scores[order]
        centre = float(np.median(scores)) if centred else 0.0
        nobody = (np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))
        return GroupedAnchors(
            ascending - centre if centred else ascending, weights[order], n_sums, centre, self.starts, nobody
        ), order

    def order(self, scores: np.ndarray) -> np.ndarray:
        """Return the positions of the anchors, group by group, by score within each."""
        arranged = np.empty(len(scores), dtype=np.int64)
        arrange(np.argsort(scores), self.codes, self.starts, np.empty(len(self.starts) - 1, dtype=np.int64), arranged)
        return arranged


def search_indexes(ascending: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the tables of all groups, where each begins, and the lowest score and the scale of each."""
    sizes, n_groups = np.diff(starts), len(starts) - 1
    cells = np.where(sizes <= FEW_ANCHORS, 1, np.minimum(2 * sizes, MAX_CELLS))
    table_starts = np.concatenate(([0], np.cumsum(cells + 1)))
    table, low, scale = np.empty(table_starts[-1], dtype=np.int32), np.zeros(n_groups), np.zeros(n_groups)
    guide_groups(ascending, starts, table, table_starts, low, scale)
    return table, table_starts, low, scale


def running_sums_of_groups(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the running sums of each group's values, which start with 0, group after group."""
    out = np.empty(len(values) + len(starts) - 1)
    running_sums_in_groups(values, starts, out)
    return out


def runs_of(codes: np.ndarray) -> Runs:
    """Return which rows are whose, given the number of each row's group, int32, equal ones side by side."""
    bounds = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1], [True]))) if len(codes) else np.zeros(1)
    bounds = bounds.astype(np.int64)
    return bounds, codes[bounds[:-1]].astype(np.int32)
