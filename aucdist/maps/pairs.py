"""Which pairs of features interact: FAST on what an additive model leaves.

After Lou, Caruana, Gehrke & Hooker, "Accurate intelligible models with pairwise interactions" (KDD 2013). A pair's score is how
much of the residual a table of its cells explains beyond its row and column sums. Departures: 8 x 8 cells in place of the best
2 x 2 split; the residual is the derivative of the mean pairwise hinge by each row's score, at an additive model fitted roughly.
Where rows have groups or grades, all of this is over the pairs that these make.
"""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows, expand, pair_histograms
from aucdist.kernels.rows import DenseRows, project
from aucdist.maps.base import encoded
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.all_pairs import AllPairs
from aucdist.solvers.pairs.groups import PairGroups, pair_groups

GRID = 16
"""Cells of a pair along each feature, at most."""
CELLS = 8
"""The same where pairs are compared."""
LAM, TOL, MOST_PASSES = 1e-3, 3e-2, 60
"""How the rough additive model is fitted."""
MOST_COMPARED = 200
"""So many features are compared in pairs; of more, those whose shape has the largest spread."""
FEW = 300
"""With fewer rows of a class a warning says that pairs may hurt."""
PRIOR = 10.0
"""What is added to the weight of each cell, in rows."""


def coarse(shares: np.ndarray, missing: bool, most: int) -> np.ndarray:
    """Return a number below `most` for each cell of a feature: neighbouring bins share one, and missing values have their own.

    `shares`, of shape (n_bins,), float64: of the rows, in each bin.
    Returns an array of shape (n_cells,), uint8.
    """
    left = most - missing
    if len(shares) <= left:
        return np.arange(len(shares) + missing, dtype=np.uint8)
    middle = np.cumsum(shares) - 0.5 * shares
    number = np.minimum((middle / shares.sum() * left).astype(np.int64), left - 1)
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
        raise InputError("pairs of features are chosen by what they say of the classes: rows of both are needed")
    if min(blocks.n_pos, blocks.n_neg) < FEW:
        warnings.warn(
            f"pairs={n_pairs} with {min(blocks.n_pos, blocks.n_neg)} rows of the smaller class: below {FEW} interactions are "
            "mostly chance, and usually make the model worse",
            UserWarning,
            stacklevel=5,
        )
    rows = encoded(blocks, fitted)
    groups = pair_groups(rows)
    rounds = AllPairs().rounds(rows, LAM)
    w = solve(rounds, tol=TOL, max_passes=MOST_PASSES).w
    compared = _compared(fitted, w)
    if len(compared) < 2:
        return np.zeros((0, 2), dtype=np.int64)
    tables = tuple(
        coarse(fitted.bins[fitted.used[k]].shares, bool(fitted.missing[fitted.used[k]]), CELLS) for k in compared
    )
    scores = pair_scores(rows, w, compared, tables, groups)
    features = fitted.used[compared]
    a, b = np.tril_indices(len(compared), -1)
    order = np.argsort(-scores, kind="stable")[:n_pairs]
    order = order[scores[order] > 0.0]
    return np.sort(np.column_stack((features[a[order]], features[b[order]])), axis=1).astype(np.int64)


def _compared(fitted: Any, w: np.ndarray) -> np.ndarray:
    """Return the codes to compare: all, or those of the widest shapes."""
    n = len(fitted.used)
    if n <= MOST_COMPARED:
        return np.arange(n)
    tables = np.split(expand(fitted.code_basis, w), fitted.code_basis.starts[1:-1])
    spreads = np.empty(n)
    for k, j in enumerate(fitted.used):
        values, shares = tables[k][int(fitted.missing[j]) :], fitted.bins[j].shares
        spreads[k] = shares @ (values - shares @ values) ** 2
    return np.sort(np.argsort(-spreads, kind="stable")[:MOST_COMPARED])


def pair_scores(
    rows: Blocks, w: np.ndarray, compared: np.ndarray, tables: tuple[np.ndarray, ...], groups: PairGroups | None = None
) -> np.ndarray:
    """Return how much of the residual each pair's cells explain beyond their row and column sums.

    `rows`: of codes.
    `w`, of shape (n_basis_functions,), float64: of the additive model.
    `compared`: columns of the codes.
    `tables`: the coarse cell, below `CELLS`, of each cell of those.
    `groups`: where pairs of rows are within groups, or of grades.
    Returns ndarray of shape (m (m - 1) / 2,), float64: in the order of ``np.tril_indices(m, -1)``.
    """
    rows = rows.without_memory()
    if groups is None:
        sign, factor, total = 1 if rows.n_pos <= rows.n_neg else -1, np.ones(1), rows.weight_pos * rows.weight_neg
        of_class = np.array([[rows.weight_pos], [rows.weight_neg]])
    else:
        sign, factor, total, of_class = groups.sign, groups.factor, groups.mass, groups.weights
    anchors_weigh, rows_weigh = of_class if sign > 0 else of_class[::-1]
    scored = rows.reduce(score_rows, w, sign, groups)
    scores, weights, codes = (np.concatenate(scored[name]) for name in ("scores", "weights", "codes"))
    order = np.lexsort((scores, codes))
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=len(factor)))))
    below = np.concatenate(([0.0], np.cumsum(weights[order])))
    share = factor / total
    sorted_anchors = scores[order], codes[order], starts, below
    active = rows.reduce(active_pairs, sorted_anchors, sign, groups, share, share * anchors_weigh)["active"]
    beyond = np.concatenate((np.cumsum(active[::-1])[::-1], [0.0]))
    # A group of m anchors has m + 1 places; the anchor at place k is in active pairs with rows whose place is beyond k.
    place = np.arange(len(order)) + codes[order]
    slopes = np.empty(len(scores))
    slopes[order] = beyond[place + 1] - beyond[(starts[1:] + np.arange(len(factor)) + 1)[codes[order]]]
    offsets = np.cumsum([0, *(len(part) for part in scored["scores"])])
    found = rows.reduce(pair_cells, slopes, offsets, sign, share * rows_weigh, compared, tables)
    return _gain(found["residual"], found["weight"], PRIOR / rows.n_samples)


def _gain(residual: np.ndarray, weight: np.ndarray, prior: float) -> np.ndarray:
    G, H = (part.reshape(-1, CELLS, CELLS) for part in (residual, weight))
    gain: np.ndarray = (G**2 / (H + prior)).sum(axis=(1, 2))
    for axis in (1, 2):
        gain = gain - (G.sum(axis=axis) ** 2 / (H.sum(axis=axis) + prior)).sum(axis=1)
    return gain


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def score_rows(
    block: Block, memory: Any, w: np.ndarray, sign: int, groups: PairGroups | None
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, Block], Summary]:
    """Score the rows, mirrored where the negatives are the smaller class, and send the scores of that, the anchors."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    at, codes = _rows_of(block, sign, groups)
    summary = {"scores": [scores[at]], "weights": [block.weights()[at]], "codes": [codes]}
    return (scores, at, codes, replace(block, rows=DenseRows(np.zeros((block.n_samples, 0))))), summary


def _rows_of(block: Block, label: int, groups: PairGroups | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the rows of one class that are in pairs, and the number of the group of each."""
    if groups is not None:
        return groups.rows_of(block, label)
    at = np.flatnonzero(block.y == label)
    return at, np.zeros(len(at), dtype=np.int32)


@without_rows
def active_pairs(
    block: int,
    memory: Any,
    anchors: tuple[np.ndarray, ...],
    sign: int,
    groups: PairGroups | None,
    share: np.ndarray,
    half: np.ndarray,
) -> tuple[Any, Summary]:
    """Find what each row of the larger class weighs in pairs with a margin below 1, and send where those pairs end.

    `anchors` are their scores and groups, sorted by both, where each group begins, and the running sums of their weights; of each
    group `share` is what a pair of weight 1 is of all, and `half` that of a row with all anchors.
    """
    scores, own, own_codes, labels = memory
    ascending, of_anchors, starts, below = anchors
    at, codes = _rows_of(labels, -sign, groups)
    end = _count_below(ascending, of_anchors, scores[at] + 1.0, codes)
    weight = labels.weights()[at]
    coefs, mass = np.zeros(len(scores)), np.zeros(len(scores))
    np.add.at(coefs, at, -sign * weight * share[codes] * (below[end] - below[starts[codes]]))
    np.add.at(mass, at, 0.5 * weight * half[codes])
    sums = np.bincount(end + codes, weight * share[codes], minlength=len(ascending) + len(share))
    return (coefs, mass, own, own_codes, labels.weights()), {"active": sums}


def _count_below(ascending: np.ndarray, of_anchors: np.ndarray, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return how many anchors are of a lower group, or of the same one with a lower score, for each value with its group."""
    if not of_anchors.any():  # all of one group, the first
        return np.searchsorted(ascending, values, side="left")
    is_anchor = np.repeat([1, 0], [len(ascending), len(values)])
    order = np.lexsort((is_anchor, np.concatenate((ascending, values)), np.concatenate((of_anchors, codes))))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.cumsum(is_anchor[order])
    return found[len(ascending) :]


def pair_cells(
    block: Block, memory: Any, slopes: np.ndarray, offsets: np.ndarray, sign: int, half: np.ndarray,
    compared: np.ndarray, tables: tuple[np.ndarray, ...],
) -> tuple[None, Summary]:  # fmt: skip
    """Add up over the cells of each pair how the mean hinge falls with the scores of rows, and what rows weigh in pairs."""
    coefs, mass, own, codes, weight = memory
    coefs, mass = coefs.copy(), mass.copy()
    np.add.at(coefs, own, sign * weight[own] * slopes[offsets[block.index] : offsets[block.index + 1]])
    np.add.at(mass, own, 0.5 * weight[own] * half[codes])
    return None, {
        name: _histograms(block, of, compared, tables) for name, of in (("residual", coefs), ("weight", mass))
    }


def _histograms(block: Block, coefs: np.ndarray, compared: np.ndarray, tables: tuple[np.ndarray, ...]) -> np.ndarray:
    rows, m = block.rows, len(compared)
    assert isinstance(rows, BinRows)
    codes = np.empty((block.n_samples, m), dtype=np.uint8)
    for k, column in enumerate(compared):
        codes[:, k] = tables[k][rows.codes[:, column]]
    sums = np.zeros((m * (m - 1) // 2, CELLS * CELLS))
    pair_histograms(codes, np.arange(block.n_samples), coefs, CELLS, sums)
    return sums
