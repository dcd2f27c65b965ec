"""Sums over the pairs within groups: the kernels of all pairs, called on the anchors and the rows of one group after another.

Anchors lie sorted by group, and by score within each. A group of m anchors has m + 1 places: before, between and behind its
anchors. Running sums and slope sums have an entry for each place, group after group, so that those of a group begin at its first
anchor's position plus its number. They start anew in each group, whose sums thus carry no rounding of another's.

In all of them ``starts`` is int64 of shape (n_groups + 1,), where the anchors of each group begin and end. ``runs`` and ``codes``
say which rows are whose: rows ``runs[k]`` up to ``runs[k + 1]`` are of group ``codes[k]``. ``table``, ``table_starts``, ``low``
and ``scale`` are the guides of all groups (`aucdist.kernels.pairs.search_index`), each of a size of its own.
"""

from aucdist.kernels.compiling import kernel
from aucdist.kernels.pairs import cut, hinge_sum, search_index, slopes_along
from aucdist.kernels.ramp import anchor_slopes, ramp_sum


@kernel
def arrange(order, codes, starts, at, arranged):
    """Write positions in the order of their groups, which keep the order they come in.

    `order`, of shape (n,), int64: positions, such as those that sort scores.
    `codes`, of shape (n,), int32: the group of each position.
    `starts`: of shape (n_groups + 1,), int64.
    `at`, of shape (n_groups,), int64: workspace.
    `arranged`, of shape (n,), int64: written.
    """
    for g in range(at.shape[0]):
        at[g] = starts[g]
    for k in range(order.shape[0]):
        g = codes[order[k]]
        arranged[at[g]] = order[k]
        at[g] += 1


@kernel
def guide_groups(anchors, starts, table, table_starts, low, scale):
    """Write the search_index of every group's anchors (ascending, float64) into its part of the table."""
    for g in range(low.shape[0]):
        if starts[g] < starts[g + 1]:
            mine = table[table_starts[g] : table_starts[g + 1]]
            low[g], scale[g] = search_index(anchors[starts[g] : starts[g + 1]], mine)


@kernel
def running_sums_in_groups(values, starts, out):
    """Write the running sums of each group's values, which start with 0, into its places of `out`."""
    for g in range(starts.shape[0] - 1):
        total = 0.0
        out[starts[g] + g] = 0.0
        for k in range(starts[g], starts[g + 1]):
            total += values[k]
            out[k + g + 1] = total


@kernel
def cut_in_groups(
    scores, weights, runs, codes, anchors, starts, table, table_starts, low, scale, weight_below, score_below, coefs, slope_sums
):  # fmt: skip
    """Return the weight of the active pairs within groups, and the weighted sum of their hinges.

    See `aucdist.kernels.pairs.cut`; `coefs` is written, and `slope_sums`, with an entry for each place, is added to.
    """
    active = 0.0
    hinge = 0.0
    for k in range(codes.shape[0]):
        g = codes[k]
        mine = slice(runs[k], runs[k + 1])
        here = slice(starts[g], starts[g + 1])
        places = slice(starts[g] + g, starts[g + 1] + g + 1)
        a, h = cut(
            scores[mine], weights[mine], anchors[here], table[table_starts[g] : table_starts[g + 1]], low[g], scale[g],
            weight_below[places], score_below[places], coefs[mine], slope_sums[places],
        )  # fmt: skip
        active += a
        hinge += h
    return active, hinge


@kernel
def hinge_sum_in_groups(
    scores, weights, runs, codes, anchors, starts, table, table_starts, low, scale, weight_below, score_below
):  # fmt: skip
    """Return the weighted sum of the hinges of all pairs within groups."""
    total = 0.0
    for k in range(codes.shape[0]):
        g = codes[k]
        mine = slice(runs[k], runs[k + 1])
        places = slice(starts[g] + g, starts[g + 1] + g + 1)
        total += hinge_sum(
            scores[mine], weights[mine], anchors[starts[g] : starts[g + 1]],
            table[table_starts[g] : table_starts[g + 1]], low[g], scale[g], weight_below[places], score_below[places],
        )  # fmt: skip
    return total


@kernel
def anchor_slopes_in_groups(slope_sums, starts, weights, order, slopes):
    """Write minus the weight of each anchor's active pairs.

    `slope_sums`, of shape (n_components, n_gaps), float64: from `cut_in_groups`.
    `starts`: of shape (n_groups + 1,), int64.
    `weights`, of shape (n_anchors,), float64: in the order of the anchors.
    `order`, of shape (n_anchors,), int64: where each anchor's slope belongs.
    `slopes`, of shape (n_components, n_anchors), float64: written.
    """
    for t in range(slope_sums.shape[0]):
        for g in range(starts.shape[0] - 1):
            above = 0.0
            for k in range(starts[g + 1] - 1, starts[g] - 1, -1):
                above += slope_sums[t, k + g + 1]
                slopes[t, order[k]] = -above * weights[k]


@kernel
def slopes_along_in_groups(
    start, end, weights, runs, codes, steps, stride, anchors, starts, table, table_starts, low, scale, weight_below,
    change_below, slopes,
):  # fmt: skip
    """Add the derivative of the hinge sum with respect to the step; see `aucdist.kernels.pairs.slopes_along`.

    `start`, `end`, `weights`, `runs` and `codes`: as there, and as in the other functions here.
    `stride`, int: only one row in so many is used, counted over all groups.
    `anchors`, `table`, `low`, `scale`, `weight_below` and `change_below`, ndarray: with one row for each step.
    `slopes`, of shape (n_steps,), float64: added to.
    Returns the weight of the pairs of the rows used, with all anchors of their groups.
    """
    mass = 0.0
    for k in range(codes.shape[0]):
        g = codes[k]
        a, b = starts[g], starts[g + 1]
        first = runs[k] + (-runs[k]) % stride
        if a == b or first >= runs[k + 1]:
            continue
        mine = slice(first, runs[k + 1])
        slopes_along(
            start[mine], end[mine], weights[mine], steps, stride, anchors[:, a:b],
            table[:, table_starts[g] : table_starts[g + 1]], low[:, g], scale[:, g], weight_below[:, a + g : b + g + 1],
            change_below[:, a + g : b + g + 1], slopes,
        )  # fmt: skip
        total = 0.0
        for o in range(first, runs[k + 1], stride):
            total += weights[o]
        mass += total * weight_below[0, b + g]
    return mass


@kernel
def ramp_in_groups(
    scores, weights, runs, codes, anchors, starts, table, table_starts, low, scale, weight_below, score_below, square_below,
    coefs, sums,
):  # fmt: skip
    """Return the weighted sum of the ramps of all pairs within groups; see `aucdist.kernels.ramp.ramp_sum`."""
    total = 0.0
    for k in range(codes.shape[0]):
        g = codes[k]
        mine = slice(runs[k], runs[k + 1])
        places = slice(starts[g] + g, starts[g + 1] + g + 1)
        total += ramp_sum(
            scores[mine], weights[mine], anchors[starts[g] : starts[g + 1]],
            table[table_starts[g] : table_starts[g + 1]], low[g], scale[g], weight_below[places], score_below[places],
            square_below[places], coefs[mine], sums[places],
        )  # fmt: skip
    return total


@kernel
def ramp_slopes_in_groups(sums, anchors, starts, weights, order, slopes):
    """Write the derivative of the sum of the ramps by each anchor's score; see `aucdist.kernels.ramp.anchor_slopes`."""
    for g in range(starts.shape[0] - 1):
        here = slice(starts[g], starts[g + 1])
        anchor_slopes(sums[starts[g] + g : starts[g + 1] + g + 1], anchors[here], weights[here], order[here], slopes)
