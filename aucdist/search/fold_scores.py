"""One fold of a search: fit settings to its training rows, and score them on the held-out rows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.data.block import Block, concatenate_columns
from aucdist.data.preprocess import Preprocessor
from aucdist.engine.blocks import Blocks, Summary
from aucdist.engine.view import AnyBlocks, ClassBlocks
from aucdist.errors import InputError
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.fitting import map_for_all_classes
from aucdist.estimators.linear import lam_path
from aucdist.estimators.ranking import NEAR_ZERO
from aucdist.estimators.scores import Scorer, count_costs, count_scores, map_for_model, scores_of
from aucdist.maps.base import apply_to_blocks, map_blocks, with_weight
from aucdist.metrics.groups import GroupMetric, GroupWeight
from aucdist.metrics.named import NAMED_METRICS, WITHIN_GROUPS, Metric, ScoredGroups
from aucdist.pairs.top_negatives import trained_max_fpr
from aucdist.search.choice import SECOND_METRIC, FoldScore, Setting, group_shares
from aucdist.search.folds import FoldMasks, masked_blocks
from aucdist.search.schedule import FitJob
from aucdist.solvers.base import REACHED


def score_job(
    estimator: BlockClassifier, job: FitJob, masks: FoldMasks, rows: AnyBlocks, metric: Metric,
    prepare: Preprocessor | None = None,
) -> list[FoldScore]:  # fmt: skip
    """Fit and score the settings of a job on the original blocks, where rows outside its fold have weight 0.

    Parameters
    ----------
    masks : FoldMasks
        The rows of the fold of the job.
    rows : Blocks or ClassBlocks
        All rows.
    prepare : Preprocessor, optional
        The encoding fitted to the training rows of the fold.

    Returns
    -------
    list of dict
        The results of `score_settings`.
    """
    train = training_rows(clone(estimator).set_params(**job.settings[0]), rows, masks.train, prepare)
    held_out = rows.then(partial(masked_blocks, inside=masks.held_out, prepare=prepare))
    return score_settings(estimator, job.settings, train, held_out, metric, job.n_always)


def training_rows(
    estimator: BlockClassifier, rows: AnyBlocks, inside: np.ndarray, prepare: Preprocessor | None = None
) -> AnyBlocks:
    """Return the rows of blocks that are inside a mask, for an estimator to fit.

    The others have weight 0. A solver that does not ignore rows of weight 0 gets a copy without them.
    """
    masked = rows.then(partial(masked_blocks, inside=inside, prepare=prepare))
    return masked if estimator.ignores_zero_weight else masked.then(partial(apply_to_blocks, change=with_weight))


def score_settings(
    estimator: BlockClassifier,
    settings: Sequence[Setting],
    train: AnyBlocks,
    held_out: AnyBlocks,
    metric: Metric,
    n_always: int | None = None,
) -> list[FoldScore]:
    """Fit one model for each setting and score it. With several classes, fit a model for each class against the rest.

    Parameters
    ----------
    settings : sequence of dict
        One setting, or several that differ only in lam, if the solver has a path: see `aucdist.search.schedule.paths_of`.
    train, held_out : Blocks or ClassBlocks
        The training rows and the held-out rows, in the same kind of blocks. Each class, and its rest, must have rows in both.
    n_always : int, optional
        After this number of settings, from the largest lam on, the path ends at the first setting that is not better than all
        earlier ones. With several classes, it ends after this number of settings.

    Returns
    -------
    list of dict
        The result of each setting, in their order. It is empty for settings after the end of the path.

        * ``value``: the metric on the held-out rows.
        * ``status``, ``passes``, ``seconds``, ``relative_gap``: those of the fit.
        * ``collapsed``: whether all weights are 0 or, if few negatives count, the objective is as good as at weights of 0.
        * ``features_kept``: if the penalty can leave features out.
        * ``groups``: for metrics within groups, see `aucdist.search.choice`.
        * ``average_precision``: if the metric is the AUC.

        For several classes, ``classes`` has the values of the classes, ``value`` is their mean, and ``weighted`` is their mean
        weighted by the held-out rows of each class. ``passes`` and ``seconds`` are sums, ``relative_gap`` is the largest one,
        and ``status`` is that of a class whose fit did not reach `tol`, if there is one.

    Raises
    ------
    InputError
        If rows cannot be fitted. The message names the class.
    """
    if isinstance(train, ClassBlocks):
        assert isinstance(held_out, ClassBlocks)
        results = _score_settings_of_classes(estimator, settings[:n_always], train, held_out, metric)
        return results + [{}] * (len(settings) - len(results))
    assert isinstance(held_out, Blocks)
    # The estimator of the search determines the metric, so that all settings have the same one.
    group_weight: GroupWeight = estimator.group_weight or "pairs"
    mapped, by_lam = list[Blocks](), dict[Any, FoldScore]()

    def measure_and_decide(model: Any) -> bool:
        """Score a model, and return whether the path ends with it. All models of a path have the same mapped rows."""
        if not mapped:
            mapped[:] = [map_for_model(model, blocks) for blocks in (held_out, *[train] * (metric.needs == "costs"))]
        if metric.needs == "costs":
            model.set_raw_threshold(count_costs(mapped[1], model.coef_[0], metric.costs).cheapest_threshold())
        if metric.name == "auc":
            # Both metrics depend only on the order of the rows.
            counts = count_scores(*_scored(model, held_out, mapped[0])[:2])
            value = {"value": metric.evaluate(counts), SECOND_METRIC: NAMED_METRICS[SECOND_METRIC].evaluate(counts)}
        else:
            values = measured(model, held_out, metric, group_weight, mapped[0])
            within = isinstance(values, GroupMetric)
            value = {"value": values.mean, "groups": group_shares(values)} if within else {"value": values}
        kept = getattr(model, "n_features_kept", None)
        result = value | ({} if kept is None else {"features_kept": kept})
        result |= {
            "status": str(model.certificate_.status),
            "passes": model.n_passes_,
            "seconds": float(model.history_["seconds"].iloc[-1]),
            "relative_gap": model.certificate_.relative_gap,
            "collapsed": not np.any(getattr(model, "coef_", 1.0))
            or (trained_max_fpr(model, 1.0) is not None and model.certificate_.primal > 1.0 - NEAR_ZERO),
        }
        is_best = all(metric.sign * (result["value"] - other["value"]) > 0.0 for other in by_lam.values())
        by_lam[getattr(model, "lam", None)] = result
        return n_always is not None and len(by_lam) >= n_always and not is_best

    if len(settings) == 1:
        measure_and_decide(clone(estimator).set_params(**settings[0]).fit(train))
        return list(by_lam.values())
    shared = {name: value for name, value in settings[0].items() if name != "lam"}
    along = clone(estimator).set_params(**shared)
    lam_path(along, train, lams=[setting["lam"] for setting in settings], stop=measure_and_decide)
    return [by_lam.get(setting["lam"], {}) for setting in settings]


def _score_settings_of_classes(
    estimator: BlockClassifier, settings: Sequence[Setting], train: ClassBlocks, held_out: ClassBlocks, metric: Metric
) -> list[FoldScore]:
    shared = clone(estimator).set_params(**settings[0])
    train = map_for_all_classes(shared, train)
    if hasattr(shared, "feature_map_"):
        held_out = replace(held_out, blocks=map_blocks(held_out.all_blocks(), shared.feature_map_), changes=())
    paths, n = [], []
    for k, name in enumerate(train.sets.names()):
        class_rows = held_out.of_class(k)
        try:
            paths.append(score_settings(estimator, settings, train.of_class(k), class_rows, metric))
        except InputError as error:
            raise InputError(f"class {name!r}: {error}") from None
        n.append(class_rows.n_pos)
    scores = list[FoldScore]()
    for results in zip(*paths, strict=True):
        by_class = {name: [result[name] for result in results] for name in results[0]}
        values, statuses = by_class["value"], by_class["status"]
        scores.append(
            {
                "value": float(np.mean(values)),
                "weighted": float(np.average(values, weights=n)),
                "classes": values,
                "status": next((status for status in statuses if status not in REACHED), statuses[0]),
                "passes": sum(by_class["passes"]),
                "seconds": sum(by_class["seconds"]),
                "relative_gap": max(by_class["relative_gap"]),
                "collapsed": all(by_class["collapsed"]),
            }
        )
    return scores


def measured(
    model: Any, blocks: Blocks, metric: Metric, group_weight: GroupWeight = "pairs", mapped: Blocks | None = None
) -> Any:
    """Return the metric of a fitted model on rows: a number, or a `GroupMetric` for metrics within groups.

    Parameters
    ----------
    model : estimator
        A fitted model, with ``predict_proba`` if the metric needs probabilities.
    blocks : Blocks
        Rows with groups or grades for metrics within groups, and with costs for metrics of the costs of rows.
    group_weight : {"pairs", "groups"}
        The weight of a group in the AUC within groups.
    mapped : Blocks, optional
        The rows after the feature map, if they have been mapped.
    """
    if mapped is None:
        mapped = map_for_model(model, blocks)
    if metric.needs == "costs":
        return metric.evaluate(count_costs(mapped, model.coef_[0], metric.costs), model.raw_threshold)
    rows, scorer, threshold, shift = _scored(model, blocks, mapped)
    if metric.needs == "groups":
        return metric.evaluate(scored_groups(rows, scorer, group_weight))
    counts = count_scores(rows, scorer)
    if metric.needs == "probability":
        counts = counts.mapped(lambda scores: model.probability_(scores + shift)[:, 1])
    return metric.evaluate(counts, threshold)


def _scored(model: Any, blocks: Blocks, mapped: Blocks) -> tuple[Blocks, Scorer, float, float]:
    """Return the rows, their scorer, the threshold of the scores, and the shift between scores and probabilities."""
    if hasattr(model, "coef_"):
        # The intercept is left out, because adding it could make two scores equal.
        return mapped, model.coef_[0], model.raw_threshold, model.decision_intercept
    return blocks.unmapped, partial(_decisions, model), 0.0, 0.0


def check_metric(metric: Metric, grouped: bool, lowest_grade: float | None) -> None:
    """Raise an InputError if a metric needs groups that the rows do not have, or is not defined for their grades.

    Parameters
    ----------
    metric : Metric
        The metric.
    grouped : bool
        Whether rows have groups.
    lowest_grade : float or None
        The lowest grade, if labels are grades. Rows with grades but without groups count as one group.
    """
    if metric.needs == "groups" and not grouped and lowest_grade is None:
        others = ", ".join(name for name in NAMED_METRICS if name not in WITHIN_GROUPS)
        raise InputError(
            f"metric {metric.name!r} is measured within groups, and the source has none: give it `groups`, or `qid: use` for "
            f"svmlight; without groups the metrics are {others}"
        )
    if lowest_grade is not None and lowest_grade < metric.least_grade:
        raise InputError(
            f"metric {metric.name!r} counts grades of at least {metric.least_grade:g}, and the lowest one is {lowest_grade:g}: "
            "choose 'group_auc', or add a constant to all grades"
        )


def scored_groups(blocks: Blocks, scorer: Scorer, group_weight: GroupWeight = "pairs") -> ScoredGroups:
    """Return labels or grades, scores and groups of the rows with a weight above 0, block by block, by one reduction.

    Parameters
    ----------
    blocks : Blocks
        The rows. Rows with grades but without groups count as one group.

    Raises
    ------
    InputError
        If rows have neither groups nor grades.
    """
    if not (blocks.has_groups or blocks.has_grades):
        raise InputError(
            f"the rows have no groups: {', '.join(WITHIN_GROUPS)} cannot be measured. Give groups, or another metric"
        )
    y, scores, groups, weight = concatenate_columns(blocks.sum(_score_groups, scorer))
    return ScoredGroups(y, scores, groups, weight, group_weight)


def _score_groups(block: Block, scorer: Scorer) -> Summary:
    counted = block.weights() > 0
    y = (block.y > 0).astype(np.float64) if block.grade is None else block.grade
    group = np.zeros(block.n_samples, dtype=np.int64) if block.group is None else block.group
    return [tuple(values[counted] for values in (y, scores_of(block, scorer), group, block.weights()))]


def _decisions(model: Any, block: Block) -> np.ndarray:
    return np.asarray(model.decision_function(block.X)) if block.n_samples else np.zeros(0)
