"""A whole run: what is in its folder and stands beside its model, and that where it runs does not change what it finds."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.runs import QUIET, Following, load_cv, load_train, page_of, searched, trained, write_config

from aucdist.data.own_files import jsonable
from aucdist.engine.dask import local_client
from aucdist.errors import InputError
from aucdist.metrics import average_precision_difference, average_precision_interval, roc_auc_difference
from aucdist.metrics.decisions import mean_cost_difference
from aucdist.metrics.groups import group_auc, group_ndcg
from aucdist.model import load_model
from aucdist.report.text import group_rows
from flows.rows.source import read_rows
from flows.run_folder.folder import read_metrics, read_scores
from flows.train.run import baselines

QUICK = ["cluster=none", "blocks=4", "model.tol=0.05", "model.lam=0.01"]


def run(output: object, *settings: str) -> dict[str, Any]:
    return trained("digits", *QUICK, *settings, output=output)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run on all digits, without a test set."""
    return run(tmp_path_factory.mktemp("runs"), "data.test=null")


def test_files_of_the_run(whole: dict[str, Any]) -> None:
    folder = Path(whole["run"])
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert files == {
        "config.yaml", "history.parquet", "metrics.json", "model/digests.npy", "model/model.json", "model/profile.json",
        "model/weights.npy", "report.html", "threshold.parquet",
    }  # fmt: skip
    assert list(folder.parent.iterdir()) == [folder]


def test_metrics_hold_the_result_and_more(whole: dict[str, Any]) -> None:
    metrics = read_metrics(whole["run"])
    assert {key: metrics[key] for key in whole} == whole
    assert whole["n_samples"] == 1797
    assert whole["metrics"]["test_auc"] is whole["metrics"]["test_auc_interval"] is None
    assert sum(metrics["details"]["train"]["confusion"].values()) == whole["n_samples"]
    assert metrics["data"]["name"] == "digits"


def test_history_ends_at_the_certificate(whole: dict[str, Any]) -> None:
    history = pd.read_parquet(Path(whole["run"]) / "history.parquet")
    assert list(history) == ["round", "passes", "seconds", "primal", "dual", "relative_gap"]
    assert history["primal"].iloc[-1] == whole["certificate"]["primal"]
    assert history["passes"].iloc[-1] == whole["passes"]


def test_saved_model_has_the_auc_that_was_said(whole: dict[str, Any]) -> None:
    X, digit = load_digits(return_X_y=True)
    model = load_model(f"{whole['run']}/model")
    area = roc_auc_score(digit == 8, model.decision_function(X))
    assert area == pytest.approx(whole["metrics"]["train_auc"], abs=1e-12)
    confusion = read_metrics(whole["run"])["details"]["train"]["confusion"]
    assert int((model.predict(X) == 1).sum()) == confusion["tp"] + confusion["fp"]


def test_same_bits_again_and_from_a_resolved_configuration(whole: dict[str, Any], tmp_path: Path) -> None:
    again = trained(f"{whole['run']}/config.yaml", output=tmp_path)
    weights = [Path(result["run"], "model/weights.npy").read_bytes() for result in (again, whole)]
    assert weights[0] == weights[1]


def test_same_bits_from_worker_processes(tmp_path: Path) -> None:
    here, there = run(tmp_path, "name=here"), run(tmp_path, "name=there", "cluster={kind: local, workers: 2}")
    a, b = (load_model(f"{result['run']}/model") for result in (here, there))
    np.testing.assert_array_equal(a.coef, b.coef)
    same = ("metrics", "certificate", "passes", "n_samples", "n_pos")
    assert {key: here[key] for key in same} == {key: there[key] for key in same}


def test_passes_that_do_not_suffice_are_said(tmp_path: Path) -> None:
    observer = Following()
    settings = (*QUICK, "model.tol=1e-9", "model.max_passes=3")
    result = trained("digits", *settings, output=tmp_path, observer=observer)
    assert result["certificate"]["status"] == "max-passes"
    assert any("ConvergenceWarning" in line for line in observer.lines)


def test_on_a_scheduler_that_is_running_already(tmp_path: Path) -> None:
    here = run(tmp_path / "runs", "name=here")
    with local_client(workers=1) as client:
        cluster = f"cluster={{kind: address, address: '{client.scheduler.address}', scratch: '{tmp_path}/scratch'}}"
        there = run(tmp_path / "runs", "name=there", cluster)
        assert len(client.scheduler_info()["workers"]) == 1  # the cluster is not ours to end
    assert there["metrics"] == here["metrics"]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_scores_in_cells_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = run(tmp_path / "exact")
    monkeypatch.setattr("aucdist.metrics.counts.MAX_VALUES", 200)
    monkeypatch.setattr("aucdist.metrics.counts.MAX_CELLS", 100)
    result = run(tmp_path / "cells")
    details = read_metrics(result["run"])["details"]
    assert 0 < details["test"]["auc_error"] < 0.01
    assert abs(result["metrics"]["test_auc"] - exact["metrics"]["test_auc"]) <= details["test"]["auc_error"]
    assert "cells, with an error of at most" in page_of(result)
    assert read_metrics(exact["run"])["details"]["test"]["auc_error"] == 0.0


# ---- the figures that the README's configurations promise, on the real data sets --------------


@pytest.mark.parametrize(
    ("config", "rows", "auc", "passes"),
    [
        pytest.param("kddcup99", (395_217, 118, 4_228), 0.998, 100, marks=pytest.mark.slow),
        ("a9a", (32_561, 123, 7_841), 0.899, 40),
    ],
)
def test_certified_within_the_passes(data_dir, tmp_path, monkeypatch, config, rows, auc, passes):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    result = trained(config, "cluster=none", output=tmp_path)
    assert (result["n_samples"], result["n_features"], result["n_pos"]) == rows
    assert result["certificate"]["status"] == "converged"
    assert result["certificate"]["relative_gap"] <= 1e-3
    assert result["metrics"]["test_auc"] >= auc
    assert result["passes"] <= passes


# ---- a training run of pairs within groups: the split, the scores, the metrics and the pages --


def written(folder, *, graded):
    """Write rows of 60 users, one of whom has rows of one class only, and a configuration."""
    r = np.random.default_rng(0)
    user = r.integers(0, 60, 2000)
    X = r.normal(size=(2000, 3))
    X[:, 2] = r.normal(size=60)[user]
    relevance = X[:, 0] + 2 * X[:, 2] + r.normal(size=2000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(user=[f"u{u}" for u in user])
    frame["label"] = np.digitize(relevance, [-1, 0, 1]) if graded else (relevance > 0).astype(int)
    frame.loc[frame["user"] == "u7", "label"] = 0
    source = {"label": "label", "groups": "user"} | ({"labels": "grades"} if graded else {"positive": 1})
    write_config(folder, frame, source, {"test": {"fraction": 0.3}}, model={"lam": 0.01}, blocks=3)
    return frame


@pytest.mark.parametrize(("graded", "direct"), [(False, "true"), (True, "false")])
def test_run(tmp_path, graded, direct):
    frame = written(tmp_path, graded=graded)
    result = trained(tmp_path / "config.yaml", f"data.direct={direct}", output=tmp_path / "runs")
    scores = read_scores(result["run"])
    test_users = set(frame["user"][scores["row_id"]])
    train = frame.drop(index=scores["row_id"])
    assert not test_users & set(train["user"])  # users stay whole
    assert 0.25 < len(scores) / 2000 < 0.36
    labels = scores["grade"] if graded else (scores["y"] > 0).astype(int)
    assert np.array_equal(labels, frame["label"][scores["row_id"]])
    groups = result["groups"]
    with_pairs = int((train.groupby("user")["label"].nunique() > 1).sum())
    assert (groups["with_pairs"], groups["without_pairs"]) == (with_pairs, train["user"].nunique() - with_pairs)
    expected = group_auc(labels, scores["score"], groups=scores["group"])
    assert groups["metrics"]["group_auc"]["value"] == expected.mean
    assert groups["metrics"]["group_auc"]["interval"] == [expected.interval().low, expected.interval().high]
    assert expected.mean > 0.7
    ndcg = group_ndcg(labels, scores["score"], groups=scores["group"])
    assert groups["metrics"]["group_ndcg@10"]["value"] == ndcg.mean
    page = page_of(result)
    for _, value in group_rows(groups):
        assert value in page


def test_rows_without_groups_say_nothing_of_them(whole):
    assert "groups" not in whole


# ---- baselines are fitted to the training rows of the run, measured on its test rows, and stand in its report


UNSCALED = ["cluster=none", "model.tol=0.1", "data.scale=none"]


def test_baselines_stand_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.train.run.baselines", baselines)
    result = trained("digits", *UNSCALED, output=tmp_path)
    rows = read_rows(load_train("digits", UNSCALED).data)
    train, test = rows.train.block, rows.test.block
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.X, train.y)
    first = result["baselines"][0]
    scores = model.predict_proba(test.X)[:, 1]
    assert first["name"] == "logistic regression (defaults)"
    assert first["test_auc"] == pytest.approx(roc_auc_score(test.y, scores))
    assert first["average_precision"] == pytest.approx(average_precision_score(test.y, scores))
    kept, order = read_scores(result["run"]).sort_values("row_id"), np.argsort(test.row_id)
    own, y, scores = kept["score"].to_numpy(), test.y[order], scores[order]
    assert result["metrics"]["test_average_precision"] == pytest.approx(average_precision_score(y, own))
    assert [result["n_test_pos"], result["n_test_neg"]] == [(y > 0).sum(), (y < 0).sum()]
    estimate = average_precision_interval(y, own)
    assert result["metrics"]["test_average_precision_interval"] == [estimate.low, estimate.high]
    for key, test_of in (("test_auc", roc_auc_difference), ("average_precision", average_precision_difference)):
        difference = test_of(y, scores, own)
        assert first["differences"][key] == pytest.approx(asdict(difference))
        assert difference.value == pytest.approx(first[key] - result["metrics"][f"test_{key.removeprefix('test_')}"])
    k = int((y > 0).sum())  # without a target, models are compared by as many rows as are positive
    hits, own_hits = ((y[np.argsort(-column, kind="stable")[:k]] > 0).sum() for column in (scores, own))
    highest = [np.isin(np.arange(len(y)), np.argsort(-column, kind="stable")[:k]) for column in (own, scores)]
    misses = [~flags[y > 0] for flags in highest]
    expected = mean_cost_difference(np.ones(len(misses[0])) > 0, misses, np.ones(len(misses[0])))
    assert first["differences"]["recall"] == pytest.approx(asdict(expected))
    assert expected.value == pytest.approx((hits - own_hits) / k)
    assert first["rates"] == pytest.approx({"recall": hits / k, "precision": hits / k})
    assert result["decisions"]["r_precision"] == pytest.approx(own_hits / k)
    assert result["decisions"]["n_alerts"] == (own > 0).sum()
    assert read_metrics(result["run"])["baselines"] == result["baselines"]


def test_no_baselines_where_they_say_nothing() -> None:
    rows = read_rows(load_train("digits", UNSCALED).data)
    few = rows.train.of_block(rows.train.block.take(np.arange(99)))
    assert baselines(replace(rows, train=few), QUIET) == baselines(replace(rows, test=None), QUIET) == []


def test_a_lightgbm_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: str) -> None:
        raise InputError(f"{module} is installed, but cannot be loaded: libgomp.so.1")

    monkeypatch.setattr("flows.train.run.load_optional", refuse)
    observer = Following()
    made = baselines(read_rows(load_train("digits", UNSCALED).data), observer)
    assert [model.name for model in made] == ["logistic regression (defaults)"]
    assert observer.lines == ["  no baseline by LightGBM: lightgbm is installed, but cannot be loaded: libgomp.so.1"]


# ---- an estimator that scales and samples for itself, has two lams, and may have a kernel


MARGIN_MEAN = "model={estimator: MarginMeanClassifier, solver: {name: svrg, n_outer: 20}, random_state: 0, tol: 0.05}"
OF_MARGINS = ["cluster=none", "blocks=4", "data.scale=none", MARGIN_MEAN]
SEARCH = ["metric=g_mean", "rule=best", "nested=null"]


def run_margins(output: Path, *settings: str) -> dict[str, Any]:
    return trained("digits", *OF_MARGINS, *settings, output=output)


@pytest.fixture(scope="module")
def of_margins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_margins(tmp_path_factory.mktemp("runs"), "data.test=null")


def test_the_saved_model_calls_rows_as_the_metrics_say(of_margins: dict[str, Any]) -> None:
    folder = Path(of_margins["run"])
    assert folder.name.endswith("-digits-svrg")
    called = load_model(str(folder / "model")).predict(load_digits(return_X_y=True)[0])
    details = read_metrics(of_margins["run"])["details"]["train"]
    assert (called == 1).sum() == details["confusion"]["tp"] + details["confusion"]["fp"]
    assert details["g_mean"] > 0.9


def test_null_is_a_choice_and_stays_one(of_margins: dict[str, Any], tmp_path: Path) -> None:
    """All rows and no scaling; a configuration that is read again says the same."""
    first = run_margins(tmp_path, "data.test=null", "model.sampler=null", "model.scale=null")
    parameters = load_model(f"{first['run']}/model").about["parameters"]
    assert (parameters["sampler"], parameters["scale"]) == (None, None)
    assert first["certificate"] != of_margins["certificate"]
    again = trained(f"{first['run']}/config.yaml", output=tmp_path)
    weights = [Path(result["run"], "model/weights.npy").read_bytes() for result in (first, again)]
    assert weights[0] == weights[1]


def test_a_search_keeps_null(tmp_path: Path) -> None:
    settings = ["model.sampler=null", "grid={lam1: [0.0, 1.0]}", "folds={number: 2}", *SEARCH]
    search = searched("digits", *OF_MARGINS, *settings, output=tmp_path)
    assert search["best"]["lam1"] in (0.0, 1.0)
    parameters = load_model(f"{search['run']}/model").about["parameters"]
    assert parameters["sampler"] is None
    assert parameters["lam1"] == jsonable(search["best"]["lam1"])


def test_kernels_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"kernel is 'rbf'.*fit it in Python: MarginMeanClassifier\(kernel='rbf'\)"):
        load_train("digits", [*OF_MARGINS, "model.kernel=rbf"])
    with pytest.raises(InputError, match="kernel is 'rbf'"):
        load_cv("digits", [*OF_MARGINS, *SEARCH, "grid={kernel: [linear, rbf]}"])
