"""Explanations: what each feature adds to the score of each row, printed for a few rows or written for all."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from aucdist.batch_scoring import to_score
from aucdist.data.block import Block
from aucdist.data.shards.reading import open_reader
from aucdist.data.storage.files import shown, write_bytes
from aucdist.errors import InputError, unknown
from aucdist.linear_model import ClassModels, LinearModel
from aucdist.model import load_model
from aucdist.report.text import number_text
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

    Raises InputError if the model or the data is wrong, or the feature map of the model mixes features.
    """
    with s3_as_configured(config.s3, NoCluster(), observer):
        observer.stage("explain")
        model = load_model(model_folder(config.model))
        models = _of_classes(model, config.classes)
        blocks = list(_first_rows(config, next(iter(models.values()))[0]))
        about = {"model": shown(config.model), "rows": sum(block.n_samples for block in blocks), "output": None}
        if config.output is not None:
            tables = [_all_of(*one, blocks).table() for one in models.values()]
            if isinstance(model, ClassModels):
                tables = [_with_class(table, name) for name, table in zip(models, tables, strict=True)]
            _write(pd.concat(tables, ignore_index=True), config.output)
            return about | {"output": shown(config.output), "explained": None}
        said = {name: _said_of(*one, blocks, config) for name, one in models.items()}
    if not isinstance(model, ClassModels):
        return about | said[""]
    return about | {"explained": None, "classes": [{"name": name} | of_class for name, of_class in said.items()]}


def _of_classes(model: LinearModel | ClassModels, names: Sequence[str]) -> dict[str, tuple[LinearModel, float]]:
    """Return the models of some classes, by default of all, and what their scores are divided by; that of two has no name."""
    if isinstance(model, LinearModel):
        if names:
            raise InputError("`classes` are those of a model of several classes, and this one has two: leave them out")
        return {"": (model, 1.0)}
    for name in names:
        if name not in model.classes:
            raise unknown("class", name, model.classes)
    of_each = zip(model.classes, model.models, model.spreads.tolist(), strict=True)
    return {name: (one, spread) for name, one, spread in of_each if not names or name in names}


def _said_of(model: LinearModel, spread: float, blocks: Sequence[Block], config: ExplainConfig) -> dict[str, Any]:
    """Return what is printed of the rows: their largest contributions, or their reasons."""
    if config.reasons is None:
        return {"explained": _all_of(model, spread, blocks).largest(config.top)}
    reasons = [row for block in blocks for row in _reasons(model, spread, block, config.reasons)]
    return {"explained": None, "reasons": reasons}


def _all_of(model: LinearModel, spread: float, blocks: Sequence[Block]) -> "Explanations":
    tables = [_explained(model, spread, block) for block in blocks]
    return Explanations(*(pd.concat(parts, ignore_index=True) for parts in zip(*tables, strict=True)))


def _with_class(table: pd.DataFrame, name: str) -> pd.DataFrame:
    if "class" in table:
        raise InputError("a feature is named 'class', as another column of the output is: rename it")
    table.insert(1, "class", name)
    return table


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

    `scores`: ``row_id`` and ``score``.
    `values`: the features, in their own units.
    `contributions`: as `LinearModel.explain` returns them.
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

    def table(self) -> pd.DataFrame:
        """Return ids, scores and contributions of all rows."""
        table = pd.concat([self.scores, self.contributions], axis=1)
        if table.columns.has_duplicates:
            twice = table.columns[table.columns.duplicated()][0]
            raise InputError(f"a feature is named {twice!r}, as another column of the output is: rename it")
        return table


def _write(table: pd.DataFrame, url: str) -> None:
    if url.endswith(".csv"):
        write_bytes(url, table.to_csv(index=False).encode())
        return
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    write_bytes(url, buffer.getvalue())


def _explained(model: LinearModel, spread: float, block: Block) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    X = block.X.toarray() if hasattr(block.X, "toarray") else block.X
    scores = pd.DataFrame({"row_id": block.row_id, "score": model.decision_function(block.X) / spread})
    return scores, pd.DataFrame(X, columns=list(model.schema.feature_names)), model.explain(block.X) / spread


def _reasons(model: LinearModel, spread: float, block: Block, n: int) -> list[dict[str, Any]]:
    """Return for each row the columns that raise its score most, beside the best cell and beside the average row."""
    found, scores = model.reasons(block.X), model.decision_function(block.X) / spread

    def largest(adds: np.ndarray) -> list[dict[str, Any]]:
        order = np.argsort(-adds, kind="stable")[:n]
        return [{"feature": found.names[k], "adds": float(adds[k]) / spread} for k in order if adds[k] > 0.0]

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


def explanation_lines(result: dict[str, Any]) -> list[str]:
    """Return what `aucdist explain` prints: a paragraph for each row, or where the table is."""
    return [_explanation_text(result)]


def _explanation_text(result: dict[str, Any]) -> str:
    if result["output"] is not None:
        return f"{result['output']}: contributions of {result['rows']} rows"
    if result.get("classes"):
        return "\n".join(
            f"class {one['name']}\n{_explanation_text(result | one | {'classes': []})}" for one in result["classes"]
        )
    lines = []
    if result.get("reasons"):
        return _reasons_text(result["reasons"])
    for row in result["explained"]:
        lines.append(f"row {row['row_id']}: score {number_text(row['score'], 5)}")
        for part in row["contributions"]:
            lines.append(f"  {part['adds']:+12.5g}  {part['feature']} = {_value_text(part['value'])}")
        if row["rest"] != 0.0:
            lines.append(f"  {row['rest']:+12.5g}  all other features")
        lines.append(f"  {row['constant']:+12.5g}  constant")
    return "\n".join(lines)


def _reasons_text(reasons: list[dict[str, Any]]) -> str:
    lines = []
    for row in reasons:
        lines.append(f"row {row['row_id']}: score {number_text(row['score'], 5)}")
        for beside, what in (("beside_best", "best cell"), ("beside_average", "average row")):
            found = ", ".join(f"{part['feature']} {part['adds']:+.4g}" for part in row[beside]) or "nothing"
            lines.append(f"  beside the {what}: {found}")
    return "\n".join(lines)


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(_value_text(one) for one in value)
    return "missing" if value is None else f"{value:.6g}"
