"""The highest-scoring rows of a class up to a given weight: found exactly over blocks, by reductions alone.

The largest mean over a share of the negatives counts those above a threshold fully, those at it in part, and the others not at
all (`Threshold`). Where the rows lie in blocks, few of them are gathered at the client. Of many, reductions count the leading 16
bits of their scores, then the next 16 of those in the cell of the threshold, until what remains is few rows or a single score.

A `SoftThreshold` counts the rows near the threshold in part, by their score: see `aucdist.solvers.pairs.share`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.errors import InputError
from aucdist.kernels.top import BITS, count_keys, keys, start_of_band

MOST_GATHERED = 2**16
"""So many scores and weights are sent to the client at once: a megabyte."""

STARTS = 17
"""So many thresholds are tried where the rows lie in blocks; between two of them what the rows weigh is taken as linear."""


@dataclass(frozen=True)
class TopShare:
    """Which negatives count: the highest-scoring ones up to a share of their weight, or up to a number.

    Attributes
    ----------
    max_fpr : float or None
        Above 0 and at most 1: the share of the negatives' total weight.
    max_false_positives : int or None
        The weight itself, which without sample weights is a number of rows.
    """

    max_fpr: float | None = None
    max_false_positives: int | None = None

    def weight(self, blocks: Blocks) -> float:
        """Return the weight of the negatives that count.

        Raises
        ------
        InputError
            If all negatives together weigh less than `max_false_positives`.
        """
        if self.max_false_positives is None:
            assert self.max_fpr is not None
            return self.max_fpr * blocks.weight_neg
        if self.max_false_positives > blocks.weight_neg:
            raise InputError(
                f"max_false_positives is {self.max_false_positives}; it must be at most the number (or weight) of the negative "
                f"rows, {blocks.weight_neg:g}"
            )
        return float(self.max_false_positives)


SHARE = ("max_fpr", "max_false_positives")
"""The parameters of an estimator that say which negatives count."""


def share_of(max_fpr: float | None, max_false_positives: int | None) -> TopShare | None:
    """Return which negatives count, or None for all of them."""
    return None if max_fpr is None and max_false_positives is None else TopShare(max_fpr, max_false_positives)


@dataclass(frozen=True)
class Threshold:
    """Where the highest-scoring rows end.

    Attributes
    ----------
    score : float
        Rows above it count fully, rows below it not at all.
    fraction : float
        What rows at it count, from 0 to 1.
    """

    score: float
    fraction: float

    def parts(self, scores: np.ndarray) -> np.ndarray:
        """Return how much of each row counts: 0, the fraction, or 1; float64 of shape (n_rows,)."""
        return np.where(scores > self.score, 1.0, np.where(scores == self.score, self.fraction, 0.0))


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


def threshold_of(scores: np.ndarray, weights: np.ndarray, wanted: float, above: float = 0.0) -> Threshold:
    """Return where the highest-scoring rows end.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_rows,), float64
        At least one row.
    wanted : float
        What the rows that count are to weigh.
    above : float
        The weight of other rows, whose scores are higher than all of these.
    """
    last, weight = len(scores) - 1, weights[0]
    if weight > 0.0 and (weights == weight).all():
        k = last - min(max(int(np.ceil((wanted - above) / weight)) - 1, 0), last)
        at = np.partition(scores, k)[k]  # a third of the time of a sort
        before, there = (weight * np.count_nonzero(rows) for rows in (scores > at, scores == at))
        return Threshold(float(at), _fraction(wanted - (above + before), there))
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    running = above + np.cumsum(weights[order])
    at = ranked[min(int(np.searchsorted(running, wanted)), last)]
    first, behind = np.searchsorted(-ranked, -at, side="left"), np.searchsorted(-ranked, -at, side="right")
    before = running[first - 1] if first > 0 else above
    return Threshold(float(at), _fraction(wanted - before, running[behind - 1] - before))


def _fraction(rest: float, weight: float) -> float:
    # Sums of weights are rounded; a part beyond 0 or 1 would belong to no dual point.
    return float(min(max(rest / weight, 0.0), 1.0)) if weight > 0.0 else 1.0


class Band:
    """All negatives, for the hard threshold and soft ones.

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
        self.hard, self._wanted = threshold_of(scores, weights, wanted), wanted
        self._scores, self._weights = scores, weights

    def soften(self, width: float) -> SoftThreshold | None:
        """Return the threshold of a width, whose parts weigh what is wanted; None for one within the rounding of scores."""
        if not width > 0.0:
            return None
        # From the threshold on: far off 0, differences of the sums would be lost.
        away = self._scores - self.hard.score
        near = away > -width  # no others count
        start = self.hard.score + start_of_band(away[near], self._weights[near], self._wanted, width)
        soft = SoftThreshold(start, start + width)
        if (
            not soft.high > soft.low
            or (self._weights[near] * soft.parts(self._scores[near])).sum() < 0.5 * self._wanted
        ):
            return None
        return soft


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def scores_at(memory: Any, step: float | None) -> np.ndarray:
    """Return the larger class's scores: those of the point that was scored last, or at a step between two points."""
    if step is None:
        scores: np.ndarray = memory.scores
        return scores
    scores = memory.scores - memory.best
    scores *= step
    scores += memory.best
    return scores


def negatives_at(memory: Any, step: float | None, are_anchors: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and weights of the negatives: of the larger class, or of the anchors, whose scores are mirrored."""
    if are_anchors:
        return -memory.anchor_scores_at(step), memory.anchor_weights
    return scores_at(memory, step), memory.weights


@without_rows
def count_cells(
    block: int, memory: Any, step: float | None, prefix: int, shift: int, are_anchors: bool
) -> tuple[Any, Summary]:
    """Count the negatives by 16 bits of their scores."""
    weight, rows = np.zeros(2**BITS), np.zeros(2**BITS)
    count_keys(*negatives_at(memory, step, are_anchors), prefix, shift, weight, rows)
    return memory, {"weight": weight, "rows": rows}


@without_rows
def gather_cell(
    block: int, memory: Any, step: float | None, prefix: int, shift: int, are_anchors: bool
) -> tuple[Any, Summary]:
    """Return scores and weights of the negatives in a cell; of all of them for a shift of 64."""
    scores, weights = negatives_at(memory, step, are_anchors)
    if shift < 64:
        found = np.empty(len(scores), dtype=np.int64)
        keys(scores, found)
        inside = np.flatnonzero(found >> shift == prefix)
        scores, weights = scores[inside], weights[inside]
    return memory, {"scores": [scores], "weights": [weights]}


@without_rows
def weigh_parts(block: int, memory: Any, step: float | None, starts: np.ndarray, width: float) -> tuple[Any, Summary]:
    """Return what the negatives, the larger class, weigh above thresholds of a width that start at these scores."""
    scores, weights = negatives_at(memory, step, False)
    near = scores > starts[0]
    scores, weights = scores[near], weights[near]
    return memory, {"weighs": np.array([weights @ SoftThreshold(s, s + width).parts(scores) for s in starts])}


# ---- the client's side ------------------------------------------------------------------------------------------------


def are_few(n_neg: int) -> bool:
    """Return whether the scores of so many negatives are gathered at the client."""
    return n_neg <= MOST_GATHERED


def threshold_in_blocks(
    blocks: Blocks, n_neg: int, wanted: float, step: float | None = None, *, are_anchors: bool = False
) -> Threshold:
    """Return where the highest-scoring negatives end: one reduction for few rows, else two to four.

    Parameters
    ----------
    blocks : Blocks
        Their memory is a `PairMemory`, with the scores; those at a step need a `CutMemory`.
    wanted : float
        What the rows that count are to weigh.
    step : float or None
        As for `scores_at`.
    are_anchors : bool
        Whether the negatives are the smaller class, and lie in the blocks (`aucdist.solvers.pairs.cell_anchors`).
    """
    if are_few(n_neg):
        return threshold_of(*gather_negatives(blocks, step, are_anchors), wanted)
    prefix, shift, above, n_inside = 0, 64, 0.0, float(n_neg)
    while n_inside > MOST_GATHERED and shift > 0:
        counted = blocks.reduce(count_cells, step, prefix, shift - BITS, are_anchors)
        first, shift = shift == 64, shift - BITS
        # From the highest cell down: rows above the cell of the threshold weigh less than wanted.
        weight, rows = counted["weight"][::-1], counted["rows"][::-1]
        running = above + np.cumsum(weight)
        there = np.flatnonzero(rows > 0)
        k = int(there[min(int(np.searchsorted(running[there], wanted)), len(there) - 1)])
        cell = 2**BITS - 1 - k
        above = float(running[k - 1]) if k > 0 else above
        prefix = cell - 2 ** (BITS - 1) if first else (prefix << BITS) | cell
        n_inside, inside = float(rows[k]), float(weight[k])
    if shift == 0:
        return Threshold(_score_of(prefix), _fraction(wanted - above, inside))
    found = blocks.reduce(gather_cell, step, prefix, shift, are_anchors)
    return threshold_of(np.concatenate(found["scores"]), np.concatenate(found["weights"]), wanted, above)


def gather_negatives(blocks: Blocks, step: float | None, are_anchors: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and weights of all negatives, of which there are few."""
    found = blocks.reduce(gather_cell, step, 0, 64, are_anchors)
    return np.concatenate(found["scores"]), np.concatenate(found["weights"])


def soften_in_blocks(
    blocks: Blocks, hard: Threshold, wanted: float, width: float, step: float | None
) -> SoftThreshold | None:
    """Return about the threshold of a width whose parts weigh what is wanted, of the larger class; None for a width of 0."""
    if not hard.score - width < hard.score:
        return None
    starts = np.linspace(hard.score - width, hard.score, STARTS)
    weighs = blocks.reduce(weigh_parts, step, starts, width)["weighs"]
    start = float(np.interp(-wanted, -weighs, starts))
    return SoftThreshold(start, start + width)


def _score_of(key: int) -> float:
    """Return the score of a key."""
    bits = np.array(key, dtype=np.int64)
    return float((bits if key >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)).view(np.float64))
