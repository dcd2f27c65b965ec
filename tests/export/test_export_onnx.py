"""ONNX graphs: dates of all centuries, names that are taken, columns in any order."""

import json
from datetime import datetime, timedelta

import numpy as np
import pytest
from support.export_models import model_of_missing_values, parts_of
from support.linear_models import linear_model

from aucdist.data.block import Block
from aucdist.data.dataset import PARTS, Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.engine.blocks import LocalBlocks
from aucdist.export import to_onnx
from aucdist.export.onnx_model import IR_VERSION, OPSET
from aucdist.maps import BinExpander
from aucdist.model.linear_model import LinearModel

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install '.[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")


def session(model: LinearModel):
    return runtime.InferenceSession(to_onnx(model).SerializeToString())


def linear(schema: Schema, weights: np.ndarray) -> LinearModel:
    return linear_model(weights, 0.0, schema, Preprocessor((), "none", None, None), {})


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_dates(part: str) -> None:
    r = np.random.default_rng(0)
    dates = [datetime(1, 1, 1) + timedelta(minutes=int(m)) for m in r.integers(0, 3000 * 365 * 1440, 400)]
    days = ((1, 1), (2, 28), (3, 1), (12, 31))
    dates += [datetime(y, m, d) for y in (1600, 1900, 1970, 2000, 2024, 2100) for m, d in days]
    dates += [datetime(y, 2, 29, 23, 59, 59, 999_999) for y in (4, 1600, 2000, 2024)]
    schema = Schema((f"at.{part}",), "y", ("1",), ("0",), {}, dates={"at": (part,)})
    seconds = np.array([*dates, None], dtype="datetime64[us]").astype(np.int64)
    (*parts, missing) = session(linear(schema, np.ones(1))).run(["score"], {"at": seconds})[0]
    np.testing.assert_array_equal(parts, parts_of(dates)[part])
    assert np.isnan(missing)


def test_names_that_are_taken() -> None:
    names = ("score", "prediction", "value 7", "c=a", "features", "value 12", "c=b")
    schema = Schema(names, "y", ("1",), ("0",), {"c": ("a", "b")})
    run = session(linear(schema, 10.0 ** np.arange(7)))
    assert [node.name for node in run.get_inputs()] == ["score", "prediction", "value 7", "c", "features", "value 12"]
    feed = {name: np.array([k + 1.0, 1.0]) for k, name in enumerate(names) if not name.startswith("c=")}
    outputs = run.run(["score_", "prediction_"], feed | {"c": np.array(["b", "a"], dtype=object)})
    assert outputs[0].tolist() == [1 + 20 + 300 + 50_000 + 600_000 + 1_000_000, 111_111 + 0]
    assert outputs[1].tolist() == [1, 1]


def test_what_a_graph_says_of_itself() -> None:
    schema = Schema(("b", "a"), "clicked", ("yes", "maybe"), ("no",), {})
    model = to_onnx(linear(schema, np.ones(2)))
    assert (model.ir_version, model.producer_name) == (IR_VERSION, "aucdist")
    assert {opset.domain: opset.version for opset in model.opset_import}[""] == OPSET
    said = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(said["aucdist.features"]) == ["b", "a"]
    assert json.loads(said["aucdist.positive"]) == ["yes", "maybe"]
    assert [output.name for output in model.graph.output] == ["score", "prediction"]
    used = {name for node in model.graph.node for name in node.input}
    assert {constant.name for constant in model.graph.initializer} <= used


def test_a_model_without_features_that_count() -> None:
    rows = Block.of(np.ones((5, 2)), np.array([1, -1, 1, -1, 1], dtype=np.int8))
    fitted = BinExpander().fit_blocks(LocalBlocks([rows]))
    schema = Schema(("a", "b"), "y", ("1",), ("0",), {})
    model = linear_model(np.zeros(0), 0.75, schema, Preprocessor((), "none", None, None), {}, None, fitted)
    values = session(model).run(["score"], {"features": np.array([[1.0, 2.0], [3.0, np.nan]])})[0]
    np.testing.assert_array_equal(values, [0.75, np.nan])


def test_what_says_that_a_value_is_missing() -> None:
    model = model_of_missing_values()
    feed = {"x": np.array([-999.0, 2.0, 3.0, 4.0, np.nan]), "k": np.array(["NA", "-", "a", "None", "?"], dtype=object)}
    assert session(model).run(["score"], feed)[0].tolist() == [10.5, 12.0, 23.0, 34.0, 10.5]
    filled, schema = (
        Preprocessor((), "none", None, None, "mean", np.array([0.5])),
        Schema(("x",), "y", ("1",), ("0",), {}),
    )
    numbers = linear_model(np.ones(1), 0.0, schema, filled, {}, reading=model.reading)
    assert session(numbers).run(["score"], {"features": np.array([[-999.0], [2.0]])})[0].tolist() == [0.5, 2.0]
