"""Find pairs of features that interact, by FAST on the residuals of an additive model.

After Lou, Caruana, Gehrke & Hooker, "Accurate intelligible models with pairwise interactions" (KDD 2013). A pair's score is how
much of the residual a table of its cells explains beyond its row and column sums. Departures: 8 x 8 cells in place of the best
2 x 2 split; the residual is the derivative of the mean pairwise hinge by each row's score, at an additive model fitted roughly.
Where rows have groups or grades, all of this is over the pairs that these make.
"""

from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows, expand, pair_histograms
from aucdist.maps.base import encoded
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.pairs.groups import PairGroups, pair_groups
from aucdist.pairs.loss import HINGE
from aucdist.pairs.problem import PairMemory, PairProblem, add_to_rows
from aucdist.solvers.base import solve

GRID = 16
"""The largest number of cells of a pair along each feature."""
CELLS = 8
"""The number of cells along each feature while pairs are compared."""
LAM, TOL, MOST_PASSES = 1e-3, 3e-2, 60
"""The parameters of the fit of the rough additive model."""
MOST_COMPARED = 200
"""The largest number of features that are compared in pairs. If there are more, those whose shape has the largest spread are."""
PRIOR = 10.0
"""The number of rows that is added to the weight of each cell."""


def coarse(shares: np.ndarray, missing: bool, most: int) -> np.ndarray:
    """Merge neighbouring bins: return a number below `most` for each cell of a feature. Missing values have their own.

    `shares`, of shape (n_bins,), float64: of the rows, in each bin.
    Returns an array of shape (n_cells,), uint8.
    """
    n_bins_left = most - missing
    if len(shares) <= n_bins_left:
        return np.arange(len(shares) + missing, dtype=np.uint8)
    middle = np.cumsum(shares) - 0.5 * shares
    number = np.minimum((middle / shares.sum() * n_bins_left).astype(np.int64), n_bins_left - 1)
    number = np.unique(number, return_inverse=True)[1]
    return np.concatenate((np.zeros(int(missing), dtype=np.int64), number + int(missing))).astype(np.uint8)


def choose_pairs(blocks: Blocks, fitted: Any, n_pairs: int) -> np.ndarray:
    """Return the pairs of features with the highest scores, best first.

    `blocks`: of the features as they came.
    `fitted`: without pairs.
    Returns ndarray of shape (n_chosen, 2), int64: features a < b; fewer than `n_pairs` where no more explain anything.
    Raises InputError if a class has no rows.
    """
    if 0 in (blocks.n_pos, blocks.n_neg):
        raise InputError(
            "pairs of features are chosen by how well they separate the classes: rows of both classes are needed"
        )
    rows = encoded(blocks, fitted)
    groups = pair_groups(rows)
    rounds = AllPairs().rounds(rows, LAM)
    w = solve(rounds, tol=TOL, max_passes=MOST_PASSES).w
    compared = np.arange(len(fitted.used))
    if len(compared) > MOST_COMPARED:  # the features whose shapes have the largest spread
        values, spreads = (
            np.split(expand(fitted.code_basis, w), fitted.code_basis.starts[1:-1]),
            np.empty(len(compared)),
        )
        for k, j in enumerate(fitted.used):
            own, shares = values[k][int(fitted.missing[j]) :], fitted.bins[j].shares
            spreads[k] = shares @ (own - shares @ own) ** 2
        compared = np.sort(np.argsort(-spreads, kind="stable")[:MOST_COMPARED])
    if len(compared) < 2:
        return np.zeros((0, 2), dtype=np.int64)
    tables = {
        k: coarse(fitted.bins[fitted.used[k]].shares, bool(fitted.missing[fitted.used[k]]), CELLS)
        for k in compared.tolist()
    }
    scores = pair_scores(rows, w, tables, groups)
    features = fitted.used[compared]
    a, b = np.tril_indices(len(compared), -1)
    order = np.argsort(-scores, kind="stable")[:n_pairs]
    order = order[scores[order] > 0.0]
    return np.sort(np.column_stack((features[a[order]], features[b[order]])), axis=1).astype(np.int64)


def pair_scores(rows: Blocks, w: np.ndarray, tables: dict[int, np.ndarray], groups: PairGroups | None) -> np.ndarray:
    """Return how much of the residual each pair's cells explain beyond their row and column sums.

    `rows`: of codes.
    `w`, of shape (n_basis_functions,), float64: of the additive model.
    `tables`: by the column of a code the coarse cell, below `CELLS`, of each of its cells.
    `groups`: where pairs of rows are within groups, or of grades.
    Returns ndarray of shape (m (m - 1) / 2,), float64: in the order of ``np.tril_indices(m, -1)``.
    """
    problem = PairProblem(rows, HINGE, groups)
    _, slopes = problem.sweep(w)
    factor, class_weights = np.ones(1), np.array([[rows.weight_pos], [rows.weight_neg]])
    if groups is not None:
        factor, class_weights = groups.factor, groups.weights
    partners = 0.5 * factor * class_weights[:: -problem.sign]  # of an anchor, and of a row of the larger class
    cells = problem.blocks.reduce(add_up_cells, slopes, problem.offsets, partners, tables)
    G, H = (cells[name].reshape(-1, CELLS, CELLS) / problem.mass for name in ("residual", "weight"))
    prior = PRIOR / rows.n_samples
    gain: np.ndarray = (G**2 / (H + prior)).sum(axis=(1, 2))
    for axis in (1, 2):
        gain = gain - (G.sum(axis=axis) ** 2 / (H.sum(axis=axis) + prior)).sum(axis=1)
    return gain


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def add_up_cells(
    block: Block, memory: PairMemory, slopes: np.ndarray, offsets: np.ndarray, partners: np.ndarray,
    tables: dict[int, np.ndarray],
) -> tuple[None, Summary]:  # fmt: skip
    """Sum up in the cells of each pair the derivatives of the hinge by the scores of rows, and the weights of rows in pairs."""
    coefs, weight = np.zeros((2, block.n_samples)), block.weights()
    anchor_slopes = slopes[offsets[block.index] : offsets[block.index + 1]]
    codes = np.zeros(len(anchor_slopes), dtype=np.int32) if memory.codes is None else memory.codes
    other_groups = np.repeat(memory.runs[1], np.diff(memory.runs[0]))
    anchor_rows = memory.anchors.positions, anchor_slopes, codes, partners[0]
    other_rows = memory.others.positions, memory.coefs, other_groups, partners[1]
    for positions, row_slopes, groups, partner_weights in (anchor_rows, other_rows):
        add_to_rows(coefs[0], positions, row_slopes)
        add_to_rows(coefs[1], positions, weight[positions] * partner_weights[groups])
    rows, m = block.rows, len(tables)
    assert isinstance(rows, BinRows)
    codes = np.empty((block.n_samples, m), dtype=np.uint8, order="F")
    for k, (column, table) in enumerate(tables.items()):
        codes[:, k] = table[rows.codes[:, column]]
    sums = pair_histograms(codes, coefs, CELLS)
    return None, {"residual": sums[0], "weight": sums[1]}
