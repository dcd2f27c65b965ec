"""Turn the parameter `monotone` of an estimator, which gives directions of features, into signs of weights."""

import numbers
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.formats.base import feature_names
from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError, unknown

DIRECTIONS = {"increasing": 1, "decreasing": -1}
AUTO = "auto"


class Directions:
    """The constraint of the parameter `monotone`."""

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError unless the value is None, "auto", or a mapping of features to directions."""
        if value is None or (isinstance(value, str) and value == AUTO):
            return
        if not isinstance(value, Mapping) or not value:
            raise InputError(
                f"{name} must be None, 'auto' or a mapping such as {{'age': 'increasing', 3: 'decreasing'}}; got {value!r}"
            )
        for feature, direction in value.items():
            if isinstance(feature, bool) or not isinstance(feature, str | numbers.Integral):
                raise InputError(f"the features in {name} must be names of columns or their positions; got {feature!r}")
            if not isinstance(direction, str) or direction not in DIRECTIONS:
                numbers_of_others = {str(sign): word for word, sign in DIRECTIONS.items()}
                raise unknown(f"direction of {feature!r} in {name}:", direction, DIRECTIONS, numbers_of_others)


def directions(
    monotone: Mapping[Any, str] | str | None,
    n_features: int,
    names: Sequence[str] | None,
    unordered: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> ndarray:
    """Return the direction of each feature: +1, -1 or 0, int8 of shape (n_features,).

    Parameters
    ----------
    monotone : mapping, str or None
        The names of features, or their positions counted from 0, and "increasing" or "decreasing". For None and a str, no
        feature has a direction.
    n_features : int
        The number of features.
    names : sequence of str or None
        The names of all features, if they are known.
    unordered : mapping of str to sequence of str, optional
        Columns of categories or of hashed strings, and the names of the features that are made of each.

    Returns
    -------
    ndarray of shape (n_features,), int8

    Raises
    ------
    InputError
        If a feature does not exist, is named twice, or has no order.
    """
    signs = np.zeros(n_features, dtype=np.int8)
    named = dict[int, Any]()
    place = {} if names is None else {str(name): j for j, name in enumerate(names)}
    made_of = {name: column for column, features in unordered.items() for name in (column, *features)}
    ordered = [name for name in place if name not in made_of]
    for feature, direction in monotone.items() if isinstance(monotone, Mapping) else ():
        if isinstance(feature, str):
            if names is None:
                raise InputError(
                    f"monotone names {feature!r}, but X has no column names: give positions from 0 to {n_features - 1}, or a "
                    "DataFrame"
                )
            if feature not in place and feature not in made_of:
                raise unknown("feature in `monotone`:", feature, ordered)
            name, j = feature, place.get(feature, -1)
        else:
            j = int(feature)
            if not 0 <= j < n_features:
                raise InputError(
                    f"monotone names feature {j}, but positions are from 0 to {n_features - 1}: correct it"
                )
            name = "" if names is None else str(names[j])
        if name in made_of:
            raise InputError(
                f"monotone names {feature!r}, but {made_of[name]!r} is a column of categories or strings, which have no order; "
                f"directions are for numbers and parts of dates: {', '.join(ordered) or 'there are none'}"
            )
        if j in named:
            raise InputError(
                f"monotone gives a direction to {named[j]!r} and to {feature!r}, which are one feature: remove one of "
                "them"
            )
        named[j] = feature
        signs[j] = DIRECTIONS[direction]
    return signs


def directions_of_features(estimator: Any, blocks: Blocks) -> ndarray:
    """Return the direction of each feature by the parameter of an estimator, int8 of shape (n_features,). See `directions`.

    If the rows have columns of categories, positions are those of the columns.
    """
    monotone, categories = estimator.monotone, vars(estimator).get("categories_")
    if not categories:
        return directions(monotone, blocks.n_features, blocks.feature_names)
    unordered = {column: feature_names([column], categories, {}) for column in categories}
    made_of = {feature: column for column, features in unordered.items() for feature in features}
    columns = list(dict.fromkeys(made_of.get(str(name), str(name)) for name in estimator.feature_names_out_))
    signs = dict(zip(columns, directions(monotone, len(columns), columns, unordered), strict=True))
    return np.array([signs.get(str(name), 0) for name in estimator.feature_names_out_], dtype=np.int8)


def directions_as_parameter(signs: ndarray) -> dict[int, str] | None:
    """Return the value of the parameter for these directions, by position, or None if no feature has a direction."""
    words = {sign: word for word, sign in DIRECTIONS.items()}
    return {int(j): words[int(signs[j])] for j in np.flatnonzero(signs)} or None
