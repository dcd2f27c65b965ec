"""Leaves of a LightGBM model as features. A linear model fits the values of the leaves again, with a certificate.

LightGBM grows the trees. To score rows, LightGBM is not needed: this module reads the trees from LightGBM's text format into
arrays. The text may be forged, so its consistency is checked before any row is read.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.extras import load_optional
from aucdist.kernels.codes import BinRows, CodeBasis, leaf_codes
from aucdist.maps.base import Expander, FittedMap
from aucdist.maps.binning import CodeFunctions, joined, sample_by_class, with_column
from aucdist.parameters import NOT_NEGATIVE, SWITCH, at_most_1, between, frozen, keyword_parameters
from aucdist.solvers.signs import FREE, ZERO

CATEGORIES, DEFAULT_LEFT, MISSING_SHIFT = 1, 2, 2
"""Bits of LightGBM's `decision_type`: a split by categories; where missing values go; from this bit on, which those are."""
KINDS_OF_MISSING = 3
ZEROS_ARE_MISSING, NAN_IS_MISSING = 1, 2
"""Values of `Forest.missing`."""
CHUNK_VALUES = 2**20
"""The number of values of sparse rows that are converted to dense rows at a time."""


@frozen
class Forest:
    """The splits of several trees, one tree after the other. A tree begins with its root.

    Parameters
    ----------
    starts : ndarray of shape (n_trees + 1,), int64
        Tree t has the splits ``starts[t]`` to ``starts[t + 1] - 1``, at least one.
    features : ndarray of shape (n_splits,), int64
        The feature of each split.
    thresholds : ndarray of shape (n_splits,), float64
        Rows whose value is at most this go to the left.
    missing : ndarray of shape (n_splits,), uint8
        Which values are missing. 0: none, and NaN counts as 0. 1: zeros and NaN. 2: NaN.
    default_left : ndarray of shape (n_splits,), bool
        Whether rows with a missing value go to the left.
    left, right : ndarray of shape (n_splits,), int64
        The next split, which comes later in the arrays, or -1 - k for leaf k of the tree.
    """

    starts: ndarray
    features: ndarray
    thresholds: ndarray
    missing: ndarray
    default_left: ndarray
    left: ndarray
    right: ndarray

    def codes(self, X: ndarray | sp.csr_matrix) -> ndarray:
        """Return the leaf of each row in each tree, uint8 of shape (n_samples, n_trees).

        Parameters
        ----------
        X : ndarray or sp.csr_matrix of shape (n_samples, n_features), float32 or float64
            The rows.
        """
        leaves = np.empty((X.shape[0], len(self.starts) - 1), dtype=np.uint8)
        if isinstance(X, ndarray):
            self._write_codes(X, self.features, leaves)
            return leaves
        columns, features = np.unique(self.features, return_inverse=True)
        step = max(1, CHUNK_VALUES // max(len(columns), 1))
        for i in range(0, len(leaves), step):
            self._write_codes(X[i : i + step][:, columns].toarray(), features, leaves[i : i + step])
        return leaves

    def _write_codes(self, X: ndarray, features: ndarray, out: ndarray) -> None:
        splits = (features, self.thresholds, self.missing, self.default_left, self.left, self.right)
        leaf_codes(np.ascontiguousarray(X), self.starts, splits, out)


def leaf_counts(text: str) -> tuple[int, ...]:
    """Return the number of leaves of each tree of a model.

    Raises
    ------
    InputError
        If the text was not written by LightGBM.
    """
    return tuple(_integer(tree, "num_leaves") for tree in _trees(text))


def leaf_values(text: str, used: Sequence[int]) -> tuple[ndarray, ...]:
    """Return LightGBM's own values of the leaves of some trees.

    Raises
    ------
    InputError
        If the text was not written by LightGBM, or a value is not finite.
    """
    trees = _trees(text)
    tree_values = tuple(
        _tree_numbers(trees[k], "leaf_value", _integer(trees[k], "num_leaves"), np.float64) for k in used
    )
    if not all(np.isfinite(values).all() for values in tree_values):
        raise InputError("the value of a leaf is not finite")
    return tree_values


def read_forest(text: str, used: Sequence[int], n_features: int) -> Forest:
    """Return some trees of a model.

    Parameters
    ----------
    text : str
        As LightGBM 3 and 4 write it.
    used : sequence of int
        The numbers of the trees to return, which must have a split.
    n_features : int
        The number of features.

    Raises
    ------
    InputError
        If the text was not written by LightGBM, has splits by categories or linear leaves, or its parts do not fit together.
    """
    all_trees = _trees(text)
    parts: list[tuple[ndarray, ...]] = []
    for number in used:
        if not 0 <= number < len(all_trees):
            raise InputError(f"it uses tree {number}, but the model has only {len(all_trees)} trees")
        tree = all_trees[number]
        n = _integer(tree, "num_leaves") - 1
        features, decisions, left, right = (
            _tree_numbers(tree, key, n, np.int64)
            for key in ("split_feature", "decision_type", "left_child", "right_child")
        )
        thresholds = _tree_numbers(tree, "threshold", n, np.float64)
        if (decisions & CATEGORIES).any() or _integer(tree, "num_cat") or tree.get("is_linear", "0") != "0":
            raise InputError("trees with categorical splits or linear leaves are not supported")
        # Children come after their parents, so every path ends. Each split and each leaf has exactly one parent.
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
    return int(_tree_numbers(tree, key, 1, np.int64)[0])


def _tree_numbers(tree: dict[str, str], key: str, n: int, dtype: type) -> ndarray:
    try:
        numbers: ndarray = np.array(tree[key].split(), dtype=dtype)
    except (KeyError, ValueError, OverflowError):
        raise InputError(f"a tree has no numbers for {key}") from None
    if len(numbers) != n:
        raise InputError(f"a tree must have {n} numbers for {key}; got {len(numbers)}")
    return numbers


MAX_ROWS = 2**18
"""The approximate largest number of rows of each class on which trees are grown. These rows are sent to the client."""
MAX_LEAVES = 255
MAX_ROWS_OF_QUERY = 10_000
"""The largest number of rows of a query that LightGBM's rankers accept."""
MAX_LABELS = 31
"""The largest number of different labels that LightGBM's rankers accept."""
SPREAD = 10.0
"""A leaf's indicator has the value ``sqrt(SPREAD / trees)``, and a step between n leaves that times ``1 / sqrt(n - 1)``, as
between bins. On 6000 made rows with two directions twice the variance was worse by .004 in AUC at lam 1e-1, by .005 at 1e-2."""


@frozen
class LeafMap(FittedMap):
    """A forest whose leaves are codes.

    Parameters
    ----------
    n_features_in : int
        The number of features.
    model : str
        The model in LightGBM's text format.
    n_leaves : tuple of int
        The number of leaves of each tree.
    used : tuple of int
        The trees that have more than one leaf.
    directions : ndarray of shape (n_features_in,), int8, or None
        The direction of each feature, +1, -1 or 0, with which the trees were grown. None if there are no directions. A tree
        with a split in a feature with a direction has steps between its leaves, in the order of LightGBM's values, instead of
        an indicator of each leaf.
    score_scale : float
        The factor of LightGBM's score, which is then an additional column at the end; 0 for no such column.
    """

    n_features_in: int
    model: str
    n_leaves: tuple[int, ...]
    used: tuple[int, ...]
    directions: ndarray | None = None
    score_scale: float = 0.0

    @cached_property
    def code_basis(self) -> CodeBasis:
        """The basis functions for the kernels: an indicator of each leaf, or steps between leaves, and LightGBM's score."""
        basis = joined(self.parts)
        if self.score_scale == 0.0:
            return basis
        return with_column(basis, self.score_scale * np.concatenate(leaf_values(self.model, self.used)))

    @cached_property
    def parts(self) -> list[CodeFunctions]:
        """The basis functions of each tree."""
        value, functions = np.sqrt(SPREAD / max(len(self.used), 1)), []
        for tree, ranks in zip(self.used, self.ranks, strict=True):
            n = self.n_leaves[tree]
            if ranks is None:
                functions.append(CodeFunctions(value * np.eye(n), 0, tuple(f" leaf {k}" for k in range(n))))
            else:
                steps = np.where(ranks[:, None] > np.arange(n - 1), value / np.sqrt(n - 1), 0.0)
                functions.append(CodeFunctions(steps, 0, tuple(f" above {k + 1} leaves" for k in range(n - 1))))
        return functions

    @cached_property
    def ranks(self) -> list[ndarray | None]:
        """For each tree with steps, the ranks of its leaves by LightGBM's values. None for other trees."""
        if self.directions is None:
            return [None] * len(self.used)
        forest = self.forest
        ranks: list[ndarray | None] = []
        for k, values in enumerate(leaf_values(self.model, self.used)):
            split = self.directions[forest.features[forest.starts[k] : forest.starts[k + 1]]]
            ranks.append(np.argsort(np.argsort(values, kind="stable")) if split.any() else None)
        return ranks

    def signs(self, directions: ndarray) -> ndarray:
        """Return the signs of weights that make scores rise or fall in features, int8 of shape (n_features_out,).

        The weights of steps between leaves are not negative, and are 0 if a step would violate a direction. The weights of the
        leaves of trees without a split in a feature with a direction may have any sign.

        Raises
        ------
        InputError
            If the trees were grown with other directions.
        """
        if self.directions is None or not np.array_equal(directions, self.directions):
            raise InputError("the trees were grown with other monotonic constraints: fit the map again")
        tree_signs = [np.zeros(0, dtype=np.int8)]
        for k, ranks in enumerate(self.ranks):
            free = np.full(self.n_leaves[self.used[k]], FREE, dtype=np.int8)
            tree_signs.append(free if ranks is None else step_signs(self.forest, k, ranks, self.directions))
        return np.concatenate(tree_signs)

    @cached_property
    def forest(self) -> Forest:
        """The used trees."""
        return read_forest(self.model, self.used, self.n_features_in)

    @property
    def n_features_out(self) -> int:
        """The number of leaves and of steps between leaves, plus one if LightGBM's score is a column."""
        return int(self.code_basis.n_features)

    def map_block(self, block: Block) -> Block:
        """Return the block with a code for each tree."""
        self.check_width(block)
        return replace(block, rows=BinRows(self.forest.codes(block.X), self.code_basis))

    def check(self) -> None:
        """Raise an InputError if the parts do not fit together."""
        sizes = leaf_counts(self.model)
        if tuple(self.n_leaves) != sizes or not all(1 <= n <= MAX_LEAVES for n in sizes):
            raise InputError("the numbers of leaves do not match the trees")
        if not all(0 <= k < len(sizes) for k in self.used):
            raise InputError("it uses a tree that the model does not have")
        read_forest(self.model, self.used, self.n_features_in)
        if self.score_scale != 0.0:
            leaf_values(self.model, self.used)
            if not (0.0 < self.score_scale < np.inf) or self.directions is not None or not self.used:
                raise InputError("the scale of LightGBM's score does not fit the trees")
        if (directions := self.directions) is None:
            return
        if (
            directions.dtype != np.int8
            or directions.shape != (self.n_features_in,)
            or not np.isin(directions, (-1, 0, 1)).all()
        ):
            raise InputError("there is not one direction for each feature")
        leaf_values(self.model, self.used)

    def names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each leaf, or step between leaves, and for LightGBM's score."""
        names = [f"tree {tree}{tail}" for tree, part in zip(self.used, self.parts, strict=True) for tail in part.names]
        return [*names, "score of the trees"] if self.score_scale else names


@keyword_parameters(
    trees=between(1, 10_000),
    leaves=between(2, MAX_LEAVES),
    min_rows=between(1, 2**31 - 1),
    random_state=between(0, 2**31 - 1),
    learning_rate=at_most_1(),
    row_fraction=at_most_1(),
    feature_fraction=at_most_1(),
    forest_score=NOT_NEGATIVE,
    within_groups=SWITCH,
)
class LeafExpander(Expander):
    """Expand rows into the leaves of trees that LightGBM grows, one indicator for each.

    A linear model of these indicators is a forest whose leaf values are fitted again, all at once, after He et al., "Practical
    lessons from predicting clicks on ads at Facebook" (ADKDD 2014). Its certificate is about the weights for the given trees,
    and not about the trees. Fitting needs the extra ``aucdist[trees]``, and scoring does not.

    The trees are grown for the labels of all rows: by log-loss, or by squared loss where the labels are grades. With
    `within_groups` they are grown for the order of the rows of each group, by LightGBM's ``rank_xendcg`` (Bruch, "An alternative
    cross entropy loss for learning-to-rank", WWW 2021), so that no split only tells groups apart.

    With `forest_score`, LightGBM's own score of a row is an additional column. The larger `forest_score` is, the less `lam`
    limits the weight of this column. The model then equals LightGBM, except where other weights of the leaves lower the loss.
    If few training rows matter, as at the top of the list, leaves without this column are often worse than LightGBM.

    Parameters
    ----------
    trees : int, default=100
        The number of trees (LightGBM's ``n_estimators``).
    leaves : int, default=31
        The largest number of leaves of a tree, at most 255 (``num_leaves``).
    learning_rate : float, default=0.1
        The learning rate of LightGBM.
    min_rows : int, default=20
        The minimum number of rows in a leaf (``min_data_in_leaf``).
    row_fraction, feature_fraction : float, default=1.0
        The share of the rows, and of the features, that is drawn for each tree (``bagging_fraction`` and ``feature_fraction``).
    forest_score : float, default=0.0
        The standard deviation, over the rows that grow the trees, of the column of LightGBM's score; 0 for no such column.
        Not with monotonic constraints.
    within_groups : bool, default=False
        Whether trees are grown for the order within groups; `fit` then needs `groups`.
    random_state : int, default=0
        The seed of LightGBM.
    sparse_output : bool, default=True
        Whether `transform` returns a csr_matrix.

    Attributes
    ----------
    map_ : LeafMap
        The fitted map.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names of X. Defined only if X has column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist.maps import LeafExpander
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> LeafExpander(trees=3, leaves=4).fit(X, y).transform(X[:5]).shape  # three trees of four leaves
    (5, 12)
    """

    trees: int = 100
    leaves: int = 31
    learning_rate: float = 0.1
    min_rows: int = 20
    row_fraction: float = 1.0
    feature_fraction: float = 1.0
    forest_score: float = 0.0
    within_groups: bool = False
    random_state: int = 0
    sparse_output: bool = True
    allows_missing = True

    @property
    def complexity(self) -> tuple[int, int, int]:
        """The key by which leaves come last, and maps with more leaves later."""
        return (3, int(self.trees) * int(self.leaves), 0)

    def check_directions(self) -> None:
        """Accept directions. LightGBM keeps them in the trees, and signs of weights keep them in the leaves."""

    def fit_blocks(self, blocks: Blocks, directions: ndarray | None = None) -> LeafMap:
        """Return the map fitted to blocks of rows: to all rows, or to a sample of rows or of groups.

        Parameters
        ----------
        blocks, directions
            As for `Expander.fit_blocks`.

        Returns
        -------
        LeafMap
        """
        self.check_parameters()
        if self.forest_score and directions is not None:
            raise InputError(
                "leaves with forest_score cannot keep the directions of monotone: leave out forest_score or monotone"
            )
        if self.within_groups and not blocks.has_groups:
            raise InputError(
                "within_groups=True of leaves needs rows with groups: fit(X, y, groups=...) of an estimator"
            )
        lightgbm = load_optional("lightgbm")
        drawn = sample_by_class(blocks, MAX_ROWS, whole_groups=bool(self.within_groups))
        sizes = None
        if self.within_groups:
            assert drawn.group is not None
            counts = np.unique(drawn.group, return_counts=True)[1]
            order, starts = np.argsort(drawn.group, kind="stable"), np.repeat(np.cumsum(counts) - counts, counts)
            # LightGBM calls groups queries. Groups that are too large for it are divided at random into equal parts.
            n_parts = np.repeat(-(-counts // MAX_ROWS_OF_QUERY), counts)
            query = starts + (np.arange(len(order)) - starts) % n_parts
            sizes = np.unique(query, return_counts=True)[1]
            drawn = drawn.take(order[np.argsort(query, kind="stable")])
            levels, labels = np.unique(drawn.y > 0 if drawn.grade is None else drawn.grade, return_inverse=True)
            if len(levels) > MAX_LABELS:
                labels = labels * MAX_LABELS // len(levels)
            objective = "rank_xendcg"
        elif drawn.grade is None:
            objective, labels = "binary", (drawn.y > 0).astype(np.float64)
        else:
            objective, labels = "regression", (drawn.grade - drawn.grade.min()) / np.ptp(drawn.grade)
        options = {
            "objective": objective, "objective_seed": int(self.random_state),
            "num_leaves": int(self.leaves), "learning_rate": float(self.learning_rate),
            "min_data_in_leaf": int(self.min_rows), "feature_fraction": float(self.feature_fraction),
            "bagging_fraction": float(self.row_fraction), "bagging_freq": int(self.row_fraction < 1.0),
            "seed": int(self.random_state), "deterministic": True,
            "force_row_wise": True, "num_threads": 1, "verbosity": -1,
        }  # fmt: skip
        if directions is not None:
            options |= {"monotone_constraints": directions.tolist(), "monotone_constraints_method": "basic"}
        data = lightgbm.Dataset(drawn.X, labels, weight=drawn.weights(), group=sizes)
        trained = lightgbm.train(options, data, int(self.trees))
        text = trained.model_to_string()
        n_leaves = leaf_counts(text)
        used, scale = tuple(k for k, n in enumerate(n_leaves) if n > 1), 0.0
        if self.forest_score and used:
            scale = float(self.forest_score / np.std(trained.predict(drawn.X, raw_score=True, num_threads=1)))
        return LeafMap(blocks.n_features, text, n_leaves, used, directions, scale)


def step_signs(forest: Forest, tree: int, ranks: ndarray, directions: ndarray) -> ndarray:
    """Return the signs of the steps of a tree, int8 of shape (n_leaves - 1,). Step k is 1 for the leaves with a rank above k.

    Parameters
    ----------
    forest : Forest
        The splits of the trees.
    tree : int
        The position of the tree in the forest.
    ranks : ndarray of shape (n_leaves,), int64
        The rank of each leaf in the order of the tree's values.
    directions : ndarray of shape (n_features,), int8
        The monotonic constraint of each feature: +1, -1 or 0.

    Raises
    ------
    InputError
        If a split in a feature with a direction treats zeros as missing values, because zero then does not lie between other
        values.
    """
    first = int(forest.starts[tree])
    features = np.unique(forest.features[first : forest.starts[tree + 1]])
    n, m = len(ranks), len(features)
    # The rows that reach a leaf have, in each feature, values above `low` and up to `high`, and perhaps NaN.
    low, high, nan = np.full((n, m), -np.inf), np.full((n, m), np.inf), np.ones((n, m), dtype=bool)
    # These are the leaves on both sides of a split in a feature with a direction. As the feature moves in this direction, rows
    # pass from the first side to the second.
    pairings: list[tuple[list[int], list[int], int]] = []

    def leaves_below(node: int) -> list[int]:
        """Return the leaves below a node, and narrow the ranges of values that reach the leaves on each side of its split."""
        if node < 0:
            return [-1 - node]
        left, right = leaves_below(int(forest.left[node])), leaves_below(int(forest.right[node]))
        feature, edge = int(forest.features[node]), float(forest.thresholds[node])
        k = int(np.searchsorted(features, feature))
        high[left, k] = np.minimum(high[left, k], edge)
        low[right, k] = np.maximum(low[right, k], edge)
        kind = forest.missing[node]
        nan_left = bool(forest.default_left[node]) if kind == NAN_IS_MISSING else edge >= 0.0
        nan[right if nan_left else left, k] = False
        if kind == ZEROS_ARE_MISSING:  # zeros may go to either side
            if directions[feature]:
                raise InputError(
                    f"a split of feature {feature} (counted from 0) treats zeros as missing: leave it out of `monotone`"
                )
            low[[*left, *right], k], high[[*left, *right], k], nan[[*left, *right], k] = -np.inf, np.inf, True
        if directions[feature]:
            pairings.append((left, right, k) if directions[feature] > 0 else (right, left, k))
        return left + right

    leaves_below(first)
    signs = np.ones(n - 1, dtype=np.int8)
    for below, above, k in pairings:
        # These are the pairs of leaves whose rows may differ in this feature only.
        meet = np.maximum(low[below][:, None], low[above]) < np.minimum(high[below][:, None], high[above])
        meet |= nan[below][:, None] & nan[above]
        meet[:, :, k] = True
        wrong = meet.all(axis=2) & (ranks[below][:, None] > ranks[above])
        for i, j in np.argwhere(wrong):
            signs[ranks[above[j]] : ranks[below[i]]] = ZERO
    return signs
