"""A model as an ONNX graph of double precision."""

import json
from typing import Any

import numpy as np

from aucdist import __version__
from aucdist.errors import InputError
from aucdist.export.onnx_graph import ML, Graph, features_of
from aucdist.export.portable import Kernel, Leaf, Linear, Node, Portable, Steps, TreeSplit, portable, portable_classes
from aucdist.export.probability import ProbabilityTarget, probability_of
from aucdist.linear_model import ClassModels, LinearModel
from aucdist.objectives.probability_maps import IsotonicMap

ONE_CLASS = "contributions are of one class: export the folder of one of them to {target}, or all of them to json"
OUTPUTS = ("score", "probability", "prediction")


def to_onnx(model: LinearModel | ClassModels, *, contributions: bool = False) -> Any:
    """Return a model as an ONNX graph, from the columns of the training data to scores, probabilities and predictions.

    Parameters
    ----------
    model : LinearModel or ClassModels
    contributions : bool, default=False
        Whether there is an output ``contributions``, float64 of shape (rows, n): what each feature and each pair adds, and the
        constant. Their names are in the property ``aucdist.contributions``; nan for rows without a score.

    Returns
    -------
    onnx.ModelProto
        If all columns are numbers, its one input is ``features``, float64 of shape (rows, columns). Else there is an input of
        shape (rows,) for each column: float64 for numbers, with nan where they are missing; strings for categories; int64 for
        dates, in microseconds since 1970-01-01 (`numpy.datetime64` has them, and its least value for missing ones). Outputs of
        shape (rows,) are ``score`` and, where the model has probabilities, ``probability``, both float64, and ``prediction``,
        int64: 1, -1, and 0 for rows without a score. An underscore is appended where a column has the name. Rows that
        `aucdist score` refuses have the score nan.

        Of several classes, ``score`` and ``probability`` have the shape (rows, classes), as `ClassModels.decision_function` and
        `ClassModels.probabilities` return them, and ``prediction`` is the name of the class, a string that is empty for rows
        without a score; of topics it is int64 of shape (rows, classes): 1, -1 and 0. The property ``aucdist.classes`` has the
        names.

    Raises
    ------
    InputError
        If `onnx` is not installed (the extra ``aucdist[onnx]``), the model hashes texts, or it has no contributions; those of
        several classes are not in one graph.
    """
    several = isinstance(model, ClassModels)
    if several and contributions:
        raise InputError(ONE_CLASS.format(target="onnx"))
    of_classes = portable_classes(model, "onnx") if isinstance(model, ClassModels) else [portable(model)]
    added = model.contribution_names() if isinstance(model, LinearModel) and contributions else []
    first, width = of_classes[0], len(of_classes) if several else None
    first.refuse_hashes("onnx")
    names = {column.name for column in first.columns}
    score, probability, prediction, parts = (_free(output, names) for output in (*OUTPUTS, "contributions"))
    graph = Graph([*names, score, probability, prediction, parts, "features"])
    X, refused = features_of(graph, first)
    X = _transformed(graph, first, X)
    nan, columns = graph.constant(np.nan), [graph.add("Add", *_score(graph, one, X)) for one in of_classes]
    if isinstance(model, ClassModels):
        scores = graph.add("Div", graph.add("Concat", *columns, axis=1), graph.constant(model.spreads))
    else:
        scores = graph.vector(columns[0])
    graph.add("Where", graph.column(refused) if several else refused, nan, scores, output=score)
    graph.output(score, "DOUBLE", width)
    without = graph.add("IsNaN", score)
    best = _probabilities(graph, model, scores)
    if best is not None:
        graph.add("Where", without, nan, best, output=probability)
        graph.output(probability, "DOUBLE", width)
    if isinstance(model, ClassModels) and not model.topics:
        place = graph.add("ArgMax", best or scores, axis=1, keepdims=0)
        place = graph.add("Where", refused, graph.constant(-1, np.int64), place)
        graph.add(
            "LabelEncoder", place, output=prediction, domain=ML, keys_int64s=list(range(len(of_classes))),
            values_strings=list(model.classes), default_string="",
        )  # fmt: skip
        graph.output(prediction, "STRING")
    else:
        one, minus, none = (graph.constant(value, np.int64) for value in (1, -1, 0))
        signs = graph.add("Where", graph.add("Greater", scores, graph.constant(0.0)), one, minus)
        graph.add("Where", without, none, signs, output=prediction)
        graph.output(prediction, "INT64", width)
    if added:
        graph.add("Where", graph.column(refused), nan, _contributions(graph, first, X, len(added)), output=parts)
        graph.output(parts, "DOUBLE", len(added))
    said: dict[str, Any] = {"features": [column.name for column in first.columns]}
    if isinstance(model, ClassModels):
        said["classes"] = model.classes
    else:
        said |= {"positive": model.schema.positive, "negative": model.schema.negative}
    said |= {"contributions": added} if added else {}
    properties = {f"aucdist.{name}": json.dumps(value) for name, value in said.items()}
    description = f"Scores of a model of aucdist{' of several classes' if several else ''}"
    return graph.model(description, {"aucdist.label": model.schema.label} | properties, __version__)


def _free(output: str, names: set[str]) -> str:
    while output in names or output == "features":
        output += "_"
    return output


def _probabilities(graph: Graph, model: LinearModel | ClassModels, scores: str) -> str | None:
    """Return the probability of the positive class, or of each class, of shape (rows, classes); those of classes sum to 1."""
    target = OnnxProbability(graph)
    if isinstance(model, LinearModel):
        return None if model.probability is None else probability_of(target, model.probability, scores)
    columns = []
    for k, one in enumerate(model.models):
        if one.probability is None:
            return None
        of_class = graph.vector(graph.add("Gather", scores, graph.constant([k], np.int64), axis=1))
        columns.append(graph.column(probability_of(target, one.probability, of_class)))
    found = graph.add("Concat", *columns, axis=1)
    if model.topics:
        return found
    total = graph.add("ReduceSum", found, graph.constant([1], np.int64))
    there = graph.add("Greater", total, graph.constant(0.0))
    shares = graph.add("Div", found, graph.add("Where", there, total, graph.constant(1.0)))
    return graph.add("Where", there, shares, graph.constant(1.0 / len(columns)))


def _transformed(graph: Graph, described: Portable, X: str) -> str:
    """Return the features with their logarithms, in rows of length one where the model has those."""
    if described.with_logs:
        logged = np.zeros(len(described.features), dtype=bool)
        logged[list(described.with_logs)] = True
        X = graph.add("Where", graph.constant(logged, np.bool_), _log1p(graph, X), X)
    if described.unit_rows:
        axis = graph.constant([1], np.int64)
        squares = graph.add("ReduceSum", graph.add("Mul", X, X), axis)
        positive = graph.add("Greater", squares, graph.constant(0.0))
        length = graph.add("Sqrt", graph.add("Where", positive, squares, graph.constant(1.0)))
        X = graph.add("Div", X, length)
    return X


def _log1p(graph: Graph, X: str) -> str:
    """Return log(1 + x) to full precision near 0 (after Kahan)."""
    one = graph.constant(1.0)
    more = graph.add("Add", one, X)
    quotient = graph.add("Div", X, graph.add("Sub", more, one))
    logged = graph.add("Mul", graph.add("Log", more), quotient)
    return graph.add("Where", graph.add("Equal", more, one), X, logged)


def _score(graph: Graph, described: Portable, X: str) -> tuple[str, str]:
    """Return two parts of the score, of shapes (rows, 1) and (): what the features add, and the constant."""
    score = described.score
    if isinstance(score, Linear):
        centred = graph.add("Sub", X, graph.constant(score.centers))
        return graph.add("MatMul", centred, graph.constant(score.weights[:, np.newaxis])), graph.constant(
            score.constant
        )
    if isinstance(score, Kernel):
        return _kernel(graph, score, X), graph.constant(score.constant)
    trees = _trees_of(score) if isinstance(score, Steps) else list(score.trees)
    constant = score.constant + sum(tree.value for tree in trees if isinstance(tree, Leaf))
    trees = [tree for tree in trees if not isinstance(tree, Leaf)]
    if trees:
        return graph.trees(X, trees), graph.constant(constant)
    none = graph.add("ReduceSum", graph.as_double(graph.add("IsNaN", X)), graph.constant([1], np.int64))
    return graph.add("Mul", none, graph.constant(0.0)), graph.constant(constant)


def _contributions(graph: Graph, described: Portable, X: str, n: int) -> str:
    """Return what each feature and each pair adds, and the constant, of shape (rows, n)."""
    score, constants = described.score, np.zeros(n)
    if isinstance(score, Linear):
        adds = graph.add("Mul", graph.add("Sub", X, graph.constant(score.centers)), graph.constant(score.weights))
        adds = graph.add("Pad", adds, graph.constant([0, 0, 0, 1], np.int64), graph.constant(0.0))
    else:
        assert isinstance(score, Steps)
        trees = _trees_of(score)
        if not trees:
            zeros = graph.add("Mul", graph.as_double(graph.add("IsNaN", X)), graph.constant(0.0))
            adds = graph.add("ReduceSum", zeros, graph.constant([1], np.int64))
        else:
            adds = graph.trees(X, trees, n)
    constants[-1] = score.constant
    return graph.add("Add", adds, graph.constant(constants))


def _trees_of(score: Steps) -> list[Node]:
    """Return a tree for each shape and each pair."""
    trees: list[Node] = []
    for shape in score.shapes:
        tree = of_shape(shape.feature, shape.edges, shape.values)
        trees.append(tree if shape.missing is None else with_missing(shape.feature, Leaf(shape.missing), tree))
    for pair in score.pairs:
        (a, b), (of_rows, of_columns) = pair.features, pair.missing
        rows: list[Node] = []
        for values in pair.values:
            row = of_shape(b, pair.edges[1], values[int(of_columns) :])
            rows.append(with_missing(b, Leaf(float(values[0])), row) if of_columns else row)
        tree = of_bins(a, pair.edges[0], rows[int(of_rows) :])
        trees.append(with_missing(a, rows[0], tree) if of_rows else tree)
    return trees


def _kernel(graph: Graph, score: Kernel, X: str) -> str:
    z = graph.add("Mul", graph.add("Sub", X, graph.constant(score.centers)), graph.constant(score.scales))
    squares = graph.add("ReduceSum", graph.add("Mul", z, z), graph.constant([1], np.int64))
    products = graph.add("MatMul", z, graph.constant(2.0 * score.landmarks.T))
    lengths = graph.constant(np.einsum("ij,ij->i", score.landmarks, score.landmarks))
    distances = graph.add("Sub", graph.add("Add", squares, lengths), products)
    # Rounding can make a distance slightly negative.
    exponents = graph.add(
        "Mul", graph.add("Max", distances, graph.constant(0.0)), graph.constant(-1.0 / score.width**2)
    )
    kernel = graph.add("MatMul", graph.add("Exp", exponents), graph.constant(score.amounts[:, np.newaxis]))
    linear = graph.add("MatMul", z, graph.constant(score.weights[:, np.newaxis]))
    return graph.add("Add", kernel, linear)


class OnnxProbability(ProbabilityTarget):
    """The formulas of probabilities as nodes of a graph."""

    def __init__(self, graph: Graph):
        self._graph = graph

    def number(self, value: float) -> str:
        """Return a constant."""
        return self._graph.constant(value)

    def operation(self, operator: str, *parts: str) -> str:
        """Add a node."""
        return self._graph.add(operator, *parts)

    def kept(self, part: str, name: str) -> str:
        """Return the name that a number has already."""
        return part

    def interpolated(self, found: IsotonicMap, score: str) -> str:
        """Return the probability between the points of a calibration: the first, and what each piece adds up to the score."""
        graph = self._graph
        widths, rises = np.diff(found.scores), np.diff(found.probabilities)
        there = rises > 0
        if not there.any():
            zero = graph.add("Mul", score, graph.constant(0.0))
            return graph.add("Add", zero, graph.constant(found.probabilities[0]))
        widths, rises, starts = widths[there], rises[there], found.scores[:-1][there]
        beyond = graph.add("Sub", graph.column(score), graph.constant(starts))
        share = graph.add("Div", beyond, graph.constant(np.where(widths > 0, widths, 1.0)))
        share = graph.add("Min", graph.add("Max", share, graph.constant(0.0)), graph.constant(1.0))
        reached = graph.as_double(graph.add("GreaterOrEqual", beyond, graph.constant(0.0)))
        share = graph.add("Where", graph.constant(widths > 0, np.bool_), share, reached)
        total = graph.vector(graph.add("MatMul", share, graph.constant(rises[:, np.newaxis])))
        return graph.add("Add", total, graph.constant(found.probabilities[0]))


def of_shape(feature: int, edges: np.ndarray, values: np.ndarray) -> Node:
    """Return a balanced tree that gives the value of the bin of a feature."""
    return of_bins(feature, edges, [Leaf(float(value)) for value in values])


def of_bins(feature: int, edges: np.ndarray, ends: list[Node]) -> Node:
    """Return a balanced tree that goes on at the end of a feature's bin; missing values go to the last."""
    if len(ends) == 1:
        return ends[0]
    middle = (len(ends) - 1) // 2
    return TreeSplit(
        feature, float(edges[middle]), False,
        of_bins(feature, edges[:middle], ends[: middle + 1]), of_bins(feature, edges[middle + 1 :], ends[middle + 1 :]),
    )  # fmt: skip


def with_missing(feature: int, missing: Node, there: Node) -> Node:
    """Return a tree that sends rows without a value to one node, and all others to another."""
    return TreeSplit(feature, float("inf"), False, there, missing)
