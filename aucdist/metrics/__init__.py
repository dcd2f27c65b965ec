"""Measures of a ranking and of probabilities: from labels and scores here, from mergeable counts in the modules below."""

from aucdist.metrics.auc import Interval, IntervalWarning
from aucdist.metrics.compare import Difference
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.functions import (
    average_precision_score,
    confusion_counts,
    g_mean_score,
    roc_auc_difference,
    roc_auc_interval,
    roc_auc_score,
)
from aucdist.metrics.probability import Reliability
from aucdist.metrics.probability_functions import (
    brier_score_loss,
    calibration_loss,
    expected_calibration_error,
    log_loss,
    refinement_loss,
    reliability_curve,
)

__all__ = [
    "Difference",
    "Interval",
    "IntervalWarning",
    "Reliability",
    "ScoreCounts",
    "average_precision_score",
    "brier_score_loss",
    "calibration_loss",
    "confusion_counts",
    "expected_calibration_error",
    "g_mean_score",
    "log_loss",
    "refinement_loss",
    "reliability_curve",
    "roc_auc_difference",
    "roc_auc_interval",
    "roc_auc_score",
]
