"""The macro AUC of several classes, the mean of the AUC of each class against the rest: a paired test, and an interval."""

import math

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.compare import Difference, bounded_difference, normal_difference, placements
from aucdist.metrics.intervals import check_level, two_sided_z

LEAST = 2
"""Rows of a class, and of its rest, without which it is left out."""


def measured_classes(members: np.ndarray) -> np.ndarray:
    """Return the positions of the classes that have two rows, and two of the rest.

    Parameters
    ----------
    members : ndarray of shape (n_samples, n_classes), bool
    """
    return np.flatnonzero(_fewest(members) >= LEAST)


def _fewest(members: np.ndarray) -> np.ndarray:
    """Return the rows of each class, or those of its rest where they are fewer."""
    n_pos = members.sum(axis=0)
    return np.minimum(n_pos, len(members) - n_pos)


def macro_auc(members: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the macro AUC, and what each row adds to its error.

    The AUC of each class is a mean of placements (DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988, 837-845). A row has one
    in each class, and their deviations from the AUC are added up row by row, so that the variance of the mean over the classes is
    the sum of the squares over the rows, whatever the classes have in common. For one class it is DeLong's variance.

    Parameters
    ----------
    members : ndarray of shape (n_samples, n_classes), bool
        Which rows are of each class; each has two rows and two others, see `measured_classes`.
    scores : ndarray of shape (n_samples, n_classes)

    Returns
    -------
    area : float
    parts : ndarray of shape (n_samples,), float64

    Raises
    ------
    InputError
        As `aucdist.metrics.compare.placements`, and if a class has fewer than two rows or others.
    """
    areas, parts = [], np.zeros(len(members))
    if len(measured_classes(members)) < members.shape[1] or not members.shape[1]:
        raise InputError("each class needs two rows, and two rows of the rest")
    for k in range(members.shape[1]):
        inside = members[:, k]
        of_pos, of_neg = placements(np.where(inside, 1, -1), scores[:, k])
        area = float(of_pos.mean())
        for rows, placed in ((inside, of_pos), (~inside, of_neg)):
            n = len(placed)
            parts[rows] += (placed - area) / math.sqrt(n * (n - 1))
        areas.append(area)
    return float(np.mean(areas)), parts / members.shape[1]


def macro_auc_interval(members: np.ndarray, scores: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Return the macro AUC and its confidence interval, normal and cut at 0 and 1; parameters and errors as of `macro_auc`.

    Where the variance cannot be estimated, it is that of shares of which nothing was seen in the smallest class, as in
    `aucdist.metrics.ranking.auc_interval`.
    """
    check_level(level)
    area, parts = macro_auc(members, scores)
    variance = float(parts @ parts)
    if variance == 0 or area in (0.0, 1.0):
        q = (1.0 - level) ** (1.0 / int(_fewest(members).min()))
        return area, q * area, 1.0 - q * (1.0 - area)
    reach = two_sided_z(level) * math.sqrt(variance)
    return area, max(area - reach, 0.0), min(area + reach, 1.0)


def macro_auc_test(members: np.ndarray, first: np.ndarray, second: np.ndarray, level: float = 0.95) -> Difference:
    """Test whether two models have the same macro AUC, on the same rows.

    Parameters
    ----------
    members : ndarray of shape (n_samples, n_classes), bool
        As for `macro_auc`.
    first, second : ndarray of shape (n_samples, n_classes)
        Scores.
    level : float
        At least 0.5 and below 1.

    Returns
    -------
    Difference
        As `aucdist.metrics.compare.delong_test` returns it, also where the variance cannot be estimated: then the smallest class
        decides.

    Raises
    ------
    InputError
        As `macro_auc`, or for a level out of its range.
    """
    check_level(level)
    (one, of_one), (other, of_other) = macro_auc(members, first), macro_auc(members, second)
    parts = of_one - of_other
    variance = float(parts @ parts)
    if variance <= 1e-14 * float(of_one @ of_one + of_other @ of_other) or variance == 0:
        return bounded_difference(one - other, int(_fewest(members).min()), level)
    return normal_difference(one - other, math.sqrt(variance), level)
