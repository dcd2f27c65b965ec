"""Score any data set by a saved model, into one Parquet file for each part of the rows.

Parts that exist are not scored again, so the same command resumes an interrupted run. A folder of scores belongs to one model
and one version of the data, which ``_scoring.json`` names. ``_scores.json`` is written last, when all scores exist. The folders
of the model and of the scores are always those of the command. They are not read from a file of the folder, because the folder
may be a copy.

If the model has costs, the result also has the cost of the decisions. If labels are known, it is the actual cost. Otherwise, it
is the expected cost according to the probabilities.
"""

import functools
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, with_config
from typing_extensions import TypedDict

from aucdist.data.block import Block
from aucdist.data.column_statistics import first_missing
from aucdist.data.dataset import Schema
from aucdist.data.formats.parts import StoredPart
from aucdist.data.formats.table_options import MISSING_CATEGORY
from aucdist.data.label_sets import LabelSets
from aucdist.data.own_files import MORE_KEYS, NO_MORE_KEYS, REPAIR, Count, Sha256, parse_checked, read_json, write_json
from aucdist.data.shards.manifest import manifest_of
from aucdist.data.shards.reading import BlockReader, fingerprint_of, index_of, open_rows
from aucdist.data.sources import Source, parse_source
from aucdist.data.storage import files
from aucdist.data.storage.files import absolute, opened, shown
from aucdist.data.storage.urls import Url, secret_urls
from aucdist.drift.leaks import RowDigests, count_known
from aucdist.errors import InputError, Json
from aucdist.metrics.decisions import Costs, DecisionCosts
from aucdist.model.files import DIGESTS, digest_of_model, load_model, model_folder
from aucdist.model.linear_model import LinearModel

LARGEST_COSTS = b"aucdist.largest_costs_of_classes"
"""The key in the metadata of a file of scores with the costs of decisions. For each class it has the numbers of rows in the class
and outside of it, and the largest cost of a wrong decision on such a row."""
Largest = list[tuple[tuple[Count, float], tuple[Count, float]]]


@dataclass(frozen=True)
class RowCosts:
    """How the column ``cost`` of the scores is computed.

    Attributes
    ----------
    cost : dict of str to float or str
        ``false_positive`` and ``miss``, for which the model was trained: numbers, or `aucdist.metrics.decisions.COST_COLUMN`.
    labelled : bool
        Whether the labels of the rows are known.
    unknown : str
        Why costs cannot be computed. Empty if they can.
    classes : tuple of str
        The classes of a model of several classes. Each has a column such as ``cost sports``.
    """

    __pydantic_config__ = NO_MORE_KEYS

    cost: dict[str, float | str]
    labelled: bool
    unknown: str = ""
    classes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes. A model of two classes has one class, without a name."""
        return self.classes or ("",)

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns that are added to the scores, and their types."""
        return {column("cost", name): pa.float64() for name in self.names}

    def add_cost_columns(self, scores: pa.Table, block: Block, model: LinearModel, schema: Schema) -> pa.Table:
        """Add the cost of the decisions to scores, and the labels of two classes if they are known.

        The columns are ``cost`` of each class, and ``y``, which is -1 or 1. Without labels, the cost is the one that the
        probability of the class expects, before the probabilities of several classes are scaled to sum to 1.

        Parameters
        ----------
        scores : pyarrow.Table
            The scores of the rows.
        block : Block
            The rows.
        model : LinearModel
            The model that gave the scores.
        schema : Schema
            The schema of the rows as they were read.

        Returns
        -------
        pyarrow.Table
        """
        if self.unknown:
            for name in self.columns:
                scores = scores.append_column(name, pa.nulls(scores.num_rows, pa.float64()))
            return scores
        members = block.y[:, np.newaxis] > 0
        if self.labelled and self.classes:
            members = members_of_block(block, schema, self.classes)
        elif self.labelled:
            scores = scores.append_column("y", pa.array(block.y))
        about, costs = [], Costs.of(self.cost)
        for k, (name, weights) in enumerate(zip(self.names, model.weights, strict=True)):
            class_scores = scores[column("score", name)].to_numpy()
            flagged = class_scores > 0
            # without labels, a flagged row may be a false positive, and any other row a miss
            positive = members[:, k] if self.labelled else ~flagged
            row_costs = costs.of_rows(positive, block.cost)
            if self.labelled:
                about.append(
                    [[int(rows.sum()), float(row_costs[rows].max(initial=0.0))] for rows in (positive, ~positive)]
                )
                cost = np.where(flagged != positive, row_costs, 0.0)
            else:
                assert weights.probability is not None  # otherwise `unknown` says that there are no costs
                probability = weights.probability(class_scores)[:, 1]
                cost = np.where(flagged, 1.0 - probability, probability) * row_costs
            scores = scores.append_column(column("cost", name), pa.array(cost))
        return scores.replace_schema_metadata({LARGEST_COSTS: json.dumps(about)})

    def costs_of_file(self, url: str) -> Any:
        """Return for each class the costs of the decisions on the rows of a file of scores.

        If labels are known, they are a `DecisionCosts`. A wrong decision on a flagged row is a false positive. Otherwise, they
        are the sum of the expected costs and the number of rows.
        """
        with opened(url) as file:
            parquet = pq.ParquetFile(file)
            if self.unknown:
                return []
            class_costs = list[Any]()
            about = parse_checked((parquet.schema_arrow.metadata or {}).get(LARGEST_COSTS, b""), Largest, shown(url))
            if self.labelled and len(about) != len(self.names):
                raise InputError(f"{shown(url)} is damaged: it has the largest costs of {len(about)} classes. {REPAIR}")
            for k, name in enumerate(self.names):
                table = parquet.read(columns=[column("score", name), column("cost", name)])
                flagged, cost = (values.to_numpy() for values in table.columns)
                if not self.labelled:
                    class_costs.append((float(cost.sum()), len(cost)))
                    continue
                rows, largest = np.array(about[k]).T
                mistakes = [cost[(cost > 0) & was_flagged] for was_flagged in (flagged <= 0, flagged > 0)]
                class_costs.append(DecisionCosts(rows, largest, mistakes))
        return class_costs

    def mean_cost(self, parts: Sequence[Any]) -> Json:
        """Return the mean cost of a row over several files of scores.

        Parameters
        ----------
        parts : sequence
            What `costs_of_file` returned for each file.

        Returns
        -------
        dict
            ``kind`` is ``realised``, ``expected`` or ``unknown``. ``value`` is the mean cost, ``interval`` its interval of 95 %
            if the cost is realised, and ``why`` says why a cost is unknown. For several classes, ``value`` is the sum over
            them, without an interval, and ``classes`` has these keys for each class.
        """
        if self.unknown:
            return {"kind": "unknown", "value": None, "interval": None, "why": self.unknown}
        each = dict[str, Json]()
        for name, (first, *more) in zip(self.names, zip(*parts, strict=True), strict=True):
            if self.labelled:
                interval = sum(more, start=first).interval()
                cost = {"kind": "realised", "value": interval.value, "interval": [interval.low, interval.high]}
            else:
                total, rows = map(sum, zip(first, *more, strict=True))
                cost = {"kind": "expected", "value": total / rows, "interval": None}
            each[name] = cost
        if not self.classes:
            return each[""]
        return {
            "kind": each[self.classes[0]]["kind"], "value": sum(class_cost["value"] for class_cost in each.values()),
            "interval": None, "classes": each,
        }  # fmt: skip


def column(kind: str, name: str) -> str:
    """Return the name of a column of scores for a class. For two classes, the class has no name."""
    return f"{kind}{name and f' {name}'}"


def members_of_block(block: Block, schema: Schema, classes: Sequence[str]) -> np.ndarray:
    """Return to which of some classes each row belongs, bool of shape (n_rows, n_classes)."""
    assert block.code is not None
    positions = [schema.classes.index(name) for name in classes]
    return LabelSets.of_schema(schema).only(positions).indicator(block.code)


def has_costs(source: Source) -> bool:
    """Return whether the rows of a source have costs of wrong decisions."""
    manifest = manifest_of(source)
    return source.cost_column is not None if manifest is None else manifest.block_schema.costed


def costs_of_scoring(source: Source, model: LinearModel) -> RowCosts | None:
    """Return how the costs of a model's decisions on the rows of a source are computed, or None if it was not trained for costs.

    Labels are known if the source names their column, as in ``--set label=fraud``, or if it is a folder of shards with the
    model's classes.
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


IN_PROGRESS, DONE = "_scoring.json", "_scores.json"
COLUMNS = {"row_id": pa.int64(), "score": pa.float64(), "prediction": pa.int8()}
PER_CLASS = {"row_id": pa.int64(), "prediction": pa.string()}
"""The columns that the scores of a model of several classes have for each class, in addition to columns such as ``score
sports``."""


@with_config(MORE_KEYS)
class ScoringSummary(TypedDict):
    """The keys of the file `DONE` that other code reads."""

    rows: Count
    parts: Count


@dataclass(frozen=True)
class Scoring:
    """What every worker must know to score a part.

    It is stored in a file. The file has the key alone until the rows are surveyed.

    Attributes
    ----------
    key : str
        SHA-256 that identifies this model and this version of the data.
    model : str
        The folder of the model.
    reader : BlockReader or None
        The rows, once they have been surveyed.
    contributions : bool
        Whether columns have what each feature adds to a score.
    top : int
        For a model of several classes, the number of columns that name the most likely ones.
    cost : RowCosts or None
        How the costs of decisions are computed. None if the model was not trained for costs.
    copied : tuple of str
        Columns of the rows that are copied to the scores.
    output : str
        The folder of the scores. The file does not have it, because the folder may be a copy.
    """

    __pydantic_config__ = NO_MORE_KEYS

    key: Sha256
    model: str = ""
    model_sha256: str = ""
    reader: BlockReader | None = None
    contributions: bool = False
    top: int = 0
    cost: RowCosts | None = None
    copied: tuple[str, ...] = ()
    output: Annotated[str, Field(exclude=True)] = ""

    @property
    def rows(self) -> BlockReader:
        """The rows, which must have been surveyed."""
        assert self.reader is not None
        return self.reader

    @property
    def url(self) -> str:
        """The URL of the file from which workers read this object."""
        return f"{self.output}/{IN_PROGRESS}"

    @property
    def secret_urls(self) -> tuple[Url, ...]:
        """The URLs with secrets. They are sent with the task of each part, because the file does not have them."""
        return (*self.rows.secret_urls, *secret_urls(self.model))

    def part(self, index: int) -> str:
        """Return the URL of a part of the scores."""
        return f"{self.output}/part-{index:05d}.parquet"


def plan_scoring(
    model: str,
    source: Source,
    output: str,
    *,
    contributions: bool = False,
    top: int = 0,
    copied: tuple[str, ...] = (),
    **opening: Any,
) -> Scoring:
    """Check that the rows have the features of the model, and number them, or resume an earlier run.

    Parameters
    ----------
    model : str
        As `aucdist.model.load_model` takes it.
    source : Source
        The rows. They need no label; columns that the model does not have are not read.
    output : str
        The folder of the scores.
    contributions : bool, default=False
        Whether columns say what each feature adds to a score: see `LinearModel.contribution_names`. With the last column,
        ``adds_rounding``, their sum from the first to the last is the score to the last bit.
    top : int, default=0
        For a model of several classes: the number of columns that name the most likely classes of each row, the likeliest
        first.
    copied : tuple of str, default=()
        Columns of the rows that are written beside the scores as texts, such as an identifier. They need not be features.
    **opening
        ``each``, ``place_on_workers``, ``n_parts`` and ``name``, as for `open_rows`.

    Raises
    ------
    InputError
        If there is no such model or data set, if its features are not those of the model, or if `output` cannot be written to
        or has other files.
    """
    model, output = model_folder(absolute(model)), absolute(output)
    loaded = load_model(model)
    if contributions:
        loaded.contribution_names()  # raises an error if the model has no contributions
    if top:
        n_classes = len(loaded.classes)
        if not 1 <= top <= n_classes:
            raise InputError(
                f"top is {top}, but the model has {n_classes or 2} classes: give at most that for several, or leave top out"
            )
    cost = costs_of_scoring(source, loaded)
    changes: Json = {}
    if cost is not None and not cost.unknown:  # only the columns of labels and costs that the costs need
        costs = source.cost_column if Costs.of(cost.cost).differ_by_row else None
        changes = {"cost_column": costs, "label": source.label if cost.labelled else None}
    source = source_for_scoring(source, loaded).model_copy(update=changes).pinned()
    digest = digest_of_model(model)
    sharded = manifest_of(source)
    key_parts = [
        digest, fingerprint_of(source), sharded and sharded.url, opening.get("n_parts"), contributions, top, copied,
        cost and asdict(cost),
    ]  # fmt: skip
    key = files.sha256_of(json.dumps(key_parts).encode())
    reader = _reader_of_earlier_run(output, key, source)
    if reader is None:
        # Check that the output can be written before the long survey.
        write_json(f"{output}/{IN_PROGRESS}", {"key": key})
        reader = open_rows(source, schema=loaded.schema_of_labels, labelled=False, **opening)
        if read_scoring(output).key != key:
            raise _replaced(output)
    texts_of_columns(reader, 0, copied)  # raises an error before any work if a column does not exist
    scoring = Scoring(key, model, digest, reader, contributions, top, cost, copied, output)
    write_json(scoring.url, scoring)
    return scoring


def read_scoring(output: str) -> Scoring:
    """Return the scoring whose scores are in a folder, complete or not.

    Raises
    ------
    InputError
        If its file is missing or damaged.
    """
    return replace(read_json(f"{output}/{IN_PROGRESS}", Scoring), output=output)


def _reader_of_earlier_run(output: str, key: str, source: Source) -> BlockReader | None:
    """Return the rows as the run surveyed them that is to be resumed, or None if there is no earlier run.

    Raises
    ------
    InputError
        If the folder has other files.
    """
    earlier = read_scoring(output) if files.exists(f"{output}/{IN_PROGRESS}") else None
    if earlier and earlier.key == key and earlier.reader:
        if earlier.reader.is_of(source):
            return earlier.reader
    elif (earlier and earlier.reader) or (not earlier and files.names_in(output)):
        raise InputError(
            f"{files.shown(output)} is not empty, and its files are not scores of this model and these data: name another folder"
        )
    return None


def source_for_scoring(source: Source, model: LinearModel, *, labelled: bool = False) -> Source:
    """Return a source whose rows are read like the training rows of a model, except for keys that the source gives itself.

    Parameters
    ----------
    source : Source
        The rows.
    model : LinearModel
        The model that scores them.
    labelled : bool, default=False
        Whether the rows have labels. By default, labels are in the same column as in the training rows.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        If the features of the model have names that rows of this format cannot have, or if keys contradict each other.
    """
    file_format = source.format_of()
    fields = source.model_dump(include=source.model_fields_set)
    rules = {key: value for key, value in model.reading.items() if key in file_format.fields and key not in fields}
    if fields.get("header"):
        rules.pop("columns", None)  # the column names of files without a header
    read = parse_source(rules | fields, f"{source.display_name}, read as the model says", labelled=False)
    changes: Json = {"classes": None, "features": None} | read.format_of().for_scoring(model.schema)
    if labelled:
        label = read.label if read.label is not None or not file_format.needs_label else model.schema.label
        changes = {key: v for key, v in (changes | {"label": label}).items() if key in file_format.fields or v is None}
    return read.model_copy(update=changes)


@functools.lru_cache(maxsize=2)
def _scoring_at(url: str, key: str) -> tuple[Scoring, LinearModel, RowDigests]:
    scoring = read_scoring(url.rpartition("/")[0])
    if scoring.key != key or scoring.reader is None:
        raise _replaced(scoring.output)
    return scoring, load_model(scoring.model), read_seen(scoring.model)


def read_seen(model: str) -> RowDigests:
    """Return the digests of the training rows of a model. There are none if the model does not store them.

    Parameters
    ----------
    model : str
        As for `load_model`.
    """
    url = f"{model_folder(model)}/{DIGESTS}"
    return (
        RowDigests.from_bytes(files.read_bytes(url), shown(url)) if files.exists(url) else RowDigests(np.zeros(0, "u8"))
    )


def _replaced(output: str) -> InputError:
    where = files.shown(f"{output}/{IN_PROGRESS}")
    return InputError(f"another run has replaced {where} since this one began: start again, with another output")


def score_part(url: str, key: str, item: int | StoredPart, urls: tuple[Url, ...] = ()) -> Json:
    """Write the scores of one part, unless they exist.

    Parameters
    ----------
    url, key : str
        The URL of the file of the `Scoring`, and the key in it.
    item : int or StoredPart
        The part: its number, or one of `BlockReader.items`.
    urls : tuple of Url
        `Scoring.secret_urls`, so that this process knows them.

    Returns
    -------
    dict
        ``file``, ``rows`` and ``training_rows``. If decisions have costs, ``cost`` has what `RowCosts.costs_of_file` returns.
    """
    scoring, model, seen = _scoring_at(url, key)
    reader, index, cost, known = scoring.rows, index_of(item), scoring.cost, [0, 0]
    part, rows = scoring.part(index), reader.rows[index]
    columns = COLUMNS if not model.classes else PER_CLASS | {f"score {name}": pa.float64() for name in model.classes}
    columns = columns | dict.fromkeys(scoring.copied, pa.string())
    if not _is_complete(part, rows, columns | ({} if cost is None else cost.columns)):
        block = reader.read(item)
        fills = model.preprocessor.impute == "keep" or model.preprocessor.fill is not None
        if not fills and (place := first_missing(block.rows)) is not None:
            row, where = int(block.row_id[place[0]]), ""
            if reader.parts:
                url = reader.parts[index].url
                row -= min(part.row for part in reader.parts if part.url == url)
                where = f"{files.shown(url)}, "
            raise InputError(
                f"{where}row {row + 1}, column {reader.schema.feature_names[place[1]]!r}: the value is missing, but no training "
                "row had a missing value in this column: fill it in, leave the row out, or train again with `impute: median`"
            )
        out = io.BytesIO()
        table = _scores(model, block.X, block.row_id, scoring)
        if cost is not None:
            table = cost.add_cost_columns(table, block, model, reader.schema)
        for name, texts in reversed(texts_of_columns(reader, index, scoring.copied).items()):
            if name in table.column_names:
                raise InputError(f"the scores already have a column {name!r}: do not copy the column of this name")
            table = table.add_column(1, name, texts)
        pq.write_table(table, out, compression="zstd")
        files.write_bytes(part, out.getvalue())
        known = count_known(model.encoded(block.X), seen).tolist()
    done = {"file": part.rpartition("/")[2], "rows": rows, "training_rows": known}
    return done if cost is None else done | {"cost": cost.costs_of_file(part)}


def texts_of_columns(reader: BlockReader, index: int, columns: Sequence[str]) -> dict[str, pa.Array]:
    """Return columns of a part as texts, with null for missing values. They need not be features.

    Raises
    ------
    InputError
        If the rows have no such column.
    """
    source = reader.source.model_copy(
        update={"label": None, "keep": columns, "categorical": columns, "missing": "keep"}
    )
    try:
        parsed = source.format_of().read_part(reader.parts[index]).texts if columns and reader.parts else {}
    except InputError as e:
        raise type(e)(str(e).replace("`keep`", "`--copy`")) from None
    texts: dict[str, pa.Array] = {}
    for column in columns:
        if column not in parsed:
            raise InputError(f"{source.display_name} is not a table with a column {column!r}: leave it out")
        categories = [None if text == MISSING_CATEGORY else text for text in parsed[column].categories]
        texts[column] = pa.array(categories, pa.string()).take(pa.array(parsed[column].codes))
    return texts


def _is_complete(url: str, rows: int, needed: dict[str, pa.DataType]) -> bool:
    """Return whether a file has scores of this number of rows. A damaged file counts as incomplete, and is written again."""
    try:
        with opened(url) as file:
            parquet = pq.ParquetFile(file)
            columns = {field.name: field.type for field in parquet.schema_arrow}
            return parquet.metadata.num_rows == rows and needed.items() <= columns.items()
    except (InputError, pa.ArrowException, OSError):
        return False


def _scores(model: LinearModel, X: Any, row_id: np.ndarray, scoring: Scoring) -> pa.Table:
    scores = model.decision_function(X)
    columns: dict[str, Any] = {"row_id": row_id}
    probabilities, predictions = model.probabilities(scores), model.predictions(scores)
    if model.classes:
        columns["prediction"] = pa.array(predictions, pa.string())
        best = model.most_likely(scores, scoring.top)
        columns |= {f"top {place + 1}": pa.array(best[:, place], pa.string()) for place in range(scoring.top)}
        for kind, values in (("score", scores), ("probability", probabilities)):
            if values is not None:
                columns |= {f"{kind} {name}": values[:, k] for k, name in enumerate(model.classes)}
    else:
        columns |= {"score": scores, "prediction": predictions}
        if model.cutoff is not None:
            columns["points"] = (scores + model.cutoff).astype(np.int64)
        if probabilities is not None:
            columns["probability"] = probabilities
    return pa.table(columns | (model.contributions(X, scores) if scoring.contributions else {}))


def write_summary(scoring: Scoring, parts: Sequence[Json]) -> Json:
    """Write the summary that marks the scores as complete, and return it.

    Parameters
    ----------
    scoring : Scoring
        The scoring of all parts.
    parts : sequence of dict
        What `score_part` returned for each part.

    Returns
    -------
    dict
        ``output``, ``rows`` and ``parts``. ``missing`` and ``unknown`` count, for each column, missing values and categories
        that the training rows did not have. ``training_rows`` has how many of the rows that were scored now could be looked up
        among the training rows, and how many were found there. ``cost`` is what `RowCosts.mean_cost` returns, if decisions have
        costs.
    """
    done: Json = {
        "output": files.shown(scoring.output), "rows": sum(part["rows"] for part in parts), "parts": len(parts),
        "missing": scoring.rows.missing, "unknown": scoring.rows.unknown,
        "training_rows": np.sum([part["training_rows"] for part in parts], axis=0).tolist(),
    }  # fmt: skip
    if scoring.cost is not None:
        done["cost"] = scoring.cost.mean_cost([part["cost"] for part in parts])
    listed = [{"file": part["file"], "rows": part["rows"]} for part in parts]
    files.write_bytes(f"{scoring.output}/{DONE}", json.dumps(done | {"files": listed}, indent=1).encode())
    return done
