"""An ONNX graph, node by node, and its inputs with the features that are made of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aucdist.data.formats.table_form import ANY_CASE, MISSING_CATEGORY
from aucdist.export.portable import AS_MISSING, ZERO, Leaf, Node, Portable, PortableColumn, TreeSplit
from aucdist.extras import load_optional

OPSET, ML_OPSET, IR_VERSION = 18, 5, 10
"""The operators' versions: 5 has trees of double precision (onnx 1.17, onnxruntime 1.20)."""
ML = "ai.onnx.ml"


class Graph:
    """A graph in the making. Its methods add nodes, and take and return the names of values.

    `taken`: names that inner values may not have: those of the inputs and outputs.
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
        name = f"value {len(self._taken)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def add(self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = output or self._name()
        given = {key: self._to_tensor(v) if isinstance(v, np.ndarray) else v for key, v in attributes.items()}
        self._nodes.append(self._helper.make_node(operator, list(inputs), [name], domain=domain, **given))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Return the name of a constant: a number, or an array of them."""
        name = self._name()
        self._constants.append(self._to_tensor(np.asarray(value, dtype=dtype), name))
        return name

    def input(self, name: str, kind: str, n_columns: int | None = None) -> str:
        """Add an input of the type ``DOUBLE``, ``INT64`` or ``STRING``: a number for each row, or so many."""
        self._inputs.append(self._value(name, kind, n_columns))
        return name

    def output(self, name: str, kind: str, n_columns: int | None = None) -> None:
        """Name an output, with a number for each row, or so many."""
        self._outputs.append(self._value(name, kind, n_columns))

    def _value(self, name: str, kind: str, n_columns: int | None) -> Any:
        shape = ["rows"] if n_columns is None else ["rows", n_columns]
        return self._helper.make_tensor_value_info(name, getattr(self._onnx.TensorProto, kind), shape)

    def as_double(self, x: str) -> str:
        """Return numbers of double precision."""
        return self.add("Cast", x, to=self._onnx.TensorProto.DOUBLE)

    def column(self, x: str) -> str:
        """Return a vector as a matrix of one column."""
        return self.add("Unsqueeze", x, self.constant([1], np.int64))

    def vector(self, x: str) -> str:
        """Return a matrix of one column as a vector."""
        return self.add("Squeeze", x, self.constant([1], np.int64))

    def trees(self, x: str, trees: Sequence[Node], n_targets: int = 1) -> str:
        """Return the sums of the leaves that rows reach, of shape (rows, n_targets); each tree has a split.

        With several targets the tree k has the target k.
        """
        lists, roots = _Lists(), []
        targets: list[int] = []
        for k, tree in enumerate(trees):
            assert isinstance(tree, TreeSplit)
            roots.append(lists.split(tree))
            targets += [k if n_targets > 1 else 0] * (len(lists.leaves) - len(targets))
        return self.add(
            "TreeEnsemble", x, domain=ML, n_targets=n_targets, aggregate_function=1, post_transform=0, tree_roots=roots,
            nodes_modes=np.zeros(len(lists.features), dtype=np.uint8), nodes_splits=np.array(lists.edges),
            nodes_featureids=lists.features, nodes_missing_value_tracks_true=lists.missing,
            nodes_truenodeids=lists.then[0], nodes_trueleafs=lists.then[1],
            nodes_falsenodeids=lists.otherwise[0], nodes_falseleafs=lists.otherwise[1],
            leaf_targetids=targets, leaf_weights=np.array(lists.leaves),
        )  # fmt: skip

    def model(self, description: str, properties: dict[str, str], version: str) -> Any:
        """Return the graph as a model that the checker of ONNX has found sound."""
        used = {name for node in self._nodes for name in node.input}
        constants = [constant for constant in self._constants if constant.name in used]
        graph = self._helper.make_graph(self._nodes, "aucdist", self._inputs, self._outputs, constants)
        opsets = [self._helper.make_opsetid("", OPSET), self._helper.make_opsetid(ML, ML_OPSET)]
        model = self._helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="aucdist", producer_version=version,
            doc_string=description,
        )  # fmt: skip
        self._helper.set_model_props(model, properties)
        self._onnx.checker.check_model(model)
        return model


class _Lists:
    """Trees as the lists that the operator takes: of splits, whose children are splits or leaves, and of leaves."""

    def __init__(self) -> None:
        self.features: list[int] = []
        self.edges: list[float] = []
        self.missing: list[int] = []
        self.then: tuple[list[int], list[int]] = ([], [])
        self.otherwise: tuple[list[int], list[int]] = ([], [])
        self.leaves: list[float] = []

    def split(self, node: TreeSplit) -> int:
        """Add a split and all below it, and return its place."""
        place = len(self.features)
        self.features.append(node.feature)
        self.edges.append(node.at_most)
        self.missing.append(int(node.missing_to_then))
        for numbers, are_leaves in (self.then, self.otherwise):
            numbers.append(0)
            are_leaves.append(0)
        for (numbers, are_leaves), child in ((self.then, node.then), (self.otherwise, node.otherwise)):
            are_leaves[place] = int(isinstance(child, Leaf))
            if isinstance(child, Leaf):
                numbers[place] = len(self.leaves)
                self.leaves.append(child.value)
            else:
                numbers[place] = self.split(child)
        return place


MINUTE = 60_000_000
"""In microseconds."""
HOUR, DAY = 60 * MINUTE, 1440 * MINUTE
NAT = np.iinfo(np.int64).min
"""The missing date of NumPy."""
SPELLINGS = tuple(dict.fromkeys(form for word in ANY_CASE for form in (word, word.upper(), word.title(), "NaN")))
"""Of missing texts: no operator compares texts whatever their case."""


def features_of(graph: Graph, described: Portable) -> tuple[str, str]:
    """Add the inputs of a graph, and return the features and whether each row is refused.

    Returns the features, of shape (rows, n_features), float64; refused rows, of shape (rows,), bool.
    """
    if all(column.kind == "number" for column in described.columns):
        X = _without(graph, graph.input("features", "DOUBLE", len(described.columns)), described)
    else:
        pieces = [_piece(graph, i, described) for i in range(len(described.columns))]
        X = graph.add("Concat", *pieces, axis=1)
        order = [j for features in described.of_columns for j in features]
        if order != sorted(order):
            X = graph.add("Gather", X, graph.constant(np.argsort(order), np.int64), axis=1)
    fill = np.array([np.nan if feature.fill is None else feature.fill for feature in described.features])
    if not np.isnan(fill).all():
        X = graph.add("Where", graph.add("IsNaN", X), graph.constant(fill), X)
    return X, _refused(graph, described, X)


def _refused(graph: Graph, described: Portable, X: str) -> str:
    """Return the rows of which a value is missing that is needed, or is -1 or less where its logarithm was taken."""
    kinds = [described.columns[feature.column].kind for feature in described.features]
    required = [f.required or kind == "category" for f, kind in zip(described.features, kinds, strict=True)]
    counts = [_count(graph, graph.add("IsNaN", X), required)]
    logged = [feature.logged for feature in described.features]
    if any(logged):
        counts.append(_count(graph, graph.add("LessOrEqual", X, graph.constant(-1.0)), logged))
    total = counts[0] if len(counts) == 1 else graph.add("Add", *counts)
    return graph.vector(graph.add("Greater", total, graph.constant(0.0)))


def _count(graph: Graph, flags: str, of: list[bool]) -> str:
    """Return the number of flags of each row, of some columns."""
    mask = np.array(of, dtype=np.float64)[:, np.newaxis]
    return graph.add("MatMul", graph.as_double(flags), graph.constant(mask))


def _piece(graph: Graph, i: int, described: Portable) -> str:
    """Return the features of a column, of shape (rows, n_features of the column)."""
    column = described.columns[i]
    if column.kind == "number":
        return _without(graph, graph.column(graph.input(column.name, "DOUBLE")), described)
    if column.kind == "date":
        return _date(graph, column)
    values = [str(described.features[j].item) for j in described.of_columns[i]]
    return _category(graph, column, values, described.spelling.words)


def _without(graph: Graph, X: str, described: Portable) -> str:
    """Return numbers, and nan for those that say that a value is missing."""
    for absent in described.spelling.missing_numbers:
        X = graph.add("Where", graph.add("Equal", X, graph.constant(absent)), graph.constant(np.nan), X)
    return X


def _category(graph: Graph, column: PortableColumn, values: list[str], words: Sequence[str]) -> str:
    """Return 0/1 features; nan where a category is refused."""
    zero, refuse = len(values), len(values) + 1
    code = {value: k for k, value in enumerate(values)}
    says = {ZERO: zero, AS_MISSING: code.get(MISSING_CATEGORY, refuse)}
    missing, unknown = (says.get(what, refuse) for what in (column.if_missing, column.if_unknown))
    keys = dict.fromkeys((*SPELLINGS, *words, MISSING_CATEGORY), missing) | code
    codes = graph.add(
        "LabelEncoder", graph.input(column.name, "STRING"), domain=ML, keys_strings=list(keys),
        values_int64s=list(keys.values()), default_int64=unknown,
    )  # fmt: skip
    codes = graph.column(codes)
    ones = graph.as_double(graph.add("Equal", codes, graph.constant(np.arange(len(values)), np.int64)))
    refused = graph.add("Equal", codes, graph.constant(refuse, np.int64))
    return graph.add("Where", refused, graph.constant(np.nan), ones)


def _date(graph: Graph, column: PortableColumn) -> str:
    """Return the parts of dates; nan where a date is missing."""
    given = graph.input(column.name, "INT64")
    missing = graph.add("Equal", given, graph.constant(NAT, np.int64))
    time = graph.add("Where", missing, graph.constant(0, np.int64), given)
    nan = graph.constant(np.nan)
    pieces = [graph.column(graph.add("Where", missing, nan, _part(graph, time, part))) for part in column.parts]
    return graph.add("Concat", *pieces, axis=1)


def _part(graph: Graph, time: str, part: str) -> str:
    """Return a part of dates, one of `aucdist.data.dataset.PARTS`."""
    if part == "days":
        return graph.add("Div", graph.as_double(time), graph.constant(float(DAY)))
    if part == "hour":
        hours = graph.as_double(_floored(graph, _rest(graph, time, DAY), HOUR))
        minutes = graph.as_double(_floored(graph, _rest(graph, time, HOUR), MINUTE))
        return graph.add("Add", hours, graph.add("Div", minutes, graph.constant(60.0)))
    day = _floored(graph, time, DAY)
    if part == "weekday":  # 1970-01-01 was a Thursday
        return graph.as_double(_rest(graph, graph.add("Add", day, graph.constant(3, np.int64)), 7))
    year, month = _year_and_month(graph, day)
    return graph.as_double(year if part == "year" else month)


def _rest(graph: Graph, x: str, by: int) -> str:
    """Return what is left of integers, 0 or more."""
    return graph.add("Mod", x, graph.constant(by, np.int64))


def _floored(graph: Graph, x: str, by: int) -> str:
    """Return quotients of integers, rounded down."""
    return graph.add("Div", graph.add("Sub", x, _rest(graph, x, by)), graph.constant(by, np.int64))


def _year_and_month(graph: Graph, day: str) -> tuple[str, str]:
    """Return year and month of days since 1970-01-01, in the Gregorian calendar.

    Days are counted from 0000-03-01, so that a leap day ends its year, and in eras of 400 years, which are equally long; the five
    months from March on have 153 days, as have those from August on.
    """

    def add(x: str, by: int) -> str:
        return graph.add("Add", x, graph.constant(by, np.int64))

    def times(x: str, by: int) -> str:
        return graph.add("Mul", x, graph.constant(by, np.int64))

    since = add(day, 719_468)
    era, of_era = _floored(graph, since, 146_097), _rest(graph, since, 146_097)
    leap = graph.add("Sub", _floored(graph, of_era, 1460), _floored(graph, of_era, 36_524))
    leap = graph.add("Add", leap, _floored(graph, of_era, 146_096))
    year = _floored(graph, graph.add("Sub", of_era, leap), 365)
    before = graph.add("Sub", _floored(graph, year, 4), _floored(graph, year, 100))
    of_year = graph.add("Sub", of_era, graph.add("Add", times(year, 365), before))
    from_march = _floored(graph, add(times(of_year, 5), 2), 153)
    month = add(_rest(graph, add(from_march, 2), 12), 1)
    next_year = graph.add("Cast", graph.add("Less", month, graph.constant(3, np.int64)), to=7)  # int64
    return graph.add("Add", graph.add("Add", year, times(era, 400)), next_year), month
