"""The spread of a search's scores within groups: what each group adds to the mean over the folds, and intervals from that.

A fold's score is a weighted mean over its held-out groups, and rows of one group are not independent. Drawing groups with
replacement gives the mean a standard error that is, to first order, the root of the sum of the squares of what each group adds
to the mean's deviation (the infinitesimal jackknife; Efron, The Jackknife, the Bootstrap and Other Resampling Plans, 1982,
chapter 6). A fold sends two numbers for each group, or for each bundle of groups where these are many; a group that is held out
again in another repeat is the same one there.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aucdist.data.split import scrambled
from aucdist.metrics.compare import Difference
from aucdist.metrics.groups import OfGroups
from aucdist.metrics.intervals import t_quantile

BUNDLES, SEED = 1024, 0
"""At most so many bundles: the error of a variance from so many is 4 %. Groups that share one are drawn together."""

Shares = Mapping[str, Sequence[float]]
"""By bundle: the sum of the weighted values of its groups, and that of their weights, both over the sum of all weights."""


def shares_of(found: OfGroups) -> dict[str, list[float]]:
    """Return the shares of a fold's groups, whose names are numbers."""
    bundle = scrambled(np.asarray(found.groups, dtype=np.int64), SEED) % np.uint64(BUNDLES)
    keys, at = np.unique(bundle, return_inverse=True)
    weight = found.weights / found.weights.sum()
    value, mass = np.bincount(at, weight * found.values), np.bincount(at, weight)
    return {str(key): [a, b] for key, a, b in zip(keys.tolist(), value.tolist(), mass.tolist(), strict=True)}


def over_folds(results: Sequence[Mapping[str, Any]]) -> dict[str, list[float]] | None:
    """Return the shares of groups in the mean over folds, each fold the same; None if a fold has none, or there is one bundle."""
    if not all("groups" in result for result in results):
        return None
    total: dict[str, list[float]] = {}
    for result in results:
        for key, (value, mass) in result["groups"].items():
            a, b = total.get(key, (0.0, 0.0))
            total[key] = [a + value / len(results), b + mass / len(results)]
    return total if len(total) > 1 else None


def standard_error(shares: Shares) -> float:
    """Return the standard error of a mean over folds."""
    return _error(_deviations(shares))


def groups_test(shares: Shares, other: Shares | None, test_over_train: float, level: float = 0.95) -> Difference | None:
    """Test a mean over folds, or its difference from that of another model on the same folds, against 0.

    Student's t with one degree less than there are bundles. The variance is multiplied by ``2 + test_over_train``, as
    `aucdist.metrics.compare.corrected_t_test` does with that of the folds: their training rows overlap.

    Parameters
    ----------
    shares, other : mapping
        As `over_folds` returns them.
    test_over_train : float
        Held-out rows per training row.

    Returns
    -------
    Difference or None
        None if there is no spread, or the groups are not the same.
    """
    if other is not None and shares.keys() != other.keys():
        return None
    value, deviations = _mean(shares), _deviations(shares)
    if other is not None:
        value, deviations = value - _mean(other), deviations - _deviations({key: other[key] for key in shares})
    error = _error(deviations) * math.sqrt(2.0 + test_over_train)
    if error <= 1e-15 * abs(value) or error == 0.0:
        return None
    from scipy.special import stdtr

    freedom = len(shares) - 1
    reach = t_quantile(level, freedom) * error
    p_value = 2 * float(stdtr(freedom, -abs(value) / error))
    return Difference(value, value - reach, value + reach, p_value, level, "corrected-groups")


def _mean(shares: Shares) -> float:
    return math.fsum(value for value, _ in shares.values())


def _deviations(shares: Shares) -> np.ndarray:
    """Return what each bundle adds to the deviation of the mean: they add up to 0."""
    values, weights = np.array(list(shares.values())).T
    return np.asarray(values - _mean(shares) * weights)


def _error(deviations: np.ndarray) -> float:
    n = len(deviations)
    return float(np.sqrt(n / (n - 1) * (deviations @ deviations)))
