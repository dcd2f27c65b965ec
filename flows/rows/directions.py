"""Directions of features in a configuration, held against the columns of the rows before anything is fitted."""

from collections.abc import Iterable
from typing import Any

from aucdist.data.dataset import Schema
from aucdist.estimators.monotone import check_directions


def check_monotone(given: Iterable[Any], schema: Schema) -> None:
    """Raise an InputError if one of these values of `monotone` names no feature, or one that is made of categories or texts."""
    unordered = {name: [f"{name}={value}" for value in values] for name, values in schema.categories.items()}
    unordered |= {name: [f"{name}#{i}" for i in range(size)] for name, size in schema.hashed.items()}
    for monotone in given:
        check_directions(monotone, schema.feature_names, unordered)
