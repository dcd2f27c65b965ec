"""A loss over all positive-negative pairs of rows in blocks: its value and gradient, and the steps that its solvers share.

The rows of the smaller class are called anchors (`aucdist.pairs.loss`). The client gathers the scores of the anchors and sends
them to all blocks. Rows do not leave their block for a sum over pairs.

The module also has the objective of these solvers, and its exact value for given weights.
"""

from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, without_rows
from aucdist.errors import InputError
from aucdist.kernels.random import hash_ids
from aucdist.kernels.rows import DenseRows, accumulate, project_and_measure
from aucdist.pairs.groups import PairGroups, pair_groups, rows_in_pairs, smaller_class
from aucdist.pairs.loss import HINGE, Anchors, GroupSlices, PairLoss, ScoredRows, group_slices, one_slice, sort_anchors
from aucdist.pairs.penalty import L2, PENALTIES, Penalty
from aucdist.pairs.top_negatives import CountedNegatives, Cutoff, TopNegatives
from aucdist.parameters import frozen
from aucdist.solvers.rounding import Rounding

SEED = 5
"""The seed of the hash of row ids by which anchors are drawn, different from those of splits and samples."""


@frozen
class ClassRows:
    """The rows of one class in a block, and their scores. If the negatives are the smaller class, scores are mirrored.

    Attributes
    ----------
    positions : ndarray of int32, or of int64 in a block of 2**31 rows or more
        The positions of the rows in the block. With grades, a row occurs once for each of its groups.
    weight : ndarray of shape (n_rows,), float64, or None
        The weights of the rows. None if all are 1.
    scores : ndarray of shape (n_rows,), float64
        The scores at the trial point, for which rows were scored last.
    current_scores : ndarray of shape (n_rows,), float64
        The scores at the current point of cutting planes, where the line to the trial point begins.
    """

    positions: ndarray
    weight: ndarray | None
    scores: ndarray
    current_scores: ndarray

    @property
    def weights(self) -> ndarray:
        """The weights of the rows, float64 of shape (n_rows,). The array is read-only."""
        return ones(len(self.positions)) if self.weight is None else self.weight

    def scores_at(self, step: float | None) -> ndarray:
        """Return the scores at a step length along the line from the current point to the trial point.

        None means the trial point.
        """
        if step is None:
            return self.scores
        scores = self.scores - self.current_scores
        scores *= step
        scores += self.current_scores
        return scores

    def moved(self, step: float | None) -> "ClassRows":
        """Return the rows after the current point has moved by this step length towards the trial point. None does not move it.

        Call this before another point is scored.
        """
        current_scores = self.current_scores if step is None else self.scores_at(step)
        return replace(self, scores=current_scores, current_scores=current_scores)


@frozen
class PairMemory:
    """The memory of a block for a loss over pairs.

    Attributes
    ----------
    anchors, larger_class : ClassRows
        The rows of the smaller and of the larger class.
    group_slices : tuple of ndarray
        The positions in `larger_class` of each group's rows (`aucdist.pairs.groups`). Without groups, all rows are one group.
    group_numbers : ndarray of shape (n_anchors,), int32, or None
        The number of each anchor's group; None without groups.
    coefs : ndarray of shape (n_larger,), float64
        The derivative of the loss by the scores of `larger_class`, until the rows are added up.
    drawn : ndarray of int64, or None
        The positions among the anchors of those whose scores are sent; None for all.
    squares : ndarray of shape (n_samples,), float32, or None
        The squared length of each row, once rows were drawn by it (`aucdist.pairs.newton`).
    cells : ndarray of shape (n_anchors,), int32, or None
        If anchors are sent as cells (`aucdist.pairs.cell_cuts`), the cell of each anchor at the point of the last cut.
    cell_weights : ndarray of shape (n_anchors,), float64, or None
        The weight of each anchor in its cell. It is 0 for a negative that does not count. None means that all weights are 1.
    """

    anchors: ClassRows
    larger_class: ClassRows
    group_slices: GroupSlices
    group_numbers: ndarray | None
    coefs: ndarray
    drawn: ndarray | None = None
    squares: ndarray | None = None
    cells: ndarray | None = None
    cell_weights: ndarray | None = None


_ones = np.ones(0)


def ones(n: int) -> ndarray:
    """Return n weights of 1.

    They are part of one array for all blocks, so that rows without weights take no memory for weights.
    """
    global _ones
    longest = _ones  # another thread may replace it by a longer array
    if len(longest) < n:
        longest = _ones = np.ones(n)
    return longest[:n]


def positions(chosen: ndarray, block: Block) -> ndarray:
    """Return the positions of rows of a block as int32, if the block has few enough rows."""
    return chosen.astype(np.int32 if block.n_samples < 2**31 else np.int64, copy=False)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sort_by_class(
    block: Block, memory: None, sign: int, groups: PairGroups | None, start: ndarray | None, keep_one_in: int
) -> tuple[PairMemory, Summary]:
    """Sort the rows by class, and return the weights and scores of the anchors, and with groups the numbers of their groups.

    Parameters
    ----------
    block : Block
        The rows.
    memory : None
        The step needs no memory.
    sign : int
        The label of the smaller class.
    groups : PairGroups, optional
        The groups of the rows that make pairs, unless every positive and every negative row are a pair.
    start : ndarray of shape (n_features,), float64, or None
        The current point, at which the rows are scored. None if they are not.
    keep_one_in : int
        Weights and scores of one in `keep_one_in` anchors are sent. These anchors are drawn by their ids.
    """
    weight, drawn = block.weights(), None
    (anchors, numbers), (larger_class, larger_numbers) = (
        rows_in_pairs(block, label, groups) for label in (sign, -sign)
    )
    if keep_one_in > 1:
        drawn = np.flatnonzero(hash_ids(block.row_id[anchors], SEED) % np.uint64(keep_one_in) == 0)
    scores, squares = (None, None) if start is None else score_at_start(block, sign * start)

    def rows_at(chosen: ndarray) -> ClassRows:
        """Return some of the rows with their scores at the start."""
        current, weights = np.zeros(0) if scores is None else scores.take(chosen), weight[chosen]
        return ClassRows(positions(chosen, block), None if (weights == 1.0).all() else weights, current, current)

    by_class = PairMemory(
        rows_at(anchors), rows_at(larger_class), group_slices(larger_numbers), None if groups is None else numbers,
        np.zeros(0), drawn, squares
    )  # fmt: skip
    summary = {"weights": sent(by_class, weight[anchors]), "n_anchors": len(anchors), "n_larger": len(larger_class)}
    summary["scores"] = [] if scores is None else sent(by_class, by_class.anchors.scores)
    return by_class, {**summary, "group_numbers": [] if groups is None else [numbers]}


def sent(memory: PairMemory, anchor_values: ndarray) -> list[ndarray]:
    """Return values of all anchors, or of those that were drawn, as a summary. Those of all blocks are concatenated."""
    return [anchor_values if memory.drawn is None else anchor_values[memory.drawn]]


def score_rows(block: Block, memory: PairMemory, w: ndarray, sign: int) -> tuple[PairMemory, Summary]:
    """Score the rows at w, and return the scores of the anchors."""
    scores = block.scores(sign * w)
    # `scores[...]` takes twice as long for positions of four bytes.
    anchors, larger_class = (
        replace(rows, scores=scores.take(rows.positions)) for rows in (memory.anchors, memory.larger_class)
    )
    return replace(memory, anchors=anchors, larger_class=larger_class), sent(memory, anchors.scores)


def score_at_start(block: Block, w: ndarray) -> tuple[ndarray, ndarray | None]:
    """Return the scores at w, and the squared lengths of dense rows if the rows are read. At w = 0, they are not."""
    if not w.any():
        return np.zeros(block.n_samples), None
    if not isinstance(block.rows, DenseRows):
        return block.scores(w), None
    scores, squares = np.empty(block.n_samples), np.empty(block.n_samples, dtype=np.float32)
    project_and_measure(block.rows.values, w, scores, squares)
    return scores, squares


@without_rows
def sweep_pairs(
    number: int, memory: PairMemory, loss: PairLoss, anchors: Anchors, cutoff: Cutoff | None, step: float | None = None,
    unsmoothed: tuple[Anchors, Cutoff | None] | None = None,
) -> tuple[PairMemory, Summary]:  # fmt: skip
    """Sum the loss over the pairs of the block's rows with all anchors. With a cutoff, only rows from the cutoff on count.

    Parameters
    ----------
    number : int
        The number of the block.
    memory : PairMemory
        The rows of the block.
    loss : PairLoss
        The loss.
    anchors : Anchors
        The anchors of all blocks.
    cutoff : Cutoff or None
        Which negatives count, if these are the larger class.
    step : float, optional
        As for `ClassRows.scores_at`.
    unsmoothed : tuple (Anchors, Cutoff or None), optional
        The anchors and the cutoff of the hinge without smoothing, whose sum is returned as ``"unsmoothed_loss"``.
    """
    rows = ScoredRows(memory.larger_class.scores_at(step), memory.larger_class.weights, memory.group_slices)
    row_positions, counted = rows_from(cutoff, rows)
    summary, coefs = loss.sums_and_slopes(counted, anchors)
    if cutoff is not None:
        slopes, coefs = coefs, np.zeros(len(rows.scores))
        coefs[row_positions] = slopes
        summary["counted"] = counted.weights.sum()
    if unsmoothed is not None:
        anchors, cutoff = unsmoothed
        summary["unsmoothed_loss"] = HINGE.sums_and_slopes(rows_from(cutoff, rows)[1], anchors)[0]["loss"]
    return replace(memory, coefs=coefs), summary


def rows_from(cutoff: Cutoff | None, rows: ScoredRows) -> tuple[Any, ScoredRows]:
    """Return which rows count (those from a cutoff on, or all), and these rows with their weights."""
    if cutoff is None:
        return slice(None), rows
    row_positions = np.flatnonzero(rows.scores >= cutoff.score)
    scores = rows.scores[row_positions]
    return row_positions, ScoredRows(
        scores, rows.weights[row_positions] * cutoff.fractions(scores), one_slice(len(row_positions))
    )


def add_up_gradient(
    block: Block, memory: PairMemory, slopes: ndarray, offsets: ndarray, step: float | None = None
) -> tuple[PairMemory, Summary]:
    """Return the sum of the rows times the derivatives by their scores. Keep only the scores at the current point.

    Parameters
    ----------
    slopes : ndarray of float64
        The derivatives by the scores of the anchors, block after block, or of the cells that they are in.
    offsets : ndarray of shape (n_blocks + 1,), int64
        The positions at which each block's anchors begin and end among all anchors.
    step : float or None
        The current point moves by this step length towards the trial point; None moves it nowhere.
    """
    if memory.cells is None:
        anchor_slopes = slopes[offsets[block.index] : offsets[block.index + 1]]
    else:
        anchor_slopes = slopes.take(memory.cells)
        if memory.cell_weights is not None:
            anchor_slopes *= memory.cell_weights
    # One loop over the rows of both classes in storage order. One loop for each class would take more than twice as long.
    coefs, gradient = np.zeros(block.n_samples), np.zeros(block.n_features)
    for rows, row_coefs in ((memory.larger_class, memory.coefs), (memory.anchors, anchor_slopes)):
        add_to_rows(coefs, rows.positions, row_coefs)
    accumulate(block.rows, np.arange(block.n_samples), coefs, gradient)
    anchors, larger_class = memory.anchors.moved(step), memory.larger_class.moved(step)
    return replace(memory, anchors=anchors, larger_class=larger_class, coefs=np.zeros(0)), gradient


def add_to_rows(coefs: ndarray, chosen: ndarray, values: ndarray) -> None:
    """Add to the coefficients of rows. With grades, the same row may occur several times."""
    np.add.at(coefs, chosen.astype(np.intp, copy=False), values)  # add.at would convert int32 positions one by one


# ---- client: runs the steps -------------------------------------------------------------------------------------------


class PairProblem:
    """The mean of a loss over all positive-negative pairs of blocks.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be present. Their memory is not changed.
    groups : PairGroups, optional
        The pairs, if rows have groups or grades.
    negatives : CountedNegatives, optional
        Which negatives count. By default all do.
    start : ndarray of shape (n_features,), float64, optional
        The current point, where lines begin (`aucdist.pairs.cuts`).
    keep_one_in : int, default=1
        Only one in `keep_one_in` anchors is sent to the client, with its score and weight.

    Attributes
    ----------
    sign : int
        The label of the smaller class, the anchors.
    pair_weight : float
        The total weight of all pairs that count.
    n_anchors, n_larger : int
        How many rows of either class make pairs, each as often as it is in a group.
    weights : ndarray of shape (n_anchors,), float64
        The weights of the anchors, block after block; times the factor of their group.
    first_scores : ndarray of shape (n_anchors,), float64
        Their scores at the start; empty without one.
    offsets : ndarray of shape (n_blocks + 1,), int64
        The positions at which each block's anchors begin and end among all anchors.
    """

    def __init__(
        self, blocks: Blocks, loss: PairLoss, groups: PairGroups | None = None, negatives: CountedNegatives | None = None,
        *, start: ndarray | None = None, keep_one_in: int = 1,
    ):  # fmt: skip
        self.blocks, self.groups = blocks.without_memory(), groups
        self.loss = loss
        self.sign = smaller_class(groups or blocks)
        self.negatives = CountedNegatives(blocks) if negatives is None else negatives
        self.pair_weight = self.negatives.pair_weight if groups is None else groups.pair_weight
        summary = self.blocks.reduce(sort_by_class, self.sign, groups, start, keep_one_in)
        self.first_scores = np.concatenate(summary["scores"] or [np.zeros(0)])
        self.n_anchors, self.n_larger = int(summary["n_anchors"]), int(summary["n_larger"])
        self.offsets = np.cumsum([0] + [len(part) for part in summary["weights"]])
        self.weights = np.concatenate(summary["weights"])
        self._anchor_groups: tuple[ndarray, int] | None = None
        if groups is not None:
            numbers = np.concatenate(summary["group_numbers"])
            self.weights, self._anchor_groups = self.weights * groups.factor[numbers], (numbers, groups.n_groups)

    def sort_anchors(self, scores: ndarray, weights: ndarray) -> tuple[Anchors, ndarray]:
        """Return the anchors at a point, and the order that sorts them. See `sort_anchors`."""
        return sort_anchors(scores, weights, self._anchor_groups, self.loss.n_sums, centred=self.loss.centred)

    def score(self, w: ndarray) -> ndarray:
        """Score all rows at w, and return the scores of the anchors, by one reduction."""
        return np.concatenate(self.blocks.reduce(score_rows, w, self.sign))

    def sweep(self, w: ndarray) -> tuple[float, ndarray]:
        """Return the sum of the loss at w and its derivatives by the scores of the anchors.

        The blocks keep the derivatives by the scores of their rows of the larger class.
        """
        scores, negatives = self.score(w), self.negatives
        cutoff = negatives.cutoff(self.blocks, None, (scores, self.weights))
        anchors, order = self.sort_anchors(scores, negatives.counted(scores, self.weights, cutoff))
        swept = self.blocks.reduce(sweep_pairs, self.loss, anchors, negatives.of_larger_class(cutoff))
        return swept["loss"], self.loss.anchor_slopes(swept["slope_sums"], anchors, order)

    def gradient(self, slopes: ndarray, scale: float = 1.0, step: float | None = None) -> ndarray:
        """Return the gradient of the mean, of shape (n_features,), times a factor.

        Parameters
        ----------
        slopes : ndarray
            The derivatives by the scores of the anchors.
        scale : float, default=1.0
            The factor.
        step : float, optional
            The step at which the slopes were computed, if the current point moves there; see `add_up_gradient`.

        Returns
        -------
        ndarray of shape (n_features,), float64
        """
        total: ndarray = self.blocks.reduce(add_up_gradient, slopes, self.offsets, step)
        return total * (self.sign * scale / self.pair_weight)


@frozen
class PairObjective:
    """A penalty of the weights plus the mean of a loss over the pairs that count.

    Attributes
    ----------
    loss : PairLoss
        The loss of the margin ``w.(x_i - x_j)``, i positive and j negative.
    groups : PairGroups or None
        Which rows form pairs, if rows have groups or grades. None if all positive and negative rows do.
    top_negatives : TopNegatives or None
        Which negatives count. None means that all do.
    penalty : Penalty
        With its strength, and the signs that weights may have.
    """

    loss: PairLoss = HINGE
    groups: PairGroups | None = None
    top_negatives: TopNegatives | None = None
    penalty: Penalty = field(default_factory=L2)

    @classmethod
    def of(
        cls, blocks: Blocks, lam: float, loss: PairLoss = HINGE, *, penalty: str = "l2", max_fpr: float | None = None,
        max_false_positives: int | None = None, signs: ndarray | None = None, group_weight: str | None = None,
        grade_weight: str | None = None, feature_groups: ndarray | None = None,
    ) -> "PairObjective":  # fmt: skip
        """Return the objective over some rows that the parameters of an estimator describe.

        Parameters
        ----------
        signs : ndarray of shape (n_features,), int8, optional
            The signs of the weights, see `aucdist.solvers.signs`.
        feature_groups : ndarray of shape (n_features,), int64, optional
            The group of each weight, for the penalty ``group-l1``; by default each is one.

        Raises
        ------
        InputError
            If no two rows form a pair, or if only a fraction of the negatives counts and rows have groups or grades.
        """
        top_negatives = (
            None if max_fpr is None and max_false_positives is None else TopNegatives(max_fpr, max_false_positives)
        )
        groups = pair_groups(blocks, group_weight, grade_weight)
        if top_negatives is not None and groups is not None:
            raise InputError(
                "max_fpr and max_false_positives count the highest-scoring negatives of all rows: with groups or grades, "
                "set both to None"
            )
        groups_of_weights = np.arange(blocks.n_features) if feature_groups is None else feature_groups
        return cls(loss, groups, top_negatives, PENALTIES[penalty](lam, signs, groups_of_weights))

    @property
    def n_groups_with_pairs(self) -> int | None:
        """The number of groups with pairs from which a sample of whole groups can be drawn. None if single rows are drawn."""
        return None if self.groups is None else self.groups.n_groups_with_pairs

    def on_sample(self, blocks: Blocks, drawn: Block) -> "tuple[LocalBlocks, PairObjective]":
        """Return a sample of rows as blocks, and the same objective over them."""
        rows = LocalBlocks([drawn])
        groups = None if self.groups is None else self.groups.over(rows)
        top_negatives = (
            None if self.top_negatives is None else TopNegatives(self.top_negatives.weight(blocks) / blocks.weight_neg)
        )
        return rows, replace(self, groups=groups, top_negatives=top_negatives)


def pairwise_objective(blocks: Blocks, w: ndarray, lam: float, groups: PairGroups | None = None) -> float:
    """Return ``lam/2 |w|^2`` plus the mean hinge over all pairs, exactly, in O(n log n) and three reductions.

    Parameters
    ----------
    blocks : Blocks
        The rows, of both classes. Their memory is not changed.
    w : ndarray of shape (n_features,), float64
        The weights.
    lam : float
        The regularisation strength.
    groups : PairGroups, optional
        The groups, if pairs are within groups.

    Returns
    -------
    float
    """
    problem = PairProblem(blocks, HINGE, groups)
    total, _ = problem.sweep(w)
    return float(total / problem.pair_weight + 0.5 * lam * (w @ w))


def rounding_of_pairs(blocks: Blocks, groups: PairGroups | None = None) -> Rounding:
    """Return the sizes that determine bounds on rounding, if rows of the smaller class enter sums as running sums."""
    if groups is None:
        return Rounding.of(blocks, running=2 * min(blocks.n_pos, blocks.n_neg))
    # With grades, rows are in several groups.
    n_repeated = (groups.n_grade_steps - 1) * max(info.n_samples for info in blocks.infos)
    return Rounding.of(blocks, running=2 * min(groups.n_pos, groups.n_neg) + n_repeated + groups.n_groups)
