"""Which pairs of features interact: FAST on what an additive model leaves.

After Lou, Caruana, Gehrke & Hooker, "Accurate intelligible models with pairwise interactions" (KDD 2013). A pair's score is how
much of the residual a table of its cells explains beyond its row and column sums. Departures: 8 x 8 cells in place of the best
2 x 2 split; the residual is the derivative of the mean pairwise hinge by each row's score, at an additive model fitted roughly.
"""

import warnings
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows, expand, pair_histograms
from aucdist.kernels.rows import project
from aucdist.maps.base import encoded
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.all_pairs import all_pairs

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

    Parameters
    ----------
    shares : ndarray of shape (n_bins,), float64
        Of the rows, in each bin.
    missing : bool
    most : int

    Returns
    -------
    ndarray of shape (n_cells,), uint8
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

    Parameters
    ----------
    blocks : Blocks
        Of the features as they came.
    fitted : BinMap
        Without pairs.
    n_pairs : int

    Returns
    -------
    ndarray of shape (n_chosen, 2), int64
        Features a < b; fewer than `n_pairs` where no more explain anything.

    Raises
    ------
    InputError
        If a class has no rows.
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
    rounds = all_pairs(rows, LAM)
    w = solve(rounds, tol=TOL, max_passes=MOST_PASSES).w
    compared = _compared(fitted, w)
    if len(compared) < 2:
        return np.zeros((0, 2), dtype=np.int64)
    tables = tuple(
        coarse(fitted.bins[fitted.used[k]].shares, bool(fitted.missing[fitted.used[k]]), CELLS) for k in compared
    )
    scores = pair_scores(rows, w, compared, tables)
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


def pair_scores(rows: Blocks, w: np.ndarray, compared: np.ndarray, tables: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return how much of the residual each pair's cells explain beyond their row and column sums.

    Parameters
    ----------
    rows : Blocks
        Of codes.
    w : ndarray of shape (n_basis_functions,), float64
        Of the additive model.
    compared : ndarray of int64
        Columns of the codes.
    tables : tuple of ndarray
        The coarse cell, below `CELLS`, of each cell of those.

    Returns
    -------
    ndarray of shape (m (m - 1) / 2,), float64
        In the order of ``np.tril_indices(m, -1)``.
    """
    rows = rows.without_memory()
    sign = 1 if rows.n_pos <= rows.n_neg else -1
    scored = rows.reduce(score_rows, w, sign)
    scores, weights = np.concatenate(scored["scores"]), np.concatenate(scored["weights"])
    order = np.argsort(scores, kind="stable")
    below = np.concatenate(([0.0], np.cumsum(weights[order])))
    active = rows.reduce(active_pairs, scores[order], below, sign)["active"]
    slopes = np.empty(len(scores))
    slopes[order] = np.cumsum(active[::-1])[::-1]
    offsets = np.cumsum([0, *(len(part) for part in scored["scores"])])
    total = rows.weight_pos * rows.weight_neg
    found = rows.reduce(residual_histograms, slopes, offsets, sign, total, compared, tables)
    weight = rows.reduce(class_histograms, rows.weight_neg, rows.weight_pos, compared, tables)["weight"]
    prior = PRIOR / rows.n_samples
    return _gain(found["residual"], weight, prior)


def _gain(residual: np.ndarray, weight: np.ndarray, prior: float) -> np.ndarray:
    G, H = (part.reshape(-1, CELLS, CELLS) for part in (residual, weight))
    gain: np.ndarray = (G**2 / (H + prior)).sum(axis=(1, 2))
    for axis in (1, 2):
        gain = gain - (G.sum(axis=axis) ** 2 / (H.sum(axis=axis) + prior)).sum(axis=1)
    return gain


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def score_rows(block: Block, memory: Any, w: np.ndarray, sign: int) -> tuple[np.ndarray, Summary]:
    """Score the rows, mirrored where the negatives are the smaller class, and send the scores of that."""
    scores = np.empty(block.n_samples)
    project(block.rows, sign * w, scores)
    mine, weight = block.y == sign, block.weights()
    return np.column_stack((scores, weight, block.y)), {"scores": [scores[mine]], "weights": [weight[mine]]}


@without_rows
def active_pairs(
    block: int, memory: np.ndarray, ascending: np.ndarray, below: np.ndarray, sign: int
) -> tuple[tuple[np.ndarray, np.ndarray], Summary]:
    """Find what each row of the larger class weighs in pairs with a margin below 1, and send where those pairs end.

    `ascending` are the scores of the smaller class, and `below` the running sums of its weights.
    """
    scores, weight, y = memory.T
    mine = y != sign
    end = np.searchsorted(ascending, scores[mine] + 1.0, side="left")
    coefs = np.zeros(len(scores))
    coefs[mine] = -sign * weight[mine] * below[end]
    # The row at place k of the smaller class has such a pair with the rows whose end is beyond k.
    return (coefs, weight), {"active": np.bincount(end, weight[mine], minlength=len(ascending) + 1)[1:]}


def residual_histograms(
    block: Block, memory: Any, slopes: np.ndarray, offsets: np.ndarray, sign: int, total: float,
    compared: np.ndarray, tables: tuple[np.ndarray, ...],
) -> tuple[None, Summary]:  # fmt: skip
    """Add up how the mean hinge falls with the score of the rows in each cell of each pair."""
    coefs, weight = memory
    mine = np.flatnonzero(block.y == sign)
    coefs = coefs.copy()
    coefs[mine] = sign * weight[mine] * slopes[offsets[block.index] : offsets[block.index + 1]]
    return None, {"residual": _histograms(block, coefs / total, compared, tables)}


def class_histograms(
    block: Block,
    memory: Any,
    weight_neg: float,
    weight_pos: float,
    compared: np.ndarray,
    tables: tuple[np.ndarray, ...],
) -> tuple[None, Summary]:
    """Add up the rows' weights in each cell of each pair, half for each class."""
    coefs = block.weights() * np.where(block.y > 0, 0.5 / weight_pos, 0.5 / weight_neg)
    return None, {"weight": _histograms(block, coefs, compared, tables)}


def _histograms(block: Block, coefs: np.ndarray, compared: np.ndarray, tables: tuple[np.ndarray, ...]) -> np.ndarray:
    rows, m = block.rows, len(compared)
    assert isinstance(rows, BinRows)
    codes = np.empty((block.n_samples, m), dtype=np.uint8)
    for k, column in enumerate(compared):
        codes[:, k] = tables[k][rows.codes[:, column]]
    sums = np.zeros((m * (m - 1) // 2, CELLS * CELLS))
    pair_histograms(codes, np.arange(block.n_samples), coefs, CELLS, sums)
    return sums
