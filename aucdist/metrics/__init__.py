"""Metrics of rankings, decisions and probabilities on labels and scores, with confidence intervals and paired tests.

Examples
--------
>>> from aucdist.metrics import recall_at_fpr, recall_at_fpr_interval
>>> y, scores = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]
>>> recall_at_fpr(y, scores, max_fpr=0.1), recall_at_fpr(y, scores, max_fpr=0.1, sample_weight=[1, 1, 1, 1, 2, 1])
(0.5, 0.3333333333333333)
"""

from aucdist.metrics.compare import Difference
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import OperatingPoint
from aucdist.metrics.groups import (
    GroupMetric,
    group_auc,
    group_metric_difference,
    group_ndcg,
    group_recall,
)
from aucdist.metrics.guarantees import Guarantee
from aucdist.metrics.intervals import Estimate, IntervalWarning
from aucdist.metrics.probability import Reliability
from aucdist.metrics.public_decisions import (
    confusion_counts,
    expected_cost,
    expected_cost_interval,
    fpr_at_recall,
    fpr_at_recall_interval,
    g_mean_score,
    guaranteed_threshold,
    operating_point,
    precision_at_k,
    precision_at_k_interval,
    precision_at_recall,
    precision_at_recall_interval,
    recall_at_fpr,
    recall_at_fpr_interval,
    recall_at_k,
    recall_at_k_interval,
    recall_at_precision,
    recall_at_precision_interval,
    threshold_at,
)
from aucdist.metrics.public_rankings import (
    average_precision_difference,
    average_precision_interval,
    average_precision_score,
    brier_score_loss,
    calibration_loss,
    expected_calibration_error,
    log_loss,
    partial_roc_auc_difference,
    partial_roc_auc_interval,
    partial_roc_auc_score,
    refinement_loss,
    reliability_curve,
    roc_auc_difference,
    roc_auc_interval,
    roc_auc_score,
    two_way_partial_auc_interval,
    two_way_partial_auc_score,
    venn_abers_probabilities,
)

__all__ = [
    "Difference",
    "Estimate",
    "GroupMetric",
    "Guarantee",
    "IntervalWarning",
    "OperatingPoint",
    "Reliability",
    "ScoreCounts",
    "average_precision_difference",
    "average_precision_interval",
    "average_precision_score",
    "brier_score_loss",
    "calibration_loss",
    "confusion_counts",
    "expected_calibration_error",
    "expected_cost",
    "expected_cost_interval",
    "fpr_at_recall",
    "fpr_at_recall_interval",
    "g_mean_score",
    "group_auc",
    "group_metric_difference",
    "group_ndcg",
    "group_recall",
    "guaranteed_threshold",
    "log_loss",
    "operating_point",
    "partial_roc_auc_difference",
    "partial_roc_auc_interval",
    "partial_roc_auc_score",
    "precision_at_k",
    "precision_at_k_interval",
    "precision_at_recall",
    "precision_at_recall_interval",
    "recall_at_fpr",
    "recall_at_fpr_interval",
    "recall_at_k",
    "recall_at_k_interval",
    "recall_at_precision",
    "recall_at_precision_interval",
    "refinement_loss",
    "reliability_curve",
    "roc_auc_difference",
    "roc_auc_interval",
    "roc_auc_score",
    "threshold_at",
    "two_way_partial_auc_interval",
    "two_way_partial_auc_score",
    "venn_abers_probabilities",
]
