"""The measures that searches, comparisons and bootstrap intervals know by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from aucdist.errors import InputError, unknown
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import balanced_accuracy, confusion, g_mean
from aucdist.metrics.probability import brier, calibration_loss, log_loss
from aucdist.metrics.ranking import auc, average_precision
from aucdist.metrics.top import check_max_fpr, partial_auc, recall_at_fpr


@dataclass(frozen=True)
class Measure:
    """A named measure, as a function of counts.

    Attributes
    ----------
    name : str
        If it ends with ``_loss``, smaller is better.
    of : callable
        ``of(counts, threshold)``; only decisions use the threshold.
    needs : {"ranking", "decision", "probability"}
        The kind of counts: of scores, of scores with a threshold, or of probabilities of the positive class.
    """

    name: str
    of: Callable[[ScoreCounts, float], float]
    needs: Literal["ranking", "decision", "probability"]

    @property
    def sign(self) -> int:
        """1 if larger is better, else -1."""
        return -1 if self.name.endswith("_loss") else 1


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("auc", lambda counts, threshold: auc(counts), "ranking"),
        Measure("average_precision", lambda counts, threshold: average_precision(counts), "ranking"),
        Measure("g_mean", lambda counts, threshold: g_mean(confusion(counts, threshold)), "decision"),
        Measure(
            "balanced_accuracy", lambda counts, threshold: balanced_accuracy(confusion(counts, threshold)), "decision"
        ),
        Measure("brier_loss", lambda counts, threshold: brier(counts), "probability"),
        Measure("log_loss", lambda counts, threshold: log_loss(counts), "probability"),
        Measure("calibration_loss", lambda counts, threshold: calibration_loss(counts), "probability"),
    )
}


UP_TO_FPR: dict[str, Callable[[ScoreCounts, float], float]] = {
    "partial_auc": partial(partial_auc, standardized=True),
    "recall_at_fpr": recall_at_fpr,
}
"""Measures of the top of a ranking, which need a largest false positive rate. Their full names end with it: partial_auc@0.01."""


def find_measure(name: str) -> Measure:
    """Return the measure of this name, such as ``"auc"`` or ``"partial_auc@0.01"``.

    Raises
    ------
    InputError
        If there is no such measure, or it lacks its false positive rate, or that is out of its range.
    """
    kind, at, rate = name.partition("@")
    if kind in UP_TO_FPR:
        if not at:
            raise InputError(f"metric {kind!r} needs max_fpr, the largest false positive rate, such as 0.01")
        try:
            max_fpr = float(rate)
        except ValueError:
            raise InputError(f"metric {name!r}: {rate!r} is not a number") from None
        check_max_fpr(max_fpr)
        return Measure(name, lambda counts, threshold: UP_TO_FPR[kind](counts, max_fpr), "ranking")
    if name not in MEASURES:
        raise unknown("metric", name, [*MEASURES, *UP_TO_FPR])
    return MEASURES[name]


def measure_name(metric: str, max_fpr: float | None) -> str:
    """Return the full name of a measure, for `find_measure`.

    Parameters
    ----------
    metric : str
    max_fpr : float or None
        The largest false positive rate, for the measures that need one.

    Raises
    ------
    InputError
        If the measure takes no false positive rate.
    """
    if max_fpr is None:
        return metric
    if metric not in UP_TO_FPR:
        raise InputError(f"max_fpr applies to metric {' and '.join(UP_TO_FPR)}, not to {metric!r}")
    return f"{metric}@{float(max_fpr)}"
