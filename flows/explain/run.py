"""Explanations: what each feature adds to the score of each row, printed for a few rows or written for all."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from aucdist.batch_scoring import to_score
from aucdist.data.block import Block
from aucdist.data.shards.block_reader import open_reader
from aucdist.data.storage.files import shown, write_bytes
from aucdist.errors import InputError
from aucdist.model import LinearModel, load_model
from flows.compute.s3_environment import s3_as_configured
from flows.config.cluster import NoCluster
from flows.config.data import source_of
from flows.explain.config import ExplainConfig
from flows.json_values import jsonable
from flows.progress.console import RunObserver
from flows.run_folder.folder import model_folder

FEW = 10
"""Rows that are printed where no number is given."""
PAIR = " & "


def explain(config: ExplainConfig, observer: RunObserver) -> dict[str, Any]:
    """Explain the scores of the first rows of a data set, or of all.

    Parameters
    ----------
    config : ExplainConfig
    observer : RunObserver
        Is called with stages.

    Returns
    -------
    dict
        What ``aucdist explain --json`` prints.

    Raises
    ------
    InputError
        If the model or the data is wrong, or the feature map of the model mixes features.
    """
    with s3_as_configured(config.s3, NoCluster(), observer):
        observer.stage("explain")
        model = load_model(model_folder(config.model))
        if config.reasons is not None:
            said = [row for block in _first_rows(config, model) for row in _reasons(model, block, config.reasons)]
            return {
                "model": shown(config.model), "rows": len(said), "output": None, "explained": None, "reasons": said,
            }  # fmt: skip
        tables = [_explained(model, block) for block in _first_rows(config, model)]
        found = Explanations(*(pd.concat(parts, ignore_index=True) for parts in zip(*tables, strict=True)))
        about = {"model": shown(config.model), "rows": len(found.scores)}
        if config.output is None:
            return about | {"output": None, "explained": found.largest(config.top)}
        found.write(config.output)
    return about | {"output": shown(config.output), "explained": None}


def _first_rows(config: ExplainConfig, model: LinearModel) -> Iterator[Block]:
    """Yield the rows to explain, block by block."""
    reader = open_reader(
        to_score(source_of(config), model), schema=model.schema, labelled=False, name=config.name or ""
    )
    left = config.rows or (FEW if config.output is None else sum(reader.rows))
    for index in range(len(reader.rows)):
        if left > 0:
            block = reader.read(index)
            yield block.take(np.arange(min(left, block.n_samples)))
            left -= block.n_samples


@dataclass(frozen=True, eq=False)
class Explanations:
    """Rows with their scores, values and contributions.

    Attributes
    ----------
    scores : DataFrame
        ``row_id`` and ``score``.
    values : DataFrame
        The features, in their own units.
    contributions : DataFrame
        As `LinearModel.explain` returns them.
    """

    scores: pd.DataFrame
    values: pd.DataFrame
    contributions: pd.DataFrame

    def largest(self, top: int) -> list[dict[str, Any]]:
        """Return for each row the contributions that are largest in size, the rest of them as one number, and the score."""
        names, explained = list(self.contributions), []
        for (row_id, score), values, parts in zip(
            self.scores.itertuples(index=False),
            self.values.to_dict("records"),
            self.contributions.to_numpy(),
            strict=True,
        ):
            own = parts[:-1]
            order = np.argsort(-np.abs(own), kind="stable")
            order = order[own[order] != 0.0][:top]
            shown_parts = [{"feature": names[k], "value": _value_of(values, names[k]), "adds": own[k]} for k in order]
            rest = own.sum() - own[order].sum() if len(order) < len(own) else 0.0
            explained.append(
                {"row_id": row_id, "score": score, "constant": parts[-1], "contributions": shown_parts, "rest": rest}
            )
        found: list[dict[str, Any]] = jsonable(explained)
        return found

    def write(self, url: str) -> None:
        """Write ids, scores and contributions of all rows."""
        table = pd.concat([self.scores, self.contributions], axis=1)
        if table.columns.has_duplicates:
            twice = table.columns[table.columns.duplicated()][0]
            raise InputError(f"a feature is named {twice!r}, as another column of the output is: rename it")
        if url.endswith(".csv"):
            write_bytes(url, table.to_csv(index=False).encode())
            return
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        write_bytes(url, buffer.getvalue())


def _explained(model: LinearModel, block: Block) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    X = block.X.toarray() if hasattr(block.X, "toarray") else block.X
    scores = pd.DataFrame({"row_id": block.row_id, "score": model.decision_function(block.X)})
    return scores, pd.DataFrame(X, columns=list(model.schema.feature_names)), model.explain(block.X)


def _reasons(model: LinearModel, block: Block, n: int) -> list[dict[str, Any]]:
    """Return for each row the columns that raise its score most, beside the best cell and beside the average row."""
    found, scores = model.reasons(block.X), model.decision_function(block.X)

    def largest(adds: np.ndarray) -> list[dict[str, Any]]:
        order = np.argsort(-adds, kind="stable")[:n]
        return [{"feature": found.names[k], "adds": float(adds[k])} for k in order if adds[k] > 0.0]

    return [
        {
            "row_id": int(row_id),
            "score": float(score),
            "beside_best": largest(found.beside_best[i]),
            "beside_average": largest(found.beside_average[i]),
        }
        for i, (row_id, score) in enumerate(zip(block.row_id, scores, strict=True))
    ]


def _value_of(values: dict[Any, Any], name: str) -> Any:
    """Return the value of a feature, or those of a pair of features as a list."""
    if name in values:
        return values[name]
    for at in range(len(name)):
        first, second = name[:at], name[at + len(PAIR) :]
        if name.startswith(PAIR, at) and first in values and second in values:
            return [values[first], values[second]]
    return None
