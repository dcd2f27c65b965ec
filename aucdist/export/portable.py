"""Describe a model by columns, conditions on them, and numbers in their units, without features that only aucdist has.

The exports to SQL, ONNX and JSON are all written from this description. Scaling is folded into weights and into the edges of
bins and trees, so that the other system need not scale anything. The exception is a model whose rows are scaled to length one.

The module also writes the description as one JSON object. It has all that a score needs, in the units of the columns. Numbers
are written with the shortest digits that restore the same float.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist import __version__
from aucdist.data.dataset import Schema
from aucdist.data.formats.table_options import MISSING_CATEGORY, Spelling
from aucdist.data.preprocess import Preprocessor
from aucdist.errors import InputError, Json
from aucdist.kernels.codes import expand
from aucdist.kernels.float_order import floats_of_keys, ordered_keys
from aucdist.maps.bins import BinMap
from aucdist.maps.explain import Additive, additive
from aucdist.maps.leaves import ZEROS_ARE_MISSING, Forest, LeafMap
from aucdist.maps.nystroem import LINEAR_SCALE, NystroemFeatures
from aucdist.model.files import as_model
from aucdist.model.linear_model import LinearModel
from aucdist.parameters import frozen

MAX_FLOAT = float(np.finfo(np.float64).max)
"""The largest float: JSON has no infinity."""
WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
REFUSE, ZERO, AS_MISSING = "refuse", "zero", "missing category"
"""The treatments of missing and unknown categories: no score, all features of the column 0, or the category `(missing)`."""


@dataclass(frozen=True)
class PortableColumn:
    """A column that a model reads.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : str
        ``number``, ``category``, ``date`` or ``hash``.
    values : tuple of str
        The categories of a column of categories.
    parts : tuple of str
        The parts of a date that are features, some of `aucdist.data.dataset.PARTS`.
    size : int
        The number of hashed features.
    if_missing, if_unknown : str
        What happens to a missing and to an unknown category: `REFUSE`, `ZERO` or `AS_MISSING`.
    """

    name: str
    kind: str = "number"
    values: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    size: int = 0
    if_missing: str = REFUSE
    if_unknown: str = REFUSE


@dataclass(frozen=True)
class Feature:
    """A number that is computed from one column.

    Attributes
    ----------
    name : str
        The name of the feature.
    column : int
        The position of its column.
    item : str, int or None
        The category for which the feature is 1, the part of a date, or the number that the hash must have. It is None if the
        feature is the column itself.
    fill : float or None
        The value that replaces a missing one.
    logged : bool
        Whether the feature is transformed by log(1 + x), so that rows with values of -1 and below have no score.
    required : bool
        Whether a row without a value has no score.
    """

    name: str
    column: int
    item: str | int | None
    fill: float | None
    logged: bool
    required: bool


@dataclass(frozen=True)
class TreeSplit:
    """A split of a decision tree.

    Attributes
    ----------
    feature : int
        The position of the feature.
    at_most : float
        Rows whose value is at most this go to `then`, and the others to `otherwise`. It is infinite where only rows without a
        value go to `otherwise`.
    missing_to_then : bool
        Whether rows without a value go to `then`.
    then : TreeNode
        The part of the tree for rows that meet the condition.
    otherwise : TreeNode
        The part of the tree for the other rows.
    """

    feature: int
    at_most: float
    missing_to_then: bool
    then: "TreeNode"
    otherwise: "TreeNode"


TreeNode = float | TreeSplit
"""A split, or the value of a leaf."""


@frozen
class Linear:
    """The score ``constant + sum of weight * (value - center)``. For features that are logged, the value is log(1 + x)."""

    constant: float
    weights: ndarray
    centers: ndarray


@frozen
class Trees:
    """The score of trees: ``constant`` plus the values of the leaves that a row reaches, one in each tree."""

    constant: float
    trees: tuple[TreeNode, ...]


@frozen
class Kernel:
    """The score of a model with landmarks.

    With ``z = (value - center) * scale``, it is ``constant + z'weights + sum of amount * exp(-|z - landmark|^2 / width^2)``.

    Parameters
    ----------
    constant : float
        The constant of the score.
    centers, scales, weights : ndarray of shape (n_features,), float64
        The center, the scale and the weight of each feature.
    width : float
        The width of the Gaussian kernel.
    landmarks : ndarray of shape (n_landmarks, n_features), float64
        The points that rows are compared with, in units of z.
    amounts : ndarray of shape (n_landmarks,), float64
        The weight of each landmark.
    """

    constant: float
    centers: ndarray
    scales: ndarray
    weights: ndarray
    width: float
    landmarks: ndarray
    amounts: ndarray


ScoreFormula = Linear | Additive | Trees | Kernel
"""The formula of a score. Edges of bins and of trees are in the units of the columns."""


@frozen
class Portable:
    """The description of a model for other systems.

    Parameters
    ----------
    model : LinearModel
        The model, for its classes, its probabilities and the rest of what is saved with it.
    columns : tuple of PortableColumn
        The columns that the model reads.
    features : tuple of Feature
        The features that are computed from the columns.
    unit_rows : bool
        Whether the features of a row, after logarithms, are divided by their Euclidean length. A row of zeros stays as it is.
    score : ScoreFormula
        The formula of the score.
    """

    model: LinearModel
    columns: tuple[PortableColumn, ...]
    features: tuple[Feature, ...]
    unit_rows: bool
    score: ScoreFormula

    @cached_property
    def features_by_column(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the features that are computed from each column."""
        made: list[list[int]] = [[] for _ in self.columns]
        for j, feature in enumerate(self.features):
            made[feature.column].append(j)
        return tuple(map(tuple, made))

    @property
    def spelling(self) -> Spelling:
        """The texts and numbers that mark a missing value."""
        words: Any = self.model.reading.get("missing_values", ())
        return Spelling(missing=tuple(map(str, words)))

    @cached_property
    def with_logs(self) -> tuple[int, ...]:
        """The features whose logarithm the score takes. There are none if the edges are in the units of the columns."""
        if isinstance(self.score, Additive | Trees) and not self.unit_rows:
            return ()
        return tuple(j for j, feature in enumerate(self.features) if feature.logged)

    def check_no_hashes(self, target: str) -> None:
        """Raise an InputError if a column is hashed, because the target has no such hash function."""
        hashed = [column.name for column in self.columns if column.kind == "hash"]
        if hashed:
            raise InputError(
                f"{target} has no BLAKE2 hash, which the features of {', '.join(map(repr, hashed))} need: export to json, "
                "or train with these columns in `categorical`"
            )


def describe(model: LinearModel) -> Portable:
    """Describe a model in the terms of other systems.

    Raises
    ------
    InputError
        If the model has a feature map that cannot be described.
    """
    score, looked_at = _score_formula(model)
    columns, made = _columns_read(model.schema, model.reading)
    names, preprocessor = model.schema.feature_names, model.preprocessor
    features = tuple(
        Feature(
            names[j], column, item,
            fill=None if preprocessor.fill is None or columns[column].kind == "category" else float(preprocessor.fill[j]),
            logged=j in preprocessor.log1p,
            required=preprocessor.fill is None and (j in looked_at or preprocessor.impute != "keep"),
        )
        for j, (column, item) in enumerate(made)
    )  # fmt: skip
    return Portable(model, columns, features, preprocessor.scale == "unit-row", score)


def describe_model(model: LinearModel, target: str, *, contributions: bool) -> tuple[list[Portable], list[str]]:
    """Describe a model for a target, and name its contributions if they are asked for.

    Parameters
    ----------
    model : LinearModel
        The model.
    target : str
        The name of the target format, for errors.
    contributions : bool
        Whether the names of the contributions are returned as well.

    Returns
    -------
    tuple (list of Portable, list of str)
        The description of the model; for several classes one description for each class, which all read the same columns. Then
        the names of the contributions.

    Raises
    ------
    InputError
        If the model cannot be described (see `describe`), or if the target has no hash function for a hashed column. For
        several classes, also if contributions are asked for, or if a row may have a score for one class and none for another.
    """
    if contributions and model.classes:
        raise InputError(
            f"contributions belong to one class: export one class, such as RUN/model/class-00000, to {target}, or all to json"
        )
    described, names = list(map(describe, model.models)), model.contribution_names() if contributions else []
    if any(each.features != described[0].features for each in described):
        raise InputError(
            f"the models of the classes treat missing values differently, which one export to {target} "
            "cannot express: export each class alone, such as RUN/model/class-00000"
        )
    described[0].check_no_hashes(target)
    return described, names


def other_spellings(categories: Sequence[str]) -> dict[str, str]:
    """Return other spellings of categories that are whole numbers, such as 1.0 for 1.

    The values of the result are the categories that the spellings mean.
    """
    whole = {value.removesuffix(".0"): value for value in categories}
    return {f"{text}.0" if text == value else text: value for text, value in whole.items() if WHOLE.fullmatch(text)}


def free_name(name: str, taken: set[str], form: Callable[[str], str] = str) -> str:
    """Return a name that is not taken, by appending underscores to it, and add it to the names that are taken.

    Parameters
    ----------
    name : str
        The name that is wanted.
    taken : set of str
        The canonical forms of the names that are taken; the new one is added.
    form : callable, optional
        Maps names to a canonical form. Two names with the same form collide, as names in SQL that differ only in case.
    """
    while form(name) in taken:
        name += "_"
    taken.add(form(name))
    return name


def _columns_read(
    schema: Schema, reading: dict[str, object]
) -> tuple[tuple[PortableColumn, ...], list[tuple[int, str | int | None]]]:
    """Return the columns that a model reads, and for each feature the position of its column and its item (see `Feature`)."""
    columns = list[PortableColumn]()
    made: dict[int, tuple[int, str | int | None]] = {}
    for name, features in schema.by_column().items():
        made |= {j: (len(columns), item) for j, item in features.items()}
        if name in schema.categories:  # other strings are treated as by `aucdist.data.formats.tables`
            values = schema.categories[name]
            missing = as_missing = AS_MISSING if MISSING_CATEGORY in values else REFUSE
            unknown = {"ignore": ZERO, "as-missing": as_missing}.get(str(reading.get("unknown")), REFUSE)
            if reading and reading.get("missing") != "keep":
                missing = REFUSE
            elif as_missing == REFUSE and unknown == ZERO:
                missing = ZERO
            column = PortableColumn(name, "category", tuple(values), if_missing=missing, if_unknown=unknown)
        elif name in schema.hashed:
            column = PortableColumn(name, "hash", size=schema.hashed[name])
        elif name in schema.dates:
            column = PortableColumn(name, "date", parts=schema.dates[name])
        else:
            column = PortableColumn(name)
        columns.append(column)
    return tuple(columns), [made[j] for j in range(len(made))]


def _score_formula(model: LinearModel) -> tuple[ScoreFormula, set[int]]:
    """Return the formula of the score, and the positions of the features whose values it needs."""
    fitted, preprocessor, d = model.feature_map, model.preprocessor, len(model.schema.feature_names)
    shift = np.zeros(d) if preprocessor.shift is None else preprocessor.shift
    factor = np.ones(d) if preprocessor.factor is None else preprocessor.factor
    if fitted is None:
        return Linear(model.intercept, model.coef * factor, shift), set(range(d))

    if isinstance(fitted, BinMap):
        parts = additive_in_units(additive(fitted, model.coef, model.intercept), preprocessor)
        return parts, {shape.feature for shape in parts.shapes if shape.missing is None}
    if isinstance(fitted, LeafMap):
        return Trees(model.intercept, forest(fitted, model.coef, preprocessor)), set()
    if isinstance(fitted, NystroemFeatures):
        n, linear = fitted.directions.shape[1], np.zeros(d)
        if fitted.linear == "keep":
            linear = LINEAR_SCALE * model.coef[n:]
        kernel = Kernel(
            model.intercept, shift + fitted.shift / factor, factor * fitted.factor, linear, fitted.sigma, fitted.landmarks,
            fitted.directions @ model.coef[:n],
        )  # fmt: skip
        return kernel, set(range(d))
    raise InputError(
        f"a model with the feature map {type(fitted).__name__} cannot be exported: use none, bins, leaves or "
        "landmarks (nystroem)"
    )


def forest(fitted: LeafMap, w: ndarray, preprocessor: Preprocessor) -> tuple[TreeNode, ...]:
    """Return the trees that have more than one leaf.

    Parameters
    ----------
    fitted : LeafMap
        The feature map that was fitted to the training rows.
    w : ndarray of shape (n_leaves,), float64
        The weights of all leaves, and of the steps between neighbouring leaves.
    preprocessor : Preprocessor
        The scaling of the features; see `edges_in_units`.

    Raises
    ------
    InputError
        If a split treats zeros as missing values, which other systems cannot do.
    """
    table = expand(fitted.code_basis, np.ascontiguousarray(w, dtype=np.float64))
    starts = np.cumsum([0, *(fitted.n_leaves[k] for k in fitted.used)])
    return tuple(
        _node(fitted.forest, root, table[starts[k] : starts[k + 1]], preprocessor)
        for k, root in enumerate(fitted.forest.starts[:-1].tolist())
    )


def _node(trees: Forest, node: int, values: ndarray, preprocessor: Preprocessor) -> TreeNode:
    if node < 0:
        return float(values[-1 - node])
    feature, edge = int(trees.features[node]), trees.thresholds[node]
    if trees.missing[node] == ZEROS_ARE_MISSING:
        raise InputError(
            f"a tree splits feature {feature} (counted from 0) by `zero_as_missing`, which cannot be exported: train with NaN "
            "as missing"
        )
    # LightGBM treats a missing value as 0 if the feature had none in training
    to_then = bool(trees.default_left[node] if trees.missing[node] else edge >= 0.0)
    (at_most,) = edges_in_units(np.array([edge]), feature, preprocessor)
    then, otherwise = (_node(trees, int(child[node]), values, preprocessor) for child in (trees.left, trees.right))
    return TreeSplit(feature, float(at_most), to_then, then, otherwise)


def trees_of(score: Additive) -> list[TreeNode]:
    """Return a tree for each shape and each interaction."""
    trees = [_bins(shape.feature, shape.edges, shape.values.tolist(), shape.missing) for shape in score.shapes]
    for interaction in score.interactions:
        (a, b), (missing_row, missing_column) = interaction.features, map(int, interaction.missing)
        rows = list[TreeNode]()
        for values in interaction.values:
            missing = float(values[0]) if missing_column else None
            rows.append(_bins(b, interaction.edges[1], values[missing_column:].tolist(), missing))
        trees.append(_bins(a, interaction.edges[0], rows[missing_row:], rows[0] if missing_row else None))
    return trees


def _bins(feature: int, edges: ndarray, ends: Sequence[TreeNode], missing: TreeNode | None = None) -> TreeNode:
    """Return a balanced tree that leads each row to the end of its bin.

    Rows without a value go to `missing`, or to the last bin.
    """
    if missing is not None:
        return TreeSplit(feature, np.inf, False, _bins(feature, edges, ends), missing)
    if len(ends) == 1:
        return ends[0]
    middle = (len(ends) - 1) // 2
    then, otherwise = ends[: middle + 1], ends[middle + 1 :]
    return TreeSplit(
        feature, float(edges[middle]), False, _bins(feature, edges[:middle], then), _bins(feature, edges[middle + 1 :], otherwise)
    )  # fmt: skip


def additive_in_units(parts: Additive, preprocessor: Preprocessor) -> Additive:
    """Return the parts of a model with their edges in the units of the data.

    `preprocessor` is the one that scaled the features.
    """
    shapes = tuple(
        replace(
            s,
            **{key: edges_in_units(getattr(s, key), s.feature, preprocessor) for key in ("edges", "means", "extremes")},  # type: ignore[arg-type]
        )
        for s in parts.shapes
    )
    interactions = tuple(
        replace(
            part, edges=tuple(edges_in_units(*of, preprocessor) for of in zip(part.edges, part.features, strict=True))
        )
        for part in parts.interactions
    )
    return Additive(parts.constant, shapes, interactions)


def edges_in_units(edges: ndarray, j: int, preprocessor: Preprocessor) -> ndarray:
    """Return for each edge the largest value of a feature whose scaled value is not above the edge.

    Scaling is monotone, so a value is above the result exactly if its scaled value is above the edge. An edge that
    was computed by the inverse of the scaling would be off by a rounding, and rows that lie on it could change sides.

    Parameters
    ----------
    edges : ndarray of shape (n_edges,), float64
        The edges, in units of the scaled feature.
    j : int
        The position of the feature.
    preprocessor : Preprocessor
        The scaling. With ``unit-row`` the edges stay as they are, because this scaling does not depend on one feature alone.

    Returns
    -------
    ndarray of shape (n_edges,), float64
        The edges in units of the feature.
    """
    logged = j in preprocessor.log1p
    if preprocessor.scale == "unit-row" or (not logged and preprocessor.factor is None):
        return edges
    ends = ordered_keys(np.array([np.nextafter(-1.0, 0.0) if logged else -MAX_FLOAT, MAX_FLOAT]))
    low, high = (np.full(len(edges), end) for end in ends)
    with np.errstate(over="ignore"):
        while (low < high).any():
            # half of the sum, rounded up, computed without overflow
            middle = (low >> 1) + (high >> 1) + ((low | high) & 1)
            x = floats_of_keys(middle)  # scaled by the operations of `Preprocessor.transform`
            x = np.log1p(x) if logged else x
            x = x if preprocessor.shift is None else x - preprocessor.shift[j]
            below = (x if preprocessor.factor is None else x * preprocessor.factor[j]) <= edges
            low, high = np.where(below, middle, low), np.where(below, high, middle - 1)
    return floats_of_keys(low)


VERSION = 1
"""The version of the description. It is increased if readers of older versions would misread a file."""
KEYS = {
    "number": (), "category": ("values", "if_missing", "if_unknown"), "date": ("parts", "date_format"), "hash": ("size",),
}  # fmt: skip
"""The keys of a column of each kind, besides its name and kind."""
SCORE_KINDS = {Linear: "linear", Additive: "steps", Kernel: "kernel", Trees: "trees"}


def to_json(model: Any, *, contributions: bool = False) -> str:
    """Return a model as a JSON object that describes all that a score needs.

    Parameters
    ----------
    model : estimator or LinearModel
        The fitted model. For several classes, the object has a description of each class.
    contributions : bool, default=False
        Whether the object has a key ``contributions`` with the names of the terms of the score: of each shape and each
        interaction, or of each weight of a model without a feature map. They have the order of the object, and the constant is
        the last one.

    Returns
    -------
    str
        A JSON object. The page "The JSON description of a model" explains its keys.

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
    model = as_model(model)
    if model.classes:
        members = zip(model.classes, model.spreads.tolist(), model.models, strict=True)
        classes = [
            {"name": name, "spread": by, "model": _content(binary, contributions)} for name, by, binary in members
        ]
        content = {
            "format": "aucdist models", "version": VERSION, "aucdist": __version__, "topics": model.topics, "classes": classes,
        }  # fmt: skip
    else:
        content = _content(model, contributions)
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _content(model: LinearModel, contributions: bool) -> Json:
    described = describe(model)
    columns = list[Json]()
    for column in described.columns:
        entry = vars(column) | {"date_format": model.reading.get("date_format")}
        columns.append({key: entry[key] for key in ("name", "kind", *KEYS[column.kind])})
    content = {
        "format": "aucdist model",
        "version": VERSION,
        "aucdist": __version__,
        "estimator": model.about.get("estimator"),
        "label": model.schema.label,
        "positive": model.schema.positive,
        "negative": model.schema.negative,
        "missing": described.spelling.words,
        "missing_numbers": described.spelling.missing_numbers.tolist(),
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
        "score": {"kind": SCORE_KINDS[type(described.score)]} | _plain(described.score),
        "threshold": 0.0,
        "probability": None if model.probability is None else model.probability.to_json(),
    }
    if contributions:
        content["contributions"] = model.contribution_names()
    return content


def _plain(part: Any) -> Any:
    """Convert a part of a score to JSON types, and leave out what describes the training rows."""
    if isinstance(part, ndarray):
        return part.tolist()
    if isinstance(part, tuple):
        return [_plain(item) for item in part]
    if isinstance(part, TreeSplit):
        branch_true, branch_false = (
            {"value": node} if isinstance(node, float) else _plain(node) for node in (part.then, part.otherwise)
        )
        return {
            "feature": part.feature, "at_most": min(part.at_most, MAX_FLOAT),
            "missing": "then" if part.missing_to_then else "else", "then": branch_true, "else": branch_false,
        }  # fmt: skip
    if is_dataclass(part):
        return {  # The key is "pairs" for interactions, because version 1 of the format is read by other programs.
            "pairs" if field.name == "interactions" else field.name: _plain(getattr(part, field.name))
            for field in fields(part)
            if field.name not in ("shares", "means", "extremes")
        }
    return part
