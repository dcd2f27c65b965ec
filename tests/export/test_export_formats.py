"""Exported models score rows as `aucdist score` does: every map, scaling and calibration, in ONNX, SQL and JSON."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.export_models import DROP, QUOTES, SOURCE, by_onnx, by_reader, by_sql, model_of, scores, table
from support.linear_models import linear_model

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.export import to_sql
from aucdist.export.portable import edges_in_units
from aucdist.linear_model import LinearModel
from aucdist.objectives.links import Link
from aucdist.objectives.probability_maps import IsotonicMap, LinkMap

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
    "pairs": {"features": {"map": "bins", "bins": 8, "pairs": 30}, **KEEP},
    "pairs scaled": {"features": {"map": "bins", "bins": 40, "pairs": 30}, "log1p": [QUOTES]},
    "leaves": {"features": {"map": "leaves", "trees": 8, "leaves": 9}, **KEEP},
    "leaves scaled": {"features": {"map": "leaves", "trees": 8, "leaves": 9}, "log1p": [QUOTES], "probability": LOGIT},
    "landmarks": {"features": {"map": "nystroem", "landmarks": 30}},
    "landmarks unit rows": {"features": {"map": "nystroem", "landmarks": 30, "linear": "drop"}, **SMALL},
}
needs_pairs = pytest.mark.filterwarnings("ignore:pairs=")


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
    return {name: model_of(folder, rows, **given) for name, given in MODELS.items()}


def by_postgresql(model: LinearModel, file: Path) -> pd.DataFrame:
    """Return what PostgreSQL makes of the query, in the order of the rows."""
    url = os.environ.get("AUCDIST_POSTGRES")
    if url is None:
        pytest.skip("no PostgreSQL server: AUCDIST_POSTGRES=postgresql+psycopg://user:password@host/database names one")
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: pip install 'aucdist[sql]'")
    frame = pd.read_csv(file, dtype={DROP: object, "browser": object}, keep_default_na=False, na_values=[""])
    frame["seen"] = pd.to_datetime(frame["seen"])
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:  # whose transaction is never committed
        frame.to_sql("rows", connection, if_exists="replace", index=False)
        found = connection.exec_driver_sql(to_sql(model, ids=["row"]).replace("%", "%%"))
        table = pd.DataFrame(found.fetchall(), columns=list(found.keys()))
    engine.dispose()
    return table.sort_values("row", ignore_index=True)


@needs_pairs
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
    expected, found = scores(model, rows_csv), by(model, rows_csv)
    np.testing.assert_allclose(found["score"], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
    np.testing.assert_array_equal(found["prediction"], np.where(expected > 0, 1, -1))
    assert ("probability" in found) == (model.probability is not None)
    if model.probability is not None:
        np.testing.assert_allclose(found["probability"], model.probability(expected)[:, 1], atol=1e-9)


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
@pytest.mark.parametrize("by", [lambda *given: {"probability": by_reader(*given)[1]}, by_sql, by_onnx],
                         ids=["json", "sql", "onnx"])  # fmt: skip
def test_probabilities(name: str, by: Any, points_csv: Path) -> None:
    schema, as_read = Schema(("x",), "clicked", ("yes",), ("no",), {}), Preprocessor((), "none", None, None)
    model = linear_model(np.ones(1), 0.0, schema, as_read, {}, PROBABILITIES[name])
    found = by(model, points_csv)["probability"]
    np.testing.assert_allclose(found, PROBABILITIES[name](POINTS)[:, 1], rtol=1e-6, atol=1e-12)


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
    found = edges_in_units(edges, 0, preprocessor)
    assert (np.diff(found) >= 0).all()
    assert (scaled(found) <= edges).all()
    assert (scaled(np.nextafter(found, np.inf)) > edges).all()


def test_without_a_scaling_edges_stay_as_they_are() -> None:
    edges = np.array([0.5, 1.5])
    assert edges_in_units(edges, 0, Preprocessor((), "none", None, None)) is edges


@pytest.mark.parametrize("edge", [-1e300, 0.0, 5e-324, 1e300])
def test_edges_at_the_ends_of_floating_point(edge: float) -> None:
    preprocessor = Preprocessor((), "maxabs", None, np.array([1.0]))
    assert edges_in_units(np.array([edge]), 0, preprocessor).tolist() == [edge]
