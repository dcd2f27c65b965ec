"""Groups of rows that an audit names: the values of columns, which need not be features."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aucdist.data.shards.reading import read
from aucdist.errors import InputError
from flows.config.data import DataConfig, configured_source, source_of

MOST_GROUPS = 50


def named_groups(data: DataConfig, columns: Sequence[str], row_id: np.ndarray) -> dict[str, np.ndarray]:
    """Return the values of some columns as texts, of test rows, whose files are read once more; an empty text for a missing one.

    Raises InputError if there is no such column, or it has too many values, or the rows are shards, which keep only features.
    """
    source = source_of(data.test) if data.test is not None and data.test.is_apart else configured_source(data)
    if source.is_sharded:
        raise InputError("audit.groups needs columns of the files, and shards have only features: leave it out")
    names = list(columns)
    changes: dict[str, Any] = {
        "keep": names,
        "drop": None,
        "dates": {},
        "hashed": {},
        "groups": None,
        "cost_column": None,
    }
    changes |= {"categorical": names, "missing": "keep", "features": None, "unknown": "ignore", "layout": "dense"}
    table = read(source.model_copy(update=changes))
    features = {name: j for j, name in enumerate(table.schema.feature_names)}
    X, place = np.asarray(table.block.X), np.searchsorted(table.block.row_id, row_id)
    found = {}
    for column in columns:
        values = table.schema.categories.get(column, ())
        if not 0 < len(values) <= MOST_GROUPS:
            raise InputError(
                f"audit.groups: {column!r} has {len(values)} values; from 1 to {MOST_GROUPS} can be reported"
            )
        texts, own = np.array(["", *values], dtype=object), np.zeros(len(place), dtype=np.intp)
        for k, value in enumerate(values):
            if (at := features.get(f"{column}={value}")) is not None:
                own[X[place, at] > 0] = k + 1
        found[column] = texts[own]
    return found
