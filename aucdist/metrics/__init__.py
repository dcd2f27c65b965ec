"""Measures of a ranking: from labels and scores here, from mergeable counts in the modules below."""

from aucdist.metrics.auc import Interval, IntervalWarning
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.functions import (
    average_precision_score,
    confusion_counts,
    g_mean_score,
    roc_auc_interval,
    roc_auc_score,
)

__all__ = [
    "Interval",
    "IntervalWarning",
    "ScoreCounts",
    "average_precision_score",
    "confusion_counts",
    "g_mean_score",
    "roc_auc_interval",
    "roc_auc_score",
]
