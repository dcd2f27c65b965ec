"""The mean hinge of single rows with an L1 or an L2 penalty, and lower bounds on its minimum.

    P(w, b) = sum of m_i max(0, 1 - y_i (w.x_i + b)) + penalty,    penalty = lam |w|_1  or  lam |w|_2^2,

where m_i is the weight of row i divided by the total weight. This is formula (1) of Tao, Zhu, Luo & Kong, "A new Comid-based
stochastic coordinate descent method for non-smooth losses" (Acta Electronica Sinica 41(4), 2013): the penalty has no factor 1/2,
and the loss is a mean. The intercept b, if there is one, is not penalised.

Any a with 0 <= a_i <= 1 is a dual point. With A = sum of m_i a_i and v = sum of m_i a_i y_i x_i, its value is

    L1: A, provided that |v|_inf <= lam;    L2: A - |v|_2^2 / (4 lam);    with b: provided that sum of m_i a_i y_i = 0.

The value is at most P(w, b) for any w and b. A point that violates a condition is scaled until the condition holds. The rows
whose margin is below 1 give such a point, and so does any average of points. Only (A, v) of a point is kept, which is linear in
a.
"""

from dataclasses import dataclass

import numpy as np

PENALTIES = ("l1", "l2")

ClassWeight = tuple[float, float]
"""Factors for the sample weights of the negative and of the positive rows."""

EQUAL: ClassWeight = (1.0, 1.0)


def shares_of(weight_neg: float, weight_pos: float, class_weight: ClassWeight) -> ClassWeight:
    """Return the share m of a negative and of a positive row of weight 1, given the total weights of the classes."""
    whole = class_weight[0] * weight_neg + class_weight[1] * weight_pos
    return class_weight[0] / whole, class_weight[1] / whole


def penalty_of(w: np.ndarray, penalty: str, lam: float) -> float:
    """Return the penalty of w, which holds no intercept."""
    return lam * float(np.abs(w).sum() if penalty == "l1" else w @ w)


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A dual point, kept as A and v of each class. The points of several blocks add up to the point of all rows.

    Attributes
    ----------
    totals : ndarray of shape (2,), float64
        The sums of m_i a_i over the negative and over the positive rows.
    sums : ndarray of shape (2, n_features), float64
        The sums of m_i a_i x_i over the negative and over the positive rows.
    """

    totals: np.ndarray
    sums: np.ndarray

    def __add__(self, other: "DualPoint") -> "DualPoint":
        return DualPoint(self.totals + other.totals, self.sums + other.sums)

    def towards(self, other: "DualPoint", share: float) -> "DualPoint":
        """Return the point between this one (share 0) and another one (share 1)."""
        return DualPoint(
            self.totals + share * (other.totals - self.totals), self.sums + share * (other.sums - self.sums)
        )

    def gradient(self) -> np.ndarray:
        """Return -v, followed by minus the sum of m_i a_i y_i.

        If a_i is 1 for the rows with a margin below 1 and 0 for the others, this is the gradient of the loss.
        """
        return np.append(self.sums[0] - self.sums[1], self.totals[0] - self.totals[1])

    def balanced(self, *, intercept: bool) -> tuple[float, np.ndarray]:
        """Return A and v of the point; an intercept needs the heavier class scaled to weigh as much as the other."""
        kept = np.ones(2)
        if intercept:
            kept = self.totals.min() / np.where(self.totals > 0.0, self.totals, 1.0)
        return float(kept @ self.totals), kept[1] * self.sums[1] - kept[0] * self.sums[0]

    def lower_bound(self, penalty: str, lam: float, *, intercept: bool) -> float:
        """Return the dual value of the point, after scaling it to be feasible and, for L2, to the best length.

        Parameters
        ----------
        penalty : {"l1", "l2"}
        lam : float
            Above 0.
        intercept : bool
            Whether there is an intercept.
        """
        total, v = self.balanced(intercept=intercept)
        if penalty == "l1":
            return total * min(1.0, lam / max(float(np.abs(v).max(initial=0.0)), lam))
        square = float(v @ v)
        length = min(1.0, 2.0 * lam * total / square) if square > 0.0 else 1.0
        return length * total - length**2 * square / (4.0 * lam)
