"""Contributions that leave with the scores: what each adds, and by how much their sum differs from the score."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.export_models import by_onnx, by_sql, model_of, page_reader, table
from test_export_formats import MODELS, needs_pairs, rows_csv  # noqa: F401

from aucdist.batch_scoring import to_score
from aucdist.data.shards.reading import open_reader
from aucdist.data.sources import parse_source
from aucdist.errors import InputError
from aucdist.export import to_json, to_onnx, to_sql
from aucdist.linear_model import LinearModel
from aucdist.maps.explain import MOST_CONTRIBUTIONS, exported_names, with_rounding

NAMES = ["linear", "linear logs", "linear unit rows", "bins scaled", "bins unit rows", "bins one-hot"]
NAMES += ["pairs", "pairs scaled"]
READER = page_reader()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LinearModel]:
    folder, rows = tmp_path_factory.mktemp("models"), table(400, 1)
    return {name: model_of(folder, rows, **MODELS[name]) for name in NAMES}


def explained(model: LinearModel, file: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return what `LinearModel.explain` says of the rows of a CSV file, and their scores."""
    source = parse_source({"source": str(file), "format": "csv"}, file.name, labelled=False)
    X = open_reader(to_score(source, model), schema=model.schema, labelled=False).read(0).X
    return model.explain(X), model.decision_function(X)


@needs_pairs
@pytest.mark.parametrize("name", NAMES)
def test_in_sql_the_score_is_the_sum_of_the_columns(name, models, rows_csv) -> None:  # noqa: F811
    model, names = models[name], models[name].contribution_names()
    expected, scores = explained(model, rows_csv)
    found = by_sql(model, rows_csv, contributions=True)
    size = max(1.0, np.abs(expected.to_numpy()).sum(axis=1).max())
    np.testing.assert_allclose(found[names], expected.to_numpy(), atol=1e-10 * size)
    np.testing.assert_allclose(found["score"], scores, atol=1e-10 * size)

    def halves(columns: list[str]) -> np.ndarray:
        if len(columns) > 4:
            middle = len(columns) // 2
            return halves(columns[:middle]) + halves(columns[middle:])
        total = found[columns[0]].to_numpy()
        for column in columns[1:]:
            total = total + found[column].to_numpy()
        return total

    np.testing.assert_array_equal(halves(names), found["score"])  # to the last bit, added as the query adds
    from_left = found[names].to_numpy().cumsum(axis=1)[:, -1]
    assert np.abs(from_left - found["score"]).max() <= len(names) * np.finfo(float).eps * size


@needs_pairs
@pytest.mark.parametrize("name", NAMES)
def test_in_onnx_the_sum_is_the_score_up_to_its_rounding(name, models, rows_csv) -> None:  # noqa: F811
    model = models[name]
    found = by_onnx(model, rows_csv, contributions=True)
    parts, names = found["contributions"], model.contribution_names()
    assert found["names"].tolist() == names
    expected, _ = explained(model, rows_csv)
    size = np.maximum(1.0, np.abs(expected.to_numpy()).sum(axis=1))
    assert parts.shape == (len(expected), len(names))
    np.testing.assert_allclose(parts, expected.to_numpy(), atol=1e-10 * size.max())
    assert (np.abs(parts.sum(axis=1) - found["score"]) <= len(names) * np.finfo(float).eps * size).all()


@needs_pairs
@pytest.mark.parametrize("name", ["linear", "bins scaled", "pairs"])
def test_json_names_them_in_their_order(name, models, rows_csv) -> None:  # noqa: F811
    model = models[name]
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
    with pytest.raises(InputError, match="two contributions are named 'adds_a'"):
        exported_names(["a", "a"], {"": None})
    with pytest.raises(InputError, match=f"at most {MOST_CONTRIBUTIONS} can be written"):
        exported_names([f"x{j}" for j in range(MOST_CONTRIBUTIONS)], {"": None})
