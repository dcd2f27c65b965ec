"""What `data preview` says of each of several classes: its rows, the column that ranks it best alone, and what gives it away."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.label_sets import LabelSets
from aucdist.drift.traps import columns_alone, sample_of, traps_of
from aucdist.engine.blocks import LocalBlocks

MOST_CLASSES = 30
"""Columns are looked at for so many classes, those of the most rows."""


def classes_of(schema: Schema, block: Block) -> list[dict[str, Any]]:
    """Return for each class ``class``, ``rows``, ``column`` and ``auc``, the class of the most rows first.

    ``column`` ranks the rows of the class before all others best alone, with this AUC; None beyond `MOST_CLASSES` classes, and
    of data that are too wide.
    """
    found = []
    for rank, (name, view) in enumerate(_against_the_rest(schema, block)):
        alone = columns_alone(sample_of(LocalBlocks([view])), schema) if rank < MOST_CLASSES else {}
        best = max(alone, key=lambda column: alone[column].auc) if alone else None
        about = {"column": best, "auc": None if best is None else alone[best].auc}
        found.append({"class": name, "rows": int((view.y == 1).sum()), **about})
    return found


def traps_of_classes(schema: Schema, block: Block) -> list[str]:
    """Return what is suspicious in the rows, a sentence each; what several classes share is said once."""
    said: dict[str, list[str]] = {}
    for rank, (name, view) in enumerate(_against_the_rest(schema, block)):
        if rank < MOST_CLASSES:
            for text in traps_of(sample_of(LocalBlocks([view])), schema):
                said.setdefault(text, []).append(name)
    looked_at = min(MOST_CLASSES, len(schema.classes))
    return [
        text if len(names) == looked_at else f"Class {', '.join(map(repr, names))} against the rest: {text}"
        for text, names in said.items()
    ]


def _against_the_rest(schema: Schema, block: Block) -> Iterator[tuple[str, Block]]:
    """Yield the name of each class, that of the most rows first, and the rows with the labels of it against the rest."""
    assert block.code is not None
    sets = LabelSets.of_schema(schema)
    names = sets.names()
    for k in np.argsort(-sets.counts(block.code), kind="stable").tolist():
        yield names[k], replace(block, y=sets.signs(k)[block.code], code=None)
