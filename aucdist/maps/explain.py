"""What each feature adds to a score: of models of bins, and of linear ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.maps.base import FittedMap
from aucdist.maps.bins import BinMap
from aucdist.maps.shapes import Additive, additive, contributions

CONSTANT, ROUNDING = "constant", "rounding"
PREFIX = "adds_"
"""Before the names of contributions where they stand beside scores and columns of data."""
MOST_CONTRIBUTIONS = 4096
"""Tables that leave with the scores have at most so many columns of them."""


def shapes_of(w: np.ndarray, intercept: float, fitted: FittedMap | None) -> Additive:
    """Return a model of bins, taken apart.

    Raises InputError if its features are not binned.
    """
    if not isinstance(fitted, BinMap):
        raise InputError("a model has shapes if its features are binned: fit it with features='bins'")
    return additive(fitted, w, intercept)


def explanation(
    block: Block, features: Sequence[str], w: np.ndarray, intercept: float, fitted: FittedMap | None
) -> pd.DataFrame:
    """Return what each feature, and each pair of features, adds to the score of each row.

    `block`: rows as the model's feature map takes them, or as the weights do.
    `w`: of shape (n_weights,), float64.
    Returns a column for each contribution, and last ``constant``, with an underscore where a feature has that name: the sum of a
        row is its score.
    Raises InputError for a map that mixes features.
    """
    names = contribution_names(features, fitted)
    if fitted is None:
        X = sp.csr_matrix(block.X).toarray() if sp.issparse(block.X) else block.X
        return _table(np.asarray(X, dtype=np.float64) * w, names, intercept)
    assert isinstance(fitted, BinMap)
    parts = additive(fitted, w, intercept)
    return _table(contributions(fitted, parts, block), names, parts.constant)


def contribution_names(features: Sequence[str], fitted: FittedMap | None) -> list[str]:
    """Return the name of each contribution to a score: features, then pairs of them, without the constant.

    Raises InputError for a map that mixes features.
    """
    if fitted is None:
        return list(features)
    if not isinstance(fitted, BinMap):
        raise InputError(
            f"{type(fitted).__name__} mixes all features, so that a score is no sum of what each adds; bins do not: "
            "fit the model with features='bins'"
        )
    pairs = [f"{features[a]} & {features[b]}" for a, b in fitted.pairs]
    return [features[j] for j in fitted.used] + pairs


def exported_names(features: Sequence[str], fitted: FittedMap | None) -> list[str]:
    """Return the names of contributions that leave with the scores, the last that of the constant.

    Raises InputError for a map that mixes features, too many contributions, or two of one name.
    """
    own = contribution_names(features, fitted)
    names = [f"{PREFIX}{name}" for name in (*own, _free_name(CONSTANT, own))]
    refuse_names([*names, _free_name(f"{PREFIX}{ROUNDING}", names)])
    return names


def refuse_names(names: Sequence[str]) -> None:
    """Raise an InputError for too many columns of contributions, those of rounding among them, or for two of one name."""
    if len(names) > MOST_CONTRIBUTIONS + 1:
        raise InputError(
            f"a score has {len(names) - 1} contributions, and at most {MOST_CONTRIBUTIONS} leave beside it"
        )
    given: set[str] = set()
    for name in names:
        if name in given:
            raise InputError(f"two contributions are named {name!r}: rename the feature that is called so")
        given.add(name)


def with_rounding(table: pd.DataFrame, scores: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return contributions as columns whose sum, from the first to the last, is the score to the last bit.

    The last of them is what the sum of the others leaves out by rounding. A difference of nearby floats is exact, so the sum is,
    too, but where a score is so much smaller than its parts that it is rounding itself.

    `table`: as `explanation` returns it.
    `scores`: of shape (n_samples,), float64.
    `names`: as `exported_names` returns them.
    """
    values, total = table.to_numpy(), np.zeros(len(scores))
    for column in values.T:
        total = total + column
    rounding = _free_name(f"{PREFIX}{ROUNDING}", names)
    return dict(zip(names, values.T, strict=True)) | {rounding: scores - total}


def _table(values: np.ndarray, names: Sequence[str], constant: float) -> pd.DataFrame:
    whole = np.column_stack((values, np.full(len(values), constant)))
    return pd.DataFrame(whole, columns=[*names, _free_name(CONSTANT, names)])


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return a name with as many underscores at its end as make it differ from those taken."""
    while name in taken:
        name += "_"
    return name


@dataclass(frozen=True, eq=False)
class Reasons:
    """What each column, and each pair of features, adds to the score of each row, beside two others.

    `names`: of columns; those of the categories of one column are one.
    `beside_best`, of shape (n_samples, n_names), float64: what it adds beyond what it would add in the cell, or for the
        category, where that is least; never below 0.
    `beside_average`, of shape (n_samples, n_names), float64: what it adds beyond its mean over the training rows.
    """

    names: list[str]
    beside_best: np.ndarray
    beside_average: np.ndarray


def reasons(
    block: Block,
    features: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    w: np.ndarray,
    fitted: FittedMap | None,
) -> Reasons:
    """Return the reasons of rows.

    `block`: rows as the model's feature map takes them.
    `categories`: of each categorical column, as in `Schema`.
    `w`: of shape (n_weights,), float64.
    Raises InputError if the features are not binned: then there is no best cell.
    """
    if not isinstance(fitted, BinMap):
        raise InputError("reasons need cells, of which one is the best: fit the model with features='bins'")
    parts = additive(fitted, w)
    adds = contributions(fitted, parts, block)
    column = {f"{name}={value}": name for name, values in categories.items() for value in values}
    own = [features[shape.feature] for shape in parts.shapes]
    names = [column.get(name, name) for name in own] + parts.names(features)[len(own) :]
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    total = np.column_stack([adds[:, among].sum(axis=1) for among in places.values()])
    least = np.array([_least(parts, among, len(categories.get(name, ()))) for name, among in places.items()])
    return Reasons(list(places), np.maximum(total - least, 0.0), total)


def _least(parts: Additive, among: Sequence[int], n_categories: int) -> float:
    """Return the least that a column, or a pair, can add."""
    cells = [
        parts.shapes[k].cells if k < len(parts.shapes) else parts.pairs[k - len(parts.shapes)].values for k in among
    ]
    if n_categories == 0:
        return float(cells[0].min())
    absent = sum(float(one[-2]) for one in cells)
    present = [absent + float(one[-1] - one[-2]) for one in cells]
    # A category that all or no training rows had has no shape, and adds nothing.
    return min(present + ([absent] if n_categories > len(cells) else []))
