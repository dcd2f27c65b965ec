"""Cuts of the pairwise hinge: tangents of the loss, from the exact scores of the anchors, the rows of the smaller class.

The client has the scores of the anchors, sorts them and sends them to all blocks. If there are too many anchors, they are sent
as cells of scores (`aucdist.pairs.cell_cuts`). The loss is then known up to a slack, and a cut may be computed again with other
cells. `aucdist.pairs.top_negatives` decides which negatives count, and `aucdist.pairs.bundle` makes a lower bound of all cuts.
"""

from dataclasses import field, replace
from functools import partial

import numpy as np
from numpy import ndarray

from aucdist.engine.blocks import Blocks
from aucdist.pairs.loss import HINGE, Anchors, PairHinge
from aucdist.pairs.problem import PairObjective, PairProblem, rounding_of_pairs, sweep_pairs
from aucdist.pairs.top_negatives import CountedNegatives, Cutoff
from aucdist.parameters import frozen
from aucdist.solvers.rounding import EPS

N_SHIFTS = 5
"""The number of shifted hinges whose mean is the smoothed hinge. It is odd, so that the middle one is the hinge itself. With 3,
7, 9 or 15, a fit takes about the same number of passes."""
N_FINE_SHIFTS = 15
"""The number of shifted hinges if only the highest-scoring negatives count and few rows are in the band, because the mean over
their few pairs is not smooth. 62 fits with which this was not chosen take 2,757 passes with it, and 3,014 without."""
MAX_ROWS_OF_FINE_SHIFTS = 30_000
"""The largest number of rows in the band for `N_FINE_SHIFTS`. With 3,000, fits take 11 % more passes."""

SLACK_OF_GAP = 0.05
"""The largest slack of a cut, as a share of the gap."""
MAX_TRIES = 4
"""The largest number of cuts that are taken at a point to reach such a slack."""


@frozen
class Cut:
    """A cut, which is a tangent of the loss, and what is known of the loss at the weights where it was taken.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
        The weights where the cut was taken.
    loss, slack : float
        The mean loss at `w` is at most `loss`, and at least ``loss - slack``.
    score_error : float
        A bound on the error of the score of any row at `w`.
    counted_loss : float
        The mean loss of the rows, where negatives count as they do for the cut.
    offset : float
        The value of the cut at w = 0.
    n_band : float
        How many rows of the larger class are in pairs within the band of the shifts.
    cutoff : Cutoff or None
        Which negatives count for the cut. None means that all do.
    step : float
        The step length along the line from the current point to the trial point.
    slopes : ndarray of float64
        The derivatives by the anchors' scores, in the form that `PairCuts.finish` takes.
    scale : float
        A factor of the gradient, which `offset` already contains.
    gradient : ndarray of shape (n_features,), float64
        The gradient of the cut, once `PairCuts.finish` has computed it from the rows.
    """

    w: ndarray
    loss: float
    slack: float
    score_error: float
    counted_loss: float = np.inf
    offset: float = 0.0
    n_band: float = 0.0
    cutoff: Cutoff | None = None
    step: float = 0.0
    slopes: ndarray = field(default_factory=partial(np.zeros, 0))
    scale: float = 1.0
    gradient: ndarray = field(default_factory=partial(np.zeros, 0))


def shifts(h: float, n: int) -> ndarray:
    """Return the n shifts of a smoothed hinge with the half-width h, ascending and with 0 in the middle.

    For h = 0, return 0 alone.
    """
    if h == 0.0:
        return np.zeros(1)
    return h * ((2 * np.arange(n) + 1 - n) / n)


class PairCuts(PairProblem):
    """The hinge over the pairs that count, and its cuts along lines from the current point.

    Parameters
    ----------
    blocks : Blocks
        The rows, of both classes.
    objective : PairObjective
        The objective.
    start : ndarray of shape (n_features,), float64
        The first current point.
    keep_one_in : int, default=1
        As for `PairProblem`.

    Attributes
    ----------
    current : Cut
        The cut at the current point, where the line begins along which cuts are taken. Before the first
        cut, only its point and the error of its scores are set.
    scores : ndarray of float64
        The scores of the anchors at the current point, as far as the client has them.
    pair_half_width : float
        The half-width of the band of pairs. A cut is the mean of cuts at scores of the larger class that are shifted by the
        `shifts` within the band: see `aucdist.pairs.kernels.cut_group`.
    cutoff_width : float
        The width of the band in which negatives count in part, if only the highest-scoring ones count.
    """

    def __init__(self, blocks: Blocks, objective: PairObjective, start: ndarray, *, keep_one_in: int = 1):
        negatives, groups = CountedNegatives(blocks, objective.top_negatives), objective.groups
        self.rounding = rounding_of_pairs(blocks, groups)
        super().__init__(blocks, HINGE, groups, negatives, start=start, keep_one_in=keep_one_in)
        self.weight_error = negatives.weight_error(blocks, self.rounding)
        self.pair_half_width, self.cutoff_width = 0.0, 0.0
        self.current, self.scores = Cut(start, np.inf, 0.0, self.rounding.score(start)), self.first_scores
        self._target = self.scores, 0.0  # the scores at the end of the line, and a bound on their error

    def score(self, w: ndarray) -> ndarray:
        """Score all rows at the trial point w, which is the end of the line that starts at the current point."""
        self._target = super().score(w), self.rounding.score(w)
        return self._target[0]

    def value_error(self, largest_score: float) -> float:
        """Return a bound on the rounding of the loss in addition to that of scores and sums.

        No score is above `largest_score`.
        """
        return 0.0

    def scores_at(self, step: float) -> ndarray:
        """Return the scores of the anchors at a step length, as far as the client has them."""
        return self.scores + step * (self._target[0] - self.scores)

    def cutoffs(self, step: float, scores: ndarray) -> tuple[Cutoff | None, Cutoff | None]:
        """Return which negatives count for a cut at a step, and which count for the loss there. None means that all count."""
        return self.negatives.smoothed_and_exact_cutoff(
            self.blocks, step, scores, self.weights, self.pair_half_width, self.cutoff_width
        )

    def anchors_at(self, step: float, scores: ndarray, cutoff: Cutoff | None) -> tuple[Anchors, ndarray, float]:
        """Return the anchors as they are sent and as they count, the order that `slopes_of_anchors` takes, and their weight."""
        weights = self.negatives.counted(scores, self.weights, cutoff)
        return *self.sort_anchors(scores, weights), float(weights.sum())

    def slopes_of_anchors(self, slope_sums: ndarray, anchors: Anchors, order: ndarray) -> ndarray:
        """Return the derivatives of the loss by the anchors' scores, as `gradient` takes them."""
        return self.loss.anchor_slopes(slope_sums, anchors, order)

    def cut(self, step: float, w: ndarray, gap: float) -> Cut:
        """Return a cut at a step length along the line from the current point to the trial point.

        Parameters
        ----------
        step : float
            The step length.
        w : ndarray of shape (n_features,), float64
            The weights at this step.
        gap : float
            The current gap of the objective, which limits the slack of the loss.
        """
        current, largest_score = self.current, self.rounding.largest_score
        # Interpolated scores have the errors of both ends, and the rounding of the interpolation.
        error = (
            abs(1.0 - step) * current.score_error
            + abs(step) * self._target[1]
            + 4.0 * EPS * (largest_score(current.w) + largest_score(w))
        )
        is_fine = self.negatives.is_top_only and 0.0 < current.n_band < MAX_ROWS_OF_FINE_SHIFTS
        smoothing_shifts = shifts(self.pair_half_width, N_FINE_SHIFTS if is_fine else N_SHIFTS)
        scores = self.scores_at(step)
        smoothed, exact = self.cutoffs(step, scores)
        for _ in range(MAX_TRIES):
            anchors, order, weight = self.anchors_at(step, scores, smoothed)
            unsmoothed = None
            if exact is not smoothed:
                loss_anchors = self.anchors_at(step, scores, exact)[0] if self.negatives.are_anchors else anchors
                unsmoothed = loss_anchors, self.negatives.of_larger_class(exact)
            taken = self.blocks.reduce(
                sweep_pairs,
                PairHinge(smoothing_shifts),
                anchors,
                self.negatives.of_larger_class(smoothed),
                step,
                unsmoothed,
            )
            slopes = self.slopes_of_anchors(taken["slope_sums"], anchors, order)
            slack = float(taken["slack"]) / self.pair_weight
            if slack <= SLACK_OF_GAP * max(0.0, gap):
                break
        scale = self.negatives.scale(float(taken.get("counted", weight))) / len(smoothing_shifts)
        loss = float(taken["loss" if unsmoothed is None else "unsmoothed_loss"]) / self.pair_weight + slack
        return Cut(
            w, loss, slack, error, counted_loss=float(taken["loss"]) * (len(smoothing_shifts) * scale / self.pair_weight),
            offset=taken["offset"] * (scale / self.pair_weight), n_band=taken["n_band"], cutoff=smoothed, step=step,
            slopes=slopes, scale=scale,
        )  # fmt: skip

    def finish(self, cut: Cut, keep: bool) -> Cut:
        """Return a cut with its gradient. If `keep` is true, the current point moves to the point of the cut."""
        gradient = self.gradient(cut.slopes, cut.scale, cut.step if keep else None)
        cut = replace(cut, gradient=gradient, slopes=np.zeros(0))
        if keep:
            self.current, self.scores = cut, self.scores_at(cut.step)
            self._target = self.scores, cut.score_error
        return cut
