"""An operating point by costs that differ by row, of two classes and of several: training, folds, shards, report and scoring."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from support.command_line import result_of, run as aucdist, sets
from support.runs import QUIET, load_cv, load_train, page_of, searched, trained, unseen_scores, write_config

from aucdist import PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.metrics import expected_cost, expected_cost_interval, threshold_at
from aucdist.model import load_model
from aucdist.search.folds import Folds
from flows import data_sets, score as scoring
from flows.compare import CompareConfig, compare
from flows.data_sets import ShardConfig
from flows.run_folder.folder import read_scores
from flows.score import ScoreConfig

COST = "operating_point={cost: {false_positive: 5, miss: cost_column}, out_of_fold: false}"
SEARCH = ("grid={lam: [10.0, 0.01]}", "folds={number: 2}", "model={tol: 1e-6}")


def fitted(config, *settings):
    return trained(config, COST, *settings, output=config.parent / "runs")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    r = np.random.default_rng(1)
    X, amount = r.normal(size=(1500, 3)), np.round(r.lognormal(3.0, 1.0, 1500), 2)
    fraud = (X @ [1.0, -1.0, 0.5] + r.normal(size=1500) > 1.5).astype(int)
    table = pd.DataFrame(X, columns=list("abc")).assign(amount=amount, fraud=fraud)
    source = {"label": "fraud", "positive": 1, "cost_column": "amount"}
    return write_config(folder, table, source, {"test": {"fraction": 0.3}}, model={"lam": 0.01}, blocks=3)


@pytest.fixture(scope="module")
def result(config):
    return fitted(config, "model.calibration=logit")


def test_threshold_and_cost_are_those_of_the_rows(config, result):
    rows = pd.read_csv(config.parent / "rows.csv")
    point, table = result["operating_point"], read_scores(result["run"])
    np.testing.assert_array_equal(table["cost"], rows["amount"][table["row_id"]])
    fraud, threshold = rows["fraud"][table["row_id"]].to_numpy(), 0.0
    expected = expected_cost_interval(fraud, table["score"], threshold, false_positive=5, miss=table["cost"])
    cost = point["expected_cost"]
    assert cost["value"] == pytest.approx(expected.value)
    assert cost["interval"] == pytest.approx([expected.low, expected.high])
    assert cost["without_model"] == pytest.approx(min((fraud * table["cost"]).mean(), 5 * (1 - fraud).mean()))
    assert cost["value"] < cost["without_model"]
    said = "the lowest cost, at 5 for a false positive and the row&#39;s own amount for a miss, on the training rows"
    assert said in page_of(result)


def test_folds_choose_by_the_cost_of_their_held_out_rows_and_runs_are_compared_by_it(config, result):
    cv, output = ("metric=expected_cost", *SEARCH), str(config.parent / "searched")
    with pytest.raises(InputError, match=r"'expected_cost' needs `operating_point\.cost`"):
        load_cv(str(config), cv, output)
    search = searched(config, *cv, COST, output=output)
    assert search["metric"] == "expected_cost@5,cost_column"
    assert search["score"] == min(row["mean"] for row in search["table"])
    assert search["interval"][0] < search["score"] < search["interval"][1]
    rows, table = pd.read_csv(config.parent / "rows.csv"), read_scores(search["run"])
    train = np.setdiff1d(np.arange(len(rows)), table["row_id"])
    X, y, amount = (rows[name].to_numpy()[train] for name in (list("abc"), "fraud", "amount"))
    folds = Folds(train, np.where(y > 0, 1, -1), 2)
    for row in search["table"]:
        for fold, value in zip(folds.outer(), row["folds"], strict=True):
            seen, held_out = (side[train] for side in folds.masks(fold))
            model = PairwiseHingeClassifier(lam=row["parameters"]["lam"], tol=1e-6).fit(X[seen], y[seen])
            model.set_threshold(X=X[seen], y=y[seen], cost={"false_positive": 5, "miss": amount[seen]})
            cost = {"false_positive": 5, "miss": amount[held_out]}
            expected = expected_cost(y[held_out], model.decision_function(X[held_out]), 0.0, **cost)
            assert value == pytest.approx(expected, rel=0.02)
    compared = compare(CompareConfig(runs=[result["run"], search["run"]], output=output))
    (test,) = compared["differences"]["expected_cost"]
    both = [run["expected_cost"] for run in compared["runs"]]
    assert both[0]["value"] == pytest.approx(result["operating_point"]["expected_cost"]["value"])
    assert both[0]["interval"] == pytest.approx(result["operating_point"]["expected_cost"]["interval"])
    assert test["value"] == pytest.approx(both[0]["value"] - both[1]["value"])
    assert test["low"] <= test["value"] <= test["high"]
    assert "Expected cost of a row" in page_of(compared)


def scored(config, result, name, **keys):
    source = {"source": str(config.parent / "rows.csv"), "format": "csv", **keys}
    output = str(config.parent / name)
    once = scoring.score(ScoreConfig(source=source, model=result["run"] + "/model", output=output), QUIET)
    again = scoring.score(ScoreConfig(source=source, model=result["run"] + "/model", output=output), QUIET)
    assert again["cost"] == once["cost"]  # parts that are there say the same
    return once["cost"], pd.read_parquet(output + "/part-00000.parquet")


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
    data_sets.shard(ShardConfig(source=trained, target=shards, rows_per_shard=400), QUIET)
    output = str(config.parent / "of-shards")
    job = ScoreConfig(source={"source": shards, "format": "shards"}, model=result["run"] + "/model", output=output)
    again = scoring.score(job, QUIET)["cost"]
    assert (again["kind"], again["value"]) == ("realised", pytest.approx(realised["value"]))
    assert again["interval"] == pytest.approx(realised["interval"])
    assert "no cost_column" in scored(config, result, "none", label="fraud")[0]["why"]


def test_rows_without_costs_are_refused_before_they_are_read(config, result):
    with pytest.raises(InputError, match="training rows have no column of costs: give `cost_column` in their source"):
        fitted(config, "data.source.cost_column=null")
    with pytest.raises(InputError, match="miss"):
        load_train(str(config), ["operating_point={cost: {false_positive: 5, miss: amount}}"])


# ---- of several classes: each against the rest, from training to scoring


NAMES = ("crack", "dent", "fine")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("costs")
    r = np.random.default_rng(3)
    X, amount = r.normal(size=(900, 3)), np.round(r.lognormal(3.0, 1.0, 900), 2)
    kind = np.array(NAMES)[np.argmax(X + 0.4 * r.normal(size=(900, 3)) + [0.0, 0.0, 0.7], axis=1)]
    table = pd.DataFrame(X, columns=list("abc")).assign(amount=amount, kind=kind)
    source = {"label": "kind", "positive": "each", "cost_column": "amount"}
    content = {"model": {"lam": 0.01, "tol": 1e-6}, "blocks": 3, "output": str(made / "runs")}
    write_config(made, table, source, {"test": {"fraction": 0.3}}, **content)
    return made


@pytest.fixture(scope="module")
def sharded(folder: Path) -> Path:
    source = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))["data"]["source"]
    settings = [f"{key}={value}" for key, value in source.items() if key != "source"]
    aucdist("shard", source["source"], folder / "shards", *sets(*settings))
    return folder / "shards"


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict:
    return result_of("train", folder / "config.yaml", *sets(COST, "model.calibration=logit"))


def test_each_class_has_the_threshold_that_costs_least(folder: Path, whole: dict) -> None:
    rows, table = pd.read_csv(folder / "rows.csv"), pd.read_parquet(Path(whole["run"], "scores.parquet"))
    np.testing.assert_array_equal(table["cost"], rows["amount"][table["row_id"]])
    left = rows.drop(index=table["row_id"])
    X, amount = left[list("abc")].to_numpy(), left["amount"].to_numpy()
    alone = PairwiseHingeClassifier(lam=0.01, tol=1e-6).fit(X, left["kind"])
    alone.set_threshold(X=X, y=left["kind"], cost={"false_positive": 5, "miss": amount})
    model = load_model(whole["run"] + "/model")
    for k, (name, row) in enumerate(zip(NAMES, whole["classes"], strict=True)):
        point = row["operating_point"]
        assert (row["name"], point["rows"]) == (name, "test")
        assert model.models[k].intercept == pytest.approx(alone.intercept_[k], abs=1e-3)
        costs = {"false_positive": 5, "miss": table["cost"]}
        is_class, scores = table["label"] == name, table[f"score {name}"]
        expected = expected_cost_interval(is_class, scores, 0.0, **costs)
        assert point["expected_cost"]["value"] == pytest.approx(expected.value)
        assert point["expected_cost"]["interval"] == pytest.approx([expected.low, expected.high])
        without = min((is_class * table["cost"]).mean(), 5 * (~is_class).mean())
        assert point["expected_cost"]["without_model"] == pytest.approx(without)
        assert expected.value < without
    assert "per 100 test rows" in page_of(whole)
    assert "the lowest cost, at 5 for a false positive and the row&#39;s own amount for a miss" in page_of(whole)


def test_either_cost_may_be_the_column_and_shards_say_the_same(folder: Path, sharded: Path) -> None:
    both = "operating_point={cost: {false_positive: cost_column, miss: cost_column}}"
    alone = result_of("train", folder / "config.yaml", *sets(both, "data.test=null"))
    rows, model = pd.read_csv(folder / "rows.csv"), load_model(alone["run"] + "/model")
    scores = model.decision_function(rows[list("abc")].to_numpy())
    for k, (name, row) in enumerate(zip(NAMES, alone["classes"], strict=True)):
        point = row["operating_point"]
        assert (point["rows"], point["expected_cost"]["interval"]) == ("training", None)
        costs = {"false_positive": rows["amount"], "miss": rows["amount"]}
        value = expected_cost(rows["kind"] == name, scores[:, k], 0.0, **costs)
        assert point["expected_cost"]["value"] == pytest.approx(value, rel=1e-6)
    shards = f"data={{source: {{source: {sharded}, format: shards}}}}"
    again = result_of("train", folder / "config.yaml", *sets(both, shards, "blocks=null"))
    for first, other in zip(alone["classes"], again["classes"], strict=True):
        values = [row["operating_point"]["expected_cost"]["value"] for row in (first, other)]
        assert values[0] == pytest.approx(values[1], rel=0.02)


def test_folds_choose_by_the_mean_over_classes(folder: Path) -> None:
    settings = sets("metric=expected_cost", *SEARCH, COST)
    search = result_of("cv", folder / "config.yaml", *settings)
    assert search["metric"] == "expected_cost@5,cost_column"
    assert search["score"] == min(row["mean"] for row in search["table"])
    rows, table = pd.read_csv(folder / "rows.csv"), pd.read_parquet(Path(search["run"], "scores.parquet"))
    train = np.setdiff1d(np.arange(len(rows)), table["row_id"])
    X, kind, amount = (rows[name].to_numpy()[train] for name in (list("abc"), "kind", "amount"))
    codes = np.searchsorted(NAMES, kind)
    folds = Folds(train, codes, 2, strata=codes)
    row = next(row for row in search["table"] if row["parameters"]["lam"] == 0.01)
    for fold, value in zip(folds.outer(), row["folds"], strict=True):
        seen, held_out = (side[train] for side in folds.masks(fold))
        model = PairwiseHingeClassifier(lam=0.01, tol=1e-6).fit(X[seen], kind[seen])
        model.set_threshold(X=X[seen], y=kind[seen], cost={"false_positive": 5, "miss": amount[seen]})
        scores, cost = model.decision_function(X[held_out]), {"false_positive": 5, "miss": amount[held_out]}
        each = [expected_cost(kind[held_out] == name, scores[:, k], 0.0, **cost) for k, name in enumerate(NAMES)]
        assert value == pytest.approx(np.mean(each), rel=0.02)


def test_runs_are_compared_by_what_each_class_costs(folder: Path, whole: dict) -> None:
    other = result_of("train", folder / "config.yaml", "--set", COST, "--set", "model.lam=10.0")
    compared = result_of("compare", whole["run"], other["run"], "--output", folder / "compared")
    for difference, row, beside in zip(compared["cost_differences"], whole["classes"], other["classes"], strict=True):
        costs = [of["operating_point"]["expected_cost"]["value"] for of in (row, beside)]
        assert difference["value"] == pytest.approx(costs[0] - costs[1])
    changed = pd.read_csv(folder / "rows.csv").assign(amount=lambda table: table["amount"] + 1)
    changed.to_csv(folder / "dearer.csv", index=False)
    costs = sets(COST, f"data.source.source={folder}/dearer.csv")
    dearer = result_of("train", folder / "config.yaml", *costs)
    _, err = aucdist("compare", whole["run"], dearer["run"], "--output", folder / "compared", code=2)
    assert "have different costs of the same test rows" in err


def scored_by_class(folder, whole, name, *keys, rows="rows.csv"):
    command = ("score", whole["run"] + "/model", folder / rows, folder / name, *sets(*keys))
    result = result_of(*command)
    assert result_of(*command)["cost"] == result["cost"]  # parts that are there say the same
    return result["cost"], pd.read_parquet(folder / name)


def test_scores_say_what_the_alarms_of_each_class_cost(folder: Path, sharded: Path, whole: dict) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    realised, table = scored_by_class(folder, whole, "known", "label=kind", "cost_column=amount")
    expected, unlabelled = scored_by_class(folder, whole, "unknown", "cost_column=amount")
    model = load_model(whole["run"] + "/model")
    for k, name in enumerate(NAMES):
        flagged, is_class = table[f"score {name}"] > 0, rows["kind"] == name
        by_hand = np.where(flagged != is_class, np.where(is_class, rows["amount"], 5.0), 0.0)
        np.testing.assert_array_equal(table[f"cost {name}"], by_hand)
        of_class = realised["classes"][name]
        assert (of_class["kind"], of_class["value"]) == ("realised", pytest.approx(by_hand.mean()))
        costs = {"false_positive": 5, "miss": rows["amount"].to_numpy()}
        bounds = expected_cost_interval(is_class, table[f"score {name}"], 0.0, **costs)
        assert of_class["interval"] == pytest.approx([bounds.low, bounds.high])
        p = model.models[k].probability(unlabelled[f"score {name}"].to_numpy())[:, 1]
        np.testing.assert_allclose(unlabelled[f"cost {name}"], np.where(flagged, 5 * (1 - p), p * rows["amount"]))
    assert (realised["interval"], expected["kind"]) == (None, "expected")
    assert realised["value"] == pytest.approx(sum(cost["value"] for cost in realised["classes"].values()))
    assert expected["value"] == pytest.approx(realised["value"], rel=0.3)
    missing, empty = scored_by_class(folder, whole, "none", "label=kind")
    assert "no cost_column" in missing["why"]
    assert empty[[f"cost {name}" for name in NAMES]].isna().all(axis=None)
    of_shards, _ = scored_by_class(folder, whole, "of-shards", "format=shards", rows=sharded.name)
    assert of_shards["kind"] == "realised"
    assert of_shards["value"] == pytest.approx(realised["value"])
    again = sets("label=kind", "cost_column=amount")
    out, _ = aucdist("score", whole["run"] + "/model", folder / "rows.csv", folder / "known", *again)
    assert "by the alerts of all classes" in out
    assert model.models[0].about["operating_point"] == {"cost": {"false_positive": 5, "miss": "cost_column"}}


def test_thresholds_by_rows_that_models_have_not_seen(folder: Path) -> None:
    point = COST.replace(", out_of_fold: false", "")
    result = result_of("train", folder / "config.yaml", "--set", point)
    rows = pd.read_csv(folder / "rows.csv")
    left = rows.drop(index=pd.read_parquet(Path(result["run"], "scores.parquet"))["row_id"])
    X, cost = left[list("abc")].to_numpy(), {"false_positive": 5, "miss": left["amount"].to_numpy()}
    models = load_model(result["run"] + "/model").models
    for name, row, saved in zip(NAMES, result["classes"], models, strict=True):
        y = np.where(left["kind"] == name, 1, -1)
        scores = unseen_scores(PairwiseHingeClassifier(lam=0.01, tol=1e-6), X, y, left.index.to_numpy())
        assert -saved.intercept == pytest.approx(threshold_at(y, scores, cost=cost), abs=1e-3)
        assert row["operating_point"]["out_of_fold"]
    assert ", on out-of-fold scores of the training rows" in page_of(result)


def test_a_class_whose_rows_cost_nothing_is_named_before_the_fit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    rows["amount"] = rows["amount"].where(rows["kind"] != "fine", 0.0)
    rows.to_csv(folder / "free.csv", index=False)
    monkeypatch.setattr("flows.train.run.fit", None)  # nothing is fitted
    free = f"data.source.source={folder / 'free.csv'}"
    _, err = aucdist("train", folder / "config.yaml", *sets(COST, free), code=2)
    shown = "class 'fine': operating_point.cost: in the cost column of the training rows, miss is 0 for all positive"
    assert shown in err
    rows.assign(amount=rows["amount"].where(rows["kind"] == "crack", 0.0)).to_csv(folder / "free.csv", index=False)
    both = sets(free, "data.source.positive=crack", "operating_point={cost: {false_positive: cost_column, miss: 1}}")
    _, err = aucdist("train", folder / "config.yaml", *both, code=2)
    assert "in the cost column of the training rows, false_positive is 0 for all negative rows" in err
