"""Models of several classes in service: a store, a paired test of the mean AUC, batches, labels, nights."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from support.command_line import refused, result_of, run

from aucdist.metrics.compare import macro_auc_interval
from aucdist.model import load_model


def table(rows: slice, *, shift: float = 0.0) -> pd.DataFrame:
    """Digits below 4, and one row of the class -1, which is left out of each fit and comes first among the labels."""
    X, y = load_digits(return_X_y=True)
    few = np.append(np.flatnonzero(y < 4), np.flatnonzero(y == 4)[:1])
    X, y = X[np.sort(few)][rows] / 16, np.where(y == 4, -1, y)[np.sort(few)][rows]
    return pd.DataFrame(X + shift, columns=[f"p{j}" for j in range(64)]).assign(digit=y)


SOURCE = "{{source: '{0}', format: csv, label: digit, positive: each}}"
LABEL = ("--set", "label=digit", "--set", "positive=each")


def trained(folder: Path, lam: float, calibration: str = "null") -> str:
    (folder / "train.yaml").write_text(
        f"name: digits\ndata:\n  source: {SOURCE.format(folder / 'rows.csv')}\n  test: {{fraction: 0.4}}\n"
        f"model: {{tol: 1.0e-2, lam: {lam}, calibration: {calibration}}}\noutput: '{folder}/runs'\n"
    )
    return str(result_of("train", folder / "train.yaml")["run"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("service")
    table(slice(0, 400)).to_csv(made / "rows.csv", index=False)
    table(slice(400, 700)).to_csv(made / "new.csv", index=False)
    table(slice(400, 700), shift=0.5).to_csv(made / "shifted.csv", index=False)
    return made


@pytest.fixture(scope="module")
def runs(folder: Path) -> tuple[str, str]:
    """A good run and a bad one."""
    return trained(folder, 1e-2), trained(folder, 1e4)


def test_from_the_first_version_to_a_rollback(folder: Path, runs: tuple[str, str], tmp_path: Path) -> None:
    good, bad = runs
    assert "`highest` is for models of two classes" in refused("explain", good, folder / "new.csv", "--highest", 2)
    store = tmp_path / "store"
    assert result_of("promote", bad, store, "--if", "better")["version"] == 1
    better = result_of("promote", good, store, "--if", "better")
    decision = better["decision"]
    assert (better["version"], decision["metric"], decision["of"]) == (2, "macro_auc", "the test rows of both runs")
    areas = [json.loads((Path(folder) / "metrics.json").read_text())["metrics"]["test_auc"] for folder in runs]
    assert decision["value"] == pytest.approx(areas[0] - areas[1])
    assert [row["name"] for row in decision["classes"]] == ["0", "1", "2", "3"]
    assert decision["value"] == pytest.approx(np.mean([row["value"] for row in decision["classes"]]))
    said, _ = run("promote", bad, store, "--if", "not-worse")
    assert "mean AUC of the classes of the new run minus that of the version in use" in said
    assert "version 2 stays in use" in said
    # Rows that neither has seen, read with the classes of the model; the class that was left out counts with the rest.
    named = result_of("promote", good, store, "--if", "not-worse", "--margin", 0.1, "--data", folder / "new.csv")
    assert (named["version"], named["decision"]["value"], named["decision"]["rows"]) == (3, 0.0, 300)
    more = table(slice(400, 700))
    pd.concat([more, more[:1].assign(p0=0.5, digit=-1)]).to_csv(tmp_path / "more.csv", index=False)
    run("shard", tmp_path / "more.csv", tmp_path / "more", *LABEL)
    sharded = result_of("promote", good, store, "--if", "not-worse", "--margin", 0.1, "--data", tmp_path / "more")
    assert (sharded["decision"]["value"], sharded["decision"]["rows"]) == (0.0, 301)
    assert "mean AUC of the classes" in run("models", store)[0]
    model, first = load_model(str(store)), load_model(f"{good}/model")
    for of_class, other in zip(model.models, first.models, strict=True):
        np.testing.assert_array_equal(of_class.coef, other.coef)
    run("rollback", f"{store}@1")
    assert load_model(str(store)).models[0].coef[20] != model.models[0].coef[20]
    _, err = run("promote", good, store, "--if", "better", "--metric", "average_precision", code=2)
    assert "leave `metric` out" in err
    _, err = run("promote", good, store, "--if", "better", "--data", folder / "rows.csv", code=2)
    assert "was trained on" in err


def test_batches_and_labels(folder: Path, runs: tuple[str, str], tmp_path: Path) -> None:
    store = tmp_path / "store"
    run("promote", runs[0], store)
    rows = ("--set", "drop=[digit]")
    result = result_of("watch", store, folder / "new.csv", *rows, "--batch", "monday")
    assert {score["class"] for score in result["comparison"]["scores"]} == set("0123")
    assert result["comparison"]["score"] == result["comparison"]["scores"][0]
    run("score", store, folder / "shifted.csv", tmp_path / "scores", *rows)
    kept = ("--scores", tmp_path / "scores", "--batch", "tuesday")
    moved = result_of("watch", store, folder / "shifted.csv", *rows, *kept, code=3)
    assert {alarm["what"] for alarm in moved["alarms"]} >= {"class score"}
    digits = pd.read_csv(folder / "new.csv")["digit"]
    labels = pd.DataFrame({"row_id": range(300), "digit": digits}).astype({"digit": "Int64"})
    labels.loc[200:, "digit"] = pd.NA
    labels.to_csv(tmp_path / "labels.csv", index=False)
    known = result_of("watch", store, "--labels", tmp_path / "labels.csv", "--batch", "monday")["performance"]
    assert (known["labelled"], known["unlabelled"], known["missing"]) == (200, 100, 100)
    X = pd.read_csv(folder / "new.csv").drop(columns="digit").to_numpy()[:200]
    members = digits.to_numpy()[:200, np.newaxis] == np.arange(4)
    expected = macro_auc_interval(members, load_model(str(store)).decision_function(X)).value
    assert known["metrics"]["macro_auc"]["value"] == pytest.approx(expected)
    promised = json.loads((Path(runs[0]) / "metrics.json").read_text())["metrics"]["test_auc"]
    assert known["on_test_rows"]["metrics"]["macro_auc"]["value"] == pytest.approx(promised)
    wrong = digits.iloc[::-1].reset_index(drop=True)
    pd.DataFrame({"row_id": range(300), "digit": wrong}).to_csv(tmp_path / "wrong.csv", index=False)
    said, _ = run("watch", store, "--labels", tmp_path / "wrong.csv", "--batch", "monday", code=3)
    assert re.search(r"ALARM: the mean AUC of the classes is 0\.\d+ lower than on the test rows", said)
    assert re.search(r"ALARM: the AUC of class 0 is 0\.\d+ lower than on the test rows", said)
    assert "Mean AUC of the classes" in (store / "watch" / "index.html").read_text()


def test_a_night(folder: Path, tmp_path: Path) -> None:
    """Both nights end at the same scores, of which 160 test rows can say no more than that they differ by less than 0.0186."""

    def kept() -> tuple[dict, str]:
        out, err = run("keep-current", tmp_path / "night.yaml", "--json")
        return json.loads(out), err

    (tmp_path / "night.yaml").write_text(
        f"store: '{tmp_path}/store'\ncondition: not-worse\nmargin: 0.02\nscores: '{tmp_path}/scores'\n"
        f"train:\n  name: digits\n  data: {{source: {SOURCE.format(folder / 'rows.csv')}, test: {{fraction: 0.4}}}}\n"
        f"  model: {{tol: 1.0e-6, lam: 1.0e-2}}\n  output: '{tmp_path}/runs'\n"  # both nights reach the same weights
        f"new: {{source: {{source: '{folder}/new.csv', format: csv, drop: [digit]}}}}\n"
    )
    first, _ = kept()
    assert (first["promotion"]["version"], first["scored"]["rows"], first["watched"]["rows"]) == (1, 300, 300)
    second, err = kept()
    assert "4 of 4 classes start from the weights in use" in err
    assert second["trained"]["passes"] < first["trained"]["passes"]
    assert (second["promotion"]["version"], second["promotion"]["decision"]["metric"]) == (2, "macro_auc")
