"""The scores of a run's test rows, as a Parquet file of the run folder, and what they are measured by."""

import io
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
from aucdist.data.checked import ROW_ID, read_parquet
from aucdist.data.storage.files import exists, shown
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.estimators.scores import scores_of
from aucdist.metrics.counts import BoundedCounts, ScoreCounts
from aucdist.model import LinearModel
from flows.run_folder.folder import METRICS, read_about

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


OPTIONAL = {"weight": pa.float64(), "grade": pa.float64(), "cost": pa.float64(), "group": pa.int64()}


def read_scores(run: str, *, several: bool = False) -> pd.DataFrame:
    """Return row id, label and score of a run's test rows, and weight, group, grade and cost if there are some, sorted by id.

    `several`: the run has several classes: the label is a text, and each class has a score.
    Raises InputError if there are none, as of a run without test rows, or the file is damaged.
    """

    def optional(name: str) -> Any:
        return pa.float64() if several and name.startswith("score ") else OPTIONAL.get(name)

    label = {"label": pa.string()} if several else {"y": pa.int8(), "score": pa.float64()}
    url = f"{run}/{SCORES}"
    table = read_parquet(url, {ROW_ID: pa.int64(), **label}, optional)
    if not several and not table["y"].isin([-1, 1]).all():
        raise InputError(f"{shown(url)} is damaged: its labels are not -1 and +1")
    return table.sort_values(ROW_ID, ignore_index=True)


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
        share = number / read_about(run).get("n_neg", 0)
    return float(share) if isinstance(share, int | float) and 0 < share < 1 else None
