"""Nodes of an ONNX graph, one after the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aucdist.export.trees import Leaf, Node, TreeSplit
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
