"""Models with random weights on tables of numbers, categories and dates, and their scores as `aucdist score` has them."""

import csv
import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.linear_models import linear_model

from aucdist.data.block import each_of
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.shards.reading import open_rows, read
from aucdist.data.sources import Source, parse_source
from aucdist.engine.blocks import LocalBlocks
from aucdist.export import to_json, to_onnx, to_sql
from aucdist.maps import expander_of
from aucdist.model.batch_scoring import source_for_scoring
from aucdist.model.linear_model import LinearModel

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "how-to" / "exporting.md"
READER = PAGE.with_name("json-description.md")
BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUOTES, DROP, TAG = 'o\'clock "now"', '"; DROP TABLE rows; --', "<b>'; --"
SOURCE = {
    "format": "csv", "label": "clicked", "positive": "yes", "missing": "keep", "unknown": "ignore",
    "categorical": [DROP, "browser"], "dates": {"seen": ["year", "month", "weekday", "hour", "days"]},
}  # fmt: skip


def table(n: int, seed: int, *, missing: bool = True) -> pd.DataFrame:
    """Return rows with columns whose names and categories have quotes, and with many equal numbers."""
    r = np.random.default_rng(seed)
    seen = pd.Timestamp("2023-12-30") + pd.to_timedelta(r.integers(0, 800 * 1440, n), unit="min")
    rows = pd.DataFrame({
        "age": r.integers(18, 40, n) / 2, QUOTES: np.exp(3 * r.normal(size=n)), "seen": seen.astype(str),
        DROP: r.choice(["a", TAG, "line, two", "ü"], n), "browser": r.choice(["chrome", "Firefox", "17"], n),
        "clicked": np.where(r.random(n) < 0.4, "yes", "no"),
    })  # fmt: skip
    if missing:
        for column in ("age", QUOTES, "seen", DROP):
            rows.loc[r.random(n) < 0.15, column] = np.nan
    return rows


def model_of(
    folder: Path, rows: pd.DataFrame, *, features: Any = None, impute: str = "median", scale: str = "standard",
    log1p: Sequence[str] | None = None, probability: Any = None, source: Mapping[str, Any] = SOURCE, seed: int = 0,
) -> LinearModel:  # fmt: skip
    """Return a model with random weights, whose preprocessing and feature map are fitted to the rows."""
    file = folder / "training.csv"
    rows.to_csv(file, index=False)
    opened = Source(source=str(file), **source)
    data = read(opened)
    names, schema = data.schema.feature_names, data.schema
    logged = None if log1p is None else list(log1p)
    preprocessor = fit_preprocessor(
        each_of([data.block]), names, log1p=logged, scale=scale, categories=schema.categories, impute=impute
    )
    expander = expander_of(features)
    fitted = None if expander is None else expander.fit_blocks(LocalBlocks([preprocessor.transform(data.block)]))
    coef = np.random.default_rng(seed).normal(size=len(names) if fitted is None else fitted.n_features_out)
    return linear_model(coef, 0.3, schema, preprocessor, {}, probability, fitted, opened.keys_for_scoring())


def scores(model: LinearModel, file: Path) -> np.ndarray:
    """Return the scores of the rows of a CSV file, read as the model says."""
    source = parse_source({"source": str(file), "format": "csv"}, file.name, labelled=False)
    reader = open_rows(source_for_scoring(source, model), schema=model.schema, labelled=False)
    return np.concatenate([model.decision_function(reader.read(i).X) for i in range(len(reader.rows))])


@functools.cache
def page_reader() -> dict[str, Any]:
    """Return the functions of the reader that the page on the JSON description prints."""
    (code,) = [code for code in BLOCKS.findall(READER.read_text(encoding="utf-8")) if "def score_of" in code]
    names: dict[str, Any] = {}
    exec(compile(code.partition("\nwith open")[0], PAGE.name, "exec"), names)
    return names


def by_sql(model: LinearModel, file: Path, **options: Any) -> pd.DataFrame:
    """Return what DuckDB makes of the query, in the order of the column `row`."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    frame = pd.read_csv(file, dtype={DROP: object, "browser": object}, keep_default_na=False, na_values=[""])
    with duckdb.connect() as connection:
        connection.register("frame", pa.Table.from_pandas(frame, preserve_index=False))
        connection.execute('CREATE TABLE "rows" AS SELECT * FROM frame')
        table: pd.DataFrame = connection.execute(to_sql(model, ids=["row"], **options)).df()
    return table.sort_values("row", ignore_index=True)


def by_onnx(model: LinearModel, file: Path, **options: Any) -> dict[str, np.ndarray]:
    """Return what onnxruntime makes of the graph; with ``contributions`` also their names."""
    pytest.importorskip("onnx", reason="onnx is not installed: pip install '.[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    graph = to_onnx(model, **options)
    session = runtime.InferenceSession(graph.SerializeToString())
    texts = pd.read_csv(file, dtype=object, keep_default_na=False)
    feed: dict[str, np.ndarray] = {}
    for entry in session.get_inputs():
        if entry.name == "features":
            feed[entry.name] = texts[list(model.schema.feature_names)].to_numpy(np.float64)
        elif entry.type == "tensor(string)":
            feed[entry.name] = texts[entry.name].to_numpy(object)
        elif entry.type == "tensor(int64)":
            feed[entry.name] = pd.to_datetime(texts[entry.name]).to_numpy("datetime64[us]").astype(np.int64)
        else:
            feed[entry.name] = pd.to_numeric(texts[entry.name]).to_numpy(np.float64)
    outputs = [output.name for output in session.get_outputs()]
    outputs_of = dict(zip(outputs, session.run(outputs, feed), strict=True))
    if options.get("contributions"):
        about = {entry.key: entry.value for entry in graph.metadata_props}
        outputs_of["names"] = np.array(json.loads(about["aucdist.contributions"]))
    return outputs_of


def by_reader(model: LinearModel, file: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Return scores and probabilities by the JSON and the reader of the page; nan for rows that it refuses."""
    content, reader, scores = json.loads(to_json(model)), page_reader(), []
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            try:
                scores.append(reader["score_of"](content, row))
            except ValueError:
                scores.append(math.nan)
    probabilities = None
    if model.probability is not None:
        probabilities = np.array([reader["probability_of"](content, score) for score in scores])
    return np.array(scores), probabilities


def model_of_missing_values() -> LinearModel:
    """Return a model of a number and a category, with its own words for missing values; `None` is a category."""
    names = ("x", "k=(missing)", "k=a", "k=None")
    schema = Schema(names, "y", ("1",), ("0",), {"k": ("(missing)", "a", "None")})
    filled = Preprocessor((), "none", None, None, "mean", np.array([0.5, 0.0, 0.0, 0.0]))
    reading = {"format": "csv", "missing": "keep", "missing_values": ["-999", "-"]}
    return linear_model(np.array([1.0, 10.0, 20.0, 30.0]), 0.0, schema, filled, {}, reading=reading)


def parts_of(dates: Sequence[datetime]) -> dict[str, list[float]]:
    """Return the parts of dates that are features."""
    return {
        "year": [d.year for d in dates], "month": [d.month for d in dates], "weekday": [d.weekday() for d in dates],
        "hour": [d.hour + d.minute / 60 for d in dates],
        "days": [(d - datetime(1970, 1, 1)) / timedelta(days=1) for d in dates],
    }  # fmt: skip
