"""The scores of a run's test rows, as a Parquet file of the run folder, and what they are measured by."""

import io
import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc  # pa.ipc
import pyarrow.parquet as pq

from aucdist.data.block import Block
from aucdist.data.storage.files import exists, read_bytes
from aucdist.engine.blocks import Blocks, Summary
from aucdist.estimators.scores import scores_of
from aucdist.metrics.counts import BoundedCounts, ScoreCounts
from aucdist.model import LinearModel
from flows.run_folder.folder import METRICS

SCORES = "scores.parquet"


def count_and_tabulate(blocks: Blocks, estimator: Any) -> tuple[ScoreCounts, list[bytes]]:
    """Score rows where they lie, count the scores and put them into tables; one reduction.

    Returns `counts`; `tables`, row id, label, score, and weight, group, grade and cost if there are some, of each
        block, as a compressed Arrow stream.
    """
    w = estimator.coef_[0]  # without the intercept, which could round two scores to one
    found = blocks.without_memory().reduce(_score_block, w, getattr(estimator, "feature_map_", None))
    return found["counts"].counts, found["tables"]


def _score_block(block: Block, memory: None, w: np.ndarray, fitted: Any) -> tuple[None, Summary]:
    scores = scores_of(block.X, w, fitted=fitted)
    columns = {"row_id": block.row_id, "y": block.y, "score": scores}
    more = {"weight": block.weight, "group": block.group, "grade": block.grade, "cost": block.cost}
    table = pa.table(columns | {name: values for name, values in more.items() if values is not None})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    counts = BoundedCounts.from_scores(block.y, scores, block.weight)
    return None, {"counts": counts, "tables": [stream.getvalue()]}


def write_scores(tables: Iterable[bytes], path: Path) -> None:
    """Write what `count_and_tabulate` returned as one Parquet file, table by table: what `aucdist compare` needs."""
    with ExitStack() as stack:
        writer = None
        for one in tables:
            table = pa.ipc.open_stream(one).read_all()
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema, compression="zstd"))
            writer.write_table(table)


def read_scores(run: str) -> pd.DataFrame:
    """Return row id, label and score of a run's test rows, and weight, group, grade and cost if there are some, sorted by id.

    Raises InputError if there are none: a run without test rows has no scores.
    """
    return pd.read_parquet(io.BytesIO(read_bytes(f"{run}/{SCORES}"))).sort_values("row_id", ignore_index=True)


def score_counts(run: str) -> ScoreCounts:
    """Return the counts of a run's test scores."""
    table = read_scores(run)
    weight = table["weight"].to_numpy() if "weight" in table else None
    return ScoreCounts.from_scores(table["y"].to_numpy(), table["score"].to_numpy(), weight)


def members_of(labels: np.ndarray, classes: Sequence[str], *, topics: bool) -> np.ndarray:
    """Return which classes rows have, bool of shape (n_samples, n_classes); with topics a label has commas between them."""
    codes, texts = pd.factorize(labels)
    sets = [set(text.split(",")) if topics else {text} for text in texts]
    return np.array([[name in found for name in classes] for found in sets], dtype=bool).reshape(-1, len(classes))[
        codes
    ]


def max_fpr_of(model: LinearModel, run: str) -> float | None:
    """Return the false positive rate up to which the model of a run was trained; None for one trained over all pairs."""
    parameters = model.about.get("parameters")
    if not isinstance(parameters, dict):
        return None
    share, number = (parameters.get(name) for name in ("max_fpr", "max_false_positives"))
    if isinstance(number, int) and exists(f"{run}/{METRICS}"):
        share = number / json.loads(read_bytes(f"{run}/{METRICS}"))["n_neg"]
    return float(share) if isinstance(share, int | float) and 0 < share < 1 else None
