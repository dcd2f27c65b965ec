"""How a model does on rows whose labels have become known, beside what its run promised."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aucdist.metrics.compare import holm, macro_auc_interval, measured_classes
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import operating_point
from aucdist.metrics.partial import partial_auc_interval
from aucdist.metrics.ranking import auc_interval

ALPHA = 0.001
"""How often a batch without change may raise an alarm, all its measures together, by Holm."""
LEAST = {"macro_auc": 0.01, "class auc": 0.01, "auc": 0.01, "partial_auc": 0.01, "recall": 0.05, "calibration": 0.2}
"""What a loss must be, besides significant, to raise an alarm. Of the calibration it is the change of the ratio of the
positives to their expected number."""
Z = 1.959963984540054

Probability = Callable[[np.ndarray], np.ndarray]


def performance(
    y: np.ndarray, scores: np.ndarray, max_fpr: float | None = None, probability: Probability | None = None
) -> dict[str, Any]:
    """Return the measures of labelled rows, each with its 95 % interval.

    `y`, of shape (n_samples,): labels, -1 or +1.
    `scores`, of shape (n_samples,): above 0 a row is called positive.
    `max_fpr`: the false positive rate up to which the model was trained.
    `probability`: from scores to the probabilities of both classes.
    Returns ``rows``, ``n_pos``, ``measures``: ``auc``, ``partial_auc``, ``recall``, ``fpr``, ``precision`` and
        ``calibration``, the number of positives over the number that the probabilities expect; each with ``value``,
        ``low``, ``high``. Empty where a class has no rows.
    """
    n_pos = int((y == 1).sum())
    found: dict[str, Any] = {"rows": len(y), "n_pos": n_pos, "measures": {}}
    if n_pos in (0, len(y)):
        return found
    counts, measures = ScoreCounts.from_scores(y, scores), found["measures"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows: the number of rows is beside the interval
        spread = auc_interval(counts)
        measures["auc"] = {"value": spread.auc, "low": spread.low, "high": spread.high}
        if max_fpr is not None:
            measures["partial_auc"] = _of(partial_auc_interval(counts, max_fpr, standardized=True))
        point = operating_point(counts, 0.0)
    for name in ("recall", "fpr", "precision"):
        estimate = getattr(point, name)
        if math.isfinite(estimate.value):
            measures[name] = _of(estimate)
    if probability is not None:
        p = probability(scores)[:, 1]
        expected, spread_of_sum = float(p.sum()), math.sqrt(float((p * (1 - p)).sum()))
        if expected > 0:
            reach = Z * spread_of_sum / expected
            measures["calibration"] = {
                "value": n_pos / expected, "low": max(n_pos / expected - reach, 0.0), "high": n_pos / expected + reach,
            }  # fmt: skip
    return found


def performance_of_classes(names: Sequence[str], members: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
    """Return the measures of labelled rows of several classes, each with its 95 % interval.

    `members`, of shape (n_samples, n_classes), bool: which classes each row has.
    `scores`: of shape (n_samples, n_classes).
    Returns ``rows``; ``measures``: ``macro_auc``, the mean over the classes that have two rows and two others; and
        ``classes``: for each of these ``name``, ``n_pos`` and ``auc``.
    """
    which = measured_classes(members)
    found: dict[str, Any] = {"rows": len(members), "measures": {}, "classes": []}
    if not len(which):
        return found
    area, low, high = macro_auc_interval(members[:, which], scores[:, which])
    found["measures"]["macro_auc"] = {"value": area, "low": low, "high": high}
    for k in which.tolist():
        counts = ScoreCounts.from_scores(np.where(members[:, k], 1, -1), scores[:, k])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few rows: the number of rows is beside the interval
            spread = auc_interval(counts)
        auc = {"value": spread.auc, "low": spread.low, "high": spread.high}
        found["classes"].append({"name": names[k], "n_pos": int(counts.n_pos), "auc": auc})
    return found


def _of(estimate: Any) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def losses(now: dict[str, Any], promised: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return alarms: measures that are lower than the run promised, and positives that are more or fewer than it promised.

    The standard error of a measure is a quarter of its interval, about; those of the batch and of the run add up, since their
    rows are different ones. An alarm needs ``p_holm < ALPHA``, one-sided, and the size in `LEAST`.

    `now` and `promised`: as `performance` returns them; `promised` of the run's test rows, or None where it had none.
    """
    tests: list[dict[str, Any]] = []
    before = {} if promised is None else promised["measures"]
    for name in ("macro_auc", "auc", "partial_auc", "recall"):
        if name in now["measures"] and name in before:
            tests.append({"what": name, "column": None, **_loss(now["measures"][name], before[name])})
    of_classes = {} if promised is None else {one["name"]: one["auc"] for one in promised.get("classes", [])}
    for one in now.get("classes", []):
        if one["name"] in of_classes:
            tests.append({"what": "class auc", "column": one["name"], **_loss(one["auc"], of_classes[one["name"]])})
    ratio = now["measures"].get("calibration")
    if ratio is not None:
        # The map to probabilities has errors of its own, which are in what the run promised.
        own = before.get("calibration", {"value": 1.0, "high": 1.0})
        error = math.hypot(*((part["high"] - part["value"]) / Z for part in (ratio, own)))
        off = abs(ratio["value"] - own["value"])
        p = math.erfc(off / error / math.sqrt(2)) if error > 0 else 1.0
        tests.append({"what": "calibration", "column": None, "value": off, "p": p})
    for test, corrected in zip(tests, holm([test["p"] for test in tests]), strict=True):
        test["p"] = corrected
    return [test for test in tests if test["p"] < ALPHA and test["value"] >= LEAST[test["what"]]]


def _loss(now: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    """Return how much lower a measure is than it was, as ``value``, and the one-sided ``p`` of that."""
    error = math.hypot(*((part["high"] - part["low"]) / (2 * Z) for part in (now, before)))
    loss = before["value"] - now["value"]
    return {"value": loss, "p": 0.5 * math.erfc(loss / error / math.sqrt(2)) if error > 0 else 1.0}
