"""An operating point by costs that differ by row: training, shards, the report, and scoring."""

import numpy as np
import pandas as pd
import pytest
import yaml
from support.runs import QUIET, page_of, searched, trained
from support.searches import load_cv

from aucdist import PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.metrics import expected_cost, expected_cost_interval
from aucdist.search.folds import Folds
from flows import score as scoring
from flows import shard as sharding
from flows.compare import CompareConfig, compare
from flows.run_folder.scores import read_scores
from flows.score import ScoreConfig
from flows.shard import ShardConfig
from flows.train.config import load_train

COST = "operating_point={cost: {false_alarm: 5, miss: cost_column}}"


def fitted(config, *settings):
    return trained(config, COST, *settings, output=config.parent / "runs")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    r = np.random.default_rng(1)
    X, amount = r.normal(size=(1500, 3)), np.round(r.lognormal(3.0, 1.0, 1500), 2)
    fraud = (X @ [1.0, -1.0, 0.5] + r.normal(size=1500) > 1.5).astype(int)
    pd.DataFrame(X, columns=list("abc")).assign(amount=amount, fraud=fraud).to_csv(folder / "rows.csv", index=False)
    source = {
        "source": str(folder / "rows.csv"), "format": "csv", "label": "fraud", "positive": 1, "cost_column": "amount",
    }  # fmt: skip
    content = {
        "name": "frauds", "data": {"source": source, "test": {"fraction": 0.3}}, "model": {"lam": 0.01}, "blocks": 3,
        "cluster": "none",
    }  # fmt: skip
    (folder / "frauds.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder / "frauds.yaml"


@pytest.fixture(scope="module")
def result(config):
    return fitted(config, "model.calibration=logit")


def test_threshold_and_cost_are_those_of_the_rows(config, result):
    rows = pd.read_csv(config.parent / "rows.csv")
    point, table = result["operating_point"], read_scores(result["run"])
    np.testing.assert_array_equal(table["cost"], rows["amount"][table["row_id"]])
    fraud, threshold = rows["fraud"][table["row_id"]].to_numpy(), 0.0
    found = expected_cost_interval(fraud, table["score"], threshold, false_alarm=5, miss=table["cost"])
    cost = point["expected_cost"]
    assert cost["value"] == pytest.approx(found.value)
    assert cost["interval"] == pytest.approx([found.low, found.high])
    assert cost["without_model"] == pytest.approx(min((fraud * table["cost"]).mean(), 5 * (1 - fraud).mean()))
    assert cost["value"] < cost["without_model"]
    said = "At a cost of 5 for a false alarm and the row&#39;s own amount for a miss, the model finds"
    assert said in page_of(result)


def test_folds_choose_by_the_cost_of_their_held_out_rows_and_runs_are_compared_by_it(config, result):
    cv, output = yaml.safe_load(config.read_text(encoding="utf-8")), str(config.parent / "searched")
    cv |= {"metric": "expected_cost", "grid": {"lam": [10.0, 0.01]}, "folds": {"number": 2}, "model": {"tol": 1e-6}}
    path = config.parent / "cv.yaml"
    path.write_text(yaml.safe_dump(cv), encoding="utf-8")
    with pytest.raises(InputError, match=r"'expected_cost' needs `operating_point\.cost`"):
        load_cv(str(path), [], output)
    found = searched(path, COST, output=output)
    assert found["metric"] == "expected_cost@5,cost_column"
    assert found["score"] == min(row["mean"] for row in found["table"])
    assert found["interval"][0] < found["score"] < found["interval"][1]
    rows, table = pd.read_csv(config.parent / "rows.csv"), read_scores(found["run"])
    train = np.setdiff1d(np.arange(len(rows)), table["row_id"])
    X, y, amount = (rows[name].to_numpy()[train] for name in (list("abc"), "fraud", "amount"))
    folds = Folds(train, np.where(y > 0, 1, -1), 2)
    for row in found["table"]:
        for fold, value in zip(folds.outer(), row["folds"], strict=True):
            seen, held_out = folds.rows(fold)
            model = PairwiseHingeClassifier(lam=row["parameters"]["lam"], tol=1e-6).fit(X[seen], y[seen])
            model.set_threshold(X=X[seen], y=y[seen], cost={"false_alarm": 5, "miss": amount[seen]})
            cost = {"false_alarm": 5, "miss": amount[held_out]}
            expected = expected_cost(y[held_out], model.decision_function(X[held_out]), 0.0, **cost)
            assert value == pytest.approx(expected, rel=0.02)
    compared = compare(CompareConfig(runs=[result["run"], found["run"]], output=output), QUIET)
    (test,) = compared["differences"]["expected_cost"]
    both = [run["expected_cost"] for run in compared["runs"]]
    assert both[0]["value"] == pytest.approx(result["operating_point"]["expected_cost"]["value"])
    assert both[0]["interval"] == pytest.approx(result["operating_point"]["expected_cost"]["interval"])
    assert test["value"] == pytest.approx(both[0]["value"] - both[1]["value"])
    assert test["low"] <= test["value"] <= test["high"]
    assert "Expected cost of a test row" in page_of(compared)


def scored(config, result, name, **keys):
    source = {"source": str(config.parent / "rows.csv"), "format": "csv", **keys}
    output = str(config.parent / name)
    found = scoring.score(ScoreConfig(source=source, model=result["run"] + "/model", output=output), QUIET)
    again = scoring.score(ScoreConfig(source=source, model=result["run"] + "/model", output=output), QUIET)
    assert again["cost"] == found["cost"]  # parts that are there say the same
    return found["cost"], pd.read_parquet(output + "/part-00000.parquet")


def test_scores_say_what_decisions_cost(config, result):
    rows = pd.read_csv(config.parent / "rows.csv")
    realised, table = scored(config, result, "known", cost_column="amount", label="fraud")
    wrong = (table["prediction"] > 0) != (rows["fraud"] > 0)
    by_hand = np.where(wrong, np.where(rows["fraud"] > 0, rows["amount"], 5.0), 0.0)
    np.testing.assert_array_equal(table["cost"], by_hand)
    assert (realised["kind"], realised["value"]) == ("realised", pytest.approx(by_hand.mean()))
    assert realised["interval"][0] < by_hand.mean() < realised["interval"][1]
    expected, table = scored(config, result, "unknown", cost_column="amount")
    flagged, p = table["prediction"] > 0, table["probability"]
    np.testing.assert_allclose(table["cost"], np.where(flagged, 5 * (1 - p), p * rows["amount"]))
    assert (expected["kind"], expected["interval"]) == ("expected", None)
    assert expected["value"] == pytest.approx(realised["value"], rel=0.25)
    shards = str(config.parent / "to-score")
    trained = yaml.safe_load(config.read_text(encoding="utf-8"))["data"]["source"]
    sharding.shard(ShardConfig(source=trained, target=shards, rows_per_shard=400), QUIET)
    output = str(config.parent / "of-shards")
    job = ScoreConfig(source={"source": shards, "format": "shards"}, model=result["run"] + "/model", output=output)
    again = scoring.score(job, QUIET)["cost"]
    assert (again["kind"], again["value"]) == ("realised", pytest.approx(realised["value"]))
    assert again["interval"] == pytest.approx(realised["interval"])
    assert "no cost_column" in scored(config, result, "none", label="fraud")[0]["why"]


def test_rows_without_costs_are_refused_before_they_are_read(config, result):
    with pytest.raises(InputError, match="training rows have no costs: they need `cost_column` in the source"):
        fitted(config, "data.source.cost_column=null")
    with pytest.raises(InputError, match="miss"):
        load_train(str(config), ["operating_point={cost: {false_alarm: 5, miss: amount}}"])
