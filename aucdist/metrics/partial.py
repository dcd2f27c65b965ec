"""The partial AUC, the area under the ROC curve up to a false positive rate, as a function of counts.

Between two distinct scores the ROC curve is a straight line, as if ties were broken at random. So the partial AUC up to beta is
the share of pairs of a positive and one of the beta * n_neg highest-scoring negatives that are ranked correctly, times beta,
where ties at the boundary count in part.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.auc import IntervalWarning, _exact, _refuse_weights, _two_sided_z, auc
from aucdist.metrics.compare import Difference, _bounded, _refuse_level
from aucdist.metrics.counts import ScoreCounts

# Simulated intervals of 95 % covered at least 92 % of the time with as many positives, and as many negatives up to max_fpr.
ENOUGH_POSITIVES = 50
ENOUGH_NEGATIVES = 20


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
        ``delong-logit``, ``exact-bound``, ``clopper-pearson`` or ``bootstrap``.
    """

    value: float
    low: float
    high: float
    level: float
    method: str


def partial_auc(counts: ScoreCounts, max_fpr: float, *, standardized: bool = False) -> float:
    """Return the area under the ROC curve from a false positive rate of 0 to `max_fpr`.

    Parameters
    ----------
    counts : ScoreCounts
    max_fpr : float
        Above 0 and at most 1.
    standardized : bool
        Whether to map the area linearly so that 1/2 is a random and 1 a perfect ranking (McClish, Medical Decision Making 9,
        1989, 190-195). Otherwise the area is at most `max_fpr`.

    Raises
    ------
    InputError
        If a class has no rows, or `max_fpr` is out of its range.
    """
    check_max_fpr(max_fpr)
    if max_fpr == 1:
        return auc(counts)
    pos, neg = (column[::-1] for column in _exact(counts))
    total = float if counts.weighted else int
    n_pos, n_neg = total(pos.sum()), total(neg.sum())
    found, false = np.cumsum(pos), np.cumsum(neg)
    # Whole groups of equal scores are summed exactly. The group in which max_fpr lies contributes a trapezoid.
    k = int(np.searchsorted(false.astype(np.float64) / n_neg, max_fpr, side="right"))
    area = total((neg[:k] * (2 * found[:k] - pos[:k])).sum()) / (2 * n_pos * n_neg)
    if k < len(false):
        before = float(found[k] - pos[k]) / n_pos
        width = max_fpr - float(false[k] - neg[k]) / n_neg
        slope = (float(pos[k]) / n_pos) / (float(neg[k]) / n_neg)
        area += width * (before + 0.5 * slope * width)
    area = min(area, max_fpr)
    return _standardized(area, max_fpr) if standardized else area


def partial_auc_interval(
    counts: ScoreCounts, max_fpr: float, level: float = 0.95, *, standardized: bool = False
) -> Estimate:
    """Return the partial AUC with a confidence interval.

    The variance is DeLong's, the sum of the variances of the two classes' placements over their numbers of rows. For the
    partial AUC up to beta, the placement of a positive whose score has the false positive rate u is ``max(0, beta - u)``, and
    that of a negative whose score has the true positive rate v is ``min(v, ROC(beta))``. These are the influence functions of
    the partial AUC; they account for the estimation of the score at beta. At beta = 1 they are DeLong's. The interval is
    symmetric on the logit scale of the area over beta, as in `aucdist.metrics.auc.auc_interval`.

    If no variance can be estimated, the interval is a bound for any number of rows (``exact-bound``), see `_bound`.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    max_fpr : float
        Above 0 and at most 1.
    level : float
        At least 0.5 and below 1.
    standardized : bool
        As in `partial_auc`.

    Raises
    ------
    InputError
        If a class has no rows, there are weights, or a parameter is out of its range.

    Warns
    -----
    IntervalWarning
        If there are fewer than 50 positives, or fewer than 20 negatives up to `max_fpr`. The interval then covers less often
        than its level says.
    """
    _refuse_level(level)
    _refuse_weights(counts)
    share = partial_auc(counts, max_fpr) / max_fpr
    in_range = max_fpr * counts.rows_neg
    if counts.rows_pos < ENOUGH_POSITIVES or in_range < ENOUGH_NEGATIVES:
        warnings.warn(
            f"the interval of the partial AUC may cover less often than it says: there are {counts.rows_pos} positives and "
            f"{in_range:.3g} negatives up to max_fpr; {ENOUGH_POSITIVES} and {ENOUGH_NEGATIVES} are enough",
            IntervalWarning,
            stacklevel=2,
        )
    of_pos, of_neg = placements_up_to(counts, max_fpr)
    variance = sum(
        _variance(placement, column) / column.sum()
        for placement, column in ((of_pos, counts.pos), (of_neg, counts.neg))
    )
    error = math.sqrt(variance) / max_fpr
    if error <= 1e-14 or share in (0.0, 1.0):
        low, high, method = *_bound(share, counts.rows_pos, counts.rows_neg, max_fpr, level), "exact-bound"
    else:
        centre = math.log(share / (1 - share))
        reach = _two_sided_z(level) * error / (share * (1 - share))
        # The logistic function, written so that no argument overflows.
        low, high = (0.5 + 0.5 * math.tanh((centre + shift) / 2) for shift in (-reach, reach))
        method = "delong-logit"
    area, low, high = (part * max_fpr for part in (share, low, high))
    if standardized:
        area, low, high = (_standardized(part, max_fpr) for part in (area, low, high))
    return Estimate(area, low, high, level, method)


def partial_delong_test(
    y: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    max_fpr: float,
    level: float = 0.95,
    *,
    standardized: bool = False,
) -> Difference:
    """Test whether two models have the same partial AUC, on the same rows.

    The variance of the difference is that of `partial_auc_interval`, with the difference of the two models' placements of each
    row.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels, -1 or +1.
    first, second : array of shape (n_samples,)
        Scores of the two models.
    max_fpr : float
        Above 0 and at most 1.
    level : float
        At least 0.5 and below 1.
    standardized : bool
        As in `partial_auc`.

    Returns
    -------
    Difference
        First minus second. Its method is ``exact-bound`` if no variance can be estimated, as for two perfect rankings.

    Raises
    ------
    InputError
        If the input is invalid, a class has fewer than two rows, or a parameter is out of its range.
    """
    _refuse_level(level)
    y, areas, placements = np.asarray(y), [], []
    for scores in (first, second):
        counts = ScoreCounts.from_scores(y, scores)
        areas.append(partial_auc(counts, max_fpr))
        at = np.searchsorted(counts.values, np.asarray(scores, dtype=np.float64))
        of_pos, of_neg = placements_up_to(counts, max_fpr)
        placements.append((of_pos[at][y == 1], of_neg[at][y == -1]))
    if min(counts.rows_pos, counts.rows_neg) < 2:
        raise InputError("the test needs two rows of each class")
    value = areas[0] - areas[1]
    moved = [one - other for one, other in zip(*placements, strict=True)]
    variance = sum(float(column.var(ddof=1)) / len(column) for column in moved)
    scale = 0.5 / (max_fpr - 0.5 * max_fpr**2) if standardized and max_fpr < 1 else 1.0
    if math.sqrt(variance) <= 1e-14 * max_fpr:
        pairs = max(1, min(counts.rows_pos, int(max_fpr * counts.rows_neg)))
        bound = _bounded(value / max_fpr, pairs, level)
        low, high = bound.low * max_fpr * scale, bound.high * max_fpr * scale
        return Difference(value * scale, low, high, bound.p_value, level, bound.method)
    error = math.sqrt(variance)
    reach = _two_sided_z(level) * error
    p_value = math.erfc(abs(value) / error / math.sqrt(2))
    low, high = max(value - reach, -max_fpr), min(value + reach, max_fpr)
    return Difference(value * scale, low * scale, high * scale, p_value, level, "delong")


def placements_up_to(counts: ScoreCounts, max_fpr: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the placements of a positive and of a negative row at each score, as `partial_auc_interval` defines them.

    Rows with equal scores get the mean over the straight line that they form in the ROC curve.

    Returns
    -------
    of_pos, of_neg : ndarray of shape (n_values,), float64
        In the order of ``counts.values``. The mean of `of_pos` over the positives is the partial AUC.
    """
    pos, neg = counts.pos[::-1], counts.neg[::-1]
    tpr, fpr = (np.concatenate(([0.0], np.cumsum(column) / column.sum())) for column in (pos, neg))
    k = int(np.searchsorted(fpr, max_fpr, side="right"))
    at_max = 1.0
    if k < len(fpr):
        at_max = tpr[k - 1] + (tpr[k] - tpr[k - 1]) * (max_fpr - fpr[k - 1]) / (fpr[k] - fpr[k - 1])
    # Means of max(0, max_fpr - u) and of min(v, at_max) over the intervals of u and v that the rows of one score cover.
    rest = np.maximum(max_fpr - fpr, 0.0)
    width = np.diff(fpr)
    of_pos = np.where(width > 0, (rest[:-1] ** 2 - rest[1:] ** 2) / np.where(width > 0, 2 * width, 1.0), rest[:-1])
    low = np.minimum(tpr, at_max)
    area = 0.5 * low**2 + at_max * (tpr - low)
    height = np.diff(tpr)
    of_neg = np.where(height > 0, np.diff(area) / np.where(height > 0, height, 1.0), low[:-1])
    return of_pos[::-1], of_neg[::-1]


def check_max_fpr(max_fpr: float) -> None:
    """Raise an InputError unless `max_fpr` is above 0 and at most 1."""
    if not 0 < max_fpr <= 1:
        raise InputError(f"max_fpr is {max_fpr}; it must be above 0 and at most 1")


def _standardized(area: float, max_fpr: float) -> float:
    least = 0.5 * max_fpr**2
    return 0.5 * (1 + (area - least) / (max_fpr - least))


def _variance(values: np.ndarray, counts: np.ndarray) -> float:
    """Return the sample variance of values that occur so often; 0 for a single row."""
    n = float(counts.sum())
    mean = float(counts @ values) / n
    return float(counts @ (values - mean) ** 2) / (n - 1) if n > 1 else 0.0


def _bound(share: float, n_pos: int, n_neg: int, max_fpr: float, level: float) -> tuple[float, float]:
    """Return an interval of the area over `max_fpr` that holds its level for any number of rows.

    If the area is perfect, the lower end is the smallest area for which a perfect sample still has the probability 1 - level.
    The sample is perfect if all positives are above the highest negative, whose false positive rate u is the smallest of n_neg
    uniform numbers, so the probability is the mean of ``ROC(u) ** n_pos``. Among all ROC curves of a given area, curves that
    are constant up to some rate b and 1 beyond it maximise this mean. The other perfect case, an area of 0, is treated in the
    same way. In all other cases the interval is Markov's, with q = 1 - level: from q times the area to 1 - q (1 - area).
    """
    q = 1 - level
    if share not in (0.0, 1.0):
        return q * share, 1 - q * (1 - share)
    from scipy.special import betainc

    def largest_probability(area: float) -> float:
        # Of a perfect sample, over the rates b at which the curve changes from one height to another.
        if share == 1.0:
            b = np.linspace((1 - area) * max_fpr, max_fpr, 201)
            height = np.maximum(0.0, 1 - (1 - area) * max_fpr / np.maximum(b, 1e-300)) if area < 1 else np.ones_like(b)
            beyond = (1 - b) ** n_neg
            return float((height**n_pos * (1 - beyond) + beyond).max())
        # No positive is above the k-th highest negative, whose false positive rate is a Beta(k, n_neg + 1 - k) variable.
        k = math.ceil(max_fpr * n_neg)
        b = np.linspace(0.0, (1 - area) * max_fpr, 201)
        height = np.minimum(1.0, area * max_fpr / np.maximum(max_fpr - b, 1e-300))
        before = betainc(k, n_neg + 1 - k, b)
        return float((before + (1 - before) * (1 - height) ** n_pos).max())

    inside, outside = share, 1.0 - share
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if largest_probability(middle) > q else (inside, middle)
    return (outside, 1.0) if share == 1.0 else (0.0, outside)
