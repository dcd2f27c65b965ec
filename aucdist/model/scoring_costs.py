"""What the decisions on scored rows cost: what they did cost where labels are known, else what probabilities expect."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.label_sets import LabelSets
from aucdist.data.own_files import CHECKED, REPAIR, Count, parse_checked
from aucdist.data.shards.manifest import manifest_of
from aucdist.data.sources import Source
from aucdist.data.storage.files import opened, shown
from aucdist.errors import InputError, Json
from aucdist.metrics.costs import ClassCosts, DecisionCosts
from aucdist.metrics.decisions import Costs
from aucdist.model.linear_model import LinearModel

LARGEST = b"aucdist.largest_costs_of_classes"
"""In the metadata of a file of scores: for each class how many rows have it and have it not, and what a wrong decision on one of
these costs at most."""
Largest = list[tuple[tuple[Count, float], tuple[Count, float]]]


@dataclass(frozen=True)
class RowCosts:
    """How the column ``cost`` of scores comes about.

    `cost`: ``false_alarm`` and ``miss``, as the model was trained for: numbers, or `aucdist.metrics.decisions.COST_COLUMN`.
    `labelled`: whether the labels of the rows are known.
    `unknown`: why there are no costs; empty where there are.
    `classes`: of a model of several, each of which has a column such as ``cost sports``.
    """

    __pydantic_config__ = CHECKED

    cost: dict[str, float | str]
    labelled: bool
    unknown: str = ""
    classes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The classes; of a model of two classes one without a name."""
        return self.classes or ("",)

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns that scores get."""
        return {column("cost", name): pa.float64() for name in self.names}

    def source_keys(self, source: Source) -> Json:
        """Return the keys of the source that name the columns of labels and costs."""
        if self.unknown:
            return {}
        costs = source.cost_column if Costs(**self.cost).differ_by_row else None
        return {"cost_column": costs, "label": source.label if self.labelled else None}

    def add_cost_columns(self, scores: pa.Table, block: Block, model: LinearModel, schema: Schema) -> pa.Table:
        """Return the scores with ``cost`` of each class, and ``y`` of two classes where labels are known: -1 or 1.

        Without labels it is the cost that the probability of the class expects, before those of several classes sum to 1.

        `model`: gave the scores.
        `schema`: of the rows as they were read.
        """
        if self.unknown:
            for name in self.columns:
                scores = scores.append_column(name, pa.nulls(scores.num_rows, pa.float64()))
            return scores
        members = block.y[:, np.newaxis] > 0
        if self.labelled and self.classes:
            members = members_of(block, schema, self.classes)
        elif self.labelled:
            scores = scores.append_column("y", pa.array(block.y))
        about, costs = [], Costs(**self.cost)
        for k, (name, weights) in enumerate(zip(self.names, model.weights, strict=True)):
            class_scores = scores[column("score", name)].to_numpy()
            flagged = class_scores > 0
            positive = members[:, k] if self.labelled else ~flagged  # a flagged row may be a false alarm, others a miss
            row_costs = costs.of_rows(positive, block.cost)
            if self.labelled:
                about.append(
                    [[int(rows.sum()), float(row_costs[rows].max(initial=0.0))] for rows in (positive, ~positive)]
                )
                cost = np.where(flagged != positive, row_costs, 0.0)
            else:
                assert weights.probability is not None  # else the costs are unknown
                probability = weights.probability(class_scores)[:, 1]
                cost = np.where(flagged, 1.0 - probability, probability) * row_costs
            scores = scores.append_column(column("cost", name), pa.array(cost))
        return scores.replace_schema_metadata({LARGEST: json.dumps(about)})

    def costs_of_file(self, url: str) -> Any:
        """Return for each class what the decisions on the rows of a file of scores cost.

        Where labels are known it is `DecisionCosts`, else the sum and the number of rows. A wrong decision on a row that is
        flagged is a false alarm.
        """
        with opened(url) as file:
            parquet = pq.ParquetFile(file)
            if self.unknown:
                return []
            class_costs: list[Any] = []
            about = parse_checked((parquet.schema_arrow.metadata or {}).get(LARGEST, b""), Largest, shown(url))
            if self.labelled and len(about) != len(self.names):
                raise InputError(f"{shown(url)} is damaged: it has the largest costs of {len(about)} classes. {REPAIR}")
            for k, name in enumerate(self.names):
                table = parquet.read(columns=[column("score", name), column("cost", name)])
                flagged, cost = (values.to_numpy() for values in table.columns)
                if not self.labelled:
                    class_costs.append((float(cost.sum()), len(cost)))
                    continue
                (n_pos, most_pos), (n_neg, most_neg) = about[k]
                wrong, flagged = cost > 0, flagged > 0
                missed = ClassCosts(n_pos, most_pos, cost[wrong & ~flagged])
                class_costs.append(DecisionCosts(missed, ClassCosts(n_neg, most_neg, cost[wrong & flagged])))
        return class_costs

    def mean_cost(self, parts: Sequence[Any]) -> Json:
        """Return the mean cost of a row.

        Returns ``kind``: ``realised``, ``expected`` or ``unknown``; ``value``; ``interval``, of 95 %, of a realised
            cost; ``why`` it is unknown. For several classes ``value`` is the sum over them, without an interval, and ``classes``
            has the same of each.
        """
        if self.unknown:
            return {"kind": "unknown", "value": None, "interval": None, "why": self.unknown}
        each: dict[str, Json] = {}
        for name, (first, *more) in zip(self.names, zip(*parts, strict=True), strict=True):
            if self.labelled:
                interval = sum(more, start=first).interval()
                cost = {"kind": "realised", "value": interval.value, "interval": [interval.low, interval.high]}
            else:
                total, rows = (sum(values) for values in zip(first, *more, strict=True))
                cost = {"kind": "expected", "value": total / rows, "interval": None}
            each[name] = cost
        if not self.classes:
            return each[""]
        kind, value = each[self.classes[0]]["kind"], sum(class_cost["value"] for class_cost in each.values())
        return {"kind": kind, "value": value, "interval": None, "classes": each}


def column(kind: str, name: str) -> str:
    """Return the name of a column of scores for a class; that of two classes has no name."""
    return f"{kind} {name}" if name else kind


def members_of(block: Block, schema: Schema, classes: Sequence[str]) -> np.ndarray:
    """Return which of some classes of a schema each row has, bool of shape (n_rows, n_classes)."""
    assert block.code is not None
    places = [schema.classes.index(name) for name in classes]
    return LabelSets.of_schema(schema).only(places).indicator(block.code)


def has_costs(source: Source) -> bool:
    """Return whether the rows of a source have costs of wrong decisions."""
    manifest = manifest_of(source)
    return source.cost_column is not None if manifest is None else manifest.form.costed


def costs_of_scoring(source: Source, model: LinearModel) -> RowCosts | None:
    """Return how the decisions of a model on the rows of a source cost something; None where it was not trained for costs.

    Labels are those of a source of columns that names them, as in ``--set label=fraud``, and of shards with the model's classes.
    """
    point = model.about.get("operating_point")
    if not point or "cost" not in point:
        return None
    cost, unknown = point["cost"], ""
    manifest, schema = manifest_of(source), model.schema_of_labels
    if Costs.of(cost).differ_by_row and not has_costs(source):
        unknown = "the source names no cost_column" if manifest is None else "the shards have no costs"
    if manifest is None:
        labelled = source.label is not None and source.format_of().needs_label
    elif model.classes:
        labelled = set(model.classes) <= set(manifest.schema.classes)
    else:
        labelled = (manifest.schema.positive, manifest.schema.negative) == (schema.positive, schema.negative)
    if not labelled and any(weights.probability is None for weights in model.weights):
        unknown = "the rows have no label, and the model no probabilities"
    return RowCosts(cost, labelled, unknown, model.classes)
