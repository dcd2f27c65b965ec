"""Our estimators behind the interfaces of two benchmarks of others, neither of which is installed here.

AutoGluon's class is the mock of `support.autogluon`, and the benchmark's data set one by the attributes that its page names.
"""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from support.autogluon import AbstractModel
from support.command_line import run

from aucdist.errors import InputError
from aucdist.metrics import group_auc
from benchmarks import groups as suite
from benchmarks.fraud import judge_scores, write_rows
from benchmarks.group_systems import GroupRows, System, by_folds


@pytest.fixture
def model_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Our model on the mock."""
    models: Any = ModuleType("autogluon.core.models")
    models.AbstractModel = AbstractModel
    for name, module in {"autogluon": ModuleType("autogluon"), "autogluon.core": ModuleType("autogluon.core")}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "autogluon.core.models", models)
    monkeypatch.delitem(sys.modules, "benchmarks.tabarena_model", raising=False)
    yield importlib.import_module("benchmarks.tabarena_model").AucdistModel
    sys.modules.pop("benchmarks.tabarena_model", None)


@pytest.fixture
def rows() -> pd.DataFrame:
    """Numbers, one of them missing at times, and categories as integers, as AutoGluon makes them of texts."""
    random = np.random.default_rng(0)
    kind = random.integers(0, 3, 150)
    age = random.normal(45, 12, 150)
    label = (age + 10 * kind + random.normal(0, 5, 150) > 60).astype(int)
    return pd.DataFrame(
        {"age": age, "size": np.where(np.arange(150) % 9, age, np.nan), "kind": pd.Categorical(kind), "label": label}
    )


@pytest.mark.parametrize("problem", ["binary", "multiclass"])
def test_model_fits_and_scores_as_autogluon_calls_it(model_class: Any, rows: pd.DataFrame, problem: str) -> None:
    y = rows["label"] if problem == "binary" else rows["kind"].astype(int)
    X = rows[["age", "size", "kind"]] if problem == "binary" else rows[["age", "size"]]
    model = model_class(problem_type=problem, hyperparameters={"lam": 1e-2, "tol": 1e-2})
    model.fit(X=X[:100], y=y[:100], sample_weight=None)
    test = X[100:].copy()
    test.iloc[0, 0] = np.nan  # the training rows had all ages
    proba = model.predict_proba(test)
    assert np.isfinite(proba).all()
    if problem == "binary":
        assert proba[y[100:] == 1].mean() > 0.3 + proba[y[100:] == 0].mean()
    else:
        assert proba.shape == (50, 3)
        assert np.allclose(proba.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore::aucdist.metrics.IntervalWarning")
def test_rows_of_the_fraud_benchmark_become_files_and_scores_are_judged(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    extra = {
        "EVENT_ID": [f"e{i}" for i in range(150)],
        "EVENT_TIMESTAMP": "2021-09-01T00:00:00Z",
        "ENTITY_TYPE": "user",
    }
    whole = rows.rename(columns={"label": "EVENT_LABEL"}).astype(str).assign(**extra)
    train, test = whole[:100].assign(LABEL_TIMESTAMP="2026-01-01T00:00:00Z"), whole[100:]
    labels = test[["EVENT_LABEL", "EVENT_ID"]]
    dataset = SimpleNamespace(key="mock", train=train, test=test.drop(columns="EVENT_LABEL"), test_labels=labels)
    write_rows(dataset, tmp_path)
    columns = ["age", "size", "kind", "EVENT_LABEL"]
    assert [list(pd.read_csv(name)) for name in ("train.csv", "test.csv")] == [columns, columns]
    out, _ = run("init", "train.csv", "--label", "EVENT_LABEL", "--json")
    assert json.loads(out)["positive"] == whole["EVENT_LABEL"][:100].value_counts().idxmin()
    Path("scores").mkdir()
    scores = pd.DataFrame({"row_id": np.arange(50), "score": rows["age"][100:].to_numpy()})
    scores.sample(frac=1, random_state=0).to_parquet("scores/part.parquet")
    counted = roc_auc_score(labels["EVENT_LABEL"] == json.loads(out)["positive"], scores["score"])
    assert f"AUC {counted:.3f}" in judge_scores(Path("test.csv"), Path("scores"))
    scores[:49].to_parquet("scores/part.parquet")
    with pytest.raises(InputError, match="49 scores"):
        judge_scores(Path("test.csv"), Path("scores"))
    with pytest.raises(InputError, match="of other rows"):
        write_rows(SimpleNamespace(**vars(dataset) | {"test_labels": labels[::-1]}), tmp_path)


# ---- the suite `groups` with systems that need no fit. No time is asserted --------------------


def rows_of(n_groups: int, size: int, most: int) -> GroupRows:
    """Return rows whose first column says much of the grade, and the second a little."""
    r = np.random.default_rng(7)
    group = np.repeat(np.arange(n_groups), size)
    grade = r.integers(0, most + 1, len(group)).astype(float)
    return GroupRows(grade[:, None] * (2.0, 0.3) + r.normal(size=(len(group), 2)), grade, group)


def column(j: int = 0):
    return j


def score_by(j: int, rows: GroupRows):
    return lambda X: X[:, j]


SYSTEMS = [
    System(suite.BESIDE, by_folds(column, [{"j": 1}, {"j": 0}], score_by)),
    System("second column", by_folds(column, [{"j": 1}], score_by)),
    System("gone", by_folds(column, [{}], score_by), "no_such_package"),
    System("slow", by_folds(column, [{}], score_by), slow=True),
]


def test_folds_choose_and_each_query_counts_once(monkeypatch):
    rows = rows_of(30, 10, 3)
    monkeypatch.setattr(suite, "queries", lambda: suite.GroupSet(rows, rows.group % 5, by_query=True))
    best, other = suite.groups(False, "lightgbm-rank", SYSTEMS)
    assert (best["system"], best["chosen"], other["system"]) == (suite.BESIDE, "j 0", "second column")
    assert best["groups"] == 30
    # Scaling by training rows keeps the order within a fold, and so within a query.
    assert best["GAUC"] == pytest.approx(group_auc(rows.grade, rows.X[:, 0], groups=rows.group).mean, abs=1e-12)
    over = f"GAUC over {suite.BESIDE}"
    assert other[over] == pytest.approx(other["GAUC"] - best["GAUC"], abs=1e-12)
    assert other["GAUC over, low"] < other[over] < other["GAUC over, high"] < 0.0


def test_large_groups_have_rows_held_out_and_no_interval(monkeypatch):
    rows = rows_of(4, 60, 1)
    data = suite._with_rows_held_out(rows.X, np.where(rows.grade > 0, 1, -1), rows.group)
    monkeypatch.setattr(suite, "areas", lambda: data)
    (row, *_) = suite.groups(False, "covtype by area", SYSTEMS)
    at = data.fold == 0
    assert row["GAUC"] == pytest.approx(group_auc(rows.grade[at], rows.X[at, 0], groups=rows.group[at]).mean, abs=1e-12)
    assert "GAUC low" not in row


def test_an_unknown_set():
    with pytest.raises(InputError, match="lightgbm-rank, covtype by area, kddcup99 by service"):
        next(suite.groups(False, "two"))
