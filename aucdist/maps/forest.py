"""Read the trees of LightGBM's text format into arrays that find the leaves of rows without LightGBM.

The text may be forged, so its consistency is checked before any row is read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from aucdist.errors import InputError
from aucdist.kernels.codes import leaf_codes

CATEGORIES, DEFAULT_LEFT, MISSING_SHIFT = 1, 2, 2
"""Bits of LightGBM's `decision_type`: a split by categories; where missing values go; from this bit on, which those are."""
KINDS_OF_MISSING = 3
ZEROS_ARE_MISSING, NAN_IS_MISSING = 1, 2
"""Values of `Forest.missing`."""
CHUNK_VALUES = 2**20
"""The number of values of sparse rows that are converted to dense rows at a time."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Splits of several trees, one after the other; a tree begins with its root.

    `starts`, of shape (n_trees + 1,), int64: tree t has the splits ``starts[t]`` to ``starts[t + 1] - 1``, at least
        one.
    `features`: of shape (n_splits,), int64.
    `thresholds`, of shape (n_splits,), float64: rows whose value is at most this go to the left.
    `missing`, of shape (n_splits,), uint8: which values are missing: 0 none, and NaN counts as 0; 1 zeros, and NaN; 2
        NaN.
    `default_left`, of shape (n_splits,), bool: whether rows with a missing value go to the left.
    `left` and `right`, of shape (n_splits,), int64: the next split, which is a later one; -1 - k is the leaf k of the
        tree.
    """

    starts: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    missing: np.ndarray
    default_left: np.ndarray
    left: np.ndarray
    right: np.ndarray

    def codes(self, X: np.ndarray | sp.csr_matrix) -> np.ndarray:
        """Return the leaf of each row in each tree, uint8 of shape (n_samples, n_trees).

        `X`: of shape (n_samples, n_features), float32 or float64.
        """
        leaves = np.empty((X.shape[0], len(self.starts) - 1), dtype=np.uint8)
        if isinstance(X, np.ndarray):
            self._write_codes(X, self.features, leaves)
            return leaves
        columns, features = np.unique(self.features, return_inverse=True)
        step = max(1, CHUNK_VALUES // max(len(columns), 1))
        for i in range(0, len(leaves), step):
            self._write_codes(X[i : i + step][:, columns].toarray(), features, leaves[i : i + step])
        return leaves

    def _write_codes(self, X: np.ndarray, features: np.ndarray, out: np.ndarray) -> None:
        splits = (features, self.thresholds, self.missing, self.default_left, self.left, self.right)
        leaf_codes(np.ascontiguousarray(X), self.starts, splits, out)


def leaf_counts(text: str) -> tuple[int, ...]:
    """Return the number of leaves of each tree of a model.

    Raises InputError if the text is none of LightGBM's.
    """
    return tuple(_integer(tree, "num_leaves") for tree in _trees(text))


def leaf_values(text: str, used: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Return LightGBM's own values of the leaves of some trees.

    Raises InputError if the text is none of LightGBM's, or a value is not finite.
    """
    trees = _trees(text)
    tree_values = tuple(_numbers(trees[k], "leaf_value", _integer(trees[k], "num_leaves"), np.float64) for k in used)
    if not all(np.isfinite(values).all() for values in tree_values):
        raise InputError("the value of a leaf is not finite")
    return tree_values


def read_forest(text: str, used: Sequence[int], n_features: int) -> Forest:
    """Return some trees of a model.

    `text`: as LightGBM 3 and 4 write it.
    `used`: numbers of trees that have a split.
    Raises InputError if the text is none of LightGBM's, has splits by categories or linear leaves, or its parts do not
        fit together.
    """
    all_trees = _trees(text)
    parts: list[tuple[np.ndarray, ...]] = []
    for number in used:
        if not 0 <= number < len(all_trees):
            raise InputError(f"it uses tree {number}, but the model has only {len(all_trees)} trees")
        tree = all_trees[number]
        n = _integer(tree, "num_leaves") - 1
        features, decisions, left, right = (
            _numbers(tree, key, n, np.int64) for key in ("split_feature", "decision_type", "left_child", "right_child")
        )
        thresholds = _numbers(tree, "threshold", n, np.float64)
        if (decisions & CATEGORIES).any() or _integer(tree, "num_cat") or tree.get("is_linear", "0") != "0":
            raise InputError("trees with categorical splits or linear leaves are not supported")
        # children follow their parents, so every walk ends; each split and each leaf has exactly one parent
        children, later = np.concatenate((left, right)), np.tile(np.arange(n), 2)
        if (
            n < 1
            or not np.array_equal(np.sort(children), np.delete(np.arange(-n - 1, n), n + 1))
            or (children[children > 0] <= later[children > 0]).any()
            or ((features < 0) | (features >= n_features)).any()
            or ((decisions < 0) | (decisions >> MISSING_SHIFT >= KINDS_OF_MISSING)).any()
            or np.isnan(thresholds).any()
        ):
            raise InputError("the splits of a tree do not fit together")
        parts.append((features, thresholds, decisions, left, right))
    starts = np.cumsum([0, *(len(part[0]) for part in parts)])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 5
    features, thresholds, decisions, left, right = columns
    shift = np.repeat(starts[:-1], np.diff(starts))
    left, right = (np.where(child < 0, child, child + shift) for child in (left, right))
    return Forest(
        starts.astype(np.int64), features, thresholds.astype(np.float64), (decisions >> MISSING_SHIFT).astype(np.uint8),
        decisions & DEFAULT_LEFT != 0, left, right,
    )  # fmt: skip


def _trees(text: str) -> list[dict[str, str]]:
    """Return the lines ``key=value`` of each tree."""
    head, *pieces = re.split(r"^Tree=(\d+)\n", text.partition("\nend of trees")[0], flags=re.MULTILINE)
    numbers = [int(number) for number in pieces[::2]]
    if not head.startswith("tree\n") or numbers != list(range(len(numbers))):
        raise InputError("the trees are not in the text format of LightGBM")
    return [dict(line.split("=", 1) for line in body.splitlines() if "=" in line) for body in pieces[1::2]]


def _integer(tree: dict[str, str], key: str) -> int:
    try:
        return int(tree[key])
    except (KeyError, ValueError):
        raise InputError(f"a tree has no number for {key}") from None


def _numbers(tree: dict[str, str], key: str, n: int, dtype: type) -> np.ndarray:
    try:
        numbers: np.ndarray = np.array(tree[key].split(), dtype=dtype)
    except (KeyError, ValueError, OverflowError):
        raise InputError(f"a tree has no numbers for {key}") from None
    if len(numbers) != n:
        raise InputError(f"a tree must have {n} numbers for {key}; got {len(numbers)}")
    return numbers
