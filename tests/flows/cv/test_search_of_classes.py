"""Searches of several classes and of topics: folds that keep all classes, means over them, one setting for all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from support.command_line import run as aucdist, sets
from support.digits import write_digits
from support.runs import page_of

from aucdist import PairwiseHingeClassifier
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import block_seed
from aucdist.kernels.random import hash_ids
from aucdist.metrics.named import NAMED_METRICS
from aucdist.model import load_model
from aucdist.report.text import search_verdict
from aucdist.search.choice import SettingScores, summary_of_classes
from aucdist.search.folds import SearchedClasses

LAMS = [1.0, 0.01]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits below 4, of the four fewer the larger they are; two rows of a fifth class; the same rows with topics."""
    made, y = tmp_path_factory.mktemp("search"), load_digits(return_X_y=True)[1]
    n = {0: 60, 1: 50, 2: 40, 3: 30, 9: 2}
    rows = np.concatenate([np.flatnonzero(y == k)[:size] for k, size in n.items()])
    write_digits(made, rows, {"0": "even,zero", "1": "odd", "2": "even", "3": "odd,three", "9": "rare"})
    return made


CSV = "{{source: '{0}/digits.csv', format: csv, label: digit, positive: each}}"
TOPICS = "{{source: '{0}/topics.svm', format: svmlight, labels: topics, positive: each}}"


def config(folder: Path, source: str, output: Path, more: str = "") -> Path:
    path = output / "cv.yaml"
    path.write_text(
        f"name: digits\ndata:\n  source: {source.format(folder)}\nmodel: {{tol: 1.0e-2}}\ngrid: {{lam: {LAMS}}}\n"
        f"folds: {{number: 3, seed: 4}}\noutput: '{output}/runs'\n{more}"
    )
    return path


def search(folder: Path, source: str, output: Path, *options: str, more: str = "") -> tuple[dict[str, Any], str]:
    out, err = aucdist("cv", config(folder, source, output, more), "--json", *options)
    return json.loads(out), err


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    return search(folder, CSV, tmp_path_factory.mktemp("whole"))


def by_hand(folder: Path) -> dict[float, np.ndarray]:
    """Deal the rows of each class to three folds by the order of their random numbers, and fit each class against the rest."""
    table = pd.read_csv(folder / "digits.csv")
    X, y = table.drop(columns="digit").to_numpy(), table["digit"].to_numpy()
    number = hash_ids(np.arange(len(y)), block_seed(4, 0, 0))
    fold = np.empty(len(y), dtype=int)
    fold[sorted(range(len(y)), key=lambda i: (str(y[i]), number[i]))] = np.arange(len(y)) % 3
    scores_of = {lam: np.empty((3, 4)) for lam in LAMS}
    for lam in LAMS:
        for f in range(3):
            for k in range(4):
                model = PairwiseHingeClassifier(tol=1e-4, lam=lam).fit(X[fold != f], y[fold != f] == k)
                scores = model.decision_function(X[fold == f])
                scores_of[lam][f, k] = roc_auc_score(y[fold == f] == k, scores)
    return scores_of


def test_the_values_are_those_of_fits_by_hand(folder: Path, tmp_path: Path) -> None:
    result, _ = search(folder, CSV, tmp_path, "--set", "model.tol=1e-4")
    expected = by_hand(folder)
    for row in result["table"]:
        np.testing.assert_allclose(row["folds"], expected[row["parameters"]["lam"]].mean(axis=1), atol=2e-3)
    chosen = expected[result["best"]["lam"]]
    for k, row in enumerate(result["of_classes"]["rows"]):
        np.testing.assert_allclose(row["folds"], chosen[:, k], atol=2e-3)
        own = {lam: expected[lam][:, k].mean() for lam in LAMS}
        assert row["alone"]["mean"] == pytest.approx(max(own.values()), abs=2e-3)
    # 60, 50, 40 and 30 rows, dealt on from class to class: each fold has these held-out rows of each class.
    n = np.array([[20, 17, 13, 10], [20, 17, 13, 10], [20, 16, 14, 10]])
    weighted = [np.average(values, weights=of_fold) for values, of_fold in zip(chosen, n, strict=True)]
    assert result["of_classes"]["weighted"] == pytest.approx(np.mean(weighted), abs=2e-3)


def test_the_object_of_several_classes(whole: tuple[dict[str, Any], str]) -> None:
    result, err = whole
    assert "class '9' has 2 of 182 training rows, too few for the folds: the means leave it out" in err
    assert result["best"] == max(result["table"], key=lambda row: row["mean"])["parameters"]
    of_classes = result["of_classes"]
    assert of_classes["left_out"] == ["9"]
    assert not of_classes["topics"]
    assert [(row["name"], row["n_pos"]) for row in of_classes["rows"]] == [("0", 60), ("1", 50), ("2", 40), ("3", 30)]
    folds = np.array([row["folds"] for row in of_classes["rows"]])
    best = next(row for row in result["table"] if row["parameters"] == result["best"])
    np.testing.assert_allclose(folds.mean(axis=0), best["folds"])
    assert result["score"] == best["mean"]
    assert best["weighted"] == pytest.approx(of_classes["weighted"])
    low, high = of_classes["weighted_interval"]
    assert 0.9 < low <= of_classes["weighted"] <= high <= 1
    for row in of_classes["rows"]:
        assert row["mean"] == pytest.approx(np.mean(row["folds"]))
        assert row["alone"]["mean"] >= row["mean"]
        assert row["alone"]["parameters"]["lam"] in LAMS
    verdict = f"Chosen: lam {result['best']['lam']:g}. The mean AUC of 4 classes over 3 folds is 0.9"
    assert search_verdict(result).startswith(verdict)


def test_the_last_fit_has_all_classes_at_the_chosen_setting(whole: tuple[dict[str, Any], str]) -> None:
    result, _ = whole
    assert [row["name"] for row in result["refit"]["classes"]] == ["0", "1", "2", "3", "9"]
    run = Path(result["run"])
    model = load_model(str(run / "model"))
    assert model.classes == ("0", "1", "2", "3", "9")
    assert model.models[2].about["parameters"]["lam"] == result["best"]["lam"]
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["search"]["of_classes"] == result["of_classes"]


def test_the_page_has_the_classes_over_the_folds(whole: tuple[dict[str, Any], str]) -> None:
    result, _ = whole
    page = page_of(result)
    said = "One setting was chosen for all classes, by the mean over 4 classes with equal weights (the macro mean)."
    assert said in page
    assert "These classes have too few rows for the folds and are left out of the means: 9." in page
    table = page.split('aria-label="Classes over the folds"')[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + 4
    worst = min(result["of_classes"]["rows"], key=lambda row: row["mean"])["name"]
    assert table.index(f"<bdi>{worst}</bdi>") == table.index("<bdi>")
    assert "mean AUC of 4 classes" in search_verdict(result)
    assert len(result["table"]) == len(LAMS)


def test_a_second_run_takes_the_stored_results_of_costs(folder: Path, tmp_path: Path) -> None:
    more = "metric: expected_cost\noperating_point: {cost: {false_positive: 1, miss: 9}}\n"
    first, _ = search(folder, CSV, tmp_path, more=more)
    again, _ = search(folder, CSV, tmp_path, more=more)
    assert (first["tasks"]["kept"], again["tasks"]["kept"]) == (0, 3)
    assert again["of_classes"] == first["of_classes"]
    assert first["score"] == min(row["mean"] for row in first["table"])
    for row in first["of_classes"]["rows"]:
        # At most what it costs to flag none of the rows of a class, or all of them.
        assert 0.0 <= row["alone"]["mean"] <= row["mean"] <= min(9 * row["n_pos"], 182 - row["n_pos"]) / 182 + 0.01


def test_topics_with_inner_folds(folder: Path, tmp_path: Path) -> None:
    result, err = search(folder, TOPICS, tmp_path, "--set", "nested=2")
    assert "class 'rare' has 2 of 182 training rows" in err
    of_classes = result["of_classes"]
    assert of_classes["topics"]
    assert [row["name"] for row in of_classes["rows"]] == ["even", "odd", "three", "zero"]
    folds = np.array([row["folds"] for row in of_classes["rows"]])
    np.testing.assert_allclose(folds.mean(axis=0), [fold["value"] for fold in result["nested"]])
    assert result["score"] == pytest.approx(folds.mean())
    assert "stratified by set of topics" in page_of(result)
    some, _ = search(folder, TOPICS.replace("positive: each", "positive: {{each: [odd, zero]}}"), tmp_path)
    assert [row["name"] for row in some["of_classes"]["rows"]] == ["odd", "zero"]


def test_a_fold_that_failed_leaves_no_means() -> None:
    sets = LabelSets.of_classes(["a", "b"])
    classes = SearchedClasses(sets, np.array([30, 20]), ())
    good = {"value": 0.8, "weighted": 0.82, "classes": [0.9, 0.7]}
    row = SettingScores({"lam": 1.0}, (good, good, {"error": "no room"}), 10)
    summary = summary_of_classes(classes, row.results, [row], NAMED_METRICS["auc"], "best", 0.5)
    assert summary["weighted"] is summary["weighted_interval"] is None
    assert [row["mean"] for row in summary["rows"]] == [None, None]
    assert [row["alone"] for row in summary["rows"]] == [None, None]
    assert "weighted" not in row.summary()
    whole = SettingScores({"lam": 0.1}, (good, good, good), 10)
    summary = summary_of_classes(classes, whole.results, [row, whole], NAMED_METRICS["auc"], "best", 0.5)
    assert [row["mean"] for row in summary["rows"]] == pytest.approx([0.9, 0.7])
    assert summary["rows"][0]["alone"] == {"parameters": {"lam": 0.1}, "mean": pytest.approx(0.9)}


def test_files_read_in_parts_give_the_same_numbers(folder, tmp_path, whole):
    parts, _ = search(folder, CSV, tmp_path, *sets("data.direct=true"))
    for key in ("best", "score", "interval", "of_classes"):
        assert parts[key] == whole[0][key], key
    assert [row["folds"] for row in parts["table"]] == [row["folds"] for row in whole[0]["table"]]


def test_a_feature_map_is_chosen_for_all_classes(folder: Path, tmp_path: Path) -> None:
    model = "model={tol: 3.0e-2, lam: 0.1, features: auto}"
    auto = sets(model, "data.impute=keep", "data.source.keep=[p19, p20, p28, p36]")
    path = config(folder, CSV, tmp_path)
    result, _ = search(folder, CSV, tmp_path, *auto, *sets("grid={lam: [0.1]}", "folds={number: 5}"))
    text = path.read_text().split("grid")[0]
    path.write_text(f"{text}output: '{tmp_path}/runs'\n")
    out, err = aucdist("train", path, "--json", *auto)
    chosen = json.loads((Path(json.loads(out)["run"]) / "metrics.json").read_text())["search"]
    assert "class '9' has 2 of 182 training rows, too few for the folds" in err
    maps = [(row["parameters"]["features"]["map"], row["parameters"]["monotone"]) for row in chosen["table"]]
    assert maps == [("bins", "auto"), ("bins", None)]  # no pairs or leaves: the smallest class has 30 rows
    assert chosen["best"] == result["best"]
    assert [row["folds"] for row in chosen["table"]] == [row["folds"] for row in result["table"]]
    assert chosen["of_classes"] == result["of_classes"]


@pytest.mark.slow
def test_two_workers_have_the_same_numbers(folder: Path, tmp_path: Path, whole: tuple[dict[str, Any], str]) -> None:
    there, _ = search(folder, CSV, tmp_path, "--set", "cluster={kind: local, workers: 2, threads: 1}")
    here, _ = whole
    for key in ("best", "score", "interval", "table", "of_classes"):
        assert there[key] == here[key], key


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("folds.number=70", "no class has rows on both sides of every fold"),
        ("metric=brier_loss", "needs probabilities"),
    ],
)
def test_settings_that_need_two_classes_are_refused(folder: Path, tmp_path: Path, setting: str, message: str) -> None:
    assert message in aucdist("cv", config(folder, CSV, tmp_path), "--set", setting, code=2)[1]
