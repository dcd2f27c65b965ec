"""The solver ``all-pairs``: cutting planes over all pairs, or over those of the highest-scoring negatives.

On large data and with an L2 penalty the start is the solution over a sample (`aucdist.solvers.sample`), where the first cut gives
a tight bound.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.solvers import sample
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.pairs.groups import PairGroups, pair_groups, refuse_share
from aucdist.solvers.pairs.penalty import penalty_of
from aucdist.solvers.pairs.top import SHARE, TopShare, share_of

NEAR = 0.03
"""The relative gap to which a sample is solved: its optimum is about as far from that of all rows."""

LEAST_NOISE = 0.01
"""If lam is below this share of `sample.noise`, the weights fit the noise of the sample, and zero is the better start."""


def all_pairs(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *, penalty: str = "l2", share: TopShare | None = None,
    signs: np.ndarray | None = None, groups: PairGroups | None = None, feature_groups: np.ndarray | None = None,
) -> Iterator[Round]:  # fmt: skip
    """Solve by cutting planes.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    start : ndarray of shape (n_features,), optional
        By default the solution over a sample; zero for small data, a small lam, few groups, and a penalty with corners.
    penalty : {"l2", "l1", "group-l1"}, default="l2"
    share : TopShare, optional
        Which negatives count; all by default.
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`.
    groups : PairGroups, optional
        Where pairs are within groups.
    feature_groups : ndarray of shape (n_features,), int64, optional
        Of the weights, for ``group-l1``; see `aucdist.solvers.pairs.penalty.GroupL1`.

    Yields
    ------
    Round
        The best weights so far, their objective, the best bound so far.
    """
    of_weights, passes = penalty_of(penalty, blocks.n_features, signs, feature_groups), 0
    part = 1.0 if share is None else share.weight(blocks) / blocks.weight_neg

    def on_sample(drawn: Block) -> Iterator[Round] | None:
        # So much smaller is the sample of the negatives that count.
        if lam < LEAST_NOISE * sample.noise(drawn) / part:
            return None
        rows = LocalBlocks([drawn])
        within = None if groups is None else groups.of(rows)
        return all_pairs(rows, lam, share=None if share is None else TopShare(part), signs=signs, groups=within)

    if start is None and not of_weights.has_corners:
        n_groups = len(groups.keys) if groups is not None and groups.grouped else None
        last, passes = sample.solve_on_sample(blocks, on_sample, NEAR, n_groups)
        start = None if last is None else last.w
    for state in CuttingPlanes(blocks, start, penalty=of_weights, share=share, groups=groups).rounds(lam):
        yield replace(state, passes=passes + state.passes)


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
        """Yield the best weights so far, their objective, the best bound so far; see `all_pairs`, `TopShare`, `pair_groups`."""
        share, groups = share_of(max_fpr, max_false_positives), pair_groups(blocks, group_weight, grade_weight)
        if share is not None:
            refuse_share(groups)
        return all_pairs(
            blocks, lam, start, penalty=penalty, share=share, signs=signs, groups=groups, feature_groups=feature_groups
        )

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
