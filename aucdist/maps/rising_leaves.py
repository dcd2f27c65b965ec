"""Trees whose scores rise or fall in some features: the leaves in an order, and the steps between them that keep directions.

LightGBM grows such trees, and gives their leaves values in the right order. Each set of leaves above one of these values then
gains rows, and loses none, where a feature moves in its direction; so the sum of such sets with weights of 0 and more keeps all
directions. It is proved here for each set, from the splits alone: a set that loses rows gets the weight 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aucdist.errors import InputError
from aucdist.maps.forest import Forest
from aucdist.solvers.cone import ZERO

ZEROS_ARE_MISSING, NAN_IS_MISSING = 1, 2


@dataclass(frozen=True, eq=False)
class _Regions:
    """The rows that reach each leaf of a tree: of each feature, values above `low` and up to `high`, and perhaps NaN.

    All arrays have the shape (n_leaves, n_features of the tree).
    """

    low: np.ndarray
    high: np.ndarray
    nan: np.ndarray

    def meet(self, some: np.ndarray, others: np.ndarray, but: int) -> np.ndarray:
        """Return which of some leaves and which others have rows that differ in one feature at most, bool of shape (n, m)."""
        low, high = (
            np.maximum(self.low[some][:, None], self.low[others]),
            np.minimum(self.high[some][:, None], self.high[others]),
        )
        together = (low < high) | (self.nan[some][:, None] & self.nan[others])
        together[:, :, but] = True
        found: np.ndarray = together.all(axis=2)
        return found


@dataclass(frozen=True, eq=False)
class _Pairing:
    """The leaves on both sides of a split in a feature with a direction: rows pass from `below` to `above` as it moves on."""

    below: np.ndarray
    above: np.ndarray
    feature: int


def has_direction(forest: Forest, tree: int, directions: np.ndarray) -> bool:
    """Return whether a tree has a split in a feature with a direction."""
    return bool(directions[forest.features[forest.starts[tree] : forest.starts[tree + 1]]].any())


def ranks_of(values: np.ndarray) -> np.ndarray:
    """Return the place of each leaf in the order of the leaves' values, int64."""
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


def step_signs(forest: Forest, tree: int, ranks: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the signs of the steps of a tree, int8 of shape (n_leaves - 1,): step k is 1 for the leaves of a rank above k.

    `tree`: its place among the trees of the forest.
    `ranks`: of shape (n_leaves,), int64.
    `directions`: of shape (n_features,), int8.
    Raises InputError if a split in a feature with a direction takes zeros for missing values: then a value between
        others has its own way.
    """
    features = np.unique(forest.features[forest.starts[tree] : forest.starts[tree + 1]])
    n, m = len(ranks), len(features)
    regions = _Regions(np.full((n, m), -np.inf), np.full((n, m), np.inf), np.ones((n, m), dtype=bool))
    signs = np.ones(n - 1, dtype=np.int8)
    for pairing in _walk(forest, int(forest.starts[tree]), features, directions, regions):
        below, above = pairing.below, pairing.above
        wrong = regions.meet(below, above, pairing.feature) & (ranks[below][:, None] > ranks[above])
        for i, j in np.argwhere(wrong):
            signs[ranks[above[j]] : ranks[below[i]]] = ZERO
    return signs


def _walk(
    forest: Forest, root: int, features: np.ndarray, directions: np.ndarray, regions: _Regions
) -> Iterator[_Pairing]:
    """Fill in the regions, and yield the pairings once those are there."""
    pairings: list[_Pairing] = []

    def leaves_below(place: int) -> list[int]:
        if place < 0:
            return [-1 - place]
        left, right = leaves_below(int(forest.left[place])), leaves_below(int(forest.right[place]))
        feature, edge = int(forest.features[place]), float(forest.thresholds[place])
        k = int(np.searchsorted(features, feature))
        regions.high[left, k] = np.minimum(regions.high[left, k], edge)
        regions.low[right, k] = np.maximum(regions.low[right, k], edge)
        kind = forest.missing[place]
        nan_left = bool(forest.default_left[place]) if kind == NAN_IS_MISSING else edge >= 0.0
        regions.nan[right if nan_left else left, k] = False
        if kind == ZEROS_ARE_MISSING:  # zeros may be on either side
            if directions[feature]:
                raise InputError(
                    f"a split in feature {feature} (from 0) takes zeros for missing values: it has no direction"
                )
            regions.low[[*left, *right], k], regions.high[[*left, *right], k] = -np.inf, np.inf
            regions.nan[[*left, *right], k] = True
        if directions[feature]:
            sides = np.array(left), np.array(right)
            pairings.append(_Pairing(*(sides if directions[feature] > 0 else sides[::-1]), k))
        return left + right

    leaves_below(root)
    yield from pairings
