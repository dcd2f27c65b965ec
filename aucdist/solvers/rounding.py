"""Bounds on the rounding errors of the values of a certificate.

They are first-order forward error bounds (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., chapters 3 and 4).
The error of a sum of k products, in any order, is at most ``k u / (1 - k u)`` times the sum of the products' absolute values,
where u = 2**-53. The sums here are over the values of a row (scores) or over rows (losses, gradients). The absolute values are
bounded by the largest one of each column. Coefficients that are running sums of weights have relative errors of the same kind,
because no weight is negative. Then the numbers of terms add up.
"""

import numpy as np
from numpy import ndarray

from aucdist.engine.blocks import Blocks
from aucdist.parameters import frozen

EPS = float(np.finfo(np.float64).eps)
"""The distance from 1 to the next larger float64, which is twice the unit roundoff u."""

MAX_CELLS = 256
"""The largest number of cells that a code of one byte can name."""

EXTRA_OPERATIONS = 16
"""An allowance for the few operations of a value that are not part of its sum."""


@frozen
class Rounding:
    """The sizes of the rows on which bounds on rounding errors depend.

    Attributes
    ----------
    largest : ndarray of shape (n_features,), float64
        The largest absolute value of each column.
    over_columns, over_rows : float
        The relative errors of sums over the values of a row, and of sums over rows.
    """

    largest: ndarray
    over_columns: float
    over_rows: float

    @classmethod
    def of(cls, blocks: Blocks, running: int = 0) -> "Rounding":
        """Return the sizes of the rows of blocks. The ranges of their columns are known, or are computed by one reduction.

        Parameters
        ----------
        running : int
            The number of terms of each coefficient of a row, if the coefficients are running sums.
        """
        ranges = blocks.ranges
        return cls(
            ranges.largest, 0.5 * EPS * (ranges.width + EXTRA_OPERATIONS), 0.5 * EPS * (_depth(blocks) + running)
        )

    @classmethod
    def of_ones(cls, blocks: Blocks) -> "Rounding":
        """Return the sizes for the rows of a square matrix whose values are at most 1."""
        n = blocks.n_samples
        return cls(np.ones(n), 0.5 * EPS * (n + EXTRA_OPERATIONS), 0.5 * EPS * _depth(blocks))

    def largest_score(self, w: ndarray) -> float:
        """Return a bound on the absolute value of any row's score with weights w."""
        return float(np.abs(w) @ self.largest)

    def score(self, w: ndarray) -> float:
        """Return a bound on the error of any row's score with weights w."""
        return self.over_columns * self.largest_score(w)

    def penalty(self, w: ndarray, penalty: float) -> float:
        """Return a bound on the error of a penalty of this size."""
        return 0.5 * EPS * (len(w) + EXTRA_OPERATIONS) * penalty

    def pair_hinge(self, w: ndarray, hinge: float, score_error: float | None = None) -> float:
        """Return a bound on the error of a mean of hinges over pairs, which for each row is a difference of two running sums.

        Parameters
        ----------
        w : ndarray of shape (n_features,)
            The weights.
        hinge : float
            The mean.
        score_error : float, optional
            A bound on the error of any row's score; by default that of scores taken at w itself.
        """
        error = self.score(w) if score_error is None else score_error
        return 2.0 * error + self.over_rows * (1.0 + hinge + 2.0 * self.largest_score(w))

    def combination(self, total: float, extra: int = 0) -> ndarray:
        """Return bounds on the errors of the entries of a weighted sum of rows.

        Parameters
        ----------
        total : float
            The sum of the absolute values of the coefficients.
        extra : int
            The number of terms, if such sums are added up.
        """
        return ((self.over_rows + 0.5 * EPS * extra) * total) * self.largest

    def half_square(self, v: ndarray, error: ndarray) -> float:
        """Return a bound on the error of ``v.v / 2`` if the errors of the entries of v are at most `error`."""
        return float(np.abs(v) @ error + 0.5 * (error @ error)) + 0.5 * EPS * (len(v) + EXTRA_OPERATIONS) * float(v @ v)


def _depth(blocks: Blocks) -> int:
    """Return the number of terms of a sum over rows: those of a block, plus those of a sum over blocks."""
    cells = MAX_CELLS if blocks.has_codes else 0  # rows are added up in cells, and those along a code
    return max(info.n_samples for info in blocks.infos) + blocks.n_blocks + cells + EXTRA_OPERATIONS


def higher(highest: tuple[float, float], newest: tuple[float, float]) -> tuple[float, float]:
    """Return the better of two lower bounds with their errors: the one that is higher after subtracting its error."""
    return newest if newest[0] - newest[1] > highest[0] - highest[1] else highest
