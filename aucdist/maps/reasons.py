"""Reasons: which columns raise a score most, beside the cell that would raise it least and beside the average row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.maps.base import FittedMap
from aucdist.maps.bins import BinMap
from aucdist.maps.shapes import Additive, additive, contributions


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
