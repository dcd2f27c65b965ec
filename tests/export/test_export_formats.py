"""Exported models score rows as `aucdist score` does: every map, scaling and calibration, in ONNX, SQL and JSON."""

import csv
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from support.export_models import DROP, QUOTES, SOURCE, by_onnx, by_reader, by_sql, model_of, page_reader, scores, table
from support.linear_models import linear_model

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.reading import open_rows
from aucdist.data.sources import parse_source
from aucdist.errors import InputError
from aucdist.export import to_json, to_onnx, to_sql
from aucdist.export.portable import edges_in_units
from aucdist.maps.explain import MAX_CONTRIBUTIONS, explanation, exported_names, with_rounding
from aucdist.model.batch_scoring import source_for_scoring
from aucdist.model.linear_model import LinearModel
from aucdist.probability.links import IsotonicMap, Link, LinkMap

LOGIT = LinkMap(2.0, Link("logit"), 0.7, -0.2)
KEEP = {"impute": "keep", "scale": "none"}
SMALL = {"scale": "unit-row", "source": {**SOURCE, "dates": {"seen": ["month", "hour"]}}}
MODELS: dict[str, dict[str, Any]] = {
    "linear": {},
    "linear logs": {"log1p": [QUOTES], "scale": "minmax", "impute": "mean", "probability": LOGIT},
    "linear maxabs": {"scale": "maxabs"},
    "linear unit rows": {**SMALL, "log1p": [QUOTES]},
    "bins": {"features": {"map": "bins", "bins": 8}, **KEEP, "probability": LOGIT},
    "bins scaled": {"features": {"map": "bins", "bins": 30}, "log1p": [QUOTES]},
    "bins unit rows": {"features": {"map": "bins", "bins": 8}, **SMALL},
    "bins one-hot": {"features": {"map": "bins", "bins": 8, "basis": "one-hot", "linear": "drop"}, **KEEP},
    "bins hat": {"features": {"map": "bins", "basis": "hat"}, **KEEP},
    "pairs": {"features": {"map": "bins", "bins": 8, "interactions": 30}, **KEEP},
    "pairs scaled": {"features": {"map": "bins", "bins": 40, "interactions": 30}, "log1p": [QUOTES]},
    "leaves": {"features": {"map": "leaves", "trees": 8, "leaves": 9}, **KEEP},
    "leaves scaled": {"features": {"map": "leaves", "trees": 8, "leaves": 9}, "log1p": [QUOTES], "probability": LOGIT},
    "landmarks": {"features": {"map": "nystroem", "landmarks": 30}},
    "landmarks unit rows": {"features": {"map": "nystroem", "landmarks": 30, "linear": "drop"}, **SMALL},
}


@pytest.fixture(scope="module")
def rows_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows to score, among them categories that the training rows did not have, and numbers on the edges of bins."""
    file = tmp_path_factory.mktemp("rows") / "new.csv"
    rows = table(120, 5).drop(columns="clicked")
    rows.loc[3, DROP] = "'never' seen\"; --"
    rows["row"] = np.arange(len(rows))
    rows.loc[:40, "age"] = np.arange(41) / 4 + 15
    rows.to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LinearModel]:
    folder, rows = tmp_path_factory.mktemp("models"), table(400, 1)
    return {name: model_of(folder, rows, **options) for name, options in MODELS.items()}


def by_postgresql(model: LinearModel, file: Path) -> pd.DataFrame:
    """Return what PostgreSQL makes of the query, in the order of the rows."""
    url = os.environ.get("AUCDIST_POSTGRES")
    if url is None:
        pytest.skip("no PostgreSQL server: AUCDIST_POSTGRES=postgresql+psycopg://user:password@host/database names one")
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install '.[sql]'")
    frame = pd.read_csv(file, dtype={DROP: object, "browser": object}, keep_default_na=False, na_values=[""])
    frame["seen"] = pd.to_datetime(frame["seen"])
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:  # whose transaction is never committed
        frame.to_sql("rows", connection, if_exists="replace", index=False)
        answer = connection.exec_driver_sql(to_sql(model, ids=["row"]).replace("%", "%%"))
        table = pd.DataFrame(answer.fetchall(), columns=list(answer.keys()))
    engine.dispose()
    return table.sort_values("row", ignore_index=True)


@pytest.mark.parametrize("name", list(MODELS))
def test_scores_are_those_of_the_model(name: str, models: dict[str, LinearModel], rows_csv: Path) -> None:
    model = models[name]
    expected = scores(model, rows_csv)
    assert np.std(expected) > 0.01
    size = max(1.0, np.abs(expected).max())
    read, probabilities = by_reader(model, rows_csv)
    np.testing.assert_allclose(read, expected, atol=1e-9 * size)
    if probabilities is not None:
        assert model.probability is not None
        np.testing.assert_allclose(probabilities, model.probability(expected)[:, 1], atol=1e-9)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("by", [by_sql, by_postgresql, by_onnx], ids=["duckdb", "postgresql", "onnx"])
def test_other_systems_agree(name: str, by: Any, models: dict[str, LinearModel], rows_csv: Path) -> None:
    model = models[name]
    expected, table = scores(model, rows_csv), by(model, rows_csv)
    np.testing.assert_allclose(table["score"], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
    np.testing.assert_array_equal(table["prediction"], np.where(expected > 0, 1, -1))
    assert ("probability" in table) == (model.probability is not None)
    if model.probability is not None:
        np.testing.assert_allclose(table["probability"], model.probability(expected)[:, 1], atol=1e-9)


def test_a_category_that_is_refused_has_no_score_where_missing_numbers_are_filled_in(tmp_path: Path) -> None:
    model = model_of(tmp_path, table(200, 1), source={**SOURCE, "unknown": "error"})
    file, rows = tmp_path / "new.csv", table(2, 5, missing=False).assign(row=[0, 1])
    rows.assign(browser=["chrome", "lynx"]).to_csv(file, index=False)
    for column in (by_reader(model, file)[0], by_sql(model, file)["score"], by_onnx(model, file)["score"]):
        assert np.isnan(column).tolist() == [False, True]


def test_numbers_are_the_same_however_they_are_written(tmp_path: Path) -> None:
    model = model_of(tmp_path, table(200, 1), source={**SOURCE, "missing_values": ["20"]})
    file, rows = tmp_path / "new.csv", table(3, 5, missing=False).assign(row=range(3))
    rows.assign(age=["20", "20.0", ""], browser=["17", "17.0", "17"]).to_csv(file, index=False)
    expected = scores(model, file)
    for column in (by_reader(model, file)[0], by_sql(model, file)["score"], by_onnx(model, file)["score"]):
        np.testing.assert_allclose(column, expected, rtol=1e-9)


def test_a_tree_that_asks_only_whether_a_value_is_missing(tmp_path: Path) -> None:
    rows = table(400, 1).assign(seen="2024-01-01", browser="chrome", **{QUOTES: 1.0, DROP: "a"})
    rows["age"] -= 14  # LightGBM puts the threshold at infinity if there are numbers on both sides of 0
    rows["clicked"] = np.where(rows["age"].isna(), "yes", "no")
    model = model_of(tmp_path, rows, features={"map": "leaves", "trees": 1}, **KEEP)
    file = tmp_path / "new.csv"
    rows.assign(row=range(400)).to_csv(file, index=False)
    assert model.feature_map is not None
    assert model.feature_map.forest.thresholds.tolist() == [np.inf]
    np.testing.assert_allclose(by_reader(model, file)[0], scores(model, file), rtol=1e-9)


PROBABILITIES = {
    "logit": LOGIT,
    "probit": LinkMap(0.3, Link("probit"), 2.0, 0.1),
    "cloglog": LinkMap(1.0, Link("cloglog"), 0.8, 0.1),
    "gev": LinkMap(1.0, Link("gev", 0.4), 1.5, 0.1),
    "gev below": LinkMap(5.0, Link("gev", -0.6), 1.5, 0.1),
    "gumbel": LinkMap(1.0, Link("gev", 0.0), 1.5, 0.1),
    "isotonic": IsotonicMap(1.5, np.array([-2.0, -1.0, -1.0, 0.5, 0.5, 3.0]), np.array([0.0, 0.1, 0.2, 0.2, 0.7, 0.9])),
    "one point": IsotonicMap(1.0, np.array([0.5]), np.array([0.25])),
}
POINTS = np.array([*np.linspace(-45, 45, 300), -1.0, 0.5, 3.0, -2.0, -900.0, 900.0, 0.0])


@pytest.fixture(scope="module")
def points_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("points") / "points.csv"
    pd.DataFrame({"row": np.arange(len(POINTS)), "x": POINTS}).to_csv(file, index=False)
    return file


@pytest.mark.parametrize("name", list(PROBABILITIES))
@pytest.mark.parametrize("by", [lambda *args: {"probability": by_reader(*args)[1]}, by_sql, by_onnx],
                         ids=["json", "sql", "onnx"])  # fmt: skip
def test_probabilities(name: str, by: Any, points_csv: Path) -> None:
    schema, as_read = Schema(("x",), "clicked", ("yes",), ("no",), {}), Preprocessor((), "none", None, None)
    model = linear_model(np.ones(1), 0.0, schema, as_read, {}, PROBABILITIES[name])
    p = by(model, points_csv)["probability"]
    np.testing.assert_allclose(p, PROBABILITIES[name](POINTS)[:, 1], rtol=1e-6, atol=1e-12)


# ---- edges in the units of a column: the same values lie above them as above the edges of the scaled values


shifts = st.floats(-1e6, 1e6)
factors = st.floats(1e-6, 1e6)
values = st.floats(-0.9, 1e8)


@given(st.lists(values, min_size=1, max_size=5), shifts, factors, st.booleans())
def test_values_on_both_sides_of_an_edge_stay_there(on: list[float], shift: float, factor: float, logged: bool) -> None:
    preprocessor = Preprocessor((0,) if logged else (), "standard", np.array([shift]), np.array([factor]))

    def scaled(x: np.ndarray) -> np.ndarray:
        return preprocessor.transform(Block.of(x[:, np.newaxis], np.ones(len(x), dtype=np.int8))).X[:, 0]

    edges = np.sort(scaled(np.array(on)))  # values lie exactly on them
    units = edges_in_units(edges, 0, preprocessor)
    assert (np.diff(units) >= 0).all()
    assert (scaled(units) <= edges).all()
    assert (scaled(np.nextafter(units, np.inf)) > edges).all()


def test_without_a_scaling_edges_stay_as_they_are() -> None:
    edges = np.array([0.5, 1.5])
    assert edges_in_units(edges, 0, Preprocessor((), "none", None, None)) is edges


@pytest.mark.parametrize("edge", [-1e300, 0.0, 5e-324, 1e300])
def test_edges_at_the_ends_of_floating_point(edge: float) -> None:
    preprocessor = Preprocessor((), "maxabs", None, np.array([1.0]))
    assert edges_in_units(np.array([edge]), 0, preprocessor).tolist() == [edge]


# ---- contributions that leave with the scores: what each adds, and by how much their sum differs from the score ----


NAMES = ["linear", "linear logs", "linear unit rows", "bins scaled", "bins unit rows", "bins one-hot"]
NAMES += ["pairs", "pairs scaled"]
READER = page_reader()


@pytest.fixture(scope="module")
def models_of_contributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LinearModel]:
    folder, rows = tmp_path_factory.mktemp("models"), table(400, 1)
    return {name: model_of(folder, rows, **MODELS[name]) for name in NAMES}


def explained(model: LinearModel, file: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return what each feature adds to the scores of the rows of a CSV file, and their scores."""
    source = parse_source({"source": str(file), "format": "csv"}, file.name, labelled=False)
    X = open_rows(source_for_scoring(source, model), schema=model.schema, labelled=False).read(0).X
    features = model.schema.feature_names
    adds = explanation(model.encoded(X), features, model.coef, model.intercept, model.feature_map)
    pd.testing.assert_series_equal(adds.sum(axis=1), model.explain(X).sum(axis=1))  # one term for each column
    return adds, model.decision_function(X)


@pytest.mark.parametrize("name", NAMES)
def test_in_sql_the_score_is_the_sum_of_the_columns(name, models_of_contributions, rows_csv) -> None:
    model, names = models_of_contributions[name], models_of_contributions[name].contribution_names()
    expected, scores = explained(model, rows_csv)
    table = by_sql(model, rows_csv, contributions=True)
    size = max(1.0, np.abs(expected.to_numpy()).sum(axis=1).max())
    np.testing.assert_allclose(table[names], expected.to_numpy(), atol=1e-10 * size)
    np.testing.assert_allclose(table["score"], scores, atol=1e-10 * size)

    def halves(columns: list[str]) -> np.ndarray:
        if len(columns) > 4:
            middle = len(columns) // 2
            return halves(columns[:middle]) + halves(columns[middle:])
        total = table[columns[0]].to_numpy()
        for column in columns[1:]:
            total = total + table[column].to_numpy()
        return total

    np.testing.assert_array_equal(halves(names), table["score"])  # to the last bit, added as the query adds
    from_left = table[names].to_numpy().cumsum(axis=1)[:, -1]
    assert np.abs(from_left - table["score"]).max() <= len(names) * np.finfo(float).eps * size


@pytest.mark.parametrize("name", NAMES)
def test_in_onnx_the_sum_is_the_score_up_to_its_rounding(name, models_of_contributions, rows_csv) -> None:
    model = models_of_contributions[name]
    graph = by_onnx(model, rows_csv, contributions=True)
    parts, names = graph["contributions"], model.contribution_names()
    assert graph["names"].tolist() == names
    expected, _ = explained(model, rows_csv)
    size = np.maximum(1.0, np.abs(expected.to_numpy()).sum(axis=1))
    assert parts.shape == (len(expected), len(names))
    np.testing.assert_allclose(parts, expected.to_numpy(), atol=1e-10 * size.max())
    assert (np.abs(parts.sum(axis=1) - graph["score"]) <= len(names) * np.finfo(float).eps * size).all()


@pytest.mark.parametrize("name", ["linear", "bins scaled", "pairs"])
def test_json_names_them_in_their_order(name, models_of_contributions, rows_csv) -> None:
    model = models_of_contributions[name]
    content = json.loads(to_json(model, contributions=True))
    assert content["contributions"] == model.contribution_names()
    assert "contributions" not in json.loads(to_json(model))
    score = content["score"]
    assert len(content["contributions"]) == 1 + len(score.get("weights", [])) + len(score.get("shapes", [])) + len(
        score.get("pairs", [])
    )
    if "shapes" in score:
        for shape, adds in zip(score["shapes"], content["contributions"], strict=False):
            assert adds == f"adds_{content['features'][shape['feature']]['name']}"
    with rows_csv.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert math.isfinite(READER["score_of"](content, rows[5]))  # the reader of the page takes it as before


@given(st.integers(0, 10**9), st.floats(0.0, 8.0))
def test_with_the_rounding_the_sum_is_the_score_to_the_last_bit(seed, spread) -> None:
    r = np.random.default_rng(seed)
    values = r.normal(size=(50, 6)) * 10.0 ** r.uniform(-spread, spread, 6)
    scores = np.array([math.fsum(row) for row in values])
    names = exported_names(list("abcde"), {"": None})
    columns = with_rounding(pd.DataFrame(values), scores, names, "")
    assert list(columns) == [*names, "adds_rounding"]
    total = np.zeros(50)
    for column in columns.values():
        total = total + column
    exact = total == scores
    size = np.abs(values).sum(axis=1)
    assert exact[np.abs(scores) > 1e-9 * size].all()
    assert (np.abs(total - scores) <= 1e-24 * size).all()
    assert (np.abs(columns["adds_rounding"]) <= 1e-15 * size).all()


def test_what_has_no_contributions_is_refused(tmp_path: Path) -> None:
    leaves = model_of(tmp_path, table(100, 1), features={"map": "nystroem", "landmarks": 10})
    for make in (to_sql, to_json, to_onnx):
        with pytest.raises(InputError, match="mixes all features"):
            make(leaves, contributions=True)
    names = ["adds_constant", "adds_constant_", "adds_constant__"]  # the last is the constant
    assert exported_names(["constant", "constant_"], {"": None}) == names
    with pytest.raises(InputError, match="two contributions have the name 'adds_a'"):
        exported_names(["a", "a"], {"": None})
    with pytest.raises(InputError, match=f"at most {MAX_CONTRIBUTIONS} can be written"):
        exported_names([f"x{j}" for j in range(MAX_CONTRIBUTIONS)], {"": None})
