"""The run folder of several classes: results, models, scores and report."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.class_models import class_folder, save_class_models, schema_of_class
from aucdist.drift.profile import ScoreBins, score_bins
from aucdist.metrics.costs import CostCounts
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import Interval, auc
from aucdist.report.classes import ClassesReport, render_classes_page
from flows.config.loading import to_yaml
from flows.json_values import jsonable
from flows.rows.train_test import TrainTestRows
from flows.run_folder.costs import CostedRows, mean_cost_of_rows
from flows.run_folder.folder import RunFolder
from flows.run_folder.publish import cost_of, facts_of, publish_texts, save_fitted, save_profile
from flows.run_folder.results import DATA_STAGES, Evaluation, RowsSeen, operating_point_of
from flows.run_folder.scores import SCORES
from flows.versions import versions


@dataclass(frozen=True, eq=False)
class ClassScores:
    """The scores of the test rows.

    `row_id`: of shape (n_test,), int64.
    `code`, of shape (n_test,), int32: the place of each row's set of classes in the table of the test rows.
    `scores`, of shape (n_test, n_classes), float64: of the model of each class, without its intercept.
    `predicted`: of shape (n_test,) of class names, or of shape (n_test, n_classes), int64, of topics.
    `cost`, of shape (n_test,), float64: what a wrong decision on each row costs; None where rows do not say it.
    """

    row_id: np.ndarray
    code: np.ndarray
    scores: np.ndarray
    predicted: np.ndarray
    cost: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """How the models of the classes score the rows.

    `test`: None for a class that no test row has, or that all have.
    `scores`: None without test rows.
    `costs`: of the training rows of each class, where the cost column says what wrong decisions cost; else empty.
    `out_of_fold`: whether training rows scored by models of the other folds set the thresholds.
    """

    train: list[ScoreCounts]
    test: list[ScoreCounts | None]
    intervals: list[Interval | None]
    scores: ClassScores | None
    costs: Sequence[CostCounts] = ()
    out_of_fold: bool = False


@dataclass(frozen=True, eq=False)
class FittedClasses:
    """A model fitted for each class, the rows, and the evaluation; the attributes are those of `FittedRun`."""

    config: Any
    rows: TrainTestRows
    estimator: Any
    evaluation: ClassEvaluation
    seconds: dict[str, float]
    seen: RowsSeen
    search: dict[str, Any] | None = None


def result_of_classes(fitted: FittedClasses, run: str) -> dict[str, Any]:
    """Return the object that ``aucdist train --json`` prints for several classes.

    Means of AUC are over the classes that the rows have, each alike (macro) or weighted by its rows.

    `run`: the URL of the run folder.
    """
    estimator, rows, evaluation, seconds = fitted.estimator, fitted.rows, fitted.evaluation, fitted.seconds
    table = _confusions(fitted)
    classes = [_result_of_class(fitted, k, table) for k in range(len(rows.schema.classes))]
    tested = [(row["test_auc"], row["test_pos"]) for row in classes if row["test_auc"] is not None]
    accuracy = None
    if table is not None and not rows.schema.topics and evaluation.scores is not None:
        accuracy = float(np.trace(table)) / max(len(evaluation.scores.row_id), 1)
    result: dict[str, Any] = jsonable(
        {
            "run": run,
            "estimator": type(estimator).__name__,
            "solver": estimator.resolved_solver.name,
            "n_samples": rows.train.n_samples,
            "n_features": rows.train.n_features,
            "topics": rows.schema.topics,
            "metrics": {
                "train_auc": float(np.mean([row["train_auc"] for row in classes])),
                "test_auc": float(np.mean([area for area, _ in tested])) if tested else None,
                "test_auc_weighted": _weighted(tested),
                "test_accuracy": accuracy,
            },
            "classes": classes,
            "passes": estimator.n_passes_,
            "seconds": {
                "data": sum(seconds.get(stage, 0.0) for stage in DATA_STAGES),
                "fit": seconds["fit"],
                "evaluate": seconds["evaluate"],
            },
        }
    )
    return result


def _weighted(tested: list[tuple[float, float]]) -> float | None:
    """Return the mean of AUCs weighted by the rows of their classes."""
    return float(np.average([a for a, _ in tested], weights=[n for _, n in tested])) if tested else None


def _result_of_class(fitted: FittedClasses, k: int, table: np.ndarray | None) -> dict[str, Any]:
    one, evaluation = fitted.estimator.estimators_[k], fitted.evaluation
    train, test, interval = evaluation.train[k], evaluation.test[k], evaluation.intervals[k]
    certificate = one.certificate_
    found = {
        "name": fitted.rows.schema.classes[k],
        "n_pos": int(train.n_pos),
        "n_neg": int(train.n_neg),
        "train_auc": auc(train),
        "test_pos": 0 if test is None else int(test.n_pos),
        "test_auc": None if test is None else auc(test),
        "test_auc_interval": None if interval is None else [interval.low, interval.high],
        "recall": None,
        "precision": None,
        "threshold": float(one.raw_threshold),
        "certificate": {**asdict(certificate), "status": certificate.status.value},
        "passes": one.n_passes_,
    }
    if table is not None and evaluation.scores is not None:
        predicted = _predicted(fitted)[:, k]
        found["recall"] = float(table[k, k]) / found["test_pos"] if found["test_pos"] else None
        found["precision"] = float(table[k, k]) / int(predicted.sum()) if predicted.any() else None
    if (wanted := getattr(fitted.config, "operating_point", None)) is not None:
        by_row = _cost_by_row(fitted, k, found["threshold"], wanted.wanted) if evaluation.costs else None
        point = operating_point_of(Evaluation(train, test, interval), found["threshold"], wanted.wanted, by_row)
        found["operating_point"] = point | {"out_of_fold": evaluation.out_of_fold}
    return found


def _cost_by_row(fitted: FittedClasses, k: int, threshold: float, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what the alarms of the class at position `k` cost, where rows have a cost of their own."""
    scores, test = fitted.evaluation.scores, None
    if scores is not None and scores.cost is not None and fitted.evaluation.test[k] is not None:
        test = CostedRows(_members(fitted)[:, k], scores.scores[:, k], scores.cost)
    return mean_cost_of_rows(fitted.evaluation.costs[k], test, threshold, wanted["cost"])


def _predicted(fitted: FittedClasses) -> np.ndarray:
    """Return which classes the test rows are predicted to be of, bool of shape (n_test, n_classes)."""
    assert fitted.evaluation.scores is not None
    predicted = fitted.evaluation.scores.predicted
    return predicted > 0 if predicted.ndim == 2 else predicted[:, np.newaxis] == fitted.estimator.classes_


def _members(fitted: FittedClasses) -> np.ndarray:
    """Return which classes the test rows have, bool of shape (n_test, n_classes)."""
    assert fitted.evaluation.scores is not None
    assert fitted.rows.tables is not None
    return np.asarray(fitted.rows.tables.test.indicator(fitted.evaluation.scores.code).toarray())


def _confusions(fitted: FittedClasses) -> np.ndarray | None:
    """Return how many test rows of each class are predicted to be of each, int64 of shape (n_classes, n_classes)."""
    if fitted.evaluation.scores is None:
        return None
    return np.asarray(_members(fitted).T.astype(np.int64) @ _predicted(fitted).astype(np.int64))


def publish_classes(
    fitted: FittedClasses, result: dict[str, Any], folder: RunFolder, command: str = "aucdist train"
) -> None:
    """Write all files of a run folder, then publish it as a whole.

    `result`: as `result_of_classes` returned it.
    `command`: what runs the configuration again.
    """
    config, classes = to_yaml(fitted.config), fitted.rows.schema.classes
    _save_models(fitted, result["classes"], folder.draft / "model")
    histories = [
        table.assign(**{"class": name}) for name, table in zip(classes, fitted.estimator.histories_, strict=True)
    ]
    pd.concat(histories).to_parquet(folder.draft / "history.parquet", index=False)
    if fitted.evaluation.scores is not None:
        pq.write_table(_scores_table(fitted), folder.draft / SCORES, compression="zstd")
    page = render_classes_page(_report_of(fitted, result, config, command))
    about = {
        "name": fitted.config.name,
        "data": {"name": fitted.rows.name, "fingerprint": fitted.rows.fingerprint},
        "versions": versions(),
    }
    publish_texts(folder, config, page, result | jsonable(about), fitted.search)


def _save_models(fitted: FittedClasses, classes: list[dict[str, Any]], folder: Path) -> None:
    estimator, rows = fitted.estimator, fitted.rows
    for k, one in enumerate(estimator.estimators_):
        schema = schema_of_class(rows.schema, k)
        save_fitted(one, rows, schema, fitted.config, classes[k]["certificate"], folder / class_folder(k))
    save_class_models(str(folder), rows.schema.classes, topics=rows.schema.topics, spreads=estimator.spreads_)
    save_profile(fitted.seen, rows.train, str(folder), class_scores=_score_bins(fitted))


def _score_bins(fitted: FittedClasses) -> dict[str, ScoreBins]:
    """Return the bins of the score of each class as `ClassModels` gives it; of training rows for a class without test rows."""
    found, evaluation = {}, fitted.evaluation
    for k, name in enumerate(fitted.rows.schema.classes):
        test = evaluation.test[k]
        counts, of = (evaluation.train[k], "training") if test is None else (test, "test")
        bins = score_bins(counts, of, fitted.estimator.estimators_[k].decision_intercept)
        spread = float(fitted.estimator.spreads_[k])
        found[name] = replace(bins, edges=tuple(edge / spread for edge in bins.edges))
    return found


def _scores_table(fitted: FittedClasses) -> pa.Table:
    """Return id, classes, prediction, cost if rows say it, and the score of each class of the test rows, without intercepts."""
    scores, classes = fitted.evaluation.scores, fitted.rows.schema.classes
    assert scores is not None
    columns: dict[str, Any] = {"row_id": scores.row_id, "label": _texts(_members(fitted), classes)}
    columns["prediction"] = _texts(_predicted(fitted), classes)
    if scores.cost is not None:
        columns["cost"] = scores.cost
    return pa.table(columns | {f"score {name}": scores.scores[:, k] for k, name in enumerate(classes)})


def _texts(members: np.ndarray, classes: tuple[str, ...]) -> pa.Array:
    """Return the classes of each row with commas between them."""
    names = np.array(classes, dtype=object)
    return pa.array([",".join(names[row]) for row in members], pa.string())


def _report_of(fitted: FittedClasses, result: dict[str, Any], config: str, command: str) -> ClassesReport:
    evaluation = fitted.evaluation
    curves: list[ScoreCounts] = [
        train if evaluation.scores is None or test is None else test
        for train, test in zip(evaluation.train, evaluation.test, strict=True)
    ]
    return ClassesReport(
        title=fitted.config.name,
        run=result,
        curves=curves,
        confusions=_confusions(fitted),
        data=[(key, f"{v:,}" if isinstance(v, int) else str(v)) for key, v in facts_of(fitted.rows).items()],
        cost=cost_of(fitted),
        config=config,
        versions=versions(),
        command=command,
        search=fitted.search,
    )
