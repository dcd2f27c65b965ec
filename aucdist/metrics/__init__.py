"""Measures of rankings, of decisions and of probabilities, on labels and scores; each is written once, on mergeable counts.

Examples
--------
>>> from aucdist.metrics import recall_at_fpr, recall_at_fpr_interval
>>> y, scores = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]
>>> recall_at_fpr(y, scores, max_fpr=0.1), recall_at_fpr(y, scores, max_fpr=0.1, sample_weight=[1, 1, 1, 1, 2, 1])
(0.5, 0.3333333333333333)
"""

from aucdist.metrics import compare, costs, decisions, partial, probability, ranking, top, two_way
from aucdist.metrics.compare import Difference
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import OperatingPoint, confusion_counts, g_mean_score
from aucdist.metrics.groups import OfGroups, auc_of_groups, group_auc_score, ndcg_of_groups, recall_of_groups
from aucdist.metrics.intervals import Estimate, IntervalWarning
from aucdist.metrics.probability import Reliability
from aucdist.metrics.public import on_two_models, public_metric, with_bootstrap
from aucdist.metrics.ranking import Interval

roc_auc_score = public_metric(partial.auc_up_to, "roc_auc_score", one_class=True)
roc_auc_interval = public_metric(ranking.auc_interval, "roc_auc_interval")
roc_auc_difference = on_two_models(compare.delong_test, "roc_auc_difference")
partial_roc_auc_score = public_metric(partial.partial_auc, "partial_roc_auc_score")
partial_roc_auc_interval = public_metric(partial.partial_auc_interval, "partial_roc_auc_interval")
partial_roc_auc_difference = on_two_models(compare.partial_delong_test, "partial_roc_auc_difference")
two_way_partial_auc_score = public_metric(two_way.two_way_partial_auc, "two_way_partial_auc_score")
two_way_partial_auc_interval = public_metric(two_way.two_way_partial_auc_interval, "two_way_partial_auc_interval")
average_precision_score = public_metric(ranking.average_precision, "average_precision_score")

threshold_at = public_metric(decisions.threshold_at, "threshold_at", columns=("cost",), by_row=costs.threshold_by_row)
expected_cost = public_metric(
    decisions.expected_cost, "expected_cost", columns=decisions.COSTS, by_row=costs.expected_cost_by_row
)
expected_cost_interval = public_metric(
    decisions.expected_cost_interval,
    "expected_cost_interval",
    columns=decisions.COSTS,
    by_row=costs.expected_cost_interval_by_row,
)
operating_point = public_metric(decisions.operating_point, "operating_point")
recall_at_fpr = public_metric(top.recall_at_fpr, "recall_at_fpr")
recall_at_fpr_interval = public_metric(
    with_bootstrap(top.recall_at_fpr, "max_fpr=0.05", "0.633 from 0.500 to 0.783"), "recall_at_fpr_interval"
)
fpr_at_recall = public_metric(top.fpr_at_recall, "fpr_at_recall")
fpr_at_recall_interval = public_metric(
    with_bootstrap(top.fpr_at_recall, "min_recall=0.8", "0.095 from 0.052 to 0.240"), "fpr_at_recall_interval"
)
recall_at_k = public_metric(top.recall_at_k, "recall_at_k")
recall_at_k_interval = public_metric(
    with_bootstrap(top.recall_at_k, "k=50", "0.550 from 0.450 to 0.650"), "recall_at_k_interval"
)
precision_at_k = public_metric(top.precision_at_k, "precision_at_k")
precision_at_k_interval = public_metric(
    with_bootstrap(top.precision_at_k, "k=50", "0.660 from 0.540 to 0.780"), "precision_at_k_interval"
)

recall_at_precision = public_metric(top.recall_at_precision, "recall_at_precision")
recall_at_precision_interval = public_metric(
    with_bootstrap(top.recall_at_precision, "min_precision=0.5", "0.750 from 0.500 to 0.900"),
    "recall_at_precision_interval",
)
precision_at_recall = public_metric(top.precision_at_recall, "precision_at_recall")
precision_at_recall_interval = public_metric(
    with_bootstrap(top.precision_at_recall, "min_recall=0.8", "0.462 from 0.255 to 0.608"),
    "precision_at_recall_interval",
)

brier_score_loss = public_metric(probability.brier, "brier_score_loss", "y_proba")
log_loss = public_metric(probability.log_loss, "log_loss", "y_proba")
calibration_loss = public_metric(probability.calibration_loss, "calibration_loss", "y_proba")
refinement_loss = public_metric(probability.refinement_loss, "refinement_loss")
reliability_curve = public_metric(probability.reliability, "reliability_curve", "y_proba")
expected_calibration_error = public_metric(
    probability.expected_calibration_error, "expected_calibration_error", "y_proba"
)

__all__ = [
    "Difference",
    "Estimate",
    "Interval",
    "IntervalWarning",
    "OfGroups",
    "OperatingPoint",
    "Reliability",
    "ScoreCounts",
    "auc_of_groups",
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
    "group_auc_score",
    "log_loss",
    "ndcg_of_groups",
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
    "recall_of_groups",
    "refinement_loss",
    "reliability_curve",
    "roc_auc_difference",
    "roc_auc_interval",
    "roc_auc_score",
    "threshold_at",
    "two_way_partial_auc_interval",
    "two_way_partial_auc_score",
]
