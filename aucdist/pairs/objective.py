"""The objective of the solvers of pairs, and its exact value at given weights."""

from dataclasses import dataclass, field, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.errors import InputError
from aucdist.pairs.groups import PairGroups, pair_groups
from aucdist.pairs.loss import HINGE, PairLoss
from aucdist.pairs.penalty import L2, PENALTIES, Penalty
from aucdist.pairs.problem import PairProblem
from aucdist.pairs.top_negatives import TopNegatives
from aucdist.solvers.rounding import Rounding


@dataclass(frozen=True, eq=False)
class PairObjective:
    """A penalty of the weights plus the mean of a loss over the pairs that count.

    Attributes
    ----------
    loss : PairLoss
        The loss of the margin ``w.(x_i - x_j)``, i positive and j negative.
    groups : PairGroups or None
        Which rows make pairs, where rows have groups or grades; None where all rows of both classes do.
    subset : TopNegatives or None
        Which negatives count; None for all.
    penalty : Penalty
        With its strength, and the signs that weights may have.
    """

    loss: PairLoss = HINGE
    groups: PairGroups | None = None
    subset: TopNegatives | None = None
    penalty: Penalty = field(default_factory=L2)

    @classmethod
    def of(
        cls, blocks: Blocks, lam: float, loss: PairLoss = HINGE, *, penalty: str = "l2", max_fpr: float | None = None,
        max_false_positives: int | None = None, signs: np.ndarray | None = None, group_weight: str | None = None,
        grade_weight: str | None = None, feature_groups: np.ndarray | None = None,
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
            Where no rows make a pair, or a fraction of the negatives counts and rows have groups or grades.
        """
        subset = None if max_fpr is None and max_false_positives is None else TopNegatives(max_fpr, max_false_positives)
        groups = pair_groups(blocks, group_weight, grade_weight)
        if subset is not None and groups is not None:
            raise InputError(
                "max_fpr and max_false_positives count the highest-scoring negatives of all rows: with groups or grades, "
                "set both to None"
            )
        groups_of_weights = np.arange(blocks.n_features) if feature_groups is None else feature_groups
        return cls(loss, groups, subset, PENALTIES[penalty].of(lam, signs, groups_of_weights))

    @property
    def n_groups_with_pairs(self) -> int | None:
        """How many groups with pairs a sample of whole groups can draw from; None where rows are drawn."""
        return None if self.groups is None else self.groups.n_groups_with_pairs

    def on_sample(self, blocks: Blocks, drawn: Block) -> "tuple[LocalBlocks, PairObjective]":
        """Return rows that were drawn from others as blocks, and the same objective over them."""
        rows = LocalBlocks([drawn])
        groups = self.groups
        if groups is not None:
            group_weight = "groups" if groups.equal_group_weights else None
            groups = pair_groups(rows, group_weight, "one" if groups.exact else None, weighted=not groups.grouped)
        subset = None if self.subset is None else TopNegatives(self.subset.weight(blocks) / blocks.weight_neg)
        return rows, replace(self, groups=groups, subset=subset)


def pairwise_objective(blocks: Blocks, w: np.ndarray, lam: float, groups: PairGroups | None = None) -> float:
    """Return ``lam/2 |w|^2`` plus the mean hinge over all pairs, exactly, in O(n log n) and three reductions.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be present. Their memory is not changed.
    w : ndarray of shape (n_features,), float64
    groups : PairGroups, optional
        Where pairs are within groups.
    """
    problem = PairProblem(blocks, HINGE, groups)
    total, _ = problem.sweep(w)
    return float(total / problem.mass + 0.5 * lam * (w @ w))


def objective_error(rounding: Rounding, w: np.ndarray, value: float) -> float:
    """Return a bound on the rounding error of `pairwise_objective` of the hinge, where that is `value`."""
    return rounding.pair_hinge(w, value) + rounding.penalty(w, value)


def rounding_of_pairs(blocks: Blocks, groups: PairGroups | None = None) -> Rounding:
    """Return the sizes for bounds on rounding when rows of the smaller class enter as running sums."""
    if groups is None:
        return Rounding.of(blocks, running=2 * min(blocks.n_pos, blocks.n_neg))
    n_repeated = (groups.n_thresholds - 1) * max(info.n_samples for info in blocks.infos)  # rows in several groups
    return Rounding.of(blocks, running=2 * min(groups.n_pos, groups.n_neg) + n_repeated + groups.n_groups)
