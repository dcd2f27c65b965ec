"""A whole run: what is in its folder, and that where it runs does not change what it finds."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from support.runs import page_of, trained

from aucdist.engine.dask import local_client
from aucdist.errors import InputError
from aucdist.metrics.groups import auc_of_groups, ndcg_of_groups
from aucdist.model import load_model
from aucdist.report.text import group_rows
from flows.progress.console import LineObserver
from flows.run_folder.folder import read_about
from flows.run_folder.scores import read_scores

QUICK = ["cluster=none", "blocks=4", "model.tol=0.05", "model.lam=0.01"]


def run(output: object, *settings: str) -> dict[str, Any]:
    return trained("digits", *QUICK, *settings, output=output)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run on all digits, without a test set."""
    return run(tmp_path_factory.mktemp("runs"), "data.test=null")


def test_files_of_the_run(whole: dict[str, Any]) -> None:
    folder = Path(whole["run"])
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert found == {
        "config.yaml", "history.parquet", "metrics.json", "model/digests.npy", "model/model.json", "model/profile.json",
        "model/weights.npy", "report.html", "threshold.parquet",
    }  # fmt: skip
    assert list(folder.parent.iterdir()) == [folder]


def test_metrics_hold_the_result_and_more(whole: dict[str, Any]) -> None:
    metrics = read_about(whole["run"])
    assert {key: metrics[key] for key in whole} == whole
    assert (whole["n_samples"], whole["metrics"]["test_auc"], whole["metrics"]["test_auc_interval"]) == (
        1797,
        None,
        None,
    )
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
    confusion = read_about(whole["run"])["details"]["train"]["confusion"]
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
    lines: list[str] = []
    settings = (*QUICK, "model.tol=1e-9", "model.max_passes=3")
    result = trained("digits", *settings, output=tmp_path, observer=LineObserver(lines.append))
    assert result["certificate"]["status"] == "max-passes"
    assert any("ConvergenceWarning" in text for text in lines)


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
    monkeypatch.setattr("aucdist.metrics.counts.MOST_VALUES", 200)
    monkeypatch.setattr("aucdist.metrics.counts.MOST_CELLS", 100)
    result = run(tmp_path / "cells")
    details = read_about(result["run"])["details"]
    assert 0 < details["test"]["auc_error"] < 0.01
    assert abs(result["metrics"]["test_auc"] - exact["metrics"]["test_auc"]) <= details["test"]["auc_error"]
    assert "cells, which changes it by at most" in page_of(result)
    assert read_about(exact["run"])["details"]["test"]["auc_error"] == 0.0


def test_a_number_of_threads_that_means_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="n_jobs is 0"):
        run(tmp_path, "cluster={kind: none, n_jobs: 0}")


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


# ---- a training run of pairs within groups: the split, the scores, the measures and the pages -


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
    frame.to_csv(folder / "rows.csv", index=False)
    source = {"source": str(folder / "rows.csv"), "format": "csv", "label": "label", "groups": "user"}
    source |= {"labels": "grades"} if graded else {"positive": 1}
    content = {
        "name": "users", "data": {"source": source, "test": {"fraction": 0.3}}, "model": {"lam": 0.01},
        "cluster": "none", "blocks": 3,
    }  # fmt: skip
    (folder / "users.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return frame


@pytest.mark.parametrize(("graded", "direct"), [(False, "true"), (True, "false")])
def test_run(tmp_path, graded, direct):
    frame = written(tmp_path, graded=graded)
    result = trained(tmp_path / "users.yaml", f"data.direct={direct}", output=tmp_path / "runs")
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
    found = auc_of_groups(labels, scores["score"], groups=scores["group"])
    assert groups["measures"]["group_auc"]["value"] == found.mean
    assert groups["measures"]["group_auc"]["interval"] == list(found.interval())
    assert found.mean > 0.7
    ndcg = ndcg_of_groups(labels, scores["score"], groups=scores["group"])
    assert groups["measures"]["ndcg@10"]["value"] == ndcg.mean
    page = page_of(result)
    for _, value in group_rows(groups):
        assert value in page
    assert "of one of" in page


def test_rows_without_groups_say_nothing_of_them(whole):
    assert "groups" not in whole
