"""A model as one JSON object that says all that a score needs, in words and in the units of the columns.

Numbers are written with as many digits as tell them from all other floats, so that nothing is lost.
"""

import json
from typing import TYPE_CHECKING, Any

from aucdist import __version__
from aucdist.export.portable import Kernel, Leaf, Linear, Node, Portable, PortableColumn, Score, Steps, portable
from aucdist.linear_model import ClassModels, LinearModel

if TYPE_CHECKING:
    from aucdist.maps.explain import PairShape, Shape

VERSION = 1
"""Of the description. It grows when a reader of the older one would go wrong."""


def to_json(model: LinearModel | ClassModels, *, contributions: bool = False) -> str:
    """Return a model as a JSON object that describes all that a score needs.

    Parameters
    ----------
    model : LinearModel or ClassModels
        Of several classes, the object has the description of each.
    contributions : bool, default=False
        Whether ``contributions`` names what each shape and each pair adds, or each weight of a model without a feature map, in
        the order in which they stand; the constant comes last.

    Returns
    -------
    str
        The page "Take a model elsewhere" explains its keys.

    Raises
    ------
    InputError
        If the model has a feature map that cannot be described, or that has no contributions.

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> from aucdist.data.dataset import Schema
    >>> from aucdist.data.preprocess import Preprocessor
    >>> from aucdist.export import to_json
    >>> scaling = Preprocessor((), "maxabs", None, np.array([0.5, 0.25]))
    >>> schema = Schema(("age", "income"), "clicked", ("yes",), ("no",), {})
    >>> json.loads(to_json(LinearModel(np.array([1.0, -2.0]), 0.5, schema, scaling, {})))["score"]
    {'kind': 'linear', 'constant': 0.5, 'weights': [0.5, -0.5], 'centers': [0.0, 0.0]}
    """
    content = _of_classes(model, contributions) if isinstance(model, ClassModels) else _content(model, contributions)
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _of_classes(model: ClassModels, contributions: bool) -> dict[str, Any]:
    return {
        "format": "aucdist models",
        "version": VERSION,
        "aucdist": __version__,
        "topics": model.topics,
        "classes": [
            {"name": name, "spread": float(spread), "model": _content(one, contributions)}
            for name, spread, one in zip(model.classes, model.spreads, model.models, strict=True)
        ],
    }


def _content(model: LinearModel, contributions: bool) -> dict[str, Any]:
    described = portable(model)
    content = {
        "format": "aucdist model",
        "version": VERSION,
        "aucdist": __version__,
        "estimator": model.about.get("estimator"),
        "label": model.schema.label,
        "positive": list(model.schema.positive),
        "negative": list(model.schema.negative),
        "missing": list(described.spelling.words),
        "columns": [_column(column, described) for column in described.columns],
        "features": [
            {
                "name": feature.name,
                "column": described.columns[feature.column].name,
                "item": feature.item,
                "fill": feature.fill,
                "above": -1.0 if feature.logged else None,
                "log1p": j in described.with_logs,
                "required": feature.required,
            }
            for j, feature in enumerate(described.features)
        ],
        "unit_rows": described.unit_rows,
        "score": _score(described.score),
        "threshold": 0.0,
        "probability": None if model.probability is None else model.probability.to_json(),
    }
    if contributions:
        content["contributions"] = model.contribution_names()
    return content


def _column(column: PortableColumn, described: Portable) -> dict[str, Any]:
    content: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "category":
        content |= {"values": list(column.values), "if_missing": column.if_missing, "if_unknown": column.if_unknown}
    elif column.kind == "date":
        content |= {"parts": list(column.parts), "date_format": described.model.reading.get("date_format")}
    elif column.kind == "hash":
        content["size"] = column.size
    return content


def _score(score: Score) -> dict[str, Any]:
    if isinstance(score, Linear):
        return {
            "kind": "linear", "constant": score.constant, "weights": score.weights.tolist(),
            "centers": score.centers.tolist(),
        }  # fmt: skip
    if isinstance(score, Steps):
        return {
            "kind": "steps", "constant": score.constant, "shapes": [_shape(shape) for shape in score.shapes],
            "pairs": [_pair(pair) for pair in score.pairs],
        }  # fmt: skip
    if isinstance(score, Kernel):
        return {
            "kind": "kernel", "constant": score.constant, "centers": score.centers.tolist(),
            "scales": score.scales.tolist(), "weights": score.weights.tolist(), "width": score.width,
            "landmarks": score.landmarks.tolist(), "amounts": score.amounts.tolist(),
        }  # fmt: skip
    return {"kind": "trees", "constant": score.constant, "trees": [_node(tree) for tree in score.trees]}


def _shape(shape: "Shape") -> dict[str, Any]:
    return {
        "feature": shape.feature, "edges": shape.edges.tolist(), "values": shape.values.tolist(),
        "missing": shape.missing,
    }  # fmt: skip


def _pair(pair: "PairShape") -> dict[str, Any]:
    return {
        "features": list(pair.features), "edges": [edges.tolist() for edges in pair.edges],
        "missing": list(pair.missing), "values": pair.values.tolist(),
    }  # fmt: skip


def _node(node: Node) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {"value": node.value}
    return {
        "feature": node.feature, "at_most": node.at_most, "missing": "then" if node.missing_to_then else "else",
        "then": _node(node.then), "else": _node(node.otherwise),
    }  # fmt: skip
