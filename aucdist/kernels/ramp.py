"""The smoothed ramp summed over all positive-negative pairs in O(n log m), m the size of the smaller class.

The ramp of a margin m is 1 up to -1, 0 from 1 on and 1/2 at 0; between, ``1 - (1 + m)^2 / 2`` below 0 and ``(1 - m)^2 / 2``
above it. The rows of the smaller class are called anchors, as in `aucdist.kernels.pairs`: with anchor a, a row of score s has
the margin a - s. Three searches among the sorted anchors find those with margins below -1, 0 and 1; running sums of the anchors'
weights, scores and squares give the sums. The ramp has no corners, so it does not matter to which side of a bound rounding
moves a pair.
A pair's ramp is exact to about the machine epsilon times the largest squared score.
"""

from aucdist.kernels.compiling import kernel
from aucdist.kernels.pairs import n_active


@kernel
def ramp_of_group(scores, weights, anchors, table, low, scale, weight_below, score_below, square_below, coefs, sums):
    """Return the weighted sum of the ramps of all pairs of these rows with the anchors, and write its derivative for every row.

    `scores` and `weights`, of shape (n_rows,), float64: rows of the larger class.
    `anchors`, of shape (n_anchors,), float64: the scores of the smaller class, ascending; `table`, `low` and `scale`
        come from `search_index`.
    `weight_below`, `score_below` and `square_below`, of shape (n_anchors + 1,), float64: sums over the first r anchors
        of weight, weight times score, and weight times score squared.
    `coefs`, of shape (n_rows,), float64: written: the derivative with respect to the row's score.
    `sums`, of shape (n_anchors + 1, 3), float64: added to: from it `slopes_of_group` computes the derivatives for the
        anchors. Entry r belongs to the rows of which r anchors are near, tie or are lost.
    Returns the weighted sum of the ramps.
    """
    total = 0.0
    for o in range(scores.shape[0]):
        score = scores[o]
        if not anchors[0] - score < 1.0:  # most rows of a good model
            coefs[o] = 0.0
            continue
        near = n_active(anchors, table, low, scale, score)  # margins below 1
        ties = n_active(anchors, table, low, scale, score - 1.0) if anchors[0] < score else 0  # below 0
        lost = n_active(anchors, table, low, scale, score - 2.0) if anchors[0] < score - 1.0 else 0  # below -1
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
def slopes_of_group(sums, anchors, weights, order, coefs):
    """Write the derivative of the weighted sum of the ramps with respect to each anchor's score.

    `sums`, of shape (n_anchors + 1, 3), float64: from `ramp_of_group`, of all rows.
    `anchors` and `weights`, of shape (n_anchors,), float64: ascending scores, and their weights.
    `order`, of shape (n_anchors,), int64: where each anchor's derivative belongs.
    `coefs`, of shape (n_anchors,), float64: written.
    """
    plain, slope, moment = 0.0, 0.0, 0.0
    for k in range(anchors.shape[0] - 1, -1, -1):
        plain += sums[k + 1, 0]
        slope += sums[k + 1, 1]
        moment += sums[k + 1, 2]
        coefs[order[k]] = weights[k] * (anchors[k] * slope - plain - moment)


@kernel
def ramp_sum(
    scores, weights, runs, codes, anchors, starts, table, table_starts, low, scale, weight_below, score_below, square_below,
    coefs, sums,
):  # fmt: skip
    """Return the weighted sum of the ramps of all pairs within groups; see `ramp_of_group`."""
    total = 0.0
    for k in range(codes.shape[0]):
        g = codes[k]
        mine = slice(runs[k], runs[k + 1])
        places = slice(starts[g] + g, starts[g + 1] + g + 1)
        total += ramp_of_group(
            scores[mine], weights[mine], anchors[starts[g] : starts[g + 1]],
            table[table_starts[g] : table_starts[g + 1]], low[g], scale[g], weight_below[places], score_below[places],
            square_below[places], coefs[mine], sums[places],
        )  # fmt: skip
    return total


@kernel
def anchor_slopes(sums, anchors, starts, weights, order, slopes):
    """Write the derivative of the sum of the ramps by each anchor's score; see `slopes_of_group`."""
    for g in range(starts.shape[0] - 1):
        here = slice(starts[g], starts[g + 1])
        slopes_of_group(sums[starts[g] + g : starts[g + 1] + g + 1], anchors[here], weights[here], order[here], slopes)
