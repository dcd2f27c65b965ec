"""The solver ``all-pairs``: cutting planes over all pairs, or over those of the highest-scoring negatives.

With an L2 penalty a fit of large data starts at the solution over a sample (`aucdist.solvers.sample`).
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.solvers import sample
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.pairs.groups import pair_groups, refuse_share
from aucdist.solvers.pairs.penalty import penalty_of
from aucdist.solvers.pairs.top import SHARE, share_of

NEAR = 0.03
"""The relative gap to which a sample is solved: its optimum is about as far from that of all rows."""

LEAST_NOISE = 0.01
"""If lam is below this share of `sample.noise`, the weights fit the noise of the sample, and zero is the better start."""


class AllPairs(Solver):
    """Cutting planes over all pairs; deterministic, and the one to use.

    See `aucdist.solvers.pairs.cutting_planes`, and `aucdist.solvers.pairs.share` for the partial AUC. It has no parameters of its
    own.
    """

    name = "all-pairs"
    objective = "pairwise hinge"
    by_sums = True
    takes = ("penalty", *SHARE, "group_weight", "grade_weight")
    groups = True
    ignores_zero_weight = True
    takes_codes = True
    signs = True
    has_path = True

    def rounds(
        self,
        blocks: Blocks,
        lam: float,
        start: np.ndarray | None = None,
        *,
        penalty: str = "l2",
        max_fpr: float | None = None,
        max_false_positives: int | None = None,
        signs: np.ndarray | None = None,
        group_weight: str | None = None,
        grade_weight: str | None = None,
        feature_groups: np.ndarray | None = None,
    ) -> Iterator[Round]:
        """Yield the best weights so far, their objective, the best bound so far.

        By default `start` is the solution over a sample; zero for small data, many features, a small lam, few groups, and a
        penalty with corners. For the other parameters see `penalty_of`,
        `TopShare` and `pair_groups`.
        """
        share, groups = share_of(max_fpr, max_false_positives), pair_groups(blocks, group_weight, grade_weight)
        if share is not None:
            refuse_share(groups)
        of_weights, passes = penalty_of(penalty, blocks.n_features, signs, feature_groups), 0
        part = None if share is None else share.weight(blocks) / blocks.weight_neg

        def on_sample(drawn: Block) -> Iterator[Round] | None:
            # So much smaller is the sample of the negatives that count.
            if lam < LEAST_NOISE * sample.noise(drawn) / (part or 1.0):
                return None
            rows = LocalBlocks([drawn])
            return self.rounds(
                rows, lam, max_fpr=part, signs=signs, group_weight=group_weight, grade_weight=grade_weight
            )

        if start is None and not of_weights.has_corners:
            n_groups = None if groups is None else groups.n_to_draw
            last, passes = sample.solve_on_sample(blocks, on_sample, NEAR, n_groups)
            start = None if last is None else last.w
        planes = CuttingPlanes(blocks, start, penalty=of_weights, share=share, groups=groups)
        for state in planes.rounds(lam):
            yield replace(state, passes=passes + state.passes)

    def path(
        self,
        blocks: Blocks,
        *,
        penalty: str = "l2",
        max_fpr: float | None = None,
        max_false_positives: int | None = None,
        signs: np.ndarray | None = None,
        group_weight: str | None = None,
        grade_weight: str | None = None,
        feature_groups: np.ndarray | None = None,
    ) -> CuttingPlanes:
        """Return the cutting planes, which solve for one lam after another; parameters as of `rounds`."""
        share, groups = share_of(max_fpr, max_false_positives), pair_groups(blocks, group_weight, grade_weight)
        of_weights = penalty_of(penalty, blocks.n_features, signs, feature_groups)
        return CuttingPlanes(blocks, penalty=of_weights, share=share, groups=groups)
