"""Measures of rankings and of probabilities, on labels and scores. The modules below compute them from mergeable counts."""

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
from aucdist.metrics.partial import Estimate
from aucdist.metrics.probability import Reliability
from aucdist.metrics.probability_functions import (
    brier_score_loss,
    calibration_loss,
    expected_calibration_error,
    log_loss,
    refinement_loss,
    reliability_curve,
)
from aucdist.metrics.top import OperatingPoint
from aucdist.metrics.top_functions import (
    fpr_at_recall,
    operating_point,
    partial_roc_auc_difference,
    partial_roc_auc_score,
    precision_at_k,
    recall_at_fpr,
    recall_at_k,
    threshold_at,
)
from aucdist.metrics.top_intervals import (
    fpr_at_recall_interval,
    partial_roc_auc_interval,
    precision_at_k_interval,
    recall_at_fpr_interval,
    recall_at_k_interval,
)

__all__ = [
    "Difference",
    "Estimate",
    "Interval",
    "IntervalWarning",
    "OperatingPoint",
    "Reliability",
    "ScoreCounts",
    "average_precision_score",
    "brier_score_loss",
    "calibration_loss",
    "confusion_counts",
    "expected_calibration_error",
    "fpr_at_recall",
    "fpr_at_recall_interval",
    "g_mean_score",
    "log_loss",
    "operating_point",
    "partial_roc_auc_difference",
    "partial_roc_auc_interval",
    "partial_roc_auc_score",
    "precision_at_k",
    "precision_at_k_interval",
    "recall_at_fpr",
    "recall_at_fpr_interval",
    "recall_at_k",
    "recall_at_k_interval",
    "refinement_loss",
    "reliability_curve",
    "roc_auc_difference",
    "roc_auc_interval",
    "roc_auc_score",
    "threshold_at",
]
