"""Select the negatives that the loss counts: all of them, or the highest-scoring ones for a partial AUC.

If a fraction of the negatives counts, the objective is ``P(w) = penalty(w) + max over u of (1/(n_pos q)) sum_j u_j sum_i max(0, 1
- w.(x_i - x_j))``, where i runs over the positives, j over the negatives, and u is in [0, 1] with a sum of q = beta
n_neg. Rows with sample weights count accordingly. This is the tight convex surrogate of the partial AUC for false positive rates
up to beta (Narasimhan & Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
Neural Computation 29, 2017). The sum over i rises with the score of j, so u is 1 for the highest-scoring negatives, 0
for the others, and a fraction for those at the boundary, which all have the same score. With q = 1, it is the loss of
Li, Jin & Zhou, "Top rank optimization in linear time" (NIPS 2014) for the hinge.

**The bound.** For u as above and variables a in [0, 1] of the pairs, ``mean of u_j a_ij - |g|^2 / (2 lam)`` is at most
the minimum of the objective with an L2 penalty, where g is the gradient that they give. For other penalties, the bound
is that for all pairs (`aucdist.pairs.penalty`). Value, gradient and bound of a cut come from the same u.

**Fractions near the cutoff.** At the minimum, hundreds of negatives have the same score as the cutoff, and each
counts in part. If each cut counted a negative either fully or not at all, hundreds of cuts would have to be combined to
reach these fractions. The fractions of a cut therefore rise from 0 to 1 over a band around the cutoff (a smoothed `Cutoff`):
any fractions in [0, 1] whose sum is at most q give a valid lower bound, while the loss itself uses the exact cutoff. It is
the smoothing of Nesterov, "Smooth minimization of non-smooth functions" (Mathematical Programming 103, 2005), for the
maximum over the fractions. They rise linearly with the mean hinge of the negative (`MeanHinge`), not with its score. Only
then do they maximise a smoothed objective, so that the cut has the gradient of a smooth function, which Newton steps need
(`aucdist.pairs.newton`).

**The cutoff.** The largest mean over a fraction of the negatives counts those above a cutoff fully, those at it
in part, and the others not at all (`Cutoff`). The cutoff is exact and is found by reductions. If there are few rows, the client
gathers their scores. If there are many, a reduction counts the rows by the leading 16 bits of their scores. The next one counts
the rows in the interval of the cutoff by the next 16 bits, and so on, until few rows or a single score remain.

Departures from the paper: the solver takes Newton steps on the smoothed loss, or cutting planes
(`aucdist.pairs.cutting_planes`), and the highest-scoring rows are found without sorting all rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import concatenate_columns
from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.errors import InputError
from aucdist.kernels.float_order import floats_of_keys, ordered_keys
from aucdist.pairs.kernels import BITS, count_keys
from aucdist.pairs.loss import running_sums
from aucdist.parameters import Constraints, at_most_1, count, frozen
from aucdist.solvers.rounding import EPS, Rounding

LINE_SEARCH_WIDTH = 1e-9
"""The half-width by which a line search between cuts of the hinge itself is smoothed, so that ties count in part."""

MAX_GATHERED = 2**16
"""The largest number of scores and weights that are sent to the client at once, which is a megabyte."""

KNOTS = 65
"""The number of scores in a band between which fractions are linear."""
REFINEMENTS = 4
"""To find the score at which the mean hinge has a value, as many scores are tried this many times, in ever smaller intervals."""

BANDS_AT_ONCE = 9
"""The number of bands that are tried at a time, first over all and then between two of them, to find the one whose fractions
weigh the target. With 17 tried once, nine fits of magic04 take 119 passes, and with 65 they take 104."""


@frozen
class TopNegatives:
    """The rule that says which negatives count in the loss: a share or a number of those with the highest scores.

    Attributes
    ----------
    max_fpr : float or None
        The fraction of the negatives' total weight, above 0 and at most 1.
    max_false_positives : int or None
        The weight itself. Without sample weights, it is a number of rows.
    """

    max_fpr: float | None = None
    max_false_positives: int | None = None

    def weight(self, blocks: Blocks) -> float:
        """Return the weight of the negatives that count.

        Raises
        ------
        InputError
            If the total weight of all negatives is less than `max_false_positives`.
        """
        if self.max_false_positives is None:
            assert self.max_fpr is not None
            return self.max_fpr * blocks.weight_neg
        if self.max_false_positives > blocks.weight_neg:
            raise InputError(
                f"max_false_positives must be at most the number (or weight) of the negative rows, {blocks.weight_neg:g}; got "
                f"{self.max_false_positives}"
            )
        return float(self.max_false_positives)


TOP_CONSTRAINTS: Constraints = {
    "max_fpr": at_most_1(optional=True),
    "max_false_positives": count(optional=True),
}
"""The parameters of an estimator that say which negatives count, and their values."""


def trained_max_fpr(estimator: Any, n_neg: float) -> float | None:
    """Return the largest false positive rate for which an estimator is trained, or None for all pairs.

    Parameters
    ----------
    estimator : estimator of aucdist
        With or without the parameters of `TOP_CONSTRAINTS`.
    n_neg : float
        The number or the weight of all negatives, which turns ``max_false_positives`` into a rate.

    Returns
    -------
    float or None
    """
    rate, number = (getattr(estimator, name, None) for name in TOP_CONSTRAINTS)
    return rate if number is None else min(number / n_neg, 1.0)


@frozen
class Band:
    """How the fraction with which a row counts rises with its score around a cutoff.

    Attributes
    ----------
    scores, fractions : ndarray of shape (n_knots,), float64
        The scores and fractions at knots, ascending. Between two knots, fractions are linear.
    width : float
        The increase of the mean hinge of a row over which its fraction rises from 0 to 1.
    """

    scores: ndarray
    fractions: ndarray
    width: float


@dataclass(frozen=True)
class Cutoff:
    """The score from which on negatives count.

    Attributes
    ----------
    score : float
        Rows below it do not count.
    fraction : float
        The fraction with which rows at this score count, from 0 to 1. Rows above it count fully.
    band : Band or None
        A soft cutoff, which begins at `score`. None for a hard one.
    """

    score: float
    fraction: float = 0.0
    band: Band | None = None

    def fractions(self, scores: ndarray) -> ndarray:
        """Return the fraction with which each row counts, from 0 to 1, float64 of shape (n_rows,)."""
        if self.band is not None:
            return np.interp(scores, self.band.scores, self.band.fractions)
        return np.where(scores > self.score, 1.0, np.where(scores == self.score, self.fraction, 0.0))


Ends = tuple[ndarray, ndarray, ndarray]
"""For each negative, the number of positives below the band of its score, the number of positives below the end of this band, and
this end."""


class MeanHinge:
    """The mean hinge of a negative over the positives, smoothed by a half-width h, as a function of the negative's score.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_positives,), float64
        The scores and the weights of the positives.
    h : float
        The half-width of the smoothing, above 0.
    """

    def __init__(self, scores: ndarray, weights: ndarray, h: float):
        self.order = np.argsort(scores)
        self.scores, self.h = scores[self.order], h
        self.shares = weights[self.order] / (float(weights.sum()) or 1.0)
        self._sums = running_sums(self.shares), running_sums(self.shares * self.scores)

    @cached_property
    def _squares(self) -> ndarray:
        return running_sums(self.shares * self.scores * self.scores)

    def ends(self, scores: ndarray) -> Ends:
        """Return where the band of each score begins and ends."""
        end = (1.0 + self.h) + scores
        low, high = np.searchsorted(self.scores, (1.0 - self.h) + scores), np.searchsorted(self.scores, end)
        return low, high, end

    def __call__(self, scores: ndarray) -> ndarray:
        """Return the mean hinge at each score."""
        low, high, end = self.ends(scores)
        share, first, second = ((total[high] - total[low]) for total in (*self._sums, self._squares))
        inside = (share * end * end - 2.0 * first * end + second) / (4.0 * self.h)
        # By rounding errors of the squares of large scores, the result could lie outside these limits.
        return np.asarray(
            self._sums[0][low] * (1.0 + scores) - self._sums[1][low] + np.clip(inside, 0.0, share * self.h)
        )

    def derivative(self, scores: ndarray, changes: Any, positive_changes: ndarray, first: ndarray | int = 0) -> ndarray:
        """Return the derivative of the mean hinge at each score, if the scores of negatives and of positives change.

        Parameters
        ----------
        scores : ndarray of shape (n_scores,), float64
            The scores of the negatives.
        changes : ndarray of shape (n_scores,), float64, or float
            The changes of these scores.
        positive_changes : ndarray of shape (n_positives,), float64
            The changes of the scores of the positives, in the order in which `scores` of the constructor had them.
        first : ndarray of shape (n_scores,), int64, or int
            The number of positives, from the lowest score on, that make no pair with each negative.

        Returns
        -------
        ndarray of shape (n_scores,), float64
        """
        ends = self.ends(scores)
        return changes * self._mean(ends, *self._sums, first) - self.over_active(
            ends, positive_changes[self.order], first
        )

    def over_active(self, ends: Ends, values: ndarray, first: ndarray | int = 0) -> ndarray:
        """Return for each negative the mean of a value over the positives that are active with it.

        Parameters
        ----------
        ends : Ends
            The bands of the negatives.
        values : ndarray of shape (n,), float64
            The values of the n positives with the lowest scores, in the order of the scores.
        first
            As for `derivative`.
        """
        values = self.shares[: len(values)] * values
        return self._mean(ends, running_sums(values), running_sums(values * self.scores[: len(values)]), first)

    def _mean(self, ends: Ends, whole: ndarray, at: ndarray, first: ndarray | int) -> ndarray:
        """Return the mean of a value over the active positives, from running sums of it and of its products with the scores."""
        low, high, end = ends
        inside: ndarray = (end * (whole[high] - whole[low]) - (at[high] - at[low])) / (2.0 * self.h)
        return whole[low] - whole[first] + inside

    def invert(self, value: float, low: float, high: float) -> tuple[float, float]:
        """Return two close scores between which the mean hinge reaches a value."""
        for _ in range(REFINEMENTS):
            trial_points = np.linspace(low, high, KNOTS)
            k = min(max(int(np.searchsorted(self(trial_points), value)), 1), KNOTS - 1)
            low, high = float(trial_points[k - 1]), float(trial_points[k])
        return low, high


def cutoff_of(scores: ndarray, weights: ndarray, target: float, above: float = 0.0) -> Cutoff:
    """Return the cutoff of the rows with the highest scores.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,), float64
        At least one row.
    target : float
        The total weight of the rows that are to count.
    above : float
        The weight of other rows, all of which have higher scores.
    """
    last, weight = len(scores) - 1, weights[0]
    if weight > 0.0 and (weights == weight).all():
        k = last - min(max(int(np.ceil((target - above) / weight)) - 1, 0), last)
        at = np.partition(scores, k)[k]  # takes a third of the time of a sort
        before, weight_at = (weight * np.count_nonzero(rows) for rows in (scores > at, scores == at))
        return Cutoff(float(at), _fraction(target - (above + before), weight_at))
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    running = above + np.cumsum(weights[order])
    at = ranked[min(int(np.searchsorted(running, target)), last)]
    first, end = np.searchsorted(-ranked, -at), np.searchsorted(-ranked, -at, side="right")
    before = running[first - 1] if first > 0 else above
    return Cutoff(float(at), _fraction(target - before, running[end - 1] - before))


def _fraction(rest: float, weight: float) -> float:
    # Sums of weights are rounded, and a fraction outside [0, 1] would not be dual feasible.
    return float(min(max(rest / weight, 0.0), 1.0)) if weight > 0.0 else 1.0


Knots = tuple[ndarray, ndarray]
"""Ascending scores around a cutoff, and the mean hinge of negatives at these scores minus that at the cutoff."""


def smooth_cutoff(
    exact: Cutoff,
    hinge: MeanHinge,
    target: float,
    width: float,
    weigh: Callable[[Knots, ndarray, float], ndarray],
) -> Cutoff | None:
    """Return the soft cutoff with a certain width that counts the target weight, or None if rounding makes it meaningless.

    Parameters
    ----------
    exact : Cutoff
        What `cutoff_of` returns for the same rows.
    hinge : MeanHinge
        The mean hinge of a negative.
    target : float
        The total weight of the rows that are to count.
    width : float
        The increase of the mean hinge in the band.
    weigh : callable
        Returns the result of `weigh_bands` for the negatives.
    """
    if not width > 0.0:
        return None
    at, outside = float(hinge(np.array([exact.score]))[0]), 1.0 + hinge.h + width
    low = hinge.invert(at - width, min(hinge.scores[0] - outside, exact.score - width), exact.score)[0]
    high = hinge.invert(at + width, exact.score, max(hinge.scores[-1] + outside, exact.score + width))[1]
    around = np.linspace(low, high, KNOTS)
    knots = around, np.maximum.accumulate(hinge(around)) - at
    # Next to a positive at -1e15, the mean hinge is so large that its rounding error exceeds the width of the band.
    if not ((np.diff(around) > 0.0).all() and knots[1][-1] > 0.0):
        return None
    starts = np.array([-width, 0.0])
    for _ in range(2):
        starts = np.linspace(starts[0], starts[-1], BANDS_AT_ONCE)
        weighs = weigh(knots, starts, width)
        k = min(max(int(np.searchsorted(-weighs, -target, side="right")) - 1, 0), BANDS_AT_ONCE - 2)
        starts, weighs = starts[k : k + 2], weighs[k : k + 2]
    # A convex combination of the two bands has exactly the target weight, and almost the form of a band.
    share = _fraction(target - weighs[1], weighs[0] - weighs[1])
    if share * weighs[0] + (1.0 - share) * weighs[1] < 0.5 * target:
        return None
    ends = np.concatenate([starts, starts + width])
    scores = np.unique(np.concatenate([knots[0], np.interp(ends, knots[1], knots[0])]))
    lower, upper = fractions_of_bands(scores, knots, starts, width)
    fractions = np.where(lower == upper, lower, share * lower + (1.0 - share) * upper)  # exactly 1 above the band
    first = max(int(np.searchsorted(fractions, 0.0, side="right")) - 1, 0)
    band = slice(first, np.searchsorted(fractions, fractions[-1]) + 1)
    return Cutoff(float(scores[first]), band=Band(scores[band], fractions[band], width))


def fractions_of_bands(scores: ndarray, knots: Knots, starts: ndarray, width: float) -> Iterator[ndarray]:
    """Yield, for each band, the fractions with which negatives of these scores count, from 0 to 1.

    A band begins at the mean hinge of the cutoff plus its start.
    """
    values = np.interp(scores, *knots)
    for start in starts:
        yield np.clip((values - start) / width, 0.0, 1.0)


def weigh_bands(scores: ndarray, weights: ndarray, knots: Knots, starts: ndarray, width: float) -> ndarray:
    """Return, for each of several bands of the same width, the total weight of the negatives that count."""
    near = scores > knots[0][0]  # lower scores do not count
    return np.array([weights[near] @ fractions for fractions in fractions_of_bands(scores[near], knots, starts, width)])


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def negatives_at(memory: Any, step: float | None, are_anchors: bool) -> tuple[ndarray, ndarray]:
    """Return the scores and weights of the negatives, which are the larger class, or the anchors, whose scores are mirrored."""
    if are_anchors:
        return -memory.anchors.scores_at(step), memory.anchors.weights
    return memory.larger_class.scores_at(step), memory.larger_class.weights


@without_rows
def count_cells(number: int, memory: Any, step: float | None, prefix: int, shift: int, are_anchors: bool) -> Summary:
    """Count the negatives whose scores begin with the bits of `prefix`, by the next 16 bits, which `shift` bits follow."""
    weight_and_rows = np.zeros((2, 2**BITS))
    count_keys(*negatives_at(memory, step, are_anchors), prefix, shift, *weight_and_rows)
    return weight_and_rows


@without_rows
def gather_cell(
    number: int, memory: Any, step: float | None, prefix: int, shift: int, are_anchors: bool, stride: int = 1
) -> Summary:
    """Return the scores and weights of the negatives in an interval of scores, or of one in `stride` of them.

    With a `shift` of 64, all negatives are in the interval.
    """
    scores, weights = negatives_at(memory, step, are_anchors)
    if shift < 64:
        inside = np.flatnonzero(ordered_keys(scores + 0.0) >> shift == prefix)  # -0.0 has the key of 0.0
        scores, weights = scores[inside], weights[inside]
    return [(scores[::stride], weights[::stride])]


@without_rows
def weigh_larger(number: int, memory: Any, step: float | None, knots: Knots, starts: ndarray, width: float) -> Summary:
    """Return the total weight of the negatives that count, for each of several bands, if they are the larger class."""
    return weigh_bands(*negatives_at(memory, step, are_anchors=False), knots, starts, width)


# ---- client: runs the steps -------------------------------------------------------------------------------------------


def cutoff_in_blocks(
    blocks: Blocks, n_neg: int, target: float, step: float | None = None, *, are_anchors: bool = False
) -> Cutoff:
    """Return the cutoff of the highest-scoring negatives, by one reduction if there are few rows, and otherwise by two to four.

    Parameters
    ----------
    blocks : Blocks
        Their memory is a `PairMemory`.
    target : float
        The total weight of the rows that are to count.
    step : float or None
        The step length along the line from the current point to the trial point; None for the trial point.
    are_anchors : bool
        Whether the negatives are the smaller class.
    """
    prefix, shift, above, n_inside = 0, 64, 0.0, float(n_neg)
    while n_inside > MAX_GATHERED and shift > 0:
        # The cell of the cutoff is the one in which the weight, added up from the highest cell down, reaches the target.
        weight, rows = blocks.reduce(count_cells, step, prefix, shift - BITS, are_anchors)[:, ::-1]
        first, shift = shift == 64, shift - BITS
        running = above + np.cumsum(weight)
        nonempty = np.flatnonzero(rows > 0)
        k = int(nonempty[min(int(np.searchsorted(running[nonempty], target)), len(nonempty) - 1)])
        cell = 2**BITS - 1 - k
        above = float(running[k - 1]) if k > 0 else above
        prefix = cell - 2 ** (BITS - 1) if first else (prefix << BITS) | cell
        n_inside, inside = float(rows[k]), float(weight[k])
    if shift == 0:
        return Cutoff(float(floats_of_keys(np.array(prefix))), _fraction(target - above, inside))
    scores, weights = concatenate_columns(blocks.reduce(gather_cell, step, prefix, shift, are_anchors))
    return cutoff_of(scores, weights, target, above)


class CountedNegatives:
    """The negatives that count: all of them, or the highest-scoring ones.

    Attributes
    ----------
    target : float
        The weight of the negatives that count.
    pair_weight : float
        The total weight of the pairs that count.
    is_top_only : bool
        Whether only a part of the negatives counts.
    are_anchors : bool
        Whether only a part counts, and the negatives are the smaller class.
    """

    def __init__(self, blocks: Blocks, top_negatives: TopNegatives | None = None):
        self.is_top_only = top_negatives is not None
        self.target = blocks.weight_neg if top_negatives is None else top_negatives.weight(blocks)
        self.pair_weight = blocks.weight_pos * self.target
        self.are_anchors = self.is_top_only and blocks.n_pos > blocks.n_neg
        self._n_neg = blocks.n_neg

    def weight_error(self, blocks: Blocks, rounding: Rounding) -> float:
        """Return a bound on the relative error of the weight of the negatives that count."""
        if not self.is_top_only:
            return 0.0
        # With sample weights, the weight above the cutoff is rounded, which changes the fraction of the rows at the cutoff.
        hard_error = (rounding.over_rows if blocks.has_weights else EPS) * blocks.weight_neg / self.target
        return hard_error + rounding.over_rows

    def cutoff(
        self, blocks: Blocks, step: float | None, anchors: tuple[ndarray, ndarray] | None = None
    ) -> Cutoff | None:
        """Return which negatives count at a step of the line search. None means that all count.

        Parameters
        ----------
        blocks : Blocks
            The rows.
        step : float or None
            The step length along the line to the trial point; None for the trial point.
        anchors : tuple (ndarray, ndarray), optional
            The (mirrored) scores of all anchors at this step, and their weights, if they are at the client.
        """
        if not self.is_top_only:
            return None
        if self.are_anchors and anchors is not None:
            return cutoff_of(-anchors[0], anchors[1], self.target)
        return cutoff_in_blocks(blocks, self._n_neg, self.target, step, are_anchors=self.are_anchors)

    def smoothed_and_exact_cutoff(
        self, blocks: Blocks, step: float, scores: ndarray, weights: ndarray, pair_half_width: float, cutoff_width: float
    ) -> tuple[Cutoff | None, Cutoff | None]:  # fmt: skip
        """Return how much negatives count for a cut at a step length, and for the loss there. None means that all count.

        Parameters
        ----------
        scores, weights : ndarray of shape (n_anchors,), float64
            The (mirrored) scores of all anchors at this step, and their weights.
        pair_half_width : float
            The half-width of the band of pairs.
        cutoff_width : float
            The width of the band around the cutoff in which negatives count in part for the cut; 0 for none.
        """
        if not self.is_top_only:
            return None, None
        stride = -(-max(blocks.n_pos, self._n_neg) // MAX_GATHERED)
        if stride > 1 and not self.are_anchors:  # too many to gather: their weights are summed on the blocks
            exact, positives = cutoff_in_blocks(blocks, self._n_neg, self.target, step), (scores, weights)
            weigh = partial(blocks.reduce, weigh_larger, step)
        else:
            of_larger, weights_of_larger = concatenate_columns(blocks.reduce(gather_cell, step, 0, 64, False, stride))
            positives, negatives = (scores, weights), (of_larger, weights_of_larger)
            if self.are_anchors:
                positives, negatives = (-of_larger, weights_of_larger), (-scores, weights)
            exact, weigh = cutoff_of(*negatives, self.target), partial(weigh_bands, *negatives)
        return smooth_cutoff(
            exact, MeanHinge(*positives, pair_half_width or LINE_SEARCH_WIDTH), self.target, cutoff_width, weigh
        ) or exact, exact

    def counted(self, scores: ndarray, weights: ndarray, cutoff: Cutoff | None) -> ndarray:
        """Return the weights with which anchors count at a cutoff, given their (mirrored) scores and their weights."""
        return weights if cutoff is None or not self.are_anchors else weights * cutoff.fractions(-scores)

    def of_larger_class(self, cutoff: Cutoff | None) -> Cutoff | None:
        """Return the cutoff as that of the larger class, whose rows all count if the negatives are the anchors."""
        return None if self.are_anchors else cutoff

    def scale(self, counted: float) -> float:
        """Return the factor that makes a cut feasible whose negatives weigh so much, as their rounded sum says."""
        return min(1.0, self.target / counted) if self.is_top_only and counted > 0.0 else 1.0
