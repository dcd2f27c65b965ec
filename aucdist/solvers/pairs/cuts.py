"""The solver ``all-pairs``: cutting planes over all pairs, or over those of the highest-scoring negatives."""

from collections.abc import Iterator

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.pairs.all_pairs import all_pairs, all_pairs_l1, pairs_of
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.pairs.groups import pair_groups, refuse_share
from aucdist.solvers.pairs.top import SHARE, TopShare, share_of
from aucdist.solvers.pairs.top_pairs import TopPairs, TopPairsL1, top_pairs, top_pairs_l1

TOP_PENALTIES: dict[str, type[TopPairs]] = {"l2": TopPairs, "l1": TopPairsL1}


class AllPairs(Solver):
    """Cutting planes over all pairs; deterministic, and the one to use.

    See `aucdist.solvers.pairs.all_pairs`, and `aucdist.solvers.pairs.top_pairs` for the partial AUC. It has no parameters of its
    own.
    """

    name = "all-pairs"
    objective = "pairwise hinge"
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
    ) -> Iterator[Round]:
        """Yield the best weights so far, their exact objective, the best bound so far.

        Parameters
        ----------
        blocks : Blocks
            Both classes must be there.
        lam : float
        start : ndarray of shape (n_features,), optional
            By default the solution over a sample; zero for small data and for a small lam.
        penalty : {"l2", "l1"}
        max_fpr, max_false_positives : float, int, optional
            See `aucdist.solvers.pairs.top.TopShare`.
        signs : ndarray of shape (n_features,), int8, optional
            Of the weights, see `aucdist.solvers.cone`.
        group_weight, grade_weight : str, optional
            See `aucdist.solvers.pairs.groups.pair_groups`.
        """
        share, groups = share_of(max_fpr, max_false_positives), pair_groups(blocks, group_weight, grade_weight)
        if share is None:
            return (all_pairs if penalty == "l2" else all_pairs_l1)(blocks, lam, start, signs=signs, groups=groups)
        refuse_share(groups)
        return (top_pairs if penalty == "l2" else top_pairs_l1)(blocks, lam, start, share=share, signs=signs)

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
    ) -> CuttingPlanes:
        """Return the cutting planes, which solve for one lam after another; parameters as of `rounds`."""
        share: TopShare | None = share_of(max_fpr, max_false_positives)
        groups = pair_groups(blocks, group_weight, grade_weight)
        if share is None:
            return pairs_of(blocks, None, penalty, signs, groups)
        refuse_share(groups)
        return TOP_PENALTIES[penalty](blocks, None, share=share, signs=signs)
