"""What the decisions on scored rows cost: what they did cost where labels are known, else what probabilities expect."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.class_models import ClassModels, labels_schema
from aucdist.data.block import Block
from aucdist.data.checked import CHECKED
from aucdist.data.dataset import Schema
from aucdist.data.label_sets import LabelSets
from aucdist.data.shards.manifest import Manifest, read_manifest
from aucdist.data.sources.source import Source
from aucdist.data.storage.arrow_files import opened
from aucdist.data.storage.files import require
from aucdist.metrics.costs import COST_COLUMN, DecisionCosts, cost_by_probability, costs_of_labels
from aucdist.model import LinearModel

LARGEST = b"aucdist.largest_costs"
"""In the metadata of a file of scores: what a wrong decision on a positive and on a negative row costs at most."""


@dataclass(frozen=True)
class RowCosts:
    """How the column ``cost`` of scores comes about.

    `cost`: ``false_alarm`` and ``miss``, as the model was trained for: numbers, or `aucdist.metrics.costs.COST_COLUMN`.
    `labelled`: whether the labels of the rows are known.
    `unknown`: why there are no costs; empty where there are.
    `classes`: of a model of several, each of which has a column such as ``cost sports``.
    """

    __pydantic_config__: ClassVar = CHECKED

    cost: dict[str, float | str]
    labelled: bool
    unknown: str = ""
    classes: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns that scores get."""
        return {f"cost {name}": pa.float64() for name in self.classes} or {"cost": pa.float64()}

    def columns_of(self, source: Source) -> dict[str, Any]:
        """Return the keys of the source that name the columns of labels and costs."""
        if self.unknown:
            return {}
        costs = source.cost_column if COST_COLUMN in self.cost.values() else None
        return {"cost_column": costs, "label": source.label if self.labelled else None}

    def added(self, scores: pa.Table, block: Block, model: LinearModel | ClassModels, schema: Schema) -> pa.Table:
        """Return the scores with ``cost``, and ``y`` where labels are known: -1 or 1. Of several classes with a cost for each.

        `model`: gave the scores.
        `schema`: of the rows as they were read.
        """
        if self.unknown:
            for name in self.columns:
                scores = scores.append_column(name, pa.nulls(scores.num_rows, pa.float64()))
            return scores
        if isinstance(model, ClassModels):
            return self._added_for_classes(scores, block, model, schema)
        flagged = scores["prediction"].to_numpy() > 0
        if not self.labelled:
            expected = cost_by_probability(scores["probability"].to_numpy(), flagged, block.cost, self.cost)
            return scores.append_column("cost", pa.array(expected))
        positive, of_row = block.y > 0, costs_of_labels(block.y, block.cost, self.cost)
        largest = [float(of_row[which].max(initial=0.0)) for which in (positive, ~positive)]
        table = scores.append_column("y", pa.array(block.y))
        table = table.append_column("cost", pa.array(np.where(flagged != positive, of_row, 0.0)))
        return table.replace_schema_metadata({LARGEST: json.dumps(largest)})

    def _added_for_classes(self, scores: pa.Table, block: Block, model: ClassModels, schema: Schema) -> pa.Table:
        """Return the scores with a cost for each class; without labels by its own probabilities, before their sum is made 1."""
        members = None
        if self.labelled:
            assert block.code is not None
            places = [schema.classes.index(name) for name in self.classes]
            members = LabelSets.of_schema(schema).only(places).indicator(block.code).toarray()
        about = []
        for k, name in enumerate(self.classes):
            of_class, probability = scores[f"score {name}"].to_numpy(), model.models[k].probability
            flagged = of_class > 0
            if members is None:
                assert probability is not None  # else the costs are unknown
                cost = cost_by_probability(probability(of_class)[:, 1], flagged, block.cost, self.cost)
            else:
                positive = members[:, k]
                of_row = costs_of_labels(np.where(positive, 1, -1), block.cost, self.cost)
                about.append(
                    [[int(side.sum()), float(of_row[side].max(initial=0.0))] for side in (positive, ~positive)]
                )
                cost = np.where(flagged != positive, of_row, 0.0)
            scores = scores.append_column(f"cost {name}", pa.array(cost))
        return scores.replace_schema_metadata({LARGEST: json.dumps(about)})

    def _read_classes(self, parquet: pq.ParquetFile) -> list[Any]:
        """Return what `read` does of one class for each. A wrong decision on a row that is flagged is a false alarm."""
        found: list[Any] = []
        about = json.loads(parquet.schema_arrow.metadata[LARGEST])
        for k, name in enumerate(self.classes):
            table = parquet.read(columns=[f"score {name}", f"cost {name}"])
            flagged, cost = table[f"score {name}"].to_numpy() > 0, table[f"cost {name}"].to_numpy()
            if not self.labelled:
                found.append((float(cost.sum()), len(cost)))
                continue
            (n_pos, most_pos), (n_neg, most_neg) = about[k]
            wrong = cost > 0
            found.append(
                DecisionCosts((n_pos, n_neg), (most_pos, most_neg), (cost[wrong & ~flagged], cost[wrong & flagged]))
            )
        return found

    def read(self, url: str) -> Any:
        """Return what the decisions on the rows of a file of scores cost: `DecisionCosts`, or the sum and the number of rows.

        Of several classes a list.
        """
        with opened(url) as file:
            parquet = pq.ParquetFile(file)
            if self.unknown:
                return 0.0, parquet.metadata.num_rows
            if self.classes:
                return self._read_classes(parquet)
            table = parquet.read(columns=["cost", *(["y"] if self.labelled else [])])
            cost = table["cost"].to_numpy()
            if not self.labelled:
                return float(cost.sum()), len(cost)
            positive = table["y"].to_numpy() > 0
            largest = json.loads(parquet.schema_arrow.metadata[LARGEST])
        rows = int(positive.sum()), int((~positive).sum())
        return DecisionCosts(rows, tuple(largest), (cost[positive & (cost > 0)], cost[~positive & (cost > 0)]))

    def total(self, parts: Sequence[Any]) -> dict[str, Any]:
        """Return the mean cost of a row.

        Returns ``kind``: ``realised``, ``expected`` or ``unknown``; ``value``; ``interval``, of 95 %, of a realised
            cost; ``why`` it is unknown. Of several classes ``value`` is the sum over them, without an interval, and ``classes``
            has the same of each.
        """
        if self.unknown:
            return {"kind": "unknown", "value": None, "interval": None, "why": self.unknown}
        if self.classes:
            each = {name: self._total([one[k] for one in parts]) for k, name in enumerate(self.classes)}
            kind, value = each[self.classes[0]]["kind"], sum(one["value"] for one in each.values())
            return {"kind": kind, "value": value, "interval": None, "classes": each}
        return self._total(parts)

    def _total(self, parts: Sequence[Any]) -> dict[str, Any]:
        if not self.labelled:
            total, rows = (sum(column) for column in zip(*parts, strict=True))
            return {"kind": "expected", "value": total / rows, "interval": None}
        all_rows = parts[0]
        for part in parts[1:]:
            all_rows = all_rows + part
        found = all_rows.interval()
        return {"kind": "realised", "value": found.value, "interval": [found.low, found.high]}


def _manifest_of(source: Source) -> Manifest | None:
    return read_manifest(require(str(source.source))) if source.format_of().is_sharded else None


def has_costs(source: Source) -> bool:
    """Tell whether the rows of a source say what a wrong decision on them costs."""
    manifest = _manifest_of(source)
    return source.cost_column is not None if manifest is None else manifest.costed


def costs_of_scoring(source: Source, model: LinearModel | ClassModels) -> RowCosts | None:
    """Return how the decisions of a model on the rows of a source cost something; None where it was not trained for costs.

    Labels are those of a source of columns that names them, as in ``--set label=fraud``, and of shards with the model's classes.
    """
    models, classes = (model.models, model.classes) if isinstance(model, ClassModels) else ((model,), ())
    point = models[0].about.get("operating_point")
    if not point or "cost" not in point:
        return None
    cost, unknown = point["cost"], ""
    manifest, schema = _manifest_of(source), labels_schema(model)
    if COST_COLUMN in cost.values() and not has_costs(source):
        unknown = "the source names no cost_column" if manifest is None else "the shards have no costs"
    if manifest is None:
        labelled = source.label is not None and source.format_of().needs_label
    elif classes:
        labelled = set(classes) <= set(manifest.classes)
    else:
        labelled = (manifest.positive, manifest.negative) == (schema.positive, schema.negative)
    if not labelled and any(one.probability is None for one in models):
        unknown = "the rows have no label, and the model no probabilities"
    return RowCosts(cost, labelled, unknown, classes)
