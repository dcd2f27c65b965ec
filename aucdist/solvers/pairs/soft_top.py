"""Cuts that count the negatives near the threshold in part: the bundle then needs a fraction of the rounds.

At the minimum of the loss over the highest-scoring negatives, hundreds of them have the same score as the threshold, and each
counts in part. Cuts that count each negative fully or not at all come to these parts slowly, by mixing hundreds of cuts. So the
parts of a cut rise linearly with the score, over a band around the threshold (`SoftThreshold`). Any parts in [0, 1] whose sum is
at most q give a true lower bound (`aucdist.solvers.pairs.share`); the loss itself, the upper one, is that of the hard threshold.

A cut then lies below the loss at its own point, by its *slack*. The band is as wide as a slack in proportion to the objective's
gap allows: it narrows as the fit goes on. It is the smoothing of Nesterov, "Smooth minimization of non-smooth functions"
(Mathematical Programming 103, 2005), for the maximum over the parts alone, with a width that follows the certificate. The line
search takes its slopes with the width of the last cut: what it minimises is what the next cut is a tangent of.
"""

from dataclasses import dataclass

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.kernels.top import start_of_band
from aucdist.solvers.pairs.top import Threshold, are_few, threshold_of

MANY = 0.25
"""Cuts are soft where there are so many features for each negative. Of fewer features, fewer negatives can tie, and hard cuts of
several groups take fewer passes: half as many with 10 to 256 features for 3 400 to 11 200 negatives."""

SLACK = 0.5
"""The slack of a cut may be this share of the objective's gap."""

MOST_WIDTHS, NEAR = 6, 0.5
"""So many widths are tried for a cut at most; one whose slack is at least this share of the allowed one is wide enough."""

MOST_CHANGE = 8.0
"""A width is at most so many times the one tried before, or at least as small a part of it."""


@dataclass(frozen=True)
class SoftThreshold:
    """Where the highest-scoring rows end, with parts that rise with the score.

    Attributes
    ----------
    low, high : float
        Rows below the first do not count, those above the second count fully.
    """

    low: float
    high: float

    @property
    def score(self) -> float:
        """Rows below it do not count."""
        return self.low

    def parts(self, scores: np.ndarray) -> np.ndarray:
        """Return how much of each row counts, from 0 to 1; float64 of shape (n_rows,)."""
        return np.clip((scores - self.low) / (self.high - self.low), 0.0, 1.0)


def are_soft(blocks: Blocks) -> bool:
    """Return whether cuts over the highest-scoring negatives are to be soft: `MANY` features, and scores that the client has."""
    return blocks.n_features >= MANY * blocks.n_neg and are_few(blocks.n_neg)


class Band:
    """All negatives, for one threshold after another.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,), float64
    wanted : float
        What the rows that count are to weigh.

    Attributes
    ----------
    hard : Threshold
        Rows above it count fully, those below it not at all.
    """

    def __init__(self, scores: np.ndarray, weights: np.ndarray, wanted: float):
        self.hard, self.wanted = threshold_of(scores, weights, wanted), wanted
        # From the threshold on: far off 0, differences of the sums would be lost.
        self._scores, self._weights, self._away = scores, weights, scores - self.hard.score
        self._loss = float((weights * self.hard.parts(scores)) @ self._away)

    @property
    def spread(self) -> float:
        """The distance between the lowest and the highest score."""
        return float(np.ptp(self._away))

    def soften(self, width: float) -> tuple[SoftThreshold, float]:
        """Return the threshold of a width, whose parts weigh what is wanted, and a bound on its slack for a slope of 1.

        The slack is infinite where the width is within the rounding of the scores, so that next to nothing would count.
        """
        near = self._away > -width  # no others count
        scores, weights, away = self._scores[near], self._weights[near], self._away[near]
        start = self.hard.score + start_of_band(away, weights, self.wanted, width)
        soft = SoftThreshold(start, start + width)
        counted = weights * soft.parts(scores) if soft.high > soft.low else np.zeros(len(weights))
        if counted.sum() < 0.5 * self.wanted:
            return soft, np.inf
        return soft, max(float(self._loss - counted @ away) / self.wanted, 0.0)


class Softener:
    """Chooses the width of the band for one cut after another.

    Attributes
    ----------
    slope : float
        By how much the mean loss of a negative near the threshold rises with its score, as the last cut says; at most 1.
    width_of_cut : float
        The width of the last cut; 0 for a hard one.
    """

    def __init__(self) -> None:
        self._width, self.slope, self._expected, self.width_of_cut = 0.0, 1.0, 0.0, 0.0

    def threshold(self, band: Band, gap: float) -> SoftThreshold | None:
        """Return a threshold whose cut has about the slack that the gap allows; None for the hard one."""
        allowed, most = SLACK * gap / self.slope, band.spread
        self._expected, self.width_of_cut, found = 0.0, 0.0, None
        if not (0.0 < allowed < np.inf) or most <= 0.0:
            return None
        width = min(self._width or most, most)
        for _ in range(MOST_WIDTHS):
            soft, slack = band.soften(width)
            if slack <= allowed:
                found, self._width, self._expected = soft, width, slack
                if slack >= NEAR * allowed or width == most:
                    break
            change = np.sqrt(0.5 * (1.0 + NEAR) * allowed / slack) if slack > 0.0 else MOST_CHANGE
            width = min(width * min(max(change, 1.0 / MOST_CHANGE), MOST_CHANGE), most)
        if found is None:
            self._width = width
        if found is None or not found.high > found.low:
            return None
        self.width_of_cut = found.high - found.low
        return found

    def threshold_on_line(self, scores: np.ndarray, weights: np.ndarray, wanted: float) -> Threshold | SoftThreshold:
        """Return the threshold with the width of the last cut: the hard one for 0, or a width within the rounding of the scores.

        Parameters
        ----------
        scores, weights : ndarray of shape (n_rows,), float64
            Of all negatives, or of a sample of them.
        wanted : float
            What the rows that count are to weigh.
        """
        if self.width_of_cut == 0.0:
            return threshold_of(scores, weights, wanted)
        band = Band(scores, weights, wanted)
        soft, slack = band.soften(self.width_of_cut)
        return soft if slack < np.inf else band.hard

    def thresholds_on_line(
        self, start: np.ndarray, end: np.ndarray, weights: np.ndarray, steps: np.ndarray, wanted: float
    ) -> list[Threshold | SoftThreshold]:
        """Return the threshold at each step between two score vectors.

        Parameters
        ----------
        start, end, weights : ndarray of shape (n_rows,), float64
        steps : ndarray of shape (n_steps,), float64
            Ascending.
        wanted : float
            What the rows that count are to weigh.
        """
        change = end - start
        first, last = start + steps[0] * change, start + steps[-1] * change
        # Between both a score is never below the lower one. So no threshold is below that of the lower ones.
        floor = threshold_of(np.minimum(first, last), weights, wanted).score - self.width_of_cut
        near = np.maximum(first, last) >= floor
        start, change, weights = start[near], change[near], weights[near]
        return [self.threshold_on_line(start + step * change, weights, wanted) for step in steps]

    def record(self, slack: float) -> None:
        """Learn from the slack of the cut at the threshold found last."""
        if self._expected > 0.0:
            self.slope = min(max(slack / self._expected, self.slope / MOST_CHANGE, 1e-12), 1.0)
