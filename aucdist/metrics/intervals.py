"""Confidence intervals of shares and of other metrics."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.parameters import Number, count

PRIOR_ROWS_OF_SHARE = 5
"""In `share_interval`, the variance of a share counts as much as that of this many rows."""

LEVEL = Number("at least 0.5 and below 1", lambda level: 0.5 <= level < 1)
"""A confidence level."""


class IntervalWarning(UserWarning):
    """Warns that an interval may be too narrow because the smaller class has too few rows."""


@dataclass(frozen=True)
class Estimate:
    """A metric with its confidence interval.

    Attributes
    ----------
    value : float
        The metric on these rows.
    low, high : float
        The bounds of the interval.
    level : float
        The confidence of the interval: the share of samples for which such an interval contains the metric of the population.
    method : str
        ``score``, ``exact-bound``, ``clopper-pearson``, ``mover``, ``stringer-mover`` or ``bootstrap``.
    """

    value: float
    low: float
    high: float
    level: float
    method: str


def two_sided_z(level: float) -> float:
    """Return the number that the absolute value of a standard normal variable does not exceed with probability `level`."""
    return NormalDist().inv_cdf((1 + level) / 2)


def t_quantile(level: float, freedom: float) -> float:
    """Return the number that the absolute value of Student's t does not exceed with probability `level`."""
    from scipy.special import stdtrit  # imported here, because loading it takes time and most metrics do not need it

    return float(stdtrit(freedom, (1 + level) / 2))


def score_interval(
    value: float,
    variance: float,
    level: float,
    freedom: float,
    spread: Callable[[ndarray], ndarray] = lambda mean: mean * (1 - mean),
) -> tuple[float, float]:
    """Return the ends of the interval of all means from which `value` does not differ significantly by Student's t.

    Each mean is tested with its own standard error, and not with that of the value. `spread` says how the variance changes with
    the mean, and `variance` is the variance at the value. With the spread of shares this is Wilson's interval (JASA 22, 1927,
    209-212). Near 0 and 1, this interval keeps its level. An interval with the standard error at the value does not, because it
    is too short when few rows happen to be misranked.

    Parameters
    ----------
    value : float
        Above 0 and below 1.
    variance : float
        Above 0.
    level : float
        The confidence of the interval.
    freedom : float
        Degrees of freedom of the variance.
    spread : callable
        A function of an array of means from 0 to 1. It returns the variance for each mean, up to a common factor.
    """
    bounds = np.array([value, value])
    factor = t_quantile(level, freedom) ** 2 * variance / spread(bounds)
    low, high = bisected(lambda mean: (mean - value) ** 2 <= factor * spread(mean), bounds, np.array([0.0, 1.0]))
    return float(low), float(high)


def bisected(holds: Callable[[Any], Any], inside: Any, outside: Any, steps: int = 60) -> Any:
    """Return where a condition ceases to hold between a number inside and one outside, or between those of two arrays."""
    for _ in range(steps):
        middle = 0.5 * (inside + outside)
        near = holds(middle)
        inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
    return outside


def share_interval(value: float, variance: float, n: float, level: float) -> tuple[float, float]:
    """Return the bounds of a mean of n values from 0 to 1, by `score_interval`. The mean must be above 0 and below 1.

    A variance that was estimated from few rows is shrunk towards the variance of a share, the largest that values from 0 to 1
    can have.
    """
    variance = (n * variance + PRIOR_ROWS_OF_SHARE * value * (1 - value) / n) / (n + PRIOR_ROWS_OF_SHARE)
    return score_interval(value, variance, level, n + PRIOR_ROWS_OF_SHARE - 1)


def zero_event_interval(value: float, n: int, level: float) -> tuple[float, float]:
    """Return bounds for a mean of values from 0 to 1, if its variance cannot be estimated from the n independent rows.

    For a value of 1, it is the one-sided bound of Clopper and Pearson (Biometrika 26, 1934, 404-413) for n successes out of n:
    the probability of n successes is at most theta**n. If all rows are tied, the same bound holds for the ties. With one row,
    the bound is Markov's inequality. It holds its level for any number of rows.
    """
    q = (1 - level) ** (1 / n)
    return q * value, 1 - q * (1 - value)


def wilson(share: ndarray, n: int | ndarray, z: float) -> tuple[ndarray, ndarray]:
    """Return Wilson's interval for each observed share of n rows (Wilson, JASA 22, 1927, 209-212)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half_width = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return np.clip(middle - half_width, 0, 1), np.clip(middle + half_width, 0, 1)


def clopper_pearson(successes: ArrayLike, n: float, level: float = 0.95) -> tuple[Any, Any]:
    """Return the exact binomial intervals of shares (Clopper & Pearson, Biometrika 26, 1934). For n = 0 it is [0, 1]."""
    from scipy.special import betaincinv  # imported here, because loading it takes time and most metrics do not need it

    k, tail = np.asarray(successes, dtype=np.float64), 0.5 * (1 - level)
    some, fewer = np.maximum(k, 1), np.minimum(k, n - 1)
    low = np.where(k > 0, betaincinv(some, n - some + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(fewer + 1, n - fewer, 1 - tail), 1.0)
    return low.tolist(), high.tolist()


def bootstrap_interval(
    counts: ScoreCounts,
    metric: Callable[[ScoreCounts], float],
    level: float = 0.95,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return a metric with its stratified percentile bootstrap interval. Each class is resampled separately.

    With few rows, resamples vary too little, and their percentiles correspond to normal quantiles instead of Student's. The
    percentiles are moved outwards to correct both, as Hesterberg proposes (The American Statistician 69, 2015, 371-386, section
    4.2), with the number of rows of the smaller class.

    If every resample gives the same value, as with a perfect ranking, the interval is `zero_event_interval`, because the metrics
    are shares. Its width is therefore never 0.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    metric : callable
        Takes counts and returns a number, from 0 to 1.
    level : float
        At least 0.5 and below 1.
    n_resamples : int
        At least 100.
    seed : int
        Not negative.

    Raises
    ------
    InputError
        If a class has no rows, there are weights, or a parameter is out of its range.
    """
    check_level(level)
    count(100).check("n_resamples", n_resamples)
    check_unweighted(counts)
    value = float(metric(counts))
    random = np.random.default_rng(seed)
    kinds = [np.repeat(np.arange(len(counts.values)), n.astype(np.int64)) for n in (counts.pos, counts.neg)]
    values = np.empty(n_resamples)
    for i in range(n_resamples):
        drawn = (kind[random.integers(len(kind), size=len(kind))] for kind in kinds)
        pos, neg = (np.bincount(at, minlength=len(counts.values)).astype(np.float64) for at in drawn)
        in_sample = pos + neg > 0
        values[i] = metric(
            ScoreCounts(counts.values[in_sample], pos[in_sample], neg[in_sample], counts.rows_pos, counts.rows_neg)
        )
    fewest = min(counts.rows_pos, counts.rows_neg)
    tail = 0.0
    if fewest > 1:
        tail = NormalDist().cdf(-math.sqrt(fewest / (fewest - 1)) * t_quantile(level, fewest - 1))
    low, high = (float(v) for v in np.quantile(values, (tail, 1 - tail)))
    if low == high:
        low, high = zero_event_interval(value, fewest, level)
    return Estimate(value, low, high, level, "bootstrap")


def check_level(level: float) -> None:
    """Raise an InputError unless a confidence level is at least 0.5 and below 1."""
    LEVEL.check("level", level)


def check_unweighted(counts: ScoreCounts) -> None:
    """Raise an InputError if the rows have weights."""
    if counts.weighted:
        raise InputError(
            "there is no interval for weighted rows, because weights do not say how many independent rows there are: leave "
            "the weights out"
        )
