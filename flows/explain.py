"""The command `explain`: what each feature adds to the score of each row, printed for a few rows or written for all."""

from typing import Annotated, Any

import numpy as np
import pandas as pd

from aucdist.data.block import Block, as_dense, stacked
from aucdist.data.dataset import category_features
from aucdist.data.formats.table_options import MISSING_CATEGORY
from aucdist.data.own_files import jsonable
from aucdist.data.shards.reading import open_rows
from aucdist.data.storage.files import absolute, shown, write_bytes
from aucdist.drift.leaks import count_known
from aucdist.errors import InputError, Json, counted, unknown
from aucdist.maps.explain import BETWEEN
from aucdist.model.batch_scoring import read_seen, source_for_scoring, texts_of_columns
from aucdist.model.files import load_model
from aucdist.model.linear_model import LinearModel
from aucdist.text import number_text
from flows.compute.clusters import s3_as_configured
from flows.config.cluster import S3Option
from flows.config.data import UnlabelledRef, source_of
from flows.config.loading import AtLeastOne, Cli, CopyOption, CountOption, FileOption, FolderArgument, TextList
from flows.progress import RunObserver
from flows.score import lines_of_values

TABLE_SUFFIXES = (".csv", ".parquet")
DEFAULT_ROWS = 10
"""The number of rows that are printed by default."""
COMPARISONS = {
    "compared_with_most_favourable": "compared with the most favourable values",
    "compared_with_average": "compared with the average row",
    "rare_in_queue": "of these, the reasons that few rows of the queue share",
}
SHARED = 0.2
"""The share of the rows of a queue from which a reason does not distinguish them."""


class ExplainConfig(UnlabelledRef):
    """Rows whose scores are explained feature by feature."""

    model: FolderArgument
    """A run folder, a model, a model store, or a version in a store, such as store@3: a folder or URL."""
    rows: CountOption = None
    """The number of rows to explain, from the first row on. The default is 10, or all rows with `output`."""
    highest: CountOption = None
    """In place of the first rows, explain this number of rows with the highest scores, the highest first."""
    top: Annotated[AtLeastOne, Cli(metavar="N")] = 5
    """How many contributions to show for each row. The largest ones are shown."""
    reasons: CountOption = None
    """Instead of contributions, show this many columns that raise the score of each row most."""
    copied: CopyOption
    """Also show this column of the rows, such as an identifier. May be repeated."""
    lower: bool = False
    """With `reasons`: show the columns that lower the score of each row most. Use it for models whose high scores are good."""
    classes: Annotated[TextList, Cli(flag="--class", metavar="NAME")]
    """For a model of several classes: a class to explain. May be repeated. By default all are explained."""
    output: FileOption = None
    """A .csv or .parquet file for the reasons, or for all contributions. By default they are printed."""
    force: bool = False
    """Replace the file of `output` if it exists."""
    s3: S3Option
    """How s3:// URLs are reached."""

    def _check(self) -> None:
        super()._check()
        if self.output and not self.output.endswith(TABLE_SUFFIXES):
            raise unknown("suffix of the output:", self.output.rpartition("/")[2], TABLE_SUFFIXES)
        if self.rows and self.highest:
            raise InputError("`rows` are the first rows, and `highest` those of the highest scores: give one of them")
        if self.lower and not self.reasons:
            raise InputError("`lower` says which `reasons` are shown: give `reasons` too")


def explain(config: ExplainConfig, observer: RunObserver) -> Json:
    """Explain the scores of the first rows of a data set, or of all.

    Raises
    ------
    InputError
        If the model or the data is wrong, or the feature map of the model mixes features.
    """
    with s3_as_configured(config, observer):
        observer.stage("explain")
        model = load_model(config.model)
        if config.classes and not model.classes:
            raise InputError("`--class` is for models of several classes, but this model has two: leave --class out")
        if config.highest and model.classes:
            raise InputError("`highest` is for models of two classes, but this model has several: leave it out")
        for name in {*config.classes} - {*model.classes}:
            raise unknown("class", name, model.classes)
        rows, ids, texts, about = _rows_to_explain(config, model)
        classes, tables = list[Json](), list[pd.DataFrame]()
        for k, name in enumerate(model.classes or ("",)):
            if config.classes and name not in config.classes:
                continue
            binary, spread = model.of_class(k), model.weights[k].spread
            scores = binary.decision_function(rows.X) / spread
            head = ids.assign(score=scores, flagged=scores > 0)
            explained = (
                _explained(binary, spread, rows, head, texts, config) if config.reasons or not config.output else {}
            )
            classes.append(explained | ({"name": name} if name else {}))
            if config.output:
                parts = (
                    pd.DataFrame(explained["reasons"]).filter(list(COMPARISONS)).map(_reasons_text)
                    if explained
                    else binary.explain(rows.X) / spread
                )
                tables.append(pd.concat([head, parts], axis=1))
                if name:
                    tables[-1].insert(ids.shape[1], "class", name)
        if config.output:
            table = pd.concat(tables, ignore_index=True)
            for twice in table.columns[table.columns.duplicated()]:
                raise InputError(f"two columns of the output have the name {twice!r}: rename the column of the data")
            if absolute(config.output) in map(absolute, source_of(config).format_of().part_urls()):
                raise InputError(f"{shown(config.output)} is a file of the data: name another one with --output")
            write_bytes(
                config.output,
                table.to_csv(index=False).encode() if config.output.endswith(".csv") else table.to_parquet(index=False),
                new=not config.force,
            )
            return jsonable(about | {"output": shown(config.output), "queue": classes[0].get("queue")})
    return jsonable(about | ({"classes": classes} if model.classes else classes[0]))


def _rows_to_explain(config: ExplainConfig, model: LinearModel) -> tuple[Block, pd.DataFrame, pd.DataFrame, Json]:
    """Return the rows to explain, their numbers beside the columns that are copied, their categories, and facts about all rows.

    The categories are texts. They are needed for rows that have none of the categories of the training rows.
    """
    reader = open_rows(
        source_for_scoring(source_of(config), model), schema=model.schema, labelled=False, name=config.name or ""
    )
    blocks = list[Block]()
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
    for name in {"row_id", "class", "score", "flagged"} & {*config.copied}:
        raise InputError(f"the output already has a column {name!r}: do not copy the column of this name")
    firsts = np.cumsum([0, *reader.rows])
    gaps = [name for name in model.schema.categories if name in reader.missing | reader.unknown]
    tables = [
        pd.DataFrame(
            texts_of_columns(reader, k, [*config.copied, *gaps]),
            pd.RangeIndex(firsts[k], firsts[k + 1], name="row_id"),
        )
        for k in np.unique(np.searchsorted(firsts, rows.row_id, side="right") - 1).tolist()
    ]
    table = pd.concat(tables).loc[rows.row_id]
    about = {
        "model": shown(config.model), "rows": rows.n_samples, "missing": reader.missing, "unknown": reader.unknown,
        "training_rows": count_known(model.encoded(rows.X), read_seen(config.model)).tolist(), "output": None, "explained": None,
    }  # fmt: skip
    texts = (table[gaps] + " (unknown)").fillna(MISSING_CATEGORY)
    return rows, table[[*dict.fromkeys(config.copied)]].reset_index(), texts, about


def _explained(
    model: LinearModel, spread: float, rows: Block, head: pd.DataFrame, texts: pd.DataFrame, config: ExplainConfig
) -> Json:
    """Return the largest contributions to the score of each row, or its reasons, and the reasons that all rows of a queue share.

    Reasons are differences from the most favourable value and from the average row. A linear model has no most favourable value
    of a number, so its reasons are differences from the average row only.
    """
    shown_rows, values = head.to_dict("records"), list[dict[Any, Any]]()
    categories = category_features(model.schema.categories)
    table = texts.reset_index(drop=True).join(pd.DataFrame(as_dense(rows.X), columns=[*model.schema.feature_names]))
    for row in table.to_dict("records"):
        values.append(row | {c: v for name, (c, v) in categories.items() if row[name] == 1.0})
    sign, most, queue = -1 if config.lower else 1, config.reasons or config.top, list[Json]()
    if config.reasons:
        reasons = model.reasons(rows.X, sign)
        names, above = [*map(str, reasons.above_average)], (reasons.above_most_favourable, reasons.above_average)
        terms_of = {key: terms.to_numpy() for key, terms in zip(COMPARISONS, above, strict=False) if terms is not None}
    else:
        table = model.explain(rows.X)
        *names, constant = map(str, table)
        terms_of = {"contributions": table[names].to_numpy()}
    if config.reasons and config.highest:
        average = reasons.above_average.to_numpy()
        rare = terms_of["rare_in_queue"] = average.copy()
        for k, name in enumerate(names):
            for added, same in head.groupby(average[:, k]).indices.items():
                if added > 0.0 and len(same) >= max(2, SHARED * len(rare)):  # type: ignore[operator]
                    rare[same, k] = 0.0
                    shared = {_value_text(_value_of(values[i], name)) for i in same}
                    queue.append({
                        "feature": name, "value": shared.pop() if len(shared) == 1 else "several values",
                        "adds": sign * added / spread, "rows": len(same),  # type: ignore[operator]
                    })  # fmt: skip
        queue.sort(key=lambda part: -sign * part["adds"] * part["rows"])
    for key, terms in terms_of.items():
        for row, adds, own in zip(shown_rows, terms, values, strict=True):
            sizes = adds if config.reasons else np.abs(adds)
            row[key] = [
                {"feature": names[k], "value": _value_of(own, names[k]), "adds": sign * adds[k] / spread}
                for k in np.argsort(-sizes, kind="stable")[:most]
                if sizes[k] > 0.0
            ]
    if config.reasons:
        return {"explained": None, "reasons": shown_rows, "queue": queue[:most]}
    for row, adds, total in zip(shown_rows, table[constant], terms_of["contributions"].sum(axis=1), strict=True):
        parts = row["contributions"]
        row |= {
            "constant": adds / spread,
            "rest": total / spread - sum(part["adds"] for part in parts) if len(parts) < len(names) else 0.0,
        }
    return {"explained": shown_rows}


def _value_of(values: dict[Any, Any], name: str) -> Any:
    """Return the value of a feature. For an interaction, return the values of its two features as a list."""
    if name in values:
        return values[name]
    for at in range(len(name)):
        first, second = name[:at], name[at + len(BETWEEN) :]
        if name.startswith(BETWEEN, at) and first in values and second in values:
            return [values[first], values[second]]
    return None


def explanation_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist explain` prints. They are a paragraph for each row, or the path of the table."""
    lines = [
        f"{'all' if part['rows'] == result['rows'] else part['rows']} of the {counted(result['rows'], 'row')}: "
        f"{_reasons_text([part])}"
        for part in result.get("queue") or ()
    ] + lines_of_values(result)
    if result["output"] is not None:
        return [f"{result['output']}: {counted(result['rows'], 'row')}", *lines]
    for said in result.get("classes", [result]):
        lines += [f"class {said['name']}"] if "name" in said else []
        for row in said.get("reasons") or said["explained"] or ():
            copied = "".join(
                f", {name} {_value_text(text)}" for name, text in list(row.items())[1 : list(row).index("score")]
            )
            lines.append(
                f"row {row['row_id']}{copied}: score {number_text(row['score'], 5)}, {'not ' * (not row['flagged'])}flagged"
            )
            lines += [
                f"  {reference}: {_reasons_text(row[key]) or 'nothing'}"
                for key, reference in COMPARISONS.items()
                if key in row
            ]
            for part in row.get("contributions", ()):
                lines.append(f"  {part['adds']:+12.5g}  {part['feature']} = {_value_text(part['value'])}")
            if row.get("rest"):
                lines.append(f"  {row['rest']:+12.5g}  all other features")
            if "constant" in row:
                lines.append(f"  {row['constant']:+12.5g}  constant")
    return lines


def _reasons_text(parts: list[Json]) -> str:
    return ", ".join(f"{part['feature']} = {_value_text(part['value'])} ({part['adds']:+.4g})" for part in parts)


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return " and ".join(map(_value_text, value))
    if isinstance(value, str):
        return value
    return MISSING_CATEGORY if pd.isna(value) else f"{value:.6g}"
