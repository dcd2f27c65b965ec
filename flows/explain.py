"""Explanations: what each feature adds to the score of each row, printed for a few rows or written for all."""

from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from aucdist.data.block import Block, as_dense, stacked
from aucdist.data.dataset import category_features
from aucdist.data.own_files import jsonable
from aucdist.data.shards.reading import open_rows
from aucdist.data.storage.files import absolute, shown, write_bytes
from aucdist.errors import InputError, Json, unknown
from aucdist.model import load_model
from aucdist.model.batch_scoring import source_for_scoring, texts_of_columns
from aucdist.model.linear_model import LinearModel
from aucdist.report.text import number_text
from flows.compute.clusters import s3_as_configured
from flows.config.cluster import S3Option
from flows.config.data import UnlabelledRef, source_of
from flows.config.loading import Cli, CopyOption, Count, CountOption, FileOption, PlaceArgument, Texts
from flows.progress import RunObserver
from flows.score import lines_of_values

SUFFIXES = (".csv", ".parquet")
DEFAULT_ROWS = 10
"""The number of rows that are printed by default."""
BETWEEN = " & "
COMPARISONS = {"compared_with_most_favourable": "most favourable values", "compared_with_average": "average row"}


class ExplainConfig(UnlabelledRef):
    """Rows whose scores are explained feature by feature."""

    model: PlaceArgument
    """A run folder, a model, a model store, or a version in a store, such as store@3: a folder or URL."""
    rows: CountOption = None
    """The number of rows to explain, from the first row on. The default is 10, or all rows with `output`."""
    highest: CountOption = None
    """In place of the first rows, explain this number of rows with the highest scores, the highest first."""
    top: Annotated[Count, Cli(metavar="N")] = 5
    """How many contributions to show for each row. The largest ones are shown."""
    reasons: CountOption = None
    """Instead of contributions, show this many columns that raise the score of each row most."""
    copied: CopyOption
    """Also show this column of the rows, such as an identifier. May be repeated."""
    lower: bool = False
    """With `reasons`: show the columns that lower the score of each row most. Use it for models whose high scores are good."""
    classes: Annotated[Texts, Cli(flag="--class", metavar="NAME")]
    """For a model of several classes: a class to explain. May be repeated. By default all are explained."""
    output: FileOption = None
    """A .csv or .parquet file for the reasons, or for all contributions. By default they are printed."""
    force: bool = False
    """Replace the file of `output` if it exists."""
    s3: S3Option
    """How s3:// URLs are reached."""

    def _check(self) -> None:
        super()._check()
        if self.output and not self.output.endswith(SUFFIXES):
            raise unknown("suffix of the output:", self.output.rpartition("/")[2], SUFFIXES)
        if self.rows and self.highest:
            raise InputError("`rows` are the first rows, and `highest` those of the highest scores: give one of them")
        if self.lower and not self.reasons:
            raise InputError("`lower` says which `reasons` are shown: give `reasons` too")


def explain(config: ExplainConfig, observer: RunObserver) -> Json:
    """Explain the scores of the first rows of a data set, or of all.

    Raises InputError if the model or the data is wrong, or the feature map of the model mixes features.
    """
    with s3_as_configured(config, observer):
        observer.stage("explain")
        model = load_model(config.model)
        if config.classes and not model.classes:
            raise InputError("`--class` is for models of several classes, but this model has two: leave --class out")
        if config.highest and model.classes:
            raise InputError("`highest` is for models of two classes, but this model has several: leave it out")
        for name in config.classes:
            if name not in model.classes:
                raise unknown("class", name, model.classes)
        models = {  # with the divisors of their scores; a model of two classes has an empty name
            name: (model.of_class(k), model.weights[k].spread)
            for k, name in enumerate(model.classes or ("",))
            if not config.classes or name in config.classes
        }
        rows, ids, counted = _rows(config, model)
        model.decision_function(rows.X)  # raises an error for rows whose score overflows
        about = {"model": shown(config.model), "rows": rows.n_samples, "output": None, "explained": None} | counted
        reasons = {
            name: _reasons(binary, spread, rows, ids, config)
            for name, (binary, spread) in models.items()
            if config.reasons
        }
        if config.output:
            table = pd.concat(
                [_table(*models[name], rows, ids, name, reasons.get(name)) for name in models], ignore_index=True
            )
            if absolute(config.output) in map(absolute, source_of(config).format_of().part_urls()):
                raise InputError(f"{shown(config.output)} is a file of the data: name another one with --output")
            write_bytes(
                config.output,
                table.to_csv(index=False).encode() if config.output.endswith(".csv") else table.to_parquet(index=False),
                new=not config.force,
            )
            return about | {"output": shown(config.output)}
        by_class: dict[str, Json] = {
            name: {"explained": None, "reasons": reasons[name]}
            if config.reasons
            else {"explained": _contributions(binary, spread, rows, ids, config.top)}
            for name, (binary, spread) in models.items()
        }
    if not model.classes:
        return about | by_class[""]
    return about | {"classes": [{"name": name} | class_result for name, class_result in by_class.items()]}


def _rows(config: ExplainConfig, model: LinearModel) -> tuple[Block, pd.DataFrame, Json]:
    """Return the rows to explain, their numbers beside the columns that are copied, and what `lines_of_values` takes."""
    reader = open_rows(
        source_for_scoring(source_of(config), model), schema=model.schema, labelled=False, name=config.name or ""
    )
    blocks: list[Block] = []
    n_left = config.rows or (sum(reader.rows) if config.output or config.highest else DEFAULT_ROWS)
    for item in reader.items:
        if n_left > 0:
            block = reader.read(item)
            blocks.append(block.take(np.arange(min(n_left, block.n_samples))))
            n_left -= block.n_samples
        if config.highest:
            rows = stacked(blocks)
            blocks = [rows.take(np.argsort(-model.decision_function(rows.X), kind="stable")[: config.highest])]
    rows = stacked(blocks)
    for name in {"row_id", "class", "score"} & {*config.copied}:
        raise InputError(f"the output already has a column {name!r}: do not copy the column of this name")
    firsts = np.cumsum([0, *reader.rows])
    tables = [
        pa.table({"row_id": np.arange(firsts[k], firsts[k + 1])} | texts_of_columns(reader, k, config.copied))
        for k in np.unique(np.searchsorted(firsts, rows.row_id, side="right") - 1).tolist()
    ]
    ids = pa.concat_tables(tables).to_pandas().set_index("row_id").loc[rows.row_id].reset_index()
    return rows, ids, {"missing": reader.missing, "unknown": reader.unknown}


def _table(
    model: LinearModel, spread: float, rows: Block, ids: pd.DataFrame, name: str, reasons: list[Json] | None
) -> pd.DataFrame:
    """Return ids, the name of the class if there are several, scores, and the reasons or contributions of all rows."""
    scores = pd.DataFrame({"score": model.decision_function(rows.X) / spread})
    if name:
        scores.insert(0, "class", name)
    if reasons is None:
        parts = model.explain(rows.X) / spread
    else:
        parts = pd.DataFrame([{key: _reasons_text(row[key]) for key in COMPARISONS if key in row} for row in reasons])
    table = pd.concat([ids, scores, parts], axis=1)
    for twice in table.columns[table.columns.duplicated()]:
        raise InputError(f"two columns of the output have the name {twice!r}: rename the column of the data")
    return table


def _contributions(model: LinearModel, spread: float, rows: Block, ids: pd.DataFrame, top: int) -> list[Json]:
    """Return the largest contributions to the score of each row, the sum of the others, and the score."""
    contributions, X = model.explain(rows.X) / spread, rows.X
    table = pd.DataFrame(as_dense(X), columns=list(model.schema.feature_names))
    names, explained = list(contributions), []
    for copied, score, values, parts in zip(
        ids.to_dict("records"),
        model.decision_function(X) / spread,
        table.to_dict("records"),
        contributions.to_numpy(),
        strict=True,
    ):
        contributed = parts[:-1]
        order = np.argsort(-np.abs(contributed), kind="stable")
        order = order[contributed[order] != 0.0][:top]
        largest = [{"feature": names[k], "value": _value_of(values, names[k]), "adds": contributed[k]} for k in order]
        rest = contributed.sum() - contributed[order].sum() if len(order) < len(contributed) else 0.0
        explained.append(copied | {"score": score, "constant": parts[-1], "contributions": largest, "rest": rest})
    return jsonable(explained)


def _reasons(model: LinearModel, spread: float, rows: Block, ids: pd.DataFrame, config: ExplainConfig) -> list[Json]:
    """Return the columns that change the score of each row most, compared with the most favourable value and the average row.

    A linear model has no most favourable value of a number, so its reasons compare with the average row alone.
    """
    sign, categories = -1 if config.lower else 1, category_features(model.schema.categories)
    reasons = model.reasons(rows.X, sign)
    features = pd.DataFrame(as_dense(rows.X), columns=list(model.schema.feature_names)).to_dict("records")
    values = [row | {c: v for name, (c, v) in categories.items() if row[name] == 1.0} for row in features]

    def largest(adds: np.ndarray, row: dict[Any, Any]) -> list[Json]:
        order = [k for k in np.argsort(-adds, kind="stable")[: config.reasons] if adds[k] > 0.0]
        return [
            {"feature": reasons.names[k], "value": _value_of(row, reasons.names[k]), "adds": sign * adds[k] / spread}
            for k in order
        ]

    compared = dict(zip(COMPARISONS, (reasons.above_most_favourable, reasons.above_average), strict=True))
    return jsonable(
        [
            copied
            | {"score": score}
            | {key: largest(adds[i], row) for key, adds in compared.items() if adds is not None}
            for i, (copied, score, row) in enumerate(
                zip(ids.to_dict("records"), (model.decision_function(rows.X) / spread).tolist(), values, strict=True)
            )
        ]
    )


def _value_of(values: dict[Any, Any], name: str) -> Any:
    """Return the value of a feature, or the values of the two features of an interaction as a list."""
    if name in values:
        return values[name]
    for at in range(len(name)):
        first, second = name[:at], name[at + len(BETWEEN) :]
        if name.startswith(BETWEEN, at) and first in values and second in values:
            return [values[first], values[second]]
    return None


def explanation_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist explain` prints: a paragraph for each row, or the path of the table."""
    if result["output"] is not None:
        return [f"{result['output']}: {result['rows']} rows", *lines_of_values(result)]
    lines = []
    for said in result.get("classes", [result]):
        lines += [f"class {said['name']}"] if "name" in said else []
        for row in said.get("reasons") or said["explained"] or ():
            copied = "".join(
                f", {name} {_value_text(text)}" for name, text in list(row.items())[1 : list(row).index("score")]
            )
            lines.append(f"row {row['row_id']}{copied}: score {number_text(row['score'], 5)}")
            if "contributions" not in row:
                lines += [
                    f"  compared with the {reference}: {_reasons_text(row[key]) or 'nothing'}"
                    for key, reference in COMPARISONS.items()
                    if key in row
                ]
                continue
            for part in row["contributions"]:
                lines.append(f"  {part['adds']:+12.5g}  {part['feature']} = {_value_text(part['value'])}")
            if row["rest"]:
                lines.append(f"  {row['rest']:+12.5g}  all other features")
            lines.append(f"  {row['constant']:+12.5g}  constant")
    return lines


def _reasons_text(parts: list[Json]) -> str:
    named = [part["feature"] + ("" if part["value"] is None else f" = {_value_text(part['value'])}") for part in parts]
    return ", ".join(f"{name} ({part['adds']:+.4g})" for name, part in zip(named, parts, strict=True))


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(_value_text, value))
    if isinstance(value, str):
        return value
    return "missing" if value is None else f"{value:.6g}"
