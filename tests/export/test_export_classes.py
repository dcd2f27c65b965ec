"""Models of several classes and of topics in ONNX and SQL: scores, probabilities and predictions as `LinearModel` has them."""

import numpy as np
import pandas as pd
import pytest

from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.errors import InputError
from aucdist.export import to_onnx, to_sql
from aucdist.model.linear_model import ClassWeights, LinearModel
from aucdist.probability.links import IsotonicMap, Link, LinkMap

NAMES = ("a'b", "c", 'd"e')
FAR = LinkMap(1.0, Link("cloglog"), 1.0, -800.0)
"""Probability 0 for every score: where all are 0, they are equal."""
MAPS = {
    "none": [None] * 3,
    "links": [LinkMap(1.0, Link(name), 0.7, 0.1) for name in ("logit", "probit", "cloglog")],
    "zero": [FAR, FAR, FAR],
    "isotonic": [
        IsotonicMap(1.0, np.array([-1.0, 0.0, 2.0]), np.array([0.1, 0.3, 0.9])),
        FAR,
        LinkMap(1.0, Link("logit"), 1.0, 0.0),
    ],
}


def models(kind: str, *, topics: bool = False) -> LinearModel:
    categories = {"k": ("u", "v")}
    schema = Schema(("x", "score c", "k=u", "k=v"), "y", NAMES[:1], NAMES[1:], categories, classes=NAMES, topics=topics)
    scaling = Preprocessor((), "maxabs", None, np.array([0.5, 2.0, 1.0, 1.0]))
    weights = np.random.default_rng(3).normal(size=(3, 4))
    spreads = [1.0, 0.5, 3.0] if kind == "none" else [1.0] * 3
    of_classes = tuple(
        ClassWeights(w, 0.1 * k, {}, probability, spread=spread)
        for k, (w, probability, spread) in enumerate(zip(weights, MAPS[kind], spreads, strict=True))
    )
    return LinearModel(of_classes, schema, scaling)


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows as columns and as features; the last has no score."""
    X = np.random.default_rng(4).normal(size=(40, 2)).round(2)
    text = np.array(["u", "v"])[np.arange(40) % 2]
    frame = pd.DataFrame({"x": X[:, 0], "score c": X[:, 1], "k": text})
    frame.loc[39, "x"] = np.nan
    return frame, np.column_stack([X, text == "u", text == "v"])[:39]


@pytest.mark.parametrize(("kind", "topics"), [("none", False), ("links", False), ("zero", False), ("isotonic", False),
                                              ("none", True), ("links", True)])  # fmt: skip
def test_all_classes_in_one_query_and_in_one_graph(kind: str, topics: bool) -> None:
    model, (frame, X) = models(kind, topics=topics), rows()
    scores = model.decision_function(X)
    probabilities, predicted = model.probabilities(scores), model.predictions(scores).tolist()

    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    with duckdb.connect() as connection:
        connection.register("rows", frame.assign(id=range(40)).replace({np.nan: None}))
        result = connection.execute(to_sql(model, ids=["id", "score c"])).df().sort_values("id", ignore_index=True)
    assert result.columns[:6].tolist() == ["id", "score c", "prediction", "score a'b", "score c_", 'score d"e']
    table = result[["score a'b", "score c_", 'score d"e']].to_numpy()
    np.testing.assert_allclose(table[:39], scores, rtol=1e-12, atol=1e-14)
    assert result["prediction"].tolist()[:39] == predicted
    assert result.iloc[39, 2:].isna().all()
    assert (probabilities is None) == (len(result.columns) == 6)
    if probabilities is not None:
        np.testing.assert_allclose(result.iloc[:39, 6:].to_numpy(dtype=float), probabilities, atol=1e-12)

    pytest.importorskip("onnx", reason="onnx is not installed: pip install '.[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    feed = {"x": frame["x"].to_numpy(), "score c": frame["score c"].to_numpy(), "k": frame["k"].to_numpy(dtype=object)}
    of_graph = dict(zip([output.name for output in session.get_outputs()], session.run(None, feed), strict=True))
    np.testing.assert_allclose(of_graph["score"][:39], scores, rtol=1e-12, atol=1e-14)
    assert np.isnan(of_graph["score"][39]).all()
    if topics:
        np.testing.assert_array_equal(
            of_graph["prediction"], np.vstack([np.where(scores > 0, 1, -1), np.zeros((1, 3))])
        )
    else:
        assert of_graph["prediction"].tolist() == [*predicted, ""]
    if probabilities is not None:
        np.testing.assert_allclose(of_graph["probability"][:39], probabilities, atol=1e-12)


def test_contributions_are_of_one_class() -> None:
    for export in (to_onnx, to_sql):
        with pytest.raises(InputError, match="contributions belong to one class"):
            export(models("none"), contributions=True)
