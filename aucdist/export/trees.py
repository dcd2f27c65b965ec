"""The trees of a model of leaves, with the weights of the leaves in place of LightGBM's own values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aucdist.errors import InputError
from aucdist.kernels.codes import expand

if TYPE_CHECKING:
    from aucdist.maps.forest import Forest
    from aucdist.maps.leaves import LeafMap


ZEROS = 1
"""In `aucdist.maps.forest.Forest.missing`: zeros are missing values."""


@dataclass(frozen=True)
class Leaf:
    """The end of a path.

    `value`: what it adds to the score.
    """

    value: float


@dataclass(frozen=True)
class TreeSplit:
    """A question to a row.

    `at_most`: rows whose value is at most this go to `then`, the others to `otherwise`.
    `missing_to_then`: where rows without a value go.
    """

    feature: int
    at_most: float
    missing_to_then: bool
    then: "Node"
    otherwise: "Node"


Node = Leaf | TreeSplit


def forest(fitted: "LeafMap", w: np.ndarray, in_units: Callable[[np.ndarray, int], np.ndarray]) -> tuple[Node, ...]:
    """Return the trees that have more than one leaf.

    `w`, of shape (n_leaves,), float64: the weights of all leaves, and of steps between leaves.
    `in_units`: from an array of edges and a feature to the edges in the units of the feature's column.
    Raises InputError if a split takes zeros for missing values.
    """
    table = expand(fitted.code_basis, np.ascontiguousarray(w, dtype=np.float64))
    starts = np.cumsum([0, *(fitted.n_leaves[k] for k in fitted.used)])
    return tuple(
        _node(fitted.forest, root, table[starts[k] : starts[k + 1]], in_units)
        for k, root in enumerate(fitted.forest.starts[:-1].tolist())
    )


def _node(found: "Forest", place: int, values: np.ndarray, in_units: Callable[[np.ndarray, int], np.ndarray]) -> Node:
    if place < 0:
        return Leaf(float(values[-1 - place]))
    feature, edge = int(found.features[place]), found.thresholds[place]
    if found.missing[place] == ZEROS:
        raise InputError("a tree takes zeros for missing values, which cannot be exported")
    # LightGBM takes a missing value for 0 where the training rows of the feature had none.
    to_then = bool(found.default_left[place] if found.missing[place] else edge >= 0.0)
    (at_most,) = in_units(np.array([edge]), feature)
    then, otherwise = (_node(found, int(child[place]), values, in_units) for child in (found.left, found.right))
    return TreeSplit(feature, float(at_most), to_then, then, otherwise)


def of_shape(feature: int, edges: np.ndarray, values: np.ndarray) -> Node:
    """Return a balanced tree that gives the value of the bin of a feature."""
    return of_bins(feature, edges, [Leaf(float(value)) for value in values])


def of_bins(feature: int, edges: np.ndarray, ends: list[Node]) -> Node:
    """Return a balanced tree that goes on at the end of a feature's bin; missing values go to the last."""
    if len(ends) == 1:
        return ends[0]
    middle = (len(ends) - 1) // 2
    return TreeSplit(
        feature, float(edges[middle]), False,
        of_bins(feature, edges[:middle], ends[: middle + 1]), of_bins(feature, edges[middle + 1 :], ends[middle + 1 :]),
    )  # fmt: skip


def with_missing(feature: int, missing: Node, there: Node) -> Node:
    """Return a tree that sends rows without a value to one node, and all others to another."""
    return TreeSplit(feature, float("inf"), False, there, missing)
