"""A threshold that the training rows need for a false positive rate and the like: in the model, the metrics and the report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from support.runs import page_of, searched, trained

from aucdist import PairwiseHingeClassifier
from aucdist.metrics import operating_point, threshold_at
from aucdist.model import load_model
from aucdist.report.text import operating_point_text, percent_text
from aucdist.selection import fold_numbers
from flows.config.model import OperatingPointConfig
from flows.run_folder.folder import read_about, read_scores

QUICK = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01", "model.max_fpr=0.1"]


def run(output: Path, *settings: str) -> dict[str, Any]:
    return trained("digits", *QUICK, *settings, output=output)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("runs"), "operating_point={fpr: 0.01}")


def test_metrics_are_those_of_the_test_rows(result: dict[str, Any]) -> None:
    table, point = read_scores(result["run"]), result["operating_point"]
    expected = operating_point(table["y"], table["score"], 0.0)
    assert (point["target"], point["rows"]) == ({"fpr": 0.01}, "test")
    for name in ("recall", "fpr", "precision", "alerts"):
        estimate = getattr(expected, name)
        assert point[name]["value"] == pytest.approx(estimate.value)
        assert point[name]["interval"] == pytest.approx([estimate.low, estimate.high])
    metrics = read_about(result["run"])
    assert (metrics["score"], metrics["threshold"], point["threshold"]) == ("decision", 0.0, 0.0)


def test_threshold_by_rows_that_models_have_not_seen(tmp_path: Path) -> None:
    few = {"map": "bins", "bins": 4}
    bins = [f"model.features={json.dumps(few)}", "data.scale=none", "model.tol=2e-3"]
    result = run(tmp_path, *bins, "operating_point={fpr: 0.02, out_of_fold: true}")
    X, digit = load_digits(return_X_y=True)
    train = np.setdiff1d(np.arange(len(X)), read_scores(result["run"])["row_id"])
    y = np.where(digit[train] == 8, 1, -1)
    folds, scores = fold_numbers(train, y, 5, 0), np.empty(len(train))
    for number in range(5):
        seen = folds != number
        model = PairwiseHingeClassifier(lam=0.01, max_fpr=0.1, features=few, tol=2e-3).fit(X[train][seen], y[seen])
        scores[~seen] = model.decision_function(X[train][~seen]) - model.decision_intercept
    set_at = -load_model(f"{result['run']}/model").intercept
    assert set_at == pytest.approx(threshold_at(y, scores, fpr=0.02), abs=0.1)  # both fits are within tol
    assert result["operating_point"]["fpr"]["value"] < 0.05  # 0.055 by the rows as the model knows them
    assert "Target on out-of-fold scores of the training rows: at most one false positive in 50" in page_of(result)


def test_scores_that_the_calibration_was_fitted_to_set_the_threshold_too(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("flows.train.stages.out_of_fold", None)  # no fold is fitted for the threshold alone
    result = run(tmp_path, "model.calibration=logit", "operating_point={fpr: 0.02, out_of_fold: true}")
    assert result["operating_point"]["out_of_fold"]


@pytest.mark.parametrize(
    ("features", "out_of_fold", "unseen"),
    [
        (None, None, False), ("bins", None, False), ("leaves", None, True), ("nystroem", None, True),
        ({"map": "bins", "interactions": 3}, None, True), ("leaves", False, False), ("bins", True, True),
    ],
)  # fmt: skip
def test_maps_that_are_fitted_to_labels_have_thresholds_by_unseen_rows(features, out_of_fold, unseen):
    point = OperatingPointConfig(fpr=0.01, out_of_fold=out_of_fold)
    assert point.options == {"fpr": 0.01}
    assert point.scores_unseen(PairwiseHingeClassifier(features=features)) == unseen
    assert not OperatingPointConfig(fpr=0.01).scores_unseen(object())  # an estimator without maps


def test_saved_model_flags_so_many_training_rows(tmp_path: Path) -> None:
    result = run(tmp_path, "data.test=null", "operating_point={alerts: 0.05}")
    X, _ = load_digits(return_X_y=True)
    flagged = int((load_model(f"{result['run']}/model").predict(X) == 1).sum())
    assert 0.045 * len(X) < flagged <= 0.05 * len(X)
    assert result["operating_point"]["rows"] == "training"
    assert result["operating_point"]["alerts"]["value"] == pytest.approx(flagged / len(X))


def test_report_begins_with_what_the_user_asked_for(result: dict[str, Any]) -> None:
    page = page_of(result)
    first = page.split('class="verdict card">')[1].split("<p>")[1]
    point = result["operating_point"]
    assert first.startswith(
        "Target on the training rows: at most one false positive in 100 negatives. On the test rows, "
        f"{point['n_alerts']} rows are flagged. The recall is {percent_text(point['recall']['value'])} (95 % interval "
    )
    assert "trained up to here" in page


@pytest.mark.parametrize(
    ("requirement", "target"),
    [
        ({"fpr": 0.001}, "at most one false positive in 1,000 negatives"),
        ({"fpr": 0.0015}, "at most 1.5 false positives in 1,000 negatives"),
        ({"alerts": 0.01}, "at most one alert in 100 rows"),
        ({"precision": 0.9}, "the precision is at least 90 %"),
        ({"recall": 0.995}, "the recall is at least 99.5 %"),
    ],
)
def test_sentence(requirement: dict[str, float], target: str) -> None:
    point = {
        "target": requirement, "rows": "test", "recall": {"value": 0.6712, "interval": [0.61, 0.72]},
        "precision": {"value": 0.4, "interval": None}, "alerts": {"value": 0.02, "interval": None},
    }  # fmt: skip
    assert operating_point_text(point) == (
        f"Target on the training rows: {target}. On the test rows, 2.0 % of the rows are flagged. The recall is 67.1 % "
        "(95 % interval 61.0 % to 72.0 %) and the precision 40.0 %."
    )
    counted = point | {"precision": {"value": 0.4, "interval": [0.16, 0.68]}, "n_alerts": 15}
    counted["set_on"] = "threshold_rows"
    assert operating_point_text(counted).startswith("Target on the threshold rows, which the fit has not seen: ")
    assert "On the test rows, 15 rows are flagged." in operating_point_text(counted)
    assert operating_point_text(counted).endswith(" and the precision 40.0 % (95 % interval 16.0 % to 68.0 %).")
    assert "On the test rows, 1 row is flagged." in operating_point_text(counted | {"n_alerts": 1})
    nearly = operating_point_text(point | {"recall": {"value": 0.996, "interval": None}})
    assert "The recall is 99.60 % and" in nearly  # not 100 %
    nothing = operating_point_text(point | {"alerts": {"value": 0}})
    assert nothing.endswith(
        "On the test rows, no row is flagged. The recall is 67.1 % (95 % interval 61.0 % to 72.0 %)."
    )


def test_costs_set_the_threshold_and_the_report_says_what_decisions_cost(tmp_path: Path) -> None:
    result = run(tmp_path, "operating_point={cost: {false_positive: 1, miss: 40}}")
    table, point = read_scores(result["run"]), result["operating_point"]
    flagged, positive = table["score"] > 0, table["y"] == 1
    by_hand = float(((flagged & ~positive) + 40 * (~flagged & positive)).mean())
    cost = point["expected_cost"]
    assert cost["value"] == pytest.approx(by_hand)
    assert cost["interval"][0] < by_hand < cost["interval"][1]
    assert cost["without_model"] == pytest.approx(min(40 * positive.mean(), (~positive).mean()))
    assert point["target"] == {"cost": {"false_positive": 1.0, "miss": 40.0}}
    page = page_of(result)
    assert (
        "Target on the training rows: the lowest cost, at 1 for a false positive and 40 for a miss. On the test rows, "
        in page
    )
    assert f"Wrong decisions cost {100 * by_hand:.3g}"[:26] in page
    assert "(95 %:" in page.split('class="rates"')[1].split("</dl>")[0]


@pytest.mark.parametrize("metric", ["partial_auc", "recall_at_fpr"])
def test_search_chooses_by_the_top(tmp_path: Path, metric: str) -> None:
    settings = [
        "cluster=none", "folds.repeats=1", "folds.number=2", "nested=2", "rule=one-se", "model.tol=0.05", "grid.lam=[1.0, 0.01]",
        f"metric={metric}", "max_fpr=0.05", "operating_point.recall=0.9",
    ]  # fmt: skip
    result = searched("digits", *settings, output=tmp_path)
    assert result["metric"] == f"{metric}@0.05"
    assert all(0.0 < value <= 1.0 for row in result["table"] for value in row["folds"])
    assert result["refit"]["operating_point"]["target"] == {"recall": 0.9}
    X, y = load_digits(return_X_y=True)
    flagged = load_model(f"{result['run']}/model").predict(X) == 1
    assert 0.8 < flagged[y == 8].mean() < 1.0
