"""Rows without a score stay without one elsewhere; what a target cannot express is an error that names what can."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from support.export_models import (
    DROP,
    QUOTES,
    SOURCE,
    by_onnx,
    by_reader,
    by_sql,
    model_of,
    page_reader,
    scores as expected_scores,
    table,
)
from support.linear_models import linear_model

from aucdist import PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.export import export, to_json, to_onnx, to_scorecard, to_sql
from aucdist.model import as_model
from aucdist.model.linear_model import LinearModel
from aucdist.probability.links import ProbabilityMap

STRICT = {**SOURCE, "missing": "refuse", "unknown": "error"}
SOUND = {"age": "20.5", QUOTES: "1.5", "seen": "2024-02-29 13:30:00", DROP: "a", "browser": "17"}
"""A row that has a score."""


def scores(model: LinearModel, rows: list[dict[str, str]], folder: Path) -> dict[str, np.ndarray]:
    """Return the scores of rows by the reader of the page, and by what else is installed; nan where there is none."""
    file = folder / "rows.csv"
    pd.DataFrame(rows).assign(row=range(len(rows))).to_csv(file, index=False)
    scores_of = {"json": by_reader(model, file)[0]}
    if find_spec("duckdb"):
        scored = by_sql(model, file)
        assert (scored["prediction"].isna() == scored["score"].isna()).all()
        scores_of["sql"] = scored["score"].to_numpy()
    if find_spec("onnxruntime"):
        graph = by_onnx(model, file)
        assert ((graph["prediction"] == 0) == np.isnan(graph["score"])).all()
        scores_of["onnx"] = graph["score"]
    return scores_of


@pytest.mark.parametrize("write", [to_json, to_onnx, to_scorecard, to_sql])
def test_an_estimator_is_exported_once_it_is_fitted(write: Callable[..., Any]) -> None:
    if write is to_onnx:
        pytest.importorskip("onnx")
    model = PairwiseHingeClassifier(features="bins", lam=0.1)
    with pytest.raises(
        InputError, match="a fitted estimator of aucdist is needed, not PairwiseHingeClassifier: call `fit`"
    ):
        write(model)
    rows = np.arange(20.0)[:, np.newaxis]
    assert str(write(model.fit(rows, rows[:, 0] > 10))) == str(write(as_model(model)))
    with pytest.raises(InputError, match="a fitted estimator of aucdist is needed, not Ridge"):
        write(Ridge())
    with pytest.raises(InputError, match="a fitted estimator of aucdist is needed, not Ridge"):
        export(Ridge(), "sql")


@pytest.mark.parametrize("features", [None, {"map": "bins", "bins": 5}], ids=["linear", "bins"])
def test_rows_that_are_refused(tmp_path: Path, features: Any) -> None:
    model = model_of(
        tmp_path, table(200, 2, missing=False), features=features, impute="refuse", source=STRICT, log1p=[QUOTES],
    )  # fmt: skip
    refused = [{name: ""} for name in ("age", QUOTES, "seen", DROP)]
    refused += [{DROP: "new"}, {"browser": "new"}, {QUOTES: "-1"}, {QUOTES: "-3"}]
    for by, values in scores(model, [SOUND, *({**SOUND, **change} for change in refused)], tmp_path).items():
        assert np.isfinite(values[0]), by
        assert np.isnan(values[1:]).all(), by


def test_rules_for_missing_and_unknown_values(tmp_path: Path) -> None:
    rows = table(300, 3)
    for unknown, same_as in (("ignore", None), ("as-missing", "")):
        source = {**SOURCE, "unknown": unknown}
        model = model_of(tmp_path, rows, source=source)
        texts = ("never seen", "", "?", " NaN ", "(missing)", " a ", SOUND[DROP])
        categories = [{DROP: text} for text in texts]
        values = scores(model, [{**SOUND, **change} for change in categories], tmp_path)
        for by, (unseen, missing, *others) in values.items():
            assert np.isfinite([unseen, missing]).all(), by
            assert others[0] == others[2] == missing, by
            assert (unseen == missing) == (same_as is not None), by
            if by == "onnx":  # its texts have no blanks around them
                continue
            assert others[1] == missing, by
            assert others[3] == others[4], by


def test_hashed_columns_go_to_json_alone(tmp_path: Path) -> None:
    rows = table(200, 4, missing=False)
    source = {**SOURCE, "hashed": {"browser": 4}, "categorical": [DROP]}
    model = model_of(tmp_path, rows, source=source, scale="maxabs")
    file = tmp_path / "training.csv"
    reader, content = page_reader(), json.loads(to_json(model))
    values = [reader["score_of"](content, row) for row in csv.DictReader(io.StringIO(file.read_text()))]
    np.testing.assert_allclose(values, expected_scores(model, file), rtol=1e-9)
    with pytest.raises(InputError, match=r"sql has no BLAKE2 hash.*'browser'.*export to json"):
        to_sql(model)
    with pytest.raises(InputError, match="onnx has no BLAKE2 hash"):
        to_onnx(model)


def test_too_many_landmarks_for_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(tmp_path, table(100, 5), features={"map": "nystroem", "landmarks": 20})
    monkeypatch.setattr("aucdist.export.sql.MAX_PRODUCTS", 100)
    with pytest.raises(InputError, match=r"20 landmarks of 15 features .* export to onnx or json"):
        to_sql(model)


def test_other_feature_maps_are_refused(tmp_path: Path) -> None:
    model = model_of(tmp_path, table(100, 5))
    other: Any = object()
    unknown = linear_model(model.coef, 0.0, model.schema, model.preprocessor, {}, None, other)
    with pytest.raises(InputError, match="feature map object cannot be exported: use none"):
        to_json(unknown)


@dataclass(frozen=True, eq=False)
class OtherMap(ProbabilityMap):
    """A map from scores to probabilities that no target knows."""

    def _both(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return scores, scores

    def shifted(self, by: float) -> "OtherMap":
        return self

    def to_json(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(("package", "exported"), [("json", to_sql), ("onnx", to_onnx)])
def test_other_probability_maps_are_refused(tmp_path: Path, package: str, exported: Any) -> None:
    pytest.importorskip(package)
    model = model_of(tmp_path, table(60, 7)).with_weights(probability=OtherMap(1.0))
    with pytest.raises(InputError, match="probabilities by OtherMap cannot be exported"):
        exported(model)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(tmp_path, table(60, 6))
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install '.\[onnx\]'"):
        to_onnx(model)
