"""The state of a watch: a record of each batch, its scores, its labels, and one page for all batches.

The folder contains:

* ``batches/<name>.json``, which is created once for each batch;
* ``scores/<name>/<digest of rows and model>/``, unless `aucdist score` wrote the scores;
* ``labels/<name>.parquet`` and ``performance/<name>.json``, which are replaced as a whole when labels arrive;
* ``leases/``, because only one process at a time may add labels;
* ``index.html``, the page.
"""

import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import with_config
from typing_extensions import TypedDict

from aucdist.data.formats.table_options import PLAIN
from aucdist.data.label_sets import set_numbers
from aucdist.data.labels import Labels
from aucdist.data.own_files import MORE_KEYS, ROW_ID, Count, json_digest, json_text, read_as, read_json, read_parquet
from aucdist.data.storage import files
from aucdist.errors import InputError, Json
from aucdist.model.linear_model import LinearModel
from aucdist.report.watch import ALARM_TEXTS, NAMES, render_watch_page
from flows.config.loading import RUN_NAME
from flows.run_folder.schema import GuaranteedMetric, JsonNumber

PAGE = "index.html"
if TYPE_CHECKING:
    AlarmKind = str
    MetricName = str
else:
    AlarmKind, MetricName = Literal[tuple(ALARM_TEXTS)], Literal[tuple(NAMES)]


class Alarm(TypedDict):
    """A difference from the training rows or the test rows that is both large and significant."""

    what: AlarmKind
    column: str | None
    value: JsonNumber
    p: JsonNumber


class ScoreDrift(TypedDict):
    """How far a score has drifted."""

    psi: JsonNumber


class ShareResult(TypedDict):
    """A share of the rows."""

    share: JsonNumber


class ColumnDrift(ScoreDrift):
    """How far a column has drifted."""

    name: str


class BatchComparison(TypedDict):
    """The result of `aucdist.drift.batch.compare_with_profile`."""

    columns: list[ColumnDrift]
    score: ScoreDrift
    rare: ShareResult
    alarms: list[Alarm]


class Identity(TypedDict):
    """The rows and the model of a batch."""

    data: str
    model: str


@with_config(MORE_KEYS)
class Batch(TypedDict):
    """The record of a batch.

    The key `comparison` had the name ``found`` in earlier versions.
    """

    batch: str
    time: str
    version: int | None
    identity: Identity
    rows: Count
    number: NotRequired[Count]
    scores: str | None
    comparison: Annotated[BatchComparison, read_as("comparison", "found")]


class EstimateResult(TypedDict):
    """A metric with its interval."""

    value: JsonNumber
    low: JsonNumber
    high: JsonNumber


class Metrics(TypedDict):
    """The metrics of rows with labels."""

    metrics: Annotated[dict[MetricName, EstimateResult], read_as("metrics", "measures")]


class GuaranteeTest(TypedDict):
    """The test of the guarantee of a threshold.

    It has the number of labelled rows that count against the guarantee, and the number of rows that the guarantee is about.
    """

    metric: GuaranteedMetric
    guaranteed: JsonNumber
    bad: Count
    rows: Count
    evidence: NotRequired[JsonNumber]
    value: NotRequired[JsonNumber]


@with_config(MORE_KEYS)
class Performance(Metrics):
    """The metrics of the labelled rows of a batch, and those of the test rows of the run.

    The key `on_test_rows` had the name ``promised`` in earlier versions.
    """

    labelled: Count
    alarms: list[Alarm]
    on_test_rows: Annotated[Metrics | None, read_as("on_test_rows", "promised")]
    n_pos: NotRequired[Count]
    guarantee: NotRequired[GuaranteeTest]


@dataclass(frozen=True)
class WatchState:
    """The folder of a watch.

    `damaged` has the errors of batches that cannot be read. These batches are left out.
    """

    url: str
    damaged: list[str] = field(default_factory=list)

    def at(self, kind: str, batch: str, suffix: str = ".json") -> str:
        """Return the URL of a file of a batch."""
        return f"{self.url}/{kind}/{batch}{suffix}"

    def scores(self, batch: str, identity: Identity) -> str:
        """Return the folder of the scores of a batch.

        Its name depends on the rows and the model, so that other rows or another model have another folder.
        """
        return f"{self.at('scores', batch, '')}/{json_digest(identity)[:16]}"

    def batches(self) -> Json:
        """Return the records of all batches by name, in the order in which they were watched.

        Versions up to 0.4.0 did not number the batches. Their batches are sorted by time, so the order is wrong if the clock
        was set back.
        """
        names = [name.removesuffix(".json") for name in files.names_in(f"{self.url}/batches") if name.endswith(".json")]
        records = {}
        for name in names:
            if re.fullmatch(RUN_NAME, name) and (record := self._unless_damaged(self.read, name)) is not None:
                records[name] = record
        return dict(sorted(records.items(), key=lambda item: (item[1].get("number", 0), item[1]["time"], item[0])))

    def _unless_damaged(self, read: Any, batch: str) -> Any:
        try:
            return read(batch)
        except InputError as error:
            if str(error) not in self.damaged:
                self.damaged.append(str(error))
            return None

    def read(self, batch: str) -> Json:
        """Return the record of a batch.

        Raises
        ------
        InputError
            If the record is missing or damaged.
        """
        return dict(read_json(self.at("batches", batch), Batch))

    def performance(self, batch: str) -> Json | None:
        """Return the metrics of the labelled rows of a batch, or None if the batch has no labels.

        Raises
        ------
        InputError
            If the record is damaged.
        """
        url = self.at("performance", batch)
        return dict(read_json(url, Performance)) if files.exists(url) else None

    def guarantee_tests(self, model: str, batch: str, test: Json) -> list[Json]:
        """Return the tests of a model's guarantee on its batches, in the order of the batches.

        Parameters
        ----------
        model : str
            The digest of the model.
        batch : str
            The name of the batch whose test is new.
        test : dict
            The test of `batch`. It replaces a test that was written before.
        """
        tests = [
            test if name == batch else (self._unless_damaged(self.performance, name) or {}).get("guarantee")
            for name, record in self.batches().items()
            if record["identity"]["model"] == model
        ]
        return list(filter(None, tests))

    def create(self, batch: str, record: Json) -> None:
        """Write the record of a batch. There must not be one already.

        Raises
        ------
        InputError
            If another process has watched a batch with this name in the meantime.
        """
        if not files.create_bytes(self.at("batches", batch), json_text(record).encode()):
            raise InputError(f"batch {batch} is being watched by another process: name another one with --batch")

    def write(self, kind: str, batch: str, record: Json) -> None:
        """Write a record of a batch. It replaces an earlier one as a whole."""
        files.write_bytes(self.at(kind, batch), json_text(record).encode())

    def labels(self, batch: str, *, several: bool) -> pd.DataFrame:
        """Return the labels that are known so far, in the columns ``row_id`` and ``y``.

        For several classes, ``y`` has the names of the classes.
        """
        url, label = self.at("labels", batch, ".parquet"), pa.string() if several else pa.int8()
        if not files.exists(url):
            return pd.DataFrame({ROW_ID: pd.Series(dtype="int64"), "y": pd.Series(dtype="str" if several else "int8")})
        return read_parquet(url, {ROW_ID: pa.int64(), "y": label})

    def write_page(self, title: str) -> str:
        """Write the page of all batches, and return its URL."""
        records = [
            record | {"performance": self._unless_damaged(self.performance, batch)}
            for batch, record in self.batches().items()
        ]
        files.write_bytes(f"{self.url}/{PAGE}", render_watch_page(title, records).encode())
        return f"{self.url}/{PAGE}"


# ---- files with labels that become known later ------------------------------------------------------------------------------


def read_labels(url: str, model: LinearModel) -> tuple[pd.DataFrame, int]:
    """Return the labels in a Parquet or CSV file, and the number of rows that have none yet.

    Parameters
    ----------
    url : str
        A file with the column ``row_id`` and a column of labels. The latter has the name of the training data's label, or is
        the only other column.
    model : LinearModel
        The model, whose classes are those of the labels.

    Returns
    -------
    tuple (DataFrame, int)
        A table with ``row_id``, int64, and ``y``, sorted by ``row_id``; and the number of rows without a label. ``y`` is -1 or
        +1, int8. For several classes, it has the names of the classes, with commas between topics.

    Raises
    ------
    InputError
        If the file lacks these columns, has a row twice, or has a label that is not one of the classes.
    """
    where = files.shown(url)
    table = _state_table(url)
    if ROW_ID not in table:
        raise InputError(f"{where} has no column {ROW_ID!r}: add it, to say which row of the batch a label belongs to")
    others = [name for name in table.columns if name != ROW_ID]
    label = model.schema.label if model.schema.label in others else (others[0] if len(others) == 1 else None)
    if label is None:
        raise InputError(
            f"{where}: which of {', '.join(map(repr, others[:8])) or 'no columns'} is the label? Call it "
            f"{model.schema.label!r}, as in the training data"
        )
    row_id, values = table[ROW_ID], table[label]
    if len(table) and (not pd.api.types.is_integer_dtype(row_id) or row_id.isna().any() or (row_id < 0).any()):
        raise InputError(f"{where}: {ROW_ID} must be whole numbers from 0, as `aucdist score` writes them")
    if row_id.duplicated().any():
        raise InputError(
            f"{where}: {ROW_ID} {int(row_id[row_id.duplicated()].iloc[0])} occurs twice: give one label for each row"
        )
    classes = {*model.schema.positive, *model.schema.negative}
    cells = [None if pd.isna(value) else str(value).strip() for value in values]
    known = np.array([c is not None and (c in classes or not PLAIN.is_missing(c)) for c in cells], dtype=bool)
    class_numbers, texts = pd.factorize(values[known].astype(str))
    labels_of_rows = Labels.of(class_numbers, list(texts), topics=model.topics)
    if not model.classes:
        y = labels_of_rows.binary_labels(model.schema.positive, model.schema.negative, where)
    else:
        if not model.topics:
            # This raises an error for a class that the model does not know.
            set_numbers(labels_of_rows, model.schema_of_labels, where)
        y = np.array(labels_of_rows.names, dtype=object)[labels_of_rows.class_numbers]
    labels = pd.DataFrame({ROW_ID: row_id[known].to_numpy(np.int64), "y": y})
    return labels.sort_values(ROW_ID, ignore_index=True), int((~known).sum())


def _state_table(url: str) -> pd.DataFrame:
    data, where = files.read_bytes(url), files.shown(url)
    try:
        if url.lower().endswith(".parquet"):
            return pd.read_parquet(io.BytesIO(data))
        if url.lower().endswith(".csv"):
            separator = max(",;\t", key=data.partition(b"\n")[0].decode(errors="replace").count)
            # The text "None" may be a class.
            return pd.read_csv(io.BytesIO(data), sep=separator, keep_default_na=False, na_values=[""])
    except Exception as e:  # pandas and pyarrow raise errors of many kinds
        raise InputError(f"cannot read {where}: {str(e).splitlines()[0]}") from None
    raise InputError(f"{where}: labels are read from .parquet and .csv files: convert the file")
