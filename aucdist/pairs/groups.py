"""The pairs of rows that have groups or grades, in the form that the solvers of pairs read.

**Groups.** A pair is a positive and a negative row of one group. Groups are numbered. A group without both classes has
no pair and no number.

**Grades.** With grades v_0 < v_1 < ... a pair is any two rows of a group with different grades. Its weight is their
difference, or 1. Both are sums of two-class problems, one for each grade v_t above the lowest. If the weight of a pair
is the difference, rows from v_t on are positive, all lower rows are negative, and a pair of this problem has the weight
v_t - v_(t-1). If all pairs have the weight 1, rows of exactly v_t are positive, all lower rows are negative, and the
others are absent. Each group is therefore divided into one for each v_t. A row is in several of them, and everything
else is as with two classes. As in Joachims, "Training linear SVMs in linear time" (KDD 2006), a sum over pairs of r
grades costs r - 1 sums over sorted scores. A row is scored once.

**Weights of groups.** With ``pairs``, the mean is over all pairs, so a group counts in proportion to its pairs. With
``groups``, each group with pairs counts the same, as if the weight of its pairs was 1 / (their number).
"""

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, concatenate_columns
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.pairs.kernels import arrange
from aucdist.parameters import frozen

GROUP_WEIGHTS = ("pairs", "groups")
GRADE_WEIGHTS = ("difference", "one")

MAX_GRADES = 64
"""The largest number of grades. The pairs of G grades are G sums over the rows, and labels with more values are
measurements."""


@frozen
class PairGroups:
    """The groups and grades that define the pairs, in the form that is sent to the blocks.

    Attributes
    ----------
    keys : ndarray of shape (n_keys,), int64
        The groups that have pairs, ascending; a single 0 if rows have no group.
    number : ndarray of shape (n_keys, n_grade_steps), int32
        The number of each group divided by grades; -1 if it has no pair. There is one step for two classes.
    factor : ndarray of shape (n_groups,), float64
        The factor of the weight of each pair in the group.
    weights : ndarray of shape (2, n_groups), float64
        The total weights of the positive and the negative rows of each group.
    counts : ndarray of shape (2, n_groups), int64
        The numbers of positive and negative rows of each group.
    grades : ndarray of shape (n_grade_steps + 1,), float64
        The grades, ascending; empty for two classes.
    equal_weights : bool
        Whether only rows of exactly a grade are positive at its step: for pairs of weight one.
    grouped : bool
        Whether rows have groups.
    equal_group_weights : bool
        Whether each group with pairs counts the same.
    pair_weight : float
        The total weight of all pairs.
    n_without_pairs : int
        How many groups of rows have no pair.
    """

    keys: ndarray
    number: ndarray
    factor: ndarray
    weights: ndarray
    counts: ndarray
    grades: ndarray
    equal_weights: bool
    grouped: bool
    equal_group_weights: bool
    pair_weight: float
    n_without_pairs: int

    @property
    def n_groups(self) -> int:
        """The number of groups, divided by grades, that have pairs."""
        return len(self.factor)

    @property
    def n_pos(self) -> int:
        """The number of positive rows in pairs. With grades, a row counts once for each of its groups."""
        return int(self.counts[0].sum())

    @property
    def n_neg(self) -> int:
        """The number of negative rows in pairs, which count like the positive ones."""
        return int(self.counts[1].sum())

    @property
    def n_grade_steps(self) -> int:
        """The largest number of groups that a row may be in."""
        return self.number.shape[1]

    @property
    def n_groups_with_pairs(self) -> int | None:
        """The number of groups with pairs from which a sample of whole groups can be drawn. None if all rows are one group."""
        return len(self.keys) if self.grouped else None

    def over(self, blocks: Blocks) -> "PairGroups | None":
        """Return the pairs of other rows by the same rules."""
        group_weight = "groups" if self.equal_group_weights else None
        return pair_groups(blocks, group_weight, "one" if self.equal_weights else None, weighted=not self.grouped)

    def keys_of(self, block: Block, label: int | None = None) -> tuple[ndarray, ndarray]:
        """Return the positions of the rows whose group has pairs, and the positions of their groups in `keys`, both int64.

        Parameters
        ----------
        block : Block
            The rows.
        label : int, optional
            Return only rows with this label, -1 or +1. By default, return all rows.

        Returns
        -------
        positions, keys : ndarray of int64
        """
        counts = block.weights() > 0  # rows outside a fold have weight 0
        positions = np.flatnonzero(counts if label is None else counts & (block.y == label))
        if not self.grouped:
            return positions, np.zeros(len(positions), dtype=np.int64)
        assert block.group is not None
        groups = block.group[positions]
        key = np.minimum(np.searchsorted(self.keys, groups), len(self.keys) - 1)
        has_pairs = self.keys[key] == groups
        return positions[has_pairs], key[has_pairs]

    def rows_of(self, block: Block, label: int) -> tuple[ndarray, ndarray]:
        """Return the rows of one class that are in pairs, sorted by group. With grades, a row occurs once for each of its groups.

        Parameters
        ----------
        label : int
            -1 or +1.

        Returns
        -------
        positions : ndarray of int64
        numbers : ndarray of int32
            Ascending: the number of the group.
        """
        row_positions, key = self.keys_of(block, label if block.grade is None else None)
        positions, numbers = [], []
        for t in range(self.n_grade_steps):
            in_class = labels_at_grade_step(block, self.grades, self.equal_weights, t)[row_positions] == label
            code = self.number[key[in_class], t]
            positions.append(row_positions[in_class][code >= 0])
            numbers.append(code[code >= 0])
        all_numbers, all_positions = np.concatenate(numbers), np.concatenate(positions)
        starts = np.concatenate(([0], np.cumsum(np.bincount(all_numbers, minlength=self.n_groups))))
        order = np.empty(len(all_numbers), dtype=np.int64)
        arrange(np.arange(len(order)), all_numbers, starts, np.empty(self.n_groups, dtype=np.int64), order)
        return all_positions[order], all_numbers[order]


def smaller_class(rows: Blocks | PairGroups) -> int:
    """Return the label of the smaller class, whose rows are the anchors. With groups, only rows in pairs count."""
    return 1 if rows.n_pos <= rows.n_neg else -1


def rows_in_pairs(block: Block, label: int, groups: PairGroups | None) -> tuple[ndarray, ndarray]:
    """Return what `PairGroups.rows_of` returns. Without groups, all rows of a class are in pairs and belong to group 0."""
    if groups is not None:
        return groups.rows_of(block, label)
    rows = np.flatnonzero((block.y == label) & (block.weights() > 0))  # rows outside a fold have weight 0
    return rows, np.zeros(len(rows), dtype=np.int32)


def labels_at_grade_step(block: Block, grades: ndarray, equal_weights: bool, t: int) -> ndarray:
    """Return the label of each row in the two-class problem of a grade: +1, -1, or 0 if the row is in no pair there.

    Returns
    -------
    ndarray of shape (n_samples,), int8
    """
    if block.grade is None:
        return block.y
    level = np.searchsorted(grades, block.grade)
    positive = level == t + 1 if equal_weights else level > t
    return np.where(positive, 1, np.where(level <= t, -1, 0)).astype(np.int8)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def find_grades(block: Block) -> Summary:
    """Return the grades of the rows with a weight above 0."""
    assert block.grade is not None
    return [np.unique(block.grade[block.weights() > 0])]


def weigh_groups(block: Block, grades: ndarray, equal_weights: bool) -> Summary:
    """Return the groups of the block's rows, with the weight and the number of rows of each class at each grade."""
    weight = block.weights()
    counted = weight > 0
    groups = np.zeros(block.n_samples, dtype=np.int64) if block.group is None else block.group
    keys, at = np.unique(groups[counted], return_inverse=True)
    sums = np.zeros((len(keys), max(1, len(grades) - 1), 4))
    for t in range(sums.shape[1]):
        label = labels_at_grade_step(block, grades, equal_weights, t)[counted]
        for c, class_label in enumerate((1, -1)):
            in_class = label == class_label
            sums[:, t, c] = np.bincount(at[in_class], weight[counted][in_class], minlength=len(keys))
            sums[:, t, 2 + c] = np.bincount(at[in_class], minlength=len(keys))
    return [(keys, sums)]


# ---- client: runs the steps -------------------------------------------------------------------------------------------


def pair_groups(
    blocks: Blocks, group_weight: str | None = None, grade_weight: str | None = None, *, weighted: bool = False
) -> PairGroups | None:
    """Return the groups and grades that define the pairs, or None if every positive and every negative row are a pair.

    It takes one reduction, or two with grades.

    Parameters
    ----------
    blocks : Blocks
        The rows. Their memory is not changed.
    group_weight : {"pairs", "groups"} or None
        How groups are weighted; None means ``pairs``.
    grade_weight : {"difference", "one"} or None
        How pairs of grades are weighted; None means ``difference``.
    weighted : bool, default=False
        Whether to return a single group for rows that have only weights, for solvers that need the weight of each pair.

    Raises
    ------
    InputError
        If no group has a pair, or there are more than `MAX_GRADES` grades.
    """
    if not (blocks.has_groups or blocks.has_grades or (weighted and blocks.has_weights)):
        return None
    grades, equal_weights = np.zeros(0), grade_weight == "one"
    if blocks.has_grades:
        grades = np.unique(np.concatenate(blocks.sum(find_grades)))
        if len(grades) > MAX_GRADES:
            raise InputError(
                f"there are {len(grades)} different grades, and at most {MAX_GRADES} are possible: round them to fewer values"
            )
    keys_of_blocks, sums_of_blocks = concatenate_columns(blocks.sum(weigh_groups, grades, equal_weights))
    keys, at = np.unique(keys_of_blocks, return_inverse=True)
    sums = np.zeros((len(keys), *sums_of_blocks.shape[1:]))
    np.add.at(sums, at, sums_of_blocks)
    pairs = sums[:, :, 0] * sums[:, :, 1]
    step = np.diff(grades) if len(grades) and not equal_weights else np.ones(pairs.shape[1])
    pairs_of_group = (pairs * step).sum(axis=1)
    if not (pairs_of_group > 0).any():
        raise InputError(
            f"none of the {len(keys)} groups has rows of two classes, so there is no pair: name another column of groups, "
            "or leave the groups out"
        )
    number = np.full(pairs.shape, -1, dtype=np.int32)
    number[pairs > 0] = np.arange(np.count_nonzero(pairs > 0))
    has_pairs = pairs_of_group > 0
    factor = np.broadcast_to(step, pairs.shape)
    if group_weight == "groups":
        factor = factor / np.where(has_pairs, pairs_of_group, 1.0)[:, np.newaxis]
    pair_weight = float(has_pairs.sum()) if group_weight == "groups" else float(pairs_of_group.sum())
    weights, counts = np.split(np.ascontiguousarray(sums[pairs > 0].T), 2)
    return PairGroups(
        keys[has_pairs], number[has_pairs], np.ascontiguousarray(factor[pairs > 0]), weights, counts.astype(np.int64), grades,
        equal_weights, blocks.has_groups, group_weight == "groups", pair_weight, int(len(keys) - has_pairs.sum()),
    )  # fmt: skip
