"""The pairwise hinge over all positive-negative pairs, with its certificate.

Minimises ``P(w) = penalty(w) + mean over all pairs of max(0, 1 - w.(x_i - x_j))`` by cutting planes, the penalty being ``lam/2
|w|^2`` (`aucdist.solvers.pairs.cutting_planes`) or ``lam |w|_1`` (`aucdist.solvers.pairs.all_pairs_l1`). Where both classes are
large, the rows of the smaller one lie in cells of scores (`aucdist.solvers.pairs.cell_pairs`). On large data the start is the
solution over a sample (`aucdist.solvers.sample`), where the first cut gives a tight bound.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.solvers import sample
from aucdist.solvers.base import Round
from aucdist.solvers.pairs.all_pairs_l1 import CuttingPlanesL1
from aucdist.solvers.pairs.cell_pairs import MOST_ANCHORS, CellPairs, CellPairsL1
from aucdist.solvers.pairs.cutting_planes import CuttingPlanes
from aucdist.solvers.pairs.groups import PairGroups

NEAR = 0.03
"""The relative gap to which a sample is solved: its optimum is about as far from that of all rows."""

LEAST_NOISE = 0.01
"""If lam is below this share of `sample.noise`, the weights fit the noise of the sample, and zero is the better start."""

EXACT: dict[str, type[CuttingPlanes]] = {"l2": CuttingPlanes, "l1": CuttingPlanesL1}
IN_CELLS: dict[str, type[CellPairs]] = {"l2": CellPairs, "l1": CellPairsL1}


def pairs_of(
    blocks: Blocks,
    start: np.ndarray | None,
    penalty: str = "l2",
    signs: np.ndarray | None = None,
    groups: PairGroups | None = None,
) -> CuttingPlanes:
    """Return the cutting planes for these blocks, whose `rounds` solve for one lam after another.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    start : ndarray of shape (n_features,) or None
        Zero by default.
    penalty : {"l2", "l1"}, default="l2"
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`.
    groups : PairGroups, optional
        Where pairs are within groups, of anchors with exact scores, however many.
    """
    if groups is not None:
        return EXACT[penalty](blocks, start, signs=signs, groups=groups)
    many = min(blocks.n_pos, blocks.n_neg) > MOST_ANCHORS
    return (IN_CELLS if many else EXACT)[penalty](blocks, start, signs=signs)


def all_pairs(
    blocks: Blocks,
    lam: float,
    start: np.ndarray | None = None,
    *,
    signs: np.ndarray | None = None,
    groups: PairGroups | None = None,
) -> Iterator[Round]:
    """Solve with an L2 penalty.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    lam : float
    start : ndarray of shape (n_features,), optional
        By default the solution over a sample; zero for small data and for a small lam.
    signs : ndarray of shape (n_features,), int8, optional
        Of the weights, see `aucdist.solvers.cone`.
    groups : PairGroups, optional
        Where pairs are within groups. The start is then zero by default.

    Yields
    ------
    Round
        The best weights so far, their objective, the best bound so far.
    """
    passes = 0
    if start is None and groups is None:
        last, passes = sample.solve_on_sample(blocks, lambda drawn: _on_sample(drawn, lam, signs), NEAR)
        start = None if last is None else last.w
    for state in pairs_of(blocks, start, signs=signs, groups=groups).rounds(lam):
        yield replace(state, passes=passes + state.passes)


def _on_sample(drawn: Block, lam: float, signs: np.ndarray | None) -> Iterator[Round] | None:
    return all_pairs(LocalBlocks([drawn]), lam, signs=signs) if lam >= LEAST_NOISE * sample.noise(drawn) else None


def all_pairs_l1(
    blocks: Blocks,
    lam: float,
    start: np.ndarray | None = None,
    *,
    signs: np.ndarray | None = None,
    groups: PairGroups | None = None,
) -> Iterator[Round]:
    """Solve with an L1 penalty, by proximal cutting planes from zero; parameters and rounds are those of `all_pairs`."""
    return pairs_of(blocks, start, "l1", signs, groups).rounds(lam)
