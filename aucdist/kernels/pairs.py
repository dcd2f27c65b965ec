"""The pairwise hinge summed over all positive-negative pairs in O(n log m), m the size of the smaller class.

The rows of the smaller class are called anchors. Every block has their scores, sorted, with running sums of their weights. A row
o of the larger class has an active hinge with anchor a if ``t_a - t_o < 1``. A rounded subtraction is monotone, so among sorted
anchors the active ones come first, and one binary search for that predicate decides all pairs of row o. No pair is decided
anywhere else: the anchors' own counts come from the histogram of the positions found, so that value, gradient and dual value
always belong to one dual point. Scores are those of "positive above negative"; where the negatives are the smaller class, scores
and classes are mirrored, ``t = -s``.

In all of them ``anchors`` is a float64 array of shape (n_anchors,), ascending; ``weight_below`` and ``score_below`` are its
running sums, float64 of shape (n_anchors + 1,): entry r is the sum over the first r anchors of the weight, or of weight times
score. ``table``, ``low`` and ``scale`` come from `search_index`, and shorten the search.
"""

import numpy as np

from aucdist.kernels.compiling import kernel

FEW = 4
"""The number of anchors that the end of a search compares at once."""


@kernel
def search_index(anchors, table):
    """Divide the range of the anchors into equal cells and write where each begins, so that a search starts next to its end.

    `anchors`: of shape (n_anchors,), float64.
    `table`, of shape (n_cells + 1,), int32: written: how many anchors lie below each cell's lower edge; the last entry
        is n_anchors.
    Returns `low, scale`: score v lies in cell ``(v - low) * scale``.
    """
    n_cells = table.shape[0] - 1
    low = anchors[0]
    width = anchors[-1] - low
    scale = n_cells / width if width > 0.0 and n_cells / width < np.inf else 0.0
    r = 0
    for c in range(n_cells):
        while r < anchors.shape[0] and (anchors[r] - low) * scale < c:
            r += 1
        table[c] = r
    table[n_cells] = anchors.shape[0]
    return low, scale


@kernel
def n_active(anchors, table, low, scale, score):
    """Return how many of the sorted anchors satisfy ``anchor - score < 1``."""
    cell = 0
    position = (score + 1.0 - low) * scale
    n_cells = table.shape[0] - 1
    if position >= n_cells:
        cell = n_cells - 1
    elif position > 0.0:
        cell = int(position)
    left, right = table[cell], table[cell + 1]
    while right - left > FEW:
        middle = (left + right) >> 1
        if anchors[middle] - score < 1.0:
            left = middle + 1
        else:
            right = middle
    # The last few at once, without a branch that a processor could not predict. Those beyond the cell are not active anyway.
    if left + FEW <= anchors.shape[0]:
        found = 0
        for k in range(left, left + FEW):
            found += anchors[k] - score < 1.0
        left += found
    # The cell was found by rounded arithmetic, and may be the next one: only the predicate decides.
    while left < anchors.shape[0] and anchors[left] - score < 1.0:
        left += 1
    while left > 0 and not anchors[left - 1] - score < 1.0:
        left -= 1
    return left


@kernel
def hinge_sum(scores, weights, anchors, table, low, scale, weight_below, score_below):
    """Return the weighted sum of the hinges of all pairs of these rows (float64 scores and weights) and the anchors."""
    total = 0.0
    for o in range(scores.shape[0]):
        if anchors[0] - scores[o] < 1.0:
            r = n_active(anchors, table, low, scale, scores[o])
            total += weights[o] * (weight_below[r] * (1.0 + scores[o]) - score_below[r])
    return total


@kernel
def cut(scores, weights, anchors, table, low, scale, weight_below, score_below, coefs, histogram):
    """Return the weight of the active pairs of these rows with the anchors, and the weighted sum of their hinges.

    `scores` and `weights`, of shape (n_rows,), float64: rows of the larger class.
    `anchors`, `table`, `low`, `scale`, `weight_below` and `score_below`: the smaller class.
    `coefs`, of shape (n_rows,), float64: written: the row's weight times the weight of the anchors active with it.
    `histogram`, of shape (n_anchors + 1,), float64: added to: the weight of the rows that are active with exactly the
        first r anchors.
    """
    active = 0.0
    hinge = 0.0
    for o in range(scores.shape[0]):
        r = n_active(anchors, table, low, scale, scores[o]) if anchors[0] - scores[o] < 1.0 else 0
        coefs[o] = weights[o] * weight_below[r]
        histogram[r] += weights[o]
        active += coefs[o]
        hinge += weights[o] * (weight_below[r] * (1.0 + scores[o]) - score_below[r])
    return active, hinge


@kernel
def slopes_along(start, end, weights, steps, stride, anchors, table, low, scale, weight_below, change_below, slopes):
    """Add the derivative of the hinge sum with respect to the step, at several steps between two score vectors.

    `start` and `end`, of shape (n_rows,), float64: scores of the larger class at step 0 and at step 1.
    `weights`: of shape (n_rows,), float64.
    `steps`, of shape (n_steps,), float64: ascending.
    `stride`, int: only one row in so many is used.
    `anchors`, of shape (n_steps, n_anchors), float64: the anchors' scores at each step, ascending.
    `table`, `low` and `scale`, of shape (n_steps, n_cells + 1), (n_steps,), (n_steps,): each step's search_index.
    `weight_below` and `change_below`, of shape (n_steps, n_anchors + 1), float64: sums over the first r anchors of the
        weight, and of weight times (end - start).
    `slopes`, of shape (n_steps,), float64: added to.
    """
    n_steps = steps.shape[0]
    lowest = anchors[0, 0]
    for k in range(1, n_steps):
        lowest = anchors[k, 0] if anchors[k, 0] < lowest else lowest
    for o in range(0, start.shape[0], stride):
        change = end[o] - start[o]
        highest = start[o] + steps[n_steps - 1 if change > 0.0 else 0] * change
        # Most rows of a good model are active with no anchor at any of the steps.
        if lowest - highest < 1.0:
            for k in range(n_steps):
                r = n_active(anchors[k], table[k], low[k], scale[k], start[o] + steps[k] * change)
                slopes[k] += weights[o] * (weight_below[k, r] * change - change_below[k, r])
