"""A model as an ONNX graph of double precision."""

import json
from typing import Any

import numpy as np

from aucdist import __version__
from aucdist.export.onnx_graph import ML, Graph, features_of, unused_name
from aucdist.export.portable import (
    Kernel,
    Leaf,
    Linear,
    Portable,
    Steps,
    describe,
    trees_of,
)
from aucdist.export.probability import Term, probability_of
from aucdist.linear_model import LinearModel

OUTPUTS = ("score", "probability", "prediction", "contributions")


def to_onnx(model: LinearModel, *, contributions: bool = False) -> Any:
    """Return a model as an ONNX graph, from the columns of the training data to scores, probabilities and predictions.

    Parameters
    ----------
    model : LinearModel
    contributions : bool, default=False
        Whether there is an output ``contributions``, float64 of shape (rows, n): what each feature and each pair adds to the
        score, and the constant. The property ``aucdist.contributions`` has their names. Rows without a score have nan.

    Returns
    -------
    onnx.ModelProto
        If all columns are numbers, the only input is ``features``, float64 of shape (rows, columns). Otherwise there is an
        input of shape (rows,) for each column. Numbers are float64, and nan where they are missing. Categories are strings.
        Dates are int64, in microseconds since 1970-01-01; a missing date is the smallest int64, as NumPy's NaT.

        The outputs have the shape (rows,): ``score`` and, if the model has probabilities, ``probability``, both float64, and
        ``prediction``, int64, which is 1, -1, or 0 for rows without a score. Rows that `aucdist score` refuses have the score
        nan. If a column has the name of an output, the output's name ends in an underscore.

        For several classes, ``score`` and ``probability`` have the shape (rows, classes), as `LinearModel.decision_function`
        and `LinearModel.probabilities` return them. ``prediction`` is the name of the class, or an empty string for rows
        without a score. For topics it is int64 of shape (rows, classes), with 1, -1 and 0. The property ``aucdist.classes``
        has the names.

    Raises
    ------
    InputError
        If `onnx` is not installed (the extra ``aucdist[onnx]``), if the model hashes texts, or if contributions are asked for
        and the model has none or has several classes.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.data.dataset import Schema
    >>> from aucdist.data.preprocess import Preprocessor
    >>> from aucdist.linear_model import ClassWeights, LinearModel
    >>> from aucdist.export import to_onnx
    >>> schema = Schema(("age", "income"), "clicked", ("yes",), ("no",), {})
    >>> scaling = Preprocessor((), "none", None, None)
    >>> model = LinearModel((ClassWeights(np.array([0.5, -0.5]), 0.5, {}),), schema, scaling)
    >>> graph = to_onnx(model)
    >>> from onnx.reference import ReferenceEvaluator
    >>> score, prediction = ReferenceEvaluator(graph).run(None, {"features": np.array([[2.0, 4.0], [3.0, 1.0]])})
    >>> score.tolist(), prediction.tolist()
    ([-0.5, 1.5], [-1, 1])
    """
    described_classes, added = describe(model, "onnx", contributions=contributions)
    several = bool(model.classes)
    first, width = described_classes[0], len(described_classes) if several else None
    names = {"features", *(column.name for column in first.columns)}
    score, probability, prediction, parts = (unused_name(output, names) for output in OUTPUTS)
    graph = Graph(list(names))
    X, refused = features_of(graph, first)
    X = _transformed(graph, first, X)
    columns = [_score(graph, described, X) for described in described_classes]
    scores = graph.apply("Concat", *columns, axis=1) / model.spreads if several else graph.vector(columns[0])
    checked = (graph.column(refused) if several else refused).choose(np.nan, scores, output=score)
    graph.output(score, "DOUBLE", width)
    without = graph.is_missing(checked)
    best = _probabilities(graph, model, scores)
    if best is not None:
        without.choose(np.nan, best, output=probability)
        graph.output(probability, "DOUBLE", width)
    if several and not model.topics:
        place = refused.choose(-1, graph.apply("ArgMax", best or scores, axis=1, keepdims=0))
        graph.apply(
            "LabelEncoder", place, output=prediction, domain=ML, keys_int64s=list(range(len(described_classes))),
            values_strings=list(model.classes), default_string="",
        )  # fmt: skip
        graph.output(prediction, "STRING")
    else:
        without.choose(0, (scores > 0.0).choose(1, -1), output=prediction)
        graph.output(prediction, "INT64", width)
    if added:
        graph.column(refused).choose(np.nan, _contributions(graph, first, X, len(added)), output=parts)
        graph.output(parts, "DOUBLE", len(added))
    said: dict[str, Any] = {"features": [column.name for column in first.columns]}
    if several:
        said["classes"] = model.classes
    else:
        said |= {"positive": model.schema.positive, "negative": model.schema.negative}
    said |= {"contributions": added} if added else {}
    properties = {f"aucdist.{name}": json.dumps(value) for name, value in said.items()}
    description = f"Scores of a model of aucdist{' of several classes' if several else ''}"
    return graph.model(description, {"aucdist.label": model.schema.label} | properties, __version__)


def _probabilities(graph: Graph, model: LinearModel, scores: Term) -> Term | None:
    """Return the probability of the positive class, or of each class, of shape (rows, classes); those of classes sum to 1."""
    if not model.classes:
        return None if model.probability is None else probability_of(scores, model.probability)
    columns = []
    for k, weights in enumerate(model.weights):
        if weights.probability is None:
            return None
        own = graph.vector(graph.apply("Gather", scores, [k], axis=1))
        columns.append(graph.column(probability_of(own, weights.probability)))
    probabilities = graph.apply("Concat", *columns, axis=1)
    if model.topics:
        return probabilities
    total = graph.sum(probabilities)
    there = total > 0.0
    return there.choose(probabilities / there.choose(total, 1.0), 1.0 / len(columns))


def _transformed(graph: Graph, described: Portable, X: Term) -> Term:
    """Return the features with their logarithms, in rows of length one where the model has those."""
    if described.with_logs:
        logged = np.zeros(len(described.features), dtype=bool)
        logged[list(described.with_logs)] = True
        X = graph.apply("Where", logged, _log1p(graph, X), X)
    if described.unit_rows:
        squares = graph.sum(X * X)
        X = X / graph.apply("Sqrt", (squares > 0.0).choose(squares, 1.0))
    return X


def _log1p(graph: Graph, X: Term) -> Term:
    """Return log(1 + x) to full precision near 0 (after Kahan)."""
    more = X + 1.0
    return graph.apply("Equal", more, 1.0).choose(X, more.log() * (X / (more - 1.0)))


def _score(graph: Graph, described: Portable, X: Term) -> Term:
    """Return the score, of shape (rows, 1)."""
    score = described.score
    if isinstance(score, Linear):
        return (X - score.centers) @ score.weights[:, np.newaxis] + score.constant
    if isinstance(score, Kernel):
        z = (X - score.centers) * score.scales
        lengths = np.einsum("ij,ij->i", score.landmarks, score.landmarks)
        distances = graph.sum(z * z) + lengths - z @ (2.0 * score.landmarks.T)
        # Rounding can make a distance slightly negative.
        exponents = graph.apply("Max", distances, 0.0) * (-1.0 / score.width**2)
        kernel = graph.apply("Exp", exponents) @ score.amounts[:, np.newaxis]
        return kernel + z @ score.weights[:, np.newaxis] + score.constant
    trees = trees_of(score) if isinstance(score, Steps) else list(score.trees)
    constant = score.constant + sum(tree.value for tree in trees if isinstance(tree, Leaf))
    trees = [tree for tree in trees if not isinstance(tree, Leaf)]
    return (graph.trees(X, trees) if trees else _zeros(graph, X)) + constant


def _zeros(graph: Graph, X: Term) -> Term:
    return graph.sum(graph.as_double(graph.is_missing(X))) * 0.0


def _contributions(graph: Graph, described: Portable, X: Term, n: int) -> Term:
    """Return what each feature and each pair adds, and the constant, of shape (rows, n)."""
    score, constants = described.score, np.zeros(n)
    constants[-1] = score.constant
    if isinstance(score, Linear):
        return graph.apply("Pad", (X - score.centers) * score.weights, [0, 0, 0, 1], 0.0) + constants
    assert isinstance(score, Steps)
    trees = trees_of(score)
    return (graph.trees(X, trees, n) if trees else _zeros(graph, X)) + constants
