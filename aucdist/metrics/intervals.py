"""Confidence intervals of shares and of other measures, which the measures have in common."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts


class IntervalWarning(UserWarning):
    """There are too few rows, or too few misranked rows, for the interval to hold its level."""


@dataclass(frozen=True)
class Estimate:
    """A measure with its confidence interval.

    Attributes
    ----------
    value : float
        The measure of these rows.
    low, high : float
        The bounds of the interval.
    level : float
        The share of samples for which such an interval contains the measure of the population.
    method : str
        ``delong-logit``, ``exact-bound``, ``clopper-pearson``, ``mover``, ``stringer-mover`` or ``bootstrap``.
    """

    value: float
    low: float
    high: float
    level: float
    method: str


def two_sided_z(level: float) -> float:
    """Return the number that the absolute value of a standard normal variable does not exceed with probability `level`."""
    return NormalDist().inv_cdf((1 + level) / 2)


def logit_interval(share: float, error: float, level: float) -> tuple[float, float]:
    """Return ``logit(share) -+ z * error / (share * (1 - share))`` mapped back, for a share above 0 and below 1.

    It stays within (0, 1) and is asymmetric in the right direction near 1 (Pepe, The Statistical Evaluation of Medical Tests,
    2003, section 5.2).
    """
    centre = math.log(share / (1 - share))
    reach = two_sided_z(level) * error / (share * (1 - share))
    # The logistic function, written so that no argument overflows.
    return 0.5 + 0.5 * math.tanh((centre - reach) / 2), 0.5 + 0.5 * math.tanh((centre + reach) / 2)


def wilson(share: np.ndarray, n: int | np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval for each observed share of n rows (Wilson, JASA 22, 1927, 209-212)."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)


def clopper_pearson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a share, which is [0, 1] for n = 0 (Clopper & Pearson, Biometrika 26, 1934)."""
    from scipy.special import betaincinv  # here, because importing it takes time that most measures need not spend

    tail = 0.5 * (1 - level)
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return low, high


def bootstrap_interval(
    counts: ScoreCounts,
    measure: Callable[[ScoreCounts], float],
    level: float = 0.95,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return a measure with its stratified percentile bootstrap interval; each class is resampled separately.

    If every resample gives the same value, as with a perfect ranking, the interval is the bound of
    `aucdist.metrics.ranking.auc_interval`, because the measures are shares. So its width is never zero.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    measure : callable
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
    check_resamples(n_resamples)
    refuse_weights(counts)
    value = float(measure(counts))
    random = np.random.default_rng(seed)
    kinds = [np.repeat(np.arange(len(counts.values)), n.astype(np.int64)) for n in (counts.pos, counts.neg)]
    found = np.empty(n_resamples)
    for i in range(n_resamples):
        drawn = [kind[random.integers(len(kind), size=len(kind))] for kind in kinds]
        found[i] = measure(counts_at(counts, *drawn))
    low, high = (float(v) for v in np.quantile(found, ((1 - level) / 2, (1 + level) / 2)))
    if low == high:
        q = (1 - level) ** (1 / min(counts.rows_pos, counts.rows_neg))
        low, high = q * value, 1 - q * (1 - value)
    return Estimate(value, low, high, level, "bootstrap")


def counts_at(counts: ScoreCounts, of_pos: np.ndarray, of_neg: np.ndarray) -> ScoreCounts:
    """Return the counts of rows whose scores have these positions in the values."""
    pos, neg = (np.bincount(at, minlength=len(counts.values)).astype(np.float64) for at in (of_pos, of_neg))
    seen = pos + neg > 0
    return ScoreCounts(counts.values[seen], pos[seen], neg[seen], len(of_pos), len(of_neg))


def check_level(level: float, lowest: float = 0.5) -> None:
    """Raise an InputError unless a confidence level is at least `lowest`, or above 0, and below 1."""
    if not (lowest <= level < 1 and level > 0):
        bound = f"at least {lowest}" if lowest else "above 0"
        raise InputError(f"level is {level}; it must be {bound} and below 1")


def check_resamples(n_resamples: int) -> None:
    """Raise an InputError if there are too few resamples for the ends of an interval."""
    if n_resamples < 100:
        raise InputError(f"n_resamples is {n_resamples}; at least 100 are needed for the ends of an interval")


def refuse_weights(counts: ScoreCounts) -> None:
    """Raise an InputError if the rows have weights."""
    if counts.weighted:
        raise InputError("no interval for weighted rows: weights do not say how many independent rows there are")
