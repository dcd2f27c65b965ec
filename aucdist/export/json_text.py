"""Export a model as one JSON object that describes all that a score needs, in the units of the columns.

Numbers are written with the shortest digits that restore the same float.
"""

import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from aucdist import __version__
from aucdist.errors import Json
from aucdist.export.portable import Kernel, Linear, Trees, TreeSplit, portable
from aucdist.maps.explain import Additive
from aucdist.model.linear_model import LinearModel

VERSION = 1
"""The version of the description. It is increased if readers of older versions would misread a file."""
KINDS = {Linear: "linear", Additive: "steps", Kernel: "kernel", Trees: "trees"}


def to_json(model: LinearModel, *, contributions: bool = False) -> str:
    """Return a model as a JSON object that describes all that a score needs.

    Parameters
    ----------
    model : LinearModel
        For several classes, the object has a description of each.
    contributions : bool, default=False
        Whether ``contributions`` names what each shape and each pair adds, or each weight of a model without a feature map, in
        the order of the object; the constant comes last.

    Returns
    -------
    str
        A JSON object. The page "Exporting to ONNX, SQL and JSON" explains its keys.

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
    >>> from aucdist.model.linear_model import ClassWeights, LinearModel
    >>> weights = ClassWeights(np.array([1.0, -2.0]), 0.5, {})
    >>> json.loads(to_json(LinearModel((weights,), schema, scaling)))["score"]
    {'kind': 'linear', 'constant': 0.5, 'weights': [0.5, -0.5], 'centers': [0.0, 0.0]}
    """
    if model.classes:
        members = zip(model.classes, model.spreads.tolist(), model.models, strict=True)
        classes = [{"name": name, "spread": by, "model": _content(own, contributions)} for name, by, own in members]
        content = {
            "format": "aucdist models", "version": VERSION, "aucdist": __version__, "topics": model.topics, "classes": classes,
        }  # fmt: skip
    else:
        content = _content(model, contributions)
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _content(model: LinearModel, contributions: bool) -> Json:
    described = portable(model)
    columns: list[Json] = []
    for column in described.columns:
        own: Json = {"name": column.name, "kind": column.kind}
        columns.append(own)
        if column.kind == "category":
            own |= {"values": list(column.values), "if_missing": column.if_missing, "if_unknown": column.if_unknown}
        elif column.kind == "date":
            own |= {"parts": list(column.parts), "date_format": model.reading.get("date_format")}
        elif column.kind == "hash":
            own |= {"size": column.size}
    content = {
        "format": "aucdist model",
        "version": VERSION,
        "aucdist": __version__,
        "estimator": model.about.get("estimator"),
        "label": model.schema.label,
        "positive": list(model.schema.positive),
        "negative": list(model.schema.negative),
        "missing": list(described.spelling.words),
        "columns": columns,
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
        "score": {"kind": KINDS[type(described.score)]} | _plain(described.score),
        "threshold": 0.0,
        "probability": None if model.probability is None else model.probability.to_json(),
    }
    if contributions:
        content["contributions"] = model.contribution_names()
    return content


def _plain(part: Any) -> Any:
    """Convert a part of a score to types of JSON, without the shares of rows."""
    if isinstance(part, np.ndarray):
        return part.tolist()
    if isinstance(part, tuple):
        return [_plain(item) for item in part]
    if isinstance(part, TreeSplit):
        branch_true, branch_false = (
            {"value": node} if isinstance(node, float) else _plain(node) for node in (part.then, part.otherwise)
        )
        return {
            "feature": part.feature, "at_most": part.at_most, "missing": "then" if part.missing_to_then else "else",
            "then": branch_true, "else": branch_false,
        }  # fmt: skip
    if is_dataclass(part):
        return {field.name: _plain(getattr(part, field.name)) for field in fields(part) if field.name != "shares"}
    return part
