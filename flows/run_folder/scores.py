"""The scores of a run's test rows, as a Parquet file of the run folder, and their metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from aucdist.data.block import Block
from aucdist.data.own_files import REPAIR, ROW_ID, read_parquet
from aucdist.data.storage.files import exists, shown
from aucdist.engine.blocks import Summary
from aucdist.engine.view import AnyBlocks, ClassBlocks
from aucdist.errors import InputError, Json
from aucdist.estimators.scores import encoded_rows
from aucdist.metrics.counts import ScoreCounts
from aucdist.model import load_model
from aucdist.model.linear_model import LinearModel
from flows.run_folder.folder import METRICS, model_folder, read_about

SCORES = "scores.parquet"
DECISION = "decision"
"""``score`` in ``metrics.json``: the scores are those of the saved model, of which those above 0 are positive. The runs of older
versions kept X w, without intercepts and spreads."""
NAMED = "of "
"""The prefix of columns that define groups of test rows."""
THRESHOLD_ROWS = "threshold.parquet"
"""The rows that set the threshold: X w, and the weight of both classes at each value. `aucdist threshold` uses them again."""
OPTIONAL = {"weight": pa.float64(), "grade": pa.float64(), "cost": pa.float64(), "group": pa.int64()}


def score_test_rows(rows: AnyBlocks, models: Sequence[Any]) -> tuple[list[ScoreCounts], pa.Table, np.ndarray]:
    """Score test rows on their workers with the model of each class, in one reduction.

    Returns `counts` of each class; `table`, of row id, label ``y`` (of several classes ``code``, the place of the row's set of
        classes), and weight, group, grade and cost if there are some; `scores`, of shape (n_test, n_classes), without
        intercepts, which could round two scores to one.
    """
    weights = [(model.coef_[0], getattr(model, "feature_map_", None)) for model in models]
    signs = [rows.sets.signs(k) for k in range(len(models))] if isinstance(rows, ClassBlocks) else None
    summary = rows.of_all().sum(_score_block, weights, signs)
    counts = [summary[f"counts {k}"] for k in range(len(models))]
    return counts, pa.concat_tables(summary["tables"]), np.concatenate(summary["scores"])


def _score_block(
    block: Block, weights: Sequence[tuple[np.ndarray, Any]], signs: Sequence[np.ndarray] | None
) -> Summary:
    """Return what `score_test_rows` needs of a block; `signs` are the labels of each set of classes, where there are several."""
    scores = np.column_stack([encoded_rows(block.X, feature_map).scores(w) for w, feature_map in weights])
    summary: Summary = {"scores": [scores], "tables": [_table(block)]}
    for k in range(len(weights)):
        y = block.y if signs is None else signs[k][block.code]
        summary[f"counts {k}"] = ScoreCounts.from_scores(y, scores[:, k], block.weight).within_bounds()
    return summary


def _table(block: Block) -> pa.Table:
    """Return the ids, labels and other values of the rows of a block, without features."""
    columns = {"row_id": block.row_id} | ({"y": block.y} if block.code is None else {"code": block.code})
    more = {"weight": block.weight, "group": block.group, "grade": block.grade, "cost": block.cost}
    return pa.table(columns | {name: values for name, values in more.items() if values is not None})


def read_threshold_rows(run: str, about: Json) -> ScoreCounts:
    """Return the counts of the rows that set the threshold of a run, whose ``metrics.json`` is `about`."""
    table, where = about["threshold_rows"], f"{run}/{THRESHOLD_ROWS}"
    columns = read_parquet(where, {"score": pa.float64(), "pos": pa.float64(), "neg": pa.float64()})
    values, pos, neg = (columns[name].to_numpy() for name in ("score", "pos", "neg"))
    if not (len(values) and (np.diff(values) > 0).all() and min(pos.min(), neg.min()) >= 0):
        raise InputError(f"{shown(where)} is damaged: its scores do not ascend, or a weight is negative. {REPAIR}")
    return ScoreCounts(values, pos, neg, *(table[name] for name in ("n_pos", "n_neg", "weighted", "shift")))


def read_scores(run: str) -> pd.DataFrame:
    """Return row id, label and score of a run's test rows, and weight, group, grade and cost if there are some, sorted by id.

    Scores are those of the run's model. For several classes the label is a text, and each class has a score.
    Raises InputError if there are none, as of a run without test rows, or the file is damaged.
    """
    about, url = read_about(run), f"{run}/{SCORES}"
    several = "classes" in about

    def optional(name: str) -> Any:
        if name.startswith(NAMED):
            return pa.string()
        return pa.float64() if several and name.startswith("score ") else OPTIONAL.get(name)

    label = {"label": pa.string()} if several else {"y": pa.int8(), "score": pa.float64()}
    table = read_parquet(url, {ROW_ID: pa.int64(), **label}, optional)
    if not several and not table["y"].isin([-1, 1]).all():
        raise InputError(f"{shown(url)} is damaged: its labels are not -1 and +1. {REPAIR}")
    if about.get("score") != DECISION and not several:  # X w, as runs of older versions kept it
        if about.get("threshold") is None:
            raise InputError(f"{shown(run)} is damaged: its {METRICS} has no threshold. {REPAIR}")
        table["score"] -= about["threshold"]
    elif about.get("score") != DECISION:
        model = load_model(model_folder(run))
        columns = [f"score {name}" for name in model.classes]
        if missing := [column for column in columns if column not in table]:
            raise InputError(f"{shown(run)} is damaged: its {SCORES} has no column {missing[0]!r}. {REPAIR}")
        table[columns] = (table[columns] + [own.intercept for own in model.weights]) / model.spreads
    return table.sort_values(ROW_ID, ignore_index=True)


def counts_of(table: pd.DataFrame) -> ScoreCounts:
    """Return the counts of the scores of test rows of two classes, as `read_scores` returns them."""
    weight = table["weight"].to_numpy() if "weight" in table else None
    return ScoreCounts.from_scores(table["y"].to_numpy(), table["score"].to_numpy(), weight)


def members_of(labels: np.ndarray, classes: Sequence[str], *, topics: bool) -> np.ndarray:
    """Return which classes rows have, bool of shape (n_samples, n_classes); with topics a label has commas between them."""
    codes, texts = pd.factorize(labels)
    sets = [set(text.split(",")) if topics else {text} for text in texts]
    members = np.array([[name in names_of_row for name in classes] for names_of_row in sets], dtype=bool)
    return members.reshape(-1, len(classes))[codes]


def max_fpr_of(model: LinearModel, run: str) -> float | None:
    """Return the false positive rate up to which the model of a run was trained; None for one trained over all pairs."""
    parameters = model.about.get("parameters")
    if not isinstance(parameters, dict):
        return None
    share, number = (parameters.get(name) for name in ("max_fpr", "max_false_positives"))
    if isinstance(number, int) and exists(f"{run}/{METRICS}"):
        n_neg = read_about(run).get("n_neg", 0)
        share = number / n_neg if n_neg > 0 else None
    return float(share) if isinstance(share, int | float) and 0 < share < 1 else None
