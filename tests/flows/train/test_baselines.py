"""Baselines are fitted to the training rows of the run, measured on its test rows, and stand in its report."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.runs import QUIET, page_of, trained

from aucdist.errors import InputError
from flows.progress.console import LineObserver
from flows.rows.source import read_rows
from flows.run_folder.folder import read_about
from flows.train.config import load_train
from flows.train.more_fits import baselines

QUICK = ["cluster=none", "model.tol=0.1", "data.scale=none"]


def test_baselines_stand_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.train.run.baselines", baselines)
    result = trained("digits", *QUICK, output=tmp_path)
    rows = read_rows(load_train("digits", QUICK).data)
    train, test = rows.train.block, rows.test.block
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.X, train.y)
    first = result["baselines"][0]
    scores = model.predict_proba(test.X)[:, 1]
    assert first["name"] == "Logistic regression"
    assert first["test_auc"] == pytest.approx(roc_auc_score(test.y, scores))
    assert first["average_precision"] == pytest.approx(average_precision_score(test.y, scores))
    assert read_about(result["run"])["baselines"] == result["baselines"]
    assert "Test AUC on the same split, with the defaults of the libraries: Logistic" in page_of(result)


def test_no_baselines_where_they_say_nothing() -> None:
    rows = read_rows(load_train("digits", QUICK).data)
    few = rows.train.of_block(rows.train.block.take(np.arange(99)))
    assert baselines(replace(rows, train=few), QUIET) == baselines(replace(rows, test=None), QUIET) == []


def test_a_lightgbm_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: str) -> None:
        raise InputError(f"{module} is installed, but cannot be loaded: libgomp.so.1")

    monkeypatch.setattr("flows.train.more_fits.load_optional", refuse)
    lines: list[str] = []
    made = baselines(read_rows(load_train("digits", QUICK).data), LineObserver(lines.append))
    assert [model["name"] for model in made] == ["Logistic regression"]
    assert lines == ["  no baseline by LightGBM: lightgbm is installed, but cannot be loaded: libgomp.so.1"]
