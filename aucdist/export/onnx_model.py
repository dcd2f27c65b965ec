"""Build an ONNX graph in double precision from a model."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from aucdist import __version__
from aucdist.data.formats.table_options import ANY_CASE, MISSING_CATEGORY
from aucdist.errors import InputError, Json
from aucdist.export.portable import (
    AS_MISSING,
    ZERO,
    Kernel,
    Linear,
    Portable,
    PortableColumn,
    TreeNode,
    describe_model,
    free_name,
    other_spellings,
    trees_of,
)
from aucdist.export.probability import TargetLanguage, Term, probability_of
from aucdist.extras import load_optional
from aucdist.maps.explain import Additive
from aucdist.model.files import as_model
from aucdist.model.linear_model import LinearModel
from aucdist.probability.links import IsotonicMap

OPSET, ML_OPSET, IR_VERSION = 18, 5, 10
"""The versions of the operator sets. Version 5 of ai.onnx.ml has trees in double precision (onnx 1.17, onnxruntime 1.20)."""
ML_DOMAIN = "ai.onnx.ml"
MINUTE = 60_000_000
"""The number of microseconds of a minute."""
HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
NO_DATE = int(np.iinfo(np.int64).min)
"""NumPy's integer for a missing date."""
SPELLINGS = tuple(dict.fromkeys(form for word in ANY_CASE for form in (word, word.upper(), word.title(), "NaN")))
"""All spellings of missing texts, because no operator ignores case."""
Output = tuple[str, str, int | None]
"""The name of an output, its type, and the number of its columns, or None for one value for each row."""
OUTPUTS = ("score", "probability", "prediction", "contributions")


class Graph(TargetLanguage):
    """An ONNX graph under construction.

    The values of the graph are terms. Constants are numbers, or arrays of floats, integers or booleans.

    Parameters
    ----------
    taken : sequence of str
        Names that values inside the graph may not have, because inputs and outputs have them.
    """

    def __init__(self, taken: Sequence[str]):
        self._onnx = load_optional("onnx")
        self._helper = load_optional("onnx.helper")
        self._to_tensor = load_optional("onnx.numpy_helper").from_array
        self._taken = set(taken)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def _name(self) -> str:
        return free_name(f"value {len(self._taken)}", self._taken)

    def number(self, value: Any) -> str:
        """Add a constant and return its name."""
        name = self._name()
        self._constants.append(self._to_tensor(np.asarray(value), name))
        return name

    def operation(
        self, operator: str, *parts: str, output: Output | None = None, domain: str = "", **options: Any
    ) -> str:
        """Add a node and return the name of its result. If `output` is given, the result becomes that output of the graph."""
        name = self._name() if output is None else output[0]
        self._outputs += [] if output is None else [self._value(*output)]
        attributes = {key: self._to_tensor(v) if isinstance(v, np.ndarray) else v for key, v in options.items()}
        self._nodes.append(self._helper.make_node(operator, list(parts), [name], domain=domain, **attributes))
        return name

    def kept(self, part: str, name: str) -> str:
        """Return the name of a number unchanged, because every value of a graph has a name already."""
        return part

    def interpolated(self, points: IsotonicMap, score: str) -> str:
        """Return the probability between the points of a calibration.

        It is the probability of the first point, plus what each piece adds up to the score.
        """
        widths, rises, scores = np.diff(points.scores), np.diff(points.probabilities), Term(self, score)
        rising = rises > 0
        if not rising.any():
            return (scores * 0.0 + points.probabilities[0]).name
        widths, rises, starts = widths[rising], rises[rising], points.scores[:-1][rising]
        distance = self.column(scores) - starts
        share = self.apply("Max", distance / np.where(widths > 0, widths, 1.0), 0.0)
        share = self.apply("Min", share, 1.0)
        reached = self.as_double(self.apply("GreaterOrEqual", distance, 0.0))
        share = self.apply("Where", widths > 0, share, reached)
        return (self.vector(share @ rises[:, np.newaxis]) + points.probabilities[0]).name

    def input(self, name: str, kind: str, n_columns: int | None = None) -> Term:
        """Add an input of the type ``DOUBLE``, ``INT64`` or ``STRING``, with one value or `n_columns` values for each row."""
        if not name:
            raise InputError("a column has no name, and an input of ONNX needs one: name the column, and train again")
        self._inputs.append(self._value(name, kind, n_columns))
        return Term(self, name)

    def _value(self, name: str, kind: str, n_columns: int | None) -> Any:
        shape = ["rows"] if n_columns is None else ["rows", n_columns]
        return self._helper.make_tensor_value_info(name, getattr(self._onnx.TensorProto, kind), shape)

    def as_double(self, x: Term) -> Term:
        """Convert numbers to double precision."""
        return self.apply("Cast", x, to=self._onnx.TensorProto.DOUBLE)

    def column(self, x: Term) -> Term:
        """Convert a vector to a matrix of one column."""
        return self.apply("Unsqueeze", x, [1])

    def vector(self, x: Term) -> Term:
        """Convert a matrix of one column to a vector."""
        return self.apply("Squeeze", x, [1])

    def sum(self, x: Term) -> Term:
        """Return the sum of each row, as a matrix of one column."""
        return self.apply("ReduceSum", x, [1])

    def is_missing(self, x: Term) -> Term:
        """Return whether numbers are NaN."""
        return self.apply("IsNaN", x)

    def trees(self, x: Term, trees: Sequence[TreeNode], n_targets: int = 1) -> Term:
        """Return the sums of the leaves that rows reach, of shape (n_samples, n_targets).

        Each tree has at least one split. With several targets, the tree at position k adds to the target k.
        """
        splits: list[Json] = []
        leaves: list[float] = []
        roots: list[int] = []
        targets: list[int] = []

        def add(node: TreeNode) -> tuple[int, int]:
            """Add a node and all nodes below it.

            Return its position in the list of splits or of leaves, and whether it is a leaf.
            """
            if isinstance(node, float):
                leaves.append(node)
                return len(leaves) - 1, 1
            row, place = {"featureids": node.feature, "splits": node.at_most}, len(splits)
            splits.append(row | {"missing_value_tracks_true": int(node.missing_to_then)})
            then, otherwise = add(node.then), add(node.otherwise)
            splits[place] |= {"truenodeids": then[0], "trueleafs": then[1]}
            splits[place] |= {"falsenodeids": otherwise[0], "falseleafs": otherwise[1]}
            return place, 0

        for k, tree in enumerate(trees):
            roots.append(add(tree)[0])
            targets += [k if n_targets > 1 else 0] * (len(leaves) - len(targets))
        columns: Json = {f"nodes_{name}": [row[name] for row in splits] for name in splits[0]}
        columns["nodes_splits"] = np.array(columns["nodes_splits"])
        return self.apply(
            "TreeEnsemble", x, domain=ML_DOMAIN, n_targets=n_targets, aggregate_function=1, post_transform=0, tree_roots=roots,
            nodes_modes=np.zeros(len(splits), dtype=np.uint8), leaf_targetids=targets, leaf_weights=np.array(leaves),
            **columns,
        )  # fmt: skip

    def model(self, description: str, properties: dict[str, str], version: str) -> Any:
        """Return the graph as a model that passes the checker of ONNX."""
        graph = self._helper.make_graph(self._nodes, "aucdist", self._inputs, self._outputs, self._constants)
        opsets = [self._helper.make_opsetid("", OPSET), self._helper.make_opsetid(ML_DOMAIN, ML_OPSET)]
        model = self._helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="aucdist", producer_version=version,
            doc_string=description,
        )  # fmt: skip
        self._helper.set_model_props(model, properties)
        self._onnx.checker.check_model(model)
        return model


def features_of(graph: Graph, described: Portable) -> tuple[Term, Term]:
    """Add the inputs of a graph, and return the features and the flags of refused rows.

    Returns
    -------
    tuple (Term, Term)
        The features, of shape (n_samples, n_features), float64, and whether each row is refused, of shape (n_samples,), bool.
    """
    if all(column.kind == "number" for column in described.columns):
        X = _without(graph, graph.input("features", "DOUBLE", len(described.columns)), described)
    else:
        pieces = []  # for each column a matrix of its features
        for i, column in enumerate(described.columns):
            if column.kind == "number":
                pieces.append(_without(graph, graph.column(graph.input(column.name, "DOUBLE")), described))
            elif column.kind == "date":
                time = graph.input(column.name, "INT64")
                missing = graph.apply("Equal", time, NO_DATE)
                time = missing.choose(0, time)
                pieces += [graph.column(missing.choose(np.nan, _date_part(graph, time, part))) for part in column.parts]
            else:
                values = [str(described.features[j].item) for j in described.features_by_column[i]]
                pieces.append(_category_flags(graph, column, values, described.spelling.words))
        X = graph.apply("Concat", *pieces, axis=1)
        order = [j for features in described.features_by_column for j in features]
        if order != sorted(order):
            X = graph.apply("Gather", X, np.argsort(order), axis=1)
    fill = np.array([feature.fill for feature in described.features], dtype=np.float64)
    if not np.isnan(fill).all():
        X = graph.is_missing(X).choose(fill, X)
    # Rows are refused that lack a required value, or whose value is at most -1 where log(1 + x) is taken.
    features, columns = described.features, described.columns
    required = [feature.required or columns[feature.column].kind == "category" for feature in features]
    total, logged = _n_flags(graph, graph.is_missing(X), required), [feature.logged for feature in features]
    if any(logged):
        total += _n_flags(graph, graph.apply("LessOrEqual", X, -1.0), logged)
    return X, graph.vector(total > 0.0)


def _n_flags(graph: Graph, flags: Term, flags_to_count: list[bool]) -> Term:
    """Count the flags that are set in each row, among the columns that `flags_to_count` selects."""
    return graph.as_double(flags) @ np.array(flags_to_count, dtype=np.float64)[:, np.newaxis]


def _without(graph: Graph, X: Term, described: Portable) -> Term:
    """Replace numbers that mark missing values by NaN."""
    for absent in described.spelling.missing_numbers:
        X = graph.apply("Equal", X, float(absent)).choose(np.nan, X)
    return X


def _category_flags(graph: Graph, column: PortableColumn, values: list[str], words: Sequence[str]) -> Term:
    """Return the 0/1 features of a column of categories. They are NaN in rows whose category is refused."""
    refuse = len(values) + 1
    code = {value: k for k, value in enumerate(values)}
    says = {ZERO: len(values), AS_MISSING: code.get(MISSING_CATEGORY, refuse)}
    missing, unknown = (says.get(case, refuse) for case in (column.if_missing, column.if_unknown))
    others = {other: code[value] for other, value in other_spellings(values).items()}
    keys = dict.fromkeys((*SPELLINGS, *words, MISSING_CATEGORY), missing) | others | code
    codes = graph.apply(
        "LabelEncoder", graph.input(column.name, "STRING"), domain=ML_DOMAIN, keys_strings=list(keys),
        values_int64s=list(keys.values()), default_int64=unknown,
    )  # fmt: skip
    codes = graph.column(codes)
    ones = graph.as_double(graph.apply("Equal", codes, np.arange(len(values))))
    return graph.apply("Equal", codes, refuse).choose(np.nan, ones)


def _date_part(graph: Graph, time: Term, part: str) -> Term:
    """Return a part of each date, one of `aucdist.data.dataset.PARTS`."""
    if part == "days":
        return graph.as_double(time) / float(DAY)
    if part == "hour":
        return graph.as_double(_floored(time % DAY, HOUR)) + graph.as_double(_floored(time % HOUR, MINUTE)) / 60.0
    day = _floored(time, DAY)
    if part == "weekday":  # 1970-01-01 was a Thursday
        return graph.as_double((day + 3) % 7)
    # Days are counted from 0000-03-01, so that a leap day is the last day of its year. Eras of 400 years are equally long. The
    # five months from March on have 153 days, and so have the five months from August on.
    since = day + 719_468
    era, day_of_era = _floored(since, 146_097), since % 146_097
    leap = _floored(day_of_era, 1460) - _floored(day_of_era, 36_524) + _floored(day_of_era, 146_096)
    year = _floored(day_of_era - leap, 365)
    day_of_year = day_of_era - (year * 365 + (_floored(year, 4) - _floored(year, 100)))
    month = (_floored(day_of_year * 5 + 2, 153) + 2) % 12 + 1
    if part == "month":
        return graph.as_double(month)
    return graph.as_double(year + era * 400 + graph.apply("Cast", month < 3, to=7))  # int64


def _floored(x: Term, by: int) -> Term:
    """Return integer quotients rounded down. The operator ``%`` is used because its result is not negative."""
    return (x - x % by) / by


def to_onnx(model: Any, *, contributions: bool = False) -> Any:
    """Return a model as an ONNX graph, from the columns of the training data to scores, probabilities and predictions.

    Parameters
    ----------
    model : estimator or LinearModel
        A fitted estimator of aucdist, or a model.
    contributions : bool, default=False
        Whether the graph has an output ``contributions``, float64 of shape (n_samples, n_contributions). Its columns are what
        each feature and each interaction adds to the score, and the constant. The property ``aucdist.contributions`` has their
        names. Rows without a score have NaN.

    Returns
    -------
    onnx.ModelProto
        If all columns are numbers, the only input is ``features``, float64 of shape (rows, columns). Otherwise there is an
        input of shape (rows,) for each column. Numbers are float64, and NaN if they are missing. Categories are strings.
        Dates are int64, in microseconds since 1970-01-01; a missing date is the smallest int64, as NumPy's NaT.

        The outputs have the shape (n_samples,): ``score``, float64; ``probability``, float64, if the model has probabilities; and
        ``prediction``, int64, which is 1, -1, or 0 for rows without a score. Rows that `aucdist score` refuses have the score
        NaN. If a column has the name of an output, an underscore is appended to the output's name.

        For several classes, ``score`` and ``probability`` have the shape (rows, classes), as `LinearModel.decision_function`
        and `LinearModel.probabilities` return them. ``prediction`` is the name of the class, or an empty string for rows
        without a score. For topics it is int64 of shape (rows, classes), with 1, -1 and 0. The property ``aucdist.classes``
        has the names.

    Raises
    ------
    InputError
        If `onnx` is not installed (the extra ``aucdist[onnx]``), if the model hashes strings, or if contributions are asked for
        and the model has none or has several classes.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.data.dataset import Schema
    >>> from aucdist.data.preprocess import Preprocessor
    >>> from aucdist.model.linear_model import ClassWeights, LinearModel
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
    model = as_model(model)
    described_classes, added = describe_model(model, "onnx", contributions=contributions)
    several = bool(model.classes)
    first, width = described_classes[0], len(described_classes) if several else None
    names = {"features", *(column.name for column in first.columns)}
    score, probability, prediction, parts = (free_name(output, names) for output in OUTPUTS)
    graph = Graph(list(names))
    X, refused = features_of(graph, first)
    if first.with_logs:  # log(1 + x) to full precision near 0 (after Kahan)
        logged, more = np.zeros(len(first.features), dtype=bool), X + 1.0
        logged[list(first.with_logs)] = True
        log1p = graph.apply("Equal", more, 1.0).choose(X, more.log() * (X / (more - 1.0)))
        X = graph.apply("Where", logged, log1p, X)
    if first.unit_rows:
        squares = graph.sum(X * X)
        X = X / graph.apply("Sqrt", (squares > 0.0).choose(squares, 1.0))
    columns = [_score_term(graph, described, X) for described in described_classes]
    scores = graph.apply("Concat", *columns, axis=1) / model.spreads if several else graph.vector(columns[0])
    refused_rows = graph.column(refused) if several else refused
    checked = refused_rows.choose(np.nan, scores, output=(score, "DOUBLE", width))
    without = graph.is_missing(checked)
    best = _probability(graph, model, scores)
    if best is not None:
        without.choose(np.nan, best, output=(probability, "DOUBLE", width))
    if several and not model.topics:
        place = refused.choose(-1, graph.apply("ArgMax", best or scores, axis=1, keepdims=0))
        graph.apply(
            "LabelEncoder", place, output=(prediction, "STRING", None), domain=ML_DOMAIN, values_strings=list(model.classes),
            keys_int64s=list(range(len(described_classes))), default_string="",
        )  # fmt: skip
    else:
        without.choose(0, (scores > 0.0).choose(1, -1), output=(prediction, "INT64", width))
    if added:
        terms, constants = first.score, np.zeros(len(added))
        constants[-1] = terms.constant
        if isinstance(terms, Linear):
            adds = graph.apply("Pad", (X - terms.centers) * terms.weights, [0, 0, 0, 1], 0.0)
        else:
            assert isinstance(terms, Additive)
            trees = trees_of(terms)
            adds = graph.trees(X, trees, len(added)) if trees else _zeros(graph, X)
        graph.column(refused).choose(np.nan, adds + constants, output=(parts, "DOUBLE", len(added)))
    metadata: Json = {"features": [column.name for column in first.columns]}
    if several:
        metadata["classes"] = model.classes
    else:
        metadata |= {"positive": model.schema.positive, "negative": model.schema.negative}
    if added:
        metadata["contributions"] = added
    properties = {f"aucdist.{name}": json.dumps(value) for name, value in metadata.items()}
    description = f"Scores of a model of aucdist{' of several classes' if several else ''}"
    return graph.model(description, {"aucdist.label": model.schema.label} | properties, __version__)


def _probability(graph: Graph, model: LinearModel, scores: Term) -> Term | None:
    """Return the probability of the positive class, or None if the model has no probabilities.

    For several classes the result has the shape (n_samples, n_classes), and each row sums to 1.
    """
    if not model.classes:
        return None if model.probability is None else probability_of(scores, model.probability)
    columns = []
    for k, weights in enumerate(model.weights):
        if weights.probability is None:
            return None
        class_scores = graph.vector(graph.apply("Gather", scores, [k], axis=1))
        columns.append(graph.column(probability_of(class_scores, weights.probability)))
    probabilities = graph.apply("Concat", *columns, axis=1)
    if model.topics:
        return probabilities
    total = graph.sum(probabilities)
    has_total = total > 0.0
    return has_total.choose(probabilities / has_total.choose(total, 1.0), 1.0 / len(columns))


def _score_term(graph: Graph, described: Portable, X: Term) -> Term:
    """Return the score, of shape (n_samples, 1)."""
    score = described.score
    if isinstance(score, Linear):
        return (X - score.centers) @ score.weights[:, np.newaxis] + score.constant
    if isinstance(score, Kernel):
        z = (X - score.centers) * score.scales
        lengths = np.einsum("ij,ij->i", score.landmarks, score.landmarks)
        distances = graph.sum(z * z) + lengths - z @ (2.0 * score.landmarks.T)
        # rounding can make a distance slightly negative
        exponents = graph.apply("Max", distances, 0.0) * (-1.0 / score.width**2)
        kernel = graph.apply("Exp", exponents) @ score.amounts[:, np.newaxis]
        return kernel + z @ score.weights[:, np.newaxis] + score.constant
    trees = trees_of(score) if isinstance(score, Additive) else list(score.trees)
    constant = score.constant + sum(tree for tree in trees if isinstance(tree, float))
    trees = [tree for tree in trees if not isinstance(tree, float)]
    return (graph.trees(X, trees) if trees else _zeros(graph, X)) + constant


def _zeros(graph: Graph, X: Term) -> Term:
    return graph.sum(graph.as_double(graph.is_missing(X))) * 0.0
