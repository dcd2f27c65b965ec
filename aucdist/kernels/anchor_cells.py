"""The pairwise hinge with the anchors in cells of scores, where they are too many to be sent to all blocks.

The anchors are the rows of the smaller class (`aucdist.kernels.pairs`). Edges divide their scores into cells, each with its
weight W, the sum S of weight times score, and the least and greatest score, l and h. A row with the score t has the hinge
``max(0, T - a)`` with an anchor of score a, where T = 1 + t. Anchors in cells below T add up exactly: ``W T - S``. In the one
cell that T lies in, the hinges of all its anchors together are

* at least ``max(0, W T - S)``, as the hinge is convex (Jensen);
* at most ``W (T - l) (h - m) / (h - l)`` with the mean score m = S / W: the chord of the hinge between l and h.

These differ by W (h - l) / 4 at most, and not at all where the cell has a single score. The dual variables are 0 or 1 for a cell
and a row, whatever the edges: any such choice is a dual point, so that the bound is as true as with single anchors.
"""

from aucdist.kernels.compiling import kernel
from aucdist.kernels.pairs import n_active

WEIGHT_BELOW, SCORE_BELOW, WEIGHT, SCORE, LOW, HIGH, MEAN, PER_WIDTH = range(8)
"""The columns of `points`: one cache line for each cell."""


@kernel
def fill_cells(scores, weights, edges, table, low, scale, cells, sums, lowest, highest):
    """Find the cell of each anchor, and add the anchors to their cells.

    `scores` and `weights`, of shape (n_anchors,), float64: those of one block.
    `edges`, of shape (n_cells - 1,), float64: ascending. Cell c has the scores from ``edges[c - 1]`` to below
        ``edges[c]``.
    `table`, `low` and `scale`: result of `aucdist.kernels.pairs.search_index` for the edges.
    `cells`, of shape (n_anchors,), int32: written: the cell of each anchor.
    `sums`, of shape (2, n_cells), float64: added to: the weight, and the sum of weight times score.
    `lowest` and `highest`, of shape (n_cells,), float64: lowered and raised to the least and greatest score in each
        cell of anchors that weigh something.
    """
    for k in range(scores.shape[0]):
        t = scores[k]
        c = n_active(edges, table, low, scale, t - 1.0)
        # The search rounds ``edge - (t - 1)``; a cell must have the scores that its edges say.
        while c < edges.shape[0] and edges[c] <= t:
            c += 1
        while c > 0 and edges[c - 1] > t:
            c -= 1
        cells[k] = c
        if weights[k] > 0.0:
            sums[0, c] += weights[k]
            sums[1, c] += weights[k] * t
            lowest[c] = min(lowest[c], t)
            highest[c] = max(highest[c], t)


@kernel
def cut_cells(scores, weights, edges, table, low, scale, points, coefs, histogram, near):
    """Return the weight of the pairs whose dual variable is 1, and an upper and a lower bound on the weighted sum of the hinges.

    `scores` and `weights`, of shape (n_rows,), float64: rows of the larger class.
    `edges`, `table`, `low` and `scale`: as of `fill_cells`.
    `points`, of shape (n_cells, 8), float64: what is known of the anchors in each cell: see `WEIGHT_BELOW` and the
        names beside it.
    `coefs`, of shape (n_rows,), float64: written: the row's weight times the weight of the anchors in cells whose dual
        variable is 1.
    `histogram`, of shape (n_cells + 1,), float64: added to: the weight of the rows with exactly the first r cells.
    `near`, of shape (n_cells,), float64: added to: the weight of the rows whose T lies in the cell.
    """
    active, above, below = 0.0, 0.0, 0.0
    for o in range(scores.shape[0]):
        threshold = 1.0 + scores[o]
        c = n_active(edges, table, low, scale, scores[o])
        point = points[c]
        r, weight = c, point[WEIGHT_BELOW]
        whole = weight * threshold - point[SCORE_BELOW]
        least = most = 0.0
        if point[WEIGHT] > 0.0 and point[LOW] < threshold:
            least = most = point[WEIGHT] * threshold - point[SCORE]
            if threshold < point[HIGH]:
                chord = (threshold - point[LOW]) * (point[HIGH] - point[MEAN]) * point[PER_WIDTH]
                most = max(least, point[WEIGHT] * chord)
            if least > 0.0:
                r, weight = c + 1, weight + point[WEIGHT]
            else:
                least = 0.0
        near[c] += weights[o]
        coefs[o] = weights[o] * weight
        histogram[r] += weights[o]
        active += coefs[o]
        above += weights[o] * (whole + most)
        below += weights[o] * (whole + least)
    return active, above, below
