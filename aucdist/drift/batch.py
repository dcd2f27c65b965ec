"""Compare the rows of a batch with the profile of the training rows, and compute the metrics of a model once labels are known."""

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy import ndarray
from scipy.special import bdtrc, chdtrc, kolmogorov

from aucdist.data.block import Block, Columns
from aucdist.drift.profile import RARE_ROWS, Profile
from aucdist.errors import Json
from aucdist.metrics.compare import holm, macro_auc_interval, measured_classes
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import operating_point
from aucdist.metrics.intervals import Estimate
from aucdist.metrics.partial import partial_auc_interval
from aucdist.metrics.ranking import auc_interval
from aucdist.parameters import frozen

ALPHA = 0.001
"""The level of all tests of a batch together, by Holm's correction: one false alarm in about a thousand batches without
a change. The tests of the labelled rows of a batch have the same level."""
MIN_LOSS = {"macro_auc": 0.01, "class auc": 0.01, "auc": 0.01, "partial_auc": 0.01, "recall": 0.05, "calibration": 0.2}
"""The smallest loss that raises an alarm, if it is also significant. For the calibration, it is the change of the ratio
of the positives to their expected number."""
MIN_DIFFERENCES = {
    "moved": 0.1,
    "score": 0.1,
    "class score": 0.1,
    "missing": 0.02,
    "unknown": 0.01,
    "outside": 0.01,
    "rare": 0.05,
}
"""The smallest difference that raises an alarm, if it is also significant: a PSI, or a share of the rows above that of
the training rows."""
ADDED = 0.5
"""The number of rows that is added to each bin for the PSI. The PSI would otherwise be infinite if a bin had no rows."""
MIN_EXPECTED_ROWS = 5.0
"""Bins with fewer expected rows than this are joined for the chi-squared test."""
Z_95 = 1.959963984540054
"""The standard normal quantile of two-sided intervals of 95 %."""

Probability = Callable[[ndarray], ndarray]


def performance(
    y: ndarray, scores: ndarray, max_fpr: float | None = None, probability: Probability | None = None
) -> Json:
    """Return the metrics of labelled rows, each with its 95 % interval.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    scores : ndarray of shape (n_samples,)
        The scores of the rows. A row with a score above 0 is predicted positive.
    max_fpr : float, optional
        The false positive rate up to which the model was trained.
    probability : Probability, optional
        Maps scores to the probabilities of both classes.

    Returns
    -------
    dict
        ``rows``, ``n_pos`` and ``metrics``. The metrics are ``auc``, ``partial_auc``, ``recall``, ``fpr``, ``precision`` and
        ``calibration``, each with ``value``, ``low`` and ``high``. ``calibration`` is the number of positives divided by the
        number that the probabilities expect. ``metrics`` is empty if a class has no rows.
    """
    n_pos = int((y == 1).sum())
    metrics: Json = {}
    if 0 < n_pos < len(y):
        counts = ScoreCounts.from_scores(y, scores)
        with warnings.catch_warnings(action="ignore"):
            # Warnings about few rows are not needed, because the number of rows is shown next to the interval.
            metrics["auc"] = _as_json(auc_interval(counts))
            if max_fpr is not None:
                metrics["partial_auc"] = _as_json(partial_auc_interval(counts, max_fpr))
        point = operating_point(counts, 0.0)
        metrics |= {name: _as_json(getattr(point, name)) for name in ("recall", "fpr", "precision")}
        if probability is not None and (expected := float((p := probability(scores)[:, 1]).sum())) > 0:
            ratio, reach = n_pos / expected, Z_95 * math.sqrt(float((p * (1 - p)).sum())) / expected
            metrics["calibration"] = {"value": ratio, "low": max(ratio - reach, 0.0), "high": ratio + reach}
    return {"rows": len(y), "n_pos": n_pos, "metrics": metrics}


def performance_of_classes(names: Sequence[str], members: ndarray, scores: ndarray) -> Json:
    """Return the metrics of labelled rows of several classes, each with its 95 % interval.

    Parameters
    ----------
    names : sequence of str
        The names of the classes.
    members : ndarray of shape (n_samples, n_classes), bool
        Which classes each row has.
    scores : ndarray of shape (n_samples, n_classes)
        The scores of each class.

    Returns
    -------
    dict
        ``rows``, ``metrics`` with ``macro_auc``, and ``classes``. The mean is over the classes that have at least two rows and
        two others. ``classes`` has ``name``, ``n_pos`` and ``auc`` of each of these.
    """
    measured = measured_classes(members)
    metrics: Json = {}
    classes: list[Json] = []
    if len(measured):
        metrics["macro_auc"] = _as_json(macro_auc_interval(members[:, measured], scores[:, measured]))
    for k in measured.tolist():
        class_result = performance(np.where(members[:, k], 1, -1), scores[:, k])
        classes.append({"name": names[k], "n_pos": class_result["n_pos"], "auc": class_result["metrics"]["auc"]})
    return {"rows": len(members), "metrics": metrics, "classes": classes}


def _as_json(estimate: Estimate) -> Json:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def metric_alarms(now: Json, on_test_rows: Json | None, guaranteed: str | None) -> list[Json]:
    """Return the alarms of metrics that are lower than on the test rows of the run, and of unexpected numbers of positives.

    The standard error of a metric is the length of its 95 % interval divided by 2 * 1.96. The variances of the batch and of the
    run add up, because their rows are independent. There is an alarm if the one-sided p-value has ``p_holm < ALPHA`` and the loss
    is at least that in `MIN_LOSS`.

    Parameters
    ----------
    now : dict
        As `performance` returns them; the second is None if the run had no test rows.
    on_test_rows : dict or None
        As `performance` returns them; the second is None if the run had no test rows.
    guaranteed : str or None
        A metric with a guarantee. It is left out here, because it is tested over all batches together.
    """
    run = on_test_rows or {"metrics": {}}
    values, before = now["metrics"], run["metrics"]
    tests = [
        _loss(name, None, values[name], before[name])
        for name in ("macro_auc", "auc", "partial_auc", "recall")
        if name in values and name in before and name != guaranteed
    ]
    areas = {row["name"]: row["auc"] for row in run.get("classes", ())}
    for row in now.get("classes", ()):
        if row["name"] in areas:
            tests.append(_loss("class auc", row["name"], row["auc"], areas[row["name"]]))
    if (ratio := values.get("calibration")) is not None:
        # The calibration has errors, which also affect the metric on the test rows of the run.
        in_run = before.get("calibration", {"value": 1.0, "high": 1.0})
        error = math.hypot(*((part["high"] - part["value"]) / Z_95 for part in (ratio, in_run)))
        off = abs(ratio["value"] - in_run["value"])
        p = math.erfc(off / error / math.sqrt(2)) if error > 0 else 1.0
        tests.append(_test_row("calibration", None, off, p))
    return alarms_of(tests, MIN_LOSS)


def _loss(metric_name: str, column: str | None, now: Json, before: Json) -> Json:
    """Return the decrease of a metric as ``value``, and its one-sided p-value as ``p``."""
    error = math.hypot(*((part["high"] - part["low"]) / (2 * Z_95) for part in (now, before)))
    loss = before["value"] - now["value"]
    p = 0.5 * math.erfc(loss / error / math.sqrt(2)) if error > 0 else 1.0
    return _test_row(metric_name, column, loss, p)


def _test_row(subject: str, column: str | None, value: float, p: float) -> Json:
    """Return the test of a difference, which is an alarm if `alarms_of` keeps it."""
    return {"what": subject, "column": column, "value": value, "p": p}


def alarms_of(tests: list[Json], least: Json) -> list[Json]:
    """Return the tests that are significant after Holm's correction and whose effect is large enough for an alarm."""
    for test, corrected in zip(tests, holm([test["p"] for test in tests]), strict=True):
        test["p"] = corrected
    return [test for test in tests if test["p"] < ALPHA and test["value"] >= least[test["what"]]]


@frozen
class BatchCounts:
    """The numbers of rows of a batch in the bins of a profile. Counts of several parts can be merged by ``+``.

    Attributes
    ----------
    bins : ndarray of int64
        The number of rows in each bin, column by column.
    outside : ndarray of shape (n_columns,), int64
        The number of rows outside of the range of the training rows.
    score : ndarray of int64
        The number of rows in each bin of the score. For several classes, those of the score of each class, one class after the
        other.
    rare : int
        The number of rows with a value outside of the training range, or in a bin with fewer than `RARE_ROWS` training rows.
    """

    rows: int
    bins: ndarray
    outside: ndarray
    score: ndarray
    rare: int

    def __add__(self, other: "BatchCounts") -> "BatchCounts":
        """Return the counts of the rows of both."""
        return BatchCounts(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @classmethod
    def of(cls, profile: Profile, block: Block, scores: ndarray) -> "BatchCounts":
        """Return the counts of some rows.

        Parameters
        ----------
        block : Block
            Rows that are encoded like the training rows.
        scores : ndarray of shape (n_samples,), or (n_samples, n_classes) for several classes
            The scores of the rows.
        """
        values, n = Columns(block), block.n_samples
        counts, outside, rare = [], np.zeros(len(profile.columns), dtype=np.int64), np.zeros(n, dtype=bool)
        for k, column in enumerate(profile.columns):
            bin_numbers = column.bin_numbers(values, n)
            if column.kind == "numbers":
                x = values[column.at[0]]
                is_outside = (x < column.low) | (x > column.high)
                outside[k] = np.count_nonzero(is_outside)
                rare |= is_outside
            rare |= (np.array(column.counts) < RARE_ROWS)[bin_numbers]
            counts.append(np.bincount(bin_numbers, minlength=column.n_bins))
        bins = [
            np.bincount(bins.bin_numbers(column), minlength=len(bins.counts))
            for bins, column in zip(profile.scores.values(), np.atleast_2d(scores.T), strict=True)
        ]
        return cls(n, np.concatenate(counts), outside, np.concatenate(bins), int(np.count_nonzero(rare)))

    @classmethod
    def none(cls, profile: Profile) -> "BatchCounts":
        """Return the counts of no rows."""
        rows = Block.of(np.zeros((0, profile.n_features)), np.zeros(0))
        return cls.of(profile, rows, np.zeros((0, len(profile.scores))))


def compare_with_profile(profile: Profile, batch: BatchCounts) -> Json:
    """Compare a batch with the training rows, and return the differences and the alarms.

    For each column, these are computed: the PSI; the Kolmogorov-Smirnov distance between the distribution functions (for
    categories, the total variation) with its p-value; and the shares of missing values, of unknown categories and of values
    outside of the training range. Each share has the p-value of the hypothesis that it is no higher than among the training
    rows. For the score, the PSI and the distance are computed. The p-values of a batch are corrected together by Holm's
    procedure. There is an alarm if ``p_holm < ALPHA`` and the difference is at least that in `MIN_DIFFERENCES`.

    Returns
    -------
    dict
        JSON values: ``rows``; ``columns``, sorted by their PSI; ``score``, which for several classes is that of the class with
        the largest change, with its ``class``; ``scores`` of all classes; ``rare``; and ``alarms``, each with ``kind``,
        ``column``, ``value`` and ``p``.
    """
    tests: list[Json] = []
    columns: list[Json] = []
    scores: list[Json] = []
    start, rows, trained = 0, max(batch.rows, 1), max(profile.rows, 1)
    for k, column in enumerate(profile.columns):
        reference, counts = np.array(column.counts), batch.bins[start : start + column.n_bins]
        start += column.n_bins
        are_numbers, index = column.kind == "numbers", psi(reference, counts)
        distance, p = (kolmogorov_smirnov if are_numbers else total_variation)(reference, counts)
        tests.append(_test_row("moved", column.name, index, p))
        none, before, kind = int(counts[0]), int(reference[0]), "missing" if are_numbers else "unknown"
        share, share_before = none / rows, before / trained
        p_none = more_than(none, batch.rows, before, profile.rows)
        tests.append(_test_row(kind, column.name, share - share_before, p_none))
        outside_share = int(batch.outside[k]) / rows
        if are_numbers:  # among as many new rows as training rows, two rows are expected outside the range
            p_beyond = more_than(int(batch.outside[k]), batch.rows, 2, profile.rows)
            tests.append(_test_row("outside", column.name, outside_share, p_beyond))
        columns.append(
            {
                "name": column.name, "kind": column.kind, "psi": index, "distance": distance, "p": p, kind: share,
                f"{kind}_before": share_before, "outside": outside_share,
            }
        )  # fmt: skip
    start = 0
    for name, bins in profile.scores.items():
        reference, counts = np.array(bins.counts), batch.score[start : start + len(bins.counts)]
        start += len(bins.counts)
        distance, p = kolmogorov_smirnov(reference, counts)
        index = psi(reference, counts)
        scores.append({"class": name, "psi": index, "distance": distance, "p": p, "rows": bins.rows})
        tests.append(_test_row("score" if name is None else "class score", name, index, p))
    # These are the share of rows in bins with few training rows, and an upper bound on its expectation.
    before = sum(n for column in profile.columns for n in column.counts if n < RARE_ROWS)
    before = min(before + 2 * len(profile.columns), profile.rows)
    rare = {
        "share": batch.rare / rows,
        "expected": before / trained,
        "p": more_than(batch.rare, batch.rows, before, profile.rows),
    }
    tests.append(_test_row("rare", None, rare["share"] - rare["expected"], rare["p"]))
    alarms = alarms_of(tests, MIN_DIFFERENCES) if batch.rows else []
    for listed in (columns, scores):
        listed.sort(key=lambda row: -row["psi"])
    result = {"rows": batch.rows, "columns": columns, "score": scores[0], "rare": rare, "alarms": alarms}
    if profile.score is None:
        return result | {"scores": scores}
    del scores[0]["class"]
    return result


# ---- distances between two histograms of the same bins, with p-values for one population --------------------------------------


def psi(reference: ndarray, counts: ndarray) -> float:
    """Return the population stability index, the sum over bins of ``(q - p) log(q / p)`` (Siddiqi, Credit Risk Scorecards, 2006).

    If both are samples of the same population, with n and m rows, its mean is about ``(n_bins - 1) (1/n + 1/m)``. So it is
    above 0 even if nothing has changed.

    Parameters
    ----------
    reference, counts : ndarray of shape (n_bins,)
        Rows of each bin.
    """
    p, q = ((c + ADDED) / (c.sum() + ADDED * len(c)) for c in (np.asarray(reference), np.asarray(counts)))
    return float(((q - p) * np.log(q / p)).sum())


def kolmogorov_smirnov(reference: ndarray, counts: ndarray) -> tuple[float, float]:
    """Return the largest difference of the distribution functions at the ends of the bins, and its asymptotic p-value.

    The distance of binned values is at most that of the values, so the p-value is conservative.

    Parameters
    ----------
    reference, counts : ndarray of shape (n_bins,)
        Rows of each bin, of ascending values.
    """
    n, m = float(np.sum(reference)), float(np.sum(counts))
    if n == 0 or m == 0:
        return 0.0, 1.0
    distance = float(np.abs(np.cumsum(reference) / n - np.cumsum(counts) / m).max())
    return distance, float(kolmogorov(math.sqrt(n * m / (n + m)) * distance))


def total_variation(reference: ndarray, counts: ndarray) -> tuple[float, float]:
    """Return half the sum of the differences of shares, and the p-value of the chi-squared test of homogeneity.

    Bins with fewer than 5 expected rows are joined for the test.

    Parameters
    ----------
    reference, counts : ndarray of shape (n_bins,)
        Rows of each category.
    """
    first, second = np.array([reference, counts], dtype=np.float64)
    n, m = float(first.sum()), float(second.sum())
    if n == 0 or m == 0:
        return 0.0, 1.0
    distance = 0.5 * float(np.abs(first / n - second / m).sum())
    sums = first + second
    small = sums * min(n, m) / (n + m) < MIN_EXPECTED_ROWS
    table = np.stack([np.append(column[~small], column[small].sum()) for column in (first, second)])
    table = table[:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / (n + m)
    freedom = table.shape[1] - 1
    if freedom < 1:
        return distance, 1.0
    return distance, float(chdtrc(freedom, ((table - expected) ** 2 / expected).sum()))


def more_than(count: int, n: int, before: int, n_before: int) -> float:
    """Return the p-value for the hypothesis that a share is no higher than before.

    The p-value is that of a binomial number with the share ``(before + 1) / (n_before + 2)``, or that of the normal test of two
    shares if this is larger, because the earlier share is an estimate as well.

    Parameters
    ----------
    count, n : int
        The count and the number of the new rows.
    before, n_before : int
        The same for the earlier rows.
    """
    if n == 0 or n_before == 0 or count == 0:
        return 1.0
    share = (before + 1) / (n_before + 2)
    exact = float(bdtrc(count - 1, n, min(share, 1.0)))
    pooled = (count + before) / (n + n_before)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / n_before))
    normal = 0.5 * math.erfc((count / n - before / n_before) / spread / math.sqrt(2)) if spread > 0 else 1.0
    return max(exact, normal)
