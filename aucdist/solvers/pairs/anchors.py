"""The anchors: the rows of the smaller class, whose sorted scores every block needs to meet its own rows with all of them.

A loss of all pairs is summed in O(n log m), m the number of anchors: each row of the larger class finds by a search how many
anchors lie below a bound, and running sums over the sorted anchors do the rest (`aucdist.kernels.pairs`). Scores are those of
"positive above negative". Where the negatives are the smaller class, scores and classes are mirrored, so that the margin of a
pair is the anchor's score minus the row's in either case.
"""

from dataclasses import dataclass

import numpy as np

from aucdist.kernels.pairs import guide

MAX_CELLS = 2**16
"""Of the table that guides a search: what stays in a core's second-level cache."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """The scores of the smaller class at one point, as the kernels read them. This is what travels to the blocks.

    Attributes
    ----------
    scores : ndarray of shape (n_anchors,), float64
        Ascending, less `centre`.
    table : ndarray of shape (n_cells + 1,), int32
    low, scale : ndarray of shape (), float64
        With `table` what `aucdist.kernels.pairs.guide` makes of the scores.
    below : tuple of ndarray of shape (n_anchors + 1,), float64
        Running sums over the first r anchors: of their weights, of weight times score, of weight times score squared, ...
    centre : ndarray of shape (), float64
        What the scores of the rows of the larger class have to be lessened by; 0 for most losses.
    """

    scores: np.ndarray
    table: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    below: tuple[np.ndarray, ...]
    centre: np.ndarray

    def search(self) -> tuple[np.ndarray, ...]:
        """Return what a search among the anchors needs, in the kernels' order."""
        return self.scores, self.table, self.low[()], self.scale[()]


def sorted_anchors(
    scores: np.ndarray, weights: np.ndarray, n_sums: int = 2, *, centred: bool = False
) -> tuple[Anchors, np.ndarray]:
    """Return the anchors at a point, and the order that sorts them.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_anchors,), float64
    n_sums : int
        How many running sums are needed: of the weights times the scores to the powers 0, 1, ..., n_sums - 1.
    centred : bool
        Take the median score as zero. Sums of squares lose least where scores are small.

    Returns
    -------
    anchors : Anchors
    order : ndarray of shape (n_anchors,), int64
        ``scores[order]`` is ascending. It stays with the client, which has the anchors' weights.
    """
    order = np.argsort(scores)
    ascending = scores[order]
    centre = ascending[len(ascending) // 2] if centred else 0.0
    if centred:
        ascending = ascending - centre
    table = np.empty(min(2 * len(scores), MAX_CELLS) + 1, dtype=np.int32)
    low, scale = guide(ascending, table)
    term, below = weights[order], []
    for _ in range(n_sums):
        below.append(running_sums(term))
        term = term * ascending
    return Anchors(ascending, table, np.asarray(low), np.asarray(scale), tuple(below), np.asarray(centre)), order


def running_sums(values: np.ndarray) -> np.ndarray:
    """Return the running sums, starting with 0: one more than there are values."""
    out = np.zeros(len(values) + 1)
    np.cumsum(values, out=out[1:])
    return out
