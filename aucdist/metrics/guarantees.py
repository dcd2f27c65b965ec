"""Thresholds that guarantee a metric for new rows with a known probability, and a test of whether the guarantee still holds.

The bounds are exact binomial ones (Clopper & Pearson, Biometrika 26, 1934, 404-413), so they hold for any number of rows. The
rows must be drawn like the new ones, independently of each other, and the model must not have been fitted to them.

Recall, false positive rate and the number of alerts can only increase as the threshold falls. The bound may therefore be
computed for every threshold, and the last threshold that meets it may be taken (Bates and others, Journal of the ACM 68, 2021,
article 43).

Precision may increase and decrease. Thresholds are then tested one after the other, from few flagged rows to many, by the
fallback procedure of Wiens (`TEST_STARTS`), applied as in Learn then Test (Angelopoulos and others, arXiv 2110.01052, section
3). A threshold is the score of the row after the m highest, for numbers m that are fixed beforehand. Given that score, the
labels of the m rows above it are independent, and their mean is the precision of the threshold. So each test is exact. If the
precision falls below the guaranteed value only once, the first threshold that misses the guarantee passes its test with a
probability of at most 1 - confidence.

If the precision falls below the guaranteed value several times, there are several ranges of thresholds with too low a
precision. There may be no tested threshold in the first of these ranges, and the rows decide which range is tested first. The
guarantee is not proved for this case.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import REQUIREMENTS, only_requirement
from aucdist.metrics.intervals import check_level, check_unweighted
from aucdist.metrics.ranking import cumulative_counts

TEST_STARTS = {1.0: 0.7, 4.0: 0.3}
"""Where the tests of precision begin, in units of the fewest rows that can pass, and the part of the error that each start has.
What a test has not used up goes on to the next (Wiens, Pharmaceutical Statistics 2, 2003, 211-215). With one start, a false
positive among the first rows would end the list; more starts cost more if positives are few."""
STEP = 1.02
"""The factor by which the number of flagged rows grows from one test of precision to the next."""
ODDS = (1.2, 1.5, 2.0, 3.0, 5.0)
"""The alternatives of the test of a guarantee: the odds of a bad row, in units of those that are allowed."""
LOOKS = 52
"""The number of batches within which half of the weight of the test is on a change. The other half is on later changes."""
ALARM_E_VALUE = 20.0
"""If a guarantee holds, the probability that its e-value ever reaches this value is at most 1 in 20, however often it is
checked."""

BAD_ROWS: dict[str, Callable[[dict[str, float]], tuple[float, float]]] = {
    "precision": lambda table: (table["fp"], table["tp"] + table["fp"]),
    "recall": lambda table: (table["fn"], table["tp"] + table["fn"]),
    "fpr": lambda table: (table["fp"], table["fp"] + table["tn"]),
    "alerts": lambda table: (table["tp"] + table["fp"], sum(table.values())),
}
"""The numbers of rows that violate a guarantee and of rows that it is about, from a table of
`aucdist.metrics.decisions.confusion`."""


@dataclass(frozen=True)
class Guarantee:
    """A threshold, and what it guarantees for new rows.

    Attributes
    ----------
    threshold : float
        Rows with a score above it are flagged.
    metric : str
        ``precision``, ``recall``, ``fpr`` or ``alerts``.
    target, guaranteed : float
        The target, and the value that the threshold guarantees. They are equal if the target can be guaranteed. Otherwise,
        `guaranteed` is the best value that was found.
    confidence : float
        The probability with which the guarantee holds.
    n_rows : int
        The number of rows on which the bound is based: the positive ones for recall, the negative ones for the false positive
        rate, the flagged ones for precision, and all rows for alerts.
    """

    threshold: float
    metric: str
    target: float
    guaranteed: float
    confidence: float
    n_rows: int

    @property
    def meets_target(self) -> bool:
        """Whether the threshold guarantees the target."""
        return self.guaranteed == self.target


def guaranteed_threshold(counts: ScoreCounts, confidence: float = 0.95, **requirements: float | None) -> Guarantee:
    """Return a threshold that meets a requirement on new rows. See `aucdist.metrics.guaranteed_threshold`."""
    from scipy.special import bdtr

    check_level(confidence)
    check_unweighted(counts)
    name, value = only_requirement(f"guaranteed_threshold takes one of {', '.join(REQUIREMENTS)}", requirements)
    REQUIREMENTS[name].check(name, value)
    error = 1.0 - confidence
    positives, negatives = cumulative_counts(counts)  # `flagged` is the number of distinct scores above the threshold
    if name == "precision":
        flagged, guaranteed, rows = _precise(positives, positives + negatives, value, error)
    else:
        counted = {"recall": positives, "fpr": negatives, "alerts": positives + negatives}[name]
        guaranteed, rows, share = value, int(counted[-1]), allowed_share(name, value)
        # The number of bad rows, as `BAD_ROWS` defines them. Any threshold meets a share of 1.
        allowed = (
            rows if share == 1 else bisect_left(range(rows), True, key=lambda k: bool(bdtr(k, rows, share) > error)) - 1
        )
        if allowed < 0:
            guaranteed, allowed = allowed_share(name, 1.0 - error ** (1.0 / rows)), 0
        if name == "recall":
            flagged = int(np.searchsorted(counted, rows - allowed))
        else:
            flagged = int(np.searchsorted(counted, allowed, side="right")) - 1
    n_below = len(counts.values) - flagged
    # For precision, the threshold is the score of the next row, because a midpoint would depend on the rows above it.
    threshold = float(counts.values[n_below - 1]) if name == "precision" and n_below else counts.threshold(n_below)
    return Guarantee(threshold, name, value, guaranteed, confidence, rows)


def _precise(positives: np.ndarray, flagged: np.ndarray, least: float, error: float) -> tuple[int, float, int]:
    """Return the number of distinct scores to flag, the precision that is guaranteed, and the number of flagged rows."""
    from scipy.special import bdtrc, betaincinv

    total = int(flagged[-1])
    fewest = math.log(error * TEST_STARTS[1.0]) / math.log(least) if least < 1 else float(total)
    sizes = [max(1, math.ceil(fewest))]
    while sizes[-1] * STEP < total:
        sizes.append(max(sizes[-1] + 1, int(sizes[-1] * STEP)))
    positions = np.unique(np.minimum(np.searchsorted(flagged, sizes), len(flagged) - 1))
    starts = np.searchsorted(flagged[positions], [fewest * factor for factor in TEST_STARTS])
    errors = error * np.array([*TEST_STARTS.values()])
    budget = np.bincount(np.minimum(starts, len(positions) - 1), errors, minlength=len(positions))
    carried, best = 0.0, 0
    for position, error_of_start in zip(positions.tolist(), budget.tolist(), strict=True):
        carried += error_of_start
        if bdtrc(positives[position] - 1, int(flagged[position]), least) <= carried:
            best = position
        else:
            carried = 0.0
    if best:
        return best, least, int(flagged[best])
    # Each start has its part of the error, so that the bounds of all starts hold together.
    tested = positions[budget > 0]
    true_alerts, rest = positives[tested], flagged[tested] - positives[tested]
    bounds = np.where(true_alerts > 0, betaincinv(np.maximum(true_alerts, 1), rest + 1, budget[budget > 0]), 0.0)
    k = int(np.argmax(bounds))
    return int(tested[k]), float(bounds[k]), int(flagged[tested[k]])


def evidence_against(bad: Sequence[int], rows: Sequence[int], allowed: float) -> float:
    """Return the e-value against the guarantee that at most a certain share of the rows is bad, from batches in their order.

    While the guarantee holds, the e-value ever reaches `ALARM_E_VALUE` with a probability of at most 1 / `ALARM_E_VALUE`,
    however often it is computed and whenever labels arrive (Ville's inequality). It is a mean of likelihood ratios over the
    batch before which the share may have changed, and over the size of the change. Each ratio is a nonnegative supermartingale
    that begins at 1 (Ramdas and others, Statistical Science 38, 2023, 576-601).

    Parameters
    ----------
    bad, rows : sequence of int
        The number of bad rows and of all rows in each batch.
    allowed : float
        The share of bad rows that the guarantee allows, above 0 and below 1.

    Returns
    -------
    float
    """
    n_bad, n = (np.cumsum(np.asarray(column, dtype=np.float64)[::-1])[::-1] for column in (bad, rows))
    odds = allowed / (1.0 - allowed) * np.asarray(ODDS)
    other = odds / (1.0 + odds)
    log_ratio = np.outer(n_bad, np.log(other / allowed)) + np.outer(n - n_bad, np.log((1 - other) / (1 - allowed)))
    ratios = np.exp(np.minimum(log_ratio, 500.0)).mean(axis=1)
    number = np.arange(1, len(ratios) + 1)
    weight = np.where(number <= LOOKS, 0.5 / LOOKS, 0.5 * LOOKS / (np.maximum(number - 1, 1) * number))
    return float(weight @ ratios + 1.0 - weight.sum())


def allowed_share(metric: str, guaranteed: float) -> float:
    """Return the share of bad rows that a guarantee allows, where `BAD_ROWS` defines which rows are bad."""
    return 1.0 - guaranteed if metric in ("precision", "recall") else guaranteed
