"""A threshold that the training rows need for a false positive rate and the like: in the model, the metrics and the report."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from support.runs import page_of, searched, trained, unseen_scores, write_config

from aucdist import PairwiseHingeClassifier
from aucdist.metrics import ScoreCounts, operating_point, threshold_at
from aucdist.metrics.decisions import best_threshold
from aucdist.model import load_model
from aucdist.report.text import point_rows
from flows.run_folder.folder import read_metrics, read_scores

BINS = {"map": "bins", "bins": 4}
QUICK = ["cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01", "model.max_fpr=0.1"]


def run(output: Path, *settings: str) -> dict[str, Any]:
    return trained("digits", *QUICK, *settings, output=output)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("runs"), "operating_point={fpr: 0.01, out_of_fold: false}")


def test_metrics_are_those_of_the_test_rows(result: dict[str, Any]) -> None:
    table, point = read_scores(result["run"]), result["operating_point"]
    expected = operating_point(table["y"], table["score"], 0.0)
    assert (point["target"], point["rows"]) == ({"fpr": 0.01}, "test")
    for name in ("recall", "fpr", "precision", "alerts"):
        estimate = getattr(expected, name)
        assert point[name]["value"] == pytest.approx(estimate.value)
        assert point[name]["interval"] == pytest.approx([estimate.low, estimate.high])
    metrics = read_metrics(result["run"])
    assert (metrics["score"], metrics["threshold"], point["threshold"]) == ("decision", 0.0, 0.0)


def test_threshold_by_rows_that_models_have_not_seen(tmp_path: Path) -> None:
    bins = [f"model.features={json.dumps(BINS)}", "data.scale=none", "model.tol=2e-3"]
    result = run(tmp_path, *bins, "operating_point={fpr: 0.02}")
    X, digit = load_digits(return_X_y=True)
    train = np.setdiff1d(np.arange(len(X)), read_scores(result["run"])["row_id"])
    y = np.where(digit[train] == 8, 1, -1)
    model = PairwiseHingeClassifier(lam=0.01, max_fpr=0.1, features=BINS, tol=2e-3)
    scores = unseen_scores(model, X[train], y, train)
    set_at = -load_model(f"{result['run']}/model").intercept
    assert set_at == pytest.approx(threshold_at(y, scores, fpr=0.02), abs=0.1)  # both fits are within tol
    assert result["operating_point"]["fpr"]["value"] < 0.05  # 0.055 by the rows as the model knows them
    assert "set for a false positive rate of at most 2 %, on out-of-fold scores of the training rows:" in page_of(
        result
    )


@pytest.mark.parametrize("name", ["alerts", "fpr"])
def test_a_share_is_kept_on_training_rows_that_the_model_ties(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    """Nine different rows repeat. Five models of folds give each of them five scores, between which the threshold may lie."""

    def flagged_share(seed: int) -> float:
        r = np.random.default_rng(seed)
        X = r.integers(0, 3, (500, 2)).astype(float)
        y = X.sum(axis=1) + 0.7 * (X[:, 0] - 1) * (X[:, 1] - 1) + r.logistic(size=500) > 4.5
        table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
        model = {"estimator": "PairwiseHingeClassifier", "tol": 1e-2, "features": BINS}
        config = write_config(tmp_path, table, {"label": "y", "positive": "True"}, {"test": None}, model=model)
        result = trained(config, f"operating_point={{{name}: 0.05}}", output=tmp_path / "runs")
        assert result["operating_point"]["rows"] == "training"
        return float(result["operating_point"][name]["value"])

    assert max(map(flagged_share, range(2))) <= 0.05
    monkeypatch.setattr("flows.run_folder.results.adjust_for_ties", lambda fitted, threshold, *target: threshold)
    assert max(map(flagged_share, range(2))) > 0.05


def test_scores_that_the_calibration_was_fitted_to_set_the_threshold_too(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("flows.train.stages.out_of_fold", None)  # no fold is fitted for the threshold alone
    result = run(tmp_path, "model.calibration=logit", "operating_point={fpr: 0.02}")
    assert result["operating_point"]["out_of_fold"]


@pytest.mark.parametrize(("features", "few_rows", "set_on"), [
    (BINS, 1000, "out_of_fold"), (BINS, 100, "training"), (None, 1000, "training"),
])  # fmt: skip
def test_without_a_target_the_threshold_of_a_map_has_the_best_g_mean_of_unseen_scores(
    tmp_path: Path, monkeypatch: Any, features: dict[str, Any] | None, few_rows: int, set_on: str
) -> None:
    monkeypatch.setattr("flows.train.stages.FEW_OF_CLASS", few_rows)
    settings = [f"model.features={json.dumps(features)}", "data.scale=none", "model.tol=2e-3", "model.max_fpr=null"]
    result = run(tmp_path, *settings)
    assert "operating_point" not in result
    assert read_metrics(result["run"])["threshold_rows"]["rows"] == set_on
    X, digit = load_digits(return_X_y=True)
    train = np.setdiff1d(np.arange(len(X)), read_scores(result["run"])["row_id"])
    y = np.where(digit[train] == 8, 1, -1)
    model = PairwiseHingeClassifier(lam=0.01, features=features, tol=2e-3)
    if set_on == "training":
        scores = model.fit(X[train], y).decision_function(X[train]) - model.decision_intercept
    else:
        scores = unseen_scores(model, X[train], y, train)
    saved = load_model(f"{result['run']}/model")
    expected = best_threshold(ScoreCounts.from_scores(y, scores))
    assert -saved.intercept == pytest.approx(expected, abs=0.1)  # both fits are within tol
    rows = "out-of-fold scores" if set_on == "out_of_fold" else "the training rows, which the fit has seen."
    assert f"so the threshold has the largest G-mean on {rows}" in page_of(result)
    flagged = saved.predict(X) == 1
    tested = np.setdiff1d(np.arange(len(X)), train)
    assert read_metrics(result["run"])["details"]["test"]["confusion"]["fp"] == int(
        (flagged & (digit != 8))[tested].sum()
    )


def test_with_a_single_positive_row_the_training_rows_set_the_threshold(tmp_path: Path) -> None:
    X, _ = load_digits(return_X_y=True)
    rows = pd.DataFrame(X[:100, 10:14], columns=list("abcd")).assign(y=np.arange(100) == 7)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    data = f"data={{source: {{source: {tmp_path}/rows.csv, format: csv, label: y, positive: 'True'}}, test: null}}"
    result = trained("digits", *QUICK, data, "operating_point={alerts: 0.05}", output=tmp_path / "runs")
    assert result["operating_point"]["set_on"] == "training"


def test_saved_model_flags_so_many_training_rows(tmp_path: Path) -> None:
    result = run(tmp_path, "data.test=null", "operating_point={alerts: 0.05, out_of_fold: false}")
    X, _ = load_digits(return_X_y=True)
    flagged = int((load_model(f"{result['run']}/model").predict(X) == 1).sum())
    assert 0.045 * len(X) < flagged <= 0.05 * len(X)
    assert result["operating_point"]["rows"] == "training"
    assert result["operating_point"]["alerts"]["value"] == pytest.approx(flagged / len(X))


def test_report_begins_with_what_the_user_asked_for(result: dict[str, Any]) -> None:
    page = page_of(result)
    set_for = (
        "The threshold was set for a false positive rate of at most 1 %, on the training rows, which the fit has seen."
    )
    flagged = f'<dt>Alerts</dt><dd class="value">{result["operating_point"]["n_alerts"]}</dd>'
    order = [flagged, set_for, "The false positive rate of the test rows, ", "<h2>Decisions</h2>"]
    assert sorted(order, key=page.index) == order
    assert "trained up to here" in page


def point(target: dict[str, Any], **more: Any) -> dict[str, Any]:
    rates = {
        "recall": (0.6712, [0.61, 0.72]),
        "precision": (0.4, None),
        "fpr": (0.011, [0.004, 0.02]),
        "alerts": (0.02, None),
    }
    rates = {name: {"value": value, "interval": interval} for name, (value, interval) in rates.items()}
    return {"target": target, "rows": "test"} | rates | more


MAY = ". The interval contains the target, so on new rows the target may be {}"
ADVICE = " by more than chance explains"


@pytest.mark.parametrize(
    ("target", "said", "result"),
    [
        ({"fpr": 0.001}, "a false positive rate of at most 0.1 %", f"is above the target{ADVICE}"),
        ({"fpr": 0.0105}, "a false positive rate of at most 1.05 %", f"is above the target{MAY.format('met')}"),
        ({"fpr": 0.011}, "a false positive rate of at most 1.1 %", f"meets the target{MAY.format('missed')}"),
        ({"fpr": 0.02}, "a false positive rate of at most 2 %", "meets the target"),
        ({"alerts": 0.015}, "a share of alerts of at most 1.5 %", "is above the target"),  # without an interval
        ({"alerts": 15, "per": "1000 rows"}, "at most 15 alerts in 1000 rows", "is above the target"),
        ({"precision": 0.9}, "a precision of at least 90 %", "is below the target"),
        ({"recall": 0.995}, "a recall of at least 99.5 %", f"is below the target{ADVICE}"),
    ],
)
def test_sentences_compare_the_test_rows_with_the_target(target: dict[str, Any], said: str, result: str) -> None:
    rows = dict(point_rows(point(target)))
    assert rows["Threshold"] == f"The threshold was set for {said}, on the training rows, which the fit has seen."
    assert " of the test rows, " in rows["Target"]
    assert rows["Target"].endswith(f", {result}.")
    rows = dict(point_rows(point(target, set_on="threshold_rows")))
    assert rows["Threshold"].endswith(", on the threshold rows, which the fit has not seen.")
    assert rows["Target"].endswith(f", {result}.")
    for more in ({"set_on": "test"}, {"rows": "training"}):  # the same rows set the threshold
        assert "Target" not in dict(point_rows(point(target, **more)))


def test_sentences_count_alerts_and_those_of_a_day() -> None:
    numbers = {"n_alerts": 89, "n_rows": 4450, "n_pos": 60}
    a_day, alerts = {"alerts": 8, "per": "day"}, {"value": 0.02, "interval": [0.017, 0.024]}
    rows = dict(point_rows(point(a_day, alerts=alerts, alerts_per_day=8.9, **numbers)))
    assert rows["Flagged"] == "89 of 4,450 test rows (2.0 %, 8.9 a day)."
    assert rows["Precision"] == "40.0 %: 40 of the 89 flagged rows are positive."
    assert rows["Recall"] == "67.1 % (95 % interval 61.0 % to 72.0 %): 20 of 60 positive rows are missed."
    assert rows["Target"].endswith(f"8.9 a day (95 % interval 7.57 to 10.7), is above the target{MAY.format('met')}.")
    assert "Target" not in dict(point_rows(point(a_day)))  # it is not known how many test rows a day has
    numbers["n_alerts"] = 0
    nothing = dict(point_rows(point({"precision": 0.6}, alerts={"value": 0, "interval": None}, **numbers)))
    assert nothing["Flagged"] == "0 of 4,450 test rows (0.0 %)."
    assert "Precision" not in nothing
    nearly = dict(point_rows(point({"fpr": 0.1}, recall={"value": 0.996, "interval": None})))
    assert nearly["Recall"] == "99.6 %."  # not 100 %


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
    assert "set for the lowest cost, at 1 for a false positive and 40 for a miss, on out-of-fold scores" in page
    assert f"Wrong decisions cost {100 * by_hand:.3g}"[:26] in page
    assert "(95 % interval" in page.split("<h2>Decisions</h2>")[1].split("</section>")[0]


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
