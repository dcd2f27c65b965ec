"""Losses summed over all positive-negative pairs: the hinge and the smoothed ramp.

The sums take O(n log m) operations, where m is the size of the smaller class.

**The hinge.** The rows of the smaller class are called anchors. Every block has their scores, sorted, and running sums of their
weights. A row o of the larger class is in an active pair with anchor a if ``t_a - t_o < 1``. A rounded subtraction is monotone,
so among the sorted anchors the active ones come first, and one binary search decides all pairs of row o. No other code decides
whether a pair is active: the counts of the anchors come from the histogram of the positions found. Value, gradient and dual
value therefore always belong to the same dual point. If the positives are the smaller class, t are the scores. If the negatives
are, scores and classes are mirrored, ``t = -s``.

Pairs are within groups. Without groups, all rows belong to one group. Anchors are sorted by group, and by score within each
group. A group of m anchors has m + 1 gaps: before, between and behind its anchors. Running sums and slope sums have an entry
for each gap, group after group, so that the entries of a group begin at the position of its first anchor plus the number of the
group. They start from 0 in each group, so that rounding errors of one group do not affect another. ``starts``, int64 of shape
(n_groups + 1,), has the positions where the anchors of each group begin and end. ``bounds`` and ``group_numbers`` give the
group of each row: rows ``bounds[k]`` to ``bounds[k + 1] - 1`` belong to group ``group_numbers[k]``. ``table``,
``table_starts``, ``low`` and ``scale`` are the search indices of all groups (`search_index`).

For one group, ``anchors`` is a float64 array of shape (n_anchors,), ascending. ``weight_below`` and ``score_below`` are its
running sums, float64 of shape (n_anchors + 1,): entry r is the sum over the first r anchors of the weight, or of weight times
score. ``table``, ``low`` and ``scale`` come from `search_index`, and make the search faster.

**The smoothed ramp.** The ramp of a margin m is 1 up to -1, and 0 from 1 on. Between, it is ``1 - (1 + m)^2 / 2`` below 0 and
``(1 - m)^2 / 2`` above 0. A row with the score s has the margin a - s with an anchor of score a. Three searches among the
sorted anchors find those with margins below -1, 0 and 1, and running sums of the anchors' weights, scores and squares give the
sums. The ramp is differentiable, so it does not matter if rounding moves a pair across a bound. The error of a pair's ramp is
about the machine epsilon times the largest squared score.

**Histograms of scores** are used to count the anchors if there are too many to send, and to find the rows with the highest
scores.

**The pairwise hinge with the anchors in cells.** Edges divide the scores of the anchors into intervals, called cells. Each cell
has the weight W of its anchors, the sum S of weight times score, and the lowest and highest score, l and h. A row with the
score t has the hinge ``max(0, T - a)`` with an anchor of score a, where T = 1 + t. Anchors in cells below T add up exactly to
``W T - S``. In the one cell in which T lies, the sum of the hinges of all its anchors is

* at least ``max(0, W T - S)``, because the hinge is convex (Jensen);
* at most ``W (T - l) (h - m) / (h - l)`` with the mean score m = S / W, which is the chord of the hinge between l and h.

These differ by W (h - l) / 4 at most, and are equal if the cell has a single score. The dual variable of a cell and a row is 0
or 1. Any such choice is a dual point, whatever the edges, so the bound is as valid as with single anchors.

`find_cells` returns the number of the cell of a score, which never decreases as the score rises. Only this property is used:
the cell of T divides the anchors into those below T, those above T, and those in the cell, however an edge was rounded.

**The highest scores** are found by counting cells block by block and adding up the counts. The order of float64 numbers is that
of their bits, read as integers with those of negative numbers reversed. So the leading 16 bits of such an integer, its *cell*,
never decrease as the score rises, and equal scores are always in the same cell.
"""

import numpy as np

from aucdist.kernels.codes import search_index
from aucdist.kernels.compiling import kernel

COMPARED_AT_ONCE = np.uint64(2)
"""The number of anchors that the end of a search compares at once. A cell of the table has half an anchor on average: a cut of
476,000 rows with 8,000 cells of anchors takes 12 CPU milliseconds with 2, 13 with 3, 21 with 4 and 15 to 19 with 1."""
ONE, NONE = np.uint64(1), np.uint64(0)
"""Positions are unsigned, as in `aucdist.kernels.rows`. Numba then does not check for negative indices, and a cut takes a quarter
less time."""


@kernel
def n_active(anchors, table, low, scale, score):
    """Return the number of sorted anchors with ``anchor - score < 1``, as an unsigned integer."""
    n, last = np.uint64(anchors.shape[0]), np.float64(table.shape[0] - 2)
    cell = np.uint64(min(max(0.0, (score + 1.0 - low) * scale), last))
    left, right = np.uint64(table[cell]), np.uint64(table[cell + ONE])
    while right > left + COMPARED_AT_ONCE:
        middle = (left + right) >> ONE
        if anchors[middle] - score < 1.0:
            left = middle + ONE
        else:
            right = middle
    # The last few anchors are compared without a branch, which would often be mispredicted. Anchors beyond the cell are
    # inactive.
    if left + COMPARED_AT_ONCE <= n:
        more = NONE
        for k in range(left, left + COMPARED_AT_ONCE):
            more += np.uint64(anchors[k] - score < 1.0)
        left += more
    # The cell was found by rounded arithmetic and may be the neighbouring one. The result depends on the comparison only.
    while left < n and anchors[left] - score < 1.0:
        left += ONE
    while left > NONE and not anchors[left - ONE] - score < 1.0:
        left -= ONE
    return left


@kernel
def cut_group(scores, weights, shifts, anchors, table, low, scale, weight_below, score_below, slacks, coefs, histogram):
    """Return the sum of the cuts at shifted scores, and the hinge at the scores themselves.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,), float64
        The rows of the larger class.
    shifts : ndarray of shape (n_shifts,), float64
        The shifts, ascending. Their number is odd, and the one in the middle is 0.
    anchors, table, low, scale, weight_below, score_below
        The smaller class, as the top of this module describes it.
    slacks : ndarray of shape (n_anchors + 1,) or (1,), float64
        If anchors stand for cells, a bound on the error of the hinge of a row of weight 1 that is active with the first r
        anchors. Otherwise 0.
    coefs : ndarray of shape (n_rows,), float64
        Output: the weight of the row times the weight of the anchors that are active with it, summed over the shifts.
    histogram : ndarray of shape (n_anchors + 1,), float64
        For each shift, the weight of the rows that are active with exactly the first r anchors is added to entry r.

    Returns
    -------
    active : float
        The weight of the active pairs, summed over the shifts.
    hinge : float
        The weighted sum of the hinges.
    slack : float
        The sum of their slacks.
    n_band : int
        The number of rows that are active with more anchors at the last shift than at the first.
    """
    active, hinge, slack, n_band, n_shifts = 0.0, 0.0, 0.0, 0, shifts.shape[0]
    middle, last, all_exact = n_shifts >> 1, shifts[n_shifts - 1], slacks.shape[0] == 1
    for o in range(scores.shape[0]):
        weight = weights[o]
        if not anchors[0] - (scores[o] + last) < 1.0:  # no active pair: the common case for a good model
            coefs[o] = 0.0
            histogram[0] += weight * n_shifts
            continue
        first, total = NONE, 0.0
        for k in range(n_shifts):
            r = n_active(anchors, table, low, scale, scores[o] + shifts[k])
            histogram[r] += weight
            total += weight_below[r]
            first = r if k == 0 else first
            if k == middle:
                hinge += weight * (weight_below[r] * (1.0 + scores[o]) - score_below[r])
                slack += weight * slacks[NONE if all_exact else r]
        n_band += r > first
        coefs[o] = weight * total
        active += coefs[o]
    return active, hinge, slack, n_band


@kernel
def arrange(order, group_numbers, starts, at, arranged):
    """Sort positions by group. Within each group, they keep their order.

    Parameters
    ----------
    order : ndarray of shape (n,), int64
        Positions, such as those that sort scores.
    group_numbers : ndarray of shape (n,), int32
        The group of each position.
    starts : ndarray of shape (n_groups + 1,), int64
        Where the positions of each group begin.
    at : ndarray of shape (n_groups,), int64
        Workspace.
    arranged : ndarray of shape (n,), int64
        Output: the sorted positions.
    """
    for g in range(at.shape[0]):
        at[g] = starts[g]
    for k in range(order.shape[0]):
        g = group_numbers[order[k]]
        arranged[at[g]] = order[k]
        at[g] += 1


@kernel
def index_groups(anchors, starts, table, table_starts, low, scale):
    """Write the `search_index` of the anchors of each group, which ascend, into its part of the table."""
    for g in range(low.shape[0]):
        if starts[g] < starts[g + 1]:
            group_table = table[table_starts[g] : table_starts[g + 1]]
            low[g], scale[g] = search_index(anchors[starts[g] : starts[g + 1]], group_table)


@kernel
def running_sums_in_groups(values, starts, out):
    """Write the running sums of the values of each group, which start with 0, into its part of `out`."""
    for g in range(starts.shape[0] - 1):
        total = 0.0
        out[starts[g] + g] = 0.0
        for k in range(starts[g], starts[g + 1]):
            total += values[k]
            out[k + g + 1] = total


@kernel
def cut_groups(rows, shifts, search, row_slack, coefs, slope_sums):
    """Return the sum of the cuts at shifted scores over the pairs within groups, and their hinges: see `cut_group`.

    Parameters
    ----------
    rows : tuple
        Scores, weights, and ``(bounds, group_numbers)`` of rows of the larger class.
    shifts : ndarray of shape (n_shifts,), float64
        As for `cut_group`.
    search : tuple
        The anchors and their search indices, as `Anchors.search` returns them.
    row_slack : ndarray, float64
        As `slacks` of `cut_group`, for all groups.
    coefs : ndarray of shape (n_rows,), float64
        Output, as for `cut_group`.
    slope_sums : ndarray of shape (n_gaps,), float64
        The histograms of all groups, to which the rows are added.
    """
    scores, weights, (bounds, group_numbers) = rows
    anchors, starts, table, table_starts, low, scale, weight_below, score_below = search
    active, hinge, slack, n_band = 0.0, 0.0, 0.0, 0
    for k in range(group_numbers.shape[0]):
        g = group_numbers[k]
        group_rows = slice(bounds[k], bounds[k + 1])
        group_anchors = slice(starts[g], starts[g + 1])
        places = slice(starts[g] + g, starts[g + 1] + g + 1)
        a, h, d, n = cut_group(
            scores[group_rows], weights[group_rows], shifts, anchors[group_anchors],
            table[table_starts[g] : table_starts[g + 1]], low[g], scale[g], weight_below[places], score_below[places], row_slack,
            coefs[group_rows], slope_sums[places],
        )  # fmt: skip
        active += a
        hinge += h
        slack += d
        n_band += n
    return active, hinge, slack, n_band


@kernel
def sums_above(slope_sums, starts, out):
    """Compute for each anchor the sums over the gaps above it in its group, added up from the last one down.

    Parameters
    ----------
    slope_sums : ndarray of shape (n_gaps, n), float64
        What `cut_groups` or `ramp_sum` wrote for all rows.
    starts : ndarray of shape (n_groups + 1,), int64
        Where the anchors of each group begin.
    out : ndarray of shape (n_anchors, n), float64
        Output.
    """
    for g in range(starts.shape[0] - 1):
        for c in range(out.shape[1]):
            above = 0.0
            for k in range(starts[g + 1] - 1, starts[g] - 1, -1):
                above += slope_sums[k + g + 1, c]
                out[k, c] = above


@kernel
def ramp_of_group(scores, weights, anchors, table, low, scale, weight_below, score_below, square_below, coefs, sums):
    """Return the weighted sum of the ramps of all pairs of rows with the anchors, and write its derivative for every row.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,), float64
        The rows of the larger class.
    anchors : ndarray of shape (n_anchors,), float64
        The scores of the smaller class, ascending.
    table, low, scale
        The search index of the anchors, from `search_index`.
    weight_below, score_below, square_below : ndarray of shape (n_anchors + 1,), float64
        Sums over the first r anchors of the weight, weight times score, and weight times squared score.
    coefs : ndarray of shape (n_rows,), float64
        Output: the derivative by the score of each row.
    sums : ndarray of shape (n_anchors + 1, 3), float64
        `PairRamp.anchor_slopes` computes the derivatives for the anchors from it. The rows are added to the entries of the
        numbers of anchors with which they have margins below 1, 0 and -1.

    Returns
    -------
    float
        The weighted sum of the ramps.
    """
    total = 0.0
    for o in range(scores.shape[0]):
        score = scores[o]
        if not anchors[0] - score < 1.0:  # no active pair: the common case for a good model
            coefs[o] = 0.0
            continue
        near = n_active(anchors, table, low, scale, score)  # margins below 1
        ties = n_active(anchors, table, low, scale, score - 1.0) if anchors[0] < score else NONE  # below 0
        lost = n_active(anchors, table, low, scale, score - 2.0) if anchors[0] < score - 1.0 else NONE  # below -1
        won_weight = weight_below[near] - weight_below[ties]
        won_score = score_below[near] - score_below[ties]
        won_square = square_below[near] - square_below[ties]
        lost_weight = weight_below[ties] - weight_below[lost]
        lost_score = score_below[ties] - score_below[lost]
        lost_square = square_below[ties] - square_below[lost]
        up, down = 1.0 + score, 1.0 - score
        weight = weights[o]
        coefs[o] = weight * (up * won_weight - won_score + down * lost_weight + lost_score)
        won = 0.5 * (up * up * won_weight - 2.0 * up * won_score + won_square)
        spared = 0.5 * (down * down * lost_weight + 2.0 * down * lost_score + lost_square)
        total += weight * (weight_below[ties] - spared + won)
        sums[near, 0] += weight
        sums[lost, 0] -= weight
        sums[near, 1] += weight
        sums[ties, 1] -= 2.0 * weight
        sums[lost, 1] += weight
        moment = weight * score
        sums[near, 2] += moment
        sums[ties, 2] -= 2.0 * moment
        sums[lost, 2] += moment
    return total


@kernel
def ramp_sum(rows, search, coefs, sums):
    """Return the weighted sum of the ramps of all pairs within groups: see `ramp_of_group`, and `cut_groups` for parameters."""
    scores, weights, (bounds, group_numbers) = rows
    anchors, starts, table, table_starts, low, scale, weight_below, score_below, square_below = search
    total = 0.0
    for k in range(group_numbers.shape[0]):
        g = group_numbers[k]
        group_rows = slice(bounds[k], bounds[k + 1])
        places = slice(starts[g] + g, starts[g + 1] + g + 1)
        total += ramp_of_group(
            scores[group_rows], weights[group_rows], anchors[starts[g] : starts[g + 1]],
            table[table_starts[g] : table_starts[g + 1]], low[g], scale[g], weight_below[places], score_below[places],
            square_below[places], coefs[group_rows], sums[places],
        )  # fmt: skip
    return total


@kernel
def index_edges(edges, table):
    """Divide the range of the edges into equal intervals, and write the number of the cell that begins in each interval.

    A score t lies in interval ``1 + (t - low) * scale``. If an interval has a single edge, this edge counts as if it were at
    the beginning of the interval, so that scores there need no comparison.

    Parameters
    ----------
    edges : ndarray of shape (n_cells - 1,), float64
        The edges, ascending. There is at least one.
    table : ndarray of shape (n_intervals,), int16
        Output: the number of edges up to the end of each interval. If several edges lie in it, -1 minus the number of edges
        before it.

    Returns
    -------
    low, scale : float
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
    """Write the number of the cell of each score into `cells`, int32 of shape (n_rows,). See `index_edges`."""
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

    Parameters
    ----------
    scores, weights : ndarray of shape (n_anchors,), float64
        The anchors of one block.
    search : tuple
        The edges, float64 of shape (n_cells - 1,), and what `index_edges` wrote and returned for them.
    cells : ndarray of shape (n_anchors,), int32
        Output: the number of the cell of each anchor.
    sums : ndarray of shape (2, n_cells), float64
        The weight of the anchors and the sum of weight times score are added to it.
    ends : tuple of two ndarrays of shape (n_cells,), float64
        The lowest and the highest score of anchors with a weight above 0 in each cell, which are updated.
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
def count_keys(scores, weights, prefix, shift, weight_of_cell, rows_of_cell):
    """Count the rows whose keys begin with the bits of `prefix`, by the next 16 bits.

    A key is an int64 with the order of the scores.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,), float64
        The scores and the weights of the rows.
    prefix : int
        The bits of a key above the 16 that are counted, ``key >> (shift + 16)``; ignored for a shift of 48, if there are
        none.
    shift : int
        48, 32, 16 or 0: how many bits are below the 16 that are counted.
    weight_of_cell, rows_of_cell : ndarray of shape (65536,), float64
        The weights and numbers of the rows are added to it, in the order of the scores.
    """
    first = shift + BITS >= 64
    for o in range(scores.shape[0]):
        bits = np.float64(scores[o] + 0.0).view(np.int64)  # -0.0 has the key of 0.0
        k = bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)
        cell = (k >> np.int64(shift)) + 32768
        if not first:
            if k >> np.int64(shift + BITS) != prefix:
                continue
            cell = (k >> np.int64(shift)) & 0xFFFF
        weight_of_cell[cell] += weights[o]
        rows_of_cell[cell] += 1.0
