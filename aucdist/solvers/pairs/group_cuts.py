"""Cuts over the pairs within groups, or of rows with grades (`aucdist.solvers.pairs.groups`), from exact scores."""

import numpy as np

from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.kernels.pair_groups import slopes_along_in_groups
from aucdist.solvers.pairs.cuts import PairCuts, number_of_components
from aucdist.solvers.pairs.grouped_anchors import GroupedAnchorsOnLine
from aucdist.solvers.pairs.loss import CutPairLoss
from aucdist.solvers.pairs.problem import CutMemory

ANCHORS_ON_LINE, FEW_GROUPS = 50_000, 200
"""The line search uses all groups where anchors are at most so many; else some, but not fewer than so many."""


@without_rows
def slopes_in_groups(
    block: int, memory: CutMemory, loss: CutPairLoss, steps: np.ndarray, stride: int, anchors: GroupedAnchorsOnLine
) -> tuple[CutMemory, Summary]:
    """Do what `slopes_on_line` does over the pairs within groups; the weight is that of the pairs used."""
    slopes, weight = np.zeros(len(steps)), 0.0
    for component, runs in enumerate(memory.runs):
        mine = slice(memory.ends[component], memory.ends[component + 1])
        ends = memory.best[mine], memory.scores[mine], memory.weights[mine]
        weight += slopes_along_in_groups(*ends, *runs, steps, stride, *anchors.at_steps, slopes)
    return memory, {"slopes": slopes, "weight": weight}


class GroupCuts(PairCuts):
    """`PairCuts` over the pairs within groups; the parameters are the same, and all negatives count."""

    def count_components(self, blocks: Blocks) -> int:
        """Return how many cuts to take at a point: as over all pairs, but the groups' sums are sent as well."""
        assert self.groups is not None
        few, many = sorted((self.groups.n_pos, self.groups.n_neg))
        return number_of_components(few + self.groups.n_groups, many, blocks.n_features)

    def slopes_at(
        self, steps: np.ndarray, best_scores: np.ndarray, last_scores: np.ndarray, stride: int, some: int
    ) -> np.ndarray:
        """Return the derivative of the mean loss by the step, from the pairs of some groups where anchors are many."""
        assert self.groups is not None
        assert self.anchor_groups is not None
        every = max(1, min(len(self.weights) // ANCHORS_ON_LINE, self.groups.n_groups // FEW_GROUPS))
        codes = self.anchor_groups.codes
        some_of_all = np.flatnonzero(codes % every == 0)
        change = (last_scores - best_scores)[some_of_all]
        along = GroupedAnchorsOnLine(
            best_scores[some_of_all], change, steps, self.weights[some_of_all], codes[some_of_all], self.groups.n_groups
        )
        found = self.blocks.reduce(slopes_in_groups, self.loss, steps, max(1, stride // every), along)
        if not found["weight"]:  # of so few rows that none of them was used
            found = self.blocks.reduce(slopes_in_groups, self.loss, steps, 1, along)
        slopes: np.ndarray = found["slopes"] / found["weight"]
        return slopes
