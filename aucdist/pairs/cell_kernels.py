"""Histograms of scores: of anchors that are too many to send to all blocks, and of rows whose highest scores are needed.

**The pairwise hinge with the anchors in cells.** The anchors are the rows of the smaller class (`aucdist.pairs.kernels`).
Edges divide their scores into cells, each with its weight W, the sum S of weight times score, and the least and greatest
score, l and h. A row with the score t has the hinge ``max(0, T - a)`` with an anchor of score a, where T = 1 + t. Anchors in
cells below T add up exactly: ``W T - S``. In the one cell that T lies in, the hinges of all its anchors together are

* at least ``max(0, W T - S)``, as the hinge is convex (Jensen);
* at most ``W (T - l) (h - m) / (h - l)`` with the mean score m = S / W: the chord of the hinge between l and h.

These differ by W (h - l) / 4 at most, and not at all where the cell has a single score. The dual variables are 0 or 1 for a cell
and a row, whatever the edges: any such choice is a dual point, so the bound is as valid as with single anchors.

`find_cells` gives the cell of a score. Its number is non-decreasing in the score, and only this property is used: the
cell of T divides the anchors into those below T, those above it, and its own, however an edge was rounded.

**The highest scores** lie in cells that are counted block by block and added up. The order of float64 numbers is that of their
bits, read as integers with those of negative numbers reversed. So the leading 16 bits of such an integer, its *cell*, never
decrease as the score rises, and equal scores always share their cell.
"""

import numpy as np

from aucdist.kernels.compiling import kernel


@kernel
def index_edges(edges, table):
    """Divide the range of the edges into equal intervals, and write which cell begins in each.

    If a place has a single edge, this edge counts as if it lay where the place begins, so that scores there need no comparison.

    `edges`, of shape (n_cells - 1,), float64: ascending, at least one.
    `table`, of shape (n_places,), int16: written: how many edges lie up to the end of each place; where several edges
        lie in it, -1 minus how many before it.
    Score t lies in place ``1 + (t - low) * scale``; low and scale are returned.
    """
    low, last = edges[0], table.shape[0] - 1.0
    width = edges[-1] - low
    scale = (last - 1.0) / width if width > 0.0 and (last - 1.0) / width < np.inf else 1.0
    r = 0
    for p in range(table.shape[0]):
        before = r
        while r < edges.shape[0] and _place(edges[r], low, scale, last) <= p:
            r += 1
        table[p] = r if r - before <= 1 else -1 - before
    return low, scale


@kernel(forceinline=True)
def _place(score, low, scale, last):
    return np.uint64(min(max(1.0 + (score - low) * scale, 0.0), last))


@kernel
def find_cells(scores, search, cells):
    """Write the cell of each score into `cells`, int32 of shape (n_rows,); see `index_edges`."""
    edges, table, low, scale = search
    last, crowded = table.shape[0] - 1.0, 0
    for k in range(scores.shape[0]):
        c = table[_place(scores[k], low, scale, last)]
        cells[k] = c
        crowded = min(crowded, c)
    if crowded < 0:
        for k in range(scores.shape[0]):
            if cells[k] < 0:
                left, right = -1 - cells[k], edges.shape[0]
                while left < right:
                    middle = (left + right) >> 1
                    if edges[middle] <= scores[k]:
                        left = middle + 1
                    else:
                        right = middle
                cells[k] = left


@kernel
def fill_cells(scores, weights, search, cells, sums, ends):
    """Find the cell of each anchor, and add the anchors to their cells.

    `scores` and `weights`, of shape (n_anchors,), float64: those of one block.
    `search`: edges, float64 of shape (n_cells - 1,), the table of `index_edges` for them, and what it returned.
    `cells`, of shape (n_anchors,), int32: written: the cell of each anchor.
    `sums`, of shape (2, n_cells), float64: added to: the weight, and the sum of weight times score.
    `ends`, two of shape (n_cells,), float64: lowered and raised to the least and greatest score in each cell of anchors that
        weigh something.
    """
    find_cells(scores, search, cells)
    lowest, highest = ends
    for k in range(scores.shape[0]):
        if weights[k] > 0.0:
            c, t = np.uint32(cells[k]), scores[k]
            sums[0, c] += weights[k]
            sums[1, c] += weights[k] * t
            lowest[c] = min(lowest[c], t)
            highest[c] = max(highest[c], t)


BITS = 16
"""The number of bits of a score that a round of counting reads."""


@kernel
def key(score):
    """Return an int64 in the order of the scores; -0.0 has the same one as 0.0."""
    bits = np.float64(score + 0.0).view(np.int64)
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def count_keys(scores, weights, prefix, shift, weight_of_cell, rows_of_cell):
    """Count the rows whose key begins with the bits of `prefix`, by the next 16 bits.

    `scores` and `weights`: of shape (n_rows,), float64.
    `prefix`, int: the bits of a key above the 16 that are counted, ``key >> (shift + 16)``; ignored for a shift of 48,
        where there are none.
    `shift`, int: 48, 32, 16 or 0: how many bits are below the 16 that are counted.
    `weight_of_cell` and `rows_of_cell`, of shape (65536,), float64: added to; in the order of the scores.
    """
    first = shift + BITS >= 64
    for o in range(scores.shape[0]):
        k = key(scores[o])
        cell = (k >> np.int64(shift)) + 32768
        if not first:
            if k >> np.int64(shift + BITS) != prefix:
                continue
            cell = (k >> np.int64(shift)) & 0xFFFF
        weight_of_cell[cell] += weights[o]
        rows_of_cell[cell] += 1.0
