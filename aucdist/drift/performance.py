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
"""The level of all tests of a batch together, by Holm: one false alarm in about a thousand batches without change.
The same holds for the tests of its labelled rows."""
LEAST = {"macro_auc": 0.01, "class auc": 0.01, "auc": 0.01, "partial_auc": 0.01, "recall": 0.05, "calibration": 0.2}
"""What a loss must be, besides significant, to raise an alarm. For the calibration it is the change of the ratio of the
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
    measures: dict[str, dict[str, float]] = {}
    if 0 < n_pos < len(y):
        counts = ScoreCounts.from_scores(y, scores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few rows: the number of rows is beside the interval
            measures["auc"] = _ends(auc_interval(counts))
            if max_fpr is not None:
                measures["partial_auc"] = _ends(partial_auc_interval(counts, max_fpr, standardized=True))
        point = operating_point(counts, 0.0)
        measures |= {name: _ends(getattr(point, name)) for name in ("recall", "fpr", "precision")}
        p = np.zeros(0) if probability is None else probability(scores)[:, 1]
        if (expected := float(p.sum())) > 0:
            ratio, reach = n_pos / expected, Z * math.sqrt(float((p * (1 - p)).sum())) / expected
            measures["calibration"] = {"value": ratio, "low": max(ratio - reach, 0.0), "high": ratio + reach}
    return {"rows": len(y), "n_pos": n_pos, "measures": measures}


def performance_of_classes(names: Sequence[str], members: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
    """Return the measures of labelled rows of several classes, each with its 95 % interval.

    `members`, of shape (n_samples, n_classes), bool: which classes each row has.
    `scores`: of shape (n_samples, n_classes).
    Returns ``rows``; ``measures``: ``macro_auc``, the mean over the classes that have two rows and two others; and
        ``classes``: for each of these ``name``, ``n_pos`` and ``auc``.
    """
    which = measured_classes(members)
    measures: dict[str, dict[str, float]] = {}
    classes: list[dict[str, Any]] = []
    if len(which):
        area, low, high = macro_auc_interval(members[:, which], scores[:, which])
        measures["macro_auc"] = {"value": area, "low": low, "high": high}
    for k in which.tolist():
        own = performance(np.where(members[:, k], 1, -1), scores[:, k])
        classes.append({"name": names[k], "n_pos": own["n_pos"], "auc": own["measures"]["auc"]})
    return {"rows": len(members), "measures": measures, "classes": classes}


def _ends(estimate: Any) -> dict[str, float]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def losses(now: dict[str, Any], promised: dict[str, Any] | None, without: str | None = None) -> list[dict[str, Any]]:
    """Return alarms: measures that are lower than the run promised, and positives that are more or fewer than it promised.

    The standard error of a measure is a quarter of its interval, about; those of the batch and of the run add up, since their
    rows are different ones. An alarm needs ``p_holm < ALPHA``, one-sided, and the size in `LEAST`.

    `now` and `promised`: as `performance` returns them; `promised` of the run's test rows, or None where it had none.
    `without`: a measure that is tested over all batches together.
    """
    before = {"measures": {}} if promised is None else promised
    tests = [
        _loss(name, None, now["measures"][name], before["measures"][name])
        for name in ("macro_auc", "auc", "partial_auc", "recall")
        if name in now["measures"] and name in before["measures"] and name != without
    ]
    areas = {row["name"]: row["auc"] for row in before.get("classes", ())}
    for row in now.get("classes", ()):
        if row["name"] in areas:
            tests.append(_loss("class auc", row["name"], row["auc"], areas[row["name"]]))
    if (ratio := now["measures"].get("calibration")) is not None:
        # The map to probabilities has errors of its own, which are in what the run promised.
        own = before["measures"].get("calibration", {"value": 1.0, "high": 1.0})
        error = math.hypot(*((part["high"] - part["value"]) / Z for part in (ratio, own)))
        off = abs(ratio["value"] - own["value"])
        p = math.erfc(off / error / math.sqrt(2)) if error > 0 else 1.0
        tests.append({"what": "calibration", "column": None, "value": off, "p": p})
    return alarms_of(tests, LEAST)


def _loss(what: str, column: str | None, now: dict[str, float], before: dict[str, float]) -> dict[str, Any]:
    """Return how much lower a measure is than it was, as ``value``, and the one-sided ``p`` of that."""
    error = math.hypot(*((part["high"] - part["low"]) / (2 * Z) for part in (now, before)))
    loss = before["value"] - now["value"]
    p = 0.5 * math.erfc(loss / error / math.sqrt(2)) if error > 0 else 1.0
    return {"what": what, "column": column, "value": loss, "p": p}


def alarms_of(tests: list[dict[str, Any]], least: dict[str, float]) -> list[dict[str, Any]]:
    """Return the tests that are significant, their p-values corrected together by Holm, and at least as large as alarms are."""
    for test, corrected in zip(tests, holm([test["p"] for test in tests]), strict=True):
        test["p"] = corrected
    return [test for test in tests if test["p"] < ALPHA and test["value"] >= least[test["what"]]]
